"""Constants of the stages, read from the file ``constants.toml`` in the folder of each stage.

An entry has a value, its unit, its purpose, and the data it was fitted on. A benchmark that fits a constant prints the
lines of its entry.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")

FOLDER = Path(__file__).parent
KEYS = frozenset({"value", "unit", "purpose", "fitted"})


@dataclass(frozen=True, slots=True)
class ContextConstants:
    """Constants of the prompt and of the text of other files that it shows."""

    prompt_steps: int
    prompt_grid: int
    ahead_tokens: int
    extra_ms: float
    place_lines: int
    similar_lines: int
    named_above: int
    named_below: int
    similar_words: int
    first_definitions: int


@dataclass(frozen=True, slots=True)
class SourcesConstants:
    """Constants of the project's memory and of the names that a file lacks."""

    import_share: float
    lacking_share: float
    lacking_certainty: float
    recall_confidence: float
    recalled_lines_confidence: float
    recalled_beside_model: int
    draft_confidence: float
    draft_lexemes: int


@dataclass(frozen=True, slots=True)
class PostprocessConstants:
    """Constants of endings, blocks, short texts and trailing commas."""

    ending_likelihood: float
    empty_block_likelihood: float
    block_likelihood: float
    first_end_share: float
    writing_share: float
    comma_lists: int
    comma_share: float


@dataclass(frozen=True, slots=True)
class RankingConstants:
    """Constants of confidence and display."""

    intercept: float
    per_log_odds: float
    per_unknown_name: float
    first_intercept: float
    first_per_log_odds: float
    first_per_unknown_name: float
    lines_confidence: float
    whole_confidence: float
    begun_block_confidence: float
    header_share: float
    fresh_share: float
    fresh_whole_share: float
    seen_share: float
    continued_share: float
    written_likelihood: float
    written_likelihood_fresh: float
    written_likelihood_block: float
    written_likelihood_requested: float
    redefinition_confidence: float
    repeated_line_confidence: float
    unknown_name_confidence: float
    repeated_below_confidence: float
    near_lines: int
    repeated_words: int


def read_constants(kind: type[T], path: Path) -> T:
    """Return the constants of a stage. Raises ValueError for a missing or unknown entry, key or type."""
    entries: dict[str, dict[str, Any]] = tomllib.loads(path.read_text(encoding="utf-8"))
    wanted = {field.name: field.type for field in fields(kind)}  # type: ignore[arg-type]
    if entries.keys() != wanted.keys():
        raise ValueError(f"{path}: entries {sorted(entries.keys() ^ wanted.keys())} are missing or unknown")
    for name, entry in entries.items():
        if entry.keys() != KEYS:
            raise ValueError(f"{path}: keys {sorted(entry.keys() ^ KEYS)} of {name} are missing or unknown")
        if type(entry["value"]).__name__ != wanted[name]:
            raise ValueError(f"{path}: the value of {name} is not of type {wanted[name]}")
    return kind(**{name: entry["value"] for name, entry in entries.items()})


CONTEXT = read_constants(ContextConstants, FOLDER / "context" / "constants.toml")
SOURCES = read_constants(SourcesConstants, FOLDER / "sources" / "constants.toml")
POSTPROCESS = read_constants(PostprocessConstants, FOLDER / "postprocess" / "constants.toml")
RANKING = read_constants(RankingConstants, FOLDER / "ranking" / "constants.toml")
