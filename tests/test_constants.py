"""Files of constants: every entry has its keys, and the code and the files name the same constants."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from fim_server.constants import read_constants
from fim_server.suggest.constants import RANKING

ENTRY = '[share]\nvalue = 0.5\nunit = "share"\npurpose = "A test."\nfitted = "chosen, not fitted"\n'


@dataclass(frozen=True)
class Constants:
    share: float


def read(folder: Path, text: str) -> Constants:
    path = folder / "constants.toml"
    path.write_text(text, encoding="utf-8")
    return read_constants(Constants, path)


def test_constants_are_read_by_name(tmp_path: Path) -> None:
    assert read(tmp_path, ENTRY) == Constants(0.5)
    assert 0 < RANKING.whole_confidence < RANKING.lines_confidence < 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "missing or unknown"),
        (ENTRY + ENTRY.replace("share]", "other]"), "missing or unknown"),
        (ENTRY.replace("unit", "units"), "keys .* of share are missing or unknown"),
        (ENTRY.replace("0.5", "1"), "not of type float"),
        (ENTRY.replace("0.5", '"0.5"'), "not of type float"),
    ],
)
def test_missing_and_unknown_entries_are_errors(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read(tmp_path, text)
