// The editor's settings, folders and documents, converted for the pure modules.
import { homedir } from "node:os";
import * as vscode from "vscode";
import type { Cursor } from "./client";
import {
  CELL_SCHEME,
  guaranteeOf,
  isCompleted,
  type Known,
  LANGUAGES,
  type OpenDocument,
  type Reader,
  SCHEMES,
  SECTION,
  type Surroundings,
  standingOf,
} from "./configuration";
import { configurationPaths, MOST_BYTES, readConfiguration, readJson } from "./languageData";
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
  return {
    home: homedir(),
    environment: process.env,
    folders: localFolders(),
    trusted: vscode.workspace.isTrusted,
  };
}

/** The comments, brackets and quotes of a language, by the last extension that contributes some. */
export async function languageConfiguration(language: string): Promise<object | undefined> {
  const known = await configurationIn(vscode.extensions.all, language);
  if (known !== undefined) {
    return known;
  }
  builtIn ??= builtInExtensions();
  return await configurationIn(await builtIn, language);
}

type Contributor = Pick<vscode.Extension<unknown>, "extensionUri" | "packageJSON">;

/** The editor's own extensions, read once. */
let builtIn: Promise<readonly Contributor[]> | undefined;

/** Reads the editor's own extensions, of which a remote window knows none that only describe a language. */
async function builtInExtensions(): Promise<readonly Contributor[]> {
  try {
    const folder = vscode.Uri.joinPath(vscode.Uri.file(vscode.env.appRoot), "extensions");
    const names = vscode.env.appRoot === "" ? [] : await vscode.workspace.fs.readDirectory(folder);
    return await Promise.all(names.map(([name]) => contributorIn(vscode.Uri.joinPath(folder, name))));
  } catch {
    return [];
  }
}

async function contributorIn(extensionUri: vscode.Uri): Promise<Contributor> {
  const manifest = await smallText(vscode.Uri.joinPath(extensionUri, "package.json"));
  return { extensionUri, packageJSON: readJson(manifest) };
}

async function configurationIn(extensions: readonly Contributor[], language: string): Promise<object | undefined> {
  for (const { extensionUri, packageJSON } of [...extensions].reverse()) {
    for (const path of configurationPaths(packageJSON, language).reverse()) {
      const found = readConfiguration(await smallText(vscode.Uri.joinPath(extensionUri, path)));
      if (found !== undefined) {
        return found;
      }
    }
  }
  return undefined;
}

/** The text of a file; empty if the file is too large or cannot be read. */
async function smallText(file: vscode.Uri): Promise<string> {
  const { fs } = vscode.workspace;
  try {
    return (await fs.stat(file)).size > MOST_BYTES ? "" : new TextDecoder().decode(await fs.readFile(file));
  } catch {
    return "";
  }
}

/** Documents of the language client: every file, and cells of the extension's languages. */
export function documentSelector(): { scheme: string; language?: string }[] {
  return [
    ...SCHEMES.map((scheme) => ({ scheme })),
    ...LANGUAGES.map((language) => ({ scheme: CELL_SCHEME, language })),
  ];
}

export function isOurs(document: vscode.TextDocument): boolean {
  return isCompleted(document.uri.scheme, document.languageId);
}

export function openDocuments(): OpenDocument[] {
  return vscode.workspace.textDocuments.filter(isOurs).map(openDocument);
}

export function openDocument(document: vscode.TextDocument): OpenDocument {
  return { language: document.languageId, file: fileOf(document) };
}

/** Path of a document below the workspace's folder, for globs. */
export function fileOf(document: vscode.TextDocument): string {
  return vscode.workspace.asRelativePath(document.uri, false).replaceAll("\\", "/");
}

/** Cursor of an editor, if it is single, without a selection, and in a supported document. */
export function cursorOf(editor: vscode.TextEditor | undefined): Cursor | undefined {
  const [selection, ...more] = editor?.selections ?? [];
  return editor !== undefined && selection?.isEmpty && more.length === 0 && isOurs(editor.document)
    ? { document: editor.document, position: selection.active }
    : undefined;
}

/** Text that differs for each cursor and each version of its document. */
export function placeOf({ document, position }: Cursor): string {
  return JSON.stringify([document.uri, document.version, position]);
}

/** Language of the active editor, if supported. */
export function activeLanguage(state: State, known: Known): ActiveLanguage | undefined {
  const document = vscode.window.activeTextEditor?.document;
  if (document === undefined || !isOurs(document)) {
    return undefined;
  }
  const { languageId: id } = document;
  const guarantee = guaranteeOf(id, known);
  return {
    id,
    ...standingOf(id, reader(document.uri), learntIn(state), fileOf(document), known),
    ...(guarantee === undefined ? {} : { guarantee }),
  };
}
