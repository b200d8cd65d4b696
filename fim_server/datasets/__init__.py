"""What completions are measured on: samples, the sources they are cut from, and the tests some of them have.

`fim-server dataset` is the command line; docs/evaluation.md has the file formats.
"""

from fim_server.datasets.samples import SET_NAMES, Origin, Sample, UnitTest, encode_sample, read_samples, write_samples
from fim_server.errors import DatasetError

__all__ = [
    "SET_NAMES",
    "DatasetError",
    "Origin",
    "Sample",
    "UnitTest",
    "encode_sample",
    "read_samples",
    "write_samples",
]
