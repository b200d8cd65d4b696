"""Tokens kept in the cache folder: those of the definition, whatever the file in the folder holds."""

from __future__ import annotations

import json
import multiprocessing
import random
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

from fim_server.errors import VocabularyError
from fim_server.language.cache import checksummed
from fim_server.models.tokenizer import FileTokenizer
from fim_server.tokens import kept_tokens
from fim_server.tokens.kept_tokens import KeptTokens
from fim_server.tokens.tokenizer_file import read_tokens
from fim_server.tokens.vocabulary import read_vocabulary

DEFINITION = (Path(__file__).parents[2] / "fim_server" / "models" / "embedded" / "tokenizer.json").read_bytes()


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("FIM_SERVER_CACHE", str(tmp_path))
    monkeypatch.setattr(kept_tokens, "LEAST_BYTES", 0)
    return tmp_path


def kept_file(folder: Path) -> Path:
    (found,) = folder.glob("tokens-*.json")
    return found


def fail(*_: object) -> Any:
    raise AssertionError("the definition is read again")


def test_the_second_process_reads_the_kept_tokens(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = KeptTokens.of(DEFINITION)
    assert (first.texts, first.ends) == read_tokens(DEFINITION)
    monkeypatch.setattr(kept_tokens, "read_tokens", fail)
    assert KeptTokens.of(DEFINITION) == first
    with pytest.raises(AssertionError):
        KeptTokens.of(DEFINITION + b" ")  # another definition


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[:-1],
        lambda content: content.replace(b'"texts"', b'"taxts"'),
        lambda content: checksummed("[]"),
        lambda content: checksummed(json.dumps({"texts": ["€"], "ends": [], "special": {}, "keeps_texts": True})),
        lambda content: checksummed(json.dumps({"texts": [1], "ends": [], "special": {}, "keeps_texts": True})),
    ],
)
def test_a_damaged_file_is_made_again(folder: Path, damage: Any) -> None:
    first = KeptTokens.of(DEFINITION)
    path = kept_file(folder)
    content = path.read_bytes()
    path.write_bytes(damage(content))
    assert KeptTokens.of(DEFINITION) == first
    assert path.read_bytes() == content


def test_processes_that_start_at_once_agree(folder: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        assert pool.map(KeptTokens.of, [DEFINITION] * 2) == [KeptTokens.of(DEFINITION)] * 2


def test_a_folder_that_cannot_be_written_changes_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(kept_tokens, "LEAST_BYTES", 0)
    (tmp_path / "file").touch()
    monkeypatch.setenv("FIM_SERVER_CACHE", str(tmp_path / "file"))
    assert KeptTokens.of(DEFINITION).texts == read_tokens(DEFINITION)[0]


def test_what_is_no_tokenizer_is_refused(folder: Path) -> None:
    with pytest.raises(VocabularyError):
        KeptTokens.of(b"[]")
    assert not list(folder.iterdir())


def changed(**fields: object) -> bytes:
    return json.dumps({**json.loads(DEFINITION), **fields}).encode()


def with_token(special: bool, content: str = "<fancy>") -> bytes:
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    tokens = json.loads(DEFINITION)["added_tokens"]
    number = 1 + max(Tokenizer.from_buffer(DEFINITION).get_vocab().values())
    return changed(added_tokens=[*tokens, {"id": number, "content": content, "special": special, **flags}])


@pytest.mark.parametrize(
    ("definition", "is_shared"),
    [
        (DEFINITION, True),
        (with_token(special=True), True),
        (with_token(special=False), True),
        (with_token(special=False, content="<fim_prefix>"), False),  # a prompt format names it, so it is no text
        (changed(normalizer={"type": "NFC"}), False),
        (changed(pre_tokenizer={"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True}), False),
    ],
)
def test_a_tokenizer_is_shared_only_where_it_encodes_alike(definition: bytes, is_shared: bool) -> None:
    tokenizer = FileTokenizer(definition)
    size = len(KeptTokens.of(definition).texts)
    vocabulary = read_vocabulary(definition, "it", 1, None, True, tokenizer.backend_tokenizer)
    own = read_vocabulary(definition, "it", size, None)
    assert vocabulary.size == size
    assert (vocabulary._tokenizer is tokenizer.backend_tokenizer) is is_shared
    assert own._tokenizer is not tokenizer.backend_tokenizer
    draw = random.Random(5)
    source = Path(kept_tokens.__file__).read_text(encoding="utf-8")
    texts = [source[at : at + 80] for at in draw.sample(range(len(source)), 40)]
    for text in [*texts, " <fancy>é <|endoftext|>\n\t<fim_prefix>", "ﬁ\r\n"]:
        assert vocabulary.encode(text) == own.encode(text)
        assert vocabulary.unsettled(text) == own.unsettled(text)


def test_names_of_special_tokens_are_found_only_on_request() -> None:
    tokenizer = FileTokenizer(DEFINITION)
    name = json.loads(DEFINITION)["added_tokens"][0]["content"]
    for _ in range(2):
        assert tokenizer.encode(name, add_special_tokens=False, split_special_tokens=False) == [0]
        assert len(tokenizer.encode(name, add_special_tokens=False, split_special_tokens=True)) > 1
