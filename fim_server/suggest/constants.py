"""Constants of the stages, read from the file ``constants.toml`` in the folder of each stage.

An entry has a value, its unit, its purpose, and the data it was fitted on. A benchmark that fits a constant prints the
lines of its entry.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fim_server.constants import read_constants

FOLDER = Path(__file__).parent


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
    first_per_new_word: float
    typed_shift: float
    lines_confidence: float
    whole_confidence: float
    begun_block_confidence: float
    header_share: float
    fresh_share: float
    fresh_whole_share: float
    seen_share: float
    continued_share: float
    confidence_power: float
    line_end_characters: int
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
    personal_share: float
    personal_decisions: int
    personal_most: float


CONTEXT = read_constants(ContextConstants, FOLDER / "context" / "constants.toml")
SOURCES = read_constants(SourcesConstants, FOLDER / "sources" / "constants.toml")
POSTPROCESS = read_constants(PostprocessConstants, FOLDER / "postprocess" / "constants.toml")
RANKING = read_constants(RankingConstants, FOLDER / "ranking" / "constants.toml")
