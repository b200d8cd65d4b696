"""Landing: every middle ends within its budget, against exhaustive search and adversarial models."""

from __future__ import annotations

import ast
import itertools
import os
import random
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from fim_server import Language, Vocabulary
from fim_server.decoding.complete import complete
from fim_server.decoding.loop import landing
from fim_server.decoding.loop.conclusion import conclude
from fim_server.decoding.loop.run import start
from fim_server.decoding.loop.watch import Watch
from fim_server.decoding.options import DecodeOptions
from fim_server.decoding.results import Completion, Statistics, StopReason, Won
from fim_server.decoding.strategies.alternatives import alternatives, complete_session
from fim_server.decoding.strategies.batches import decode_together
from fim_server.decoding.strategies.outcomes import Task
from fim_server.errors import LanguageError, SearchLimitError
from fim_server.language import Matcher, Session
from fim_server.language.shapes import SINGLE_LINE, Shape
from fim_server.language.stop import Stop
from fim_server.models.load import load_model
from fim_server.models.reading import Reading
from fim_server.models.source import locate
from fim_server.text.document import Split
from support.models.scripted_models import Script, network

LONG = bool(os.environ.get("FIM_SERVER_LONG"))


@pytest.fixture(scope="module")
def python() -> Language:
    return Language.load("python")


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return Vocabulary.from_file(Path(locate(None)) / "tokenizer.json")


def fill_landing_mask(matcher: Matcher, vocabulary: Vocabulary, left: int) -> tuple[list[int], int]:
    """The tokens of a landing mask, and how many the budget ruled out."""
    words = np.zeros(-(-vocabulary.size // 32), dtype=np.uint32)
    refused = matcher.fill_landing_mask(words, left)
    bits = np.unpackbits(words.view(np.uint8), count=vocabulary.size, bitorder="little")
    return [int(token) for token in np.flatnonzero(bits)], refused


def test_the_searches_of_one_mask_share_what_they_find(python: Language, vocabulary: Vocabulary) -> None:
    """Looks at a Stop count what is looked at: a search from each place to which tokens lead, 690,000 in all here
    when each was by itself."""
    left = 'class Fix(Base):\n    order = "pre"\n\n'
    right = 't | any)\n    >\n    """\n\n    def transform(self, node, results):\n        return node\n'
    matcher = python.open(left, right).matcher(vocabulary)
    matcher.mask()
    with Stop() as stop:
        tokens, refused = fill_landing_mask(matcher, vocabulary, 12)
    assert tokens
    assert refused > 5_000
    assert 100_000 < stop.looks < 450_000


# --- against exhaustive search ------------------------------------------------------------------------------------

JSON_TOKENS = [*'{}[],:"0 ', "[[", "]]", "],", '":', '""', "{}", "true", "nul"]
PYTHON_TOKENS = [
    "\n",
    " ",
    "    ",
    "\n    ",
    "x",
    "(",
    ")",
    "))",
    "):",
    ":",
    "=",
    " = x",
    "if",
    " x",
    "else",
    '"',
    '"""',
    "\\",
    "#",
]


def small_vocabulary(texts: Sequence[str]) -> Vocabulary:
    return Vocabulary([text.encode() for text in texts] + [None], end_token_ids=[len(texts)])


def least_tokens(matcher: Matcher, tokens: int, most: int) -> int | None:
    """The least number of tokens that completes a middle, by trying all; None if there are none up to ``most``."""
    for length in range(most + 1):
        if completes_in(matcher, tokens, length):
            return length
    return None


def completes_in(matcher: Matcher, tokens: int, length: int) -> bool:
    if length == 0:
        return matcher.is_complete()
    for token in range(tokens):
        if matcher.allows(token):
            matcher.commit(token)
            found = completes_in(matcher, tokens, length - 1)
            matcher.rollback(1)
            if found:
                return True
    return False


CASES = [
    ("json", JSON_TOKENS, left, right)
    for left, right in [
        ("[", "]"),
        ('{"a', "1}"),
        ("[[0, ", "]"),
        ("", ""),
        ('{"a": [', "}"),
        ('["', "]"),
    ]
] + [
    ("python", PYTHON_TOKENS, left, right)
    for left, right in [
        ("f(", ")\n"),
        ("x = ", "\n"),
        ("if x:\n    ", "\n    y\n"),
        ("def f(", "\n    return 1\n"),
        ('s = "a', "b\n"),
        ("if x:\n    y\n", "else:\n    z\n"),
        ("class A:\n    def f(self):\n        x\n", "y = 2\n        z = 3\n    def g(self): pass\n"),
    ]
]


@pytest.mark.parametrize(("name", "texts", "left", "right"), CASES)
def test_a_plan_is_never_shorter_than_possible_and_its_mask_allows_nothing_that_cannot_end(
    name: str, texts: list[str], left: str, right: str
) -> None:
    """After no token and after every one: the plan completes, and no number of tokens is promised that is too small."""
    small = small_vocabulary(texts)
    session = Language.load(name).open(left, right)
    assert session.guarantee == "exact"
    exact = 0
    for first in [None, *range(len(texts))]:
        matcher = session.matcher(small)
        path = [] if first is None else [first]
        if not all(matcher.allows(token) for token in path):
            continue
        for token in path:
            matcher.commit(token)
        least = least_tokens(matcher, len(texts), 3)
        try:
            plan = matcher.plan()
        except SearchLimitError:
            continue
        if plan is None:  # the letters of a shortest text may have no token here
            continue
        for token in plan:
            matcher.commit(token)
        assert matcher.is_complete()
        matcher.rollback(len(plan))
        assert least is None or len(plan) >= least
        exact += len(plan) == least
        for left_over in range(2):
            kept, refused = fill_landing_mask(matcher, small, left_over)
            allowed = [token for token in range(len(texts)) if matcher.allows(token)]
            assert len(allowed) - refused == len([token for token in kept if token < len(texts)])
            for token in kept:
                if token == len(texts):
                    assert matcher.is_complete()
                    continue
                matcher.commit(token)
                assert least_tokens(matcher, len(texts), left_over) is not None, (path, token)
                matcher.rollback(1)
    assert exact, "at least somewhere the plan is the best there is"


def test_a_plan_spells_its_text_in_the_fewest_tokens(python: Language) -> None:
    small = small_vocabulary(["\n", " ", "  ", "\n ", "\n  ", "    ", "x", "(", ")"])
    session = python.open("def f():\n    if x:\n        y(", "\n    z\n    w\n")
    matcher = session.matcher(small)
    assert [small.token_bytes(token) for token in matcher.plan() or ()] == [b")"]
    session = python.open("if x:\n        y\n", "z\n        w\n")
    plan = session.matcher(small).plan()
    assert plan is not None
    assert [small.token_bytes(token) for token in plan] == [b"    ", b"    "]


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("def f():\n    yield ", "om x\n"),
        ("def f():\n    ", "om x import y\n"),
        ("", "ync def f():\n    pass\n"),
        (
            "class A:\n    def f(self):\n        x = 1\n",
            "2 * (1 - p) - 1)) - y, index=g(x)\n    )\n\n    def g(self):\n        pass\n",
        ),
        ("print(" + "str(" * 40, "f) -> str:\n    return 1\n"),
        ("x = {'i': '%d', 'u':", "'a', 'b'),\n     (2, 'c'),\n    ),\n    fields=(1, 2),\n)\n"),
        ("from mesa.v", 'step=1),\n    "a": b("c", value=5),\n}\n'),
        ("def f(x)", '0.04, 0.0),\n    "a": b("c"),\n}\n'),
        ("if x:\n\tif y:\n\t\tz = (", "\n\telse:\n\t\tw\n"),
        ('x = ("a", "', "b c"),
        ("def f(a) -", " int:\n    pass\n"),
        ("x = [\n    1,  # one\n    ", "A NAME IN A COMMENT\n    2,\n]\n"),
    ],
    ids=[
        "in the midst of a keyword",
        "begins with a keyword",
        "no left",
        "calls",
        "deep",
        "tuple",
        "dict",
        "header",
        "tabs",
        "string",
        "arrow",
        "comment",
    ],
)
def test_a_plan_is_found(python: Language, vocabulary: Vocabulary, left: str, right: str) -> None:
    """A search through all bytes looks at too many states, or there is only one kind of way."""
    matcher = python.open(left, right).matcher(vocabulary)
    plan = matcher.plan()
    assert plan
    for token in plan:
        matcher.commit(token)
    assert matcher.is_complete()


def test_a_plan_after_a_token_closes_what_it_opens(python: Language, vocabulary: Vocabulary) -> None:
    """The plan before the token, and a bracket; the search alone would do as well, but not in a few states."""
    matcher = python.open("print(" + "str(" * 60, "\n").matcher(vocabulary)
    plan = matcher.plan()
    assert plan
    (opening,) = vocabulary.encode("(")
    assert matcher.lands(opening, len(plan) + 1) is True
    assert matcher.lands(opening, 1) is not True
    matcher.commit(opening)
    longer = matcher.plan(len(plan) + 1)
    assert longer
    for token in longer:
        matcher.commit(token)
    assert matcher.is_complete()


def json_with(line: str, tmp_path: Path) -> Language:
    """JSON, with a line more in its definition."""
    folder = Path(landing.__file__).parents[2] / "languages" / "json"
    spec = tmp_path / "odd.toml"
    spec.write_text(f"{line}\n" + (folder / "json.toml").read_text(encoding="utf-8"), encoding="utf-8")
    return Language.from_files(folder / "json.lark", spec)


@pytest.mark.parametrize("wrong", ['"x("', "[1]", '[""]'])
def test_wrong_openings_are_refused_in_one_line(wrong: str, tmp_path: Path) -> None:
    with pytest.raises(LanguageError, match=r"^language json: openings(\[0\])?: [^\n]*$"):
        json_with(f"openings = {wrong}", tmp_path)


def test_openings_may_be_any_text(tmp_path: Path) -> None:
    language = json_with('openings = [" ", "(", "é", "[ "]', tmp_path)
    small = small_vocabulary(JSON_TOKENS)
    plan = language.open('{"": [', "1]]}").matcher(small).plan()
    assert [small.token_bytes(token) for token in plan or ()] == [b"["]


def test_lands_agrees_with_a_plan_after_the_token(python: Language, vocabulary: Vocabulary) -> None:
    """The mask, the single question and the plan that the answer rests on agree."""
    session = python.open("def f(a):\n    return g(a, [", "]\n")
    matcher = session.matcher(vocabulary)
    generator = random.Random(1)
    for left in (0, 2):
        kept = set(fill_landing_mask(matcher, vocabulary, left)[0])
        for token in generator.sample(range(vocabulary.size), 1500):
            lands = matcher.allows(token) and matcher.lands(token, left) is True
            assert lands == (token in kept)
            if not lands or token in vocabulary.end_token_ids:
                continue
            matcher.commit(token)
            plan = matcher.plan(left)
            assert plan is not None
            assert len(plan) <= left
            for planned in plan:
                matcher.commit(planned)
            assert matcher.is_complete()
            matcher.rollback(1 + len(plan))


def test_plans_survive_a_rollback(python: Language, vocabulary: Vocabulary) -> None:
    """A plan is followed to its end, whatever is asked and taken back meanwhile."""
    matcher = python.open("def f(a):\n    return g(a, [(", ")\n").matcher(vocabulary)
    plan = matcher.plan()
    assert plan
    for token in (roundabout := [*vocabulary.encode("x if x else x"), *plan]):
        matcher.commit(token)
    assert matcher.is_complete()
    matcher.rollback(len(roundabout))
    assert matcher.plan(len(plan)) == plan
    for place, planned in enumerate(plan):
        left = len(plan) - place - 1
        assert matcher.lands(planned, left)
        for other in vocabulary.encode("([{x"):
            if matcher.allows(other):
                matcher.lands(other, left)
                matcher.commit(other)
                matcher.rollback(1)
        matcher.commit(planned)
        assert matcher.plan(left) == plan[place + 1 :]
    assert matcher.is_complete()


def test_questions_change_nothing(python: Language, vocabulary: Vocabulary) -> None:
    matcher = python.open("x = f(", ")\n").matcher(vocabulary)
    before = matcher.mask()
    fill_landing_mask(matcher, vocabulary, 1)
    token = vocabulary.encode("a")[0]
    assert matcher.lands(token, 0)
    assert (matcher.mask() == before).all()
    matcher.commit(token)
    matcher.rollback(1)
    assert (matcher.mask() == before).all()


def test_arguments_of_lands_are_checked(python: Language, vocabulary: Vocabulary) -> None:
    matcher = python.open("x = (a +", ")\n").matcher(vocabulary)
    with pytest.raises(ValueError, match="outside the vocabulary"):
        matcher.lands(vocabulary.size, 1)
    with pytest.raises(ValueError, match="not allowed"):
        matcher.lands(vocabulary.encode("]")[0], 1)
    with pytest.raises(ValueError, match="not allowed"):
        matcher.lands(vocabulary.end_token_ids[0], 1)


def test_where_only_a_comment_completes_a_plan_begins_one(python: Language, vocabulary: Vocabulary) -> None:
    matcher = python.open("x = 1 ", " $ ?\ny = 2\n").matcher(vocabulary)
    plan = matcher.plan()
    assert plan
    assert vocabulary.token_bytes(plan[-1]).endswith(b"#")
    for token in plan:
        matcher.commit(token)
    assert matcher.is_complete()


def test_an_end_that_the_vocabulary_cannot_spell_is_unknown(python: Language) -> None:
    """A completion exists, `)`, and has no token; where no text at all can follow, that is said."""
    small = small_vocabulary(["x", " "])
    with pytest.raises(SearchLimitError):
        python.open("f(", "\n").matcher(small).plan()
    session = python.open("f(]", "\n")
    assert session.guarantee == "none"
    assert session.matcher(small).plan() is None


@pytest.mark.parametrize(
    "wrong",
    [
        '"x"',
        "[1]",
        '[{ before = ["x"] }]',
        "[{ text = 1 }]",
        '[{ text = "x", odd = 1 }]',
        '[{ text = "x", holds = "y" }]',
    ],
)
def test_wrong_block_lines_are_refused_in_one_line(wrong: str, tmp_path: Path) -> None:
    with pytest.raises(LanguageError, match=r"^language json: block_lines(\[0\](\.(text|odd|holds))?)?: [^\n]*$"):
        json_with(f"block_lines = {wrong}", tmp_path)


@pytest.mark.parametrize("shape", [SINGLE_LINE, Shape.lines(2), "[^(]*", "(?s).{3,6}", r"(?s)(x|\)|\s)*", "x+[^x]*"])
@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("f(", ")\n"),
        ("x = ", "\n"),
        ("if x", "\n    y\n"),
        ("if x:\n    ", "\n    y\n"),
        ("def f(", "\n    return 1\n"),
        ('s = "a', "b\n"),
        ("x = ((", "\n"),
        ("if x:\n    y\n", "else:\n    z\n"),
    ],
)
def test_plans_of_a_shape_have_it(python: Language, left: str, right: str, shape: Shape | str) -> None:
    """After no token and after every one, against all middles of up to two tokens."""
    texts = [*PYTHON_TOKENS, "+", ","]
    small = small_vocabulary(texts)
    session = python.open(left, right)
    found = missed = 0
    for first in [None, *range(len(texts))]:
        matcher = session.matcher(small, shape)
        if first is not None:
            if not matcher.allows(first):
                continue
            matcher.commit(first)
        least = least_tokens(matcher, len(texts), 2)
        try:
            plan = matcher.plan()
        except SearchLimitError:
            missed += least is not None
            continue
        found += 1
        assert plan is not None or not any(matcher.allows(token) for token in range(len(texts)))
        for token in plan or ():
            matcher.commit(token)  # each of them in the shape's mask
        assert plan is None or matcher.is_complete()
        matcher.rollback(len(plan or ()))
        assert plan is None or least is None or len(plan) >= least
        for left_over in range(2):
            kept, _ = fill_landing_mask(matcher, small, left_over)
            for token in kept:
                if token == len(texts):
                    assert matcher.is_complete()
                    continue
                matcher.commit(token)
                assert least_tokens(matcher, len(texts), left_over) is not None, (first, token)
                matcher.rollback(1)
    if isinstance(shape, Shape):  # but for where a comment, or a line that is joined to the next, is the only way
        assert found > 4 * missed


def in_lines(count: int, seed: int) -> Iterator[tuple[str, str]]:
    """The contexts of :func:`contexts` with the rest of the cursor's line as it is in the file, or none of it."""
    generator = random.Random(seed)
    for left, right in contexts(count, seed):
        begun, _, line = left.rpartition("\n")
        if line.strip():
            left = left[: len(begun) + 1 + generator.randint(1, len(line))]
        yield left, "\n" + right.partition("\n")[2] if generator.random() < 0.5 else right


def test_what_completes_a_line_is_found_in_real_files(python: Language, vocabulary: Vocabulary) -> None:
    """Cursors in lines of real files, the rest of the line there or not, wherever the shape leaves them viable."""
    viable = found = 0
    for left, right in itertools.chain(*(in_lines(2, seed) for seed in range(100, 200 if LONG else 120))):
        matcher = python.open(left, right).matcher(vocabulary, SINGLE_LINE)
        if not matcher.is_complete() and not matcher.mask().any():
            continue
        viable += 1
        try:
            plan = matcher.plan()
        except SearchLimitError:
            continue
        assert plan is not None
        text = b"".join(vocabulary.token_bytes(token) for token in plan).decode()
        assert "\n" not in text
        assert python.open(left, right).check(text).complete
        found += 1
    assert viable > 20
    assert found >= 0.9 * viable, (found, viable)


# --- models that do not want to end -------------------------------------------------------------------------------


def always(vocabulary: Vocabulary, text: str) -> Script:
    """One token for ever."""
    logits = torch.zeros(vocabulary.size)
    logits[vocabulary.encode(text)[0]] = 1.0
    return lambda middle: logits


def uniform(vocabulary: Vocabulary, seed: int) -> Script:
    """Any token as likely as any other; the end token hardly."""

    def script(middle: list[int]) -> torch.Tensor:
        generator = torch.Generator().manual_seed(hash((seed, *middle)) & 0xFFFFFFFF)
        logits = torch.randn(vocabulary.size, generator=generator)
        logits[list(vocabulary.end_token_ids)] = -50.0
        return logits

    return script


OPENING = [
    *(
        "(",
        "((",
        "[",
        "{",
        "([",
        '"""',
        "'''",
        '"',
        "f'{",
        "lambda",
        " lambda",
        "if",
        " if",
        "\n",
        "try",
        "match",
        "def",
    ),
    *("class", " else", ":", " ", "    ", "\n    ", "\n        ", "\\", "#", "x", " =", "with", "@", "not", "await"),
]


def worst(vocabulary: Vocabulary, session: Session, seed: int) -> Script:
    """Prefer tokens after which three tokens, or at least one, are not enough."""
    opening = sorted({tokens[0] for text in OPENING if len(tokens := vocabulary.encode(text)) == 1})

    def script(middle: list[int]) -> torch.Tensor:
        generator = random.Random(hash((seed, *middle)))
        matcher = session.matcher(vocabulary)
        for token in middle:
            matcher.commit(token)
        logits = torch.zeros(vocabulary.size)
        for token in generator.sample(opening, 6) + generator.sample(range(5, vocabulary.size), 2):
            if matcher.allows(token):
                logits[token] = 10.0 + sum(matcher.lands(token, left) is not True for left in (1, 3))
        return logits

    return script


def contexts(count: int, seed: int) -> Iterator[tuple[str, str]]:
    """Cuts of the standard library, mostly in short files."""
    generator = random.Random(seed)
    folder = Path(sysconfig.get_paths()["stdlib"])
    paths = [path for path in sorted(folder.glob("*.py")) if 500 < path.stat().st_size < 15_000]
    for path in generator.sample(paths, count):
        text = path.read_text(encoding="utf-8")
        start = generator.randrange(len(text))
        yield text[:start], text[min(len(text), start + generator.randrange(80)) :]


def is_known_to_end(session: Session, vocabulary: Vocabulary, budget: int) -> bool:
    """Return whether the engine has a plan within the budget; without one, no end is promised."""
    try:
        plan = session.matcher(vocabulary).plan(budget)
    except SearchLimitError:
        return False
    return plan is not None and len(plan) <= budget


def check_landed(completion: Completion, session: Session, left: str, right: str, budget: int) -> None:
    """The generation ended complete and within its budget."""
    assert completion.text is not None, completion.reason
    assert completion.stop_reason in (StopReason.END_TOKEN, StopReason.BUDGET)
    assert completion.won in (Won.END_TOKEN, Won.LANDED, Won.POINT)
    assert completion.statistics.tokens <= budget
    assert session.check(completion.text).complete
    whole = left + completion.text + right
    try:
        ast.parse(whole)
    except SyntaxError:  # this Python may be older than the newest that the language takes
        here = Language.load("python", "{}.{}".format(*sys.version_info))
        assert not here.open("", "").check(whole).complete, whole


@pytest.mark.parametrize("single_line", [False, True])
@pytest.mark.parametrize("seed", range(60 if LONG else 6))
@pytest.mark.filterwarnings("ignore::SyntaxWarning")
def test_every_generation_ends_within_its_budget(
    seed: int, single_line: bool, python: Language, vocabulary: Vocabulary
) -> None:
    """Random contexts, budgets from the minimum upwards, models that prefer not to end; of one line, or of any."""
    known = 0
    for left, right in contexts(2, seed):
        session = python.open(left, right)
        assert session.guarantee == "exact"
        try:
            plan = session.matcher(vocabulary, SINGLE_LINE if single_line else None).plan()
        except SearchLimitError:
            continue  # nothing is promised where the search gives up
        if plan is None:
            assert single_line  # what was cut out had a line's end
            continue
        known += 1
        assert plan is not None
        for budget in (len(plan), len(plan) + 1, len(plan) + 5, 40):
            for script in (uniform(vocabulary, seed), worst(vocabulary, session, seed)):
                options = DecodeOptions(max_new_tokens=max(1, budget), single_line=single_line)
                completion = complete_session(network(vocabulary, script), session, Split(left, right), options)
                check_landed(completion, session, left, right, max(1, budget))
                assert not single_line or "\n" not in (completion.text or "")
        if len(plan) > 1:
            budget = len(plan) - 1
            model = network(vocabulary, worst(vocabulary, session, seed))
            options = DecodeOptions(max_new_tokens=budget, single_line=single_line)
            short = complete_session(model, session, Split(left, right), options)
            if short.text is None:
                assert short.reason is not None
                assert short.reason.endswith(f"; the shortest completion known takes {len(plan)}")
            else:  # by a way that no plan has
                check_landed(short, session, left, right, budget)
    assert known or single_line  # a line may have no way to end


PLACES = [("x = f(", ")\n"), ("def f():\n    return [", "]\n"), ("il.copyfileobj(src, ", "dst)\n"), ("", "")]

SETTINGS: dict[str, dict[str, Any]] = {
    "sampled": {"temperature": 1.0},
    "without comments": {"no_comments": True},
    "sampled without comments": {"temperature": 1.0, "no_comments": True},
    "fast forward": {"fast_forward": True},
    "single line": {"single_line": True},
    "single line without comments": {"single_line": True, "no_comments": True, "temperature": 1.0},
}


@pytest.mark.parametrize("setting", SETTINGS)
def test_every_sampling_ends_within_its_budget(setting: str, python: Language, vocabulary: Vocabulary) -> None:
    """And the alternatives are within it, too."""
    for seed, (left, right) in enumerate([*PLACES, *itertools.chain(*(contexts(1, n) for n in range(8 * LONG)))]):
        session = python.open(left, right)
        try:
            plan = session.matcher(vocabulary, SINGLE_LINE if "single line" in setting else None).plan()
        except SearchLimitError:
            continue
        if plan is None:
            assert "single line" in setting
            continue
        for budget, script in itertools.product(
            {max(1, len(plan)), 12}, (uniform(vocabulary, seed), worst(vocabulary, session, seed))
        ):
            options = DecodeOptions(max_new_tokens=budget, seed=seed, **SETTINGS[setting])
            model = network(vocabulary, script)
            for completion in alternatives(model, session, Split(left, right), 1 + (budget == 12), options):
                check_landed(completion, session, left, right, budget)


def test_batches_end_within_their_budgets(python: Language, vocabulary: Vocabulary) -> None:
    budget = 12
    model = network(vocabulary, always(vocabulary, "("))
    options = DecodeOptions(max_new_tokens=budget)
    sessions = [python.open(left, right) for left, right in PLACES]
    with ThreadPoolExecutor(1) as worker:
        runs = [start(model, Reading(model), session, options, Watch(None, None), worker) for session in sessions]
        outcomes = decode_together(model, [Task([-1], [run]) for run in runs])
    for (left, right), session, run, [outcome] in zip(PLACES, sessions, runs, outcomes, strict=True):
        assert isinstance(outcome.ending, StopReason), outcome.ending
        completion = conclude(run, session, True, outcome.ending, Statistics(tokens=len(run.tokens)))
        check_landed(completion, session, left, right, budget)
        alone = complete_session(model, session, Split(left, right), options)
        assert (completion.text, completion.won) == (alone.text, alone.won)


def test_a_repetition_that_landing_forces_is_not_cut(vocabulary: Vocabulary) -> None:
    """The brackets that end the text are no repetition; those that a model opens for ever are."""
    texts = [*"[]0123456789,"]
    small = small_vocabulary(texts)
    session = Language.load("json").open("", "")
    generator = random.Random(3)
    nested = [0, *(token for _ in range(100) for token in (generator.randrange(3, 12), 12, 0))]  # [3,[7,[...

    def says(tokens: Sequence[int]) -> Script:
        def logits(middle: list[int]) -> torch.Tensor:
            scores = torch.full((small.size,), -20.0)
            scores[tokens[len(middle)]] = 5.0
            return scores

        return logits

    options = DecodeOptions(max_new_tokens=120, stop_repetition=True)
    landed = complete_session(network(small, says(nested)), session, Split("", ""), options)
    assert landed.text is not None, landed.reason
    assert landed.text.endswith("]" * 24)
    assert landed.won is Won.LANDED
    endless = complete_session(network(small, says([0] * 200)), session, Split("", ""), options)
    assert (endless.text, endless.stop_reason) == (None, StopReason.REPETITION)


def test_without_landing_these_models_find_no_end(python: Language, vocabulary: Vocabulary) -> None:
    """The property test above needs landing to pass."""
    model = network(vocabulary, always(vocabulary, "("))
    for lands in (False, True):
        options = DecodeOptions(max_new_tokens=20, landing=lands)
        completion = complete_session(model, python.open("x = ", "\ny = 2\n"), Split("x = ", "\ny = 2\n"), options)
        assert (completion.text is not None) == lands
    assert completion.text is not None
    assert completion.text.startswith("((((((")
    assert completion.won is Won.LANDED
    assert completion.statistics.landing_steps > 0
    assert completion.truncated


# --- asking seldom is asking always -------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(30 if LONG else 3))
def test_texts_are_those_that_asking_at_every_token_gives(
    seed: int, python: Language, vocabulary: Vocabulary, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Going back included: where a token may use up all slack but one, most runs have to."""
    rewound = []
    rewind = Reading.rewind

    def counted(self: Reading, tokens: int) -> None:
        rewound.append(tokens)
        rewind(self, tokens)

    monkeypatch.setattr(Reading, "rewind", counted)
    for left, right in [("x = f(", ")\n"), ("def f():\n    return [", "]\n"), ("a", "\n"), *contexts(1, 100 + seed)]:
        session = python.open(left, right)
        if not is_known_to_end(session, vocabulary, 24):
            continue
        inside = right in (")\n", "]\n")  # elsewhere the search for a plan gives up too often
        for script in (uniform(vocabulary, seed), worst(vocabulary, session, seed)):
            texts = []
            for slack in (10**6, 4, 1):  # always; as it is; too seldom
                monkeypatch.setattr(landing, "SLACK_PER_TOKEN", slack)
                options = DecodeOptions(max_new_tokens=24)
                completion = complete_session(network(vocabulary, script), session, Split(left, right), options)
                check_landed(completion, session, left, right, 24)
                texts.append(completion.text)
            assert not inside or texts[1:] == texts[:1] * 2, (left, right)
    del rewound[:]
    brackets = network(vocabulary, always(vocabulary, "("))
    session = python.open("x = ", "\n")
    found = []
    for slack in (10**6, 1):
        monkeypatch.setattr(landing, "SLACK_PER_TOKEN", slack)
        completion = complete_session(brackets, session, Split("x = ", "\n"), DecodeOptions(max_new_tokens=30))
        statistics = completion.statistics
        found.append((completion.text, statistics.refused_tokens, statistics.landing_steps, statistics.tokens))
    assert found[0] == found[1], "what was taken back is not counted either"
    assert rewound, "the second run had to go back"


def test_going_back_leaves_the_model_where_it_was(python: Language) -> None:
    """A real network's logits after going back are those of reading afresh."""
    model = load_model(device="cpu", runtime="torch")
    tokens = model.vocabulary.encode("def largest(items):\n    best = items[0]\n    for item in items:\n")
    reading = Reading(model)
    reading.forward(tokens)
    reading.rewind(5)
    again = reading.forward(tokens[-5:])
    fresh = Reading(model).forward(tokens)
    assert torch.allclose(again, fresh, atol=1e-3)


# --- what wins ----------------------------------------------------------------------------------------------------


def test_the_best_complete_point_competes_with_the_landed_text(python: Language, vocabulary: Vocabulary) -> None:
    """The model would have ended after `f(x)`; what the budget forces at the end is unlikely."""
    end = vocabulary.end_token_ids[0]
    said = [*vocabulary.encode("f(x)"), *vocabulary.encode(" + ((((((((((((((((((((")]

    def script(likely_end: float) -> Script:
        def logits(middle: list[int]) -> torch.Tensor:
            scores = torch.full((vocabulary.size,), -20.0)
            scores[said[min(len(middle), len(said) - 1)]] = 5.0
            scores[end] = likely_end if len(middle) == len(vocabulary.encode("f(x)")) else -20.0
            return scores

        return logits

    session = python.open("y = ", "\n")
    texts = {}
    for name, likely_end in (("point", 4.9), ("landed", -20.0)):
        model = network(vocabulary, script(likely_end))
        completion = complete_session(model, session, Split("y = ", "\n"), DecodeOptions(max_new_tokens=14))
        assert completion.won == name
        texts[name] = completion.text
    assert texts["point"] == "f(x)"
    assert texts["landed"] != "f(x)"


def test_an_empty_middle_can_be_the_only_text(python: Language, vocabulary: Vocabulary) -> None:
    """The middle is complete as it is, and a budget of one token has no room for what the model wants."""
    session = python.open("x = f(", ")\n")
    model = network(vocabulary, always(vocabulary, "("))
    completion = complete_session(model, session, Split("x = f(", ")\n"), DecodeOptions(max_new_tokens=1))
    assert completion.statistics.landing_steps == 1
    assert len(model.seen) <= 2
    assert completion.text is not None
    assert session.check(completion.text).complete
    assert completion.won is Won.LANDED
    assert completion.truncated


def test_a_step_counts_if_the_budget_ruled_out_what_was_drawn_first(python: Language, vocabulary: Vocabulary) -> None:
    """Though the next draw be a token that fits: of two equally likely ones, a bracket has no room."""
    bracket, name = (vocabulary.encode(text)[0] for text in "(x")
    logits = torch.full((vocabulary.size,), -100.0)
    logits[[bracket, name]] = 1.0
    session = python.open("y = ", "\n")
    first = []
    for seed in range(8):
        options = DecodeOptions(max_new_tokens=1, temperature=1.0, seed=seed)
        model = network(vocabulary, lambda middle: logits)
        completion = complete_session(model, session, Split("y = ", "\n"), options)
        assert completion.text == "x"
        first.append(model.backend.arithmetic.sampler(options.temperature, options.seed).draw(logits))
        assert completion.statistics.landing_steps == (first[-1] == bracket)
        assert completion.won is (Won.LANDED if first[-1] == bracket else Won.POINT)
    assert set(first) == {bracket, name}


def test_healed_text_takes_no_budget_of_the_middle(python: Language) -> None:
    """A budget of one token is enough for a bracket, though the word before it would be written again."""
    model = load_model()
    completion = complete(model, python, Split("print(value", "\n"), DecodeOptions(max_new_tokens=1, heal=True))
    assert completion.text is not None
    ast.parse("print(value" + completion.text + "\n")
