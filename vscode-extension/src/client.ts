// One language client for one server process. It never restarts itself and never shows a message: both are for the
// owner, who knows what else is going on.
import { createInterface } from "node:readline";
import * as vscode from "vscode";
import {
  CloseAction,
  DidChangeConfigurationNotification,
  ErrorAction,
  type ErrorHandler,
  type ExecuteCommandParams,
  ExecuteCommandRequest,
  LanguageClient,
  type LanguageClientOptions,
  MessageType,
  type Middleware,
  RevealOutputChannelOn,
  ShowMessageNotification,
} from "vscode-languageclient/node";
import { SECTION, SERVER_SETTINGS, serverSettings } from "./configuration";
import { levelOf, Tail } from "./log";
import { OpenFiles } from "./openFiles";
import {
  CURSOR_NOTIFICATION,
  GETTING_TOKENS,
  readStatus,
  SERVER_COMMANDS,
  type ServerStatus,
  STATUS_NOTIFICATION,
} from "./protocol";
import { silencedWhile } from "./snooze";
import { withoutLinks } from "./state";
import { documentSelector, reader, surroundings } from "./workspace";

export interface ServerCommand {
  readonly command: string;
  readonly args: readonly string[];
}

export interface Cursor {
  readonly document: vscode.TextDocument;
  readonly position: vscode.Position;
}

export interface ClientEvents {
  /** Whether nothing is to be offered at present, whatever the settings say. */
  isSilent(): boolean;
  status(status: ServerStatus): void;
  /** The process has ended though nobody asked it to; not while it starts, which then fails. */
  ended(): void;
}

class QuietClient extends LanguageClient {
  /** A failed request would raise a message at each key press; the log is the place for it. */
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
    // The status says what is wrong, and lasts; a message on top of it would be the second one for the same thing.
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
        log.warn(`a status that cannot be read: ${JSON.stringify(value)}`);
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

  /** Ends the process. Never fails: that a server does not end cleanly is for the log. */
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

  /** Tells the server the settings, if they are not those that it has. */
  async sendSettings(): Promise<void> {
    const before = this.sentSettings;
    const settings = this.currentSettings();
    // What the user switched for this session lasts until the settings change, so they are sent only if they have.
    if (this.sentSettings !== before) {
      await this.client.sendNotification(DidChangeConfigurationNotification.type, {
        settings: { [SECTION]: settings },
      });
    }
  }

  /** Tells the server where a cursor has come to rest. */
  async tellCursor({ document, position }: Cursor): Promise<void> {
    if (!this.started || this.stopping) {
      return;
    }
    const { code2ProtocolConverter: converter } = this.client;
    await this.client.sendNotification(CURSOR_NOTIFICATION, {
      textDocument: converter.asTextDocumentIdentifier(document),
      position: converter.asPosition(position),
    });
  }

  uriOf(uri: vscode.Uri): string {
    return this.client.code2ProtocolConverter.asUri(uri);
  }

  private options(): LanguageClientOptions {
    return {
      documentSelector: documentSelector(),
      outputChannel: this.log,
      revealOutputChannelOn: RevealOutputChannelOn.Never,
      initializationFailedHandler: () => false, // start() fails, and its caller says why
      initializationOptions: () => this.currentSettings(),
      // By each setting's full name: a change of `trace.server`, which the server does not know, is none for it.
      synchronize: { configurationSection: SERVER_SETTINGS.map((name) => `${SECTION}.${name}`) },
      errorHandler: this.errorHandler(),
      middleware: this.middleware(),
      // Standard output is the protocol's, so the library never reads lines from it.
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
      // When an unsaved file is closed and reverted, the library lets the notification of the end overtake that of the
      // last change; the protocol knows no changes of closed files.
      sendNotification: (type, next, params) => {
        const method = typeof type === "string" ? type : type.method;
        return this.openFiles.admits(method, params) ? next(type, params) : Promise.resolve();
      },
      workspace: {
        // The library's own way drops settings that are false, 0 or null, and would send those that are not the server's.
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
      // The extension shows this one itself, where it can be cancelled.
      handleWorkDoneProgress: (token, params, next) => {
        if (!`${token}`.startsWith(GETTING_TOKENS)) {
          next(token, params);
        }
      },
      executeCommand: async (command, args, next) => {
        try {
          return await next(command, args);
        } catch (error) {
          if (command !== SERVER_COMMANDS.accepted) {
            throw error;
          }
          // The editor runs this one when a text is accepted; that it was not counted must not disturb anybody.
          this.log.debug(`acceptance was not counted: ${error}`);
          return undefined;
        }
      },
    };
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
