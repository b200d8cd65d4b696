// Where a cursor comes to rest, for the server to read the text there before the first key is pressed. Nothing here knows
// VS Code.

/** A cursor that has not moved for so long rests. */
export const REST_MS = 300;

export class Resting<Place> {
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly tell: (place: Place) => void) {}

  /** Takes note of a move; undefined: to a place that is not ours. */
  moved(place: Place | undefined): void {
    clearTimeout(this.timer);
    this.timer = place === undefined ? undefined : setTimeout(() => this.tell(place), REST_MS);
  }

  dispose(): void {
    clearTimeout(this.timer);
  }
}
