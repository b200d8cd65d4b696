"""The embedded model's tokenizer: byte-level BPE, 16k, with FIM and end tokens."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from fim_server.errors import TrainingError

END = "<|endoftext|>"
PREFIX = "<|fim_prefix|>"
SUFFIX = "<|fim_suffix|>"
MIDDLE = "<|fim_middle|>"
PAD = "<|fim_pad|>"
# Their ids are their places here.
SPECIAL_TOKENS = (END, PREFIX, SUFFIX, MIDDLE, PAD)

VOCABULARY_SIZE = 16_384
TOKENIZER_FILE = "tokenizer.json"

# A line break joins the indentation after it, so that a level costs one token; a word takes
# one mark or space before it (`.append`, ` return`, `_name`); digits stand alone.
_SPLIT = r"[\r\n]\s*|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


def train_tokenizer(texts: Sequence[str], vocabulary_size: int = VOCABULARY_SIZE) -> Tokenizer:
    """Learn byte-level BPE merges; every byte has a token, so every text can be encoded."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_SPLIT), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary_size,
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        max_token_length=32,
        show_progress=False,
    )

    def batches() -> Iterator[list[str]]:
        for start in range(0, len(texts), 256):
            yield list(texts[start : start + 256])

    tokenizer.train_from_iterator(batches(), trainer)
    return tokenizer


def load_tokenizer(folder: Path) -> Tokenizer:
    """Load `tokenizer.json`. Raises TrainingError if it is missing or lacks a FIM token."""
    path = folder / TOKENIZER_FILE
    if not path.is_file():
        raise TrainingError(f"{path}: not found; run `tokenizer` first")
    tokenizer = Tokenizer.from_file(str(path))
    for token in SPECIAL_TOKENS:
        token_id(tokenizer, token)
    return tokenizer


def token_id(tokenizer: Tokenizer, token: str) -> int:
    """The id of a special token. Raises TrainingError if the tokenizer lacks it."""
    found = tokenizer.token_to_id(token)
    if found is None:
        raise TrainingError(f"the tokenizer lacks {token}")
    return found


def write_tokenizer(tokenizer: Tokenizer, folder: Path, context: int) -> None:
    """Write `tokenizer.json` and the `tokenizer_config.json` that transformers reads.

    `context`: the longest prompt and answer together, in tokens.
    """
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / TOKENIZER_FILE))
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": context,
        "bos_token": None,
        "eos_token": END,
        "pad_token": PAD,
        "additional_special_tokens": [PREFIX, SUFFIX, MIDDLE],
        "clean_up_tokenization_spaces": False,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=1) + "\n")
