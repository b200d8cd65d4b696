"""Corpora of many languages: lists, downloads, licences, what is kept, and the same bytes again."""

from __future__ import annotations

import io
import json
import tarfile
import zipfile
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from fim_server.errors import DatasetError, TrainingError
from training.__main__ import main
from training.corpora import downloads
from training.corpora.downloads import download
from training.corpora.licensing import denies, licence_of_package
from training.corpora.lists import (
    OLDER,
    SUGGESTION_USES,
    Named,
    parse,
    read_barred,
    read_packages,
    read_suggestions,
    read_wheels,
    refuse_barred,
)
from training.corpora.reading import language_of, read_package
from training.data.corpus import HELD_OUT_FILE, TRAIN_FILE, read_corpus
from training.data.filters import is_wanted_source

ROOT = Path(__file__).parents[2]
WHEELS = ROOT / "training" / "packages.txt"
NO_EVALUATION = np.empty(0, dtype=np.uint64)


def code(subject: str, comment: str = "") -> str:
    """A text of C-like code that shares its layout, but few runs of words, with one of another subject."""
    bodies = (
        f"static int {subject}_{number}(int value_{subject}, int step_{number}) {{\n"
        f"    int total_{subject} = value_{subject} + {subject}_sizes[{number}];\n"
        f"    return {subject}_finish(total_{subject}, step_{number});\n}}\n"
        for number in range(6)
    )
    return comment + f"// All about {subject}.\n" + "\n".join(bodies)


def tar(path: Path, files: Mapping[str, str]) -> None:
    with tarfile.open(path, "w:xz") if path.suffix == ".xz" else tarfile.open(path, "w:gz") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))


def zipped(path: Path, files: Mapping[str, str]) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)


def placed(one: Named, folder: Path) -> Path:
    (folder / one.folder).mkdir(parents=True, exist_ok=True)
    return folder / one.folder


COPYRIGHT = """\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/

Files: *
Copyright: somebody
License: Expat

Files: src/copied/*
License: GPL-2+

Files: src/either.c
License: GPL-2+ or BSD-3-clause-Maker
"""


def debian(one: Named, folder: Path, files: Mapping[str, str], stated: str = COPYRIGHT) -> None:
    there = placed(one, folder)
    (there / f"{one.name}_1.dsc").write_text("Format: 3.0 (quilt)\n")
    tar(there / f"{one.name}_1.orig.tar.gz", {f"{one.name}-1/{name}": text for name, text in files.items()})
    tar(there / f"{one.name}_1-1.debian.tar.xz", {"debian/copyright": stated, "debian/rules.sh": code("rules")})


def npm(one: Named, folder: Path, files: Mapping[str, str], licence: str = "MIT") -> None:
    manifest = {"package.json": json.dumps({"license": licence})}
    tar(placed(one, folder) / "one.tgz", {f"package/{name}": text for name, text in {**manifest, **files}.items()})


# --- lists -----------------------------------------------------------------------------------------------------------


def test_packages_to_learn_from_are_measured_nowhere() -> None:
    packages = [*read_packages(ROOT / "datasets" / "corpora"), *read_wheels(WHEELS)]
    barred = read_barred(ROOT / "datasets", WHEELS)
    refuse_barred(packages, barred)
    assert {one.kind for one in packages} == {"crates", "debian", "go", "maven", "npm", "wheels"}
    assert {"npm:eslint", "go:github.com/go-chi/chi", "wheels:flask"} <= {one.key for one in barred}


def test_a_project_stands_in_one_set_for_suggestions() -> None:
    found = read_suggestions(ROOT / "datasets" / "suggestions")
    sets = {place: packages for place, packages in found.items() if place[1] != OLDER}
    languages = {language for language, _ in sets}
    assert languages == {"c", "cpp", "go", "java", "javascript", "kotlin", "python", "rust", "typescript"}
    assert set(sets) == {(language, use) for language in languages for use in SUGGESTION_USES}
    assert all(6 <= len(packages) <= 10 for packages in sets.values())
    keys = {place: {one.key for one in packages} for place, packages in sets.items()}
    assert all(keys[one].isdisjoint(keys[other]) for one, other in combinations(keys, 2))
    for language, older in ((language, packages) for (language, use), packages in found.items() if use == OLDER):
        newer = {*sets[language, "develop"], *sets[language, "report"]}
        assert {one.key for one in older} <= {one.key for one in newer}
        assert newer.isdisjoint(older)


def test_measured_packages_are_refused_by_name_in_any_version() -> None:
    barred = [parse("go", "example.org/a/b/v2@v2.1.0"), parse("maven", "g:a:1")]
    refuse_barred([parse("go", "example.org/a/bc@v1.0.0"), parse("npm", "@g/a@1")], barred)
    with pytest.raises(TrainingError, match=r"measured, so not to be trained on: go:example\.org/a/b, maven:g:a"):
        refuse_barred([parse("go", "example.org/a/b@v1.0.0"), parse("maven", "g:a:2")], barred)


@pytest.mark.parametrize(
    ("kind", "text", "project"),
    [
        ("npm", "@babel/core@7.0.0", "npm:@babel"),
        ("maven", "io.netty:netty-common:4.1", "maven:io.netty"),
        ("go", "k8s.io/api@v0.1.0", "go:k8s.io/api"),
        ("go", "github.com/a/b/pkg/v3@v3.0.0", "go:github.com/a/b"),
        ("debian", "rails@2:7.2-1", "debian:rails"),
    ],
)
def test_packages_of_a_project_belong_together(kind: str, text: str, project: str) -> None:
    assert parse(kind, text).project == project


@pytest.mark.parametrize(("kind", "text"), [("npm", "left-pad"), ("gems", "rails@7"), ("maven", "a")])
def test_a_package_without_a_version_is_refused(kind: str, text: str) -> None:
    with pytest.raises(TrainingError, match="expected"):
        parse(kind, text)


# --- downloads -------------------------------------------------------------------------------------------------------


def test_packages_that_are_there_are_not_fetched_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[list[str]] = []

    def fetch(packages: Sequence[Named], own: Path, into: Path) -> None:
        asked.append([one.name for one in packages])
        if any(one.name == "bad" for one in packages):
            raise DatasetError("no package bad@1 here")
        for one in packages:
            (into / one.folder / "one.tgz").write_bytes(b"x" * (9 if one.name == "large" else 1))

    monkeypatch.setattr(downloads, "DOWNLOADS", {"npm": fetch})
    packages = [Named("npm", name, "1") for name in ("a", "bad", "large", "z")]
    for _ in range(2):
        failed = download(packages, tmp_path, 8, lambda line: None)
        assert {one.name: reason for one, reason in failed.items()} == {
            "bad": "no package bad@1 here",
            "large": "larger than 8 bytes",
        }
    assert asked == [["a", "bad", "large", "z"], ["a", "large", "z"], ["bad"]]
    assert (tmp_path / "npm" / "a@1" / "one.tgz").exists()
    assert not list(tmp_path.glob(".new-*"))


def test_a_failed_batch_is_halved_if_no_package_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def fetch(packages: Sequence[Named], own: Path, into: Path) -> None:
        if any(one.name == "bad" for one in packages):
            raise DatasetError("something is wrong")
        for one in packages:
            (into / one.folder / "one.tgz").write_bytes(b"x")

    monkeypatch.setattr(downloads, "DOWNLOADS", {"npm": fetch})
    packages = [Named("npm", name, "1") for name in ("a", "b", "bad", "c")]
    assert [one.name for one in download(packages, tmp_path, 8, lambda line: None)] == ["bad"]
    assert all((tmp_path / one.folder).is_dir() for one in packages if one.name != "bad")


# --- licences and files ----------------------------------------------------------------------------------------------


def test_debians_licences_are_those_of_each_file(tmp_path: Path) -> None:
    package = Named("debian", "fruit", "1-1")
    copied = code("cherry", "/* GNU General Public License, version 2 */\n")
    names = ("apple", "bridge", "either")
    files = {f"src/{name}.c": code(name) for name in names} | {"src/apple.h": code("date")}
    debian(package, tmp_path, {**files, "src/copied/fig.c": code("fig"), "src/other.c": copied, "README": "None."})
    read = read_package(package, tmp_path, 10**6, NO_EVALUATION)
    assert [file.path for file in read.files["c"]] == ["src/apple.c", "src/apple.h", "src/bridge.c", "src/either.c"]
    assert read.licences == ["BSD-3-Clause", "MIT"]
    assert +read.dropped["c"] == {"licence": len(code("fig")) + len(copied)}
    assert set(read.files) == {"c"}, "packaging is no part of the project"
    assert len(read.archives) == 2
    compared = read_package(package, tmp_path, 10**6, NO_EVALUATION, any_licence=True)
    assert len(compared.files["c"]) == 6


@pytest.mark.parametrize(
    ("kind", "described", "licence"),
    [
        ("npm", {"package.json": '{"license": {"type": "ISC"}}'}, "ISC"),
        ("npm", {"package.json": '{"license": "GPL-3.0-only"}'}, None),
        ("npm", {"package.json": "not JSON"}, None),
        ("crates", {"Cargo.toml": '[package]\nlicense = "MIT/Apache-2.0"\n'}, "MIT OR Apache-2.0"),
        ("wheels", {"a-1.dist-info/METADATA": "License-Expression: BSD-2-Clause\n"}, "BSD-2-Clause"),
        ("go", {"LICENSE": "Apache License Version 2.0, January 2004"}, "Apache-2.0"),
        ("go", {"LICENSE": "All rights reserved."}, None),
        ("go", {}, None),
        ("debian", {"debian/copyright": "License: LGPL"}, None),
        ("debian", {"debian/copyright": "Files: *\nLicense: Expat and Zlib"}, "MIT AND Zlib"),
        ("debian", {"debian/copyright": "Files: *\nLicense: Expat and GPL-3"}, None),
    ],
)
def test_a_package_states_its_licence(kind: str, described: dict[str, str], licence: str | None) -> None:
    contents = {name: text.encode() for name, text in described.items()}
    assert licence_of_package(kind, contents, None)("src/a.c") == licence


def test_a_file_may_deny_its_packages_licence() -> None:
    assert denies("// SPDX-License-Identifier: GPL-2.0-only\n")
    assert denies(" * under the terms of the GNU Lesser General Public License\n")
    assert not denies("/* SPDX-License-Identifier: MIT OR GPL-2.0-only */\n")
    assert not denies("int gnu_hash(void);\n")


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("src/main.go", True),
        ("lib/rack/request.rb", True),
        ("src/main_test.go", False),
        ("src/menu.spec.ts", False),
        ("com/fruit/AppleTest.java", False),
        ("vendor/github.com/a/b.go", False),
        ("dist/index.js", False),
        (".github/build.sh", False),
        ("pkg/core.py", True),
        ("pkg/tests/core.py", False),
    ],
)
def test_tests_and_compiled_files_of_all_languages_stay_out(path: str, wanted: bool) -> None:
    assert is_wanted_source(path) is wanted


def test_a_files_name_tells_its_language() -> None:
    named = {"a.rb": "ruby", "a.h": "cpp", "src/a.tsx": "tsx", "a.d.ts": None, "Makefile": None}
    assert {path: language_of(path) for path in named} == named


# --- the step --------------------------------------------------------------------------------------------------------


@pytest.fixture
def recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Arguments of the step, with lists and registries of its own."""
    made = {
        "a": {"src/a.ts": code("apple"), "src/a.min.js": code("less"), "src/copy.ts": code("apple")},
        "b": {"src/b.ts": code("bridge"), "src/same.ts": code("measured")},
        "c": {"src/c.ts": code("cloud"), "src/task.ts": code("task")},
        "d": {"src/d.ts": code("dragon"), "scripts/d.sh": code("engine")},
        "e": {"src/e.ts": code("eagle")},
        "measured": {"src/measured.ts": code("measured")},
    }

    def fetch(packages: Sequence[Named], own: Path, into: Path) -> None:
        for one in packages:
            npm(one, into, made[one.name], "GPL-3.0-only" if one.name == "e" else "MIT")

    monkeypatch.setattr(downloads, "DOWNLOADS", {"npm": fetch})
    lists, datasets = tmp_path / "lists", tmp_path / "datasets"
    lists.mkdir()
    (datasets / "suggestions").mkdir(parents=True)
    (lists / "npm.toml").write_text('npm = ["a@1", "b@1", "c@1", "d@1", "e@1"]\n')
    (datasets / "json-reported.toml").write_text('npm = ["measured@1.0.0"]\n')
    (tmp_path / "wheels.txt").write_text("# none\n")
    task = code("task")
    record = {
        "eval_prompt": f"/* A licence. */\n{task[:300]}{{{{completion}}}}{task[310:]}",
        "ground_truth": task[300:310],
    }
    (tmp_path / "safim.jsonl").write_text(json.dumps(record) + "\n")
    work = ["--work", str(tmp_path / "work"), "--processes", "1", "--exclude", str(tmp_path / "safim.jsonl")]
    return [
        "corpus",
        *work,
        "--lists",
        str(lists),
        "--datasets",
        str(datasets),
        "--wheels",
        str(tmp_path / "wheels.txt"),
    ]


def test_corpora_are_clean_and_the_same_again(
    recipe: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "work" / "corpora"
    written = []
    for _ in range(2):
        assert main(recipe) == 0
        written.append({path.relative_to(folder): path.read_bytes() for path in sorted(folder.rglob("*.json*"))})
    assert written[0] == written[1]
    both = [read_corpus(folder / "typescript" / name) for name in (TRAIN_FILE, HELD_OUT_FILE)]
    assert sorted((file.package, file.path) for files in both for file in files) == [
        ("npm:a", "src/a.ts"),
        ("npm:b", "src/b.ts"),
        ("npm:c", "src/c.ts"),
        ("npm:d", "src/d.ts"),
    ]
    assert len({file.package for file in both[1]}) == 1
    assert [file.path for file in read_corpus(folder / "shellscript" / TRAIN_FILE)] in ([], ["scripts/d.sh"])
    manifest = json.loads((folder / "sources.json").read_text())
    assert manifest["left_out"] == {"npm:e": "npm:e: no permissive licence"}
    row = manifest["languages"]["typescript"]
    assert (row["packages"], row["files"]) == (4, 4)
    assert row["dropped_bytes"] == {
        "cap": 0,
        "evaluation text": len(code("task")),
        "near-duplicates": len(code("apple")) + len(code("measured")),
    }
    assert manifest["packages"]["npm:a"]["licences"] == ["MIT"]
    assert "| typescript | 4 | 4 |" in capsys.readouterr().out


def test_a_measured_package_in_a_list_is_named(
    recipe: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "lists" / "npm.toml").write_text('npm = ["measured@2.0.0"]\n')
    assert main(recipe) == 2
    assert "measured, so not to be trained on: npm:measured" in capsys.readouterr().err
