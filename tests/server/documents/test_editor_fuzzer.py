"""Random edits of several documents: the server's text is the editor's, and offers keep their promise.

120 edits; 10,000 in the long form (FIM_SERVER_LONG=1). FIM_SERVER_SEED draws others.
"""

from __future__ import annotations

import asyncio
import os
from typing import Any

import pytest

from support.editors.editor_fuzzer import Different, Document, fuzz

LONG = os.environ.get("FIM_SERVER_LONG") == "1"
SEED = int(os.environ.get("FIM_SERVER_SEED", "1"))
EDITS = 10_000 if LONG else 120


def test_the_servers_texts_are_the_editors() -> None:
    counts = asyncio.run(fuzz(EDITS, SEED))
    print(dict(counts))
    assert counts["edits"] == EDITS
    assert counts["offers, exact"] > 0
    assert counts["halved"] > 0
    assert counts["answered as cancelled"] > 0
    assert counts["messages kept"] < 20, "what became of a message is kept after it was answered"


def test_a_wrong_count_of_the_editor_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    position = Document.position

    def planted(document: Document, offset: int) -> dict[str, Any]:
        found = position(document, offset)
        return {**found, "character": found["character"] // 2}

    monkeypatch.setattr(Document, "position", planted)
    with pytest.raises(Different, match="in place of"):
        asyncio.run(fuzz(40, 1))
