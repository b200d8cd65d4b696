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

BLANKS = " \t\f"

CODE_STOPS = re.compile(r"""\\\n|["'#\n()\[\]{}:=]""")
PREFIX = re.compile(r"(?<!\w)[A-Za-z]{1,2}\Z")
PLAIN = {
    quote: re.compile(rf"(?:[^\\]|\\.)*?{quote}", re.DOTALL)
    if len(quote) == 3
    else re.compile(rf"(?:[^\\\n{quote}]|\\.)*{quote}?", re.DOTALL)
    for quote in ('"""', "'''", '"', "'")
}
"""Patterns of a string after its opening quote, with the closing one; a string of one line ends there at the latest."""

AUGMENTED = "=!<>:+-*/%&|^@"
"""Characters before a `=` that assigns nothing by itself."""

HELP = re.compile(r"%{0,2}(?!\d)[\w*]+(?:\.(?!\d)[\w*]+|\[-?[0-9]+\])*\?\??\Z")
"""End of a statement that asks for help (``_help_end_re``)."""

NO_MARKS = ("!=", "%=", "/=", "//")
"""Operators that begin with a mark."""

NAME = re.compile(r"[^\W\d]\w*")
OPENING, CLOSING = "([{", ")]}"


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


@dataclass(slots=True)
class Frame:
    """Open bracket or string.

    Attributes:
        kind: The bracket; `text`, `field` or `spec` of a string.
        quote: The string's quote.
    """

    kind: str
    quote: str = ""


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
    scanner = Scanner(text, start, len(text) if end is None else end)
    scanner.scan()
    return scanner.commands, bool(scanner.frames)


def has_prompt(text: str, prompt: str) -> bool:
    """Return whether a statement begins with a console's prompt."""
    if re.search(rf"^[{BLANKS}]*{re.escape(prompt)}", text, re.MULTILINE) is None:
        return False
    scanner = Scanner(text, 0, len(text), prompt=prompt)
    scanner.scan()
    return scanner.is_prompted


def last_unopened(text: str) -> int:
    """Return the end of the last closing bracket that a text of code has not opened; 0 without one."""
    scanner = Scanner(text, 0, len(text), heeds_commands=False)
    scanner.scan()
    return scanner.unopened


def end_of(text: str, start: int) -> int:
    """Return the end of a command that begins at an offset."""
    while True:
        stop = text.find("\n", start)
        if stop < 0:
            return len(text)
        if text[stop - 1] != "\\" or stop == start:
            return stop
        start = stop + 1


class Scanner:
    """Reader that finds the commands in a text."""

    def __init__(self, text: str, start: int, end: int, heeds_commands: bool = True, prompt: str | None = None) -> None:
        """Take a text. Without ``heeds_commands``, the marks of commands are plain text. ``prompt``: looked for."""
        self.text = text
        self.end = end
        self.at = start
        self.frames: list[Frame] = []
        self.commands: list[Command] = []
        self.unopened = 0
        """The end of the last closing bracket without an opening one."""
        self.is_prompted = False
        """True once a statement begins with the prompt."""
        self._heeds_commands = heeds_commands
        self._prompt = prompt
        self._statement = start
        self._assigns = False
        """True once the statement has an `=`."""

    def scan(self) -> None:
        """Read the whole text."""
        self._begin_line()
        while self.at < self.end:
            if self.frames and self.frames[-1].kind in ("text", "spec"):
                self._read_text()
            else:
                self._read_code()
        if not self.frames:
            self._end_statement(self.end)

    def _begin_line(self) -> None:
        """Begin a statement, if anything follows in the line."""
        text, end = self.text, self.end
        while self.at < end and text[self.at] in BLANKS:
            self.at += 1
        self._statement, self._assigns = self.at, False
        if self._prompt is not None and text.startswith(self._prompt, self.at):
            self.is_prompted = True
        is_marked = self.at < end and text[self.at] in data()["marks"] and not text.startswith(NO_MARKS, self.at)
        if self._heeds_commands and is_marked:
            self._take(False)

    def _take(self, is_value: bool) -> None:
        """Take a command that begins here."""
        stop = min(end_of(self.text, self.at), self.end)
        line = self.text[self._statement : stop].rstrip()
        start = self.at
        if HELP.search(line) and not is_value:
            start = self._statement
        self.commands.append(Command(start, stop, is_value))
        self.at = self._statement = stop

    def _end_statement(self, stop: int, comment: int = -1) -> None:
        """End a statement, at a line's end or at that of the text."""
        statement = self.text[self._statement : stop].rstrip()
        if self._heeds_commands and comment < 0 and statement.endswith("?") and HELP.search(statement):
            self.commands.append(Command(self._statement, self._statement + len(statement)))

    def _read_code(self) -> None:
        found = CODE_STOPS.search(self.text, self.at, self.end)
        if found is None:
            self.at = self.end
            return
        self.at, stop = found.end(), found[0]
        top = self.frames[-1] if self.frames else None
        if stop == "\n":
            self._end_line(found.start())
        elif stop == "#":
            self._skip_comment(found.start())
        elif stop in "\"'":
            self._begin_string(found.start())
        elif stop in OPENING:
            self.frames.append(Frame(stop))
        elif stop in CLOSING:
            self._close(found.end())
        elif stop == ":" and top is not None and top.kind == "field":
            self.frames.append(Frame("spec", top.quote))
        elif stop == "=" and top is None and not self._assigns:
            self._assign(found.start())

    def _skip_comment(self, start: int) -> None:
        line_end = self.text.find("\n", start, self.end)
        self.at = self.end if line_end < 0 else line_end
        if not self.frames and self.at < self.end:
            self._end_statement(self.at, start)
            self.at += 1
            self._begin_line()
        elif not self.frames:
            self._statement = self.end

    def _end_line(self, stop: int) -> None:
        if not self.frames:
            self._end_statement(stop)
            self._begin_line()

    def _close(self, stop: int) -> None:
        if not self.frames:
            self.unopened = stop
            return
        was_field = self.frames.pop().kind == "field"
        if was_field and self.text[stop - 1] != "}":
            self.unopened = stop

    def _assign(self, start: int) -> None:
        if self.text[start - 1 : start] in tuple(AUGMENTED) or self.text.startswith("=", start + 1):
            self.at = start + (2 if self.text.startswith("=", start + 1) else 1)
            return
        self._assigns = True
        found = assigned().match(self.text, start + 1, self.end)
        if self._heeds_commands and found is not None:
            self.at = found.end()
            self._take(True)

    def _begin_string(self, start: int) -> None:
        text = self.text
        quote = text[start : start + 3] if text[start : start + 3] in PLAIN else text[start]
        prefix = PREFIX.search(text, max(0, start - 3), start)
        if prefix is not None and set(prefix[0].lower()) & {"f", "t"}:
            self.frames.append(Frame("text", quote))
            self.at = start + len(quote)
            return
        found = PLAIN[quote].match(text, start + len(quote), self.end)
        if found is None:
            self.frames.append(Frame(quote))
            self.at = self.end
        else:
            self.at = found.end()

    def _read_text(self) -> None:
        """Continue in the text of a formatted string, or of a format."""
        top = self.frames[-1]
        is_spec = top.kind == "spec"
        found = text_stops(top.quote).search(self.text, self.at, self.end)
        if found is None:
            self.at = self.end
            return
        self.at, stop = found.end(), found[0]
        if stop == "\n":
            if len(top.quote) == 1:
                self.at = found.start()
                while self.frames and self.frames[-1].quote == top.quote:
                    self.frames.pop()
        elif stop == "{" or (stop == "{{" and is_spec):
            self.at = found.start() + 1
            self.frames.append(Frame("field", top.quote))
        elif stop[0] == "}" and is_spec:
            self.at = found.start() + 1
            del self.frames[-2:]
        elif stop == top.quote:
            while self.frames and self.frames[-1].kind != "text":
                self.frames.pop()
            if self.frames:
                self.frames.pop()


@cache
def text_stops(quote: str) -> re.Pattern[str]:
    """Return a pattern of all that counts in the text of a formatted string."""
    return re.compile(rf"\\.|\{{\{{|\}}\}}|[{{}}\n]|{quote}", re.DOTALL)
