"""Check of a GGUF file's header, because llama.cpp ends the process at some headers.

The format is described in ggml's ``docs/gguf.md``. The check knows only sizes and ranges. llama.cpp may still
abort at a file that passes it, so a process of its own tries the file afterwards (:mod:`.trial`).
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, BinaryIO

from fim_server.errors import ModelError

if TYPE_CHECKING:
    from pathlib import Path

MAGIC = b"GGUF"

VERSIONS = (2, 3)

SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
"""Sizes of values in bytes, by type."""

FORMS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<B", 10: "<Q", 11: "<q", 12: "<d"}

STRING, ARRAY = 8, 9

MOST_FIELDS, MOST_TENSORS, MOST_ELEMENTS = 1 << 16, 1 << 16, 1 << 24
"""Most fields, tensors, and elements of an array; the largest models have a thousand tensors, a million merges."""

LONGEST_NAME = 1 << 12
"""Most bytes of a field's or a tensor's name."""

MOST_LAYERS = 512
"""Most layers, as in llama.cpp (``LLAMA_MAX_LAYERS``)."""

USUAL_ALIGNMENT = 32

RANGES = {
    "block_count": (1, MOST_LAYERS),
    "context_length": (1, 1 << 28),
    "embedding_length": (1, 1 << 20),
    "attention.head_count": (1, 1 << 16),
    "attention.key_length": (1, 1 << 16),
    "attention.value_length": (1, 1 << 16),
    "expert_count": (0, 1 << 12),
    "vocab_size": (1, 1 << 24),
}
"""Ranges of an architecture's numbers, by the ends of their names."""


class Reader:
    """Reader of a file's header that stays within the file."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file, self._size = file, size

    @property
    def at(self) -> int:
        return self._file.tell()

    def take(self, count: int) -> bytes:
        """Return the next bytes. Raises ValueError where there are fewer."""
        if count > self._size - self.at:
            raise ValueError("it is cut off")
        return self._file.read(count)

    def skip(self, count: int) -> None:
        """Skip bytes. Raises ValueError where there are fewer."""
        if count > self._size - self.at:
            raise ValueError("it is cut off")
        self._file.seek(count, 1)

    def number(self, form: str) -> int:
        return int(struct.unpack(form, self.take(struct.calcsize(form)))[0])

    def name(self) -> str:
        length = self.number("<Q")
        if not 0 < length <= LONGEST_NAME:
            raise ValueError(f"a name of {length} bytes")
        return self.take(length).decode()

    def value(self, kind: int) -> float | int | None:
        """Return a field's value where it is a number; skip other values."""
        if kind in FORMS:
            return struct.unpack(FORMS[kind], self.take(SIZES[kind]))[0]  # type: ignore[no-any-return]
        if kind == STRING:
            self.skip(self.number("<Q"))
        elif kind == ARRAY:
            self._array()
        else:
            raise ValueError(f"a value of type {kind}")
        return None

    def _array(self) -> None:
        kind, count = self.number("<I"), self.number("<Q")
        if count > MOST_ELEMENTS:
            raise ValueError(f"an array of {count} elements")
        if kind in SIZES:
            self.skip(SIZES[kind] * count)
        elif kind == STRING:
            for _ in range(count):
                self.skip(self.number("<Q"))
        else:
            raise ValueError(f"an array of type {kind}")


def check_header(path: Path, what: str = "it") -> None:
    """Check a file's header. Raises ModelError, in one line, where no library should read it.

    ``what``: the kind of file in words.
    """
    try:
        with path.open("rb") as file:
            check_all(Reader(file, path.stat().st_size), path.stat().st_size)
    except OSError as error:
        raise ModelError(f"{path}: cannot be read ({(error.strerror or str(error)).lower()})") from None
    except UnicodeDecodeError:
        raise ModelError(f"{path}: llama.cpp cannot load {what} (a name is no UTF-8)") from None
    except ValueError as error:
        raise ModelError(f"{path}: llama.cpp cannot load {what} ({error})") from None


def count_parameters(path: Path) -> int:
    """Return the number of a file's weights. Raises ModelError as :func:`check_header`."""
    try:
        with path.open("rb") as file:
            return check_all(Reader(file, path.stat().st_size), path.stat().st_size)
    except (OSError, ValueError) as error:  # a name that is no UTF-8 included
        raise ModelError(f"{path}: cannot be read ({error})") from None


def check_all(reader: Reader, size: int) -> int:
    """Check the header of an open file, and return the number of its weights. Raises ValueError."""
    if size < len(MAGIC) or reader.take(len(MAGIC)) != MAGIC:
        raise ValueError("invalid magic: it does not begin as a GGUF file")
    version = reader.number("<I")
    if version not in VERSIONS:
        raise ValueError(f"version {version}")
    tensors, fields = reader.number("<Q"), reader.number("<Q")
    if tensors > MOST_TENSORS or fields > MOST_FIELDS:
        raise ValueError(f"{tensors} tensors and {fields} fields")
    alignment = check_fields(reader, fields)
    described = [check_tensor(reader, alignment) for _ in range(tensors)]
    ends = [offset for _, offset in described]
    begin = -(-reader.at // alignment) * alignment
    if ends and begin + max(ends) >= size:
        raise ValueError("its weights are cut off")
    return sum(elements for elements, _ in described)


def check_fields(reader: Reader, count: int) -> int:
    """Check the fields and return the tensors' alignment. Raises ValueError."""
    alignment, known = USUAL_ALIGNMENT, set[str]()
    for _ in range(count):
        name = reader.name()
        if name in known:
            raise ValueError(f"two fields {name[:80]}")
        known.add(name)
        found = reader.value(reader.number("<I"))
        if name == "general.alignment":
            if not isinstance(found, int) or not 8 <= found <= 1 << 20 or found & (found - 1):
                raise ValueError(f"{name} is {found}")
            alignment = found
        end = name.partition(".")[2]
        if end in RANGES and found is not None and not RANGES[end][0] <= found <= RANGES[end][1]:
            raise ValueError(f"{name[:80]} is {found}")
    return alignment


def check_tensor(reader: Reader, alignment: int) -> tuple[int, int]:
    """Check a tensor's description, and return its number of elements and its offset in the data.

    Raises ValueError.
    """
    name, dimensions = reader.name(), reader.number("<I")
    if not 1 <= dimensions <= 4:
        raise ValueError(f"{name[:80]} has {dimensions} dimensions")
    elements = 1
    for _ in range(dimensions):
        elements *= reader.number("<Q")
    if not 0 < elements < 1 << 40:
        raise ValueError(f"{name[:80]} has {elements} elements")
    reader.number("<I")
    offset = reader.number("<Q")
    if offset % alignment:
        raise ValueError(f"{name[:80]} is not aligned")
    return elements, offset
