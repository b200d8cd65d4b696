// Pure functions: what the settings mean. Nothing here imports the editor, so that node:test can run it.

export const SECTION = "fim-server";

/** The languages that are asked for, by the editor's ids; whether they are answered is for the settings to say. */
export const LANGUAGES: readonly string[] = ["python", "go", "java", "rust", "json"];

/** The context key with the languages, which package.json's `enablement` asks for. */
export const LANGUAGES_KEY = `${SECTION}.languages`;

/** Documents of these kinds are files, new files, cells of notebooks, and files of virtual workspaces. */
export const SCHEMES: readonly string[] = ["file", "untitled", "vscode-notebook-cell", "vscode-vfs"];

/** The settings that are the server's: sent to it under these names, and no others are. */
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

/** The settings that only a new server process takes up. */
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

/** The languages that the model has learnt, by id; null: all of them, or it is not known. */
export type Learnt = readonly string[] | null;

/** How a language stands, by the settings and by what the model has learnt. */
export interface Standing {
  readonly mode: Mode;
  readonly isLearnt: boolean;
  /** Completed only when asked, because the model has not learnt it and the settings do not name it. */
  readonly isHeldBack: boolean;
}

/** The settings that say how the server is started. */
export interface StartSettings {
  readonly path: string;
  readonly interpreter: string;
  readonly args: readonly string[];
  readonly logLevel: string;
}

/** What a setting may refer to. */
export interface Surroundings {
  readonly home: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The folders of the workspace, the first one first; none in an empty window. */
  readonly folders: readonly { readonly name: string; readonly path: string }[];
}

/** Reads one setting by its name without the section. */
export type Reader = (name: string) => unknown;

/**
 * Replaces a leading `~`, `${userHome}`, `${workspaceFolder}`, `${workspaceFolder:NAME}` and `${env:NAME}`. A variable
 * without a value is left as it stands, so that the error which names the path shows what was not replaced.
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

/** The settings that say how to start the server, with their variables replaced. */
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

/** The arguments of the program. The user's come last, and so stand above ours. */
export function serveArguments(settings: StartSettings): string[] {
  const isDefault = settings.logLevel === "" || settings.logLevel === "warning";
  return ["serve", ...(isDefault ? [] : ["--log-level", settings.logLevel]), ...settings.args];
}

/**
 * The settings as the server takes them: in `initializationOptions`, `didChangeConfiguration` and as the answer to
 * `workspace/configuration`. Empty text is what the settings editor leaves behind; it means "not set", as null does.
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

/** When completions are offered in a language: as the server decides it. */
export function standingOf(language: string, read: Reader, learnt: Learnt): Standing {
  const languages = read("languages");
  const own = isRecord(languages) ? asMode(languages[language]) : undefined;
  const isLearnt = learnt === null || learnt.includes(language);
  const isHeldBack = !isLearnt && own === undefined && triggerOf(read) === "automatic";
  return { mode: isHeldBack ? "manual" : (own ?? triggerOf(read)), isLearnt, isHeldBack };
}

function triggerOf(read: Reader): "automatic" | "manual" {
  return read("trigger") === "manual" ? "manual" : "automatic";
}

/** The value of `languages` at one level of the settings after the command that toggles a language. */
export function toggledLanguages(
  language: string,
  atLevel: unknown,
  read: Reader,
  learnt: Learnt,
): Record<string, unknown> {
  const { mode, isHeldBack } = standingOf(language, read, learnt);
  // What is turned on is named, because leaving the name out would leave JSON's default, off, in force, and would not
  // turn on what the model has not learnt.
  const toggled = mode === "off" || isHeldBack ? triggerOf(read) : "off";
  return { ...(isRecord(atLevel) ? atLevel : {}), [language]: toggled };
}

/**
 * Whether a server is needed: none is started for JSON files alone as long as JSON is off, nor while all is switched
 * off, because a server and its model take memory. What the model has learnt is known only once it is loaded.
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
