// The machine on which the server is searched.
import { execFile } from "node:child_process";
import { access, constants, stat } from "node:fs/promises";
import { ISOLATED, type Machine } from "./finding/search";

/** Time limit of an interpreter's start, which takes seconds on a slow disk. */
const IMPORT_TIMEOUT_MS = 15_000;

const CAN_IMPORT = "import importlib.util, sys; sys.exit(importlib.util.find_spec('fim_server') is None)";

export const machine: Machine = {
  async isExecutable(path) {
    try {
      await access(path, constants.X_OK);
      return (await stat(path)).isFile();
    } catch {
      return false;
    }
  },

  canImport(interpreter) {
    return new Promise((resolve) => {
      execFile(
        interpreter,
        [...ISOLATED, "-c", CAN_IMPORT],
        { timeout: IMPORT_TIMEOUT_MS, windowsHide: true },
        (error) => resolve(error === null),
      );
    });
  },
};
