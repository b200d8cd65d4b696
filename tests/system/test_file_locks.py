import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from fim_server.system.file_locks import WINDOWS_OFFSET, lock

OTHER = """
import sys
from fim_server.system.file_locks import lock
with open(sys.argv[1], "ab+") as file:
    try:
        lock(file)
    except OSError:
        sys.exit(3)
"""


def test_a_lock_holds_against_another_process_until_the_file_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "journal"

    def other() -> int:
        return subprocess.run([sys.executable, "-c", OTHER, path], check=False).returncode

    with path.open("ab+") as file:
        file.write(b"a line\n")
        file.flush()
        lock(file)
        assert other() == 3
        with path.open("ab+") as again, pytest.raises(OSError):  # noqa: PT011  # the number is the system's own
            lock(again)
        assert path.read_bytes() == b"a line\n"
    assert other() == 0


def test_on_windows_a_byte_behind_the_content_is_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a stand-in for the module of Windows, which locks at the position of the descriptor."""
    locked = []

    def locking(descriptor: int, mode: int, size: int) -> None:
        locked.append((os.lseek(descriptor, 0, os.SEEK_CUR), mode, size))

    with (tmp_path / "journal").open("ab+") as file:
        file.write(b"a line\n")
        with monkeypatch.context() as patch:
            patch.setattr(sys, "platform", "win32")
            patch.setitem(sys.modules, "msvcrt", SimpleNamespace(locking=locking, LK_NBLCK=2))
            lock(file)
        assert locked == [(WINDOWS_OFFSET, 2, 1)]
        assert file.tell() == len(b"a line\n")
