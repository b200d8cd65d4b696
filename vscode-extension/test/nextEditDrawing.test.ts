import assert from "node:assert/strict";
import { test } from "node:test";
import { drawingOf, wayTo, wayToFile } from "../src/nextEdit/drawing";
import { GhostText } from "../src/nextEdit/ghostText";

const LINES = ["def f(items):", "    total = sum(values)", "    best = max(values)", "    return total, best"];

/** The drawing of an edit from line and character to line and character, and the text with it. */
function drawn(from: readonly [number, number], to: readonly [number, number], text: string, lines = LINES) {
  const [start, end] = [from, to].map(([line, character]) => ({ line, character }));
  assert.ok(start && end);
  const edit = { uri: "", version: 1, range: { start, end }, text, arguments: [] };
  const drawing = drawingOf(edit, (line) => lines[line] ?? "");
  return (
    drawing && { ...drawing, changes: drawing.changes.map(({ line, start, end, text }) => [line, start, end, text]) }
  );
}

test("the changed words of a line are struck through, and the new ones follow", () => {
  const words = drawn([1, 16], [1, 22], "items");
  assert.deepEqual(words, {
    changes: [[1, 16, 22, "items"]],
    endAfter: { line: 1, character: 21 },
    diff: "-     total = sum(values)\n+     total = sum(items)",
  });
  assert.deepEqual(drawn([1, 0], [1, 23], "    total = sum(items)"), words, "a whole line is drawn by its words");
  assert.deepEqual(drawn([1, 22], [1, 22], "_of")?.changes, [[1, 16, 22, "values_of"]], "no word is cut");
  assert.deepEqual(drawn([1, 22], [1, 22], ", start")?.changes, [[1, 22, 22, ", start"]]);
  assert.deepEqual(drawn([3, 16], [3, 22], "")?.changes, [[3, 16, 22, ""]]);
  assert.deepEqual(drawn([0, 4], [0, 5], "größe")?.changes, [[0, 4, 5, "größe"]]);
});

test("as many new lines as old ones stand beside them; equal lines are not drawn", () => {
  const text = "    total = sum(items)\n    best = max(values)\n    return best";
  assert.deepEqual(drawn([1, 0], [3, 22], text)?.changes, [
    [1, 16, 22, "items"],
    [3, 11, 18, ""],
  ]);
});

test("further new lines follow the last old one", () => {
  const drawing = drawn([2, 0], [2, 22], "    first = min(items)\n    best = max(items)");
  assert.deepEqual(drawing?.changes, [[2, 4, 22, "first = min(items) ⏎ best = max(items)"]]);
  assert.deepEqual(drawing?.endAfter, { line: 3, character: 21 });
});

test("new lines alone follow the line above, or stand before the first one", () => {
  const below = drawn([1, 23], [1, 23], "\n    count = len(items)");
  assert.deepEqual(below?.changes, [[1, 23, 23, " ⏎ count = len(items)"]]);
  assert.deepEqual(below?.endAfter, { line: 2, character: 22 });
  assert.deepEqual(drawn([0, 0], [0, 0], "import a\r\nimport b\r\n")?.changes, [[0, 0, 0, "import a ⏎ import b ⏎ "]]);
});

test("lines without a new one are struck through", () => {
  const drawing = drawn([1, 0], [3, 0], "");
  assert.deepEqual(drawing?.changes, [
    [1, 0, 23, ""],
    [2, 0, 22, ""],
  ]);
  assert.deepEqual(drawing?.endAfter, { line: 1, character: 0 });
});

test("an edit that changes nothing that can be seen has no drawing", () => {
  assert.equal(drawn([1, 0], [2, 0], "", ["one", "", "two"]), undefined);
  assert.equal(drawn([1, 16], [1, 22], "values"), undefined);
  assert.equal(drawn([1, 23], [2, 0], "\n"), undefined);
});

test("a long text is cut", () => {
  const [[, , , text] = []] = drawn([1, 22], [1, 22], `, ${"x".repeat(1000)}`)?.changes ?? [];
  assert.match(`${text}`, /^, x{118}…$/);
});

test("the way to an edit out of sight", () => {
  assert.equal(wayTo(41, 3), "↓ line 42: Tab");
  assert.equal(wayTo(0, 3), "↑ line 1: Tab");
  assert.equal(wayToFile("/app/shapes.py", 11), "→ shapes.py, line 12: Tab");
});

test("ghost text is shown until its cursor's place is left", () => {
  const ghostText = new GhostText();
  let changes = 0;
  ghostText.onDidChange(() => changes++);
  const first = ghostText.requested();
  assert.deepEqual([ghostText.isBusy, ghostText.isShown], [true, false]);
  ghostText.answered(first, "1 0:4");
  assert.deepEqual([ghostText.isBusy, ghostText.isShown, changes], [true, true, 1]);
  ghostText.moved("1 0:4");
  assert.deepEqual([ghostText.isShown, changes], [true, 1]);
  ghostText.answered(ghostText.requested(), undefined);
  assert.deepEqual([ghostText.isShown, changes], [true, 2], "a cancelled request hides nothing");
  ghostText.moved("2 0:5");
  assert.deepEqual([ghostText.isBusy, changes], [false, 3]);
  ghostText.moved(undefined);
  ghostText.hidden();
  assert.equal(changes, 3);
  ghostText.answered(ghostText.requested(), "2 0:5");
  ghostText.answered(ghostText.requested(), null);
  assert.deepEqual([ghostText.isBusy, changes], [false, 5], "an answer without items hides it");
});

test("only the latest request for ghost text counts", () => {
  const ghostText = new GhostText();
  const older = ghostText.requested();
  const latest = ghostText.requested();
  ghostText.answered(older, "1 0:4");
  assert.deepEqual([ghostText.isBusy, ghostText.isShown], [true, false]);
  ghostText.answered(latest, null);
  assert.ok(!ghostText.isBusy, "also if the older one is never answered");
});
