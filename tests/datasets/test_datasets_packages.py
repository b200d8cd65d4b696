"""Packages of other languages than Python: fetched by the languages' own tools, here from folders of this machine."""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from threading import Thread

import pytest

from fim_server.datasets import read_samples
from fim_server.datasets.licences import licence_of_folder, licence_of_text
from fim_server.datasets.sources import crates, go_modules, maven, npm
from fim_server.datasets.sources.named import language_of, open_source, read_list
from fim_server.datasets.sources.source import SourceText
from fim_server.datasets.sources.written import LARGEST, LONGEST_LINE, is_written
from fim_server.errors import DatasetError
from fim_server.language import Language
from support.command_line import run_command
from support.evaluation.dataset_files import write_tree
from support.languages.source_files import unpack

ROOT = Path(__file__).resolve().parents[2]

LISTS = sorted((ROOT / "datasets").glob("*.toml"))

MIT = """\
MIT License

Copyright (c) 2026 Somebody

Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
documentation files (the "Software"), to deal in the Software without restriction.
"""
APACHE = "\n   Apache License\n   Version 2.0, January 2004\n   http://www.apache.org/licenses/\n"
BSD = (
    "Redistribution and use in source and binary forms, with or without\nmodification, are permitted provided that "
    "the following conditions are met:\n"
)
ENDORSING = "Neither the name of the copyright holder nor the names of its contributors may be used\n"


@pytest.fixture
def any_suffix(monkeypatch: pytest.MonkeyPatch) -> None:
    """Suffixes of languages that this package need not define."""
    for module, suffix in ((go_modules, ".go"), (maven, ".java"), (crates, ".rs")):
        monkeypatch.setattr(module, "suffixes", lambda language, suffix=suffix: (suffix,))


@pytest.mark.parametrize(
    ("text", "licence"),
    [
        (MIT, "MIT"),
        (APACHE, "Apache-2.0"),
        (BSD, "BSD-2-Clause"),
        (BSD + ENDORSING, "BSD-3-Clause"),
        (BSD + "All advertising materials mentioning features", None),
        (MIT + APACHE, None),
        ("Do what you want.", None),
        ("", None),
    ],
)
def test_licences_are_known_by_their_words(text: str, licence: str | None) -> None:
    assert licence_of_text(text) == licence


def test_all_licences_of_a_folder_hold(tmp_path: Path) -> None:
    assert licence_of_folder(tmp_path) is None
    write_tree(tmp_path, {"LICENSE-MIT": MIT, "copying.txt": BSD, "licenses.go": APACHE, "README": APACHE})
    assert licence_of_folder(tmp_path) == "BSD-2-Clause AND MIT"
    write_tree(tmp_path, {"LICENSE": "Ask me."})
    assert licence_of_folder(tmp_path) is None


# --- Go ------------------------------------------------------------------------------------------------------------

MODULE, VERSION = "example.com/m", "v1.2.0"


@pytest.fixture
def proxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A proxy of Go's with one module, in a folder."""
    if shutil.which("go") is None:
        pytest.skip("there is no go")
    folder = tmp_path / "proxy" / MODULE / "@v"
    write_tree(folder, {f"{VERSION}.info": json.dumps({"Version": VERSION}), f"{VERSION}.mod": f"module {MODULE}\n"})
    files = {
        "go.mod": f"module {MODULE}\n",
        "LICENSE": MIT,
        "b.go": "package m\n\nfunc f(a int) int {\n\treturn a + 1\n}\n",
        "a/a_test.go": "package a\n",
        "a/testdata/x.go": "package x\n",
        "vendor/v/v.go": "package v\n",
    }
    with zipfile.ZipFile(folder / f"{VERSION}.zip", "w") as archive:
        for name, content in files.items():
            archive.writestr(f"{MODULE}@{VERSION}/{name}", content)
    settings = {
        "GOPROXY": (tmp_path / "proxy").as_uri(),
        "GONOSUMDB": "*",
        "GOFLAGS": "-modcacherw",
        "GOMODCACHE": str(tmp_path / "modules"),
        "GOTOOLCHAIN": "local",
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    return folder


@pytest.mark.usefixtures("proxy", "any_suffix")
def test_go_modules() -> None:
    source = open_source(f"go:{MODULE}@{VERSION}", None, "go")
    assert [(file.path, file.package, file.version, file.licence) for file in source] == [
        ("a/a_test.go", MODULE, VERSION, "MIT"),
        ("b.go", MODULE, VERSION, "MIT"),
    ]
    assert source.pinned()[f"{MODULE}@{VERSION}"].startswith("h1:")
    with pytest.raises(DatasetError, match="modules of Go cannot be fetched: "):
        open_source("go:example.com/other@v1.0.0", None, "go")


@pytest.mark.usefixtures("proxy")
@pytest.mark.skipif("go" not in Language.names(), reason="no definition of Go")
def test_a_list_of_modules_is_built(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.toml").write_text(f'go = ["{MODULE}@{VERSION}"]\n', encoding="utf-8")
    out = tmp_path / "out.jsonl"
    command = ["dataset", "build", "stack-boundary", "--source", str(tmp_path / "mine.toml"), "--out", str(out)]
    assert run_command(capsys, *command, "--limit", "4")[0] == 0
    samples = list(read_samples(out))
    assert len(samples) == 4
    origins = {(one.language, one.origin.source, one.origin.package, one.origin.licence) for one in samples}
    assert origins == {("go", "mine", MODULE, "MIT")}


# --- Java ----------------------------------------------------------------------------------------------------------

POM = """\
<?xml version="1.0"?>
<project xmlns="http://maven.apache.org/POM/4.0.0">
{parent}
<artifactId>a</artifactId>
{licences}
</project>
"""
LICENCE = "<licenses><license><name>The Apache\n Software License, Version 2.0</name></license></licenses>"
PARENT = "<parent><groupId>g</groupId><artifactId>up</artifactId><version>7</version></parent>"

FAKE_MVN = """\
#!{python}
# Copies what a project asks dependency:copy for, as Maven does, from a folder.
import re, shutil, sys
from pathlib import Path
if sys.argv[-1] != "dependency:copy":
    sys.exit("no such goal")
text = Path(sys.argv[sys.argv.index("-f") + 1]).read_text()
(folder,) = re.findall("<outputDirectory>(.*)</outputDirectory>", text)
for item in re.findall("<artifactItem>(.*)</artifactItem>", text):
    part = lambda name: re.findall(f"<{{name}}>(.*)</{{name}}>", item)[0]
    source = Path({repository!r}) / f"{{part('artifactId')}}-{{part('version')}}.{{part('type')}}"
    assert ("sources" in item) == (part("type") == "jar")
    if not source.exists():
        sys.exit("[ERROR] Could not find artifact " + source.name)
    shutil.copy(source, Path(folder) / part("destFileName"))
"""


def fake(name: str, text: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program of that name on the PATH."""
    path = write_tree(folder / "bin", {name: text}) / name
    path.chmod(0o755)
    monkeypatch.setenv("PATH", str(path.parent), prepend=":")


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "repository"
    poms = {"a-1.pom": (PARENT, ""), "b-2.pom": ("", LICENCE), "up-7.pom": ("", LICENCE), "c-3.pom": ("", "")}
    write_tree(
        folder, {name: POM.format(parent=parent, licences=licences) for name, (parent, licences) in poms.items()}
    )
    for name in ("a-1", "b-2", "c-3"):
        with zipfile.ZipFile(folder / f"{name}.jar", "w") as jar:
            jar.writestr("META-INF/MANIFEST.MF", "")
            jar.writestr("p/B.java", "class B {}\n")
            jar.writestr("p/A.java", "class A {}\n")
    fake("mvn", FAKE_MVN.format(python=sys.executable, repository=str(folder)), tmp_path, monkeypatch)
    return folder


@pytest.mark.usefixtures("repository", "any_suffix")
def test_jars_of_sources() -> None:
    source = open_source("maven:g:a:1, g:b:2,g:c:3", None, "java")
    files: list[SourceText] = list(source)
    assert [(file.package, file.version, file.path) for file in files] == [
        (f"g:{name}", version, f"p/{path}.java")
        for name, version in (("a", "1"), ("b", "2"), ("c", "3"))
        for path in "AB"
    ]
    assert files[0].content == b"class A {}\n"
    licences = {file.package: file.licence for file in files}
    assert licences == {"g:a": "Apache-2.0", "g:b": "Apache-2.0", "g:c": None}  # that of its parent
    assert set(source.pinned()) == {"g:a:1", "g:b:2", "g:c:3"}
    assert source.pinned()["g:a:1"].startswith("sha256:")
    with pytest.raises(DatasetError, match=r"sources of Java cannot be fetched: \[ERROR\] Could not find artifact d-1"):
        open_source("maven:g:d:1", None, "java")


# --- Rust ----------------------------------------------------------------------------------------------------------

FAKE_CARGO = """\
#!{python}
# Says where crates are, as cargo metadata does.
import json, sys, tomllib
from pathlib import Path
manifest = Path(sys.argv[sys.argv.index("--manifest-path") + 1])
packages, locked = [], ""
for one in tomllib.loads(manifest.read_text())["dependencies"].values():
    folder = Path({registry!r}) / (one["package"] + "-" + one["version"].removeprefix("="))
    if not folder.exists():
        sys.exit("error: no matching package named `" + one["package"] + "` found")
    own = {{"name": one["package"], "version": one["version"].removeprefix("=")}}
    packages.append({{**own, "license": "MIT/Apache-2.0", "manifest_path": str(folder / "Cargo.toml")}})
    locked += '[[package]]\\nname = "%s"\\nversion = "%s"\\nchecksum = "00"\\n' % (own["name"], own["version"])
manifest.with_name("Cargo.lock").write_text(locked)
print(json.dumps({{"packages": packages}}))
"""


@pytest.mark.usefixtures("any_suffix")
def test_crates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_tree(
        tmp_path / "registry",
        {
            "one-1.0.0/src/lib.rs": "fn f() {}\n",
            "one-1.0.0/tests/a.rs": "fn t() {}\n",
            "one-1.0.0/README.md": "",
            "one-2.0.0-rc.1/src/lib.rs": "fn g() {}\n",
        },
    )
    text = FAKE_CARGO.format(python=sys.executable, registry=str(tmp_path / "registry"))
    fake("cargo", text, tmp_path, monkeypatch)
    source = open_source("crates:one@1.0.0,one@2.0.0-rc.1", None, "rust")
    assert [(file.package, file.version, file.path, file.licence) for file in source] == [
        ("one", "1.0.0", "src/lib.rs", "MIT OR Apache-2.0"),
        ("one", "1.0.0", "tests/a.rs", "MIT OR Apache-2.0"),
        ("one", "2.0.0-rc.1", "src/lib.rs", "MIT OR Apache-2.0"),
    ]
    assert source.pinned() == {"one@1.0.0": "sha256:00", "one@2.0.0-rc.1": "sha256:00"}
    with pytest.raises(DatasetError, match="crates cannot be fetched: error: no matching package named `two` found"):
        open_source("crates:two@1.0.0", None, "rust")


# --- JSON ----------------------------------------------------------------------------------------------------------


class Registry(SimpleHTTPRequestHandler):
    """A registry of npm's with the packages in a folder, by the paths that are asked for."""

    def log_message(self, *_: object) -> None:
        """Nothing: requests are none of the test's output."""


@pytest.fixture
def npm_registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    if shutil.which("npm") is None:
        pytest.skip("there is no npm")
    folder = tmp_path / "registry"
    folder.mkdir()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Registry, directory=str(folder)))
    address = f"http://127.0.0.1:{server.server_port}"
    publish(folder, address, "one", {"package.json": {"license": "MIT"}, "data/a.json": [1], "index.js": 1})
    publish(folder, address, "@s/two", {"package.json": {"license": "SEE LICENSE IN x"}, "node_modules/m.json": 1})
    monkeypatch.setenv("npm_config_registry", address)
    monkeypatch.setenv("npm_config_cache", str(tmp_path / "cache"))
    monkeypatch.setenv("npm_config_update_notifier", "false")
    with server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield folder
        server.shutdown()
        thread.join()


def publish(registry: Path, address: str, name: str, files: dict[str, object]) -> None:
    """Put a package of version 1.0.0 into a registry: texts as they are, and other values as JSON."""
    own = {"name": name, "version": "1.0.0"}
    files["package.json"] = {**own, **files["package.json"]}  # type: ignore[dict-item]
    packed = BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for path, content in files.items():
            data = (content if isinstance(content, str) else json.dumps(content)).encode()
            member = tarfile.TarInfo(f"package/{path}")
            member.size = len(data)
            archive.addfile(member, BytesIO(data))
    packed_as = name.replace("/", "-") + ".tgz"
    (registry / packed_as).write_bytes(packed.getvalue())
    integrity = "sha512-" + base64.b64encode(hashlib.sha512(packed.getvalue()).digest()).decode()
    version = {**own, "dist": {"tarball": f"{address}/{packed_as}", "integrity": integrity}}
    described = {"name": name, "versions": {"1.0.0": version}, "dist-tags": {"latest": "1.0.0"}}
    write_tree(registry, {name: json.dumps(described)})  # npm asks for @s%2ftwo, which is read as @s/two


@pytest.mark.usefixtures("npm_registry")
def test_packages_of_npm() -> None:
    source = open_source("npm:one@1.0.0,@s/two@1.0.0", None, "json")
    assert [(file.package, file.version, file.path, file.licence) for file in source] == [
        ("one", "1.0.0", "data/a.json", "MIT"),
        ("one", "1.0.0", "package.json", "MIT"),
        ("@s/two", "1.0.0", "package.json", None),
    ]
    assert next(iter(source)).content == b"[1]"
    assert set(source.pinned()) == {"one@1.0.0", "@s/two@1.0.0"}
    assert source.pinned()["one@1.0.0"].startswith("sha512-")
    with pytest.raises(DatasetError, match=r"packages of npm cannot be fetched: npm error"):
        open_source("npm:one@2.0.0", None, "json")


@pytest.mark.usefixtures("npm_registry")
def test_packages_are_unpacked_for_checks(tmp_path: Path) -> None:
    assert unpack("npm:one@1.0.0,@s/two@1.0.0", tmp_path / "out") == 3
    found = {path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*.json")}
    assert found == {"one/data/a.json", "one/package.json", "@s+two/package.json"}
    assert (tmp_path / "out" / "one" / "data" / "a.json").read_text() == "[1]"


# --- JavaScript and TypeScript -----------------------------------------------------------------------------------

SUFFIXES = {
    "javascript": (".js", ".mjs", ".cjs"),
    "jsx": (".jsx",),
    "typescript": (".ts", ".mts", ".cts"),
    "tsx": (".tsx",),
}
CODE: dict[str, object] = {
    "package.json": {"license": "MIT"},
    "lib/a.js": "a\n",
    "lib/b.mjs": "b\n",
    "lib/element.js": "c = <d />\n",
    "lib/element.jsx": "c = <d></d>\n",
    "lib/none.jsx": "c\n",
    "src/a.ts": "let a: T\n",
    "src/a.tsx": "let a: T = <b/>\n",
    "src/a.d.ts": "declare let a: T\n",
    "dist/a.js": "a\n",
    "lib/a.min.js": "a\n",
    "node_modules/b/b.js": "b\n",
    "lib/compiled.js": '"use strict";\nObject.defineProperty(exports, "__esModule", { value: true });\n',
}


@pytest.mark.usefixtures("npm_registry")
@pytest.mark.parametrize(
    ("language", "files"),
    [
        ("javascript", ["lib/a.js", "lib/b.mjs", "lib/element.js"]),
        ("jsx", ["lib/element.js", "lib/element.jsx", "lib/none.jsx"]),
        ("typescript", ["src/a.ts"]),
        ("tsx", ["src/a.tsx"]),
    ],
)
def test_packages_of_npm_with_code(
    language: str, files: list[str], npm_registry: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(npm, "suffixes", SUFFIXES.__getitem__)
    address = json.loads((npm_registry / "one").read_text())["versions"]["1.0.0"]["dist"]["tarball"].rpartition("/")[0]
    publish(npm_registry, address, "code", dict(CODE))
    write_tree(tmp_path, {"list.toml": f'language = "{language}"\nnpm = ["code@1.0.0"]\n'})
    for named in ("npm:code@1.0.0", str(tmp_path / "list.toml")):
        source = open_source(named, None, language)
        found = list(source)
        assert [file.path for file in found] == files
        assert {(file.package, file.version, file.licence) for file in found} == {("code", "1.0.0", "MIT")}
    assert language_of(str(tmp_path / "list.toml")) == language
    assert language_of("npm:code@1.0.0") == "json"
    with pytest.raises(DatasetError, match=f"is a source of {language}, not of json"):
        open_source(str(tmp_path / "list.toml"), None, "json")
    with pytest.raises(DatasetError, match=r"is a source of json or javascript or .*, not of go"):
        open_source("npm:code@1.0.0", None, "go")


@pytest.mark.parametrize(
    ("name", "content", "written"),
    [
        ("src/a.ts", b"let a\n", True),
        ("a.js", b"", True),
        ("distance/a.js", b"a", True),
        ("dist/a.js", b"a", False),
        ("a-min.js", b"a", False),
        ("admin.js", b"a", True),
        ("a.d.mts", b"a", False),
        ("a.js", b"a\n//# sourceMappingURL=a.js.map\n", False),
        ("a.js", b"//# sourceMappingURL=a.js.map\na\n", True),
        ("a.js", b"// This file is generated by b. Do not edit.\n", False),
        ("a.js", b"a\n" * 2_000 + b"// generated by b\n", True),
        ("a.js", b"a" * LONGEST_LINE + b"\nb", True),
        ("a.js", b"b\n" + b"a" * (LONGEST_LINE + 1), False),
        ("a.js", b"a;\n" * (LARGEST // 3), True),
        ("a.js", b"a;\n" * (LARGEST // 3 + 1), False),
    ],
)
def test_code_is_written_by_people(name: str, content: bytes, written: bool) -> None:
    assert is_written(name, content) is written


# --- names and lists -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("named", "form"),
    [
        ("go:example.com/m", "MODULE@vVERSION"),
        ("go:", "MODULE@vVERSION"),
        ("maven:g:a", "GROUP:ARTIFACT:VERSION"),
        ("maven:g:<a>:1", "GROUP:ARTIFACT:VERSION"),
        ("crates:rand", "NAME@VERSION"),
        ('crates:a"b@1.0.0', "NAME@VERSION"),
        ("crates:rand@1", "NAME@VERSION"),
        ("npm:ajv", "NAME@VERSION"),
        ("npm:@s/@1.0.0", "NAME@VERSION"),
        ("npm:--registry@1.0.0", "NAME@VERSION"),
    ],
)
def test_versions_are_exact(named: str, form: str) -> None:
    with pytest.raises(DatasetError, match=f"{form} expected"):
        open_source(named, None, language_of(named) or "")


def test_without_its_tool_a_package_is_not_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    tools = {"go:m@v1.0.0": "go", "maven:g:a:1": "mvn", "crates:a@1.0.0": "cargo", "npm:a@1.0.0": "npm"}
    for named, tool in tools.items():
        with pytest.raises(DatasetError, match=f"are fetched by {tool}, which is not installed"):
            open_source(named, None, language_of(named) or "")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "go = []\n",
        "go = [1]\n",
        'go = ["a"]\nmaven = ["b"]\n',
        'gems = ["a"]\n',
        "go =",
        'language = "rust"\ngo = ["a"]\n',
        'language = "go"\n',
    ],
)
def test_a_file_without_packages_is_reported(text: str, tmp_path: Path) -> None:
    path = write_tree(tmp_path, {"list.toml": text}) / "list.toml"
    with pytest.raises(DatasetError, match=r"list\.toml: does not list packages"):
        open_source(str(path))


def test_measured_packages_are_not_training_data() -> None:
    """A package has one use. Packages to choose a definition by have lists of their own in npm's languages of code."""
    by_name = {path.stem: read_list(path) for path in LISTS}
    code = tuple(SUFFIXES)
    uses: dict[str, tuple[str, ...]] = dict.fromkeys(("go", "java", "json", "rust"), ("reported", "training"))
    uses |= dict.fromkeys(code, ("reported", "choosing", "training"))
    assert set(by_name) == {f"{name}-{use}" for name in uses for use in uses[name]}
    for name in uses:
        listed = [by_name[f"{name}-{use}"] for use in uses[name]]
        assert len({one.kind for one in listed}) == 1
        assert all(one.languages[0] == name for one in listed)
        names = [{re_version(package) for package in one.names} for one in listed]
        assert all(
            len(some) > (9 if name in ("javascript", "typescript") else 2 if name == "jsx" else 4) for some in names
        )
        assert sum(map(len, names)) == len(set().union(*names))
    uses_of: dict[str, set[str]] = {}
    for name in code:
        for use in uses[name]:
            for package in by_name[f"{name}-{use}"].names:
                uses_of.setdefault(re_version(package), set()).add(use)
    assert all(len(found) == 1 for found in uses_of.values()), uses_of


def re_version(named: str) -> str:
    """A package without its version."""
    return named.rpartition("@" if "@" in named else ":")[0]
