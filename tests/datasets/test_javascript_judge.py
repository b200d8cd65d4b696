"""Judge of JavaScript, JSX, TypeScript and TSX: three parsers, kinds of file, and early errors."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

import pytest

from fim_server.datasets.judging import programs
from fim_server.datasets.judging.judge import EARLY, Judge

LANGUAGES = ("javascript", "jsx", "typescript", "tsx")

pytestmark = pytest.mark.skipif(programs.unavailable("javascript") is not None, reason="no Node, or no npm")

DEEP = "(" * 20_000
ALL = frozenset(LANGUAGES)
TYPED = frozenset(LANGUAGES[2:])
TEXTS: list[tuple[str, frozenset[str]]] = [
    ("", ALL),
    ("let a = b?.c ?? /d/g", ALL),
    ("#!x\nx", ALL),
    ("@d class A { static #x = 1; static {} }", ALL),
    ("using a = b", ALL),
    ("x = <a b={c} {...d}>e {f}<></></a>", frozenset({"jsx", "tsx"})),
    ("let a: T<U>[] = b as V satisfies W", TYPED),
    ("enum A { b = 1 }", TYPED),
    ("declare module 'a' { let b: c }", TYPED),
    ("x = <T>y", frozenset({"typescript"})),
    ("x = <T,>(a: T) => <b c={a as d} />", frozenset({"tsx"})),
]
"""Texts, and the languages that they are of."""

EARLY_ERRORS = {
    "VarRedeclaration": "let a; let a",
    "LabelRedeclaration": "a: a: b",
    "IllegalBreakContinue": "break",
    "InvalidPrivateFieldResolution": "a.#b",
    "ModuleExportUndefined": "export { a }",
    "DuplicateConstructor": "class A { constructor() {} constructor() {} }",
    "UnexpectedSuper": "super.a",
    "StrictDelete": "export {}; delete a",
    "StrictWith": "'use strict'; with (a) b",
    "UnexpectedReservedWord": "'use strict'; var package",
}
"""Texts by Babel's name of their error."""

ERRORS = [
    "let a b",
    "let let = 1",
    "a +",
    "`${a",
    "if (a) class B {}",
    "function () {}",
    "({ a = 1 })",
    "export {}; with (a) b",
    "var enum",
    "a?.b = 1",
]
"""Texts whose syntax is wrong, most of them by errors that Babel recovers from."""


@cache
def command(language: str, parsers: str, variant: str = "") -> tuple[str, ...]:
    *program, _, own, _ = programs.command(language)
    assert own == language
    return (*program, parsers, language, variant)


@pytest.mark.parametrize(
    ("language", "parsers"),
    [
        *((language, parsers) for language in LANGUAGES for parsers in ("oxc", "babel")),
        *((one, "typescript") for one in sorted(TYPED)),
    ],
)
def test_each_language_is_read_by_each_parser(language: str, parsers: str) -> None:
    with Judge(command(language, parsers)) as judge:
        assert [text for text, _ in TEXTS if judge.verdict(text)] == [text for text, own in TEXTS if language in own]


@pytest.mark.parametrize("language", ["javascript", "typescript"])
def test_early_errors_are_named(language: str) -> None:
    with Judge(command(language, "babel")) as judge:
        for name, text in EARLY_ERRORS.items():
            if language == "typescript" and name == "DuplicateConstructor":
                continue  # they may be overloads
            assert judge.message(text).startswith(f"{EARLY}{name}: "), text
        for text in ERRORS:
            message = judge.message(text)
            assert re.match(r"\w+: ", message), (text, message)
            # An early error hides no other one.
            assert not judge.message(f"let a; let a\n{text}").startswith(EARLY), text


def test_names_of_early_errors_are_those_of_the_locked_babel() -> None:
    judge = next(Path(part) for part in programs.command("javascript") if part.endswith("judge.mjs"))
    babel = (judge.with_name("node_modules") / "@babel" / "parser" / "lib" / "index.js").read_text("utf-8")
    listed = re.findall(r'^  "([A-Z]\w+)",$', judge.with_name("early.mjs").read_text("utf-8"), re.MULTILINE)
    assert len(listed) > 50
    misspelt = dict(re.findall(r'^    (\w+Cannot\w+|Const\w+): "(\w+)",?$', babel, re.MULTILINE))
    names = {misspelt.get(name, name) for name in re.findall(r"^  (\w+): ", babel, re.MULTILINE)}
    assert [name for name in listed if name not in names] == []


def test_early_errors_of_oxc_are_known_by_their_messages() -> None:
    with Judge(command("typescript", "oxc")) as judge:
        for text in ("let a!: T = 1", "class A { public public a }", "function f(a?, b) {}"):
            assert judge.message(text).startswith(EARLY), text
        assert not any(judge.message(text).startswith(EARLY) for text in ERRORS)
        assert judge.verdict("let a; let a") is True


def test_a_claim_that_early_errors_are_refused_is_wrong() -> None:
    with Judge(programs.command("typescript"), programs.appeal("typescript")) as judge:
        text = "class A { public public a }"
        assert judge.decided(text, True)[0] is False
        assert judge.decided(text, False)[0] is True
        # Comments that TypeScript reads are none of the grammar's.
        assert judge.decided('/// <reference path="a.ts />\nlet a', True)[0] is True
        # Babel does not check the order of parameters, and has the last word.
        assert judge.decided("function f(a?, b) {}", True)[0] is True
        assert judge.decided("function f(a?, b) {}", False)[0] is True
        assert judge.decided("class A { public public", False)[0] is False


@pytest.mark.parametrize(
    ("language", "variant", "taken", "refused"),
    [
        ("javascript", "module", ["import a from 'b'", "await a", "import.meta"], ["return", "<!-- a"]),
        ("javascript", "commonjs", ["return", "with (a) b", "<!-- a", "await"], ["import a from 'b'", "await a"]),
        ("javascript", "script", ["with (a) b", "var yield"], ["return", "import a from 'b'"]),
        ("javascript", "", ["return", "import a from 'b'", "var yield"], ["import a from 'b'; return"]),
        ("javascript", "jsx-script", ["x = <a/>"], ["export {}"]),
        ("typescript", "5.9", ["let a: T"], ["let a b"]),
        ("typescript", "tsx", ["x = <a/>"], ["x = <T>y"]),
        ("typescript", "d.ts", ["declare let a: T", "export const b: U"], ["declare let a b"]),
        ("d.ts", "", ["declare let a: T", "declare function f(): void"], ["declare let a b", "x = <a/>"]),
    ],
)
def test_variants_are_kinds_of_file(language: str, variant: str, taken: list[str], refused: list[str]) -> None:
    for parsers in ("oxc", "babel"):
        with Judge(command(language, parsers, variant)) as judge:
            assert [text for text in taken if not judge.verdict(text)] == []
            assert [text for text in refused if judge.verdict(text)] == []


def test_all_parsers_of_a_judge_have_to_take_a_text() -> None:
    # Only TypeScript's parser takes a name on the next line for the beginning of a statement.
    odd = "(a.\nb as any)"
    with Judge(command("typescript", "oxc")) as one, Judge(programs.command("typescript")) as both:
        assert (one.verdict(odd), both.verdict(odd)) == (True, False)
        assert both.message(odd) == "TS1003: Identifier expected. (1:3)"
    with Judge(programs.appeal("typescript")) as higher:
        assert higher.message(odd) == "TS1003: Identifier expected. (1:3)"


@pytest.mark.parametrize("parsers", ["oxc", "babel", "typescript"])
def test_texts_that_are_too_deep_or_odd_get_an_answer(parsers: str) -> None:
    with Judge(command("javascript", parsers)) as judge:
        assert judge.verdict(DEEP) is not True
        assert judge.verdict("let 變 = '\u2028😀'") is True
        assert judge.verdict(f"x = `{'é' * 200_000}`") is True
        assert judge.verdicts(["a b", "a"] * 300) == [False, True] * 300


def test_unknown_variants_and_parsers_judge_nothing() -> None:
    for wrong in (command("javascript", "oxc", "strict"), command("javascript", "acorn")):
        with Judge(wrong) as judge:
            assert judge.verdict("") is None
            assert len(judge.message("")) > 5


def test_the_titles_have_the_locked_versions() -> None:
    locked = json.loads((programs.FOLDER / "javascript" / "package.json").read_text())["dependencies"]
    for language in LANGUAGES:
        told = programs.title(language)
        assert f"oxc {locked['oxc-parser']} (Babel {locked['@babel/parser']} " in told
        assert (f"TypeScript {locked['typescript']}" in told) == (language not in LANGUAGES[:2])
