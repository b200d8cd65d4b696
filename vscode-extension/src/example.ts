// The example of the walkthrough: a new document with a suggestion at its cursor.
import * as vscode from "vscode";
import { reportNotRunning } from "./actions";
import type { Server } from "./server";

const BEFORE = `class Stack:
    def __init__(self):
        self.items = []

    def push(self, item):
        self.`;

const AFTER = `

    def pop(self):
        return self.items.pop()
`;

/** Opens the example and asks for a suggestion there, once the server has a model. */
export async function tryExample(server: Server): Promise<void> {
  const document = await vscode.workspace.openTextDocument({ language: "python", content: BEFORE + AFTER });
  const editor = await vscode.window.showTextDocument(document);
  const cursor = document.positionAt(BEFORE.length);
  editor.selection = new vscode.Selection(cursor, cursor);
  if (!(await server.ready())) {
    reportNotRunning(server);
  } else if (vscode.window.activeTextEditor?.document === document) {
    await vscode.commands.executeCommand("editor.action.inlineSuggest.trigger");
  }
}
