"""Reading of a `tokenizer.json`: its tokens as byte strings, and a form that encodes texts inside of others.

:meth:`fim_server.tokens.vocabulary.Vocabulary.from_file` tells which tokens are text.
"""

import json
from collections.abc import Collection, Iterator
from typing import Any

from fim_server.errors import VocabularyError
from fim_server.tokens.formats import known_formats
from fim_server.tokens.piece_decoder import BLANK, parts, piece_decoder

MAX_TOKENS = 1 << 22
"""Longest mask of a vocabulary read from a file, in tokens: 16 times the largest vocabulary there is (262k). Ids are
checked against it before any allocation, because one wrong number in a file would ask for terabytes."""

MOST_TOKEN_BYTES = 1 << 16
"""Most bytes of a token. The longest real ones, runs of blanks, have a few hundred. Token tables hold every token's
bytes in every state."""

MOST_TEXT_BYTES = 1 << 22
"""Most bytes of all tokens of a vocabulary; the largest known one (262k tokens) has half as many. So many take 200 MB,
and their token table takes a minute or two."""

END_NAMES = ("<|endoftext|>", "<|end_of_text|>", "<｜end▁of▁sentence｜>", "</s>", "<EOT>", "<|eot_id|>", "<eos>")
"""Names that tokenizers give to the token that ends a text; a model family's own list comes with its FIM format."""

RESERVED_NAMES = frozenset({"<unk>", "<s>", "</s>", "<pad>"})
"""SentencePiece's names of control pieces; they count only where a file has no list of added tokens."""


def read_tokens(definition: bytes) -> tuple[list[bytes | None], list[int]]:
    """Return the tokens of a `tokenizer.json`: byte strings by id, None for no text, and the ids that end a text.

    Raises:
        VocabularyError: The file is of an unknown kind, or has impossible ids.
        ValueError: It is no JSON.
        RecursionError: It is nested too deeply.
    """
    content = json.loads(definition)
    pieces, control, ends = pieces_of(content)
    decode = piece_decoder(content)
    texts = {token: decode(piece) for token, piece in pieces.items() if piece not in control}
    return [texts.get(token) for token in range(max(pieces, default=-1) + 1)], ends


def sized(texts: list[bytes | None], size: int | None) -> list[bytes | None]:
    """Return byte strings by id, in a list as long as a mask; None: with one place for each id.

    Raises VocabularyError if the size is impossible, or there is text beyond it.
    """
    if size is None:
        return texts
    if not 0 < size <= MAX_TOKENS:
        raise VocabularyError(f"a mask of {size} tokens: not from 1 to {MAX_TOKENS}")
    beyond = next((token for token in range(size, len(texts)) if texts[token]), None)
    if beyond is not None:
        raise VocabularyError(f"token {beyond} is text and lies beyond the {size} tokens of the mask")
    return texts[:size] + [None] * (size - len(texts))


def check_lengths(lengths: Collection[int]) -> None:
    """Raise VocabularyError if one of some lengths in bytes, or their sum, is too large."""
    longest, total = max(lengths, default=0), sum(lengths)
    if longest > MOST_TOKEN_BYTES:
        raise VocabularyError(f"a token of {longest} bytes: not more than {MOST_TOKEN_BYTES}")
    if total > MOST_TEXT_BYTES:
        raise VocabularyError(f"tokens of {total} bytes together: not more than {MOST_TEXT_BYTES}")


def pieces_of(content: Any) -> tuple[dict[int, str], set[str], list[int]]:
    """Return pieces by id, the control pieces among them, and the ids of those that end a text by their names."""
    model = content.get("model") if isinstance(content, dict) else None
    if not isinstance(model, dict):
        raise VocabularyError("this is not a tokenizer.json: it has no object named 'model'")
    check_kind(model)
    pieces: dict[int, str] = {}
    for piece, token in model_pieces(model):
        add_piece(pieces, token, piece)
    added = content.get("added_tokens") or []
    if not isinstance(added, list) or not all(isinstance(token, dict) for token in added):
        raise VocabularyError("'added_tokens' is no list of objects")
    formats = {name for known in known_formats() for name in known.tokens}
    formats |= {name for known in known_formats() if known.repository for name in known.repository.tokens}
    control = {model["unk_token"]} if isinstance(model.get("unk_token"), str) else set()
    if isinstance(model.get("unk_id"), int):
        control.update(piece for piece in [pieces.get(model["unk_id"])] if piece is not None)
    if not added:
        control |= RESERVED_NAMES
    names: dict[str, int] = {}
    for token in added:
        name = token.get("content")
        add_piece(pieces, token.get("id"), name)
        names[name] = token["id"]
        if token.get("special") or name in formats:
            control.add(name)
    if not added:
        names = {piece: token for token, piece in pieces.items() if piece in control}
    return pieces, control, [names[name] for name in END_NAMES if name in names]


def check_kind(model: dict[str, Any]) -> None:
    """Raise VocabularyError for models whose pieces do not tell where blanks were."""
    kind = model.get("type")
    if kind is None and "max_input_chars_per_word" in model:
        kind = "WordPiece"  # old files name no type; the `tokenizers` library tells them apart like this, too
    if kind not in (None, "BPE", "Unigram"):
        raise VocabularyError(f"a tokenizer of the kind {kind!r}: its tokens are words of unknown bytes")
    for name in ("continuing_subword_prefix", "end_of_word_suffix"):
        if model.get(name):
            raise VocabularyError(f"its model has a {name} ({model[name]!r}): the bytes of its tokens are unknown")


def model_pieces(model: dict[str, Any]) -> Iterator[tuple[Any, Any]]:
    """Yield pieces and ids of the model: from a list of pairs with scores (Unigram), or an object (BPE)."""
    vocab = model.get("vocab")
    if isinstance(vocab, dict):
        yield from vocab.items()
    elif isinstance(vocab, list) and all(isinstance(entry, list) and entry for entry in vocab):
        yield from ((entry[0], index) for index, entry in enumerate(vocab))
    else:
        raise VocabularyError(f"tokenizer model {model.get('type')!r} has no vocabulary that is understood")


def add_piece(pieces: dict[int, str], token: Any, piece: Any) -> None:
    """Enter a piece under its id. Raises VocabularyError if either has a wrong type, or the id has another piece."""
    if not isinstance(piece, str):
        raise VocabularyError(f"a token that is no string: {piece!r:.60}")
    if not isinstance(token, int) or isinstance(token, bool):
        raise VocabularyError(f"the id of {piece!r:.60} is no integer: {token!r:.60}")
    if not 0 <= token < MAX_TOKENS:
        raise VocabularyError(f"the id of {piece!r:.60} is not from 0 to {MAX_TOKENS - 1}: {token}")
    if pieces.setdefault(token, piece) != piece:
        raise VocabularyError(f"two tokens have the id {token}: {pieces[token]!r:.60} and {piece!r:.60}")


def for_middles(content: dict[str, Any], control: set[int]) -> dict[str, Any]:
    """Return a tokenizer's definition, changed so that it encodes a text as if it stood in the middle of another.

    It puts no blank in front, cuts off and drops nothing, and leaves a text as it is except for its blanks. Tokens of
    `control` are marked special, so that their names can be passed over.
    """
    blanks = [
        part
        for part in parts(content, "normalizer", "normalizers")
        if part.get("type") == "Replace" and part.get("content") == BLANK
    ]
    first = list(parts(content, "pre_tokenizer", "pretokenizers"))
    for part in first:
        if part.get("type") == "ByteLevel":
            part["add_prefix_space"] = False
        elif part.get("type") == "Metaspace":
            part.pop("add_prefix_space", None)
            part["prepend_scheme"] = "never"
    for token in content.get("added_tokens") or []:
        token["special"] = token["id"] in control
    return {
        **content,
        "model": {**content["model"], "dropout": None} if "dropout" in content["model"] else content["model"],
        "normalizer": {"type": "Sequence", "normalizers": blanks} if blanks else None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": first} if first else None,
        "post_processor": None,
        "truncation": None,
        "padding": None,
    }
