"""Folders made to hang or to fill the memory: read within bounds, with a note on each file left out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fim_server.memory.memory import Memory
from support.unix import make_pipe, unix_socket

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="pipes, devices and limits of memory are those of Linux"
)

CHILD = """
import json, resource, sys
from pathlib import Path
from fim_server.memory.memory import Memory

with Memory() as memory:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # More than this is never given, so that a mistake ends this process and not the machine.
    resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
    memory.index(Path(sys.argv[1]), [".py"])
    settled = memory.settle(100)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(json.dumps([settled, memory.sizes()["files"], memory.take_notes(), grown // 1024]))
"""
MOST_MB = 150
"""Most growth in bytes; the index of a few small files needs less than a tenth of it."""


def index(folder: Path) -> tuple[int, list[str]]:
    """Index a folder in a process of its own; returns the number of files and the notes."""
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(folder)], capture_output=True, text=True, timeout=120, check=True
    )
    settled, files, notes, grown = json.loads(done.stdout)
    assert settled
    assert grown < MOST_MB
    return files, notes


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with one source file."""
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "a.py").write_text("alpha = 1\n")
    return tmp_path


@pytest.mark.parametrize("name", [".ignore", ".gitignore", "inner/.gitignore", ".git/info/exclude", ".git"])
@pytest.mark.parametrize("kind", ["zero", "pipe", "socket", "outside", "folder", "endless"])
def test_pipes_and_devices_in_place_of_ignore_files_are_not_read(
    folder: Path, name: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    place = folder / name
    place.parent.mkdir(parents=True, exist_ok=True)
    with unix_socket() as bound:
        match kind:
            case "zero":
                place.symlink_to("/dev/zero")
            case "pipe":
                make_pipe(place)
            case "socket":
                bound.bind(os.path.relpath(place))  # whose length is limited
            case "outside":
                (folder.parent / "rules").write_text("*.py\n")
                place.symlink_to(folder.parent / "rules")
            case "folder":
                place.mkdir()
            case _:
                place.symlink_to("/proc/self/pagemap")
        files, notes = index(folder)
    assert files == 1
    assert len(notes) <= 1
    assert all(name.rpartition("/")[2] in note and "\n" not in note for note in notes)


def test_a_large_ignore_file_is_read_in_part(folder: Path) -> None:
    with (folder / ".gitignore").open("w") as file:
        file.write("b.py\n")
        for number in range(3_000_000):
            file.write(f"name{number}*[ab]?\n")
    (folder / "b.py").write_text("alpha = 2\n")
    files, notes = index(folder)
    assert (files, len(notes)) == (1, 1)


def test_files_that_are_no_sources_are_left_out(folder: Path) -> None:
    (folder / "zero.py").symlink_to("/dev/zero")
    (folder / "loop").symlink_to(".")
    (folder / "self.py").symlink_to("self.py")
    make_pipe(folder / "pipe.py")
    with (folder / "sparse.py").open("wb") as file:
        file.truncate(10 << 30)
    (folder / "shut.py").write_text("x = 1\n")
    (folder / "shut.py").chmod(0)
    (folder / "line.py").write_text("x = '" + "x" * 900_000 + "'\n")
    (folder / ".gitignore").mkdir()
    (folder / ".ignore").write_text("x" * 1_000_000 + "\n" + "{" * 100_000 + "\n[\n**/" * 1000)
    files, _ = index(folder)
    assert files == 1 + (sys.platform != "win32" and os.getuid() == 0)


def test_declared_encodings_are_remembered(folder: Path) -> None:
    (folder / "latin.py").write_bytes(b"# coding: latin-1\nomega = '\xe9'\n")
    (folder / "wrong.py").write_bytes(b"# coding: no-such\nomega = 'wrong'\n")
    (folder / "wide.py").write_bytes(b"# coding: utf-16\nomega = 'wide'\n")
    with Memory() as memory:
        memory.index(folder, [".py"])
        assert memory.settle()
        assert memory.sizes()["files"] == 2
        found = memory.recall("other.py", "omega = ", "")
    assert found[0].text == "'\u00e9'"


def test_reading_that_is_stopped_goes_on(folder: Path) -> None:
    with Memory() as memory:
        memory.stop_reading()
        memory.index(folder, [".py"])
        assert memory.settle()
        assert not memory.is_reading
        assert memory.sizes()["files"] == 1
