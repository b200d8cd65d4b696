"""Rules of ignore files, compared with git's own answers."""

from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path

import pytest

from fim_server.memory.ignoring import is_ignored

FOLDERS = ["a", "b", "a/b", "b/a", "a/b/a"]
FILES = ["c.x", "f", "A.x", "!a", "bx1"]
RULES = ["a", "b", "*.x", "a*", "?", "[ab]", "**", "c.x", "/a", "a/", "!a", "!*.x", "!*.x", "b/c.x", "**/b", "a/**"]
RULES += ["a/**/c.x", "/b/*", "\\!a", "#a", "a ", "[!a]", "!b/", "[^b]x*", "\ufeffa", "a\\*", "!**/f", "a//b"]


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_what_is_ignored_is_what_git_ignores(tmp_path: Path) -> None:
    random.seed(22)
    differ = []
    for number in range(12):
        root = tmp_path / str(number)
        for folder in FOLDERS:
            (root / folder).mkdir(parents=True, exist_ok=True)
        subprocess.run(["git", "init", "-q", str(root)], check=True)
        names = []
        for folder in ["", *FOLDERS]:
            for file in FILES:
                (root / folder / file).touch()
                names.append(f"{folder}/{file}".lstrip("/"))
            if folder == "" or random.random() < 0.5:
                (root / folder / ".gitignore").write_text("\n".join(random.choices(RULES, k=random.randrange(1, 5))))
        asked = ["git", "-C", str(root), "check-ignore", "--stdin", "-z"]
        answer = subprocess.run(asked, input="\0".join(names).encode(), capture_output=True, check=False)
        by_git = set(answer.stdout.decode().split("\0"))
        differ += [(number, name) for name in names if is_ignored(root / name, [root]) != (name in by_git)]
    assert differ == []


def test_ignore_rules_apply_up_to_the_repository_and_the_workspace(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / ".gitignore").write_text("x.py\n")
    file = tmp_path / "a" / "b" / "x.py"
    assert not is_ignored(file, [])  # in no repository, and no folder of the workspace's
    assert not is_ignored(file, [tmp_path / "a"])
    assert is_ignored(file, [tmp_path])
    (tmp_path / ".git").mkdir()
    assert is_ignored(file, [tmp_path / "a"])
    assert is_ignored(file, [])


@pytest.mark.parametrize("pattern", ["**/" * 200 + "b", "a*" * 16 + "b", "**/" + "a*" * 15 + "b/**/" + "?" * 30])
def test_patterns_with_many_wildcards_are_fast(pattern: str, tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text(pattern)
    assert not is_ignored(tmp_path.joinpath(*["a" * 60] * 30), [tmp_path])
