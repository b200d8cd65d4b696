// Detection of a resting cursor, so that the server prefills there before the first key. Independent of VS Code.

/** Time without a move after which a cursor rests. */
export const REST_MS = 300;

export class Resting<Place> {
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly report: (place: Place) => void) {}

  /** Notes a move; undefined: to an unsupported place. */
  moved(place: Place | undefined): void {
    clearTimeout(this.timer);
    this.timer = place === undefined ? undefined : setTimeout(() => this.report(place), REST_MS);
  }

  dispose(): void {
    clearTimeout(this.timer);
  }
}
