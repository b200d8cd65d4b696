"""A small language with modes."""

from pathlib import Path

from fim_server import Language

# A backtick string has `{{` for a brace; a quoted one may have a spec after its field, in which `:` is text.
GRAMMAR = r"""
start: item*
item: NAME | ":" | "::" | "(" start ")" | "{" start "}" | ticked | quoted
ticked: TICK (T_OPEN start "}")* T_END
quoted: QUOTE (Q_OPEN field)* Q_END
field: NAME+ "}" | NAME+ FIELD_COLON Q_CLOSE

NAME: /a/
TICK: /`/
T_OPEN: /([a'() :]|\{\{)*\{/
T_END: /([a'() :]|\{\{)*`/
_BAD: /([a'() :]|\{\{)*\{\{/
QUOTE: /'/
Q_OPEN: /[a`() :]*\{/
Q_END: /[a`() :]*'/
FIELD_COLON: /:/
Q_CLOSE: /[a`() :]*\}/
BLANK: " "
%ignore BLANK
"""

SPEC = """
name = "small"
suffixes = [".small"]
start = "start"
error_lexemes = ["_BAD"]
brackets = [["(", ")"], ["{", "}"]]
modes = [
  { name = "field", lexemes = ["FIELD_COLON"], code = true, without = [":", "::"] },
  { name = "ticked", lexemes = ["T_OPEN", "T_END", "_BAD"], open = ["T_OPEN"] },
  { name = "quoted", lexemes = ["Q_OPEN", "Q_END"], open = ["Q_OPEN"] },
  { name = "spec", lexemes = ["Q_CLOSE"], close = ["Q_CLOSE"] },
]
"""


def load(folder: Path, grammar: str, spec: str) -> Language:
    (folder / "small.lark").write_text(grammar)
    (folder / "small.toml").write_text(spec)
    return Language.from_files(folder / "small.lark", folder / "small.toml")
