"""Spelling of a language, for code outside the engine: data of its TOML file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from fim_server.errors import LanguageError
from fim_server.language.definition.defining import NOTHING_DEFINED, Defining


@dataclass(frozen=True)
class Spelling:
    """Texts of a language, each a key of its TOML file.

    Attributes:
        placeholder: Text that stands for a name or a value; empty if the language has none.
        brackets: Opening and closing ones, pairwise.
        closers: Characters that editors put right of the cursor when their partner is typed. By default those of
            closing brackets and of quotes.
        operators: Characters that want another operand.
        comments: Beginnings of comments.
        defining: Lines that define a name.
        block_opener: End of a line that opens a block; empty if none does.
        step: Columns by which a block is indented, if a document does not show it.
        stand_ins: Lines that may stand for a left-out one.
        joints: Texts that may have to stand between two others.
        headers: The same on a line of their own.
        surroundings: Pairs of lines that may stand above and below a part of a file so that it parses alone, each of
            them empty if nothing has to stand there.
        closes: What closes in a file of a definition with the guarantee `balanced`, in words.
        whole_files: A file is judged whole or not at all: no line is left out.
    """

    placeholder: str = ""
    brackets: tuple[tuple[str, str], ...] = ()
    closers: frozenset[str] = frozenset()
    operators: frozenset[str] = frozenset()
    comments: tuple[str, ...] = ()
    defining: Defining = NOTHING_DEFINED
    block_opener: str = ""
    step: int = 0
    stand_ins: tuple[str, ...] = ()
    joints: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    surroundings: tuple[tuple[str, str], ...] = ()
    closes: str = "brackets, strings and comments"
    whole_files: bool = False

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> Self:
        """Read the spelling from a TOML file's keys, which have been checked."""
        recovery, layout = spec.get("recovery", {}), spec.get("layout", {})
        brackets = tuple((opening, closing) for opening, closing in spec.get("brackets", []))
        written = "".join(closing for _, closing in brackets) + "".join(spec.get("quotes", []))
        return cls(
            placeholder=spec.get("placeholder", ""),
            brackets=brackets,
            closers=frozenset(spec.get("closers", written)),
            operators=frozenset(spec.get("operators", "")),
            comments=(
                *(comment["prefix"] for comment in spec.get("comments", ())),
                *texts(spec, "line_comments"),
            ),
            defining=Defining.from_spec(spec),
            block_opener=layout.get("block_opener", ""),
            step=layout.get("step", 0),
            stand_ins=tuple(recovery.get("stand_ins", ())),
            joints=tuple(recovery.get("joints", ())),
            headers=tuple(recovery.get("headers", ())),
            surroundings=surroundings_of(spec),
            closes=text(spec, "closes", cls.closes),
        )


def texts(spec: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """Return the texts of an optional key of a TOML file.

    Raises LanguageError if the key holds something else.
    """
    found = spec.get(key, [])
    if not isinstance(found, list) or not all(isinstance(text, str) and text for text in found):
        raise LanguageError(f"language {spec.get('name')}: {key}: expected a list of texts")
    return tuple(found)


def text(spec: Mapping[str, Any], key: str, default: str) -> str:
    """Return the text of an optional key of a TOML file. Raises LanguageError if the key holds something else."""
    found = spec.get(key, default)
    if not isinstance(found, str) or not found:
        raise LanguageError(f"language {spec.get('name')}: {key}: expected a text")
    return found


def surroundings_of(spec: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return the key `surroundings` of a TOML file.

    Raises LanguageError if the key holds something else than pairs of lines.
    """
    found = spec.get("surroundings", [])
    if not isinstance(found, list) or not all(is_pair_of_lines(pair) for pair in found):
        raise LanguageError(f"language {spec.get('name')}: surroundings: expected a list of pairs of lines")
    return tuple((above, below) for above, below in found)


def is_pair_of_lines(value: Any) -> bool:
    is_pair = isinstance(value, list) and len(value) == 2
    return is_pair and all(isinstance(line, str) and "\n" not in line for line in value)
