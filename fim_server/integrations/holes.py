"""Holes: the text to fill in that another engine's request describes, and its session."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from fim_server.errors import HoleError, LanguageError, LimitError, StoppedError
from fim_server.language import Language, Session, Stop
from fim_server.language.session import FLOORS
from fim_server.language.shapes import Shape
from fim_server.models.masking import word_count
from fim_server.tokens.vocabulary import Vocabulary

PREFIX = "fim-server:"
"""Beginning of this engine's grammars where an engine's requests hold grammars of several; JSON follows."""

KEYS = ("left", "right", "language", "version", "shape", "floor")

OPEN_SECONDS = 5.0
"""Most seconds for reading the two texts of a request: a file of 1 MB takes less."""

OPEN_BYTES = 400_000_000
"""Most bytes of memory of a request's session."""


@dataclass(frozen=True)
class Hole:
    """Text to be filled in between two others.

    Attributes:
        left: Text before it.
        right: Text after it.
        language: Language of the whole.
        version: The language's version; None is the newest.
        shape: Shape of the middle (`Shape.lines`, `Shape.regex`).
        floor: `off`, `brackets` or `block`, as in `Session.floored`.
    """

    left: str
    right: str = ""
    language: str = "python"
    version: str | None = None
    shape: Shape | None = None
    floor: str = "off"

    @staticmethod
    def of(value: Hole | Mapping[str, Any] | Sequence[str]) -> Hole:
        """Return a hole from a mapping with its keys, or from the two texts alone.

        Raises HoleError if it is neither, or a key is unknown or of another type; the message names the key.
        """
        if isinstance(value, Hole):
            return value
        if isinstance(value, Mapping):
            return _from_mapping(value)
        given: object = value
        if isinstance(given, Sequence) and not isinstance(given, str) and len(given) == 2:
            return _from_mapping({"left": given[0], "right": given[1]})
        raise HoleError(f"a hole is a mapping with {', '.join(KEYS)}, not {type(value).__name__}")

    @staticmethod
    def from_json(text: str) -> Hole:
        """Return a hole from a JSON object with the same keys. Raises HoleError."""
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise HoleError(f"the hole is no JSON: {error}") from None
        if not isinstance(value, dict):
            raise HoleError(f"the hole is a JSON object with {', '.join(KEYS)}, not {type(value).__name__}")
        return _from_mapping(value)

    def open(self, seconds: float = OPEN_SECONDS, holding: int = OPEN_BYTES) -> Session:
        """Return the session of the two texts.

        Raises HoleError if no program has the two texts, the language, version or shape is unknown, or reading them
        took more than ``seconds`` or ``holding`` bytes of memory.
        """
        try:
            language = Language.load(self.language, self.version)
            with Stop(within=seconds, holding=holding):
                session = language.open(self.left, self.right).floored(self.floor)
                if session.guarantee == "none":
                    said = session.diagnostics[0] if session.diagnostics else "they do not parse"
                    raise HoleError(f"nothing fits between left and right: {said}")
                if self.shape is not None and not has_shaped_middle(session, self.shape):
                    raise HoleError("shape: no text of this shape fits between left and right")
        except StoppedError:
            raise HoleError(f"reading left and right took over {seconds:g} s or {holding / 1e6:g} MB") from None
        except LimitError as error:
            raise HoleError(f"left and right cannot be read: {error}") from error
        except LanguageError as error:
            raise HoleError(str(error)) from error
        except ValueError as error:
            raise error if isinstance(error, HoleError) else HoleError(f"shape: {error}") from error
        return session


def has_shaped_middle(session: Session, shape: Shape) -> bool:
    """Return whether a middle of a shape can begin at all. Raises ValueError for a shape that is not understood."""
    alphabet = _bytes()
    words = np.zeros(word_count(alphabet.size), dtype=np.uint32)
    session.matcher(alphabet, shape=shape).fill_mask_plain(words)
    return bool(words.any())


@cache
def _bytes() -> Vocabulary:
    return Vocabulary([*(bytes([byte]) for byte in range(256)), None], [256])


def is_hole(grammar: object) -> bool:
    """Return whether a request's grammar is one of this engine's."""
    return isinstance(grammar, str) and grammar.startswith(PREFIX)


def hole_of(grammar: str) -> Hole:
    """Return the hole that a grammar of this engine describes. Raises HoleError."""
    return Hole.from_json(grammar.removeprefix(PREFIX))


def _from_mapping(value: Mapping[str, Any]) -> Hole:
    unknown = [key for key in value if key not in KEYS]
    if unknown:
        raise HoleError(f"{unknown[0]}: no key of a hole; there are {', '.join(KEYS)}")
    if "left" not in value:
        raise HoleError("left: missing")
    for key in ("left", "right", "language", "floor"):
        if not isinstance(value.get(key, ""), str):
            raise HoleError(f"{key}: a string expected, not {type(value[key]).__name__}")
    version = value.get("version")
    if not isinstance(version, str | None):
        raise HoleError(f"version: a string expected, not {type(version).__name__}")
    floor = value.get("floor", "off")
    if floor not in FLOORS:
        raise HoleError(f"floor: one of {', '.join(FLOORS)} expected, not {floor}")
    return Hole(
        left=value["left"],
        right=value.get("right", ""),
        language=value.get("language", "python"),
        version=version,
        shape=_shape(value.get("shape")),
        floor=floor,
    )


def _shape(value: object) -> Shape | None:
    """Return a shape from `{"lines": n}` or `{"regex": "..."}`. Raises HoleError."""
    if isinstance(value, Shape | None):
        return value
    match value:
        case {"lines": int(most), **rest} if not rest and not isinstance(most, bool) and 1 <= most <= 16:
            return Shape.lines(most)
        case {"regex": str(pattern), **rest} if not rest:
            return Shape.regex(pattern)
        case _:
            raise HoleError('shape: {"lines": 1 to 16} or {"regex": "..."} expected')
