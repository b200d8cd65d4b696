// Files and notebooks open in the server, by the client's notifications.

export class OpenFiles {
  private readonly uris = new Set<string>();

  /** Records a notification. Returns false for a change of a file that is not open, which must not be sent. */
  admits(method: string, params: unknown): boolean {
    const uri = uriOf(params);
    switch (method) {
      case "textDocument/didOpen":
      case "notebookDocument/didOpen":
        this.uris.add(uri);
        return true;
      case "textDocument/didClose":
      case "notebookDocument/didClose":
        this.uris.delete(uri);
        return true;
      case "textDocument/didChange":
      case "notebookDocument/didChange":
        return this.uris.has(uri);
      default:
        return true;
    }
  }
}

function uriOf(params: unknown): string {
  if (typeof params !== "object" || params === null) {
    return "";
  }
  const document = "textDocument" in params ? params.textDocument : Reflect.get(params, "notebookDocument");
  return typeof document === "object" && document !== null && "uri" in document ? String(document.uri) : "";
}
