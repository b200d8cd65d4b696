// Comments, brackets and quotes that extensions contribute for a language. Data only, without the editor.

/** Most bytes of a configuration file. */
export const MOST_BYTES = 1 << 18;

/** Fields of VS Code's language configuration that the server reads. */
const FIELDS = ["comments", "brackets", "autoClosingPairs", "surroundingPairs"];

const COMMENTS = /"(?:\\.|[^"\\])*"|\/\/[^\n]*|\/\*(?:[\s\S]*?\*\/|[\s\S]*)/g;
const LAST_COMMAS = /"(?:\\.|[^"\\])*"|,(?=\s*[\]}])/g;

type Fields = Readonly<Record<string, unknown>>;

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Returns the files, below its folder, in which an extension configures a language; the last one counts. */
export function configurationPaths(manifest: unknown, language: string): string[] {
  const contributes = isFields(manifest) ? manifest["contributes"] : undefined;
  const languages = isFields(contributes) ? contributes["languages"] : undefined;
  return (Array.isArray(languages) ? languages : [])
    .filter((one) => isFields(one) && one["id"] === language)
    .map((one: Fields) => one["configuration"])
    .filter((path): path is string => typeof path === "string");
}

/** Reads a configuration file: JSON with comments and last commas. Returns undefined for any other text. */
export function readConfiguration(text: string): Fields | undefined {
  const value = readJson(without(without(text.replace(/^\uFEFF/, ""), COMMENTS), LAST_COMMAS));
  return isFields(value)
    ? Object.fromEntries(FIELDS.filter((name) => name in value).map((name) => [name, value[name]]))
    : undefined;
}

/** Reads JSON; undefined for any other text. */
export function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Removes what matches outside of strings, which match as well. */
function without(text: string, pattern: RegExp): string {
  return text.replace(pattern, (match) => (match.startsWith('"') ? match : ""));
}
