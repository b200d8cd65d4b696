"""What a prompt shows of a project beyond the file: excerpts of other files, in the form that the model was trained on.

Repository-level completion as Zhang et al. have it (*RepoCoder*, arXiv 2303.12570); the forms are data
(``tokens/formats.toml``), from each family's own documentation.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from fim_server.tokens.formats import Repository, is_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

FEWEST_LINES = 3
"""Of an excerpt that is shown in part: with fewer, hardly anything is said."""

PLACEHOLDER = re.compile(r"\{(repository|path|text)\}")


class Bound(Protocol):
    """What is asked of a format bound to a tokenizer."""

    @property
    def tokenizer(self) -> Any: ...
    @property
    def repository(self) -> Repository | None: ...
    def text_ids(self, text: str) -> list[int]: ...
    def token(self, name: str) -> int: ...


@dataclass(frozen=True, slots=True)
class ProjectContext:
    """What a prompt may show.

    Attributes:
        repository: The project's name.
        path: That of the file, in the project.
        excerpts: Paths and texts, what matters most first; whole lines each, without the last line break.
        comment: What makes a line a comment in their language, for models that know no other form; without it, nothing
            is shown to those.
    """

    repository: str
    path: str
    excerpts: tuple[tuple[str, str], ...]
    comment: str = ""
    _made: dict[tuple[int, int], tuple[object, tuple[list[int], list[int]]]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def ids(self, bound: Bound, most: int) -> tuple[Sequence[int], Sequence[int]]:
        """Tokens for the prompt's beginning, and for that of its prefix; at most so many in all.

        The excerpt that matters most stands last, next to the code; of one that does not fit, the first lines, but no
        fewer than a few.
        """
        key = id(bound.tokenizer), most
        if key not in self._made:
            self._made[key] = bound.tokenizer, self._ids(bound, most)  # kept, so that no other has its number
        return self._made[key][1]

    def _ids(self, bound: Bound, most: int) -> tuple[list[int], list[int]]:
        layout = bound.repository
        if layout is None:
            if not self.comment:
                return [], []
            layout = Repository(file=(self.comment + "{path}\n{text}\n\n",), head=self.comment + "{path}\n")
        begin, own = (self._pieces(bound, pieces, self.path) for pieces in (layout.begin, layout.own))
        head = self._pieces(bound, (layout.head,), self.path) if layout.head else []
        room = most - len(begin) - len(own) - len(head)
        shown: list[list[int]] = []
        for path, text in self.excerpts:
            for part in beginnings(text):
                ids = self._pieces(bound, layout.file, path, part)
                if len(ids) <= room:
                    shown.insert(0, ids)
                    room -= len(ids)
                    break
        if not shown:
            return [], []
        texts = [token for ids in shown for token in ids]
        return ([*begin, *texts, *own], head) if bound.repository is not None else ([], [*texts, *head])

    def _pieces(self, bound: Bound, pieces: Sequence[str], path: str, text: str = "") -> list[int]:
        """The ids of pieces with their placeholders filled in."""
        values = {"repository": self.repository, "path": path, "text": text}
        ids: list[int] = []
        for piece in pieces:
            if is_text(piece):
                ids.extend(bound.text_ids(PLACEHOLDER.sub(lambda match: values[match[1]], piece)))
            else:
                ids.append(bound.token(piece))
        return ids


def beginnings(text: str) -> Iterator[str]:
    """A text, and then without its last line, and so on, down to :data:`FEWEST_LINES`.

    >>> list(beginnings("a\\nb\\nc\\nd"))
    ['a\\nb\\nc\\nd', 'a\\nb\\nc']
    """
    lines = text.split("\n")
    for count in range(len(lines), min(FEWEST_LINES, len(lines)) - 1, -1):
        yield "\n".join(lines[:count])
