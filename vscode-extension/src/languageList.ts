// The list of languages: when each gets suggestions, and with which guarantee. Data only, without the editor.
import { guaranteeOf, type Known, type Learnt, type Mode, type Reader, standingOf } from "./configuration";
import { GUARANTEE_WORDS, languageName } from "./words";

export interface LanguageRow {
  /** The editor's id, the key of the setting. */
  readonly id: string;
  readonly label: string;
  readonly description: string;
  readonly detail: string;
}

export const MODE_WORDS: Readonly<Record<Mode, string>> = {
  automatic: "while you type",
  subtle: "prepared while you type, shown on request",
  manual: "on request",
  off: "off",
};

/** Returns a row for each language that the server knows; the active one, known or not, comes first. */
export function languageRows(known: Known, active: string | undefined, read: Reader, learnt: Learnt): LanguageRow[] {
  const ids = (known ?? []).map(({ name, ids }) => ids.find((id) => id === active) ?? editorId(name, ids));
  const others = ids.filter((id) => id !== active).sort((one, other) => one.localeCompare(other));
  return [...(active === undefined ? [] : [active]), ...others].map((id) => row(id, known, read, learnt));
}

/** VS Code's id: that of the server's name, unless only a longer one is the editor's, such as `typescriptreact`. */
function editorId(name: string, ids: readonly string[]): string {
  return ids.find((id) => id !== name && id.endsWith("react")) ?? name;
}

function row(id: string, known: Known, read: Reader, learnt: Learnt): LanguageRow {
  const { mode, isLearnt } = standingOf(id, read, learnt, "", known);
  const guarantee = guaranteeOf(id, known);
  const words = guarantee === undefined ? "" : (GUARANTEE_WORDS as Readonly<Record<string, string>>)[guarantee];
  return {
    id,
    label: languageName(id),
    description: `${MODE_WORDS[mode]}${isLearnt ? "" : ", the model does not know it"}`,
    detail: guarantee === undefined ? "" : `guarantee ${guarantee}${words ? `: ${words}` : ""}`,
  };
}
