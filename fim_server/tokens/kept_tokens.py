"""Tokens of a large `tokenizer.json`, kept in the cache folder: reading them anew takes 0.2 s at each start."""

from __future__ import annotations

import copy
import hashlib
import json
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, Self

from fim_server.language.cache import cache_folder, read_text, write_text
from fim_server.tokens.tokenizer_file import for_middles, read_tokens

LEAST_BYTES = 1 << 20
"""Least bytes of a definition whose tokens are kept; a smaller one is read in some 50 ms."""

_READERS = ("formats.toml", "formats.py", "piece_decoder.py", "tokenizer_file.py", "kept_tokens.py")
"""Files that decide how a definition is read."""


@dataclass(frozen=True)
class KeptTokens:
    """Tokens of a `tokenizer.json`.

    Attributes:
        texts: Byte strings by id; None for no text.
        ends: Ids that end a text.
        special: Added tokens, by whether they are special.
        keeps_texts: Whether the definition itself encodes a text as if it stood in the middle of another one.
    """

    texts: list[bytes | None]
    ends: list[int]
    special: dict[int, bool]
    keeps_texts: bool

    @classmethod
    def of(cls, definition: bytes) -> Self:
        """Read a definition, or what an earlier process has kept of it. Raises as :func:`.read_tokens`."""
        folder = cache_folder() if len(definition) >= LEAST_BYTES else None
        if folder is None:
            return cls._read(definition)
        digest = hashlib.sha256(_digest_of_readers() + definition).hexdigest()[:32]
        path = folder / f"tokens-{digest}.json"
        kept = read_text(path)
        if kept is not None:
            try:
                return cls._from_json(json.loads(kept))
            except (AttributeError, KeyError, RecursionError, TypeError, ValueError):  # forged
                pass
        found = cls._read(definition)
        write_text(path, json.dumps(found.as_json()))
        return found

    @classmethod
    def _read(cls, definition: bytes) -> Self:
        texts, ends = read_tokens(definition)
        content = json.loads(definition)
        special = {one["id"]: bool(one.get("special")) for one in content.get("added_tokens") or []}
        return cls(texts, ends, special, keeps_texts(content))

    @classmethod
    def _from_json(cls, kept: dict[str, Any]) -> Self:
        texts = [None if text is None else text.encode("latin-1") for text in kept["texts"]]
        special = {int(token): bool(value) for token, value in kept["special"].items()}
        return cls(texts, [int(token) for token in kept["ends"]], special, bool(kept["keeps_texts"]))

    def as_json(self) -> dict[str, Any]:
        """Return the tokens as the cache folder keeps them."""
        texts = [None if text is None else text.decode("latin-1") for text in self.texts]
        return {**asdict(self), "texts": texts}


def keeps_texts(content: dict[str, Any]) -> bool:
    """Return whether :func:`.for_middles` leaves a definition as it is, up to the kinds of its added tokens."""
    parts = ("normalizer", "pre_tokenizer", "post_processor")
    small = {key: content.get(key) for key in parts}
    small["model"] = {key: value for key, value in content["model"].items() if key not in ("vocab", "merges")}
    changed = for_middles(copy.deepcopy(small), set())
    return all(changed[key] == small[key] for key in small)


@cache
def _digest_of_readers() -> bytes:
    here = Path(__file__).parent
    digest = hashlib.sha256()
    for name in _READERS:
        digest.update(hashlib.sha256((here / name).read_bytes()).digest())
    return digest.digest()
