// Words and numbers for people, used in more than one place.
import type { Guarantee, Latency } from "./protocol";

/** Explanation of each guarantee. */
export const GUARANTEE_WORDS: Readonly<Record<Guarantee, string>> = {
  exact: "the whole file parses with the text",
  balanced: "brackets, tags, strings and comments of the whole file close with the text",
  partial:
    "the rest of the file parses (if balanced: closes) with the text; broken or distant lines or markup are left out, " +
    "or text has to follow",
  none: "the file is broken elsewhere or its language has no grammar, so the text was not checked",
};

const LANGUAGE_NAMES: Readonly<Record<string, string>> = {
  python: "Python",
  go: "Go",
  java: "Java",
  rust: "Rust",
  javascript: "JavaScript",
  javascriptreact: "JSX",
  jsx: "JSX",
  typescript: "TypeScript",
  typescriptreact: "TSX",
  tsx: "TSX",
  json: "JSON",
  html: "HTML",
  vue: "Vue",
  svelte: "Svelte",
  astro: "Astro",
  c: "C",
  cpp: "C++",
  csharp: "C#",
  css: "CSS",
  dart: "Dart",
  dockerfile: "Dockerfile",
  hcl: "HCL",
  kotlin: "Kotlin",
  less: "Less",
  lua: "Lua",
  markdown: "Markdown",
  php: "PHP",
  r: "R",
  ruby: "Ruby",
  scala: "Scala",
  scss: "SCSS",
  shellscript: "Shell",
  sql: "SQL",
  swift: "Swift",
  toml: "TOML",
  xml: "XML",
  yaml: "YAML",
  zig: "Zig",
};

/** `Python` for `python`, `Python 3.11` for `python 3.11`. */
export function languageName(title: string): string {
  return title.replace(/^\S+/, (id) => LANGUAGE_NAMES[id] ?? id);
}

/** `1 item`, `2 items`. */
export function counted(count: number, noun: string, plural = `${noun}s`): string {
  return `${grouped(count)} ${count === 1 ? noun : plural}`;
}

/** `1,234,567`, in English. */
export function grouped(value: number): string {
  return value.toLocaleString("en-US");
}

/** `93 MB`. */
export function megabytes(bytes: number): string {
  return `${grouped(Math.round(bytes / 1_000_000))} MB`;
}

const LONGEST_MODEL_NAME = 24;

/** Short name of a model: the last part of a path or hub name, without its ending. */
export function shortModelName(name: string): string {
  const last = name.split(/[\\/]/).pop() || name;
  const stem = last.replace(/\.gguf$/i, "");
  // `$(` begins an icon in VS Code.
  const plain = stem.replaceAll("$(", "$ (");
  return plain.length > LONGEST_MODEL_NAME ? `${plain.slice(0, LONGEST_MODEL_NAME - 1)}…` : plain;
}

/** `130 ms`, `1.3 s`; fractions of small values only. */
export function duration(milliseconds: number): string {
  if (milliseconds >= 1000) {
    return `${(milliseconds / 1000).toFixed(1)} s`;
  }
  return `${milliseconds > 0 && milliseconds < 10 ? Number(milliseconds.toFixed(1)) : Math.round(milliseconds)} ms`;
}

/** `40 %`, `<1 %`. */
export function percentage(share: number): string {
  const percent = share * 100;
  return percent > 0 && percent < 1 ? "<1 %" : `${Math.round(percent)} %`;
}

const LATENCY_PARTS: readonly (readonly [keyof Latency, string])[] = [
  ["debounceMs", "pause"],
  ["queueMs", "waiting"],
  ["openMs", "reading the file"],
  ["prefillMs", "reading by the model"],
  ["decodeMs", "writing by the model"],
  ["engineMs", "grammar"],
  ["serverMs", "the rest"],
];

/** Stages by duration, largest first, without those below 0.5 ms. */
export function latencyParts(latency: Latency): string {
  return LATENCY_PARTS.map(([part, words]) => ({ words, spent: latency[part] }))
    .filter(({ spent }) => spent >= 0.5)
    .sort((one, other) => other.spent - one.spent)
    .map(({ words, spent }) => `${words} ${duration(spent)}`)
    .join(", ");
}
