"""Tokenizers and layouts of prompt families."""

from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from fim_server.models.prompt import BoundFormat, find_format
from fim_server.tokens.formats import Format, Kind, known_formats

FAMILIES = {row.family: row for row in known_formats()}


def wrap(backend: Tokenizer, **settings: str) -> Any:
    make: Any = PreTrainedTokenizerFast
    return make(tokenizer_object=backend, **settings)


def tokenizer_with(tokens: list[str]) -> Any:
    """A byte-level tokenizer of 256 bytes and the given special tokens."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    backend = Tokenizer(models.BPE(vocab={character: i for i, character in enumerate(alphabet)}, merges=[]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in dict.fromkeys(tokens)])
    return wrap(backend)


def bound_to(row: Format) -> BoundFormat:
    """A model of the row's family with all tokens of the row."""
    names = row.known_by.names if row.known_by else ()
    others = row.repository.tokens if row.repository else []
    return find_format(tokenizer_with([*row.tokens, *others]), "model", Kind(names))


def layout(bound: BoundFormat, prompt: list[int]) -> str:
    return bound.tokenizer.decode(prompt)  # type: ignore[attr-defined,no-any-return]
