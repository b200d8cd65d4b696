// Choice of a language, and of when it gets suggestions.
import * as vscode from "vscode";
import { type Mode, SECTION } from "./configuration";
import { languageRows, MODE_WORDS } from "./languageList";
import type { Server } from "./server";
import { learntIn } from "./state";
import { languageName } from "./words";
import { isOurs, reader } from "./workspace";

const TITLE = "fim-server: Languages";

export async function chooseLanguage(server: Server): Promise<void> {
  const document = vscode.window.activeTextEditor?.document;
  const active = document !== undefined && isOurs(document) ? document.languageId : undefined;
  const rows = server
    .knownLanguages()
    .then((known) => languageRows(known, active, reader(document?.uri), learntIn(server.state)));
  const options = { title: TITLE, matchOnDescription: true, matchOnDetail: true };
  const chosen = await vscode.window.showQuickPick(rows, options);
  if (chosen === undefined) {
    return;
  }
  const modes = (Object.keys(MODE_WORDS) as Mode[]).map((mode) => ({ label: mode, description: MODE_WORDS[mode] }));
  const mode = await vscode.window.showQuickPick(modes, { title: `${TITLE}: ${languageName(chosen.id)}` });
  if (mode !== undefined) {
    await setLanguage(chosen.id, mode.label, document?.uri);
  }
}

/** Sets the mode of a language, or of the files of a glob, at the level of the settings that names it. */
export async function setLanguage(key: string, mode: unknown, resource: vscode.Uri | undefined): Promise<void> {
  const configuration = vscode.workspace.getConfiguration(SECTION, resource);
  const { target, value } = levelOf(configuration, key);
  await configuration.update("languages", { ...value, [key]: mode }, target);
}

/** Workspace settings override the user's, so the level that names the key is the one to change. */
export function levelOf(
  configuration: vscode.WorkspaceConfiguration,
  key: string,
): { target: vscode.ConfigurationTarget; value: Record<string, unknown> | undefined } {
  const levels = configuration.inspect<Record<string, unknown>>("languages");
  return levels?.workspaceValue?.[key] !== undefined
    ? { target: vscode.ConfigurationTarget.Workspace, value: levels.workspaceValue }
    : { target: vscode.ConfigurationTarget.Global, value: levels?.globalValue };
}
