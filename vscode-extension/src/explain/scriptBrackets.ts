// Unclosed brackets of JavaScript and its relatives, whose templates contain code. For the picture only.
import { take } from "./bracketStack";

/** Comments, strings and regular expressions. A slash after an operand divides. */
const SKIPPED =
  /\/\/.*|\/\*[\s\S]*?\*\/|(["'])(?:\\[\s\S]|(?!\1)[^\\\n])*\1|(?<=(?:^|[([{,;:?=!&|+\-*%^~<>}\n]|\b(?:return|typeof|case|in|of|void|delete|throw|await|yield))[ \t]*)\/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\[\n])+\//y;

/** A tag of JSX without expressions, and the text after it. After a name, `<` begins type arguments. */
const TAG = /(?<![\w$])<\/?(?:[A-Za-z][\w.:-]*(?:\s+[\w:-]+(?:=(?:"[^"]*"|'[^']*'))?)*\s*\/?)?>[^<>{}]*(?=[<{])/y;

const TEMPLATE_TEXT = /(?:\\[\s\S]|\$(?!\{)|[^\\`$])*/y;

/** Patterns of skipped text, by language. */
export const SCRIPTS: Readonly<Record<string, readonly RegExp[]>> = {
  javascript: [SKIPPED],
  jsx: [SKIPPED, TAG],
  typescript: [SKIPPED],
  tsx: [SKIPPED, TAG],
};

/** Returns the openers, outermost first. */
export function unclosedInScript(source: string, skipped: readonly RegExp[]): string[] {
  const open: string[] = []; // a backtick is an open template
  let at = 0;
  while (at < source.length) {
    if (open.at(-1) === "`") {
      at = afterText(source, at, open);
      continue;
    }
    const end = skipped.map((pattern) => endOf(pattern, source, at)).find((found) => found !== undefined);
    if (end !== undefined) {
      at = end;
      continue;
    }
    const character = source[at] ?? "";
    if (character === "`") {
      open.push(character);
    } else {
      take(character, open);
    }
    at += 1;
  }
  return open.filter((opener) => opener !== "`");
}

/** The place after a template's text, and after the `${` or the backtick that ends it. */
function afterText(source: string, at: number, open: string[]): number {
  const end = endOf(TEMPLATE_TEXT, source, at) ?? at;
  if (source[end] === "`") {
    open.pop();
    return end + 1;
  }
  if (source.startsWith("${", end)) {
    open.push("{");
    return end + 2;
  }
  return source.length;
}

function endOf(pattern: RegExp, source: string, at: number): number | undefined {
  pattern.lastIndex = at;
  return pattern.test(source) ? pattern.lastIndex : undefined;
}
