"""Masks along real files, where most parts of walks are known from other places, equal those of the plain walk."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fim_server.language import Language
from fim_server.tokens import masks
from fim_server.tokens.vocabulary import Vocabulary

ROOT = Path(__file__).parents[2]
CURSORS = 25
"""Cursors in a file."""

STEPS = 4
"""Tokens that are read after a cursor."""

FILES = {
    "python": ("fim_server/language/language.py", "fim_server/suggest/suggestion.py", "fim_server/cli/check.py"),
    "rust": ("rust_core/src/masking/trie.rs", "rust_core/src/bits.rs"),
    "typescript": ("vscode-extension/src/actions.ts", "vscode-extension/src/extension.ts"),
}


@pytest.mark.parametrize("name", FILES)
def test_masks_of_many_stacks_equal_the_plain_walk(name: str) -> None:
    language, vocabulary = Language.load(name), Vocabulary.from_file(ROOT / "fim_server/models/embedded/tokenizer.json")
    words, plain = (np.zeros(-(-vocabulary.size // 32), dtype=np.uint32) for _ in range(2))
    masks.clear(language, vocabulary)
    compared = 0
    for file in FILES[name]:
        text = (ROOT / file).read_bytes().decode()
        for at in range(len(text) // (2 * CURSORS), len(text), len(text) // CURSORS):
            matcher = language.open(text[:at], text[at:]).matcher(vocabulary)
            for token in vocabulary.encode(text[at : at + 40].encode())[:STEPS]:
                matcher.fill_mask(words)
                matcher.fill_mask_plain(plain)
                assert (words == plain).all(), f"{file}, at {at}"
                compared += 1
                if not words[token >> 5] >> (token & 31) & 1:
                    break
                matcher.commit(token)
    assert compared > CURSORS * len(FILES[name])
