"""A grammar of JavaScript and TypeScript in which flags, breaks, code modes, split lexemes and variants meet."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from fim_server import Language
from fim_server.language.definition.compile import builtin_files

FOLDER = builtin_files("javascript")[0].parent
TEXTS = tomllib.loads(Path(__file__).with_name("ecmascript_texts.toml").read_text(encoding="utf-8"))
VARIANTS = ("javascript", "jsx", "typescript", "tsx")


def texts(variant: str, verdict: str) -> list[str]:
    """Return the texts of a verdict; a text of JavaScript is one of each variant that does not list it."""
    own: list[str] = TEXTS[variant][verdict]
    listed = {text for kind in ("accepted", "refused") for text in TEXTS[variant][kind]}
    return own if variant == "javascript" else [*own, *(t for t in TEXTS["javascript"][verdict] if t not in listed)]


@pytest.mark.parametrize("variant", VARIANTS)
def test_texts_are_taken_at_every_cut(variant: str) -> None:
    wrong = []
    for text in texts(variant, "accepted"):
        for cut in range(0, len(text) + 1, 1 + len(text) // 12):
            session = Language.load(variant).open(text[:cut], text[cut:])
            if not session.check("").complete:
                wrong.append((text[:cut], text[cut:]))
    assert wrong == []


@pytest.mark.parametrize("variant", VARIANTS)
def test_texts_are_refused_at_every_cut(variant: str) -> None:
    wrong = []
    for text in texts(variant, "refused"):
        for cut in range(0, len(text) + 1, 1 + len(text) // 12):
            session = Language.load(variant).open(text[:cut], text[cut:])
            if session.check("").complete:
                wrong.append((text[:cut], text[cut:]))
    assert wrong == []


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
