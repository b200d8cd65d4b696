"""The parts of a run: judge, measures, records, shards and batches."""

from __future__ import annotations

import json
import platform
import random
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fim_server.datasets.samples import Origin
from fim_server.errors import MissingLibrary, RecordError
from fim_server.evaluation.records import (
    MODES,
    Data,
    RunInfo,
    encode_record,
    read_records,
    read_run,
)
from fim_server.evaluation.running import judge as judge_module
from fim_server.evaluation.running import measures, shards
from fim_server.evaluation.running.judge import Judge
from fim_server.evaluation.running.shards import Shard, form_batches
from fim_server.evaluation.running.worker import described
from support.evaluation.evaluation_samples import record_of, sample_of


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("x = 1\n", True),
        ("", True),
        ("x = '\\d'", True),  # with a warning that is not printed
        ("x is 1", True),
        ("x =", False),
        ("x = '\0'", False),
        ("x = '\ud800'", False),
        ("(" * 50_000 + ")" * 50_000, False),
        ("-" * 200_000 + "1", False),
    ],
)
def test_the_judge_says_what_the_interpreter_says(judge: Judge, text: str, verdict: bool) -> None:
    assert judge.parses(text) is verdict
    assert judge.version == platform.python_version()
    assert judge.deaths == 0


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    made = Judge()
    yield made
    made.close()


def test_a_judge_that_dies_of_a_text_goes_on_with_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    child = tmp_path / "child.py"
    deadly = "import os\nif 'deadly' in text: os._exit(9)\nif 'endless' in text: import time; time.sleep(99)\n"
    body = "".join(f"    {line}\n" for line in deadly.splitlines())
    source = judge_module.CHILD.read_text(encoding="utf-8").replace("    try:\n", body + "    try:\n")
    child.write_text(source, encoding="utf-8")
    monkeypatch.setattr(judge_module, "CHILD", child)
    monkeypatch.setattr(judge_module, "PATIENCE_S", 2.0)
    judge = Judge()
    texts = ["x = 1", "deadly = 1", "x = 2", "endless = 1", "deadly = 2", "x =", "x = 3"]
    assert [judge.parses(text) for text in texts] == [True, False, True, False, False, False, True]
    assert judge.deaths == 3
    judge.close()


def levenshtein(one: str, two: str) -> int:
    """The textbook's table."""
    row = list(range(len(two) + 1))
    for i, a in enumerate(one, 1):
        before, row[0] = row[0], i
        for j, b in enumerate(two, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (a != b))
    return row[-1]


def words(choose: random.Random) -> str:
    return "".join(choose.choice("ab \n") for _ in range(choose.randrange(12)))


def test_edit_similarity_is_its_formula() -> None:
    choose = random.Random(3)
    for _ in range(300):
        one, two = words(choose), words(choose)
        a, b = one.strip(), two.strip()
        wanted = 1 - levenshtein(a, b) / max(len(a), len(b)) if a or b else 1.0
        assert measures.edit_similarity(one, two) == pytest.approx(wanted)
        assert measures.exact_match(one, two) is (a == b)
    assert measures.edit_similarity(None, "") == 0.0
    assert not measures.exact_match(None, "")


def test_suffix_overlap_is_the_longest_end_that_comes_again() -> None:
    choose = random.Random(4)
    for _ in range(500):
        text, right = words(choose), words(choose)
        a, b = text.strip(), right.strip()
        lengths = [n for n in range(1, min(len(a), len(b)) + 1) if a[-n:] == b[:n]]
        assert measures.suffix_overlap(text, right) == max(lengths, default=0)
    assert measures.suffix_overlap(None, "x") == 0
    assert measures.suffix_overlap("return x)\n", "  )\nprint(1)") == 1


def test_stretches_are_the_numbers() -> None:
    choose = random.Random(5)
    for _ in range(100):
        numbers = {choose.randrange(20) for _ in range(choose.randrange(15))}
        found = measures.stretches(numbers)
        assert {n for first, last in found for n in range(first, last + 1)} == numbers
        assert all(found[i][1] + 1 < found[i + 1][0] for i in range(len(found) - 1))


def test_a_missing_library_is_said_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rapidfuzz.distance.Levenshtein", None)
    measures.similarity_function.cache_clear()
    with pytest.raises(MissingLibrary, match=r"install fim-server\[eval\]"):
        measures.similarity_function()


def test_records_come_back_as_they_were(tmp_path: Path) -> None:
    file = tmp_path / "samples.jsonl"
    records = [record_of(n, complete_at=((1, 2), (5, 5)), model_ms=1.25, error=None if n else "no") for n in range(3)]
    file.write_bytes(b"".join(map(encode_record, records)))
    assert list(read_records(file)) == records
    assert file.read_bytes().count(b"\n") == 3


def test_records_say_file_and_line_and_older_ones_do_not(tmp_path: Path) -> None:
    origin = Origin("pypi", "flask", "3.0", "flask/app.py", None, "0" * 64)
    packaged = record_of(2, **described(replace(sample_of(2), origin=origin, left="a\nb\n"), "checked"))
    assert (record_of().path, packaged.place) == ("file.py", "flask-3.0/flask/app.py:3")
    older = packaged.to_json()
    del older["path"], older["line"]
    file = tmp_path / "samples.jsonl"
    file.write_text(json.dumps(older) + "\n", encoding="ascii")
    assert list(read_records(file)) == [replace(packaged, path=None, line=None)]
    assert replace(packaged, path=None, line=None).place == ""


def test_a_torn_line_is_not_read_and_a_broken_one_is_named(tmp_path: Path) -> None:
    file = tmp_path / "samples.jsonl"
    line = encode_record(record_of())
    file.write_bytes(line + line[:-1])
    assert list(read_records(file)) == [record_of()]
    for broken in (b"{\n", b"[]\n", b"{}\n", b"null\n"):
        file.write_bytes(line + broken + line)
        with pytest.raises(RecordError, match=r"samples\.jsonl:2: "):
            list(read_records(file))


def info_of(**fields: Any) -> RunInfo:
    values: dict[str, Any] = {
        "data": (Data("a.jsonl", "0" * 64, 7), Data("b.jsonl", "1" * 64, 5)),
        "model": "embedded",
        "model_sha256": "2" * 64,
        "format": "f",
        "modes": MODES,
        "budget": 200,
        "max_prompt_tokens": 768,
        "seed": 0,
        "temperature": 0.0,
        "batch": 8,
        "device": "cpu",
        "language_version": None,
    }
    return RunInfo(**{**values, **fields})


def test_what_a_run_was_asked_for_comes_back(tmp_path: Path) -> None:
    info = info_of(versions={"python": "3"}, machine={"cores": 2}, limit=9)
    info.write(tmp_path)
    assert RunInfo.read(tmp_path) == info
    assert (info.samples, info_of().samples) == (9, 12)
    for broken in ("", "[]", "{}"):
        (tmp_path / "run.json").write_text(broken)
        with pytest.raises(RecordError, match="not a run"):
            RunInfo.read(tmp_path)
    with pytest.raises(RecordError, match="not a run"):
        list(read_run(tmp_path / "nowhere"))


@pytest.mark.parametrize("text", ["", "1", "0/2", "3/2", "1/0", "a/b", "1/2/3", "-1/2", "1/"])
def test_what_is_no_shard_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="I/N expected"):
        Shard.parse(text)


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_shards_share_the_samples_out(count: int) -> None:
    parts = [list(Shard.parse(f"{index}/{count}").of(range(23))) for index in range(1, count + 1)]
    assert sorted(number for part in parts for number in part) == list(range(23))
    assert len({Shard(index + 1, count).file for index in range(count)}) == count


@pytest.mark.parametrize("size", [1, 3, 8])
def test_batches_are_the_samples_the_alike_together(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "WINDOW_BATCHES", 4)
    samples = [sample_of(number) for number in range(50)]
    batches = list(form_batches(iter(samples), size, 10))
    assert sorted(one.id for batch in batches for one in batch) == sorted(one.id for one in samples)
    assert max(map(len, batches)) == size
    assert len(batches) <= -(-50 // size) + 1
    assert batches == list(form_batches(samples, size, 10))
    known = list(form_batches(samples[: 4 * size], size, 10))
    assert batches[: len(known)] == known  # what comes later changes nothing
