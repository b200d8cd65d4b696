// The brackets of a piece of source that are not closed in it. This is for a picture only: what may come is the
// server's to say, which has a parser.

const CLOSERS: Readonly<Record<string, string>> = { ")": "(", "]": "[", "}": "{" };

/** Comments, and strings that end in the piece; one that does not is where the cursor is, and is looked into. */
const SKIPPED = /#.*|("""|''')(?:\\[\s\S]|(?!\1)[^\\])*\1|(["'])(?:\\[\s\S]|(?!\2)[^\\\n])*\2/g;

/** The openers, the outermost first. */
export function unclosed(source: string): string[] {
  const open: string[] = [];
  for (const character of source.replace(SKIPPED, "")) {
    if ("([{".includes(character)) {
      open.push(character);
    } else if (CLOSERS[character] !== undefined && open.at(-1) === CLOSERS[character]) {
      open.pop();
    }
  }
  return open;
}
