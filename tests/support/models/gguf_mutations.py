"""Small GGUF files with one thing changed each: numbers, lengths, types, offsets, bytes, and where the file ends.

`gguf_mutations.py --files 500` loads so many in one process, as the server does, and fails where that process ends.
"""

from __future__ import annotations

import argparse
import random
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from support.models.tiny_base import tiny_weights, write_tiny_base

EXTREMES = (0, 1, 2, 3, 7, 31, 33, 255, 2**15, 2**16, 2**24, 2**31 - 1, 2**31, 2**32 - 1)
LONG_EXTREMES = (*EXTREMES, 2**32, 2**40, 2**62, 2**63 - 1, 2**63, 2**64 - 1)

SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}


def sound_file(path: Path) -> Path:
    """A file that loads: two layers, and a vocabulary of bytes."""
    return write_tiny_base(path, tiny_weights(), add_key_length=32, add_value_length=32, add_eos_token_id=0)


def places(data: bytes) -> Iterator[tuple[int, int, str]]:
    """Yield the places, sizes and meanings of a header's numbers."""
    at = 24
    tensors, fields = struct.unpack_from("<QQ", data, 8)
    yield from ((4, 4, "version"), (8, 8, "tensors"), (16, 8, "fields"))
    for _ in range(fields):
        (length,) = struct.unpack_from("<Q", data, at)
        yield at, 8, "length of a field's name"
        name = data[at + 8 : at + 8 + length].decode()
        at += 8 + length
        (kind,) = struct.unpack_from("<I", data, at)
        yield at, 4, f"type of {name}"
        at += 4
        if kind == 8:
            yield at, 8, f"length of {name}"
            at += 8 + struct.unpack_from("<Q", data, at)[0]
        elif kind == 9:
            yield at, 4, f"type in {name}"
            yield at + 4, 8, f"count of {name}"
            inner, count = struct.unpack_from("<IQ", data, at)
            at += 12
            for _ in range(count):
                if inner == 8:
                    yield at, 8, f"length in {name}"
                    at += 8 + struct.unpack_from("<Q", data, at)[0]
                else:
                    yield at, SIZES[inner], f"element of {name}"
                    at += SIZES[inner]
        else:
            yield at, SIZES[kind], name
            at += SIZES[kind]
    for _ in range(tensors):
        yield at, 8, "length of a tensor's name"
        at += 8 + struct.unpack_from("<Q", data, at)[0]
        (dimensions,) = struct.unpack_from("<I", data, at)
        yield at, 4, "dimensions of a tensor"
        at += 4
        for _ in range(dimensions):
            yield at, 8, "size of a tensor"
            at += 8
        yield at, 4, "type of a tensor"
        yield at + 4, 8, "offset of a tensor"
        at += 12


def mutated(data: bytes, seed: int) -> tuple[bytes, str]:
    """A file with something changed, and what that is."""
    draw = random.Random(seed)
    known = list(places(data))
    header = known[-1][0] + known[-1][1]
    kind = draw.random()
    if kind < 0.08:
        end = draw.choice([draw.randrange(header), draw.randrange(header, len(data))])
        return data[:end], f"cut at {end}"
    if kind < 0.3:
        changed = bytearray(data)
        for _ in range(draw.choice([1, 1, 2, 8])):
            changed[draw.randrange(header)] ^= 1 << draw.randrange(8)
        return bytes(changed), "bits"
    names = sorted({name for _, _, name in known})
    wanted = draw.choice(names)  # each field as often as any, however many elements it has
    at, size, name = draw.choice([place for place in known if place[2] == wanted])
    value = draw.choice(LONG_EXTREMES if size == 8 else EXTREMES) & ((1 << 8 * size) - 1)
    if draw.random() < 0.3:
        value = draw.getrandbits(8 * size)
    if "name" not in name and draw.random() < 0.2:
        value = int.from_bytes(data[at : at + size], "little") + draw.choice([-1, 1, 8]) & ((1 << 8 * size) - 1)
    return data[:at] + value.to_bytes(size, "little") + data[at + size :], f"{name} is {value}"


LOADING = """
import sys
from pathlib import Path
from fim_server.errors import FimServerError
from fim_server.models.load import load_model
for line in sys.stdin:
    try:
        model = load_model(line.strip())
        model.forward([1, 2, 3], model.new_cache(64))
        print("loaded", flush=True)
    except (FimServerError, RuntimeError) as error:
        print(str(error).replace("\\n", " / "), flush=True)
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        data = sound_file(Path(folder) / "sound.gguf").read_bytes()
        loader = subprocess.Popen(
            [sys.executable, "-c", LOADING], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert loader.stdin is not None
        assert loader.stdout is not None
        said = dict.fromkeys(("loaded", "refused", "ended its trial"), 0)
        for number in range(arguments.files):
            content, what = mutated(data, arguments.seed + number)
            path = Path(folder) / f"{number}.gguf"
            path.write_bytes(content)
            print(path, file=loader.stdin, flush=True)
            line = loader.stdout.readline().strip()
            if not line:
                print(f"seed {arguments.seed + number}: {what}: the process has ended with {loader.wait()}")
                return 1
            ended = "ends the process" in line
            said["loaded" if line == "loaded" else "ended its trial" if ended else "refused"] += 1
            if ended:
                print(f"seed {arguments.seed + number}: {what}: {line}", flush=True)
            path.unlink()
        loader.stdin.close()
        loader.wait()
    print(f"{arguments.files} files: {said}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
