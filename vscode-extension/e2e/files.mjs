// Types one place in a file of each kind of files/files.json in VS Code, and writes docs/files.md with each suggestion, its
// guarantee and a picture. files/outcomes.json keeps the last outcomes, so that some can be typed again.
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { beginning, code, MODEL, ONLY, pictureName, playAll, readJson, reasonOf, VSCODE } from "./playing.mjs";

/** @typedef {import("./playing.mjs").Situation} Situation */
/** @typedef {import("./playing.mjs").Found} Found */

const HERE = fileURLToPath(new URL("files/", import.meta.url));
const PROJECT = fileURLToPath(new URL("../../tests/cases/files/", import.meta.url));
const DOCS = fileURLToPath(new URL("../../docs/", import.meta.url));
const OUTCOMES = join(HERE, "outcomes.json");

const GUARANTEE = /guarantee (\w+)/;

/**
 * @param {Situation[]} all
 * @param {Found} found
 */
function page(all, found) {
  const rows = all.map((situation, index) => {
    const { offered, asked, log } = found[situation.name] ?? { offered: "", asked: "", log: "" };
    const shown = code(offered || asked) || `nothing${reasonOf(log) && `: ${reasonOf(log)}`}`;
    const when = offered === "" ? (asked === "" ? "" : "on request") : "while typing";
    const picture = `[${situation.name}](files/${pictureName(situation, index)})`;
    const rest = beginning(situation.cut.slice(situation.typed.length).trimStart());
    return `| ${[picture, code(situation.typed), shown, rest, when, GUARANTEE.exec(log)?.[1] ?? ""].join(" | ")} |`;
  });
  return `# Suggestions in ${all.length} kinds of files

<!-- Written by ./dev vscode --files. -->

    ./dev vscode --files

A test removes code from a [file](../tests/cases/files) of each kind and types its beginning again, in VS Code ${VSCODE}
with the packaged extension, the model \`${MODEL}\` and no deadline. Where the server offers nothing by itself, the test
asks for a suggestion. The places were chosen before the suggestions were seen.

| file | typed | suggestion | removed code | shown | guarantee |
|---|---|---|---|---|---|
${rows.join("\n")}

⏎ is a line break.
`;
}

const all = /** @type {Situation[]} */ (await readJson(join(HERE, "files.json")));
const found = /** @type {Found} */ (await readJson(OUTCOMES).catch(() => ({})));
const pictures = join(DOCS, "files");
await mkdir(pictures, { recursive: true });
const chosen = all.filter(({ name }) => ONLY.test(name));
try {
  if (chosen.length > 0) {
    await playAll(
      chosen,
      PROJECT,
      (situation) => join(pictures, pictureName(situation, all.indexOf(situation))),
      found,
    );
  }
} finally {
  await writeFile(OUTCOMES, `${JSON.stringify(found, undefined, 2)}\n`);
}
await writeFile(join(DOCS, "files.md"), page(all, found));
