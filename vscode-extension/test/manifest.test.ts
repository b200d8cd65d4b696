// package.json against the code and against docs/protocol.md.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { COMMANDS, HIDDEN } from "../src/commands";
import { LANGUAGES, RESTARTING_SETTINGS, SECTION, SERVER_SETTINGS } from "../src/configuration";
import { SERVER_COMMANDS } from "../src/protocol";
import { languageName } from "../src/words";

interface Setting {
  readonly order: number;
  readonly tags?: readonly string[];
  readonly default: unknown;
  readonly scope: string;
  readonly markdownDescription?: string;
  readonly properties?: Readonly<Record<string, Setting>>;
  readonly additionalProperties?: Setting;
  readonly description?: string;
  readonly enum?: readonly unknown[];
  readonly enumDescriptions?: readonly string[];
  readonly markdownEnumDescriptions?: readonly string[];
}

interface Manifest {
  readonly icon: string;
  readonly keywords: readonly string[];
  readonly activationEvents: readonly string[];
  readonly extensionKind: readonly string[];
  readonly capabilities: {
    readonly untrustedWorkspaces: { readonly supported: string; readonly restrictedConfigurations: readonly string[] };
  };
  readonly contributes: {
    readonly languages: readonly { readonly id: string; readonly extensions: readonly string[] }[];
    readonly commands: readonly {
      readonly command: string;
      readonly title: string;
      readonly category: string;
      readonly enablement?: string;
    }[];
    readonly keybindings: readonly {
      readonly command: string;
      readonly key: string;
      readonly when: string;
      readonly args?: unknown;
    }[];
    readonly configuration: readonly {
      readonly title: string;
      readonly order: number;
      readonly properties: Readonly<Record<string, Setting>>;
    }[];
    readonly walkthroughs: readonly {
      readonly id: string;
      readonly steps: readonly {
        readonly description: string;
        readonly media: { readonly svg: string; readonly altText: string };
        readonly completionEvents: readonly string[];
      }[];
    }[];
  };
}

// The tests run in the extension's folder.
const manifestText = readFileSync("package.json", "utf8");
const manifest: Manifest = JSON.parse(manifestText);
const protocol = readFileSync("../docs/protocol.md", "utf8");
const [common, ...further] = manifest.contributes.configuration;
const properties: Readonly<Record<string, Setting>> = Object.assign(
  {},
  ...manifest.contributes.configuration.map((group) => group.properties),
);
/** The settings that a person needs first, in their order. All others are advanced. */
const COMMON = [
  "enabled",
  "trigger",
  "languages",
  "model",
  "minConfidence",
  "multiline",
  "nextEdits",
  "insideComments",
  "insideStrings",
  "secretFiles",
  "path",
  "interpreter",
];
const commands = manifest.contributes.commands.map(({ command }) => command);

/** The cells of a table's rows under a heading of the protocol. */
function rows(heading: string): string[][] {
  const section = protocol.split(`\n## ${heading}\n`)[1]?.split("\n## ")[0] ?? "";
  return section
    .split("\n")
    .filter((line) => line.startsWith("| `"))
    .map((line) => line.split(" | ").map((cell) => cell.replace(/^\| | \|$/g, "").trim()));
}

/** Name and default of each documented setting: the first of the values, or one for each name. */
function documentedDefaults(): Map<string, unknown> {
  const defaults = new Map<string, unknown>();
  for (const [names = "", values = ""] of rows("Settings")) {
    const fields = [...names.matchAll(/`([^`]+)`/g)].map(([, name]) => name ?? "");
    const listed = values
      .replace(/\(.*\)/, "")
      .split(/,\s+(?![^{]*\})/)
      .map((value) => JSON.parse(value.replaceAll("`", "").trim()) as unknown);
    const eachOwn = fields.length > 1 && fields.length === listed.length;
    fields.forEach((field, index) => {
      defaults.set(field, eachOwn ? listed[index] : listed[0]);
    });
  }
  return defaults;
}

test("every setting of the protocol is contributed with the same default, and sent", () => {
  const documented = documentedDefaults();
  assert.deepEqual([...documented.keys()].sort(), [...SERVER_SETTINGS].sort());
  for (const [name, value] of documented) {
    const setting = properties[`${SECTION}.${name}`];
    assert.ok(setting !== undefined, name);
    assert.deepEqual(setting.default, value, name);
  }
});

test("every contributed setting is read", () => {
  const known = [...SERVER_SETTINGS, ...RESTARTING_SETTINGS, "trace.server"].map((name) => `${SECTION}.${name}`);
  assert.deepEqual([...new Set(known)].sort(), Object.keys(properties).sort());
});

test("the common settings come first, in order; all others are tagged as advanced, in titled groups", () => {
  assert.deepEqual(
    Object.keys(common?.properties ?? {}),
    COMMON.map((name) => `${SECTION}.${name}`),
  );
  assert.deepEqual(
    Object.entries(properties).map(([, { order }]) => order),
    Object.keys(properties).map((_, index) => index + 1),
  );
  assert.deepEqual(
    manifest.contributes.configuration.map(({ order }) => order),
    [1, 2, 3, 4],
  );
  assert.equal(new Set(manifest.contributes.configuration.map(({ title }) => title)).size, 4);
  for (const { tags } of Object.values(common?.properties ?? {})) {
    assert.equal(tags, undefined);
  }
  for (const [name, { tags }] of further.flatMap((group) => Object.entries(group.properties))) {
    assert.deepEqual(tags, ["advanced"], name);
  }
});

test("every setting is described in markdown and has a scope", () => {
  for (const [name, setting] of Object.entries(properties)) {
    assert.ok(setting.markdownDescription, name);
    const descriptions = setting.enumDescriptions ?? setting.markdownEnumDescriptions;
    assert.ok(descriptions === undefined || descriptions.length === setting.enum?.length, name);
    const startsPrograms = (RESTARTING_SETTINGS as readonly string[]).includes(name.slice(SECTION.length + 1));
    assert.equal(setting.scope, startsPrograms ? "machine-overridable" : "window", name);
  }
});

test("settings that name others name existing ones", () => {
  for (const [, name = ""] of manifestText.matchAll(/`#([\w.-]+)#`/g)) {
    assert.ok(properties[name] !== undefined, name);
  }
});

test("an untrusted workspace does not say what is run or read", () => {
  const { supported, restrictedConfigurations } = manifest.capabilities.untrustedWorkspaces;
  assert.equal(supported, "limited");
  assert.deepEqual(
    [...restrictedConfigurations].sort(),
    [
      "path",
      "interpreter",
      "args",
      "model",
      "nextEditModel",
      "device",
      "adapter",
      "apiKeyEnv",
      "allowPlainHttp",
      "tokenizer",
      "secretFiles",
    ]
      .map((name) => `${SECTION}.${name}`)
      .sort(),
  );
});

test("the contributed commands are those that are registered", () => {
  assert.deepEqual([...commands].sort(), [...COMMANDS].sort());
  for (const { title, category } of manifest.contributes.commands) {
    assert.equal(category, "fim-server");
    assert.match(title, /^[A-Z]/);
  }
});

test("the server's commands are the protocol's, and the extension has none of them", () => {
  const documented = rows("Commands").flatMap(([names = ""]) => names.replaceAll("`", "").split(", "));
  assert.deepEqual(documented.sort(), Object.values(SERVER_COMMANDS).sort());
  for (const command of documented) {
    assert.ok(!commands.includes(command), command);
  }
});

test("Escape is bound where it hides ghost text anyway, Alt+\\ only in the mode subtle", () => {
  const [binding, ...others] = manifest.contributes.keybindings;
  assert.deepEqual(
    others.map(({ command }) => command),
    [
      "fim-server.trigger",
      "editor.action.inlineSuggest.hide",
      "fim-server.acceptNextEdit",
      "fim-server.dismissNextEdit",
    ],
  );
  for (const [index, { key, when }] of others.slice(0, 2).entries()) {
    assert.equal(key, "alt+\\");
    assert.ok(when.startsWith("fim-server.subtle && editorTextFocus && "), when);
    assert.ok(when.endsWith(index === 0 ? " && !inlineSuggestionVisible" : " && inlineSuggestionVisible"), when);
  }
  // The window hides before the extension runs, so that a request after Escape stays.
  assert.deepEqual([binding?.command, binding?.key], ["runCommands", "escape"]);
  const dismissal = { command: "fim-server.dismiss", args: HIDDEN };
  assert.deepEqual(binding?.args, { commands: ["editor.action.inlineSuggest.hide", dismissal] });
  const conditions = binding?.when.split(" && ") ?? [];
  for (const condition of ["inlineSuggestionVisible", "fim-server.running", "!suggestWidgetVisible", "!vim.active"]) {
    assert.ok(conditions.includes(condition), condition);
  }
});

test("Tab and Escape belong to a next edit where nothing else uses them", () => {
  const bindings = manifest.contributes.keybindings.filter(({ command }) => command.endsWith("NextEdit"));
  assert.deepEqual(
    bindings.map(({ key }) => key),
    ["tab", "escape"],
  );
  for (const { key, when } of bindings) {
    const conditions = when.split(" && ");
    assert.equal(conditions[0], "fim-server.nextEditVisible");
    for (const other of [
      ...[
        "inlineSuggestionVisible",
        "inlineEditIsVisible",
        "suggestWidgetVisible",
        "inSnippetMode",
        "editorHasSelection",
      ],
      ...(key === "tab" ? ["editorTabMovesFocus", "editorReadonly"] : ["parameterHintsVisible", "vim.active"]),
    ]) {
      assert.ok(conditions.includes(`!${other}`), `${key}: ${other}`);
    }
  }
});

test("it wakes up once the editor has started, for files of every language", () => {
  assert.deepEqual(manifest.activationEvents, ["onStartupFinished"]);
  assert.deepEqual(manifest.extensionKind, ["workspace"]);
});

test("commands for a cursor are enabled in text editors of every language", () => {
  const enablements = manifest.contributes.commands.flatMap(({ command, enablement }) =>
    enablement === undefined ? [] : [[command, enablement] as const],
  );
  for (const [command, enablement] of enablements) {
    assert.doesNotMatch(enablement, /(editorLangId|resourceLangId) *[=!]/, command);
  }
  const forEditors = enablements.filter(([, enablement]) => enablement.split(" && ").includes("editorLangId"));
  assert.deepEqual(forEditors.map(([command]) => command).sort(), [
    "fim-server.explain",
    "fim-server.showNextEdit",
    "fim-server.toggleLanguage",
    "fim-server.trigger",
  ]);
});

test("the setting of languages, the keywords and the README name all of them", () => {
  const setting = properties[`${SECTION}.languages`];
  assert.deepEqual(Object.keys(setting?.properties ?? {}), LANGUAGES);
  for (const one of [setting?.additionalProperties, ...Object.values(setting?.properties ?? {})]) {
    assert.deepEqual(one?.enum, ["automatic", "subtle", "manual", "off"]);
    assert.equal(one?.enumDescriptions?.length, one?.enum?.length);
  }
  const readme = readFileSync("README.md", "utf8");
  for (const language of LANGUAGES) {
    assert.ok(manifest.keywords.includes(language), language);
    assert.notEqual(languageName(language), language);
    assert.ok(readme.includes(languageName(language)), language);
  }
  assert.ok(manifest.keywords.length <= 30, "the marketplace takes no more");
});

test("the walkthrough's commands and pictures exist", () => {
  const [walkthrough] = manifest.contributes.walkthroughs;
  assert.equal(walkthrough?.id, "start");
  assert.deepEqual(walkthrough?.steps.at(-1)?.completionEvents, ["onContext:fim-server.accepted"]);
  for (const step of walkthrough?.steps ?? []) {
    assert.ok(existsSync(step.media.svg), step.media.svg);
    assert.ok(step.media.altText !== "");
    assert.doesNotMatch(step.description, /`/, "walkthroughs show backticks as they are");
    const links = [...step.description.matchAll(/\(command:([\w.-]+)/g)].map(([, command = ""]) => command);
    const events = step.completionEvents.filter((event) => event.startsWith("onCommand:"));
    for (const command of [...links, ...events.map((event) => event.slice("onCommand:".length))]) {
      assert.ok(commands.includes(command) || command.startsWith("workbench.action."), command);
    }
  }
  assert.ok(existsSync(manifest.icon));
});

test("the README names every setting and every command", () => {
  const readme = readFileSync("README.md", "utf8");
  for (const name of Object.keys(properties)) {
    assert.ok(readme.includes(`\`${name}\``), name);
  }
  for (const { title } of manifest.contributes.commands) {
    assert.ok(readme.includes(title), title);
  }
});

test("the lock file names no registry", () => {
  const lock = readFileSync("package-lock.json", "utf8");
  assert.doesNotMatch(lock, /"resolved"/);
});

test("the license is the repository's", () => {
  assert.equal(readFileSync("LICENSE", "utf8"), readFileSync("../LICENSE", "utf8"));
});

test("the package holds every bundle", () => {
  const built = [...readFileSync("build.mjs", "utf8").matchAll(/outfile: "([^"]+)"/g)].map(([, file]) => `!${file}`);
  const kept = readFileSync(".vscodeignore", "utf8").split("\n");
  assert.deepEqual(built.sort(), kept.filter((line) => line.startsWith("!out/")).sort());
});

test("starting the editor evaluates no language client", () => {
  const code = readFileSync("out/extension.js", "utf8");
  assert.ok(!code.includes("LanguageClient"));
  assert.match(code, /require\("\.\/client"\)/);
  assert.doesNotMatch(readFileSync("out/client.js", "utf8"), /[^_]require\("\.\.?\//, "the client is whole");
});

test("languages that VS Code does not have are the server's, with its suffixes", () => {
  for (const { id, extensions } of manifest.contributes.languages) {
    const name = id === "terraform" ? "hcl" : id;
    const definition = readFileSync(`../fim_server/languages/token_trees/${name}.toml`, "utf8");
    const suffixes: readonly string[] = JSON.parse(/^suffixes = (\[.*\])$/m.exec(definition)?.[1] ?? "[]");
    assert.deepEqual([...extensions].sort(), [...suffixes].sort(), id);
  }
});
