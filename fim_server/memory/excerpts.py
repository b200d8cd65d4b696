"""Excerpts of the project's text."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Lines of a document.

    Attributes:
        key: Name of the document.
        line: First line there, from 0.
        text: Whole lines with their indentation, without the last line break.
        name: Name that they define, if they are the header of a definition.
        score: Similarity to the query, from 0 to 1: common words over all words; 1 for a definition.
    """

    key: str
    line: int
    text: str
    name: str | None
    score: float
