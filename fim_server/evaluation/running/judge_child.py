"""Run by the interpreter that judges: says for every text on standard input whether ``ast.parse`` takes it.

Any Python from 3.9 on may run this file by itself: it needs nothing but the standard library. The first line that it
writes is its version; then there is a 1 or a 0 for each line that it reads, which is a text in JSON.
"""

import ast
import json
import platform
import sys
import warnings


def parses(text: str) -> bool:
    """Return whether ``ast.parse`` takes a file.

    False also on nesting too deep for it (RecursionError, MemoryError), on NUL and on lone surrogates (ValueError).
    """
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def main() -> None:
    warnings.simplefilter("ignore")  # invalid escapes and the like, which it takes
    print(platform.python_version(), flush=True)
    for line in sys.stdin:
        print(int(parses(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
