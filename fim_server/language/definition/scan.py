"""Scan of a grammar's text before Lark reads it: it must be small enough for Lark to read within a second.

Lark's time is more than linear in the quantities counted here: it walks its trees by recursion, and visits each
terminal's tree once for every use in another terminal.
"""

import re
from collections import Counter
from dataclasses import dataclass, field

from fim_server.language.definition import limits

_LIBRARY = 500
"""Upper bound of the tokens of any terminal in Lark's own grammar files."""

# The tokens of Lark's grammar for grammars, as far as this scan distinguishes them.
_TOKENS = re.compile(
    r"""(?P<skipped>\s+|\\[ ]*\n|//[^\n]*|\#[^\n]*)
    | (?P<literal>"(?:\\"|\\\\|[^"\n])*?"i?|/(?!/)(?:\\/|\\\\|[^/])*?/[imslux]*)
    | (?P<opening>[(\[{])
    | (?P<closing>[)\]}])
    | (?P<defined>(?:(?<=\n)|\A)(?:%(?:override|extend)\s+)?[?!]{0,2}_?[A-Za-z]\w*
        (?=[ \t]*(?:\{[^}\n]*\})?[ \t]*(?:\.[ \t]*-?\d+)?[ \t]*:))
    | (?P<directive>%\w+)
    | (?P<name>_?[A-Za-z]\w*)
    | (?P<other>.)""",
    re.VERBOSE,
)


@dataclass
class Scan:
    """Quantities of a grammar's text.

    Attributes:
        imports: Files that it imports from its own folder, as the parts of their paths, each once.
    """

    imports: list[tuple[str, ...]] = field(default_factory=list)
    _own: Counter[str] = field(default_factory=Counter)  # tokens of each terminal's definition
    _parts: dict[str, Counter[str]] = field(default_factory=dict)  # the terminals in it

    def define(self, name: str) -> None:
        if name.isupper():
            self._parts.setdefault(name, Counter())

    def count(self, inside: str, token: str) -> None:
        if inside in self._parts:
            self._own[inside] += 1
            if token.isupper() and token.isidentifier() and token != inside:
                self._parts[inside][token] += 1

    def add_import(self, tokens: list[str]) -> None:
        """Note the file of an import: `.folder.file.NAME`, `.folder.file (NAME, NAME)`, `… -> NAME`."""
        if tokens[0] != ".":
            return  # Lark's own files
        end = next((place for place, token in enumerate(tokens) if token in ("(", "-")), len(tokens))
        path = tuple(token for token in tokens[:end] if token != ".")
        path = path if tokens[end : end + 1] == ["("] else path[:-1]
        if path and path not in self.imports:
            self.imports.append(path)

    def heaviest(self, language: str, imported: int = 0) -> int:
        """Return the tokens of the terminal that has the most, with its parts written out.

        Raises LanguageError if all terminals together have too many, or refer to each other over too many steps.

        Args:
            language: Its name, for messages.
            imported: The same for the imported files.
        """
        tokens: dict[str, int] = {}
        steps: dict[str, int] = {}
        for first in self._parts:
            stack = [first]
            while stack:
                name = stack[-1]
                parts = self._parts.get(name, Counter())
                if name not in steps:
                    tokens[name] = steps[name] = 0  # being looked at; circles are Lark's to refuse
                    stack.extend(part for part in parts if part in self._parts and part not in steps)
                    continue
                stack.pop()
                other = max(imported, _LIBRARY)
                tokens[name] = self._own[name] + sum(n * tokens.get(part, other) for part, n in parts.items())
                steps[name] = 1 + max((steps.get(part, 0) for part in parts), default=0)
                limits.check(language, f"steps from terminal {name} to what it is made of", steps[name], limits.NESTING)
                limits.check(language, f"tokens of terminal {name}", tokens[name], limits.TOKENS)
        limits.check(language, "tokens of all terminals, written out", sum(tokens.values()), 2 * limits.TOKENS)
        return max(tokens.values(), default=0)


def look_through(language: str, grammar: str) -> Scan:
    """Scan a grammar's text. Raises LanguageError if it is over a limit."""
    scan = Scan()
    count = depth = definitions = 0
    inside = ""
    imported: list[str] | None = None
    for token in _TOKENS.finditer(grammar):
        kind, text = token.lastgroup, token[0]
        if kind == "skipped":
            if imported and "\n" in text:
                scan.add_import(imported)
                imported = None
            continue
        count += 1
        limits.check(language, "tokens of the grammar", count, limits.TOKENS)
        if kind == "opening":
            depth += 1
            limits.check(language, f"nesting of brackets in {inside or 'the grammar'}", depth, limits.BRACKETS)
        elif kind == "closing":
            depth -= 1
        elif kind == "defined":
            depth, inside = 0, text.split()[-1].lstrip("?!")
            definitions += 1
            limits.check(language, "rules and terminals", definitions, limits.DEFINITIONS)
            scan.define(inside)
        elif kind == "directive":
            depth, inside = 0, ""
            imported = [] if text == "%import" else None
        scan.count(inside, text)
        if imported is not None and text != "%import":
            imported.append(text)
    if imported:
        scan.add_import(imported)
    return scan
