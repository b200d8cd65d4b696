// The statistics as a read-only document.
import * as vscode from "vscode";
import { readStatistics, SERVER_COMMANDS } from "./protocol";
import type { Server } from "./server";
import { statisticsText } from "./statisticsText";

const SCHEME = "fim-server";
const URI = vscode.Uri.from({ scheme: SCHEME, path: "/fim-server statistics" });

export class StatisticsDocument implements vscode.Disposable {
  private text = "";
  private readonly changes = new vscode.EventEmitter<vscode.Uri>();
  private readonly registration: vscode.Disposable;

  constructor(private readonly server: Server) {
    this.registration = vscode.workspace.registerTextDocumentContentProvider(SCHEME, {
      onDidChange: this.changes.event,
      provideTextDocumentContent: () => this.text,
    });
  }

  async show(): Promise<void> {
    const connection = await this.server.connected();
    if (connection === undefined) {
      void vscode.window.showInformationMessage("fim-server is not running, so there are no statistics.");
      return;
    }
    const statistics = readStatistics(await connection.execute(SERVER_COMMANDS.statistics, []));
    if (statistics === undefined) {
      void vscode.window.showWarningMessage(
        "fim-server: the statistics could not be read. Restart the server if its version differs from the extension's.",
      );
      return;
    }
    this.text = statisticsText(statistics);
    this.changes.fire(URI);
    const document = await vscode.workspace.openTextDocument(URI);
    await vscode.window.showTextDocument(document, { preview: true });
  }

  dispose(): void {
    this.registration.dispose();
    this.changes.dispose();
  }
}
