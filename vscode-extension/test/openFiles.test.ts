import assert from "node:assert/strict";
import { test } from "node:test";
import { OpenFiles } from "../src/openFiles";

const FILE = { textDocument: { uri: "file:///a.py" } };
const NOTEBOOK = { notebookDocument: { uri: "file:///a.ipynb" } };

for (const [kind, params] of [
  ["textDocument", FILE],
  ["notebookDocument", NOTEBOOK],
] as const) {
  test(`changes of a ${kind} are sent while it is open`, () => {
    const files = new OpenFiles();
    assert.equal(files.admits(`${kind}/didChange`, params), false);
    assert.equal(files.admits(`${kind}/didOpen`, params), true);
    assert.equal(files.admits(`${kind}/didChange`, params), true);
    assert.equal(files.admits(`${kind}/didSave`, params), true);
    assert.equal(files.admits(`${kind}/didClose`, params), true);
    assert.equal(files.admits(`${kind}/didChange`, params), false);
  });
}

test("a file and a notebook are open by their own names", () => {
  const files = new OpenFiles();
  files.admits("notebookDocument/didOpen", NOTEBOOK);
  assert.equal(files.admits("textDocument/didChange", FILE), false);
  assert.equal(files.admits("notebookDocument/didChange", NOTEBOOK), true);
});

test("other notifications are always sent", () => {
  const files = new OpenFiles();
  for (const params of [undefined, null, 5, {}, { textDocument: null }, { notebookDocument: {} }]) {
    assert.equal(files.admits("workspace/didChangeConfiguration", params), true);
    assert.equal(files.admits("textDocument/didChange", params), false);
  }
});
