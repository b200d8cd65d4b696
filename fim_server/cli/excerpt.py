"""Completion in the lines around it, with the inserted text highlighted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fim_server.cli.diff import keep_line_ends, line_offsets, promise
from fim_server.text.hidden import escaped
from fim_server.text.terminal import paint

if TYPE_CHECKING:
    from fim_server.decoding.results import Completion
    from fim_server.language import Language
    from fim_server.text.document import Split

LINES_AROUND = 8
"""Lines shown above and below."""

INSERTED = "bold black on bright_green"


def excerpt_lines(
    path: str, split: Split, completion: Completion, language: Language, model: str, colour: bool
) -> Iterator[str]:
    """Yield the numbered lines around a completion, below its guarantee and costs.

    The inserted characters are coloured; without colour, carets below a line point at them.
    """
    text = completion.text or ""
    statistics = completion.statistics
    yield paint(
        promise(completion, language), "bold green" if completion.guarantee == "exact" else "bold yellow", colour
    )
    yield paint(f"{model}: {statistics.tokens} tokens in {statistics.total_ms:.0f} ms", "bold", colour)
    yield ""
    yield paint(path, "bold", colour)
    lines = keep_line_ends(split.joined(text))
    offsets = line_offsets(lines)
    start, end = len(split.left), len(split.left) + len(text)
    first, last = split.left.count("\n"), split.left.count("\n") + text.count("\n")
    shown = range(max(0, first - LINES_AROUND), min(len(lines), last + 1 + LINES_AROUND))
    width = len(str(shown.stop))
    for number in shown:
        line = lines[number].removesuffix("\n")
        begin = min(max(start - offsets[number], 0), len(line))
        stop = min(max(end - offsets[number], 0), len(line))
        begin += len(line[begin:stop]) - len(line[begin:stop].lstrip())  # do not highlight indentation
        margin = f"{number + 1:{width}} | "
        if colour:
            inserted = paint(line[begin:stop], INSERTED) if begin < stop else ""
            rest = f"{escaped(line[:begin])}{inserted}{escaped(line[stop:])}".rstrip()
            yield paint(margin if rest else margin.rstrip(), "bright_black") + rest
            continue
        yield f"{margin}{escaped(line)}".rstrip()
        if begin < stop:
            before = "".join(character if character == "\t" else " " for character in escaped(line[:begin]))
            yield " " * width + " | " + before + "^" * len(escaped(line[begin:stop]))
