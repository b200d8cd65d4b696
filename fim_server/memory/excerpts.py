"""Excerpts of a project's text."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A few lines of a document.

    Attributes:
        key: The document's name.
        line: Its first line there, from 0.
        text: Whole lines, without the last line break, indented as there.
        name: What they define, where they are the header of a definition.
        score: How alike they are to what was asked, from 0 to 1: words in common of all words; 1 for a definition.
    """

    key: str
    line: int
    text: str
    name: str | None
    score: float
