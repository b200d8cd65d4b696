"""Size of a definition, its ambiguous lexemes, and the time in which a text of it opens."""

from __future__ import annotations

import json
import time
from collections import deque
from typing import Any

from fim_server import _core
from fim_server.datasets.judging.cutting import Files, text_of
from fim_server.errors import FimServerError
from fim_server.language import Language
from fim_server.language.definition.compile import Definition, lower

CHARACTERS = 10_000
"""Characters of the texts that are opened."""

OPENED = 40
"""Number of texts that are opened, at their middle."""


def measured(definition: Definition, language: Language, files: Files) -> dict[str, Any]:
    """Return rules, lexemes and states of the lexer, ambiguous lexemes, and the median time in which a text opens."""
    states, symbols, rules = language.core.sizes()
    lowered = lower(definition)
    found: dict[str, Any] = {
        "rules": rules, "symbols": symbols, "lexemes": len(lowered["lexemes"]), "states": states,
        "ambiguous": ambiguous(lowered),
    }  # fmt: skip
    times = []
    for _, path in files.all():
        text = text_of(path)
        if text is None or len(text) < CHARACTERS // 2:
            continue
        text = text[:CHARACTERS]
        at = len(text) // 2
        began = time.perf_counter()
        language.open(text[:at], text[at:])
        times.append((time.perf_counter() - began) * CHARACTERS / len(text))
        if len(times) == OPENED:
            break
    if times:
        found["open_ms"] = round(1000 * sorted(times)[len(times) // 2], 1)
    return found


def ambiguous(lowered: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Return pairs of lexemes of equal rank that match one text, with that text.

    The order in the grammar's file decides between them.

    Args:
        lowered: A definition as the engine takes it.
    """
    lexemes = lowered["lexemes"]
    marks = {mark["name"] for mark in lowered.get("marks", [])}
    # A lexeme that is a keyword and a name as well leaves the next best one in: so all that match are kept.
    every = {**lowered, "soft_keywords": [lexeme["name"] for lexeme in lexemes]}
    try:
        table = json.loads(_core.Language(json.dumps(every)).table())
    except FimServerError:
        return []

    def rank(lexeme: int) -> tuple[bool, int]:
        return "literal" not in lexemes[lexeme], -lexemes[lexeme].get("priority", 0)

    found: dict[tuple[str, str], str] = {}
    for accept, text in _shortest(table).items():
        own = [lexeme for lexeme in table["accept_sets"][accept] if lexemes[lexeme]["name"] not in marks]
        best = sorted(own, key=rank)
        if len(best) > 1 and rank(best[0]) == rank(best[1]):
            pair = lexemes[best[0]]["name"], lexemes[best[1]]["name"]
            found.setdefault(pair, text)
    return sorted((one, other, text) for (one, other), text in found.items())


def _shortest(table: dict[str, Any]) -> dict[int, str]:
    """Return a shortest text of ordinary code for each accept set."""
    classes, count = table["class_of"], table["class_count"]
    byte_of: dict[int, int] = {}
    for byte in [*range(32, 127), *range(32), *range(127, 256)]:  # what is readable first
        byte_of.setdefault(classes[byte], byte)
    texts: dict[int, bytes] = {table["starts"][0]: b""}
    found: dict[int, str] = {}
    open_ = deque(texts)
    while open_:
        state = open_.popleft()
        accept = table["accept"][state]
        if accept and accept not in found:
            found[accept] = texts[state].decode("utf-8", "replace")
        for of_class, byte in byte_of.items():
            after = table["next"][state * count + of_class]
            if after and after not in texts:
                texts[after] = texts[state] + bytes([byte])
                open_.append(after)
    return found
