"""Facts by which the family of a model is known beside its tokens: its names and its architecture."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path, PurePath
from typing import Any

from fim_server.language.limited_files import parse_json, read_found
from fim_server.tokens.formats import Kind

HUB_FOLDER = "models--"
"""Beginning of the folder of a repository in the hub's cache, whose path has the model's name."""


def kind_of_folder(folder: Path, name: str) -> Kind:
    """Return what a folder in the transformers layout says. ``name``: the name that it was asked for by."""
    config: Any = None
    with suppress(OSError, ValueError):  # loading complains about it
        config = parse_json(read_found(folder / "config.json"))
    config = config if isinstance(config, dict) else {}
    says = [config.get("_name_or_path"), config.get("model_type")]
    own, architecture = (text if isinstance(text, str) else "" for text in says)
    return Kind((*names_in(name), *names_in(str(folder)), *names_in(own)), architecture)


def names_in(path: str) -> tuple[str, ...]:
    """Return the names of a model in its hub name or path: other folders' names say nothing of it.

    >>> names_in("JetBrains/Mellum-4b-base"), names_in("/home/mellum/models/starcoder")
    (('Mellum-4b-base',), ('starcoder',))
    """
    parts = PurePath(path).parts
    return tuple(part for number, part in enumerate(parts, 1) if number == len(parts) or part.startswith(HUB_FOLDER))
