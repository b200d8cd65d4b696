import assert from "node:assert/strict";
import { test } from "node:test";
import { Offered } from "../src/offered";

const item = (id: unknown) => ({ command: { arguments: [{ id, guarantee: "exact" }] } });

test("a dismissal names the last answer's first item, once", () => {
  const offered = new Offered();
  assert.equal(offered.take("file:///a.py", 3), undefined);
  offered.note("file:///a.py", 3, [item("1")]);
  offered.note("file:///a.py", 3, [item("2"), item("3")]);
  assert.equal(offered.take("file:///a.py", 3), "2");
  assert.equal(offered.take("file:///a.py", 3), undefined);
});

test("ghost text of another line, document or extension is not the server's", () => {
  const offered = new Offered();
  for (const [uri, line, items] of [
    ["file:///a.py", 4, [item("1")]],
    ["file:///b.py", 3, [item("1")]],
    ["file:///a.py", 3, []],
    ["file:///a.py", 3, [{}]],
    ["file:///a.py", 3, [item(1)]],
    ["file:///a.py", 3, [{ command: { arguments: [null] } }]],
  ] as const) {
    offered.note("file:///a.py", 3, [item("0")]);
    offered.note(uri, line, items);
    assert.equal(offered.take("file:///a.py", 3), undefined);
  }
});
