"""What clients send in forms of our own, read strictly: pygls would make a number of ``"3"``."""

from __future__ import annotations

from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams

_REQUIRED = object()

LARGEST = (1 << 31) - 1
"""The protocol's largest `uinteger`."""


def member(value: Any, name: str, default: Any = _REQUIRED) -> Any:
    """A member of a JSON object, whatever it was made into on its way. Raises an error for the client without one."""
    found = value.get(name, default) if isinstance(value, dict) else getattr(value, name, default)
    if found is _REQUIRED:
        raise JsonRpcInvalidParams.of(ValueError(f"{name}: missing"))
    return found


def text_member(value: Any, name: str) -> str:
    """Return a member that is a text. Raises an error for the client where there is none."""
    found = member(value, name)
    if not isinstance(found, str):
        raise JsonRpcInvalidParams.of(ValueError(f"{name}: a text expected"))
    return found


def object_of(arguments: tuple[Any, ...]) -> Any:
    """Return the object in a command's arguments, if there is one; null is none.

    Raises an error for the client where there is anything else, or more.
    """
    if len(arguments) > 1:
        raise JsonRpcInvalidParams.of(ValueError(f"0 or 1 arguments expected, {len(arguments)} given"))
    if not arguments or arguments[0] is None or arguments[0] == []:
        return {}
    if isinstance(arguments[0], dict) or hasattr(arguments[0], "_fields"):  # pygls makes named tuples of objects
        return arguments[0]
    raise JsonRpcInvalidParams.of(ValueError("an object expected"))


def position_of(value: Any) -> types.Position:
    """A position that a client has sent. Raises an error for the client where it is none."""
    line, character = member(value, "line"), member(value, "character")
    if not is_count(line) or not is_count(character):
        raise JsonRpcInvalidParams.of(ValueError("position: line and character are whole numbers"))
    return types.Position(line, character)


def is_count(value: Any) -> bool:
    """Whether a value is a whole number of at least 0, and no larger than those of the protocol."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST
