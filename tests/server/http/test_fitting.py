"""Texts that are served at random cursors of real files fit between prefix and suffix as the client sent them."""

from __future__ import annotations

import ast
import os
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

for library in ("starlette", "uvicorn", "jsonschema", "prometheus_client"):
    pytest.importorskip(library)

from fim_server.language import Language

if TYPE_CHECKING:
    from support.servers.http_served import HttpServed

ROOT = Path(__file__).resolve().parents[3]
CURSORS = 200 if os.environ.get("FIM_SERVER_LONG") else 12
"""Cursors in each file; the long form tries more."""

FILES = ("fim_server/constants.py", "fim_server/suggest/ranking/reasons.py")


@pytest.mark.parametrize("name", FILES)
def test_python_parses_with_the_text(served: HttpServed, name: str) -> None:
    text, draw = (ROOT / name).read_text(encoding="utf-8"), random.Random(name)
    shown = 0
    for _ in range(CURSORS):
        at, hidden = draw.randrange(len(text)), draw.choice((0, 0, 1, 12, 60))
        left, right = text[:at], text[at + hidden :]
        fields: dict[str, Any] = {"filename": name, "invoked": draw.random() < 0.8, "n_predict": draw.choice((-1, 8))}
        if draw.random() < 0.3:
            fields["stop"] = [draw.choice(("\n", "(", "self", ")"))]
        found = served.infill(left, right, language=None, **fields)
        about, middle = found["fim_server"], found["content"]
        if not middle:
            assert about["reason"], fields
            continue
        shown += 1
        if about["guarantee"] == "exact":
            whole = left + middle + right
            ast.parse(whole)
            assert not any(stop in middle for stop in fields.get("stop", ()))
    assert shown > CURSORS // 4


def test_brackets_of_an_editor_stay_its_own(served: HttpServed) -> None:
    """Each cursor behind an opening bracket, with the closer that the editor inserted and nothing else."""
    text = (ROOT / FILES[0]).read_text(encoding="utf-8")
    places = [at + 1 for at, character in enumerate(text) if character in "([{"][:: 3 if CURSORS < 100 else 1]
    language = Language.load("python")
    for at in places[:CURSORS]:
        closer = {"(": ")", "[": "]", "{": "}"}[text[at - 1]]
        left, right = text[:at], closer + text[at:].partition("\n")[1] + text[at:].partition("\n")[2]
        found = served.infill(left, right, invoked=True)
        if found["fim_server"]["guarantee"] == "exact":
            assert language.open(left, right).check(found["content"]).complete
