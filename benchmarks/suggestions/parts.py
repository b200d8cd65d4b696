"""The server's parts that can be left out, each by its settings: what is gained by one is measured without it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from fim_server.errors import BenchError
from fim_server.suggest.settings import CLIENT_FIELDS, ServerSettings

CURSOR = "cursor"
"""Notification of a resting cursor; the part is left out by not sending it."""

PARTS: Mapping[str, Mapping[str, Any]] = {
    "model": {"askModel": False},
    "memory": {"projectMemory": False},
    "names": {"names": "off"},
    "context": {"projectContext": "off"},
    "confidence": {"minConfidence": 0},
    CURSOR: {},
}
"""By name, the settings without it. One with any that this server lacks, or else without any, cannot be left out."""


def settings_without(parts: Iterable[str]) -> dict[str, Any]:
    """The settings that leave some parts out.

    Raises:
        BenchError: This server has no setting for one.
    """
    settings: dict[str, Any] = {}
    for part in parts:
        if (not PARTS[part] and part != CURSOR) or not CLIENT_FIELDS.keys() >= PARTS[part].keys():
            raise BenchError(f"--without {part}: this server has no setting that leaves it out")
        settings |= PARTS[part]
    return settings


def setting_named(given: str) -> dict[str, Any]:
    """A setting as ``NAME=VALUE``, where the value is JSON, or else a text.

    Raises:
        BenchError: There is no such setting, or it has no such value.
    """
    name, equals, text = given.partition("=")
    if not equals:
        raise BenchError(f"--setting {given}: NAME=VALUE expected")
    try:
        value = json.loads(text)
    except ValueError:
        value = text
    _, problems = ServerSettings().with_client({name: value})
    if problems:
        raise BenchError(f"--setting {given}: {problems[0]}")
    return {name: value}
