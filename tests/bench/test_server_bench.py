"""``fim-server bench server``: the editor that is played, the record of answers, and what is printed.

One run plays a scenario for a few keystrokes with the real server and the embedded model.
"""

from __future__ import annotations

import ast
import asyncio
import io
import itertools
import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fim_server.bench import engine as bench
from fim_server.bench import played_editor
from fim_server.bench import server as server_bench
from fim_server.bench.played_editor import BACKSPACE, DELETE, Edit, Editor, next_key
from fim_server.bench.server import (
    KINDS,
    Asked,
    Client,
    Counts,
    Item,
    Played,
    Report,
    Request,
    Row,
    Scenario,
    Typist,
)
from fim_server.errors import BenchError

SOURCE = '''"""A module."""

import os


def greet(name, *, mark="!"):
    """Say hello."""
    for letter in name:
        if letter == "(":
            print([letter, {"a": 1}])

    return "".join(("hello ", name, mark))


class Box:
    size = os.environ.get("SIZE")

    def fill(self, things):
        self.things = [thing for thing in things if thing]  # "those that are
        return self
'''


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    for number in range(3):
        (folder / f"module_{number}.py").write_text(SOURCE, encoding="utf-8")
    (folder / "broken.py").write_text("def f(:\n", encoding="utf-8")
    (folder / "empty.py").write_text("", encoding="utf-8")
    return folder


def typed(editor: Editor, keys: str) -> list[Edit]:
    return [editor.press(key) for key in keys]


def shown(editor: Editor) -> str:
    """The text with a bar where the cursor is."""
    return f"{editor.text[: editor.cursor]}|{editor.text[editor.cursor :]}"


# --- the editor ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keys", "result"),
    [
        ("f(", "f(|)"),
        ("f(a)", "f(a)|"),
        ("f([{", "f([{|}])"),
        ("f([{}", "f([{}|])"),
        ('x = "', 'x = "|"'),
        ('x = "a"', 'x = "a"|'),
        ('x = f"', 'x = f"|"'),
        ("don't", "don't|"),
        ('"""', '"""|'),
        ("# it's 'so", "# it's 'so|"),
        ("'\\'", "'\\'|'"),
        ("f(\"a'b", 'f("a\'b|")'),
        (")", ")|"),
        ("if a:\n", "if a:\n    |"),
        ("    a\n", "    a\n    |"),
        ("f(\n", "f(\n    |)"),
        ("if a:\n\nb", "if a:\n\n    b|"),
        ("\tif a:\n", "\tif a:\n\t\t|"),
    ],
)
def test_keys_are_those_of_an_editor(keys: str, result: str) -> None:
    editor = Editor("", 0)
    typed(editor, keys)
    assert shown(editor) == result


def test_an_edit_says_what_changed() -> None:
    editor = Editor("a\nb\n", 3)
    assert editor.press("(") == Edit(3, 3, "()")
    assert editor.press(")") == Edit(4, 5, ")")
    assert editor.press(BACKSPACE) == Edit(4, 5, "")
    assert (editor.before, editor.text) == ("a\nb()\n", "a\nb(\n")


def test_nothing_is_closed_before_a_name() -> None:
    editor = Editor("name", 0)
    typed(editor, '("')
    assert shown(editor) == '("|name'


def test_backspace_takes_a_pair_a_level_or_a_character() -> None:
    editor = Editor("", 0)
    typed(editor, "f(")
    editor.press(BACKSPACE)
    assert shown(editor) == "f|"
    typed(editor, "a:\n")
    assert shown(editor) == "fa:\n    |"
    typed(editor, "  ")
    editor.press(BACKSPACE)
    assert shown(editor) == "fa:\n    |"
    editor.press(BACKSPACE)
    editor.press(BACKSPACE)
    assert shown(editor) == "fa:|"


def test_an_accepted_item_takes_the_place_of_closers() -> None:
    editor = Editor("\nx", 0)
    typed(editor, "f([")
    edit = editor.accept("1, 2])", 2)
    assert edit == Edit(3, 5, "1, 2])")
    assert (shown(editor), editor.closers) == ("f([1, 2])|\nx", "")


def test_a_text_is_restored_by_a_small_edit() -> None:
    editor = Editor("one two three", 7)
    editor.accept("-and-a-half", 0)
    assert editor.restore("one two three", 7) == Edit(7, 18, "")
    assert shown(editor) == "one two| three"
    editor = Editor("aaa", 1)
    editor.press("a")
    assert len(editor.restore("aaa", 1).text) == 0
    assert shown(editor) == "a|aa"


@pytest.mark.parametrize("seed", range(4))
def test_every_hole_is_typed_again(seed: int) -> None:
    text = Path(bench.__file__).read_text(encoding="utf-8") if seed else SOURCE
    found = played_editor.holes(text, random.Random(seed))
    assert {hole.kind for hole in found} == {"rest", "line", "block", "arguments"}
    for hole in found:
        wanted = text[hole.start : hole.end]
        editor = Editor(text, 0)
        editor.replace(hole.start, hole.end, "")
        for _ in range(4 * len(wanted) + 40):
            key = next_key(editor, hole.start, wanted)
            if key is None:
                break
            before = editor.text
            edit = editor.press(key)
            assert editor.text == before[: edit.start] + edit.text + before[edit.end :]
        assert editor.text == text, wanted


def test_holes_can_be_taken_out_and_the_rest_still_parses() -> None:
    for hole in played_editor.holes(SOURCE, random.Random(0)):
        if hole.kind in ("line", "block"):
            ast.parse(SOURCE[: hole.start] + ("pass" if hole.kind == "line" else " pass") + SOURCE[hole.end :])
        elif hole.kind == "arguments":
            ast.parse(SOURCE[: hole.start] + SOURCE[hole.end :])


def test_holes_are_found_behind_characters_of_several_bytes() -> None:
    text = 'name = "é𝒳"; other = print("é𝒳", other)\nlonger = "é𝒳" + name\n'
    found = played_editor.holes(text, random.Random(0))
    assert {text[hole.start : hole.end] for hole in found if hole.kind == "arguments"} == {'"é𝒳", other'}
    assert {text[hole.start : hole.end] for hole in found if hole.kind == "line"} == {'longer = "é𝒳" + name'}


def test_the_next_key() -> None:
    editor = Editor("", 0)
    assert next_key(editor, 0, "(a)") == "("
    editor.press("(")
    assert next_key(editor, 0, "(") == DELETE
    assert next_key(editor, 0, "[") == BACKSPACE
    editor = Editor("if a:\n    ", 10)
    assert next_key(editor, 0, "if a:\n\nb") == "\n"
    assert next_key(editor, 0, "if a:\nb") == BACKSPACE


def test_a_word_of_an_offer() -> None:
    assert played_editor.first_word("self.name)", 1) == "self"
    assert played_editor.first_word(".name", 0) == "."
    assert played_editor.first_word("\n    return x", 0) == "\n    return"
    assert played_editor.first_word(")", 1) == ""
    assert played_editor.first_word("", 0) == ""


def test_positions_are_utf_16() -> None:
    text = "a\n𝒳é\fb\n"
    assert played_editor.position(text, 5) == {"line": 1, "character": 4}
    assert played_editor.span(text, 0, 2) == {"start": {"line": 0, "character": 0}, "end": {"line": 1, "character": 0}}


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
        return request, server_bench.note(request, asked, message)

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


def test_percentiles_are_values() -> None:
    values = [float(number) for number in range(200, 0, -1)]
    assert [server_bench.percentile(values, share) for share in (0.5, 0.95, 1.0)] == [100, 190, 200]
    assert server_bench.percentile([3.0], 0.5) == 3
    assert server_bench.percentile([], 0.5) is None
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
    played = Played(server_bench.SCENARIOS[0], requests, Counts(keystrokes=20, unasked=9))
    report = Report({"command": "none"}, [played])
    found = {row.what: (row.n, row.p50) for row in report.times()}
    names = [name for name, _, _ in KINDS]
    assert [found.get(name, (0, None))[0] for name in names] == [8, 2, 1, 1, 1, 0, 1, 1, 1, 1, 1]
    assert list(found[server_bench.ONE_LINE]) == [2, 101]
    assert list(found["cancelled: from there to the error"]) == [1, 3]
    (cells,) = report.keys()
    named = dict(zip(server_bench.KEYS_HEADER, cells, strict=True))
    assert named["without the model"] == "60.0 %"
    assert (named["model: item"], named["model: nothing"], named["cancelled"], named["failed"]) == (
        "20.0 %",
        "5.0 %",
        "10.0 %",
        "5.0 %",
    )
    titles = [title for title, _, _, _ in report.tables()]
    assert [line for line in report.lines() if line.removesuffix(":") in titles] == [f"{title}:" for title in titles]
    short = {name: value for name, value, _ in report.short()}
    assert short["item of one line, from the model (reads)"] == "p50 101 ms, p95 201 ms"
    assert short["keystrokes answered from memory (reads)"] == "cache 5.0 %, prefetch 5.0 %"
    own = next(row for row in report.parts() if row.what == "server's own share")
    assert (own.n, own.max) == (7, 210)


# --- typing, without a server -------------------------------------------------------------------------------------


class Scripted:
    """Answers every request at once with what it is told to, and keeps the document as a server would."""

    def __init__(self, offers: list[str]) -> None:
        self.offers = itertools.cycle(offers)
        self.texts: dict[str, str] = {}
        self.sent: list[tuple[str, Any]] = []
        self.numbers = itertools.count(1)

    def notify(self, method: str, params: Any) -> None:
        self.sent.append((method, params))
        if method == "textDocument/didOpen":
            self.texts[params["textDocument"]["uri"]] = params["textDocument"]["text"]
        elif method == "textDocument/didChange":
            uri = params["textDocument"]["uri"]
            for change in params["contentChanges"]:
                lines = self.texts[uri].split("\n")
                start, end = (
                    sum(len(line) + 1 for line in lines[: at["line"]]) + at["character"]
                    for at in (change["range"]["start"], change["range"]["end"])
                )
                self.texts[uri] = self.texts[uri][:start] + change["text"] + self.texts[uri][end:]

    def ask(self, method: str, params: Any) -> Asked:
        self.sent.append((method, params))
        asked = Asked(next(self.numbers), 0.0, asyncio.get_running_loop().create_future(), received=0.001)
        item = {
            "insertText": next(self.offers),
            "range": {"start": params.get("position"), "end": params.get("position")},
            "command": {"title": "", "command": "fim-server.accepted", "arguments": [{"id": "1"}]},
        }
        asked.answer.set_result({"result": {"items": [item]}})
        return asked

    def cancel(self, asked: Asked) -> None:
        assert asked.answer.done()

    async def answer_to(self, asked: Asked) -> Any:
        await asyncio.sleep(0)
        return asked.answer.result()["result"]


def play(
    monkeypatch: pytest.MonkeyPatch, scenario: Scenario, offers: list[str], keystrokes: int, seed: int = 0
) -> tuple[Scripted, Played]:
    """Types in :data:`SOURCE` without any waiting."""

    async def hurry(seconds: float) -> None:
        await sleep(0)

    sleep = asyncio.sleep
    monkeypatch.setattr(asyncio, "sleep", hurry)
    client, played = Scripted(offers), Played(scenario)
    typist = Typist(client, played, 0.15, random.Random(seed))  # type: ignore[arg-type]
    found = played_editor.holes(SOURCE, random.Random(seed))
    asyncio.run(typist.type_in("a.py", SOURCE, found, keystrokes))
    return client, played


@pytest.mark.parametrize("scenario", server_bench.SCENARIOS, ids=lambda scenario: scenario.name)
@pytest.mark.parametrize("offers", [["x"], ["self.things", "\n    pass\n", 'print("a")']], ids=["short", "long"])
def test_the_servers_text_is_the_editors(
    scenario: Scenario, offers: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    client, played = play(monkeypatch, scenario, offers, 600)
    counts = played.counts
    assert counts.keystrokes in range(600, 640)
    requests = [request for request in played.requests if request.after != "invoked"]
    assert len(requests) + counts.unasked == counts.keystrokes
    assert {request.outcome for request in played.requests} == {"answered"}
    assert bool(counts.followed) == scenario.follows
    assert requests[0].after == "opened"
    # Every hole but the last, in which the keystrokes ran out, was filled with what was taken out of it.
    (text,) = client.texts.values()
    changes = [params for method, params in client.sent if method == "textDocument/didChange"]
    assert [params["textDocument"]["version"] for params in changes] == list(range(2, len(changes) + 2))
    removed = max(hole.end - hole.start for hole in played_editor.holes(SOURCE, random.Random(0)))
    assert played_editor.common(text, SOURCE) + played_editor.common(text[::-1], SOURCE[::-1]) >= len(SOURCE) - removed


def test_what_agrees_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    client, played = play(monkeypatch, server_bench.SCENARIOS[0], ["self.things"], 1500)
    accepted = [params for method, params in client.sent if method == "workspace/executeCommand"]
    assert played.counts.accepted > 0
    assert len(accepted) <= played.counts.accepted
    assert all(params["command"] == "fim-server.accepted" for params in accepted)


# --- the protocol -------------------------------------------------------------------------------------------------


def test_a_server_that_does_not_start_is_one_line(corpus: Path) -> None:
    ended = command(corpus, "--model", "/nowhere")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.count("\n") == 1
    assert "/nowhere: no such model folder" in ended.stderr


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--path", "/nowhere"], "no such folder"),
        (["--path", "{empty}"], "no Python files to type in"),
        (["--keystrokes", "0"], "'0' is not a number above 0"),
        (["--scenario", "dances"], "invalid choice: 'dances'"),
    ],
)
def test_bad_input_is_one_line(arguments: list[str], complaint: str, tmp_path: Path) -> None:
    given = [argument.format(empty=tmp_path) for argument in arguments]
    ended = subprocess.run(
        [sys.executable, "-m", "fim_server", "bench", "server", "--json", *given],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.count("\n") == 1
    assert complaint in ended.stderr


def test_files_are_chosen_by_the_seed(corpus: Path) -> None:
    chosen = [source.name for source in server_bench.choose([str(corpus)], 9, seed=1)]
    assert sorted(chosen) == ["module_0.py", "module_1.py", "module_2.py"]
    assert len(list(server_bench.choose([str(corpus / "module_1.py")], 9, seed=1))) == 1
    library = [source.name for source in server_bench.choose(None, 2, seed=1)]
    assert library == [source.name for source in server_bench.choose(None, 2, seed=1)]
    assert len(library) == 2


# --- a run --------------------------------------------------------------------------------------------------------


def command(corpus: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "fim_server", "bench", "server", "--path", str(corpus), "--json", *arguments],
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=120,
    )


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


def test_a_server_is_waited_for_no_longer_than_it_lives() -> None:
    async def ask() -> None:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-c", "input()"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        client = Client(process, io.BytesIO(b"first\ngone\n"), 0.0)
        try:
            await client.answer_to(client.ask("initialize", {}))
        finally:
            await client.end()

    with pytest.raises(BenchError, match=r"^the server ended: gone$"):
        asyncio.run(ask())
