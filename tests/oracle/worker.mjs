// CPython that answers questions about texts: one line of JSON in, one out (tests/support/engine/verdicts.py has the questions).
// The argument is its version; its first line says which release it is. A fault of the WebAssembly ends the process; judge.py starts another one.
import fs from "node:fs";

const { loadPyodide } = await import(`pyodide-${process.argv[2]}`);
const python = await loadPyodide();
python.FS.writeFile("/home/pyodide/verdicts.py", fs.readFileSync(new URL("../support/engine/verdicts.py", import.meta.url)));
// Syntax trees have no cycles: the collector would look through them for nothing.
const answer = python.runPython("import gc, verdicts; gc.disable(); verdicts.answer");
write(python.runPython("import json, platform; json.dumps(platform.python_version())"));

let parts = [];
for await (const chunk of process.stdin) {
  parts.push(chunk);
  // One request is answered before the next is sent, so a line's end is a chunk's end.
  if (chunk[chunk.length - 1] !== 10) continue;
  const line = Buffer.concat(parts).toString("latin1");
  parts = [];
  try {
    write(answer(line));
  } catch (error) {
    fs.writeSync(2, `${error}\n`);
    process.exit(70);
  }
}

function write(line) {
  process.stdout.write(`${line}\n`, "latin1");
}
