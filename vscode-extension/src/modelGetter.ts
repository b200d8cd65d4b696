// Downloads of models by the server, with a progress that can be cancelled: a better model, offered once, and a chosen
// hub model, which the server downloads while loading it.
import * as vscode from "vscode";
import { reportNotRunning } from "./actions";
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
import { fetchingIn, isLoading, isReady, type State, withoutLinks } from "./state";

const ANSWERS = "fim-server.modelOffer";
const SHOW_LOGS = "Show Logs";

export class ModelGetter implements vscode.Disposable {
  private readonly subscription: vscode.Disposable;
  private asking = false;
  private getting = false;
  private following = false;

  constructor(
    private readonly server: Server,
    private readonly memory: vscode.Memento,
  ) {
    this.subscription = server.onDidChangeState((state) => {
      void this.offerOnce(state);
      void this.followDownload(state);
    });
  }

  dispose(): void {
    this.subscription.dispose();
  }

  /** Downloads a model, by default the better one. Resolves to true once it is installed. */
  async get(name?: string): Promise<boolean> {
    const connection = await this.server.connected();
    if (connection === undefined) {
      reportNotRunning(this.server);
      return false;
    }
    if (this.getting) {
      return false;
    }
    this.getting = true;
    try {
      const got = readGot(await this.shown(connection, name));
      const outcome = outcomeMessage(got);
      if (outcome?.isProblem) {
        void offerLogs(withoutLinks(outcome.message)); // do not await: the message may stay open
      } else if (outcome !== undefined) {
        void vscode.window.showInformationMessage(withoutLinks(outcome.message));
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

  private shown(connection: Connection, name: string | undefined): Thenable<unknown> {
    return this.withProgress(`fim-server: getting ${name ?? "a better model"}`, connection, () =>
      connection.execute(SERVER_COMMANDS.getModel, [name === undefined ? {} : { name }]),
    );
  }

  /** Shows the server's download during `work`. */
  private withProgress<T>(title: string, connection: Connection | undefined, work: () => Promise<T>): Thenable<T> {
    const options = { location: vscode.ProgressLocation.Notification, title, cancellable: true };
    return vscode.window.withProgress(options, async (progress, cancelled) => {
      let percent = 0;
      const show = (state: State) => {
        const fetching = fetchingIn(state);
        if (fetching) {
          const now = Math.round(100 * fetching.progress);
          progress.report({ message: fetching.message, increment: Math.max(0, now - percent) });
          percent = Math.max(percent, now);
        }
      };
      const subscription = this.server.onDidChangeState(show);
      cancelled.onCancellationRequested(() => void connection?.execute(SERVER_COMMANDS.getModel, [{ cancel: true }]));
      show(this.server.state);
      try {
        return await work();
      } finally {
        subscription.dispose();
      }
    });
  }

  /** Shows a hub model's download and reports its success. The state reports a failure. */
  private async followDownload(state: State): Promise<void> {
    const fetching = fetchingIn(state);
    if (!fetching || !isLoading(state) || this.getting || this.following) {
      return;
    }
    this.following = true;
    try {
      const connection = await this.server.connected();
      const ended = await this.withProgress("fim-server", connection, () => this.untilLoaded());
      if (isReady(ended)) {
        const outcome = outcomeMessage({ name: fetching.name, done: true, cancelled: false, problem: null });
        void vscode.window.showInformationMessage(withoutLinks(outcome?.message ?? ""));
      }
    } finally {
      this.following = false;
    }
  }

  /** Resolves to the first state without loading. */
  private untilLoaded(): Promise<State> {
    return new Promise((resolve) => {
      const look = (state: State) => {
        if (!isLoading(state)) {
          subscription.dispose();
          resolve(state);
        }
      };
      const subscription = this.server.onDidChangeState(look);
      look(this.server.state);
    });
  }

  private async offerOnce(state: State): Promise<void> {
    const offer = offerOf(state);
    const answers = readAnswers(this.memory.get(ANSWERS));
    if (offer === undefined || this.asking || this.getting || !isToBeOffered(state, answers, Date.now())) {
      return;
    }
    this.asking = true;
    // Remember before the answer, so that only one of several windows asks.
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

async function offerLogs(message: string): Promise<void> {
  const chosen = await vscode.window.showErrorMessage(message, SHOW_LOGS);
  if (chosen === SHOW_LOGS) {
    await vscode.commands.executeCommand("fim-server.showLogs");
  }
}
