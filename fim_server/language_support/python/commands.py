"""Commands of IPython in a text of Python, and their places: magics, shell commands, help, automatic calls.

IPython looks for them at the beginning of a statement, right after the first ``=`` of an assignment, and, for help, at
a statement's end (IPython 9, ``IPython/core/inputtransformer2.py``). Strings, brackets and comments hold none.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from fim_server.language_support.python.lexemes import Frame, Scanner

BLANKS = " \t\f"

HELP = re.compile(r"%{0,2}(?!\d)[\w*]+(?:\.(?!\d)[\w*]+|\[-?[0-9]+\])*\?\??\Z")
"""End of a statement that asks for help (``_help_end_re``)."""

NO_MARKS = ("!=", "%=", "/=", "//")
"""Operators that begin with a mark."""

ASSIGNING = re.compile("=")
NAME = re.compile(r"[^\W\d]\w*")


PLAIN = re.compile(r"""(?:[^"'#()\[\]{}\\\n]++|\([^"'#()\[\]{}\\\n]*+\)|\[[^"'#()\[\]{}\\\n]*+\])*+\n""")
"""A line that begins and ends outside of brackets and strings."""


@dataclass(frozen=True, slots=True)
class Command:
    """Command of IPython.

    Attributes:
        start: Its offset in the text: of its mark, or of the statement that ends in a question mark.
        end: The end of the line, or of the last line that a backslash joins.
        is_value: Whether it is the value of an assignment instead of a statement.
    """

    start: int
    end: int
    is_value: bool = False


@cache
def data() -> dict[str, Any]:
    """Return IPython's additions to the language: `notebook.toml`."""
    return tomllib.loads(Path(__file__).with_name("notebook.toml").read_text(encoding="utf-8"))


@cache
def may_hold() -> re.Pattern[str]:
    """Return a pattern that every text with a command in it has."""
    marks, assigned = (re.escape(data()[key]) for key in ("marks", "assigned"))
    return re.compile(rf"^[{BLANKS}]*[{marks}]|=[{BLANKS}]*[{assigned}]|\?[{BLANKS}]*$", re.MULTILINE)


@cache
def assigned() -> re.Pattern[str]:
    """Return a pattern of the text after the `=` of an assignment whose value is a command."""
    shell, magic = data()["assigned"]
    return re.compile(rf"(?:[{BLANKS}]|\\\n)*(?={re.escape(shell)}(?!=)|{re.escape(magic)}[{BLANKS}]*[^\W\d])")


def commands_in(text: str, start: int = 0, end: int | None = None) -> tuple[list[Command], bool]:
    """Return the commands of a part of a text that begins at a statement, and whether something is open at its end."""
    reader = CommandReader(text, len(text) if end is None else end)
    reader.read(start)
    return reader.commands, reader.is_open


def has_prompt(text: str, prompt: str) -> bool:
    """Return whether a statement begins with a console's prompt."""
    if re.search(rf"^[{BLANKS}]*{re.escape(prompt)}", text, re.MULTILINE) is None:
        return False
    reader = CommandReader(text, len(text), prompt=prompt)
    reader.read(0)
    return reader.is_prompted


def last_unopened(text: str) -> int:
    """Return the end of the last closing bracket that a text of code has not opened; 0 without one."""
    reader = CommandReader(text, len(text), heeds_commands=False)
    reader.read(0)
    return reader.unopened


def end_of(text: str, start: int) -> int:
    """Return the end of a command that begins at an offset."""
    while True:
        stop = text.find("\n", start)
        if stop < 0:
            return len(text)
        if text[stop - 1] != "\\" or stop == start:
            return stop
        start = stop + 1


class CommandReader(Scanner):
    """Reader that finds the commands in a text.

    Attributes:
        commands: The commands, in order.
        unopened: The end of the last closing bracket without an opening one.
        is_prompted: True once a statement begins with the prompt.
    """

    def __init__(self, text: str, end: int, heeds_commands: bool = True, prompt: str | None = None) -> None:
        """Take a text. Without ``heeds_commands``, the marks of commands are plain text. ``prompt``: looked for."""
        super().__init__()
        self.commands: list[Command] = []
        self.unopened = 0
        self.is_prompted = False
        self._text = text
        self._end = end
        self._heeds_commands = heeds_commands
        self._prompt = prompt
        self._is_fresh = True
        """True at the beginning of a line that continues no statement."""
        self._statement = 0
        self._assigns = False
        """True once the statement has an `=`."""

    def read(self, start: int) -> None:
        """Read the text from an offset on."""
        self.position = start
        while self.position < self._end:
            if self._is_fresh:
                plain = PLAIN.match(self._text, self.position, self._end)
                if plain is not None and self._prompt is None and not may_hold().search(plain[0]):
                    self.position = plain.end()
                    continue
                self._begin_statement()
            stop = self._text.find("\n", self.position, self._end)
            stop = self._end if stop < 0 else stop
            if not self._heeds_commands or not self._takes_value(stop):
                self._feed(min(stop + 1, self._end))
        if len(self.frames) == 1 and not self._is_fresh:
            self._end_statement(self._end)

    @property
    def is_open(self) -> bool:
        """True if the text ends in a bracket or string that another line, or a field, may go on with."""
        if len(self.frames) == 1:
            return bool({*"ft"} & {*self._prefix})
        top = self.frames[-1]
        return len(self.frames) > 2 or len(top.quote) != 1 or top.formatted

    def _feed(self, stop: int) -> None:
        self.feed(self._text[self.position : stop])

    def _begin_statement(self) -> None:
        """Begin a statement, and take the command that it is."""
        text, at = self._text, self.position
        while at < self._end and text[at] in BLANKS:
            at += 1
        self._is_fresh = self._assigns = False
        self._statement, self.comment = at, -1
        self.is_prompted |= self._prompt is not None and text.startswith(self._prompt, at)
        is_marked = at < self._end and text[at] in data()["marks"] and not text.startswith(NO_MARKS, at)
        if self._heeds_commands and is_marked:
            self._take(at, False)

    def _take(self, start: int, is_value: bool) -> None:
        """Take the command that begins at an offset."""
        stop = min(end_of(self._text, start), self._end)
        line = self._text[self._statement : stop].rstrip()
        if HELP.search(line) and not is_value:
            start = self._statement
        self.commands.append(Command(start, stop, is_value))
        self.position = self._statement = stop

    def _takes_value(self, stop: int) -> bool:
        """Read a line up to the command that is the value of its first `=`; return whether there is one."""
        for equals in () if self._assigns else ASSIGNING.finditer(self._text, self.position, stop):
            found = assigned().match(self._text, equals.end(), self._end)
            if found is None:
                continue
            self._feed(equals.end())
            if self.tail == "=" and len(self.frames) == 1 and not self._assigns:
                self.tail, self._assigns = "", True
                self._take(found.end(), True)
                return True
        return False

    def _end_statement(self, stop: int) -> None:
        """End a statement at a line's end or at that of the text, and take it if it asks for help."""
        statement = self._text[self._statement : stop].rstrip()
        asks = self._heeds_commands and self.comment < self._statement and statement.endswith("?")
        if asks and HELP.search(statement):
            self.commands.append(Command(self._statement, self._statement + len(statement)))

    def newline(self) -> None:
        if len(self.frames) == 1:
            self._end_statement(self.start)
            self._is_fresh = True
            self.end_line()

    def sign(self, sign: str) -> None:
        top = self.frames[-1]
        match sign:
            case "(" | "[" | "{":
                self.frames.append(Frame(sign))
            case ")" | "]" | "}":
                if len(self.frames) == 1 or (top.kind == "field" and sign != "}"):
                    self.unopened = self.start + 1
                if len(self.frames) > 1:
                    self.pop()
            case ":" | ":=" if top.kind == "field":
                top.kind = "spec"
            case "=":
                self._assigns = self._assigns or len(self.frames) == 1

    def word(self, word: str, is_checked: bool) -> None:
        pass

    def operand(self, kind: str) -> None:
        pass
