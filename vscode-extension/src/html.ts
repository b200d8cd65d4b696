// HTML from text. Everything that goes into a page passes here, because most of it is the user's code.

/** Markup that is safe to insert: only `html` makes it. */
export class Markup {
  constructor(private readonly source: string) {}

  toString(): string {
    return this.source;
  }
}

export type Part = Markup | string | number | null | undefined | readonly Part[];

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? character);
}

/** A template: what is put into it is escaped, unless a template made it. Lists are joined, null leaves nothing. */
export function html(literals: TemplateStringsArray, ...parts: readonly Part[]): Markup {
  return new Markup(literals.reduce((before, literal, index) => before + render(parts[index - 1]) + literal));
}

function render(part: Part): string {
  if (part === null || part === undefined) {
    return "";
  }
  if (part instanceof Markup) {
    return part.toString();
  }
  return typeof part === "object" ? part.map(render).join("") : escapeHtml(String(part));
}
