// Ghost text of the server, shown or requested, inferred from requests and the cursor: VS Code does not report it. Next
// edits give way to it. Independent of VS Code.

export class GhostText {
  private latest = 0;
  private isRequested = false;
  private place: string | undefined;
  private listener: () => void = () => undefined;

  /** True while the last items belong to the cursor's place. */
  get isShown(): boolean {
    return this.place !== undefined;
  }

  /** True while ghost text is shown or requested. */
  get isBusy(): boolean {
    return this.isShown || this.isRequested;
  }

  onDidChange(listener: () => void): void {
    this.listener = listener;
  }

  /** Notes a request, which replaces the one before; returns its number. */
  requested(): number {
    this.isRequested = true;
    return ++this.latest;
  }

  /** Notes the end of a request: the place of its items, null without items, undefined if it was cancelled or failed. */
  answered(request: number, place: string | null | undefined): void {
    if (request !== this.latest) {
      return;
    }
    this.isRequested = false;
    if (place !== undefined) {
      this.place = place ?? undefined;
    }
    this.listener();
  }

  /** Notes the cursor's place; ghost text of another one is hidden. */
  moved(place: string | undefined): void {
    if (this.place !== place) {
      this.hidden();
    }
  }

  /** Notes that the user accepted or dismissed the ghost text. */
  hidden(): void {
    if (this.isShown) {
      this.place = undefined;
      this.listener();
    }
  }
}
