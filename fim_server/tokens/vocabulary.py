"""Vocabularies: a model's tokens as byte strings, and texts as a model's tokens."""

import json
import operator
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

from fim_server import _core
from fim_server.errors import VocabularyError
from fim_server.language.cache import cache_folder
from fim_server.tokens.formats import known_formats

MAX_TOKENS = 1 << 22
"""Longest mask of a vocabulary read from a file, in tokens: 16 times the largest vocabulary there is (262k). Ids are
checked against it before anything is allocated, because one wrong number in a file would ask for terabytes."""

# Names that tokenizers give to the token that ends a text; a model family's own list comes with its FIM format.
_END_NAMES = ("<|endoftext|>", "<|end_of_text|>", "<｜end▁of▁sentence｜>", "</s>", "<EOT>", "<|eot_id|>", "<eos>")

# SentencePiece's own names of control pieces; they count only where a file has no list of added tokens to say it.
_RESERVED_NAMES = frozenset({"<unk>", "<s>", "</s>", "<pad>"})

_BLANK = "\u2581"
"""SentencePiece's visible blank."""

_BYTE_PIECE = re.compile("<0x[0-9A-Fa-f]{2}>")


class Vocabulary:
    """A model's vocabulary. Immutable and shared by all matchers.

    Tokens with equal bytes are all allowed or all refused. A token without bytes (a control token, a hole in the ids,
    an id that only pads the model) is never allowed, but for end tokens where the middle is complete.

    Attributes:
        size: The length of a mask, in tokens.
        end_token_ids: Tokens that end the middle; allowed iff it is complete.
    """

    def __init__(
        self, tokens: list[bytes | None], end_token_ids: Iterable[int], *, definition: bytes | None = None
    ) -> None:
        """Builds the trie of token bytes.

        Args:
            tokens: Byte strings by token id; None or empty for control tokens and holes, which are never allowed.
            end_token_ids: Tokens that end the middle. Whatever bytes they have do not count.
            definition: The `tokenizer.json` that has these tokens, for `encode`.

        Raises:
            VocabularyError: No tokens, a token that is no byte string, or an end token outside them.
        """
        if not tokens:
            raise VocabularyError("the vocabulary has no tokens")
        try:
            self.end_token_ids = sorted({operator.index(token) for token in end_token_ids})
            self.core = _core.Vocabulary(tokens, self.end_token_ids, cache_folder())
        except (ValueError, TypeError, OverflowError) as error:
            raise VocabularyError(" ".join(str(error).split())) from error
        self.size = len(tokens)
        self._definition = definition

    @staticmethod
    def from_tokenizer(
        tokenizer: Any, *, size: int | None = None, end_token_ids: Iterable[int] | None = None
    ) -> "Vocabulary":
        """Reads a transformers tokenizer (a fast one). See `from_file` for which of its tokens are text.

        Args:
            tokenizer: The tokenizer.
            size: Length of a mask: the number of the model's logits, where it differs from the tokenizer's ids.
            end_token_ids: Tokens that end the middle; default: the tokenizer's end-of-text token.

        Raises:
            VocabularyError: The tokenizer is not backed by the `tokenizers` library, or of an unknown kind.
        """
        name = type(tokenizer).__name__
        backend = getattr(tokenizer, "backend_tokenizer", None)
        if backend is None:
            raise VocabularyError(f"{name} is not a fast tokenizer: its token bytes are unknown")
        if end_token_ids is None and tokenizer.eos_token_id is not None:
            end_token_ids = [tokenizer.eos_token_id]
        return _read(backend.to_str().encode(), name, size, end_token_ids)

    @staticmethod
    def from_file(
        path: str | PathLike[str], *, size: int | None = None, end_token_ids: Iterable[int] | None = None
    ) -> "Vocabulary":
        """Reads a `tokenizer.json` of byte-level BPE or of SentencePiece's kind (BPE or Unigram).

        A token's bytes are what the file's own decoder makes of it in the middle of a text: byte-level characters, `▁`
        for a blank, `<0x0A>` for a byte. What the decoder does at the ends of a text (stripping the blank that was put
        before it) does not concern a middle.

        Which tokens are text is what the file says, not what they look like: `<div>` is a token like any other. An
        added token is text unless it is `special`, since decoding leaves out those that are, and writes the others
        verbatim (runs of blanks, `<think>`): a text with it is one that the model can write, and refusing it would
        refuse more than the grammar does. There is one exception, because some files (Qwen's) do not mark their control
        tokens of filling in the middle as special: added tokens that a known prompt format names (`formats.toml`) are
        never text. Nor is the model's unknown token, which stands for a text that is lost. Where a file has no added
        tokens at all, SentencePiece's reserved names (`<unk>`, `<s>`, `</s>`, `<pad>`) are control tokens.

        Args:
            path: The file.
            size: Length of a mask: the number of the model's logits, where it differs from the tokenizer's ids. Ids
                beyond the tokenizer's are never allowed; ids beyond `size` may be of control tokens only.
            end_token_ids: Tokens that end the middle; default: the file's end-of-text token.

        Raises:
            VocabularyError: The file cannot be read, is of an unknown kind, has impossible ids, or has text beyond
                `size`; the message names the file.
        """
        try:
            definition = Path(path).read_bytes()
        except (OSError, ValueError) as error:
            raise VocabularyError(f"{path}: {error}") from error
        return _read(definition, str(path), size, end_token_ids)

    def token_bytes(self, token_id: int) -> bytes:
        """A token's bytes; empty for control tokens, end tokens and holes.

        Raises:
            ValueError: The token is outside the vocabulary.
        """
        return self.core.token_bytes(token_id)

    def encode(self, text: str | bytes) -> list[int]:
        """The tokens that the model's tokenizer would give for a text in the middle of code.

        No special tokens and no blank are added, and names of control tokens are text like any other. The tokens' bytes
        always join to the text's. The tokenizer's own normaliser is left out but for its visible blanks: where it would
        change the text, no tokens of its own choice could be exact.

        Where there is no tokenizer to ask (a vocabulary made from byte strings), or its tokens are not exact, or the
        text is no UTF-8 (it may begin or end inside a character; the characters around such bytes still go to the
        tokenizer), tokens are chosen from left to right: the longest with which the rest can still be encoded.

        Args:
            text: UTF-8, or any bytes.

        Raises:
            ValueError: The tokens have no such bytes, or a string has no UTF-8 (lone surrogates).
        """
        data = text.encode() if isinstance(text, str) else text
        tokens: list[int] = []
        for part, readable in _utf8_parts(data):
            found = self._ask_tokenizer(part) if readable else None
            tokens += self._longest_tokens(part) if found is None else found
        return tokens

    def longer_tokens(self, start: bytes) -> list[int]:
        """Ids of the text tokens that begin with some bytes and do not end with them, in the order of their bytes."""
        keys, ids = self._sorted
        return ids[bisect_right(keys, start) : bisect_left(keys, start + b"\xff" * (self._lengths[0] + 1))]

    def tokens_towards(self, text: bytes) -> list[int]:
        """Ids of the text tokens with which a text that begins with some bytes can begin: longer ones and parts."""
        parts = (self._ids.get(text[:length]) for length in range(1, len(text) + 1))
        return [token for token in parts if token is not None] + self.longer_tokens(text)

    @property
    def longest_token(self) -> int:
        """Bytes of the longest text token; 0 if there is none."""
        return self._lengths[0]

    def _ask_tokenizer(self, text: bytes) -> list[int] | None:
        """The tokenizer's tokens for a text, if there is a tokenizer and they are exact."""
        if self._tokenizer is None:
            return None
        tokens: list[int] = self._tokenizer.encode(text.decode(), add_special_tokens=False).ids
        joined = b"".join(self.core.token_bytes(token) if token < self.size else b"" for token in tokens)
        return tokens if joined == text else None

    def _longest_tokens(self, text: bytes) -> list[int]:
        """The longest token at each place with which the rest can still be encoded."""
        lengths, ids = self._lengths, self._ids
        chosen = [0] * len(text)  # bytes of the token chosen at each place; 0: from there on, nothing can be encoded
        for start in reversed(range(len(text))):
            for length in lengths:
                end = start + length
                if end <= len(text) and (end == len(text) or chosen[end]) and text[start:end] in ids:
                    chosen[start] = length
                    break
        tokens, at = list[int](), 0
        while at < len(text):
            if not chosen[at]:
                raise ValueError(f"the vocabulary has no tokens for {text[at : at + 20]!r}")
            tokens.append(ids[text[at : at + chosen[at]]])
            at += chosen[at]
        return tokens

    @cached_property
    def _ids(self) -> dict[bytes, int]:
        """The lowest id of each text token's bytes."""
        tokens = {self.core.token_bytes(token): token for token in reversed(range(self.size))}
        tokens.pop(b"", None)
        return tokens

    @cached_property
    def _lengths(self) -> list[int]:
        """The different lengths of text tokens in bytes, longest first; never empty."""
        return sorted({len(token) for token in self._ids}, reverse=True) or [0]

    @cached_property
    def _sorted(self) -> tuple[list[bytes], list[int]]:
        """Text tokens in the order of their bytes, and their ids."""
        keys = sorted(self._ids)
        return keys, [self._ids[key] for key in keys]

    @cached_property
    def _tokenizer(self) -> Any:
        """The tokenizer as `encode` needs it, or None. Made on first use: a large one takes a second."""
        if self._definition is None:
            return None
        from tokenizers import Tokenizer  # needed here alone; checking a file needs no tokenizer

        content = json.loads(self._definition)
        control = {token["id"] for token in content.get("added_tokens") or [] if not self._is_text(token["id"])}
        try:
            tokenizer = Tokenizer.from_str(json.dumps(_for_middles(content, control)))
        except Exception:  # noqa: BLE001  # the library raises nothing narrower for what it cannot read
            return None
        tokenizer.encode_special_tokens = True  # control tokens' names are text
        return tokenizer

    def _is_text(self, token: int) -> bool:
        return token < self.size and bool(self.core.token_bytes(token))


# ---------------------------------------------------------------- reading a tokenizer.json


def _read(definition: bytes, source: str, size: int | None, end_token_ids: Iterable[int] | None) -> Vocabulary:
    """A vocabulary from the text of a tokenizer.json. Every error names the source."""
    try:
        content = json.loads(definition)
        pieces, control, ends = _pieces(content)
        decode = _piece_decoder(content)
        tokens = _sized({token: decode(piece) for token, piece in pieces.items() if piece not in control}, pieces, size)
        return Vocabulary(tokens, ends if end_token_ids is None else end_token_ids, definition=definition)
    except RecursionError as error:
        raise VocabularyError(f"{source}: nested too deeply") from error
    except ValueError as error:
        raise VocabularyError(f"{source}: {error}") from error


def _sized(texts: dict[int, bytes], pieces: dict[int, str], size: int | None) -> list[bytes | None]:
    """Byte strings by id, in a list as long as a mask is to be."""
    count = max(pieces, default=-1) + 1
    if size is None:
        size = count
    elif not 0 < size <= MAX_TOKENS:
        raise VocabularyError(f"a mask of {size} tokens: not from 1 to {MAX_TOKENS}")
    elif beyond := [token for token, text in texts.items() if token >= size and text]:
        raise VocabularyError(f"token {min(beyond)} is text and lies beyond the {size} tokens of the mask")
    return [texts.get(token) for token in range(size)]


def _pieces(content: Any) -> tuple[dict[int, str], set[str], list[int]]:
    """Pieces by id, the control pieces among them, and the ids of those that end a text by their names."""
    model = content.get("model") if isinstance(content, dict) else None
    if not isinstance(model, dict):
        raise VocabularyError("this is not a tokenizer.json: it has no object named 'model'")
    _check_kind(model)
    pieces: dict[int, str] = {}
    for piece, token in _model_pieces(model):
        _add(pieces, token, piece)
    added = content.get("added_tokens") or []
    if not isinstance(added, list) or not all(isinstance(token, dict) for token in added):
        raise VocabularyError("'added_tokens' is no list of objects")
    formats = {name for known in known_formats() for name in known.tokens}
    control = {model["unk_token"]} if isinstance(model.get("unk_token"), str) else set()
    if isinstance(model.get("unk_id"), int):
        control.update(piece for piece in [pieces.get(model["unk_id"])] if piece is not None)
    if not added:
        control |= _RESERVED_NAMES
    names: dict[str, int] = {}
    for token in added:
        name = token.get("content")
        _add(pieces, token.get("id"), name)
        names[name] = token["id"]
        if token.get("special") or name in formats:
            control.add(name)
    if not added:
        names = {piece: token for token, piece in pieces.items() if piece in control}
    return pieces, control, [names[name] for name in _END_NAMES if name in names]


def _check_kind(model: dict[str, Any]) -> None:
    """Refuse models whose pieces do not say where blanks were."""
    kind = model.get("type")
    if kind is None and "max_input_chars_per_word" in model:
        kind = "WordPiece"  # old files name no type; the `tokenizers` library tells them apart like this, too
    if kind not in (None, "BPE", "Unigram"):
        raise VocabularyError(f"a tokenizer of the kind {kind!r}: its tokens are words, and their bytes cannot be told")
    for name in ("continuing_subword_prefix", "end_of_word_suffix"):
        if model.get(name):
            raise VocabularyError(f"its model has a {name} ({model[name]!r}): the bytes of its tokens cannot be told")


def _model_pieces(model: dict[str, Any]) -> Iterator[tuple[Any, Any]]:
    """Pieces and ids as they stand in the model: a list of pairs with scores (Unigram), or an object (BPE)."""
    vocab = model.get("vocab")
    if isinstance(vocab, dict):
        yield from vocab.items()
    elif isinstance(vocab, list) and all(isinstance(entry, list) and entry for entry in vocab):
        yield from ((entry[0], index) for index, entry in enumerate(vocab))
    else:
        raise VocabularyError(f"tokenizer model {model.get('type')!r} has no vocabulary that is understood")


def _add(pieces: dict[int, str], token: Any, piece: Any) -> None:
    if not isinstance(piece, str):
        raise VocabularyError(f"a token that is no string: {piece!r:.60}")
    if not isinstance(token, int) or isinstance(token, bool):
        raise VocabularyError(f"the id of {piece!r:.60} is no integer: {token!r:.60}")
    if not 0 <= token < MAX_TOKENS:
        raise VocabularyError(f"the id of {piece!r:.60} is not from 0 to {MAX_TOKENS - 1}: {token}")
    if pieces.setdefault(token, piece) != piece:
        raise VocabularyError(f"two tokens have the id {token}: {pieces[token]!r:.60} and {piece!r:.60}")


# ---------------------------------------------------------------- what the decoder makes of a token


def _piece_decoder(content: dict[str, Any]) -> Callable[[str], bytes]:
    """What the tokenizer's decoder makes of one token between two others.

    The rules are those of the `tokenizers` library's decoders. A decoder that joins the tokens (`Fuse`) leaves to the
    ones after it the text as a whole: what is stripped then is at its ends, which lie outside a middle.
    """
    steps = list(_parts(content, "decoder", "decoders"))
    if not steps:
        steps = _implied_steps(content)
    if any(step.get("type") == "ByteLevel" for step in steps):
        if len([step for step in steps if step.get("type") != "Fuse"]) > 1:
            raise VocabularyError("its decoder has more to do than byte-level characters")
        return _byte_level
    if content["model"].get("byte_fallback"):
        steps = [{"type": "ByteFallback"}, *steps]  # the model writes its bytes so, whatever the decoder makes of them
    return _sentence_piece(steps)


def _implied_steps(content: dict[str, Any]) -> list[dict[str, Any]]:
    """The decoder of a file that has none: what undoes its pre-tokenizer or normaliser."""
    parts = [*_parts(content, "pre_tokenizer", "pretokenizers"), *_parts(content, "normalizer", "normalizers")]
    kinds = [part.get("type") for part in parts]
    if "ByteLevel" in kinds:
        return [{"type": "ByteLevel"}]
    if "Metaspace" in kinds or any(part.get("content") == _BLANK for part in parts):
        return [{"type": "Metaspace", "replacement": _BLANK}]
    raise VocabularyError("it has no decoder: the bytes of its tokens cannot be told")


def _parts(content: dict[str, Any], key: str, inner: str) -> Iterator[dict[str, Any]]:
    """The parts of a decoder, pre-tokenizer or normaliser in their order, without the sequences that hold them."""
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


def _byte_codes() -> dict[int, str]:
    """Byte-level BPE's alphabet: printable Latin-1 stands for itself, every other byte for U+0100 and up, in order.

    What is outside the alphabet goes to a character that is not Latin-1, so that encoding it as such fails.
    """
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = [byte for byte in range(256) if byte not in printable]
    table = {code: chr(code) if code in printable else "\uffff" for code in range(256)}
    table.update({0x100 + index: chr(byte) for index, byte in enumerate(others)})
    return table


_BYTE_CODES = _byte_codes()


def _byte_level(piece: str) -> bytes:
    try:
        return piece.translate(_BYTE_CODES).encode("latin-1")
    except UnicodeEncodeError:
        return piece.encode()  # as the decoder does it; runs of blanks among the added tokens are written so


def _sentence_piece(steps: list[dict[str, Any]]) -> Callable[[str], bytes]:
    """A decoder of SentencePiece's kind, applied to one piece."""
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
        if bytes_too and _BYTE_PIECE.fullmatch(piece):
            return bytes([int(piece[3:5], 16)])
        for pattern, text in replaced:
            piece = piece.replace(pattern, text)
        for character, start, stop in stripped:
            piece = _strip(piece, character, start, stop)
        return piece.encode()

    return decode


def _strip(piece: str, character: str, start: int, stop: int) -> str:
    """Without up to so many of a character at either end."""
    first = min(start, len(piece) - len(piece.lstrip(character)))
    last = min(stop, len(piece) - len(piece.rstrip(character)))
    return piece[first : max(first, len(piece) - last)]


# ---------------------------------------------------------------- encoding


def _for_middles(content: dict[str, Any], control: set[int]) -> dict[str, Any]:
    """A tokenizer's definition, changed so that it encodes a text as if it stood in the middle of another.

    Nothing is put in front (a blank, a visible blank), nothing is cut off or drawn by lot, and a text stays as it is
    but for its blanks. Tokens of `control` are marked special, to be passed over by name.
    """
    blanks = [
        part
        for part in _parts(content, "normalizer", "normalizers")
        if part.get("type") == "Replace" and part.get("content") == _BLANK
    ]
    first = list(_parts(content, "pre_tokenizer", "pretokenizers"))
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


def _utf8_parts(data: bytes) -> Iterator[tuple[bytes, bool]]:
    """A text's stretches of whole characters, and those of bytes that are none, in their order."""
    while data:
        try:
            data.decode()
        except UnicodeDecodeError as error:
            if error.start:
                yield data[: error.start], True
            # All bytes up to the next that can begin a character are parts of characters.
            end = error.end
            while end < len(data) and 0x80 <= data[end] < 0xC0:
                end += 1
            yield data[error.start : end], False
            data = data[end:]
        else:
            yield data, True
            return
