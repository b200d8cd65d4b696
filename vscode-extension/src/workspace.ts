// The editor's settings, folders and documents, converted for the pure modules.
import { homedir } from "node:os";
import * as vscode from "vscode";
import type { Cursor } from "./client";
import { LANGUAGES, type Reader, SCHEMES, SECTION, type Surroundings, standingOf } from "./configuration";
import { learntIn, type State } from "./state";
import type { ActiveLanguage } from "./statusText";

/** The settings for a resource; without one, for the window. */
export function reader(resource?: vscode.Uri): Reader {
  const configuration = vscode.workspace.getConfiguration(SECTION, resource ?? null);
  return (name) => configuration.get<unknown>(name);
}

/** Folders of the workspace that are on this machine. */
export function localFolders(): { name: string; path: string }[] {
  return (vscode.workspace.workspaceFolders ?? [])
    .filter((folder) => folder.uri.scheme === "file")
    .map((folder) => ({ name: folder.name, path: folder.uri.fsPath }));
}

export function surroundings(): Surroundings {
  return { home: homedir(), environment: process.env, folders: localFolders() };
}

/** Documents of the language client: every language in every scheme. */
export function documentSelector(): { scheme: string; language: string }[] {
  return SCHEMES.flatMap((scheme) => LANGUAGES.map((language) => ({ scheme, language })));
}

export function isOurs(document: vscode.TextDocument): boolean {
  return SCHEMES.includes(document.uri.scheme) && LANGUAGES.includes(document.languageId);
}

export function openLanguages(): string[] {
  return vscode.workspace.textDocuments.filter(isOurs).map((document) => document.languageId);
}

/** Cursor of an editor, if it is single, without a selection, and in a supported document. */
export function cursorOf(editor: vscode.TextEditor | undefined): Cursor | undefined {
  const [selection, ...more] = editor?.selections ?? [];
  return editor !== undefined && selection?.isEmpty && more.length === 0 && isOurs(editor.document)
    ? { document: editor.document, position: selection.active }
    : undefined;
}

/** Language of the active editor, if supported. */
export function activeLanguage(state: State): ActiveLanguage | undefined {
  const document = vscode.window.activeTextEditor?.document;
  return document !== undefined && isOurs(document)
    ? { id: document.languageId, ...standingOf(document.languageId, reader(document.uri), learntIn(state)) }
    : undefined;
}
