"""Properties of every result of recovery, whatever it has left out."""

from __future__ import annotations

from fim_server import Language
from fim_server.errors import SearchLimitError
from fim_server.recovery.recovery import Recovered


def whole_of(left: str, found: Recovered, language: Language) -> str | None:
    """Asserts what holds everywhere, for a left context; gives the kept text with a shortest middle.

    None where that is not found.
    """
    assert found.session.guarantee == "exact"
    assert language.open(found.left, found.right).guarantee == "exact"
    assert found.left.rpartition("\n")[2] == left.rpartition("\n")[2]
    assert len(found.diagnostics) == len(found.ignored)
    try:
        middle = found.session.start().shortest_completion()
    except SearchLimitError:
        return None
    assert middle is not None
    return found.left + middle + found.right
