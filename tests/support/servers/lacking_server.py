"""The language server with something lacking: `server_lacking.py WHAT [ARGUMENTS]`.

`memory`: loading the model wants more than there is. `words`: telling of that does, too. `library`: a native library
says so in its own words, and another error hides it. `threads`: no thread can be started once the server is
initialised. `end`: loading has none.
"""

from __future__ import annotations

import sys
import threading
import time
from typing import Any

from fim_server.__main__ import run
from fim_server.errors import ModelError
from fim_server.models import load
from fim_server.server.handlers import initialize
from fim_server.server.language_server import FimLanguageServer


def want_memory(*arguments: Any) -> None:
    raise MemoryError


def want_memory_in_a_library(*arguments: Any) -> None:
    try:
        raise RuntimeError("std::bad_alloc")
    except RuntimeError:
        raise ModelError("the export cannot be loaded") from None


def never_end(*arguments: Any) -> None:
    time.sleep(3600)


def start_none(thread: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


def lack_threads(ls: FimLanguageServer, *arguments: Any) -> None:
    threading.Thread.start = start_none  # type: ignore[method-assign,assignment]


if __name__ == "__main__":
    what = sys.argv[1]
    load.load_model = {"library": want_memory_in_a_library, "end": never_end}.get(what, want_memory)  # type: ignore[assignment]
    if what == "words":
        FimLanguageServer.log = want_memory  # type: ignore[method-assign,assignment]
    if what == "threads":
        initialize.take_settings = lack_threads  # type: ignore[attr-defined,assignment]
    sys.argv[1:2] = ["serve"]
    sys.exit(run())
