// Messages of the server (docs/protocol.md of the repository), and their readers. A missing or wrong field becomes a
// neutral value, so that an older or newer server costs a line in a tooltip at most.

export const STATUS_NOTIFICATION = "fim-server/status";
export const CURSOR_NOTIFICATION = "fim-server/cursor";
export const LANGUAGE_DATA_NOTIFICATION = "fim-server/languageData";
export const NEXT_EDIT_REQUEST = "textDocument/copilotInlineEdit";

/** Beginning of the server's progress tokens for downloads. */
export const GETTING_TOKENS = "fim-server/getting/";

/** The server's commands. The language client registers them, so the extension's commands need other names. */
export const SERVER_COMMANDS = {
  accepted: "fim-server.accepted",
  dismissed: "fim-server.dismissed",
  editAccepted: "fim-server.editAccepted",
  editDismissed: "fim-server.editDismissed",
  resetThreshold: "fim-server.resetThreshold",
  explainAt: "fim-server.explainAt",
  languages: "fim-server.languages",
  statistics: "fim-server.statistics",
  setEnabled: "fim-server.setEnabled",
  reload: "fim-server.reload",
  getModel: "fim-server.getModel",
  models: "fim-server.models",
  removeModel: "fim-server.removeModel",
} as const;

const GUARANTEES = ["exact", "balanced", "partial", "none"] as const;
export type Guarantee = (typeof GUARANTEES)[number];

const SERVER_STATES = ["loading", "ready", "busy", "error", "off"] as const;
export type ServerState = (typeof SERVER_STATES)[number];

/** Language with a grammar, or file with code of such languages. */
export interface KnownLanguage {
  readonly name: string;
  /** The editor's ids. */
  readonly ids: readonly string[];
  /** The server's own word. */
  readonly guarantee: string;
}

/** Milliseconds by stage. */
export interface Latency {
  readonly totalMs: number;
  readonly debounceMs: number;
  readonly queueMs: number;
  readonly openMs: number;
  readonly prefillMs: number;
  readonly decodeMs: number;
  readonly engineMs: number;
  readonly serverMs: number;
}

export interface LastRequest {
  readonly uri: string;
  readonly items: number;
  /** True if the items wait for a request (trigger `subtle`). */
  readonly ready: boolean;
  readonly guarantee: Guarantee;
  readonly origin: string;
  readonly stopReason: string;
  /** Reason for no items; null if there are items. */
  readonly reason: string | null;
  readonly tokens: number;
  readonly refused: number;
  readonly latency: Latency;
}

/** An available better model. */
export interface ModelOffer {
  readonly name: string;
  readonly state: "missing" | "outdated" | "damaged";
  /** Size of the download. */
  readonly bytes: number;
}

/** A model that is being downloaded. */
export interface Fetching {
  readonly name: string;
  readonly message: string;
  /** 0 to 1. */
  readonly progress: number;
}

/** Result of a download. */
export interface Got {
  readonly name: string;
  readonly done: boolean;
  readonly cancelled: boolean;
  /** Reason for a failure, in one line. */
  readonly problem: string | null;
}

/** A model on the server's machine. */
export interface InstalledModel {
  /** Value of the setting `model`; for a GGUF file its path. */
  readonly name: string;
  readonly state: string;
  readonly inUse: boolean;
  readonly recommended: boolean;
  readonly removable: boolean;
  readonly about: string;
  /** Empty: unknown. */
  readonly licence: string;
  /** False: no open-source licence. */
  readonly open: boolean;
  /** Size on disk; null: not installed, or part of the server. */
  readonly bytes: number | null;
  /** Estimated size of the download; null: installed. */
  readonly downloadBytes: number | null;
  /** Time for a line of code; null: not measured. */
  readonly lineMs: number | null;
}

/** Result of a removal. */
export interface Removed {
  readonly name: string;
  readonly done: boolean;
  readonly freedBytes: number;
  /** Reason for a failure, in one line. */
  readonly problem: string | null;
}

/** The loaded model. */
export interface ModelInfo {
  readonly name: string;
  readonly device: string;
  readonly format: string;
  /** Languages it knows, by id; null: all, or unknown. */
  readonly languages: readonly string[] | null;
}

export interface ServerStatus {
  readonly state: ServerState;
  readonly message: string;
  /** 0 to 1 while loading, if known. */
  readonly progress: number | null;
  readonly model: ModelInfo | null;
  readonly offer: ModelOffer | null;
  readonly fetching: Fetching | null;
  /** Documents without suggestions until they change, because a worker got stuck at them. */
  readonly setAside: readonly string[];
  readonly last: LastRequest | null;
}

/** An unfinished construct left of the cursor. */
export interface OpenConstruct {
  readonly name: string;
  /** Counted from 0. */
  readonly line: number;
  readonly text: string;
}

/** A bracket right of the cursor that closes something left of it. */
export interface Closer {
  readonly text: string;
  /** Counted from 0. */
  readonly line: number;
}

export interface Candidate {
  readonly text: string;
  readonly probability: number;
  readonly allowed: boolean;
  readonly reason: string | null;
}

export interface Verdict {
  readonly viable: boolean;
  readonly complete: boolean;
  /** Offset in characters from which the text cannot be completed. */
  readonly rejectedAt: number | null;
}

export interface Explanation {
  readonly uri: string;
  readonly position: Position;
  readonly language: string;
  readonly guarantee: Guarantee;
  readonly diagnostics: readonly string[];
  readonly ignored: readonly { readonly line: number; readonly count: number }[];
  readonly inside: "comment" | "string" | null;
  readonly expected: readonly string[];
  /** The likeliest of them; null: unknown. */
  readonly likely: string | null;
  /** Innermost first. */
  readonly openLeft: readonly OpenConstruct[];
  /** In order; the first closes the innermost bracket. */
  readonly openRight: readonly Closer[];
  readonly grammar: string;
  readonly shortest: string | null;
  readonly candidates: readonly Candidate[];
  readonly verdict: Verdict | null;
}

/** Place in a document, counted from 0, in UTF-16 units. */
export interface Position {
  readonly line: number;
  readonly character: number;
}

/** A change that the server expects next, anywhere in a document. */
export interface NextEdit {
  readonly uri: string;
  readonly version: number;
  readonly range: { readonly start: Position; readonly end: Position };
  readonly text: string;
  /** Names the edit when it is accepted or dismissed. */
  readonly arguments: readonly unknown[];
}

/** Rest of the accepted suggestions of a language and a model, some seconds after their acceptance. */
export interface Retained {
  readonly language: string;
  readonly model: string;
  readonly seconds: number;
  readonly characters: number;
  readonly retained: number;
}

export interface Statistics {
  readonly requests: number;
  readonly answeredFromCache: number;
  readonly shown: number;
  readonly accepted: number;
  readonly acceptedCharacters: number;
  /** Accepted characters less one key an acceptance; undefined from an older server. */
  readonly savedKeystrokes: number | undefined;
  readonly cancelled: number;
  readonly superseded: number;
  readonly failed: number;
  readonly latency: {
    readonly p50Ms: number | null;
    readonly p95Ms: number | null;
    readonly serverP95Ms: number | null;
  };
  /** Shifts of the threshold by what was accepted and dismissed, by language. */
  readonly thresholdShifts: readonly (readonly [language: string, shift: number])[];
  readonly retained: readonly Retained[];
  readonly since: string;
}

type Fields = Readonly<Record<string, unknown>>;

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function fields(value: unknown): Fields {
  return isFields(value) ? value : {};
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function textOrNull(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}

function numberOrNull(value: unknown): number | null {
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}

function count(value: unknown): number {
  return numberOrNull(value) ?? 0;
}

function oneOf<T extends string>(value: unknown, allowed: readonly T[], fallback: T): T {
  return allowed.find((one) => one === value) ?? fallback;
}

function list<T>(value: unknown, read: (item: Fields) => T): T[] {
  return Array.isArray(value) ? value.filter(isFields).map(read) : [];
}

function texts(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((item): item is string => typeof item === "string") : [];
}

/** Reads diagnostics: texts, or objects with a message. */
function messages(value: unknown): string[] {
  const items: unknown[] = Array.isArray(value) ? value : [];
  return items.map((item) => (isFields(item) ? text(item["message"]) : text(item))).filter((message) => message !== "");
}

function readLatency(value: unknown): Latency {
  const from = fields(value);
  return {
    totalMs: count(from["totalMs"]),
    debounceMs: count(from["debounceMs"]),
    queueMs: count(from["queueMs"]),
    openMs: count(from["openMs"]),
    prefillMs: count(from["prefillMs"]),
    decodeMs: count(from["decodeMs"]),
    engineMs: count(from["engineMs"]),
    serverMs: count(from["serverMs"]),
  };
}

/** Reads the status; undefined without a known state. */
export function readStatus(value: unknown): ServerStatus | undefined {
  const from = fields(value);
  const state = SERVER_STATES.find((one) => one === from["state"]);
  if (state === undefined) {
    return undefined;
  }
  const model = isFields(from["model"]) ? from["model"] : null;
  const last = isFields(from["last"]) ? from["last"] : null;
  const offer = isFields(from["offer"]) ? from["offer"] : null;
  const fetching = isFields(from["fetching"]) ? from["fetching"] : null;
  return {
    state,
    message: text(from["message"]),
    progress: numberOrNull(from["progress"]),
    model: model && {
      name: text(model["name"]),
      device: text(model["device"]),
      format: text(model["format"]),
      languages: Array.isArray(model["languages"]) ? texts(model["languages"]) : null,
    },
    offer: offer && {
      name: text(offer["name"]),
      state: offer["state"] === "outdated" || offer["state"] === "damaged" ? offer["state"] : "missing",
      bytes: count(offer["bytes"]),
    },
    fetching: fetching && {
      name: text(fetching["name"]),
      message: text(fetching["message"]),
      progress: Math.min(1, Math.max(0, count(fetching["progress"]))),
    },
    setAside: Array.isArray(from["setAside"]) ? from["setAside"].map(text) : [],
    last: last && {
      uri: text(last["uri"]),
      items: count(last["items"]),
      ready: last["ready"] === true,
      guarantee: oneOf(last["guarantee"], GUARANTEES, "none"),
      origin: text(last["origin"]),
      stopReason: text(last["stopReason"]),
      reason: textOrNull(last["reason"]),
      tokens: count(last["tokens"]),
      refused: count(last["refused"]),
      latency: readLatency(last["latency"]),
    },
  };
}

/** Reads the result of a download; undefined if the value is no object. */
export function readGot(value: unknown): Got | undefined {
  if (!isFields(value)) {
    return undefined;
  }
  return {
    name: text(value["name"]),
    done: value["done"] === true,
    cancelled: value["cancelled"] === true,
    problem: textOrNull(value["problem"]),
  };
}

/** Reads the models that have a name. */
export function readModels(value: unknown): InstalledModel[] {
  return list(value, (item) => ({
    name: text(item["name"]),
    state: text(item["state"]),
    inUse: item["inUse"] === true,
    recommended: item["recommended"] === true,
    removable: item["removable"] === true,
    about: text(item["about"]),
    licence: text(item["licence"]),
    open: item["open"] !== false,
    bytes: numberOrNull(item["bytes"]),
    downloadBytes: numberOrNull(item["downloadBytes"]),
    lineMs: numberOrNull(item["lineMs"]),
  })).filter((model) => model.name !== "");
}

export function readLanguages(value: unknown): KnownLanguage[] {
  return list(value, (item) => ({
    name: text(item["name"]),
    ids: texts(item["ids"]),
    guarantee: text(item["guarantee"]),
  })).filter(({ name }) => name !== "");
}

function readPosition(value: unknown): Position {
  const from = fields(value);
  return { line: count(from["line"]), character: count(from["character"]) };
}

/** Reads the server's next edit; undefined without one. */
export function readNextEdit(value: unknown): NextEdit | undefined {
  const [edit] = list(fields(value)["edits"], (item) => {
    const [range, document, command] = [item["range"], item["textDocument"], item["command"]].map(fields);
    const given = command?.["arguments"];
    return {
      uri: text(document?.["uri"]),
      version: count(document?.["version"]),
      range: { start: readPosition(range?.["start"]), end: readPosition(range?.["end"]) },
      text: text(item["text"]),
      arguments: Array.isArray(given) ? given : [],
    };
  });
  return edit;
}

/** Returns whether the answer to `initialize` names the commands of next edits, as a server's that knows them. */
export function knowsNextEdits(initialized: unknown): boolean {
  const { executeCommandProvider } = fields(fields(initialized)["capabilities"]);
  return texts(fields(executeCommandProvider)["commands"]).includes(SERVER_COMMANDS.editAccepted);
}

/** Reads the result of a removal; undefined if the value is no object. */
export function readRemoved(value: unknown): Removed | undefined {
  if (!isFields(value)) {
    return undefined;
  }
  return {
    name: text(value["name"]),
    done: value["done"] === true,
    freedBytes: count(value["freedBytes"]),
    problem: textOrNull(value["problem"]),
  };
}

/** Reads the explanation; undefined if the value is no object. */
export function readExplanation(value: unknown): Explanation | undefined {
  if (!isFields(value)) {
    return undefined;
  }
  const verdict = isFields(value["verdict"]) ? value["verdict"] : null;
  return {
    uri: text(value["uri"]),
    position: readPosition(value["position"]),
    language: text(value["language"]),
    guarantee: oneOf(value["guarantee"], GUARANTEES, "none"),
    diagnostics: messages(value["diagnostics"]),
    ignored: list(value["ignored"], (item) => ({ line: count(item["line"]), count: count(item["count"]) })),
    inside: value["inside"] === "comment" || value["inside"] === "string" ? value["inside"] : null,
    expected: texts(value["expected"]),
    likely: typeof value["likely"] === "string" ? value["likely"] : null,
    openLeft: list(value["openLeft"], (item) => ({
      name: text(item["name"]),
      line: count(item["line"]),
      text: text(item["text"]),
    })),
    openRight: list(value["openRight"], (item) => ({ text: text(item["text"]), line: count(item["line"]) })),
    grammar: text(value["grammar"]),
    shortest: textOrNull(value["shortest"]),
    candidates: list(value["candidates"], (item) => ({
      text: text(item["text"]),
      probability: Math.min(1, Math.max(0, count(item["probability"]))),
      allowed: item["allowed"] === true,
      reason: textOrNull(item["reason"]),
    })),
    verdict: verdict && {
      viable: verdict["viable"] === true,
      complete: verdict["complete"] === true,
      rejectedAt: numberOrNull(verdict["rejectedAt"]),
    },
  };
}

/** Reads the statistics; undefined if the value is no object. */
export function readStatistics(value: unknown): Statistics | undefined {
  if (!isFields(value)) {
    return undefined;
  }
  const latency = fields(value["latency"]);
  return {
    requests: count(value["requests"]),
    answeredFromCache: count(value["answeredFromCache"]),
    shown: count(value["shown"]),
    accepted: count(value["accepted"]),
    acceptedCharacters: count(value["acceptedCharacters"]),
    savedKeystrokes: numberOrNull(value["savedKeystrokes"]) ?? undefined,
    cancelled: count(value["cancelled"]),
    superseded: count(value["superseded"]),
    failed: count(value["failed"]),
    latency: {
      p50Ms: numberOrNull(latency["p50Ms"]),
      p95Ms: numberOrNull(latency["p95Ms"]),
      serverP95Ms: numberOrNull(latency["serverP95Ms"]),
    },
    thresholdShifts: Object.entries(fields(value["thresholdShifts"])).map(([name, shift]) => [name, count(shift)]),
    retained: list(value["retained"], (item) => ({
      language: text(item["language"]),
      model: text(item["model"]),
      seconds: count(item["seconds"]),
      characters: count(item["characters"]),
      retained: count(item["retained"]),
    })),
    since: text(value["since"]),
  };
}
