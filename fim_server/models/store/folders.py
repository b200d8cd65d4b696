"""Folders of models in the user's cache.

The folder `models` of the cache has a folder for each model, which is complete or missing, because a build renames it
last. Names with a dot at the beginning are downloads, and folders of commands at work or killed.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from fim_server.errors import DamagedError, ModelError
from fim_server.language.cache import cache_folder
from fim_server.models.store.catalogue import Entry, Package
from fim_server.models.store.manifest import MANIFEST, damage_of, has_manifest

FOLDERS = (".cache/llama.cpp", ".cache/lm-studio/models", ".lmstudio/models", "models")
"""Folders of the user's home in which programs keep models."""

NO_CACHE = "FIM_SERVER_CACHE is empty, so there is no place to keep a model"


def models_folder() -> Path | None:
    """Return the folder of all models, which may not exist; None where the user wants no cache."""
    cache = cache_folder()
    return None if cache is None else cache / "models"


def usual_folders() -> list[Path]:
    """Return the folders of models: the cache's and those of other programs in the user's home, there or not."""
    own = models_folder()
    homes = [Path.home() / name for name in FOLDERS] if "HOME" in os.environ else []
    return homes if own is None else [own, *homes]


def needed_folder() -> Path:
    """Return the folder of all models. Raises :class:`ModelError` where the user wants no cache."""
    folder = models_folder()
    if folder is None:
        raise ModelError(NO_CACHE)
    return folder


def cached_folder(name: str) -> Path | None:
    """Return the folder of a model in the cache, damaged or not, else None."""
    models = models_folder()
    if models is None:
        return None
    folder = models / name
    try:
        is_there = (folder / "config.json").is_file() or gguf_in(folder) is not None
        return folder if is_there else None
    except OSError:  # no right to look at it
        return None


def gguf_in(folder: Path) -> Path | None:
    """Return the GGUF file in a model's folder, the first of its parts; None where there is none. Raises OSError."""
    return min(folder.glob("*.gguf"), default=None)


def cached_damage(name: str, thorough: bool = False) -> str | None:
    """Return the damage of a model in the cache in a few words; None for an intact or missing one.

    Without a manifest nothing says that the files are whole: that is damage, too.
    """
    models = models_folder()
    if models is None or not os.path.lexists(models / name):
        return None
    folder = models / name
    if not folder.is_dir():
        return f"{folder} is no folder"
    if not os.access(folder, os.R_OK | os.X_OK):
        return f"{folder} may not be read"
    if not has_manifest(folder):
        return f"{MANIFEST} with its checksums is missing"
    return damage_of(folder, thorough)


def damaged(entry: Entry, problem: str) -> DamagedError:
    return DamagedError(f"{entry.name} is damaged ({problem}): run `{entry.how}`")


EMBEDDED_INSTEAD = "the embedded model is used instead"


def embedded_instead(entry: Entry) -> str | None:
    """Return the message that a damaged model is replaced by the embedded one; None if it is whole."""
    problem = cached_damage(entry.name)
    return None if problem is None else f"{damaged(entry, problem)}; {EMBEDDED_INSTEAD}"


def downloads_folder(models: Path, name: str) -> Path:
    """Return the folder of a model's downloads, partial ones included."""
    return models / f".{name}.downloads"


def kept_source(models: Path, name: str, package: Package) -> Path:
    """Return the path of a base's weights, during a build and where the user keeps them."""
    return downloads_folder(models, name) / Path(package.weights.name).name


def lock_file(models: Path, name: str) -> Path:
    """Return the lock of commands that change a model."""
    return models / f".{name}.lock"


def leftovers(models: Path, name: str) -> list[Path]:
    """Return the folders of killed commands; the caller has to hold the lock."""
    downloads = downloads_folder(models, name)
    return [
        *sorted(models.glob(f".{name}.building-*")),
        *sorted(downloads.glob(".pip-*")),
        *sorted(downloads.glob(".uv-*")),
    ]


def size_of(path: Path) -> int:
    """Return the bytes of a file, or of all files in a folder; 0 where there is nothing."""
    if path.is_dir():
        return sum(file.lstat().st_size for file in path.rglob("*") if file.is_file())
    return path.stat().st_size if path.exists() else 0


def delete(path: Path) -> int:
    """Delete a file or a folder, and return the bytes that it had."""
    freed = size_of(path)
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    return freed
