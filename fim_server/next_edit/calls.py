"""Calls of a function whose parameters an edit has changed, with the arguments that follow.

A removed parameter takes its argument with it, and a renamed one the keyword. A new parameter without a default gets
the variable of its name, where the lines around the call have one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice

from fim_server.next_edit.analogies import found_at
from fim_server.next_edit.bindings import scope_of
from fim_server.next_edit.change import indentation
from fim_server.next_edit.edit_memory import Edit
from fim_server.next_edit.line_tokens import Lines
from fim_server.next_edit.receivers import HEAD, NAME, Callers
from fim_server.next_edit.signs import SIGNS

HEAD_LINES = 20
"""Most lines above an edit in which its header begins."""

LONGEST = 2000
"""Longest list of parameters or arguments, and longest line in which a name is looked for, in characters."""

MOST_CALLS = 256
"""Most calls that are looked at."""

RECEIVERS = re.compile(SIGNS.receivers)

SIGNIFICANT = re.compile(f"[{re.escape(SIGNS.quotes + SIGNS.opens + SIGNS.closes + SIGNS.separator + SIGNS.escape)}]")
"""Characters that matter between arguments."""


@dataclass(frozen=True, slots=True)
class Signature:
    """Header of a function.

    Attributes:
        name: Its name.
        end: Offset of the parameters.
        parameters: Texts of the parameters, without that of the object.
        instance: Text of the parameter that is the object; empty without one.
        receiver: The object in brackets before the name; empty without one.
    """

    name: str
    end: int
    parameters: tuple[str, ...]
    instance: str
    receiver: str


@dataclass(frozen=True, slots=True)
class ArgumentEdit:
    """Edit of a call.

    Attributes:
        start: Offset of the replaced text.
        end: Its end.
        text: The new text.
        call: Offset of the function's name.
    """

    start: int
    end: int
    text: str
    call: int = 0


@dataclass(frozen=True, slots=True)
class ChangedHeader:
    """Function of which one parameter was added, removed or renamed.

    Attributes:
        name: Its name.
        end: Offset of its parameters.
        number: Number of the parameter, without that of the object.
        old: Its old text; None for a new one.
        new: Its new text; None for a removed one.
        least: Fewest arguments of a call with the parameter.
        instance: Text of the parameter that is the object; empty without one.
        receiver: The object in brackets before the name; empty without one.
    """

    name: str
    end: int
    number: int
    old: str | None
    new: str | None
    least: int
    instance: str
    receiver: str


def changed_header(edit: Edit, text: str, done: tuple[int, int]) -> ChangedHeader | None:
    """Return the function whose header was edited; ``done``: offsets of the edit's lines in the text now."""
    now = signature_at(text, done)
    if now is None:
        return None
    before = signature_at(text[: done[0]] + edit.old + text[done[1] :], (done[0], done[0] + len(edit.old)))
    found = None if before is None or before.name != now.name else difference(before.parameters, now.parameters)
    if before is None or found is None:
        return None
    number, old, new = found
    if is_several(old or "") or is_several(new or ""):
        return None
    if any(is_several(one) for one in now.parameters[:number]):
        number = LONGEST  # by its keyword only
    least = len(required((now if old is None else before).parameters))
    return ChangedHeader(now.name, now.end, number, old, new, least, now.instance, now.receiver)


def call_edits(changed: ChangedHeader, lines: Lines, is_own: bool = True) -> list[ArgumentEdit]:
    """Return the edits of the calls in a document; ``is_own``: the header is in it."""
    text = lines.text
    edits: list[ArgumentEdit] = []
    begun = changed.name + SIGNS.parameters_open
    callers = Callers(lines, changed.end, changed.instance, changed.receiver) if is_own else None
    for at in islice(found_at(text, begun), MOST_CALLS):
        end = at + len(begun)
        words = text[text.rfind("\n", 0, at) + 1 : at].split()
        if (words and words[-1] in SIGNS.heads) or (is_own and end == changed.end):
            continue
        if callers is not None and not callers.include(at):
            continue
        arguments, _ = pieces(text, end)
        if arguments is None or any(is_unclear(text[start:end]) for start, end in arguments):
            continue
        call, old, new = Call(text, end, arguments), changed.old, changed.new
        if old is not None and new is not None:
            made = call.renamed(name_of(old), name_of(new))
        elif old is not None:
            made = call.without(name_of(old), changed.number, changed.least)
        else:
            made = call.having(new or "", changed.number, changed.least)
            made = made if made is not None and is_known(lines, made, name_of(new or "")) else None
        if made is not None:
            edits.append(replace(made, call=at))
    return edits


def signature_at(text: str, done: tuple[int, int]) -> Signature | None:
    """Return the header in whose parameters an edit is, whose lines are between two offsets."""
    least, first = max(0, done[0] - LONGEST), done[0]
    for _ in range(HEAD_LINES):
        first = text.rfind("\n", least, max(least, first - 1)) + 1
        if first <= least:
            break
    first = max(first, least)
    found = None
    for match in HEAD.finditer(text, first, min(done[1], done[0] + LONGEST)):
        found = match
    if found is None:
        return None
    parts, end = pieces(text, found.end())
    if parts is None or end < done[0]:
        return None
    texts = [text[start:end].strip() for start, end in parts]
    receiver, instance = found["receiver"] or "", ""
    if texts and RECEIVERS.match(texts[0]):
        instance, *texts = texts
        if not indentation(text[text.rfind("\n", 0, found.start()) + 1 : found.end()]):
            return None  # calls name the object, too
    if any(map(is_cut, texts)):
        return None
    texts = [one for one in texts if is_several(one) or NAME.search(one)]
    return Signature(found["name"], found.end(), tuple(texts), instance, receiver)


def is_several(parameter: str) -> bool:
    """Return whether a parameter stands for several arguments, or separates others."""
    return parameter.startswith(SIGNS.several) or SIGNS.several[-1] in parameter


def is_cut(parameter: str) -> bool:
    """Return whether a comma of generic arguments may end a parameter."""
    for arrow in SIGNS.arrows:
        parameter = parameter.replace(arrow, "")
    return parameter.count(SIGNS.generics[0]) != parameter.count(SIGNS.generics[1])


def is_unclear(argument: str) -> bool:
    """Return whether an argument may stand for several, or be a part of one."""
    return argument.lstrip().startswith(SIGNS.several) or not set(SIGNS.generics).isdisjoint(argument)


def pieces(text: str, start: int) -> tuple[list[tuple[int, int]] | None, int]:
    """Return the offsets of the pieces between commas behind an opening bracket, and that of its closer.

    The pieces are None if there is no closer.
    """
    found: list[tuple[int, int]] = []
    depth, begun, quote, escaped = 0, start, "", -1
    for match in SIGNIFICANT.finditer(text, start, min(len(text), start + LONGEST)):
        at, character = match.start(), match[0]
        if at == escaped:
            continue
        if quote:
            if character == SIGNS.escape:
                escaped = at + 1
            elif character == quote:
                quote = ""
        elif character in SIGNS.quotes:
            quote = character
        elif character in SIGNS.opens:
            depth += 1
        elif character in SIGNS.closes and depth == 0:
            if text[begun:at].strip():
                found.append((begun, at))
            return found, at
        elif character in SIGNS.closes:
            depth -= 1
        elif character == SIGNS.separator and depth == 0:
            found.append((begun, at))
            begun = at + 1
    return None, min(len(text), start + LONGEST)


def difference(before: Sequence[str], now: Sequence[str]) -> tuple[int, str | None, str | None] | None:
    """Return the number of the one parameter that differs, its old and its new text; None if not exactly one does."""
    head = 0
    while head < min(len(before), len(now)) and before[head] == now[head]:
        head += 1
    tail = 0
    while tail < min(len(before), len(now)) - head and before[-1 - tail] == now[-1 - tail]:
        tail += 1
    old, new = before[head : len(before) - tail], now[head : len(now) - tail]
    if len(old) > 1 or len(new) > 1 or not (old or new):
        return None
    return head, old[0] if old else None, new[0] if new else None


@dataclass(frozen=True, slots=True)
class Call:
    """Call of a function.

    Attributes:
        text: The document.
        start: Offset of the arguments.
        arguments: Offsets of each.
    """

    text: str
    start: int
    arguments: Sequence[tuple[int, int]]

    @property
    def keywords(self) -> list[str | None]:
        """Keyword of each argument, if it has one."""
        return [keyword_of(self.text[first:last]) for first, last in self.arguments]

    @property
    def positional(self) -> int:
        """Number of arguments before the first keyword."""
        return next((at for at, keyword in enumerate(self.keywords) if keyword is not None), len(self.arguments))

    def renamed(self, old: str, new: str) -> ArgumentEdit | None:
        """Return the edit that renames the keyword of an argument."""
        if old == new or not new or old not in self.keywords:
            return None
        start = self.text.index(old, self.arguments[self.keywords.index(old)][0])
        return ArgumentEdit(start, start + len(old), new)

    def without(self, name: str, number: int, least: int) -> ArgumentEdit | None:
        """Return the edit that removes an argument and a comma beside it.

        ``least``: fewest arguments of a call with it.
        """
        if name in self.keywords:
            number = self.keywords.index(name)
        elif number >= self.positional or len(self.arguments) < least:
            return None
        if number:
            return ArgumentEdit(self.arguments[number - 1][1], self.arguments[number][1], "")
        first, end = self.arguments[0]
        if len(self.arguments) > 1:
            begun, last = self.arguments[1]
            end = last - len(self.text[begun:last].lstrip())
        return ArgumentEdit(first, end, "")

    def having(self, parameter: str, number: int, least: int) -> ArgumentEdit | None:
        """Return the edit that adds an argument for a parameter without a default, named like it.

        ``least``: fewest arguments of a call with it.
        """
        name = name_of(parameter)
        if not name or SIGNS.assign in parameter or name in self.keywords or number > self.positional:
            return None
        if len(self.arguments) != least - 1:
            return None
        if number < len(self.arguments):
            first, last = self.arguments[number]
            start = last - len(self.text[first:last].lstrip())
            return ArgumentEdit(start, start, f"{name}{SIGNS.separator} ")
        if not self.arguments:
            return ArgumentEdit(self.start, self.start, name)
        first, last = self.arguments[-1]
        end = first + len(self.text[first:last].rstrip())
        return ArgumentEdit(end, end, f"{SIGNS.separator} {name}")


def required(parameters: Sequence[str]) -> list[str]:
    """Return the parameters without a default."""
    return [one for one in parameters if SIGNS.assign not in one and not one.startswith(SIGNS.several)]


def keyword_of(argument: str) -> str | None:
    """Return the keyword of an argument, if it has one."""
    found = re.match(r"\s*([^\W\d]\w*)\s*=(?!=)", argument)
    return None if found is None else found[1]


def name_of(parameter: str) -> str:
    """Return the name of a parameter: its first word."""
    before = parameter.partition(SIGNS.annotate)[0].partition(SIGNS.assign)[0]
    words = NAME.findall(before)
    return words[0] if words else ""


def is_known(lines: Lines, edit: ArgumentEdit, name: str) -> bool:
    """Return whether the lines around a call, from the beginning of their block, have a name."""
    number = lines.line_at(edit.start)
    around = scope_of(lines, number, False)
    head = max(0, around.start - 1)
    pattern = re.compile(rf"(?<![\w.]){re.escape(name)}(?!\w)")
    near = (lines.lines[at] for at in range(head, number + 1))
    return any(pattern.search(line) for line in near if len(line) <= LONGEST)
