"""Strict reading of the arguments of our own commands and notifications: pygls would make a number of ``"3"``."""

from __future__ import annotations

from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams

_REQUIRED = object()

LARGEST = (1 << 31) - 1
"""The protocol's largest `uinteger`."""


def member(value: Any, name: str, default: Any = _REQUIRED) -> Any:
    """Return a member of a JSON object or of pygls' named tuple. Raises an error for the client if it is missing."""
    found = value.get(name, default) if isinstance(value, dict) else getattr(value, name, default)
    if found is _REQUIRED:
        raise JsonRpcInvalidParams.of(ValueError(f"{name}: missing"))
    return found


def text_member(value: Any, name: str) -> str:
    """Return a member that is a text. Raises an error for the client if it is not."""
    found = member(value, name)
    if not isinstance(found, str):
        raise JsonRpcInvalidParams.of(ValueError(f"{name}: a text expected"))
    return found


def object_of(arguments: tuple[Any, ...]) -> Any:
    """Return the object in a command's arguments; an empty one for null or none.

    Raises an error for the client if there are other arguments.
    """
    if len(arguments) > 1:
        raise JsonRpcInvalidParams.of(ValueError(f"0 or 1 arguments expected, {len(arguments)} given"))
    if not arguments or arguments[0] is None or arguments[0] == []:
        return {}
    if isinstance(arguments[0], dict) or hasattr(arguments[0], "_fields"):  # pygls makes named tuples of objects
        return arguments[0]
    raise JsonRpcInvalidParams.of(ValueError("an object expected"))


def position_of(value: Any) -> types.Position:
    """Return a client's position. Raises an error for the client if it is not one."""
    line, character = member(value, "line"), member(value, "character")
    if not is_count(line) or not is_count(character):
        raise JsonRpcInvalidParams.of(ValueError("position: line and character are whole numbers"))
    return types.Position(line, character)


def is_count(value: Any) -> bool:
    """Return whether a value is a `uinteger` of the protocol."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST
