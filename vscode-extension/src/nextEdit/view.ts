// The next edit, in the active editor or on the way to another document: on the screen, at the cursor, and applied.
import * as vscode from "vscode";
import type { NextEdit, Position } from "../protocol";
import { Decorations } from "./decorations";
import { type Change, type Drawing, drawingOf, wayToFile } from "./drawing";

interface Shown {
  readonly edit: NextEdit;
  readonly document: vscode.TextDocument;
  readonly drawing: Drawing;
  readonly first: Change;
  readonly last: Change;
  /** True once the user has jumped there, before VS Code reports what is in sight. */
  isReached: boolean;
}

export class View {
  private readonly decorations: Decorations;
  private readonly keys = new Map<string, boolean>();
  private shown: Shown | undefined;
  private isOpening = false;

  constructor(extension: vscode.Uri) {
    this.decorations = new Decorations(extension);
  }

  /** Returns whether the edit changes an open document, as it is now. */
  canShow(edit: NextEdit): boolean {
    return shownOf(edit) !== undefined;
  }

  show(edit: NextEdit | undefined, takesKeys: boolean): void {
    this.shown = edit && shownOf(edit);
    this.setKey("nextEditVisible", takesKeys);
    this.refresh();
  }

  /** Draws the edit again, after a move of the cursor or a scroll. */
  refresh(): void {
    this.setKey("nextEditAtCursor", this.isAtCursor);
    const { activeTextEditor: editor } = vscode.window;
    if (this.shown === undefined || editor === undefined) {
      this.decorations.clear();
      return;
    }
    const { document, drawing, first } = this.shown;
    const { line } = editor.selection.active;
    if (editor.document === document) {
      this.decorations.draw(editor, drawing, isInSight(editor, first.line) ? undefined : line);
    } else {
      this.decorations.drawWay(editor, line, wayToFile(document.uri.path, first.line));
    }
  }

  /** True if the cursor is on a line of the edit, and the user has seen it. */
  get isAtCursor(): boolean {
    const { activeTextEditor: editor } = vscode.window;
    if (this.shown === undefined || editor?.document !== this.shown.document) {
      return false;
    }
    const { first, last, isReached } = this.shown;
    const { line } = editor.selection.active;
    return first.line <= line && line <= last.line && (isReached || isInSight(editor, first.line));
  }

  /** Returns whether a document is the edit's. */
  isOf(document: vscode.TextDocument | undefined): boolean {
    return document !== undefined && document === this.shown?.document;
  }

  /** True while the edit's document is active, or about to be by a jump. */
  get isInItsDocument(): boolean {
    return this.isOpening || this.isOf(vscode.window.activeTextEditor?.document);
  }

  /** Moves the cursor to the edit, and opens its document; false if that fails. */
  async jump(): Promise<boolean> {
    const { shown } = this;
    if (shown === undefined) {
      return true;
    }
    const { activeTextEditor: active } = vscode.window;
    const editor = active?.document === shown.document ? active : await this.open(shown.document);
    if (editor !== undefined && this.shown === shown) {
      shown.isReached = true;
      moveTo(editor, { line: shown.first.line, character: shown.first.start });
    }
    return editor !== undefined;
  }

  /** Changes the document and moves the cursor behind the change; false if the edit fits no more. */
  async apply(edit: NextEdit): Promise<boolean> {
    const shown = shownOf(edit);
    const { activeTextEditor: editor } = vscode.window;
    if (shown === undefined || editor?.document !== shown.document) {
      return false;
    }
    if (!(await editor.edit((builder) => builder.replace(rangeOf(edit), edit.text)))) {
      return false;
    }
    moveTo(editor, shown.drawing.endAfter);
    return true;
  }

  dispose(): void {
    this.decorations.dispose();
  }

  private async open(document: vscode.TextDocument): Promise<vscode.TextEditor | undefined> {
    const viewColumn = columnOf(document);
    this.isOpening = true;
    try {
      return await vscode.window.showTextDocument(document, viewColumn);
    } catch {
      return undefined; // its file is gone, say
    } finally {
      this.isOpening = false;
    }
  }

  private setKey(name: string, value: boolean): void {
    if (this.keys.get(name) !== value) {
      this.keys.set(name, value);
      void vscode.commands.executeCommand("setContext", `fim-server.${name}`, value);
    }
  }
}

function shownOf(edit: NextEdit): Shown | undefined {
  const range = rangeOf(edit);
  const document = vscode.workspace.textDocuments.find(({ uri }) => uri.toString() === edit.uri);
  if (document?.version !== edit.version || !document.validateRange(range).isEqual(range)) {
    return undefined;
  }
  const drawing = drawingOf(edit, (line) => document.lineAt(line).text);
  const [first, last] = [drawing?.changes[0], drawing?.changes.at(-1)];
  return drawing && first && last && { edit, document, drawing, first, last, isReached: false };
}

/** The column of editors that has a tab of a document, the active one first. */
function columnOf({ uri }: vscode.TextDocument): vscode.ViewColumn | undefined {
  const { activeTabGroup, all } = vscode.window.tabGroups;
  const isTab = ({ input }: vscode.Tab) =>
    input instanceof vscode.TabInputText && input.uri.toString() === uri.toString();
  return [activeTabGroup, ...all].find(({ tabs }) => tabs.some(isTab))?.viewColumn;
}

function rangeOf({ range: { start, end } }: NextEdit): vscode.Range {
  return new vscode.Range(start.line, start.character, end.line, end.character);
}

function isInSight(editor: vscode.TextEditor, line: number): boolean {
  return editor.visibleRanges.some(({ start, end }) => start.line <= line && line <= end.line);
}

function moveTo(editor: vscode.TextEditor, { line, character }: Position): void {
  const place = new vscode.Position(line, character);
  editor.selection = new vscode.Selection(place, place);
  editor.revealRange(editor.selection, vscode.TextEditorRevealType.InCenterIfOutsideViewport);
}
