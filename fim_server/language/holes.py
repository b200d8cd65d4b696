"""Several holes in one file, judged together."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fim_server import _core
from fim_server.language.argument_types import expect_count
from fim_server.language.session import Session
from fim_server.language.texts import encodable

MOST_HOLES = 8
"""Holes that one file may have."""


@dataclass(frozen=True)
class JointVerdict:
    """Verdict on texts for all holes.

    Attributes:
        viable: Some text can follow the last hole's text so that the whole is a program.
        complete: The whole is a program with these texts.
        rejected_at: The first hole, from 0, whose text cannot stand there whatever the later holes hold, and the offset
            in characters of the first impossible character in it. The offset is the text's length if the text may begin
            so, but not end there. None if the texts are viable.
    """

    viable: bool
    complete: bool
    rejected_at: tuple[int, int] | None


class Holes:
    """Texts with a hole between each and the next. Threads may share it."""

    def __init__(self, core: _core.Language, texts: Sequence[str], open_pair: Callable[[str, str], Session]) -> None:
        """Wrap a language and the texts around the holes; use `Language.open_holes`.

        Raises ValueError for too few or too many texts, TypeError for anything but str.

        Args:
            core: The engine's language.
            texts: The texts before, between and after the holes.
            open_pair: Opens a session on two contexts.
        """
        _expect_list("texts", texts, "a sequence of str")
        if not 2 <= len(texts) <= MOST_HOLES + 1:
            raise ValueError(f"texts: 2 to {MOST_HOLES + 1} expected, not {len(texts)}")
        self._core = core
        self._texts = tuple(encodable(text, f"texts[{index}]") for index, text in enumerate(texts))
        self._open_pair = open_pair

    def __len__(self) -> int:
        """Return the number of holes."""
        return len(self._texts) - 1

    def check(self, middles: Sequence[str]) -> JointVerdict:
        """Return whether texts for all holes are viable together, and whether they make a program.

        With one hole it is the verdict of `Session.check`. Raises ValueError unless there is a text for each hole, and
        as `is_possible` if several holes have texts that do not fit.

        Args:
            middles: A text for each hole.
        """
        texts = [text for text in self._expect(middles) if text is not None]
        last = len(self) - 1
        if len(texts) <= last:
            raise ValueError("middles: a text for each hole expected")
        verdict = self.session([*texts[:last], None]).check(texts[last])
        if verdict.viable:
            return JointVerdict(viable=True, complete=verdict.complete, rejected_at=None)
        for hole in range(last):
            fixed = [*texts[: hole + 1], *[None] * (last - hole)]
            if not self.is_possible(fixed):
                at = self._first_impossible(texts[: hole + 1])
                return JointVerdict(viable=False, complete=False, rejected_at=(hole, at))
        return JointVerdict(viable=False, complete=False, rejected_at=(last, verdict.rejected_at or 0))

    def is_possible(self, middles: Sequence[str | None], begun: int | None = None) -> bool:
        """Return whether texts for the open holes exist that make the whole a program. The answer is exact.

        In a language whose guarantee is `balanced` it is exact for comments, strings and brackets. Each call reads the
        texts anew.

        Raises ValueError unless there is an entry for each hole, or if `begun` is no hole with a text; TypeError for
        other types. Two or more holes that are open or begun are not decided everywhere. LanguageError is raised where
        texts recur (Java, TSX, XML), and ValueError where a tab or form feed may indent a line. LimitError means too
        many items, columns, or open brackets and blocks.

        Args:
            middles: For each hole its whole text, or None if it is open: it may hold any text.
            begun: The hole, from 0, that only begins with its text; any text may follow there.
        """
        texts = self._expect(middles)
        if begun is not None:
            expect_count("begun", begun)
            if not 0 <= begun < len(texts) or texts[begun] is None:
                raise ValueError(f"begun: a hole with a text expected, not {begun}")
        parts = [self._texts[0]]
        for hole, (text, after) in enumerate(zip(texts, self._texts[1:], strict=True)):
            parts[-1] += text or ""
            # Two open holes without a text between them are one.
            if (text is None or hole == begun) and (parts[-1] or len(parts) == 1):
                parts.append("")
            parts[-1] += after
        if len(parts) == 1:
            return self._open_pair(parts[0], "").check("").complete
        if len(parts) == 2:
            return self._open_pair(*parts).check("").viable
        return self._core.is_possible(parts)

    def session(self, middles: Sequence[str | None]) -> Session:
        """Return a session on the one open hole, whose contexts hold the texts of the other holes.

        Raises ValueError unless there is an entry for each hole and one hole is open.

        Args:
            middles: A text for each hole, and None for the open one.
        """
        texts = self._expect(middles)
        if texts.count(None) != 1:
            raise ValueError(f"middles: one open hole (None) expected, not {texts.count(None)}")
        hole = texts.index(None)
        left = "".join(before + (text or "") for before, text in zip(self._texts, texts[:hole], strict=False))
        right = "".join((text or "") + after for text, after in zip(texts[hole:], self._texts[hole + 1 :], strict=True))
        return self._open_pair(left + self._texts[hole], right)

    def _first_impossible(self, texts: list[str]) -> int:
        """Return the first impossible character in the last of some holes' texts, while the later holes are open."""
        hole, text = len(texts) - 1, texts[-1]
        rest: list[None] = [None] * (len(self) - len(texts))

        def is_impossible(length: int) -> bool:
            return not self.is_possible([*texts[:-1], text[:length], *rest], begun=hole)

        # What begins a possible text is possible: search by bisection.
        return max(bisect_left(range(len(text) + 1), x=True, key=is_impossible) - 1, 0)

    def _expect(self, middles: Sequence[str | None]) -> list[str | None]:
        _expect_list("middles", middles, "a sequence of str and None")
        if len(middles) != len(self):
            raise ValueError(f"middles: {len(self)} expected, not {len(middles)}")
        return [text if text is None else encodable(text, f"middles[{at}]") for at, text in enumerate(middles)]


def _expect_list(name: str, value: object, expected: str) -> None:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise TypeError(f"{name}: {expected} expected, not {type(value).__name__}")
