"""Suggestions and their places: triggers, brackets that editors close, cached answers, alternatives."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from lsprotocol import types

from fim_server.suggest.ranking.display import DISMISSED
from support.editors.editor import (
    AUTOMATIC,
    INVOKED,
    SETTINGS,
    Client,
    Editor,
    assert_parses,
    guarantee_of,
    in_comment,
    plain,
    serving,
    written,
)
from support.editors.typist import PAIRS, Typist

pytestmark = pytest.mark.asyncio(loop_scope="module")

MANUAL = "only when asked (setting trigger)"
IN_COMMENT, IN_STRING = "inside a comment (setting insideComments)", "inside a string (setting insideStrings)"
IN_WORD = "inside a word"

FUNCTION = "import os\n\n\ndef names(path, count):\n    return \n"
RETURN = FUNCTION.index("return ") + 7


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server() -> AsyncIterator[Client]:
    async with serving() as client:
        await client.is_ready()
        yield client


@pytest_asyncio.fixture(loop_scope="module")
async def client(server: Client) -> Client:
    """The server as it is at first: nothing answered yet, short texts."""
    await server.use(maxTokens=32, maxLineTokens=16)
    return server


def marked(client: Client, name: str, text: str, language_id: str = "python") -> tuple[Editor, int]:
    """A document whose cursor is where `|` stands."""
    return Editor(client, name, text.replace("|", "", 1), language_id), text.index("|")


async def reason(client: Client, name: str, text: str, kind: types.InlineCompletionTriggerKind) -> Any:
    """Return the reason for showing no suggestion, and check that items fit if there are any."""
    editor, cursor = marked(client, name, text)
    found = await editor.ask(cursor, kind=kind)
    for item in found:
        assert_parses(editor.applied(item, cursor), written(item))
    assert client.last["items"] == len(found)
    editor.close()
    return client.last["reason"]


# --- when it speaks ----------------------------------------------------------------------------------------------


QUIET = [
    ("# a comment about |\nx = 1\n", IN_COMMENT),
    ("x = 1  # why |\n", IN_COMMENT),
    ("def f():\n    # | \n    pass\n", IN_COMMENT),
    ('x = "some text |"\n', IN_STRING),
    ("x = 'some |text'\n", IN_STRING),
    ('def f():\n    """Do |\n    """\n', IN_STRING),
    ("x = b'|'\n", IN_STRING),
    ("x = r'a|b'\n", IN_STRING),
    ("def foo|bar(): pass\n", IN_WORD),
    ("x = 12|34\n", IN_WORD),
    ("naïve = naï|ve\n", IN_WORD),
]


@pytest.mark.parametrize(("text", "why"), QUIET)
async def test_no_automatic_suggestion_in_words_strings_and_comments(client: Client, text: str, why: str) -> None:
    assert await reason(client, "quiet.py", text, AUTOMATIC) == why
    assert await reason(client, "quiet.py", text, INVOKED) not in (IN_COMMENT, IN_STRING, IN_WORD)


@pytest.mark.parametrize(
    ("text", "setting"),
    [("# a comment about |\nx = 1\n", "insideComments"), ('x = "some text |"\n', "insideStrings")],
)
async def test_a_setting_allows_suggestions_in_comments_and_strings(client: Client, text: str, setting: str) -> None:
    other = {"insideComments": "insideStrings", "insideStrings": "insideComments"}[setting]
    await client.use(maxLineTokens=8, **{setting: True})
    assert await reason(client, "told.py", text, AUTOMATIC) not in (IN_COMMENT, IN_STRING)
    await client.use(maxLineTokens=8, **{other: True})
    assert await reason(client, "told.py", text, AUTOMATIC) in (IN_COMMENT, IN_STRING)


@pytest.mark.parametrize("text", ["x = |\n", "x = '#' + |\n", 'x = "a" + |\n', "x = 1  # a\ny = |\n"])
async def test_code_beside_comments_and_strings_is_code(client: Client, text: str) -> None:
    assert await reason(client, "code.py", text, AUTOMATIC) not in (IN_COMMENT, IN_STRING, IN_WORD)


async def test_the_manual_trigger(client: Client) -> None:
    await client.use(trigger="manual")
    editor = Editor(client, "manual.py", FUNCTION)
    assert await editor.ask(RETURN, kind=AUTOMATIC) == []
    assert client.last["reason"] == MANUAL
    assert await editor.ask(RETURN)
    await client.use(trigger="manual", languages={"python": "automatic"})
    assert await editor.ask(RETURN, kind=AUTOMATIC)


async def test_languages_are_switched_one_by_one(client: Client) -> None:
    editor, cursor = marked(client, "a.json", '{"a": [1, 2|]}\n', "json")
    for kind in (AUTOMATIC, INVOKED):
        assert await editor.ask(cursor, kind=kind) == []
        assert client.last["reason"] == "switched off for json"
    await client.use(languages={"json": "manual", "python": "off"})
    assert await editor.ask(cursor, kind=AUTOMATIC) == []
    assert client.last["reason"] == MANUAL
    await editor.ask(cursor)
    assert client.last["origin"] == "model"
    assert await Editor(client, "off.py", FUNCTION).ask(RETURN) == []
    assert client.last["reason"] == "switched off for python"
    await client.use(languages={"json": "automatic"})
    await editor.ask(cursor, kind=AUTOMATIC)
    assert client.last["origin"] == "model"


MID_LINE = [
    "def g(a):\n    b = | + 1\n    return b\n",
    "def g(a):\n    if |:\n        pass\n    return b\n",
    "def g(a):\n    return f(|)\n",
    "for | in range(3):\n    pass\n",
    "x = {'a': |, 'b': 2}\n",
    "class A(|):\n    pass\n",
]


@pytest.mark.parametrize("text", MID_LINE)
async def test_one_line_in_the_middle_of_a_line(client: Client, text: str) -> None:
    editor, cursor = marked(client, "middle.py", text)
    for kind in (AUTOMATIC, INVOKED):
        for item in await editor.ask(cursor, kind=kind):
            assert "\n" not in written(item)
            assert_parses(editor.applied(item, cursor), written(item))


SEVERAL = [
    "import os\n\n\nclass A:\n    def f(self, path, count):\n        if path:|\n        return count\n",
    "def f(path, count):\n    for name in path:|\n    return count\n",
    "class A:\n    def f(self, path):|\n\n    def g(self):\n        pass\n",
]


async def test_several_lines_at_a_lines_end(client: Client) -> None:
    lines = 0
    for text in SEVERAL:
        editor, cursor = marked(client, "end.py", text)
        for item in await editor.ask(cursor):
            lines = max(lines, written(item).count("\n"))
            assert_parses(editor.applied(item, cursor), written(item))
    assert lines > 0
    await client.use(multiline="never")
    for text in SEVERAL:
        editor, cursor = marked(client, "never.py", text)
        for item in await editor.ask(cursor):
            assert "\n" not in written(item)


async def test_always_several_lines(client: Client) -> None:
    await client.use(multiline="always", maxTokens=16)
    editor, cursor = marked(client, "always.py", MID_LINE[0])
    for item in await editor.ask(cursor):
        assert_parses(editor.applied(item, cursor), written(item))


async def test_the_model_is_never_asked_for_more_than_allowed(client: Client) -> None:
    await client.use(maxTokens=5, maxLineTokens=3, alternatives=1)
    for text, most in [(MID_LINE[0], 3), (SEVERAL[0], 5)]:
        editor, cursor = marked(client, "budget.py", text)
        await editor.ask(cursor)
        # The blank of `b = `, and the colon of `path:`, are written again besides.
        assert client.last["tokens"] <= most + 1


# --- brackets that the editor has closed -------------------------------------------------------------------------


BRACKETS = [
    "f(|)\n",
    "x = [|]\n",
    "x = {|}\n",
    'print("|")\n',
    "print('|')\n",
    "x = f(g([|]))\n",
    "x = {'a': [|]}\n",
    "print(len(|))\n",
    "def f(|):\n    pass\n",
    "class A:\n    def f(self, |):\n        return self\n",
    "x = [a for a in (|)]\n",
    "def f(a):\n    return a[|]\n\n\nprint(f(1))\n",
    "x = (\n    f(|)\n)\n",
    "f(a, |)\n",
    "f(a|)\n",
    "f(a)|)\n",
    "f(a|))\n",
    "x = [1, 2]|]\n",
    'print("a"|")\n',
    "x = f(g(1)|))\n",
]


@pytest.mark.parametrize("text", BRACKETS)
async def test_brackets_are_never_doubled(client: Client, text: str) -> None:
    """The right side that an item leaves is still code: no comment swallows it, and no text closes it before."""
    editor, cursor = marked(client, "brackets.py", text)
    found = await editor.ask(cursor)
    for item in found:
        assert guarantee_of(item) == "exact"
        result = editor.applied(item, cursor)
        assert_parses(result, written(item))
        start, end = editor.span(item)
        assert start == cursor
        behind = start + len(written(item))
        if editor.text[end] != "\n":
            assert not in_comment(result, behind), f"{written(item)!r} makes a comment of what stands behind it"
    print(f"{text!r}: {[(written(item), editor.span(item)[1] - cursor) for item in found]}")


# --- memory ------------------------------------------------------------------------------------------------------


async def test_typing_along_with_a_suggestion_costs_nothing(client: Client) -> None:
    # Of one line: a bracket that closes itself leaves the rest of several lines in the middle of a line.
    await client.use(prefetch=False, multiline="never")
    editor = Editor(client, "typed.py", FUNCTION)
    typist = Typist(editor, RETURN)
    (item,) = await editor.ask(typist.cursor, kind=AUTOMATIC)
    whole = editor.applied(item, typist.cursor)
    before = await client.run("statistics")
    keys = 0
    while len(written(item)) > 1:
        typist.press(written(item)[0])
        keys += 1
        (item,) = await editor.ask(typist.cursor, kind=AUTOMATIC)
        assert client.last["origin"] == "cache"
        assert client.last["latency"]["decodeMs"] == 0
        assert editor.applied(item, typist.cursor) == whole
    after = await client.run("statistics")
    assert after["answeredFromCache"] == before["answeredFromCache"] + keys
    assert after["shown"] == before["shown"]


def closes_all(text: str) -> bool:
    """Return whether all of an editor's closers are typed over; that of a lone bracket in a string is not."""
    open_brackets: list[str] = []
    for character in text:
        if character in "([{":
            open_brackets.append(PAIRS[character])
        elif character in ")]}" and (not open_brackets or open_brackets.pop() != character):
            return False
    return not open_brackets


async def test_auto_closed_brackets_do_not_end_a_suggestion(client: Client) -> None:
    """Texts with brackets in them are typed, as an editor types them; the rest holds what the editor put there."""
    await client.use(prefetch=False, maxLineTokens=32)
    tried = 0
    texts = [
        FUNCTION.replace("return ", "return |"),
        SEVERAL[0].replace(":|", ":\n            |"),
        "def f(values):\n    print|\n",
        "def f(values):\n    raise |\n",
        "def f(values):\n    x = sorted|\n    return x\n",
    ]
    for number, text in enumerate(texts):
        cursor = text.index("|")
        editor = Editor(client, f"closing{number}.py", text.replace("|", ""))
        typist = Typist(editor, cursor)
        found = await editor.ask(cursor)
        wholes = {editor.applied(item, cursor) for item in found}
        for item in found:
            if not any(opener in written(item) for opener in PAIRS) or "\n" in written(item):
                continue
            if not closes_all(written(item)):
                continue
            tried += 1
            for character, _ in pairwise(written(item)):
                typist.press(character)
                rest = await editor.ask(typist.cursor, kind=AUTOMATIC)
                origin, reason = client.last["origin"], client.last["reason"]
                if reason in (IN_STRING, IN_WORD):
                    continue
                assert origin == "cache", (written(item), editor.text, typist.cursor)
                assert {editor.applied(one, typist.cursor) for one in rest} <= wholes
                assert rest
            while typist.history:
                typist.undo()
            typist.cursor = cursor
    print(f"{tried} texts with brackets typed")
    assert tried > 0


async def test_a_word_of_a_suggestion_is_accepted(client: Client) -> None:
    await client.use(prefetch=False)
    editor = Editor(client, "words.py", FUNCTION)
    typist = Typist(editor, RETURN)
    (item,) = await editor.ask(typist.cursor, kind=AUTOMATIC)
    whole = editor.applied(item, typist.cursor)
    while True:
        typist.accept_word(item)
        if editor.text == whole:
            break
        (item,) = await editor.ask(typist.cursor, kind=AUTOMATIC)
        assert client.last["origin"] == "cache"
        assert editor.applied(item, typist.cursor) == whole


async def test_a_dismissed_suggestion_comes_again_on_request_or_once_its_line_changes(client: Client) -> None:
    await client.use(prefetch=False)
    editor = Editor(client, "dismissed.py", FUNCTION)
    (item,) = await editor.ask(RETURN, kind=AUTOMATIC)
    assert item.command is not None
    (argument,) = item.command.arguments or ()
    assert await client.run("dismissed", plain(argument)) is None
    assert await editor.ask(RETURN, kind=AUTOMATIC) == []
    assert client.last["reason"] == DISMISSED.message
    editor.change(0, 0, "import sys\n")  # above it
    moved = RETURN + len("import sys\n")
    assert await editor.ask(moved, kind=AUTOMATIC) == []
    editor.change(0, len("import sys\n"), "")
    assert written(item) in [written(one) for one in await editor.ask(RETURN)]
    assert await editor.ask(RETURN, kind=AUTOMATIC) == []
    editor.change(RETURN, RETURN, "q")
    await editor.ask(RETURN + 1, kind=AUTOMATIC)
    editor.change(RETURN, RETURN + 1, "")
    assert await editor.ask(RETURN, kind=AUTOMATIC)


async def test_decisions_move_the_threshold_until_it_is_reset(tmp_path: Path) -> None:
    settings = {**SETTINGS, "prefetch": False, "minConfidence": 0.01, "personalThreshold": True}
    async with serving(options=settings, cache=tmp_path) as client:
        await client.is_ready()
        for kind, moves in ((INVOKED, False), (AUTOMATIC, True)):
            editor, cursor = marked(client, f"decided{moves}.py", "import os\n\nfor name |\n    print(name)\n")
            item = (await editor.ask(cursor, kind=kind))[0]
            assert item.command is not None
            await client.run("dismissed", plain((item.command.arguments or ())[0]))
            assert ("python" in (await client.run("statistics"))["thresholdShifts"]) == moves
        await client.run("resetThreshold")
        assert (await client.run("statistics"))["thresholdShifts"] == {}


async def test_another_character_leads_to_another_answer(client: Client) -> None:
    await client.use(prefetch=False)
    editor = Editor(client, "other.py", FUNCTION)
    (item,) = await editor.ask(RETURN, kind=AUTOMATIC)
    other = "q" if not written(item).startswith("q") else "z"
    editor.change(RETURN, RETURN, other)
    for one in await editor.ask(RETURN + 1, kind=AUTOMATIC):
        assert_parses(editor.applied(one, RETURN + 1), written(one))
    assert client.last["origin"] == "model"
    editor.change(RETURN, RETURN + 1, "")  # taken back: known again
    (again,) = await editor.ask(RETURN, kind=AUTOMATIC)
    assert client.last["origin"] == "cache"
    assert written(again) == written(item)


@pytest.mark.parametrize("where", ["left", "right"])
async def test_an_edit_elsewhere_leads_to_another_answer(client: Client, where: str) -> None:
    await client.use(prefetch=False)
    text = f"{FUNCTION}\n\nprint(names('.', 1))\n"
    editor = Editor(client, f"elsewhere_{where}.py", text)
    await editor.ask(RETURN, kind=AUTOMATIC)
    at = text.index("count)") if where == "left" else text.index("1))")
    editor.change(at, at + 1, "d")
    for item in await editor.ask(RETURN, kind=AUTOMATIC):
        assert_parses(editor.applied(item, RETURN), written(item))
    assert client.last["origin"] == "model"


async def test_documents_do_not_answer_for_each_other(client: Client) -> None:
    await Editor(client, "one.py", FUNCTION).ask(RETURN)
    await Editor(client, "two.py", FUNCTION).ask(RETURN)
    assert client.last["origin"] == "model"
    closed = Editor(client, "three.py", FUNCTION)
    await closed.ask(RETURN)
    closed.close()
    await Editor(client, "three.py", FUNCTION).ask(RETURN)
    assert client.last["origin"] == "model"


async def test_changed_settings_forget_the_answers(client: Client) -> None:
    editor = Editor(client, "settings.py", FUNCTION)
    await editor.ask(RETURN)
    await client.use(alternatives=2, maxLineTokens=16)
    assert len(await editor.ask(RETURN)) <= 2
    assert client.last["origin"] == "model"


async def test_the_suggestion_behind_an_item_is_prefetched(client: Client) -> None:
    """An item is shown; a moment later, what would follow it is there already."""
    found = 0
    for number, text in enumerate([FUNCTION, SEVERAL[0].replace("if path:|", "if |"), "import |\n\nx = 1\n"]):
        cursor = text.index("|") if "|" in text else RETURN
        editor = Editor(client, f"next{number}.py", text.replace("|", ""))
        shown = await editor.ask(cursor, kind=AUTOMATIC)
        if not shown:
            continue
        for _ in range(40):  # the reader reads
            await client.run("statistics")
        await client.run(
            "explainAt", {"uri": editor.uri, "position": {"line": 0, "character": 0}}
        )  # behind it in the queue
        after = editor.accept(shown[0])
        for item in await editor.ask(after, kind=AUTOMATIC):
            assert_parses(editor.applied(item, after), written(item))
        if client.last["reason"] in (IN_COMMENT, IN_STRING, IN_WORD):
            continue
        assert client.last["origin"] == "prefetch"
        found += 1
    assert found


async def test_the_setting_prefetch_is_heeded(client: Client) -> None:
    await client.use(prefetch=False)
    editor = Editor(client, "unprepared.py", FUNCTION)
    (item,) = await editor.ask(RETURN, kind=AUTOMATIC)
    await client.run("explainAt", {"uri": editor.uri, "position": {"line": 0, "character": 0}})
    await editor.ask(editor.accept(item), kind=AUTOMATIC)
    assert client.last["origin"] == "model"


# --- alternatives ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [1, 2, 3, 5])
async def test_alternatives_differ_and_all_fit(client: Client, most: int) -> None:
    await client.use(alternatives=most, maxLineTokens=16, maxTokens=24)
    several = 0
    for number, text in enumerate([FUNCTION[:RETURN] + "|" + FUNCTION[RETURN:], *MID_LINE[:3], SEVERAL[1]]):
        editor, cursor = marked(client, f"alternatives{number}.py", text)
        found = await editor.ask(cursor)
        assert len(found) <= most
        assert len({written(item) for item in found}) == len(found)
        several += len(found) > 1
        for item in found:
            assert guarantee_of(item) == "exact"
            assert_parses(editor.applied(item, cursor), written(item))
    assert several > 1 or most == 1


async def test_alternatives_are_asked_for_once(client: Client) -> None:
    editor = Editor(client, "first.py", FUNCTION)
    (first,) = await editor.ask(RETURN, kind=AUTOMATIC)
    found = await editor.ask(RETURN)  # an answer without them does not serve a request for them
    assert client.last["origin"] == "model"
    assert written(first) == written(found[0])
    assert [written(item) for item in await editor.ask(RETURN)] == [written(item) for item in found]
    assert client.last["origin"] == "cache"
    assert len(await editor.ask(RETURN, kind=AUTOMATIC)) == 1
    assert client.last["origin"] == "cache"
