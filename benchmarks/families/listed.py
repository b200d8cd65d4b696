"""Families that no grammar generates: long symbols, what is ignored, layout, dense lists, and broken texts."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.families.texts import Written


@dataclass(frozen=True)
class Listed:
    """A family written by hand: `before`, the units, `core`, as many closings, `after`.

    Attributes:
        name: What is repeated.
        before: What the text begins with.
        unit: What is repeated.
        core: What stands after all of them.
        closing: What closes each unit.
        after: What the text ends with.
        deepest: Units that the language lets stand within each other; beyond them, whole texts stand below each other.
        parses: Whether its texts are in the language.
    """

    name: str
    before: str
    unit: str
    core: str = ""
    closing: str = ""
    after: str = ""
    deepest: int | None = None
    parses: bool = True

    def written(self, repetitions: int) -> Written:
        """See `Family.written`."""
        depth = repetitions if self.deepest is None else min(repetitions, self.deepest)
        text = self.before + self.unit * depth + self.core + self.closing * depth + self.after
        copies = max(1, round(repetitions / depth))
        innermost = len(self.before + self.unit * depth)
        middle = innermost if self.closing else len(self.before) + len(self.unit) * (depth // 2)
        middle += len(text) * (copies // 2)
        end = len(text) * (copies - 1) + innermost + len(self.core)
        whole = text * copies
        return Written(whole, len(self.before) + 1, middle, min(middle + 1, len(whole)), end)


LONG_LINE = 78
"""Characters of a line that is as long as lines are."""

PYTHON = (
    # dense in symbols, or as people write them
    Listed("numbers: 1,", "x=[", "1,", after="]\n"),
    Listed("names and values: a:b,", "x={", "a:b,", after="}\n"),
    Listed("strings and values", "x={", '"a":1,', after="}\n"),
    Listed("slices: a:b,", "x[", "a:b,", after="]\n"),
    Listed("annotated parameters: b:X[Y],", "def f(", "b:X[Y],", after="):x\n"),
    Listed("lambdas with defaults: lambda a=1:a,", "x=[", "lambda a=1:a,", after="]\n"),
    Listed("keyword arguments", "f(", "a=b,", after=")\n"),
    Listed("calls in a list", "x=[", "f(a),", after="]\n"),
    Listed("rows of numbers", "x=[", "[1,2,3],\n", after="]\n"),
    Listed("dicts in a list", "x=[\n", '  {"a": 1, "b": [2]},\n', after="]\n"),
    Listed("method chain over lines", "x=(y\n", "  .f(a)\n", after=")\n"),
    Listed("constants", "", "NAME = 12\n"),
    Listed("attributes", "", "self.name = f(name)\n"),
    Listed("methods", "class A:\n", "  def f(self):\n    return self.a\n"),
    Listed("documented functions", "", 'def f(a: int) -> str:\n    """Text."""\n    return g(a, b=1)\n\n'),
    Listed("strings over lines in brackets", "x=(\n", '  "text"\n', after=")\n"),
    Listed("backslash joins", "x=1", "\\\n+1", after="\n"),
    Listed("formatted string: fields", 'f"', "{x}", after='"\n'),
    Listed("formatted string: fields with specs", 'f"', "{x:>{y}}", after='"\n'),
    Listed("formatted string over lines", 'f"""', "{x} text\n", after='"""\n'),
    # brackets of three kinds, and what no text closes or opens
    Listed("all brackets", "", "{[(", "x", ")]}", "\n", deepest=66),
    Listed("empty brackets", "x=[", "(),[],{},", after="]\n"),
    Listed("openers alone", "", "{[(", parses=False),
    Listed("closers alone", "", ")]}", parses=False),
    Listed("colons alone", "", "x:", parses=False),
    Listed("quotes alone", "", "'\"", parses=False),
    Listed("fields left open", "", "f'{", parses=False),
    Listed("fields in fields", "", "f'{", "x", "}'", parses=False),
    # long symbols
    Listed("long name", "", "x", after="\n"),
    Listed("long number", "", "1", after="\n"),
    Listed("long string", '"', "x", after='"\n'),
    Listed("string of escapes", '"', "\\n", after='"\n'),
    Listed("triple string over lines", '"""', "x" * LONG_LINE + "\n", after='"""\n'),
    Listed("triple string of quotes", '"""', "x''", after='"""\n'),
    Listed("triple strings", "", '"""x"""\n'),
    Listed("strings of quotes", "", "\"'\"\n'\"'\n"),
    Listed("letters beyond ASCII", "x=[", "é,", after="]\n"),
    # what is ignored
    Listed("long comment", "#", "x", after="\n"),
    Listed("comments", "", "# text\n"),
    Listed("comments of quotes", "", '# "it\'s"\n'),
    Listed("blank lines", "x\n", "\n", "x\n"),
    Listed("lines of blanks", "x\n", "    \n", "x\n"),
    Listed("blanks in a line", "x", " ", "+x\n"),
    Listed("lines in brackets", "x=[", "\n", "1]\n"),
    Listed("empty joins", "x", "\\\n", "+x\n"),
    # layout
    Listed("block by blanks", "if x:\n", "        x\n"),
    Listed("block by a tab", "if x:\n", "\tx\n"),
    Listed("block by eight tabs", "if x:\n", "\t" * 8 + "x\n"),
    Listed("block by a tab and blanks", "if x:\n", "\t  x\n"),
    Listed("blocks by blanks", "", "if x:\n        x\n"),
    Listed("blocks by tabs", "", "if x:\n\tx\n"),
    Listed("stairs by blanks", "", "if x:\n    if x:\n        if x:\n            x\n"),
    Listed("stairs by tabs", "", "if x:\n\tif x:\n\t\tif x:\n\t\t\tx\n"),
    Listed("blocks of odd widths", "", "if x:\n   if x:\n     x\nif x:\n if x:\n       x\n"),
    Listed("deep columns", "if x:\n", " " * 400 + "x\n"),
    Listed("deep columns by tabs", "if x:\n", "\t" * 50 + "x\n"),
    Listed("deep columns in brackets", "x=[\n", " " * 400 + "1,\n", after="]\n"),
    Listed("carriage returns", "", "x=1\r\n"),
    Listed("form feeds", "", "\fx=1\n"),
)

JSON = (
    Listed("numbers: 1,", "[", "1,", after="1]"),
    Listed("rows of numbers", "[", "[1,2,3],\n", after="1]"),
    Listed("objects in a list", "[\n", '  {"a": 1, "b": [true, null]},\n', after="  1\n]\n"),
    Listed("long string", '"', "x", after='"'),
    Listed("string of escapes", '"', '\\"', after='"'),
    Listed("long number", "", "1"),
    Listed("blanks", "[", " ", after="]"),
    Listed("lines", "[", "\n", after="]"),
    Listed("mixed nests", "", '{"":[', "1", "]}"),
    Listed("openers alone", "", '{"":[', parses=False),
    Listed("closers alone", "", "]}", parses=False),
    Listed("quotes alone", "", '""', parses=False),
)

LISTED = {"python": PYTHON, "json": JSON}
"""By language."""
