// Actions of the menu and of messages.
import * as vscode from "vscode";
import { keyOf, SECTION, toggledMode } from "./configuration";
import { setLanguage } from "./languagePicker";
import { type MenuAction, menuGroups } from "./menu";
import { SERVER_COMMANDS } from "./protocol";
import type { Server } from "./server";
import { readMinutes } from "./snooze";
import { ACTION_TITLES, isOff, learntIn, Once, type ProblemAction, problemOf, type State, withoutLinks } from "./state";
import { counted } from "./words";
import { activeLanguage, fileOf, reader } from "./workspace";

const EXTENSION = "fim-server.fim-server";

const COMMANDS_OF: Readonly<Record<MenuAction, readonly [command: string, argument?: string]>> = {
  install: ["fim-server.install"],
  getModel: ["fim-server.getBetterModel"],
  chooseModel: ["fim-server.chooseModel"],
  restart: ["fim-server.restart"],
  logs: ["fim-server.showLogs"],
  toggle: ["fim-server.toggle"],
  snooze: ["fim-server.snooze"],
  endSnooze: ["fim-server.endSnooze"],
  toggleLanguage: ["fim-server.toggleLanguage"],
  chooseLanguage: ["fim-server.chooseLanguage"],
  toggleWorkspace: ["fim-server.toggleWorkspace"],
  trigger: ["fim-server.trigger"],
  explain: ["fim-server.explain"],
  statistics: ["fim-server.showStatistics"],
  pathSettings: ["workbench.action.openSettings", `${SECTION}.path`],
  modelSettings: ["workbench.action.openSettings", `${SECTION}.model`],
  allSettings: ["workbench.action.openSettings", `@ext:${EXTENSION}`],
  walkthrough: ["workbench.action.openWalkthrough", `${EXTENSION}#start`],
};

export async function runAction(action: MenuAction): Promise<void> {
  const [command, ...rest] = COMMANDS_OF[action];
  await vscode.commands.executeCommand(command, ...rest);
}

export async function showMenu(server: Server): Promise<void> {
  const separator: vscode.QuickPickItem = { label: "", kind: vscode.QuickPickItemKind.Separator };
  const items = menuGroups(server.state, activeLanguage(server.state, server.known), server.snoozedMinutes).flatMap(
    (group, index) => [...(index === 0 ? [] : [separator]), ...group],
  );
  const chosen = await vscode.window.showQuickPick(items, { title: "fim-server" });
  if (chosen !== undefined && "action" in chosen) {
    await runAction(chosen.action);
  }
}

const SNOOZES = [5, 15, 30, 60];

/** Snoozes for the given minutes, as from a key's arguments, or asks for their number. */
export async function snooze(server: Server, given: unknown): Promise<void> {
  if (isOff(server.state) && server.snoozedMinutes === undefined) {
    void vscode.window.showInformationMessage("fim-server is off. Turn suggestions on before you snooze them.");
    return;
  }
  const minutes = typeof given === "number" && given > 0 ? given : await askMinutes();
  if (minutes !== undefined) {
    server.snooze(minutes);
  }
}

async function askMinutes(): Promise<number | undefined> {
  const title = "Snooze fim-server";
  const items = [
    ...SNOOZES.map((minutes) => ({ label: counted(minutes, "minute"), minutes })),
    { label: "Other…", minutes: undefined },
  ];
  const chosen = await vscode.window.showQuickPick(items, { title });
  if (chosen === undefined || chosen.minutes !== undefined) {
    return chosen?.minutes;
  }
  const validateInput = (text: string) => {
    const read = readMinutes(text);
    return typeof read === "string" ? read : undefined;
  };
  const text = await vscode.window.showInputBox({ title, prompt: "For how many minutes?", validateInput });
  const read = text === undefined ? undefined : readMinutes(text);
  return typeof read === "number" ? read : undefined;
}

/** Turns the active editor's language, or the glob that decides for its file, on or off in the settings. */
export async function toggleLanguage(server: Server): Promise<void> {
  const document = vscode.window.activeTextEditor?.document;
  if (document === undefined) {
    return;
  }
  const { languageId: language, uri } = document;
  const [read, file] = [reader(uri), fileOf(document)];
  const mode = toggledMode(language, read, learntIn(server.state), file, server.known);
  await setLanguage(keyOf(language, file, read("languages")), mode, uri);
}

/** Turns everything off in the workspace's settings, or on again there. */
export async function toggleWorkspace(): Promise<void> {
  if (vscode.workspace.workspaceFolders === undefined) {
    void vscode.window.showInformationMessage(
      "fim-server: open a folder first. Without one there are no workspace settings.",
    );
    return;
  }
  const configuration = vscode.workspace.getConfiguration(SECTION);
  const isOn = configuration.get("enabled") !== false;
  // Remove the setting to turn suggestions on, unless the user's settings turn them off.
  const isOffForUser = configuration.inspect<boolean>("enabled")?.globalValue === false;
  const value = isOn ? false : isOffForUser ? true : undefined;
  await configuration.update("enabled", value, vscode.ConfigurationTarget.Workspace);
}

/** Has the server forget what was accepted and dismissed. */
export async function resetThreshold(server: Server): Promise<void> {
  const connection = await server.connected();
  if (connection === undefined) {
    reportNotRunning(server);
    return;
  }
  await connection.execute(SERVER_COMMANDS.resetThreshold, []);
  void vscode.window.showInformationMessage("fim-server: the threshold is the setting minConfidence again.");
}

/** Reports each problem once. */
export class Problems {
  private readonly once = new Once();

  report(state: State): void {
    const problem = problemOf(state);
    if (problem === undefined || !this.once.isNew(problem)) {
      return;
    }
    const show = problem.severity === "warning" ? vscode.window.showWarningMessage : vscode.window.showErrorMessage;
    const items = problem.actions.map((action) => ({ title: ACTION_TITLES[action], action }));
    void show(withoutLinks(problem.message), ...items).then((chosen: { action: ProblemAction } | undefined) =>
      chosen === undefined ? undefined : runAction(chosen.action),
    );
  }

  /** Report problems again, after the user has acted on them. */
  forget(): void {
    this.once.forget();
  }
}

/** Tells why a command has no server to use. */
export function reportNotRunning(server: Server): void {
  const problem = problemOf(server.state);
  void vscode.window
    .showInformationMessage(withoutLinks(problem?.message ?? "fim-server is not running."), "Show Menu")
    .then((chosen) => chosen && vscode.commands.executeCommand("fim-server.menu"));
}
