"""Two made-up languages of two files each, in tests/languages: all that holds of Python and JSON must hold of them.

Heath has indentation, `--` comments, `then` where a block begins and brackets `<| |>`; Tarn has no layout, and
two kinds of comments. No line of the engine or the package is about either, so whatever plans, landing, recovery,
explanations and single lines know of a language they have from its two files.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Iterator
from functools import cache

import numpy as np
import pytest
import torch

from fim_server import Vocabulary
from fim_server.decoding.options import DecodeOptions
from fim_server.decoding.results import StopReason, Won
from fim_server.decoding.strategies.alternatives import complete_session
from fim_server.errors import LanguageError, SearchLimitError
from fim_server.language import Language, Matcher, Session
from fim_server.language.shapes import SINGLE_LINE
from fim_server.recovery.recovery import Recovered, Recovery, recover
from fim_server.recovery.texts import insertions
from fim_server.text.document import Split
from support.languages.made_up import NAMES, Programs, files, language, token_texts
from support.models.scripted_models import Script, network

LONG = os.environ.get("FIM_SERVER_LONG") == "1"
CUTS = 400 if LONG else 40  # of each language


@cache
def vocabulary(name: str) -> Vocabulary:
    texts = token_texts(name)
    return Vocabulary([text.encode() for text in texts] + [None], end_token_ids=[len(texts)])


@cache
def programs(name: str) -> Programs:
    return Programs.of(name)


def cuts(name: str, count: int, seed: int) -> Iterator[tuple[str, str, str]]:
    """Programs, each cut into left, middle and right."""
    rng = random.Random(seed)
    for _ in range(count):
        text = programs(name).draw(rng, rng.choice([8, 20, 50]), 4)
        start = rng.randrange(len(text) + 1)
        end = min(len(text), start + rng.randrange(30))
        yield text[:start], text[start:end], text[end:]


def opened(name: str, left: str, right: str) -> Session:
    session = language(name).open(left, right)
    assert session.guarantee == "exact", (left, right, session.diagnostics)
    return session


def text_of(name: str, tokens: list[int]) -> str:
    known = vocabulary(name)
    return b"".join(known.token_bytes(token) or b"" for token in tokens).decode()


def plan_of(matcher: Matcher, enough: int = 0) -> list[int] | None:
    """A plan; None if none is known."""
    try:
        return matcher.plan(enough)
    except SearchLimitError:
        return None


def completes_in(matcher: Matcher, tokens: int, length: int) -> bool:
    """Return whether exactly so many tokens complete a middle, by trying all."""
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


@pytest.mark.parametrize("name", NAMES)
def test_programs_are_programs_wherever_they_are_cut(name: str) -> None:
    for left, middle, right in cuts(name, CUTS, 1):
        verdict = opened(name, left, right).check(middle)
        assert verdict.complete, (left, middle, right)


@pytest.mark.parametrize("name", NAMES)
def test_shortest_completions_complete(name: str) -> None:
    for left, middle, right in cuts(name, CUTS // 2, 2):
        session = opened(name, left, right)
        found = session.start().shortest_completion()
        assert found is not None
        assert session.check(found).complete
        assert len(found) <= len(middle)


# --- plans ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_plans_complete_in_no_fewer_tokens_than_are_possible(name: str) -> None:
    """Against all texts of up to two tokens: nothing is promised that is not so, and most of what can be known is."""
    known = vocabulary(name)
    found = best = possible = 0
    for left, middle, right in cuts(name, CUTS, 3):
        session = opened(name, left, right)
        matcher = session.matcher(known)
        least = next((length for length in range(3) if completes_in(matcher, known.size - 1, length)), None)
        plan = plan_of(matcher)
        possible += least is not None
        if plan is None:
            continue
        assert session.check(text_of(name, plan)).complete, (left, middle, right)
        assert least is None or len(plan) >= least
        found += 1
        best += len(plan) == least
    print(f"{name}: {found} plans of {CUTS} holes, {best} of {possible} the shortest of all")
    assert found >= 0.9 * CUTS
    assert best >= 0.7 * possible


@pytest.mark.parametrize("name", NAMES)
def test_masks_that_land_allow_nothing_that_cannot_end(name: str) -> None:
    known = vocabulary(name)
    words = np.zeros(-(-known.size // 32), dtype=np.uint32)
    for left, _, right in cuts(name, CUTS // 4, 4):
        matcher = opened(name, left, right).matcher(known)
        for left_over in (0, 1):
            refused = matcher.fill_landing_mask(words, left_over)
            kept = np.flatnonzero(np.unpackbits(words.view(np.uint8), count=known.size, bitorder="little"))
            allowed = [token for token in range(known.size) if matcher.allows(token)]
            assert len(allowed) - refused == len(kept)
            for token in map(int, kept):
                if token == known.size - 1:
                    assert matcher.is_complete()
                    continue
                matcher.commit(token)
                ends = any(completes_in(matcher, known.size - 1, length) for length in range(left_over + 1))
                matcher.rollback(1)
                assert ends, (left, right, token)


PLANS = [
    ("heath", "task Make<|A", "|> then\n  rest\n"),
    ("heath", "B is [<|A<|[", "|>]\n"),
    ("heath", "when A then\n  B is C\n", "otherwise then\n  rest\n"),
    ("heath", "task Make<||> then\n  when A then\n    rest\n", "D is E\n    give F\n  rest\nrest\n"),
    ("heath", "attempt then\n  rest\n", "  rest\nrescue then\n  rest\n"),
    ("heath", "A is B<|", "% C ~~ ?\nrest\n"),
    ("heath", "A is " + "B<|" * 40, "\n"),
    ("tarn", "define n(:a", ":) { say b! }"),
    ("tarn", "while a { perhaps b { say f(:1 / (:2 + ", ":):)! } }"),
    ("tarn", "say " + "f(:" * 40, "!"),
    ("tarn", "n <- ^abc", "def^!"),
    ("tarn", "say a! ", "} say b!"),
]


@pytest.mark.parametrize(("name", "left", "right"), PLANS)
def test_a_plan_is_found(name: str, left: str, right: str) -> None:
    """Blocks that R asks for, brackets that it closes, strings, many brackets; a comment where nothing else will do."""
    session = opened(name, left, right)
    plan = plan_of(session.matcher(vocabulary(name)))
    assert plan is not None
    assert session.check(text_of(name, plan)).complete


def test_the_last_resort_is_the_languages_own_comment() -> None:
    session = opened("heath", "A is B ", " ?! $\nrest\n")
    plan = plan_of(session.matcher(vocabulary("heath")))
    assert plan is not None
    assert text_of("heath", plan).endswith("--")
    session = opened("tarn", "say a! ", " ?! $\nsay b!\n")
    plan = plan_of(session.matcher(vocabulary("tarn")))
    assert plan is not None
    assert text_of("tarn", plan).endswith(";;")


def test_new_blocks_are_indented_by_the_languages_step() -> None:
    """The language's step indents a block unless a block of the right side gives its column."""
    session = opened("heath", "when A then\n", "\nrest\n")
    plan = plan_of(session.matcher(vocabulary("heath")))
    assert plan is not None
    assert re.match(r"  \S", text_of("heath", plan))
    session = opened("heath", "rest\n", "orwhen A then\n     rest\n")
    plan = plan_of(session.matcher(vocabulary("heath")))
    assert plan is not None
    assert re.match(r"when Q then\n     \S", text_of("heath", plan))


# --- landing -------------------------------------------------------------------------------------------------------


def stubborn(name: str, session: Session, seed: int) -> Script:
    """A model that prefers tokens after which few more are not known to be enough, and never ends by itself."""
    known = vocabulary(name)

    def script(middle: list[int]) -> torch.Tensor:
        rng = random.Random(hash((seed, *middle)))
        matcher = session.matcher(known)
        for token in middle:
            matcher.commit(token)
        logits = torch.zeros(known.size)
        for token in rng.sample(range(known.size - 1), 8):
            if matcher.allows(token):
                logits[token] = 10.0 + sum(matcher.lands(token, left) is not True for left in (1, 3))
        logits[known.size - 1] = -50.0
        return logits

    return script


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("budget", [4, 12])
def test_every_middle_ends_within_its_budget(name: str, budget: int) -> None:
    known = vocabulary(name)
    tried = 0
    for number, (left, _, right) in enumerate(cuts(name, CUTS // 2, 5)):
        session = opened(name, left, right)
        plan = plan_of(session.matcher(known), budget)
        if plan is None or len(plan) > budget:
            continue  # nothing is promised
        tried += 1
        model = network(known, stubborn(name, session, number))
        options = DecodeOptions(max_new_tokens=budget, landing=True)
        found = complete_session(model, session, Split(left, right), options)
        assert found.text is not None, (left, right, found.reason)
        assert found.statistics.tokens <= budget
        assert found.won in (Won.END_TOKEN, Won.LANDED, Won.POINT)
        assert session.check(found.text).complete
        assert found.stop_reason in (StopReason.END_TOKEN, StopReason.BUDGET)
    assert tried >= CUTS // 8


# --- recovery ------------------------------------------------------------------------------------------------------


def rebuilt(text: str, found: Recovered) -> str:
    """A text without its ignored lines, with what stands in their place."""
    lines = re.findall(r"[^\n]*\n|[^\n]+", text)
    for group in reversed(found.ignored):
        lines[group.line : group.line + group.count] = [group.stand_in + "\n"] if group.stand_in else []
    return "".join(lines)


def check_recovered(name: str, left: str, right: str, found: Recovered) -> None:
    """Recovery keeps lines of the document only, and some middle makes them a program."""
    mark = "\N{INVERTED QUESTION MARK}"
    assert found.ignored
    if all(left.count("\n") not in range(group.line, group.line + group.count) for group in found.ignored):
        assert found.left + mark + found.right == rebuilt(left + mark + right, found)
    written = insertions(language(name).spelling)
    assert {group.stand_in.strip() for group in found.ignored} <= {"", *written.stand_ins, *written.closings}
    assert opened(name, found.left, found.right).start().shortest_completion() is not None


BROKEN = [
    ("heath", "A is\nB is |\n", [1]),
    ("heath", "task Make<|A then\n  give A\nB is |\n", [1]),
    ("heath", "when A\n  give B\nC is |\n", [1]),
    ("heath", "A is |\nwhen B then\n  C is is D\n  rest\n", [3]),
    ("heath", "A is B<|C%\nrest\nD is |\n", [1]),
    ("heath", "rescue then\n  rest\nA is |\n", [1]),
    ("heath", "-- |>\nA is ?\nB is |\n", [2]),
    ("tarn", "say a!\nsay !\nsay |!\n", [2]),
    ("tarn", "say |!\nsay f(:a/!\nsay b!\n", [2]),
    ("tarn", "while a {\nsay ?!\n}\nsay |!\n", [2]),
]


@pytest.mark.parametrize(("name", "text", "expected"), BROKEN)
def test_people_would_leave_out_the_same(name: str, text: str, expected: list[int]) -> None:
    left, right = text.split("|", 1) if text.count("|") == 1 else text.rsplit("|", 1)
    found = recover(language(name).open, left, right)
    assert found is not None
    check_recovered(name, left, right, found)
    assert [group.line + 1 + at for group in found.ignored for at in range(group.count)] == expected


# Programs of reed have few lines that are statements of their own.
@pytest.mark.parametrize("name", ["heath", "tarn"])
def test_random_breaks_are_left_out(name: str) -> None:
    rng = random.Random(6)
    broken = repaired = 0
    for _ in range(CUTS):
        lines = programs(name).draw(rng, 60, 20).splitlines(keepends=True)
        if len(lines) < 4:
            continue
        cursor, at = rng.sample(range(len(lines)), 2)
        place = rng.randrange(len(lines[at]))
        lines[at] = lines[at][:place] + rng.choice(["?", "|>", ":)", "", "then", "}"]) + lines[at][place + 1 :]
        lines[at] = lines[at].replace("\n", "") + "\n"
        before = sum(map(len, lines[:cursor])) + rng.randrange(len(lines[cursor]))
        text = "".join(lines)
        left, right = text[:before], text[before:]
        if language(name).open(left, right).guarantee == "exact":
            continue
        broken += 1
        found = recover(language(name).open, left, right)
        if found is not None:
            repaired += 1
            check_recovered(name, left, right, found)
    print(f"{name}: {repaired} of {broken} broken programs repaired")
    assert broken >= CUTS // 8
    assert repaired >= 0.8 * broken


def test_a_broken_header_does_not_take_its_block_along() -> None:
    """The language's own stand-ins take its place, as Python's `if 1:` does in Python."""
    left = "task Make<| then\n  when A then\n    give B\n  rest\n"
    found = Recovery(language("heath").open).open(left, "give C\n")
    assert isinstance(found, Recovered)
    (group,) = found.ignored
    assert (group.line, group.count) == (0, 1)
    assert group.stand_in.endswith("then")


# --- explanations --------------------------------------------------------------------------------------------------

OPEN = [
    ("heath", "task Make<||> then\n  when A then\n    B is [1 % C<|", ["call", "list", "when", "task"]),
    ("heath", "every A of <|B ++ ", ["'<|'", "every"]),
    ("tarn", "define f(::) { while a { say g(:1 / ", ["call", "block", "while", "block", "define"]),
    ("tarn", "perhaps (:a + ", ["'(:'", "perhaps"]),
]


@pytest.mark.parametrize(("name", "left", "expected"), OPEN)
def test_what_is_open_has_the_languages_own_names(name: str, left: str, expected: list[str]) -> None:
    found = [construct.name for construct in language(name).open(left, "").open_constructs()]
    assert [name.strip("'\"") for name in found] == [name.strip("'\"") for name in expected]


def test_what_stands_against_a_text_is_said_in_the_languages_own_words() -> None:
    told = opened("heath", "A is B<|C ", " |>\n").start().explain("then")
    assert told.rejected_at == 0
    assert {'"%"', '"++"'} <= set(told.expected)
    assert "call" in told.open_left
    assert told.open_right[0].startswith("|> ")
    told = opened("tarn", "say f(:1 ", ":)!").start().explain("!")
    assert told.rejected_at == 0
    assert {'"/"', '"+"'} <= set(told.expected)
    assert "call" in told.open_left


@pytest.mark.parametrize("name", NAMES)
def test_what_is_accepted_of_a_text_is_viable_and_no_more(name: str) -> None:
    rng = random.Random(7)
    for left, middle, right in cuts(name, CUTS // 2, 7):
        session = opened(name, left, right)
        text = middle[: rng.randrange(len(middle) + 1)] + rng.choice(["?", "\n}", "|>", " then"])
        told = session.start().explain(text)
        assert session.check(told.accepted).viable
        if told.rejected_at is not None:
            assert text.startswith(told.accepted)
            assert not session.check(text[: len(told.accepted) + 1]).viable
            assert told.expected


INSIDE = [
    ("heath", "A is B -- no", "comment"),
    ("heath", "A is B -", "comment"),
    ("heath", "A is `b", "string"),
    ("heath", "A is `b`", None),
    ("tarn", "say a! ;; no", "comment"),
    ("tarn", "say a! (* no", "comment"),
    ("tarn", "say a! (* no *", "comment"),
    ("tarn", "say a! (* no *) ", None),
    ("tarn", "say a! ;; no\n", None),
    ("tarn", "say ^b", "string"),
]


@pytest.mark.parametrize(("name", "left", "expected"), INSIDE)
def test_comments_and_strings_are_known(name: str, left: str, expected: str | None) -> None:
    assert language(name).open(left, "\n").inside == expected


# --- single lines --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_single_lines_are_single_lines_and_none_is_missing(name: str) -> None:
    """Every middle without a line break is taken, none with one is, and a walk along the masks always finds an end."""
    known = vocabulary(name)
    rng = random.Random(8)
    whole = 0
    for left, middle, right in cuts(name, CUTS, 8):
        session = opened(name, left, right)
        matcher = session.matcher(known, SINGLE_LINE)
        taken = "\n" not in middle
        for character in middle:
            token = (
                next(token for token in range(known.size) if known.token_bytes(token) == character.encode())
                if (character.encode() in {known.token_bytes(token) for token in range(known.size)})
                else None
            )
            if token is None:
                break
            if not matcher.allows(token):
                assert not taken, (left, middle, right)
                break
            matcher.commit(token)
        else:
            whole += taken
            assert matcher.is_complete() or not taken
        walk = session.matcher(known, SINGLE_LINE)
        text = ""
        for _ in range(12):
            allowed = [int(token) for token in np.flatnonzero(walk.mask())]
            if not walk.is_complete() and text == "" and not allowed:
                break  # no single line joins these contexts
            assert allowed, (left, text, right)
            token = rng.choice(allowed)
            if token == known.size - 1:
                break
            walk.commit(token)
            text += text_of(name, [token])
            assert "\n" not in text
            assert session.check(text).viable
            if walk.is_complete():
                assert session.check(text).complete
    assert whole


# --- definitions that are wrong ------------------------------------------------------------------------------------

WRONG = [
    ('placeholder = "Q"', 'placeholder = "q q"', "placeholder"),
    ('quotes = ["`"]', 'quotes = ["!"]', "quotes[0]"),
    ('quotes = ["`"]', 'quotes = [""]', "quotes[0]"),
    ('operators = "+~"', 'operators = "é"', "operators"),
    ('prefix = "--"', 'prefix = "#"', "comments[0].prefix"),
    ('lexeme = "COMMENT", prefix', 'lexeme = "NAME", prefix', "comments[0].lexeme"),
    ('lexeme = "COMMENT", prefix', 'lexeme = "REMARK", prefix', "comments[0].lexeme"),
    ('block_opener = "then"', 'block_opener = ":"', "layout.block_opener"),
    ("step = 2", "step = 0", "layout.step"),
    ("step = 2", 'step = "2"', "layout.step"),
    ("step = 2", "steps = 2", "layout.steps"),
    ('block_opener = "then"', "", "block_lines[0].before"),
    ('{ text = "rest" }', '{ text = "" }', "block_lines[2].text"),
    ('{ text = "rest" }', '{ txt = "rest" }', "block_lines[2].txt"),
    ('"Q<|", "Q is "', '"", "Q is "', "openings[0]"),
    ('headers = ["when', 'headers = [1, "when', "recovery.headers[0]"),
    ('joints = ["%"', 'joints = ["", "%"', "recovery.joints[0]"),
    ("stand_ins", "standins", "recovery.standins"),
    ('["[", "]"]]', '["["]]', "brackets[1]"),
    ('["[", "]"]]', '["[", ")"]]', "brackets"),
    ('strings = ["STRING"]', 'strings = "STRING"', "strings"),
    ('rule = "indent"', 'rule = "columns"', "layout.rule"),
    ('newline = "_NEWLINE"', "", "layout"),
    ('suffixes = [".heath"]', "", "suffixes"),
    ('"call <|" = "call"', '"call <|" = 1', "constructs.call <|"),
]


@pytest.mark.parametrize(("written", "wrong", "key"), WRONG, ids=[wrong[2] + str(at) for at, wrong in enumerate(WRONG)])
def test_what_is_wrong_is_said_with_its_key(
    written: str, wrong: str, key: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    grammar, spec = files("heath")
    text = spec.read_text(encoding="utf-8")
    assert text.count(written) == 1
    changed = tmp_path_factory.mktemp("wrong") / "heath.toml"
    changed.write_text(text.replace(written, wrong), encoding="utf-8")
    with pytest.raises(LanguageError) as caught:
        Language.from_files(grammar, changed)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith("language heath: ")
    assert key in message
