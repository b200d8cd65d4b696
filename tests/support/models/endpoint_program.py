"""llama.cpp's server, played in a process of its own, for tests in other languages.

`endpoint_program.py [--texts FILE] NAME PORT...` listens on the first free port, prints its address and then a line for
each request for text, and ends with its standard input. NAME is the name of its model's file. The model is the embedded
one. With `--texts` it writes the texts of a JSON file: a list of objects, each with a `text` and the text `before` it,
the likeliest first.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from fim_server.models.load import load_model
from fim_server.models.source import EMBEDDED_NAME
from support.models.endpoints import Endpoint, serving
from support.models.text_models import Written, text_model


class Told(list[dict[str, Any]]):
    """The requests for text, each of which is told of."""

    def append(self, body: dict[str, Any]) -> None:
        super().append(body)
        print("asked", flush=True)


def read_texts(path: Path) -> Written:
    """The texts of a file."""
    rows = json.loads(path.read_text(encoding="utf-8"))
    return Written([(row["before"].encode(), row["text"].encode()) for row in rows])


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="endpoint_program.py")
    parser.add_argument("--texts", type=Path)
    parser.add_argument("name")
    parser.add_argument("ports", nargs="+")
    options = parser.parse_args(arguments)
    model = load_model(EMBEDDED_NAME) if options.texts is None else text_model(read_texts(options.texts))
    endpoint = Endpoint(model, "llama.cpp", file=f"/models/{options.name}.gguf", asked=Told())
    with ExitStack() as stack:
        for port in options.ports:
            try:
                address = stack.enter_context(serving(endpoint, int(port)))
            except OSError:
                continue
            print(address, flush=True)
            sys.stdin.read()
            return 0
    print(f"none of the ports {', '.join(options.ports)} is free", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
