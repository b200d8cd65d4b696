"""Constants of decoding and of trimming, read from their files ``constants.toml``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fim_server.constants import read_constants

FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class DecodingConstants:
    """Constants of drafts, the name bias and merged tokens."""

    draft_tokens: int
    rated_tokens: int
    rated_share: float
    merged_share: float


@dataclass(frozen=True, slots=True)
class TrimmingConstants:
    """Constants of loops and of lines below the cursor; ``times`` count repetitions in a row."""

    word_times: int
    words_times: int
    prose_times: int
    nested_times: int
    prose_words: int
    line_times: int
    line_words: int
    line_characters: int
    counted_line_times: int
    counted_phrase_times: int
    enumerated_times: int
    part_letters: int
    plain_part_letters: int
    below_characters: int


DECODING = read_constants(DecodingConstants, FOLDER / "constants.toml")
TRIMMING = read_constants(TrimmingConstants, FOLDER / "ending" / "trimming" / "constants.toml")
