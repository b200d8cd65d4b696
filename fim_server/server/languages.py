"""The answer of `fim-server.languages`: the languages that the server knows, when each is suggested, and how surely."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fim_server.language import Language
from fim_server.language.definition.compile import read_builtin
from fim_server.text.regions import hosts

if TYPE_CHECKING:
    from fim_server.server.language_server import FimLanguageServer

OF_CODE_ALONE = "partial"
"""Guarantee in a file of another language: that of the code at the cursor alone."""


def languages_json(ls: FimLanguageServer) -> list[dict[str, Any]]:
    """Return a row for each language with a grammar, then for the files with code of such languages."""
    names = Language.names()
    rows = [row(ls, name, [name, *read_builtin(name).editor_ids], read_builtin(name).guarantee) for name in names]
    others = (host for host in hosts() if host.name not in names)
    return rows + [row(ls, host.name, [host.name, *host.editor_ids], OF_CODE_ALONE) for host in others]


def row(ls: FimLanguageServer, name: str, ids: list[str], guarantee: str) -> dict[str, Any]:
    """Return the row of a language."""
    is_learnt = ls.learnt is None or name in ls.learnt
    trigger = ls.settings.trigger_of(name, ls.learnt if guarantee != OF_CODE_ALONE else None)
    return {
        "name": name,
        "ids": sorted(set(ids)),
        "guarantee": guarantee,
        "trigger": trigger,
        "learnt": is_learnt if guarantee != OF_CODE_ALONE else None,
    }
