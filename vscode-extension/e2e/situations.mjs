// Types the situations of situations/situations.json in VS Code and writes docs/situations.md with each suggestion and a
// picture. situations/outcomes.json keeps the last outcomes, so that some situations can be typed again.
//
// situations/judgements.json has verdicts of people, by situation and text. The page marks suggestions without one.
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { cpus, loadavg } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { beginning, code, MODEL, ONLY, pictureName, playAll, readJson, reasonOf, VSCODE } from "./playing.mjs";

/** @typedef {import("./playing.mjs").Situation} Situation */
/** @typedef {import("./playing.mjs").Found} Found */
/** @typedef {import("./playing.mjs").Offers & { situation: Situation }} Outcome */
/** @typedef {Record<string, Record<string, string>>} Judgements */

const HERE = fileURLToPath(new URL("situations/", import.meta.url));
const DOCS = fileURLToPath(new URL("../../docs/", import.meta.url));
const OUTCOMES = join(HERE, "outcomes.json");

const VERDICTS = ["wanted", "plausible", "nonsense", "nothing"];

/**
 * @param {Outcome} outcome
 * @param {Judgements} judgements
 */
function verdictOf({ situation, offered }, judgements) {
  return offered === "" ? "nothing" : (judgements[situation.name]?.[offered] ?? "not judged yet");
}

/**
 * @param {Outcome[]} outcomes
 * @param {Judgements} judgements
 * @param {string} remarks
 */
function page(outcomes, judgements, remarks) {
  const verdicts = outcomes.map((outcome) => verdictOf(outcome, judgements));
  const counts = [...VERDICTS, "not judged yet"]
    .map((verdict) => [verdict, verdicts.filter((one) => one === verdict).length])
    .filter(([, count]) => count)
    .map(([verdict, count]) => `${count} ${verdict}`);
  const rows = outcomes.map(({ situation, offered, asked, log }, index) => {
    const nothing = `nothing${reasonOf(log) && `: ${reasonOf(log)}`}${asked && `; on request: ${beginning(asked)}`}`;
    const cells = [
      index + 1,
      `[${situation.name}](situations/${pictureName(situation, index)})`,
      situation.typed === "\n" ? "Enter" : code(situation.typed),
      offered === "" ? nothing : code(offered),
      beginning(situation.cut.slice(situation.typed.length).trimStart()),
      verdicts[index],
    ];
    return `| ${cells.join(" | ")} |`;
  });
  return `# Ordinary situations

<!-- Written by ./dev vscode --situations from vscode-extension/e2e/situations/judgements.json and remarks.md. -->

    ./dev vscode --situations

A test types ${outcomes.length} situations of a [small project](../vscode-extension/e2e/situations/project/lending/library.py)
into VS Code ${VSCODE} with the packaged extension, the model \`${MODEL}\` and no deadline. Each removes code from its
file and types its beginning again. Each suggestion was judged by reading. *Wanted*: a user would accept it;
*plausible*: sensible code that does not belong there; *nonsense*: code that no programmer would write there.

**${counts.join(", ")}.** The aim is 15 wanted and at most 3 nonsense.

| | situation | typed | suggestion | removed code | verdict |
|---:|---|---|---|---|---|
${rows.join("\n")}

${cpus().length} processors with a load of ${loadavg()[0]?.toFixed(1)}, without a GPU. ⏎ is a line break.

${remarks.trim()}
`;
}

async function main() {
  const all = /** @type {Situation[]} */ (await readJson(join(HERE, "situations.json")));
  const judgements = /** @type {Judgements} */ (await readJson(join(HERE, "judgements.json")));
  const found = /** @type {Found} */ (await readJson(OUTCOMES).catch(() => ({})));
  const pictures = join(DOCS, "situations");
  await mkdir(pictures, { recursive: true });
  const chosen = all.filter(({ name }) => ONLY.test(name));
  if (chosen.length > 0) {
    await playAll(
      chosen,
      join(HERE, "project"),
      (situation) => join(pictures, pictureName(situation, all.indexOf(situation))),
      found,
    );
    await writeFile(OUTCOMES, `${JSON.stringify(found, undefined, 2)}\n`);
  }
  const outcomes = all.flatMap((situation) => {
    const outcome = found[situation.name];
    return outcome === undefined ? [] : [{ situation, ...outcome }];
  });
  await writeFile(
    join(DOCS, "situations.md"),
    page(outcomes, judgements, await readFile(join(HERE, "remarks.md"), "utf8")),
  );
}

await main();
