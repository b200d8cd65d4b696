// Messages between the page and the extension.
export type FromPage =
  | { readonly type: "ready" }
  | { readonly type: "reveal"; readonly line: number }
  | { readonly type: "copyGrammar" }
  | { readonly type: "pin"; readonly pinned: boolean }
  | { readonly type: "try"; readonly text: string };

export type ToPage =
  | { readonly type: "content"; readonly html: string; readonly announcement: string }
  | { readonly type: "verdict"; readonly html: string }
  | { readonly type: "pinned"; readonly pinned: boolean };

/** Returns a message of the page; undefined for any other value. */
export function readFromPage(value: unknown): FromPage | undefined {
  if (typeof value !== "object" || value === null || !("type" in value)) {
    return undefined;
  }
  const { type } = value;
  if (type === "ready" || type === "copyGrammar") {
    return { type };
  }
  if (type === "reveal" && "line" in value && typeof value.line === "number" && Number.isInteger(value.line)) {
    return { type, line: value.line };
  }
  if (type === "pin" && "pinned" in value && typeof value.pinned === "boolean") {
    return { type, pinned: value.pinned };
  }
  if (type === "try" && "text" in value && typeof value.text === "string") {
    return { type, text: value.text };
  }
  return undefined;
}
