// Decorations of the next edit. VS Code's own display of next edits is closed to extensions.
import * as vscode from "vscode";
import { type Drawing, wayTo } from "./drawing";

const NO_BREAK_SPACE = "\u00a0";

export class Decorations {
  private readonly removed = vscode.window.createTextEditorDecorationType({
    backgroundColor: new vscode.ThemeColor("diffEditor.removedTextBackground"),
    textDecoration: "line-through",
  });
  private readonly added = vscode.window.createTextEditorDecorationType({
    after: {
      backgroundColor: new vscode.ThemeColor("diffEditor.insertedTextBackground"),
      color: new vscode.ThemeColor("editor.foreground"),
    },
  });
  private readonly way = vscode.window.createTextEditorDecorationType({
    after: { color: new vscode.ThemeColor("editorCodeLens.foreground"), margin: "0 0 0 2em" },
  });
  private readonly gutter: vscode.TextEditorDecorationType;
  private editor: vscode.TextEditor | undefined;

  constructor(extension: vscode.Uri) {
    this.gutter = vscode.window.createTextEditorDecorationType({
      gutterIconPath: vscode.Uri.joinPath(extension, "media", "next-edit.svg"),
      gutterIconSize: "contain",
      overviewRulerColor: new vscode.ThemeColor("editorInfo.foreground"),
    });
  }

  /** Draws an edit. `cursorLine`: the line that shows the way to an edit out of sight. */
  draw(editor: vscode.TextEditor, drawing: Drawing, cursorLine: number | undefined): void {
    this.enter(editor);
    const hoverMessage = new vscode.MarkdownString().appendCodeblock(drawing.diff, "diff");
    const ranges = drawing.changes.map(({ line, start, end }) => new vscode.Range(line, start, line, end));
    const texts = drawing.changes.map(({ text }) => beside(asDrawn(text, editor)));
    const line = drawing.changes[0]?.line ?? 0;
    editor.setDecorations(
      this.removed,
      ranges.map((range) => ({ range, hoverMessage })),
    );
    editor.setDecorations(
      this.added,
      ranges.map((range, index) => ({ range, renderOptions: texts[index] ?? {} })),
    );
    editor.setDecorations(this.gutter, ranges.slice(0, 1));
    if (cursorLine === undefined) {
      editor.setDecorations(this.way, []);
    } else {
      this.writeWay(editor, cursorLine, wayTo(line, cursorLine));
    }
  }

  /** Shows the way to an edit of another document at a line. */
  drawWay(editor: vscode.TextEditor, line: number, way: string): void {
    this.clear();
    this.enter(editor);
    this.writeWay(editor, line, way);
  }

  clear(): void {
    for (const type of this.types()) {
      this.editor?.setDecorations(type, []);
    }
    this.editor = undefined;
  }

  dispose(): void {
    for (const type of this.types()) {
      type.dispose();
    }
  }

  private enter(editor: vscode.TextEditor): void {
    if (this.editor !== editor) {
      this.clear();
      this.editor = editor;
    }
  }

  private writeWay(editor: vscode.TextEditor, line: number, way: string): void {
    const { end } = editor.document.lineAt(line).range;
    editor.setDecorations(this.way, [{ range: new vscode.Range(end, end), renderOptions: beside(way) }]);
  }

  private types(): vscode.TextEditorDecorationType[] {
    return [this.removed, this.added, this.way, this.gutter];
  }
}

function beside(contentText: string): vscode.DecorationInstanceRenderOptions {
  return { after: { contentText } };
}

/** Keeps blanks, which the editor would draw as one. */
function asDrawn(text: string, editor: vscode.TextEditor): string {
  const { tabSize } = editor.options;
  const tab = " ".repeat(typeof tabSize === "number" ? tabSize : 1);
  return text.replaceAll("\t", tab).replaceAll(" ", NO_BREAK_SPACE);
}
