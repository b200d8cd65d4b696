// VS Code's built-in rules of each language (brackets, auto-closed pairs, comments) against the package's definitions.
// Each intended difference is listed with its reason.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { VENV } from "./editor.mjs";

/**
 * The compared part of a built-in extension's `language-configuration.json`.
 * @typedef {{
 *   comments: { lineComment?: string, blockComment?: [string, string] },
 *   brackets: [string, string][],
 *   autoClosingPairs: ([string, string] | { open: string, close: string })[],
 * }} Rules
 */
/**
 * The compared part of a definition's TOML file.
 * @typedef {{
 *   brackets?: [string, string][],
 *   quotes?: string[],
 *   comments?: { prefix: string, suffix?: string }[],
 *   closers?: string,
 *   strings?: string[],
 * }} Definition
 */
/**
 * Texts that only VS Code or only the definition has, by the kind of rule.
 * @typedef {{ editor?: Partial<Record<Kind, string[]>>, definition?: Partial<Record<Kind, string[]>> }} Differences
 * @typedef {"brackets" | "quotes" | "comments"} Kind
 */

const EXTENSIONS = fileURLToPath(new URL("node_modules/code-server/lib/vscode/extensions/", import.meta.url));
const MANIFEST = fileURLToPath(new URL("../package.json", import.meta.url));

/** @type {Differences} */
const ECMASCRIPT = {
  editor: {
    brackets: ["${ }"], // the end of a template's text is one lexeme
    comments: ["//", "/** */"], // a line's ends with a break, which is a symbol; a documentation is a comment of blocks
  },
};

/** @type {Record<string, Differences>} */
const DIFFERENCES = {
  python: {
    editor: {
      quotes: ["`"], // Python 2's; a closer, since the editor writes it
      comments: ['""" """'], // a string to Python
    },
  },
  go: {
    editor: {
      comments: ["//"], // ends with a line break, which is a symbol in Go: both are one lexeme, no ignored one
    },
  },
  java: {
    editor: {
      comments: ["/** */"], // closed by itself as a comment, which it is to the definition as well
    },
  },
  rust: {
    definition: {
      quotes: ["'"], // lifetimes begin as characters do, so the editor closes none
    },
  },
  javascript: ECMASCRIPT,
  javascriptreact: ECMASCRIPT,
  typescript: ECMASCRIPT,
  typescriptreact: ECMASCRIPT,
  json: {
    editor: {
      brackets: ["( )"], // closed by itself, though it is none of its brackets
      quotes: ["'", "`"],
      comments: ["//", "/* */"], // those of JSON with comments
    },
  },
  html: {
    editor: {
      brackets: ["( )", "[ ]", "{ }", "<!-- -->"], // text to HTML; the editor counts a comment as a bracket
    },
  },
};

/** Files of VS Code's rules, by the editor's names of languages. */
const RULES = new Map(
  readdirSync(EXTENSIONS, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && existsSync(`${EXTENSIONS}${entry.name}/package.json`))
    .flatMap(({ name }) => {
      /** @type {{ contributes?: { languages?: { id: string, configuration?: string }[] } }} */
      const { contributes } = JSON.parse(readFileSync(`${EXTENSIONS}${name}/package.json`, "utf8"));
      const named = contributes?.languages ?? [];
      return named.flatMap(({ id, configuration }) =>
        configuration === undefined ? [] : [/** @type {const} */ ([id, `${EXTENSIONS}${name}/${configuration}`])],
      );
    }),
);

/** Definitions of the package by the editor's names, and the names of hosts, whose code is in these languages. */
const DEFINED = /** @type {{ languages: Record<string, Definition>, hosts: string[] }} */ (
  JSON.parse(execFileSync(`${VENV}python`, ["-c", definitionsProgram()], { encoding: "utf8" }))
);

function definitionsProgram() {
  return `
import json
from fim_server.language import Language
from fim_server.language.definition.compile import read_builtin
from fim_server.text.regions import hosts

read = [read_builtin(name) for name in Language.names()]
languages = {next(iter(one.editor_ids), one.name): {**one.spec, **one.of_spelling} for one in read}
print(json.dumps({"languages": languages, "hosts": [host.name for host in hosts()]}))
`;
}

/** @param {string} language @returns {Rules} */
function readRules(language) {
  return JSON.parse(readFileSync(RULES.get(language) ?? "", "utf8"));
}

/** @param {string} language @returns {Definition} */
function readDefinition(language) {
  return DEFINED.languages[language] ?? {};
}

/** The pairs that VS Code closes by itself. @param {Rules} rules @returns {[string, string][]} */
function closedPairs({ autoClosingPairs }) {
  return autoClosingPairs.map((pair) => (Array.isArray(pair) ? pair : [pair.open, pair.close]));
}

/** @param {readonly string[]} pair */
function spoken(pair) {
  return pair.map((text) => text.trim()).join(" ");
}

/** VS Code's brackets, quotes and comments. @param {Rules} rules @returns {Record<Kind, Set<string>>} */
function ofEditor(rules) {
  const pairs = closedPairs(rules);
  const { lineComment, blockComment } = rules.comments;
  const comments = pairs.filter(([open]) => open.startsWith(blockComment?.[0] ?? "\0"));
  return {
    brackets: new Set([...rules.brackets, ...pairs.filter(([open, close]) => isBracket(open, close))].map(spoken)),
    // A string's prefix makes more pairs with the same quotes.
    quotes: new Set(pairs.filter(([open, close]) => open.endsWith(close)).map(([, close]) => close)),
    comments: new Set([
      ...(lineComment === undefined ? [] : [lineComment]),
      ...[...(blockComment === undefined ? [] : [blockComment]), ...comments].map(spoken),
    ]),
  };
}

/** @param {string} open @param {string} close */
function isBracket(open, close) {
  return open.length === 1 && open !== close;
}

/** @param {Definition} definition @returns {Record<Kind, Set<string>>} */
function ofDefinition({ brackets = [], quotes = [], comments = [] }) {
  return {
    brackets: new Set(brackets.map(spoken)),
    quotes: new Set(quotes),
    comments: new Set(comments.map(({ prefix, suffix }) => spoken(suffix === undefined ? [prefix] : [prefix, suffix]))),
  };
}

/** @param {Set<string>} some @param {Set<string>} others */
function without(some, others) {
  return [...some].filter((one) => !others.has(one)).sort();
}

/** Languages of the package that the extension's settings name: those with a grammar of their own. */
function languages() {
  /** @type {{ contributes: { configuration: { properties: Record<string, { properties: Record<string, unknown> }> }[] } }} */
  const { contributes } = JSON.parse(readFileSync(MANIFEST, "utf8"));
  const named = Object.keys(contributes.configuration[0]?.properties["fim-server.languages"]?.properties ?? {});
  const defined = Object.keys(DEFINED.languages);
  const known = [...defined, ...DEFINED.hosts];
  assert.deepEqual(
    named.filter((language) => !known.includes(language)),
    [],
    "every language of the settings is the package's",
  );
  return named.filter((language) => defined.includes(language));
}

for (const language of languages()) {
  const rules = readRules(language);
  const definition = readDefinition(language);
  const [editor, own] = [ofEditor(rules), ofDefinition(definition)];
  const { editor: more = {}, definition: less = {} } = DIFFERENCES[language] ?? {};

  for (const kind of /** @type {const} */ (["brackets", "quotes", "comments"])) {
    test(`${language}: ${kind} are VS Code's, but for what is known`, () => {
      assert.deepEqual(without(editor[kind], own[kind]), [...(more[kind] ?? [])].sort(), "VS Code's alone");
      assert.deepEqual(without(own[kind], editor[kind]), [...(less[kind] ?? [])].sort(), "the definition's alone");
    });
  }

  test(`${language}: what VS Code writes right of the cursor is known as a closer`, () => {
    const { brackets = [], quotes = [] } = definition;
    const closers = definition.closers ?? [...brackets.map(([, close]) => close), ...quotes].join("");
    for (const [open, close] of closedPairs(rules)) {
      if (!["/*", "<!--"].some((comment) => open.startsWith(comment))) {
        // a comment's end is in the comment, without automatic suggestions
        assert.ok(closers.includes(close), `${close}, after ${open}`);
      }
    }
  });
}
