"""Template of a user's own language: one or two files that work, and a test folder with cases."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from fim_server.errors import LanguageError
from fim_server.language import Language

GRAMMAR = """\
// What a file of {name} is: rules are in small letters, lexemes in capitals. Lists are left-recursive.
start: lines
lines: | lines line
line: NAME "=" value ";"

value: NAME | NUMBER | STRING | "[" "]" | "[" values "]"
values: value | values "," value

NAME: /[A-Za-z_][A-Za-z_0-9]*/
NUMBER: /[0-9]+/
STRING: /"([^"\\\\\\n]|\\\\.)*"/
// A string that is not closed shall not fall apart into other lexemes: no rule uses this one.
_OPEN_STRING: /"([^"\\\\\\n]|\\\\.)*/

COMMENT: /#[^\\n]*/
BLANK: /[ \\t\\n]+/
%ignore COMMENT
%ignore BLANK
"""

SPEC = """\
name = "{name}"
suffixes = [{suffixes}]
start = "start"
error_lexemes = ["_OPEN_STRING"]

brackets = [["[", "]"]]
strings = ["STRING"]
quotes = ['"']
comments = [{{ lexeme = "COMMENT", prefix = "#" }}]
# The shortest name or value: a stand-in in the texts that the engine builds.
placeholder = "x"

[constructs]
"value [" = "list"

[layout]
rule = "none"
"""

TOKEN_TREES = """\
name = "{name}"
suffixes = [{suffixes}]
# It knows brackets, strings and comments: no text is exact.
guarantee = "balanced"
brackets = [["(", ")"], ["[", "]"], ["{{", "}}"]]

[token_trees]
line_comments = ["//"]
block_comments = [{{ open = "/*", close = "*/" }}] # `nested = 4` if they nest
strings = [
  {{ open = '"', escape = '\\' }}, # on one line; `lines = true` for several
  {{ open = "'", plain = ["''"] }}, # a quote is written twice
  {{ open = "`", lines = true, holes = [{{ open = "${{", close = "}}" }}] }}, # with code in it
]
"""

TREE_CASES = """\
# What {name} takes and refuses: left and right of the cursor, what is written between them, and whether that is whole.

[[case]]
left = "f(a, "
middle = "[1, `b ${{c}}`]"
right = ") // (\\n"
complete = true

[[case]]
left = "f(a, "
middle = "[1"
right = ")"
complete = false

[[case]]
left = ""
middle = "'it''s"
right = "' /* ( */"
complete = true
"""

CASES = """\
# What {name} takes and refuses: left and right of the cursor, what is written between them, and whether that is whole.
# `fim-server language check` is about real files; this is about what they seldom have.

[[case]]
left = "a = "
middle = "1"
right = ";\\n"
complete = true

[[case]]
left = "a = [1, "
middle = "]"
right = ";"
complete = false
"""

TEST = '''\
"""{name} against its cases: `python -m pytest {name}/tests`."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from fim_server import Language

FOLDER = Path(__file__).parents[1]
CASES = tomllib.loads((FOLDER / "tests" / "cases.toml").read_text(encoding="utf-8"))["case"]


@pytest.mark.parametrize("case", CASES)
def test_case(case: dict[str, Any]) -> None:
    language = Language.from_files({grammar}, FOLDER / "{name}.toml")
    verdict = language.open(case["left"], case["right"]).check(case["middle"])
    assert verdict.complete == case["complete"]
'''


def begin(
    name: str, folder: Path, suffixes: Sequence[str] | None = None, token_trees: bool = False, own: bool = False
) -> list[Path]:
    """Write the files of a new language into a folder of its name, without overwriting any.

    Args:
        name: Name of the language.
        folder: Parent of its folder.
        suffixes: Suffixes of its files, with their dot; None is its name.
        token_trees: Write the data of brackets, strings and comments, in place of a grammar.
        own: Write it although the package has a language of this name.

    Returns:
        The files.

    Raises:
        LanguageError: The name or a suffix is invalid, the package has the language, or the folder has files already.
        OSError: They cannot be written.
    """
    suffixes = suffixes or [f".{name}"]
    if not re.fullmatch(r"[a-z][a-z0-9-]{0,40}", name):
        raise LanguageError(f"{name!r} is no name for a language: small letters, digits and -, as in my-language")
    wrong = [suffix for suffix in suffixes if not re.fullmatch(r"\.[\w.+-]{1,40}", suffix)]
    if wrong:
        raise LanguageError(f"{wrong[0]!r} is no suffix of files: a dot and letters, as in .txt")
    if name in Language.names() and not own:
        raise LanguageError(f"the package has the language {name} already; --own writes another one of this name")
    home = folder / name
    if home.exists() and any(home.iterdir()):
        raise LanguageError(f"{home} is there already, and is not empty")
    quoted = ", ".join(f'"{suffix}"' for suffix in suffixes)
    grammar, spec = home / f"{name}.lark", home / f"{name}.toml"
    texts = {} if token_trees else {grammar: GRAMMAR.format(name=name)}
    texts |= {
        spec: (TOKEN_TREES if token_trees else SPEC).format(name=name, suffixes=quoted),
        home / "tests" / "cases.toml": (TREE_CASES if token_trees else CASES).format(name=name),
        home / "tests" / "test_cases.py": TEST.format(
            name=name, grammar=None if token_trees else f'FOLDER / "{name}.lark"'
        ),
    }
    (home / "tests").mkdir(parents=True, exist_ok=True)
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8")
    Language.from_files(None if token_trees else grammar, spec)
    return list(texts)
