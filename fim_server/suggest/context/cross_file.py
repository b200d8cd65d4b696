"""Text of other files in the prompt: definitions of names around the cursor, and lines like those near it.

The choice holds for some lines. While the user types there, the prompt begins with the same bytes, and the model's
reading of it is kept.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fim_server.language import Language
from fim_server.models.project_context import ProjectContext
from fim_server.suggest.constants import CONTEXT
from fim_server.suggest.postprocess.identifiers import WORD, OwnNames, own_names
from fim_server.suggest.sources.project import Project, key_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fim_server.memory.excerpts import Excerpt
    from fim_server.suggest.request import Request

PLACE_LINES = CONTEXT.place_lines

LOOK_AGAIN_SECONDS = 2.0
"""Time until a search without a result is repeated: the project's files may not have been read before."""


SEEN_BEFORE, SEEN_AFTER = 5_000, 1_500
"""Characters before and after the cursor that most prompts contain anyway."""

MOST_EXCERPTS, MOST_SIGNATURE = 6, 240
"""Most excerpts of each kind to choose from, and the longest header of a definition, in characters."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """Choice for some lines, made ``at`` a time by ``time.monotonic``."""

    uri: str
    language: str
    line: int
    at: float
    context: ProjectContext | None


class CrossFile:
    """Text of other files for the cursors of one document. Used by one thread."""

    def __init__(self) -> None:
        self._chosen: Chosen | None = None

    def context(self, project: Project, request: Request, language: Language) -> ProjectContext | None:
        """Return the text of other files for a request: near the last choice, the same."""
        line, now, last = request.split.left.count("\n"), time.monotonic(), self._chosen
        if last is not None and (last.uri, last.language) == (request.uri, language.name):
            is_late = last.context is None and now - last.at > LOOK_AGAIN_SECONDS
            if abs(line - last.line) < PLACE_LINES and not is_late:
                return last.context
        context = choose(project, request, language)
        if last is not None and context == last.context:
            context = last.context  # with its tokens
        self._chosen = Chosen(request.uri, language.name, line, now, context)
        return context


def choose(project: Project, request: Request, language: Language) -> ProjectContext | None:
    """Return the text of other files for a cursor; None if there is none."""
    left, right = request.split.left, request.split.right
    own = own_names(language.name) or OwnNames(frozenset())
    *above, here = left[-SEEN_BEFORE:].split("\n")
    before = [line for line in above if line.strip()]
    here = re.sub(r"\w+\Z", "", here)  # the user is typing this word
    below = right[:SEEN_AFTER].split("\n")[: CONTEXT.named_below]
    words = set(WORD.findall("\n".join(before[-CONTEXT.similar_lines :]))) - own.known
    near = reversed(WORD.findall("\n".join((*before[-CONTEXT.named_above :], here))))
    names = [name for name in dict.fromkeys((*near, *WORD.findall("\n".join(below)))) if name not in own.known]
    if len(words) < CONTEXT.similar_words:
        words = set()
    key = key_of(request.uri)
    seen = range(left[:-SEEN_BEFORE].count("\n"), (left + right[:SEEN_AFTER]).count("\n") + 1)
    found = project.memory.related(
        key, seen, sorted(words), sorted(own.known), names, own.defining_words, MOST_EXCERPTS, language.name
    )
    excerpts = [(project.place_of(path)[1], text) for path, text in in_order(found, names, language.spelling.brackets)]
    if not excerpts:
        return None
    repository, path = project.place_of(key)
    return ProjectContext(repository, path, tuple(excerpts), own.comment)


def in_order(
    found: Sequence[Excerpt], names: Sequence[str], brackets: Sequence[tuple[str, str]]
) -> list[tuple[str, str]]:
    """Return keys of files and texts, the most important first: definitions of the nearest names, then similar lines.

    The definitions of a file are one text.
    """
    defined: dict[str, list[str]] = {}
    for one in sorted((one for one in found if one.name), key=lambda one: names.index(one.name or "")):
        signature = joined(one.text, brackets)
        if len(signature) <= MOST_SIGNATURE:
            defined.setdefault(one.key, []).append(signature)
    definitions = [(key, "\n".join(signatures)) for key, signatures in defined.items()]
    alike = [(one.key, dedented(one.text)) for one in found if one.name is None]
    return [*definitions[: CONTEXT.first_definitions], *alike, *definitions[CONTEXT.first_definitions :]]


def joined(header: str, brackets: Sequence[tuple[str, str]]) -> str:
    """Return a definition's header on one line. ``brackets``: pairs of opening and closing ones.

    >>> joined("  def f(\\n    self,\\n    x,\\n  ):", [("(", ")")])
    'def f(self, x,):'
    """
    text = ""
    for line in map(str.strip, header.split("\n")):
        touches = text.endswith(tuple(one for one, _ in brackets)) or line.startswith(tuple(two for _, two in brackets))
        text += line if touches or not text else " " + line
    return text


def dedented(text: str) -> str:
    """Return lines without their common indentation."""
    lines = text.split("\n")
    shared = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return "\n".join(line[shared:] for line in lines)
