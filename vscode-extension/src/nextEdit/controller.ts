// Next edits in the active editor: connects their state machine with VS Code's events, the server and the view.
import * as vscode from "vscode";
import { reportNotRunning } from "../actions";
import { type Mode, nextEditMode } from "../configuration";
import type { NextEdit } from "../protocol";
import type { Server } from "../server";
import { silencedWhile } from "../snooze";
import { isOff } from "../state";
import { cursorOf, fileOf, placeOf, reader } from "../workspace";
import { NextEdits } from "./machine";
import { View } from "./view";

/** Longest wait for an answer. It takes milliseconds, but the first one in a language waits for its grammar. */
const ANSWER_MS = 10_000;
const MESSAGE_MS = 3_000;

export class NextEditController {
  private readonly view: View;
  private readonly machine: NextEdits;
  private readonly subscriptions: vscode.Disposable[];

  constructor(
    private readonly server: Server,
    extension: vscode.Uri,
  ) {
    this.view = new View(extension);
    this.machine = new NextEdits({
      isWanted: () => this.isWanted(),
      hasGhostText: (isRequested) => (isRequested ? server.ghostText.isBusy : server.ghostText.isShown),
      ask: (isExplicit, signal) => this.ask(isExplicit, signal),
      isAtCursor: () => this.view.isAtCursor,
      jump: () => void this.jump(),
      apply: (edit) => this.view.apply(edit),
      tell: (edit, isAccepted) => server.tellOfEdit(edit, isAccepted),
      show: (edit, takesKeys) => this.view.show(edit, takesKeys),
      reportNone: () => this.reportNone(),
    });
    server.ghostText.onDidChange(() => this.machine.ghostTextChanged());
    this.subscriptions = this.listen();
  }

  /** Asks for the user's command. */
  async request(): Promise<void> {
    if (this.server.state.kind !== "running") {
      reportNotRunning(this.server);
      return;
    }
    await vscode.commands.executeCommand("editor.action.inlineSuggest.hide");
    this.server.ghostText.hidden();
    await this.machine.request();
  }

  /** Jumps to the edit, or accepts it at the cursor. */
  async tab(): Promise<void> {
    await this.machine.tab();
  }

  dismiss(): void {
    this.machine.dismiss();
  }

  dispose(): void {
    for (const subscription of this.subscriptions) {
      subscription.dispose();
    }
    this.machine.leave();
    this.view.dispose();
  }

  private listen(): vscode.Disposable[] {
    return [
      vscode.workspace.onDidChangeTextDocument(({ document, contentChanges }) => {
        const isHere = document === vscode.window.activeTextEditor?.document || this.view.isOf(document);
        if (isHere && contentChanges.length > 0) {
          this.machine.changed(); // first: it asks after a pause, and at once where ghost text is hidden
          this.cursorMoved();
        }
      }),
      vscode.window.onDidChangeActiveTextEditor(() => {
        if (!this.view.isInItsDocument) {
          this.machine.leave();
          this.machine.changed(); // what was done in another file may concern this one
        }
        this.cursorMoved();
        this.view.refresh();
      }),
      vscode.workspace.onDidCloseTextDocument((document) => {
        if (this.view.isOf(document)) {
          this.machine.leave();
        }
      }),
      vscode.window.onDidChangeTextEditorSelection(({ textEditor }) => {
        if (textEditor === vscode.window.activeTextEditor) {
          this.cursorMoved();
          this.view.refresh();
        }
      }),
      vscode.window.onDidChangeTextEditorVisibleRanges(() => this.view.refresh()),
      this.server.onDidChangeState(() => this.leaveIfOff()),
      vscode.workspace.onDidChangeConfiguration(() => this.leaveIfOff()),
    ];
  }

  private async jump(): Promise<void> {
    if (!(await this.view.jump())) {
      this.machine.leave();
    }
  }

  private cursorMoved(): void {
    const cursor = cursorOf(vscode.window.activeTextEditor);
    this.server.ghostText.moved(cursor && placeOf(cursor));
  }

  private leaveIfOff(): void {
    if (this.mode() === "off") {
      this.machine.leave();
    }
  }

  /** Mode of next edits in the active editor. */
  private mode(): Mode {
    const document = vscode.window.activeTextEditor?.document;
    const { state, known, snoozedMinutes } = this.server;
    if (document === undefined || state.kind !== "running" || isOff(state)) {
      return "off";
    }
    const read = silencedWhile(() => snoozedMinutes !== undefined, reader(document.uri));
    return nextEditMode(document.languageId, read, fileOf(document), known);
  }

  private isWanted(): boolean {
    const cursor = cursorOf(vscode.window.activeTextEditor);
    // On a blank line the user is about to write, and Tab indents.
    const isBlank = cursor?.document.lineAt(cursor.position.line).isEmptyOrWhitespace ?? true;
    return !isBlank && this.mode() === "automatic";
  }

  private async ask(isExplicit: boolean, signal: AbortSignal): Promise<NextEdit | undefined> {
    const cursor = cursorOf(vscode.window.activeTextEditor);
    if (cursor === undefined || this.mode() === "off") {
      return undefined;
    }
    const source = new vscode.CancellationTokenSource();
    const timer = setTimeout(() => source.cancel(), ANSWER_MS);
    signal.addEventListener("abort", () => source.cancel(), { once: true });
    try {
      const edit = await this.server.nextEdit(cursor, isExplicit, source.token);
      return edit !== undefined && this.view.canShow(edit) ? edit : undefined;
    } finally {
      clearTimeout(timer);
      source.dispose();
    }
  }

  private reportNone(): void {
    const reason = this.mode() === "off" ? "next edits are off here" : "there is no next edit";
    vscode.window.setStatusBarMessage(`fim-server: ${reason}`, MESSAGE_MS);
  }
}
