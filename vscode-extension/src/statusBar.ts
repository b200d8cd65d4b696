// The item in the status bar.
import * as vscode from "vscode";
import type { Known } from "./configuration";
import { Readiness } from "./readiness";
import type { State } from "./state";
import { statusView, TOOLTIP_COMMANDS } from "./statusText";
import { activeLanguage } from "./workspace";

/** Time before a request changes the icon, which would otherwise flicker at each key press. */
const BUSY_DELAY_MS = 300;

const BACKGROUNDS = {
  none: undefined,
  warning: "statusBarItem.warningBackground",
  error: "statusBarItem.errorBackground",
};

export class StatusBar implements vscode.Disposable {
  private readonly item: vscode.StatusBarItem;
  private state: State = { kind: "idle", disabled: false };
  private snoozedMinutes: number | undefined;
  private known: Known = null;
  private readonly readiness = new Readiness();
  private busyTimer: NodeJS.Timeout | undefined;

  constructor() {
    this.item = vscode.window.createStatusBarItem("fim-server.status", vscode.StatusBarAlignment.Right, 100);
    this.item.name = "fim-server";
    this.item.command = "fim-server.menu";
    this.show();
    this.item.show();
  }

  update(state: State, snoozedMinutes: number | undefined, known: Known): void {
    const isBusy = state.kind === "running" && state.status?.state === "busy";
    clearTimeout(this.busyTimer);
    this.state = state;
    this.snoozedMinutes = snoozedMinutes;
    this.known = known;
    this.readiness.note(state.kind === "running" ? state.status?.last : undefined);
    if (isBusy) {
      this.busyTimer = setTimeout(() => this.show(), BUSY_DELAY_MS);
    } else {
      this.show();
    }
  }

  /** Redraws after a change of the active editor, its language or a setting. */
  refresh(): void {
    this.update(this.state, this.snoozedMinutes, this.known);
  }

  /** Notes a move of the cursor. */
  moved(): void {
    if (this.readiness.moved()) {
      this.refresh();
    }
  }

  dispose(): void {
    clearTimeout(this.busyTimer);
    this.item.dispose();
  }

  private show(): void {
    const language = activeLanguage(this.state, this.known);
    const view = statusView(this.state, language, this.snoozedMinutes, this.readiness.isReady);
    const tooltip = new vscode.MarkdownString(view.tooltip, true);
    tooltip.isTrusted = { enabledCommands: [...TOOLTIP_COMMANDS] };
    const background = BACKGROUNDS[view.background];
    this.item.text = view.text;
    this.item.tooltip = tooltip;
    this.item.backgroundColor = background === undefined ? undefined : new vscode.ThemeColor(background);
    this.item.accessibilityInformation = { label: view.label, role: "button" };
  }
}
