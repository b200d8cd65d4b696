// llama.cpp's server, played by tests/support/models/endpoint_program.py in a process of its own.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { VENV } from "./editor.mjs";

/** @typedef {import("node:child_process").ChildProcessByStdio<import("node:stream").Writable, import("node:stream").Readable, null>} Program */

/** The folder of the package `support`. */
export const TESTS = fileURLToPath(new URL("../../tests", import.meta.url));

/** Texts of the editor's tests; `before` is the text left of the cursor. */
const TEXTS = fileURLToPath(new URL("texts.json", import.meta.url));

/**
 * Starts an endpoint and returns its address.
 * @param {readonly string[]} args
 * @param {(line: string) => void} show called with each line that it prints
 * @returns {Promise<{ address: string, program: Program }>}
 */
export async function startEndpoint(args, show = () => {}) {
  const program = spawn(`${VENV}python`, ["-m", "support.models.endpoint_program", ...args], {
    cwd: TESTS,
    stdio: ["pipe", "pipe", "inherit"],
  });
  try {
    return { address: await firstLine(program, show), program };
  } catch (error) {
    program.kill();
    throw error;
  }
}

/** Starts an endpoint that writes the texts of texts.json. */
export async function startTexts() {
  return await startEndpoint(["--texts", TEXTS, "texts", "0"]);
}

/**
 * Returns the first line that a program prints, its address.
 * @param {Program} program
 * @param {(line: string) => void} show called with each line
 * @returns {Promise<string>}
 */
export function firstLine(program, show = () => {}) {
  return new Promise((resolve, reject) => {
    program.once("exit", (code) => reject(new Error(`${program.spawnargs.join(" ")} ended with ${code}`)));
    createInterface({ input: program.stdout }).on("line", (line) => {
      show(line);
      resolve(line);
    });
  });
}
