"""Variants of a language: markers, fields of their own, and languages of the package that share their files."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fim_server import Language, LanguageError
from fim_server.cli import main
from fim_server.datasets.judging import programs
from fim_server.language import language as loading
from fim_server.language.definition import compile as grammar
from fim_server.language.definition import facts, paths
from fim_server.language.definition.variants import Variants
from fim_server.server import ServerSettings
from support.languages.made_up import FOLDER, files

REFUSING_JUDGE = """
import struct, sys
while len(head := sys.stdin.buffer.read(4)) == 4:
    sys.stdin.buffer.read(struct.unpack(">I", head)[0])
    print("no", sys.argv[1], flush=True)
"""

TEXTS = {
    "store a=1;": "reed 1, reed 2, reedx 1, reedx 2",
    "print a b;": "reedx 1, reedx 2",
    "print a;": "reed 1, reed 2, reedx 1, reedx 2",
    "print a<b;": "reed 1, reed 2",
    "print <print b;>;": "reedx 1, reedx 2",
    "print <a: print b;>;": "reedx 1",
    "repeat a{print b;}": "reed 1, reed 2, reedx 1, reedx 2",
    "repeat a while b{print b;}": "reed 2, reedx 2",
}
"""Texts, and the variants and versions that have them."""


@pytest.mark.parametrize("variant", ["reed", "reedx"])
@pytest.mark.parametrize("version", ["1", "2"])
def test_markers_choose_the_lines_of_a_variant_and_a_version(variant: str, version: str) -> None:
    language = Language.from_files(*files("reed"), version=version, variant=variant)
    assert language.title == (f"{variant} 1" if version == "1" else variant)
    session = language.open("", "")
    for text, known in TEXTS.items():
        assert session.check(text).complete == (f"{variant} {version}" in known.split(", ")), text


def test_a_variant_has_fields_of_its_own() -> None:
    plain, extended = (grammar.read(*files("reed"), variant=name) for name in ("reed", "reedx"))
    assert (plain.suffixes, extended.suffixes) == ((".reed",), (".reedx", ".rx"))
    assert (plain.editor_ids, extended.editor_ids) == ((), ("reed-extended",))
    assert (plain.spec["placeholder"], extended.spec["placeholder"]) == ("r", "x")
    assert set(extended.spec["openings"]) - set(plain.spec["openings"]) == {"<", "repeat r while "}
    assert "operand <" not in plain.spec["constructs"]
    paths = {grammar._cache_path(each) for each in (plain, extended)}
    assert len(paths) == 2


def test_markers_keep_the_numbers_of_lines_and_the_versions_after_them() -> None:
    variants = Variants("all", ("a", "b.c", "d"))
    text = "\n".join([
        "x // only a", "x // not a", "x # only b.c, d", "x // not a, d since 2", "x // only a until 1", "x // since 2",
        "x // nothing a", "x // only a b", 'x = "# only a"',
    ])  # fmt: skip
    assert variants.select(text, "a").split("\n") == [
        "x ", "", "", "", "x // until 1", "x // since 2", "x // nothing a", "x // only a b", 'x = "# only a"',
    ]  # fmt: skip
    assert variants.select(text, "b.c").split("\n")[:5] == ["", "x ", "x ", "x // since 2", ""]
    assert Variants("one").select(text, None) == text  # a language without variants has no markers of them


OTHER = 'name = "b"\nsuffixes = []\nstart = "s"\n'


@pytest.mark.parametrize(
    ("spec", "variant", "message"),
    [
        (OTHER, "x", r"language b has no variants \('x' was asked for\)"),
        (OTHER + "[variants.x]\n[variants.y]\n", None, "language b has variants, of which one has to be named: x, y"),
        (OTHER + "[variants.x]\n[variants.y]\n", "z", "language b has no variant 'z'; known: x, y"),
        (
            OTHER + "limits = {} # only z\n[variants.x]\n",
            "x",
            "language b: no variant 'z', as in 'limits = {} # only z'",
        ),
        (OTHER + '[variants.x]\nname = "y"\n', "x", r"language b: variants\.x\.name: unknown key"),
        (OTHER + "[variants]\nx = {}\n[variants.y]\n", "y", "each has a table of its own"),
        (OTHER + "[variants.x]\nplace = 1\n", "x", "language x: place: unknown field `place`"),
        (OTHER + 'editor_ids = "x"\n', None, "editor_ids: a list of texts expected"),
    ],
)
def test_wrong_variants_are_named_in_a_line(tmp_path: Path, spec: str, variant: str | None, message: str) -> None:
    (tmp_path / "b.lark").write_text('s: "s"\n')
    (tmp_path / "b.toml").write_text(spec)
    with pytest.raises(LanguageError, match=message) as error:
        Language.from_files(tmp_path / "b.lark", tmp_path / "b.toml", variant=variant)
    assert "\n" not in str(error.value)


@pytest.fixture
def packaged(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """A made-up language of two variants in the place of the package's."""
    shutil.copytree(FOLDER / "reed", tmp_path / "languages" / "reed")
    remembered = (
        grammar.builtin_versions, paths._suffixes, paths._adopting, facts.editor_names, facts._facts,
        loading._load_narrowed,
    )  # fmt: skip
    for each in remembered:
        each.cache_clear()
    monkeypatch.setattr(grammar, "_LANGUAGES", tmp_path / "languages")
    yield
    for each in remembered:
        each.cache_clear()


@pytest.mark.usefixtures("packaged")
def test_variants_are_languages_of_the_package(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert Language.names() == ["reed", "reedx"]
    assert Language.load("reedx").open("", "").check("print a b;").complete
    assert Language.load("reed", "1").title == "reed 1"
    assert Language.load("reedx", "2") is Language.load("reedx")
    assert Language.versions("reed") == Language.versions("reedx") == ("1", "2")
    assert Language.suffixes_of("reedx") == (".reedx", ".rx")
    assert Language.name_for_path("a.rx") == "reedx"
    (tmp_path / "reed.toml").write_text('[reed]\nversion = "1"\n')
    assert Language.for_path(tmp_path / "a.rx").title == "reedx 1"
    assert Language.for_path(tmp_path / "a.rx", "reed").title == "reed 1"
    with pytest.raises(LanguageError, match="unknown language 'reeds'; known: reed, reedx"):
        Language.load("reeds")
    assert main(["languages", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["reedx"]["suffixes"] == [".reedx", ".rx"]
    assert rows["reed"]["versions"] == ["1", "2"]


@pytest.mark.usefixtures("packaged")
def test_editors_have_names_of_their_own_for_a_variant() -> None:
    names = ["reed-extended", "reedx", "python"]
    assert [Language.name_for_editor(name) for name in names] == ["reedx", "reedx", "python"]
    settings, problems = ServerSettings().with_client({"languages": {"reed-extended": "off"}})
    assert not problems
    assert settings.languages["reedx"] == "off"


def test_two_languages_of_one_name_are_refused(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / f"{folder}.toml").write_text("[variants.same]\n")
    with pytest.raises(LanguageError, match="two languages are named 'same'"):
        grammar.places(tmp_path)


def test_a_variant_of_a_folder_is_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.rx").write_text("print a b;\n")
    command = ["language", "check", str(FOLDER / "reed"), "--source", str(tmp_path), "--json"]
    assert main([*command, "--variant", "reedx"]) == 0
    checked = json.loads(capsys.readouterr().out)
    assert (checked["language"], checked["files"]["taken"]) == ("reedx", 1)
    assert main(command) == 2
    assert "language reeds has variants, of which one has to be named: reed, reedx" in capsys.readouterr().err


def test_the_judge_of_a_variant_has_its_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.rx").write_text("print a b;\n")
    command = ["language", "check", str(FOLDER / "reed"), "--source", str(tmp_path), "--json", "--variant", "reedx"]
    row = {"needs": [], "run": [sys.executable, "-c", REFUSING_JUDGE, "{language}"], "is": "refusing"}
    monkeypatch.setitem(programs.table(), "reedx", row)
    assert main([*command, "--cuts", "0"]) == 1
    found = json.loads(capsys.readouterr().out)["files"]
    assert [(one["kind"], one["judge"]) for one in found["shown"]] == [("taken wrongly", "reedx")]
    # The appeal is the variant's as well.
    monkeypatch.setitem(programs.table(), "reedx", row | {"appeal": [*row["run"][:-1], "higher"]})
    assert main([*command, "--cuts", "0"]) == 1
    found = json.loads(capsys.readouterr().out)["files"]
    assert [one["judge"] for one in found["shown"]] == ["higher"]


@pytest.mark.parametrize(
    "tables",
    [
        "variants = 3",
        "variants = [1]",
        "[variants.a]\nsuffixes = 3",
        "[variants.a]\nsuffixes = [3]",
        '[variants.a]\nsuffixes = [".a"]\n[variants.a.adopts]\nsuffixes = 3',
        '[variants.a]\nsuffixes = [".a"]\n[variants.a.versions]\nknown = ["1"]\nsuffixes = [1]',
        '[variants.a]\nsuffixes = [".a"]\n[variants.a.versions]\nknown = ["1"]\ndefault = "2"',
        '[variants.a]\nsuffixes = []\n[variants.a.versions]\nknown = []\nproject = { file = "a", key = [], values = 3}',
    ],
)
def test_wrong_tables_are_one_line(tmp_path: Path, tables: str) -> None:
    (tmp_path / "a.lark").write_text('start: "a"\n')
    (tmp_path / "a.toml").write_text(f'name = "x"\nsuffixes = [".x"]\nstart = "start"\n{tables}\n')
    variant = "a" if "variants.a" in tables else None
    with pytest.raises(LanguageError) as caught:
        Language.from_files(tmp_path / "a.lark", tmp_path / "a.toml", variant=variant)
    assert "\n" not in str(caught.value)
