import assert from "node:assert/strict";
import { test } from "node:test";
import { REST_MS, Resting } from "../src/resting";

test("a resting cursor is reported once, a moving one never", (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const reported: number[] = [];
  const resting = new Resting<number>((place) => reported.push(place));
  resting.moved(1);
  context.mock.timers.tick(REST_MS - 1);
  resting.moved(2);
  context.mock.timers.tick(REST_MS - 1);
  assert.deepEqual(reported, []);
  context.mock.timers.tick(1);
  context.mock.timers.tick(10 * REST_MS);
  assert.deepEqual(reported, [2]);
  resting.moved(3);
  resting.moved(undefined);
  context.mock.timers.tick(REST_MS);
  resting.moved(4);
  resting.dispose();
  context.mock.timers.tick(REST_MS);
  assert.deepEqual(reported, [2]);
});
