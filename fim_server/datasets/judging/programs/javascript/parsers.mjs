// Three parsers with one answer: null for a text they take, or why they refuse it. `early NAME: …` is said of a text
// whose syntax is right.
import { isEarly, isEarlyMessage } from "./early.mjs";

/** Syntax of each language, as oxc names it. */
const LANGUAGES = { javascript: "js", jsx: "jsx", typescript: "ts", tsx: "tsx" };
const DECLARATIONS = "d.ts";
const KINDS = ["module", "commonjs", "script"];
/** A file whose kind nothing tells is a module if it can be one. */
const UNTOLD = ["module", "commonjs"];
const ANY = "any";

/** Babel's plug-ins for what oxc reads without any, by the syntax. */
const COMMON = [["decorators", { version: "2023-11" }], "decoratorAutoAccessors"];
const TYPED = [...COMMON, "deferredImportEvaluation"];
export const PLUGINS = {
  js: COMMON,
  jsx: ["jsx", ...COMMON],
  ts: ["typescript", ...TYPED],
  tsx: ["typescript", "jsx", ...TYPED],
  dts: [["typescript", { dts: true }], ...TYPED],
};

/** Error of Babel about what TypeScript takes: decorators of parameters. */
const TAKEN_TYPED = "UnsupportedParameterDecorator";

/**
 * Returns the syntax to read, and the kinds of file to try in turn.
 *
 * A variant is words, as in "module", "d.ts" or "tsx-script"; "any" is a kind that nothing tells. Numbers of versions
 * say nothing here.
 */
export function asked(language, variant) {
  let suffix;
  let kinds = UNTOLD;
  for (const word of [language, ...variant.split(/[-\s]+/)]) {
    if (KINDS.includes(word)) kinds = [word];
    else if (word === DECLARATIONS) [suffix, kinds] = ["dts", ["module"]];
    else if (word in LANGUAGES) suffix = LANGUAGES[word];
    else if (Object.values(LANGUAGES).includes(word)) suffix = word;
    else if (word !== ANY && !/^[\d.]*$/.test(word)) throw new Error(`no language or variant ${word}`);
  }
  return { suffix, kinds };
}

/** A message with its place: the line from 1 on, the column from 0 on, both in characters. */
function placed(message, text, offset) {
  if (offset === undefined) return message;
  const lines = text.slice(0, offset).split(/\r\n|[\n\r\u2028\u2029]/);
  return `${message} (${lines.length}:${[...lines.at(-1)].length})`;
}

/** The verdict of a kind of file that takes a text; else one of early errors alone; else the first kind's. */
function best(kinds, verdict) {
  let told = null;
  for (const kind of kinds) {
    const why = verdict(kind);
    if (why === null) return null;
    if (told === null || (why.startsWith("early ") && !told.startsWith("early "))) told = why;
  }
  return told;
}

async function oxc({ suffix, kinds }) {
  const { parseSync } = await import("oxc-parser");
  return (text) =>
    best(kinds, (sourceType) => {
      const { errors } = parseSync(`a.${suffix}`, text, { lang: suffix, sourceType });
      if (errors.length === 0) return null;
      const hard = errors.find(({ message }) => !isEarlyMessage(message));
      const told = hard ?? errors[0];
      return placed(hard ? told.message : `early ${told.message}`, text, told.labels?.[0]?.start);
    });
}

async function babel({ suffix, kinds }) {
  const { parse } = await import("@babel/parser");
  const plugins = PLUGINS[suffix];
  const isTyped = suffix.endsWith("ts") || suffix === "tsx";
  return (text) =>
    best(kinds, (sourceType) => {
      let errors;
      try {
        ({ errors } = parse(text, { sourceType, plugins, errorRecovery: true, attachComment: false }));
      } catch (error) {
        if (error.reasonCode === undefined) throw error;
        return `${error.reasonCode}: ${error.message}`;
      }
      if (isTyped) errors = errors.filter(({ reasonCode }) => reasonCode !== TAKEN_TYPED);
      if (errors.length === 0) return null;
      const hard = errors.find((error) => !isEarly(error, sourceType === "module"));
      return hard ? `${hard.reasonCode}: ${hard.message}` : `early ${errors[0].reasonCode}: ${errors[0].message}`;
    });
}

/** TypeScript's errors about comments that are directives: `///` and a tag. */
const DIRECTIVES = new Set([1084, 1453]);

/** TypeScript's own parser, which takes more than the language: only its refusals tell something. */
async function typescript({ suffix }) {
  const { default: ts } = await import("typescript");
  const name = suffix === "dts" ? "a.d.ts" : `a.${suffix}`;
  const options = {
    languageVersion: ts.ScriptTarget.Latest,
    jsDocParsingMode: ts.JSDocParsingMode.ParseNone,
  };
  return (text) => {
    const errors = ts.createSourceFile(name, text, options, false).parseDiagnostics;
    const error = errors.find(({ code }) => !DIRECTIVES.has(code));
    if (error === undefined) return null;
    return placed(`TS${error.code}: ${ts.flattenDiagnosticMessageText(error.messageText, " ")}`, text, error.start);
  };
}

/** Parsers by name: loaded at the first use, each returns its verdict on a text. */
export const PARSERS = { oxc, babel, typescript };
