"""Files that are replayed, and the cursors in them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.engine import json_documents
from benchmarks.engine.corpus import Document, documents
from benchmarks.engine.cursors import cursors, first_tokens
from benchmarks.engine.vocabularies import EMBEDDED_TOKENIZER
from fim_server.errors import BenchError
from fim_server.language import Language
from fim_server.tokens.vocabulary import Vocabulary
from support.bench_corpus import SOURCE, write_corpus


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_corpus(tmp_path_factory.mktemp("corpus"))


def test_default_corpora_are_there() -> None:
    found = list(documents("json", None, 2, seed=1))
    assert found == list(documents("json", None, 2, seed=1))
    assert len(found) == 2
    assert next(documents("python", None, 1, seed=1)).text


def test_only_files_that_parse_are_taken(corpus: Path) -> None:
    for language in ("python", "json", "go"):
        names = {document.name for document in documents(language, corpus, 99, seed=0)}
        assert len(names) == 3
        assert not any("broken" in name for name in names)


def test_a_language_without_files_of_its_own_needs_a_folder() -> None:
    with pytest.raises(BenchError, match="--corpus: a folder with go files is needed"):
        list(documents("go", None, 1, seed=0))


def test_cursors_are_holes_of_their_file(corpus: Path) -> None:
    vocabulary = Vocabulary.from_file(EMBEDDED_TOKENIZER)
    document = Document("m", SOURCE * 3)
    found = list(cursors(document, vocabulary, 8, 9, seed=3))
    assert found == list(cursors(document, vocabulary, 8, 9, seed=3))
    assert len(found) == 8
    for number, cursor in enumerate(found):
        assert cursor.left + cursor.middle + cursor.right == document.text
        assert len(cursor.left) == cursor.offset
        assert b"".join(map(vocabulary.token_bytes, cursor.ids)) == cursor.middle.encode()
        assert 0 < len(cursor.ids) <= 11  # the middle, cut into tokens by itself, may have a few more
        if number % 2 == 0:
            assert not cursor.left.rpartition("\n")[2].strip()
            assert not cursor.middle[0].isspace()


def test_a_middle_ends_between_characters() -> None:
    vocabulary = Vocabulary([bytes([byte]) for byte in range(256)], [])
    assert first_tokens("né𝒳", vocabulary, 2) == "n"
    assert first_tokens("né𝒳", vocabulary, 3) == "né"
    assert first_tokens("𝒳x", vocabulary, 1) == "𝒳"
    assert first_tokens("n", vocabulary, 9) == "n"


def test_a_vocabulary_that_cannot_spell_a_file_has_no_cursor_there() -> None:
    vocabulary = Vocabulary([b"x"], [])
    assert list(cursors(Document("m", "y = 1\n"), vocabulary, 4, 3, seed=0)) == []


def test_generated_documents_are_json_of_every_kind() -> None:
    texts = [json_documents.document(number) for number in range(40)]
    assert texts == [json_documents.document(number) for number in range(40)]
    parsed = [json.loads(text) for text in texts]
    assert {type(value) for value in parsed} == {dict, list}
    assert sum("\n  " in text for text in texts) > 5
    assert sum(text.isascii() for text in texts) in range(5, 36)
    assert all(Language.load("json").open(text, "").check("").complete for text in texts[:10])
