"""Decorators that fit the definition below the cursor, as the language's support code tells."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fim_server.language_support.registry import support_of
from fim_server.suggest.sources.missing_names import ImportAdvice

if TYPE_CHECKING:
    from fim_server.decoding.protocols import ProjectBias
    from fim_server.text.document import Split

NEAR = 1 << 14
"""Characters that are read on either side of the cursor."""


def with_marks(others: ProjectBias | None, language: str, split: Split) -> ProjectBias | None:
    """Return advice that adds decorators to other advice; the other advice alone if no decorator is begun."""
    support = support_of(language)
    start, end = split.left.rfind("\n") + 1, split.right.find("\n")
    if support is None or end < 0 or split.right[:end].strip():
        return others
    above, below = split.left[max(0, start - NEAR) : start], split.right[end + 1 :][:NEAR]
    found = support.decorators(above, split.left[start:], below)
    return others if found is None else ImportAdvice(found[0], found[1], others)
