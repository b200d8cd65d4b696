"""The product as a whole: what the embedded model writes into holes of real files parses.

The judges are a fresh engine, and CPython wherever the text is not inside a lexeme that the grammar keeps whole
(tests/cases/causes.toml).
"""

import itertools
import os
import random
from collections import Counter

import pytest
import torch

from fim_server.decoding.complete import complete
from fim_server.decoding.options import DecodeOptions
from fim_server.models.load import load_model
from fim_server.models.model import FimModel
from fim_server.models.reading import Reading, Readings
from fim_server.text.document import Split
from support.engine.corpus import cause_of, causes, cuts, python, reference

LONG = os.environ.get("FIM_SERVER_LONG") == "1"
HOLES = 400 if LONG else 12


@pytest.fixture(scope="module")
def model() -> FimModel:
    return load_model(None, "cpu")


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_completions_of_real_files_parse(model: FimModel, temperature: float) -> None:
    outcomes: Counter[str] = Counter()
    for index, cut in enumerate(itertools.islice(cuts(random.Random(31), 40_000, 4), HOLES)):
        options = DecodeOptions(
            max_new_tokens=12,
            temperature=temperature,
            seed=index,
            max_prompt_tokens=192,
            heal=index % 2 == 1,
            single_line=index % 3 == 2,
        )
        found = complete(model, python(), Split(cut.left, cut.right), options)
        assert found.guarantee == "exact", (cut.left[-60:], cut.right[:60], found.diagnostics)
        outcomes["written" if found.text is not None else str(found.stop_reason)] += 1
        if found.text is None:
            assert found.reason
            continue
        whole = cut.left + found.text + cut.right
        assert python().open(cut.left, cut.right).check(found.text).complete
        if not reference(whole):
            assert cause_of(cut.left, found.text, cut.right) in causes(), (cut.left[-60:], found.text, cut.right[:60])
    print(f"\nholes at temperature {temperature:g}: {dict(outcomes)}")
    assert outcomes["written"] > 0, outcomes


def test_a_reused_reading_gives_the_logits_of_a_fresh_one() -> None:
    """The plain twin of what is kept between keystrokes: a prompt that is read from its beginning."""
    model = load_model(None, "cpu", "torch")
    left, right = (
        "import os\n\n\ndef load(path):\n    with open(path) as file:\n        ret",
        "\n\n\nload(os.sep)\n" * 20,
    )
    readings, reused = Readings(model), 0
    for typed in ("", "u", "ur", "urn", "urn ", "urn f", "urn (", "urn file", "u"):
        after = ")" + right if typed.endswith("(") else right
        prompt = model.format.encode(left + typed, after, 400, 16)
        kept = readings.nearest(prompt)
        start = kept.resume(prompt)
        reused += 2 * start > len(prompt)
        torch.testing.assert_close(kept.forward(prompt[start:]), Reading(model).forward(prompt), atol=1e-3, rtol=1e-3)
    assert reused == 7  # all but the first one and the one whose right side differs
