"""One self-contained HTML file: a summary, plots, tables, and all samples to browse, from disk and without a network.

Samples travel as gzipped JSON in base64, which no text can break out of, and are set as text by the page's script,
never as HTML. A page that would be larger than :data:`MOST_BYTES` loses context first, then samples, the last of the
list first; it says so.
"""

from __future__ import annotations

import base64
import functools
import gzip
import json
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup, escape

from fim_server.evaluation.records import Record
from fim_server.evaluation.reporting.content import Report
from fim_server.evaluation.reporting.figures.style import variables
from fim_server.evaluation.reporting.measured import Measured, is_exact
from fim_server.evaluation.reporting.tables.text import printable

MOST_BYTES = 14_000_000
"""Most bytes of packed samples; plots and tables add at most one or two million."""

CONTEXTS = (2_000, 800, 300, 100)
"""Characters kept on either side of the hole, tried in this order."""

MOST_CHARACTERS = 8_000
"""Most characters of one text; the page states how many are left out."""

FIELDS = ("id", "set", "kind", "left", "right", "reference", "hole", "before", "after", "place", "results")
RESULT_FIELDS = (
    "text",
    "parses",
    "exact",
    "stop",
    "won",
    "tokens",
    "total",
    "similar",
    "guarantee",
    "passed",
    "error",
    "cut",
)
"""The order of a sample's and a result's values in the page's data; the script reads it from there."""


def html(report: Report, variants: Sequence[str], samples: str, footer: str = "") -> str:
    """A report as a page.

    Args:
        report: What it says.
        variants: Names of the results of each sample, in order.
        samples: The packed samples (:func:`packed`).
        footer: Its last line.
    """
    light, dark = variables()
    css = _resource("report.css").replace("%(light)s", light).replace("%(dark)s", dark)
    parts = {"variants": variants, "samples": samples, "footer": footer, "css": Markup(css)}
    text: str = _template().render(report=report, js=Markup(_resource("report.js")), **parts)
    # A lone surrogate, which a text of a user's program may hold, cannot be encoded.
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def with_samples(report: Report, data: Measured, order: Iterable[int], command: str) -> tuple[Report, str]:
    """A report and its page with all samples on it; where some had to be left out, both say so.

    Args:
        report: What it says.
        data: What was measured.
        order: The samples by their place, in the order in which they are listed.
        command: What makes the report, for the page's last line.
    """
    samples, left_out = packed(data, order)
    if left_out:
        report = replace(report, notices=[*report.notices, left_out])
    footer = f"Made by {command}. Nothing on this page is fetched from anywhere."
    return report, html(report, list(data.modes), samples, footer)


def packed(
    data: Measured, order: Iterable[int], most_bytes: int = MOST_BYTES, contexts: Sequence[int] = CONTEXTS
) -> tuple[str, str]:
    """Samples for the page's script, and what had to be left out, in words ("" for nothing).

    Args:
        data: What was measured.
        order: Which samples, by their place, and in which order.
        most_bytes: Of the result.
        contexts: Characters to keep on either side, tried one after the other.
    """
    places = list(order)
    for characters in contexts:
        text = _packed(data, places, characters, 0)
        if len(text) <= most_bytes:
            said = f"Contexts are cut to {characters:,} characters on either side." if characters < contexts[0] else ""
            return text, said
    kept = len(places)
    while kept and len(text) > most_bytes:
        # A little less than what would just fit, since the packed size is not quite proportional.
        kept = min(kept - 1, int(0.95 * kept * most_bytes / len(text)))
        text = _packed(data, places[:kept], contexts[-1], len(places) - kept)
    said = (
        f"Contexts are cut to {contexts[-1]:,} characters on either side, and {len(places) - kept:,} samples are left "
        "out of the list, though not of the figures."
    )
    return text, said


def unpacked(text: str) -> dict[str, Any]:
    """The inverse of packing, as the page's script does it."""
    found: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(text)))
    return found


def slug(text: str) -> str:
    """A heading as an identifier."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def inline(text: str) -> Markup:
    """A note's ``*emphasis*`` and code as HTML; the rest is escaped."""
    escaped = str(escape(text))
    escaped = re.sub(r"`([^`]+)`", r"<code>\1</code>", escaped)
    return Markup(re.sub(r"(?<![\w*])\*([^*\s](?:[^*]*[^*\s])?)\*(?![\w*])", r"<em>\1</em>", escaped))


# --- parts --------------------------------------------------------------------------------------------------------


@dataclass
class _Names:
    """Names that occur often, by number."""

    numbers: dict[str, int] = field(default_factory=dict)

    def of(self, name: str | None) -> int | None:
        return None if name is None else self.numbers.setdefault(name, len(self.numbers))


def _packed(data: Measured, places: Sequence[int], characters: int, left_out: int) -> str:
    sets, kinds, stops, won, guarantees = (_Names() for _ in range(5))
    variants = list(data.modes)
    samples = []
    for place in places:
        row = [data.modes[mode].records[place] for mode in variants]
        record = next(one for one in row if one is not None)
        results = [None if one is None else _result(one, stops, won, guarantees) for one in row]
        samples.append(
            [
                record.sample,
                sets.of(data.named[place]),
                kinds.of(record.kind),
                record.left_tail[-characters:],
                record.right_head[:characters],
                record.reference[:MOST_CHARACTERS],
                record.hole_characters,
                record.left_characters,
                record.right_characters,
                record.place,
                results,
            ]
        )
    content = {
        "fields": FIELDS,
        "result_fields": RESULT_FIELDS,
        "variants": variants,
        "sets": list(sets.numbers),
        "kinds": list(kinds.numbers),
        "stops": list(stops.numbers),
        "won": list(won.numbers),
        "guarantees": list(guarantees.numbers),
        "left_out": left_out,
        "samples": samples,
    }
    # In ASCII, where a lone surrogate is an escape like any other.
    written = json.dumps(content, separators=(",", ":"), allow_nan=False).encode("ascii")
    return base64.b64encode(gzip.compress(written, 6, mtime=0)).decode("ascii")


def _result(record: Record, stops: _Names, won: _Names, guarantees: _Names) -> list[Any]:
    text = record.text
    return [
        None if text is None else text[:MOST_CHARACTERS],
        int(bool(record.parses)),
        int(is_exact(record)),
        stops.of(record.stop_reason),
        won.of(record.won),
        record.tokens,
        _rounded(record.total_ms, 1),
        _rounded(record.edit_similarity, 3),
        guarantees.of(record.guarantee),
        record.passed,
        record.error,
        0 if text is None else max(0, len(text) - MOST_CHARACTERS),
    ]


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None or not math.isfinite(value) else round(value, digits)


def _resource(name: str) -> str:
    return (resources.files("fim_server.evaluation.reporting") / "templates" / name).read_text(encoding="utf-8")


@functools.cache
def _template() -> Any:
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=False)
    filters: dict[str, Callable[..., Any]] = {"slug": slug, "inline": inline, "printable": printable, "trusted": Markup}
    environment.filters.update(filters)
    return environment.from_string(_resource("report.html"))
