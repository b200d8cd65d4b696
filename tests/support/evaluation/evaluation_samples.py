"""Samples of a small file, and records of them."""

from __future__ import annotations

import random
from typing import Any

from fim_server.datasets import Origin, Sample
from fim_server.evaluation.records import (
    Record,
)
from fim_server.evaluation.running import worker

FILE = '''\
import os


class Reader:
    """Reads."""

    def __init__(self, path, size=10):
        self.path = path
        self.size = [size, {"a": (1, 2)}]

    def read(self):
        with open(self.path) as file:
            for line in file:
                if line.strip():
                    yield f"{line!r:>10}"


def main(argv):
    return [os.path.join(name, "x") for name in argv if name]
'''


def sample_of(number: int, **fields: Any) -> Sample:
    choose = random.Random(number)
    begin = choose.randrange(len(FILE))
    end = min(len(FILE), begin + choose.randrange(60))
    values: dict[str, Any] = {
        "id": f"sample-{number}",
        "set": "stack-randspan",
        "kind": "stack-randspan",
        "left": FILE[:begin],
        "middle": FILE[begin:end],
        "right": FILE[end:],
        "language": "python",
        "origin": Origin("test", None, None, "file.py", None, "0" * 64),
    }
    return Sample(**{**values, **fields})


def record_of(number: int = 0, **fields: Any) -> Record:
    values: dict[str, Any] = {
        **worker.described(sample_of(number), "checked"),
        "text": "x\n\u2028\ud800é",
        "parses": True,
    }
    return Record(**{**values, **fields})
