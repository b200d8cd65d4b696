"""Narrowing a language to one of its versions: markers, the grammar of every Python, and how a version is chosen."""

from __future__ import annotations

import ast
import json
import sys
import time
import tomllib
import warnings
from pathlib import Path
from typing import Any

import pytest

from fim_server import Language, LanguageError
from fim_server.language.definition import compile as grammar
from fim_server.language.definition.versions import Versions
from fim_server.server import ServerSettings
from fim_server.suggest.request import Request
from fim_server.text.document import Document
from support.command_line import run_command
from support.engine import judge
from support.engine.odd_files import odd, posix, put

CASES = Path(__file__).parents[1] / "cases" / "versions.toml"
PYTHONS = ("3.9", "3.10", "3.11", "3.12", "3.13", "3.14", "3.15")
RUNNING = f"{sys.version_info.major}.{sys.version_info.minor}"

MATCH = "match x:\n    case 1: pass\n"  # since 3.10
GROUP = "try: pass\nexcept* A: pass\n"  # since 3.11
GENERIC = "type X = int\n"  # since 3.12


def cases() -> list[dict[str, Any]]:
    return [case for group in tomllib.loads(CASES.read_text(encoding="utf-8")).values() for case in group]


def expected(case: dict[str, Any], version: str) -> bool:
    first, last = PYTHONS.index(case.get("since", PYTHONS[0])), PYTHONS.index(case.get("until", PYTHONS[-1]))
    return first <= PYTHONS.index(version) <= last


def parses(version: str | None, text: str) -> bool:
    return Language.load("python", version).open("", "").check(text).complete


# --- the grammar of every version --------------------------------------------------------------------------------


@pytest.mark.parametrize("version", PYTHONS)
def test_each_version_takes_what_it_knows(version: str) -> None:
    wrong = [case for case in cases() if parses(version, case["source"]) != expected(case, version)]
    assert not wrong


@pytest.mark.skipif(RUNNING not in PYTHONS, reason="an interpreter whose grammar is not known")
def test_the_table_is_what_cpython_says() -> None:
    wrong = []
    for case in cases():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                ast.parse(case["source"])
                valid = True
            except SyntaxError:
                valid = False
        if valid != expected(case, RUNNING):
            wrong.append(case)
    assert not wrong


@pytest.mark.skipif(judge.unavailable() is not None, reason=str(judge.unavailable()))
@pytest.mark.parametrize("version", judge.VERSIONS)
def test_the_table_is_what_newer_cpythons_say(version: str) -> None:
    with judge.Judge(version) as started:
        assert started.version.startswith(f"{version}.")
        verdicts = started.verdicts([case["source"] for case in cases()])
    wrong = [case for case, valid in zip(cases(), verdicts, strict=True) if valid != expected(case, version)]
    assert not wrong


# --- versions as data --------------------------------------------------------------------------------------------

GRAMMAR = """\
start: "a"
     | "old" // until 1.0
     | "mid" // since 1.1 until 1.2
     | "new" // since 2.0
     | "//" "since" "2.0" // since ever and a day
"""
SPEC = """\
name = "small"
suffixes = []
start = "start"
soft_keywords = [
  "old", # until 1.0
]
[versions]
known = ["1.0", "1.1", "1.2", "2.0"]
"""
SMALL = Versions("small", ("1.0", "1.1", "1.2", "2.0"))


@pytest.fixture
def small(tmp_path: Path) -> tuple[Path, Path]:
    paths = tmp_path / "small.lark", tmp_path / "small.toml"
    for path, text in zip(paths, (GRAMMAR, SPEC), strict=True):
        path.write_text(text, encoding="utf-8")
    return paths


@pytest.mark.parametrize(
    ("version", "words"), [("1.0", ["a", "old"]), ("1.1", ["a", "mid"]), ("1.2", ["a", "mid"]), ("2.0", ["a", "new"])]
)
def test_markers_choose_lines_of_both_files(small: tuple[Path, Path], version: str, words: list[str]) -> None:
    language = Language.from_files(*small, version=version)
    found = [word for word in ("a", "old", "mid", "new") if language.open("", "").check(word).complete]
    assert found == words
    definition = grammar.read(*small, version)
    assert definition.spec["soft_keywords"] == (["old"] if version == "1.0" else [])
    assert len(definition.grammar.split("\n")) == len(GRAMMAR.split("\n"))


def test_without_a_version_it_is_the_newest(small: tuple[Path, Path]) -> None:
    plain, newest, narrowed = (grammar.read(*small, version) for version in (None, "2.0", "1.2"))
    assert plain == newest
    assert (plain.version, narrowed.version) == (None, "1.2")
    assert Language.load("python") is Language.load("python", "3.15") is Language.load("python", "newest")
    assert Language.load("python") is not Language.load("python", "3.13")
    assert (Language.load("python").version, Language.load("python", "3.13").version) == (None, "3.13")


def test_each_version_is_cached_by_itself(
    small: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FIM_SERVER_CACHE", str(tmp_path / "cache"))
    for _ in range(2):  # compiled, then from the cache
        for version in ("1.0", "2.0"):
            session = Language.from_files(*small, version=version).open("", "")
            assert session.check("old").complete == (version == "1.0")
    assert len(list((tmp_path / "cache").iterdir())) == 2


def test_versions_that_are_none(small: tuple[Path, Path]) -> None:
    with pytest.raises(LanguageError, match=r"^python has no version '3\.8'; known: 3\.9, .*, 3\.15$"):
        Language.load("python", "3.8")
    with pytest.raises(LanguageError, match=r"^small has no version '3'; known: 1\.0, 1\.1, 1\.2, 2\.0$"):
        Language.from_files(*small, version="3")
    grammar_path, spec_path = small
    grammar_path.write_text(GRAMMAR.replace("until 1.0", "until 0.9"), encoding="utf-8")
    with pytest.raises(LanguageError, match=r"^language small: no version '0\.9', as in [^\n]*until 0\.9"):
        Language.from_files(*small)
    spec_path.write_text(SPEC.replace("known =", "unknown ="), encoding="utf-8")
    with pytest.raises(LanguageError, match=r"^language small: \[versions\] is incomplete: 'known'$"):
        Language.from_files(*small)
    spec_path.write_text(SPEC.partition("[versions]")[0], encoding="utf-8")
    with pytest.raises(LanguageError, match=r"^small has no versions to choose from \('1\.0' was asked for\)$"):
        Language.from_files(*small, version="1.0")


def test_without_versions_markers_are_comments() -> None:
    assert Versions("plain").select(GRAMMAR, None) == GRAMMAR


# --- the version a project asks for ------------------------------------------------------------------------------


def project(folder: Path, text: str) -> Path:
    """A project whose file is in an inner folder; nothing above it says anything."""
    (folder / "pyproject.toml").write_text(text, encoding="utf-8")
    inner = folder / "src" / "package"
    inner.mkdir(parents=True)
    return inner / "module.py"


@pytest.mark.parametrize(
    ("requires", "version"),
    [
        (">=3.11", "3.11"),
        (">=3.11.4", "3.11"),
        (">3.10", "3.10"),  # 3.10.1 is above 3.10
        (">=3.6", "3.9"),
        (">=2.7, !=3.9.*, !=3.10.*", "3.11"),
        ("~=3.12", "3.12"),
        ("==3.13.*", "3.13"),
        ("<=3.12,>=3.12", "3.12"),
        (">=3.14", "3.14"),
        (">=3.15", None),
        (">=3.16", None),
        ("<3.9", None),
        ("three", None),
        ("", "3.9"),
    ],
)
def test_the_oldest_python_that_the_project_supports(tmp_path: Path, requires: str, version: str | None) -> None:
    path = project(tmp_path, f'[project]\nrequires-python = "{requires}"\n')
    assert Language.for_path(path).version == version


@pytest.mark.parametrize(
    ("bounds", "version"),
    [
        ("^3.9", "3.9"),
        ("^3.10.2", "3.10"),
        ("^3.13.0rc1", "3.13"),
        ("^2.7 || ^3.12", "3.12"),
        ("~2.7|~3.14", "3.14"),
        ("^2.7", None),
        ("~3", "3.9"),
        ("~3.11", "3.11"),
        ("~3.11.4", "3.11"),
        ("3.11.*", "3.11"),
        ("3.x", "3.9"),
        ("*", "3.9"),
        ("3.13", "3.13"),
        ("=3.12", "3.12"),
        (">=3.9,<4", "3.9"),
        (">=3.10 <4", "3.10"),
        (">= 3.12, < 4.0", "3.12"),
        ("^3.9, !=3.9.*", "3.10"),
        ("~=3.11", "3.11"),
        ("==3.13.*", "3.13"),
        (">3.14.3,<3.15", "3.14"),
        ("^3.15", None),
        ("^", None),
        ("^3.9.*", None),
        ("three", None),
    ],
)
def test_bounds_are_read_alike_of_both_keys(tmp_path: Path, bounds: str, version: str | None) -> None:
    for name, table in (("a", "project]\nrequires-python"), ("b", "tool.poetry.dependencies]\npython")):
        (tmp_path / name).mkdir()
        path = project(tmp_path / name, f'[{table} = "{bounds}"\n')
        assert Language.for_path(path).version == version


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('[project]\nname = "x"\n[tool.poetry.dependencies]\npython = "^3.11"\n', "3.11"),
        ('[project]\nrequires-python = ">=3.10"\n[tool.poetry.dependencies]\npython = "^3.12"\n', "3.10"),
        ('[tool.poetry.dependencies]\npython = ["~3.11", "^3.10"]\n', "3.10"),
        ('[tool.poetry.dependencies]\npython = ["~3.11", 3]\n', None),
        ("[tool.poetry.dependencies]\npython = []\n", None),
        ('[tool.poetry.dependencies]\npython = { version = "^3.11" }\n', None),
        ('[tool.poetry.dependencies]\nrequests = "^2"\n', None),
    ],
)
def test_the_first_key_of_a_file_counts_and_then_those_of_poetry(
    tmp_path: Path, text: str, version: str | None
) -> None:
    path = project(tmp_path, text)
    (path.parent.parent / "pyproject.toml").write_text(text, encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text('[project]\nrequires-python = ">=3.9"\n', encoding="utf-8")
    assert Language.for_path(path).version == version


@pytest.mark.parametrize("text", ["", "[project]\n", "[project]\nrequires-python = 3\n", "project = 1\n", "[project\n"])
def test_projects_that_do_not_say(tmp_path: Path, text: str) -> None:
    path = project(tmp_path, text)
    assert Language.for_path(path).version is None


@posix
@odd
def test_projects_whose_file_is_none(tmp_path: Path, kind: str) -> None:
    path = project(tmp_path, "")
    put(kind, tmp_path / "pyproject.toml")
    assert Language.for_path(path).version is None


@pytest.mark.parametrize(
    "text",
    [
        f"[project]\nrequires-python = {'9' * 5000}\n",
        f"[project]\nrequires-python = '>={'9' * 5000}'\n",
        f"[project]\nrequires-python = '{'>=3.9,' * 100_000}>=3.9'\n",
        f"[tool.poetry.dependencies]\npython = '^{'9' * 190}'\n",
        f"[tool.poetry.dependencies]\npython = [{'[3],' * 100_000}]\n",
        f"[tool.poetry.dependencies]\npython = '{'^' * 199}'\n",
        f"requires-python = {'[' * 10_000}\n",
        f"[{'a.' * 20_000}a]\n",
    ],
    ids=["number", "version", "many", "digits", "list", "carets", "nested", "tables"],
)
def test_projects_that_say_too_much(tmp_path: Path, text: str) -> None:
    path = project(tmp_path, text)
    started = time.process_time()
    assert Language.for_path(path).version is None
    assert time.process_time() - started < 1


def test_the_nearest_project_counts(tmp_path: Path) -> None:
    path = project(tmp_path, '[project]\nrequires-python = ">=3.9"\n')
    assert Language.for_path(path).version == "3.9"
    (path.parent / "pyproject.toml").write_text('[project]\nrequires-python = ">=3.10"\n', encoding="utf-8")
    assert Language.for_path(path).version == "3.10"
    (path.parent / "pyproject.toml").write_bytes(b"\xff")
    assert Language.for_path(path).version is None


EDITIONS = Versions.from_spec(
    {
        "name": "crab",
        "versions": {
            "known": ["2015", "2018", "2021", "2024"],
            "project": {
                "file": "Crate.toml",
                "key": ["package", "edition"],
                "means": "level",
                "without": "2015",
                "inherited": ["workspace", "package", "edition"],
            },
        },
    }
)

LEVELS = Versions.from_spec(
    {
        "name": "cup",
        "versions": {
            "known": ["8", "11", "17", "21"],
            "project": [
                {
                    "file": "build.xml",
                    "patterns": [r"<release>\s*(?:1\.)?(\d+)", r"<source>(?:1\.)?(\d+)"],
                    "means": "level",
                },
                {"file": "build.txt", "patterns": [r"level = (\d+)"], "means": "level"},
            ],
        },
    }
)


@pytest.mark.parametrize(
    ("inner", "outer", "version"),
    [
        ('[package]\nedition = "2018"\n', "", "2018"),
        ('[package]\nname = "x"\n', "", "2015"),
        ('[package]\nedition = "2019"\n', "", "2018"),
        ('[package]\nedition = "2030"\n', "", "2024"),
        ('[package]\nedition = "newest"\n', "", None),
        ('[workspace]\nmembers = ["edition"]\n', "", None),
        ("[package]\nedition.workspace = true\n", '[workspace.package]\nedition = "2021"\n', "2021"),
        ("[package]\nedition = { workspace = true }\n", "[workspace]\n", None),
        ("[package]\nedition.workspace = true\n", "", None),
        ("[package\n", '[package]\nedition = "2018"\n', None),
    ],
)
def test_an_edition_is_the_projects_own_or_its_workspaces(
    tmp_path: Path, inner: str, outer: str, version: str | None
) -> None:
    path = tmp_path / "member" / "src" / "main.crab"
    path.parent.mkdir(parents=True)
    (tmp_path / "member" / "Crate.toml").write_text(inner, encoding="utf-8")
    if outer:
        (tmp_path / "Crate.toml").write_text(outer, encoding="utf-8")
    assert EDITIONS.of_project(path) == version


@pytest.mark.parametrize(
    ("files", "version"),
    [
        ({"a/build.xml": "<release>\n 11</release>"}, "11"),
        ({"a/build.xml": "<source>1.8</source>"}, "8"),
        ({"a/build.xml": "<release>19</release><source>8</source>"}, "17"),
        ({"a/build.xml": "<release>7</release>"}, "8"),
        ({"a/build.xml": "<module/>", "build.xml": "<release>21</release>"}, "21"),
        ({"a/build.xml": "<module/>", "a/build.txt": "level = 11"}, "11"),
        ({"a/build.xml": "<release>${java}</release>"}, None),
        ({"a/build.xml": f"<release>{'1' * 50}</release>"}, None),
        ({}, None),
    ],
)
def test_a_level_is_found_by_patterns_in_the_project_or_further_up(
    tmp_path: Path, files: dict[str, str], version: str | None
) -> None:
    (tmp_path / "a" / "src").mkdir(parents=True)
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert LEVELS.of_project(tmp_path / "a" / "src" / "Main.cup") == version


@pytest.mark.parametrize(
    "project",
    [{"file": "a"}, {"key": ["a"]}, {"file": "a", "patterns": ["x"]}, {"file": "a", "patterns": ["("]}, "a", ["a"],
     {"file": "a", "key": ["a"], "means": "all"}],
)  # fmt: skip
def test_what_is_wrong_with_a_projects_row_is_said(project: object) -> None:
    with pytest.raises(LanguageError, match="language x: \\[versions\\] is incomplete"):
        Versions.from_spec({"name": "x", "versions": {"known": ["1"], "project": project}})


def test_a_version_asked_for_comes_before_the_projects(tmp_path: Path) -> None:
    path = project(tmp_path, '[project]\nrequires-python = ">=3.9"\n')
    assert Language.for_path(path, versions={"python": "3.12"}).version == "3.12"
    assert Language.for_path(path, versions={"python": "newest"}).version is None
    assert Language.for_path(path, versions={"python": None, "other": "7"}).version == "3.9"
    assert Language.for_path(path.with_suffix(".txt"), "python").version == "3.9"


def test_the_servers_documents_belong_to_projects_too(tmp_path: Path) -> None:
    path = project(tmp_path, '[project]\nrequires-python = ">=3.9"\n')
    split = Document.from_text("").split(0)
    for language_id in ("python", "unknown"):
        for named, version in ((None, "3.9"), ("3.10", "3.10"), ("newest", None)):
            settings = ServerSettings(python_version=named)
            request = Request(path.as_uri(), split, language_id, str(path), False, False, settings)
            assert request.language().version == version


# --- the command line --------------------------------------------------------------------------------------------


def test_check_by_version(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = project(tmp_path, '[project]\nrequires-python = ">=3.10"\n')
    path.write_text(GROUP, encoding="utf-8")
    status, output, _ = run_command(capsys, "check", str(path))
    assert status == 1
    assert output.startswith(f"{path}:2:7: '*' cannot come here (python 3.10); expected ")
    assert run_command(capsys, "check", str(path), "--python-version", "3.11") == (0, "", "")
    assert run_command(capsys, "check", str(path), "--python-version", "newest") == (0, "", "")
    assert run_command(capsys, "check", str(path), "--language-version", "3.11") == (0, "", "")
    status, _, error = run_command(capsys, "check", str(path), "--language-version", "2.7")
    assert (status, error) == (2, f"fim-server: python has no version '2.7'; known: {', '.join(PYTHONS)}\n")
    _, output, _ = run_command(capsys, "check", str(path), "--json")
    assert {"language": "python", "version": "3.10", "valid": False}.items() <= json.loads(output).items()
    _, output, _ = run_command(capsys, "check", str(path), "--json", "--python-version", "newest")
    assert json.loads(output) == {"file": str(path), "language": "python", "valid": True}


def test_explain_by_version(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "alias.py"
    path.write_text(GENERIC, encoding="utf-8")
    status, output, _ = run_command(capsys, "explain", str(path), "2:1", "--python-version", "3.12", "--text", MATCH)
    assert status == 0
    assert output.startswith(f"{path}:2:1: python 3.12, guarantee exact\n")
    status, output, _ = run_command(capsys, "explain", str(path), "2:1", "--python-version", "3.11", "--json")
    answer = json.loads(output)
    assert status == 1
    assert (answer["language"], answer["version"], answer["guarantee"]) == ("python", "3.11", "none")


@pytest.mark.parametrize(
    "arguments", [["check", "a.py"], ["explain", "a.py", "1:1"], ["complete", "a.py", "1:1"], ["serve"]]
)
@pytest.mark.parametrize("version", ["3.8", "3.16", "3", "python3.11", ""])
def test_unknown_versions_are_bad_usage(capsys: pytest.CaptureFixture[str], arguments: list[str], version: str) -> None:
    status, output, errors = run_command(capsys, *arguments, "--python-version", version)
    assert (status, output) == (2, "")
    assert errors.count("\n") == 1
    assert f"{version!r} is not a known version: {', '.join(PYTHONS)} or newest expected" in errors
