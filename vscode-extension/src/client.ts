// One language client for one server process. Restarts and messages are left to its owner, the `Server`.
import { createInterface } from "node:readline";
import * as vscode from "vscode";
import {
  CloseAction,
  DidChangeConfigurationNotification,
  DidOpenTextDocumentNotification,
  type DidOpenTextDocumentParams,
  ErrorAction,
  type ErrorHandler,
  type ExecuteCommandParams,
  ExecuteCommandRequest,
  InlineCompletionTriggerKind,
  LanguageClient,
  type LanguageClientOptions,
  MessageType,
  type Middleware,
  RevealOutputChannelOn,
  ShowMessageNotification,
} from "vscode-languageclient/node";
import { SECTION, SERVER_SETTINGS, serverSettings } from "./configuration";
import { LastShown } from "./lastShown";
import { levelOf, Tail } from "./log";
import type { GhostText } from "./nextEdit/ghostText";
import { Offered } from "./offered";
import { OpenFiles } from "./openFiles";
import {
  CURSOR_NOTIFICATION,
  GETTING_TOKENS,
  knowsNextEdits,
  LANGUAGE_DATA_NOTIFICATION,
  NEXT_EDIT_REQUEST,
  type NextEdit,
  readNextEdit,
  readStatus,
  SERVER_COMMANDS,
  type ServerStatus,
  STATUS_NOTIFICATION,
} from "./protocol";
import { silencedWhile } from "./snooze";
import { withoutLinks } from "./state";
import { documentSelector, languageConfiguration, placeOf, reader, surroundings } from "./workspace";

export interface ServerCommand {
  readonly command: string;
  readonly args: readonly string[];
}

export interface Cursor {
  readonly document: vscode.TextDocument;
  readonly position: vscode.Position;
}

export interface ClientEvents {
  readonly ghostText: GhostText;
  /** Return whether suggestions are snoozed, whatever the settings say. */
  isSilent(): boolean;
  status(status: ServerStatus): void;
  /** Called when the user accepts a suggestion. */
  accepted(): void;
  /** Called when a started process ends without `stop`. */
  ended(): void;
}

class QuietClient extends LanguageClient {
  /** Log a failed request without a message, which would appear at each key press. */
  override error(message: string, data?: unknown): void {
    super.error(message, data, false);
  }

  override warn(message: string, data?: unknown): void {
    super.warn(message, data, false);
  }

  override info(message: string, data?: unknown): void {
    super.info(message, data, false);
  }
}

export class Connection {
  private readonly client: QuietClient;
  private readonly tail = new Tail();
  private started = false;
  private stopping = false;
  private sentSettings = "";
  private readonly openFiles = new OpenFiles();
  private readonly offered = new Offered();
  private readonly described = new Set<string>();
  private readonly lastShown = new LastShown<vscode.InlineCompletionItem[] | vscode.InlineCompletionList>();

  constructor(
    command: ServerCommand,
    private readonly log: vscode.LogOutputChannel,
    private readonly events: ClientEvents,
  ) {
    this.client = new QuietClient(
      SECTION,
      "fim-server",
      { command: command.command, args: [...command.args] },
      this.options(),
    );
    // Errors are in the status as well, so an error message would repeat it.
    this.client.onNotification(ShowMessageNotification.type, ({ type, message }) => {
      if (type === MessageType.Error) {
        log.error(message);
      } else {
        log.info(message);
        void (type === MessageType.Warning ? vscode.window.showWarningMessage : vscode.window.showInformationMessage)(
          withoutLinks(message),
        );
      }
    });
    this.client.onNotification(STATUS_NOTIFICATION, (value: unknown) => {
      const status = readStatus(value);
      if (status === undefined) {
        log.warn(`unreadable status: ${JSON.stringify(value)}`);
      } else {
        events.status(status);
      }
    });
  }

  /** Resolves once the server is initialized. */
  async start(): Promise<void> {
    await this.client.start();
    this.started = true;
  }

  /** Ends the process. Never fails; an unclean end is logged. */
  async stop(): Promise<void> {
    this.stopping = true;
    try {
      await this.client.dispose();
    } catch (error) {
      this.log.debug(`the server did not stop cleanly: ${error}`);
    }
  }

  /** The last line of the server's standard error. */
  lastWords(): string | undefined {
    return this.tail.lastWords();
  }

  /** Runs one of the server's commands. */
  execute(command: string, args: readonly unknown[], token?: vscode.CancellationToken): Promise<unknown> {
    const params: ExecuteCommandParams = { command, arguments: [...args] };
    return this.client.sendRequest(ExecuteCommandRequest.type, params, token);
  }

  /** Sends the settings if they differ from those sent last. */
  async sendSettings(): Promise<void> {
    const before = this.sentSettings;
    const settings = this.currentSettings();
    // A session's toggle lasts until the settings change, so unchanged settings are not sent again.
    if (this.sentSettings !== before) {
      await this.client.sendNotification(DidChangeConfigurationNotification.type, {
        settings: { [SECTION]: settings },
      });
    }
  }

  /** Sends the position of a resting cursor. */
  async sendCursor({ document, position }: Cursor): Promise<void> {
    if (!this.started || this.stopping) {
      return;
    }
    const { code2ProtocolConverter: converter } = this.client;
    await this.client.sendNotification(CURSOR_NOTIFICATION, {
      textDocument: converter.asTextDocumentIdentifier(document),
      position: converter.asPosition(position),
    });
  }

  /** Tells the server that the ghost text at a cursor was dismissed, if it is the server's. */
  async dismiss(cursor: Cursor | undefined): Promise<void> {
    const id = cursor && this.offered.take(this.uriOf(cursor.document.uri), cursor.position.line);
    if (id !== undefined && this.started && !this.stopping) {
      await this.execute(SERVER_COMMANDS.dismissed, [{ id }]);
    }
  }

  /** Requests the next edit, of a document or another open one; undefined: none, or from a server that knows none. */
  async nextEdit(
    { document, position }: Cursor,
    isExplicit: boolean,
    token: vscode.CancellationToken,
  ): Promise<NextEdit | undefined> {
    if (!this.started || this.stopping || !knowsNextEdits(this.client.initializeResult)) {
      return undefined;
    }
    const { code2ProtocolConverter: converter } = this.client;
    const textDocument = converter.asVersionedTextDocumentIdentifier(document);
    const triggerKind = isExplicit ? InlineCompletionTriggerKind.Invoked : InlineCompletionTriggerKind.Automatic;
    const params = {
      textDocument,
      position: converter.asPosition(position),
      context: { triggerKind },
      otherDocuments: true,
    };
    return readNextEdit(await this.client.sendRequest<unknown>(NEXT_EDIT_REQUEST, params, token));
  }

  /** Requests items at the cursor for a key: those that were shown there last, if there are any. */
  async showAgain(): Promise<void> {
    this.lastShown.isAskedByKey = true;
    try {
      await vscode.commands.executeCommand("editor.action.inlineSuggest.trigger");
    } finally {
      this.lastShown.isAskedByKey = false;
    }
  }

  uriOf(uri: vscode.Uri): string {
    return this.client.code2ProtocolConverter.asUri(uri);
  }

  private options(): LanguageClientOptions {
    return {
      documentSelector: documentSelector(),
      outputChannel: this.log,
      revealOutputChannelOn: RevealOutputChannelOn.Never,
      initializationFailedHandler: () => false, // start() fails and its caller reports why
      initializationOptions: () => this.currentSettings(),
      // Full names leave out `trace.server`, which the server does not know.
      synchronize: { configurationSection: SERVER_SETTINGS.map((name) => `${SECTION}.${name}`) },
      errorHandler: this.errorHandler(),
      middleware: this.middleware(),
      // Standard output carries the protocol, so its lines are no log.
      stdioOptions: { stdout: () => undefined, stderr: (input) => this.readLog(input) },
    };
  }

  private errorHandler(): ErrorHandler {
    return {
      error: (_error, _message, count) => ({
        action: count !== undefined && count <= 3 ? ErrorAction.Continue : ErrorAction.Shutdown,
        handled: true,
      }),
      closed: () => {
        if (this.started && !this.stopping) {
          this.events.ended();
        }
        return { action: CloseAction.DoNotRestart, handled: true };
      },
    };
  }

  private middleware(): Middleware {
    return {
      // When an unsaved file is reverted and closed, the library sends didClose before the last didChange, which the
      // protocol forbids.
      sendNotification: (type, next, params) => {
        const method = typeof type === "string" ? type : type.method;
        if (method === DidOpenTextDocumentNotification.method) {
          const { textDocument } = params as unknown as DidOpenTextDocumentParams;
          void this.describe(textDocument.languageId);
        }
        return this.openFiles.admits(method, params) ? next(type, params) : Promise.resolve();
      },
      workspace: {
        // The library drops settings that are false, 0 or null, and sends those of the extension.
        didChangeConfiguration: () => this.sendSettings(),
        configuration: (params, token, next) => {
          const others = next(params, token);
          const answer = (values: unknown[]) =>
            params.items.map((item, index) => {
              const resource = item.scopeUri ? this.client.protocol2CodeConverter.asUri(item.scopeUri) : undefined;
              return item.section === SECTION ? this.settings(resource) : values[index];
            });
          return Array.isArray(others)
            ? answer(others)
            : Promise.resolve(others).then((values) => (Array.isArray(values) ? answer(values) : values));
        },
      },
      provideInlineCompletionItems: async (document, position, context, token, next) => {
        const isExplicit = context.triggerKind === vscode.InlineCompletionTriggerKind.Invoke;
        const place = JSON.stringify([document.uri, document.version, position, context.selectedCompletionInfo]);
        const shown = isExplicit ? this.lastShown.again(place) : undefined;
        const { ghostText } = this.events;
        const request = ghostText.requested();
        let placeOfItems: string | null | undefined;
        try {
          const found = shown ?? (await next(document, position, context, token));
          if (!token.isCancellationRequested) {
            const items = Array.isArray(found) ? found : (found?.items ?? []);
            placeOfItems = items.length > 0 ? placeOf({ document, position }) : null;
            this.offered.note(this.uriOf(document.uri), position.line, items);
            if (isExplicit && found && items.length > 0) {
              this.lastShown.note(place, found);
            }
          }
          return found;
        } finally {
          ghostText.answered(request, placeOfItems);
        }
      },
      // The extension shows the progress of downloads itself, with a cancel button.
      handleWorkDoneProgress: (token, params, next) => {
        if (!`${token}`.startsWith(GETTING_TOKENS)) {
          next(token, params);
        }
      },
      executeCommand: async (command, args, next) => {
        if (command === SERVER_COMMANDS.accepted) {
          this.events.accepted();
        }
        try {
          return await next(command, args);
        } catch (error) {
          if (command !== SERVER_COMMANDS.accepted) {
            throw error;
          }
          // The editor runs `accepted` on each acceptance; a failure to count it must not show an error.
          this.log.debug(`acceptance was not counted: ${error}`);
          return undefined;
        }
      },
    };
  }

  /** Sends the comments, brackets and quotes of a language, once. The server needs them where it has no grammar. */
  private async describe(languageId: string): Promise<void> {
    if (this.described.has(languageId)) {
      return;
    }
    this.described.add(languageId);
    try {
      const configuration = await languageConfiguration(languageId);
      if (configuration !== undefined && !this.stopping) {
        await this.client.sendNotification(LANGUAGE_DATA_NOTIFICATION, { languageId, configuration });
      }
    } catch (error) {
      this.log.debug(`the language ${languageId} was not described: ${error}`);
    }
  }

  private settings(resource?: vscode.Uri): Record<string, unknown> {
    return serverSettings(
      silencedWhile(() => this.events.isSilent(), reader(resource)),
      surroundings(),
    );
  }

  private currentSettings(): Record<string, unknown> {
    const settings = this.settings();
    this.sentSettings = JSON.stringify(settings);
    return settings;
  }

  private readLog(input: NodeJS.ReadableStream): void {
    createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY }).on("line", (line) => {
      this.tail.push(line);
      this.log[levelOf(line)](line);
    });
  }
}
