"""The language server with short time limits for endpoints: the arguments are those of `serve`."""

from __future__ import annotations

import sys

from fim_server.cli import main
from fim_server.models.remote import client
from fim_server.server.models import loading

if __name__ == "__main__":
    client.READ_SECONDS, client.PROBE_SECONDS = 4.0, 4.0
    loading.AWAY_SECONDS = (0.2, 0.2, 0.2, 0.2, 0.2)
    sys.exit(main(["serve", *sys.argv[1:]]))
