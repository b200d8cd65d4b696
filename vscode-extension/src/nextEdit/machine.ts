// State machine that asks for the next edit, shows, accepts and withdraws it. Independent of VS Code.
import type { NextEdit } from "../protocol";

/** Pause after a change before the server is asked. */
export const PAUSE_MS = 200;

/** The editor and the server, as the machine sees them. */
export interface Surroundings {
  /** Return whether edits may come unasked in the active editor. */
  isWanted(): boolean;
  /** Return whether ghost text is shown; `isRequested`: or on its way. */
  hasGhostText(isRequested: boolean): boolean;
  /** Ask the server at the cursor; undefined: no edit, a failure, or an edit of another version. */
  ask(isExplicit: boolean, signal: AbortSignal): Promise<NextEdit | undefined>;
  /** Return whether the cursor is at the edit and the user has seen it. */
  isAtCursor(edit: NextEdit): boolean;
  /** Move the cursor to the edit. */
  jump(edit: NextEdit): void;
  /** Change the document; false if it has changed since. */
  apply(edit: NextEdit): Promise<boolean>;
  /** Tell the server that the user accepted or dismissed the edit. */
  tell(edit: NextEdit, isAccepted: boolean): void;
  /** Show the edit, or none. While `takesKeys`, Tab and Escape belong to next edits. */
  show(edit: NextEdit | undefined, takesKeys: boolean): void;
  /** Tell the user, who asked, that there is no edit. */
  reportNone(): void;
}

type Origin = "pause" | "key" | "acceptance";

type Phase =
  | { readonly kind: "idle" }
  | { readonly kind: "pausing"; readonly timer: NodeJS.Timeout }
  /** Ghost text goes first; the server is asked once it is gone. */
  | { readonly kind: "waiting" }
  | { readonly kind: "asking"; readonly origin: Origin }
  | { readonly kind: "shown"; readonly edit: NextEdit }
  | { readonly kind: "accepting" };

const IDLE: Phase = { kind: "idle" };

export class NextEdits {
  private phase: Phase = IDLE;
  /** The open request to the server. */
  private question: AbortController | undefined;
  /** True if the user pressed Tab before the edit after an accepted one came. */
  private isTabAhead = false;

  constructor(private readonly around: Surroundings) {}

  /** The edit on the screen. */
  get edit(): NextEdit | undefined {
    return this.phase.kind === "shown" ? this.phase.edit : undefined;
  }

  /** Notes a change of the active editor's text: withdraws the edit, and asks after a pause. */
  changed(): void {
    if (this.phase.kind !== "accepting") {
      this.enter({ kind: "pausing", timer: setTimeout(() => this.askUnlessBusy(), PAUSE_MS) });
    }
  }

  /** Withdraws everything: another editor is active, the server has ended, or edits are off. */
  leave(): void {
    this.enter(IDLE);
  }

  /** Notes that ghost text was requested, shown or hidden. */
  ghostTextChanged(): void {
    if (this.phase.kind === "shown" && this.around.hasGhostText(false)) {
      this.enter({ kind: "waiting" });
    } else if (this.phase.kind === "waiting") {
      this.askUnlessBusy();
    }
  }

  /** Asks for the user's command. */
  async request(): Promise<void> {
    await this.ask("key");
  }

  /** Jumps to the edit, or accepts it at the cursor and asks for the next one. */
  async tab(): Promise<void> {
    if (this.phase.kind !== "shown") {
      this.isTabAhead = true;
      return;
    }
    const { edit } = this.phase;
    if (this.around.isAtCursor(edit)) {
      await this.accept(edit);
    } else {
      this.around.jump(edit);
    }
  }

  /** Withdraws the edit for good. */
  dismiss(): void {
    const { edit } = this;
    this.enter(IDLE);
    if (edit !== undefined) {
      this.around.tell(edit, false);
    }
  }

  private async accept(edit: NextEdit): Promise<void> {
    const accepting: Phase = { kind: "accepting" };
    this.enter(accepting);
    this.isTabAhead = false;
    const isApplied = await this.around.apply(edit);
    if (isApplied) {
      this.around.tell(edit, true);
    }
    if (this.phase === accepting) {
      await (isApplied ? this.ask("acceptance") : this.enter(IDLE));
    }
  }

  private askUnlessBusy(): void {
    if (!this.around.isWanted()) {
      this.enter(IDLE);
    } else if (this.around.hasGhostText(true)) {
      this.enter({ kind: "waiting" });
    } else {
      void this.ask("pause");
    }
  }

  private async ask(origin: Origin): Promise<void> {
    const asking: Phase = { kind: "asking", origin };
    this.enter(asking);
    const question = new AbortController();
    this.question = question;
    const edit = await this.around.ask(origin === "key", question.signal);
    if (this.phase !== asking) {
      return; // cancelled
    }
    this.question = undefined;
    if (edit === undefined) {
      this.enter(IDLE);
      if (origin === "key") {
        this.around.reportNone();
      }
    } else if (origin === "pause" && this.around.hasGhostText(true)) {
      this.enter({ kind: "waiting" });
    } else {
      this.enter({ kind: "shown", edit });
      if (origin === "acceptance" && this.isTabAhead && !this.around.isAtCursor(edit)) {
        this.around.jump(edit); // accepts nothing that the user has not seen
      }
    }
  }

  private enter(next: Phase): void {
    if (this.phase.kind === "pausing") {
      clearTimeout(this.phase.timer);
    }
    this.question?.abort();
    this.question = undefined;
    this.phase = next;
    // After an accepted edit, a quick Tab is meant for the next one and must not indent.
    const isWalking = next.kind === "accepting" || (next.kind === "asking" && next.origin === "acceptance");
    this.around.show(this.edit, next.kind === "shown" || isWalking);
  }
}
