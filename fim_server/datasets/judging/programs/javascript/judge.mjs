// The judge of JavaScript, JSX, TypeScript and TSX.
//
//     node judge.mjs PARSERS LANGUAGE [VARIANT]
//
// reads texts, each after its length in four bytes, big-endian, and answers each with a line. PARSERS is `oxc`, `babel` or
// `typescript`, or several, joined by a plus: a text is taken if all of them take it.
import { asked, PARSERS } from "./parsers.mjs";

const LONGEST_MESSAGE = 300;

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

function line(word, message) {
  return `${word} ${message.replace(/\s+/g, " ").slice(0, LONGEST_MESSAGE)}\n`;
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

let received = [];
let size = 0;
let wanted = 4;
process.stdin.on("data", (chunk) => {
  received.push(chunk);
  size += chunk.length;
  if (size < wanted) return;
  const buffer = Buffer.concat(received);
  let at = 0;
  let answers = "";
  wanted = 4;
  while (buffer.length - at >= 4) {
    wanted = 4 + buffer.readUInt32BE(at);
    if (buffer.length - at < wanted) break;
    answers += answer(buffer.toString("utf8", at + 4, at + wanted));
    at += wanted;
    wanted = 4;
  }
  received = [buffer.subarray(at)];
  size = buffer.length - at;
  if (answers) process.stdout.write(answers);
});
