"""Location of a model: the embedded one, one in the user's cache, a folder or a file, or a name on the hub."""

from __future__ import annotations

import re
from importlib import import_module, resources
from pathlib import Path
from typing import TYPE_CHECKING

from fim_server.errors import DamagedError, ModelError, StoppedError
from fim_server.models.store.catalogue import DEFAULT_NAME, catalogue
from fim_server.models.store.folders import cached_damage, cached_folder, damaged, gguf_in, models_folder
from fim_server.models.store.hub_address import problem_of
from fim_server.models.store.manifest import hub_damage_of

if TYPE_CHECKING:
    from fim_server.models.store.transfer import Amount

EMBEDDED_NAME = "embedded"

GGUF_SUFFIX = ".gguf"

PART = re.compile(r"-(?P<number>\d{5})-of-(?P<count>\d{5})(?P<suffix>\.gguf)$", re.IGNORECASE)
"""Ending of the names of GGUF files that llama.cpp wrote in parts; it finds the others by the name of the first."""

LONGEST_NAME, SHOWN_OF_NAME = 4096, 200
"""Most characters of a model's name or path, and those that an error shows."""

HUB_SECONDS = 10.0
"""Longest wait for the hub's first answer."""

HUB_FILES = ["*.json", "*.safetensors", "*.model", "*.txt"]
"""Files to download of a hub model: configuration, tokenizer, and weights that hold no code."""

TOKENIZER_FILES = ["*.json"]
"""Files to download of a hub model whose tokens alone are needed."""


def name_of(name_or_path: str | None) -> str:
    """Return the name that :func:`locate` uses: the given one, or the catalogue's default where it is intact."""
    if name_or_path is not None:
        return name_or_path
    serves = cached_folder(DEFAULT_NAME) is not None and cached_damage(DEFAULT_NAME) is None
    return DEFAULT_NAME if serves else EMBEDDED_NAME


def locate(name_or_path: str | None, tell: Amount | None = None, files: list[str] = HUB_FILES) -> str:
    """Return the folder or GGUF file to load from.

    None is the catalogue's default where it is in the cache, else the embedded model. The catalogue's names and
    `embedded` come before folders of the same name; `./NAME` names such a folder.

    Args:
        name_or_path: A name, a folder or a file.
        tell: As in :func:`fetch`.
        files: As in :func:`fetch`.

    Raises:
        DamagedError: The model is in a cache, and its files are damaged.
        ModelError: There is no such model; one line.
    """
    name = name_of(name_or_path)
    if not name.strip():
        raise ModelError("the model's name is empty")
    if len(name) > LONGEST_NAME:
        raise ModelError(f"{name[:SHOWN_OF_NAME]}…: a name of {len(name):,} characters; {LONGEST_NAME:,} at most")
    if name == EMBEDDED_NAME:
        folder = Path(str(resources.files("fim_server") / "models" / EMBEDDED_NAME))
        if not (folder / "config.json").is_file():
            raise ModelError("this installation has no embedded model; name one with --model")
        return str(folder)
    if name in catalogue():
        cached, damage = cached_folder(name), cached_damage(name)
        if damage is not None:
            raise damaged(catalogue()[name], damage)
        if cached is None:
            raise ModelError(f"{name}: not installed; run `{catalogue()[name].how}`")
        return str(gguf_in(cached) or cached) if catalogue()[name].is_file else str(cached)
    try:
        return elsewhere(name, tell, files)
    except OSError as error:  # a part of the path is too long, or may not be read
        raise ModelError(f"{name[:SHOWN_OF_NAME]}: {(error.strerror or str(error)).lower()}") from error


def elsewhere(name_or_path: str, tell: Amount | None = None, files: list[str] = HUB_FILES) -> str:
    """Return the path of a GGUF file, of a folder, or of a model from the hub. Raises as :func:`locate`."""
    folder = expanded(name_or_path)
    if is_gguf(name_or_path):
        if not folder.is_file():
            raise ModelError(f"{name_or_path}: no such file")
        return str(folder)
    if folder.is_dir():
        if not (folder / "config.json").is_file():
            raise ModelError(f"{name_or_path}: not a model folder (no config.json in it)")
        name = cached_name(folder)
        if name is not None and (damage := cached_damage(name)) is not None:
            raise damaged(catalogue()[name], damage)
        return str(folder)
    if folder.exists():
        raise ModelError(f"{name_or_path}: not a model folder")
    if looks_like_path(name_or_path):
        raise ModelError(f"{name_or_path}: no such model folder")
    return fetch(name_or_path, tell, files)


def cached_name(folder: Path) -> str | None:
    """Return the catalogue's name of a model whose folder in the cache this is; None for other folders."""
    models = models_folder()
    is_there = models is not None and folder.resolve().parent == models.resolve()
    return folder.resolve().name if is_there and folder.resolve().name in catalogue() else None


def fetch(name: str, tell: Amount | None = None, files: list[str] = HUB_FILES) -> str:
    """Return the local folder of a hub model, downloaded or completed if the hub answers.

    One request without retries asks the hub first, since the download itself would retry for a minute.

    Args:
        name: ``OWNER/NAME``.
        tell: Receives the progress in bytes, on other threads.
        files: Patterns of the names of the files to download.

    Raises:
        ModelError: The hub does not know the name, or does not answer and the model is not cached.
        StoppedError: The caller's stop was set during the download.
    """
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError, RepositoryNotFoundError

    from fim_server.models.store.hub_progress import heeding, progress_bar, was_stopped

    import_module("huggingface_hub.utils.logging").set_verbosity_error()  # the terminal is the user's
    import_module("huggingface_hub.utils").disable_progress_bars()
    try:
        heeding(lambda: HfApi().model_info(name, timeout=HUB_SECONDS))
        bar = None
        if tell is not None:
            # Asked beforehand: the library knows how large a file is only when it begins it, small ones first.
            known = heeding(lambda: snapshot_download(name, allow_patterns=files, dry_run=True))
            bar = progress_bar(tell, sum(file.file_size or 0 for file in known if file.will_download))
        folder = str(heeding(lambda: snapshot_download(name, allow_patterns=files, tqdm_class=bar)))
        return undamaged(name, folder, files)
    except DamagedError:
        raise
    except (RepositoryNotFoundError, HFValidationError):
        raise ModelError(f"{name}: no such model, neither a folder here nor on the hub") from None
    except Exception as error:  # whatever the hub's HTTP library raises
        if was_stopped():
            raise StoppedError(f"{name}: the download was stopped") from error
        problem = problem_of(error)
    try:
        return undamaged(name, str(snapshot_download(name, allow_patterns=files, local_files_only=True)), files)
    except LocalEntryNotFoundError:
        raise ModelError(f"{name}: neither a folder here nor in the hub's cache, and {problem}") from None


def undamaged(name: str, folder: str, files: list[str]) -> str:
    """Return a folder of the hub's cache if its files are intact. Raises :class:`DamagedError` otherwise."""
    problem = hub_damage_of(Path(folder), files)
    if problem is not None:
        remedy = f"run `fim-server models remove {name}`, and it is fetched anew when it is loaded"
        raise DamagedError(f"{name} is damaged ({problem}): {remedy}")
    return folder


def expanded(name: str) -> Path:
    """Return a path with `~` expanded, or unchanged for an unknown user."""
    try:
        return Path(name).expanduser()
    except (RuntimeError, ValueError):  # no such user, or a name that no user can have
        return Path(name)


def is_gguf(name: str) -> bool:
    return name.lower().endswith(GGUF_SUFFIX)


def is_gguf_model(name: str) -> bool:
    """Return whether a model's name is that of a GGUF file, or of one in the catalogue."""
    return is_gguf(name) or (name in catalogue() and catalogue()[name].is_file)


def names_gguf_model(name: str) -> bool:
    """Return whether a file's name is that of a GGUF model: its only or first part, and no projector for pictures."""
    part = PART.search(name)
    return is_gguf(name) and "mmproj" not in name and (part is None or int(part["number"]) == 1)


def parts_of(file: Path) -> list[Path]:
    """Return the existing files of a model, given its only or first one."""
    part = PART.search(file.name)
    if part is None or not 1 <= int(part["number"]) <= int(part["count"]):
        return [file]
    numbers = range(1, int(part["count"]) + 1)
    names = [f"{file.name[: part.start()]}-{number:05}-of-{part['count']}{part['suffix']}" for number in numbers]
    return [path for path in map(file.with_name, names) if path.is_file()]


def looks_like_path(name: str) -> bool:
    """Return whether a name cannot be a hub name, which is ``name`` or ``owner/name``."""
    return name[:1] in ("", ".", "/", "~") or name.count("/") > 1 or "\\" in name or " " in name
