"""Decoding of one token between two others, as the decoder of a `tokenizer.json` does it."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from fim_server.errors import VocabularyError

BLANK = "\u2581"
"""SentencePiece's visible blank."""

BYTE_PIECE = re.compile("<0x[0-9A-Fa-f]{2}>")


def piece_decoder(content: dict[str, Any]) -> Callable[[str], bytes]:
    """Return a function from a token between two others to its bytes; raise VocabularyError for an unknown decoder.

    The rules are those of the `tokenizers` library's decoders. A decoder that joins the tokens (`Fuse`) leaves the text
    as a whole to those after it, which strip only its ends, and these lie outside a middle.
    """
    steps = list(parts(content, "decoder", "decoders"))
    if not steps:
        steps = implied_steps(content)
    if any(step.get("type") == "ByteLevel" for step in steps):
        if len([step for step in steps if step.get("type") != "Fuse"]) > 1:
            raise VocabularyError("its decoder has more to do than byte-level characters")
        return byte_level
    if content["model"].get("byte_fallback"):
        steps = [{"type": "ByteFallback"}, *steps]  # the model writes its bytes so, whatever the decoder makes of them
    return sentence_piece(steps)


def implied_steps(content: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the decoder of a file without one: it undoes the pre-tokenizer or normaliser."""
    undone = [*parts(content, "pre_tokenizer", "pretokenizers"), *parts(content, "normalizer", "normalizers")]
    kinds = [part.get("type") for part in undone]
    if "ByteLevel" in kinds:
        return [{"type": "ByteLevel"}]
    if "Metaspace" in kinds or any(part.get("content") == BLANK for part in undone):
        return [{"type": "Metaspace", "replacement": BLANK}]
    raise VocabularyError("it has no decoder: the bytes of its tokens are unknown")


def parts(content: dict[str, Any], key: str, inner: str) -> Iterator[dict[str, Any]]:
    """Yield the parts of a decoder, pre-tokenizer or normaliser in order, without the sequences that hold them."""
    waiting = [content.get(key)]
    while waiting:
        part = waiting.pop()
        if part is None:
            continue
        if not isinstance(part, dict):
            raise VocabularyError(f"its {key} is no object")
        held = part.get(inner)
        if held is None:
            yield part
        elif isinstance(held, list):
            waiting += reversed(held)
        else:
            raise VocabularyError(f"its {key} holds no list")


def byte_codes() -> dict[int, str]:
    """Return byte-level BPE's alphabet: printable Latin-1 stands for itself, other bytes for U+0100 and up, in order.

    A character outside the alphabet maps to one that is not Latin-1, so that encoding it as such fails.
    """
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = [byte for byte in range(256) if byte not in printable]
    table = {code: chr(code) if code in printable else "\uffff" for code in range(256)}
    table.update({0x100 + index: chr(byte) for index, byte in enumerate(others)})
    return table


BYTE_CODES = byte_codes()


def byte_level(piece: str) -> bytes:
    try:
        return piece.translate(BYTE_CODES).encode("latin-1")
    except UnicodeEncodeError:
        return piece.encode()  # as the decoder does it; runs of blanks among the added tokens are written so


def sentence_piece(steps: list[dict[str, Any]]) -> Callable[[str], bytes]:
    replaced: list[tuple[str, str]] = []
    stripped: list[tuple[str, int, int]] = []
    bytes_too = fused = False
    for step in steps:
        match step:
            case {"type": "Replace", "pattern": {"String": str(pattern)}, "content": str(text)} if pattern:
                replaced.append((pattern, text))
            case {"type": "Metaspace", "replacement": str(pattern)} if pattern:
                replaced.append((pattern, " "))
            case {"type": "ByteFallback"}:
                bytes_too = True
            case {"type": "Fuse"}:
                fused = True
            case {"type": "Strip", "content": str(text), "start": int(start), "stop": int(stop)} if len(text) == 1:
                if not fused:
                    stripped.append((text, start, stop))
            case _:
                raise VocabularyError(f"its decoder is not understood: {json.dumps(step):.120}")

    def decode(piece: str) -> bytes:
        if bytes_too and BYTE_PIECE.fullmatch(piece):
            return bytes([int(piece[3:5], 16)])
        for pattern, text in replaced:
            piece = piece.replace(pattern, text)
        for character, start, stop in stripped:
            piece = strip_piece(piece, character, start, stop)
        return piece.encode()

    return decode


def strip_piece(piece: str, character: str, start: int, stop: int) -> str:
    """Return a piece without up to ``start`` and ``stop`` of a character at its ends."""
    first = min(start, len(piece) - len(piece.lstrip(character)))
    last = min(stop, len(piece) - len(piece.rstrip(character)))
    return piece[first : max(first, len(piece) - last)]
