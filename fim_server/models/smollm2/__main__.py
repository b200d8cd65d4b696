"""Build SmolLM2's model folder anywhere, with any adapter or none: ``python -m fim_server.models.smollm2``.

Users run ``fim-server models get smollm2``. This program serves to measure training: ``fim-server eval run --model``
takes the folder of an adapter, and ``./dev bench runtimes --onnx`` the ``onnx`` of a precision.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from fim_server.errors import ModelError
from fim_server.models.smollm2.build import ADAPTER, build
from fim_server.models.smollm2.export import LAYERS
from fim_server.models.smollm2.graph import Precisions
from fim_server.models.smollm2.quantizing import Precision


def main() -> int:
    """Build one folder, and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m fim_server.models.smollm2",
        description="Build SmolLM2's model folder from its base and an adapter.",
        epilog="Exit status: 0 built, 2 bad input.",
    )
    parser.add_argument("source", type=Path, metavar="BASE", help="a GGUF file, or a folder in the transformers layout")
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="what is built; one that is there is replaced")
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--adapter", type=Path, default=ADAPTER, metavar="FILE", help="default: the one that comes with the package"
    )
    which.add_argument("--no-adapter", action="store_true", help="the base as it is; its control tokens are untrained")
    parser.add_argument(
        "--layers", choices=LAYERS, default="channels", help="the precision of the export's layers (default: channels)"
    )
    parser.add_argument("--table-bits", type=int, choices=(4, 8), default=8, help="of its embedding (default: 8)")
    arguments = parser.parse_args()
    try:
        if not arguments.no_adapter and not arguments.adapter.is_file():
            raise ModelError(f"{arguments.adapter}: no such file")
        adapter = arguments.folder / "none" if arguments.no_adapter else arguments.adapter
        precisions = Precisions(LAYERS[arguments.layers], Precision(arguments.table_bits))
        build(arguments.source, arguments.folder, lambda line: print(line, file=sys.stderr), adapter, precisions)
    except ModelError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
