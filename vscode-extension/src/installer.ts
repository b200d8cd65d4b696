// Installation of the server: types the command into a terminal, and the user decides whether to run it.
import { setTimeout as sleep } from "node:timers/promises";
import * as vscode from "vscode";
import { startSettings } from "./configuration";
import { installCommand } from "./finding/install";
import type { Server } from "./server";
import { reader, surroundings } from "./workspace";

/** Interval between searches for the installed server while the terminal is open. */
const LOOK_EVERY_MS = 4_000;
/** Duration of these searches. */
const LOOK_FOR_MS = 20 * 60_000;
/** Time a shell needs to show its prompt. */
const PROMPT_MS = 1_000;

export class Installer implements vscode.Disposable {
  private terminal: vscode.Terminal | undefined;
  private timer: NodeJS.Timeout | undefined;
  private readonly subscription: vscode.Disposable;

  constructor(private readonly server: Server) {
    this.subscription = vscode.window.onDidCloseTerminal((terminal) => {
      if (terminal === this.terminal) {
        this.stopLooking();
        this.terminal = undefined;
        void this.lookAgain();
      }
    });
  }

  offer(): void {
    const { interpreter } = startSettings(reader(), surroundings());
    const command = installCommand(interpreter || this.server.selectedInterpreter, vscode.env.shell);
    this.terminal?.dispose();
    this.terminal = vscode.window.createTerminal({
      name: "Install fim-server",
      iconPath: new vscode.ThemeIcon("cloud-download"),
    });
    this.terminal.show();
    void this.type(this.terminal, command);
    this.stopLooking();
    const end = performance.now() + LOOK_FOR_MS;
    this.timer = setInterval(() => {
      if (performance.now() > end) {
        this.stopLooking();
      } else {
        void this.lookAgain();
      }
    }, LOOK_EVERY_MS);
  }

  dispose(): void {
    this.stopLooking();
    this.subscription.dispose();
  }

  /** Types the command without Enter. Before the shell's prompt, the terminal would echo it twice. */
  private async type(terminal: vscode.Terminal, command: string): Promise<void> {
    await terminal.processId;
    await sleep(PROMPT_MS);
    if (terminal.exitStatus === undefined) {
      terminal.sendText(command, false);
    }
  }

  private async lookAgain(): Promise<void> {
    if (this.server.state.kind === "missing") {
      await this.server.reconsider();
    } else {
      this.stopLooking();
    }
  }

  private stopLooking(): void {
    clearInterval(this.timer);
    this.timer = undefined;
  }
}
