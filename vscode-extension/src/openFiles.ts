// Files and notebooks that the server knows as open, from the notifications of the client.

export class OpenFiles {
  private readonly uris = new Set<string>();

  /** Takes note of a notification, and says whether it may be sent: changes of files that are not open may not. */
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
