"""Download of a model's GGUF file from the hub, or from a mirror that the environment names (``HF_ENDPOINT``).

The hub's library finds the repository's files, their sizes and their SHA-256, with the user's token. The download is
this package's own (:mod:`.transfer`): it resumes, and accepts a file only if it has that SHA-256.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from fim_server.errors import ModelError
from fim_server.models.source import HUB_SECONDS, PART, names_gguf_model
from fim_server.models.store.catalogue import Entry, Pinned
from fim_server.models.store.hub_address import endpoint, host, problem_of
from fim_server.models.store.transfer import Amount, download, is_right, length, partial_of

SHA256 = re.compile(r"[0-9a-f]{64}")

MARGIN = 100_000_000
"""Bytes of disk that stay free beside a download."""

MOST_PARTS = 100

MEGABYTE = 1_000_000


@dataclass(frozen=True)
class HubFile:
    """File of a repository.

    Attributes:
        address: The address to download it from.
        path: Its path in the repository.
        pinned: Its name, size and SHA-256.
        revision: The repository's commit.
    """

    address: str
    path: str
    pinned: Pinned
    revision: str


def fetch_files(entry: Entry, downloads: Path, say: Callable[[str], None], tell: Amount) -> list[tuple[HubFile, Path]]:
    """Download a model's file, or all of its parts, and return them with their paths.

    Raises:
        ModelError: The hub does not have it, refuses it or gives another file, or the disk has too little room; one
            line.
        OSError: It cannot be written.
    """
    say(f"asking {host()} for {entry.hub}")
    files = find_files(entry)
    downloads.mkdir(parents=True, exist_ok=True)
    wanted = [(file, downloads / file.pinned.name) for file in files]
    drop_others(downloads, {name.name for file, path in wanted for name in (path, partial_of(path, file.pinned))})
    require_disk(wanted)
    headers = authorization()
    size = sum(file.pinned.size for file in files)
    for number, (file, path) in enumerate(wanted, 1):
        part = f" ({number} of {len(files)})" if len(files) > 1 else ""
        say(f"downloading {entry.title}{part}, {size // MEGABYTE} MB, licence {entry.terms}")
        if not is_right(path, file.pinned):
            download(file.address, path, file.pinned, tell, headers)
    return wanted


def find_files(entry: Entry) -> list[HubFile]:
    """Return the files of a model in its repository. Raises ModelError, one line."""
    from huggingface_hub import HfApi
    from huggingface_hub.errors import GatedRepoError, HFValidationError, RepositoryNotFoundError

    try:
        information = HfApi(endpoint=endpoint()).model_info(entry.hub, timeout=HUB_SECONDS)
        names = [file.rfilename for file in information.siblings or []]
        return [described(entry, name, str(information.sha)) for name in chosen(entry, names)]
    except ModelError:
        raise
    except GatedRepoError:
        raise ModelError(
            f"{entry.hub}: its makers want their licence accepted; do so at {endpoint()}/{entry.hub}, then set "
            "HF_TOKEN or run `hf auth login`"
        ) from None
    except (RepositoryNotFoundError, HFValidationError):
        raise ModelError(f"{entry.hub}: {host()} has no such repository, or does not show it without a token") from None
    except Exception as error:  # whatever the hub's HTTP library raises
        raise ModelError(f"{entry.hub}: {problem_of(error)}") from error


def chosen(entry: Entry, names: Sequence[str]) -> list[str]:
    """Return the paths of the GGUF file with the entry's precision, or of its parts. Raises ModelError.

    The shortest name is taken of several, such as one beside others of a changed model.
    """
    models = [name for name in names if names_gguf_model(PurePosixPath(name).name) and is_inside(name)]
    ending = re.compile(rf"(?:^|[-._]){re.escape(entry.precision)}$", re.IGNORECASE)
    found = sorted((name for name in models if ending.search(stem_of(name))), key=lambda name: (len(name), name))
    if not found:
        raise ModelError(f"{entry.hub}: has no GGUF file with the precision {entry.precision} (of {len(models)} there)")
    part = PART.search(found[0])
    if part is None:
        return found[:1]
    count = int(part["count"])
    parts = [
        f"{found[0][: part.start()]}-{number:05}-of-{part['count']}{part['suffix']}" for number in range(1, count + 1)
    ]
    if not 1 <= count <= MOST_PARTS or not set(parts) <= set(names):
        raise ModelError(f"{entry.hub}: not all parts of {PurePosixPath(found[0]).name} are there")
    return parts


def stem_of(path: str) -> str:
    """Return a GGUF file's name without its ending and the number of its part."""
    name = PurePosixPath(path).name
    part = PART.search(name)
    return name[: part.start()] if part else PurePosixPath(name).stem


def is_inside(path: str) -> bool:
    """Return whether a path stays in its repository and is printable."""
    return (
        path.isprintable() and not path.startswith("/") and "\\" not in path and ".." not in PurePosixPath(path).parts
    )


def described(entry: Entry, path: str, revision: str) -> HubFile:
    """Return a file with its size and SHA-256, which the hub tells in the head of its answer.

    Raises ModelError where it does not, and the library's errors.
    """
    from huggingface_hub import get_hf_file_metadata, hf_hub_url

    address = hf_hub_url(entry.hub, path, revision=revision, endpoint=endpoint())
    told = get_hf_file_metadata(address, timeout=HUB_SECONDS, endpoint=endpoint())
    if not told.size or told.etag is None or not SHA256.fullmatch(told.etag):
        raise ModelError(f"{entry.hub}: {host()} does not tell size and SHA-256 of {PurePosixPath(path).name}")
    return HubFile(address, path, Pinned(PurePosixPath(path).name, told.size, told.etag), revision)


def authorization() -> dict[str, str]:
    """Return the header with the user's token; nothing without one."""
    from huggingface_hub import get_token

    token = get_token()
    return {} if token is None else {"Authorization": f"Bearer {token}"}


def drop_others(downloads: Path, names: set[str]) -> None:
    """Delete what an earlier download of another revision has left."""
    for path in downloads.iterdir():
        if path.is_file() and path.name not in names:
            path.unlink()


def require_disk(wanted: Sequence[tuple[HubFile, Path]]) -> None:
    """Raise ModelError where the disk has no room for what is still to be downloaded."""
    here = sum(max(length(path), length(partial_of(path, file.pinned))) for file, path in wanted)
    needed = max(0, sum(file.pinned.size for file, _ in wanted) - here) + MARGIN
    folder = wanted[0][1].parent
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise ModelError(f"{folder.parent}: {free // MEGABYTE} MB are free, {needed // MEGABYTE} are needed")
