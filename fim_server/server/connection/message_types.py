"""lsprotocol's classes of messages, each built when it is first used.

When `lsprotocol.types` is imported, attrs compiles the methods of its 550 classes. That takes 0.2 s, half of the
server's start, and a client's messages need a hundred of them. So a class is imported without methods here, and attrs
builds it in place before its first instance or the first look at its fields.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from threading import RLock
from types import ModuleType
from typing import Any

import attrs

MODULE = "lsprotocol.types"

FIELDS = "__attrs_attrs__"
"""Attribute by which attrs and its users know a class that attrs has built."""

_building = RLock()

_deferred: set[type] = set()
"""Classes that are not built yet."""


class Unbuilt:
    """Fields of a class that is not built yet: looking at them builds it."""

    def __init__(self, owner: type) -> None:
        self._owner = owner

    def __get__(self, instance: object, owner: type) -> Any:
        build(self._owner)
        return getattr(owner, FIELDS)


def defer(cls: type) -> type:
    """Have a class built once it is used."""

    def build_and_begin(self: Any, *values: object, **named: object) -> None:
        build(cls)
        type(self).__init__(self, *values, **named)

    _deferred.add(cls)
    setattr(cls, FIELDS, Unbuilt(cls))
    cls.__init__ = build_and_begin  # type: ignore[misc]
    return cls


def build(cls: type) -> None:
    """Build a deferred class, with the types of its fields; do nothing for one that is built.

    The deferring attributes stay until attrs replaces them, so other threads that use the class meanwhile wait here.
    """
    with _building:
        if cls in _deferred:
            _deferred.remove(cls)
            attrs.define(cls, slots=False, init=True)  # with slots it would be another class
            attrs.resolve_types(cls, vars(sys.modules[MODULE]), {})


def import_types() -> ModuleType:
    """Import the classes; those of an earlier import stay as they are."""
    if MODULE in sys.modules:
        return sys.modules[MODULE]
    define = attrs.define

    def defined(cls: type | None = None, **options: Any) -> Any:
        is_theirs = cls is not None and not options and cls.__module__ == MODULE
        return defer(cls) if is_theirs and cls is not None else define(cls, **options)

    with replaced(attrs, "define", defined):
        return import_module(MODULE)


def made_by(make: Callable[[], Any]) -> Any:
    """Return the converter that ``make`` makes with lsprotocol's hooks, which would otherwise build all classes."""
    if not _deferred:
        return make()
    with _building, replaced(import_types(), "ALL_TYPES_MAP", {}):
        return make()


@contextmanager
def replaced(module: ModuleType, name: str, value: object) -> Iterator[None]:
    """Replace an attribute of a module for a while."""
    before = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, before)
