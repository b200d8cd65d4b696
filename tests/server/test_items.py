"""Suggestions as items of the protocol, and the log lines of answers."""

from __future__ import annotations

import pytest
from lsprotocol import types

from fim_server.server.documents.open_document import OpenDocument
from fim_server.server.items import FallbackKinds, escaped_snippet, inline_items, list_items, word_before
from fim_server.server.status import last_json, log_line
from fim_server.suggest.job import Costs
from fim_server.suggest.ranking.reasons import Reason, Suppression
from fim_server.text.document import PositionEncoding, Split
from support.editors.answers import answered, suggestion


def test_line_feeds_become_the_documents_own_breaks() -> None:
    """A carriage return is no line break that the engine has judged, so it stays."""
    assert Split("", "", newline="\r\n").restore("a\nb\rc") == "a\r\nb\rc"


def test_a_range_that_ends_before_it_begins_is_read_the_other_way() -> None:
    document = OpenDocument("file:///a.py", source="one\ntwo\n", encoding=PositionEncoding.UTF16, version=1)
    change = types.Range(types.Position(1, 3), types.Position(0, 1))
    document.apply_change(types.TextDocumentContentChangePartial(range=change, text="!"))
    assert document.source == "o!\n"


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
