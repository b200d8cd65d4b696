"""Process of a trial (:mod:`.trial`): load a GGUF file, make a pass, and print the fault as JSON."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from pathlib import Path

from fim_server.errors import FimServerError, first_line
from fim_server.models.gguf.load import load_sound_gguf, read_sound_tokens
from fim_server.models.gguf.trial import Tried

SAMPLE = "def first(values):\n    return values[0]\n"

LEAST_ROOM = 512
"""Tokens of the trial's window, where the whole window takes more memory than there is."""


def main(argument: str) -> None:
    if sys.platform != "win32":
        import resource

        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    tried = Tried(**json.loads(argument))
    problem = None
    try:
        attempt(tried)
    except (FimServerError, RuntimeError, ValueError) as error:
        problem = first_line(error).removeprefix(f"{tried.path}: ")
    print(json.dumps({"problem": problem}))


def attempt(tried: Tried) -> None:
    """Load a file, encode a text, and make passes. Raises the library's errors and RuntimeError."""
    path = Path(tried.path)
    if tried.vocabulary:
        _, vocabulary = read_sound_tokens(path)
        vocabulary.encode(SAMPLE)
        return
    adapter = None if tried.adapter is None else Path(tried.adapter)
    model = load_sound_gguf(path, 1, tried.gpu_layers, adapter)
    try:
        cache = model.new_cache(None)
    except RuntimeError:
        cache = model.new_cache(LEAST_ROOM)
    with suppress(ValueError):  # a vocabulary that cannot write this is no file's fault
        model.vocabulary.encode(SAMPLE)
    some = [number for number in range(model.size) if number % 7 == 0][:32] or [0]
    model.forward(some, cache)
    model.forward_rows(some[:2], cache, min(2, len(some)))


if __name__ == "__main__":
    main(sys.argv[1])
