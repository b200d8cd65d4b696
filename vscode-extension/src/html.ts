// HTML from text. All content of a page passes here, because most of it is the user's code.

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

/** Template tag that escapes its parts, except for other templates. Lists are joined; null becomes nothing. */
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
