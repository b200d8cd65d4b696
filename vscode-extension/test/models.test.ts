import assert from "node:assert/strict";
import { test } from "node:test";
import { addressProblem, findEndpoints, modelChoices } from "../src/models";

/** What answers on this machine, by URL. */
function machine(answers: Readonly<Record<string, unknown>>, asked: string[] = []) {
  return (url: string): Promise<unknown> => {
    asked.push(url);
    return Promise.resolve(answers[url]);
  };
}

test("the chosen model is marked, also where it is none of the list", () => {
  assert.match(modelChoices(null)[0]?.description ?? "", /^chosen now/);
  assert.match(modelChoices("")[0]?.description ?? "", /^chosen now/);
  const [first, second] = modelChoices("http://localhost:8080");
  assert.equal(first?.value, "http://localhost:8080");
  assert.equal(first?.description, "chosen now");
  assert.equal(second?.label, "Default");
  assert.equal(modelChoices("smollm2").filter((choice) => choice.description?.startsWith("chosen now")).length, 1);
});

test("llama.cpp, Ollama and others are known by what they answer", async () => {
  const found = await findEndpoints(
    machine({
      "http://127.0.0.1:8080/props": { default_generation_settings: {}, model_path: "/models/coder-q8_0.gguf" },
      "http://127.0.0.1:11434/api/tags": { models: [{ name: "coder:1.5b" }, { name: "coder:7b" }] },
      "http://127.0.0.1:8000/v1/models": { data: [{ id: "a/model" }] },
    }),
  );
  assert.deepEqual(found, [
    { address: "http://127.0.0.1:8000#a/model", model: "a/model", kind: "vLLM" },
    { address: "http://127.0.0.1:8080", model: "coder-q8_0.gguf", kind: "llama.cpp" },
    { address: "http://127.0.0.1:11434#coder:1.5b", model: "coder:1.5b", kind: "Ollama" },
    { address: "http://127.0.0.1:11434#coder:7b", model: "coder:7b", kind: "Ollama" },
  ]);
});

test("what answers with something else is passed over, and nothing but this machine is asked", async () => {
  const asked: string[] = [];
  const odd = {
    "http://127.0.0.1:8080/props": "hello",
    "http://127.0.0.1:1234/v1/models": { data: [{ id: 3 }, null] },
  };
  assert.deepEqual(await findEndpoints(machine({ ...odd, "http://127.0.0.1:8000/api/tags": [] }, asked)), []);
  assert.ok(asked.length > 4);
  assert.ok(asked.every((url) => url.startsWith("http://127.0.0.1:")));
});

test("an address is checked while it is typed", () => {
  for (const good of ["http://localhost:8080", " https://host/v1 ", "http://[::1]:11434#coder:1.5b"]) {
    assert.equal(addressProblem(good), undefined, good);
  }
  for (const bad of ["", "localhost:8080", "ftp://host", "https://user:secret@host", "https://host?key=secret"]) {
    assert.ok(addressProblem(bad), bad);
  }
});
