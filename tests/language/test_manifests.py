"""Bounds on reading a project's files: a hostile one leaves its language at the newest version, with one line."""

import logging
import os
import tomllib
from pathlib import Path
from unittest import mock

import pytest

from fim_server import Language
from fim_server.language.limited_files import read_found
from fim_server.language.manifests import MOST_BYTES, MOST_PARTS, parse_toml, read_manifest
from support.unix import make_pipe

PARTS = ".".join(["a"] * 150_000)
LONG_KEYS = {
    "bare": "a." * MOST_PARTS + "a = 1\n",
    "spaced": "a \t.\t " * MOST_PARTS + "a = 1\n",
    "quoted": '"a"."\\"b"."\\\\".' * MOST_PARTS + "a = 1\n",
    "literal": "'a'.b." * MOST_PARTS + "a = 1\n",
    "table": "[" + "a." * MOST_PARTS + "a]\n",
    "array": "x = 1\n[[" + "a." * MOST_PARTS + "a]]\n",
    "inline": "x = { " + "a." * MOST_PARTS + "a = 1 }\n",
    "second": "x = { y = '', " + "a." * MOST_PARTS + "a = 1 }\n",
    "after a string": 'x = "\\"" # "\n' + "a." * MOST_PARTS + "a = 1\n",
    "after lines": 'x = """\n" \n"""\n' + "a." * MOST_PARTS + "a = 1\n",
}


@pytest.mark.parametrize("text", LONG_KEYS.values(), ids=LONG_KEYS.keys())
def test_long_keys_do_not_reach_the_parser(text: str) -> None:
    assert tomllib.loads(text)
    with mock.patch.object(tomllib, "loads") as parser, pytest.raises(ValueError, match="parts"):
        parse_toml(text)
    parser.assert_not_called()


@pytest.mark.parametrize(
    "text",
    [
        "a." * (MOST_PARTS - 1) + "a = 1\n",
        "x = [" + "1.5, " * 1000 + "]\n",
        'x = "1. One. Two. ' + "A sentence. " * 1000 + '"\n',
        "".join(f"[a.b{i}]\nc.d = 'e.f'\n" for i in range(1000)),
        "\n".join(f"b{i} = 'x'" for i in range(1000)),
    ],
    ids=["parts", "numbers", "prose", "tables", "lines"],
)
def test_usual_texts_are_parsed(text: str) -> None:
    assert parse_toml(text) == tomllib.loads(text)


def test_nesting_is_an_error_of_the_text() -> None:
    for text in ("a = " + "[" * 50_000, "a = " + "{b = " * 50_000):
        with pytest.raises(ValueError, match=r"nested|Invalid|Unclosed|Expected"):
            parse_toml(text)


HOSTILE = {
    "pyproject.toml": ("a.py", f"[project]\nrequires-python = '>=3.9'\n[tool]\n{PARTS} = 1\n"[: MOST_BYTES - 10]),
    "Cargo.toml": ("a.rs", f"[package]\nedition = '2018'\n[{PARTS}]\n"[: MOST_BYTES - 10]),
    "pom.xml": ("A.java", "<release>8</release>" + " " * MOST_BYTES),
    "build.gradle": ("A.java", "sourceCompatibility = 8" + " " * MOST_BYTES),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_manifest_leaves_the_newest_version_and_one_line(
    tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    source, text = HOSTILE[name]
    (tmp_path / name).write_text(text, encoding="utf-8")
    with caplog.at_level(logging.WARNING):
        assert [Language.for_path(tmp_path / source).version for _ in range(3)] == [None] * 3
    assert len(caplog.messages) == 1
    assert name in caplog.text
    assert "the default version of the language is used" in caplog.text


@pytest.mark.parametrize("name", ["build.gradle", "build.gradle.kts"])
def test_blanks_between_the_words_of_a_pattern_are_read_once(tmp_path: Path, name: str) -> None:
    # Two runs of blanks that may share a text try all ways to share it: half a minute for these.
    (tmp_path / name).write_text("sourceCompatibility" + " " * (MOST_BYTES - 100) + "x", encoding="utf-8")
    assert Language.for_path(tmp_path / "A.java").version is None
    (tmp_path / name).write_text("sourceCompatibility   =   17", encoding="utf-8")
    assert Language.for_path(tmp_path / "A.java").version == "17"


def test_a_manifest_is_read_again_once_it_has_changed(tmp_path: Path) -> None:
    file = tmp_path / "pyproject.toml"
    for version in ("3.9", "3.10", "3.11"):
        file.write_text(f'[project]\nrequires-python = ">={version}"\n', encoding="utf-8")
        with mock.patch("fim_server.language.definition.versions.read_manifest", side_effect=read_manifest) as reading:
            assert [Language.for_path(tmp_path / "a.py").version for _ in range(3)] == [version] * 3
        assert reading.call_count == 1


@pytest.mark.skipif(os.name != "posix", reason="links, pipes and devices are POSIX")
def test_files_that_are_found_are_regular_and_inside(tmp_path: Path) -> None:
    inside, outside = tmp_path / "folder", tmp_path / "secret"
    inside.mkdir()
    outside.write_bytes(b"secret")
    (inside / "file").write_bytes(b"text")
    (inside / "link").symlink_to("file")
    (inside / "out").symlink_to(outside)
    (inside / "zero").symlink_to("/dev/zero")
    (inside / "loop").symlink_to("loop")
    (inside / "endless").symlink_to("/proc/self/pagemap")
    make_pipe(inside / "pipe")
    with (inside / "sparse").open("wb") as file:
        file.truncate(10 << 30)
    assert read_found(inside / "link", within=inside) == b"text"
    assert read_found(inside / "out") == b"secret"
    for name in ("out", "zero", "loop", "endless", "pipe", "sparse", "missing", "."):
        with pytest.raises(OSError):  # noqa: PT011  # the kinds of errors differ
            read_found(inside / name, within=inside)
    if Path("/proc/self/pagemap").exists():
        assert read_found("/proc/self/pagemap") == b""


def test_a_file_that_grows_while_it_is_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "growing"
    path.write_bytes(b"x")
    real = os.fstat

    def grown(descriptor: int) -> os.stat_result:
        status = real(descriptor)
        with path.open("ab") as file:
            file.write(b"x" * 1000)
        return status

    with mock.patch("fim_server.language.limited_files.os.fstat", grown), pytest.raises(OSError, match="larger"):
        read_found(path, 100)
