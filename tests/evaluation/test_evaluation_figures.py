"""Plots of evaluation runs: what they show, and that they are whole."""

from __future__ import annotations

import random
import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence

import pytest

pytest.importorskip("scipy", reason="the extra `eval` is not installed")
pytest.importorskip("matplotlib", reason="the extra `eval` is not installed")
pytest.importorskip("jinja2", reason="the extra `eval` is not installed")

from fim_server.evaluation.records import MODES, Record
from fim_server.evaluation.reporting.figures import plots
from fim_server.evaluation.reporting.figures.plot import Plot
from fim_server.evaluation.reporting.figures.style import COLOURS
from fim_server.evaluation.reporting.measured import measured
from support.evaluation.evaluation_records import record, records, run_info


def plain_valid_within(mode: str, found: Sequence[Record], budget: int) -> float:
    """One budget at a time, as the docstring of ``valid_within`` says it."""
    valid = 0
    for one in found:
        points = {n for first, last in one.complete_at or () for n in range(max(first, 1), last + 1)}
        ended = one.stop_reason == "end_token" and budget >= max(one.tokens or 0, 1)
        if mode == "unconstrained":
            valid += bool(one.parses) if ended and one.parses else not ended and budget in points
            valid += bool(ended and not one.parses and budget in points)
        else:
            valid += bool(ended and one.parses) or any(n <= budget for n in points)
    return valid / len(found)


def test_validity_is_its_plain_twin() -> None:
    random_ = random.Random(1)
    found = []
    for number in range(150):
        tokens = random_.randrange(0, 30)
        cuts = sorted(random_.sample(range(tokens + 1), min(tokens + 1, random_.choice((0, 2, 4)))))
        runs = tuple(zip(cuts[::2], cuts[1::2], strict=False))
        stop = random_.choice(("end_token", "budget"))
        found.append(
            record(str(number), "x", random_.random() < 0.5, tokens=tokens, complete_at=runs, stop_reason=stop)
        )
    for mode in MODES:
        shares = plots.valid_within(mode, found, 40)
        assert shares.tolist() == pytest.approx([plain_valid_within(mode, found, n) for n in range(41)])
    assert not plots.valid_within("checked", [], 3).any()


@pytest.fixture(scope="module")
def drawn() -> list[Plot]:
    found = records(120, sets=("stack-boundary", "human-eval-infilling"))
    return plots.plots(measured([run_info()], found))


def test_plots_are_all_there_and_the_same_again(drawn: list[Plot]) -> None:
    assert [plot.key for plot in drawn] == ["success", "validity", "latency", "context-cost", "win-and-loss"]
    again = plots.plots(measured([run_info()], records(120, sets=("stack-boundary", "human-eval-infilling"))))
    assert [plot.file() for plot in again] == [plot.file() for plot in drawn]


def test_plots_are_whole_and_their_own(drawn: list[Plot]) -> None:
    identifiers: list[str] = []
    for plot in drawn:
        root = ET.fromstring(plot.file())
        assert root.tag.endswith("svg")
        assert "<metadata" not in plot.svg
        assert not re.search(r"\b20\d\d-\d\d-\d\d", plot.svg), "a date"
        assert not re.search(r"#0[1-9a-c]0[1-9a-c]0[1-9a-c]\b", plot.svg), "a colour that is no variable"
        own = [value for element in root.iter() for name, value in element.attrib.items() if name == "id"]
        identifiers += own
        for target in re.findall(r'(?:href="|url\()([^")]*)', plot.svg):
            assert target.startswith("#"), target
            assert target[1:] in own, target
        assert f'<title id="{plot.key}-title">{plot.title}</title>' in plot.svg
    assert len(identifiers) == len(set(identifiers))
    for name, *_ in list(COLOURS.values())[:6]:
        assert any(f"var({name}," in plot.svg for plot in drawn), name
