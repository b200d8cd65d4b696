// The next edit in the active editor: on the screen, at the cursor, and applied.
import * as vscode from "vscode";
import type { NextEdit, Position } from "../protocol";
import { Decorations } from "./decorations";
import { type Change, type Drawing, drawingOf } from "./drawing";

interface Shown {
  readonly edit: NextEdit;
  readonly editor: vscode.TextEditor;
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

  constructor(extension: vscode.Uri) {
    this.decorations = new Decorations(extension);
  }

  /** Returns whether the edit changes the active editor's document, as it is now. */
  canShow(edit: NextEdit): boolean {
    return shownIn(vscode.window.activeTextEditor, edit) !== undefined;
  }

  show(edit: NextEdit | undefined, takesKeys: boolean): void {
    this.shown = edit && shownIn(vscode.window.activeTextEditor, edit);
    this.setKey("nextEditVisible", takesKeys);
    this.refresh();
  }

  /** Draws the edit again, after a move of the cursor or a scroll. */
  refresh(): void {
    this.setKey("nextEditAtCursor", this.isAtCursor);
    if (this.shown === undefined) {
      this.decorations.clear();
    } else {
      const { editor, drawing, first } = this.shown;
      this.decorations.draw(editor, drawing, isInSight(editor, first.line) ? undefined : editor.selection.active.line);
    }
  }

  /** True if the cursor is on a line of the edit, and the user has seen it. */
  get isAtCursor(): boolean {
    if (this.shown === undefined) {
      return false;
    }
    const { editor, first, last, isReached } = this.shown;
    const { line } = editor.selection.active;
    return first.line <= line && line <= last.line && (isReached || isInSight(editor, first.line));
  }

  jump(): void {
    if (this.shown !== undefined) {
      const { editor, first } = this.shown;
      this.shown.isReached = true;
      moveTo(editor, { line: first.line, character: first.start });
    }
  }

  /** Changes the document and moves the cursor behind the change; false if the edit fits no more. */
  async apply(edit: NextEdit): Promise<boolean> {
    const shown = shownIn(vscode.window.activeTextEditor, edit);
    const isApplied = await shown?.editor.edit((builder) => builder.replace(rangeOf(edit), edit.text));
    if (!shown || !isApplied) {
      return false;
    }
    moveTo(shown.editor, shown.drawing.endAfter);
    return true;
  }

  dispose(): void {
    this.decorations.dispose();
  }

  private setKey(name: string, value: boolean): void {
    if (this.keys.get(name) !== value) {
      this.keys.set(name, value);
      void vscode.commands.executeCommand("setContext", `fim-server.${name}`, value);
    }
  }
}

function shownIn(editor: vscode.TextEditor | undefined, edit: NextEdit): Shown | undefined {
  const range = rangeOf(edit);
  if (editor?.document.version !== edit.version || !editor.document.validateRange(range).isEqual(range)) {
    return undefined;
  }
  const drawing = drawingOf(edit, (line) => editor.document.lineAt(line).text);
  const [first, last] = [drawing?.changes[0], drawing?.changes.at(-1)];
  return drawing && first && last && { edit, editor, drawing, first, last, isReached: false };
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
