"""Cells of notebooks in Python: the programs of a cell, and its text in a file of Python.

IPython compiles each cell by itself. A cell is one program, in which commands are statements; the argument of a magic
such as ``%timeit`` is another, and so is the line of ``%%timeit``. All of these have to parse, and no more.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from fim_server.language_support.python.commands import (
    BLANKS,
    NAME,
    Command,
    commands_in,
    data,
    end_of,
    has_prompt,
    last_unopened,
    may_hold,
)

FOREIGN = "the cell begins with a magic that takes no Python"
CONSOLE = "the cell begins with a console's prompt"
INSIDE = "inside a command of IPython that takes no Python"

MAGIC = re.compile(r"%{1,2}([\w.]*)")
CELL_MAGIC = re.compile(r"%%([\w.!]*)(?![\w.!?])")
WORD = re.compile(r"\S+")


@dataclass(frozen=True, slots=True)
class Part:
    """Stretch of a cell that is no plain code.

    Attributes:
        command: The command, or a line that hands the cell to a magic.
        is_header: Whether it is a line that hands the cell to a magic.
        body: The stretch of Python in it, if any.
        begins: Whether the body is the beginning of the cell's own program.
    """

    command: Command
    is_header: bool = False
    body: tuple[int, int] | None = None
    begins: bool = False


@dataclass(frozen=True, slots=True)
class Cell:
    """Cell as Python reads it.

    Attributes:
        program: Its text in a file of Python.
        units: The programs in it, each of which has to parse, with the cell's own line breaks before them.
        is_foreign: Whether it is not Python.
    """

    program: str
    units: tuple[str, ...]
    is_foreign: bool = False


@dataclass(frozen=True, slots=True)
class Cursor:
    """Cursor in a cell.

    Attributes:
        left: The cursor's program up to the cursor.
        right: The cursor's program after the cursor.
        above: The cell's text in a file of Python, before the cursor.
        below: The cell's text in a file of Python, after the cursor.
        units: The other programs of the cell.
        one_line: Whether line breaks are forbidden.
    """

    left: str
    right: str
    above: str
    below: str
    units: tuple[str, ...]
    one_line: bool


@lru_cache(maxsize=8192)
def read(text: str) -> Cell:
    """Read a cell without a cursor."""
    text = dedented(without_prompts(text))
    parts = parts_of(text, commands_of(text, header_end(text)))
    program = in_file(text, 0, len(text), parts)
    if is_foreign(text, parts) or is_handed_over(text):
        return Cell(program, (), is_foreign=True)
    return Cell(program, (code(text, 0, len(text), parts), *bodies(text, parts)))


def at(left: str, right: str) -> Cursor | str:
    """Split a cell at a cursor between two texts, or return in one line the reason for suggesting nothing."""
    if is_handed_over(left + right):
        return FOREIGN
    if has_prompts(left + right):
        return CONSOLE
    left, right, was_indented = dedented_around(left, right)
    text, offset = left + right, len(left)
    parts = parts_of(text, commands_around(left, right))
    if is_foreign(text, parts):
        return FOREIGN
    inside = next((part for part in parts if is_inside(part, text, offset)), None)
    if inside is None:
        main = code(text, 0, offset, parts), code(text, offset, len(text), parts)
        others = tuple(bodies(text, parts))
    elif inside.body is None or not inside.body[0] <= offset <= inside.body[1]:
        return INSIDE
    elif inside.begins:
        main = code(text, 0, offset, parts), code(text, offset, len(text), parts)
        others = tuple(bodies(text, parts))
    else:
        main = body(text, inside.body[0], offset), text[offset : inside.body[1]]
        rest = [part for part in parts if part is not inside]
        others = (code(text, 0, len(text), parts), *bodies(text, rest))
    return Cursor(
        *main,
        in_file(text, 0, offset, parts),
        in_file(text, offset, len(text), parts),
        others,
        was_indented or inside is not None,
    )


def keeps(left: str, right: str, units: Sequence[str], before: str, text: str, after: str) -> bool:
    """Return whether a cell with a text at its cursor holds exactly the programs that :func:`at` found there.

    Args:
        left: The cursor's program before it, with the text's beginning if it has one.
        right: The cursor's program after it.
        units: The cell's other programs.
        before: The cell itself before the cursor.
        text: The text to insert.
        after: The cell itself after the cursor.
    """
    cell = read(before + text + after)
    return not cell.is_foreign and Counter(cell.units) == Counter((left + text + right, *units))


def given() -> str:
    """Return statements that bind IPython's own names."""
    return str(data()["given"]).lstrip()


def anything() -> str:
    """Return a statement after which any name may be bound."""
    return f"{data()['anything']}\n"


# --- commands ----------------------------------------------------------------------------------------------------


def header_end(text: str) -> int:
    """Return the end of the lines that hand a cell to magics: 0 without any, the cell's end where it is not Python."""
    headers = headers_of(text)
    return headers[-1].command.end if headers else 0


def first_line(text: str, start: int) -> int | None:
    """Return the offset of the first line at or after another that is not blank."""
    found = re.compile(r"\S").search(text, start)
    return None if found is None else text.rfind("\n", 0, found.start()) + 1


def end_of_line(text: str, start: int) -> int:
    """Return the end of a line, without its break."""
    found = text.find("\n", start)
    return len(text) if found < 0 else found


def commands_of(text: str, start: int) -> list[Command]:
    """Return the commands of a cell's own program, which begins at an offset."""
    return commands_in(text, start)[0] if may_hold().search(text, start) else []


def commands_around(left: str, right: str) -> list[Command]:
    """Return the commands around a cursor, which may stand inside something that is still open.

    Where nothing right of the cursor closes it, the text at the cursor will: statements begin again below.
    """
    text = left + right
    start = header_end(text)
    if not may_hold().search(text, start):
        return []
    found, is_open = commands_in(text, start)
    if not is_open or start > len(left):
        return found
    above, was_open = commands_in(text, start, len(left))
    if not was_open:
        return found
    line = end_of_line(text, len(left) + last_unopened(right))
    return [*above, *commands_in(text, line)[0]]


def headers_of(text: str) -> list[Part]:
    """Return the lines that hand a cell to magics; the last is the whole cell where its magic takes no Python."""
    parts: list[Part] = []
    end = 0
    while (start := first_line(text, end)) is not None and (found := CELL_MAGIC.match(text, start)):
        end = end_of_line(text, start)
        kind = data()["body"].get(found[1])
        argument = None if kind in (None, "nothing") else argument_of(text, found[1], found.end(), end)
        parts.append(Part(Command(start, len(text) if kind is None else end), True, argument, kind == "beginning"))
        if kind is None:
            break
    return parts


def is_foreign(text: str, parts: list[Part]) -> bool:
    """Return whether a cell is not Python; ``parts``: the lines that hand it to magics come first."""
    headers = [part for part in parts if part.is_header]
    found = CELL_MAGIC.match(text, headers[-1].command.start) if headers else None
    return found is not None and found[1] not in data()["body"]


def is_handed_over(text: str) -> bool:
    """Return whether the first line, without its own indentation, hands a cell to a magic that takes no Python.

    IPython 8 takes the first line's indentation away, IPython 9.4 the indentation that all lines share. With
    the former the cell is not Python, and with the latter it is no valid Python.
    """
    found = CELL_MAGIC.match(text.lstrip())
    return found is not None and found[1] not in data()["body"]


def parts_of(text: str, commands: list[Command]) -> list[Part]:
    """Return the parts of a cell that are no plain code, in their order."""
    return [*headers_of(text), *(Part(command, body=body_of(text, command)) for command in commands)]


def body_of(text: str, command: Command) -> tuple[int, int] | None:
    """Return the stretch of a command that is Python; None where it takes none."""
    found = MAGIC.match(text, command.start, command.end)
    if found is None or found[1] not in data()["line"] or text.startswith("?", found.end()):
        return None
    if text[command.start : command.end].rstrip().endswith("?"):
        return None
    return argument_of(text, found[1], found.end(), command.end)


def argument_of(text: str, magic: str, start: int, end: int) -> tuple[int, int] | None:
    """Return the stretch of a magic's argument after its options; None where these have not ended yet."""
    options = data()["line"].get(magic, "")
    if start >= end or not text[start].isspace():
        return None
    while (found := WORD.search(text, start, end)) is not None and found[0].startswith("-"):
        takes_value = option(found[0], options)
        if takes_value is None:
            break
        if takes_value:
            found = WORD.search(text, found.end(), end)
        if found is None or found.end() == end:
            return None
        start = found.end()
    return (end if found is None else found.start()), end


def option(word: str, options: str) -> bool | None:
    """Return whether the word after an option is its value; None where this is no option, as getopt has them."""
    if word.startswith("--"):
        return False if len(word) > 2 else None
    letters = word[1:]
    for index, letter in enumerate(letters):
        place = options.find(letter)
        if place < 0 or letter == ":":
            return None
        if options[place + 1 : place + 2] == ":":
            return index + 1 == len(letters)
    return False if letters else None


def is_inside(part: Part, text: str, offset: int) -> bool:
    """Return whether a cursor is in a part, or in the blanks before it."""
    start, end = part.command.start, part.command.end
    if not part.command.is_value:
        while start and text[start - 1] in BLANKS:
            start -= 1
    return start <= offset <= end


# --- substitutes -------------------------------------------------------------------------------------------------


def code(text: str, start: int, end: int, parts: list[Part]) -> str:
    """Return a stretch of a cell as it reads in its own program, line by line."""

    def read(part: Part, first: int, last: int) -> str:
        if part.begins and part.body is not None:
            return text[max(part.body[0], start) : min(part.body[1], end)]
        stands = "" if part.is_header else data()["value" if part.command.is_value else "statement"]
        return str(stands) + "\n" * text.count("\n", first, last)

    return replaced(text, start, end, parts, read)


def replaced(text: str, start: int, end: int, parts: list[Part], read: Callable[[Part, int, int], str]) -> str:
    """Return a stretch of a cell with other texts for its parts, as a function of a part and two offsets gives them."""
    pieces, done = [], start
    for part in parts:
        command = part.command
        first, last = max(command.start, start), min(command.end, end)
        if command.end < start or command.start >= end or first > last:
            continue
        pieces += [text[done:first], read(part, first, last)]
        done = last
    return "".join((*pieces, text[done:end]))


def bodies(text: str, parts: list[Part]) -> list[str]:
    """Return the programs that are arguments of magics."""
    return [body(text, *part.body) for part in parts if part.body is not None and not part.begins]


def body(text: str, start: int, end: int) -> str:
    """Return a stretch of a magic's argument, on its own line."""
    return "\n" * text.count("\n", 0, start) + text[start:end]


def in_file(text: str, start: int, end: int, parts: list[Part]) -> str:
    """Return a stretch of a cell for a file of Python: commands become bindings of their names, or comments."""

    def read(part: Part, first: int, last: int) -> str:
        if part.body is not None:
            return text[max(part.body[0], first) : min(part.body[1], last)]
        return stand_in(text, part) if part.command.start >= start else ""

    return replaced(text, start, end, parts, read)


def stand_in(text: str, part: Part) -> str:
    """Return a line of Python that binds the names of a command."""
    command, known = part.command, data()
    line = text[command.start : end_of(text, command.start)].replace("\\\n", " ")
    if command.is_value:
        return f"None  {known['comment']}{line}"
    at_margin = command.start == 0 or text[command.start - 1] == "\n"
    names, binds_anything = bound_by(line)
    if binds_anything and at_margin:
        return f"{known['anything']}  {known['comment']}{line}"
    if names:
        return f"{' = '.join(names)} = None  {known['comment']}{line}"
    return f"{known['comment']}{line}" if at_margin else f"{known['statement']}  {known['comment']}{line}"


def bound_by(line: str) -> tuple[list[str], bool]:
    """Return the names that a command binds, and whether it may bind any name."""
    known, found = data(), MAGIC.match(line)
    if found is None:
        return [], False
    arguments = line[found.end() :]
    names = [name for pattern in known["binds"] for one in re.findall(pattern, arguments) for name in NAME.findall(one)]
    if found[1] in known["bind_first"]:
        first = next((word for word in arguments.split() if not word.startswith("-")), "")
        names += [first] if first.isidentifier() else []
    return list(dict.fromkeys(names)), found[1] in known["bind_anything"]


def has_prompts(text: str) -> bool:
    """Return whether a cell is copied from a console."""
    return re.match(data()["first_prompt"], text) is not None or has_prompt(text, data()["prompt"])


def without_prompts(text: str) -> str:
    """Return a cell without a console's prompts, which IPython removes."""
    return re.sub(data()["prompts"], "", text) if has_prompts(text) else text


# --- indentation -------------------------------------------------------------------------------------------------


def margin(text: str) -> str:
    """Return the blanks with which all lines of a cell begin, but for blank ones."""
    start = first_line(text, 0)
    if start is None or text[start] not in BLANKS:
        return ""
    common: str | None = None
    for line in text.split("\n"):
        if line.strip():
            blanks = line[: len(line) - len(line.lstrip(BLANKS))]
            common = blanks if common is None else shared(common, blanks)
    return common or ""


def shared(some: str, other: str) -> str:
    """Return the beginning that two texts share."""
    count = next((i for i, (a, b) in enumerate(zip(some, other, strict=False)) if a != b), min(len(some), len(other)))
    return some[:count]


def dedented(text: str) -> str:
    """Return a cell without the blanks that all of its lines begin with, which IPython removes."""
    blanks = margin(text)
    return "\n".join(line.removeprefix(blanks) for line in text.split("\n")) if blanks else text


def dedented_around(left: str, right: str) -> tuple[str, str, bool]:
    """Apply :func:`dedented` on both sides of a cursor, and tell whether there was something to take away."""
    blanks = margin(left + right)
    if not blanks:
        return left, right, False
    start = left.rfind("\n") + 1
    taken = shared(left[start:], blanks)
    line, newline, below = right.partition("\n")
    left = dedented_by(left[:start], blanks) + left[start + len(taken) :]
    return left, line.removeprefix(blanks[len(taken) :]) + newline + dedented_by(below, blanks), True


def dedented_by(text: str, blanks: str) -> str:
    """Return lines without some blanks that they begin with."""
    return "\n".join(line.removeprefix(blanks) for line in text.split("\n"))
