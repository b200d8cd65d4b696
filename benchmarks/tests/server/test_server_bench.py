"""``./dev bench server``: the editor that is played, the record of answers, and what is printed.

One run plays a scenario for a few keystrokes with the real server and the embedded model.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from benchmarks import report as reports
from benchmarks.server import command as server_bench
from benchmarks.server import report as server_report
from benchmarks.server.lsp_client import Asked
from benchmarks.server.report import KINDS, Report, Row
from benchmarks.server.scenarios import SCENARIOS, Counts, Item, Played, Request, note
from support.bench_command import complaint, started
from support.bench_corpus import TYPED_SOURCE as SOURCE


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    for number in range(3):
        (folder / f"module_{number}.py").write_text(SOURCE, encoding="utf-8")
    (folder / "broken.py").write_text("def f(:\n", encoding="utf-8")
    (folder / "empty.py").write_text("", encoding="utf-8")
    return folder


# --- records ------------------------------------------------------------------------------------------------------


def latency(**parts: float) -> dict[str, Any]:
    names = ("total", "debounce", "queue", "open", "prefill", "decode", "engine", "server")
    return {f"{name}Ms": parts.get(name, 0.0) for name in names}


def answered(origin: str = "model", items: int = 1, lines: int = 1, after: str = "key", **parts: float) -> Request:
    last = {"origin": origin, "latency": latency(**parts)}
    return Request("reads", after, parts["total"] + 1, "answered", None, items, lines if items else 0, last)


def test_the_servers_own_share() -> None:
    request = answered(total=100, debounce=10, queue=5, prefill=30, decode=50, open=2, engine=1, server=2)
    assert (request.origin, request.own) == ("model", 5)
    assert answered("cache", total=0.4, server=0.4).own == pytest.approx(0.4)
    joined = answered(total=20, prefill=10, decode=80)
    assert (joined.origin, joined.own) == ("joined", None)
    assert answered(items=0, total=2, open=1, server=1).origin == "none"
    assert (Request("reads", "key").origin, Request("reads", "key").own) == ("none", None)


def test_an_answer_is_noted() -> None:
    def take(message: dict[str, Any], cancelled: float | None = None) -> tuple[Request, list[Item]]:
        request = Request("types", "key")
        asked = Asked(1, sent=10.0, answer=future, received=10.25, cancelled=cancelled, last={"origin": "cache"})
        return request, note(request, asked, message)

    future: asyncio.Future[dict[str, Any]] = asyncio.Future(loop=asyncio.new_event_loop())
    at = {"start": {"line": 1, "character": 3}, "end": {"line": 1, "character": 4}}
    request, items = take({"result": {"items": [{"insertText": "a)\nb", "range": at}]}})
    assert (request.outcome, request.milliseconds, request.items, request.lines) == ("answered", 250, 1, 2)
    assert request.last == {"origin": "cache"}
    assert items == [Item("a)\nb", 1, None)]
    request, items = take({"result": None}, cancelled=10.2)
    assert (request.outcome, request.last, items) == ("late", None, [])
    assert request.cancel_milliseconds == pytest.approx(50)
    assert take({"error": {"code": -32800}}, cancelled=10.2)[0].outcome == "cancelled"
    assert take({"error": {"code": -32603}})[0].outcome == "failed"
    assert take({"result": [{"insertText": "a"}]})[1] == [Item("a", 0, None)]


def test_a_row_of_nothing() -> None:
    assert Row.of("reads", "what", []).cells() == ("reads", "what", "0", "-", "-", "-", "")


def test_every_request_has_its_row() -> None:
    requests = [
        answered(after="opened", total=200, prefill=150, decode=40),
        answered(total=100, prefill=20, decode=70),
        answered(lines=3, total=300, prefill=20, decode=70),
        answered(items=0, total=50, prefill=20, decode=20),
        answered("cache", total=1),
        answered("prefetch", total=1),
        answered(total=20, prefill=10, decode=80),
        answered(items=0, total=2),
        answered(after="invoked", total=900, prefill=20, decode=700),
        Request("reads", "key", 70, "cancelled", 3.0),
        Request("reads", "key", 70, "late", 1.0),
        Request("reads", "key", 70, "failed"),
    ]
    played = Played(SCENARIOS[0], requests, Counts(keystrokes=20, unasked=9))
    played.prompt_tokens = {"read": 40, "ahead": 60, "reused": 800}
    report = Report({"command": "none"}, [played])
    found = {row.what: (row.n, row.p50) for row in report.times()}
    names = [name for name, _, _ in KINDS]
    assert [found.get(name, (0, None))[0] for name in names] == [8, 3, 2, 1, 1, 1, 0, 1, 1, 1, 1, 1]
    assert list(found[server_report.ONE_LINE]) == [2, 101]
    assert list(found["cancelled: from there to the error"]) == [1, 3]
    (cells,) = report.keys()
    named = dict(zip(server_report.KEYS_HEADER, cells, strict=True))
    assert named["without the model"] == "60.0 %"
    assert (named["model: item"], named["model: nothing"], named["cancelled"], named["failed"]) == (
        "20.0 %",
        "5.0 %",
        "10.0 %",
        "5.0 %",
    )
    titles = [title for title, _, _ in report.tables()]
    assert [line for line in reports.lines(report) if line.removesuffix(":") in titles] == [
        f"{title}:" for title in titles
    ]
    short = {name: value for name, value, _ in report.short()}
    assert short["item, from the model (reads)"] == "p50 201 ms, p95 301 ms"
    assert short["first answer of the model in a file (reads)"] == "p50 201 ms, p95 201 ms"
    assert short["keystrokes with an item (reads)"] == "30.0 %"
    assert short["prompt tokens read a keystroke (reads)"] == "2.0 while the user waits, 3.0 ahead; 40 reused"
    assert short["keystrokes answered from memory (reads)"] == "cache 5.0 %, prefetch 5.0 %"
    own = next(row for row in report.shares() if row.what == "server's own share")
    assert (own.n, own.max) == (7, 210)


def test_a_server_that_does_not_start_is_one_line(corpus: Path) -> None:
    ended = command(corpus, "--model", "/nowhere")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.count("\n") == 1
    assert "/nowhere: no such model folder" in ended.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--path", "/nowhere"], "no such folder"),
        (["--path", "{empty}"], "no Python files to type in"),
        (["--keystrokes", "0"], "'0' is not a number above 0"),
        (["--scenario", "dances"], "invalid choice: 'dances'"),
    ],
)
def test_bad_input_is_one_line(arguments: list[str], message: str, tmp_path: Path) -> None:
    found = complaint("server", "--json", *(argument.format(empty=tmp_path) for argument in arguments))
    assert found.count("\n") == 1
    assert message in found


def test_files_are_chosen_by_the_seed(corpus: Path) -> None:
    chosen = [source.name for source in server_bench.choose([str(corpus)], 9, seed=1)]
    assert sorted(chosen) == ["module_0.py", "module_1.py", "module_2.py"]
    assert len(list(server_bench.choose([str(corpus / "module_1.py")], 9, seed=1))) == 1
    library = [source.name for source in server_bench.choose(None, 2, seed=1)]
    assert library == [source.name for source in server_bench.choose(None, 2, seed=1)]
    assert len(library) == 2


# --- a run --------------------------------------------------------------------------------------------------------


def command(corpus: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return started("server", "--path", str(corpus), "--json", *arguments)


def test_a_short_run(corpus: Path, tmp_path: Path) -> None:
    output = tmp_path / "server.md"
    ended = command(
        corpus,
        *("--files", "2", "--keystrokes", "16", "--interval-ms", "120", "--scenario", "types"),
        *("--output", str(output), "--machine", "a machine"),
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    report = json.loads(ended.stdout)
    (types,) = report["scenarios"]
    assert (types["scenario"], types["counts"]["keystrokes"]) == ("types", 16)
    requests = types["requests"]
    assert {request["outcome"] for request in requests} <= {"answered", "cancelled", "late"}
    answers = [request for request in requests if request["outcome"] == "answered"]
    assert len(answers) >= 2, "the last of each file is waited for"
    assert all(request["last"]["latency"]["totalMs"] <= request["milliseconds"] + 1 for request in answers)
    assert report["setting"]["machine"] == "a machine"
    assert report["setting"]["model"].startswith("name embedded")
    page = output.read_text(encoding="utf-8")
    for text in (ended.stdout, page):
        assert str(corpus.parent) not in text
    assert page.count("\n## ") == 5
    tables = [
        list(lines) for table, lines in itertools.groupby(page.splitlines(), lambda line: line[:1] == "|") if table
    ]
    assert len(tables) == 5
    for table in tables:
        assert len({line.count("|") for line in table}) == 1
    assert all(len(line) <= 120 for line in page.splitlines() if not line.startswith(("|", "-", "    ")))
