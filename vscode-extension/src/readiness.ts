// Mark that a suggestion is ready at the cursor in the mode `subtle`. Independent of VS Code.
import type { LastRequest } from "./protocol";

export class Readiness {
  private last = "";
  private ready = false;

  get isReady(): boolean {
    return this.ready;
  }

  /** Notes the last answer in a status, which the server repeats until there is another one. */
  note(last: LastRequest | null | undefined): void {
    const text = JSON.stringify(last ?? null);
    if (text !== this.last) {
      this.last = text;
      this.ready = last?.ready === true;
    }
  }

  /** Notes that the cursor has left its place; returns true if a suggestion was ready there. */
  moved(): boolean {
    const wasReady = this.ready;
    this.ready = false;
    return wasReady;
  }
}
