"""Several holes in one file, against brute force: all texts of one hole, the engine's sessions for the last."""

from __future__ import annotations

import itertools
import json
import random
from collections import deque
from collections.abc import Sequence

import pytest

from fim_server import Language, LanguageError, Stop, StoppedError, _core
from fim_server.errors import LimitError
from fim_server.language.holes import JointVerdict
from support.languages.definitions import compiled_or_none
from support.languages.toys import Oracle, random_toy

TOYS = 150
CUTS = 30

# Lines in blocks: `a`, `if a:`, brackets, comments, and texts in quotes over several lines.
BLOCKS = {
    "name": "blocks",
    "start": "file",
    "lexemes": [
        {"name": "NEWLINE", "pattern": "\\r?\\n"},
        {"name": "BLANK", "pattern": " +"},
        {"name": "COMMENT", "pattern": "#[^\\n]*"},
        {"name": "NAME", "pattern": "[a-z]+"},
        {"name": "IF", "literal": "if"},
        {"name": "COLON", "literal": ":"},
        {"name": "TEXT", "pattern": "'[^']*'"},
        {"name": "OPEN", "literal": "("},
        {"name": "CLOSE", "literal": ")"},
        {"name": "INDENT"},
        {"name": "DEDENT"},
    ],
    "ignore": ["BLANK", "COMMENT"],
    "rules": [
        {"lhs": "file", "rhs": []},
        {"lhs": "file", "rhs": ["lines"]},
        {"lhs": "lines", "rhs": ["line"]},
        {"lhs": "lines", "rhs": ["lines", "line"]},
        {"lhs": "line", "rhs": ["value", "NEWLINE"]},
        {"lhs": "line", "rhs": ["IF", "value", "COLON", "block"]},
        {"lhs": "value", "rhs": ["NAME"]},
        {"lhs": "value", "rhs": ["TEXT"]},
        {"lhs": "value", "rhs": ["OPEN", "value", "CLOSE"]},
        {"lhs": "block", "rhs": ["NEWLINE", "INDENT", "lines", "DEDENT"]},
    ],
    "layout": {"newline": "NEWLINE", "indent": "INDENT", "dedent": "DEDENT", "blank": "BLANK", "comment": "COMMENT"},
    "brackets": [["OPEN", "CLOSE"]],
}
PROGRAMS = (
    "if a:\n  a\n  if (a):\n    a\na\n",
    "if a:\n if a:\n  a\n a\n",
    "('a\n')\nif ((a)):\n   (a)\n  # x\n   a\n",
    "if a:\n a\nif a:\n if a:\n   if a:\n    a\n   a\n a\n",
)
PIECES = ("a", "if a:", "if", "\n", "\n ", "\n  ", " ", "(", ")", "a\n", "#", ":", "'")
STEPS = ("a", "\n", " ", "(", ")", ":", "if ", "#", "'", ":\n    a", "\n  ", "\n   ", "a:\n a\n", "a #")


def follows(language: _core.Language, texts: Sequence[str], steps: Sequence[str], longest: int) -> bool:
    """Return whether a search of short texts for all holes but the last finds some that make the rest possible."""
    if len(texts) == 2:
        return language.open(*texts).check("")[0]
    middles = itertools.chain.from_iterable(itertools.product(steps, repeat=length) for length in range(longest + 1))
    return any(follows(language, [texts[0] + "".join(m) + texts[1], *texts[2:]], steps, longest) for m in middles)


def filled(language: _core.Language, texts: Sequence[str], steps: Sequence[str], most: int) -> bool | None:
    """Fill all holes but the last, led by the answers; return a session's verdict. None: nothing found in time."""
    if len(texts) == 2:
        return language.open(*texts).check("")[0]
    begun = deque([""])
    for _ in range(most):
        if not begun:
            return False
        middle = begun.popleft()
        rest = [texts[0] + middle + texts[1], *texts[2:]]
        if language.is_possible(rest):
            return filled(language, rest, steps, most)
        longer = (middle + step for step in steps)
        begun.extend(text for text in longer if language.is_possible([texts[0] + text, *texts[1:]]))
    return None


@pytest.mark.parametrize("chunk", range(3))
def test_random_grammars_agree_with_brute_force(chunk: int) -> None:
    counts = {True: 0, False: 0}
    for index in range(chunk, TOYS, 3):
        toy = random_toy(random.Random(11_000_003 + index))
        language = compiled_or_none(toy.spec())
        if language is None:
            continue
        oracle, rng = Oracle(toy), random.Random(index)
        members = [text for text in oracle.texts(5) if oracle.member(text)] or [""]
        for _ in range(4):
            text, others = rng.choice(members), [rng.choice(oracle.texts(2)) for _ in range(2)]
            cut = sorted(rng.randint(0, len(text)) for _ in range(4))
            texts = rng.choice(
                [[text[: cut[0]], text[cut[1] : cut[2]], text[cut[3] :]], [others[0], text[cut[0] : cut[2]], others[1]]]
            )
            assert language.is_possible(["".join(texts)]) == oracle.member("".join(texts)), (toy, texts)
            one = [texts[0] + texts[1], texts[2]]
            assert language.is_possible(one) == language.open(*one).check("")[0], (toy, one)
            possible = language.is_possible(texts)
            counts[possible] += 1
            if possible:
                assert filled(language, texts, oracle.toy.alphabet, 400) is not False, (toy, texts)
            else:
                assert not follows(language, texts, oracle.toy.alphabet, 4), (toy, texts)
    assert min(counts.values()) > 20, counts


def cut_up(rng: random.Random) -> list[str]:
    """Three or four parts of a program, some of them changed."""
    program, holes = rng.choice(PROGRAMS), rng.choice([2, 2, 3])
    cuts = [0, *sorted(rng.randint(0, len(program)) for _ in range(2 * holes)), len(program)]
    texts = [program[cuts[at] : cuts[at + 1]] for at in range(0, len(cuts), 2)]
    for _ in range(rng.randint(0, 3)):
        at = rng.randrange(len(texts))
        begin = rng.randint(0, len(texts[at]))
        texts[at] = texts[at][:begin] + rng.choice(PIECES) + texts[at][begin + rng.choice([0, 0, 1, 3]) :]
    return texts


def test_indentation_agrees_with_brute_force() -> None:
    language, rng = _core.Language(json.dumps(BLOCKS)), random.Random(1)
    counts: dict[bool | str, int] = {True: 0, False: 0, "open": 0}
    for _ in range(CUTS):
        texts = cut_up(rng)
        possible = language.is_possible(texts)
        counts[possible] += 1
        if possible:
            found = filled(language, texts, STEPS, 100)
            counts["open"] += found is None
            assert found is not False, texts
        else:
            assert not follows(language, texts, STEPS[:9], 3 if len(texts) == 3 else 1), texts
        assert language.is_possible(["".join(texts)]) == language.open("".join(texts), "").check("")[1], texts
        one = [texts[0], "".join(texts[1:])]
        assert language.is_possible(one) == language.open(*one).check("")[0], one
    assert min(counts[True], counts[False]) > 5, counts
    assert counts["open"] < 4, counts


def test_a_line_break_cut_by_the_cursor_begins_a_line_at_column_0() -> None:
    language = _core.Language(json.dumps(BLOCKS))
    for right, possible in (("\nif a:\n   a\n  a\n", False), ("\nif a:\n   a\na\n", True), ("\n  a\n", True)):
        assert language.open("", right).check("")[0] == possible, right
        assert language.is_possible(["", right]) == possible, right


def test_cut_programs_are_possible_and_agree_with_sessions() -> None:
    language, rng = Language.load("python"), random.Random(3)
    program = (
        'def f(x):\n    """Text.\n\n    More."""\n    if x:\n        return f"{x + 1} {x!r:>{3}} b"\n'
        "    try:\n        y = [1,\n             2]  # c\n    finally:\n        pass\n\n\nclass A(b):\n  c = 'd'\n"
    )
    assert language.open(program, "").check("").complete
    counts = {True: 0, False: 0}
    for _ in range(10):
        cuts = [0, *sorted(rng.randint(0, len(program)) for _ in range(4)), len(program)]
        texts = [program[cuts[at] : cuts[at + 1]] for at in (0, 2, 4)]
        assert language.core.is_possible(texts), texts
        at = rng.randint(0, len(texts[1]))
        left = texts[0] + texts[1][:at] + rng.choice([")", "'", "\n ", ":", "{", "else:\n"]) + texts[1][at:]
        viable = language.open(left, texts[2]).check("").viable
        assert language.core.is_possible([left, texts[2]]) == viable, (left, texts[2])
        counts[viable] += 1
    assert min(counts.values()) > 1, counts


@pytest.mark.parametrize(
    ("language", "texts", "possible"),
    [
        ("python", ["x = (", " + ", "\n"], True),
        ("python", ["x = [1", ")", "]\n"], True),
        ("python", ["while", "\n  a\n b\n", "\n"], True),
        ("python", ["def f():\n  a\n", "\n b\n", ""], True),
        ("python", ["def f():\n  a\nb\n", "\n  else:", "\n"], True),
        ("python", ["a b", "", ""], False),
        ("python", ["x = 'a", "b", "c'\nreturn 1 2\n"], False),
        ("python", ["", "x", '"a\n b c\n'], False),
        ("python", ["f'{a", "}b", "'\n"], True),
        ("json", ['{"a": ', ', "b', "]}"], True),
        ("json", ['{"a": 1]', "", ""], False),
        ("go", ["package p\nfunc f() {", "}\nfunc g", "}\n"], True),
        ("go", ["package p\nfunc ", " func 1 {", "}\n"], True),
        ("c", ["f(", ")", "}"], True),
        ("c", ["f(}", "", ""], False),
    ],
)
def test_open_holes_of_languages(language: str, texts: list[str], possible: bool) -> None:
    assert Language.load(language).open_holes(texts).is_possible([None] * (len(texts) - 1)) == possible


def test_texts_for_all_holes_are_judged_together() -> None:
    holes = Language.load("python").open_holes(["def f(", "):\n    return ", "\n"])
    assert len(holes) == 2
    assert holes.check(["a, b", "a + b"]) == JointVerdict(viable=True, complete=True, rejected_at=None)
    assert holes.check(["a", "a +"]) == JointVerdict(viable=True, complete=False, rejected_at=None)
    assert holes.check(["a b", "a"]) == JointVerdict(viable=False, complete=False, rejected_at=(0, 2))
    assert holes.check(["a, *", "a"]) == JointVerdict(viable=False, complete=False, rejected_at=(0, 4))
    assert holes.check(["é", "é)"]) == JointVerdict(viable=False, complete=False, rejected_at=(1, 1))


def test_one_hole_is_judged_as_by_a_session() -> None:
    language = Language.load("python")
    session, holes = language.open("x = [", "]\n"), language.open_holes(["x = [", "]\n"])
    for middle in ("", "1, ", "1 2", "1]", "'"):
        verdict = session.check(middle)
        at = None if verdict.rejected_at is None else (0, verdict.rejected_at)
        assert holes.check([middle]) == JointVerdict(verdict.viable, verdict.complete, at)
        assert holes.is_possible([middle], begun=0) == verdict.viable
        assert holes.is_possible([middle]) == verdict.complete


def test_begun_holes_and_sessions_on_one_hole() -> None:
    holes = Language.load("python").open_holes(["x = ", " + ", "\ny = ", "\n"])
    assert holes.is_possible(["(", None, "z)"])  # as in `x = ( + 1) + f(`
    assert holes.is_possible(["1 1", None, None]) is False
    assert holes.is_possible(["]", None, "2"], begun=0) is False
    assert holes.is_possible(["(", "1)", None])
    assert holes.is_possible(["(", "1", None], begun=1)
    assert holes.is_possible([None, "1 2", None], begun=1)  # in a comment
    assert holes.is_possible(["1", "1 2", None], begun=1) is False
    assert holes.is_possible([None, None, None])
    session = holes.session(["(1", None, "3"])
    assert session.check("2)").complete
    assert not session.check("2").complete


def test_bad_calls_say_what_is_wrong() -> None:
    language = Language.load("python")
    for count in (0, 1, 10):
        with pytest.raises(ValueError, match=f"2 to 9 expected, not {count}"):
            language.open_holes([""] * count)
    with pytest.raises(TypeError, match="texts: a sequence of str"):
        language.open_holes("ab")
    with pytest.raises(TypeError, match=r"texts\[1\]"):
        language.open_holes(["", 1])  # type: ignore[list-item]
    holes = language.open_holes(["", "a", ""])
    with pytest.raises(ValueError, match="2 expected, not 1"):
        holes.check([""])
    with pytest.raises(ValueError, match="a text for each hole"):
        holes.check(["", None])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="one open hole"):
        holes.session([None, None])
    for begun in (-1, 1, 2):
        with pytest.raises(ValueError, match="begun"):
            holes.is_possible(["", None], begun=begun)


def test_what_is_not_decided_is_refused() -> None:
    two = [None, None]
    with pytest.raises(LanguageError, match="recur"):
        Language.load("java").open_holes(["class A {", "}", "}"]).is_possible(two)
    with pytest.raises(ValueError, match="tab"):
        Language.load("python").open_holes(["if a:\n\tb\n", "c", "\n"]).is_possible(two)
    with pytest.raises(LimitError, match="columns"):
        Language.load("python").open_holes(["if a:\n" + " " * 500, "c", "\n"]).is_possible(two)
    deep = "(" * 199
    with pytest.raises(LimitError, match="brackets"):
        Language.load("python").open_holes([deep, "c", "\n"]).is_possible(two)


def test_a_stop_ends_the_work() -> None:
    holes = Language.load("python").open_holes(["x = [", "a, " * 20_000, "]\n"])
    with pytest.raises(StoppedError), Stop(within=0.05):
        holes.is_possible([None, None])
