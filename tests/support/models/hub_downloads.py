"""Downloads from the hub that the environment names, stopped and whole. Arguments: a model, and its files' names.

The hub's library reads the environment when it is first imported, so this is a process of its own.
"""

import sys
from pathlib import Path

import pytest

from fim_server.errors import ModelError, StoppedError
from fim_server.language.stop import Stop
from fim_server.models import source

name, *files = sys.argv[1:]
stop, told = Stop(), list[tuple[int, int]]()


def tell(done: int, total: int) -> None:
    told.append((done, total))


def tell_and_stop(done: int, total: int) -> None:
    tell(done, total)
    stop.set()


with stop, pytest.raises(StoppedError, match="the download was stopped"):
    source.fetch(name, tell_and_stop)
assert told
told.clear()
folder = Path(source.fetch(name, tell))
assert {path.name for path in folder.iterdir()} == set(files)
assert told[0][0] == 0
assert told[-1][0] == told[-1][1]
assert len({total for _, total in told}) == 1, "a file that is not begun is not counted"
assert [done for done, _ in told] == sorted(done for done, _ in told)
told.clear()
assert source.fetch(name, tell) == str(folder)
assert told == [], "something is downloaded twice"
with pytest.raises(ModelError, match="neither a folder here nor on the hub"):
    source.fetch("nobody/nothing", tell)
