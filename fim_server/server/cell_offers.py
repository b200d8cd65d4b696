"""Items for a cell, judged once more as they are sent.

The grammar reads a cell with other text in place of its commands. An item whose text makes IPython read a line of the
cell otherwise (a string that is opened, a bracket that is closed) is not what was judged.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fim_server.server.memory import Answer
    from fim_server.text.notebook import CellContexts

CHANGES_COMMANDS = "it would change which lines of the cell are commands"


def kept_in_cell(found: Answer, cell: CellContexts | None) -> Answer:
    """Return an answer without the offers with which the cell's commands would be others."""
    if cell is None:
        return found
    offers = tuple(
        offer for offer in found.offers if offer.guarantee == "none" or cell.keeps(offer.text, offer.covered)
    )
    if len(offers) == len(found.offers):
        return found
    return replace(found, offers=offers, reason=found.reason if offers else CHANGES_COMMANDS)
