import assert from "node:assert/strict";
import { test } from "node:test";
import {
  expand,
  guaranteeOf,
  isCompleted,
  keyOf,
  needsServer,
  nextEditMode,
  type Reader,
  type Surroundings,
  serveArguments,
  serverSettings,
  standingOf,
  startSettings,
  toggledMode,
  withMode,
} from "../src/configuration";

const surroundings: Surroundings = {
  home: "/home/ada",
  environment: { TOOLS: "/opt/tools", EMPTY: "" },
  folders: [
    { name: "a", path: "/projects/a" },
    { name: "b", path: "/projects/b" },
  ],
  trusted: true,
};

function reading(settings: Record<string, unknown>): Reader {
  return (name) => settings[name];
}

test("no checker runs in a workspace that is not trusted", () => {
  const read = reading({ checker: true });
  assert.deepEqual(serverSettings(read, surroundings), { checker: true });
  assert.deepEqual(serverSettings(read, { ...surroundings, trusted: false }), { checker: false });
});

test("expand", () => {
  const cases: [string, string][] = [
    ["fim-server", "fim-server"],
    ["~", "/home/ada"],
    ["~/bin/fim-server", "/home/ada/bin/fim-server"],
    ["~ada/bin", "~ada/bin"],
    ["a/~/b", "a/~/b"],
    ["${userHome}/x", "/home/ada/x"],
    ["${workspaceFolder}/.venv/bin/fim-server", "/projects/a/.venv/bin/fim-server"],
    ["${workspaceFolder:b}/x", "/projects/b/x"],
    ["${workspaceFolder:c}/x", "${workspaceFolder:c}/x"],
    ["${env:TOOLS}/fim-server", "/opt/tools/fim-server"],
    ["${env:TOOLS}/${env:TOOLS}", "/opt/tools//opt/tools"],
    ["${env:EMPTY}x", "x"],
    ["${env:ABSENT}/x", "${env:ABSENT}/x"],
    ["${env}", "${env}"],
    ["${unknown}", "${unknown}"],
  ];
  for (const [text, expected] of cases) {
    assert.equal(expand(text, surroundings), expected, text);
  }
});

test("expand keeps ${workspaceFolder} in an empty window", () => {
  assert.equal(expand("${workspaceFolder}/x", { ...surroundings, folders: [] }), "${workspaceFolder}/x");
});

test("startSettings expands, trims, and takes only text", () => {
  const read = reading({ path: "  ", interpreter: " ~/py ", args: ["--model", "~/small", 3], logLevel: "info" });
  const settings = startSettings(read, surroundings);
  assert.deepEqual(settings, {
    path: "",
    interpreter: "/home/ada/py",
    args: ["--model", "/home/ada/small"],
    logLevel: "info",
  });
  assert.deepEqual(serveArguments(settings), ["serve", "--log-level", "info", "--model", "/home/ada/small"]);
  assert.deepEqual(startSettings(reading({}), surroundings), { path: "", interpreter: "", args: [], logLevel: "" });
});

test("the default log level is not passed on", () => {
  const settings = { path: "", interpreter: "", args: [], logLevel: "warning" };
  assert.deepEqual(serveArguments(settings), ["serve"]);
});

test("serverSettings sends false, 0 and null, and only the server's settings", () => {
  const read = reading({
    enabled: false,
    deadlineMs: 0,
    debounceMs: null,
    languages: { json: "off" },
    model: "",
    device: "",
    pythonVersion: "",
    path: "/x",
    args: ["--tcp"],
    "trace.server": "verbose",
  });
  assert.deepEqual(serverSettings(read, surroundings), {
    enabled: false,
    deadlineMs: 0,
    debounceMs: null,
    languages: { json: "off" },
    model: null,
    device: null,
    pythonVersion: null,
  });
});

test("serverSettings expands the model's folder", () => {
  const settings = serverSettings(reading({ model: "${workspaceFolder}/model", device: "cuda" }), surroundings);
  assert.deepEqual(settings, { model: "/projects/a/model", device: "cuda" });
});

test("standingOf: a named language overrides the trigger and the model's training", () => {
  const mode = (language: string, settings: Record<string, unknown>, learnt: readonly string[] | null = null) =>
    standingOf(language, reading(settings), learnt).mode;
  assert.equal(mode("python", {}), "automatic");
  assert.equal(mode("python", { trigger: "manual" }), "manual");
  assert.equal(mode("json", { trigger: "manual", languages: { json: "off" } }), "off");
  assert.equal(mode("python", { trigger: "subtle" }), "subtle");
  assert.equal(mode("go", { trigger: "subtle" }, ["python"]), "manual");
  assert.equal(mode("go", { languages: { go: "subtle" } }, ["python"]), "subtle");
  assert.equal(mode("python", { trigger: "off" }), "automatic");
  assert.equal(mode("json", { languages: { json: "sometimes" } }), "automatic");
  assert.equal(mode("python", { languages: "off" }), "automatic");
  assert.equal(mode("go", {}), "automatic");
  assert.equal(mode("go", {}, ["go", "python"]), "automatic");
  assert.equal(mode("go", {}, ["python"]), "manual");
  assert.equal(mode("go", { languages: { go: "automatic" } }, ["python"]), "automatic");
  assert.equal(mode("go", { languages: { go: "off" } }, []), "off");
});

test("standingOf: the editor's names and the server's mean one language", () => {
  const standing = (settings: Record<string, unknown>, learnt: readonly string[] | null = null) =>
    standingOf("typescriptreact", reading(settings), learnt);
  assert.equal(standing({}, ["tsx"]).mode, "automatic");
  assert.equal(standing({}, ["typescript"]).isHeldBack, true);
  assert.equal(standing({ languages: { tsx: "off" } }).mode, "off");
  assert.equal(standing({ languages: { tsx: "off", typescriptreact: "manual" } }).mode, "manual");
  assert.equal(standing({ languages: { typescript: "off" } }).mode, "automatic");
});

test("standingOf: a file with code of another language follows that, unless it is named", () => {
  const standing = (settings: Record<string, unknown>, learnt: readonly string[] | null = null) =>
    standingOf("vue", reading(settings), learnt);
  assert.equal(standing({}, ["javascript"]).mode, "automatic");
  assert.equal(standing({}, ["python"]).isHeldBack, true);
  assert.equal(standing({ languages: { javascript: "off" } }).mode, "off");
  assert.equal(standing({ languages: { javascript: "off", vue: "automatic" } }, ["python"]).mode, "automatic");
});

test("standingOf: HTML is a language of its own, whatever holds for its scripts", () => {
  const standing = (settings: Record<string, unknown>, learnt: readonly string[] | null = null) =>
    standingOf("html", reading(settings), learnt);
  assert.equal(standing({ languages: { javascript: "off" } }).mode, "automatic");
  assert.equal(standing({ languages: { html: "off", javascript: "automatic" } }).mode, "off");
  assert.equal(standing({}, ["javascript"]).isHeldBack, true);
  assert.equal(standing({}, ["html"]).mode, "automatic");
});

test("standingOf: a language is held back only for lack of training", () => {
  const held = (settings: Record<string, unknown>, learnt: readonly string[] | null) => {
    const { isLearnt, isHeldBack } = standingOf("rust", reading(settings), learnt);
    return [isLearnt, isHeldBack];
  };
  assert.deepEqual(held({}, null), [true, false]);
  assert.deepEqual(held({}, ["rust"]), [true, false]);
  assert.deepEqual(held({}, ["python"]), [false, true]);
  assert.deepEqual(held({ trigger: "manual" }, ["python"]), [false, false]);
  assert.deepEqual(held({ languages: { rust: "manual" } }, ["python"]), [false, false]);
  assert.deepEqual(held({ languages: { rust: "automatic" } }, ["python"]), [false, false]);
});

/** Returns `languages` at one level of the settings after toggling a document. */
function toggledLanguages(
  language: string,
  atLevel: unknown,
  read: Reader,
  learnt: readonly string[] | null,
  file = "",
): Record<string, unknown> {
  return withMode(atLevel, keyOf(language, file, read("languages")), toggledMode(language, read, learnt, file));
}

test("toggling changes one language at one level", () => {
  const json = reading({ languages: { json: "off" } });
  assert.deepEqual(toggledLanguages("json", undefined, json, null), { json: "automatic" });
  assert.deepEqual(toggledLanguages("json", { python: "manual" }, json, null), { python: "manual", json: "automatic" });
  assert.deepEqual(toggledLanguages("python", undefined, json, null), { python: "off" });
  const manual = reading({ trigger: "manual", languages: { python: "off" } });
  assert.deepEqual(toggledLanguages("python", { python: "off" }, manual, null), { python: "manual" });
});

test("toggling turns a language without training on, then off, then on", () => {
  const toggled = (languages: Record<string, unknown>, learnt: readonly string[]) =>
    toggledLanguages("java", languages, reading({ languages }), learnt);
  assert.deepEqual(toggled({ json: "off" }, ["python"]), { json: "off", java: "automatic" });
  assert.deepEqual(toggled({ java: "automatic" }, ["python"]), { java: "off" });
  assert.deepEqual(toggled({ java: "off" }, ["python"]), { java: "automatic" });
  assert.deepEqual(toggled({}, ["java", "python"]), { java: "off" });
  const asked = reading({ trigger: "manual" });
  assert.deepEqual(toggledLanguages("java", undefined, asked, ["python"]), { java: "off" });
});

test("standingOf: the last glob that names the file decides", () => {
  const languages = { "*.md": "automatic", markdown: "off", "docs/": "manual", go: "manual" };
  const mode = (language: string, file: string) => standingOf(language, reading({ languages }), ["go"], file).mode;
  assert.equal(mode("markdown", "a/b.md"), "automatic");
  assert.equal(mode("markdown", "docs/b.md"), "manual");
  assert.equal(mode("markdown", "b.markdown"), "off");
  assert.equal(mode("go", "docs/a.go"), "manual");
  assert.equal(mode("rust", "x.rs"), "manual");
  assert.deepEqual(toggledLanguages("markdown", languages, reading({ languages }), null, "a/b.md"), {
    ...languages,
    "*.md": "off",
  });
  assert.deepEqual(toggledLanguages("markdown", languages, reading({ languages }), null, "b.txt"), {
    ...languages,
    markdown: "automatic",
  });
});

test("standingOf: a language without a grammar is held back for every model", () => {
  const known = [{ name: "c", ids: ["c"], guarantee: "balanced" }];
  const held = (language: string, learnt: readonly string[] | null, of: typeof known | null) =>
    standingOf(language, reading({}), learnt, "", of).isHeldBack;
  assert.deepEqual([held("c", null, known), held("makefile", null, known)], [false, true]);
  assert.deepEqual([held("makefile", null, null), held("makefile", ["makefile"], known)], [false, false]);
  assert.deepEqual([guaranteeOf("c", known), guaranteeOf("makefile", known)], ["balanced", "none"]);
  assert.equal(guaranteeOf("c", null), undefined);
});

test("isCompleted: every file, and cells of the languages", () => {
  assert.ok(isCompleted("file", "makefile") && isCompleted("untitled", "plaintext"));
  assert.ok(isCompleted("vscode-notebook-cell", "python"));
  for (const [scheme, language] of [
    ["vscode-notebook-cell", "markdown"],
    ["output", "log"],
    ["git", "python"],
  ] as const) {
    assert.equal(isCompleted(scheme, language), false, scheme);
  }
});

test("needsServer", () => {
  const read = reading({ enabled: true, languages: { json: "off", "*.txt": "manual", "*.note": "off" } });
  const needs = (language: string, file = "", by = read) => needsServer([{ language, file }], by);
  assert.equal(needs("json"), false);
  assert.equal(needs("markdown", "README.md"), false);
  assert.equal(needs("plaintext", "a"), false);
  assert.equal(needs("plaintext", "a.txt"), true);
  assert.equal(needs("go", "a.note"), false);
  for (const language of ["python", "go", "typescriptreact", "c", "makefile", "yaml"]) {
    assert.equal(needs(language), true, language);
  }
  assert.equal(
    needsServer(
      ["markdown", "json", "python"].map((language) => ({ language, file: "" })),
      read,
    ),
    true,
  );
  assert.equal(needsServer([], read), false);
  const asked = (language: string, by = read) => needsServer([], by, { language, file: "" });
  assert.deepEqual([asked("markdown"), asked("json")], [true, false]);
  assert.equal(asked("markdown", reading({ enabled: false })), false);
  assert.equal(needs("json", "", reading({ languages: { json: "manual" } })), true);
  assert.equal(needs("markdown", "", reading({ languages: { markdown: "automatic" } })), true);
  assert.equal(needs("python", "", reading({ enabled: false })), false);
});

test("next edits follow the trigger, not what the model knows, and only in languages of the server", () => {
  const known = [{ name: "go", ids: ["go"], guarantee: "exact" }];
  const mode = (settings: Record<string, unknown>, language = "go") =>
    nextEditMode(language, reading(settings), "a.go", known);
  assert.equal(mode({}), "automatic");
  assert.equal(mode({ trigger: "manual" }), "manual");
  assert.equal(mode({ languages: { "*.go": "subtle" } }), "subtle");
  assert.equal(mode({ languages: { go: "off" } }), "off");
  assert.equal(mode({ enabled: false }), "off");
  assert.equal(mode({ nextEdits: false }), "off");
  assert.equal(mode({}, "plaintext"), "off");
  assert.equal(nextEditMode("go", reading({}), "a.go", null), "automatic", "before the server has told");
});
