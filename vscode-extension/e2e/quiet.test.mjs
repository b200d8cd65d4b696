// Subtle suggestions, dismissals, the walkthrough and languages that VS Code describes. The tests have their own cache,
// for the personal threshold. FIM_SERVER_VSIX names the packaged extension.
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { STACK, START_TIMEOUT, startEditor, until, VENV } from "./editor.mjs";
import { startTexts } from "./endpoint.mjs";

const SETTINGS = {
  "fim-server.path": `${VENV}fim-server`,
  "fim-server.minConfidence": 0,
  "fim-server.model": "embedded",
  "fim-server.projectMemory": false,
};
/** Time limit in milliseconds. */
const SUITE_TIMEOUT = 900_000;
const TEST_TIMEOUT = 150_000;
/** Wait for an answer that must not come. */
const SILENCE = 3_000;

/** @type {import("./editor.mjs").Editor} */
let editor;
/** The writing program. @type {import("./endpoint.mjs").Program | undefined} */
let endpoint;
let cache = "";

/**
 * A test that saves a picture and the logs if it fails.
 * @param {string} name
 * @param {() => Promise<void>} body
 */
function scenario(name, body) {
  test(name, { timeout: TEST_TIMEOUT }, (context) => editor.attempt(context, SETTINGS, body));
}

/** Opens a file and waits until the server can answer. @param {string} name @param {string} marked */
async function openReady(name, marked) {
  await editor.open(name, marked);
  await editor.waitForStatus(/ready/);
}

describe("quiet suggestions in VS Code", { timeout: SUITE_TIMEOUT }, () => {
  before(async () => {
    const vsix = process.env["FIM_SERVER_VSIX"];
    assert.ok(vsix, "FIM_SERVER_VSIX has to name the packaged extension");
    const { address, program } = await startTexts();
    endpoint = program;
    SETTINGS["fim-server.model"] = address;
    cache = await mkdtemp(join(tmpdir(), "fim-server-e2e-cache-"));
    editor = await startEditor({ vsix, settings: SETTINGS, environment: { FIM_SERVER_CACHE: cache } });
    await openReady("first.py", STACK); // the first start, with an empty cache, takes longer than a test may
    await editor.closeAll();
  });

  after(async () => {
    await editor?.stop();
    endpoint?.kill();
    await rm(cache, { recursive: true, force: true });
  });

  scenario("with subtle, a key shows what was prepared while typing, and hides it", async () => {
    await editor.configure({ ...SETTINGS, "fim-server.trigger": "subtle" });
    await openReady("subtle.py", STACK);
    await editor.type("self.");
    await editor.waitForStatus(/a suggestion is ready/);
    await editor.expectNoGhostText(SILENCE);
    await editor.press("Alt+Backslash");
    const ghost = await editor.waitForGhostText();
    await editor.waitForStatus(/: ready/);
    await editor.press("Alt+Backslash");
    await until("it to be hidden", async () => (await editor.ghostText()) === "");
    const requests = (await editor.logs()).split("subtle.py: ").length;
    await editor.press("Alt+Backslash");
    await editor.waitForGhostText((text) => text === ghost);
    assert.equal((await editor.logs()).split("subtle.py: ").length, requests, "the server is not asked again");
    await editor.press("Alt+Backslash");
    await until("it to be hidden again", async () => (await editor.ghostText()) === "");
    await editor.type(ghost.slice(0, 1));
    await editor.waitForStatus(/a suggestion is ready/);
    await editor.expectNoGhostText(SILENCE);
    await editor.press("Alt+Backslash");
    await editor.waitForGhostText((text) => text === ghost.slice(1));
    await editor.press("Tab");
    assert.equal(await editor.save("subtle.py"), STACK.replace("‸", `self.${ghost}`));
  });

  scenario("a suggestion that Escape dismisses stays away until its line changes", async () => {
    await openReady("dismissed.py", STACK);
    await editor.type("self.");
    const ghost = await editor.waitForGhostText();
    await editor.press("Escape");
    await until("it to be hidden", async () => (await editor.ghostText()) === "");
    const place = await editor.cursor();
    await editor.press("Enter");
    // The status bar shows the cursor late, so each step waits for the one before.
    const moved = async (/** @type {string} */ from) =>
      until("the cursor to move", async () => {
        const now = await editor.cursor();
        return now !== from && now;
      });
    for (let at = await moved(place); at !== place; at = await moved(at)) {
      await editor.press("Backspace"); // VS Code requests after it
    }
    await editor.expectNoGhostText(SILENCE);
    await editor.type("i");
    await editor.waitForGhostText();
    await editor.press("Backspace");
    await editor.waitForGhostText((text) => text === ghost);
  });

  scenario("dismissals move the threshold until it is reset", async () => {
    await editor.configure({ ...SETTINGS, "fim-server.minConfidence": 0.01 }); // with 0, nothing is judged
    await openReady("threshold.py", STACK);
    const shift = async () => {
      await editor.choose("Show Statistics");
      await editor.page.locator(".tab.active", { hasText: "statistics" }).waitFor();
      const text = await until("the statistics", async () => {
        const shown = await editor.text();
        return shown.includes("Characters accepted") && shown;
      });
      await editor.run("workbench.action.revertAndCloseActiveEditor");
      return text.includes("Threshold in python");
    };
    await editor.type("self.");
    await editor.waitForGhostText();
    await editor.press("Escape");
    await until("the threshold to move", shift);
    await editor.choose("Reset the Personal Threshold");
    await until("a message", async () => (await editor.messages()).some((text) => text.includes("minConfidence")));
    await until("the threshold to be reset", async () => !(await shift()));
  });

  scenario("a language that VS Code alone describes is balanced", async () => {
    await editor.open("palette.groovy", "def colours() {\n    colour = mix(‸)\n}\n");
    await editor.choose("fim-server: Complete at the Cursor");
    await editor.waitForStatus(/ready/);
    // VS Code's data is compared with the file after it was opened.
    const isBalanced = async () => {
      await editor.press("Escape");
      await until("no suggestion", async () => (await editor.ghostText()) === "");
      await editor.run("editor.action.inlineSuggest.trigger");
      await sleep(SILENCE);
      return /palette\.groovy: .*guarantee balanced/.test(await editor.logs());
    };
    await until("the guarantee balanced", isBalanced, START_TIMEOUT);
    assert.equal(await editor.waitForGhostText(), "red, green");
  });

  scenario("the walkthrough ends in a first accepted suggestion", async () => {
    await editor.statusItem.first().click();
    await editor.pick("Open Walkthrough");
    const step = editor.page.locator(".getting-started-step", { hasText: "Accept your first suggestion" });
    await step.click();
    await editor.page
      .locator(".getting-started-step.expanded button, .getting-started-step.expanded a", { hasText: "Try It" })
      .click();
    await editor.waitForGhostText();
    await editor.press("Tab");
    await until("the text to be accepted", async () => (await editor.text()).includes("self.items.append(item)"));
    await sleep(SILENCE); // VS Code runs the item's command after the insertion
    await editor.run("workbench.action.revertAndCloseActiveEditor");
    await step.locator(".codicon.complete").first().waitFor();
  });
});
