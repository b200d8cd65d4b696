// Types situations in VS Code: each removes code from a file and types its beginning again. The removed lines are neither
// on disk nor in the editor.
import { cp, readFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { startEditor, VENV } from "./editor.mjs";

/** @typedef {{ from: string, to: string }} Broken */
/** @typedef {{ name: string, file: string, cut: string, typed: string, broken?: Broken }} Situation */
/** @typedef {{ offered: string, asked: string, log: string, ms: number }} Offers */
/** @typedef {Record<string, Offers>} Found */

export const MODEL = process.env["FIM_SERVER_E2E_MODEL"] ?? "smollm2";
/** Situations to type. A pattern that matches none only writes the page. */
export const ONLY = new RegExp(process.env["FIM_SERVER_E2E_PATTERN"] ?? ".");
export const VSCODE = "1.100";

/** Milliseconds to wait for an answer, and from a logged answer to its drawing. */
const PATIENCE = 60_000;
const DRAWING = 1_500;
/** Milliseconds to wait in a language whose suggestions wait for a request. */
const UNASKED = 3_000;
const POLL = 100;
/** Milliseconds between two keys, as of a typing hand, and after the last one. */
const KEY = 200;
/** Milliseconds for the server to read changes on disk. */
const READING = 1_500;

/** No deadline, so that the machine's load does not decide how much the model writes. */
const PACE = { "fim-server.deadlineMs": 0 };

/** A log line of an answer, and the reason in one without suggestions; `nothing` is the word of older outcomes. */
const ANSWER = / items? from |: no suggestion\b/;
const REASON = /(?:no suggestion|nothing) \((.*?)\)(?:, |\s*$)/;
/** Longest text of a cell in a table, in characters. */
const MOST_SHOWN = 80;

/** @param {string} path */
export async function readJson(path) {
  return JSON.parse(await readFile(path, "utf8"));
}

/**
 * The file of a situation with a mark in place of the removed code.
 * @param {Situation} situation
 * @param {string} project
 */
async function markedText({ name, file, cut, typed, broken }, project) {
  const text = await readFile(join(project, file), "utf8");
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
 * @param {number} patience
 */
async function waitForSuggestion(editor, file, began, patience = PATIENCE) {
  for (const end = began + patience; Date.now() < end; await sleep(POLL)) {
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
 * @param {string} project
 * @param {string} picture
 * @returns {Promise<Offers>}
 */
async function play(editor, situation, project, picture) {
  await editor.open(situation.file, await markedText(situation, project));
  const status = await editor.waitForStatus(/ready|waiting for code/);
  const patience = /ready/.test(status) && !/on request/.test(status) ? PATIENCE : UNASKED;
  await sleep(READING);
  await editor.page.locator(".editor-instance .monaco-editor.focused").waitFor();
  await editor.type(situation.typed, KEY);
  const began = Date.now() - KEY;
  let { text: offered, log } = await waitForSuggestion(editor, situation.file, began, patience);
  const ms = Date.now() - began;
  let asked = "";
  if (offered === "") {
    const askedAt = Date.now();
    await editor.run("editor.action.inlineSuggest.trigger");
    const answer = await waitForSuggestion(editor, situation.file, askedAt);
    asked = answer.text;
    log = answer.text === "" ? log || answer.log : answer.log;
  }
  await editor.pictureOfCursor(picture);
  await editor.closeAll();
  await cp(join(project, situation.file), join(editor.folder, situation.file)); // whole again for the others
  return { offered, asked, log, ms };
}

/** @param {string} text */
export function code(text) {
  const shown = text.replaceAll("\n", "⏎").replaceAll("|", "\\|").replace(/ {2,}/g, " ");
  return shown === "" ? "" : `\`${shown.includes("`") ? `\` ${shown} \`` : shown}\``;
}

/** The beginning of a text. @param {string} text */
export function beginning(text) {
  return code(text.length > MOST_SHOWN ? `${text.slice(0, MOST_SHOWN)}…` : text);
}

/** @param {Situation} situation @param {number} index */
export function pictureName({ name }, index) {
  return `${String(index + 1).padStart(2, "0")}-${name.toLowerCase().replaceAll(/\W+/g, "-")}.png`;
}

/** @param {string} log */
export function reasonOf(log) {
  return REASON.exec(log)?.[1] ?? "";
}

/**
 * Types situations, prints each outcome and adds it to `found`.
 * @param {Situation[]} chosen
 * @param {string} project
 * @param {(situation: Situation) => string} pictureOf
 * @param {Found} found
 */
export async function playAll(chosen, project, pictureOf, found) {
  const vsix = process.env["FIM_SERVER_VSIX"];
  if (!vsix) {
    throw new Error("FIM_SERVER_VSIX has to name the packaged extension");
  }
  const settings = { "fim-server.path": `${VENV}fim-server`, "fim-server.model": MODEL, ...PACE };
  const editor = await startEditor({ vsix, settings });
  try {
    await cp(project, editor.folder, { recursive: true });
    for (const situation of chosen) {
      const outcome = await play(editor, situation, project, pictureOf(situation));
      found[situation.name] = outcome;
      process.stdout.write(`${JSON.stringify({ name: situation.name, ...outcome })}\n`);
    }
  } finally {
    await editor.stop();
  }
}
