// Snooze: for some minutes the extension sends the server the setting `enabled: false`.
import type { Reader } from "./configuration";

const MINUTE_MS = 60_000;
/** Longest snooze, a day. A timer of the platform lasts some weeks at most. */
export const MOST_MINUTES = 1440;

export class Snooze {
  private until: number | undefined;
  private timer: NodeJS.Timeout | undefined;

  /** @param changed called at the beginning, after each minute and at the end */
  constructor(private readonly changed: () => void) {}

  get isOn(): boolean {
    return this.until !== undefined;
  }

  /** Minutes until its end, rounded up; undefined without a snooze. */
  get minutesLeft(): number | undefined {
    return this.until === undefined ? undefined : Math.max(1, Math.ceil((this.until - Date.now()) / MINUTE_MS));
  }

  /** Begins a snooze, or replaces the present one. */
  begin(minutes: number): void {
    this.until = Date.now() + Math.min(minutes, MOST_MINUTES) * MINUTE_MS;
    this.tick();
  }

  end(): void {
    clearTimeout(this.timer);
    if (this.until !== undefined) {
      this.until = undefined;
      this.changed();
    }
  }

  dispose(): void {
    clearTimeout(this.timer);
  }

  private tick(): void {
    clearTimeout(this.timer);
    const left = (this.until ?? 0) - Date.now();
    if (left <= 0) {
      this.end();
      return;
    }
    this.timer = setTimeout(() => this.tick(), left % MINUTE_MS || MINUTE_MS);
    this.changed();
  }
}

/** Reads settings, with `enabled` false while suggestions are snoozed. */
export function silencedWhile(isSilent: () => boolean, read: Reader): Reader {
  return (name) => (name === "enabled" && isSilent() ? false : read(name));
}

/** Reads the user's minutes, or returns an error message. */
export function readMinutes(text: string): number | string {
  const minutes = Number(text.trim().replace(",", "."));
  return text.trim() !== "" && minutes > 0 && minutes <= MOST_MINUTES
    ? minutes
    : `Enter a number of minutes, at most ${MOST_MINUTES}.`;
}
