"""Where a model is: the embedded one, one in the user's cache, a folder or a file, or a name on the hub."""

from __future__ import annotations

import re
from importlib import import_module, resources
from pathlib import Path
from typing import TYPE_CHECKING

from fim_server.errors import DamagedError, ModelError, StoppedError
from fim_server.models.store.catalogue import DEFAULT_NAME, catalogue
from fim_server.models.store.folders import cached_damage, cached_folder, damaged, models_folder
from fim_server.models.store.manifest import hub_damage_of

if TYPE_CHECKING:
    from fim_server.models.store.transfer import Amount

EMBEDDED_NAME = "embedded"

GGUF_SUFFIX = ".gguf"

PART = re.compile(r"-(?P<number>\d{5})-of-(?P<count>\d{5})(?P<suffix>\.gguf)$", re.IGNORECASE)
"""How the names of GGUF files end that llama.cpp wrote in parts; it finds the others by that of the first."""

LONGEST_NAME, SHOWN_OF_NAME = 4096, 200
"""Most characters of a model's name or path, and those that an error shows."""

HUB_SECONDS = 10.0
"""How long the hub may take to answer whether it is there."""

HUB_FILES = ["*.json", "*.safetensors", "*.model", "*.txt"]
"""What is downloaded of a hub model: configuration, tokenizer, and weights that hold no code."""

TOKENIZER_FILES = ["*.json"]
"""The same where only its tokens are wanted."""


def name_of(name_or_path: str | None) -> str:
    """Return the name of the model that :func:`locate` finds: the given one, or the default's where that is whole."""
    if name_or_path is not None:
        return name_or_path
    serves = cached_folder(DEFAULT_NAME) is not None and cached_damage(DEFAULT_NAME) is None
    return DEFAULT_NAME if serves else EMBEDDED_NAME


def locate(name_or_path: str | None, tell: Amount | None = None, files: list[str] = HUB_FILES) -> str:
    """The folder, or GGUF file, to load from. Raises :class:`ModelError` where there is none, or no model in it.

    Raises :class:`DamagedError` for a model in a cache whose files are damaged.

    None is the catalogue's default where that is in the cache, else the embedded model. The catalogue's names and
    `embedded` stand above folders of such a name, which `./NAME` says. ``tell``, ``files``: as :func:`fetch` has them,
    for a name on the hub.
    """
    name = name_of(name_or_path)
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
            raise ModelError(f"{name}: not here yet; run `{catalogue()[name].how}`")
        return str(cached)
    try:
        return elsewhere(name, tell, files)
    except OSError as error:  # a part of the path is too long, or may not be read
        raise ModelError(f"{name[:SHOWN_OF_NAME]}: {(error.strerror or str(error)).lower()}") from error


def elsewhere(name_or_path: str, tell: Amount | None = None, files: list[str] = HUB_FILES) -> str:
    """The same for what is no name of this package's: a folder, or a name on the hub."""
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
    """Return the catalogue's name of the model whose folder in the cache that is; None for other folders."""
    models = models_folder()
    is_there = models is not None and folder.resolve().parent == models.resolve()
    return folder.resolve().name if is_there and folder.resolve().name in catalogue() else None


def fetch(name: str, tell: Amount | None = None, files: list[str] = HUB_FILES) -> str:
    """The local folder of a hub model, downloaded or completed as far as the hub can be reached.

    One request that is not retried asks whether it can; the download itself would try for a minute. Raises
    :class:`ModelError` for a name the hub does not know, and for one it cannot be asked about and is not cached, and
    StoppedError where what watches this thread is set while it is downloaded.

    Args:
        name: ``OWNER/NAME``.
        tell: Told how many bytes of how many have come, on other threads.
        files: Patterns of the names of its files that are wanted.
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
        problem = first_line(error)
    try:
        return undamaged(name, str(snapshot_download(name, allow_patterns=files, local_files_only=True)), files)
    except LocalEntryNotFoundError:
        raise ModelError(f"{name}: no such model, neither a folder here nor in the hub's cache ({problem})") from None


def undamaged(name: str, folder: str, files: list[str]) -> str:
    """Return a folder of the hub's cache with intact files. Raises :class:`DamagedError` where they are damaged."""
    problem = hub_damage_of(Path(folder), files)
    if problem is not None:
        remedy = f"run `fim-server models remove {name}`, and it is fetched anew when it is loaded"
        raise DamagedError(f"{name} is damaged ({problem}): {remedy}")
    return folder


def expanded(name: str) -> Path:
    """The path that a user names, with `~` for a home; as it stands where that user is not here."""
    try:
        return Path(name).expanduser()
    except (RuntimeError, ValueError):  # no such user, or a name that no user can have
        return Path(name)


def is_gguf(name: str) -> bool:
    """Whether a name is that of a GGUF file, there or not."""
    return name.lower().endswith(GGUF_SUFFIX)


def names_gguf_model(name: str) -> bool:
    """Whether a GGUF model is named by a file of that name: its only or first one, and no companion for pictures."""
    part = PART.search(name)
    return is_gguf(name) and "mmproj" not in name and (part is None or int(part["number"]) == 1)


def parts_of(file: Path) -> list[Path]:
    """The files of a model whose only or first one that is, as far as they are there."""
    part = PART.search(file.name)
    if part is None or not 1 <= int(part["number"]) <= int(part["count"]):
        return [file]
    numbers = range(1, int(part["count"]) + 1)
    names = [f"{file.name[: part.start()]}-{number:05}-of-{part['count']}{part['suffix']}" for number in numbers]
    return [path for path in map(file.with_name, names) if path.is_file()]


def looks_like_path(name: str) -> bool:
    """Whether a name cannot be a hub name, which is ``name`` or ``owner/name``."""
    return name[:1] in ("", ".", "/", "~") or name.count("/") > 1 or "\\" in name or " " in name


def first_line(error: BaseException) -> str:
    """The first line of an error's message, or its class where it has none; not every library keeps to one line."""
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(" :.") if lines else type(error).__name__
