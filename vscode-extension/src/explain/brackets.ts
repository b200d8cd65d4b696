// The brackets of a piece of source that are not closed in it. This is for a picture only: what may come is the
// server's to say, which has a parser.

const CLOSERS: Readonly<Record<string, string>> = { ")": "(", "]": "[", "}": "{" };

/**
 * By language, comments, and strings that end in the piece; one that does not is where the cursor is, and is looked into.
 * Rust's lifetimes begin as characters do, and its strings go on over lines.
 */
const SKIPPED: Readonly<Record<string, RegExp>> = {
  python: /#.*|("""|''')(?:\\[\s\S]|(?!\1)[^\\])*\1|(["'])(?:\\[\s\S]|(?!\2)[^\\\n])*\2/g,
  go: /\/\/.*|\/\*[\s\S]*?\*\/|`[^`]*`|(["'])(?:\\.|(?!\1)[^\\\n])*\1/g,
  java: /\/\/.*|\/\*[\s\S]*?\*\/|"""(?:\\[\s\S]|(?!""")[^\\])*"""|(["'])(?:\\.|(?!\1)[^\\\n])*\1/g,
  rust: /\/\/.*|\/\*[\s\S]*?\*\/|\b[bc]?r(#*)"[\s\S]*?"\1|"(?:\\[\s\S]|[^\\"])*"|'(?:\\.[^'\n]*|[^\\'\n])'/gu,
  json: /"(?:\\.|[^\\"\n])*"/g,
};

/**
 * The openers, the outermost first.
 * @param language Its id, and whatever follows that behind a blank, as a version does.
 */
export function unclosed(source: string, language: string): string[] {
  const open: string[] = [];
  const skipped = SKIPPED[language.split(" ", 1)[0] ?? ""];
  for (const character of skipped === undefined ? source : source.replace(skipped, "")) {
    if ("([{".includes(character)) {
      open.push(character);
    } else if (CLOSERS[character] !== undefined && open.at(-1) === CLOSERS[character]) {
      open.pop();
    }
  }
  return open;
}
