// The symbols of files of JavaScript, JSX, TypeScript and TSX, as Babel reads them.
//
//     node symbols.mjs LANGUAGE [VARIANT]
//
// reads texts as the judge does, and answers `ok` and a list of numbers in JSON: the start and the end of each symbol
// and comment, in characters, and 1 for a symbol, 0 for a comment.
import { parse } from "@babel/parser";
import { answering, line } from "./frames.mjs";
import { asked, PLUGINS } from "./parsers.mjs";

const COMMENTS = new Set(["CommentLine", "CommentBlock", "#!..."]);

/** Babel's tokens of a text, in the first kind of file that has a syntax tree. */
function tokensOf(text, { suffix, kinds }) {
  let first;
  for (const sourceType of kinds) {
    try {
      return parse(text, { sourceType, plugins: PLUGINS[suffix], tokens: true, errorRecovery: true }).tokens;
    } catch (error) {
      first ??= error;
    }
  }
  throw first;
}

/** Symbols as the language has them: Babel divides templates and private names. */
function* joined(tokens) {
  const fields = []; // of each open brace, whether it is a template's
  let begun = null; // start of a piece of a template
  for (let at = 0; at < tokens.length; at++) {
    const { type, start, end } = tokens[at];
    const label = type.label ?? type;
    if (label === "eof") continue;
    const continues = label === "}" && fields.at(-1) === true;
    if (label === "{" || label === "${") fields.push(label === "${");
    if (label === "}") fields.pop();
    if (continues || (label === "`" && begun === null)) {
      begun = start;
    } else if (begun !== null) {
      if (label === "template") continue;
      yield [begun, end, 1];
      begun = null;
    } else if (label === "#") {
      yield [start, tokens[++at].end, 1];
    } else if (label !== "jsxText" || tokens[at].value.trim() !== "") {
      yield [start, end, COMMENTS.has(label) ? 0 : 1];
    }
  }
}

/** The numbers of characters before each UTF-16 unit that is asked for, in order. */
function counting(text) {
  let at = 0;
  let characters = 0;
  return (unit) => {
    for (; at < unit; at++) {
      // The second half of a pair is no character of its own.
      if ((text.charCodeAt(at) & 0xfc00) !== 0xdc00) characters++;
    }
    return characters;
  };
}

const [language, variant = ""] = process.argv.slice(2);
let file;
let wrong;
try {
  file = asked(language, variant);
} catch (error) {
  wrong = error;
}

answering((text) => {
  if (wrong) return line("?", wrong.message);
  let tokens;
  try {
    tokens = tokensOf(text, file);
  } catch (error) {
    return line(error.reasonCode === undefined ? "?" : "no", error.message);
  }
  const counted = counting(text);
  const numbers = [];
  for (const [start, end, isSymbol] of joined(tokens)) numbers.push(counted(start), counted(end), isSymbol);
  return `ok ${JSON.stringify(numbers)}\n`;
});
