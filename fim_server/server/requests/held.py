"""Answers of the trigger `subtle`: computed while the user types, and shown by the next explicit request there."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fim_server.server.requests.known_answers import look_up
from fim_server.server.requests.request import IncomingRequest, build_request
from fim_server.server.state import HeldPlace
from fim_server.suggest.ranking.display import display

if TYPE_CHECKING:
    from fim_server.server.language_server import FimLanguageServer


def place_of(incoming: IncomingRequest) -> HeldPlace | None:
    """Return the place of a request; None if its document is not open."""
    document = incoming.document
    return None if document is None else HeldPlace(incoming.uri, document.source, incoming.position)


def hold(ls: FimLanguageServer, incoming: IncomingRequest) -> None:
    """Note that the answer to an automatic request is cached, and was not sent."""
    ls.requests.held = place_of(incoming)


def revealing(ls: FimLanguageServer, incoming: IncomingRequest) -> IncomingRequest:
    """Return an explicit request as one for the answer that is held at its place; without such an answer, itself.

    It gets the answer once. The next explicit request there gets alternatives.
    """
    held = ls.requests.held
    if held is None or not incoming.invoked or held != place_of(incoming):
        return incoming
    ls.requests.held = None
    shown = replace(incoming, invoked=False, reveals=True)
    request = build_request(ls, shown)
    found = None if isinstance(request, str) else look_up(ls, request)
    if isinstance(request, str) or found is None or not display(found, request).suggestions:
        return incoming
    return shown
