"""Handlers of requests for completions.

They are coroutines that await the worker's thread: pygls cancels such a handler when the editor cancels its request.
"""

from __future__ import annotations

from dataclasses import replace

from lsprotocol import types

from fim_server.server.language_server import FimLanguageServer
from fim_server.server.messages import FallbackKinds, inline_items, list_items
from fim_server.server.requests import Asked, answer, take_in

TYPED_MS = 500.0
"""A request for the suggestion list that comes this soon after a change was made by typing."""


async def on_inline_completion(
    ls: FimLanguageServer, params: types.InlineCompletionParams
) -> types.InlineCompletionList:
    """Items for the cursor, or none where there is nothing to offer or the document has changed meanwhile."""
    ls.fallback_is_needed = False  # lsp-mode announces the feature with a null, which reads as if it did not
    invoked = params.context.trigger_kind is types.InlineCompletionTriggerKind.Invoked
    asked = take_in(ls, params, invoked, params.context.selected_completion_info, takes_lines=True)
    answered = await answer(ls, asked)
    if answered is None:
        return types.InlineCompletionList(items=[])
    items = inline_items(answered.answer, answered.split, asked.position, ls.encoding, asked.selected)
    return types.InlineCompletionList(items=items)


async def on_completion(ls: FimLanguageServer, params: types.CompletionParams) -> types.CompletionList:
    """Entries of the suggestion list for the cursor, for clients without inline completion."""
    kinds = ls.fallback
    assert kinds is not None, "registered only with it"
    if not ls.fallback_is_needed:
        return types.CompletionList(is_incomplete=True, items=[])
    # Clients say that somebody has asked when a letter was typed, too.
    since = ls.protocol.since_change_ms(params.text_document.uri)
    typed = since is not None and since < TYPED_MS
    kind = params.context.trigger_kind if params.context is not None else types.CompletionTriggerKind.Invoked
    invoked = kind is types.CompletionTriggerKind.Invoked and not typed
    asked = take_in(ls, params, invoked, None, takes_lines=kinds.takes_lines)
    items = await listed(ls, asked, kinds)
    if items == [] and invoked and kinds.takes_lines:  # the lines of all texts are indented less than the cursor's
        items = await listed(ls, replace(asked, takes_lines=False), kinds)
    return types.CompletionList(is_incomplete=True, items=items or [])


async def listed(ls: FimLanguageServer, asked: Asked, kinds: FallbackKinds) -> list[types.CompletionItem] | None:
    """Return the entries that answer a request; None where there are no offers."""
    answered = await answer(ls, asked)
    if answered is None or not answered.answer.suggestions:
        return None
    return list_items(answered.answer, answered.split, asked.position, ls.encoding, kinds)
