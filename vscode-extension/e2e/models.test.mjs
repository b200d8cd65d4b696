// Choice and removal of models by the editor's lists and questions. The tests have their own cache, hub and endpoint,
// which plays llama.cpp's server over the embedded model. FIM_SERVER_VSIX names the packaged extension.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { cp, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { STACK, START_TIMEOUT, startEditor, until, VENV } from "./editor.mjs";
import { firstLine, startEndpoint, TESTS } from "./endpoint.mjs";

const EMBEDDED = fileURLToPath(new URL("../../fim_server/models/embedded", import.meta.url));
const HUB_MODEL = "somebody/small-model";

/** Ports that *Look for Endpoints on This Machine…* tries. */
const USUAL_PORTS = ["8080", "1234", "8000", "11434"];
const ANY_PORT = ["0"];

const SETTINGS = {
  "fim-server.path": `${VENV}fim-server`,
  "fim-server.minConfidence": 0, // the embedded model is sure of little
  "fim-server.projectMemory": false, // what is offered shall be the model's
};
const EMBEDDED_CHOSEN = { ...SETTINGS, "fim-server.model": "embedded" };

/** Time limit in milliseconds. */
const SUITE_TIMEOUT = 600_000;
const TEST_TIMEOUT = 240_000;

/** @type {import("./editor.mjs").Editor} */
let editor;
/** The server's cache, and the hub's. @type {string} */
let cache;
/** The hub, which sends the rest of a model after a line on its input. @type {import("./endpoint.mjs").Program} */
let hub;

/**
 * A test that starts with the embedded model and saves a picture and the logs if it fails.
 * @param {string} name
 * @param {() => Promise<void>} body
 */
function scenario(name, body) {
  test(name, { timeout: TEST_TIMEOUT }, (context) => editor.attempt(context, EMBEDDED_CHOSEN, body));
}

/**
 * Runs an action with an endpoint.
 * @param {string} model
 * @param {readonly string[]} ports
 * @param {(endpoint: { address: string, asked: () => number }) => Promise<void>} body
 */
async function withEndpoint(model, ports, body) {
  let asked = 0;
  const { address, program } = await startEndpoint([model, ...ports], (line) => {
    asked += line === "asked" ? 1 : 0;
  });
  try {
    await body({ address, asked: () => asked });
  } finally {
    program.kill();
  }
}

/** Waits for a message. @param {RegExp} pattern @param {number} [timeout] */
async function expectMessage(pattern, timeout) {
  const isShown = async () => (await editor.messages()).some((text) => pattern.test(text));
  await until(`the message ${pattern}`, isShown, timeout);
}

/** An entry of the list that is open, by what screen readers say: rows keep hidden texts of earlier lists. @param {string | RegExp} name */
function entry(name) {
  return editor.page.locator(".quick-input-list").getByRole("option", { name }).first();
}

/** Checks that the chosen endpoint writes ghost text and its model is named. @param {string} model @param {() => number} asked */
async function expectAnswersOf(model, asked) {
  await editor.waitForStatus(new RegExp(`: ready \\(${model}\\)`));
  assert.match(await editor.statusItem.first().innerText(), new RegExp(`fim ${model}$`));
  const before = asked();
  await editor.press("Control+1"); // into the text
  await editor.type("self.");
  await editor.waitForGhostText();
  assert.ok(asked() > before, "the endpoint has been asked");
  await editor.statusItem.first().click();
  await entry(new RegExp(`${model} on http://127\\.0\\.0\\.1:\\d+ \\(llama\\.cpp\\)`)).waitFor();
  await editor.press("Escape");
}

describe("models in VS Code", { timeout: SUITE_TIMEOUT }, () => {
  before(async () => {
    const vsix = process.env["FIM_SERVER_VSIX"];
    assert.ok(vsix, "FIM_SERVER_VSIX has to name the packaged extension");
    cache = await mkdtemp(join(tmpdir(), "fim-server-e2e-cache-"));
    await mkdir(join(cache, "models"));
    hub = spawn(`${VENV}python`, ["-m", "support.models.hub"], { cwd: TESTS, stdio: ["pipe", "pipe", "inherit"] });
    const address = await firstLine(hub);
    const environment = {
      FIM_SERVER_CACHE: cache,
      HF_ENDPOINT: address,
      HF_HOME: join(cache, "hub"),
      HF_HUB_OFFLINE: "",
    };
    editor = await startEditor({ vsix, settings: EMBEDDED_CHOSEN, environment });
  });

  after(async () => {
    await editor?.stop();
    hub?.kill();
    await rm(cache, { recursive: true, force: true });
  });

  scenario("an endpoint on this machine is found, chosen, and completes", async () => {
    await withEndpoint("found-here", USUAL_PORTS, async ({ address, asked }) => {
      await editor.open("found.py", STACK);
      await editor.waitForStatus(/: ready \(embedded\)/);
      await editor.choose("Choose a Model…");
      await editor.pick("Look for Endpoints on This Machine…");
      await entry(address).waitFor();
      await editor.pick("found-here.gguf");
      await expectAnswersOf("found-here", asked);
    });
  });

  scenario("an endpoint is chosen by its address, from the menu", async () => {
    await withEndpoint("by-address", ANY_PORT, async ({ address, asked }) => {
      await editor.open("address.py", STACK);
      await editor.waitForStatus(/: ready \(embedded\)/);
      await editor.statusItem.first().click();
      await editor.pick("embedded on cpu");
      await editor.pick("Address of an Endpoint…");
      await editor.answer("http://HOST:PORT", address);
      await expectAnswersOf("by-address", asked);
    });
  });

  scenario("installed models are listed, and removed after a question", async () => {
    const folder = join(cache, "models/smollm2");
    const file = join(cache, "models/coder.gguf");
    await cp(EMBEDDED, folder, { recursive: true });
    await writeFile(file, "x".repeat(3_000_000));
    await editor.open("installed.py", STACK);
    await editor.waitForStatus(/: ready \(embedded\)/);

    await editor.choose("Choose a Model…");
    await entry(/embedded.*selected/).waitFor();
    await entry(/smollm2.*\d+ MB/).waitFor();
    await entry(/coder\.gguf.*3 MB/).waitFor();
    await editor.pick("Remove a Model…");
    await editor.pick("smollm2");
    const question = editor.page.locator(".monaco-dialog-box", { hasText: /Remove the model smollm2 \(\d+ MB\)/ });
    await question.getByRole("button", { name: "Cancel" }).click();
    await question.waitFor({ state: "detached" });
    assert.ok(existsSync(folder), "nothing is removed without a confirmation");

    for (const [name, path] of Object.entries({ smollm2: folder, "coder.gguf": file })) {
      await editor.choose("Remove a Model…");
      await editor.pick(name);
      await editor.page.locator(".monaco-dialog-box").getByRole("button", { name: "Remove" }).click();
      await expectMessage(new RegExp(`removed \\S*${name}, which freed \\d+ MB`));
      assert.ok(!existsSync(path));
      await editor.run("notifications.clearAll");
    }
    await editor.choose("Choose a Model…");
    await entry(/smollm2.*not installed: downloads it/).waitFor();
    await entry("coder.gguf").waitFor({ state: "detached" });
    await entry("Remove a Model…").waitFor({ state: "detached" });
    await editor.press("Escape");
  });

  scenario("a hub model's download shows its progress, can be cancelled, and ends with the model in use", async () => {
    const downloading = new RegExp(`downloading ${HUB_MODEL}: \\d+ of \\d+ MB`);
    await editor.open("hub.py", STACK);
    await editor.waitForStatus(/: ready \(embedded\)/);
    await editor.choose("Choose a Model…");
    await editor.pick("Folder or Hub Name…");
    await editor.answer("A folder with a model, or a name on the Hugging Face hub", HUB_MODEL);
    await expectMessage(downloading);
    await editor.waitForStatus(/loading the model/);
    await editor.page.locator(".notification-list-item").getByRole("button", { name: "Cancel" }).click();
    await editor.waitForStatus(/reports an error/);
    await expectMessage(new RegExp(`${HUB_MODEL}: the download was cancelled`));
    await editor.run("notifications.clearAll");

    await editor.choose("Restart Server");
    await expectMessage(downloading);
    hub.stdin.write("go on\n");
    // It may run on PyTorch, whose import is slow.
    await expectMessage(new RegExp(`${HUB_MODEL} is installed and in use`), START_TIMEOUT);
    await editor.waitForStatus(/: ready \(small-model\)/);
    await editor.press("Control+1");
    await editor.type("self.");
    await editor.waitForGhostText();
  });
});
