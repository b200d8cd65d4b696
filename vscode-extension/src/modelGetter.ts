// Getting a better model: offered once, and fetched by the server with a progress that can be cancelled.
import * as vscode from "vscode";
import { sayNotRunning } from "./actions";
import type { Connection } from "./client";
import {
  type Answers,
  GET_IT,
  isToBeOffered,
  NEVER,
  NOT_NOW,
  offerOf,
  offerQuestion,
  outcomeMessage,
  readAnswers,
} from "./offers";
import { readGot, SERVER_COMMANDS } from "./protocol";
import type { Server } from "./server";
import { type State, withoutLinks } from "./state";

const ANSWERS = "fim-server.modelOffer";
const SHOW_LOGS = "Show Logs";

export class ModelGetter implements vscode.Disposable {
  private readonly subscription: vscode.Disposable;
  private asking = false;
  private getting = false;

  constructor(
    private readonly server: Server,
    private readonly memory: vscode.Memento,
  ) {
    this.subscription = server.onDidChangeState((state) => void this.offerOnce(state));
  }

  dispose(): void {
    this.subscription.dispose();
  }

  /** Have the server get the model. Its answer, whether the model is there, comes when that has ended. */
  async get(): Promise<boolean> {
    const connection = await this.server.connected();
    if (connection === undefined) {
      sayNotRunning(this.server);
      return false;
    }
    if (this.getting) {
      return false;
    }
    this.getting = true;
    try {
      const got = readGot(await this.shown(connection));
      const told = outcomeMessage(got);
      if (told?.isProblem) {
        const chosen = await vscode.window.showErrorMessage(withoutLinks(told.message), SHOW_LOGS);
        if (chosen === SHOW_LOGS) {
          await vscode.commands.executeCommand("fim-server.showLogs");
        }
      } else if (told !== undefined) {
        void vscode.window.showInformationMessage(withoutLinks(told.message));
      }
      return got?.done ?? false;
    } catch (error) {
      void vscode.window.showErrorMessage(
        withoutLinks(`fim-server: ${error instanceof Error ? error.message : error}`),
      );
      return false;
    } finally {
      this.getting = false;
    }
  }

  private shown(connection: Connection): Thenable<unknown> {
    const options = {
      location: vscode.ProgressLocation.Notification,
      title: "fim-server: getting a better model",
      cancellable: true,
    };
    return vscode.window.withProgress(options, async (progress, cancelled) => {
      let percent = 0;
      const subscription = this.server.onDidChangeState((state) => {
        const fetching = state.kind === "running" ? state.status?.fetching : undefined;
        if (fetching) {
          const now = Math.round(100 * fetching.progress);
          progress.report({ message: fetching.message, increment: Math.max(0, now - percent) });
          percent = Math.max(percent, now);
        }
      });
      cancelled.onCancellationRequested(() => void connection.execute(SERVER_COMMANDS.getModel, [{ cancel: true }]));
      try {
        return await connection.execute(SERVER_COMMANDS.getModel, [{}]);
      } finally {
        subscription.dispose();
      }
    });
  }

  private async offerOnce(state: State): Promise<void> {
    const offer = offerOf(state);
    const answers = readAnswers(this.memory.get(ANSWERS));
    if (offer === undefined || this.asking || this.getting || !isToBeOffered(state, answers, Date.now())) {
      return;
    }
    this.asking = true;
    // Noted before the answer: with several windows, one asks.
    await this.remember({ never: false, askedAt: Date.now() });
    const chosen = await vscode.window.showInformationMessage(offerQuestion(offer), GET_IT, NOT_NOW, NEVER);
    this.asking = false;
    if (chosen === NEVER) {
      await this.remember({ never: true, askedAt: Date.now() });
    } else if (chosen === GET_IT) {
      await this.get();
    }
  }

  private remember(answers: Answers): Thenable<void> {
    return this.memory.update(ANSWERS, answers);
  }
}
