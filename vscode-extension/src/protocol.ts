// What the server says, as docs/protocol.md of the repository has it, and readers that take it from unknown values.
// The readers are lenient: a field that is absent or of a wrong kind becomes its neutral value, so that a server that
// is older or newer than the extension costs a line in a tooltip and not the extension.

export const STATUS_NOTIFICATION = "fim-server/status";
export const CURSOR_NOTIFICATION = "fim-server/cursor";

/** How the tokens of its progress begin while it gets a model. */
export const GETTING_TOKENS = "fim-server/getting/";

/** The server's own commands. The language client registers each under its name, so ours must not be among them. */
export const SERVER_COMMANDS = {
  accepted: "fim-server.accepted",
  explainAt: "fim-server.explainAt",
  statistics: "fim-server.statistics",
  setEnabled: "fim-server.setEnabled",
  reload: "fim-server.reload",
  getModel: "fim-server.getModel",
  models: "fim-server.models",
  removeModel: "fim-server.removeModel",
} as const;

const GUARANTEES = ["exact", "partial", "none"] as const;
export type Guarantee = (typeof GUARANTEES)[number];

const SERVER_STATES = ["loading", "ready", "busy", "error", "off"] as const;
export type ServerState = (typeof SERVER_STATES)[number];

/** Milliseconds, by what they were spent on. */
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
  readonly guarantee: Guarantee;
  readonly origin: string;
  readonly stopReason: string;
  /** Why nothing was offered; null if something was. */
  readonly reason: string | null;
  readonly tokens: number;
  readonly refused: number;
  readonly latency: Latency;
}

/** A better model that can be had. */
export interface ModelOffer {
  readonly name: string;
  readonly state: "missing" | "outdated" | "damaged";
  /** Of the download. */
  readonly bytes: number;
}

/** A model on its way. */
export interface Fetching {
  readonly name: string;
  readonly message: string;
  /** 0 to 1. */
  readonly progress: number;
}

/** What came of getting a model. */
export interface Got {
  readonly name: string;
  readonly done: boolean;
  readonly cancelled: boolean;
  /** Why it is not there, in one line. */
  readonly problem: string | null;
}

/** A model that can be named on the server's machine. */
export interface InstalledModel {
  /** The setting `model`; of a GGUF file its path. */
  readonly name: string;
  readonly state: string;
  readonly inUse: boolean;
  readonly recommended: boolean;
  readonly removable: boolean;
  readonly about: string;
  /** On the disk; null: not here, or part of the server. */
  readonly bytes: number | null;
  /** For a line of code; null: not measured. */
  readonly lineMs: number | null;
}

/** What came of removing a model. */
export interface Removed {
  readonly name: string;
  readonly done: boolean;
  readonly freedBytes: number;
  /** Why it is still there, in one line. */
  readonly problem: string | null;
}

/** The model that completes. */
export interface ModelInfo {
  readonly name: string;
  readonly device: string;
  readonly format: string;
  /** The languages that it has learnt, by id; null: all of them, or the server does not say. */
  readonly languages: readonly string[] | null;
}

export interface ServerStatus {
  readonly state: ServerState;
  readonly message: string;
  /** 0 to 1, while loading, where it is known. */
  readonly progress: number | null;
  readonly model: ModelInfo | null;
  readonly offer: ModelOffer | null;
  readonly fetching: Fetching | null;
  /** Documents that are not asked about until they change, because a worker was stuck at them. */
  readonly setAside: readonly string[];
  readonly last: LastRequest | null;
}

/** A construct left of the cursor that is not finished there. */
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
  /** The character of the text from which on it cannot be completed any more. */
  readonly rejectedAt: number | null;
}

export interface Explanation {
  readonly uri: string;
  /** Counted from 0, in UTF-16 units. */
  readonly position: { readonly line: number; readonly character: number };
  readonly language: string;
  readonly guarantee: Guarantee;
  readonly diagnostics: readonly string[];
  readonly ignored: readonly { readonly line: number; readonly count: number }[];
  readonly inside: "comment" | "string" | null;
  readonly expected: readonly string[];
  /** The one of them that is said first; null: none is. */
  readonly likely: string | null;
  /** Innermost first. */
  readonly openLeft: readonly OpenConstruct[];
  /** The first one first, which closes the innermost. */
  readonly openRight: readonly Closer[];
  readonly grammar: string;
  readonly shortest: string | null;
  readonly candidates: readonly Candidate[];
  readonly verdict: Verdict | null;
}

export interface Statistics {
  readonly requests: number;
  readonly answeredFromCache: number;
  readonly shown: number;
  readonly accepted: number;
  readonly acceptedCharacters: number;
  /** Accepted characters, less one key for each acceptance; undefined from a server that does not say. */
  readonly savedKeystrokes: number | undefined;
  readonly cancelled: number;
  readonly superseded: number;
  readonly failed: number;
  readonly latency: {
    readonly p50Ms: number | null;
    readonly p95Ms: number | null;
    readonly serverP95Ms: number | null;
  };
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

/** Diagnostics are words, or objects with a message as the protocol's own diagnostics are. */
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

/** The status; undefined if the value has none of the states. */
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

/** What came of getting a model; undefined if the value is no object. */
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

/** The models that can be named; those without a name are none. */
export function readModels(value: unknown): InstalledModel[] {
  return list(value, (item) => ({
    name: text(item["name"]),
    state: text(item["state"]),
    inUse: item["inUse"] === true,
    recommended: item["recommended"] === true,
    removable: item["removable"] === true,
    about: text(item["about"]),
    bytes: numberOrNull(item["bytes"]),
    lineMs: numberOrNull(item["lineMs"]),
  })).filter((model) => model.name !== "");
}

/** What came of removing a model; undefined if the value is no object. */
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

/** The explanation; undefined if the value is no object. */
export function readExplanation(value: unknown): Explanation | undefined {
  if (!isFields(value)) {
    return undefined;
  }
  const position = fields(value["position"]);
  const verdict = isFields(value["verdict"]) ? value["verdict"] : null;
  return {
    uri: text(value["uri"]),
    position: { line: count(position["line"]), character: count(position["character"]) },
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

/** The statistics; undefined if the value is no object. */
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
    since: text(value["since"]),
  };
}
