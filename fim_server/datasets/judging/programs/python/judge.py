"""The judge of Python: the parser of the CPython that runs it."""

import ast
import struct
import sys
import warnings


def verdict(text: str) -> str:
    """Return `ok`, or `no` or `?` with a reason."""
    try:
        ast.parse(text)
    except (SyntaxError, ValueError) as error:
        return f"no {error}"
    except (RecursionError, MemoryError) as error:
        return f"? {error}"
    return "ok"


def main() -> None:
    """Answer frames until the input ends."""
    warnings.simplefilter("ignore")
    texts, answers = sys.stdin.buffer, sys.stdout
    while len(head := texts.read(4)) == 4:
        text = texts.read(struct.unpack(">I", head)[0]).decode()
        answers.write(verdict(text).replace("\n", " ")[:300] + "\n")
        answers.flush()


main()
