"""Files that git ignores, by the rules of `gitignore(5)`: as open documents they stay out of other documents.

The memory's own walk reads the files of folders and leaves ignored ones out; open documents come from the editor. Rules
come from others, so reading and matching them is bounded. Where a file of rules cannot be read, everything below its
folder counts as ignored.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from fim_server.language.limited_files import read_found

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

MOST_BYTES, MOST_RULES, MOST_RULE, MOST_WILDCARDS = 1 << 20, 10_000, 1_000, 32
"""Most bytes of a file of rules, its rules, and characters and wildcards of a rule; larger rules are left out."""

MOST_FOLDERS = 64
"""Most folders to look into, from a file upward."""

ANY_FOLDERS = "**"


class Rule(NamedTuple):
    """Line of a file of rules.

    Attributes:
        parts: The pattern's names, one for each folder.
        keeps: Whether what it matches is not ignored.
        is_folder: Whether it is for folders alone.
    """

    parts: tuple[str, ...]
    keeps: bool
    is_folder: bool

    def matches(self, names: Sequence[str], is_folder: bool) -> bool:
        """Return whether the rule matches a path, given by its names below the rule's folder."""
        return (is_folder or not self.is_folder) and matches(self.parts, names)


def is_ignored(path: Path, folders: Sequence[Path]) -> bool:
    """Return whether git ignores a file.

    Args:
        path: The file's, without a link in it.
        folders: The workspace's folders that it is in. Rules are looked for up to the uppermost of them, and up to the
            folder of the repository.
    """
    above = list(path.parents)[:MOST_FOLDERS]
    tops = [number for number, folder in enumerate(above) if folder in folders or (folder / ".git").exists()]
    if not tops:
        return False
    inner = above[: max(tops) + 1]
    try:
        rules = [rules_of(folder) for folder in inner]
    except OSError:
        return True
    for number in range(len(inner), -1, -1):
        # Each folder on the way, the uppermost first, and then the file.
        entry, is_folder = (path, False) if number == 0 else (inner[number - 1], True)
        for folder, of_folder in list(zip(inner, rules, strict=True))[number:]:
            names = entry.relative_to(folder).parts
            last = next((rule for rule in reversed(of_folder) if rule.matches(names, is_folder)), None)
            if last is not None and not last.keeps:
                return True
            if last is not None:
                break
    return False


def rules_of(folder: Path) -> list[Rule]:
    """Return the rules of a folder, the strongest last. Raises OSError where a file of rules cannot be read."""
    rules: list[Rule] = []
    for name in (".git/info/exclude", ".gitignore", ".ignore"):
        file = folder / name
        if file.exists() or file.is_symlink():
            rules += parsed(read_found(file, MOST_BYTES).decode("utf-8-sig", "replace"))
    return rules


@lru_cache(maxsize=64)
def parsed(text: str) -> tuple[Rule, ...]:
    """Return the rules of a text."""
    return tuple(rules_in(text.split("\n")[:MOST_RULES]))


def rules_in(lines: Sequence[str]) -> Iterator[Rule]:
    """Yield the rules of some lines."""
    for line in lines:
        pattern = line.rstrip("\r")
        kept = len(pattern) - len(pattern.rstrip(" "))
        if kept and not pattern.rstrip(" ").endswith("\\"):
            pattern = pattern.rstrip(" ")
        wildcards = sum(pattern.count(character) for character in "*?[")
        if not pattern or pattern[0] == "#" or len(pattern) > MOST_RULE or wildcards > MOST_WILDCARDS:
            continue
        keeps = pattern[0] == "!"
        pattern = pattern[keeps:]
        is_folder = pattern.endswith("/")
        names = pattern.rstrip("/").split("/")
        if len(names) == 1:
            names.insert(0, ANY_FOLDERS)
        elif names[0] == "":
            del names[0]
        if names[-1]:
            yield Rule(tuple(map(as_glob, names)), keeps, is_folder)


def as_glob(name: str) -> str:
    """Return a name of a pattern for :mod:`fnmatch`, with a wildcard behind a backslash in brackets."""
    glob, at = "", 0
    while at < len(name):
        if name[at] == "\\" and at + 1 < len(name):
            at += 1
            glob += f"[{name[at]}]" if name[at] in "*?[" else name[at]
        else:
            glob += "!" if name[at] == "^" and name[at - 1 : at] == "[" else name[at]
        at += 1
    return glob


def matches(parts: Sequence[str], names: Sequence[str]) -> bool:
    """Return whether a pattern's names match a path's, all of them; `**` is any number of folders."""
    reached = {0}
    for number, part in enumerate(parts):
        if part == ANY_FOLDERS:
            # At the end it matches the inside of a folder, so at least one name remains.
            least = 1 if number == len(parts) - 1 else 0
            reached = set(range(min(reached) + least, len(names) + 1)) if reached else set()
        else:
            reached = {at + 1 for at in reached if at < len(names) and fnmatchcase(names[at], part)}
    return len(names) in reached
