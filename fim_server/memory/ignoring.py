"""Files that git ignores, and files of secrets, which are never read."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from fim_server import _core

MOST_FOLDERS = 64
"""Most folders to look into, from a file upward."""


def is_ignored(path: Path, folders: Sequence[Path]) -> bool:
    """Return whether git ignores a file.

    If a file of rules cannot be read, everything below its folder counts as ignored.

    Args:
        path: The file's path, with links resolved.
        folders: Workspace folders that it is in. Rules apply from the uppermost of them, or from the repository's
            folder.
    """
    top = top_of(path, folders)
    return top is not None and _core.is_ignored(top, path)


def is_made_for_secrets(name: str) -> bool:
    return _core.is_made_for_secrets(without_surrogates(name))


@lru_cache(maxsize=128)
def secret_files(globs: tuple[str, ...]) -> _core.SecretFiles:
    """Return the files of secrets with the user's globs. Raises ValueError, in one line, for a text that is no glob."""
    return _core.SecretFiles([without_surrogates(glob) for glob in globs])


def is_secret(path: Path, folders: Sequence[Path], globs: tuple[str, ...] = ()) -> bool:
    """Return whether a file is never read: by its name or a glob, also where links lead, or by an ignore file.

    Args:
        path: The file's path. The file need not exist.
        folders: Workspace folders, below which globs and the ignore files for assistants (`.aiignore` and others)
            apply. Elsewhere they apply below the repository's folder, or the file's own.
        globs: The user's, as of the setting `secretFiles`.
    """
    files = secret_files(globs)
    if files.contains(top_of(path, folders) or path.parent, path):
        return True
    real = Path(os.path.realpath(path))
    if real == path:
        return False
    resolved = [*folders, *(Path(os.path.realpath(folder)) for folder in folders)]
    return files.contains(top_of(real, resolved) or real.parent, real)


def is_named_by(path: str, glob: str) -> bool:
    """Return whether a glob names a file, in any case and in the syntax of `.gitignore`.

    Args:
        path: The file's path below the workspace's folder.
        glob: The glob. Raises ValueError for a text that is no glob.
    """
    if glob.startswith("!"):
        raise ValueError(f"a glob expected, not {glob!r}")
    # Only the glob itself takes a file out of the files of secrets.
    return secret_files((f"!{glob}",)).decide(Path(without_surrogates(path))) is False


def has_secret_name(path: str, globs: tuple[str, ...] = ()) -> bool:
    """Return whether a document is never read by its name or a glob alone, without a look at the disk."""
    return secret_files(globs).decide(Path(without_surrogates(path))) is True


def top_of(path: Path, folders: Sequence[Path]) -> Path | None:
    """Return the uppermost of some folders or repositories that a path is in, or None."""
    above = path.parents[:MOST_FOLDERS]
    return next((folder for folder in reversed(above) if folder in folders or is_there(folder / ".git")), None)


def without_surrogates(name: str) -> str:
    """Return a name with `?` for each half of a surrogate pair."""
    return name.encode(errors="replace").decode()


def is_there(path: Path) -> bool:
    """Return whether a path exists; False for a name that is too long."""
    try:
        return path.exists()
    except OSError:
        return False
