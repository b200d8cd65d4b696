// The items that the server sent last, so that a dismissal can name one: VS Code reports none. Independent of VS Code.

interface Item {
  readonly command?: { readonly arguments?: readonly unknown[] };
}

interface Offer {
  readonly uri: string;
  readonly line: number;
  readonly id: string;
}

export class Offered {
  private last: Offer | undefined;

  /** Notes an answer for a line of a document; the server dismisses an item with its alternatives, so one id is enough. */
  note(uri: string, line: number, items: readonly Item[]): void {
    const [first] = items;
    const argument: unknown = first?.command?.arguments?.[0];
    const id = typeof argument === "object" && argument !== null && "id" in argument ? argument.id : undefined;
    this.last = typeof id === "string" ? { uri, line, id } : undefined;
  }

  /** Takes the id of the last items, if they were for this line; undefined without any. */
  take(uri: string, line: number): string | undefined {
    const { last } = this;
    this.last = undefined;
    return last?.uri === uri && last.line === line ? last.id : undefined;
  }
}
