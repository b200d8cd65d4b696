"""A hub on this machine that has one model: the embedded one, without its export.

It says what `huggingface_hub` asks for, as the real one does. Run as a program it prints its address, gives the rest
of a large file once a line comes on standard input, and ends with that.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from fim_server.models.source import locate
from support.http_serving import HubHandler, serving_by

NAME = "somebody/small-model"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
LARGE = 1_000_000
"""Bytes from which on a file comes in two halves."""


@dataclass
class Hub:
    """Behaviour of the hub.

    Attributes:
        goes_on: Event that releases the second halves of large files.
        given: Names of the files that were sent whole.
    """

    goes_on: threading.Event = field(default_factory=threading.Event)
    given: list[str] = field(default_factory=list)
    folder: Path = field(default_factory=lambda: Path(locate("embedded")))

    @property
    def names(self) -> list[str]:
        """The model's files."""
        return [path.name for path in sorted(self.folder.iterdir()) if path.suffix in (".json", ".safetensors")]


def blob(content: bytes) -> str:
    """Git's name of a file, by which the hub tells those apart that are not in its large storage."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


@contextmanager
def serving(hub: Hub) -> Iterator[str]:
    """The hub's address, for the variable HF_ENDPOINT."""

    class Handler(HubHandler):
        def do_GET(self) -> None:
            path = self.plain_path
            if path.startswith(f"/api/models/{NAME}/tree/"):
                self._json([self._entry(name) for name in hub.names])
            elif path in (f"/api/models/{NAME}", f"/api/models/{NAME}/revision/main"):
                siblings = [{"rfilename": name} for name in hub.names]
                self._json({"id": NAME, "sha": COMMIT, "private": False, "tags": [], "siblings": siblings})
            elif (found := re.fullmatch(f"/{NAME}/resolve/{COMMIT}/([^/]+)", path)) and found[1] in hub.names:
                self._file(found[1])
            else:
                self._json({"error": "Repository not found"}, 404, {"X-Error-Code": "RepoNotFound"})

        def _entry(self, name: str) -> dict[str, object]:
            content = (hub.folder / name).read_bytes()
            return {"type": "file", "path": name, "size": len(content), "oid": blob(content)}

        def _file(self, name: str) -> None:
            content = (hub.folder / name).read_bytes()
            headers = {"ETag": f'"{blob(content)}"', "X-Repo-Commit": COMMIT}
            self.begin(200, len(content), headers)
            if self.command == "HEAD":
                return
            half = len(content) // 2 if len(content) >= LARGE else len(content)
            try:
                self.wfile.write(content[:half])
                self.wfile.flush()
                if half < len(content):
                    hub.goes_on.wait()
                self.wfile.write(content[half:])
            except OSError:  # who asked has gone
                self.close_connection = True
            else:
                hub.given.append(name)

        def _json(self, value: object, status: int = 200, headers: dict[str, str] | None = None) -> None:
            self.answer(status, json.dumps(value).encode(), {"Content-Type": "application/json", **(headers or {})})

    with serving_by(Handler) as address:
        try:
            yield address
        finally:
            hub.goes_on.set()


def main() -> int:
    hub = Hub()
    with serving(hub) as address:
        print(address, flush=True)
        if sys.stdin.readline():
            hub.goes_on.set()
            sys.stdin.read()
    return 0


if __name__ == "__main__":
    sys.exit(main())
