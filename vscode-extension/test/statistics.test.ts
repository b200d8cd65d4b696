import assert from "node:assert/strict";
import { test } from "node:test";
import { readStatistics } from "../src/protocol";
import { statisticsText } from "../src/statisticsText";
import { counted, duration, latencyParts, percentage } from "../src/words";

const SINCE = (iso: string) => iso;

test("the statistics as a page", () => {
  const statistics = readStatistics({
    requests: 1200,
    answeredFromCache: 300,
    shown: 200,
    accepted: 50,
    acceptedCharacters: 4321,
    savedKeystrokes: 4271,
    cancelled: 100,
    superseded: 3,
    failed: 0,
    latency: { p50Ms: 123.4, p95Ms: 1534, serverP95Ms: 2.25 },
    thresholdShifts: { python: -0.013, go: 0.1 },
    retained: [
      { language: "python", model: "smollm2", seconds: 30, texts: 40, characters: 4000, retained: 3900 },
      { language: "python", model: "smollm2", seconds: 120, texts: 30, characters: 3000, retained: 0 },
    ],
    since: "2026-11-21T10:00:00Z",
  });
  assert.ok(statistics !== undefined);
  assert.equal(
    statisticsText(statistics, SINCE),
    `fim-server: statistics
since the server started, 2026-11-21T10:00:00Z

  Requests                                  1,200
    answered from the cache                   300  (25 %)
    cancelled by the editor                   100  (8 %)
    superseded by newer ones                    3  (<1 %)
    failed                                      0
  Suggestions shown                           200
    accepted                                   50  (25 %)
  Characters accepted                       4,321
    keystrokes saved                        4,271
    retained after 30 s, Python, smollm2    3,900  (98 % of 4,000)
    retained after 2 min, Python, smollm2       0  (0 % of 3,000)
  Latency, median                          123 ms
  Latency, 95th percentile                  1.5 s
    without model, engine and waiting      2.3 ms
  Threshold in python                      −0.013
  Threshold in go                            +0.1

Retained: characters, without blanks, of words that still stand in order where the text was accepted.

The server keeps these numbers in memory until it ends. They never leave this machine.
`,
  );
});

test("before the first completion", () => {
  const statistics = readStatistics({ latency: { p50Ms: null } });
  assert.ok(statistics !== undefined);
  const text = statisticsText(statistics);
  assert.match(text, /since the server started\n/);
  assert.match(text, /Latency, median +not known yet/);
  assert.doesNotMatch(text, /retained/i);
  assert.doesNotMatch(text, /NaN|undefined|Invalid/);
  assert.equal(readStatistics("no"), undefined);
});

test("words for numbers", () => {
  assert.deepEqual([0, 0.04, 2.25, 10.4, 999.4, 1000, 12345].map(duration), [
    "0 ms",
    "0 ms",
    "2.3 ms",
    "10 ms",
    "999 ms",
    "1.0 s",
    "12.3 s",
  ]);
  assert.deepEqual([0, 0.001, 0.5, 1].map(percentage), ["0 %", "<1 %", "50 %", "100 %"]);
  assert.equal(counted(1, "token"), "1 token");
  assert.equal(counted(1234, "token"), "1,234 tokens");
});

test("the parts of a latency, largest first", () => {
  const none = {
    totalMs: 0,
    debounceMs: 0,
    queueMs: 0,
    openMs: 0,
    prefillMs: 0,
    decodeMs: 0,
    engineMs: 0,
    serverMs: 0,
  };
  assert.equal(
    latencyParts({ ...none, engineMs: 0.2, decodeMs: 45, debounceMs: 75 }),
    "pause 75 ms, writing by the model 45 ms",
  );
  assert.equal(latencyParts(none), "");
});
