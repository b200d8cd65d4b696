// Types the situations of situations/situations.json in VS Code, one by one, each in a server that knows nothing of the
// lines that were taken out, and writes docs/situations.md with what was offered and a picture of each.
//
// What was offered is judged by people, in situations/judgements.json: by situation, then by text. What nobody has judged
// yet stands in the page as such.
import { cp, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { cpus, loadavg } from "node:os";
import { basename, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { startEditor } from "./editor.mjs";

/** @typedef {{ from: string, to: string }} Broken */
/** @typedef {{ name: string, file: string, cut: string, typed: string, broken?: Broken }} Situation */
/** @typedef {{ situation: Situation, offered: string, asked: string, log: string, ms: number }} Outcome */
/** @typedef {Record<string, Record<string, string>>} Judgements */

const HERE = fileURLToPath(new URL("situations/", import.meta.url));
const DOCS = fileURLToPath(new URL("../../docs/", import.meta.url));
const VENV = fileURLToPath(new URL("../../.venv/bin/", import.meta.url));
const MODEL = process.env["FIM_SERVER_E2E_MODEL"] ?? "smollm2";
const ONLY = new RegExp(process.env["FIM_SERVER_E2E_PATTERN"] ?? ".");

/** Milliseconds until nothing is expected any more; from an answer of which the log tells until it is drawn. */
const PATIENCE = 60_000;
const DRAWING = 1_500;
const POLL = 100;
/** How long ago the last key was pressed when typing has ended. */
const KEY = 40;
/** After the server's start, for the workspace's files to be read. */
const READING = 1_500;

/** What the machine is busy with besides shall not decide what the model sees, nor how much it writes. */
const PACE = { "fim-server.promptTokens": 384, "fim-server.deadlineMs": 0 };

const VERDICTS = ["wanted", "plausible", "nonsense", "nothing"];

/** @param {string} path */
async function readJson(path) {
  return JSON.parse(await readFile(path, "utf8"));
}

/**
 * The file of a situation, with a mark where its code was taken out.
 * @param {Situation} situation
 */
async function markedText({ name, file, cut, typed, broken }) {
  const text = await readFile(join(HERE, "project", file), "utf8");
  if (text.split(cut).length !== 2 || !cut.startsWith(typed) || (broken && text.split(broken.from).length !== 2)) {
    throw new Error(`${name}: what is to be typed does not stand in ${file} once`);
  }
  const marked = text.replace(cut, () => "‸");
  return broken ? marked.replace(broken.from, () => broken.to) : marked;
}

/**
 * What the server has logged of its answers for a file: counts, reason and times.
 * @param {import("./editor.mjs").Editor} editor
 * @param {string} file
 */
async function answers(editor, file) {
  const name = `/${basename(file)}: `;
  const lines = (await editor.logs()).split("\n").filter((line) => line.includes(name) && / items? from /.test(line));
  return lines.map((line) => ({
    at: Date.parse(line.slice(0, line.indexOf("[")).trim()),
    text: line.slice(line.indexOf(name) + name.length),
  }));
}

/**
 * The ghost text that comes, and what the log says of it; "" once there was an answer without one.
 * @param {import("./editor.mjs").Editor} editor
 * @param {string} file
 * @param {number} began
 */
async function waitForOffer(editor, file, began) {
  for (const end = began + PATIENCE; Date.now() < end; await sleep(POLL)) {
    const text = await editor.settledGhostText();
    const answer = (await answers(editor, file)).filter(({ at }) => at >= began).at(-1);
    if (text !== "" || (answer !== undefined && Date.now() > answer.at + DRAWING)) {
      return { text, log: answer?.text ?? "" };
    }
  }
  return { text: "", log: "" };
}

/**
 * Types one situation. The server starts anew, because it remembers what it has seen of the file.
 * @param {import("./editor.mjs").Editor} editor
 * @param {Situation} situation
 * @param {string} picture
 * @returns {Promise<Outcome>}
 */
async function play(editor, situation, picture) {
  await editor.open(situation.file, await markedText(situation));
  await editor.waitForStatus(/ready/);
  await editor.choose("Restart Server");
  await editor.waitForStatus(/starting|loading/);
  await editor.waitForStatus(/ready/);
  await sleep(READING);
  await editor.page.locator(".editor-instance .monaco-editor.focused").waitFor();
  await editor.type(situation.typed);
  const began = Date.now() - KEY;
  const { text: offered, log } = await waitForOffer(editor, situation.file, began);
  const ms = Date.now() - began;
  await editor.pictureOfCursor(picture);
  let asked = "";
  if (offered === "") {
    const askedAt = Date.now();
    await editor.run("editor.action.inlineSuggest.trigger");
    asked = (await waitForOffer(editor, situation.file, askedAt)).text;
  }
  await editor.closeAll();
  await cp(join(HERE, "project", situation.file), join(editor.folder, situation.file)); // whole again for the others
  return { situation, offered, asked, log, ms };
}

/** @param {string} text */
function code(text) {
  const shown = text.replaceAll("\n", "⏎").replaceAll("|", "\\|").replace(/ {2,}/g, " ");
  return shown === "" ? "" : `\`${shown.includes("`") ? `\` ${shown} \`` : shown}\``;
}

/** @param {Situation} situation @param {number} index */
function pictureName({ name }, index) {
  return `${String(index + 1).padStart(2, "0")}-${name.toLowerCase().replaceAll(/\W+/g, "-")}.png`;
}

/**
 * @param {Outcome} outcome
 * @param {Judgements} judgements
 */
function verdictOf({ situation, offered }, judgements) {
  return offered === "" ? "nothing" : (judgements[situation.name]?.[offered] ?? "not judged yet");
}

/** @param {string} log */
function reasonOf(log) {
  return /nothing \((.*?)\), \d+ tokens/.exec(log)?.[1] ?? "";
}

/**
 * @param {Outcome[]} outcomes
 * @param {Judgements} judgements
 */
function page(outcomes, judgements) {
  const verdicts = outcomes.map((outcome) => verdictOf(outcome, judgements));
  const counts = [...VERDICTS, "not judged yet"]
    .map((verdict) => [verdict, verdicts.filter((one) => one === verdict).length])
    .filter(([, count]) => count)
    .map(([verdict, count]) => `${count} ${verdict}`);
  const rows = outcomes.map(({ situation, offered, asked, log }, index) => {
    const origin = /from the (\w+)/.exec(log)?.[1] ?? "";
    const nothing = `nothing${reasonOf(log) && `: ${reasonOf(log)}`}${asked && `; asked for: ${code(asked)}`}`;
    const cells = [
      index + 1,
      `[${situation.name}](situations/${pictureName(situation, index)})`,
      situation.typed === "\n" ? "Enter" : code(situation.typed),
      offered === "" ? nothing : code(offered),
      offered === "" ? "" : origin,
      verdicts[index],
    ];
    return `| ${cells.join(" | ")} |`;
  });
  const pictures = outcomes.map(
    ({ situation }, index) =>
      `${index + 1}. ${situation.name}, in \`${situation.file}\`\n\n   ![${situation.name}](situations/${pictureName(situation, index)})\n`,
  );
  return `# Ordinary situations

<!-- Written by ./dev vscode --situations; what is judged stands in vscode-extension/e2e/situations/judgements.json. -->

    ./dev vscode --situations

What somebody typing sees: ${outcomes.length} situations in a small project of our own
([\`vscode-extension/e2e/situations/\`](../vscode-extension/e2e/situations/project/lending/library.py)), typed by the hands
of a test into VS Code ${VSCODE} with the packaged extension, the model \`${MODEL}\` and its default settings, but for a
prompt of 384 tokens and no deadline, so that a busy machine offers what an idle one does. In each, some
code was taken out of its file and the beginning of it is typed again; the server is started anew each time, so that it
has not seen what was taken out. The situations were chosen before any of them was typed.

*Wanted*: somebody would accept it; *plausible*: sensible code, but not what belongs there; *nonsense*: no one would write
that there. Judged by reading, each text once. Where nothing was offered it was asked for explicitly, too.

**${counts.join(", ")}.**

| | situation | typed | offered | from | judged |
|---:|---|---|---|---|---|
${rows.join("\n")}

${cpus().length} processors with a load of ${loadavg()[0]?.toFixed(1)}, without a GPU. ⏎ is a line break.

## Pictures

${pictures.join("\n")}`;
}

const VSCODE = "1.100";

async function main() {
  const vsix = process.env["FIM_SERVER_VSIX"];
  if (!vsix) {
    throw new Error("FIM_SERVER_VSIX has to name the packaged extension");
  }
  const all = /** @type {Situation[]} */ (await readJson(join(HERE, "situations.json")));
  const judgements = /** @type {Judgements} */ (await readJson(join(HERE, "judgements.json")));
  const settings = { "fim-server.path": `${VENV}fim-server`, "fim-server.model": MODEL, ...PACE };
  const pictures = join(DOCS, "situations");
  const chosen = all.filter(({ name }) => ONLY.test(name));
  if (chosen.length === all.length) {
    await rm(pictures, { recursive: true, force: true });
  }
  await mkdir(pictures, { recursive: true });
  const editor = await startEditor({ vsix, settings });
  /** @type {Outcome[]} */
  const outcomes = [];
  try {
    await cp(join(HERE, "project"), editor.folder, { recursive: true });
    for (const situation of chosen) {
      const picture = join(pictures, pictureName(situation, all.indexOf(situation)));
      const outcome = await play(editor, situation, picture);
      outcomes.push(outcome);
      const { offered, asked, ms, log } = outcome;
      const verdict = verdictOf(outcome, judgements);
      process.stdout.write(`${JSON.stringify({ name: situation.name, offered, verdict, asked, ms, log })}\n`);
    }
  } finally {
    await editor.stop();
  }
  if (chosen.length === all.length) {
    await writeFile(join(DOCS, "situations.md"), page(outcomes, judgements));
  }
}

await main();
