"""Dismissed suggestions stay away from their place until its line changes."""

from __future__ import annotations

from typing import Any

from lsprotocol import types

from fim_server.server.documents.open_document import OpenDocument
from fim_server.server.requests.dismissals import LONGEST_LINE, MOST_DISMISSED, Dismissals
from fim_server.server.requests.request import IncomingRequest
from fim_server.suggest.request import Request
from fim_server.suggest.settings import ServerSettings
from fim_server.text.document import PositionEncoding
from support.editors.answers import suggestion

URI = "file:///a.py"
TEXT = "import os\n\n\nx = |\n\n\nx = \n"


class Editor:
    """A server's dismissals with one document, whose cursor is where `|` stands."""

    def __init__(self) -> None:
        self.dismissals = Dismissals()
        self.document: OpenDocument | None = None

    def at(self, text: str, uri: str = URI) -> tuple[IncomingRequest, Request]:
        left, right = text.split("|")
        document = OpenDocument(uri, source=left + right, encoding=PositionEncoding.UTF16)
        self.document = document
        position = types.Position(left.count("\n"), len(left.rsplit("\n", 1)[-1]))
        incoming = IncomingRequest(uri, position, False, None, True, 0.0, document, None)
        cut = document.document.split(len(left))
        return incoming, Request(uri, cut, "python", "a.py", False, True, ServerSettings())

    def shows(self, text: str, *texts: str, uri: str = URI, identity: str = "1") -> None:
        ids = (identity, *(f"{identity}.{number}" for number in range(1, len(texts))))
        found = [suggestion(one, identity=name) for one, name in zip(texts, ids, strict=True)]
        self.dismissals.note(*self.at(text, uri), found)

    def dismiss(self, identity: str = "1") -> bool:
        return self.dismissals.dismiss(identity, lambda uri: self.document) is not None

    def dismissed(self, text: str, **more: Any) -> tuple[str, ...]:
        return self.dismissals.at(*self.at(text, **more))


def dismissing(*texts: str) -> Editor:
    editor = Editor()
    editor.shows(TEXT, *texts)
    assert editor.dismiss()
    return editor


def test_a_dismissed_text_stays_away_from_its_line_alone() -> None:
    editor = dismissing("os.getcwd()")
    assert editor.dismissed(TEXT) == ("os.getcwd()",)
    assert editor.dismissed("import os\n\n\nx = \n\n\nx = |\n") == ()
    assert editor.dismissed(TEXT, uri="file:///b.py") == ()
    assert editor.dismissed("import os\n|\n\nx = \n\n\nx = \n") == ()
    assert editor.dismissed("import os\n\n\nx =| \n\n\nx = \n") == (" os.getcwd()",)  # the document it leads to counts
    assert editor.dismissed(TEXT) == ("os.getcwd()",)


def test_it_may_come_again_once_the_line_has_changed() -> None:
    editor = dismissing("os.getcwd()")
    assert editor.dismissed("import os\n\n\nx = o|\n\n\nx = \n") == ()
    assert editor.dismissed(TEXT) == ()


def test_edits_above_or_below_do_not_change_the_line() -> None:
    editor = dismissing("os.getcwd()")
    assert editor.dismissed(f"import sys\n{TEXT}") == ("os.getcwd()",)
    assert editor.dismissed(f"{TEXT}y = 1\n") == ("os.getcwd()",)
    assert editor.dismissed("import sys\nimport os\n\n|\nx = \n\n\nx = \n") == ()  # now has the old number
    assert editor.dismissed(f"import sys\n{TEXT}") == ("os.getcwd()",)


def test_the_rest_of_a_suggestion_typed_in_part_is_dismissed() -> None:
    editor = Editor()
    editor.shows(TEXT, "os.getcwd()")
    typed = TEXT.replace("|", "os.|")  # the editor shows the rest by itself
    editor.at(typed)
    assert editor.dismiss()
    assert editor.dismissed(typed) == ("getcwd()",)


def test_alternatives_are_dismissed_together_and_once() -> None:
    editor = dismissing("os.getcwd()", "os.environ")
    assert editor.dismissed(TEXT) == ("os.getcwd()", "os.environ")
    assert not editor.dismiss()
    assert not editor.dismiss("1.1")
    assert not editor.dismiss("another")


def test_closed_documents_are_forgotten() -> None:
    editor = dismissing("os.getcwd()")
    editor.shows(TEXT, "os.sep", identity="2")
    editor.dismissals.forget(URI)
    assert editor.dismissed(TEXT) == ()
    assert not editor.dismiss("2")


def test_memory_is_bounded() -> None:
    editor = Editor()
    for number in range(MOST_DISMISSED + 10):
        editor.shows(TEXT, f"text {number}", identity=str(number))
        assert editor.dismiss(str(number))
    assert len(editor.dismissed(TEXT)) == MOST_DISMISSED
    editor.shows(f"{' ' * LONGEST_LINE}x = |", "far", identity="far")
    assert not editor.dismiss("far")
