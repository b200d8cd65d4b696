"""Stand-ins for text that has to follow: their places, their texts, and their description for the client."""

from __future__ import annotations

import ast
from collections.abc import AsyncIterator
from dataclasses import replace
from itertools import count
from typing import Any

import pytest
import pytest_asyncio
from lsprotocol import types

from fim_server.language import Language
from fim_server.server.items import accepted_command
from fim_server.suggest.answer_cache import moved
from fim_server.suggest.context import sessions
from fim_server.suggest.context.placeholders import StandIn, without_blank_breaks
from fim_server.suggest.context.sessions import PATIENCE, DocumentSessions, Opened
from fim_server.suggest.job import PromptTokens
from fim_server.suggest.pipeline import Completer
from fim_server.suggest.postprocess.blocks import is_header, owes_block
from fim_server.suggest.request import Request
from fim_server.suggest.settings import ServerSettings
from fim_server.text.document import Split
from support.editors.answers import answered, changed, suggestion
from support.editors.editor import AUTOMATIC, INVOKED, Client, Editor, parses, plain, serving, written


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time for every search, however busy the machine is."""
    monkeypatch.setattr(sessions, "STAND_IN_SECONDS", 60)
    monkeypatch.setattr(sessions, "REOPENS_SECONDS", 60)


def opened(marked: str, language: str = "python", stands_in: bool = True) -> tuple[Split, Opened]:
    left, _, right = marked.partition("‸")
    split = Split(left, right)
    return split, DocumentSessions().open("file:///a", Language.load(language), split, stands_in=stands_in)


@pytest.mark.parametrize(
    ("language", "marked", "middle"),
    [
        ("python", "total = sum(n for ‸)\nprint(total)\n", "n in range(3)"),
        ("python", "x = [a for ‸]\n", "a in b if a"),
        ("python", "x = {a: b for ‸}\n", "a, b in c"),
        ("python", "x = {a for a in b for ‸}\n", "c in a"),
        ("python", "x = [a async for ‸]\n", "a in b"),
        ("python", "f(a if ‸)\n", "b else c"),
        ("python", "d[a if ‸]\n", "b else c"),
        ("python", "x = g([h({k: v for ‸})])\n", "k, v in d"),
        ("python", "x = f'{[a for ‸]}'\n", "a in b"),
        ("python", "assert f(a not ‸)\n", "in b"),
        ("python", "if any(a for ‸)\n    b\n", "a in c):"),
        ("python", "@foo(a for ‸)\ndef f(): pass\n", "a in b"),
        ("python", "x = (\n    a if ‸\n)\n", "b else c"),
        ("json", '{"a": {‸}}\n', '"b": 1'),
        ("java", "class A { void f() { g(x ? ‸); } }\n", "y : z"),
        ("rust", "fn f() { let x = v.iter().map(|a| if a ‸); }\n", "{ b } else { c }"),
        ("go", "package a\n\nfunc f() {\n\tx := g(func() int { return ‸})\n}\n", "1"),
    ],
)
def test_a_line_that_completes_the_program_gets_no_stand_in(language: str, marked: str, middle: str) -> None:
    split, found = opened(marked, language)
    assert (found.guarantee, found.stand_in) == ("exact", None)
    assert found.right == split.right[found.covered :]
    covered = split.right[: found.covered]
    assert found.session.check(middle if all(one in middle for one in covered) else middle + covered).complete


@pytest.mark.parametrize(
    ("marked", "middle", "stand_in"),
    [
        ("try:\n    x = sum(n for ‸)\n", "n in a", StandIn(0, "\nexcept:x")),
        ("try:\n    x = [a if ‸]\n\ny = 1\n", "b else c", StandIn(0, "\nexcept:x")),
        ("try:\n    x = sum(n for ‸\n    )\n", "n in a", StandIn(1, "\nexcept:x")),
        ("@foo(a for ‸)\nx = 1\n", "a in b", StandIn(0, "\nclass x:x")),
        # A header that is whole but for the cursor: its block, and what belongs to that.
        ("if f(‸):\n", "a", StandIn(0, "\n    pass")),
        ("def f(‸) -> int:\n\nx = 1\n", "a", StandIn(0, "\n    pass")),
        ("class A:\n  def f(self, ‸):\n", "a", StandIn(0, "\n    pass")),
        ("for ‸ in a:\n", "b", StandIn(0, "\n    pass")),
        ("with open(‸) as f:\n\nx = 1\n", "a", StandIn(0, "\n    pass")),
        ("try:\n    with a(‸) as f:\n", "b", StandIn(0, "\n        pass\nexcept:x")),
        ("match f(‸):\n", "a", StandIn(0, "\n case x:x")),
    ],
)
def test_missing_text_gets_a_stand_in(marked: str, middle: str, stand_in: StandIn) -> None:
    split, found = opened(marked)
    assert (found.guarantee, found.stand_in) == ("partial", stand_in)
    assert found.session.check(middle).complete
    ast.parse(split.left + middle + stand_in.inserted(split.right)[found.covered :])


@pytest.mark.parametrize(
    ("marked", "guarantee"),
    [("if f(‸):\n", "partial"), ("match f(‸):\n", "partial"), ("try:\n    a‸\n", "exact"), ("if f(‸)\n", "exact")],
)
def test_several_lines_get_stand_ins_only_for_blocks(marked: str, guarantee: str) -> None:
    _, found = opened(marked, stands_in=False)
    assert found.guarantee == guarantee


def test_without_a_shortest_completion_there_is_no_stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    def shortest(session: object, patience: float = 1.0) -> str | None:
        looked.append(session)
        return known(session) if len(looked) < 3 else None  # of the session with the stand-in

    known: Any = sessions.shortest
    looked: list[object] = []
    monkeypatch.setattr(sessions, "shortest", shortest)
    _, found = opened("match f(‸):\n")
    assert (found.guarantee, found.stand_in) == ("exact", None)


@pytest.mark.parametrize(("invoked", "patience"), [(True, PATIENCE), (False, 1.0)])
def test_explicit_requests_have_more_patience(monkeypatch: pytest.MonkeyPatch, invoked: bool, patience: float) -> None:
    given: list[float] = []

    def open_patiently(*arguments: Any) -> Opened:
        given.append(arguments[-1])
        return opened("x = ‸\n")[1]

    known = DocumentSessions()
    monkeypatch.setattr(known, "open", open_patiently)
    completer = Completer(known, PromptTokens(), count(1), lambda: True)
    settings = ServerSettings()
    request = Request("file:///a.py", Split("x = ", "\n"), "python", "", invoked, True, settings)
    completer.context.open(request, Language.load("python"))
    assert given == [patience]


def test_lines_with_a_stand_in_are_not_covered() -> None:
    _, found = opened("x = 1\ntry:\n    f(\n        a‸\n    )\n\ny = 1\n")
    assert found.stand_in == StandIn(1, "\nexcept:x")
    assert found.covered_lines == (range(3), range(5, 8))
    _, found = opened("try:\n    a‸")
    assert found.covered_lines == (range(1),)


def test_a_stand_in_is_inserted_at_the_end_of_its_line() -> None:
    assert StandIn(0, "\nb").inserted(")\nc\n") == ")\nb\nc\n"
    assert StandIn(1, ":x").inserted("\n)\nc\n") == "\n):x\nc\n"
    assert StandIn(1, ":x").inserted("\n)") == "\n):x"


def test_line_breaks_that_end_a_line_stay() -> None:
    session = Language.load("python").open("try:\n    f(a for ", ")\n")
    text = "x\n  in\nx)\nexcept:g("
    assert without_blank_breaks(text, lambda one: session.check(one).complete) == "x in x)\nexcept:g("


@pytest.mark.parametrize(
    ("line", "right", "header"),
    [("if f(", ")\n", True), ("if f(", "):\n", False), ("for a in b", ":\n", False), ("def f(", ") -> int:\n", False)],
)
def test_a_complete_header_owes_no_block(line: str, right: str, header: bool) -> None:
    split = Split(line, right)
    assert (is_header(split, "python"), owes_block(split, "python")) == (header, header)


def test_covered_lines_move_with_the_typed_lines() -> None:
    partial = suggestion("a\nb\nc", guarantee="partial", covered_lines=(range(1), range(2, 4)))
    answer = replace(answered("x\n", "\ny\nz\n"), suggestions=(changed(partial, stand_in=StandIn(0, "\nw")),))
    found = moved(answer, answer.left + "a\n", answer.right, False)
    assert found is not None
    assert found.suggestions[0].origin.covered_lines == (range(1), range(3, 5))
    split = Split(found.left, found.right)
    (argument,) = plain(accepted_command(found.suggestions[0], split).arguments)
    assert argument["standIn"] == {"line": 2, "text": "\nw"}


# --- the items that a client gets ----------------------------------------------------------------------------------


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client() -> AsyncIterator[Client]:
    async with serving() as client:
        await client.is_ready()
        await client.use(maxTokens=24, maxLineTokens=24, insideStrings=True)
        yield client


LINES_ALONE = [
    "total = sum(n for ‸)\n",
    "def f(a):\n    return [b for ‸]\n\nx = 1\n",
    "x = {k: v for ‸}\n",
    "f(a if ‸)\n",
    "d = f'{[a for ‸]}'\n",
]
UNFINISHED = ["try:\n    x = sum(n for ‸)\n", "def f():\n    while g(‸):\n\nx = 1\n"]


def argument_of(item: types.InlineCompletionItem) -> dict[str, Any]:
    assert item.command is not None
    (argument,) = item.command.arguments or ()
    return dict(plain(argument))


def with_stand_in(text: str, stand_in: dict[str, Any], cursor_line: int, item: str) -> str:
    """Return a document after an accepted item, with its stand-in."""
    lines = text.split("\n")
    lines[stand_in["line"] + item.count("\n") * (stand_in["line"] >= cursor_line)] += stand_in["text"]
    return "\n".join(lines)


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    ("marked", "exact", "kind"),
    [
        *((marked, True, kind) for marked in LINES_ALONE for kind in (INVOKED, AUTOMATIC)),
        # On a busy machine what has to follow may be found too late for a keystroke.
        *((marked, False, INVOKED) for marked in UNFINISHED),
    ],
)
async def test_every_item_parses_as_its_guarantee_tells(
    client: Client, marked: str, exact: bool, kind: types.InlineCompletionTriggerKind
) -> None:
    left, _, right = marked.partition("‸")
    editor = Editor(client, f"{hash(marked)}.py", left + right)
    items = await editor.ask(len(left), kind=kind)
    assert items
    for item in items:
        argument, text = argument_of(item), editor.applied(item, len(left))
        assert argument["guarantee"] == ("exact" if exact else "partial")
        if not exact:
            text = with_stand_in(text, argument["standIn"], left.count("\n"), written(item))
        assert parses(text), text
    explanation = await editor.explain(len(left))
    assert explanation["guarantee"] == ("exact" if exact else "partial")
    assert (explanation["standIn"] is None) == exact
    editor.close()
