"""The parts of the language server that need no process: memory, places, counts, settings, messages."""

from __future__ import annotations

import ast
import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from lsprotocol import types

from fim_server.language import Language
from fim_server.models.pace import Pace
from fim_server.server.constants import SERVER
from fim_server.server.documents.open_document import OpenDocument
from fim_server.server.items import FallbackKinds, escaped_snippet, inline_items, list_items, word_before
from fim_server.server.status import last_json, log_line
from fim_server.server.usage import MOST_SENT, Usage, percentile
from fim_server.suggest.context.brackets import before_unopened, unmatched
from fim_server.suggest.context.cursor import Place, contains_in_order, wants_single_line
from fim_server.suggest.context.prompts import options_of
from fim_server.suggest.context.sessions import DocumentSessions
from fim_server.suggest.job import Costs
from fim_server.suggest.postprocess.blocks import is_header
from fim_server.suggest.ranking.display import missing_closer, quiet, silent
from fim_server.suggest.ranking.reasons import Reason, Suppression
from fim_server.suggest.request import Request
from fim_server.suggest.settings import CLIENT_FIELDS, DEFAULTS, ServerSettings, own_fields
from fim_server.text.document import PositionEncoding, Split
from fim_server.tokens.vocabulary import MOST_UNSETTLED
from support.editors.answers import answered, suggestion

# --- places ------------------------------------------------------------------------------------------------------


def place(text: str) -> Place:
    left, right = text.split("|")
    return Place.of(Split(left, right))


@pytest.mark.parametrize(
    ("text", "before", "after", "closers", "at_end", "in_word"),
    [
        ("|", "", "", "", True, False),
        ("a\n  b|\nc", "  b", "", "", True, False),
        ("f(|)", "f(", ")", ")", False, False),
        ("f([{'|'}]) # x", "f([{'", "'}]) # x", "'}])", False, False),
        ("f(a| )", "f(a", " )", " )", False, False),
        ("f({ | }) ", "f({ ", " }) ", " })", False, False),
        ("f(a| b)", "f(a", " b)", "", False, False),
        ("nam|e", "nam", "e", "", False, True),
        ("_|_", "_", "_", "", False, True),
        ("größ|e = 1", "größ", "e = 1", "", False, True),
        ("a|  \n", "a", "  ", "", True, False),
        ("(|" + ")" * 40, "(", ")" * 40, ")" * 16, False, False),
    ],
)
def test_the_place_of_a_cursor(text: str, before: str, after: str, closers: str, at_end: bool, in_word: bool) -> None:
    here = place(text)
    assert (here.before, here.after, here.closers(Language.load("python"))) == (before, after, closers)
    assert (here.is_at_line_end, here.is_inside_a_word) == (at_end, in_word)


def test_places_without_automatic_suggestions() -> None:
    settings = ServerSettings(inside_strings=False)
    code, word = place("x = |"), place("na|me")
    assert quiet(code, None, False, settings) is None
    found = quiet(word, None, False, settings)
    assert found is not None
    assert found.message == "inside a word"
    assert quiet(word, "string", True, settings) is None
    for inside, name in [("comment", "inside_comments"), ("string", "inside_strings")]:
        assert quiet(code, inside, False, settings) is not None
        assert quiet(code, inside, False, settings.having(name, True)) is None
        assert quiet(code, inside, True, settings) is None


@pytest.mark.parametrize(
    ("settings", "language", "automatic", "invoked"),
    [
        ({}, "python", True, True),
        ({}, "json", False, False),
        ({"trigger": "manual"}, "python", False, True),
        ({"trigger": "manual", "languages": {"python": "automatic"}}, "python", True, True),
        ({"languages": {"python": "manual"}}, "python", False, True),
        ({"languages": {"python": "off"}}, "python", False, False),
        ({"enabled": False, "languages": {"python": "automatic"}}, "python", False, False),
        ({"languages": {}}, "json", True, True),
    ],
)
def test_which_languages_are_answered(settings: dict[str, Any], language: str, automatic: bool, invoked: bool) -> None:
    made = replace(ServerSettings(), **settings)
    assert (silent(language, False, made) is None) == automatic
    assert (silent(language, True, made) is None) == invoked


@pytest.mark.parametrize(
    ("settings", "language", "automatic", "remembered"),
    [
        ({}, "python", True, True),
        ({}, "go", False, False),
        ({"languages": {"go": "automatic"}}, "go", True, True),
        ({"languages": {"go": "manual"}}, "go", False, True),
        ({"languages": {"python": "off"}}, "python", False, False),
        ({"trigger": "manual"}, "go", False, False),
    ],
)
def test_unlearnt_languages_are_completed_on_explicit_requests(
    settings: dict[str, Any], language: str, automatic: bool, remembered: bool
) -> None:
    made, learnt = replace(ServerSettings(), **settings), frozenset({"python"})
    assert (silent(language, False, made, learnt) is None) == automatic
    assert (silent(language, True, made, learnt) is None) == (made.languages.get(language) != "off")
    assert made.remembers(language, learnt) == remembered
    reason = silent("go", False, ServerSettings(), learnt)
    assert reason is not None
    assert reason.message == "only when asked: the model was not trained on go (setting languages)"


def test_places_for_a_single_line() -> None:
    middle, end = place("f(|)"), place("if a:|\n")
    for multiline, expected in [("auto", (True, False)), ("never", (True, True)), ("always", (False, False))]:
        settings = ServerSettings(multiline=multiline)
        assert (wants_single_line(middle, settings), wants_single_line(end, settings)) == expected


def test_parts_in_their_order() -> None:
    assert contains_in_order("a)b]", ")]")
    assert not contains_in_order("a]b)", ")]")
    assert not contains_in_order(")", "))")
    assert contains_in_order("", "")


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("r}", "r"),
        ("%] = 1", "%"),
        ("f(a)[0]", "f(a)[0]"),
        ("f(a))", "f(a)"),
        ("(]", "("),
        ("", ""),
        ("a, (b", "a, (b"),
    ],
)
def test_without_a_grammar_a_text_ends_before_a_foreign_closer(text: str, kept: str) -> None:
    assert before_unopened(text, Language.load("python").spelling.brackets) == kept


# --- what a second reading found -----------------------------------------------------------------------------------


def test_cached_answers_do_not_count_for_the_models_speed() -> None:
    usage = Usage()
    for _ in range(20):
        usage.count_answer(Costs(total_ms=600, prefill_ms=100, decode_ms=500), from_model=True)
    for _ in range(21):
        usage.count_answer(Costs(total_ms=1), from_model=True)
    assert usage.debounce_ms(100) == SERVER.longest_debounce_ms


@pytest.mark.parametrize("values", [None, 3, [], {"pylsp": {"plugins": {}}}, {"enabledd": True}])
def test_settings_of_other_servers_are_ignored(values: object) -> None:
    assert own_fields(values) is None


def test_our_settings_are_found_with_and_without_their_section() -> None:
    for values in ({"trigger": "manual"}, {"fim-server": {"trigger": "manual"}, "pylsp": {}}):
        assert own_fields(values) == {"trigger": "manual"}
    assert own_fields({}) == own_fields({"fim-server": {}}) == {}


def test_a_language_that_is_not_named_stays_as_it_is() -> None:
    settings, problems = ServerSettings().with_client({"languages": {"python": "manual"}})
    assert (settings.trigger_of("python"), settings.trigger_of("json"), problems) == ("manual", "off", [])


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ({"python": "3.10"}, "3.10"),
        ({"python": "newest"}, "newest"),
        ({"python": "2"}, None),
        ({"cobol": "1"}, None),
        ([], None),
    ],
)
def test_versions_by_language(value: object, kept: str | None) -> None:
    settings, problems = ServerSettings().with_client({"languageVersions": value})
    assert settings.versions.get("python") == kept
    assert bool(problems) == (kept is None)
    assert replace(settings, python_version="3.12").versions["python"] == "3.12"


@pytest.mark.parametrize(("version", "kept"), [("banana", None), ("2.7", None), ("3.12", "3.12"), ("newest", "newest")])
def test_a_python_that_is_not_known_keeps_the_default(version: str, kept: str | None) -> None:
    settings, problems = ServerSettings().with_client({"pythonVersion": version})
    assert settings.python_version == kept
    assert bool(problems) == (kept is None)


def test_line_feeds_become_the_documents_own_breaks() -> None:
    """A carriage return is no line break that the engine has judged, so it stays."""
    assert Split("", "", newline="\r\n").restore("a\nb\rc") == "a\r\nb\rc"


def test_covered_lines_do_not_include_the_cursors() -> None:
    left, right = '{"a": [1,\n 2],\n "b": [', " 1 2 :: ]\n}"
    opened = DocumentSessions().open("file:///a.json", Language.load("json"), Split(left, right))
    assert opened.guarantee == "partial"
    assert [(group.line, group.count) for group in opened.ignored] == [(2, 1)]
    assert [opened.line_in_document(line) for line in range(4)] == [0, 1, 2, 3]


def test_the_command_line_decides_the_model() -> None:
    values = {"model": "other", "device": "cuda", "pythonVersion": "3.12", "trigger": "manual"}
    named = ServerSettings(model="mine", device="cpu", python_version="3.11").with_client(values)[0]
    assert (named.model, named.device, named.python_version, named.trigger) == ("mine", "cpu", "3.11", "manual")


def test_a_range_that_ends_before_it_begins_is_read_the_other_way() -> None:
    document = OpenDocument("file:///a.py", source="one\ntwo\n", encoding=PositionEncoding.UTF16, version=1)
    change = types.Range(types.Position(1, 3), types.Position(0, 1))
    document.apply_change(types.TextDocumentContentChangePartial(range=change, text="!"))
    assert document.source == "o!\n"


# --- counts ------------------------------------------------------------------------------------------------------


def test_suggestions_are_counted_once() -> None:
    usage = Usage()
    for _ in range(3):
        usage.count_sent([suggestion("0123456789", identity="1")])
    usage.count_sent([suggestion("01234", identity="2"), suggestion("an alternative", identity="3")])
    usage.count_acceptance("1")
    usage.count_acceptance("1")
    usage.count_acceptance("nobody's")
    told = usage.as_json()
    assert (told["shown"], told["accepted"], told["acceptedCharacters"]) == (2, 1, 10)
    assert told["savedKeystrokes"] == 9  # accepting took one key
    json.dumps(told)


def test_the_typed_part_of_a_suggestion_is_not_accepted() -> None:
    usage = Usage()
    usage.count_sent([suggestion("0123456789", identity="1")])
    usage.count_sent([suggestion("456789", identity="1")])
    usage.count_acceptance("1")
    told = usage.as_json()
    assert (told["shown"], told["acceptedCharacters"], told["savedKeystrokes"]) == (1, 6, 5)


def test_old_suggestions_are_forgotten() -> None:
    usage = Usage()
    for number in range(MOST_SENT + 10):
        usage.count_sent([suggestion("a", identity=str(number))])
    usage.count_acceptance("0")
    assert usage.accepted == 0
    usage.count_acceptance(str(MOST_SENT))
    assert usage.accepted == 1


def test_latencies_without_requests_are_zero() -> None:
    assert Usage().as_json()["latency"] == {"p50Ms": 0.0, "p95Ms": 0.0, "serverP95Ms": 0.0}
    assert percentile([7.0], 95) == 7.0
    assert percentile([float(value) for value in range(101)], 95) == pytest.approx(95)


def test_the_pause_before_automatic_requests_follows_the_model() -> None:
    usage = Usage()
    assert usage.debounce_ms(10) == 0  # nothing is known yet
    usage.count_answer(Costs(total_ms=1, decode_ms=1), from_model=False)
    assert usage.debounce_ms(10) == 0  # memory says nothing of the model
    for _ in range(5):
        usage.count_answer(Costs(total_ms=210, prefill_ms=100, decode_ms=100), from_model=True)
    assert usage.debounce_ms(100) == pytest.approx(50)
    assert usage.debounce_ms(None) == 0
    assert usage.debounce_ms(500) == 0  # the user types slower than the model writes
    for _ in range(200):
        usage.count_answer(Costs(total_ms=9000, decode_ms=9000), from_model=True)
    assert usage.debounce_ms(100) == SERVER.longest_debounce_ms


@pytest.mark.parametrize(
    ("settings", "window", "tokens_per_second", "prompt", "chunk"),
    [
        ({}, 8192, 0, 192, 256),  # nothing is known
        ({}, 8192, 650, 192, 32),
        ({}, 8192, 2000, 576, 96),
        ({}, 1024, 6000, 1024 - 128 - MOST_UNSETTLED, 256),
        ({"prompt_tokens": 700}, 8192, 650, 700, 32),
        ({"prompt_tokens": 5000}, 4096, 650, 4096 - 128 - MOST_UNSETTLED, 32),
        ({"max_tokens": 4096}, 512, 6000, 256 - MOST_UNSETTLED, 256),
    ],
)
def test_a_prompt_is_as_long_as_there_is_time_and_room_for(
    settings: dict[str, Any], window: int, tokens_per_second: int, prompt: int, chunk: int
) -> None:
    pace = Pace()
    model: Any = SimpleNamespace(window=window)
    pace.note(tokens_per_second, 1.0)
    for single_line in (False, True):
        request = Request(
            "file:///a.py", Split("x = ", "\n"), "python", "", False, single_line, ServerSettings(**settings)
        )
        options = options_of(request, model, pace, 0, None)
        assert (options.max_prompt_tokens, options.prefill_chunk) == (prompt, chunk)
        assert 1 <= options.prompt_grid <= max(1, prompt // 8)


@pytest.mark.parametrize(
    ("marked", "covered"),
    [
        ("class A:\n    def f(self, |)\n        return 1\n", 1),  # its colon comes after the closer
        ("if isinstance(|)\n    x = 1\n", 1),
        ("for a in f(g(|))\n    pass\n", 2),
        ("x = [a for a in (|)]\n", 0),
        ("x = f(|)\ny = 2\n", 0),
        ("x = f(a, g(|)\ny = 2\n", 0),  # one of the two is owed
        ("def f(|):\n    pass\n", 0),
        ("d = {a[|]}\n", 0),
        ("class A(|)\n\nx = 1\n", 1),
        ("f(\n    'a|'\n    b=1,\n)\n", 1),  # its comma comes after the quote
        ("if x == 'a|'\n    pass\n", 1),
        ("d = {'a|'\n    b: 2}\n", 1),
        ("x = ['a|'\n    'b']\n", 0),  # two strings side by side are one
        ("x = ['a', 'b|']\n", 0),
        ("f'a {b} c|'\nx = 1\n", 0),
        ("assert f(a|)\n    b,\n    c,\n)\n", 1),  # what the lines below are in is opened behind the closer
        ("assert f(a, b|)\n    c\n)\n", 1),
        ("assert f(a) == (b|)  # c\n", 0),
    ],
)
def test_closers_before_a_required_rest_are_left_to_the_middle(marked: str, covered: int) -> None:
    left, right = marked.split("|")
    opened = DocumentSessions().open("file:///a.py", Language.load("python"), Split(left, right))
    assert (opened.covered, opened.guarantee) == (covered, "exact")


@pytest.mark.parametrize(
    ("marked", "middle"),
    [
        ("def f():\n    try:\n        data = lo|\n\nx = 1\n", "ad(path)"),
        ("@app.route(|)\n", "'/'"),
        ("@pytest.mark.p|\n", "arametrize"),
        ("def save(\n    path: s|\n)\n", "tr,"),
        ("class A(\n    js|\n)\n", "on.Encoder"),
        ("if (\n    a|\n):\n    pass\n", " == b"),
        ("for x in load(\n    pa|\n    )\n", "th"),
        ("with (\n    open(pat|)\n    )\n", "h"),
    ],
)
def test_a_missing_block_gets_a_placeholder(marked: str, middle: str) -> None:
    left, right = marked.split("|")
    contexts, python = DocumentSessions(), Language.load("python")
    split = Split(left, right)
    opened = contexts.open("file:///a.py", python, split, stands_in=True)
    assert opened.session.check(middle).complete
    ast.parse(opened.left + middle + opened.right)  # what is promised: with the stand-in it is a program
    assert missing_closer(middle, split, opened.covered) is None
    whole = contexts.open("file:///a.py", python, split)
    assert (whole.guarantee, opened.guarantee) in (("exact", "partial"), ("exact", "exact"))
    if opened.guarantee == "partial":
        assert not whole.session.check(middle).complete
        assert opened.diagnostics[0].endswith("the text that has to follow is missing")
        assert opened.session.check("").viable


@pytest.mark.parametrize(
    "marked",
    [
        "x = f(a|)\n",
        "if x:|\n    pass\n",
        "try:\n    a|\nexcept E:\n    pass\n",
        "x = {\n    a|\n}\n",
        "|",
        "try:\n    foo(|\n        a,\n        b,\n    )\n",  # the lines below are the line's own
        "@foo(|\n    a,\n)\n",
        "try:\n    x = [|\n        1,\n    ]\n",
        "try:\n    if a|\n        b()\n    c()\n",
        "match x|\n",  # its block is the middle's business
    ],
)
def test_no_placeholder_where_nothing_is_missing(marked: str) -> None:
    left, right = marked.split("|")
    opened = DocumentSessions().open("file:///a.py", Language.load("python"), Split(left, right), stands_in=True)
    assert (opened.guarantee, opened.right) == ("exact", right)


def test_lines_below_a_placeholder_are_the_documents() -> None:
    contexts, python = DocumentSessions(), Language.load("python")
    opened = contexts.open("file:///a.py", python, Split("try:\n    a", "\n\nx = 1\n"), stands_in=True)
    assert list(opened.stood_in) == [2]
    assert [opened.line_in_document(line) for line in range(5)] == [0, 1, 2, 2, 3]
    assert opened.covered_lines == (range(1), range(2, 5))


@pytest.mark.parametrize(
    ("line", "is_one"),
    [
        ("match = f(", False),
        ("match.group(", False),
        ("match x", True),
        ("case _", True),
        ("for a in b", True),
        ("else:", True),
        ("while ...:", True),
        ("if .5 < x", True),
    ],
)
def test_a_name_that_may_begin_a_block_does_not_where_it_is_a_name(line: str, is_one: bool) -> None:
    assert is_header(Split(line, "\n"), "python") == is_one


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a) + (b", (1, 1)), ("f(a)[b]", (0, 0)), ("))", (2, 0)), ("([", (0, 2)), ("(]", (1, 1)), ("", (0, 0))],
)
def test_brackets_without_a_partner_are_counted(text: str, expected: tuple[int, int]) -> None:
    assert unmatched(text, Language.load("python").spelling.brackets) == expected


def test_the_rest_of_the_costs_is_the_servers() -> None:
    costs = Costs(total_ms=100, debounce_ms=1, queue_ms=2, open_ms=3, prefill_ms=40, decode_ms=50, engine_ms=1)
    assert costs.server_ms == pytest.approx(3)
    assert Costs(total_ms=1, decode_ms=5).server_ms == 0


# --- settings ----------------------------------------------------------------------------------------------------


def test_no_settings_change_nothing() -> None:
    nothing: tuple[dict[str, Any] | None, ...] = (None, {}, {"fim-server": {}})
    for values in nothing:
        assert ServerSettings().with_client(values) == (ServerSettings(), [])


def test_every_setting_of_the_page_is_taken() -> None:
    values: dict[str, Any] = {
        "enabled": False,
        "trigger": "manual",
        "languages": {"python": "off", "json": "automatic"},
        "insideComments": True,
        "insideStrings": False,
        "multiline": "never",
        "minConfidence": 0.25,
        "alternatives": 5,
        "maxTokens": 64,
        "maxLineTokens": 12,
        "promptTokens": 512,
        "temperature": 0.5,
        "deadlineMs": 0,
        "invokedDeadlineMs": 10_000,
        "debounceMs": 75,
        "maxFileCharacters": 10,
        "memoryMb": 700,
        "floor": "brackets",
        "names": "off",
        "projectMemory": False,
        "projectContext": "on",
        "askModel": False,
        "prefetch": False,
        "logCode": True,
        "languageVersions": {"python": "3.10"},
        "pythonVersion": "3.9",
        "model": "./a-model",
        "device": "cpu",
        "gpuLayers": 3,
        "adapter": "adapter.gguf",
        "apiKeyEnv": "KEY",
        "allowPlainHttp": True,
        "tokenizer": "./a-tokenizer",
    }
    assert set(values) == set(CLIENT_FIELDS)
    for wrapped in (values, {"fim-server": values}):
        settings, problems = ServerSettings().with_client(wrapped)
        assert problems == []
        for key, value in values.items():
            name, _ = CLIENT_FIELDS[key]
            assert getattr(settings, name) == value
            assert getattr(settings, name) != DEFAULTS[name]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("enabled", "true"),
        ("enabled", 1),
        ("trigger", "off"),
        ("trigger", 3),
        ("trigger", ["automatic"]),
        ("languages", []),
        ("languages", {"python": True}),
        ("multiline", "sometimes"),
        ("alternatives", 0),
        ("alternatives", 6),
        ("alternatives", 2.5),
        ("alternatives", True),
        ("maxTokens", 0),
        ("maxTokens", "12"),
        ("promptTokens", 15),
        ("promptTokens", 100.5),
        ("temperature", -0.1),
        ("temperature", float("nan")),
        ("temperature", float("inf")),
        ("deadlineMs", -1),
        ("debounceMs", {}),
        ("maxFileCharacters", -1),
        ("memoryMb", 0),
        ("pythonVersion", 3.11),
        ("model", 5),
    ],
)
def test_wrong_values_keep_the_default_and_are_named(key: str, value: object) -> None:
    settings, (problem,) = ServerSettings().with_client({key: value, "maxLineTokens": 7})
    name, _ = CLIENT_FIELDS[key]
    assert getattr(settings, name) == DEFAULTS[name]
    assert settings.max_line_tokens == 7
    assert key in problem
    assert "\n" not in problem


def test_null_is_the_default_and_whole_numbers_may_come_as_floats() -> None:
    settings, problems = ServerSettings().with_client(dict.fromkeys(CLIENT_FIELDS))
    assert (settings, problems) == (ServerSettings(), [])
    settings, problems = ServerSettings().with_client({"alternatives": 2.0, "model": "  "})
    assert (settings.alternatives, settings.model, problems) == (2, None, [])


def test_unknown_fields_are_named_and_the_extensions_own_are_not() -> None:
    _, problems = ServerSettings().with_client(
        {"colour": 1, "path": [], "trace": {"server": "off"}, "logLevel": "info"}
    )
    assert problems == ["unknown setting 'colour'"]
    for nonsense in ([1], "text", 5, {"fim-server": 5}):
        assert ServerSettings().with_client(nonsense)[0] == ServerSettings()
        assert ServerSettings().with_client(nonsense)[1]


def test_settings_that_need_another_loading() -> None:
    settings = ServerSettings()
    assert settings.loads_like(settings.having("alternatives", 1))
    for name in ("model", "device", "python_version"):
        assert not settings.loads_like(settings.having(name, "other"))


# --- messages ----------------------------------------------------------------------------------------------------


AT = types.Position(3, 10)


def test_items_always_have_a_range_and_the_documents_line_breaks() -> None:
    split = Split("x = ", ")\n", newline="\r\n")
    answer = answered(split.left, split.right, suggestion("a,\nb)", covered=1), suggestion("c"))
    first, second = inline_items(answer, split, AT, PositionEncoding.UTF16, None)
    assert first.insert_text == "a,\r\nb)"
    assert first.range == types.Range(AT, types.Position(3, 11))
    assert second.range == types.Range(AT, AT)
    assert second.command is not None
    assert second.command.arguments == [{"id": "1", "guarantee": "exact"}]


def test_items_begin_with_the_selected_text() -> None:
    selected = types.SelectedCompletionInfo(types.Range(types.Position(3, 8), types.Position(3, 10)), "path")
    split = Split("os.path", ")\n")
    answer = answered(split.left, split.right, suggestion(".join(a))", covered=1), suggestion(".sep"))
    first, second = inline_items(answer, split, AT, PositionEncoding.UTF16, selected)
    assert (first.insert_text, first.range) == (
        "path.join(a))",
        types.Range(types.Position(3, 8), types.Position(3, 11)),
    )
    assert (second.insert_text, second.range) == ("path.sep", selected.range)


def kinds(snippets: bool = False, as_is: bool = False) -> FallbackKinds:
    modes = types.ClientCompletionItemInsertTextModeOptions([types.InsertTextMode.AsIs])
    item = types.ClientCompletionItemOptions(
        snippet_support=snippets, insert_text_mode_support=modes if as_is else None
    )
    completion = types.CompletionClientCapabilities(completion_item=item)
    return FallbackKinds(
        types.ClientCapabilities(
            types.WorkspaceClientCapabilities(), types.TextDocumentClientCapabilities(completion=completion)
        )
    )


def test_texts_of_several_lines_in_the_list() -> None:
    text, before = "if a:\n        b = '${x}\\\\'\n    c", "    "
    plain, snippets, as_is = kinds(), kinds(snippets=True), kinds(as_is=True)
    assert (plain.takes_lines, snippets.takes_lines, as_is.takes_lines) == (False, True, True)
    assert plain.write(text, before) is None
    assert as_is.write(text, before) == (text, types.InsertTextFormat.PlainText, types.InsertTextMode.AsIs)
    assert snippets.write(text, before) == (
        "if a:\n    b = '\\${x\\}\\\\\\\\'\nc",
        types.InsertTextFormat.Snippet,
        types.InsertTextMode.AdjustIndentation,
    )
    assert snippets.write("a\nb", before) is None  # indented less than the line: no snippet can say that
    assert snippets.write("a\n\n    b", before) is not None
    for kind in (plain, as_is):
        assert kind.write("f(${1})", before) == ("f(${1})", types.InsertTextFormat.PlainText, None)
    assert snippets.write("f(${1})", before) == ("f(\\${1\\})", types.InsertTextFormat.Snippet, None)


def test_clients_that_say_nothing_take_one_line() -> None:
    assert not FallbackKinds(types.ClientCapabilities()).takes_lines


def test_entries_of_the_list() -> None:
    split = Split("class A:\n    def f(self):\n        return sel", ")\n")
    answer = answered(
        split.left, split.right, suggestion("f.a)", covered=1), suggestion("f.b\n        pass"), suggestion("f" * 90)
    )
    first, third = list_items(answer, split, AT, PositionEncoding.UTF16, kinds())
    assert (first.label, first.filter_text) == ("self.a)", "self.a)")
    word = types.Position(AT.line, AT.character - len("sel"))
    assert first.text_edit == types.TextEdit(types.Range(word, types.Position(3, 11)), "self.a)")
    assert len(third.label) <= 60
    assert [first.sort_text, third.sort_text] == [" 0", " 2"]
    _, second, _ = list_items(answer, split, AT, PositionEncoding.UTF16, kinds(as_is=True))
    assert second.label == "self.b…"
    assert second.documentation == "f.b\n        pass"


def test_small_helpers_of_messages() -> None:
    assert escaped_snippet("a$b}c\\d{") == "a\\$b\\}c\\\\d{"
    assert [word_before(text) for text in ("x.größe_1", "a ", "", "(")] == ["größe_1", "", "", ""]


def test_the_log_gives_the_reason_of_each_suppressed_suggestion() -> None:
    last = last_json("file:///a.py", Costs(), None, "model", "not sure")
    suppressed = Suppression(Reason.LOW_CONFIDENCE, "not sure", 0.2), Suppression(Reason.LOOP, "it repeats itself")
    told = log_line(last, suppressed)
    assert told.startswith(
        "file:///a.py: no suggestion (not sure: confidence 0.200; suppressed: repeats itself), 0 ms ("
    )
    assert log_line(last | {"origin": "none"}, ()) == "file:///a.py: no suggestion (not sure)"


def test_the_log_gives_the_reasons_of_suggestions_suppressed_beside_a_shown_one() -> None:
    answer = answered("x = ", "\n", suggestion("a"))
    last = last_json("file:///a.py", Costs(), answer, "model", None)
    suppressed = Suppression(Reason.LOW_CONFIDENCE, "not sure", 0.2), Suppression(Reason.LOOP, "it repeats itself")
    reasons = "(suppressed: low confidence (0.200), repeats itself)"
    assert f"1 item from the model {reasons}, guarantee exact, end_token, 0 tokens" in log_line(last, suppressed)
    assert "1 item from the model, guarantee exact" in log_line(last, ())


@pytest.mark.parametrize(
    ("origin", "source"),
    [("model", ""), ("memory", ""), ("cache", ", from the cache"), ("prefetch", ", from the prefetch")],
)
def test_the_log_of_no_suggestion_speaks_of_no_items_and_no_tokens(origin: str, source: str) -> None:
    last = last_json("file:///a.py", Costs(total_ms=1), None, origin, "inside a word")
    told = log_line(last, (Suppression(Reason.IN_WORD, "inside a word"),))
    assert told.startswith(f"file:///a.py: no suggestion (inside a word){source}, 1 ms (debounce 0, ")
    assert "item" not in told
    assert "token" not in told
