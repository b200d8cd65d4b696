"""Sources of a dataset, and building a set from them."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fim_server.datasets import Sample, read_samples
from fim_server.datasets.build import Request, build

STDLIB = Path(sysconfig.get_paths()["stdlib"])

GOOD = "def f(x, y):\n    total = x + y\n    return f'{total:>{x}} is {y}'\n\n\nprint(f(1, 2))\n"


def write_tree(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def write_lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt") if path.suffix == ".gz" else path.open("w", encoding="utf-8") as output:
        output.writelines(json.dumps(row) + "\n" for row in rows)
    return path


def built(request: Request, out: Path) -> tuple[dict[str, Any], list[Sample]]:
    return build(request, out), list(read_samples(out))


def run_cli(arguments: list[str], environment: Mapping[str, str] | None = None, status: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "fim_server", "dataset", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == status, done.stderr
    return done.stderr
