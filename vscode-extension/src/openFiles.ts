// The files that the server knows as open, from the notifications that are sent to it.

export class OpenFiles {
  private readonly uris = new Set<string>();

  /** Takes note of a notification, and says whether it may be sent: changes of files that are not open may not. */
  admits(method: string, params: unknown): boolean {
    const uri = uriOf(params);
    switch (method) {
      case "textDocument/didOpen":
        this.uris.add(uri);
        return true;
      case "textDocument/didClose":
        this.uris.delete(uri);
        return true;
      case "textDocument/didChange":
        return this.uris.has(uri);
      default:
        return true;
    }
  }
}

function uriOf(params: unknown): string {
  if (typeof params !== "object" || params === null || !("textDocument" in params)) {
    return "";
  }
  const { textDocument } = params;
  return typeof textDocument === "object" && textDocument !== null && "uri" in textDocument
    ? String(textDocument.uri)
    : "";
}
