"""Building sets: reproducibility, and going on after a kill."""

from __future__ import annotations

import ast
import gzip
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from fim_server.cli import program as cli
from fim_server.datasets import (
    SET_NAMES,
    Case,
    MatchTest,
    Origin,
    ProgramTest,
    Sample,
    UnitTest,
    read_samples,
    write_samples,
)
from fim_server.datasets import build as building
from fim_server.datasets.build import Counts, Request, build
from fim_server.datasets.journal import Journal
from fim_server.datasets.manifest import manifest_path
from fim_server.datasets.python.constructions import CONSTRUCTIONS
from fim_server.datasets.safim import truncated
from fim_server.datasets.sources.source import Source, SourceText
from fim_server.errors import DatasetError
from support.command_line import run_command
from support.evaluation.dataset_files import GOOD, STDLIB, built, run_cli, write_lines, write_tree
from support.unix import KILLED

LONG = os.environ.get("FIM_SERVER_LONG") == "1"

KILLS = 12 if LONG else 4

HUMAN_EVAL = {
    "SingleLineInfilling": {
        "task_id": "SingleLineInfilling/HumanEval/0/L0",
        "entry_point": "twice",
        "prompt": "def twice(x):\n",
        "canonical_solution": "    y = x + x\n",
        "suffix": "    return y\n",
        "test": "def check(candidate):\n    assert candidate(2) == 4\n",
    },
    "RandomSpanInfillingLight": {
        "task_id": "RandomSpanInfillingLight/HumanEval/1/1",
        "entry_point": "one",
        "prompt": "def one():\n    ret",
        "canonical_solution": "urn",
        "suffix": " 1\n",
        "test": "def check(candidate):\n    assert candidate() == 1\n",
    },
}
"""Records of the form that HumanEval-Infilling's files have."""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some files of the standard library, in a tree of two levels."""
    folder = tmp_path_factory.mktemp("sources") / "library"
    paths = [path for path in sorted(STDLIB.glob("*.py")) if 2_000 < path.stat().st_size < 30_000]
    for number, path in enumerate(random.Random(1).sample(paths, 30)):
        target = folder / f"part{number % 4}" / path.name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    return folder


@pytest.mark.parametrize("name", CONSTRUCTIONS)
def test_samples_are_the_files_with_holes(name: str, library: Path, tmp_path: Path) -> None:
    manifest, samples = built(Request(name, str(library)), tmp_path / "out.jsonl")
    texts = {}
    for sample in samples:
        assert sample.set == name
        assert sample.language == "python"
        assert sample.middle
        content = sample.left + sample.middle + sample.right
        assert content == sample.text == sample.filled(sample.middle)
        assert hashlib.sha256(content.encode()).hexdigest() == sample.origin.sha256
        assert (library / sample.origin.path).read_text(encoding="utf-8") == content
        assert sample.origin.source == "library"
        texts[sample.origin.sha256] = content
    for text in texts.values():
        ast.parse(text)
    assert len({sample.id for sample in samples}) == len(samples) == manifest["counts"]["samples"]
    assert max(Counter(sample.origin.sha256 for sample in samples).values()) == 10
    assert manifest["counts"]["kept"] == len(texts)
    assert manifest["sha256"] == hashlib.sha256((tmp_path / "out.jsonl").read_bytes()).hexdigest()
    assert json.loads(manifest_path(tmp_path / "out.jsonl").read_text(encoding="utf-8")) == manifest
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.jsonl", "out.jsonl.manifest.json"]


def test_files_left_out_are_counted(tmp_path: Path) -> None:
    folder = write_tree(
        tmp_path / "source",
        {
            "a.py": GOOD,
            "b/copy.py": GOOD.replace("\n", "\r\n").encode("utf-8-sig"),
            "b/broken.py": "print 'x'\n",
            "b/empty.py": "",
            "c/bytes.py": b"# coding: utf-8\nx = '\xff'\n",
            "c/latin.py": "# coding: latin-1\nname = 'ü' + b\n".encode("latin-1"),
            "c/data.txt": GOOD + "1",
            ".hidden/d.py": GOOD + "2",
            "lib/site-packages/e.py": GOOD + "3",
            "__pycache__/f.py": GOOD + "4",
        },
    )
    (folder / "gone.py").symlink_to(folder / "nowhere")
    (folder / "round").symlink_to(folder)
    manifest, samples = built(Request("stack-boundary", str(folder)), tmp_path / "out.jsonl")
    assert manifest["counts"] == {
        "files": 7,
        "kept": 2,
        "duplicates": 1,
        "left_out": {"refused by ast.parse": 1, "no hole": 1, "not decodable": 1, "unreadable": 1},
        "samples": 20,
    }
    assert {sample.origin.path for sample in samples} == {"a.py", "c/latin.py"}
    assert {sample.text for sample in samples} == {GOOD, "# coding: latin-1\nname = 'ü' + b\n"}


def test_bytes_do_not_depend_on_the_order_on_disk_or_the_hash_seed(library: Path, tmp_path: Path) -> None:
    files = list(library.rglob("*.py"))[:12]
    written = []
    for seed in (1, 2):
        folder = tmp_path / str(seed) / "library"
        random.Random(seed).shuffle(files)
        for path in files:
            target = folder / path.relative_to(library)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
        out = tmp_path / str(seed) / "out.jsonl"
        environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
        run_cli(["build", "expression", "--source", str(folder), "--out", str(out)], environment)
        written.append(out.read_bytes())
    assert written[0] == written[1]
    assert written[0].count(b"\n") > 100


def test_a_file_gives_the_same_samples_wherever_it_is(tmp_path: Path) -> None:
    one = write_tree(tmp_path / "one", {"a.py": GOOD})
    many = write_tree(tmp_path / "many", {"0.py": "x = 1\n", "z/b.py": GOOD, "zz.py": "y = x\n"})
    _, alone = built(Request("stack-boundary", str(one)), tmp_path / "one.jsonl")
    _, among = built(Request("stack-boundary", str(many)), tmp_path / "many.jsonl")
    holes = {(sample.id, sample.left, sample.middle) for sample in among}
    assert {(sample.id, sample.left, sample.middle) for sample in alone} <= holes


def test_a_limit_gives_the_beginning(library: Path, tmp_path: Path) -> None:
    whole = tmp_path / "whole.jsonl"
    build(Request("stack-randspan", str(library)), whole)
    for limit in (1, 10, 37):
        part = tmp_path / f"{limit}.jsonl"
        build(Request("stack-randspan", str(library), limit=limit), part)
        assert part.read_bytes() == b"".join(whole.read_bytes().splitlines(keepends=True)[:limit])


def test_a_share_takes_the_same_files_for_every_set(library: Path, tmp_path: Path) -> None:
    files = []
    for name in ("stack-randspan", "line"):
        manifest, samples = built(Request(name, str(library), share=0.4), tmp_path / f"{name}.jsonl")
        files.append({sample.origin.sha256 for sample in samples})
        assert manifest["counts"]["left_out"] == {"not drawn": 30 - len(files[-1])}
    assert files[0] == files[1]
    assert 4 < len(files[0]) < 20


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL here")
def test_a_killed_build_is_resumed(library: Path, tmp_path: Path) -> None:
    """Killed whenever the file of samples has grown by some more, and once right after the start."""
    whole, out = tmp_path / "whole.jsonl", tmp_path / "out.jsonl"
    build(Request("stack-boundary", str(library)), whole)
    command = [sys.executable, "-m", "fim_server", "dataset", "build", "stack-boundary"]
    command += ["--source", str(library), "--out", str(out)]
    part, killed, sizes = tmp_path / "out.jsonl.part", 0, []
    for step in range(KILLS):
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
            wanted = whole.stat().st_size * step // KILLS
            while process.poll() is None and not (part.exists() and part.stat().st_size >= wanted):
                time.sleep(0.002)
            process.kill()
        killed += process.returncode == KILLED
        sizes.append(part.stat().st_size)
    assert killed == KILLS
    assert sizes == sorted(sizes)
    assert not out.exists()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    assert out.read_bytes() == whole.read_bytes()
    assert counts_of(out) == counts_of(whole)
    assert sorted(path.name for path in tmp_path.glob("out*")) == ["out.jsonl", "out.jsonl.manifest.json"]


def counts_of(path: Path) -> dict[str, Any]:
    counts: dict[str, Any] = json.loads(manifest_path(path).read_text(encoding="utf-8"))["counts"]
    return counts


class Stopped(Exception):
    pass


def interrupt(request: Request, out: Path, files: int) -> None:
    def stop(counts: Counts) -> None:
        if counts.files == files:
            raise Stopped

    with pytest.raises(Stopped):
        build(request, out, stop)


def test_a_build_is_resumed_from_any_state_of_its_files(library: Path, tmp_path: Path) -> None:
    """A kill leaves the journal and the samples at any byte; a crash of the machine may lose the ends of both."""
    request = Request("stack-randspan", str(library), limit=150)
    whole = tmp_path / "whole.jsonl"
    build(request, whole)
    out = tmp_path / "out.jsonl"
    interrupt(request, out, 12)
    part, journal = tmp_path / "out.jsonl.part", tmp_path / "out.jsonl.journal"
    samples, records = part.read_bytes(), journal.read_bytes()
    header = records.index(b"\n") + 1
    generator = random.Random(4)
    for step in range(200 if LONG else 30):
        cut = generator.choice([0, header - 5, header, header + 1, len(records), generator.randrange(len(records))])
        journal.write_bytes(records[:cut])
        kept = generator.choice([0, len(samples), generator.randrange(len(samples))])
        part.write_bytes(samples[:kept] + b"x" * generator.choice([0, 3, 5000]) * (kept == len(samples)))
        if step % 10 == 9:
            part.unlink()
        build(request, out)
        assert out.read_bytes() == whole.read_bytes()
        assert counts_of(out) == counts_of(whole)
        out.unlink()
        manifest_path(out).unlink()


@pytest.mark.parametrize("moment", ["before the manifest", "before the move", "before the journal goes"])
def test_a_finished_build_is_completed(
    library: Path, tmp_path: Path, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    request, out = Request("line", str(library), limit=50), tmp_path / "out.jsonl"
    replaced: list[Path] = []

    def replace(self: Path, target: Path) -> Path:
        replaced.append(self)
        if moment == "before the manifest" or (moment == "before the move" and len(replaced) == 2):
            raise Stopped
        return original(self, target)

    def unlink(self: Path, missing_ok: bool = False) -> None:
        raise Stopped

    original = Path.replace
    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", replace)
        patched.setattr(Path, "unlink", unlink)
        with pytest.raises(Stopped):
            build(request, out)
    build(request, out)
    build(request, tmp_path / "other.jsonl")
    assert out.read_bytes() == (tmp_path / "other.jsonl").read_bytes()
    assert counts_of(out) == counts_of(tmp_path / "other.jsonl")
    assert not list(tmp_path.glob("*.part"))
    assert not list(tmp_path.glob("*.journal"))


def test_a_build_does_not_go_on_with_a_changed_source(tmp_path: Path) -> None:
    folder = write_tree(tmp_path / "source", {f"{name}.py": f"{name} = 1\n" for name in "abcdef"})
    for change in ({"b.py": "b = 2\n"}, {"aa.py": "aa = 1\n"}):
        request, out = Request("stack-randspan", str(folder)), tmp_path / "out.jsonl"
        interrupt(request, out, 4)
        write_tree(folder, change)
        with pytest.raises(DatasetError, match="has changed since"):
            build(request, out)
        (tmp_path / "out.jsonl.journal").unlink()
        build(request, out)
        out.unlink()


def test_a_build_does_not_go_on_with_other_arguments(tmp_path: Path) -> None:
    folder = write_tree(tmp_path / "source", {"a.py": GOOD, "b.py": GOOD + "x\n"})
    out = tmp_path / "out.jsonl"
    interrupt(Request("line", str(folder)), out, 1)
    with pytest.raises(DatasetError, match="begun with other arguments"):
        build(Request("line", str(folder), seed=1), out)
    build(Request("line", str(folder)), out)
    with pytest.raises(DatasetError, match="is there already"):
        build(Request("line", str(folder), seed=1), out)
    before = out.read_bytes()
    build(Request("line", str(folder)), out)  # nothing to do
    assert out.read_bytes() == before
    out.write_bytes(before + b"\n")
    with pytest.raises(DatasetError, match="is there already"):
        build(Request("line", str(folder)), out)


def test_one_process_builds_a_set(tmp_path: Path) -> None:
    folder = write_tree(tmp_path / "source", {"a.py": GOOD})
    with Journal(tmp_path / "out.jsonl.journal"), pytest.raises(DatasetError, match="another process"):
        build(Request("line", str(folder)), tmp_path / "out.jsonl")


def test_a_source_is_not_held_in_memory(tmp_path: Path) -> None:
    """Files are asked for one at a time, and each one's samples are written before the next is asked for."""
    out = tmp_path / "out.jsonl"
    sizes: list[int] = []

    class Endless(Source):
        name = "endless"

        def __iter__(self) -> Iterator[SourceText]:
            number = 0
            while True:
                part = tmp_path / "out.jsonl.part"
                sizes.append(part.stat().st_size)
                number += 1
                yield SourceText(f"x = {number}\ny = x\n", f"{number}.py")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(building, "open_source", lambda *asked: Endless())
        build(Request("line", "endless", limit=200), out)
    assert len(sizes) == 101  # and one more to see that there are enough
    assert all(after > before for before, after in pairwise(sizes))


SAFIM: list[dict[str, Any]] = [
    {
        "lang": "python",
        "prompt": "A task.\n\nif # TODO: Your code here\n    pass\n",
        "eval_prompt": "if {{completion}}\n    pass\n",
        "ground_truth": "True:",
        "unit_tests": [{"input": "1", "output": ["2", "3"]}],
        "task_id": "control_completion_000016",
    },
    {
        "lang": "java",
        "prompt": "",
        "eval_prompt": "class A {\r\n\tint a = {{completion}};\r\n}",
        "ground_truth": "1 +\r\n2",
        "unit_tests": [],
        "task_id": "control_completion_000017",
    },
    {"lang": "csharp", "prompt": "", "eval_prompt": "{{completion}}", "ground_truth": ";", "task_id": "other"},
]
"""Records of the form that SAFIM's files have."""


def test_safim(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, out = tmp_path / "source", tmp_path / "out.jsonl"
    folder.mkdir()
    write_lines(folder / "control_completion.jsonl.gz", SAFIM)
    build = ["dataset", "build", "safim", "--source", str(folder), "--out"]
    assert cli.main([*build, str(out)]) == 0
    samples = list(read_samples(out))
    assert [(one.id, one.kind, one.language) for one in samples] == [
        ("safim.2/control/control_completion_000016", "control", "python"),
        ("safim.2/control/control_completion_000017", "control", "java"),
    ]
    assert [one.test for one in samples] == [ProgramTest((Case("1", ("2", "3")),)), None]
    assert samples[0].text == "if True:\n    pass\n"
    assert (samples[1].left, samples[1].middle, samples[1].right) == ("class A {\n\tint a = ", "1 +\n2", ";\n}")
    assert cli.main([*build, str(tmp_path / "java.jsonl"), "--language", "java", "--kind", "control"]) == 0
    assert list(read_samples(tmp_path / "java.jsonl")) == samples[1:]
    assert cli.main([*build, str(tmp_path / "block.jsonl"), "--kind", "block"]) == 2
    assert "block_completion.jsonl.gz: no such file" in capsys.readouterr().err
    assert cli.main([*build, str(tmp_path / "multi.jsonl"), "--kind", "multi-line"]) == 2
    assert "safim has no kind multi-line, but api, control, block" in capsys.readouterr().err
    write_lines(folder / "api_completion.jsonl.gz", [{**SAFIM[1], "lang": "cpp"}])
    assert cli.main([*build, str(tmp_path / "api.jsonl"), "--kind", "api"]) == 0
    [call] = read_samples(tmp_path / "api.jsonl")
    assert (call.kind, call.language, call.test) == ("api", "cpp", MatchTest("call"))
    capsys.readouterr()
    assert cli.main(["dataset", "show", str(out), "--sample", "1"]) == 0
    assert "with a test: 1 inputs and outputs" in capsys.readouterr().out
    write_lines(folder / "control_completion.jsonl.gz", [{**SAFIM[0], "eval_prompt": "no hole"}])
    assert cli.main([*build, str(tmp_path / "broken.jsonl")]) == 2
    assert "control_completion.jsonl.gz:1: not a task of SAFIM" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("kind", "language", "text", "kept"),
    [
        ("control", "python", "\n  x in y:\n    continue", "  x in y:"),
        ("control", "python", "", ""),
        ("control", "java", "f(a) < (b)) { c(); }", "f(a) < (b)"),
        ("api", "python", "a.b(c(1), 2).d(3)\ne = f()", "a.b(c(1), 2)"),
        ("api", "java", "new A(", "new A("),
        ("block", "python", "a = 1\nb = 2\nc = (", "a = 1\nb = 2\n"),
        ("block", "java", "(\n(", ""),
    ],
)
def test_texts_are_cut_as_the_benchmark_cuts_them(kind: str, language: str, text: str, kept: str) -> None:
    sample = Sample("", "safim", kind, "", "", "", language, Origin("", None, None, "", None, ""), ProgramTest(()))
    assert truncated(sample, text, lambda text: "(" not in text) == kept


def write_human_eval(folder: Path) -> Path:
    write_lines(folder / "HumanEval-SingleLineInfilling.jsonl.gz", [HUMAN_EVAL["SingleLineInfilling"]])
    write_lines(folder / "HumanEval-RandomSpanInfillingLight.jsonl", [HUMAN_EVAL["RandomSpanInfillingLight"]])
    return folder


def test_human_eval(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, out = write_human_eval(tmp_path / "source"), tmp_path / "out.jsonl"
    assert cli.main(["dataset", "build", "human-eval-infilling", "--source", str(folder), "--out", str(out)]) == 0
    samples = list(read_samples(out))
    assert [sample.kind for sample in samples] == ["single-line", "random-span-light"]
    assert samples[0].id == "human-eval-infilling.1/SingleLineInfilling/HumanEval/0/L0"
    assert samples[0].text == "def twice(x):\n    y = x + x\n    return y\n"
    assert samples[0].origin.licence == "MIT"
    assert samples[0].test == UnitTest(
        "SingleLineInfilling/HumanEval/0/L0",
        "def twice(x):\n",
        "def check(candidate):\n    assert candidate(2) == 4\n",
        "twice",
    )
    light = [*("dataset", "build", "human-eval-infilling", "--source", str(folder)), "--kind", "random-span-light"]
    assert cli.main([*light, "--out", str(tmp_path / "light.jsonl")]) == 0
    assert list(read_samples(tmp_path / "light.jsonl")) == samples[1:]
    assert cli.main([*light, "--kind", "multi-line", "--out", str(tmp_path / "multi.jsonl")]) == 2
    assert "HumanEval-MultiLineInfilling.jsonl.gz: no such file" in capsys.readouterr().err


SAMPLE = Sample(
    id="a/1",
    set="line",
    kind="line",
    left="x = 1\n",
    middle="y = '\u2028é'",
    right="\nz\n",
    language="python",
    origin=Origin("s", None, None, "a.py", None, "00"),
)


def test_samples_are_written_and_read(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    tested = Sample.from_json({**SAMPLE.to_json(), "id": "b", "test": HUMAN_EVAL["SingleLineInfilling"], "later": 1})
    digest = write_samples(path, [SAMPLE, tested])
    assert list(read_samples(path)) == [SAMPLE, tested]
    assert digest == hashlib.sha256(path.read_bytes()).hexdigest()
    assert list(json.loads(path.read_bytes().splitlines()[0])) == [
        "id", "set", "kind", "left", "middle", "right", "language", "origin",
    ]  # fmt: skip
    with gzip.open(tmp_path / "a.jsonl.gz", "wb") as packed:
        packed.write(path.read_bytes())
    assert list(read_samples(tmp_path / "a.jsonl.gz")) == [SAMPLE, tested]


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("{", "a.jsonl:2: not JSON"),
        ("[]", "a.jsonl:2: not a JSON object"),
        ("{}", "a.jsonl:2: not a sample: 'origin' is missing"),
        (json.dumps({**SAMPLE.to_json(), "origin": {}}), "a.jsonl:2: not a sample: 'source' is missing"),
        (json.dumps({**SAMPLE.to_json(), "left": 1}), "a.jsonl:2: not a sample: id, set, kind"),
    ],
)
def test_bad_samples_are_one_line(
    line: str, complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_samples(tmp_path / "a.jsonl", [SAMPLE])
    with (tmp_path / "a.jsonl").open("a", encoding="utf-8") as output:
        output.write(line + "\n")
    assert cli.main(["dataset", "show", str(tmp_path / "a.jsonl")]) == 2
    said = capsys.readouterr().err
    assert said.startswith("fim-server: ")
    assert complaint in said
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["line", "--source", "nowhere"], "nowhere: no such file or folder"),
        (["line", "--source", "packages:no-such-package"], "no-such-package: not installed"),
        (["line", "--source", "packages:"], "packages:: not installed"),
        (["line", "--source", "hub:nobody"], "hub:OWNER/NAME[@REVISION][=PATH] expected"),
        (["line", "--source", "hub:o/n=nowhere"], "nowhere: no parquet or JSON Lines file"),
        (["line", "--source", "broken.jsonl"], "broken.jsonl:1: not JSON"),
        (["line", "--source", "texts.jsonl"], "texts.jsonl:1: no text in content or text"),
        (["line", "--source", "stdlib", "--kind", "single-line"], "--kind is for human-eval-infilling"),
        (["line", "--source", "stdlib", "--share", "2"], "'2' is not a share"),
        (["line", "--source", "stdlib", "--limit", "0"], "'0' is not a whole number above 0"),
        (["lines", "--source", "stdlib"], "invalid choice: 'lines'"),
        (
            ["human-eval-infilling", "--source", "nowhere"],
            "nowhere: no files such as HumanEval-SingleLineInfilling.jsonl.gz",
        ),
        (["human-eval-infilling", "--source", "texts.jsonl"], "texts.jsonl:1: not a task of HumanEval-Infilling"),
        (["human-eval-infilling", "--source", "nowhere", "--share", "0.5"], "--share and --per-file are not for"),
    ],
)
def test_bad_arguments_are_one_line(
    arguments: list[str],
    complaint: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    write_tree(tmp_path, {"broken.jsonl": "{\n", "texts.jsonl": '{"name": 1}\n'})
    status, _, said = run_command(capsys, "dataset", "build", *arguments, "--out", "out.jsonl")
    assert status == 2
    assert complaint in said
    assert said.count("\n") == 1
    left = {path.name for path in tmp_path.glob("out*")}
    assert "out.jsonl" not in left
    assert not left or "texts" in said or "broken" in said  # those are found out when they are read


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, out = write_tree(tmp_path / "source", {"a.py": GOOD, "b.py": "("}), tmp_path / "deep" / "out.jsonl"
    command = ["dataset", "build", "line", "--source", str(folder), "--per-file", "2", "--out", str(out)]
    assert cli.main(command) == 0
    assert capsys.readouterr().out == f"{out}: 2 samples from 1 of 2 files (1 refused by ast.parse)\n"
    assert cli.main([*command, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["counts"]["samples"] == 2
    assert cli.main(["dataset", "show", str(out)]) == 0
    shown = capsys.readouterr().out
    assert "2 samples" in shown
    assert "⟦" in shown
    sample = next(read_samples(out))
    for named in ("1", sample.id):
        assert cli.main(["dataset", "show", str(out), "--sample", named, "--json"]) == 0
        assert Sample.from_json(json.loads(capsys.readouterr().out)) == sample
    assert cli.main(["dataset", "show", str(out), "--sample", "1", "--color", "always"]) == 0
    assert f"\x1b[30;42m{sample.middle}\x1b[0m" in capsys.readouterr().out
    assert cli.main(["dataset", "show", str(out), "--json"]) == 0
    overview = json.loads(capsys.readouterr().out)
    assert overview["kinds"][0]["samples"] == 2
    assert overview["manifest"]["construction"]["name"] == "line"
    assert cli.main(["dataset", "show", str(out), "--sample", "3"]) == 2


def test_every_set_can_be_built() -> None:
    assert set(SET_NAMES) == {*CONSTRUCTIONS, "human-eval-infilling", "safim"}


# --- drawing -------------------------------------------------------------------------------------------------------


def test_a_draw_begins_as_a_larger_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = []
    for name in ("stack-randspan", "line"):
        files.append(tmp_path / f"{name}.jsonl")
        build(Request(name, str(write_tree(tmp_path / "library", {"a.py": GOOD, "b.py": GOOD * 2}))), files[-1])
    known = {sample.id: sample for file in files for sample in read_samples(file)}
    drawn = {}
    for count in (5, 9, 1000):
        out = tmp_path / f"{count}.jsonl"
        arguments = [*map(str, files), "--count", str(count), "--seed", "4", "--out", str(out)]
        assert run_command(capsys, "dataset", "draw", *arguments)[0] == 0
        drawn[count] = list(read_samples(out))
    assert [len(some) for some in drawn.values()] == [5, 9, len(known)]
    assert drawn[9][:5] == drawn[5]
    assert drawn[1000][:9] == drawn[9]
    assert all(known[sample.id] == sample for sample in drawn[1000])
    assert [sample.id for sample in drawn[1000]] != list(known)
    assert {sample.set for sample in drawn[9]} == {"stack-randspan", "line"}
    status, _, errors = run_command(
        capsys, "dataset", "draw", *map(str, files), "--count", "5", "--out", str(tmp_path / "5.jsonl")
    )
    assert (status, errors.count("\n")) == (2, 1)  # another seed
    status, _, errors = run_command(
        capsys, "dataset", "draw", str(files[0]), str(files[0]), "--count", "5", "--out", str(tmp_path / "twice.jsonl")
    )
    assert status == 2
    assert "comes twice" in errors
