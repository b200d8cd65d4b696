"""Vocabularies of every kind: which tokens are text, with which bytes, what masks make of them, and texts as tokens.

The bytes expected here are written out, or asked of the `tokenizers` library; the masks expected are those bytes tried
one token after the other on a state.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer

from fim_server import Vocabulary, VocabularyError
from fim_server.tokens.tokenizer_file import MAX_TOKENS
from support.engine.corpus import python, sources

SEED = 11
EMBEDDED = Path(__file__).parents[2] / "fim_server" / "models" / "embedded" / "tokenizer.json"
PLACES = [
    ("x = ", "\n"),
    ("x = '", "'\n"),
    ("x = (1", ")\n"),
    ("if x:\n", "y = 1\n"),
    ("# ", "\n"),
    ("", ""),
]

LLAMA_DECODER = {
    "type": "Sequence",
    "decoders": [
        {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
        {"type": "ByteFallback"},
        {"type": "Fuse"},
        {"type": "Strip", "content": " ", "start": 1, "stop": 0},
    ],
}
LLAMA_NORMALIZER = {
    "type": "Sequence",
    "normalizers": [
        {"type": "Prepend", "prepend": "▁"},
        {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
    ],
}
METASPACE = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
BYTE_PIECES = [f"<0x{byte:02X}>" for byte in range(256)]


def added(number: int, content: str, special: bool = False) -> dict[str, Any]:
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    return {"id": number, "content": content, "special": special, **flags}


def definition(vocab: Any, **parts: Any) -> dict[str, Any]:
    """A tokenizer.json; `model` in the parts is merged into the model."""
    kind = "Unigram" if isinstance(vocab, list) else "BPE"
    model: dict[str, Any] = {"type": kind, "vocab": vocab}
    if kind == "BPE":
        model.update({"merges": [], "unk_token": None, "byte_fallback": False, "fuse_unk": False})
    else:
        model.update({"unk_id": None, "byte_fallback": False})
    model |= parts.pop("model", {})
    base: dict[str, Any] = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": None,
    }
    return base | {"pre_tokenizer": None, "post_processor": None, "decoder": None, "model": model} | parts


def ids(*pieces: str) -> dict[str, int]:
    return {piece: number for number, piece in enumerate(pieces)}


def llama(*, unigram: bool = False) -> dict[str, Any]:
    """A small tokenizer of SentencePiece's kind, with all of its oddities."""
    pieces = [
        "<unk>",
        "<s>",
        "</s>",
        *BYTE_PIECES,
        "▁",
        "▁▁",
        "x",
        "y",
        "=",
        "1",
        "▁x",
        "▁=",
        "xy",
        "<div>",
        "<a>",
        "é",
    ]
    pieces += ["'", "(", ")", "\n", "▁'x", "▁▁x", "▁1"]
    special = [added(0, "<unk>", True), added(1, "<s>", True), added(2, "</s>", True)]
    special += [added(len(pieces), "<think>"), added(len(pieces) + 1, "    "), added(len(pieces) + 2, "<PAD>", True)]
    model: dict[str, Any]
    if unigram:
        model = {"unk_id": 0, "byte_fallback": True}
        vocab: Any = [[piece, -float(12 - len(piece))] for piece in pieces]
    else:
        merges = ["▁ ▁", "▁ x", "▁ =", "x y", "▁ 1", "▁▁ x"]
        model = {"unk_token": "<unk>", "byte_fallback": True, "fuse_unk": True, "merges": merges}
        vocab = ids(*pieces)
    return definition(vocab, model=model, added_tokens=special, normalizer=LLAMA_NORMALIZER, decoder=LLAMA_DECODER)


def read(tmp_path: Path, content: Any, **settings: Any) -> Vocabulary:
    path = tmp_path / "tokenizer.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return Vocabulary.from_file(path, **settings)


def texts_of(vocabulary: Vocabulary) -> list[bytes]:
    return [vocabulary.token_bytes(token) for token in range(vocabulary.size)]


def check_masks(vocabulary: Vocabulary, tokens: Sequence[bytes | None]) -> tuple[int, int]:
    """Masks at a few places against each token's bytes tried by themselves; returns how many were allowed and not."""
    assert vocabulary.size == len(tokens)
    allowed = refused = 0
    for left, right in PLACES:
        session = python().open(left, right)
        matcher, state = session.matcher(vocabulary), session.start()
        mask = matcher.mask()
        words = np.zeros(-(-len(tokens) // 32), dtype=np.uint32)
        matcher.fill_mask(words)
        assert mask.shape == (len(tokens),)
        bits = np.unpackbits(words.view(np.uint8), bitorder="little")
        assert bits[: len(tokens)].tolist() == mask.tolist()
        assert not bits[len(tokens) :].any()
        for token, text in enumerate(tokens):
            fork = state.fork()
            if token in vocabulary.end_token_ids:
                expected = state.is_complete()
            else:
                expected = bool(text) and fork.advance(text or b"") == len(text or b"")
            assert mask[token] == expected == matcher.allows(token), (left, right, token, text)
            allowed, refused = allowed + expected, refused + (not expected)
    return allowed, refused


# ---------------------------------------------------------------- odd lists of tokens


def test_tokens_with_equal_bytes_have_equal_verdicts() -> None:
    tokens: list[bytes | None] = [b"x", b")", None, b"x", b"'", b"", b")", b"x", b"1", b"(", b"x"]
    assert min(check_masks(Vocabulary(tokens, [2]), tokens)) > 0


def test_holes_and_control_tokens_may_be_anywhere() -> None:
    tokens: list[bytes | None] = [None] * 200
    for number, token in {0: b"x", 31: b" ", 32: b"\n", 63: b"'", 64: b"(x)", 130: b"# x\n", 199: b"1"}.items():
        tokens[number] = token
    vocabulary = Vocabulary(tokens, [65, 131])
    assert min(check_masks(vocabulary, tokens)) > 0
    assert vocabulary.end_token_ids == [65, 131]


def test_the_bytes_of_an_end_token_do_not_count() -> None:
    tokens: list[bytes | None] = [b"x", b"</s>", b"\n"]
    vocabulary = Vocabulary(tokens, [1])
    assert vocabulary.token_bytes(1) == b""
    check_masks(vocabulary, tokens)
    session = python().open("'", "'\n")
    assert session.matcher(vocabulary).allows(1)  # '' is complete
    assert not python().open("'", "").matcher(vocabulary).allows(1)  # </s> as text would be allowed here


def test_a_vocabulary_without_any_text_allows_nothing_but_the_end() -> None:
    tokens: list[bytes | None] = [None, b"", None]
    vocabulary = Vocabulary(tokens, [0])
    check_masks(vocabulary, tokens)
    assert vocabulary.longest_token == 0
    assert vocabulary.longer_tokens(b"") == []
    assert vocabulary.encode("") == []


@pytest.mark.parametrize("size", [1, 31, 32, 33, 64, 65])
def test_masks_are_as_long_as_the_vocabulary(size: int) -> None:
    tokens: list[bytes | None] = [b"x"] * size
    check_masks(Vocabulary(tokens, []), tokens)


@pytest.mark.parametrize(
    ("tokens", "ends"),
    [
        ([], []),
        ([b"a"], [1]),
        ([b"a"], [-1]),
        ([b"a"], [1 << 40]),
        ([b"a"], [10**30]),
        ([b"a"], [0.0]),
        ([b"a"], ["0"]),
        ([b"a"], [None]),
        (["a"], []),
        ([1], []),
    ],
)
def test_wrong_token_lists_are_refused(tokens: Any, ends: Any) -> None:
    with pytest.raises(VocabularyError, match=r"^[^\n]+$"):
        Vocabulary(tokens, ends)


# ---------------------------------------------------------------- files: which tokens are text, and their bytes


def test_byte_level_characters_are_bytes(tmp_path: Path) -> None:
    vocab = ids("x", "Ġ", "Ċ", "Ġx", "Ã", "©", "Ģ", "ł", "ÿ", "Ń", "日", "日Ġ", "a b", "")
    tokens = [b"x", b" ", b"\n", b" x", b"\xc3", b"\xa9", b"\x80", b"\xa0", b"\xff", b"\xad"]
    tokens += ["日".encode(), "日Ġ".encode(), b"a b", b""]  # outside the alphabet: as they are
    vocabulary = read(tmp_path, definition(vocab, decoder=BYTE_LEVEL))
    assert texts_of(vocabulary) == tokens
    check_masks(vocabulary, tokens)


def test_every_byte_has_its_character(tmp_path: Path) -> None:
    from tokenizers.pre_tokenizers import ByteLevel

    characters = [ByteLevel(add_prefix_space=False, use_regex=False).pre_tokenize_str(chr(byte)) for byte in range(128)]
    vocab = ids(*(parts[0][0] for parts in characters))
    assert texts_of(read(tmp_path, definition(vocab, decoder=BYTE_LEVEL))) == [bytes([byte]) for byte in range(128)]
    alphabet = sorted(ByteLevel.alphabet())
    found = texts_of(read(tmp_path, definition(ids(*alphabet), decoder=BYTE_LEVEL)))
    assert sorted(found) == [bytes([byte]) for byte in range(256)]


def test_a_byte_level_tokenizer_without_a_decoder_is_read_by_its_pre_tokenizer(tmp_path: Path) -> None:
    vocab = ids("Ġx")
    assert texts_of(read(tmp_path, definition(vocab, pre_tokenizer=BYTE_LEVEL))) == [b" x"]
    nested = {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True}, BYTE_LEVEL]}
    assert texts_of(read(tmp_path, definition(vocab, pre_tokenizer=nested))) == [b" x"]


def test_a_visible_blank_is_a_blank_without_a_decoder_too(tmp_path: Path) -> None:
    for parts in ({"pre_tokenizer": METASPACE}, {"normalizer": LLAMA_NORMALIZER}):
        assert texts_of(read(tmp_path, definition(ids("▁x"), **parts))) == [b" x"]


@pytest.mark.parametrize("unigram", [False, True], ids=["bpe", "unigram"])
def test_sentence_piece_tokens_are_decoded_by_their_decoder(tmp_path: Path, unigram: bool) -> None:
    content = llama(unigram=unigram)
    vocabulary = read(tmp_path, content)
    tokens: list[bytes | None] = [None, None, None, *(bytes([byte]) for byte in range(256))]
    tokens += [b" ", b"  ", b"x", b"y", b"=", b"1", b" x", b" =", b"xy", b"<div>", b"<a>", "é".encode()]
    tokens += [b"'", b"(", b")", b"\n", b" 'x", b"  x", b" 1", b"<think>", b"    ", None]
    assert texts_of(vocabulary) == [token or b"" for token in tokens]
    assert vocabulary.end_token_ids == [2]
    assert min(check_masks(vocabulary, tokens)) > 0
    library = Tokenizer.from_str(json.dumps(content))
    anchor = tokens.index(b"y")
    for token, text in enumerate(tokens):
        if text is not None and (len(text) > 1 or text[0] < 0x80):  # no UTF-8 by themselves: the library shows U+FFFD
            assert library.decode([anchor, token, anchor]).encode() == b"y" + text + b"y"


def test_pieces_like_bytes_are_bytes_only_with_byte_fallback(tmp_path: Path) -> None:
    vocab = ids("<0x0A>", "<0x0a>", "<0xZZ>", "<0x0>", "<0x0A>x", "▁<0x0A>")
    with_bytes = [b"\n", b"\n", b"<0xZZ>", b"<0x0>", b"<0x0A>x", b" <0x0A>"]
    assert texts_of(read(tmp_path, definition(vocab, decoder=LLAMA_DECODER))) == with_bytes
    by_model = definition(vocab, decoder=METASPACE, model={"byte_fallback": True})
    assert texts_of(read(tmp_path, by_model)) == with_bytes
    verbatim = [piece.replace("▁", " ").encode() for piece in vocab]
    assert texts_of(read(tmp_path, definition(vocab, decoder=METASPACE))) == verbatim


def test_strip_before_fuse_applies_to_each_token(tmp_path: Path) -> None:
    strip = {"type": "Strip", "content": "_", "start": 1, "stop": 2}
    vocab = ids("__x____", "_", "x", "___")
    each = {"type": "Sequence", "decoders": [strip, {"type": "Fuse"}]}
    whole = {"type": "Sequence", "decoders": [{"type": "Fuse"}, strip]}
    content = definition(vocab | {"y": 4}, decoder=each)
    found = texts_of(read(tmp_path, content))
    assert found == [b"_x__", b"", b"x", b"", b"y"]
    library = Tokenizer.from_str(json.dumps(content))
    for token in (0, 2, 3):  # the library panics on the one that is shorter than what is to be stripped
        assert library.decode([4, token, 4]).encode() == b"y" + found[token] + b"y"
    assert texts_of(read(tmp_path, definition(vocab, decoder=whole))) == [piece.encode() for piece in vocab]


def test_added_tokens_are_text_unless_the_file_says_that_they_are_special(tmp_path: Path) -> None:
    extra = [
        added(3, "<|endoftext|>", True),
        added(4, "<think>"),
        added(5, "        "),
        added(6, "<fim_prefix>"),  # some files leave FIM tokens unmarked; a known format names them
        added(7, "<special>", True),
        added(8, "\n\n"),
        added(9, "<s>"),
    ]
    vocab = ids("x", "<s>", "<special>")
    with pytest.raises(VocabularyError, match="two tokens have the id 2"):
        read(tmp_path, definition(vocab, decoder=BYTE_LEVEL, added_tokens=[added(2, "y")]))
    vocabulary = read(tmp_path, definition(vocab, decoder=BYTE_LEVEL, added_tokens=extra))
    tokens = [b"x", None, None, None, b"<think>", b" " * 8, None, None, b"\n\n", None]
    assert texts_of(vocabulary) == [token or b"" for token in tokens]
    assert vocabulary.end_token_ids == [3]
    check_masks(vocabulary, tokens)


def test_tokens_that_look_like_tags_are_text(tmp_path: Path) -> None:
    vocab = ids("<div>", "<a>", "</s>", "<unk>", "<s>", "<fim_prefix>", "</div>", "<|x|>")
    listed = definition(vocab, decoder=LLAMA_DECODER, added_tokens=[added(8, "<pad>", True)])
    assert texts_of(read(tmp_path, listed))[:8] == [piece.encode() for piece in vocab]
    unlisted = definition(vocab, decoder=LLAMA_DECODER)  # nothing is said: SentencePiece's own names are control tokens
    vocabulary = read(tmp_path, unlisted)
    expected = [b"<div>", b"<a>", b"", b"", b"", b"<fim_prefix>", b"</div>", b"<|x|>"]
    assert texts_of(vocabulary) == expected
    assert vocabulary.end_token_ids == [2]


@pytest.mark.parametrize("unigram", [False, True], ids=["bpe", "unigram"])
def test_the_unknown_token_is_no_text(tmp_path: Path, unigram: bool) -> None:
    parts: dict[str, Any] = {"decoder": LLAMA_DECODER, "added_tokens": [added(2, "<pad>", True)]}
    if unigram:
        vocabulary = read(tmp_path, definition([["x", -1.0], ["⁇", 0.0]], model={"unk_id": 1}, **parts))
    else:
        vocabulary = read(tmp_path, definition(ids("x", "⁇"), model={"unk_token": "⁇"}, **parts))
    assert texts_of(vocabulary) == [b"x", b"", b""]


def test_pieces_that_are_twice_in_a_file_keep_both_ids(tmp_path: Path) -> None:
    content = definition([["x", -1.0], ["(", -1.0], ["x", -2.0], ["▁", -1.0], [" ", -1.0]], decoder=METASPACE)
    tokens = [b"x", b"(", b"x", b" ", b" "]
    vocabulary = read(tmp_path, content)
    assert texts_of(vocabulary) == tokens
    check_masks(vocabulary, tokens)
    assert joined(vocabulary, vocabulary.encode("x x")) == b"x x"


# ---------------------------------------------------------------- files: ids and sizes


def test_ids_may_have_holes_and_the_model_more_logits(tmp_path: Path) -> None:
    content = definition({"x": 40, "(": 3}, decoder=BYTE_LEVEL, added_tokens=[added(70, "<|endoftext|>", True)])
    tokens: list[bytes | None] = [None] * 71
    tokens[40], tokens[3] = b"x", b"("
    for size in (None, 71, 72, 128, 1000):
        vocabulary = read(tmp_path, content, size=size)
        padding: list[bytes | None] = [None] * ((size or 71) - 71)
        assert vocabulary.end_token_ids == [70]
        check_masks(vocabulary, tokens + padding)


def test_a_size_may_cut_off_control_tokens_and_no_text(tmp_path: Path) -> None:
    extra = [added(2, "<|endoftext|>", True), added(3, "<|pad|>", True), added(4, "<think>"), added(5, "<x>", True)]
    content = definition(ids("x", "("), decoder=BYTE_LEVEL, added_tokens=extra)
    assert read(tmp_path, content, size=5).size == 5
    for size in (1, 4):
        with pytest.raises(
            VocabularyError, match=rf"tokenizer.json: token \d is text and lies beyond the {size} tokens"
        ):
            read(tmp_path, content, size=size)
    only_control = definition(ids("x", "("), decoder=BYTE_LEVEL, added_tokens=extra[:2])
    assert read(tmp_path, only_control, size=3).end_token_ids == [2]
    with pytest.raises(VocabularyError, match="end token 2 is outside"):
        read(tmp_path, only_control, size=2)
    assert read(tmp_path, only_control, size=2, end_token_ids=[]).size == 2


@pytest.mark.parametrize("size", [0, -1, MAX_TOKENS + 1, 10**12])
def test_sizes_that_cannot_be(tmp_path: Path, size: int) -> None:
    with pytest.raises(VocabularyError, match=r"tokenizer.json: a mask of -?\d+ tokens"):
        read(tmp_path, definition(ids("x"), decoder=BYTE_LEVEL), size=size)


@pytest.mark.parametrize("number", [-1, 10**12, MAX_TOKENS, 1.0, 1.5, "1", None, True, [1], float("nan")])
@pytest.mark.parametrize("place", ["vocab", "added_tokens"])
def test_ids_that_cannot_be(tmp_path: Path, number: Any, place: str) -> None:
    content = definition(ids("x"), decoder=BYTE_LEVEL)
    if place == "vocab":
        content["model"]["vocab"]["y"] = number
    else:
        content["added_tokens"] = [added(number, "y")]
    with pytest.raises(VocabularyError, match=r"tokenizer.json: the id of 'y' is n[^\n]*$"):
        read(tmp_path, content)


@pytest.mark.parametrize("content", [definition({"x": 0, "y": 0}), definition(ids("x"), added_tokens=[added(0, "y")])])
def test_an_id_may_be_given_once(tmp_path: Path, content: dict[str, Any]) -> None:
    with pytest.raises(VocabularyError, match="two tokens have the id 0: 'x' and 'y'"):
        read(tmp_path, content | {"decoder": BYTE_LEVEL})


# ---------------------------------------------------------------- files that are none


def broken(change: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
    content = definition(ids("x", "y"), decoder=BYTE_LEVEL)
    change(content)
    return content


BAD_FILES: dict[str, Any] = {
    "no JSON": "{",
    "empty": "",
    "a list": [],
    "a string": '"x"',
    "null": "null",
    "nested deeply": "[" * 100_000,
    "no model": broken(lambda content: content.pop("model")),
    "model of another type": broken(lambda content: content.update(model=[1])),
    "no vocab": broken(lambda content: content["model"].pop("vocab")),
    "vocab of another type": broken(lambda content: content["model"].update(vocab="x")),
    "vocab without tokens": broken(lambda content: content["model"].update(vocab={})),
    "list without pairs": broken(lambda content: content["model"].update(vocab=["x", "y"])),
    "list of empty lists": broken(lambda content: content["model"].update(vocab=[[], []])),
    "pieces that are no strings": broken(lambda content: content["model"].update(vocab=[[1, 0.0]])),
    "lone surrogate": broken(lambda content: content["model"].update(vocab={"\ud800": 0})),
    "added tokens of another type": broken(lambda content: content.update(added_tokens={"x": 1})),
    "added token of another type": broken(lambda content: content.update(added_tokens=["x"])),
    "added token without content": broken(lambda content: content.update(added_tokens=[{"id": 3}])),
    "added token without id": broken(lambda content: content.update(added_tokens=[{"content": "x"}])),
    "added token whose content is no string": broken(lambda content: content.update(added_tokens=[added(3, 5)])),  # type: ignore[arg-type]
    "WordPiece": broken(lambda content: content["model"].update(type="WordPiece")),
    "WordPiece without its name": broken(
        lambda content: content.update(model={"vocab": {}, "max_input_chars_per_word": 9})
    ),
    "WordLevel": broken(lambda content: content["model"].update(type="WordLevel")),
    "another model": broken(lambda content: content["model"].update(type=["BPE"])),
    "ends of words": broken(lambda content: content["model"].update(end_of_word_suffix="</w>")),
    "insides of words": broken(lambda content: content["model"].update(continuing_subword_prefix="##")),
    "no decoder": broken(lambda content: content.update(decoder=None)),
    "decoder of another type": broken(lambda content: content.update(decoder=5)),
    "decoders of another type": broken(lambda content: content.update(decoder={"type": "Sequence", "decoders": 5})),
    "decoder in them of another type": broken(lambda content: content.update(decoder={"decoders": ["x"]})),
    "unknown decoder": broken(lambda content: content.update(decoder={"type": "CTC", "pad_token": "<pad>"})),
    "decoder by a regular expression": broken(
        lambda content: content.update(decoder={"type": "Replace", "pattern": {"Regex": "_+"}, "content": " "})
    ),
    "decoder that replaces nothing": broken(lambda content: content.update(decoder=METASPACE | {"replacement": ""})),
    "byte-level and more": broken(lambda content: content.update(decoder={"decoders": [BYTE_LEVEL, METASPACE]})),
    "pre-tokenizer of another type": broken(lambda content: content.update(decoder=None, pre_tokenizer=[])),
    "kind of another type": broken(lambda content: content.update(decoder=None, pre_tokenizer={"type": []})),
}


@pytest.mark.parametrize("content", BAD_FILES.values(), ids=BAD_FILES.keys())
def test_a_file_that_cannot_be_read_is_named_in_one_line(tmp_path: Path, content: Any) -> None:
    with pytest.raises(VocabularyError, match=r"^[^\n]*tokenizer\.json: [^\n]+$"):
        read(tmp_path, content)


@pytest.mark.parametrize("place", ["vocab", "added"])
def test_a_token_that_is_too_long_is_refused(tmp_path: Path, place: str) -> None:
    """Its table would take minutes."""

    def change(content: dict[str, Any]) -> None:
        token = max(content["model"]["vocab"].values()) + 1
        if place == "vocab":
            content["model"]["vocab"]["a" * 100_000] = token
        else:
            content["added_tokens"] = [{"id": token, "content": "a" * 100_000, "special": False}]

    with pytest.raises(VocabularyError, match=r"a token of 100000 bytes: not more than 65536"):
        read(tmp_path, broken(change))


def test_files_that_are_not_there(tmp_path: Path) -> None:
    (tmp_path / "latin.json").write_bytes(b'{"model": "\xe9"}')
    for name in ("missing.json", ".", "latin.json", "no\0name"):
        with pytest.raises(VocabularyError, match=r"^[^\n]+$"):
            Vocabulary.from_file(tmp_path / name)


def test_a_tokenizer_object_is_named_by_its_class() -> None:
    backend = SimpleNamespace(to_str=lambda: json.dumps(definition({"x": -1}, decoder=BYTE_LEVEL)))
    tokenizer = SimpleNamespace(backend_tokenizer=backend, eos_token_id=None)
    with pytest.raises(VocabularyError, match=r"^SimpleNamespace: the id of 'x'"):
        Vocabulary.from_tokenizer(tokenizer)
    with pytest.raises(VocabularyError, match="object is not a fast tokenizer"):
        Vocabulary.from_tokenizer(object())


# ---------------------------------------------------------------- texts as tokens


@cache
def embedded() -> Vocabulary:
    return Vocabulary.from_file(EMBEDDED)


def pieces_of_code(count: int) -> list[str]:
    rng = random.Random(SEED)
    found = []
    for source in sources(rng, 40_000):
        start = rng.randrange(len(source.text) + 1)
        found.append(source.text[start : start + rng.randint(0, 300)])
        if len(found) == count:
            break
    return found


def joined(vocabulary: Vocabulary, tokens: Sequence[int]) -> bytes:
    return b"".join(vocabulary.token_bytes(token) for token in tokens)


def check_encoding(path: Path, count: int) -> None:
    vocabulary, library = Vocabulary.from_file(path), Tokenizer.from_file(str(path))
    same = 0
    for text in pieces_of_code(count):
        tokens = vocabulary.encode(text)
        assert joined(vocabulary, tokens) == text.encode()
        own = library.encode(text, add_special_tokens=False).ids
        if joined(vocabulary, own) == text.encode():
            assert tokens == own
            same += 1
    print(f"{same} of {count} texts exact in the tokenizer's own tokens")
    assert same > 0.9 * count


def test_texts_are_encoded_as_the_tokenizer_does_it() -> None:
    check_encoding(EMBEDDED, 100)


def test_texts_are_encoded_as_a_large_tokenizer_does_it() -> None:
    path = os.environ.get("FIM_SERVER_TOKENIZER")
    if not path:
        pytest.skip("no large vocabulary: FIM_SERVER_TOKENIZER is to name a tokenizer.json")
    check_encoding(Path(path), 300)


def test_any_bytes_are_encoded_exactly() -> None:
    rng = random.Random(SEED)
    for text in pieces_of_code(40):
        data = (text + "é😀" + text[::-1] + "\u0301e\u0301").encode()
        start = rng.randrange(len(data))
        for part in (data[start : start + rng.randint(0, 40)], rng.randbytes(20), data[:-1], data[-3:]):
            assert joined(embedded(), embedded().encode(part)) == part


def test_the_whole_characters_around_half_ones_go_to_the_tokenizer() -> None:
    text = "return self.value"
    tokens = embedded().encode(text)
    assert embedded().encode(b"\x98\x80" + text.encode() + b"\xf0\x9f")[2:-2] == tokens
    assert embedded().encode(b"\xff" + text.encode())[1:] == tokens


def test_names_of_control_tokens_are_text_in_a_text() -> None:
    text = "# <|fim_prefix|><|endoftext|>"
    assert joined(embedded(), embedded().encode(text)) == text.encode()


def test_a_lone_surrogate_has_no_tokens() -> None:
    with pytest.raises(ValueError, match="surrogates"):
        embedded().encode("\ud800")


@pytest.mark.parametrize("unigram", [False, True], ids=["bpe", "unigram"])
def test_no_blank_is_put_in_front_of_a_text_in_the_middle(tmp_path: Path, unigram: bool) -> None:
    vocabulary = read(tmp_path, llama(unigram=unigram))

    def pieces(text: str) -> list[bytes]:
        return [vocabulary.token_bytes(token) for token in vocabulary.encode(text)]

    assert pieces("x = 1") == [b"x", b" =", b" 1"]
    assert pieces(" x") == [b" x"]
    assert pieces("xy") == [b"xy"]
    assert pieces("\t") == [b"\t"]  # by its byte
    assert pieces("x</s>")[0] == b"x"  # no control token
    assert pieces("<think>x") == [b"<think>", b"x"]
    assert joined(vocabulary, vocabulary.encode("▁x<unk>")) == "▁x<unk>".encode()
    for text in ("ü", "日本 x", "x  =  1\n", "<s>", "\u2581", ""):
        assert joined(vocabulary, vocabulary.encode(text)) == text.encode()


@pytest.mark.parametrize("scheme", ["always", "first", "never"])
def test_a_pre_tokenizer_puts_no_blank_in_front_either(tmp_path: Path, scheme: str) -> None:
    vocab = ids("▁", "x", "▁x")
    content = definition(vocab, model={"merges": ["▁ x"]}, pre_tokenizer=METASPACE | {"prepend_scheme": scheme})
    assert read(tmp_path, content | {"decoder": METASPACE}).encode("x x") == [1, 2]
    content = definition(ids("Ġ", "x", "Ġx"), model={"merges": ["Ġ x"]}, pre_tokenizer=BYTE_LEVEL, decoder=BYTE_LEVEL)
    assert read(tmp_path, content).encode("x x") == [1, 2]


def test_a_normaliser_does_not_change_the_text(tmp_path: Path) -> None:
    from tokenizers.pre_tokenizers import ByteLevel

    alphabet = sorted(ByteLevel.alphabet())
    for normalizer in ({"type": "NFC"}, {"type": "Lowercase"}, {"type": "Sequence", "normalizers": [{"type": "NFKC"}]}):
        pre_tokenizer = BYTE_LEVEL | {"add_prefix_space": False}
        content = definition(ids(*alphabet), decoder=BYTE_LEVEL, pre_tokenizer=pre_tokenizer, normalizer=normalizer)
        vocabulary = read(tmp_path, content)
        for text in ("e\u0301", "ABC", "ﬁ"):
            assert joined(vocabulary, vocabulary.encode(text)) == text.encode()


def test_byte_strings_are_encoded_by_the_longest_token_that_leaves_the_rest_encodable() -> None:
    vocabulary = Vocabulary([b"a", b"ab", b"abc", b"cd", b"b", b"c", None, b"ab"], [])
    assert vocabulary.encode("abab") == [1, 1]
    assert vocabulary.encode("abca") == [2, 0]
    assert vocabulary.encode("abcd") == [1, 3]  # abc is longer, but nothing goes on with d
    for text in ("d", "abd", b"\xff"):
        with pytest.raises(ValueError, match="no tokens for"):
            vocabulary.encode(text)


def test_a_file_that_only_this_package_can_read_is_encoded_by_the_longest_tokens(tmp_path: Path) -> None:
    content = definition(ids("x", "Ġ", "Ġx"), decoder=BYTE_LEVEL)
    del content["model"]["merges"]
    assert read(tmp_path, content).encode("x x") == [0, 2]


def test_a_transformers_tokenizer_is_read_and_asked_like_its_file() -> None:
    from transformers import PreTrainedTokenizerFast

    make: Callable[..., Any] = PreTrainedTokenizerFast
    tokenizer = make(tokenizer_file=str(EMBEDDED), eos_token="<|endoftext|>")
    vocabulary = Vocabulary.from_tokenizer(tokenizer, size=20_000)
    assert vocabulary.end_token_ids == embedded().end_token_ids
    assert texts_of(vocabulary)[: embedded().size] == texts_of(embedded())
    for text in pieces_of_code(10):
        assert vocabulary.encode(text) == embedded().encode(text)


def test_longer_tokens() -> None:
    vocabulary = Vocabulary([b"a", b"ab", b"abc", b"b", b"a\xff", b"a\xff\xff\xff", None, b"", b"ab"], [])
    assert vocabulary.longer_tokens(b"a") == [1, 2, 4, 5]
    assert vocabulary.longer_tokens(b"ab") == [2]
    assert vocabulary.longer_tokens(b"a\xff") == [5]
    assert vocabulary.longer_tokens(b"abc") == vocabulary.longer_tokens(b"x") == []
    assert sorted(vocabulary.longer_tokens(b"")) == [0, 1, 2, 3, 4, 5]
    assert vocabulary.longest_token == 4


@pytest.mark.parametrize("text", [b" ", b"    ", b"\n", b"ret", b"return", b"\xc3", b"", b"\x00\xff"])
def test_tokens_towards_a_text_as_an_array(text: bytes) -> None:
    vocabulary = embedded()
    for size in (vocabulary.size + 100, vocabulary.size, 300, 0):
        plain = [token for token in vocabulary.tokens_towards(text) if token < size]
        found = vocabulary.towards(text, size)
        assert found.tolist() == plain
        assert found.dtype == np.intp
