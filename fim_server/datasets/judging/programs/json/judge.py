"""The judge of JSON: Python's json, without what it takes beyond RFC 8259."""

import json
import struct
import sys


def refuse(name: str) -> None:
    """Refuse NaN and Infinity, which are no JSON."""
    raise ValueError(name)


def verdict(text: str) -> str:
    """Return `ok`, or `no` or `?` with a reason."""
    try:
        json.loads(text, parse_constant=refuse)
    except RecursionError as error:
        return f"? {error}"
    except ValueError as error:
        return f"no {error}"
    return "ok"


def main() -> None:
    """Answer frames until the input ends."""
    texts, answers = sys.stdin.buffer, sys.stdout
    while len(head := texts.read(4)) == 4:
        text = texts.read(struct.unpack(">I", head)[0]).decode()
        answers.write(verdict(text).replace("\n", " ")[:300] + "\n")
        answers.flush()


main()
