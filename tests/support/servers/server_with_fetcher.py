"""The language server, with a program of the tests in the place of the one that gets a model.

Without arguments, or with the server's, it is the server. `server_with_fetcher.py get NAME` is that program, and
follows the variable FETCHER. `ready` puts the embedded model into the cache under the other's name. `fails` prints why
it cannot. `slow` goes on until it is ended, and then leaves a file as a sign.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time

from fim_server.cli import main
from fim_server.models.smollm2 import build
from fim_server.models.source import locate
from fim_server.models.store.folders import needed_folder
from fim_server.models.store.manifest import write_manifest
from fim_server.server.models import fetching

GET = [sys.executable, __file__, "get"]


def get(name: str) -> int:
    models = needed_folder()
    models.mkdir(parents=True, exist_ok=True)
    for done in (0, 50_000_000, 100_000_000):
        print(json.dumps({"stage": "downloading it", "done": done, "total": 100_000_000}), flush=True)
    if os.environ["FETCHER"] == "fails":
        print("fim-server: it cannot be fetched", file=sys.stderr)
        return 2
    if os.environ["FETCHER"] == "slow":
        (models / "begun").touch()
        try:
            time.sleep(600)
        except KeyboardInterrupt:
            (models / "ended").touch()
        return 130
    print(json.dumps({"stage": "building it"}), flush=True)
    folder = models / name
    shutil.copytree(locate("embedded"), folder)
    record = {"version": build.VERSION, "adapter_sha256": build.digest_of(build.ADAPTER)}
    (folder / build.RECORD).write_text(json.dumps(record), encoding="utf-8")
    write_manifest(folder)
    print(json.dumps({"name": name, "folder": str(folder), "new": True}), flush=True)
    return 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["get"]:
        import signal

        signal.signal(signal.SIGTERM, signal.default_int_handler)
        sys.exit(get(sys.argv[2]))
    fetching.GET = GET
    sys.exit(main(["serve", *sys.argv[1:]]))
