"""What is said of the definition below, where it is being written: the definition's beginning tells which it may be.

What that is, is the language's own: the module ``marks`` in its folder, where it has one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fim_server.suggest.postprocess.identifiers import module_of
from fim_server.suggest.sources.missing_names import ImportAdvice

if TYPE_CHECKING:
    from fim_server.decoding.protocols import Advice
    from fim_server.text.document import Split

NEAR = 1 << 14
"""Characters on either side of the cursor that are looked at."""


def with_marks(others: Advice | None, language: str, split: Split) -> Advice | None:
    """Advice about a request's next tokens that knows of marks as well; the other one alone where none is begun."""
    module = module_of(language, "marks")
    if module is None:
        return others
    start, end = split.left.rfind("\n") + 1, split.right.find("\n")
    if end < 0 or split.right[:end].strip():
        return others
    found = module.likely(split.left[max(0, start - NEAR) : start], split.left[start:], split.right[end + 1 :][:NEAR])
    return others if found is None else ImportAdvice(found[0], found[1], others)
