// Next edits, from a renamed parameter to its last use. FIM_SERVER_VSIX names the packaged extension;
// FIM_SERVER_PICTURES=1 takes the README's picture again.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { STACK, startEditor, until, VENV } from "./editor.mjs";
import { startTexts } from "./endpoint.mjs";

const PICTURE = fileURLToPath(new URL("../images/next-edit.png", import.meta.url));
const takesPictures = process.env["FIM_SERVER_PICTURES"] === "1";

const SETTINGS = {
  "fim-server.path": `${VENV}fim-server`,
  "fim-server.deadlineMs": 20_000, // for slow cores
  "fim-server.minConfidence": 0,
  "fim-server.model": "embedded",
  "fim-server.personalThreshold": false,
  "fim-server.projectMemory": false,
  "fim-server.askModel": false, // no suggestions at the cursor
};
/** Time limit in milliseconds. */
const SUITE_TIMEOUT = 600_000;
const TEST_TIMEOUT = 150_000;
/** Wait for an edit that must not come. */
const SILENCE = 2_000;

const SUMMARY = `def summary(values‸, digits):
    total = sum(values)
    best = max(values)
    mean = total / len(values)
    return best, round(mean, digits)
`;
/** Lines that push the uses of a name out of sight. */
const FAR = `def summary(values‸, digits):\n${'    print("working")\n'.repeat(60)}    return sum(values), digits\n`;

/** @type {import("./editor.mjs").Editor} */
let editor;
/** The writing program. @type {import("./endpoint.mjs").Program | undefined} */
let endpoint;

/**
 * A test that saves a picture and the logs if it fails.
 * @param {string} name
 * @param {import("./editor.mjs").Settings} settings
 * @param {() => Promise<void>} body
 */
function scenario(name, settings, body) {
  test(`next edits: ${name}`, { timeout: TEST_TIMEOUT }, (context) =>
    editor.attempt(context, { ...SETTINGS, ...settings }, body),
  );
}

/** Opens a file and renames the parameter left of the mark. @param {string} name @param {string} marked */
async function rename(name, marked) {
  await editor.open(name, marked);
  await editor.waitForStatus(/ready/);
  await editor.press(...Array.from("values", () => "Backspace"));
  await editor.type("items");
}

/** @param {string} place */
async function waitForCursor(place) {
  await until(`the cursor at ${place}`, async () => (await editor.cursor()) === place);
}

describe("edits in VS Code", { timeout: SUITE_TIMEOUT }, () => {
  before(async () => {
    const vsix = process.env["FIM_SERVER_VSIX"];
    assert.ok(vsix, "FIM_SERVER_VSIX has to name the packaged extension");
    const { address, program } = await startTexts();
    endpoint = program;
    SETTINGS["fim-server.model"] = address;
    editor = await startEditor({ vsix, settings: SETTINGS });
    await editor.open("first.py", STACK); // the first start takes longer than a test may
    await editor.waitForStatus(/ready/);
    await editor.closeAll();
  });

  after(async () => {
    await editor?.stop();
    endpoint?.kill();
  });

  scenario("Tab walks through the uses of a renamed parameter, Escape dismisses one", {}, async () => {
    await rename("summary.py", SUMMARY);
    await editor.waitForNextEdit({ removed: "values", added: "items" });
    if (takesPictures) {
      await sleep(SILENCE);
      await editor.picture(PICTURE, 200);
    }
    assert.equal(await editor.cursor(), "1:18", "nothing moves before a key");
    await editor.press("Tab");
    await waitForCursor("2:17");
    await editor.press("Tab");
    await waitForCursor("2:22");
    await editor.waitForNextEdit({ removed: "values", added: "items" });
    await editor.press("Tab");
    await waitForCursor("3:16");
    await editor.press("Tab");
    await waitForCursor("3:21");
    await editor.waitForNextEdit({ removed: "values", added: "items" });
    await editor.press("Escape");
    await editor.waitForNextEdit({});
    await editor.press("ArrowUp", "End", "Tab"); // indents again
    const renamed = SUMMARY.replace("‸", "").replace("(values,", "(items,").replace("sum(values)", "sum(items)  ");
    assert.equal(await editor.save("summary.py"), renamed.replace("max(values)", "max(items)"));
    await sleep(SILENCE);
    await editor.waitForNextEdit({});
  });

  scenario("quick Tabs insert nothing and accept nothing unseen", {}, async () => {
    await rename("quick.py", SUMMARY);
    await editor.waitForNextEdit({ removed: "values", added: "items" });
    await editor.press("Tab", "Tab", "Tab", "Tab");
    await editor.waitForNextEdit({ removed: "values", added: "items" });
    const saved = await editor.save("quick.py");
    assert.equal(saved.replaceAll("items", "values"), SUMMARY.replace("‸", ""));
    assert.equal(saved.split("items").length, 3, "the parameter, and the use that was shown");
    await editor.press("Control+z");
    await until("one edit to be undone", async () => (await editor.text()).split("items").length === 2);
  });

  scenario("out of sight, the cursor's line shows the way", {}, async () => {
    await rename("far.py", FAR);
    await editor.waitForNextEdit({ way: "↓ line 62: Tab" });
    await editor.press("Tab");
    await editor.waitForNextEdit({ removed: "values", added: "items" });
    await editor.press("Tab");
    assert.equal(await editor.save("far.py"), FAR.replace("‸", "").replaceAll("values", "items"));
  });

  scenario("a command asks, and a change withdraws", { "fim-server.trigger": "manual" }, async () => {
    await rename("asked.py", SUMMARY);
    await sleep(SILENCE);
    await editor.waitForNextEdit({});
    await editor.choose("Show the Next Edit");
    await editor.waitForNextEdit({ removed: "values", added: "items" });
    await editor.page.locator(".editor-instance .monaco-editor.focused").waitFor();
    await editor.press("ArrowRight", "x");
    await editor.waitForNextEdit({});
    await editor.configure({ ...SETTINGS, "fim-server.nextEdits": false });
    await until("next edits to be off", async () => {
      await editor.choose("Show the Next Edit");
      await sleep(SILENCE / 2);
      return (await editor.page.locator(".statusbar-item", { hasText: "next edits are off here" }).count()) > 0;
    });
  });

  scenario("ghost text goes first, and Escape gives way to the edit", { "fim-server.askModel": true }, async () => {
    await rename("ghost.py", "def total(values‸):\n    return sum(values)\n");
    assert.equal(await editor.waitForGhostText(), ", start");
    await editor.waitForNextEdit({});
    await editor.press("Escape");
    await editor.waitForNextEdit({ removed: "values", added: "items" });
    assert.equal(await editor.ghostText(), "");
  });
});
