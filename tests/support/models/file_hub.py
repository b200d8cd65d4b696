"""A hub on this machine with one repository of GGUF files, which redirects downloads to another server."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from support.http_serving import HubHandler, serving_by

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@dataclass
class FileHub:
    """Behaviour of the hub.

    Attributes:
        repository: Name of its repository.
        content: Content of the file, as the hub describes it.
        names: Paths of the repository's files; all have that content.
        store: Address that downloads are redirected to.
        token: The token that files need; None: none.
        tells_checksum: True if it describes the file in its large storage.
        answer: Answer to the listing in place of the right one.
        asked: Methods and paths of the requests.
    """

    repository: str
    content: bytes
    names: list[str]
    store: str
    token: str | None = None
    tells_checksum: bool = True
    answer: bytes | None = None
    asked: list[str] = field(default_factory=list)


@contextmanager
def serving_hub(hub: FileHub) -> Iterator[str]:
    """The hub's address, for the variable HF_ENDPOINT."""

    class Handler(HubHandler):
        def do_GET(self) -> None:
            path = self.plain_path
            hub.asked.append(f"{self.command} {path}")
            if path == f"/api/models/{hub.repository}":
                listed = {"id": hub.repository, "sha": COMMIT, "siblings": [{"rfilename": name} for name in hub.names]}
                self.answer(200, hub.answer or json.dumps(listed).encode(), {})
                return
            found = re.fullmatch(f"/{hub.repository}/resolve/{COMMIT}/(.+)", path)
            if found is None or found[1] not in hub.names:
                self.answer(404, b"{}", {"X-Error-Code": "RepoNotFound" if found is None else "EntryNotFound"})
            elif hub.token is not None and self.headers.get("Authorization") != f"Bearer {hub.token}":
                self.answer(401, b"{}", {"X-Error-Code": "GatedRepo"})
            else:
                described = {"X-Repo-Commit": COMMIT, "Location": hub.store, "X-Linked-Size": str(len(hub.content))}
                if hub.tells_checksum:
                    described["X-Linked-Etag"] = f'"{hashlib.sha256(hub.content).hexdigest()}"'
                self.answer(302, b"", {**described, "ETag": '"of-the-redirection"'})

    with serving_by(Handler) as address:
        yield address
