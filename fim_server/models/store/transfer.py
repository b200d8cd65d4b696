"""Download of a file with a known content: resumed where it was cut off, and accepted only if it is the right one."""

from __future__ import annotations

import errno
import hashlib
import re
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import url2pathname

from fim_server.errors import ModelError
from fim_server.models.store.catalogue import Pinned

if TYPE_CHECKING:
    from httpx2 import Client, Response

Amount = Callable[[int, int], None]
"""Receiver of a download's progress: bytes done, and bytes of the whole."""

CHUNK = 1 << 18
"""Bytes of a write."""

TRIES = 5
"""Most attempts in a row that bring nothing new."""

CONNECT_SECONDS, READ_SECONDS = 15.0, 30.0
"""Longest time to reach a server, and between two blocks of its answer."""

LEAST_BYTES, LEAST_SECONDS = 60_000, 60.0
"""Least bytes that have to come in each such time: a server may send a byte a second forever."""

FIRST_PAUSE_SECONDS = 0.5
"""Pause before the second attempt; it doubles before each later one."""


class TransferError(ModelError):
    """Error of a server that does not give the file; the caller may try another way."""


def download(url: str, target: Path, wanted: Pinned, tell: Amount, headers: Mapping[str, str] | None = None) -> None:
    """Download a file to ``target``, complete and checked.

    Received bytes are in a file beside it, named after the expected content, which an interruption leaves there. The
    next call goes on from there, whatever the address, if the server gives parts of files. ``headers`` go to the
    address alone, not where it leads.

    Raises:
        TransferError: The server does not give it.
        ModelError: The server gives another file.
        OSError: It cannot be written.
    """
    partial = partial_of(target, wanted)
    partial.parent.mkdir(parents=True, exist_ok=True)
    if urlsplit(url).scheme == "file":
        copy(Path(url2pathname(urlsplit(url).path)), partial, wanted, tell)
    else:
        fetch(url, partial, wanted, tell, headers or {})
    partial.replace(target)


def partial_of(target: Path, wanted: Pinned) -> Path:
    """Return the file that a download to ``target`` grows in."""
    return target.with_name(f"{target.name}.{wanted.sha256[:16]}.partial")


def copy(source: Path, partial: Path, wanted: Pinned, tell: Amount) -> None:
    """Copy a file of this machine, and check it."""
    try:
        shutil.copyfile(source, partial)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise
        raise TransferError(f"{source}: {(error.strerror or str(error)).lower()}") from None
    tell(wanted.size, wanted.size)
    if not is_right(partial, wanted):
        partial.unlink()
        raise wrong(wanted)


def fetch(url: str, partial: Path, wanted: Pinned, tell: Amount, headers: Mapping[str, str]) -> None:
    """Complete ``partial`` by as many requests as that takes."""
    import httpx2

    headers = {**headers, "Accept-Encoding": "identity"}  # ranges count the bytes that are sent
    timeout = httpx2.Timeout(READ_SECONDS, connect=CONNECT_SECONDS)
    failures = 0
    with httpx2.Client(follow_redirects=True, timeout=timeout, headers=headers) as client:
        while True:
            had = length(partial)
            started_over, problem = False, "the connection was cut"
            try:
                if had < wanted.size:
                    started_over = receive(client, url, partial, wanted, tell)
            except httpx2.HTTPError as error:  # no network, a connection that broke, an answer that is none
                problem = str(error).strip().split("\n", 1)[0] or type(error).__name__
            if length(partial) >= wanted.size:
                if is_right(partial, wanted):
                    return
                partial.unlink()
                if started_over:  # all of it came from there, so it will be no other one next time
                    raise wrong(wanted)
            failures = 0 if length(partial) > had else failures + 1
            if failures >= TRIES:
                raise TransferError(f"{wanted.name} cannot be fetched: {problem}")
            time.sleep(FIRST_PAUSE_SECONDS * 2**failures if failures else 0)


def receive(client: Client, url: str, partial: Path, wanted: Pinned, tell: Amount) -> bool:
    """Append an answer to ``partial``, and return whether it began at the file's beginning.

    Raises :class:`TransferError` for an answer that will be the same next time, or comes too slowly.
    """
    had = length(partial)
    with client.stream("GET", url, headers={"Range": f"bytes={had}-"} if had else {}) as response:
        if response.status_code >= 500 or response.status_code in (408, 429):
            response.raise_for_status()
        if response.status_code not in (200, 206):
            raise TransferError(f"{wanted.name}: the server answers {response.status_code} {response.reason_phrase}")
        goes_on = response.status_code == 206 and begins_at(response, had)
        if size_told(response) not in (None, wanted.size):
            raise TransferError(f"{wanted.name}: the server has another file of that name")
        count = had if goes_on else 0
        with partial.open("ab" if goes_on else "wb") as file:
            tell(count, wanted.size)
            known, since = count, time.monotonic()
            for chunk in response.iter_raw():
                file.write(chunk)
                count += len(chunk)
                tell(min(count, wanted.size), wanted.size)
                if count > wanted.size:
                    break
                if time.monotonic() - since >= LEAST_SECONDS:
                    if count - known < LEAST_BYTES:
                        raise TransferError(f"{wanted.name}: the server sends it too slowly")
                    known, since = count, time.monotonic()
    return not goes_on


def begins_at(response: Response, offset: int) -> bool:
    """Return whether an answer is the file from an offset on."""
    found = re.match(r"bytes (\d+)-", response.headers.get("Content-Range", ""))
    return found is not None and int(found[1]) == offset


def size_told(response: Response) -> int | None:
    """Return the bytes of the whole file if an answer tells them."""
    if response.status_code == 206:
        total = response.headers.get("Content-Range", "").rpartition("/")[2]
    else:
        total = response.headers.get("Content-Length", "")
    return int(total) if total.isdecimal() else None


def length(path: Path) -> int:
    """Return the bytes of a file; 0 where there is none."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def is_right(path: Path, wanted: Pinned) -> bool:
    """Return whether a file has the expected content."""
    if length(path) != wanted.size:
        return False
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == wanted.sha256


def wrong(wanted: Pinned) -> ModelError:
    """Return the error for a file with another content."""
    return ModelError(
        f"{wanted.name}: not the file that is expected ({wanted.size:,} bytes, SHA-256 {wanted.sha256[:16]}…)"
    )
