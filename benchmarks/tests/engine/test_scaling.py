"""``./dev bench engine --scaling``: texts, fits and the plot are what they say; no figure is judged."""

from __future__ import annotations

import ast
import io
import json
import random
import tokenize
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks.__main__ import run
from benchmarks.engine import scaling
from benchmarks.engine.corpus import Library

SVG = "{http://www.w3.org/2000/svg}"
SOURCE = '"""Doc."""\nimport a; import b\n\n# before\n@c\ndef f():\n    pass\n    # within\n# after\nx = (1,\n  2)\n'


@pytest.fixture(scope="module")
def library() -> Library:
    return Library(Path(ast.__file__).parent)


def test_statements_are_the_file() -> None:
    assert scaling.statements(SOURCE) == [
        '"""Doc."""\n',
        "import a; import b\n\n# before\n",
        "@c\ndef f():\n    pass\n    # within\n# after\n",
        "x = (1,\n  2)\n",
    ]
    assert scaling.statements("") == []
    assert scaling.statements("# only\n") == []


@pytest.mark.parametrize("size", [1_000, 20_000])
@pytest.mark.filterwarnings("ignore::SyntaxWarning", "ignore::DeprecationWarning")
def test_texts_have_their_size_and_the_cursor_its_place(library: Library, size: int) -> None:
    chosen = scaling.text_of_size(library, size, random.Random(0))
    text = "".join(chosen)
    assert abs(len(text) - size) <= size * scaling.TOLERANCE
    assert chosen == scaling.text_of_size(library, size, random.Random(0))
    ast.parse(text)
    starts = {token.start for token in tokenize.generate_tokens(io.StringIO(text).readline) if token.string}
    for cursor in (scaling.BETWEEN, scaling.INSIDE):
        left, right = scaling.split(chosen, cursor)
        assert left + right == text
        assert size * 0.25 < len(left) < size * 0.75
        assert (left.count("\n") + 1, len(left.rsplit("\n", 1)[-1])) in starts
        if cursor == scaling.BETWEEN:
            ast.parse(left)
            ast.parse(right)


def test_a_power_law_is_found() -> None:
    fit = scaling.fitted("time", [(x, 3 * x**1.5) for x in (10.0, 100.0, 1000.0)])
    assert fit is not None
    assert (round(fit.exponent, 6), round(fit.factor, 6), fit.label) == (1.5, 3, "time grows as size^1.50")
    assert (fit.first, fit.last) == (10, 1000)
    assert scaling.fitted("time", [(10, 1), (10, 2)]) is None
    assert scaling.fitted("memory", []) is None


@pytest.fixture
def few_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scaling, "SIZES", (1_000, 2_000))
    monkeypatch.setattr(scaling, "LINEAR_FROM", 1_000)
    monkeypatch.setattr(scaling, "TEXTS", 1)


@pytest.mark.usefixtures("few_sizes")
def test_the_command_prints_a_table_and_writes_the_plot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "plot.svg"
    assert run(["engine", "--cpu-time", "--plot", str(file)]) == 0
    settings, table, ends = capsys.readouterr().out.split("\n\n")
    assert settings.startswith("machine: ")
    assert "\ntime: processor time" in settings
    assert [line.split()[1:3] for line in table.splitlines()[1:]] == [["between", "statements"], ["inside", "a"]] * 2
    assert "texts that parse, by the engine: 4 of 4" in ends
    titles = [text.text or "" for text in ElementTree.parse(file).iter(f"{SVG}text")]
    assert "Opening a session: time" in titles


@pytest.mark.usefixtures("few_sizes")
def test_the_command_prints_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["engine", "--scaling", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert len(answer["openings"]) == 4
    assert {"time_exponent", "memory_exponent", "setting"} < set(answer)
    for opening in answer["openings"]:
        assert opening["complete"]
        assert opening["seconds"] > 0
        assert opening["peak"] is None or opening["peak"] >= 0
    assert run(["engine", "--plot", str(tmp_path / "no" / "plot.svg")]) == 2
    assert "plot.svg: No such file" in capsys.readouterr().err
