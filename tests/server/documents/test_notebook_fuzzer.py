"""Random changes of notebooks: the server's cells are the editor's, and exact offers leave cells that parse.

150 changes; 5,000 in the long form (FIM_SERVER_LONG=1). FIM_SERVER_SEED draws others.
"""

from __future__ import annotations

import asyncio
import os
from typing import Any

import pytest

from support.editors.editor_fuzzer import Different
from support.editors.notebook_fuzzer import fuzz
from support.editors.notebooks import Cell

SEED = int(os.environ.get("FIM_SERVER_SEED", "1"))
EDITS = 5_000 if os.environ.get("FIM_SERVER_LONG") == "1" else 150


def test_the_servers_cells_are_the_editors() -> None:
    counts = asyncio.run(fuzz(EDITS, SEED))
    print(dict(counts))
    assert counts["offers, exact"] > 0
    assert counts["offers, partial"] > 0
    assert counts["move"] > 0


def test_a_wrong_count_of_the_editor_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    position = Cell.position

    def planted(cell: Cell, offset: int) -> dict[str, Any]:
        found = position(cell, offset)
        return {**found, "character": found["character"] // 2}

    monkeypatch.setattr(Cell, "position", planted)
    with pytest.raises(Different, match="in place of"):
        asyncio.run(fuzz(60, 1))
