"""Answer of `fim-server.languages`: the languages that the server knows, with their guarantees and triggers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fim_server.language import Language
from fim_server.language.definition.compile import read_builtin
from fim_server.text.regions import hosts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fim_server.server.language_server import FimLanguageServer

OF_CODE_ALONE = "partial"
"""Guarantee in a file of another language: that of the code at the cursor alone."""


def languages_json(ls: FimLanguageServer) -> list[dict[str, Any]]:
    """Return a row for each language with a grammar, then for the files with code of such languages."""
    definitions = [read_builtin(name) for name in Language.names()]
    rows = [row(ls, one.name, one.editor_ids, one.guarantee) for one in definitions]
    others = (host for host in hosts() if host.name not in {one.name for one in definitions})
    return rows + [row(ls, host.name, host.editor_ids, OF_CODE_ALONE) for host in others]


def row(ls: FimLanguageServer, name: str, editor_ids: Sequence[str], guarantee: str) -> dict[str, Any]:
    """Return the row of a language."""
    is_host = guarantee == OF_CODE_ALONE
    return {
        "name": name,
        "ids": sorted({name, *editor_ids}),
        "guarantee": guarantee,
        "trigger": ls.settings.trigger_of(name, None if is_host else ls.learnt),
        "learnt": None if is_host else ls.learnt is None or name in ls.learnt,
    }
