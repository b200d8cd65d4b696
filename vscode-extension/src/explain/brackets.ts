// Unclosed brackets of a piece of source, for the picture only. The server's parser decides what may come.
import { take } from "./bracketStack";
import { SCRIPTS, unclosedInScript } from "./scriptBrackets";

/**
 * Comments and closed strings, by language. An unclosed string holds the cursor and is searched. Rust's lifetimes begin
 * like characters, and its strings span lines.
 */
const SKIPPED: Readonly<Record<string, RegExp>> = {
  python: /#.*|("""|''')(?:\\[\s\S]|(?!\1)[^\\])*\1|(["'])(?:\\[\s\S]|(?!\2)[^\\\n])*\2/g,
  go: /\/\/.*|\/\*[\s\S]*?\*\/|`[^`]*`|(["'])(?:\\.|(?!\1)[^\\\n])*\1/g,
  java: /\/\/.*|\/\*[\s\S]*?\*\/|"""(?:\\[\s\S]|(?!""")[^\\])*"""|(["'])(?:\\.|(?!\1)[^\\\n])*\1/g,
  rust: /\/\/.*|\/\*[\s\S]*?\*\/|\b[bc]?r(#*)"[\s\S]*?"\1|"(?:\\[\s\S]|[^\\"])*"|'(?:\\.[^'\n]*|[^\\'\n])'/gu,
  json: /"(?:\\.|[^\\"\n])*"/g,
};

/**
 * Returns the openers, outermost first.
 * @param language its id, optionally followed by a blank and a version
 */
export function unclosed(source: string, language: string): string[] {
  const id = language.split(" ", 1)[0] ?? "";
  const script = SCRIPTS[id];
  if (script !== undefined) {
    return unclosedInScript(source, script);
  }
  const open: string[] = [];
  const skipped = SKIPPED[id];
  for (const character of skipped === undefined ? source : source.replace(skipped, "")) {
    take(character, open);
  }
  return open;
}
