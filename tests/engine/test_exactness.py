"""The exactness harness: its judge, its cuts, and a short run of it."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from fim_server.datasets.judging.running import finished
from support.engine.exactness import Totals, documented, main, run, summary
from support.engine.judge import NEWEST, Judge, Running, unavailable
from support.engine.windows import KINDS, LIBRARY, Drawer, Folder

pytestmark = pytest.mark.skipif(unavailable() is not None, reason=str(unavailable()))

CUTS = 150
DRAWN = 60


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with Judge() as judge:
        yield judge


@pytest.fixture(scope="module")
def library() -> Folder:
    return Folder("stdlib", LIBRARY)


VALID = [
    "",
    "x",
    "try: pass\nexcept A, B: pass\n",
    "lazy import a\n[*b for b in c]\n",
    "x = t'{a}' t\"{b!r:>{c}}\"\n",
    "f'{a['b']}'",
    "f'{\n1 # c\n}'",
    "def f[T = int, *U](): pass\n",
    "type X = int",
    "é = '\u2028'",
    "a\r\nb\rc\n",
    "if a:\n\tb\n\tc",
    "9" * 4300,
]
INVALID = [
    " x",
    "x\0",
    "except",
    "t'' f''",
    "f'{}'",
    "f'{a!z}'",
    "'\\N{NO SUCH NAME}'",
    "'\ud800'",
    "\ufeffx",
    "print 1",
    "if = 3",
    "9" * 4301,
    "if a:\n\tb\n        c",
]


@pytest.mark.parametrize(("texts", "expected"), [(VALID, True), (INVALID, False)])
def test_judge_knows_what_python_is(judge: Judge, texts: list[str], expected: bool) -> None:
    assert judge.version.startswith(f"{NEWEST}.")
    assert dict.fromkeys(texts, expected) == dict(zip(texts, judge.verdicts(texts), strict=True))
    assert all((judge.message(text) == "") == expected for text in texts)


def test_judge_survives_what_the_parser_does_not(judge: Judge) -> None:
    assert judge.verdicts(["x", "-" * 30_000 + "1", "x y"]) == [True, None, False]
    assert judge.verdicts(["x", "y" + ".a" * 100_000]) == [True, None]
    assert judge.verdicts(["x", "w"]) == [True, True]
    assert judge.restarts > 0


def test_judge_remembers(judge: Judge) -> None:
    judge.verdicts(["once = 1", "once = 1"])
    asked = judge.asked
    assert judge.verdicts(["once = 1"] * 3) == [True] * 3
    assert judge.asked == asked


def test_judges_agree_on_syntax_that_is_old(judge: Judge) -> None:
    texts = ["x", "x y", "lambda: (yield)", "f(a=1, b)", "'\\N{DIGIT ONE}'", "x = 1if y else 2", "if x:\n"]
    assert judge.verdicts(texts) == Running().verdicts(texts)


def test_parts_of_a_text(judge: Judge) -> None:
    text = "if é:\n  # c\n  s = f'é{b!r:>{w}}c{ {1: 2}[1] }' 'ü'\n  pass\n"

    def shown(spans: list[tuple[int, int]]) -> list[str]:
        return [text[start:end] for start, end in spans]

    parts = judge.tokens(text)
    assert shown(parts["fields"]) == ["{b!r:>{w}}", "{ {1: 2}[1] }"]
    assert shown(parts["strings"]) == ["é", ">", "c", "'ü'"]
    assert {"if", "é", ":", "s", "pass", "# c"} <= set(shown(parts["tokens"]))
    assert {"é", "s", "b", "{1: 2}[1]"} <= set(shown(judge.spans("expressions", text)))
    assert shown(judge.spans("blocks", text)) == ["  s = f'é{b!r:>{w}}c{ {1: 2}[1] }' 'ü'\n  pass\n"]
    outline = judge.outline("# a\nimport b; c\n\n@d\nclass E:\n  # f\n  g\n  h\n", 20)
    assert outline == [[0, 16, 0, []], [16, 43, 35, [[35, 39, 0, []], [39, 43, 0, []]]]]


def test_cuts_are_of_their_kind(judge: Judge, library: Folder) -> None:
    drawer = Drawer(3, [library], judge)
    for index in range(DRAWN):
        case = drawer.case(index)
        assert case is not None
        window = case.window
        assert case.kind == KINDS[index % len(KINDS)]
        assert case.left + case.middle + case.right == window.text
        source = (LIBRARY / window.path).read_bytes().decode()
        assert "".join(source[start:end] for start, end in window.spans) == window.text
        assert judge.verdict(window.text)
        line = case.left.rpartition("\n")[2]
        match case.kind:
            case "end":
                assert case.right == ""
            case "empty":
                assert case.middle == ""
            case "indentation":
                assert line.strip() == ""
                assert (case.middle + case.right)[0] in " \t\f"
            case "line" | "block":
                assert line == ""
            case "field":
                assert "{" in case.left
            case "string":
                spans = judge.tokens(window.text)["strings"]
                assert any(start < case.start < end for start, end in spans)
            case _:
                assert case.middle or case.kind == "token"


def test_cuts_repeat(judge: Judge, library: Folder) -> None:
    indices = [5, 17, 3]
    first, second = Drawer(9, [library], judge), Drawer(9, [library], judge)
    assert [first.case(index) for index in indices] == [second.case(index) for index in reversed(indices)][::-1]


def test_documented_differences_excuse_nothing_else(judge: Judge) -> None:
    assert documented(judge, "'\\N{NO SUCH NAME}'", True) == "name of a character"
    assert documented(judge, "'\\N{NO SUCH NAME}' '", True) is None
    assert documented(judge, "'\\N{}'", True) is None
    assert documented(judge, f"x = {'9' * 5000}", True) == "digits"
    assert documented(judge, f"x = {'9' * 5000} 1", True) is None
    assert documented(judge, "x", False) is None


def test_short_run(library: Folder, tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    with path.open("w", encoding="utf-8") as out:
        totals = run(CUTS, 1, [library], out=out)
    text = summary(totals, "", "", totals.failures[:10])
    print(text)
    assert totals.cases == CUTS
    assert totals.failures == [], text

    lines = path.read_text(encoding="utf-8")
    path.write_text(lines + '{"index": 15', encoding="utf-8")
    again = Totals()
    for record in finished(path):
        again.add(record)
    assert path.read_text(encoding="utf-8") == lines
    assert (again.cases, again.counts, again.kinds) == (totals.cases, totals.counts, totals.kinds)
    assert [json.loads(line)["index"] for line in lines.splitlines()] == [*range(CUTS)]


def test_a_source_that_is_none_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--cuts", "1", "--source", "no-such-folder"]) == 2
    assert re.fullmatch(r"exactness: [^\n]+\n", capsys.readouterr().err)
