"""OpenAI's ``/v1/completions``, with the text after the cursor in ``suffix``."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

from fim_server.server.http.bodies import RefusedError
from fim_server.server.http.wanted import Excerpt, Served, Wanted, common_fields
from fim_server.text.hidden import BYTE_ORDER_MARK
from fim_server.tokens.written_prompts import AmbiguousPromptError, WrittenPrompt, take_apart


def wanted_of(fields: Mapping[str, Any]) -> Wanted:
    """Return the request in a body that the schema `Completion` has passed."""
    prompt, suffix, common = fields["prompt"], fields.get("suffix") or "", common_fields(fields)
    prompt = prompt if isinstance(prompt, str) else prompt[0]
    count, most = fields.get("n") or 1, fields.get("max_tokens")
    common["invoked"] = common["invoked"] or count > 1
    written = None if suffix else parts_of(prompt)
    if written is not None:
        prompt, suffix = written.prefix, written.suffix
        common["file"] = common["file"] or written.path
        common["language"] = common["language"] or written.language
        common["excerpts"] = tuple(Excerpt(*file) for file in written.files)
    return Wanted(
        prefix=prompt.removeprefix(BYTE_ORDER_MARK),
        suffix=suffix,
        count=int(count),
        most_tokens=None if most is None else int(most),
        **common,
    )


def parts_of(prompt: str) -> WrittenPrompt | None:
    """Return the parts of a prompt in a known format; None for plain text. Raises RefusedError for an ambiguous one."""
    try:
        return take_apart(prompt)
    except AmbiguousPromptError as error:
        raise RefusedError(400, f"{error}: send the texts in the fields prompt and suffix") from None


def response_of(served: Served) -> dict[str, Any]:
    """Return the response to a request."""
    choices = [choice_of(index, one.text, finish_of(one.is_cut)) for index, one in enumerate(served.texts)]
    return {**head_of(served), "choices": choices, "usage": usage_of(served), "fim_server": served.about}


def head_of(served: Served) -> dict[str, Any]:
    return {
        "id": f"cmpl-{uuid.uuid4().hex}",
        "object": "text_completion",
        "created": int(time.time()),
        "model": served.model,
    }


def choice_of(index: int, text: str, finish: str | None) -> dict[str, Any]:
    return {"index": index, "text": text, "finish_reason": finish, "logprobs": None}


def finish_of(is_cut: bool) -> str:
    return "length" if is_cut else "stop"


def usage_of(served: Served) -> dict[str, int]:
    statistics = served.statistics
    read = 0 if statistics is None else statistics.prefilled_tokens + statistics.reused_tokens
    written = 0 if statistics is None else statistics.tokens
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}


def events_of(served: Served, fields: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Return the events of a stream: each text at once, because it is judged as a whole, then its end."""
    head = head_of(served)
    for index, one in enumerate(served.texts):
        yield {**head, "choices": [choice_of(index, one.text, None)]}
    for index, one in enumerate(served.texts):
        yield {**head, "choices": [choice_of(index, "", finish_of(one.is_cut))], "fim_server": served.about}
    if (fields.get("stream_options") or {}).get("include_usage"):
        yield {**head, "choices": [], "usage": usage_of(served)}
