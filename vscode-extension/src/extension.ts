// Entry point: connects the parts. The language client itself requests textDocument/inlineCompletion and passes the
// items to the editor.
import * as vscode from "vscode";
import { Problems, resetThreshold, showMenu, snooze, toggleLanguage, toggleWorkspace } from "./actions";
import type { Cursor } from "./client";
import { COMMANDS, type Handlers, HIDDEN } from "./commands";
import { RESTARTING_SETTINGS, SECTION } from "./configuration";
import { tryExample } from "./example";
import { ExplainPanel } from "./explainPanel";
import { createInterpreters } from "./finding/interpreters";
import { Installer } from "./installer";
import { chooseLanguage } from "./languagePicker";
import { ModelGetter } from "./modelGetter";
import { chooseModel, removeModel } from "./modelPicker";
import { NextEditController } from "./nextEdit/controller";
import { Resting } from "./resting";
import { Server } from "./server";
import { isReady, type State } from "./state";
import { StatisticsDocument } from "./statisticsDocument";
import { StatusBar } from "./statusBar";
import { activeLanguage, cursorOf } from "./workspace";

let running: Server | undefined;

export function activate(context: vscode.ExtensionContext): void {
  const log = vscode.window.createOutputChannel("fim-server", { log: true });
  const interpreters = createInterpreters(
    (id) => vscode.extensions.getExtension(id),
    (problem) => log.warn(problem),
  );
  const server = new Server(log, interpreters);
  running = server;
  const statusBar = new StatusBar();
  const problems = new Problems();
  const explainPanel = new ExplainPanel(server, context.extensionUri, log);
  const statistics = new StatisticsDocument(server);
  const installer = new Installer(server);
  const resting = new Resting<Cursor>((cursor) => server.sendCursor(cursor));
  const nextEdits = new NextEditController(server, context.extensionUri);
  let wasReady = false;
  const modelGetter = new ModelGetter(server, context.globalState);

  const restart = async () => {
    problems.forget();
    await server.restart();
  };
  const handlers: Handlers = {
    "fim-server.trigger": async () => {
      if (server.state.kind === "idle" && !(await startedFor(server))) {
        return;
      }
      if (isSubtle(server)) {
        await server.showAgain();
      } else {
        await vscode.commands.executeCommand("editor.action.inlineSuggest.trigger");
      }
    },
    "fim-server.explain": () => explainPanel.show(),
    "fim-server.toggle": () => server.toggle(),
    "fim-server.snooze": (minutes) => snooze(server, minutes),
    "fim-server.endSnooze": () => server.endSnooze(),
    "fim-server.toggleLanguage": () => toggleLanguage(server),
    "fim-server.chooseLanguage": () => chooseLanguage(server),
    "fim-server.toggleWorkspace": toggleWorkspace,
    "fim-server.acceptLine": () => vscode.commands.executeCommand("editor.action.inlineSuggest.acceptNextLine"),
    "fim-server.dismiss": async (argument) => {
      // Escape hides the text in the window: from here, that could hide what the user requests after Escape.
      if (argument !== HIDDEN) {
        await vscode.commands.executeCommand("editor.action.inlineSuggest.hide");
      }
      server.dismiss(cursorOf(vscode.window.activeTextEditor));
    },
    "fim-server.showNextEdit": () => nextEdits.request(),
    "fim-server.acceptNextEdit": () => nextEdits.tab(),
    "fim-server.dismissNextEdit": () => nextEdits.dismiss(),
    "fim-server.forgetDecisions": () => resetThreshold(server),
    "fim-server.showStatistics": () => statistics.show(),
    "fim-server.tryExample": () => tryExample(server),
    "fim-server.restart": restart,
    "fim-server.showLogs": () => log.show(),
    "fim-server.menu": () => showMenu(server),
    "fim-server.install": () => installer.offer(),
    "fim-server.getBetterModel": () => modelGetter.get(),
    "fim-server.chooseModel": () => chooseModel(server, modelGetter),
    "fim-server.removeInstalledModel": () => removeModel(server),
  };

  context.subscriptions.push(
    log,
    server,
    statusBar,
    explainPanel,
    statistics,
    installer,
    modelGetter,
    resting,
    nextEdits,
    ...COMMANDS.map((command) => vscode.commands.registerCommand(command, handlers[command])),
    server.onDidChangeState((state) => {
      if (isReady(state) && !wasReady) {
        resting.moved(cursorOf(vscode.window.activeTextEditor)); // the server was not ready for it before
      }
      wasReady = isReady(state);
      statusBar.update(state, server.snoozedMinutes, server.known);
      problems.report(state);
      publishContext(state);
      publishMode(server);
      void setContext("snoozed", server.snoozedMinutes !== undefined);
    }),
    server.onDidAccept(() => passMilestone("accepted")),
    vscode.window.onDidChangeActiveTextEditor((editor) => {
      statusBar.moved();
      statusBar.refresh();
      publishMode(server);
      resting.moved(cursorOf(editor));
    }),
    vscode.window.onDidChangeTextEditorSelection(({ textEditor }) => {
      if (textEditor === vscode.window.activeTextEditor) {
        statusBar.moved();
      }
      resting.moved(cursorOf(textEditor));
    }),
    vscode.workspace.onDidOpenTextDocument(() => {
      statusBar.refresh(); // a change of language reopens a document
      publishMode(server);
      void server.startIfNeeded();
    }),
    vscode.workspace.onDidGrantWorkspaceTrust(() => void server.reconsider()),
    vscode.extensions.onDidChange(() => void server.reconsider()),
    vscode.workspace.onDidChangeConfiguration((change) => {
      statusBar.refresh();
      publishMode(server);
      if (server.state.kind === "idle") {
        void server.startIfNeeded();
      } else if (RESTARTING_SETTINGS.some((name) => change.affectsConfiguration(`${SECTION}.${name}`))) {
        void restart();
      }
    }),
  );
  // VS Code opens the walkthrough after the installation. Commands work while the server starts, so do not wait for it.
  void server.startIfNeeded();
}

export async function deactivate(): Promise<void> {
  await running?.stop();
}

/** Publishes the context keys for `enablement` and the walkthrough in package.json. */
function publishContext(state: State): void {
  const last = state.kind === "running" ? state.status?.last : undefined;
  const items = last?.ready ? 0 : (last?.items ?? 0);
  void setContext("running", state.kind === "running");
  if (items > 0) {
    passMilestone("offered");
  }
  if (items > 1) {
    passMilestone("alternatives");
  }
}

/**
 * Completes a step of the walkthrough. VS Code completes it when its context key becomes true, but never if the key was
 * true already when the walkthrough was first shown. So the key is true for a moment.
 */
function passMilestone(name: string): void {
  void setContext(name, true);
  void setContext(name, false);
}

/** Publishes whether suggestions wait for a key in the active editor, which the keybindings need. */
function publishMode(server: Server): void {
  void setContext("subtle", isSubtle(server));
}

/** Starts the server for a request; returns false if the user has edited the document or left it meanwhile. */
async function startedFor(server: Server): Promise<boolean> {
  const document = vscode.window.activeTextEditor?.document;
  const version = document?.version;
  await server.ready();
  return vscode.window.activeTextEditor?.document === document && document?.version === version;
}

/** Returns whether suggestions wait for a key in the active editor. */
function isSubtle(server: Server): boolean {
  return activeLanguage(server.state, server.known)?.mode === "subtle";
}

function setContext(name: string, value: boolean): Thenable<unknown> {
  return vscode.commands.executeCommand("setContext", `fim-server.${name}`, value);
}
