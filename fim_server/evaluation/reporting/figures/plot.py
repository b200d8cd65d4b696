"""A plot as SVG: inline in a page, or a file of its own.

The same data give the same bytes: matplotlib has a fixed salt for its identifiers and writes no date.
"""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from html import escape

from matplotlib.figure import Figure

from fim_server.evaluation.reporting.figures.style import COLOURS


@dataclass(frozen=True)
class Plot:
    """A plot.

    Attributes:
        key: A name for links and files.
        svg: For a page, without declarations, its identifiers beginning with the key.
        about: What it shows, in a sentence or two; also its text for those who do not see it.
    """

    key: str
    title: str
    svg: str
    about: str

    def file(self) -> str:
        """Return the plot as a file of its own, with light and dark colours and a background."""
        light, dark = (";".join(f"{c[0]}:{c[which]}" for c in COLOURS.values()) for which in (1, 2))
        style = (
            f"<style>svg{{{light};background:#fff}}"
            f"@media (prefers-color-scheme:dark){{svg{{{dark};background:#16191d}}}}</style>"
        )
        head, body = self.svg.split(">", 1)
        return f'<?xml version="1.0" encoding="utf-8"?>\n{head}>{style}{body}\n'


def finished(key: str, title: str, figure: Figure, about: str) -> Plot:
    written = io.BytesIO()
    figure.savefig(written, format="svg", metadata={"Date": None})
    return Plot(key, title, page_svg(written.getvalue().decode("utf-8"), key, title, about), about)


def page_svg(text: str, key: str, title: str, about: str) -> str:
    """Matplotlib's SVG for a page: one element, its own identifiers, the page's colours, a title and a description."""
    text = text[text.index("<svg") :].strip()
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    text = re.sub(r'\bid="', f'id="{key}-', text)
    text = re.sub(r'((?:xlink:)?href="#|url\(#)', rf"\g<1>{key}-", text)
    for told, (name, light, _) in COLOURS.items():
        text = text.replace(told, f"var({name}, {light})")
    text = text.replace("*{stroke-linejoin", "svg *{stroke-linejoin")  # a page has more than plots
    text = re.sub(r"\d+\.\d{3,}", lambda found: f"{float(found[0]):.2f}", text)  # a hundredth of a point is enough
    text = re.sub(r"[ \t]*\n[ \t]*", "\n", text)
    head, body = text.split(">", 1)
    # The size comes from the view box, so that it shrinks with the page.
    head = re.sub(r'\s(?:width|height)="[^"]*"', "", head)
    described = f'<title id="{key}-title">{escape(title)}</title><desc id="{key}-desc">{escape(about)}</desc>'
    return f'{head} role="img" aria-labelledby="{key}-title" aria-describedby="{key}-desc">{described}{body}'
