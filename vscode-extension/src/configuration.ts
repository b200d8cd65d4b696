// The settings and their meaning. Pure functions, without the editor, so that node:test can run them.

export const SECTION = "fim-server";

/** Languages of the extension, by the editor's ids. The settings decide which get suggestions. */
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

/** The server's names of languages that the editor calls otherwise, and of most code in files of other languages. */
const SERVER_NAMES: Readonly<Record<string, string>> = {
  javascriptreact: "jsx",
  typescriptreact: "tsx",
  html: "javascript",
  vue: "javascript",
  svelte: "javascript",
  astro: "typescript",
};

/** Context key with the languages, for `enablement` in package.json. */
export const LANGUAGES_KEY = `${SECTION}.languages`;

/** URI schemes of files, new files, notebook cells and files of virtual workspaces. */
export const SCHEMES: readonly string[] = ["file", "untitled", "vscode-notebook-cell", "vscode-vfs"];

/** Settings sent to the server, under these names. */
export const SERVER_SETTINGS = [
  "enabled",
  "trigger",
  "languages",
  "insideComments",
  "insideStrings",
  "multiline",
  "minConfidence",
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
  "secretFiles",
  "projectMemory",
  "projectContext",
  "askModel",
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
  "device",
  "gpuLayers",
  "adapter",
  "apiKeyEnv",
  "allowPlainHttp",
  "tokenizer",
] as const;

export type Mode = "automatic" | "manual" | "off";

/** Languages the model was trained on, by id; null: all, or unknown. */
export type Learnt = readonly string[] | null;

/** Mode of a language, by the settings and the model's training. */
export interface Standing {
  readonly mode: Mode;
  readonly isLearnt: boolean;
  /** True if the language gets suggestions on request only, for lack of training and of a setting that names it. */
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
 * which the settings editor leaves behind, becomes null.
 */
export function serverSettings(read: Reader, surroundings: Surroundings): Record<string, unknown> {
  const settings: Record<string, unknown> = {};
  for (const name of SERVER_SETTINGS) {
    const value = read(name);
    if (value !== undefined) {
      settings[name] = value;
    }
  }
  for (const name of ["pythonVersion", "model", "device", "adapter", "apiKeyEnv", "tokenizer"]) {
    if (settings[name] === "") {
      settings[name] = null;
    }
  }
  for (const name of ["model", "adapter", "tokenizer"]) {
    const path = settings[name];
    if (typeof path === "string") {
      settings[name] = expand(path, surroundings);
    }
  }
  return settings;
}

function asMode(value: unknown): Mode | undefined {
  return value === "automatic" || value === "manual" || value === "off" ? value : undefined;
}

/** Returns the mode of a language as the server decides it. */
export function standingOf(language: string, read: Reader, learnt: Learnt): Standing {
  const languages = read("languages");
  const name = SERVER_NAMES[language] ?? language;
  const own = isRecord(languages) ? (asMode(languages[language]) ?? asMode(languages[name])) : undefined;
  const isLearnt = learnt === null || learnt.includes(name);
  const isHeldBack = !isLearnt && own === undefined && triggerOf(read) === "automatic";
  return { mode: isHeldBack ? "manual" : (own ?? triggerOf(read)), isLearnt, isHeldBack };
}

function triggerOf(read: Reader): "automatic" | "manual" {
  return read("trigger") === "manual" ? "manual" : "automatic";
}

/** Returns `languages` at one level of the settings after toggling a language. */
export function toggledLanguages(
  language: string,
  atLevel: unknown,
  read: Reader,
  learnt: Learnt,
): Record<string, unknown> {
  const { mode, isHeldBack } = standingOf(language, read, learnt);
  // Name the language when turning it on: without a name, JSON and languages without training would stay off.
  const toggled = mode === "off" || isHeldBack ? triggerOf(read) : "off";
  return { ...(isRecord(atLevel) ? atLevel : {}), [language]: toggled };
}

/**
 * Return whether an open language gets suggestions. A server and its model take memory, so none starts without need.
 * The model's languages are unknown until it is loaded.
 */
export function needsServer(openLanguages: Iterable<string>, read: Reader): boolean {
  if (read("enabled") === false) {
    return false;
  }
  for (const language of openLanguages) {
    if (LANGUAGES.includes(language) && standingOf(language, read, null).mode !== "off") {
      return true;
    }
  }
  return false;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
