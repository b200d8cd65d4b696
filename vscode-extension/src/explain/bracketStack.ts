// The open brackets of a source, outermost first.

const CLOSERS: Readonly<Record<string, string>> = { ")": "(", "]": "[", "}": "{" };

/** Adds an opener to the open ones, or removes the one that a closer closes. */
export function take(character: string, open: string[]): void {
  if ("([{".includes(character)) {
    open.push(character);
  } else if (CLOSERS[character] !== undefined && open.at(-1) === CLOSERS[character]) {
    open.pop();
  }
}
