"""Language of a request: by its field, by the file's name, or by the text itself."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

from fim_server.language import Language
from fim_server.language.plain import plain_name
from fim_server.suggest.request import LANGUAGES
from fim_server.text.regions import host_of

if TYPE_CHECKING:
    from fim_server.server.http.wanted import Wanted

UNKNOWN = "none"
"""Name of an unknown language."""

PLAIN = "plaintext"
"""Editors' name of a text in no language."""


def language_of(wanted: Wanted) -> str:
    """Return the language of a request as an editor names it; `plaintext` if it is unknown."""
    named = by_name(wanted.language) or by_file(wanted.file)
    return named or PLAIN


def by_name(name: str) -> str:
    """Return an editor's name of a language, also for a suffix such as `py`; empty for no name."""
    if not name or Language.name_for_editor(name) in LANGUAGES or host_of(name, "") is not None:
        return name
    return by_file(f"a.{name.removeprefix('.')}") if plain_name(f"a.{name}") is None else name


def by_file(file: str) -> str:
    """Return the language of a file's name; empty if it has no suffix that names one."""
    name = PurePath(file.replace("\\", "/")).name
    if not name:
        return ""
    host = host_of("", name)
    if host is not None:
        return host.name
    return plain_name(name) or Language.name_for_path(name) if PurePath(name).suffix or plain_name(name) is None else ""


def shown_name(editor_id: str) -> str:
    """Return the name of a language for the client."""
    return UNKNOWN if editor_id == PLAIN else Language.name_for_editor(editor_id)
