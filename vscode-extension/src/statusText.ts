// Contents of the status bar, as data. Text from the server is escaped, because the tooltip's markdown may run commands.
import { SECTION, type Standing } from "./configuration";
import { MODE_WORDS } from "./languageList";
import { offerOf, offerWords } from "./offers";
import type { LastRequest, ServerStatus } from "./protocol";
import { fetchingIn, isLoading, problemOf, type State } from "./state";
import { counted, duration, GUARANTEE_WORDS, languageName, latencyParts, shortModelName } from "./words";

export interface StatusView {
  /** With an icon, for the status bar. */
  readonly text: string;
  /** Markdown. */
  readonly tooltip: string;
  /** For screen readers. */
  readonly label: string;
  readonly background: "none" | "warning" | "error";
}

/** Language of the active editor, and when it gets suggestions. */
export interface ActiveLanguage extends Standing {
  readonly id: string;
  /** Guarantee of its files, as the server names it; absent before the server has told. */
  readonly guarantee?: string;
}

/** The only commands that the tooltip may run. */
export const TOOLTIP_COMMANDS: readonly string[] = [
  "fim-server.menu",
  "fim-server.showLogs",
  "fim-server.getBetterModel",
  "fim-server.toggleLanguage",
];

interface Headline {
  readonly icon: string;
  readonly words: string;
  readonly suffix?: string;
  /** The loaded model. */
  readonly model?: string;
  readonly background?: "warning" | "error";
}

/**
 * @param snoozedMinutes minutes until the snooze ends; undefined without one
 * @param isSuggestionReady true if a suggestion waits at the cursor for a request
 */
export function statusView(
  state: State,
  language: ActiveLanguage | undefined,
  snoozedMinutes?: number | undefined,
  isSuggestionReady = false,
): StatusView {
  const { icon, words, suffix, model, background } =
    snoozedMinutes === undefined
      ? headline(state, language, isSuggestionReady)
      : snoozedHeadline(state, language, snoozedMinutes);
  return {
    text: [`$(${icon})`, "fim", model ?? suffix].filter((part) => part !== undefined).join(" "),
    tooltip: tooltip(state, words, language),
    label: `fim-server: ${words}${model === undefined ? "" : ` (${model})`}`,
    background: background ?? "none",
  };
}

function headline(state: State, language: ActiveLanguage | undefined, isSuggestionReady = false): Headline {
  switch (state.kind) {
    case "idle":
      return state.disabled
        ? { icon: "circle-slash", words: "off in the settings" }
        : { icon: "circle-outline", words: "waiting for code, or a request" };
    case "starting":
      return { icon: "loading~spin", words: "starting" };
    case "restarting":
      return { icon: "loading~spin", words: `ended unexpectedly (${counted(state.crashes, "time")}), restarting` };
    case "missing":
      return { icon: "warning", words: "the server was not found", background: "warning" };
    case "failed":
      return { icon: "error", words: "the server did not start", background: "error" };
    case "crashed":
      return { icon: "error", words: "the server has ended", background: "error" };
    case "running":
      return runningHeadline(state.status, language, isSuggestionReady);
  }
}

/** Headline while snoozed. A problem takes precedence. */
function snoozedHeadline(state: State, language: ActiveLanguage | undefined, minutes: number): Headline {
  const works = state.kind === "idle" ? !state.disabled : state.kind === "running" && problemOf(state) === undefined;
  return works
    ? { icon: "bell-slash", words: `snoozed for ${counted(minutes, "more minute")}`, suffix: `${minutes} min` }
    : headline(state, language);
}

function runningHeadline(
  status: ServerStatus | undefined,
  language: ActiveLanguage | undefined,
  isSuggestionReady: boolean,
): Headline {
  switch (status?.state) {
    case undefined:
      return { icon: "loading~spin", words: "starting" };
    case "loading": {
      const words = "loading the model";
      return status.progress === null
        ? { icon: "loading~spin", words }
        : { icon: "loading~spin", words, suffix: `${Math.round(Math.min(1, Math.max(0, status.progress)) * 100)}%` };
    }
    case "error":
      return { icon: "error", words: "the server reports an error", background: "error" };
    case "off":
      return { icon: "circle-slash", words: "off" };
    case "ready":
    case "busy":
      if (language?.mode === "off") {
        return { icon: "circle-slash", words: `off in ${languageName(language.id)}` };
      }
      return {
        ...answeringHeadline(status, language, isSuggestionReady),
        ...(status.model ? { model: shortModelName(status.model.name) } : {}),
      };
  }
}

function answeringHeadline(
  status: ServerStatus,
  language: ActiveLanguage | undefined,
  isSuggestionReady: boolean,
): Headline {
  if (status.state === "busy") {
    return { icon: "sync~spin", words: "computing a suggestion" };
  }
  if (isSuggestionReady) {
    return { icon: "sparkle", words: "a suggestion is ready" };
  }
  return language?.isHeldBack
    ? { icon: "circle-outline", words: `ready on request: the model does not know ${languageName(language.id)}` }
    : { icon: "symbol-array", words: "ready" };
}

function tooltip(state: State, words: string, language: ActiveLanguage | undefined): string {
  const blocks = [`**fim-server**: ${escapeMarkdown(words)}`];
  const problem = problemOf(state);
  const status = state.kind === "running" ? state.status : undefined;
  if (problem !== undefined) {
    blocks.push(escapeMarkdown(problem.message));
  } else if (status?.state === "loading" && status.message !== "") {
    // In other states the headline and the rows below say the same.
    blocks.push(escapeMarkdown(status.message));
  }
  const rows = [
    ...modelRows(status),
    ...offerRows(state),
    ...languageRows(language),
    ...setAsideRows(status),
    ...lastRows(status?.last ?? undefined),
  ];
  if (rows.length > 0) {
    blocks.push(["| | |", "|:--|:--|", ...rows.map(([name, value]) => `| ${name} | ${value} |`)].join("\n"));
  }
  blocks.push(`[Menu](command:${SECTION}.menu) · [Logs](command:${SECTION}.showLogs)`);
  return blocks.join("\n\n");
}

type Row = readonly [name: string, value: string];

function modelRows(status: ServerStatus | undefined): Row[] {
  const model = status?.model;
  return model ? [["Model", escapeMarkdown(`${model.name}, on ${model.device}`)]] : [];
}

function offerRows(state: State): Row[] {
  const fetching = fetchingIn(state);
  if (fetching) {
    // While loading, the status message above shows it.
    return isLoading(state)
      ? []
      : [["Better&nbsp;model", escapeMarkdown(`getting ${fetching.name}: ${fetching.message}`)]];
  }
  const offer = offerOf(state);
  return offer === undefined
    ? []
    : [["Better&nbsp;model", `${escapeMarkdown(offerWords(offer))} [Get it](command:${SECTION}.getBetterModel)`]];
}

function setAsideRows(status: ServerStatus | undefined): Row[] {
  const names = (status?.setAside ?? []).map((uri) => escapeMarkdown(uri.slice(uri.lastIndexOf("/") + 1)));
  return names.length === 0
    ? []
    : [["Paused", `${names.join(", ")}: no suggestions until you change it, because the server got stuck there`]];
}

function languageRows(language: ActiveLanguage | undefined): Row[] {
  if (language === undefined) {
    return [];
  }
  const guarantee = language.guarantee === undefined ? "" : `; guarantee ${escapeMarkdown(language.guarantee)}`;
  return [[languageName(escapeMarkdown(language.id)), `${languageWords(language)}${guarantee}`]];
}

/** Markdown. */
function languageWords({ mode, isLearnt, isHeldBack }: ActiveLanguage): string {
  if (isLearnt || mode === "off") {
    return MODE_WORDS[mode];
  }
  const turnOn = `[Turn it on anyway](command:${SECTION}.toggleLanguage)`;
  return isHeldBack
    ? `${MODE_WORDS[mode]}, because the model does not know it. ${turnOn}`
    : `${MODE_WORDS[mode]}, although the model does not know it`;
}

const ORIGIN_WORDS: Readonly<Record<string, string>> = {
  model: "by the model",
  cache: "from the cache",
  prefetch: "prefetched",
};

function lastRows(last: LastRequest | undefined): Row[] {
  if (last === undefined) {
    return [];
  }
  const rows: Row[] = [];
  if (last.items > 0) {
    const origin = ORIGIN_WORDS[last.origin] ?? last.origin;
    const details = `${counted(last.items, "completion")}, ${origin}, ${counted(last.tokens, "token")}${last.ready ? ", ready" : ""}`;
    const refused = last.refused > 0 ? `, ${last.refused} refused by the grammar` : "";
    rows.push(["Last&nbsp;answer", escapeMarkdown(details + refused)]);
    rows.push(["Guarantee", escapeMarkdown(`${last.guarantee}: ${GUARANTEE_WORDS[last.guarantee]}`)]);
  } else {
    rows.push(["Last&nbsp;answer", `nothing: ${escapeMarkdown(last.reason ?? "no reason was given")}`]);
  }
  const parts = latencyParts(last.latency);
  rows.push(["Took", `${duration(last.latency.totalMs)}${parts === "" ? "" : `: ${parts}`}`]);
  return rows;
}

/** Returns the text on one line with all markup escaped: links, table cells, HTML and icons `$(name)`. */
export function escapeMarkdown(text: string): string {
  return text
    .replace(/\s+/g, " ")
    .replace(/[\\`*_{}[\]()#+\-.!|~$]/g, "\\$&")
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;");
}
