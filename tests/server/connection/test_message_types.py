"""Deferred classes of lsprotocol: the same as attrs' own, and few of them built at the start."""

from __future__ import annotations

import subprocess
import sys

import pytest

DESCRIBED = """
import attrs, inspect, json
from lsprotocol import types

def described(cls):
    fields = [
        (one.name, repr(one.type), repr(one.default), one.kw_only, one.init, one.eq, one.repr, one.hash,
         type(one.validator).__name__, one.converter is None)
        for one in attrs.fields(cls)
    ]
    own = [name for name in ("__eq__", "__repr__", "__hash__", "__lt__", "__setattr__") if name in vars(cls)]
    return [fields, sorted(own), cls.__match_args__, str(inspect.signature(cls)), cls.__doc__]

classes = {name: cls for name, cls in types.ALL_TYPES_MAP.items() if isinstance(cls, type) and attrs.has(cls)}
print(json.dumps({name: described(cls) for name, cls in classes.items()}, default=str))
"""

ORDINARY = "from lsprotocol import _hooks; _hooks._resolve_forward_references()"
DEFERRED = "import fim_server.server"


def output_of(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_deferred_classes_are_those_of_attrs() -> None:
    ordinary, deferred = (output_of(f"{begin}\n{DESCRIBED}") for begin in (ORDINARY, DEFERRED))
    assert len(ordinary) > 100_000
    assert deferred == ordinary


BEHAVES = """
import copy, threading
import fim_server.server
from fim_server.server.connection import message_types
from fim_server.server.language_server import shared_converter
from lsprotocol import types

assert len(message_types._deferred) > 500

class Own(types.TextEdit):
    pass

begin = threading.Barrier(8)
made = []

def make():
    begin.wait()
    made.append(types.Location("file:///a", types.Range(types.Position(1, 2), types.Position(3, 4))))

threads = [threading.Thread(target=make) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert len(made) == 8 and all(one == made[0] for one in made)
assert repr(made[0]) == "file:///a:1:2-3:4", repr(made[0])
assert types.Position(1, 2) < types.Position(1, 3)
assert copy.deepcopy(made[0]) == made[0]
own = Own(made[0].range, "text")
assert own.new_text == "text" and isinstance(own, types.TextEdit)
for wrong in (lambda: types.Position(-1, 0), lambda: types.Position(0)):
    try:
        wrong()
    except (ValueError, TypeError):
        pass
    else:
        raise AssertionError("accepted")
converter = shared_converter()
told = {"textDocument": {"uri": "a", "languageId": "python", "version": 1, "text": ""}}
read = converter.structure(told, types.DidOpenTextDocumentParams)
assert read.text_document == types.TextDocumentItem("a", "python", 1, "")
assert converter.unstructure(read) == told
assert len(types.ALL_TYPES_MAP) > 500
assert len(message_types._deferred) > 450, len(message_types._deferred)
"""


def test_deferred_classes_behave_and_few_are_built() -> None:
    output_of(BEHAVES)


@pytest.mark.parametrize(
    "begin", ["from lsprotocol import types", "import lsprotocol.types, attrs; before = attrs.define"]
)
def test_classes_that_were_imported_before_stay(begin: str) -> None:
    code = f"""
{begin}
import fim_server.server, attrs
from fim_server.server.connection import message_types
from fim_server.server.language_server import shared_converter
import lsprotocol.types
assert not message_types._deferred
assert attrs.define.__module__ == "attr._next_gen"
assert shared_converter().structure({{"line": 1, "character": 2}}, lsprotocol.types.Position).line == 1
"""
    output_of(code)


def test_attrs_is_left_as_it_was() -> None:
    output_of('import fim_server.server, attrs; assert attrs.define.__module__ == "attr._next_gen"')


def test_a_server_begins_without_the_libraries_of_models() -> None:
    begin = "from fim_server.server import ServerSettings, create_server; create_server(ServerSettings())"
    slow = {"huggingface_hub", "lark", "numpy", "onnxruntime", "starlette", "statistics", "tokenizers", "torch"}
    assert not slow & set(output_of(f"{begin}\nimport sys; print(*sys.modules)").split())
