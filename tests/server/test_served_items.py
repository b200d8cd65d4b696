"""The items that a server sends, applied as an editor applies them, keep the server's promises.

`support.servers.served_items` has the invariants and the long form: FIM_SERVER_LONG=1 asks for 20,000 items here as
well, and FIM_SERVER_SEED draws others.
"""

from __future__ import annotations

import asyncio
import os
import random
from contextlib import AsyncExitStack
from dataclasses import replace

import pytest

from fim_server.models.prompt import find_format
from support.editors import editor
from support.models.text_models import Written, rest_of, text_model
from support.servers.served_cells import notebook
from support.servers.served_checks import EXACT, PARTIAL, Document, Item, Seen, applied, court, examine, list_item
from support.servers.served_items import LSP4IJ, PROGRAM, Case, accepted, available, fuzz, serve
from support.servers.served_places import BALANCED_LANGUAGES, LANGUAGES, Cutter, Place, files

LONG = os.environ.get("FIM_SERVER_LONG") == "1"
SEED = int(os.environ.get("FIM_SERVER_SEED", "0"))
ITEMS = 20_000 if LONG else 300

LEFT, RIGHT = "def f(ns):\n    total = sum(n ", "\n    return total\n"
PLACE = Place("python", "boundary", LEFT, ")", "for n in ns)", RIGHT)
SEEN = Seen(PLACE, PLACE.text, len(LEFT), True, ())


def seen(text: str, label: str = EXACT, covered: int = 0) -> Seen:
    """The answer with one item at :data:`PLACE`."""
    item = Item(label, len(LEFT), len(LEFT) + covered, text, frozenset(range(4)))
    return replace(SEEN, items=(item,))


def kinds(answer: Seen) -> list[str]:
    """The invariants that an answer breaks."""
    return sorted(violation.kind for violation in examine([answer]).violations)


def test_served_items_keep_their_guarantees() -> None:
    """Files of this repository alone in the short form: they are the same on every machine."""
    found, smallest = asyncio.run(fuzz(ITEMS, SEED, available(LANGUAGES), own=not LONG))
    print(found.counts)
    assert not smallest, "\n".join(map(str, smallest))
    assert found.counts["items"] >= ITEMS
    whole = found.counts["exact items"] + found.counts["balanced items"]
    assert whole > found.counts.get("partial items", 0)


@pytest.mark.asyncio
async def test_a_text_replaces_nothing_in_an_editor_that_only_inserts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(editor, "SERVE", PROGRAM)
    place = Place("python", "boundary", "def f(ns):\n    if g(", ")", "ns):", "\n        return 1\n")
    covered = {}
    async with AsyncExitStack() as stack:
        for kind, client in (await serve(stack, ("inline", LSP4IJ), "texts", {})).items():
            (seen,) = await client.run(Case(0, place, kind, True, "\n", ("ns):",), 0, "", (("minConfidence", 0),)))
            covered[kind] = [item.end - seen.cursor for item in seen.items]
    assert any(covered["inline"])
    assert covered[LSP4IJ]
    assert not any(covered[LSP4IJ])


def test_every_language_of_token_trees_has_a_file() -> None:
    draw = random.Random(0)
    for name in BALANCED_LANGUAGES:
        assert court(name).takes(next(files(name, draw, own=True))), name


def test_right_items_break_nothing() -> None:
    assert kinds(seen("for n in ns")) == []
    assert kinds(seen("for n in ns)", covered=1)) == []


@pytest.mark.parametrize(
    ("text", "label", "kind"),
    [
        ("for n in ns)", EXACT, "exact does not parse"),
        ("n in range(", PARTIAL, "not exact"),
        ("for n in ns if '\u202e'", EXACT, "invisible"),
        ("for n in ns if n\r if n", EXACT, "line breaks"),
        ("for n in ns" + " if n.real" * 3, EXACT, "loop"),
    ],
)
def test_planted_items_are_noticed(text: str, label: str, kind: str) -> None:
    assert kind in kinds(seen(text, label))


def test_a_request_without_an_answer_is_noticed() -> None:
    left = f"{LEFT}for "
    place = replace(PLACE, left=left, rest="n in ns)")
    answer = replace(SEEN, place=place, text=place.text, cursor=len(left))
    assert kinds(answer) == ["nothing on request"]
    assert kinds(replace(answer, invoked=False)) == []
    assert kinds(replace(answer, requires_names=True)) == []
    assert kinds(SEEN) == [], "the text can stay as it is"


@pytest.mark.parametrize(
    ("text", "kind"), [("\treturn 1", "indentation repeated"), ("return total", "line below repeated")]
)
def test_text_around_the_cursor_is_not_repeated(text: str, kind: str) -> None:
    left = "def f(total):\n\t"
    place = Place("python", "blank", left, "", "", "\n\treturn total\n")
    answer = Seen(place, place.text, len(left), True, (Item(EXACT, len(left), len(left), text),))
    assert kind in kinds(answer)
    assert kind not in kinds(replace(answer, items=(Item(EXACT, len(left), len(left), "total += 1"),)))


def test_partial_items_parse_with_the_lines_that_they_cover() -> None:
    left, right = "x = (\n", "\ny = 2\n"
    place = Place("python", "blank", left, "", "", right, broken=True)
    item = Item(PARTIAL, len(left), len(left), "z = 1", frozenset((1, 2, 3)))
    answer = Seen(place, place.text, len(left), True, (item,))
    assert kinds(answer) == []
    assert kinds(replace(answer, items=(replace(item, text="z = )"),))) == ["partial does not parse"]


def test_lists_are_applied_as_editors_apply_them() -> None:
    document = Document("file:///a.go", "\tif x {\n\t\tfo")
    span = {"start": {"line": 1, "character": 2}, "end": {"line": 1, "character": 4}}
    item = {
        "textEdit": {"range": span, "newText": "for \\$ {\n\t\\}"},
        "insertTextFormat": 2,
        "insertTextMode": 2,
        "command": {"arguments": [{"guarantee": EXACT}]},
    }
    found = list_item(document, item)
    assert applied(replace(SEEN, text=document.text), found) == "\tif x {\n\t\tfor $ {\n\t\t\t}"
    with pytest.raises(ValueError, match="tab stop"):
        list_item(document, {**item, "textEdit": {"range": span, "newText": "$1"}})


def test_positions_are_in_units_of_utf_16() -> None:
    document = Document("file:///a.rs", "a\r\n//\U000c1ba7x")
    assert document.position(6) == {"line": 1, "character": 4}
    assert [document.offset(document.position(at)) for at in (0, 3, 5, 6, 7)] == [0, 3, 5, 6, 7]


def test_a_partly_accepted_item_leaves_its_rest() -> None:
    answer = seen("for n in ns)", covered=1)
    place = accepted(answer, answer.items[0], "word")
    assert place is not None
    assert (place.left, place.closers, place.rest, place.right) == (LEFT + "for", ")", " n in ns)", RIGHT)
    assert accepted(answer, answer.items[0], "line") is None


def test_a_program_is_cut_into_cells_at_its_statements() -> None:
    text = "import os\n\n\ndef f(ns):\n    total = sum(n "
    place = Place("python", "boundary", text, ")", "for n in ns)", "\n    return total\n\n\nprint(f([1]))\n")
    for seed in range(10):
        found = notebook(place, seed)
        assert found.place.left == f"{found.place.command}def f(ns):\n    total = sum(n "
        assert found.place.right.rstrip() == "\n    return total"
        assert any(cell.strip() == "import os" for cell in found.before)
        assert found.after[-1].strip() == "print(f([1]))"
        program = found.place.program(found.place.text)
        assert program.startswith("pass\n" if found.place.command else "def")


def test_closers_are_those_of_the_line() -> None:
    cutter = Cutter(court("python").looks)
    assert cutter.closers('print("a(", f[x') == "])"
    assert cutter.closers("print('it") == "')"


def test_the_stand_in_writes_its_text() -> None:
    model = text_model(Written([(b"sum(n ", b"for n in ns")]))
    written = b"total = sum(n "
    prompt = model.format.encode("total = sum(n ", ")\n", 64)
    middle: list[int] = []
    for _ in range(20):
        row = model.forward([*prompt, *middle], model.new_cache())
        token = int(row.argmax())
        if token in model.vocabulary.end_token_ids:
            break
        middle.append(token)
    assert b"".join(map(model.vocabulary.token_bytes, middle)) == b"for n in ns"
    assert rest_of(written + b"x", b"sum(n ", b"for") is None
    assert find_format(model.format.tokenizer, "texts").family == model.format.family


def test_the_stand_in_writes_every_text_of_a_long_list_in_its_order() -> None:
    """Texts for other places take nothing from the likelihood of those that go on at the cursor."""
    here = [(b"x = ", b"first()"), (b"x = ", b"second()")]
    elsewhere = [(f"place_{number}(".encode(), b"nothing)") for number in range(40)]
    model = text_model(Written([*elsewhere, *here]))
    row = model.forward(model.format.encode("x = ", "\n", 64), model.new_cache())
    begun = [model.vocabulary.token_bytes(int(token)) for token in (-row).argsort()[: len(here)]]
    assert begun == [b"first", b"second"]
