// The panel with the explanation, beside the editor. It follows the cursor while it is visible and not pinned.
import { randomBytes } from "node:crypto";
import * as vscode from "vscode";
import { reportNotRunning } from "./actions";
import { type FromPage, readFromPage, type ToPage } from "./explain/messages";
import {
  announcement,
  explanationHtml,
  failureHtml,
  type Place,
  panelTitle,
  shellHtml,
  verdictHtml,
  waitingHtml,
} from "./explain/page";
import type { Markup } from "./html";
import { type Explanation, readExplanation, SERVER_COMMANDS } from "./protocol";
import type { Server } from "./server";
import { isOurs } from "./workspace";

/** Time a cursor rests before it is explained. */
const REST_MS = 200;

interface Cursor {
  readonly uri: vscode.Uri;
  readonly position: vscode.Position;
  readonly place: Place;
}

export class ExplainPanel implements vscode.Disposable {
  private panel: vscode.WebviewPanel | undefined;
  private pinned = false;
  private timer: NodeJS.Timeout | undefined;
  private request: vscode.CancellationTokenSource | undefined;
  private isReady = false;
  private shown: { readonly cursor: Cursor; readonly explanation: Explanation } | undefined;
  private content: ToPage = { type: "content", html: waitingHtml().toString(), announcement: "" };
  private readonly subscriptions: vscode.Disposable[];

  constructor(
    private readonly server: Server,
    private readonly extensionUri: vscode.Uri,
    private readonly log: vscode.LogOutputChannel,
  ) {
    this.subscriptions = [
      server.onDidChangeState((state) => {
        const isReady = state.kind === "running" && (state.status?.state === "ready" || state.status?.state === "busy");
        if (isReady && !this.isReady) {
          this.follow(); // the model's candidates are available now
        }
        this.isReady = isReady;
      }),
      vscode.window.onDidChangeTextEditorSelection(() => this.follow()),
      vscode.window.onDidChangeActiveTextEditor(() => this.follow()),
      vscode.workspace.onDidChangeTextDocument((change) => {
        if (change.document === vscode.window.activeTextEditor?.document) {
          this.follow();
        }
      }),
    ];
  }

  /** Opens the panel, or brings it to the front, and explains the cursor. The focus stays where it is. */
  async show(): Promise<void> {
    const cursor = currentCursor();
    if ((await this.server.connected()) === undefined) {
      reportNotRunning(this.server);
      return;
    }
    if (this.panel === undefined) {
      this.panel = this.createPanel();
    } else {
      this.panel.reveal(undefined, true);
    }
    this.setPinned(false);
    await this.explain(cursor);
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.request?.dispose();
    this.panel?.dispose();
    for (const subscription of this.subscriptions) {
      subscription.dispose();
    }
  }

  private createPanel(): vscode.WebviewPanel {
    const media = vscode.Uri.joinPath(this.extensionUri, "media");
    const out = vscode.Uri.joinPath(this.extensionUri, "out");
    const panel = vscode.window.createWebviewPanel(
      "fim-server.explain",
      panelTitle(undefined),
      { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true },
      { enableScripts: true, enableFindWidget: true, localResourceRoots: [media, out] },
    );
    panel.iconPath = vscode.Uri.joinPath(media, "icon.png");
    panel.webview.html = shellHtml(
      {
        cspSource: panel.webview.cspSource,
        nonce: randomBytes(16).toString("base64"),
        styleUri: panel.webview.asWebviewUri(vscode.Uri.joinPath(media, "explain.css")).toString(),
        scriptUri: panel.webview.asWebviewUri(vscode.Uri.joinPath(out, "page.js")).toString(),
      },
      waitingHtml(),
    );
    panel.webview.onDidReceiveMessage((value: unknown) => {
      const message = readFromPage(value);
      if (message !== undefined) {
        void this.receive(message);
      }
    });
    panel.onDidChangeViewState(() => this.follow());
    panel.onDidDispose(() => {
      this.panel = undefined;
      this.shown = undefined;
      this.request?.cancel();
    });
    return panel;
  }

  private follow(): void {
    clearTimeout(this.timer);
    if (this.panel?.visible !== true || this.pinned) {
      return;
    }
    this.timer = setTimeout(() => void this.explain(currentCursor()), REST_MS);
  }

  private async explain(cursor: Cursor | undefined): Promise<void> {
    if (cursor === undefined) {
      return; // keep the page: the focus may be in it
    }
    this.request?.cancel();
    const request = new vscode.CancellationTokenSource();
    this.request = request;
    try {
      const explanation = await this.ask(cursor, undefined, request.token);
      if (request.token.isCancellationRequested) {
        return;
      }
      if (explanation === undefined) {
        this.display(cursor.place, failureHtml("the server's answer cannot be read."), "");
        return;
      }
      this.shown = { cursor, explanation };
      this.display(cursor.place, explanationHtml(explanation, cursor.place), announcement(explanation, cursor.place));
    } catch (error) {
      if (!request.token.isCancellationRequested) {
        this.log.warn(`no explanation: ${error}`);
        this.display(cursor.place, failureHtml(error instanceof Error ? error.message : String(error)), "");
      }
    } finally {
      request.dispose();
    }
  }

  private async ask(cursor: Cursor, text: string | undefined, token?: vscode.CancellationToken) {
    const connection = await this.server.connected();
    if (connection === undefined) {
      throw new Error("the server is not running.");
    }
    const { line, character } = cursor.position;
    const argument = { uri: connection.uriOf(cursor.uri), position: { line, character } };
    const answer = await connection.execute(
      SERVER_COMMANDS.explainAt,
      [text === undefined ? argument : { ...argument, text }],
      token,
    );
    return readExplanation(answer);
  }

  private display(place: Place, markup: Markup, words: string): void {
    this.content = { type: "content", html: markup.toString(), announcement: words };
    if (this.panel !== undefined) {
      this.panel.title = panelTitle(place);
    }
    this.post(this.content);
  }

  private setPinned(pinned: boolean): void {
    this.pinned = pinned;
    this.post({ type: "pinned", pinned });
  }

  private post(message: ToPage): void {
    void this.panel?.webview.postMessage(message);
  }

  private async receive(message: FromPage): Promise<void> {
    switch (message.type) {
      case "ready": // a hidden page loads again when it becomes visible
        this.post(this.content);
        this.post({ type: "pinned", pinned: this.pinned });
        break;
      case "pin":
        this.pinned = message.pinned;
        this.follow();
        break;
      case "reveal":
        await this.reveal(message.line);
        break;
      case "copyGrammar":
        await vscode.env.clipboard.writeText(this.shown?.explanation.grammar ?? "");
        vscode.window.setStatusBarMessage("$(check) Copied the grammar to the clipboard.", 3000);
        break;
      case "try":
        await this.tryText(message.text);
        break;
    }
  }

  private async tryText(text: string): Promise<void> {
    if (this.shown === undefined) {
      return;
    }
    try {
      const explanation = await this.ask(this.shown.cursor, text);
      this.post({ type: "verdict", html: verdictHtml(text, explanation?.verdict ?? null).toString() });
    } catch (error) {
      this.post({
        type: "verdict",
        html: failureHtml(error instanceof Error ? error.message : String(error)).toString(),
      });
    }
  }

  private async reveal(line: number): Promise<void> {
    if (this.shown === undefined) {
      return;
    }
    const { uri } = this.shown.cursor;
    const visible = vscode.window.visibleTextEditors.find(
      (editor) => editor.document.uri.toString() === uri.toString(),
    );
    const document = visible?.document ?? (await vscode.workspace.openTextDocument(uri));
    const position = new vscode.Position(Math.min(line, document.lineCount - 1), 0);
    const range = document.lineAt(position.line).range;
    if (visible !== undefined) {
      // Do not move the cursor, or the explanation would follow it.
      visible.revealRange(range, vscode.TextEditorRevealType.InCenterIfOutsideViewport);
      highlight(visible, range);
      return;
    }
    const editor = await vscode.window.showTextDocument(document, {
      viewColumn: vscode.ViewColumn.One,
      preserveFocus: true,
    });
    editor.revealRange(range, vscode.TextEditorRevealType.InCenterIfOutsideViewport);
    highlight(editor, range);
  }
}

/** Highlights a line briefly. */
function highlight(editor: vscode.TextEditor, range: vscode.Range): void {
  const decoration = vscode.window.createTextEditorDecorationType({
    isWholeLine: true,
    backgroundColor: new vscode.ThemeColor("editor.rangeHighlightBackground"),
  });
  editor.setDecorations(decoration, [range]);
  setTimeout(() => decoration.dispose(), 1500);
}

/** The cursor of the active editor, if its document has a supported language. */
function currentCursor(): Cursor | undefined {
  const editor = vscode.window.activeTextEditor;
  if (editor === undefined || !isOurs(editor.document)) {
    return undefined;
  }
  const position = editor.selection.active;
  const { document } = editor;
  return {
    uri: document.uri,
    position,
    place: {
      fileName: document.uri.path.split("/").at(-1) || "untitled",
      lineText: (line) => (line >= 0 && line < document.lineCount ? document.lineAt(line).text : undefined),
    },
  };
}
