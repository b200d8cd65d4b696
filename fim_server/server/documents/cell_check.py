"""Second check of a cell's items before they are sent.

The grammar reads a cell with substitutes for its commands. An item may make IPython read a line of the cell otherwise
(a string that is opened, a bracket that is closed); then its verdict does not hold.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fim_server.suggest.answer_cache import Answer
    from fim_server.text.notebook import CellContexts

CHANGES_COMMANDS = "it would change which lines of the cell are commands"


def kept_in_cell(found: Answer, cell: CellContexts | None) -> Answer:
    """Return an answer without the suggestions that change the cell's commands."""
    if cell is None:
        return found
    suggestions = tuple(
        one for one in found.suggestions if one.guarantee == "none" or cell.keeps(one.text, one.covered)
    )
    if len(suggestions) == len(found.suggestions):
        return found
    return replace(found, suggestions=suggestions, reason=found.reason if suggestions else CHANGES_COMMANDS)
