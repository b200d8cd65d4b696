// The entries of the menu behind the status bar item, as data.

import { offerOf, offerWords } from "./offers";
import { ACTION_TITLES, isOff, type ProblemAction, problemOf, type State } from "./state";
import type { ActiveLanguage } from "./statusText";
import { counted, duration, languageName } from "./words";

export type MenuAction =
  | ProblemAction
  | "getModel"
  | "chooseModel"
  | "toggle"
  | "snooze"
  | "endSnooze"
  | "toggleLanguage"
  | "chooseLanguage"
  | "toggleWorkspace"
  | "trigger"
  | "explain"
  | "statistics"
  | "allSettings";

export interface MenuEntry {
  readonly action: MenuAction;
  /** With an icon. */
  readonly label: string;
  readonly description?: string;
}

/** Entries between two separators. */
export type MenuGroup = readonly MenuEntry[];

const ICONS: Readonly<Record<ProblemAction, string>> = {
  install: "cloud-download",
  walkthrough: "mortar-board",
  restart: "debug-restart",
  logs: "output",
  pathSettings: "gear",
  modelSettings: "gear",
};

const SETTINGS_DESCRIPTIONS: Partial<Record<ProblemAction, string>> = {
  pathSettings: "path of the server",
  modelSettings: "model to load",
};

/** Returns solutions of the present problem first, then entries for the cursor, then the rest, without duplicates. */
export function menuGroups(
  state: State,
  language: ActiveLanguage | undefined,
  snoozedMinutes?: number | undefined,
): MenuGroup[] {
  const solutions = (problemOf(state)?.actions ?? []).map(problemEntry);
  const rest = (["restart", "logs"] as const)
    .filter((action) => !solutions.some((entry) => entry.action === action))
    .map(problemEntry);
  const walkthrough = solutions.some((entry) => entry.action === "walkthrough") ? [] : [problemEntry("walkthrough")];
  return [
    solutions,
    modelEntries(state, solutions),
    offerEntries(state),
    cursorEntries(state, language),
    toggleEntries(state, language, snoozedMinutes),
    [...(state.kind === "running" ? [STATISTICS] : []), ...rest, ALL_SETTINGS, ...walkthrough],
  ].filter((group) => group.length > 0);
}

/** Entry with the model and its last latency, which opens the choice of a model. */
function modelEntries(state: State, solutions: readonly MenuEntry[]): MenuEntry[] {
  const status = state.kind === "running" ? state.status : undefined;
  if (!status?.model || solutions.some((entry) => entry.action === "modelSettings")) {
    return [];
  }
  const description = status.last ? `last answer in ${duration(status.last.latency.totalMs)}` : "no answer yet";
  return [{ action: "chooseModel", label: `$(chip) ${status.model.name} on ${status.model.device}`, description }];
}

function offerEntries(state: State): MenuEntry[] {
  const offer = offerOf(state);
  return offer === undefined
    ? []
    : [{ action: "getModel", label: "$(cloud-download) Get a Better Model", description: offerWords(offer) }];
}

const STATISTICS: MenuEntry = { action: "statistics", label: "$(graph) Show Statistics" };
const ALL_SETTINGS: MenuEntry = { action: "allSettings", label: "$(settings-gear) All Settings" };

function problemEntry(action: ProblemAction): MenuEntry {
  const description = SETTINGS_DESCRIPTIONS[action];
  const title = action === "walkthrough" ? "Open Walkthrough" : ACTION_TITLES[action];
  return { action, label: `$(${ICONS[action]}) ${title}`, ...(description === undefined ? {} : { description }) };
}

function cursorEntries(state: State, language: ActiveLanguage | undefined): MenuEntry[] {
  if (language === undefined || (state.kind !== "running" && state.kind !== "idle")) {
    return [];
  }
  return [
    ...(isOff(state) || language.mode === "off"
      ? []
      : [{ action: "trigger", label: "$(symbol-array) Complete at the Cursor" } as const]),
    { action: "explain", label: "$(question) Explain What May Come at the Cursor" },
  ];
}

function toggleEntries(
  state: State,
  language: ActiveLanguage | undefined,
  snoozedMinutes: number | undefined,
): MenuEntry[] {
  const entries: MenuEntry[] = [];
  if (snoozedMinutes !== undefined) {
    const description = `${counted(snoozedMinutes, "minute")} left`;
    entries.push({ action: "endSnooze", label: "$(bell) End Snooze", description });
    entries.push({ action: "snooze", label: "$(bell-slash) Snooze for Longer…" });
  } else if (state.kind === "running" || state.kind === "idle") {
    if (!isOff(state)) {
      entries.push({ action: "snooze", label: "$(bell-slash) Snooze…", description: "for some minutes" });
    }
    entries.push({
      action: "toggle",
      label: isOff(state) ? "$(check) Turn Suggestions On" : "$(circle-slash) Turn Suggestions Off",
      description: "until the settings change or the server restarts",
    });
  }
  if (language !== undefined) {
    entries.push(languageEntry(language));
  }
  if (state.kind === "running") {
    entries.push({ action: "chooseLanguage", label: "$(list-unordered) Languages…" });
  }
  if (state.kind === "running" || state.kind === "idle") {
    entries.push({
      action: "toggleWorkspace",
      label: "$(root-folder) Turn On or Off for This Workspace",
      description: "in the workspace's settings",
    });
  }
  return entries;
}

function languageEntry({ id, mode, isLearnt, isHeldBack }: ActiveLanguage): MenuEntry {
  const name = languageName(id);
  const unlearnt = isLearnt ? "" : `the model does not know ${name}; `;
  return {
    action: "toggleLanguage",
    label: isHeldBack
      ? `$(check) Turn On in ${name} Anyway`
      : mode === "off"
        ? `$(check) Turn On in ${name}`
        : `$(circle-slash) Turn Off in ${name}`,
    description: `${unlearnt}in the settings`,
  };
}
