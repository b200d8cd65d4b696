"""Vocabularies: a model's tokens as byte strings, and texts as a model's tokens."""

from __future__ import annotations

import json
import operator
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any

from fim_server import _core
from fim_server.errors import LimitError, VocabularyError
from fim_server.language.argument_types import expect, expect_count, expect_text, expect_token
from fim_server.language.cache import cache_folder
from fim_server.language.limited_files import read_limited
from fim_server.tokens.kept_tokens import KeptTokens
from fim_server.tokens.tokenizer_file import check_lengths, for_middles, sized

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

UNSETTLED_CHARACTERS, MOST_UNSETTLED = 48, 8
"""Characters of a text to search for its unsettled end, and most tokens of that end: each of them is a forward pass of
a model that writes it again."""

MOST_IDS = 1 << 32
"""Bound of the ids that the engine can count."""

PROBES = ("a", "_", "(", "0")
"""A character of each kind that pre-tokenizers tell apart, without blanks."""


class Vocabulary:
    """Vocabulary of a model. Immutable and shared by all matchers.

    Tokens with equal bytes are all allowed or all refused. A token without bytes (a control token, a hole in the ids,
    an id that only pads the model) is never allowed, except end tokens where the middle is complete.

    Attributes:
        size: Length of a mask, in tokens.
        end_token_ids: Tokens that end the middle; allowed iff it is complete.
    """

    def __init__(
        self,
        tokens: list[bytes | None],
        end_token_ids: Iterable[int],
        *,
        definition: bytes | None = None,
        encoder: Callable[[bytes], Sequence[int]] | None = None,
    ) -> None:
        """Build the trie of token bytes.

        Raises VocabularyError for no tokens, a token that is no byte string, tokens above a limit of
        :mod:`.tokenizer_file`, or an end token outside them.

        Args:
            tokens: Byte strings by token id; None or empty for control tokens and holes, which are never allowed.
            end_token_ids: Tokens that end the middle, whatever their bytes.
            definition: The `tokenizer.json` of these tokens, for `encode`.
            encoder: Instead of it, a function from a text (UTF-8) to its tokens; names of control tokens are text to
                it.
        """
        given: object = tokens
        if isinstance(given, str | bytes | bytearray) or not isinstance(given, Sequence):
            raise TypeError(f"tokens: a list of byte strings expected, not {type(given).__name__}")
        expect("end_token_ids", end_token_ids, Iterable, "token ids")
        expect("definition", definition, bytes | None, "bytes or None")
        if not tokens:
            raise VocabularyError("the vocabulary has no tokens")
        try:
            check_lengths([len(token) for token in tokens if token])
            self.end_token_ids = sorted({whole(token) for token in end_token_ids})
            self.core = _core.Vocabulary(tokens, self.end_token_ids, cache_folder())
        except TypeError as error:
            elements: Sequence[object] = tokens
            odd = next((token for token in elements if not isinstance(token, bytes | None)), None)
            what = str(error) if odd is None else f"tokens: byte strings or None expected, not {type(odd).__name__}"
            raise VocabularyError(what) from error
        except (ValueError, OverflowError) as error:
            raise VocabularyError(" ".join(str(error).split())) from error
        self.size = len(tokens)
        self._definition = definition
        self._encoder = encoder
        self._shared: Any = None
        """Tokenizer that another object has read from the definition, if it encodes texts as `encode` needs it."""

    @staticmethod
    def from_tokenizer(
        tokenizer: Any, *, size: int | None = None, end_token_ids: Iterable[int] | None = None
    ) -> Vocabulary:
        """Read a transformers tokenizer (a fast one). `from_file` tells which of its tokens are text.

        Raises VocabularyError if the tokenizer is not backed by the `tokenizers` library, or of an unknown kind.

        Args:
            tokenizer: The tokenizer.
            size: Length of a mask: the number of the model's logits, if it differs from the tokenizer's ids.
            end_token_ids: Tokens that end the middle; default: the tokenizer's end-of-text token.
        """
        name = type(tokenizer).__name__
        backend = getattr(tokenizer, "backend_tokenizer", None)
        if backend is None:
            raise VocabularyError(f"{name} is not a fast tokenizer: its token bytes are unknown")
        if end_token_ids is None and tokenizer.eos_token_id is not None:
            end_token_ids = [tokenizer.eos_token_id]
        return read_vocabulary(backend.to_str().encode(), name, size, end_token_ids)

    @staticmethod
    def from_file(
        path: str | PathLike[str], *, size: int | None = None, end_token_ids: Iterable[int] | None = None
    ) -> Vocabulary:
        """Read a `tokenizer.json` of byte-level BPE or of SentencePiece's kind (BPE or Unigram).

        The file's own decoder gives a token's bytes in the middle of a text: byte-level characters, `▁` for a blank,
        `<0x0A>` for a byte. The decoder's work at the ends of a text (stripping the blank in front) does not concern a
        middle.

        The file tells which tokens are text, not their look: `<div>` is a token like any other. An added token is text
        unless it is `special`. Decoding leaves out special tokens and writes the others verbatim (runs of blanks,
        `<think>`). So the model can write a text with those, and refusing it would refuse more than the grammar does.

        There is one exception, because some files (Qwen's) do not mark their FIM control tokens as special: added
        tokens that a known prompt format names (`formats.toml`) are never text. Neither is the model's unknown token,
        which stands for a lost text. If a file has no added tokens at all, SentencePiece's reserved names (`<unk>`,
        `<s>`, `</s>`, `<pad>`) are control tokens.

        Raises VocabularyError if the file cannot be read, is of an unknown kind, has impossible ids, or has text beyond
        `size`; the message names the file.

        Args:
            path: The file.
            size: Length of a mask: the number of the model's logits, if it differs from the tokenizer's ids. Ids beyond
                the tokenizer's are never allowed; ids beyond `size` may be of control tokens only.
            end_token_ids: Tokens that end the middle; default: the file's end-of-text token.
        """
        expect("path", path, str | PathLike, "a path")
        if size is not None:
            expect_count("size", size)
        expect("end_token_ids", end_token_ids, Iterable | None, "token ids or None")
        try:
            definition = read_limited(path)
        except (OSError, ValueError, LimitError) as error:
            raise VocabularyError(f"{path}: {error}") from error
        return read_vocabulary(definition, str(path), size, end_token_ids)

    def token_bytes(self, token_id: int) -> bytes:
        """Return a token's bytes; empty for control tokens, end tokens and holes.

        Raises ValueError if the token is outside the vocabulary.
        """
        try:
            return self.core.token_bytes(token_id)
        except (TypeError, OverflowError):
            expect_token("token_id", token_id, self.size)
            raise

    def encode(self, text: str | bytes) -> list[int]:
        """Return the tokens that the model's tokenizer would give for a text in the middle of code.

        It adds no special tokens and no blank, and names of control tokens are text like any other. The tokens' bytes
        always join to the text's. Of the tokenizer's normaliser only the visible blanks are used: where it would change
        the text, no tokens could be exact.

        Without a tokenizer (a vocabulary made from byte strings), or if its tokens are not exact, tokens are chosen
        from left to right. Each is the longest after which the rest can still be encoded. The same holds for bytes of
        the text that are no UTF-8 (it may begin or end inside a character); the characters around them still go to the
        tokenizer.

        Raises ValueError if the tokens have no such bytes, or a string has no UTF-8 (lone surrogates).

        Args:
            text: UTF-8, or any bytes.
        """
        expect("text", text, str | bytes, "a str or bytes")
        data = text.encode() if isinstance(text, str) else text
        tokens: list[int] = []
        for part, readable in utf8_parts(data):
            found = self._ask_tokenizer(part) if readable else None
            tokens += self._longest_tokens(part) if found is None else found
        return tokens

    def unsettled(self, text: str) -> str:
        """Return the end of a text, within its last line or the breaks before it, that the tokenizer may cut otherwise.

        That is the run of characters that its pre-tokenizer would join with some next character: a word with the blank
        before it, signs, or the last of several blanks. Digits and indentations belong to it only where the
        pre-tokenizer joins those. At the beginning of a line the breaks before it do, if it joins breaks with the
        indentation that may follow. A tab belongs to it if the tokens of the tabs before it change with the text after
        it.

        The tokens left of it stay the same whatever follows, except line breaks and more blanks. It is at most the last
        :data:`MOST_UNSETTLED` tokens of the run. Without a pre-tokenizer it is the last token of the line, of blanks
        the last one. It is empty if no end is unsettled, or if the vocabulary lacks it.
        """
        expect_text("text", text)
        line = text[text.rfind("\n") + 1 :][-UNSETTLED_CHARACTERS:]
        if not line:
            return text[len(text.rstrip("\n")) :][-MOST_UNSETTLED:] if self._joins_breaks() else ""
        try:
            # With the line break before it, since an indentation may be cut with that.
            start = self._last_run(text[-len(line) - 1 :])
            if start is None:
                tokens = self.encode(line) if line.strip() else []
                run = self.token_bytes(tokens[-1]).decode() if tokens else ""
                return run[-1:] if run.isspace() else run
            tokens = self.encode(line[max(0, len(line) - start) :] if start else "")
            return b"".join(self.token_bytes(token) for token in tokens[-MOST_UNSETTLED:]).decode()
        except ValueError:  # it begins inside a character, or has one that the vocabulary lacks
            return ""

    def _joins_breaks(self) -> bool:
        """Return whether the pre-tokenizer joins a line break with the indentation after it."""
        if self._encoder is not None:
            return any(b"\n " in self.token_bytes(token) for token in self.encode("a\n    a"))
        tokenizer = self._tokenizer
        if tokenizer is None or tokenizer.pre_tokenizer is None:
            return False
        pieces = tokenizer.pre_tokenizer.pre_tokenize_str("a\n    a")
        return any(start <= 1 and end > 2 for _, (start, end) in pieces)

    def _last_run(self, text: str) -> int | None:
        """Return how many characters at a text's end the pre-tokenizer joins with some next one; None without it."""
        if self._encoder is not None:
            return self._last_joined(text)
        tokenizer = self._tokenizer
        if tokenizer is None or tokenizer.pre_tokenizer is None:
            return None
        longest = 0
        for probe in PROBES:
            pieces = self._pieces(text + probe)
            start: int = pieces.pop()[0]
            # The last of several blanks may become a piece of its own as soon as text follows.
            while start > 0 and self._pieces(text[:start]) != pieces:
                start = pieces.pop()[0] if pieces else 0
            longest = max(longest, len(text) - start)
        return longest

    def _pieces(self, text: str) -> list[tuple[int, int]]:
        """Return where the pre-tokenizer's pieces of a text begin and end, in characters."""
        tokenizer = self._tokenizer
        if tokenizer.normalizer is not None:
            text = tokenizer.normalizer.normalize_str(text)
        return [piece[1] for piece in tokenizer.pre_tokenizer.pre_tokenize_str(text)]

    def _last_joined(self, text: str) -> int:
        """Return the same by an encoder alone, which does not tell how it splits.

        The characters that it joins with a next one show in its tokens. A word may be cut anywhere within. So it counts
        as most pre-tokenizers take it: letters, digits and other signs each by themselves, with a blank before them.
        """
        longest = 0
        for probe in PROBES:
            joined = len(self.token_bytes(self.encode(text + probe)[-1])) - len(probe)
            longest = max(longest, len(text.encode()[-joined:].decode(errors="ignore")) if joined > 0 else 0)
        kind = kind_of(text[-1:])
        if kind == "blank":
            return self._last_unlike(text, longest) if text.endswith("\t") else longest
        if kind == "digit" and len(self.encode("10")) > 1:
            return longest
        start = len(text)
        while start and kind_of(text[start - 1]) == kind:
            start -= 1
        if text[:start].endswith(" ") and len(self.encode(" a")) == 1:
            start -= 1
        return max(longest, len(text) - start)

    def _last_unlike(self, text: str, least: int) -> int:
        """Return how many of the blanks at a text's end, ``least`` or more, change their tokens when text follows."""
        blanks = len(text) - len(text.rstrip())
        followed = [self.encode(text + probe) for probe in PROBES]
        for count in range(least, blanks):
            settled = self.encode(text[: len(text) - count])
            if all(tokens[: len(settled)] == settled for tokens in followed):
                return count
        return max(least, blanks)

    def longer_tokens(self, start: bytes) -> list[int]:
        """Return the ids of longer text tokens that begin with some bytes, in the order of their bytes."""
        expect("start", start, bytes, "bytes")
        keys, ids = self._sorted
        return ids[bisect_right(keys, start) : bisect_left(keys, start + b"\xff" * (self._lengths[0] + 1))]

    def tokens_towards(self, text: bytes) -> list[int]:
        """Return the ids of text tokens that can begin a text with such a beginning: parts of it and longer ones."""
        expect("text", text, bytes, "bytes")
        parts = (self._ids.get(text[:length]) for length in range(1, len(text) + 1))
        return [token for token in parts if token is not None] + self.longer_tokens(text)

    def towards(self, text: bytes, size: int) -> NDArray[np.intp]:
        """Return :meth:`tokens_towards` as an array [N], without the ids that a model of ``size`` tokens lacks.

        After a blank it holds a third of a vocabulary, and a run needs it several times for each token.
        """
        expect("text", text, bytes, "bytes")
        import numpy as np  # needed beside a model alone

        keys = self._sorted[0]
        longer = self._sorted_ids[bisect_right(keys, text) : bisect_left(keys, text + b"\xff" * (self._lengths[0] + 1))]
        parts = (self._ids.get(text[:length]) for length in range(1, len(text) + 1))
        found = np.concatenate([np.array([token for token in parts if token is not None], dtype=np.intp), longer])
        return found[found < size]

    def token_at(self, text: bytes) -> int | None:
        """Return the longest text token that a text begins with; None if there is none."""
        expect("text", text, bytes, "bytes")
        return next((self._ids[text[:n]] for n in self._lengths if n <= len(text) and text[:n] in self._ids), None)

    @property
    def longest_token(self) -> int:
        """Return the bytes of the longest text token; 0 if there is none."""
        return self._lengths[0]

    def _ask_tokenizer(self, text: bytes) -> list[int] | None:
        """Return the tokenizer's tokens for a text; None without a tokenizer or if they are not exact."""
        tokens: Sequence[int]
        if self._encoder is not None:
            tokens = self._encoder(text)
        elif self._tokenizer is not None:
            tokens = self._tokenizer.encode(text.decode(), add_special_tokens=False).ids
        else:
            return None
        joined = b"".join(self.core.token_bytes(token) if token < self.size else b"" for token in tokens)
        return list(tokens) if joined == text else None

    def _longest_tokens(self, text: bytes) -> list[int]:
        """Return the longest token at each place after which the rest can still be encoded."""
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
        """Lowest id of each text token's bytes."""
        tokens = {self.core.token_bytes(token): token for token in reversed(range(self.size))}
        tokens.pop(b"", None)
        return tokens

    @cached_property
    def _lengths(self) -> list[int]:
        """Different lengths of text tokens in bytes, longest first; never empty."""
        return sorted({len(token) for token in self._ids}, reverse=True) or [0]

    @cached_property
    def _sorted(self) -> tuple[list[bytes], list[int]]:
        """Text tokens in the order of their bytes, and their ids."""
        keys = sorted(self._ids)
        return keys, [self._ids[key] for key in keys]

    @cached_property
    def _sorted_ids(self) -> NDArray[np.intp]:
        import numpy as np

        return np.array(self._sorted[1], dtype=np.intp)

    @cached_property
    def _tokenizer(self) -> Any:
        """Tokenizer as `encode` needs it, or None. Made on first use: a large one takes a second."""
        if self._definition is None:
            return None
        if self._shared is not None:
            return self._shared
        from tokenizers import Tokenizer  # needed here alone; checking a file needs no tokenizer

        content = json.loads(self._definition)
        control = {token["id"] for token in content.get("added_tokens") or [] if not self._is_text(token["id"])}
        try:
            tokenizer = Tokenizer.from_str(json.dumps(for_middles(content, control)))
        except Exception:  # noqa: BLE001  # the library raises nothing narrower for what it cannot read
            return None
        tokenizer.encode_special_tokens = True  # control tokens' names are text
        return tokenizer

    def share(self, tokenizer: Any, special: Mapping[int, bool]) -> None:
        """Encode by a tokenizer that another object uses too, if exactly its special tokens are no text.

        ``special``: its added tokens, by whether they are special. Its definition needs no change for `encode`.
        """
        if all(is_special is not self._is_text(token) for token, is_special in special.items()):
            self._shared = tokenizer

    def _is_text(self, token: int) -> bool:
        return token < self.size and bool(self.core.token_bytes(token))


def read_vocabulary(
    definition: bytes,
    source: str,
    size: int | None,
    end_token_ids: Iterable[int] | None,
    grows: bool = False,
    native: Any = None,
) -> Vocabulary:
    """Return a vocabulary from the text of a `tokenizer.json`. Raises VocabularyError, which names the source.

    Args:
        definition: The text.
        source: Its name, for messages.
        size: As in :meth:`Vocabulary.from_file`.
        end_token_ids: As there.
        grows: Let the mask be longer than ``size`` where the definition has more ids.
        native: Tokenizer of the same definition that encodes the names of special tokens as text. It is used instead of
            a second one where both encode alike.
    """
    try:
        kept = KeptTokens.of(definition)
        tokens = sized(kept.texts, max(size, len(kept.texts)) if grows and size is not None else size)
        ends = kept.ends if end_token_ids is None else end_token_ids
        made = Vocabulary(tokens, ends, definition=definition)
        if native is not None and kept.keeps_texts:
            made.share(native, kept.special)
        return made
    except RecursionError as error:
        raise VocabularyError(f"{source}: nested too deeply") from error
    except ValueError as error:
        raise VocabularyError(f"{source}: {error}") from error


def whole(token_id: int) -> int:
    """Return an end token's id. Raises TypeError for a wrong type, and VocabularyError for an id of no vocabulary."""
    expect_count("end_token_ids", token_id)
    found = operator.index(token_id)
    if not 0 <= found < MOST_IDS:
        raise VocabularyError(f"end_token_ids: {found} is outside every vocabulary")
    return found


def kind_of(character: str) -> str:
    """Return the kind of a character by which pre-tokenizers split: `letter`, `digit`, `blank` or `sign`."""
    if character.isalpha():
        return "letter"
    if character.isnumeric():
        return "digit"
    return "blank" if character.isspace() else "sign"


def utf8_parts(data: bytes) -> Iterator[tuple[bytes, bool]]:
    """Yield a text's stretches in order: whole characters (True), and bytes that are none (False)."""
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
