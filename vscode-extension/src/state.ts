// What the extension knows about its server, as one value: the status bar, the menu and the messages are made from it.
import type { Learnt } from "./configuration";
import type { Missing } from "./finding/search";
import type { Fetching, ServerStatus } from "./protocol";

export type State =
  /** No server is needed: nothing is open that is to be completed, or the settings switch everything off. */
  | { readonly kind: "idle"; readonly disabled: boolean }
  | { readonly kind: "starting" }
  /** The status is absent until the server has sent one. */
  | { readonly kind: "running"; readonly status: ServerStatus | undefined }
  /** It ended by itself and is started again. */
  | { readonly kind: "restarting"; readonly crashes: number }
  | { readonly kind: "missing"; readonly search: Missing }
  /** It was found and did not start. */
  | { readonly kind: "failed"; readonly message: string }
  /** It ended by itself too often. */
  | { readonly kind: "crashed"; readonly message: string };

/** Something that the user should hear of once, and what can be done about it. */
export interface Problem {
  /** Two problems with one key are the same problem. */
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

/** The problem of a state; undefined if there is none, or none that will not pass by itself. */
export function problemOf(state: State): Problem | undefined {
  switch (state.kind) {
    case "missing":
      return {
        key: `missing: ${state.search.message}`,
        message: state.search.message,
        severity: "warning",
        // A path that is set stands above all that could be installed.
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
      const message = state.status.message === "" ? "The server has failed." : state.status.message;
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

/** A message as it is: the editor makes links of `[text](address)`, and addresses can be commands. */
export function withoutLinks(message: string): string {
  return message.replaceAll("](", "] (");
}

/** Lets each problem through once, until the user has done something that should have solved it. */
export class Once {
  private readonly said = new Set<string>();

  isNew(problem: Problem): boolean {
    const isNew = !this.said.has(problem.key);
    this.said.add(problem.key);
    return isNew;
  }

  forget(): void {
    this.said.clear();
  }
}

/** The languages that the model has learnt; null: all of them, or it is not known yet. */
export function learntIn(state: State): Learnt {
  return state.kind === "running" ? (state.status?.model?.languages ?? null) : null;
}

/** Whether the server has a model and answers. */
export function isReady(state: State): boolean {
  return state.kind === "running" && (state.status?.state === "ready" || state.status?.state === "busy");
}

/** Whether the server is loading a model. */
export function isLoading(state: State): boolean {
  return state.kind === "running" && state.status?.state === "loading";
}

/** The model that is on its way, if one is. */
export function fetchingIn(state: State): Fetching | undefined {
  return (state.kind === "running" && state.status?.fetching) || undefined;
}

/** Whether everything is switched off, by the settings or for this session. */
export function isOff(state: State): boolean {
  return state.kind === "idle" ? state.disabled : state.kind === "running" && state.status?.state === "off";
}
