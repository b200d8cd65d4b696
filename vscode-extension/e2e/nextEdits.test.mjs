// Next edits: uses of names, calls, alike branches, and other files. FIM_SERVER_VSIX names the packaged extension;
// FIM_SERVER_PICTURES=1 takes the README's pictures again.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { STACK, startEditor, until, VENV } from "./editor.mjs";
import { startTexts } from "./endpoint.mjs";

const PICTURES = fileURLToPath(new URL("../images/", import.meta.url));
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
/** A function to get a further parameter, and its calls. */
const PAGE = `def heading(text, width‸):
    return text.center(width)


def page(title, lines, mark):
    top = heading(title, 60)
    parts = [heading(line, 40) for line in lines]
    return top + "".join(parts)
`;
/** Three branches alike. */
const SHAPE = `export function describe(shape: Shape): string {
  switch (shape.kind) {
    case "circle":
      return text‸(shape.radius);
    case "square":
      return text(shape.side);
    case "triangle":
      return text(shape.height);
  }
}
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

/** Takes a picture of the window's upper part, if pictures are wanted. @param {string} name @param {number} height */
async function picture(name, height) {
  if (takesPictures) {
    await sleep(SILENCE);
    await editor.picture(PICTURES + name, height);
  }
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
    await picture("next-edit.png", 200);
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

  scenario("a new parameter's calls follow", {}, async () => {
    await editor.open("page.py", PAGE);
    await editor.waitForStatus(/ready/);
    await editor.type(", mark");
    await editor.waitForNextEdit({ added: ", mark" });
    await picture("next-edit-call.png", 250);
    await editor.press("Tab", "Tab");
    await waitForCursor("6:34");
    await editor.waitForNextEdit({ added: ", mark" });
    await editor.press("Tab", "Tab");
    await editor.waitForNextEdit({});
    const called = PAGE.replace("‸", ", mark").replace("60)", "60, mark)").replace("40)", "40, mark)");
    assert.equal(await editor.save("page.py"), called);
  });

  scenario("one branch changed, the others follow", {}, async () => {
    await editor.open("shape.ts", SHAPE);
    await editor.waitForStatus(/ready/);
    await editor.press(...Array.from("text", () => "Backspace"));
    await editor.type("label");
    await editor.waitForNextEdit({ removed: "text", added: "label" });
    await picture("next-edit-branch.png", 270);
    await editor.press("Tab", "Tab");
    await waitForCursor("6:19");
    await editor.waitForNextEdit({ removed: "text", added: "label" });
    await editor.press("Tab", "Tab");
    await editor.waitForNextEdit({});
    assert.equal(await editor.save("shape.ts"), SHAPE.replace("‸", "").replaceAll("text(", "label("));
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

  scenario("Tab walks into another open file, and Escape stays out of it", {}, async () => {
    await editor.open("painter.py", "‸import shapes\n\nprint(shapes.area(1))\nprint(shapes.area(2))\n");
    await editor.open("shapes.py", "def area‸(width):\n    return width\n");
    await editor.waitForStatus(/ready/);
    await editor.press(...Array.from("area", () => "Backspace"));
    await editor.type("size");
    await editor.waitForNextEdit({ way: "→ painter.py, line 3: Tab" });
    await picture("next-edit-file.png", 150);
    await editor.press("Tab");
    await editor.page.locator('.tab.active[data-resource-name="painter.py"]').waitFor();
    await editor.waitForNextEdit({ removed: "area", added: "size" });
    await waitForCursor("3:14");
    await editor.press("Tab");
    await waitForCursor("3:18");
    await editor.waitForNextEdit({ removed: "area", added: "size" });
    const painted = "import shapes\n\nprint(shapes.size(1))\nprint(shapes.area(2))\n";
    assert.equal(await editor.save("painter.py"), painted);
    await editor.page.locator('.tab[data-resource-name="shapes.py"]').click();
    await editor.waitForNextEdit({ way: "→ painter.py, line 4: Tab" });
    await editor.page.locator(".editor-instance .monaco-editor.focused").waitFor();
    await editor.press("Escape");
    await editor.waitForNextEdit({});
    await editor.press("Control+Home", "x", "Backspace");
    await sleep(SILENCE);
    await editor.waitForNextEdit({});
    assert.equal(await editor.save("shapes.py"), "def size(width):\n    return width\n");
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
