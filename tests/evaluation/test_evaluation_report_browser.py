"""The report's page in a real browser: what is drawn, what can be done with it, and how it looks.

Skipped where there is no Chromium (``CHROMIUM`` names one that is not on the PATH). FIM_SERVER_PICTURES=FOLDER keeps
the screenshots.
"""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("scipy", reason="the extra `eval` is not installed")
pytest.importorskip("matplotlib", reason="the extra `eval` is not installed")
pytest.importorskip("jinja2", reason="the extra `eval` is not installed")

from matplotlib.image import imread

from fim_server.evaluation.records import MODES
from fim_server.evaluation.reporting import compare, page, report
from fim_server.evaluation.reporting.content import Report
from fim_server.evaluation.reporting.figures.style import COLOURS
from fim_server.evaluation.reporting.files import COMPARE_PAGE, REPORT_PAGE
from fim_server.evaluation.reporting.joined import join
from fim_server.evaluation.reporting.measured import measured
from support.editors.browser import NAMES, Browser, find_browser
from support.evaluation.evaluation_records import ODD_TEXTS, odd_records, record, records, run_info, write_run

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="the browser is driven over inherited pipes"),
    pytest.mark.skipif(
        find_browser() is None, reason=f"no browser: none of {', '.join(NAMES)} on the PATH, no CHROMIUM"
    ),
]

COUNT = 120

Pixels = Any  # [height, width, 3], 0 to 255


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("profile")) as running:
        yield running


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("report")


@pytest.fixture(scope="module")
def url(folder: Path) -> str:
    """The page of 120 samples, one of which constrained alone has not."""
    lost = [record("lost-1", mode, mode != "constrained", reference="needle = 1") for mode in MODES]
    data = measured([run_info()], [*records(COUNT - 1, sets=("stack-boundary", "human-eval-infilling")), *lost])
    report.write_report(data, folder)
    return (folder / REPORT_PAGE).as_uri()


@pytest.fixture(scope="module")
def odd_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    out = tmp_path_factory.mktemp("odd")
    report.write_report(measured([run_info()], odd_records()), out)
    return (out / REPORT_PAGE).as_uri()


def picture(browser: Browser, path: Path) -> Pixels:
    """A screenshot's pixels."""
    browser.screenshot(path)
    if kept := os.environ.get("FIM_SERVER_PICTURES"):
        Path(kept).mkdir(parents=True, exist_ok=True)
        (Path(kept) / path.name).write_bytes(path.read_bytes())
    return np.round(imread(path)[..., :3] * 255).astype(int)


def rgb(colour: str) -> tuple[int, ...]:
    return tuple(int(colour[place : place + 2], 16) for place in (1, 3, 5))


def pixels_of(pixels: Pixels, colour: str) -> int:
    """Return the number of pixels of exactly this colour."""
    return int((pixels == rgb(colour)).all(axis=-1).sum())


def scroll_to(browser: Browser, name: str) -> None:
    browser.value(f"document.getElementById('{name}').scrollIntoView({{behavior: 'instant'}})")


def status(browser: Browser) -> str:
    return str(browser.value("document.getElementById('status').textContent"))


def chosen(browser: Browser) -> str:
    return str(browser.value("document.querySelector('.option[aria-selected=true] .id')?.textContent ?? ''"))


# --- looks --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize(("width", "height"), [(1280, 1000), (390, 1200)], ids=["wide", "narrow"])
def test_the_page_is_drawn(browser: Browser, url: str, tmp_path: Path, dark: bool, width: int, height: int) -> None:
    browser.view(width, height, dark=dark)
    browser.open(url)
    name = f"{'dark' if dark else 'light'}-{width}"
    top = picture(browser, tmp_path / f"{name}-top.png")
    assert top.shape == (height, width, 3)
    paper = "#101317" if dark else "#ffffff"
    assert pixels_of(top, paper) > 0.4 * width * height
    assert len(np.unique(top @ (65_536, 256, 1))) > 100
    assert pixels_of(top, "#4bd3a0" if dark else "#0a6b4b") > 100, "the border of the card that matters"
    scroll_to(browser, "plots")
    drawn = picture(browser, tmp_path / f"{name}-plots.png")
    for variable, light, night in list(COLOURS.values())[3:6]:
        assert pixels_of(drawn, night if dark else light) > 100, f"{variable}: no mode is drawn in it"
    scroll_to(browser, "samples")
    samples = picture(browser, tmp_path / f"{name}-samples.png")
    assert pixels_of(samples, "#0f3354" if dark else "#d8eafc") > 500, "the chosen sample and its reference"
    assert pixels_of(samples, "#4a1f0d" if dark else "#ffe0d1") > 500, "the failures, which come first"


@pytest.mark.parametrize("width", [320, 390, 768, 1280])
def test_nothing_reaches_over_the_side(browser: Browser, url: str, odd_url: str, width: int) -> None:
    browser.view(width, 900)
    for address in (url, odd_url):
        browser.open(address)
        assert browser.value("document.documentElement.scrollWidth") <= width


CONTRAST = """
(() => {
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => {
    const linear = (v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    const [x, y, z] = [r, g, b].map((v) => linear(v / 255));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const behind = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const colour = parse(getComputedStyle(e).backgroundColor);
      if (colour.length < 4 || colour[3] > 0) return colour;
    }
  };
  const found = {};
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    const box = element.getBoundingClientRect();
    if (!own || !box.width || element.closest("svg, script, noscript, option, .skip")) continue;
    const [a, b] = [light(parse(getComputedStyle(element).color)), light(behind(element))].sort((x, y) => y - x);
    const name = element.tagName.toLowerCase() + "." + element.className;
    found[name] = Math.min(found[name] ?? 99, (a + 0.05) / (b + 0.05));
  }
  return found;
})()
"""


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_text_can_be_read(browser: Browser, url: str, odd_url: str, dark: bool) -> None:
    """WCAG 2.2, success criterion 1.4.3: a contrast of at least 4.5."""
    browser.view(1280, 1000, dark=dark)
    for address in (url, odd_url):
        browser.open(address)
        found = browser.value(CONTRAST)
        assert len(found) > 15
        assert not {name: ratio for name, ratio in found.items() if ratio < 4.5}


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_plots_can_be_read(dark: bool) -> None:
    """WCAG 2.2, 1.4.11: graphics have a contrast of at least 3 to the page; letters, of at least 4.5."""

    def light(colour: str) -> float:
        parts = (part / 255 for part in rgb(colour))
        linear = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
        return sum(share * part for share, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    paper = light("#101317" if dark else "#ffffff")
    for name, *shades in COLOURS.values():
        if name == "--plot-grid":
            continue
        low, high = sorted((light(shades[dark]), paper))
        assert (high + 0.05) / (low + 0.05) >= (4.5 if name == "--plot-ink" else 3), name


def test_everything_has_a_name(browser: Browser, url: str) -> None:
    """Controls and regions are labelled, for those who do not see the page."""
    browser.view(1280, 1000)
    browser.open(url)
    nodes = browser.call("Accessibility.getFullAXTree")["nodes"]
    named = {"textbox", "searchbox", "combobox", "checkbox", "button", "listbox", "option", "link", "region", "search"}
    seen = set()
    for node in nodes:
        role = node.get("role", {}).get("value")
        if role in named and not node.get("ignored"):
            seen.add(role)
            assert node.get("name", {}).get("value"), node
    assert {"combobox", "checkbox", "button", "listbox", "option", "link"} <= seen


# --- use ----------------------------------------------------------------------------------------------------------


def test_nothing_is_fetched_and_nothing_fails(browser: Browser, url: str, odd_url: str) -> None:
    browser.view(1280, 1000)
    for address in (url, odd_url):
        browser.open(address)
    assert {address.split("#")[0] for address in browser.requests()} <= {url, odd_url} | set(_others)
    assert browser.complaints() == []


_others: list[str] = []
"""Pages that other tests have opened."""


def opened(browser: Browser, address: str) -> None:
    _others.append(address.split("#")[0])
    browser.open(address)


def test_failures_come_first_and_are_shown(browser: Browser, url: str) -> None:
    browser.view(1280, 1000)
    browser.open(url)
    assert status(browser) == f"{COUNT} of {COUNT} samples"
    marks = browser.value(
        "[...document.querySelectorAll('.option')].map((row) => row.querySelectorAll('.mark')[2].textContent)"
    )
    failed = [mark in "✗∅!" for mark in marks]
    assert failed[0]
    assert failed == sorted(failed, reverse=True)
    assert browser.value("document.querySelector('#detail h3').textContent") == chosen(browser)
    names = browser.value("[...document.querySelectorAll('#detail .side strong')].map((name) => name.textContent)")
    assert names == ["reference", "constrained", "checked", "unconstrained"]


def test_filters_from_the_address(browser: Browser, url: str) -> None:
    browser.view(1280, 1000)
    browser.open(f"{url}#mode=constrained&outcome=lost")
    assert status(browser) == f"1 of {COUNT} samples"
    assert chosen(browser) == "lost-1"
    assert browser.value("scrollY") > 0, "the list is in view"
    mark = browser.value("document.querySelector('#detail .side mark.truth').textContent")
    assert mark == "needle = 1"
    assert browser.value("document.querySelector('[data-mode=constrained] mark.fails').textContent") == "y = ("
    assert browser.value("document.querySelector('[data-mode=checked] mark.fits').textContent") == "y = 2"
    first = browser.value("document.querySelector('#detail .side:nth-of-type(2)').className")
    assert first == "side chosen"
    browser.open(f"{url}#set=human-eval-infilling&kind=single-line")
    shown = int(status(browser).split()[0])
    assert 0 < shown < COUNT / 2
    assert browser.value(
        "[...document.querySelectorAll('.option .id')].every((id) => id.textContent.startsWith('human'))"
    )
    browser.open(f"{url}#q=NEEDLE")
    assert (status(browser), chosen(browser)) == (f"1 of {COUNT} samples", "lost-1")
    browser.open(f"{url}#q=nowhere to be found")
    assert status(browser) == f"0 of {COUNT} samples"
    assert browser.value("document.getElementById('detail').textContent") == "No sample matches."
    browser.open(f"{url}#outcome=no-such-outcome&mode=none&sample=none")
    assert status(browser) == f"{COUNT} of {COUNT} samples"


def test_every_outcome_agrees_with_the_records(browser: Browser, url: str) -> None:
    """Each filter beside a plain count over the page's own data."""
    browser.view(1280, 1000)
    browser.open(url)
    outcomes = ("failed", "parses", "exact", "different", "notext", "error", "landed", "lost", "won", "test")
    lost = [record("lost-1", mode, mode != "constrained", reference="needle = 1") for mode in MODES]
    data = measured([run_info()], [*records(COUNT - 1, sets=("stack-boundary", "human-eval-infilling")), *lost])
    for mode, outcome in itertools.product(MODES, outcomes):
        columns = data.modes[mode]
        expected = 0
        for place, one in enumerate(columns.records):
            assert one is not None
            others = [data.modes[other].success[place] for other in MODES]
            success = bool(columns.success[place])
            expected += {
                "failed": not success,
                "parses": success,
                "exact": success and bool(one.exact_match),
                "different": success and not one.exact_match,
                "notext": one.text is None,
                "error": False,
                "landed": one.won == "landed",
                "lost": not success and any(others),
                "won": success and not all(others),
                "test": one.passed is False,
            }[outcome]
        browser.value(f"location.hash = '#mode={mode}&outcome={outcome}'")
        browser.until(
            f"document.getElementById('outcome').value + document.getElementById('mode').value === '{outcome}{mode}'"
        )
        assert status(browser) == f"{expected} of {COUNT} samples", (mode, outcome)


def test_keys(browser: Browser, url: str) -> None:
    browser.view(1280, 1000)
    browser.open(url)
    first = chosen(browser)
    browser.press("j")
    second = chosen(browser)
    assert second != first
    assert f"sample={second}" in browser.value("location.hash")
    browser.press("k")
    assert chosen(browser) == first
    browser.press("k")
    assert chosen(browser) == first
    browser.value("document.getElementById('list').focus()")
    browser.press("ArrowDown")
    assert chosen(browser) == second
    browser.press("End")
    assert browser.value("document.querySelector('.option[aria-selected=true]').getAttribute('aria-posinset')") == str(
        COUNT
    )
    active = browser.value("document.getElementById('list').getAttribute('aria-activedescendant')")
    assert browser.value(f"document.getElementById('{active}').getAttribute('aria-selected')") == "true"
    browser.press("Home")
    assert chosen(browser) == first
    browser.press("w")
    assert browser.value("document.body.classList.contains('wrapped')") is False
    browser.press("/")
    assert browser.value("document.activeElement.id") == "q"
    browser.press("j")
    assert browser.value("document.getElementById('q').value") == "j"
    browser.press("Escape")
    assert browser.value("document.activeElement.id") != "q"


def test_pointing_and_typing(browser: Browser, url: str) -> None:
    browser.view(1280, 1000)
    browser.open(f"{url}#mode=checked")
    browser.value("document.querySelectorAll('.option')[3].click()")
    assert browser.value("document.querySelector('#detail h3').textContent") == browser.value(
        "document.querySelectorAll('.option .id')[3].textContent"
    )
    browser.value("document.getElementById('q').focus()")
    browser.call("Input.insertText", text="needle")
    browser.until(f"document.getElementById('status').textContent === '1 of {COUNT} samples'")
    browser.value("document.getElementById('clear').click()")
    assert status(browser) == f"{COUNT} of {COUNT} samples"
    browser.value("document.getElementById('context').click()")
    few = browser.value("document.querySelector('#detail pre').textContent.length")
    browser.value("document.getElementById('context').click()")
    assert browser.value("document.querySelector('#detail pre').textContent.length") <= few


def test_odd_texts_are_shown_as_text(browser: Browser, odd_url: str) -> None:
    browser.view(1280, 1000)
    browser.open(odd_url)
    for number, text in enumerate(ODD_TEXTS):
        browser.value(f"location.hash = '#q=' + encodeURIComponent('odd-{number} ')")
        browser.until(f"document.querySelector('#detail h3')?.textContent.startsWith('odd-{number} ')")
        shown = browser.value("document.querySelector('#detail mark.truth').textContent")
        if text == "":
            assert shown == "⟨empty⟩"
            continue
        plain = "".join(c for c in text if c.isprintable() or c in "\n\t ")[:8_000]
        kept = shown
        for code in {ord(c) for c in text if not (c.isprintable() or c in "\n\t ")}:
            assert f"⟨U+{code:04X}⟩" in shown, (number, hex(code))
            kept = kept.replace(f"⟨U+{code:04X}⟩", "")
        assert kept == plain
    assert browser.value("window.broken === undefined")
    assert browser.value("document.querySelectorAll('img, b').length") == 0
    assert browser.complaints() == []


def test_a_large_run_draws_few_rows(browser: Browser, tmp_path: Path) -> None:
    """12,000 records: only what is in view is in the document, wherever it is scrolled to."""
    data = measured([run_info()], records(4_000))
    packed, _ = page.packed(data, range(4_000))
    written = tmp_path / "large.html"
    written.write_text(page.html(Report("Large", ""), list(data.modes), packed), encoding="utf-8")
    browser.view(1280, 1000)
    opened(browser, written.as_uri())
    assert status(browser) == "4,000 of 4,000 samples"
    assert 5 < browser.value("document.querySelectorAll('.option').length") < 60
    browser.value("document.getElementById('list').scrollTop = 1e9")
    browser.until("document.querySelector('[aria-posinset=\"4000\"]') !== null")
    assert 5 < browser.value("document.querySelectorAll('.option').length") < 60


def test_empty_and_partial_runs_open(browser: Browser, tmp_path: Path) -> None:
    browser.view(1280, 1000)
    for name, found in (("empty", []), ("one", [record("a", "constrained", text=None, parses=False)])):
        report.write_report(measured([run_info()], found), tmp_path / name)
        opened(browser, (tmp_path / name / REPORT_PAGE).as_uri())
        assert status(browser) == f"{len(found)} of {len(found)} samples"
    assert browser.complaints() == []


def test_plots_open_by_themselves(browser: Browser, url: str, folder: Path, tmp_path: Path) -> None:
    browser.view(800, 600)
    assert url.startswith(folder.as_uri())
    for dark in (False, True):
        browser.view(800, 600, dark=dark)
        address = (folder / "success.svg").as_uri()
        _others.append(address)
        browser.call("Page.navigate", url=address)
        browser.until("document.documentElement?.tagName === 'svg' && document.readyState === 'complete'")
        pixels = picture(browser, tmp_path / f"plot-{dark}.png")
        assert pixels_of(pixels, "#16191d" if dark else "#ffffff") > 0.5 * 800 * 600
        assert pixels_of(pixels, "#2fc99b" if dark else "#00845f") > 50


def test_a_comparison_opens(browser: Browser, tmp_path: Path) -> None:
    found = records(40)
    worse = [replace(one, text="(", parses=False) if number % 9 == 8 else one for number, one in enumerate(found)]
    folders = [write_run(tmp_path / name, some) for name, some in (("a", found), ("b", worse))]
    joined = join(*folders)
    told = compare.report_on(joined)
    compare.write(joined, told, compare.as_json(joined, told), tmp_path / "out")
    browser.view(1280, 1000)
    opened(browser, (tmp_path / "out" / COMPARE_PAGE).as_uri())
    assert status(browser) == "40 of 40 samples"
    marks = browser.value("[...document.querySelectorAll('.option:first-child .mark')].map((mark) => mark.textContent)")
    assert len(marks) == 6
    assert marks[4] in "=✓"
    assert marks[5] == "✗"
    picture(browser, tmp_path / "compare.png")
