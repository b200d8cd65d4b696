"""Prose that readers meet: docstrings, doc comments, pages and subjects of commits (CONTRIBUTING.md has the rules)."""

from __future__ import annotations

import subprocess

import pytest

from support.markdown_pages import pages, text_of
from support.prose import PERSONS, ROOT, findings_in, sources, without_code

MOST_OF_SUBJECT = 72
"""Most characters of a commit's subject."""
COMMITS = 100
"""Newest commits that are looked at."""


def test_docstrings_and_doc_comments_keep_the_rules_of_prose() -> None:
    paths = sources([])
    assert len(paths) > 500
    assert [line for path in paths for line in findings_in(path)] == []


@pytest.mark.parametrize("page", pages())
def test_pages_name_their_subjects(page: str) -> None:
    assert PERSONS.findall(without_code(text_of(page))) == []


def test_subjects_of_commits_are_short() -> None:
    command = ["git", "log", "--no-merges", f"--max-count={COMMITS}", "--format=%s"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip("no repository of git here")
    assert [subject for subject in done.stdout.splitlines() if len(subject) > MOST_OF_SUBJECT] == []
