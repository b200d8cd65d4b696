// Policy for restarting a crashed server.

/** Crashes after which the server is not restarted. The first may be chance. */
export const MOST_CRASHES = 2;
/** Serving time after which earlier crashes do not count. Loading, which may take minutes, does not count as serving. */
export const WINDOW_MS = 3 * 60 * 1000;

export interface CrashVerdict {
  readonly restart: boolean;
  /** Delay before the restart. */
  readonly delayMs: number;
  /** Crashes since the server last served for `WINDOW_MS`, with this one. */
  readonly crashes: number;
}

export class CrashPolicy {
  private crashes = 0;
  private servedSince: number | undefined;

  /**
   * Notes that the server serves its model.
   *
   * @param now milliseconds on any clock that only goes forward
   */
  served(now: number): void {
    this.servedSince ??= now;
  }

  /** @param now on the same clock */
  crashed(now: number): CrashVerdict {
    if (this.servedSince !== undefined && now - this.servedSince >= WINDOW_MS) {
      this.crashes = 0;
    }
    this.servedSince = undefined;
    this.crashes += 1;
    return { restart: this.crashes < MOST_CRASHES, delayMs: 0, crashes: this.crashes };
  }

  /** Forgets earlier crashes, when the user restarts the server. */
  forget(): void {
    this.crashes = 0;
    this.servedSince = undefined;
  }
}
