"""Comparison of calls, as SAFIM judges calls of an API (arXiv 2403.04814): without their blanks.

In Python two calls with the same arguments are the same; the name of the function is not compared.
"""

from __future__ import annotations

import ast
import warnings

from fim_server.datasets.python.text import LANGUAGE as PYTHON


def is_same_call(text: str, reference: str, language: str) -> bool:
    """Return whether a text is the call that stood there, in the benchmark's sense."""
    found, wanted = "".join(text.split()), "".join(reference.split())
    if found == wanted:
        return True
    arguments = _arguments(wanted) if language == PYTHON else None
    return arguments is not None and arguments == _arguments(found)


def _arguments(code: str) -> tuple[list[str], dict[str | None, str]] | None:
    """Return the arguments of a call by position and by name; None where the code is no call."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call = ast.parse(code, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if not isinstance(call, ast.Call):
        return None
    return list(map(ast.dump, call.args)), {one.arg: ast.dump(one.value) for one in call.keywords}
