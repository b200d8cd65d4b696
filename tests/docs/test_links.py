"""The documents: links lead somewhere, what they name exists, and the commands that they show are real."""

from __future__ import annotations

import fnmatch
import importlib
import os
import re
import shlex
import tomllib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from support.markdown_pages import (
    ROOT,
    Block,
    anchors,
    blocks,
    command_lines,
    links,
    pages,
    prose,
    spans,
    text_of,
    tracked,
)

WRITTEN = {"compare.md", "corpus/", "out/", "summary.md"}
"""Files that commands write."""

RUN = ["README.md", "docs/languages.md", "docs/python-api.md"]
"""Pages whose Python is run."""


# --- links --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", pages())
def test_links_lead_somewhere(page: str) -> None:
    broken = []
    for link in links(page):
        split = urlsplit(link)
        if split.scheme or split.netloc:
            continue
        target = page
        if split.path:
            target = os.path.normpath(Path(page).parent / unquote(split.path)).replace(os.sep, "/")
        if target not in tracked():
            broken.append(f"{link}: no such file")
        elif split.fragment and target.endswith(".md") and unquote(split.fragment) not in anchors(target):
            broken.append(f"{link}: no such heading")
    assert broken == []


def test_the_links_of_a_page_are_found(tmp_path: Path) -> None:
    assert "docs/architecture.md" in links("README.md")
    assert {"13-public-names", "14-budgets"} <= anchors("docs/design.md")


# --- names --------------------------------------------------------------------------------------------------------

FILE_NAME = re.compile(r"[\w*./-]*[\w*-]\.(?:lark|lock|md|mjs|py|pyi|rs|toml|ts|yml)|(?:[\w-]+/)+")
USERS = {".d.ts", "d.ts", "init.lua", "pyproject.toml", "steps.lark", "steps.toml"}
"""Files of users, and of a worked example."""


def is_there(name: str) -> bool:
    """Return whether some file or folder of the repository ends in a path, which may have wildcards."""
    wanted = name.removeprefix("./").rstrip("/")
    return any(fnmatch.fnmatchcase(f"/{path}", f"*/{wanted}") for path in tracked())


@pytest.mark.parametrize("page", pages())
def test_files_that_are_named_exist(page: str) -> None:
    named = {span for span in spans(page) if FILE_NAME.fullmatch(span) and "NAME" not in span}
    named -= USERS | WRITTEN
    named = {name for name in named if not name.startswith((".work/", ".venv/"))}
    assert sorted(name for name in named if not is_there(name)) == []


OFFERED = {"docs/situations.md", "vscode-extension/e2e/situations/remarks.md"}
"""Pages with suggestions of a model, whose names are in no code here."""

PYTHONS_OWN = {"sys.set_int_max_str_digits"}


@cache
def words_of_the_code() -> frozenset[str]:
    suffixes = (".py", ".pyi", ".rs", ".toml")
    found: set[str] = set()
    for path in tracked():
        if path.startswith(("benchmarks/", "fim_server/", "rust_core/", "tests/", "training/")) and path.endswith(
            suffixes
        ):
            found.update(re.findall(r"\w+", text_of(path)))
    return frozenset(found)


def is_ours(name: str) -> bool:
    """Return whether a dotted name that begins with `fim_server` leads to a module, and to a word of it."""
    parts = name.split(".")
    length = max(n for n in range(1, len(parts) + 1) if n == 1 or is_module(parts[:n]))
    folder = "/".join(parts[:length])
    text = text_of(f"{folder}.py" if f"{folder}.py" in tracked() else f"{folder}/__init__.py")
    return all(re.search(rf"\b{part}\b", text) for part in parts[length:]) or parts[1] == "_core"


def is_module(parts: list[str]) -> bool:
    path = "/".join(parts)
    return f"{path}.py" in tracked() or f"{path}/__init__.py" in tracked()


@pytest.mark.parametrize("page", sorted(set(pages()) - OFFERED))
def test_identifiers_that_are_named_exist(page: str) -> None:
    """`Type::member`, `Type.member` and `module.member`: every part of it is a word of the code."""
    unknown = set()
    for span in spans(page):
        name = span.removesuffix("()")
        if re.fullmatch(r"[A-Za-z_]\w*(?:(?:::|\.)[A-Za-z_]\w*)+", name) and not FILE_NAME.fullmatch(name):
            words = re.split(r"::|\.", name)
            ours = words[0] == "fim_server"
            if not (is_ours(name) if ours else words_of_the_code().issuperset(words)):
                unknown.add(name)
    assert unknown - PYTHONS_OWN == set()


def glossary() -> Iterator[tuple[str, str]]:
    """Each word with each name that its last column has."""
    for row in re.findall(r"^\| (?!word \||---)(.+) \|$", prose("docs/glossary.md"), re.M):
        word, *_, places = row.split(" | ")
        for name in re.findall(r"`([^`]+)`", places):
            yield word, name


def test_the_glossary_names_what_there_is() -> None:
    entries = list(glossary())
    assert len(entries) > 40
    missing = []
    for word, name in entries:
        known = is_there(name) if FILE_NAME.fullmatch(name) else set(re.findall(r"\w+", name)) <= words_of_the_code()
        if not known:
            missing.append((word, name))
    assert missing == []


def test_sections_of_the_design_that_the_code_cites_exist() -> None:
    sections = set(re.findall(r"^## (\d+)\. ", text_of("docs/design.md"), re.M))
    cited = set()
    for path in tracked():
        if path.startswith(("fim_server/", "rust_core/")) and path.endswith((".py", ".rs", ".toml")):
            # A comment's line may break within a citation.
            text = re.sub(r"\n\s*(?://[/!]?|#)?\s*", " ", text_of(path))
            cited |= set(re.findall(r"[Dd]esign, section (\d+)|[Ss]ection (\d+) of the design", text))
    numbers = {number for pair in cited for number in pair if number}
    assert len(numbers) > 3
    assert numbers <= sections


# --- commands -----------------------------------------------------------------------------------------------------


def shown(program: str) -> list[tuple[str, list[str]]]:
    """Every use of a program in any page, as its page and what follows the program's name."""
    found = []
    for page in pages():
        for line in command_lines(page):
            at = re.match(rf"(?:[A-Z_]+=\S* )*(?:\.venv/bin/(?=\w))?{program}(?= |$)(.*)", line)
            if at is None or "…" in at[1]:
                continue
            command = re.split(r" (?:&&|\|\||[|<>])(?: |$)|  #|[;]", at[1])[0]
            found.append((page, split_words(command)))
    return found


def split_words(command: str) -> list[str]:
    try:
        return shlex.split(command.replace("[", " ").replace("]", " "), comments=True)
    except ValueError:  # an apostrophe of prose
        return command.split()


@cache
def entry_point(name: str) -> Callable[[list[str]], int]:
    """The function behind a script of `pyproject.toml`."""
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]
    module, function = scripts[name].split(":")
    found: Callable[[list[str]], int] = getattr(importlib.import_module(module), function)
    return found


def subcommands_and_options(words: list[str]) -> tuple[list[str], list[str]]:
    """The words that name a subcommand (those before the first that cannot), and the options, without their values."""
    names: list[str] = []
    for word in words:
        if not re.fullmatch(r"[a-z][a-z-]*", word):
            break
        names.append(word)
    options = [word.split("=")[0] for word in words if re.fullmatch(r"--?[a-z][\w-]*(=.*)?", word)]
    return names, options


HELP: dict[tuple[str, ...], str | None] = {}


def help_of(main: Callable[[list[str]], int], names: list[str], capsys: pytest.CaptureFixture[str]) -> str | None:
    """Return the output of `--help`; None if there is no such subcommand."""
    key = (main.__module__, *names)
    if key not in HELP:
        with pytest.raises(SystemExit) as ended:
            main([*names, "--help"])
        HELP[key] = capsys.readouterr().out if ended.value.code == 0 else None
    return HELP[key]


def unknown_parts(main: Callable[[list[str]], int], words: list[str], capsys: pytest.CaptureFixture[str]) -> str | None:
    """Return the first part of a command that does not exist."""
    names, options = subcommands_and_options(words)
    while names and help_of(main, names, capsys) is None:
        if len(names) == 1:
            return names[0]
        # A positional argument in lower case looks like a subcommand; a subcommand's help lists those that it has.
        above = help_of(main, names[:-1], capsys)
        if above is not None and "{" in above.split("\n\n")[0] and f"{names[-1]} " in above:
            return names[-1]
        names.pop()
    described = help_of(main, names, capsys) or ""
    return next((option for option in options if not re.search(rf"{re.escape(option)}\b", described)), None)


def test_commands_of_the_command_line_are_real(capsys: pytest.CaptureFixture[str]) -> None:
    main = entry_point("fim-server")
    commands = shown("fim-server")
    assert len(commands) > 50
    wrong = [(page, words) for page, words in commands if unknown_parts(main, words, capsys)]
    assert wrong == []
    assert unknown_parts(main, ["explode", "FILE"], capsys) == "explode"
    assert unknown_parts(main, ["check", "FILE", "--gently"], capsys) == "--gently"


def test_commands_of_the_training_are_real(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    main = importlib.import_module("training.__main__").main
    commands = shown(r"\./dev train")
    assert len(commands) > 10
    wrong = []
    for page, words in commands:
        names, options = subcommands_and_options(words)
        described = help_of(main, names[:1], capsys)
        if described is None or any(option not in described for option in options):
            wrong.append((page, words))
    assert wrong == []


def commands_of_dev() -> set[str]:
    script = text_of("dev")
    cases = script[script.index("case $command in") :]
    return {name for names in re.findall(r"^  ([\w| -]+)\)", cases, re.M) for name in re.split(r" *\| *", names)}


def test_commands_of_dev_are_real() -> None:
    known = commands_of_dev()
    assert {"test", "docs", "audit", "help"} <= known
    commands = shown(r"\./dev")
    assert len(commands) > 20
    assert [(page, words) for page, words in commands if words and words[0] not in known] == []
    usage = text_of("dev").split("<<'HELP'")[1].split("\nHELP")[0]
    assert known - set(re.findall(r"^\./dev (\S+)", usage, re.M)) <= {"help", "-h", "--help"}


def test_modules_that_are_run_exist() -> None:
    for _, words in shown("python -m"):
        module = words[0].split(".")
        assert module[0] != "fim_server" or is_there("/".join(module)) or is_there("/".join(module) + ".py"), words


CHEAP = ("check", "explain", "languages")


def cheap() -> list[list[str]]:
    """Commands that load no model, on files of the repository."""
    found = []
    for _, words in shown("fim-server"):
        if words and words[0] in CHEAP and words not in found and all(is_real(word) for word in words):
            found.append(words)
    return [words for words in found if words[0] == "languages" or len(words) > 1]


def is_real(word: str) -> bool:
    return not re.search(r"^[A-Z:.]+$", word) and ("/" not in word or word in tracked())


@pytest.mark.parametrize("words", cheap(), ids=" ".join)
def test_commands_that_need_no_model_run(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert entry_point("fim-server")(words) == 0


def test_some_commands_are_run() -> None:
    assert len(cheap()) >= 2


# --- Python -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", pages())
def test_python_of_the_pages_is_python(page: str) -> None:
    for block in blocks(page):
        if block.language == "python":
            compile(block.text, f"{page}", "exec", dont_inherit=True)


def python_of(page: str) -> list[Block]:
    return [block for block in blocks(page) if block.language == "python"]


@pytest.mark.parametrize("page", RUN)
def test_python_of_the_guides_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each block by itself, beside the files that the page gives a title."""
    files = [block for block in blocks(page) if block.title]
    for block in files:
        (tmp_path / block.title).write_text(block.text, encoding="utf-8")
    monkeypatch.chdir(tmp_path if files else ROOT)
    assert python_of(page)
    for block in python_of(page):
        scope: dict[str, Any] = {"__name__": page}
        exec(compile(block.text, page, "exec", dont_inherit=True), scope)
