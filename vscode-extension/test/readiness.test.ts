import assert from "node:assert/strict";
import { test } from "node:test";
import { type LastRequest, readStatus } from "../src/protocol";
import { Readiness } from "../src/readiness";
import { type ActiveLanguage, statusView } from "../src/statusText";

const PYTHON: ActiveLanguage = { id: "python", mode: "subtle", isLearnt: true, isHeldBack: false };

function last(fields: Record<string, unknown>): LastRequest | null | undefined {
  return readStatus({ state: "ready", last: { items: 1, ...fields } })?.last;
}

test("a suggestion is ready until the cursor moves or another answer comes", () => {
  const readiness = new Readiness();
  readiness.note(undefined);
  assert.equal(readiness.moved(), false);
  readiness.note(last({ ready: true, tokens: 1 }));
  readiness.note(last({ ready: true, tokens: 1 }));
  assert.equal(readiness.isReady, true);
  assert.equal(readiness.moved(), true);
  readiness.note(last({ ready: true, tokens: 1 })); // a status without a new answer
  assert.equal(readiness.isReady, false);
  readiness.note(last({ ready: true, tokens: 2 }));
  assert.equal(readiness.isReady, true);
  readiness.note(last({ ready: false, tokens: 2 })); // it is shown
  assert.equal(readiness.isReady, false);
});

test("the status bar marks it without a colour", () => {
  const status = readStatus({ state: "ready", last: { items: 1, ready: true } });
  const view = statusView({ kind: "running", status }, PYTHON, undefined, true);
  assert.deepEqual([view.text, view.label], ["$(sparkle) fim", "fim-server: a suggestion is ready"]);
  assert.equal(view.background, "none");
  assert.match(view.tooltip, /1 completion, .*ready/);
  assert.equal(statusView({ kind: "running", status }, PYTHON).text, "$(symbol-array) fim");
});
