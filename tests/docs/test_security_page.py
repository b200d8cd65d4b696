"""Tests on docs/security.md exist, and each untrusted input has one."""

from __future__ import annotations

import re

from support.markdown_pages import ROOT, text_of

PAGE = "docs/security.md"
NAME = re.compile(r"`((?:tests|rust_core)/[\w/.]+\.(?:py|rs))::(\w+)`")


def rows(after: str) -> list[list[str]]:
    """The cells of the table below a heading."""
    text = text_of(PAGE).split(f"\n## {after}\n", 1)[1]
    lines = [line for line in text.split("\n## ", 1)[0].splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_every_test_that_is_named_exists() -> None:
    named = NAME.findall(text_of(PAGE))
    assert len(named) > 40
    missing = []
    for file, name in named:
        definition = rf"^ *(?:async )?def {name}\(" if file.endswith(".py") else rf"^ *fn {name}\("
        if not re.search(definition, (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE):
            missing.append(f"{file}::{name}")
    assert missing == []


def test_every_row_has_its_tests() -> None:
    shown = {subject: NAME.findall(tests) for subject, tests in rows("The tests")}
    assert all(shown.values())
    distrusted = {subject for subject, trusted, _ in rows("What is trusted, and what is not") if trusted != "yes"}
    assert len(distrusted) > 8
    assert distrusted <= set(shown)
