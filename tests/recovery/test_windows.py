"""Windows of broken files: made-up programs with brackets missing elsewhere, beside a plain choice of the window.

The oracle knows brackets and indentation alone: it matches brackets with a stack, and tries each window in turn.
FIM_SERVER_LONG=1 draws more programs; FIM_SERVER_SEED draws others.
"""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from fim_server import Language, Session
from fim_server.errors import LanguageError
from fim_server.recovery.agreement import shortest
from fim_server.recovery.documents import Document
from fim_server.recovery.opener import BUDGET
from fim_server.recovery.recovery import NO_WINDOW, Recovered, Recovery
from fim_server.recovery.windows import MOST_REACHED, MOST_WINDOWS, reaches, window

LONG = os.environ.get("FIM_SERVER_LONG") == "1"
SEED = int(os.environ.get("FIM_SERVER_SEED", "1"))
PROGRAMS = 2_000 if LONG else 150
CURSOR = "‸"
PAIRS = {"(": ")", "[": "]", "{": "}"}


def opened(language: str, marked: str) -> Session | Recovered:
    left, right = marked.split(CURSOR)
    return Recovery(Language.load(language).open, name=language).open(left, right)


def left_out(found: Session | Recovered) -> list[int]:
    """Numbers of the lines left out, counted from 1."""
    ignored = found.ignored if isinstance(found, Recovered) else ()
    return [group.line + 1 + offset for group in ignored for offset in range(group.count)]


# ---------------------------------------------------------------- what programmers leave behind

TEXTS = {
    # A bracket that an earlier function lacks.
    "a brace above": (
        "c",
        "int f() {\n    if (a) {\n        b();\n}\n\nint g() {\n    c(‸\n    d();\n}\n",
        [1, 2, 3, 4, 5],
        "x);",
        "x);\n}",
    ),
    "a brace below": (
        "c",
        "int g() {\n    c(‸\n    d();\n}\n\nint f() {\n    if (a) {\n        b();\n}\n",
        [9],
        "x);",
        "x;",
    ),
    "a brace too many below": (
        "kotlin",
        "fun g() {\n    c(‸\n    d()\n}\n\nfun f() {\n    b()\n    }\n}\n",
        [5, 6, 7, 8, 9],
        "x)",
        "x) {",
    ),
    "a parenthesis in the same block": (
        "c",
        "int g() {\n    if (a) {\n        c(‸\n        d();\n    }\n    e(b;\n}\n",
        [1, 6, 7],
        "x);",
        "x;",
    ),
    "within an else": (
        "c",
        "int g() {\n    b(;\n    if (a) {\n        d();\n    } else {\n        c(‸\n    }\n}\n",
        [1, 2, 8],
        "x);",
        "x));",
    ),
    "the header of a PHP file": (
        "php",
        "<?php\nfunction f() {\n    if ($a) {\n        b();\n}\n\nfunction g() {\n    c(‸\n    d();\n}\n",
        [1, 2, 3, 4, 5, 6],
        "$x);",
        "$x); }",
    ),
    # Strings.
    "a quote above": (
        "php",
        "<?php\nfunction f() {\n    return 'a;\n}\n\nfunction g() {\n    return c(‸\n}\n",
        [1, 2, 3, 4, 5],
        "'x');",
        "'x",
    ),
    "a comment above": (
        "c",
        "int f() {\n    /* a\n    return 1;\n}\n\nint g() {\n    return c(‸\n}\n",
        [1, 2, 3, 4, 5],
        "x);",
        "x */",
    ),
    # Exact languages, where lines left out move the demand.
    "a brace above in Go": (
        "go",
        "package a\n\nfunc f() {\n\tif a {\n\t\tb()\n}\n\nfunc g() {\n\tc(‸\n\td()\n}\n",
        [1, 2, 3, 4, 5, 6, 7],
        "x)",
        "x)}",
    ),
}


@pytest.mark.parametrize("name", TEXTS)
def test_the_middle_that_fits_is_taken(name: str) -> None:
    language, marked, lines, true, wrong = TEXTS[name]
    found = opened(language, marked)
    assert isinstance(found, Recovered)
    assert left_out(found) == lines
    assert found.guarantee == "partial"
    assert found.check(true).complete
    assert not found.check(wrong).complete
    left, right = marked.split(CURSOR)
    document = Document(left, right)
    kept = [n for n in range(document.lines) if n + 1 not in lines]
    assert [n for covered in found.covered for n in covered] == kept
    assert len(found.diagnostics) == len(found.ignored)


@pytest.mark.parametrize(
    ("language", "marked", "text"),
    [
        ("r", "f <- function(x) {\n\tsapply(x, function(y) {\n\t\ty\n\t}‸\n}\n", ")"),
        ("kotlin", "fun f() {\n    a(listOf {\n        b()\n    }‸\n    c()\n}\n", ")"),
        ("cpp", "void f() {\n    run([&]() {\n        a();\n    }, {\n        b();\n    }‸\n    c();\n}\n", ");"),
    ],
)
def test_what_the_header_of_a_block_opens_is_closed_behind_it(language: str, marked: str, text: str) -> None:
    found = opened(language, marked)
    assert found.guarantee == "balanced"
    assert found.check(text).complete
    assert opened(language, marked.replace("}‸", "x‸")).guarantee != "balanced"


def test_the_search_of_an_exact_language_is_bounded_by_states_alone() -> None:
    rust = Language.load("rust")
    near, far = (rust.open("fn f() { let a = " + "([" * depth, "\n}\n") for depth in (10, 300))
    assert shortest(near) == "])" * 10 + ";"
    assert shortest(far) is None


INTACT = {
    "a header without its block": ("c", "int f() {\n    a();\n}\n\nint g() {\n    if (a‸\n\n"),
    "a block to be closed": ("c", "int f() {\n    if (a) {\n        b();\n    ‸\n}\n"),
    "arguments on lines of their own": ("c", "int f() {\n    a(b,\n      c,\n      d‸\n    e();\n}\n"),
    "arguments that begin": ("c", "int f() {\n    a(b‸\n      c,\n      d);\n    e();\n}\n"),
    "a line of its own": ("c", "int f() {\n    a(\n        b‸\n    );\n}\n"),
    "an else": ("c", "int f() {\n    if (a) {\n        b();\n    } else ‸\n        c();\n    }\n}\n"),
    "an end without a bracket": ("lua", "function f()\n  a(‸\n  if b then\n    c()\n  end\nend\n"),
    "a string": ("c", 'int f() {\n    a("b‸\n    c();\n}\n'),
    "a string of several lines": ("php", "<?php\n$a = 'b\n  c ‸ d\n  e';\nf();\n"),
    "a comment that is open": ("c", "int f() {\n    a();  /* b‸\n    c();\n}\n"),
    "nothing wanted at a strange place": ("c", "int f() {\n        a();\n  b(‸);\n      }\n"),
    "markup": ("xml", "<a>\n  <b>\n    c‸\n</a>\n"),
    "a file of one line": ("css", "a { b: c‸"),
}


@pytest.mark.parametrize("name", INTACT)
def test_whole_files_keep_their_guarantee(name: str) -> None:
    found = opened(*INTACT[name])
    assert isinstance(found, Session)
    assert found.guarantee == "balanced"


def test_where_no_window_fits_anything_may_come() -> None:
    found = opened("c", "int f() {\n  a(;\n  b(‸\n  c);\n  d(;\n")
    assert isinstance(found, Session)
    assert (found.guarantee, found.diagnostics) == ("none", [NO_WINDOW])
    assert found.check("x }} anything (").complete
    assert found.spelling == Language.load("c").spelling


def test_lines_outside_of_a_window_are_not_called_broken() -> None:
    found = opened("c", TEXTS["a brace above"][1])
    assert found.diagnostics == ["lines 1 to 5 are left out: brackets or quotes somewhere do not fit the indentation"]


def test_a_repaired_file_is_whole_again() -> None:
    language = Language.load("c")
    recovery = Recovery(language.open)
    left, right = TEXTS["a brace above"][1].split(CURSOR)
    assert isinstance(recovery.open(left, right), Recovered)
    assert recovery.open(left.replace("b();\n", "b();\n    }\n"), right).guarantee == "balanced"


@pytest.mark.parametrize("value", ['"a"', '["a"]', '[["a"]]', '[["a", "b", "c"]]', '[["a\\n", ""]]', "[[1, 2]]"])
def test_wrong_surroundings_are_refused_in_one_line(value: str, tmp_path: Path) -> None:
    text = 'name = "t"\nguarantee = "balanced"\nsuffixes = [".t"]\nbrackets = [["(", ")"]]\n'
    (tmp_path / "t.toml").write_text(f"{text}surroundings = {value}\n[token_trees]\n")
    with pytest.raises(LanguageError, match=r"^language \S+: surroundings: expected a list of pairs of lines$"):
        Language.from_files(None, tmp_path / "t.toml")


# ---------------------------------------------------------------- made-up programs


def made_up(draw: random.Random, depth: int = 0) -> Iterator[str]:
    """Lines of statements, formatted."""
    blanks = "    " * depth
    for number in range(draw.randint(1, 4)):
        if number and draw.random() < 0.2:
            yield ""
        kind = draw.randrange(9 if depth < 4 else 5)
        if kind <= 2:
            yield f"{blanks}a(b[c], d({{e}}));"
        elif kind == 3:
            yield from (f"{blanks}a(b,", f"{blanks}  c(d),", f"{blanks}  e);")
        elif kind == 4:
            yield from (f"{blanks}if (a)", f"{blanks}    b;")
        else:
            yield f"{blanks}if (a[b]) {{"
            yield from made_up(draw, depth + 1)
            if kind == 5:
                yield f"{blanks}}} else {{"
                yield from made_up(draw, depth + 1)
            yield f"{blanks}}}"


def cut(draw: random.Random, breaks: int) -> tuple[str, str, str]:
    """Left context, true middle and right context in a program, of which some brackets elsewhere are gone."""
    lines = list(made_up(draw)) + list(made_up(draw)) + list(made_up(draw))
    at = draw.choice([number for number, line in enumerate(lines) if line])
    line = lines[at]
    begin = draw.randrange(len(line) - len(line.lstrip()), len(line))
    others = [number for number in range(len(lines)) if abs(number - at) > 1 and set(lines[number]) & set("()[]{}")]
    for number in draw.sample(others, min(breaks, len(others))):
        places = [place for place, mark in enumerate(lines[number]) if mark in "()[]{}"]
        if places:
            place = draw.choice(places)
            lines[number] = lines[number][:place] + lines[number][place + 1 :]
    above = "".join(f"{one}\n" for one in lines[:at])
    return above + line[:begin], line[begin:], "\n" + "".join(f"{one}\n" for one in lines[at + 1 :])


def marks(text: str) -> str:
    return "".join(mark for mark in text if mark in "()[]{}")


def reduced(text: str) -> str:
    """The brackets of a text without its matching pairs."""
    stack: list[str] = []
    for mark in marks(text):
        if stack and PAIRS.get(stack[-1]) == mark:
            stack.pop()
        else:
            stack.append(mark)
    return "".join(stack)


def missing(left: str, right: str) -> str | None:
    """The fewest brackets between two texts with which all match; None if none do."""
    opening, closing = reduced(left), reduced(right)
    if set(opening) & set(")]}") or set(closing) & set("([{"):
        return None
    partners = {PAIRS[mark]: mark for mark in PAIRS}
    shared = 0
    while shared < min(len(opening), len(closing)) and PAIRS[opening[shared]] == closing[len(closing) - 1 - shared]:
        shared += 1
    close = "".join(PAIRS[mark] for mark in reversed(opening[shared:]))
    return close + "".join(partners[mark] for mark in reversed(closing[: len(closing) - shared]))


def depth_of(text: str) -> int:
    return sum(1 if mark in "([{" else -1 for mark in marks(text))


def begins(line: str) -> int:
    """The closing brackets at a line's beginning."""
    text = line.lstrip()
    return len(text) - len(text.lstrip(")]}"))


def behind(line: str) -> int:
    """Brackets that a line leaves open behind them."""
    return depth_of(line.lstrip()[begins(line) :])


def indented(line: str) -> int:
    return len(line) - len(line.lstrip())


def fits(left: str, text: str, right: str) -> bool:
    """The rule of agreement, for lines without blank ones between them."""
    *above, start = left.split("\n")
    end, *below = right.split("\n")
    below = [line for line in below if line.strip()]
    column = indented(start + end) if not start.strip() and end else indented(start + "x")
    deeper = []
    while below and indented(below[0]) > column:
        deeper.append(below.pop(0))
    following = below[0] if below else ""
    rest = begins(start) + depth_of(start) + depth_of(text) + depth_of(end)
    wanted = begins(following) if indented(following) == column else 0
    if rest == wanted:
        return True
    if rest > 0:
        return bool(deeper) and rest + behind(deeper[-1]) == wanted
    heads = [line for line in above if line.strip() and indented(line) <= column]
    first = max((at for at, line in enumerate(heads) if not begins(line)), default=0)
    open_above = sum(map(depth_of, heads[first:]))
    is_headed = heads and min(map(indented, heads[first:])) == column and not begins(heads[first]) and open_above > 0
    if begins(start) and is_headed and rest + open_above - begins(start) == wanted:
        return True
    if rest == 0 or (start.strip() and indented(following) == column):
        return False
    levels = [(indented(following), begins(following))]
    if not start.strip():
        levels.append((column, wanted))
    for level, due in levels:
        openers = [line for line in above if line.strip() and indented(line) <= level]
        if openers and indented(openers[-1]) == level and behind(openers[-1]) > 0 and rest + behind(openers[-1]) == due:
            return True
    return False


def plain_windows(left: str, right: str) -> Iterator[tuple[int, int]]:
    """The first line above and the number of lines below of each window, the largest first."""
    *above, start = left.split("\n")
    end, *below = right.removesuffix("\n").split("\n")
    column = indented(start + end) if not start.strip() and end else indented(start + "x")
    smaller = sorted({indented(line) for line in above + below if line.strip() and indented(line) < column})
    for level in smaller[-(MOST_WINDOWS - 2) :]:
        heads = [at for at, line in enumerate(above) if line.strip() and indented(line) <= level and not begins(line)]
        first = heads[-1] if heads else 0
        count = 0
        for line in below:
            if line.strip() and indented(line) <= level:
                if begins(line) == 0:
                    break
                if behind(line) <= 0:
                    count += 1
                    break
            count += 1
        yield first, count
    outside = [at for at, line in enumerate(above) if line.strip() and indented(line) < column]
    ends = [at for at, line in enumerate(below) if line.strip() and indented(line) < column]
    yield (outside[-1] + 1 if outside else 0), (ends[0] if ends else len(below))
    outside = [at for at, line in enumerate(above) if not line.strip() or indented(line) < column]
    ends = [at for at, line in enumerate(below) if not line.strip() or indented(line) < column]
    yield (outside[-1] + 1 if outside else 0), (ends[0] if ends else len(below))


def plain_choice(left: str, right: str) -> tuple[int, int] | None:
    """The largest window that agrees with the indentation and is not the whole file; None if there is none."""
    above, below = left.split("\n"), right.split("\n")
    for first, count in plain_windows(left, right):
        part = "\n".join(above[first:]), "\n".join([*below[: 1 + count], ""])
        if first == 0 and count == len(right.removesuffix("\n").split("\n")) - 1:
            continue
        wanted = missing(*part)
        if wanted is not None and len(wanted) <= 8 and fits(part[0], wanted, part[1]):
            return first, count
    return None


def test_the_window_is_the_plain_choice() -> None:
    language = Language.load("c")
    seen: Counter[str] = Counter()
    for number in range(PROGRAMS):
        draw = random.Random(f"windows {SEED} {number}")
        left, middle, right = cut(draw, number % 3)
        document = Document(left, right)
        found = window(language.open, document, language.spelling)
        expected = plain_choice(left, right)
        assert reaches(document, language.spelling) == list(dict.fromkeys(plain_windows(left, right)))
        assert (found is None) == (expected is None), (left, right)
        seen[f"found {number % 3}"] += found is not None
        if found is None or expected is None:
            continue
        session, changes = found
        above, below = left.split("\n"), right.split("\n")
        everything = document.cursor_line + 1 + len(document.below)
        kept = range(expected[0], document.cursor_line + 1 + expected[1])
        assert sorted(changes) == [at for at in range(everything) if at not in kept]
        wanted = missing("\n".join(above[expected[0] :]), "\n".join([*below[: 1 + expected[1]], ""]))
        assert wanted is not None
        assert session.check(wanted).complete
        seen[f"true {number % 3}"] += session.check(middle).complete
    print(dict(seen))
    assert min(seen["found 1"], seen["found 2"]) > PROGRAMS / 8
    assert min(seen["true 1"] / seen["found 1"], seen["true 2"] / seen["found 2"]) > 0.8


def test_true_middles_are_seldom_refused_in_broken_programs() -> None:
    language = Language.load("c")
    seen: Counter[str] = Counter()
    for number in range(PROGRAMS):
        left, middle, right = cut(random.Random(f"broken {SEED} {number}"), 1)
        before = language.open(left, right)
        found = Recovery(language.open).open(left, right)
        seen["before"] += not before.check(middle).complete
        seen["judged"] += found.guarantee != "none"
        seen["refused"] += not found.check(middle).complete
        if isinstance(found, Session):
            assert found.guarantee in ("balanced", "none")
            assert found.guarantee == "none" or before.guarantee == "balanced"
        else:
            assert found.guarantee == "partial"
            assert found.ignored
    print(dict(seen))
    assert seen["refused"] < seen["before"] / 4
    assert seen["judged"] > 0.7 * PROGRAMS


def test_intact_programs_stay_whole() -> None:
    language = Language.load("c")
    judged = 0
    for number in range(PROGRAMS):
        left, middle, right = cut(random.Random(f"intact {SEED} {number}"), 0)
        found = Recovery(language.open).open(left, right)
        judged += isinstance(found, Session) and found.guarantee == "balanced"
        if isinstance(found, Session) and language.open(left, right).check("").complete:
            assert found.guarantee == "balanced"
        assert found.check(middle).complete or not isinstance(found, Session)
    print(judged)
    assert judged > 0.9 * PROGRAMS


# ---------------------------------------------------------------- growth


class Counted:
    """Opener of a language's sessions that counts them and their characters."""

    def __init__(self, language: Language) -> None:
        self._language, self.count, self.characters = language, 0, 0

    def __call__(self, left: str, right: str) -> Session:
        self.count += 1
        self.characters += len(left) + len(right)
        return self._language.open(left, right)


def nested(depths: range) -> str:
    return "".join(" " * depth + "if (a) {\n" for depth in depths)


def closing(depths: range) -> str:
    return "\n" + "".join(" " * depth + "}\n" for depth in reversed(depths))


LARGE = {
    "unclosed blocks": ("if (a) {\n" * 4_000 + "  b(", "\n"),
    "unclosed blocks in blocks": (nested(range(1_000)) + " " * 1_000 + "b(c(", "\n"),
    "unopened blocks": ("b(", "\n" + "}\n" * 4_000),
    "unopened blocks in blocks": ("int a;\n" * 10 + " " * 1_000 + "b(c(", closing(range(1_000))),
    "no window": (nested(range(1_000)) + " " * 1_000 + "b) {", closing(range(1_000))),
    "many lines": ("int f() {\n" + "  a(;\n" * 20_000 + "  c(", "\n" + "  d();\n" * 20_000 + "}\n"),
    "a long line": ("if (a) {\n  b" + "(" * 10 + "(c) + " * 20_000, "\n"),
}
"""Left and right contexts, and what they want fits no indentation or the smallest window's."""


@pytest.mark.parametrize("name", LARGE)
def test_the_work_is_bounded(name: str) -> None:
    left, right = LARGE[name]
    counted = Counted(Language.load("c"))
    started = time.process_time()
    found = Recovery(counted).open(left, right)
    spent = time.process_time() - started
    print(name, len(left) + len(right), counted.count, round(spent, 3))
    assert found.guarantee in ("none", "partial")
    assert counted.count <= 2 + BUDGET
    assert counted.characters <= (2 + BUDGET) * (len(left) + len(right))
    assert spent < 20


def test_windows_end_at_a_distance() -> None:
    near, far = "  a();\n" * (MOST_REACHED - 1), "  a();\n" * MOST_REACHED
    spelling = Language.load("c").spelling
    for above, below, expected in [
        (near, near, [(0, MOST_REACHED), (1, MOST_REACHED - 1)]),
        (far, near, []),
        (near, far, []),
    ]:
        document = Document("f() {\n" + above + "  b(", "\n" + below + "}\n")
        assert reaches(document, spelling) == expected


def test_at_most_a_few_windows() -> None:
    text = "".join(" " * depth + "a {\n" for depth in range(100)) + " " * 100 + "b;\n\n" + " " * 100
    found = reaches(Document(text, "c\n"), Language.load("c").spelling)
    assert len(found) == MOST_WINDOWS
    assert [first for first, _ in found] == sorted(first for first, _ in found)
