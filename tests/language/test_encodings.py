"""Source files in other encodings than UTF-8: read as the language's own parser reads them (PEP 263 for Python)."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from fim_server import Language
from fim_server.errors import LanguageError
from fim_server.language.encodings import Declaration, EncodingError
from support.command_line import run_command

WORDS = "caf\u00e9 \u00fc"
CODECS = ("latin-1", "iso-8859-15", "cp1252", "koi8-r", "shift_jis", "gb18030", "euc-jp", "big5", "utf-7", "mac-roman")
TEXTS = {"koi8-r": "\u0434\u0430", "shift_jis": "\u30bd\u8868", "euc-jp": "\u3042", "big5": "\u529f\u8a31"}
PLACES = (
    b"# -*- coding: %s -*-\n",
    b"#!/usr/bin/python\n# vim: set fileencoding=%s :\n",
    b"\n  \t# coding=%s\r\n",
    b"#\r#coding:%s\r",
    b"\x0c# This says coding: %s, as PEP 263 allows.\n",
)


def read_by_python(data: bytes | str) -> str | None:
    """Return the text of the assignment to `x` in a file, or None where CPython refuses to read the file."""
    try:
        for statement in ast.parse(data).body:
            if isinstance(statement, ast.Assign):
                return str(ast.literal_eval(statement.value))
    except (SyntaxError, ValueError):
        return None
    return None


def read_here(data: bytes) -> str | None:
    try:
        return read_by_python(Language.decode("a.py", data))
    except EncodingError:
        return None


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("place", PLACES)
def test_declared_encodings_are_read_as_python_reads_them(codec: str, place: bytes) -> None:
    text = TEXTS.get(codec, WORDS)
    data = place % codec.encode() + b"x = '" + text.encode(codec) + b"'\n"
    assert read_by_python(data) == text
    assert read_here(data) == text
    assert Language.decode("a.py", data) == data.decode(codec)


ODD = {
    "plain": b"x = 1\n",
    "signature": b"\xef\xbb\xbfx = '\xc3\xa9'\n",
    "signature and the same": b"\xef\xbb\xbf# coding: utf-8\nx = '\xc3\xa9'\n",
    "signature and another": b"\xef\xbb\xbf# coding: latin-1\nx = 'a'\n",
    "too late": b"x = 1\n# coding: latin-1\nx = '\xe9'\n",
    "third line": b"\n\n# coding: latin-1\nx = '\xe9'\n",
    "in a string": b"'''\n# coding: latin-1\n'''\nx = '\xe9'\n",
    "the first counts": b"# coding: utf-8\n# coding: latin-1\nx = '\xe9'\n",
    "unknown": b"# coding: no-such\nx = 'a'\n",
    "of bytes": b"# coding: rot13\nx = 'a'\n",
    "compressed": b"# coding: zlib\nx = 'a'\n",
    "undefined": b"# coding: undefined\nx = 'a'\n",
    "punycode": b"# coding: punycode\nx = 'a'\n",
    "utf-16": b"# coding: utf-16\nx = 'a'\n",
    "utf-32": b"# coding: utf-32-le\nx = 'a'\n",
    "ebcdic": b"# coding: cp037\nx = 'a'\n",
    "written in utf-16": "\ufeffx = 'a'\n".encode("utf-16"),
    "undefined byte": b"# coding: cp1252\nx = '\x81'\n",
    "not utf-8": b"# coding: utf-8\nx = '\xe9'\n",
    "ascii": b"# coding: ascii\nx = '\xe9'\n",
    "long": b"# coding: " + b"x" * 100_000 + b"\nx = 'a'\n",
    "empty": b"# coding: \nx = '\xe9'\n",
}


@pytest.mark.parametrize("data", ODD.values(), ids=ODD.keys())
def test_odd_declarations_are_read_or_refused_as_python_does(data: bytes) -> None:
    expected = read_by_python(data)
    assert read_here(data) == expected
    if expected is None:
        with pytest.raises(EncodingError, match=r"^[ -~]{1,120}$"):
            Language.decode("a.py", data)


SUFFIXED = [
    f"{name}{suffix}"
    for name in ("latin-1", "iso-8859-1", "iso-latin-1", "Latin_1", "ISO_8859_1", "utf-8", "UTF_8", "latin1", "cp1252")
    for suffix in ("", "-unix", "-dos", "_mac", "-with-signature", "-" + "x" * 80, "x", "5-unix")
]


@pytest.mark.parametrize("name", SUFFIXED)
@pytest.mark.parametrize("place", PLACES)
def test_names_with_suffixes_are_read_as_python_reads_them(name: str, place: bytes) -> None:
    for written in (b"\xe9", "\u00e9".encode()):
        data = place % name.encode() + b"x = '" + written + b"'\n"
        assert read_here(data) == read_by_python(data)


ESCAPED = (
    b"# coding: %s\nx = 'caf\xe9 \\xe9 \\u20ac'\n",
    b"#!C:\\bin\\python.exe\n# coding: %s\nx = 'a'\n",
    b"# coding: %s, in C:\\temp\nx = r'\\d'\n",
    b"# coding: %s\nx = '\\N{BULLET}'\n",
    b"# coding: %s\n\\x78 = 'a'\n",
    b"# coding: %s\nx = '\\ud800'\n",
    b"# coding: %s\nx = '\\N{NO SUCH}'\n",
)


@pytest.mark.parametrize(
    "name", ["unicode_escape", "unicode-escape", "raw_unicode_escape", "utf-7", "hz", "iso2022_jp"]
)
@pytest.mark.parametrize("source", ESCAPED)
def test_encodings_with_escapes_are_read_as_python_reads_them(name: str, source: bytes) -> None:
    data = source % name.encode()
    assert read_here(data) == read_by_python(data)


def test_other_languages_are_utf_8() -> None:
    for path in ("a.go", "a.rs", "a.json", "A.java", "a.unknown"):
        assert Language.decode(path, b"\xef\xbb\xbf# coding: latin-1 \xc3\xa9") == "# coding: latin-1 \u00e9"
        with pytest.raises(EncodingError, match=r"not UTF-8 \(byte 0xe9 at offset 3, line 1\)"):
            Language.decode(path, b"// \xe9 coding: latin-1")
    assert Language.decode("a", b"# coding: latin-1\n\xe9", "python") == "# coding: latin-1\n\u00e9"
    with pytest.raises(LanguageError, match="unknown language"):
        Language.decode("a", b"", "basic")


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({}, "declaration"),
        ({"declaration": "(a", "lines": 2, "before": ""}, "incomplete"),
        ({"declaration": "a", "lines": 2, "before": ""}, "one group"),
        ({"declaration": "(a)", "lines": "x", "before": ""}, "incomplete"),
        ({"declaration": "(a)", "lines": 2, "before": "", "suffixed": ["a"]}, "incomplete"),
        ({"declaration": "(a)", "lines": 2, "before": "", "suffixed": {"a": 3}}, "incomplete"),
        (3, "incomplete"),
    ],
)
def test_wrong_encoding_declarations_of_a_language_are_refused(table: object, said: str) -> None:
    with pytest.raises(LanguageError, match=said):
        Declaration.from_spec({"name": "x", "encoding": table})


LATIN = b"# -*- coding: latin-1 -*-\nname = '\xe9\xe9'; other = nam\n"


def test_check_reads_the_declared_encoding(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(LATIN)
    assert run_command(capsys, "check", str(path)) == (0, "", "")
    path.write_bytes(LATIN + b"'\xe9' '\xe9' x = 1\n")
    status, output, _ = run_command(capsys, "check", str(path), "--json")
    assert (status, json.loads(output)["position"]) == (1, {"line": 3, "column": 9, "offset": 26 + 25 + 8})
    for declared, said in (("utf-16", "cannot have"), ("no-such", "unknown encoding no-such"), ("ascii", "not ascii")):
        path.write_bytes(LATIN.replace(b"latin-1", declared.encode()))
        for command in (("check", str(path)), ("explain", str(path), "1:1"), ("complete", str(path), "1:1")):
            status, output, error = run_command(capsys, *command)
            assert (status, output, len(error.splitlines())) == (2, "", 1)
            assert said in error


def test_columns_count_characters_of_the_declared_encoding(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(LATIN)
    assert run_command(capsys, "explain", str(path), "2:25")[0] == 0
    status, _, error = run_command(capsys, "explain", str(path), "2:26")
    assert (status, "columns go from 1 to 25" in error) == (2, True)
