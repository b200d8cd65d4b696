"""Excerpts of other files of a project, laid out in a prompt in the form that the model was trained on.

Repository-level completion follows Zhang et al. (*RepoCoder*, arXiv 2303.12570). The forms are data
(``tokens/formats.toml``), from each model family's documentation.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from fim_server.tokens.formats import Repository, is_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

FEWEST_LINES = 3
"""Fewest lines of an excerpt that is shown in part."""

PLACEHOLDER = re.compile(r"\{(repository|path|text)\}")


class Bound(Protocol):
    """Format bound to a tokenizer, as far as excerpts need it."""

    @property
    def tokenizer(self) -> Any: ...
    @property
    def repository(self) -> Repository | None: ...
    def text_ids(self, text: str) -> list[int]: ...
    def token(self, name: str) -> int: ...


@dataclass(frozen=True, slots=True)
class ProjectContext:
    """Excerpts that a prompt may show.

    Attributes:
        repository: The project's name.
        path: The file's path in the project.
        excerpts: Paths and texts, the most important first; whole lines, without the last line break.
        comment: Beginning of a line comment in their language, for models without a form of their own; if it is empty,
            those models see no excerpts.
    """

    repository: str
    path: str
    excerpts: tuple[tuple[str, str], ...]
    comment: str = ""
    _made: dict[tuple[int, int], tuple[object, tuple[list[int], list[int]]]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def ids(self, bound: Bound, most: int) -> tuple[Sequence[int], Sequence[int]]:
        """Return tokens for the beginning of the prompt and of its prefix, at most ``most`` together.

        The most important excerpt stands last, next to the code. An excerpt that does not fit is shown in part.
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
        """Return the ids of pieces with their placeholders filled in."""
        values = {"repository": self.repository, "path": path, "text": text}
        ids: list[int] = []
        for piece in pieces:
            if is_text(piece):
                ids.extend(bound.text_ids(PLACEHOLDER.sub(lambda match: values[match[1]], piece)))
            else:
                ids.append(bound.token(piece))
        return ids


def beginnings(text: str) -> Iterator[str]:
    """Yield a text, and then ever shorter beginnings of it, down to :data:`FEWEST_LINES` lines.

    >>> list(beginnings("a\\nb\\nc\\nd"))
    ['a\\nb\\nc\\nd', 'a\\nb\\nc']
    """
    lines = text.split("\n")
    for count in range(len(lines), min(FEWEST_LINES, len(lines)) - 1, -1):
        yield "\n".join(lines[:count])
