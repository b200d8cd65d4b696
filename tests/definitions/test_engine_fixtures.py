"""The lowered languages that the engine's own tests read are those of the package."""

import json

import pytest

from support.engine.engine_fixtures import FOLDER, NAMES, lowered


@pytest.mark.parametrize("name", NAMES)
def test_the_engines_tests_read_the_language_as_it_is(name: str) -> None:
    kept = (FOLDER / f"{name}.json").read_text(encoding="utf-8")
    assert json.loads(kept) == json.loads(lowered(name)), "run: python -m support.engine.engine_fixtures"
