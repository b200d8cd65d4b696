// The judge of JavaScript, JSX, TypeScript and TSX.
//
//     node judge.mjs PARSERS LANGUAGE [VARIANT]
//
// reads texts, each after its length in four bytes, big-endian, and answers each with a line. PARSERS is `oxc`, `babel`
// or `typescript`, or several, joined by a plus: a text is taken if all of them take it.
import { answering, line } from "./frames.mjs";
import { asked, PARSERS } from "./parsers.mjs";

const [names, language, variant = ""] = process.argv.slice(2);

async function judge() {
  try {
    const file = asked(language, variant);
    const parsers = await Promise.all(names.split("+").map((name) => PARSERS[name](file)));
    return (text) => {
      for (const parser of parsers) {
        const why = parser(text);
        if (why !== null) return line("no", why);
      }
      return "ok\n";
    };
  } catch (error) {
    return () => line("?", String(error.message));
  }
}

const verdict = await judge();

function answer(text) {
  try {
    return verdict(text);
  } catch (error) {
    // The stack is too small for the text, or a parser has a bug.
    return line("?", String(error.message ?? error));
  }
}

answering(answer);
