"""Reduction of a failing text."""

from __future__ import annotations

from collections.abc import Callable

from fim_server.datasets.judging.differences import Differences, refused_at
from fim_server.datasets.judging.judge import Judge
from fim_server.language import Language

Parts = tuple[str, str, str]
"""Left, middle and right."""


def shrunk(parts: Parts, fails: Callable[[Parts], bool], steps: int = 400) -> Parts:
    """Take lines, then characters, out of each part as long as the rest still fails."""
    for lines in (True, False):
        size = max(len(_pieces(part, lines)) for part in parts)
        while size >= 1:
            found = False
            for index in (0, 2, 1):
                at = 0
                while at < len(_pieces(parts[index], lines)) and steps > 0:
                    pieces = _pieces(parts[index], lines)
                    smaller = list(parts)
                    smaller[index] = "".join(pieces[:at] + pieces[at + size :])
                    steps -= 1
                    if fails((smaller[0], smaller[1], smaller[2])):
                        parts, found = (smaller[0], smaller[1], smaller[2]), True
                    else:
                        at += size
            if not found or size > 1:
                size //= 2
    return parts


def _pieces(text: str, lines: bool) -> list[str]:
    return text.splitlines(keepends=True) if lines else list(text)


def smaller(language: Language, judge: Judge, differences: Differences, parts: Parts) -> Parts:
    """Return smaller parts with the same disagreement of engine and judge; the same parts where they agree."""

    def verdicts(parts: Parts) -> tuple[bool, bool | None, str]:
        left, middle, right = parts
        engine = language.open(left, right).check(middle).complete
        return engine, *judge.decided(left + middle + right, engine)

    engine, truth, _ = verdicts(parts)
    if truth is None or engine == truth:
        return parts

    def fails(parts: Parts) -> bool:
        *found, said = verdicts(parts)
        text = "".join(parts)
        place = None if engine else refused_at(language, text)
        return found == [engine, truth] and differences.name(text, engine, said, place) is None

    return shrunk(parts, fails)
