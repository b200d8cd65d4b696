"""Handler of inline completion.

It is a coroutine that awaits the worker: pygls cancels it when the editor cancels its request.
"""

from __future__ import annotations

from lsprotocol import types

from fim_server.server.items import inline_items
from fim_server.server.language_server import FimLanguageServer
from fim_server.server.requests.answer import Unanswered, answer
from fim_server.server.requests.request import receive


async def on_inline_completion(
    ls: FimLanguageServer, params: types.InlineCompletionParams
) -> types.InlineCompletionList:
    """Return suggestions for the cursor; none if there are none or the document has changed."""
    ls.client.uses_fallback = False  # lsp-mode announces the feature with a null, which reads as if it did not
    invoked = params.context.trigger_kind is types.InlineCompletionTriggerKind.Invoked
    incoming = receive(ls, params, invoked, params.context.selected_completion_info, takes_lines=True)
    answered = await answer(ls, incoming)
    if isinstance(answered, Unanswered):
        return types.InlineCompletionList(items=[])
    items = inline_items(answered.answer, answered.split, incoming.position, ls.encoding, incoming.selected)
    return types.InlineCompletionList(items=items)
