"""Samples to measure completions on, the sources that they are cut from, and the tests of some of them.

`fim-server dataset` is the command line; docs/evaluation.md has the file formats.
"""

from fim_server.datasets.samples import (
    SET_NAMES,
    Case,
    MatchTest,
    Origin,
    ProgramTest,
    Sample,
    UnitTest,
    encode_sample,
    read_samples,
    write_samples,
)
from fim_server.errors import DatasetError

__all__ = [
    "SET_NAMES",
    "Case",
    "DatasetError",
    "MatchTest",
    "Origin",
    "ProgramTest",
    "Sample",
    "UnitTest",
    "encode_sample",
    "read_samples",
    "write_samples",
]
