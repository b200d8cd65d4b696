import assert from "node:assert/strict";
import { test } from "node:test";
import { LastShown } from "../src/lastShown";

test("a key shows the same items again at their place, a request asks for others", () => {
  const shown = new LastShown<string[]>();
  shown.isAskedByKey = true;
  assert.equal(shown.again("a.py 1 0:4"), undefined);
  shown.note("a.py 1 0:4", ["one"]);
  assert.deepEqual(shown.again("a.py 1 0:4"), ["one"]);
  assert.equal(shown.again("a.py 2 0:4"), undefined);
  shown.isAskedByKey = false;
  assert.equal(shown.again("a.py 1 0:4"), undefined);
});
