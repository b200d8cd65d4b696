"""Sources of files: the standard library, packages, corpora, the hub, and their licences."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from fim_server.datasets import Origin, read_samples
from fim_server.datasets.build import Request, build
from fim_server.datasets.licences import spdx, spdx_of_all
from fim_server.datasets.manifest import manifest_path
from fim_server.datasets.python.text import decode
from fim_server.datasets.sources.named import open_source
from fim_server.errors import DatasetError
from support.evaluation.dataset_files import GOOD, built, run_cli, write_lines, write_tree


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"a\r\nb\rc\n", "a\nb\nc\n"),
        (b"\xef\xbb\xbfa\n", "a\n"),
        ("\ufeffa\r\n", "a\n"),
        ("é\n".encode(), "é\n"),
        (b"\xe9\n", None),
        (b"# coding: latin-1\n\xe9\n", "# coding: latin-1\né\n"),
        (b"# coding: no-such\n", None),
        ("\ud800", None),
        (None, None),
    ],
)
def test_decoding(content: bytes | str | None, text: str | None) -> None:
    assert decode(content) == text


def test_the_standard_library(tmp_path: Path) -> None:
    manifest, samples = built(Request("line", "stdlib", limit=25), tmp_path / "out.jsonl")
    assert len(samples) == 25
    assert {sample.origin.licence for sample in samples} == {"PSF-2.0"}
    assert {sample.origin.package for sample in samples} == {"python-standard-library"}
    assert samples[0].origin.path == "__future__.py"
    assert manifest["pinned"] == {"python-standard-library": samples[0].origin.version}
    paths = [text.path for text in open_source("stdlib")]
    assert paths == sorted(paths, key=lambda path: path.split("/"))
    assert "json/decoder.py" in paths
    assert not [path for path in paths if {"test", "tests", "site-packages", "idle_test"} & set(path.split("/"))]


def test_installed_packages(tmp_path: Path) -> None:
    manifest, samples = built(Request("line", "packages:lark, packaging", share=0.3), tmp_path / "out.jsonl")
    assert {sample.origin.package for sample in samples} == {"lark", "packaging"}
    licences = {sample.origin.package: sample.origin.licence for sample in samples}
    assert licences == {"lark": "MIT", "packaging": "Apache-2.0 OR BSD-2-Clause"}
    assert manifest["pinned"] == {name: metadata.version(name) for name in ("lark", "packaging")}


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        ("MIT", "MIT"),
        ("mit", "MIT"),
        ("MIT License", "MIT"),
        ("apache-2.0 or mit", "Apache-2.0 OR MIT"),
        ("Apache Software License", "Apache-2.0"),
        ("BSD License", None),
        ("see LICENSE", None),
        ("", None),
    ],
)
def test_licences(stated: str, expected: str | None) -> None:
    assert spdx(stated) == expected


def test_several_licences_all_hold() -> None:
    assert spdx_of_all(["mit", "Apache-2.0 OR BSD-2-Clause"]) == "(Apache-2.0 OR BSD-2-Clause) AND MIT"
    assert spdx_of_all(["mit", "mine"]) is None
    assert spdx_of_all([]) is None


def test_corpus_of_this_project(tmp_path: Path) -> None:
    corpus = write_lines(tmp_path / "held_out.jsonl", [{"package": "p", "path": "p/a.py", "text": GOOD}])
    described = {"packages": [{"package": "p", "version": "1.2", "licence": "MIT", "held_out": True}]}
    (tmp_path / "sources.json").write_text(json.dumps(described), encoding="utf-8")
    _, samples = built(Request("line", str(corpus)), tmp_path / "out.jsonl")
    digest = hashlib.sha256(GOOD.encode()).hexdigest()
    assert samples[0].origin == Origin("held_out.jsonl", "p", "1.2", "p/a.py", "MIT", digest)


ROWS: list[dict[str, Any]] = [
    {"content": GOOD, "lang": "Python", "path": "a.py", "repository_name": "o/n", "licenses": ["mit"]},
    {"content": GOOD + "x = 1\n", "lang": "Python", "path": "b.py", "repository_name": "o/m", "licenses": ["mit", "?"]},
    {"content": "int x;\n", "lang": "C", "path": "c.c", "repository_name": "o/n", "licenses": []},
    {"content": GOOD, "lang": "Python", "path": "copy.py", "repository_name": "o/l", "licenses": ["mit"]},
]


def write_parquet(path: Path, rows: list[dict[str, Any]]) -> Path:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    return path


@pytest.mark.parametrize("kind", ["data.jsonl", "data.json", "data.jsonl.gz", "data.parquet"])
@pytest.mark.parametrize("named", ["{file}", "{folder}", "hub:o/n={file}", "hub:o/n={folder}"])
def test_corpora_of_the_hub_in_local_files(kind: str, named: str, tmp_path: Path) -> None:
    path = tmp_path / "corpus" / "data" / kind
    (write_parquet if kind.endswith("parquet") else write_lines)(path, ROWS)
    write_tree(tmp_path / "corpus", {"README.md": "no", "dataset_infos.json": "{"})
    source = named.format(file=path, folder=tmp_path / "corpus")
    manifest, samples = built(Request("line", source), tmp_path / "out.jsonl")
    assert manifest["counts"]["duplicates"] == 1
    assert manifest["counts"]["left_out"] == {"another language": 1}
    assert {(one.origin.path, one.origin.package, one.origin.licence) for one in samples} == {
        ("a.py", "o/n", "MIT"),
        ("b.py", "o/m", None),
    }
    expected = {"hub:o/n"} if named.startswith("hub:") else {"corpus" if "folder" in named else kind}
    assert {one.origin.source for one in samples} == expected


def test_parquet_needs_its_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_tree(tmp_path, {"a.parquet": b"PAR1"}) / "a.parquet"
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(DatasetError, match=r"pip install 'fim-server\[eval\]'"):
        build(Request("line", str(path)), tmp_path / "out.jsonl")


class FakeHub(BaseHTTPRequestHandler):
    """The three answers of the hub that reading a data set takes."""

    files: Mapping[str, bytes] = {}
    revision = "0123456789abcdef0123456789abcdef01234567"

    def do_GET(self) -> None:
        self.answer(True)

    def do_HEAD(self) -> None:
        self.answer(False)

    def answer(self, with_body: bool) -> None:
        path = self.path.split("?")[0]
        name = path.removeprefix(f"/datasets/o/n/resolve/{self.revision}/")
        if path in ("/api/datasets/o/n", "/api/datasets/o/n/revision/main"):
            siblings = [{"rfilename": name} for name in self.files]
            body = json.dumps({"id": "o/n", "sha": self.revision, "siblings": siblings}).encode()
        elif name in self.files:
            body = self.files[name]
        else:
            self.send_response(404)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("ETag", f'"{hashlib.sha1(body).hexdigest()}"')
        self.send_header("X-Repo-Commit", self.revision)
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def hub() -> Iterator[str]:
    """The address of a hub with one data set, whose files for Python are the second and the third."""
    rows = ["".join(json.dumps(row) + "\n" for row in part).encode() for part in (ROWS[:1], ROWS[1:])]
    FakeHub.files = {
        "data/c/data.jsonl": b"not read",
        "data/python/1.jsonl": rows[1],
        "data/python/0.jsonl": rows[0],
        "README.md": b"not read",
    }
    server = ThreadingHTTPServer(("127.0.0.1", 0), FakeHub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_the_hub(hub: str, tmp_path: Path) -> None:
    """With the hub's own client, in a process of its own since it reads its settings once."""
    out = tmp_path / "out.jsonl"
    environment = {**os.environ, "HF_ENDPOINT": hub, "HF_HOME": str(tmp_path / "cache"), "HF_HUB_DISABLE_XET": "1"}
    for name in ("HF_HUB_OFFLINE", "HF_TOKEN", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        environment.pop(name, None)
    run_cli(["build", "line", "--source", "hub:o/n", "--out", str(out)], environment)
    samples = list(read_samples(out))
    assert {(one.origin.source, one.origin.path) for one in samples} == {("hub:o/n", "a.py"), ("hub:o/n", "b.py")}
    assert samples[0].origin.path == "a.py"
    manifest = json.loads(manifest_path(out).read_text(encoding="utf-8"))
    assert manifest["pinned"] == {"revision": FakeHub.revision}
    missing = run_cli(["build", "line", "--source", "hub:o/m", "--out", str(tmp_path / "no")], environment, status=2)
    assert missing.startswith("fim-server: o/m: cannot be read from the hub: ")
    assert missing.count("\n") == 1
