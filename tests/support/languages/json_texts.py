"""Random texts of JSON."""

import random

PIECES = [
    "a",
    "key",
    " ",
    "0",
    "true",
    "//",
    ",",
    ":",
    "{",
    "]",
    "'",
    "\x7f",
    "\x80",
    "é",
    "\u2028",
    "☃",
    "\ufeff",
    "😀",
]

NUMBERS = ["0", "-0", "7", "-12", "340", "0.0", "-0.50", "1e5", "1E+05", "0e-1", "12.34e-56", "9" * 30]

SPACES = ["", "", "", "", " ", "\n", "\t", "\r\n  "]

POOL = ["{", "}", "[", "]", ",", ":", '"', "\\", "0", "1", "-", ".", "e", "+", "t", "u", " ", "\n", "\x00", "\x1f", "é"]


def string(rng: random.Random) -> str:
    return f'"{"".join(rng.choices(PIECES, k=rng.randrange(4)))}"'


def document(rng: random.Random, nesting: int = 3) -> str:
    """A random valid document."""

    def spaced(text: str) -> str:
        return rng.choice(SPACES) + text + rng.choice(SPACES)

    match rng.randrange(7) if nesting else rng.randrange(3):
        case 0:
            return spaced(string(rng))
        case 1:
            return spaced(rng.choice(NUMBERS))
        case 2:
            return spaced(rng.choice(["true", "false", "null"]))
        case 3 | 4:
            return spaced(
                f"[{','.join(document(rng, nesting - 1) for _ in range(rng.randrange(4))) or rng.choice(SPACES)}]"
            )
        case _:
            names = [spaced(string(rng)) for _ in range(rng.randrange(4))]
            pairs = ",".join(f"{name}:{document(rng, nesting - 1)}" for name in names)
            return spaced(f"{{{pairs or rng.choice(SPACES)}}}")
