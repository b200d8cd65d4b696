"""llama.cpp's server, played over the embedded model in a process of its own, for tests that are no Python.

`endpoint_program.py NAME PORT...` listens on the first of the ports that is free, prints its address and then a line
for each request for text, and ends with its standard input. NAME is what it calls its model's file.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack
from typing import Any

from endpoints import Endpoint, serving
from fim_server.models.load import load_model
from fim_server.models.source import EMBEDDED_NAME


class Told(list[dict[str, Any]]):
    """The requests for text, each of which is told of."""

    def append(self, body: dict[str, Any]) -> None:
        super().append(body)
        print("asked", flush=True)


def main(name: str, *ports: str) -> int:
    endpoint = Endpoint(load_model(EMBEDDED_NAME), "llama.cpp", file=f"/models/{name}.gguf", asked=Told())
    with ExitStack() as stack:
        for port in ports:
            try:
                address = stack.enter_context(serving(endpoint, int(port)))
            except OSError:
                continue
            print(address, flush=True)
            sys.stdin.read()
            return 0
    print(f"none of the ports {', '.join(ports)} is free", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
