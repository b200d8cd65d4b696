"""Suggestions that the user dismissed: they stay away from their place until its line changes.

A line is known by its text and by its number, from the top or from the bottom, since edits above or below do not change
it. Its cursor does not matter: a suggestion typed in part may be dismissed further to the right than it was sent.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from fim_server.suggest.context.cursor import Place
from fim_server.suggest.request import language_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lsprotocol import types

    from fim_server.server.documents.open_document import OpenDocument
    from fim_server.suggest.request import Request
    from fim_server.suggest.suggestion import Suggestion

MOST_SENT = 64
"""Latest suggestions that the user may still dismiss."""

MOST_DISMISSED = 64
"""Latest dismissals that are kept, for all documents."""

LONGEST_LINE = 4_000
"""Most characters before a cursor whose suggestions are kept."""


class Incoming(Protocol):
    """Request as it arrived; its owner is the document that holds the program: for a cell, its notebook."""

    @property
    def uri(self) -> str: ...
    @property
    def owner(self) -> str: ...
    @property
    def position(self) -> types.Position: ...
    @property
    def document(self) -> OpenDocument | None: ...


@dataclass(frozen=True, slots=True)
class Offer:
    """Suggestions that were sent together, as alternatives.

    Attributes:
        uri, owner: The document, as of the request.
        line: The cursor's line.
        texts: That line's text before the cursor, with each suggestion.
        language: The language.
        confidence: Confidence of the first lexeme, when it was shown first; None if the user asked for it.
    """

    uri: str
    owner: str
    line: int
    texts: tuple[str, ...]
    language: str = ""
    confidence: float | None = None

    def is_of(self, uri: str) -> bool:
        return uri in (self.uri, self.owner)


@dataclass(frozen=True, slots=True)
class Spot:
    """Line of a document: numbers of the lines above and below it, and the hash of its text."""

    uri: str
    above: int
    below: int
    text: int

    @classmethod
    def of(cls, opened: OpenDocument, line: int) -> Spot:
        text = opened.source
        start = opened.document.start_of_line(line) or 0
        end = text.find("\n", start)
        content = text[start : len(text) if end < 0 else end]
        return cls(opened.uri, line, text.count("\n", start), hash(content))

    def is_still(self, other: Spot) -> bool:
        """Return whether another spot is this line with the same text; lines above or below may be new."""
        is_near = self.above == other.above or self.below == other.below
        return is_near and self.uri == other.uri and self.text == other.text

    def has_changed(self, other: Spot) -> bool:
        """Return whether another spot is certainly this line with another text."""
        return replace(self, text=other.text) == other and self.text != other.text


class Dismissals:
    """The latest dismissed suggestions of a server."""

    def __init__(self) -> None:
        self._sent: OrderedDict[str, Offer] = OrderedDict()
        self._dismissed: deque[tuple[Spot, Offer]] = deque(maxlen=MOST_DISMISSED)

    def note(self, incoming: Incoming, request: Request, suggestions: Sequence[Suggestion]) -> None:
        """Remember what is on the screen. The rest of a suggestion typed in part keeps its identity."""
        before = Place.of(request.own).before
        if len(before) > LONGEST_LINE:
            return
        texts = tuple(before + one.text for one in suggestions)
        before_it = self._sent.get(suggestions[0].identity)
        confidence = suggestions[0].display.confidence if before_it is None else before_it.confidence
        place = incoming.uri, incoming.owner, incoming.position.line
        offer = Offer(*place, texts, language_name(request), None if request.invoked else confidence)
        for one in suggestions:
            self._sent[one.identity] = offer
            self._sent.move_to_end(one.identity)
        while len(self._sent) > MOST_SENT:
            self._sent.popitem(last=False)

    def take(self, identity: str) -> Offer | None:
        """Return and forget a suggestion with its alternatives; None if it is unknown, or was taken before."""
        offer = self._sent.get(identity)
        if offer is not None:
            self._sent = OrderedDict((known, sent) for known, sent in self._sent.items() if sent is not offer)
        return offer

    def dismiss(self, identity: str, opened: Callable[[str], OpenDocument | None]) -> Offer | None:
        """Dismiss a suggestion with its alternatives; return them as :meth:`take`.

        ``opened``: return the open document of a name.
        """
        offer = self.take(identity)
        document = None if offer is None else opened(offer.uri)
        if offer is not None and document is not None:
            self._dismissed.append((Spot.of(document, offer.line), offer))
        return offer

    def at(self, incoming: Incoming, request: Request) -> tuple[str, ...]:
        """Return the texts that were dismissed at a cursor, and forget those whose line has changed.

        In a document with more or fewer lines, another line may have a dismissed one's number. It changes nothing.
        """
        document = incoming.document
        if document is None or not any(offer.uri == incoming.uri for _, offer in self._dismissed):
            return ()
        here = Spot.of(document, incoming.position.line)
        for one in [one for one in self._dismissed if one[0].has_changed(here)]:
            self._dismissed.remove(one)
        before = Place.of(request.own).before
        texts = (text for spot, offer in self._dismissed if spot.is_still(here) for text in offer.texts)
        return tuple(text[len(before) :] for text in texts if len(text) > len(before) and text.startswith(before))

    def clear(self) -> None:
        self._sent.clear()
        self._dismissed.clear()

    def forget(self, uri: str) -> None:
        """Forget a document, or all cells of a notebook."""
        self._sent = OrderedDict((known, sent) for known, sent in self._sent.items() if not sent.is_of(uri))
        self._dismissed = deque((one for one in self._dismissed if not one[1].is_of(uri)), MOST_DISMISSED)
