"""Files of a list of packages in folders, one for each package, for `fim-server language check`.

PYTHONPATH=tests python -m support.languages.source_files datasets/go-reported.toml FOLDER
"""

from __future__ import annotations

import argparse
from pathlib import Path

from fim_server.datasets.cutters import PYTHON
from fim_server.datasets.sources.named import language_of, open_source


def unpack(named: str, folder: Path, language: str | None = None) -> int:
    """Write the files of a source below a folder, and return their number.

    Raises:
        DatasetError: There is no such source, or it cannot be fetched.
    """
    count = 0
    source = open_source(named, None, language or language_of(named) or PYTHON)
    for file in source:
        if isinstance(file.content, bytes):
            package = (file.package or source.name).replace("/", "+").replace(":", "+")
            path = folder / package / file.path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(file.content)
            count += 1
    return count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--language")
    arguments = parser.parse_args()
    print(unpack(arguments.source, arguments.folder, arguments.language))


if __name__ == "__main__":
    main()
