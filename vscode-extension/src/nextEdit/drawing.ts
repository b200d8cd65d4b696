// Drawing of an edit: by line, the text to strike through and the text beside it. Independent of VS Code.
import type { NextEdit, Position } from "../protocol";

/** Longest text beside a line, in UTF-16 units. */
const MOST_UNITS = 120;
/** Sign of a line break within the text beside a line. */
const BREAK = " ⏎ ";

const WORD = /[\w\u0080-\uffff]/;

/** Changed part of a line: `start` to `end` is struck through, and `text` follows. */
export interface Change {
  readonly line: number;
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

export interface Drawing {
  /** By line, at least one. */
  readonly changes: readonly Change[];
  /** End of the changed text in the document with the edit. */
  readonly endAfter: Position;
  /** The changed lines as a unified diff without a header. */
  readonly diff: string;
}

/** Return the drawing of an edit; undefined if it changes nothing to be seen. `lineAt` returns a document's line. */
export function drawingOf({ range, text }: NextEdit, lineAt: (line: number) => string): Drawing | undefined {
  const { start, end } = range;
  const before = Array.from({ length: end.line - start.line + 1 }, (_, index) => lineAt(start.line + index));
  const left = lineAt(start.line).slice(0, start.character);
  const after = (left + text + lineAt(end.line).slice(end.character)).split(/\r\n|\r|\n/);
  const [head, tail] = commonEnds(before, after);
  const [old, fresh] = [before.slice(head, before.length - tail), after.slice(head, after.length - tail)];
  const line = start.line + head;
  const changes = old.length > 0 ? replaced(line, old, fresh) : inserted(line, fresh, lineAt);
  if (changes.length === 0) {
    return undefined;
  }
  return {
    changes,
    endAfter: endOfChange(line, old, fresh),
    diff: [...old.map((one) => `- ${one}`), ...fresh.map((one) => `+ ${one}`)].join("\n"),
  };
}

/** Draw each new line beside the old one in its place, and further new lines after the last. */
function replaced(line: number, old: readonly string[], fresh: readonly string[]): Change[] {
  return old.flatMap((before, index) => {
    const after = fresh[index] ?? "";
    const below = index === old.length - 1 ? fresh.slice(old.length).map(broken).join("") : "";
    if (before === after && below === "") {
      return [];
    }
    const [head, commonTail] = commonWords(before, after);
    const tail = below === "" ? commonTail : 0; // lines that come below must not stand within the line
    const text = shortened(after.slice(head, after.length - tail) + below);
    return [{ line: line + index, start: head, end: before.length - tail, text }];
  });
}

/** Draw new lines at the end of the line above, in the first line at its beginning. */
function inserted(line: number, fresh: readonly string[], lineAt: (line: number) => string): Change[] {
  if (fresh.length === 0) {
    return [];
  }
  if (line === 0) {
    return [{ line, start: 0, end: 0, text: shortened(fresh.map((one) => one.trim() + BREAK).join("")) }];
  }
  const end = lineAt(line - 1).length;
  return [{ line: line - 1, start: end, end, text: shortened(fresh.map(broken).join("")) }];
}

function broken(line: string): string {
  return BREAK + line.trim();
}

function endOfChange(line: number, old: readonly string[], fresh: readonly string[]): Position {
  const last = fresh.at(-1) ?? "";
  const tail = old.length === fresh.length ? commonWords(old.at(-1) ?? "", last)[1] : 0;
  return { line: line + Math.max(0, fresh.length - 1), character: last.length - tail };
}

/** Return the lengths of the common beginning and end of two texts, without cutting a word. */
function commonWords(one: string, other: string): [head: number, tail: number] {
  let [head, tail] = commonEnds(one, other);
  const cuts = (at: number, text: string) => WORD.test(text[at - 1] ?? "") && WORD.test(text[at] ?? "");
  while (head > 0 && (cuts(head, one) || cuts(head, other))) {
    head--;
  }
  while (tail > 0 && (cuts(one.length - tail, one) || cuts(other.length - tail, other))) {
    tail--;
  }
  return [head, tail];
}

/** Return the lengths of the common beginning and end of two sequences, which do not overlap. */
function commonEnds<T>(one: ArrayLike<T>, other: ArrayLike<T>): [head: number, tail: number] {
  const most = Math.min(one.length, other.length);
  let head = 0;
  while (head < most && one[head] === other[head]) {
    head++;
  }
  let tail = 0;
  while (tail < most - head && one[one.length - 1 - tail] === other[other.length - 1 - tail]) {
    tail++;
  }
  return [head, tail];
}

function shortened(text: string): string {
  return text.length > MOST_UNITS ? `${text.slice(0, MOST_UNITS)}…` : text;
}

/** Return the words that lead to a line, counted from 0, from the cursor's. */
export function wayTo(line: number, cursorLine: number): string {
  return `${line < cursorLine ? "↑" : "↓"} line ${line + 1}: Tab`;
}

/** Return the words that lead to a line, counted from 0, of another file. */
export function wayToFile(path: string, line: number): string {
  return `→ ${path.slice(path.lastIndexOf("/") + 1)}, line ${line + 1}: Tab`;
}
