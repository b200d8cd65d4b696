// Whether a server that ended by itself is started again.

/** This many crashes within the window are too many. */
export const MOST_CRASHES = 5;
export const WINDOW_MS = 3 * 60 * 1000;

export interface CrashVerdict {
  readonly restart: boolean;
  /** How long to wait before the restart. */
  readonly delayMs: number;
  /** Crashes within the window, this one included. */
  readonly crashes: number;
}

export class CrashPolicy {
  private times: number[] = [];

  /** @param now milliseconds on any clock that only goes forward */
  crashed(now: number): CrashVerdict {
    this.times = [...this.times.filter((time) => now - time < WINDOW_MS), now];
    const crashes = this.times.length;
    // The first time at once; then 1, 2, 4 seconds, so that a server that dies at birth does not keep the machine busy.
    const delayMs = crashes === 1 ? 0 : 1000 * 2 ** (crashes - 2);
    return { restart: crashes < MOST_CRASHES, delayMs, crashes };
  }

  /** The user restarts the server: what happened before does not count. */
  forget(): void {
    this.times = [];
  }
}
