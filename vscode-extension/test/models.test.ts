import assert from "node:assert/strict";
import { test } from "node:test";
import {
  addressProblem,
  findEndpoints,
  modelChoices,
  removalChoices,
  removalMessage,
  removalQuestion,
} from "../src/models";
import { readModels, readRemoved } from "../src/protocol";

const EMBEDDED = { name: "embedded", state: "embedded", about: "7 million parameters", inUse: true };
const SMOLLM2 = {
  name: "smollm2",
  state: "ready",
  about: "SmolLM2-135M",
  recommended: true,
  removable: true,
  bytes: 285_400_000,
  lineMs: 612,
};
const FILE = { name: "/models/coder.gguf", state: "file", about: "a GGUF file", bytes: 1_600_000_000, lineMs: 3000 };
const INSTALLED = readModels([SMOLLM2, EMBEDDED, FILE]);

/** Answers on this machine, by URL. */
function machine(answers: Readonly<Record<string, unknown>>, asked: string[] = []) {
  return (url: string): Promise<unknown> => {
    asked.push(url);
    return Promise.resolve(answers[url]);
  };
}

test("the chosen model is marked, even if it is not in the list", () => {
  assert.match(modelChoices(null)[0]?.description ?? "", /^selected/);
  assert.match(modelChoices("")[0]?.description ?? "", /^selected/);
  const [first, second] = modelChoices("http://localhost:8080");
  assert.equal(first?.value, "http://localhost:8080");
  assert.equal(first?.description, "selected");
  assert.equal(second?.label, "Default");
  assert.equal(modelChoices("smollm2").filter((choice) => choice.description?.startsWith("selected")).length, 1);
});

test("installed models are listed with size, speed and recommendation", () => {
  const choices = modelChoices("/models/coder.gguf", INSTALLED);
  const shown = choices.map(({ label, description, value }) => [label, description, value]);
  assert.deepEqual(shown.slice(0, 4), [
    ["Default", "smollm2 if installed, else embedded", null],
    ["smollm2", "recommended for this machine, 285 MB, a line in 612 ms", "smollm2"],
    ["embedded", "", "embedded"],
    ["coder.gguf", "selected: 1,600 MB, a line in 3.0 s", "/models/coder.gguf"],
  ]);
  assert.equal(choices[3]?.detail, "/models/coder.gguf");
  const groups = choices.map((choice) => choice.group);
  assert.deepEqual(groups, [...groups].sort().reverse(), "each group stands together");
});

test("choosing a missing model downloads it, and an outdated one is marked", () => {
  const absent = { ...SMOLLM2, state: "missing", bytes: null, removable: false, recommended: false, lineMs: null };
  const offered = { ...absent, licence: "Apache-2.0", open: true, downloadBytes: 92_871_040 };
  const research = { ...offered, name: "coder-3b", licence: "Research", open: false, downloadBytes: 3_283_000_000 };
  const best = { ...offered, name: "coder-1b", recommended: true, downloadBytes: null };
  const choices = modelChoices(null, readModels([offered, research, best, { ...SMOLLM2, name: "other" }]));
  const toGet = choices.filter(({ group }) => group === "to download");
  assert.deepEqual(
    toGet.map(({ label, description, value }) => [label, description, value]),
    [
      ["smollm2", "not installed: downloads it, about 93 MB, licence Apache-2.0", { ask: "get", name: "smollm2" }],
      [
        "coder-3b",
        "not installed: downloads it, about 3,283 MB, licence Research (not open source)",
        { ask: "get", name: "coder-3b" },
      ],
      [
        "coder-1b",
        "not installed: downloads it, recommended for this machine, licence Apache-2.0",
        { ask: "get", name: "coder-1b" },
      ],
    ],
  );
  const groups = choices.map(({ group }) => group);
  assert.deepEqual([...new Set(groups)], ["on this machine", "to download", "elsewhere"]);
  assert.deepEqual(
    groups,
    [...new Set(groups)].flatMap((one) => groups.filter((other) => other === one)),
  );
  const [, damaged] = modelChoices(null, readModels([{ ...SMOLLM2, state: "damaged" }]));
  assert.match(damaged?.description ?? "", /damaged: repairs it/);
  assert.deepEqual(damaged?.value, { ask: "get", name: "smollm2" });
  const [, outdated] = modelChoices(null, readModels([{ ...SMOLLM2, state: "outdated" }]));
  assert.equal(outdated?.value, "smollm2");
  assert.match(outdated?.description ?? "", /outdated/);
  const chosen = modelChoices("smollm2", readModels([{ ...SMOLLM2, state: "missing" }]));
  assert.equal(chosen.filter(({ label }) => label === "smollm2").length, 1);
});

test("without a server or with an older one, the usual models can be chosen and none removed", () => {
  for (const told of [undefined, null, "no such command", {}, [3, null, {}]]) {
    const choices = modelChoices(null, readModels(told));
    assert.deepEqual(
      choices.slice(1, 3).map(({ value }) => value),
      ["smollm2", "embedded"],
    );
    assert.ok(choices.every(({ label }) => !label.includes("Remove")));
  }
  assert.ok(modelChoices(null, INSTALLED).some(({ label }) => label.includes("Remove")));
});

test("a removal names the model and its size, and its result", () => {
  const [removable, ...others] = removalChoices(INSTALLED);
  assert.ok(removable);
  assert.deepEqual(others, []);
  assert.match(removalQuestion(removable.model), /smollm2 \(285 MB\) from this machine\?$/);
  assert.match(removalQuestion({ ...removable.model, state: "hub" }), /other programs use/);
  assert.match(removalChoices(readModels([{ ...SMOLLM2, inUse: true }]))[0]?.description ?? "", /^in use/);
  const done = removalMessage(readRemoved({ name: "smollm2", done: true, freedBytes: 285_400_000, problem: null }));
  assert.deepEqual(done, { message: "fim-server: removed smollm2, which freed 285 MB.", isProblem: false });
  const problem = "smollm2 is in use: choose another model first";
  const refused = removalMessage(readRemoved({ name: "smollm2", done: false, freedBytes: 0, problem }));
  assert.deepEqual(refused, { message: `fim-server: ${problem}`, isProblem: true });
  assert.equal(removalMessage(readRemoved(null)).isProblem, true);
});

test("llama.cpp, Ollama and others are recognised by their answers", async () => {
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

test("other answers are ignored, and only this machine is queried", async () => {
  const asked: string[] = [];
  const odd = {
    "http://127.0.0.1:8080/props": "hello",
    "http://127.0.0.1:1234/v1/models": { data: [{ id: 3 }, null] },
  };
  assert.deepEqual(await findEndpoints(machine({ ...odd, "http://127.0.0.1:8000/api/tags": [] }, asked)), []);
  assert.ok(asked.length > 4);
  assert.ok(asked.every((url) => url.startsWith("http://127.0.0.1:")));
});

test("an address is validated during typing", () => {
  for (const good of ["http://localhost:8080", " https://host/v1 ", "http://[::1]:11434#coder:1.5b"]) {
    assert.equal(addressProblem(good), undefined, good);
  }
  for (const bad of ["", "localhost:8080", "ftp://host", "https://user:secret@host", "https://host?key=secret"]) {
    assert.ok(addressProblem(bad), bad);
  }
});
