"""Bodies of requests: read within limits, and checked by the schemas of ``openapi.json``. Also those of errors."""

from __future__ import annotations

import asyncio
import json
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from jsonschema import Draft202012Validator

if TYPE_CHECKING:
    from jsonschema import ValidationError
    from starlette.requests import Request

MOST_BODY_BYTES = 8 << 20
"""Most bytes of a request's body."""

MOST_BYTES_AT_ONCE = 64 << 20
"""Most bytes of all bodies that are being answered."""

BODY_SECONDS = 10.0
"""Longest time for a client to send its body."""

MOST_CHARACTERS_OF_PATH = 80


class RefusedError(Exception):
    """Request that is refused, with a status and a reason in one line."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


KINDS = {400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 503: "unavailable_error"}
"""Types of errors by status, as llama.cpp and OpenAI name them."""


def error_of(status: int, reason: str) -> dict[str, Any]:
    """Return the body of an error."""
    kind = KINDS.get(status, "server_error" if status >= 500 else KINDS[400])
    return {"error": {"code": status, "message": reason, "type": kind}}


class BodyBytes:
    """Bytes of the bodies that are being answered."""

    def __init__(self) -> None:
        self.held = 0

    def take(self, count: int) -> None:
        """Add bytes. Raises RefusedError beyond the limit."""
        if self.held + count > MOST_BYTES_AT_ONCE:
            raise RefusedError(503, "too many large requests at a time: try again later")
        self.held += count

    def give_back(self, count: int) -> None:
        self.held -= count


class Body:
    """Body of one request, whose bytes count until it is closed."""

    def __init__(self, all_bytes: BodyBytes) -> None:
        self._all = all_bytes
        self._data = bytearray()

    async def read(self, request: Request) -> bytes:
        """Return the bytes. Raises RefusedError for other types than JSON, too many bytes, and slow clients."""
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":  # a web page may send other types to any server
            raise RefusedError(415, "the content type has to be application/json")
        named = request.headers.get("content-length", "")
        if named.isdecimal() and int(named[:20]) > MOST_BODY_BYTES:
            raise RefusedError(413, TOO_LARGE)
        try:
            async with asyncio.timeout(BODY_SECONDS):
                async for chunk in request.stream():
                    if len(self._data) + len(chunk) > MOST_BODY_BYTES:
                        raise RefusedError(413, TOO_LARGE)
                    self._all.take(len(chunk))
                    self._data += chunk
        except TimeoutError:
            raise RefusedError(408, f"the body did not arrive within {BODY_SECONDS:g} s") from None
        return bytes(self._data)

    def close(self) -> None:
        self._all.give_back(len(self._data))
        self._data.clear()


TOO_LARGE = f"the body has more than {MOST_BODY_BYTES:,} bytes"


def fields_of(data: bytes, schema: str) -> dict[str, Any]:
    """Return the object in a body. Raises RefusedError unless it is JSON as the schema of that name says."""
    try:
        found = json.loads(data, parse_constant=refuse_constant)
    except (ValueError, RecursionError):
        raise RefusedError(400, "the body is not JSON, or nested too deeply") from None
    # The first error only: the schemas refuse a long array before they look at its items, and have no `anyOf`.
    error = next(validator(schema).iter_errors(found), None)
    if error is not None:
        raise RefusedError(400, in_words(error))
    return dict(found)


def refuse_constant(name: str) -> None:
    """Refuse NaN and infinities, which JSON does not have."""
    raise ValueError(name)


def in_words(error: ValidationError) -> str:
    """Return an error in one line that does not quote the value, which may be the user's code."""
    where = error.json_path.removeprefix("$").removeprefix(".")[:MOST_CHARACTERS_OF_PATH] or "the body"
    wanted = error.validator_value
    match error.validator:
        case "type":
            kinds = [wanted] if isinstance(wanted, str) else wanted
            return f"{where}: {' or '.join(kinds)} expected"
        case "required":
            missing = next((name for name in wanted if name not in error.instance), "a field")
            return f"{missing}: missing"
        case "minimum":
            return f"{where}: at least {wanted} expected"
        case "maximum":
            return f"{where}: at most {wanted} expected"
        case "maxItems":
            return f"{where}: at most {wanted} element{'s' if wanted > 1 else ''} expected"
        case "maxLength":
            return f"{where}: at most {wanted} characters expected"
        case "enum":
            return f"{where}: not supported, except {' and '.join(map(json.dumps, wanted))}"
        case _:
            description = error.schema.get("description") if isinstance(error.schema, dict) else None
            return f"{where}: not as expected{f' ({description})' if description else ''}"


@cache
def openapi() -> dict[str, Any]:
    """Return the OpenAPI page."""
    text = resources.files(__package__).joinpath("openapi.json").read_text(encoding="utf-8")
    page: dict[str, Any] = json.loads(text)
    return page


@cache
def validator(schema: str) -> Any:
    """Return the validator of a schema of the page."""
    return Draft202012Validator({"$ref": f"#/components/schemas/{schema}", **openapi()})
