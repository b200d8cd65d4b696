"""``fim-server bench masks``: every figure is there, wrong answers are found, and no time is judged."""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import lark
import numpy as np
import pytest
from numpy.typing import NDArray

from fim_server.bench import engine as bench
from fim_server.bench import json_documents, peers, plot
from fim_server.bench import masks as masks_bench
from fim_server.bench.peers import grammars
from fim_server.cli import program as cli
from fim_server.language import Language, Matcher
from fim_server.tokens.vocabulary import Vocabulary

TOKENIZER = str(bench.EMBEDDED_TOKENIZER)
SVG = "{http://www.w3.org/2000/svg}"
SOURCE = '''\
"""Cafés, in metres."""
from .. import thing  # a remark, é


@thing.cached
def area(width, *, height=(2,
                           3)):

    if width :
        return f"{width!r}" * height
    elif height: pass
    else:
        total = [1,
            2]
'''


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    for number in range(3):
        (folder / f"m{number}.py").write_text(SOURCE.replace("area", f"area_{number}"), encoding="utf-8")
        (folder / f"d{number}.json").write_text(json_documents.document(number), encoding="utf-8")
    (folder / "broken.py").write_text("def f(:\n")
    (folder / "broken.json").write_text("[NaN]")
    return folder


def command(corpus: Path, *more: str) -> list[str]:
    counts = ("--files", "2", "--cursors", "2", "--steps", "6", "--batch", "1,3")
    return ["bench", "masks", "--vocabulary", TOKENIZER, "--corpus", str(corpus), *counts, *more]


def printed(*arguments: str) -> tuple[int, str]:
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        status = cli.main(list(arguments))
    return status, output.getvalue()


@pytest.fixture(scope="module")
def written(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path]:
    """A tiny run's JSON, and the folder with its plot and its page."""
    folder = tmp_path_factory.mktemp("written")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(peers.Peer, "installed", lambda peer: False)
        files = ("--plot", str(folder / "masks.svg"), "--output", str(folder / "masks.md"))
        languages = ("--language", "python", "--language", "json")
        status, output = printed(*command(corpus, *languages, "--verify", "--peers", "--json", *files))
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
    for language, indentation in (("python", True), ("json", None)):
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
    for language in ("python", "json"):
        facts = {fact["what"]: fact for fact in report["facts"] if fact["language"] == language}
        assert {"prepare, uncached", "prepare, cached", "memory at the peak of a pass"} <= set(facts)
        assert {
            "distinct masks with R",
            "states cached in the cold pass without R",
            "token table",
            "mean of a warm mask with R, over without",
        } <= set(facts)
    absent = [fact for fact in report["facts"] if fact["what"] == "not measured"]
    assert [fact["note"].split(":")[0] for fact in absent] == ["absent"] * 2 * len(peers.PEERS)
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
    assert report["setting"]["command"].startswith(
        "fim-server bench masks --vocabulary tokenizer.json --language python"
    )


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
    assert labels == once * 2


def test_the_tables_are_aligned(corpus: Path) -> None:
    status, output = printed(*command(corpus, "--files", "1"))
    assert status == 0
    settings, table, facts, verdicts = output.split("\n\n")
    assert settings.startswith("command: fim-server bench masks")
    header, *lines = table.splitlines()
    assert header.split() == list(masks_bench.HEADER)
    column = header.index("what")
    assert all(line[column - 2 : column] == "  " for line in lines)
    assert facts.splitlines()[0].split() == list(masks_bench.FACTS_HEADER)
    assert verdicts.startswith("true next tokens refused: 0 of ")


def test_default_corpora_are_there() -> None:
    documents = list(masks_bench.documents("json", None, 2, seed=1))
    assert documents == list(masks_bench.documents("json", None, 2, seed=1))
    assert len(documents) == 2
    assert next(masks_bench.documents("python", None, 1, seed=1)).text


# --- wrong answers ------------------------------------------------------------------------------------------------


def flipped(words: NDArray[np.uint32]) -> None:
    words[7] ^= 1 << 3


def test_a_planted_difference_is_found(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill = Matcher.fill_mask

    def plain(matcher: Matcher, words: NDArray[np.uint32]) -> None:
        fill(matcher, words)
        flipped(words)

    monkeypatch.setattr(Matcher, "fill_mask_plain", plain)
    status, output = printed(*command(corpus, "--verify", "--json"))
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
    status, output = printed(*command(corpus, "--json"))
    report = json.loads(output)
    assert status == 1
    assert report["refused_tokens"] == report["steps"] > 0


def test_a_refused_end_is_counted(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill = Matcher.fill_mask
    end = bench.read_tokens("embedded", bench.EMBEDDED_TOKENIZER).vocabulary.end_token_ids[0]

    def endless(matcher: Matcher, words: NDArray[np.uint32]) -> None:
        fill(matcher, words)
        words[end >> 5] &= ~np.uint32(1 << (end & 31))

    monkeypatch.setattr(Matcher, "fill_mask", endless)
    status, output = printed(*command(corpus, "--json"))
    report = json.loads(output)
    assert status == 1
    assert report["refused_tokens"] == 0
    assert report["refused_ends"] > 0


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--vocabulary", "/nowhere/tokenizer.json"], "No such file"),
        (["--vocabulary", __file__], "test_masks_bench.py"),
        (["--corpus", "{empty}"], "no python files to measure on"),
        (["--corpus", "/nowhere"], "no such folder"),
        (["--language", "cobol"], "invalid choice: 'cobol'"),
        (["--batch", "1,two"], "'two' is not a number above 0"),
        (["--batch", "4,0"], "'0' is not a number above 0"),
        (["--batch", ""], "'' is not a number above 0"),
        (["--files", "0"], "'0' is not a number above 0"),
        (["more"], "unrecognized arguments"),
    ],
)
def test_bad_input_is_one_line(arguments: list[str], complaint: str, tmp_path: Path) -> None:
    given = [argument.format(empty=tmp_path) for argument in arguments]
    ended = subprocess.run(
        [sys.executable, "-m", "fim_server", "bench", "masks", "--json", "--vocabulary", TOKENIZER, *given],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.count("\n") == 1
    assert complaint in ended.stderr


def test_a_result_that_cannot_be_written_is_bad_input(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(command(corpus, "--files", "1", "--cursors", "1", "--output", "/nowhere/masks.md")) == 2
    assert "/nowhere/masks.md: No such file" in capsys.readouterr().err


# --- the corpus ---------------------------------------------------------------------------------------------------


def test_only_files_that_parse_are_taken(corpus: Path) -> None:
    for language in masks_bench.LANGUAGES:
        names = {document.name for document in masks_bench.documents(language, corpus, 99, seed=0)}
        assert len(names) == 3
        assert not any("broken" in name for name in names)


def test_cursors_are_holes_of_their_file(corpus: Path) -> None:
    vocabulary = Vocabulary.from_file(TOKENIZER)
    document = masks_bench.Document("m", SOURCE * 3)
    found = list(masks_bench.cursors(document, vocabulary, 8, 9, seed=3))
    assert found == list(masks_bench.cursors(document, vocabulary, 8, 9, seed=3))
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
    assert masks_bench.first_tokens("né𝒳", vocabulary, 2) == "n"
    assert masks_bench.first_tokens("né𝒳", vocabulary, 3) == "né"
    assert masks_bench.first_tokens("𝒳x", vocabulary, 1) == "𝒳"
    assert masks_bench.first_tokens("n", vocabulary, 9) == "n"


def test_a_vocabulary_that_cannot_spell_a_file_has_no_cursor_there() -> None:
    vocabulary = Vocabulary([b"x"], [])
    assert list(masks_bench.cursors(masks_bench.Document("m", "y = 1\n"), vocabulary, 4, 3, seed=0)) == []


def test_generated_documents_are_json_of_every_kind() -> None:
    texts = [json_documents.document(number) for number in range(40)]
    assert texts == [json_documents.document(number) for number in range(40)]
    parsed = [json.loads(text) for text in texts]
    assert {type(value) for value in parsed} == {dict, list}
    assert sum("\n  " in text for text in texts) > 5
    assert sum(text.isascii() for text in texts) in range(5, 36)
    assert all(Language.load("json").open(text, "").check("").complete for text in texts[:10])


def test_figures_are_of_the_values() -> None:
    empty = masks_bench.Row("json", "fim-server", "mask", True, None, 0, None, None, None, None, None)
    row = masks_bench.summed(empty, [number * 1e-6 for number in range(200, 0, -1)])
    assert (row.n, row.mean, row.p50, row.p95, row.p99, row.max) == pytest.approx((200, 100.5, 100, 190, 198, 200))
    assert masks_bench.summed(empty, []) == empty
    assert empty.cells()[5:11] == ("0", "-", "-", "-", "-", "-")


def test_a_distribution_is_drawn_from_0_to_1() -> None:
    series: dict[tuple[str, str], Sequence[float]]
    series = {("a <b>", "warm"): [1.0, 2.0, 4.0, 0.0], ("a <b>", "cold"): [30.0], ("c", "cold"): []}
    drawn = ElementTree.fromstring(plot.svg([plot.Distribution("Title", "x, µs", "share", series)]))
    texts = [text.text for text in drawn.iter(f"{SVG}text")]
    assert {"Title", "x, µs", "share", "a <b>: warm", "a <b>: cold", "c: cold", "0 %", "100 %", "1", "100"} <= set(
        texts
    )
    lines = list(drawn.iter(f"{SVG}polyline"))
    assert [line.get("stroke-dasharray") for line in lines] == ["none", "6 3"]
    assert len({line.get("stroke") for line in lines}) == 1
    for line in lines:
        points = [tuple(map(float, point.split(","))) for point in (line.get("points") or "").split()]
        assert points == sorted(points, key=lambda point: (point[0], -point[1]))
        assert (points[0][1], points[-1][1]) == (274, 32)


# --- peers --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=[True, False], ids=["longest match", "any split"])
def flat_parser(request: pytest.FixtureRequest) -> lark.Lark:
    text = grammars.flat_python(longest_match=request.param).lark(reserve=False)
    return lark.Lark(text, parser="earley", lexer="dynamic", regex=True)


def test_flat_python_takes_python(flat_parser: lark.Lark) -> None:
    flat_parser.parse(SOURCE)
    flat_parser.parse("class A: x: int = 1; y = 2\nasync def f(): pass\n\n# end\n")
    flat_parser.parse("try:\n  pass\nexcept* A as b:\n  pass\nfinally:\n  with (a as b,\n  c): pass\n")


@pytest.mark.parametrize("text", ["x = = 1\n", "if a\n", "f(\n", "x = (1\ny)\n", "@d x\n", "x = 1 y = 2\n", "x.\n"])
def test_flat_python_is_not_everything(flat_parser: lark.Lark, text: str) -> None:
    with pytest.raises(lark.exceptions.LarkError):
        flat_parser.parse(text)


def test_flat_python_has_no_layout() -> None:
    flat = grammars.flat_python(longest_match=True)
    symbols = {symbol for sides in flat.rules.values() for side in sides for symbol in side}
    assert symbols <= {*flat.rules, *flat.literals, *flat.patterns}
    assert not [name for name in symbols if "DENT" in name or "QUOTE" in name]
    assert {"if", "None", "lambda"} <= set(flat.reserved)
    assert not {"match", "case", "type", "_"} & set(flat.reserved)
    assert "NAME: /" in flat.lark(reserve=True)
    assert "& ~/(" in flat.lark(reserve=True)


def test_the_peers_json_is_the_engines() -> None:
    parser = lark.Lark(grammars.json_grammar(), parser="earley", lexer="dynamic")
    parser.parse('{"a": [1, -2.5e3, "\\u00e9", null]}')
    with pytest.raises(lark.exceptions.LarkError):
        parser.parse("[1,]")


class FakeEngine:
    """Allows every token but 9, and refuses left texts that end in a space."""

    def __init__(self) -> None:
        self.words = np.full(1, ~(1 << 9), dtype=np.int32)

    def open(self, job: peers.Job) -> FakeEngine | None:
        return None if job.left.endswith(b" ") else self

    def fill_mask(self) -> None: ...

    def commit(self, token_id: int) -> bool:
        assert token_id != 9
        return True


def work(*jobs: peers.Job, others: tuple[peers.Job, ...] = ()) -> peers.Work:
    return peers.Work("json", [b"x"] * 32, None, list(jobs), list(others))


def test_a_peer_is_measured_and_its_refusals_counted() -> None:
    fake = peers.Peer("json", "fake", lambda language: language, lambda work, text: FakeEngine())
    jobs = (peers.Job(b"a", [0], [1, 2, 3]), peers.Job(b"a", [0], [1, 9, 3]), peers.Job(b"a ", [0], [1]))
    outcome = peers.run_here(fake, work(*jobs, others=jobs[:1]))
    assert outcome.ran
    assert (len(outcome.cold), len(outcome.warm), len(outcome.others), len(outcome.commits)) == (5, 5, 3, 11)
    assert (outcome.steps, outcome.refused, outcome.refused_left) == (13, 2, 2)
    assert outcome.preparation is not None


def test_a_peer_that_refuses_its_grammar_is_a_line() -> None:
    def refuse(work: peers.Work, text: str) -> peers.Engine:
        raise ValueError("no such\nrule")

    outcome = peers.run_here(peers.Peer("json", "fake", lambda language: language, refuse), work())
    assert (outcome.ran, outcome.note) == (False, "failed: no such rule")


def test_an_absent_peer_is_a_line() -> None:
    absent = peers.Peer("no_such_engine", "trie", lambda language: language, lambda work, text: FakeEngine())
    outcome = peers.run(absent, work(), 1)
    assert (outcome.ran, outcome.name) == (False, "no_such_engine, trie")
    assert outcome.note.startswith("absent")


def test_a_peer_has_its_time() -> None:
    assert peers.in_limited_process(60, os.path.basename, "a/b") == "b"
    with pytest.raises(TimeoutError):
        peers.in_limited_process(0.2, time.sleep, 60)
    with pytest.raises(EOFError):
        peers.in_limited_process(60, os._exit, 3)


@pytest.mark.parametrize("peer", peers.PEERS, ids=lambda peer: f"{peer.package} {peer.settings}")
@pytest.mark.parametrize("language", ["json", "python"])
def test_installed_peers_take_their_grammar(peer: peers.Peer, language: str) -> None:
    if not peer.installed():
        pytest.skip("not installed")
    if (language, peer.settings) == ("python", "automaton"):
        pytest.skip("takes minutes and gigabytes")
    tokens: list[bytes | None] = [None, *(bytes([byte]) for byte in range(256))]
    left, middle = (b"# a\nx = (", b"\n1)\nelse:\n") if language == "python" else (b' {"a": [1', b"2, null]}\n")
    job = peers.Job(left, [byte + 1 for byte in left], [byte + 1 for byte in middle])
    outcome = peers.run_here(peer, peers.Work(language, tokens, 0, [job], []))
    assert outcome.ran, outcome.note
    assert (outcome.refused, outcome.refused_left, outcome.steps) == (0, 0, 2 * len(middle))
