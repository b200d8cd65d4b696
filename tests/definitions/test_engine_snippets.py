"""Every snippet of the grammar's table through the engine: as a whole, and cut at several places.

The table holds CPython's verdicts (test_python_grammar.py checks them); a cut must not change them, because
left + middle + right is the same text.
"""

import os
import random
import tomllib
from pathlib import Path

import pytest

from fim_server import Language
from support.engine.exactness import documented
from support.engine.judge import Judge, unavailable
from support.languages.cpython_tests import texts_in_cpythons_own_tests
from support.languages.grammar_twin import language as twin

LONG = os.environ.get("FIM_SERVER_LONG") == "1"
CASES = Path(__file__).parents[1] / "cases" / "python_snippets.toml"


def test_snippets_keep_their_verdict_at_every_cut() -> None:
    language = Language.load("python")
    rng = random.Random(5)
    wrong = []
    for group, snippets in tomllib.loads(CASES.read_text(encoding="utf-8"))["snippets"].items():
        for snippet in snippets:
            source = snippet["source"]
            cuts = {0, len(source), rng.randint(0, len(source)), rng.randint(0, len(source))}
            for begin in cuts:
                end = rng.randint(begin, len(source))
                left, middle, right = source[:begin], source[begin:end], source[end:]
                verdict = language.open(left, right).check(middle)
                if verdict.complete != snippet["valid"] or (verdict.complete and not verdict.viable):
                    wrong.append((group, left, middle, right, verdict))
    assert not wrong, wrong[:20]


def test_texts_in_cpythons_own_tests_have_the_verdicts_of_the_twin_and_of_the_newest_cpython() -> None:
    """Whole texts, and cut once: valid or not, the engine, its plain twin and the newest CPython say the same."""
    texts = [text for text in texts_in_cpythons_own_tests() if text == text.encode("utf-8", "replace").decode()]
    if not texts:
        pytest.skip("the interpreter's tests are not installed")
    rng = random.Random(7)
    if not LONG:
        texts = rng.sample(texts, 700)
    language = Language.load("python")
    wrong = []
    for text in texts:
        begin, end = sorted(rng.choices(range(len(text) + 1), k=2))
        expected = twin("python").check(text) is None
        for left, middle, right in (("", text, ""), (text[:begin], text[begin:end], text[end:])):
            if language.open(left, right).check(middle).complete != expected:
                wrong.append((left, middle, right, expected))
    assert not wrong, wrong[:20]
    if unavailable() is None:
        with Judge() as judge:
            for text, verdict in zip(texts, judge.verdicts(texts), strict=True):
                accepted = twin("python").check(text) is None
                if verdict not in (None, accepted) and documented(judge, text, accepted) is None:
                    wrong.append(("", text, "", verdict))
    assert not wrong, wrong[:20]
