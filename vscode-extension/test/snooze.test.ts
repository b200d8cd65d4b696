import assert from "node:assert/strict";
import { test } from "node:test";
import { MOST_MINUTES, readMinutes, Snooze, silencedWhile } from "../src/snooze";

test("a snooze counts its minutes down and ends by itself", (context) => {
  context.mock.timers.enable({ apis: ["setTimeout", "Date"] });
  const seen: (number | undefined)[] = [];
  const snooze: Snooze = new Snooze(() => seen.push(snooze.minutesLeft));
  const settings = silencedWhile(
    () => snooze.isOn,
    (name) => (name === "enabled" ? true : name),
  );
  assert.equal(settings("enabled"), true);
  snooze.begin(2.5);
  assert.equal(settings("enabled"), false);
  assert.equal(settings("trigger"), "trigger", "nothing else is another");
  for (let second = 0; second < 151; second++) {
    context.mock.timers.tick(1000);
  }
  assert.deepEqual(seen, [3, 2, 1, undefined]);
  assert.equal(settings("enabled"), true);
  context.mock.timers.tick(600_000);
  assert.equal(seen.length, 4, "it ends once");
});

test("a snooze can be ended and begun again", (context) => {
  context.mock.timers.enable({ apis: ["setTimeout", "Date"] });
  let changes = 0;
  const snooze = new Snooze(() => changes++);
  snooze.end();
  assert.equal(changes, 0, "there was none");
  snooze.begin(5);
  snooze.end();
  assert.deepEqual([snooze.isOn, snooze.minutesLeft, changes], [false, undefined, 2]);
  snooze.begin(5);
  context.mock.timers.tick(60_000);
  snooze.begin(30);
  assert.equal(snooze.minutesLeft, 30);
  context.mock.timers.tick(10 * 60_000);
  assert.equal(snooze.minutesLeft, 20, "what was begun before does not end it");
  snooze.begin(1e9);
  assert.equal(snooze.minutesLeft, MOST_MINUTES);
  snooze.dispose();
});

test("minutes are read and validated", () => {
  assert.equal(readMinutes(" 12 "), 12);
  assert.equal(readMinutes("0,5"), 0.5);
  for (const text of ["", "0", "-3", "soon", "1e9", "Infinity"]) {
    assert.equal(typeof readMinutes(text), "string", text);
  }
});
