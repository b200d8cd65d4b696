"""Completion as a unified diff of its file."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from fim_server.text.document import Split
from fim_server.text.terminal import paint

if TYPE_CHECKING:
    from fim_server.decoding.results import Completion
    from fim_server.language import Language

DIFF_CONTEXT = 3
"""Unchanged lines shown around a change, as diff(1) does."""


def promise(completion: Completion, language: Language) -> str:
    """Return the guarantee in words."""
    title = language.title
    match completion.guarantee:
        case "exact":
            return f"guarantee exact: with this text the whole file parses as {title}"
        case "balanced":
            return f"guarantee balanced: {language.spelling.closes} of the whole file close as in {title}"
        case "partial":
            is_balanced = language.guarantee == "balanced"
            holds = f"{language.spelling.closes} close as in" if is_balanced else "the file parses as"
            return f"guarantee partial: with this text, and without the lines left out, {holds} {title}"
        case _ if not language.has_grammar:
            return f"guarantee none: no grammar of {title} judges the text"
        case _:
            return f"guarantee none: the file may not parse as {title} with this text"


def diff_lines(path: str, split: Split, completion: Completion, language: Language, colour: bool) -> Iterator[str]:
    """Yield a unified diff of the file without and with the completion, below the guarantee.

    In colour, the inserted characters stand out from their lines.
    """
    text = completion.text or ""
    inserted = range(len(split.left), len(split.left) + len(text))
    statistics = completion.statistics
    yield paint(
        f"{promise(completion, language)} ({statistics.tokens} tokens, {statistics.refused_tokens} refused, "
        f"{statistics.total_ms:.0f} ms)",
        "bold green" if completion.guarantee == "exact" else "bold yellow",
        colour,
    )
    old, new = keep_line_ends(split.joined("")), keep_line_ends(split.joined(text))
    offset_of = line_offsets(new)
    number = 0
    for row, line in enumerate(difflib.unified_diff(old, new, path, path, n=DIFF_CONTEXT)):
        body = line[1:].removesuffix("\n")
        if row < 2:
            yield paint(line.rstrip("\n"), "bold", colour)
            continue
        if line.startswith("@@"):
            number = int(line.split("+")[1].split(",")[0].split(" ")[0]) - 1
            yield paint(line.rstrip("\n"), "cyan", colour)
            continue
        if line.startswith("+"):
            yield paint("+", "green", colour) + highlight(body, offset_of[number], inserted, colour)
        else:
            yield paint(line[0] + body, "red", colour and line.startswith("-"))
        number += not line.startswith("-")
        if not line.endswith("\n"):
            yield "\\ No newline at end of file"


def highlight(line: str, offset: int, inserted: range, colour: bool) -> str:
    """Return a line of the new text with its inserted part highlighted."""
    start = min(max(inserted.start - offset, 0), len(line))
    end = min(max(inserted.stop - offset, 0), len(line))
    # Blanks show in reverse video only.
    set_off = "bold reverse green" if line[start:end].isspace() else "bold bright_green"
    parts = ((line[:start], "green"), (line[start:end], set_off), (line[end:], "green"))
    return "".join(paint(part, style, colour) for part, style in parts if part)


def keep_line_ends(text: str) -> list[str]:
    """Return the lines of a text, each with its ``"\\n"``; only the last may lack one."""
    lines = [line + "\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def line_offsets(lines: Sequence[str]) -> list[int]:
    """Return the offset of each line's first character."""
    offsets = [0]
    for line in lines:
        offsets.append(offsets[-1] + len(line))
    return offsets
