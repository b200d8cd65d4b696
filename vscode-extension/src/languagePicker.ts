// Choice of a language, and of when it gets suggestions.
import * as vscode from "vscode";
import { type Mode, SECTION, withMode } from "./configuration";
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
export async function setLanguage(key: string, mode: Mode, resource: vscode.Uri | undefined): Promise<void> {
  const configuration = vscode.workspace.getConfiguration(SECTION, resource);
  const levels = configuration.inspect<Record<string, unknown>>("languages");
  // Workspace settings override the user's, so change the level that names the key.
  const [atLevel, target] =
    levels?.workspaceValue?.[key] !== undefined
      ? [levels.workspaceValue, vscode.ConfigurationTarget.Workspace]
      : [levels?.globalValue, vscode.ConfigurationTarget.Global];
  await configuration.update("languages", withMode(atLevel, key, mode), target);
}
