// The settings and their meaning. Pure functions, without the editor, so that node:test can run them.
import { isGlob, isNamedBy } from "./globs";
import type { KnownLanguage } from "./protocol";

export const SECTION = "fim-server";

/** Languages of the extension's settings, by the editor's ids. Files of all others are completed as well. */
export const LANGUAGES: readonly string[] = [
  "python",
  "go",
  "java",
  "rust",
  "javascript",
  "javascriptreact",
  "typescript",
  "typescriptreact",
  "json",
  "html",
  "vue",
  "svelte",
  "astro",
];

/** The server's names of languages that the editor calls otherwise, and of most code in files that are code alone. */
const SERVER_NAMES: Readonly<Record<string, string>> = {
  javascriptreact: "jsx",
  typescriptreact: "tsx",
  vue: "javascript",
  svelte: "javascript",
  astro: "typescript",
};

/** Languages of texts and of the editor's own documents: they start no server unless the settings name them. */
const WITHOUT_CODE: readonly string[] = [
  "plaintext",
  "markdown",
  "log",
  "search-result",
  "git-commit",
  "git-rebase",
  "scminput",
  "code-text-binary",
];

/** URI schemes of files, new files and files of virtual workspaces: every language. */
export const SCHEMES: readonly string[] = ["file", "untitled", "vscode-vfs"];

/** URI scheme of notebook cells: the languages above. */
export const CELL_SCHEME = "vscode-notebook-cell";

/** Returns whether the extension completes documents of a scheme and a language. */
export function isCompleted(scheme: string, language: string): boolean {
  return SCHEMES.includes(scheme) || (scheme === CELL_SCHEME && LANGUAGES.includes(language));
}

/** Settings sent to the server, under these names. */
export const SERVER_SETTINGS = [
  "enabled",
  "trigger",
  "languages",
  "insideComments",
  "insideStrings",
  "multiline",
  "minConfidence",
  "personalThreshold",
  "alternatives",
  "maxTokens",
  "maxLineTokens",
  "promptTokens",
  "temperature",
  "deadlineMs",
  "invokedDeadlineMs",
  "debounceMs",
  "maxFileCharacters",
  "memoryMb",
  "floor",
  "names",
  "checker",
  "secretFiles",
  "projectMemory",
  "projectContext",
  "askModel",
  "nextEdits",
  "nextEditModel",
  "prefetch",
  "logCode",
  "languageVersions",
  "pythonVersion",
  "model",
  "device",
  "gpuLayers",
  "adapter",
  "apiKeyEnv",
  "allowPlainHttp",
  "tokenizer",
] as const;

/** Settings whose change restarts the server. */
export const RESTARTING_SETTINGS = [
  "path",
  "interpreter",
  "args",
  "logLevel",
  "model",
  "nextEditModel",
  "device",
  "gpuLayers",
  "adapter",
  "apiKeyEnv",
  "allowPlainHttp",
  "tokenizer",
] as const;

/** Modes of the setting `trigger`. */
export type Trigger = "automatic" | "subtle" | "manual";

export type Mode = Trigger | "off";

/** Languages the model knows, by id; null: all, or unknown. */
export type Learnt = readonly string[] | null;

/** Languages that the server knows; null: not asked yet. */
export type Known = readonly KnownLanguage[] | null;

/** Open document: its language by the editor's id, and its path below the workspace's folder. */
export interface OpenDocument {
  readonly language: string;
  readonly file: string;
}

/** Mode of a language, by the settings and what the model knows. */
export interface Standing {
  readonly mode: Mode;
  readonly isLearnt: boolean;
  /** True if the language gets suggestions on request only, for lack of knowledge and of a setting that names it. */
  readonly isHeldBack: boolean;
}

/** Settings that start the server. */
export interface StartSettings {
  readonly path: string;
  readonly interpreter: string;
  readonly args: readonly string[];
  readonly logLevel: string;
}

/** Values of the variables in settings. */
export interface Surroundings {
  readonly home: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The folders of the workspace in order; none in an empty window. */
  readonly folders: readonly { readonly name: string; readonly path: string }[];
  /** True if the user trusts the workspace. */
  readonly trusted: boolean;
}

/** Reads one setting by its name without the section. */
export type Reader = (name: string) => unknown;

/**
 * Replaces a leading `~`, `${userHome}`, `${workspaceFolder}`, `${workspaceFolder:NAME}` and `${env:NAME}`. A variable
 * without a value stays, so that an error message shows it.
 */
export function expand(text: string, surroundings: Surroundings): string {
  const withHome = text === "~" || /^~[/\\]/.test(text) ? surroundings.home + text.slice(1) : text;
  return withHome.replace(/\$\{(\w+)(?::([^}]+))?\}/g, (variable, kind: string, name?: string) => {
    return variableValue(kind, name, surroundings) ?? variable;
  });
}

function variableValue(kind: string, name: string | undefined, { home, environment, folders }: Surroundings) {
  switch (kind) {
    case "userHome":
      return name === undefined ? home : undefined;
    case "workspaceFolder":
      return (name === undefined ? folders[0] : folders.find((folder) => folder.name === name))?.path;
    case "env":
      return name === undefined ? undefined : environment[name];
    default:
      return undefined;
  }
}

function asText(value: unknown): string {
  return typeof value === "string" ? value.trim() : "";
}

/** Returns the settings that start the server, with variables replaced. */
export function startSettings(read: Reader, surroundings: Surroundings): StartSettings {
  const args = read("args");
  return {
    path: expand(asText(read("path")), surroundings),
    interpreter: expand(asText(read("interpreter")), surroundings),
    args: (Array.isArray(args) ? args : [])
      .filter((argument) => typeof argument === "string")
      .map((argument) => expand(argument, surroundings)),
    logLevel: asText(read("logLevel")),
  };
}

/** Returns the arguments of the program. The user's come last and so override ours. */
export function serveArguments(settings: StartSettings): string[] {
  const isDefault = settings.logLevel === "" || settings.logLevel === "warning";
  return ["serve", ...(isDefault ? [] : ["--log-level", settings.logLevel]), ...settings.args];
}

/**
 * Returns the settings for `initializationOptions`, `didChangeConfiguration` and `workspace/configuration`. Empty text,
 * which the settings editor leaves behind, becomes null. No checker runs in a workspace that is not trusted.
 */
export function serverSettings(read: Reader, surroundings: Surroundings): Record<string, unknown> {
  const settings: Record<string, unknown> = {};
  for (const name of SERVER_SETTINGS) {
    const value = read(name);
    if (value !== undefined) {
      settings[name] = value;
    }
  }
  for (const name of ["pythonVersion", "model", "nextEditModel", "device", "adapter", "apiKeyEnv", "tokenizer"]) {
    if (settings[name] === "") {
      settings[name] = null;
    }
  }
  for (const name of ["model", "nextEditModel", "adapter", "tokenizer"]) {
    const path = settings[name];
    if (typeof path === "string") {
      settings[name] = expand(path, surroundings);
    }
  }
  if (!surroundings.trusted) {
    settings["checker"] = false;
  }
  return settings;
}

function asMode(value: unknown): Mode | undefined {
  return value === "automatic" || value === "subtle" || value === "manual" || value === "off" ? value : undefined;
}

/** Returns the mode of a document as the server decides it. */
export function standingOf(language: string, read: Reader, learnt: Learnt, file = "", known: Known = null): Standing {
  const languages = read("languages");
  const name = SERVER_NAMES[language] ?? language;
  const own = isRecord(languages)
    ? (asMode(languages[keyOf(language, file, languages)]) ?? asMode(languages[language]) ?? asMode(languages[name]))
    : undefined;
  const isLearnt = learnt === null ? hasGrammar(language, known) : learnt.includes(name);
  const isHeldBack = !isLearnt && own === undefined && triggerOf(read) !== "manual";
  return { mode: isHeldBack ? "manual" : (own ?? triggerOf(read)), isLearnt, isHeldBack };
}

/** Returns the mode of next edits in a document. It does not depend on what the model knows. */
export function nextEditMode(language: string, read: Reader, file: string, known: Known): Mode {
  const isOn = read("enabled") !== false && read("nextEdits") !== false && hasGrammar(language, known);
  return isOn ? standingOf(language, read, null, file, known).mode : "off";
}

/** Returns the last glob of the setting that names a file, else the language. */
export function keyOf(language: string, file: string, languages: unknown): string {
  const globs = isRecord(languages) && file !== "" ? Object.keys(languages).filter(isGlob) : [];
  return globs.findLast((glob) => isNamedBy(file, glob)) ?? language;
}

function hasGrammar(language: string, known: Known): boolean {
  return known === null || known.some(({ ids }) => ids.includes(language));
}

/** Returns the guarantee of a language's files as the server names it; undefined before it was asked. */
export function guaranteeOf(language: string, known: Known): string | undefined {
  return known === null ? undefined : (known.find(({ ids }) => ids.includes(language))?.guarantee ?? "none");
}

function triggerOf(read: Reader): Trigger {
  const mode = asMode(read("trigger"));
  return mode === undefined || mode === "off" ? "automatic" : mode;
}

/** Returns the mode of a document after toggling its language, or the glob that decides for its file. */
export function toggledMode(language: string, read: Reader, learnt: Learnt, file = "", known: Known = null): Mode {
  const { mode, isHeldBack } = standingOf(language, read, learnt, file, known);
  // Name the language when turning it on: without a name, JSON and languages without training would stay off.
  return mode === "off" || isHeldBack ? triggerOf(read) : "off";
}

/** Returns `languages` at one level of the settings with the mode of a language or a glob. */
export function withMode(atLevel: unknown, key: string, mode: Mode): Record<string, unknown> {
  return { ...(isRecord(atLevel) ? atLevel : {}), [key]: mode };
}

/**
 * Return whether an open document gets suggestions. A server and its model take memory, so none starts without need.
 * The model's languages are unknown until it is loaded. `asked`: a document for which the user requests one.
 */
export function needsServer(open: Iterable<OpenDocument>, read: Reader, asked?: OpenDocument): boolean {
  if (read("enabled") === false) {
    return false;
  }
  if (asked !== undefined && standingOf(asked.language, read, null, asked.file).mode !== "off") {
    return true;
  }
  const languages = read("languages");
  for (const { language, file } of open) {
    const isNamed = isRecord(languages) && languages[keyOf(language, file, languages)] !== undefined;
    const isCode = !WITHOUT_CODE.includes(language) || isNamed;
    if (isCode && standingOf(language, read, null, file).mode !== "off") {
      return true;
    }
  }
  return false;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
