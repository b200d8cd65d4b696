// Types the situations of situations/situations.json in VS Code and writes docs/situations.md with each suggestion and a
// picture. The removed lines are neither on disk nor in the editor. situations/outcomes.json keeps the last outcomes, so
// that some situations can be typed again.
//
// situations/judgements.json has verdicts of people, by situation and text. The page marks suggestions without one.
import { cp, mkdir, readFile, writeFile } from "node:fs/promises";
import { cpus, loadavg } from "node:os";
import { basename, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { startEditor, VENV } from "./editor.mjs";

/** @typedef {{ from: string, to: string }} Broken */
/** @typedef {{ name: string, file: string, cut: string, typed: string, broken?: Broken }} Situation */
/** @typedef {{ offered: string, asked: string, log: string, ms: number }} Offers */
/** @typedef {Offers & { situation: Situation }} Outcome */
/** @typedef {Record<string, Offers>} Found */
/** @typedef {Record<string, Record<string, string>>} Judgements */

const HERE = fileURLToPath(new URL("situations/", import.meta.url));
const DOCS = fileURLToPath(new URL("../../docs/", import.meta.url));
const MODEL = process.env["FIM_SERVER_E2E_MODEL"] ?? "smollm2";
/** Situations to type. A pattern that matches none only writes the page. */
const ONLY = new RegExp(process.env["FIM_SERVER_E2E_PATTERN"] ?? ".");

/** Milliseconds to wait for an answer, and from a logged answer to its drawing. */
const PATIENCE = 60_000;
const DRAWING = 1_500;
const POLL = 100;
/** Milliseconds between two keys, as of a typing hand, and after the last one. */
const KEY = 200;
/** Milliseconds for the server to read changes on disk. */
const READING = 1_500;

/** No deadline, so that the machine's load does not decide how much the model writes. */
const PACE = { "fim-server.deadlineMs": 0 };

const OUTCOMES = join(HERE, "outcomes.json");

const VSCODE = "1.100";
/** A log line of an answer, and the reason in one without suggestions; `nothing` is the word of older outcomes. */
const ANSWER = / items? from |: no suggestion\b/;
const REASON = /(?:no suggestion|nothing) \((.*?)\)(?:, |\s*$)/;
/** Longest text of a cell in the table, in characters. */
const MOST_SHOWN = 80;

const VERDICTS = ["wanted", "plausible", "nonsense", "nothing"];

/** @param {string} path */
async function readJson(path) {
  return JSON.parse(await readFile(path, "utf8"));
}

/**
 * The file of a situation with a mark in place of the removed code.
 * @param {Situation} situation
 */
async function markedText({ name, file, cut, typed, broken }) {
  const text = await readFile(join(HERE, "project", file), "utf8");
  if (text.split(cut).length !== 2 || !cut.startsWith(typed) || (broken && text.split(broken.from).length !== 2)) {
    throw new Error(`${name}: the text to type is not in ${file} exactly once`);
  }
  const marked = text.replace(cut, () => "‸");
  return broken ? marked.replace(broken.from, () => broken.to) : marked;
}

/**
 * The server's logged answers for a file: counts, reason and times.
 * @param {import("./editor.mjs").Editor} editor
 * @param {string} file
 */
async function answers(editor, file) {
  const name = `/${basename(file)}: `;
  const lines = (await editor.logs()).split("\n").filter((line) => line.includes(name) && ANSWER.test(line));
  return lines.map((line) => ({
    at: Date.parse(line.slice(0, line.indexOf("[")).trim()),
    text: line.slice(line.indexOf(name) + name.length),
  }));
}

/**
 * The ghost text and its log line; "" after an answer without ghost text.
 * @param {import("./editor.mjs").Editor} editor
 * @param {string} file
 * @param {number} began
 */
async function waitForSuggestion(editor, file, began) {
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
 * Types one situation.
 * @param {import("./editor.mjs").Editor} editor
 * @param {Situation} situation
 * @param {string} picture
 * @returns {Promise<Offers>}
 */
async function play(editor, situation, picture) {
  await editor.open(situation.file, await markedText(situation));
  await editor.waitForStatus(/ready/);
  await sleep(READING);
  await editor.page.locator(".editor-instance .monaco-editor.focused").waitFor();
  await editor.type(situation.typed, KEY);
  const began = Date.now() - KEY;
  const { text: offered, log } = await waitForSuggestion(editor, situation.file, began);
  const ms = Date.now() - began;
  await editor.pictureOfCursor(picture);
  let asked = "";
  if (offered === "") {
    const askedAt = Date.now();
    await editor.run("editor.action.inlineSuggest.trigger");
    asked = (await waitForSuggestion(editor, situation.file, askedAt)).text;
  }
  await editor.closeAll();
  await cp(join(HERE, "project", situation.file), join(editor.folder, situation.file)); // whole again for the others
  return { offered, asked, log, ms };
}

/** @param {string} text */
function code(text) {
  const shown = text.replaceAll("\n", "⏎").replaceAll("|", "\\|").replace(/ {2,}/g, " ");
  return shown === "" ? "" : `\`${shown.includes("`") ? `\` ${shown} \`` : shown}\``;
}

/** The beginning of a text. @param {string} text */
function beginning(text) {
  return code(text.length > MOST_SHOWN ? `${text.slice(0, MOST_SHOWN)}…` : text);
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
  return REASON.exec(log)?.[1] ?? "";
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
  const pictures = outcomes.map(
    ({ situation }, index) => `${index + 1}. ![${situation.name}](situations/${pictureName(situation, index)})`,
  );
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

## Pictures

${pictures.join("\n")}
`;
}

/**
 * Types situations, prints each outcome and adds it to `found`.
 * @param {Situation[]} chosen
 * @param {(situation: Situation) => string} pictureOf
 * @param {Found} found
 */
async function playAll(chosen, pictureOf, found) {
  const vsix = process.env["FIM_SERVER_VSIX"];
  if (!vsix) {
    throw new Error("FIM_SERVER_VSIX has to name the packaged extension");
  }
  const settings = { "fim-server.path": `${VENV}fim-server`, "fim-server.model": MODEL, ...PACE };
  const editor = await startEditor({ vsix, settings });
  try {
    await cp(join(HERE, "project"), editor.folder, { recursive: true });
    for (const situation of chosen) {
      const outcome = await play(editor, situation, pictureOf(situation));
      found[situation.name] = outcome;
      process.stdout.write(`${JSON.stringify({ name: situation.name, ...outcome })}\n`);
    }
  } finally {
    await editor.stop();
  }
}

async function main() {
  const all = /** @type {Situation[]} */ (await readJson(join(HERE, "situations.json")));
  const judgements = /** @type {Judgements} */ (await readJson(join(HERE, "judgements.json")));
  const found = /** @type {Found} */ (await readJson(OUTCOMES).catch(() => ({})));
  const pictures = join(DOCS, "situations");
  await mkdir(pictures, { recursive: true });
  const chosen = all.filter(({ name }) => ONLY.test(name));
  if (chosen.length > 0) {
    await playAll(chosen, (situation) => join(pictures, pictureName(situation, all.indexOf(situation))), found);
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
