"""The definition of JavaScript, JSX, TypeScript and TSX: texts that oxc and Babel take and refuse, cut everywhere.

Where Node is installed, both are asked about each of them as well.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fim_server import Language
from fim_server.datasets.judging import programs
from fim_server.datasets.judging.differences import Differences, refused_at
from fim_server.datasets.judging.judge import EARLY, Judge
from fim_server.language.definition.compile import builtin_files
from fim_server.language.shapes import SINGLE_LINE
from support.markdown_pages import text_of

FOLDER = builtin_files("javascript")[0].parent
TEXTS = tomllib.loads(Path(__file__).with_name("ecmascript_texts.toml").read_text(encoding="utf-8"))
VARIANTS = ("javascript", "jsx", "typescript", "tsx", "d.ts")


def texts(variant: str, verdict: str) -> list[str]:
    """Return the texts of a verdict; a text of JavaScript is one of each variant that does not list it."""
    own: list[str] = TEXTS[variant][verdict]
    listed = {text for kind in ("accepted", "refused") for text in TEXTS[variant][kind]}
    if variant in ("javascript", "d.ts"):
        return own
    return [*own, *(text for text in TEXTS["javascript"][verdict] if text not in listed)]


@pytest.mark.parametrize("variant", VARIANTS)
def test_texts_are_taken_at_every_cut(variant: str) -> None:
    wrong = []
    for text in texts(variant, "accepted"):
        for cut in range(0, len(text) + 1, 1 + len(text) // 6):
            session = Language.load(variant).open(text[:cut], text[cut:])
            if not session.check("").complete:
                wrong.append((text[:cut], text[cut:]))
    assert wrong == []


@pytest.mark.parametrize("variant", VARIANTS)
def test_texts_are_refused_at_every_cut(variant: str) -> None:
    wrong = []
    for text in texts(variant, "refused"):
        for cut in range(0, len(text) + 1, 1 + len(text) // 6):
            session = Language.load(variant).open(text[:cut], text[cut:])
            if session.check("").complete:
                wrong.append((text[:cut], text[cut:]))
    assert wrong == []


@pytest.mark.parametrize("variant", VARIANTS)
def test_sessions_share_masks_wherever_the_cursor_stands(variant: str) -> None:
    language = Language.load(variant)
    statements = "import a from 'b';\nlet x = `${f(1)}` / 2\nclass A { b = /c/ }\nfunction f() { return x }\n"
    comment = "// the end"
    own = [cut for cut in range(len(statements)) if not language.open(statements[:cut], statements[cut:]).shares_masks]
    assert own == []
    for left, right in (("", ""), ("", comment), (comment, ""), ("#!node\n", statements), (statements, comment)):
        assert language.open(left, right).shares_masks, (left, right)


def test_the_order_of_modes_changes_no_verdict(tmp_path: Path) -> None:
    spec = (FOLDER / "ecmascript.toml").read_text(encoding="utf-8")
    head, first, second, *others = spec.split("[[modes]]\n")
    swapped = "[[modes]]\n".join([head, second, first, *others])
    assert swapped != spec
    (tmp_path / "swapped.toml").write_text(swapped, encoding="utf-8")
    other = Language.from_files(FOLDER / "ecmascript.lark", tmp_path / "swapped.toml", variant="javascript")
    for text in ("a\n/r/g", "x = a / b / c", "a /= b\n/c/.d", "a\n/r/.x", "x = /a/ / /b/", "(a) / b / c", "{} /a/ / b"):
        for cut in range(len(text) + 1):
            verdicts = [
                one.open(text[:cut], text[cut:]).check("").complete for one in (Language.load("javascript"), other)
            ]
            assert verdicts[0] == verdicts[1], (text, cut)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("x = [1, (2, ", ["(", "array"]),
        ("return g(a,\n [1, ", ["array", "arguments"]),
        ("if (a) {\n x = { b: [", ["array", "object", "block"]),
        ("class A { x() { y(", ["arguments", "block", "class body", "class"]),
        ("import {a, ", ["names", "import"]),
        ("for (const a of b(", ["arguments", "(", "for"]),
        ("x = `a${[", ["array", "{", "template"]),
    ],
)
def test_constructs_are_named_where_breaks_may_follow_their_brackets(text: str, names: list[str]) -> None:
    assert [one.name for one in Language.load("typescript").open(text, "").open_constructs()] == names


GOALS = {
    "import a from 'b'": "module any",
    "export default 1": "module any",
    "await a": "module any",
    "for await (a of b) ;": "module any",
    "return": "commonjs any",
    "with (a) b": "commonjs any",
    "x = 01 + 08.5 + '\\1'": "commonjs any",
    "let = yield": "commonjs any",
    "implements: a": "commonjs any",
    "if (a) function f() {}": "commonjs any",
    "for (var a = 0 in b) ;": "commonjs any",
    "x = await": "commonjs",
    "function f() { await\nf(); var await }": "commonjs",
    "class A { static { function f() { await } } }": "commonjs",
    "a <!-- b\n--> c": "commonjs",
    "/* a */ --> b\nc": "commonjs",
    "if (a <!--b) c": "module any",
    "function f() { return new.target }": "module any commonjs",
}
"""Texts, and the versions that take them."""


@pytest.mark.parametrize("variant", ["javascript", "jsx"])
def test_a_goal_takes_its_own_texts(variant: str) -> None:
    for text, goals in GOALS.items():
        taken = {goal for goal in ("module", "any", "commonjs") if takes(variant, text, goal)}
        assert taken == {*goals.split()}, text


def takes(variant: str, text: str, version: str | None = None) -> bool:
    return Language.load(variant, version).open("", "").check(text).complete


@pytest.mark.parametrize(
    ("name", "package", "title"),
    [
        ("a.js", None, "javascript"),
        ("a.js", {}, "javascript"),
        ("a.js", {"type": "module"}, "javascript module"),
        ("a.js", '\ufeff{"type": "module"}', "javascript module"),
        ("a.js", {"type": "commonjs"}, "javascript"),
        ("a.js", {"type": "else"}, "javascript"),
        ("a.mjs", {"type": "commonjs"}, "javascript module"),
        ("a.cjs", {"type": "module"}, "javascript commonjs"),
        ("a.jsx", {"type": "module"}, "jsx module"),
        ("a.js", {"dependencies": {"react": "19"}}, "jsx"),
        ("a.js", {"dependencies": {"reactor": "1"}, "devDependencies": ["react"]}, "javascript"),
        ("a.cjs", {"peerDependencies": {"preact": "10"}, "type": "module"}, "jsx commonjs"),
        ("a.js", "no JSON", "javascript"),
        ("a.js", [], "javascript"),
        ("a.ts", {"dependencies": {"react": "19"}, "type": "module"}, "typescript"),
        ("a.b.d.ts", {}, "d.ts"),
        ("a.d.mts", {}, "d.ts"),
        ("d.ts", {}, "typescript"),
        ("a.tsx", {}, "tsx"),
    ],
)
def test_the_path_and_the_project_choose_the_language(tmp_path: Path, name: str, package: object, title: str) -> None:
    if package is not None:
        text = package if isinstance(package, str) else json.dumps(package)
        (tmp_path / "package.json").write_text(text, encoding="utf-8")
    path = tmp_path / "src" / name
    assert Language.for_path(path).title == title
    editor = "typescript" if name.endswith("ts") else Language.name_for_path(path)
    assert Language.for_path(path, editor).title == title


def test_the_nearest_package_counts(tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text('{"type": "module", "dependencies": {"react": "19"}}')
    assert Language.for_path(tmp_path / "a" / "b.js").title == "jsx module"
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "package.json").write_text('{"name": "a"}')
    assert Language.for_path(tmp_path / "a" / "b.js").title == "javascript"


def test_a_named_language_is_kept_for_other_files(tmp_path: Path) -> None:
    assert Language.for_path(tmp_path / "a.js", "jsx").name == "jsx"
    assert Language.for_path(tmp_path / "a.d.ts", "tsx").name == "tsx"
    assert Language.for_path(tmp_path / "a.d.ts", "python").name == "python"
    assert Language.for_path(tmp_path / "a.js", versions={"javascript": "commonjs"}).title == "javascript commonjs"


def page() -> list[tuple[str, str, bool]]:
    """Return the texts of docs/javascript.md, their language, and whether they are accepted here."""
    _, *sections = re.split(r"^(Accepted|Refused) here, .*:$", text_of("docs/javascript.md"), flags=re.M)
    return [
        (text.replace("⏎", "\n"), language, verdict == "Accepted")
        for verdict, section in zip(sections[::2], sections[1::2], strict=True)
        for text, language in re.findall(r"^\| `(.+?)` \| ([\w.]+) \|", section, re.M)
    ]


def test_what_differs_is_as_the_page_says() -> None:
    assert len(page()) == 44
    assert [text for text, language, here in page() if takes(language, text) != here] == []


@pytest.fixture(scope="module")
def judge() -> Iterator[Callable[[str, str], Judge]]:
    """Parsers by language and goal."""
    reason = programs.unavailable("javascript")
    if reason is not None:
        pytest.skip(reason)
    judges: dict[tuple[str, str], Judge] = {}

    def of(language: str, goal: str = "") -> Judge:
        if (language, goal) not in judges:
            first, last = programs.command(language), programs.appeal(language)
            judges[language, goal] = Judge([*first[:-1], goal], [*last[:-1], goal])
        return judges[language, goal]

    yield of
    for each in judges.values():
        each.close()


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_parsers_agree(judge: Callable[[str, str], Judge], variant: str) -> None:
    parsers = judge(variant, "")
    wrong = []
    for verdict in ("accepted", "refused"):
        for text in texts(variant, verdict):
            truth, said = parsers.decided(text, verdict == "accepted")
            if truth is not (verdict == "accepted") and not (verdict == "accepted" and said.startswith(EARLY)):
                wrong.append((text, said))
    assert wrong == []


def test_the_parsers_agree_about_goals(judge: Callable[[str, str], Judge]) -> None:
    for text, goals in GOALS.items():
        for goal in ("module", "commonjs"):
            taken = goal in goals.split()
            assert judge("javascript", goal).decided(text, taken)[0] is taken, (text, goal)


def test_what_differs_is_documented(judge: Callable[[str, str], Judge]) -> None:
    known = Differences.of(FOLDER)
    for text, language, here in page():
        truth, said = judge(language, "").decided(text, here)
        assert truth is (not here), text
        place = None if here else refused_at(Language.load(language), text)
        assert known.name(text, here, said, place) is not None, (text, said)


def test_a_single_line_has_no_comment_that_must_end_before_the_program_does() -> None:
    """U+2028 ends a comment as well, but it is a line break."""
    left, right = "const a = {\n  b", "\n    c: 1,\n  },\n}\n"
    state = Language.load("typescript").open(left, right).start(SINGLE_LINE)
    assert state.advance(": 'd', // e") == len(": 'd', /")
    assert state.shortest_completion() == "**/x:{"
    assert state.advance("* f */ g: { // h") == len("* f */ g: { // h")
    assert state.is_complete()
