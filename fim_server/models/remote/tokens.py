"""Tokens of an endpoint's model, from a file on this machine."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from fim_server.errors import ModelError, VocabularyError
from fim_server.models.kind import kind_of_folder
from fim_server.models.prompt import find_format
from fim_server.models.remote.listing import LONGEST_NAME
from fim_server.models.source import TOKENIZER_FILES, expanded, is_gguf, is_gguf_model, locate
from fim_server.models.store.folders import usual_folders
from fim_server.models.store.hub import hub_folder
from fim_server.models.tokenizer import TOKENIZER_FILE, read_tokenizer
from fim_server.tokens.vocabulary import Vocabulary

if TYPE_CHECKING:
    from fim_server.models.prompt import BoundFormat

HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}", re.ASCII)
"""Pattern of a name that may be one on the hub."""

LONGEST_PATH = 4096
"""Most characters of an endpoint's path; no system takes longer ones."""


def tokenizer_of(source: str) -> tuple[BoundFormat, Vocabulary]:
    """Return the prompt format and the tokens of a folder with a `tokenizer.json`, a GGUF file, or a hub model.

    Only the tokenizer of a hub model is downloaded. Raises ModelError.
    """
    if is_gguf_model(source):
        from fim_server.models.gguf.load import read_gguf_tokens

        return read_gguf_tokens(Path(locate(source)))
    folder = expanded(source)
    if not (folder / TOKENIZER_FILE).is_file():
        folder = Path(locate(source, files=TOKENIZER_FILES))
    tokenizer = read_tokenizer(folder, source)
    bound = find_format(tokenizer, source, kind_of_folder(folder, source))
    try:
        vocabulary = Vocabulary.from_tokenizer(tokenizer, end_token_ids=bound.stop_ids)
    except VocabularyError as error:
        raise ModelError(f"{source}: {error}") from error
    return replace(bound, plain=vocabulary.encode), vocabulary


def here(name: str) -> str:
    """Return the folder or file of a model that an endpoint names, from a folder of models or the hub's cache.

    Nothing is downloaded because an endpoint says so, and no other folder is looked at. Raises ModelError.
    """
    path = in_model_folders(name)
    if path is not None and (path.is_file() if is_gguf(name) else (path / TOKENIZER_FILE).is_file()):
        return str(path)
    if HUB_NAME.fullmatch(name) or HUB_NAME.fullmatch(f"a/{name}"):
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

        try:
            return str(snapshot_download(name, allow_patterns=["*.json"], local_files_only=True))
        except (LocalEntryNotFoundError, HFValidationError, OSError, ValueError):
            pass
    raise ModelError(f"{shown(name)}: not in a folder of models here, nor in the hub's cache")


def in_model_folders(name: str) -> Path | None:
    """Return the path that an endpoint names if it lies in a folder of models, links in it followed; else None.

    The endpoint may be of another machine, or lie: a path elsewhere is not looked at, also not by a link or by `..`.
    """
    path = Path(name)
    if len(name) > LONGEST_PATH or not name.isprintable() or not path.is_absolute() or ".." in path.parts:
        return None
    for folder in (*map(Path.absolute, usual_folders()), hub_folder().absolute()):
        try:
            if path.is_relative_to(folder) and path.resolve(strict=True).is_relative_to(folder.resolve()):
                return path
        except (OSError, RuntimeError):  # it is missing or unreadable, or its links form a cycle
            continue
    return None


def shown(name: str) -> str:
    """Return a short, printable form of a name."""
    return "".join(letter if letter.isprintable() else "?" for letter in name[:LONGEST_NAME])


def remedy(name: str) -> str:
    """Return advice for a model of that name whose tokens are unknown."""
    hint = f"; with {name} they are fetched from the hub" if HUB_NAME.fullmatch(name) else ""
    return f"name --tokenizer{hint}"


def has_llama_cpp() -> bool:
    """Return whether GGUF files can be read here."""
    from fim_server.models.gguf.library import is_installed

    return is_installed()
