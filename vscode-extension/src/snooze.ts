// Silence for some minutes, kept by the extension: while it lasts, the settings that the server gets say `enabled: false`.
import type { Reader } from "./configuration";

const MINUTE_MS = 60_000;
/** A day: longer timers are better a setting, and the platform's own limit is some weeks. */
export const MOST_MINUTES = 1440;

export class Snooze {
  private until: number | undefined;
  private timer: NodeJS.Timeout | undefined;

  /** @param changed Called when it begins, at each full minute that is left, and when it ends. */
  constructor(private readonly changed: () => void) {}

  get isOn(): boolean {
    return this.until !== undefined;
  }

  /** Minutes until its end, rounded up; undefined while there is none. */
  get minutesLeft(): number | undefined {
    return this.until === undefined ? undefined : Math.max(1, Math.ceil((this.until - Date.now()) / MINUTE_MS));
  }

  /** Begins, or lasts longer or shorter than was said before. */
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

/** Settings in which nothing is offered while that is so. */
export function silencedWhile(isSilent: () => boolean, read: Reader): Reader {
  return (name) => (name === "enabled" && isSilent() ? false : read(name));
}

/** Minutes as somebody has written them, or what is wrong with them. */
export function readMinutes(text: string): number | string {
  const minutes = Number(text.trim().replace(",", "."));
  return text.trim() !== "" && minutes > 0 && minutes <= MOST_MINUTES
    ? minutes
    : `A number of minutes is wanted, ${MOST_MINUTES} at most.`;
}
