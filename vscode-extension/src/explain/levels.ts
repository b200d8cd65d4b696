// Open constructs around the cursor as boxes, with their closing brackets on the right. Brackets nest, so the first
// closer belongs to the innermost open bracket. A closer without an open bracket needs one in the inserted text.
import type { Closer, Explanation, OpenConstruct } from "../protocol";
import { unclosed } from "./brackets";

/** A bracket that is open left of the cursor. */
export interface OpenBracket {
  readonly opener: string;
  /** Its closer on the right; absent if the inserted text has to close it. */
  readonly closer?: Closer;
}

/** One box of the picture. */
export interface Level {
  /** Constructs that begin at the same place, outermost first. */
  readonly names: readonly string[];
  /** Counted from 0. */
  readonly line: number;
  /** The source of the construct on its first line, up to where the next box begins. */
  readonly text: string;
  /** Innermost first. */
  readonly brackets: readonly OpenBracket[];
}

export interface Picture {
  /** Outermost first. */
  readonly levels: readonly Level[];
  /** Closers of brackets that the text has to open, the first one first. */
  readonly unopened: readonly Closer[];
}

/** The text of a line of the document; undefined outside of it. */
export type LineText = (line: number) => string | undefined;

type Around = Pick<Explanation, "language" | "position" | "openLeft" | "openRight">;

export function picture(explanation: Around, lineText: LineText): Picture {
  const closers = [...explanation.openRight];
  const unopened: Closer[] = [];
  const boxes = merged(explanation.openLeft);
  const levels: Level[] = [];
  for (let index = boxes.length - 1; index >= 0; index--) {
    const box = boxes[index];
    if (box !== undefined) {
      const own = ownSource(box, boxes[index + 1], explanation.position, lineText);
      const brackets = unclosed(own, explanation.language)
        .reverse()
        .map((opener) => matched(opener, closers, unopened));
      levels.unshift({ ...box, text: (own.split("\n", 1)[0] ?? "").trim(), brackets });
    }
  }
  return { levels, unopened: [...unopened, ...closers] };
}

interface Box {
  readonly names: readonly string[];
  readonly line: number;
  readonly text: string;
}

/**
 * Returns boxes, outermost first. Constructs that begin at one place share a box, and a construct shares it with its
 * block, but not with a second one.
 */
function merged(innermostFirst: readonly OpenConstruct[]): Box[] {
  const boxes: Box[] = [];
  for (const { name, line, text } of innermostFirst.toReversed()) {
    const outer = boxes.at(-1);
    const sharesPlace = outer !== undefined && outer.line === line && outer.text === text;
    const isItsBlock = name === "block" && outer?.names.at(-1) !== "block";
    if (outer !== undefined && (sharesPlace || isItsBlock)) {
      boxes[boxes.length - 1] = { ...outer, names: [...outer.names, name] };
    } else {
      boxes.push({ names: [name], line, text });
    }
  }
  return boxes;
}

/** The source from the beginning of a construct to that of the next one inside it, or to the cursor. */
function ownSource(box: Box, inner: Box | undefined, cursor: Explanation["position"], lineText: LineText): string {
  const endLine = inner?.line ?? cursor.line;
  if (endLine <= box.line) {
    return inner === undefined ? box.text : box.text.slice(0, overlap(box.text, inner.text));
  }
  const first = lineText(box.line) ?? "";
  const start = first.indexOf(box.text);
  const lines = [start < 0 ? box.text : first.slice(start)];
  for (let line = box.line + 1; line < endLine; line++) {
    lines.push(lineText(line) ?? "");
  }
  const last = lineText(endLine) ?? "";
  const end = inner === undefined ? cursor.character : Math.max(0, last.indexOf(inner.text));
  lines.push(last.slice(0, end));
  return lines.join("\n");
}

/** Offset of the inner text in the outer one on the same line. The inner text may be cut off. */
function overlap(outer: string, inner: string): number {
  for (let start = 1; start < outer.length; start++) {
    if (inner.startsWith(outer.slice(start))) {
      return start;
    }
  }
  return outer.length;
}

const PAIRS: Readonly<Record<string, string>> = { "(": ")", "[": "]", "{": "}" };

/** Removes a bracket's closer from `closers`. Those before it close brackets that the inserted text has to open. */
function matched(opener: string, closers: Closer[], unopened: Closer[]): OpenBracket {
  const index = closers.findIndex((closer) => closer.text.trim() === PAIRS[opener]);
  if (index < 0) {
    return { opener };
  }
  const passed = closers.splice(0, index + 1);
  const closer = passed.pop();
  unopened.push(...passed);
  return closer === undefined ? { opener } : { opener, closer };
}

/** Returns a rule's name in words: `function definition` for `function_def`. */
export function spoken(name: string): string {
  return name
    .replace(/_stmt$/, " statement")
    .replace(/_def$/, " definition")
    .replace(/_expr$/, " expression")
    .replaceAll("_", " ")
    .trim();
}

/** Expected lexemes by kind. */
export interface Expected {
  readonly keywords: readonly string[];
  readonly symbols: readonly string[];
  /** Lexemes that the grammar names, in words. */
  readonly lexemes: readonly Lexeme[];
}

export interface Lexeme {
  readonly words: string;
  /** The grammar's names for it. */
  readonly names: readonly string[];
}

export function grouped(expected: readonly string[]): Expected {
  const literals = expected.filter(isLiteral).map((literal) => literal.slice(1, -1));
  return {
    keywords: literals.filter((literal) => /^\p{L}/u.test(literal)),
    symbols: literals.filter((literal) => !/^\p{L}/u.test(literal)),
    lexemes: inWords(expected.filter((lexeme) => !isLiteral(lexeme))),
  };
}

/** Words for lexemes whose names are unclear. An f-string has a lexeme for each kind of quotes. */
const LEXEME_WORDS: readonly (readonly [RegExp, string])[] = [
  [/^F_(STRING|R?(SSS|DDD|S|D))$/, "f-string"],
  [/^T_(STRING|R?(SSS|DDD|S|D))$/, "t-string"],
  [/^R?(SSS|DDD|S|D)_(OPEN|END|SPEC|CLOSE|MORE|LAST)$/, "rest of the string"],
  [/^(_NEWLINE|NL)$/, "line break"],
  [/^_INDENT$/, "deeper indentation"],
  [/^_DEDENT$/, "end of the block"],
  [/^IMAGINARY$/, "imaginary number"],
];

function inWords(names: readonly string[]): Lexeme[] {
  const byWords = new Map<string, string[]>();
  for (const name of names) {
    const words = LEXEME_WORDS.find(([pattern]) => pattern.test(name))?.[1] ?? spoken(name.toLowerCase());
    byWords.set(words, [...(byWords.get(words) ?? []), name]);
  }
  return [...byWords].map(([words, names]) => ({ words, names }));
}

function isLiteral(lexeme: string): boolean {
  return lexeme.length > 2 && lexeme.startsWith('"') && lexeme.endsWith('"');
}
