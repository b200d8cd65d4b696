// Whether a server that ended by itself is started again.

/** Crashes after which the server is not started again: the first may be chance, the second has a cause. */
export const MOST_CRASHES = 2;
/** Time that a server has to serve its model for earlier crashes not to count; loading alone may take minutes. */
export const WINDOW_MS = 3 * 60 * 1000;

export interface CrashVerdict {
  readonly restart: boolean;
  /** How long to wait before the restart. */
  readonly delayMs: number;
  /** Crashes since a server last served for the window's time, this one included. */
  readonly crashes: number;
}

export class CrashPolicy {
  private crashes = 0;
  private servedSince: number | undefined;

  /**
   * Notes that the server has its model.
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

  /** The user restarts the server: what happened before does not count. */
  forget(): void {
    this.crashes = 0;
    this.servedSince = undefined;
  }
}
