// Lifecycle of the server: find, start, restart after a crash, stop. At most one runs at a time, and starts and stops
// never overlap.
import * as vscode from "vscode";
import type { ClientEvents, Connection, Cursor } from "./client";
import { type Known, needsServer, type StartSettings, serveArguments, startSettings } from "./configuration";
import { CrashPolicy } from "./crashes";
import type { Disposable, Interpreters } from "./finding/interpreters";
import { type Found, findServer, isSameProgram, type Missing, ORIGIN_WORDS, type Program } from "./finding/search";
import { startFailure } from "./log";
import { machine } from "./machine";
import { GhostText } from "./nextEdit/ghostText";
import { type NextEdit, readLanguages, SERVER_COMMANDS } from "./protocol";
import { Snooze } from "./snooze";
import { isOff, isReady, problemOf, type State } from "./state";
import { localFolders, openDocument, openDocuments, reader, surroundings } from "./workspace";

/** Longest wait for a server to start and load its model. */
const READY_MS = 120_000;

/** Result of the search and the settings to start with. */
interface Search {
  readonly found: Found | Missing;
  readonly settings: StartSettings;
}

export class Server implements Disposable {
  private connection: Connection | undefined;
  private program: Program | undefined;
  private current: State = { kind: "idle", disabled: false };
  private pending: Promise<void> = Promise.resolve();
  private restartTimer: NodeJS.Timeout | undefined;
  private subscriptions: Disposable[] = [];
  private selected: string | undefined;
  private languages: Known = null;
  private readonly snoozing = new Snooze(() => this.snoozeChanged());
  private readonly crashes = new CrashPolicy();
  readonly ghostText = new GhostText();
  private readonly changes = new vscode.EventEmitter<State>();
  readonly onDidChangeState = this.changes.event;
  private readonly acceptances = new vscode.EventEmitter<void>();
  readonly onDidAccept = this.acceptances.event;

  constructor(
    private readonly log: vscode.LogOutputChannel,
    private readonly interpreters: Interpreters,
  ) {}

  get state(): State {
    return this.current;
  }

  /** Minutes until the snooze ends; undefined if there is none. */
  get snoozedMinutes(): number | undefined {
    return this.snoozing.minutesLeft;
  }

  /** The languages that the server knows; null before it has told. */
  get known(): Known {
    return this.languages;
  }

  /** Asks a running server for its languages, once; returns null without one. */
  async knownLanguages(): Promise<Known> {
    try {
      const { connection } = this;
      if (connection !== undefined) {
        this.languages ??= readLanguages(await connection.execute(SERVER_COMMANDS.languages, []));
      }
    } catch (error) {
      this.log.debug(`the languages were not listed: ${error}`);
    }
    return this.languages;
  }

  /** The interpreter selected during the last search. */
  get selectedInterpreter(): string | undefined {
    return this.selected;
  }

  /**
   * Starts the server if an open file needs it and no start was tried. `asked`: also for a text in the active editor,
   * such as Markdown.
   */
  startIfNeeded(asked = false): Promise<void> {
    return this.afterwards(async () => {
      if (this.current.kind === "idle") {
        const read = reader();
        const document = asked ? vscode.window.activeTextEditor?.document : undefined;
        if (needsServer(openDocuments(), read, document && openDocument(document))) {
          await this.start();
        } else {
          this.become({ kind: "idle", disabled: read("enabled") === false });
        }
      }
    });
  }

  /** Stops the server and starts it with the current settings. */
  restart(): Promise<void> {
    return this.afterwards(async () => {
      this.crashes.forget();
      await this.stopConnection();
      await this.start();
    });
  }

  /** Searches again, after a change of interpreter or trust; restarts if another program is found. */
  reconsider(): Promise<void> {
    return this.afterwards(async () => {
      if (this.current.kind === "idle") {
        return;
      }
      const search = await this.find();
      const { found } = search;
      if (found.kind === "missing") {
        // Keep a running server.
        if (this.connection === undefined) {
          this.become({ kind: "missing", search: found });
        }
        return;
      }
      if (this.current.kind !== "missing" && isSameProgram(found.program, this.program)) {
        this.sendSettings(); // trust changes some
        return;
      }
      this.crashes.forget();
      await this.stopConnection();
      await this.start(search);
    });
  }

  stop(): Promise<void> {
    return this.afterwards(() => this.stopConnection());
  }

  dispose(): void {
    clearTimeout(this.restartTimer);
    this.snoozing.dispose();
    for (const subscription of this.subscriptions) {
      subscription.dispose();
    }
    this.changes.dispose();
    this.acceptances.dispose();
  }

  /** Returns the connection, after a first start if none was tried; undefined if there is none. */
  async connected(): Promise<Connection | undefined> {
    await this.afterwards(async () => {
      if (this.current.kind === "idle") {
        await this.start();
      }
    });
    return this.connection;
  }

  /** Starts the server if necessary; returns true once it has a model, and false if it cannot or takes too long. */
  async ready(): Promise<boolean> {
    await this.startIfNeeded(true);
    const isDecided = () =>
      isReady(this.current) ||
      isOff(this.current) ||
      problemOf(this.current) !== undefined ||
      this.current.kind === "idle"; // nothing is needed here
    if (!isDecided()) {
      await new Promise<void>((resolve) => {
        const end = () => {
          clearTimeout(timer);
          subscription.dispose();
          resolve();
        };
        const timer = setTimeout(end, READY_MS);
        const subscription = this.onDidChangeState(() => isDecided() && end());
      });
    }
    return isReady(this.current);
  }

  /** Hides suggestions for some minutes. */
  snooze(minutes: number): void {
    this.snoozing.begin(minutes);
  }

  endSnooze(): void {
    this.snoozing.end();
  }

  /** Sends the position of a resting cursor, if the server runs. */
  sendCursor(cursor: Cursor): void {
    void this.connection?.sendCursor(cursor).catch((error) => this.log.debug(`the cursor was not sent: ${error}`));
  }

  /** Tells a running server that the user dismissed the ghost text at a cursor. */
  dismiss(cursor: Cursor | undefined): void {
    this.ghostText.hidden();
    void this.connection?.dismiss(cursor).catch((error) => this.log.debug(`the dismissal was not sent: ${error}`));
  }

  /** Asks a running server for the next edit; undefined without one. */
  async nextEdit(cursor: Cursor, isExplicit: boolean, token: vscode.CancellationToken): Promise<NextEdit | undefined> {
    try {
      return await this.connection?.nextEdit(cursor, isExplicit, token);
    } catch (error) {
      this.log.debug(`no next edit: ${error}`);
      return undefined;
    }
  }

  /** Tells a running server that the user accepted or dismissed its edit. */
  tellOfEdit(edit: NextEdit, isAccepted: boolean): void {
    const command = isAccepted ? SERVER_COMMANDS.editAccepted : SERVER_COMMANDS.editDismissed;
    void this.connection
      ?.execute(command, edit.arguments)
      .catch((error) => this.log.debug(`${command} was not sent: ${error}`));
  }

  /** Shows a suggestion at the cursor for a key; one that was hidden comes again. */
  async showAgain(): Promise<void> {
    await this.connection?.showAgain();
  }

  /** Turns suggestions on or off for this session, or ends a snooze. */
  async toggle(): Promise<void> {
    if (this.snoozing.isOn) {
      this.snoozing.end();
      return;
    }
    const enabled = isOff(this.current);
    const connection = await this.connected();
    await connection?.execute(SERVER_COMMANDS.setEnabled, [enabled]);
  }

  /** Runs an action after the pending ones. Never fails; the state reports the result. */
  private afterwards(action: () => Promise<void>): Promise<void> {
    this.pending = this.pending.then(action).catch((error) => this.log.error(`${error}`));
    return this.pending;
  }

  private async find(): Promise<Search> {
    const resource = vscode.window.activeTextEditor?.document.uri ?? vscode.workspace.workspaceFolders?.[0]?.uri;
    const settings = startSettings(reader(resource), surroundings());
    this.selected = await this.interpreters.selected(resource);
    this.watchInterpreters();
    const places = {
      platform: process.platform,
      selected: this.selected,
      folders: localFolders().map((folder) => folder.path),
      trusted: vscode.workspace.isTrusted,
      searchPath: process.env["PATH"] ?? "",
    };
    return { found: await findServer(settings, places, machine), settings };
  }

  /** Subscribes again after each search, which activates the Python extensions. */
  private watchInterpreters(): void {
    for (const subscription of this.subscriptions) {
      subscription.dispose();
    }
    this.subscriptions = this.interpreters.onDidChange(() => void this.reconsider());
  }

  private async start(search?: Search): Promise<void> {
    clearTimeout(this.restartTimer);
    this.become({ kind: "starting" });
    const { found, settings } = search ?? (await this.find());
    if (found.kind === "missing") {
      this.log.warn([found.message, ...found.tried.map((line) => `  ${line}`)].join("\n"));
      this.become({ kind: "missing", search: found });
      return;
    }
    this.program = found.program;
    const command = {
      command: found.program.command,
      args: [...found.program.leading, ...serveArguments(settings)],
    };
    this.log.info(`starting ${[command.command, ...command.args].join(" ")} (${ORIGIN_WORDS[found.origin]})`);
    await this.connect(command);
  }

  private async connect(command: { command: string; args: string[] }): Promise<void> {
    const events: ClientEvents = {
      ghostText: this.ghostText,
      isSilent: () => this.snoozing.isOn,
      status: (status) => {
        if (this.connection === connection) {
          if (status.state === "ready") {
            this.crashes.served(performance.now());
          }
          this.become({ kind: "running", status });
        }
      },
      accepted: () => {
        this.ghostText.hidden();
        this.acceptances.fire();
      },
      ended: () => void this.afterwards(() => this.handleCrash(connection)),
    };
    // Evaluating the language client takes longer than all else, so it waits for a file that needs a server.
    const client = await import("./client");
    const connection: Connection = new client.Connection(command, this.log, events);
    this.languages = null;
    this.connection = connection; // before the start: the first status may arrive with the answer
    try {
      await connection.start();
    } catch (error) {
      this.connection = undefined;
      void connection.stop(); // releases the process
      const message = startFailure(command.command, error, connection.lastWords());
      this.log.error(message);
      this.become({ kind: "failed", message });
      return;
    }
    if (this.current.kind === "starting") {
      this.become({ kind: "running", status: undefined });
    }
    void this.knownLanguages().then(() => this.changes.fire(this.current));
  }

  private async handleCrash(connection: Connection): Promise<void> {
    if (this.connection !== connection) {
      return; // stopped in the meantime, or replaced
    }
    const lastWords = connection.lastWords();
    await this.stopConnection();
    const { restart, delayMs, crashes } = this.crashes.crashed(performance.now());
    this.log.error(`the server ended unexpectedly${lastWords === undefined ? "" : `: ${lastWords}`}`);
    if (!restart) {
      const cause = lastWords === undefined ? "" : ` (${lastWords})`;
      const message = `fim-server ended unexpectedly ${crashes} times${cause}. Restart it, or see the log.`;
      this.become({ kind: "crashed", message });
      return;
    }
    this.become({ kind: "restarting", crashes });
    this.restartTimer = setTimeout(() => {
      void this.afterwards(async () => {
        if (this.current.kind === "restarting") {
          await this.start();
        }
      });
    }, delayMs);
  }

  private async stopConnection(): Promise<void> {
    clearTimeout(this.restartTimer);
    const connection = this.connection;
    this.connection = undefined;
    await connection?.stop();
  }

  private sendSettings(): void {
    void this.connection?.sendSettings().catch((error) => this.log.debug(`the settings were not sent: ${error}`));
  }

  private snoozeChanged(): void {
    this.sendSettings();
    this.changes.fire(this.current);
  }

  private become(state: State): void {
    this.current = state;
    this.changes.fire(state);
  }
}
