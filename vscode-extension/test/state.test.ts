import assert from "node:assert/strict";
import { test } from "node:test";
import { CrashPolicy, MOST_CRASHES, WINDOW_MS } from "../src/crashes";
import { levelOf, startFailure, Tail } from "../src/log";
import { type MenuAction, menuGroups } from "../src/menu";
import { OpenFiles } from "../src/openFiles";
import { readStatus, type ServerStatus } from "../src/protocol";
import { fetchingIn, isLoading, learntIn, Once, problemOf, type State, withoutLinks } from "../src/state";
import { type ActiveLanguage, escapeMarkdown, statusView, TOOLTIP_COMMANDS } from "../src/statusText";

const PYTHON: ActiveLanguage = { id: "python", mode: "automatic", isLearnt: true, isHeldBack: false };
const ASKED: ActiveLanguage = { ...PYTHON, mode: "manual" };
const JSON_OFF: ActiveLanguage = { id: "json", mode: "off", isLearnt: false, isHeldBack: false };
const GO_HELD: ActiveLanguage = { id: "go", mode: "manual", isLearnt: false, isHeldBack: true };
const GO_FORCED: ActiveLanguage = { id: "go", mode: "automatic", isLearnt: false, isHeldBack: false };

function status(fields: Record<string, unknown>): ServerStatus {
  const read = readStatus(fields);
  assert.ok(read !== undefined);
  return read;
}

function running(fields: Record<string, unknown>): State {
  return { kind: "running", status: status(fields) };
}

const LAST = {
  uri: "file:///a.py",
  items: 1,
  guarantee: "exact",
  origin: "model",
  stopReason: "end_token",
  reason: null,
  tokens: 12,
  refused: 1,
  latency: {
    totalMs: 130,
    debounceMs: 0,
    queueMs: 1,
    openMs: 2,
    prefillMs: 80,
    decodeMs: 45,
    engineMs: 1,
    serverMs: 1,
  },
};
const MODEL = { name: "embedded", device: "cpu", format: "fim-server" };
const MISSING: State = { kind: "missing", search: { kind: "missing", message: "It is not there.", tried: [] } };
const STATES: readonly State[] = [
  { kind: "idle", disabled: false },
  { kind: "idle", disabled: true },
  { kind: "starting" },
  { kind: "running", status: undefined },
  running({ state: "loading", message: "loading", progress: 0.4 }),
  running({ state: "ready", message: "", model: MODEL, last: LAST }),
  running({ state: "busy", message: "", model: MODEL }),
  running({ state: "error", message: "no such model" }),
  running({ state: "off", message: "" }),
  { kind: "restarting", crashes: 2 },
  MISSING,
  { kind: "failed", message: "It did not start." },
  { kind: "crashed", message: "It ended." },
];

test("every state has an icon, words for screen readers, and a tooltip that leads on", () => {
  for (const state of STATES) {
    const view = statusView(state, PYTHON);
    assert.match(view.text, /^\$\([a-z~-]+\) fim/, JSON.stringify(state));
    assert.match(view.label, /^fim-server: \S/, JSON.stringify(state));
    assert.match(view.tooltip, /command:fim-server\.menu/);
  }
});

test("states look different where they matter", () => {
  const look = (state: State, language = PYTHON) => {
    const { text, background } = statusView(state, language);
    return `${text} ${background}`;
  };
  assert.equal(look(running({ state: "loading", progress: 0.4 })), "$(loading~spin) fim 40% none");
  assert.equal(look(running({ state: "loading" })), "$(loading~spin) fim none");
  assert.equal(look(running({ state: "loading", progress: 7 })), "$(loading~spin) fim 100% none");
  assert.equal(look(running({ state: "ready" })), "$(symbol-array) fim none");
  assert.equal(look(running({ state: "busy" })), "$(sync~spin) fim none");
  assert.equal(look(running({ state: "off" })), "$(circle-slash) fim none");
  assert.equal(look(running({ state: "error" })), "$(error) fim error");
  assert.equal(look(MISSING), "$(warning) fim warning");
  assert.equal(look(running({ state: "ready" }), JSON_OFF), "$(circle-slash) fim none");
  assert.equal(look(running({ state: "ready" }), GO_HELD), "$(circle-outline) fim none");
  assert.equal(look(running({ state: "busy" }), GO_HELD), "$(sync~spin) fim none");
  assert.equal(look(running({ state: "ready" }), GO_FORCED), "$(symbol-array) fim none");
});

test("the icon shows the model's short name", () => {
  const text = (name: string, state = "ready") =>
    statusView(running({ state, model: { ...MODEL, name } }), PYTHON).text;
  assert.equal(text("smollm2"), "$(symbol-array) fim smollm2");
  assert.equal(text("smollm2", "busy"), "$(sync~spin) fim smollm2");
  assert.equal(text("owner/Coder-0.5B"), "$(symbol-array) fim Coder-0.5B");
  assert.equal(text("coder:1.5b"), "$(symbol-array) fim coder:1.5b");
  assert.equal(text("/models/coder-q8_0.gguf"), "$(symbol-array) fim coder-q8_0");
  assert.equal(text("C:\\models\\coder.GGUF"), "$(symbol-array) fim coder");
  assert.equal(text("http://127.0.0.1:8080"), "$(symbol-array) fim 127.0.0.1:8080");
  assert.equal(text("$(bug)"), "$(symbol-array) fim $ (bug)");
  assert.equal(text("a-very-long-name-of-a-model-with-all-its-merits"), "$(symbol-array) fim a-very-long-name-of-a-m…");
  assert.equal(text("smollm2", "off"), "$(circle-slash) fim");
  assert.equal(statusView(running({ state: "ready", model: MODEL }), JSON_OFF).text, "$(circle-slash) fim");
});

test("the tooltip shows model, last answer, guarantee and latency", () => {
  const { tooltip } = statusView(running({ state: "ready", message: "ready", model: MODEL, last: LAST }), PYTHON);
  assert.match(tooltip, /\| Model \| embedded, on cpu \|/);
  assert.match(tooltip, /\| Python \| while you type \|/);
  assert.match(tooltip, /1 completion, by the model, 12 tokens, 1 refused by the grammar/);
  assert.match(tooltip, /\| Guarantee \| exact: the whole file parses with the text \|/);
  assert.match(tooltip, /130 ms: reading by the model 80 ms, writing by the model 45 ms, reading the file 2 ms/);
});

test("a language without training is shown with a link that turns it on", () => {
  const ready = running({ state: "ready", message: "ready", model: { ...MODEL, languages: ["python"] } });
  const held = statusView(ready, GO_HELD);
  assert.equal(held.label, "fim-server: ready on request: the model does not know Go (embedded)");
  const turnOn = "[Turn it on anyway](command:fim-server.toggleLanguage)";
  assert.ok(held.tooltip.includes(`| Go | on request, because the model does not know it. ${turnOn} |`), held.tooltip);
  assert.ok(TOOLTIP_COMMANDS.includes("fim-server.toggleLanguage"));

  const forced = statusView(ready, GO_FORCED);
  assert.equal(forced.label, "fim-server: ready (embedded)");
  assert.ok(forced.tooltip.includes("| Go | while you type, although the model does not know it |"), forced.tooltip);
  assert.match(statusView(ready, JSON_OFF).tooltip, /\| JSON \| off \|/);

  const entry = (language: ActiveLanguage) =>
    menuGroups(ready, language)
      .flat()
      .find(({ action }) => action === "toggleLanguage");
  assert.deepEqual(entry(GO_HELD), {
    action: "toggleLanguage",
    label: "$(check) Turn On in Go Anyway",
    description: "the model does not know Go; in the settings",
  });
  assert.equal(entry(GO_FORCED)?.label, "$(circle-slash) Turn Off in Go");
  assert.match(entry(GO_FORCED)?.description ?? "", /does not know Go/);
  assert.equal(entry(PYTHON)?.description, "in the settings");
  assert.ok(actions(ready, GO_HELD).includes("trigger"), "it may be asked");
});

test("the model's languages are known once it is loaded", () => {
  const learnt = (model: unknown) => learntIn(running({ state: "ready", model }));
  assert.deepEqual(learnt({ ...MODEL, languages: ["go", "python"] }), ["go", "python"]);
  assert.deepEqual(learnt({ ...MODEL, languages: [] }), []);
  assert.equal(learnt({ ...MODEL, languages: null }), null);
  assert.equal(learnt(MODEL), null);
  assert.equal(learnt(null), null);
  assert.equal(learntIn({ kind: "starting" }), null);
  assert.equal(learntIn({ kind: "running", status: undefined }), null);
});

test("a hub model's download is shown once and is no better model", () => {
  const message = "downloading owner/coder: 3 of 100 MB";
  const fetching = { name: "owner/coder", message, progress: 0.03 };
  const state = running({ state: "loading", message, progress: 0.41, fetching });
  assert.ok(isLoading(state));
  assert.equal(fetchingIn(state)?.message, message);
  const { tooltip } = statusView(state, PYTHON);
  assert.equal(tooltip.split("3 of 100 MB").length, 2);
  assert.doesNotMatch(tooltip, /Better/);
  const beside = running({ state: "ready", model: MODEL, fetching });
  assert.match(statusView(beside, PYTHON).tooltip, /Better&nbsp;model \| getting owner\/coder/);
  assert.equal(fetchingIn(running({ state: "ready" })), undefined);
  assert.equal(fetchingIn({ kind: "starting" }), undefined);
});

test("the tooltip names paused documents", () => {
  const setAside = ["file:///home/a|b.py"];
  const { tooltip } = statusView(running({ state: "ready", message: "ready", model: MODEL, setAside }), PYTHON);
  assert.match(
    tooltip,
    /\| Paused \| a\\\|b\\\.py: no suggestions until you change it, because the server got stuck there \|/,
  );
  assert.doesNotMatch(statusView(running({ state: "ready" }), PYTHON).tooltip, /Paused/);
});

test("the tooltip gives the reason for no suggestion", () => {
  const last = { ...LAST, items: 0, reason: "the deadline passed | too early" };
  const { tooltip } = statusView(running({ state: "ready", last }), undefined);
  assert.match(tooltip, /nothing: the deadline passed \\\| too early/);
  assert.doesNotMatch(tooltip, /Guarantee/);
});

test("the server's text is never markup in the tooltip", () => {
  const evil = "[x](command:workbench.action.terminal.new) $(bug) <img src=x>\n\n# big | `code` **bold**";
  assert.equal(
    escapeMarkdown(evil),
    "\\[x\\]\\(command:workbench\\.action\\.terminal\\.new\\) \\$\\(bug\\) &lt;img src=x&gt; \\# big \\| \\`code\\` \\*\\*bold\\*\\*",
  );
  const { tooltip } = statusView(
    running({
      state: "error",
      message: evil,
      model: { name: evil, device: evil },
      last: { ...LAST, items: 0, reason: evil },
    }),
    ASKED,
  );
  assert.doesNotMatch(tooltip, /[^\\]\]\(command:workbench/);
  assert.doesNotMatch(tooltip, /<img/);
});

test("an invalid status is ignored", () => {
  for (const value of [undefined, null, 3, [], {}, { state: "dancing" }]) {
    assert.equal(readStatus(value), undefined);
  }
});

test("missing or wrong fields of a status become neutral values", () => {
  const read = status({ state: "ready", message: 3, progress: "x", model: [], last: { items: "2", latency: null } });
  assert.equal(read.message, "");
  assert.equal(read.progress, null);
  assert.equal(read.model, null);
  assert.equal(read.last?.items, 0);
  assert.equal(read.last?.guarantee, "none");
  assert.equal(read.last?.latency.totalMs, 0);
});

function actions(state: State, language: ActiveLanguage | undefined): MenuAction[] {
  return menuGroups(state, language).flatMap((group) => group.map((entry) => entry.action));
}

test("the menu has each entry once, and actions in every state", () => {
  for (const state of STATES) {
    for (const language of [PYTHON, JSON_OFF, GO_HELD, GO_FORCED, undefined]) {
      const entries = actions(state, language);
      assert.equal(new Set(entries).size, entries.length, entries.join());
      for (const always of ["restart", "logs", "allSettings", "walkthrough"] as const) {
        assert.ok(entries.includes(always), `${always} in ${JSON.stringify(state)}`);
      }
      for (const entry of menuGroups(state, language).flat()) {
        assert.match(entry.label, /^\$\([a-z-]+\) \S/);
      }
    }
  }
});

test("the menu without a problem", () => {
  assert.deepEqual(actions(running({ state: "ready" }), PYTHON), [
    "trigger",
    "explain",
    "snooze",
    "toggle",
    "toggleLanguage",
    "chooseLanguage",
    "toggleWorkspace",
    "statistics",
    "restart",
    "logs",
    "allSettings",
    "walkthrough",
  ]);
});

test("a snooze shows its end and how to end it", () => {
  const off = running({ state: "off" });
  const view = statusView(off, PYTHON, 12);
  assert.equal(view.text, "$(bell-slash) fim 12 min");
  assert.equal(view.label, "fim-server: snoozed for 12 more minutes");
  assert.equal(statusView(off, PYTHON, 1).label, "fim-server: snoozed for 1 more minute");
  assert.match(statusView(MISSING, PYTHON, 12).label, /not found/);
  const entries = menuGroups(off, PYTHON, 12).flat();
  assert.equal(entries.find((entry) => entry.action === "endSnooze")?.description, "12 minutes left");
  assert.ok(!entries.some((entry) => entry.action === "toggle"));
  assert.ok(
    !menuGroups(off, PYTHON)
      .flat()
      .some((entry) => entry.action === "snooze" || entry.action === "endSnooze"),
  );
});

test("the menu begins with solutions of the problem", () => {
  assert.deepEqual(actions(MISSING, PYTHON).slice(0, 3), ["install", "pathSettings", "walkthrough"]);
  assert.deepEqual(actions({ kind: "crashed", message: "" }, PYTHON).slice(0, 2), ["restart", "logs"]);
  assert.equal(actions(running({ state: "error" }), PYTHON)[0], "modelSettings");
});

test("a wrong path does not offer an installation", () => {
  const search = { kind: "missing", setting: "path", message: "no", tried: [] } as const;
  assert.deepEqual(problemOf({ kind: "missing", search })?.actions, ["pathSettings", "walkthrough"]);
});

test("the menu can turn suggestions on", () => {
  const label = (state: State, language: ActiveLanguage, action: MenuAction) =>
    menuGroups(state, language)
      .flat()
      .find((entry) => entry.action === action)?.label;
  assert.match(label(running({ state: "off" }), PYTHON, "toggle") ?? "", /Turn Suggestions On/);
  assert.match(label(running({ state: "ready" }), PYTHON, "toggle") ?? "", /Turn Suggestions Off/);
  assert.match(label({ kind: "idle", disabled: true }, PYTHON, "toggle") ?? "", /Turn Suggestions On/);
  assert.match(label(running({ state: "ready" }), JSON_OFF, "toggleLanguage") ?? "", /On in JSON$/);
  assert.match(label(running({ state: "ready" }), PYTHON, "toggleLanguage") ?? "", /Off in Python/);
  assert.equal(label(running({ state: "off" }), PYTHON, "trigger"), undefined);
  assert.equal(label(running({ state: "ready" }), JSON_OFF, "trigger"), undefined);
});

test("in other languages the menu has no entries for the cursor", () => {
  const entries = actions(running({ state: "ready" }), undefined);
  for (const action of ["trigger", "explain", "toggleLanguage"] as const) {
    assert.ok(!entries.includes(action), action);
  }
});

test("only lasting states are problems", () => {
  const kinds = STATES.filter((state) => problemOf(state) !== undefined).map((state) =>
    state.kind === "running" ? state.status?.state : state.kind,
  );
  assert.deepEqual(kinds, ["error", "missing", "failed", "crashed"]);
});

test("links in messages are broken", () => {
  assert.equal(withoutLinks("no [model](command:x) and [y](z)"), "no [model] (command:x) and [y] (z)");
});

test("each problem is reported once until the user acts", () => {
  const once = new Once();
  const problem = problemOf(MISSING);
  const other = problemOf(running({ state: "error", message: "no such model" }));
  assert.ok(problem !== undefined && other !== undefined);
  assert.deepEqual(
    [problem, other, problem, other].map((one) => once.isNew(one)),
    [true, true, false, false],
  );
  once.forget();
  assert.equal(once.isNew(problem), true);
});

test("a second crash does not restart the server", () => {
  const policy = new CrashPolicy();
  assert.deepEqual(policy.crashed(0), { restart: true, delayMs: 0, crashes: 1 });
  assert.deepEqual(policy.crashed(1000), { restart: false, delayMs: 0, crashes: 2 });
  assert.equal(MOST_CRASHES, 2);
});

test("slow crashes do not restart the server forever", () => {
  const policy = new CrashPolicy();
  assert.equal(policy.crashed(WINDOW_MS * 10).restart, true);
  assert.equal(policy.crashed(WINDOW_MS * 20).restart, false);
  const brief = new CrashPolicy();
  brief.crashed(0);
  brief.served(WINDOW_MS);
  brief.served(2 * WINDOW_MS - 2);
  assert.equal(brief.crashed(2 * WINDOW_MS - 1).restart, false);
});

test("crashes before long service or a manual restart do not count", () => {
  const policy = new CrashPolicy();
  for (let index = 0; index < 20; index++) {
    assert.equal(policy.crashed(index * 2 * WINDOW_MS).restart, true);
    policy.served(index * 2 * WINDOW_MS + 1);
  }
  const restarted = new CrashPolicy();
  restarted.crashed(1);
  restarted.forget();
  assert.deepEqual(restarted.crashed(5), { restart: true, delayMs: 0, crashes: 1 });
});

test("startFailure", () => {
  const missing = Object.assign(new Error("spawn fim-server ENOENT"), { code: "ENOENT" });
  assert.match(startFailure("fim-server", missing), /not found at "fim-server".*fim-server\.path/);
  assert.match(startFailure("/etc/hosts", new Error("spawn /etc/hosts EACCES")), /may not be executed/);
  assert.equal(startFailure("x", "it broke"), "fim-server did not start: it broke");
  assert.equal(
    startFailure("x", new Error("disposed"), "fim-server: error: bad --model"),
    "fim-server did not start: bad --model",
  );
});

test("log lines have the levels they name", () => {
  const cases: [string, string][] = [
    ["ERROR:fim_server:no model", "error"],
    ["2026-11-21 10:00:00 warning: slow", "warn"],
    ["DEBUG engine", "debug"],
    ["INFO ready", "info"],
    ["Traceback (most recent call last):", "error"],
    ["ValueError: no", "error"],
    ['  File "a.py", line 3', "info"],
  ];
  for (const [line, level] of cases) {
    assert.equal(levelOf(line), level, line);
  }
});

test("the tail keeps the last lines", () => {
  const tail = new Tail(2);
  assert.equal(tail.lastWords(), undefined);
  for (const line of ["one", "two", "  three ", ""]) {
    tail.push(line);
  }
  assert.equal(tail.lastWords(), "three");
});

test("changes of files that are not open are not sent", () => {
  const files = new OpenFiles();
  const about = (uri: string) => ({ textDocument: { uri } });
  const sent = (
    [
      ["textDocument/didChange", about("a")],
      ["textDocument/didOpen", about("a")],
      ["textDocument/didChange", about("a")],
      ["textDocument/didChange", about("b")],
      ["textDocument/didClose", about("a")],
      ["textDocument/didChange", about("a")],
      ["textDocument/didOpen", about("a")],
      ["textDocument/didChange", about("a")],
      ["initialized", {}],
      ["exit", undefined],
    ] as const
  ).map(([method, params]) => files.admits(method, params));
  assert.deepEqual(sent, [false, true, true, false, true, false, true, true, true, true]);
});

test("the menu names the model and the last latency", () => {
  const entries = (state: State) => menuGroups(state, PYTHON).flat();
  const answered = entries(running({ state: "ready", message: "", model: MODEL, last: LAST }))[0];
  assert.equal(answered?.label, "$(chip) embedded on cpu");
  assert.equal(answered?.description, "last answer in 130 ms");
  assert.equal(entries(running({ state: "ready", message: "", model: MODEL }))[0]?.description, "no answer yet");
  const inError = entries(running({ state: "error", message: "no such model", model: MODEL }));
  assert.equal(inError.filter(({ action }) => action === "modelSettings").length, 1);
});
