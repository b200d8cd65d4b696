// Search for the server: the settings, the selected interpreter's environment, the workspace's environments, the PATH.
// The file system is an argument, so that tests need none.
import type { StartSettings } from "../configuration";

/** Origin of a server, best first. */
export type Origin = "path" | "interpreter" | "selected" | "workspace" | "search path";

/** A program and the arguments that come before those of `fim-server` itself. */
export interface Program {
  readonly command: string;
  readonly leading: readonly string[];
}

export interface Found {
  readonly kind: "found";
  readonly program: Program;
  readonly origin: Origin;
}

export interface Missing {
  readonly kind: "missing";
  /** The wrong setting; absent if no setting is wrong. */
  readonly setting?: "path" | "interpreter";
  /** One sentence for the user. */
  readonly message: string;
  /** Attempts for the log, a line each. */
  readonly tried: readonly string[];
}

/** Places to search besides the settings. */
export interface Places {
  readonly platform: NodeJS.Platform;
  /** The interpreter that is selected in a Python extension. */
  readonly selected: string | undefined;
  /** Folders of the workspace on this machine. */
  readonly folders: readonly string[];
  /** True if the user trusts the workspace. If not, nothing in its folders is run. */
  readonly trusted: boolean;
  /** The value of the environment's PATH. */
  readonly searchPath: string;
}

/** Queries of the search to the machine. */
export interface Machine {
  isExecutable(path: string): Promise<boolean>;
  /** Returns true if `interpreter -m fim_server` finds the package. */
  canImport(interpreter: string): Promise<boolean>;
}

/**
 * The interpreter's arguments before `-m` or `-c`. `-P` keeps the current folder, which is the workspace's, off the
 * module path. Interpreters before 3.11 lack it and are too old for the package.
 */
export const ISOLATED: readonly string[] = ["-P"];

export async function findServer(settings: StartSettings, places: Places, machine: Machine): Promise<Found | Missing> {
  const search = new Search(places, machine);
  if (settings.path !== "") {
    return search.atPath(settings.path);
  }
  if (settings.interpreter !== "") {
    return search.atInterpreter(settings.interpreter);
  }
  return (
    (await search.inSelected()) ??
    (await search.inFolders()) ??
    (await search.onSearchPath()) ?? {
      kind: "missing",
      message:
        "fim-server was not found in the selected Python environment, in the workspace or on the PATH. Install it, or set fim-server.path.",
      tried: search.tried,
    }
  );
}

class Search {
  readonly tried: string[] = [];
  private readonly isWindows: boolean;

  constructor(
    private readonly places: Places,
    private readonly machine: Machine,
  ) {
    this.isWindows = places.platform === "win32";
  }

  /** Tries the user's path only, so that a wrong path is noticed. */
  async atPath(path: string): Promise<Found | Missing> {
    const place = await this.resolve(path);
    return place === undefined
      ? this.missing("path", `fim-server.path is "${path}", but no program is there. Correct or clear the setting.`)
      : { kind: "found", program: { command: place, leading: [] }, origin: "path" };
  }

  async atInterpreter(interpreter: string): Promise<Found | Missing> {
    const place = await this.resolve(interpreter);
    if (place === undefined) {
      return this.missing(
        "interpreter",
        `fim-server.interpreter is "${interpreter}", but no program is there. Correct or clear the setting.`,
      );
    }
    return (
      (await this.ofInterpreter(place, "interpreter")) ??
      this.missing(
        "interpreter",
        `fim-server.interpreter is "${interpreter}", but fim-server is not installed there. Install it, or correct the setting.`,
      )
    );
  }

  async inSelected(): Promise<Found | undefined> {
    const { selected } = this.places;
    if (selected === undefined) {
      this.tried.push("the selected interpreter: no Python extension names one");
      return undefined;
    }
    return (await this.isUsable(selected)) ? this.ofInterpreter(selected, "selected") : undefined;
  }

  async inFolders(): Promise<Found | undefined> {
    if (!this.places.trusted) {
      this.tried.push("the workspace's environments: the workspace is not trusted");
      return undefined;
    }
    for (const folder of this.places.folders) {
      for (const environment of [".venv", "venv"]) {
        const directory = this.join(folder, environment, this.isWindows ? "Scripts" : "bin");
        const found = await this.inDirectories([directory], "workspace");
        if (found !== undefined) {
          return found;
        }
      }
    }
    return undefined;
  }

  async onSearchPath(): Promise<Found | undefined> {
    const place = await this.lookUp("fim-server");
    return place === undefined
      ? undefined
      : { kind: "found", program: { command: place, leading: [] }, origin: "search path" };
  }

  private async ofInterpreter(interpreter: string, origin: Origin): Promise<Found | undefined> {
    const directory = this.parent(interpreter);
    // Beside the interpreter; on Windows outside virtual environments, one folder further down.
    const directories = this.isWindows ? [directory, this.join(directory, "Scripts")] : [directory];
    const beside = await this.inDirectories(directories, origin);
    if (beside !== undefined) {
      return beside;
    }
    if (await this.machine.canImport(interpreter)) {
      return { kind: "found", program: { command: interpreter, leading: [...ISOLATED, "-m", "fim_server"] }, origin };
    }
    this.tried.push(`${interpreter}: it has no module fim_server`);
    return undefined;
  }

  private async inDirectories(directories: readonly string[], origin: Origin): Promise<Found | undefined> {
    for (const directory of directories) {
      const command = this.join(directory, this.withSuffix("fim-server"));
      if (await this.isUsable(command)) {
        return { kind: "found", program: { command, leading: [] }, origin };
      }
    }
    return undefined;
  }

  /** Resolves a name by the PATH, and leaves a path. */
  private async resolve(pathOrName: string): Promise<string | undefined> {
    const isPath = /[/\\]/.test(pathOrName);
    if (!isPath) {
      return this.lookUp(pathOrName);
    }
    for (const candidate of [pathOrName, this.withSuffix(pathOrName)]) {
      if (await this.isUsable(candidate)) {
        return candidate;
      }
    }
    return undefined;
  }

  /**
   * Returns the first program of a name in the PATH's absolute folders. Relative ones, and on Windows the current folder,
   * belong to the workspace, from which nothing may run unasked.
   */
  private async lookUp(name: string): Promise<string | undefined> {
    const isAbsolute = this.isWindows ? /^([A-Za-z]:[/\\]|\\\\)/ : /^\//;
    for (const directory of this.places.searchPath.split(this.isWindows ? ";" : ":")) {
      const candidate = this.join(directory, this.withSuffix(name));
      if (isAbsolute.test(directory) && (await this.isUsable(candidate))) {
        return candidate;
      }
    }
    this.tried.push(`${name}: not on the PATH`);
    return undefined;
  }

  private async isUsable(path: string): Promise<boolean> {
    if (!this.places.trusted && this.places.folders.some((folder) => this.isInside(path, folder))) {
      this.tried.push(`${path}: in a workspace that is not trusted`);
      return false;
    }
    const usable = await this.machine.isExecutable(path);
    if (!usable) {
      this.tried.push(`${path}: no program there`);
    }
    return usable;
  }

  private isInside(path: string, folder: string): boolean {
    const normal = (place: string) => {
      const slashed = this.isWindows ? place.replaceAll("\\", "/").toLowerCase() : place;
      return `${slashed.replace(/\/+$/, "")}/`;
    };
    return normal(path).startsWith(normal(folder)) || path.split(/[/\\]/).includes("..");
  }

  private missing(setting: "path" | "interpreter", message: string): Missing {
    return { kind: "missing", setting, message, tried: this.tried };
  }

  private withSuffix(name: string): string {
    return this.isWindows && !/\.exe$/i.test(name) ? `${name}.exe` : name;
  }

  private join(...parts: string[]): string {
    const separator = this.isWindows ? "\\" : "/";
    return parts.map((part, index) => (index < parts.length - 1 ? part.replace(/[/\\]+$/, "") : part)).join(separator);
  }

  private parent(path: string): string {
    return path.replace(/[/\\][^/\\]*$/, "");
  }
}

/** Returns true if two searches found the same program, so that a running server may stay. */
export function isSameProgram(one: Program | undefined, other: Program | undefined): boolean {
  return (
    one !== undefined &&
    other !== undefined &&
    one.command === other.command &&
    one.leading.join("\0") === other.leading.join("\0")
  );
}

/** Words for an origin. */
export const ORIGIN_WORDS: Readonly<Record<Origin, string>> = {
  path: "set in fim-server.path",
  interpreter: "in the environment of fim-server.interpreter",
  selected: "in the selected Python environment",
  workspace: "in the workspace's environment",
  "search path": "on the PATH",
};
