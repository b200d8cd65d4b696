"""Handler of the suggestion list, for clients without inline completion.

It is a coroutine that awaits the worker: pygls cancels it when the editor cancels its request.
"""

from __future__ import annotations

from dataclasses import replace

from lsprotocol import types

from fim_server.server.constants import SERVER
from fim_server.server.items import FallbackKinds, list_items
from fim_server.server.language_server import FimLanguageServer
from fim_server.server.requests.answer import Unanswered, answer
from fim_server.server.requests.request import IncomingRequest, receive


async def on_completion(ls: FimLanguageServer, params: types.CompletionParams) -> types.CompletionList:
    """Return entries of the suggestion list for the cursor."""
    kinds = ls.client.fallback
    assert kinds is not None, "registered only with it"
    if not ls.client.uses_fallback:
        return types.CompletionList(is_incomplete=True, items=[])
    # Clients send `Invoked` for typed letters too.
    since = ls.protocol.since_change_ms(params.text_document.uri)
    typed = since is not None and since < SERVER.typed_ms
    kind = params.context.trigger_kind if params.context is not None else types.CompletionTriggerKind.Invoked
    invoked = kind is types.CompletionTriggerKind.Invoked and not typed
    incoming = receive(ls, params, invoked, None, takes_lines=kinds.takes_lines)
    items = await listed(ls, incoming, kinds)
    if items == [] and invoked and kinds.takes_lines:  # the lines of all texts are indented less than the cursor's
        items = await listed(ls, replace(incoming, takes_lines=False), kinds)
    return types.CompletionList(is_incomplete=True, items=items or [])


async def listed(
    ls: FimLanguageServer, incoming: IncomingRequest, kinds: FallbackKinds
) -> list[types.CompletionItem] | None:
    """Return the entries that answer a request; None without suggestions."""
    answered = await answer(ls, incoming)
    if isinstance(answered, Unanswered) or not answered.answer.suggestions:
        return None
    return list_items(answered.answer, answered.split, incoming.position, ls.encoding, kinds)
