"""``./dev bench masks``: every figure is there, wrong answers are found, and no time is judged."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.__main__ import run
from benchmarks.engine import masks as masks_bench
from benchmarks.engine import masks_report
from benchmarks.engine.vocabularies import EMBEDDED_TOKENIZER, read_tokens
from benchmarks.peers.engines import PEERS
from benchmarks.peers.jobs import Peer
from fim_server.language import Matcher
from support.bench_command import complaint, printed
from support.bench_corpus import write_corpus

TOKENIZER = str(EMBEDDED_TOKENIZER)
LANGUAGES = {"python": True, "json": None, "go": None}
"""Measured languages, with the `indentation` of their rows."""
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_corpus(tmp_path_factory.mktemp("corpus"))


def command(corpus: Path, *more: str) -> list[str]:
    counts = ("--files", "1", "--cursors", "2", "--steps", "4", "--batch", "1,3")
    return ["masks", "--vocabulary", TOKENIZER, "--corpus", str(corpus), *counts, *more]


@pytest.fixture(scope="module")
def written(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path]:
    """A tiny run's JSON, and the folder with its plot and its page."""
    folder = tmp_path_factory.mktemp("written")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Peer, "installed", lambda peer: False)
        files = ("--plot", str(folder / "masks.svg"), "--output", str(folder / "masks.md"))
        languages = [part for name in LANGUAGES for part in ("--language", name)]
        status, output, _ = printed(*command(corpus, *languages, "--verify", "--peers", "--json", *files))
    assert status == 0
    return json.loads(output), folder


# --- the command --------------------------------------------------------------------------------------------------


def test_every_row_is_there(written: tuple[dict[str, Any], Path]) -> None:
    rows = written[0]["rows"]
    expected = [
        *(("mask, caches cold", True), ("mask, caches warm", True), ("commit", True), ("mask, other files then", True)),
        *(("mask, caches cold", False), ("mask, caches warm", False), ("commit", False)),
        ("mask, cleared before each", True),
        *((f"mask in batches of {size}, caches warm", True) for size in (1, 3)),
        ("mask, plain walk", True),
    ]
    for language, indentation in LANGUAGES.items():
        here = [row for row in rows if row["language"] == language]
        assert [(row["what"], row["right"]) for row in here] == expected
        assert {row["system"] for row in here} == {"fim-server"}
        assert {row["indentation"] for row in here} == {indentation}
    for row in rows:
        assert row["n"] > 0
        assert 0 < row["p50"] <= row["p95"] <= row["p99"] <= row["max"]
        assert 0 < row["mean"] <= row["max"]


def test_facts_and_verdicts_are_there(written: tuple[dict[str, Any], Path]) -> None:
    report = written[0]
    for language in LANGUAGES:
        facts = {fact["what"]: fact for fact in report["facts"] if fact["language"] == language}
        assert {"prepare, uncached", "prepare, cached", "memory at the peak of a pass"} <= set(facts)
        assert {
            "distinct masks with R",
            "states cached in the cold pass without R",
            "token table",
            "mean of a warm mask with R, over without",
        } <= set(facts)
    absent = [fact for fact in report["facts"] if fact["what"] == "not measured"]
    assert [fact["note"].split(":")[0] for fact in absent] == ["absent"] * len(LANGUAGES) * len(PEERS)
    assert report["steps"] > 0
    assert report["verified_masks"] > 0
    assert (report["refused_tokens"], report["refused_ends"], report["differing_masks"]) == (0, 0, 0)
    assert report["differences"] == []


def test_nothing_written_names_a_folder_of_this_machine(written: tuple[dict[str, Any], Path], corpus: Path) -> None:
    report, folder = written
    page = (folder / "masks.md").read_text(encoding="utf-8")
    for text in (json.dumps(report), page):
        assert str(corpus) not in text
        assert str(Path(TOKENIZER).parent) not in text
    assert report["setting"]["command"].startswith("./dev bench masks --vocabulary tokenizer.json --language python")


def test_the_page_has_the_tables_and_the_plot(written: tuple[dict[str, Any], Path]) -> None:
    report, folder = written
    page = (folder / "masks.md").read_text(encoding="utf-8")
    assert "(masks.svg)" in page
    tables = [
        list(lines) for table, lines in itertools.groupby(page.splitlines(), lambda line: line[:1] == "|") if table
    ]
    assert [len(table) - 2 for table in tables] == [len(report["rows"]), len(report["facts"])]
    for table in tables:
        assert len({line.count("|") for line in table}) == 1
    tree = ElementTree.parse(folder / "masks.svg").getroot()
    kinds = ("warm", "cold", "other files then", "cleared before each")
    labels = [text.text for text in tree.iter(f"{SVG}text") if (text.text or "").startswith("fim-server")]
    once = [f"fim-server, with R: {kind}" for kind in kinds]
    once += [f"fim-server, without R: {kind}" for kind in kinds[:2]]
    assert labels == once * len(LANGUAGES)


def test_the_tables_are_aligned(corpus: Path) -> None:
    status, output, _ = printed(*command(corpus, "--files", "1"))
    assert status == 0
    settings, table, facts, verdicts = output.split("\n\n")
    assert settings.startswith("command: ./dev bench masks")
    header, *lines = table.splitlines()
    assert header.split() == list(masks_report.HEADER)
    column = header.index("what")
    assert all(line[column - 2 : column] == "  " for line in lines)
    assert facts.splitlines()[0].split() == list(masks_report.FACTS_HEADER)
    assert verdicts.startswith("true next tokens refused: 0 of ")


# --- wrong answers ------------------------------------------------------------------------------------------------


def flipped(words: NDArray[np.uint32]) -> None:
    words[7] ^= 1 << 3


def test_a_planted_difference_is_found(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill = Matcher.fill_mask

    def plain(matcher: Matcher, words: NDArray[np.uint32]) -> None:
        fill(matcher, words)
        flipped(words)

    monkeypatch.setattr(Matcher, "fill_mask_plain", plain)
    status, output, _ = printed(*command(corpus, "--files", "1", "--verify", "--json"))
    report = json.loads(output)
    assert status == 1
    assert report["differing_masks"] == report["verified_masks"] > 0
    assert len(report["differences"]) == masks_bench.SHOWN_DIFFERENCES
    assert "1 tokens" in report["differences"][0]


def test_a_refused_token_is_counted(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill = Matcher.fill_mask

    def nothing(matcher: Matcher, words: NDArray[np.uint32]) -> None:
        fill(matcher, words)
        words[:] = 0

    monkeypatch.setattr(Matcher, "fill_mask", nothing)
    status, output, _ = printed(*command(corpus, "--files", "1", "--cursors", "1", "--json"))
    report = json.loads(output)
    assert status == 1
    assert report["refused_tokens"] == report["steps"] > 0


def test_a_refused_end_is_counted(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill = Matcher.fill_mask
    end = read_tokens("embedded", EMBEDDED_TOKENIZER).vocabulary.end_token_ids[0]

    def endless(matcher: Matcher, words: NDArray[np.uint32]) -> None:
        fill(matcher, words)
        words[end >> 5] &= ~np.uint32(1 << (end & 31))

    monkeypatch.setattr(Matcher, "fill_mask", endless)
    status, output, _ = printed(*command(corpus, "--files", "1", "--cursors", "1", "--json"))
    report = json.loads(output)
    assert status == 1
    assert report["refused_tokens"] == 0
    assert report["refused_ends"] > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--vocabulary", "/nowhere/tokenizer.json"], "No such file"),
        (["--vocabulary", __file__], "test_masks_bench.py"),
        (["--corpus", "{empty}"], "no python files to measure on"),
        (["--corpus", "/nowhere"], "no such folder"),
        (["--language", "go"], "--corpus: a folder with go files is needed"),
        (["--language", "cobol"], "invalid choice: 'cobol'"),
        (["--batch", "1,two"], "'two' is not a number above 0"),
        (["--batch", "4,0"], "'0' is not a number above 0"),
        (["--batch", ""], "'' is not a number above 0"),
        (["--files", "0"], "'0' is not a number above 0"),
        (["more"], "unrecognized arguments"),
    ],
)
def test_bad_input_is_one_line(arguments: list[str], message: str, tmp_path: Path) -> None:
    given = [argument.format(empty=tmp_path) for argument in arguments]
    found = complaint("masks", "--json", "--vocabulary", TOKENIZER, *given)
    assert found.count("\n") == 1
    assert message in found


def test_a_result_that_cannot_be_written_is_bad_input(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(command(corpus, "--files", "1", "--cursors", "1", "--output", "/nowhere/masks.md")) == 2
    assert "/nowhere/masks.md: No such file" in capsys.readouterr().err


def test_figures_are_of_the_values() -> None:
    empty = masks_report.Row("json", "fim-server", "mask", True, None, 0, None, None, None, None, None)
    row = masks_report.summed(empty, [number * 1e-6 for number in range(200, 0, -1)])
    assert (row.n, row.mean, row.p50, row.p95, row.p99, row.max) == pytest.approx((200, 100.5, 100, 190, 198, 200))
    assert masks_report.summed(empty, []) == empty
    assert empty.cells()[5:11] == ("0", "-", "-", "-", "-", "-")
