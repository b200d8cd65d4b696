// State of the server as one value, from which the status bar, the menu and the messages are made.
import type { Learnt } from "./configuration";
import type { Missing } from "./finding/search";
import type { Fetching, ServerStatus } from "./protocol";

export type State =
  /** No server is needed: no supported file is open, or the settings turn suggestions off. */
  | { readonly kind: "idle"; readonly disabled: boolean }
  | { readonly kind: "starting" }
  /** The status is absent until the server has sent one. */
  | { readonly kind: "running"; readonly status: ServerStatus | undefined }
  /** It crashed and restarts. */
  | { readonly kind: "restarting"; readonly crashes: number }
  | { readonly kind: "missing"; readonly search: Missing }
  /** It did not start. */
  | { readonly kind: "failed"; readonly message: string }
  /** It crashed too often. */
  | { readonly kind: "crashed"; readonly message: string };

/** A problem to report once, with actions against it. */
export interface Problem {
  /** Equal keys mean the same problem. */
  readonly key: string;
  readonly message: string;
  readonly severity: "warning" | "error";
  readonly actions: readonly ProblemAction[];
}

export type ProblemAction = "install" | "walkthrough" | "restart" | "logs" | "pathSettings" | "modelSettings";

export const ACTION_TITLES: Readonly<Record<ProblemAction, string>> = {
  install: "Install…",
  walkthrough: "Show Me How",
  restart: "Restart Server",
  logs: "Show Logs",
  pathSettings: "Open Settings",
  modelSettings: "Open Settings",
};

/** Returns the problem of a state; undefined if there is none, or it passes by itself. */
export function problemOf(state: State): Problem | undefined {
  switch (state.kind) {
    case "missing":
      return {
        key: `missing: ${state.search.message}`,
        message: state.search.message,
        severity: "warning",
        // A path in the settings overrides any installation.
        actions: [...(state.search.setting === "path" ? [] : (["install"] as const)), "pathSettings", "walkthrough"],
      };
    case "failed":
      return {
        key: `failed: ${state.message}`,
        message: state.message,
        severity: "error",
        actions: ["pathSettings", "restart", "logs"],
      };
    case "crashed":
      return { key: "crashed", message: state.message, severity: "error", actions: ["restart", "logs"] };
    case "running": {
      if (state.status?.state !== "error") {
        return undefined;
      }
      const message = state.status.message === "" ? "The server failed. See the log." : state.status.message;
      return {
        key: `error: ${message}`,
        message: `fim-server: ${message}`,
        severity: "error",
        actions: ["modelSettings", "restart", "logs"],
      };
    }
    default:
      return undefined;
  }
}

/** Breaks links `[text](address)`, which the editor would make clickable and which can run commands. */
export function withoutLinks(message: string): string {
  return message.replaceAll("](", "] (");
}

/** Filter that lets each problem pass once, until the user has acted on it. */
export class Once {
  private readonly reported = new Set<string>();

  isNew(problem: Problem): boolean {
    const isNew = !this.reported.has(problem.key);
    this.reported.add(problem.key);
    return isNew;
  }

  forget(): void {
    this.reported.clear();
  }
}

/** Languages the model knows; null: all, or unknown. */
export function learntIn(state: State): Learnt {
  return state.kind === "running" ? (state.status?.model?.languages ?? null) : null;
}

/** Returns true if the server has a model and answers. */
export function isReady(state: State): boolean {
  return state.kind === "running" && (state.status?.state === "ready" || state.status?.state === "busy");
}

/** Returns true if the server is loading a model. */
export function isLoading(state: State): boolean {
  return state.kind === "running" && state.status?.state === "loading";
}

/** The model that is being downloaded, if any. */
export function fetchingIn(state: State): Fetching | undefined {
  return (state.kind === "running" && state.status?.fetching) || undefined;
}

/** Returns true if suggestions are off, by the settings or for this session. */
export function isOff(state: State): boolean {
  return state.kind === "idle" ? state.disabled : state.kind === "running" && state.status?.state === "off";
}
