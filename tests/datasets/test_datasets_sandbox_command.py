"""The sandbox where there is none: what is started, what is refused, and what ``--unsafe`` allows."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from fim_server.datasets.python import bubblewrap, sandbox
from fim_server.datasets.python.sandbox import Verdict, run_test, unavailable
from fim_server.errors import DatasetError
from support.evaluation.sandbox_programs import GOOD, SQUARE, needs_sandbox, run, said

CHILD = Path("/package/child.py")


def values(words: list[str], option: str, count: int = 1) -> list[tuple[str, ...]]:
    """The values of each use of an option."""
    return [tuple(words[i + 1 : i + 1 + count]) for i, word in enumerate(words) if word == option]


@pytest.mark.parametrize("user", [0, 1000])
def test_the_command_shuts_out_everything(user: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user)
    words = bubblewrap.command(bubblewrap.Harness(CHILD))
    assert words[0] == "bwrap"
    for option in ("pid", "net", "ipc", "uts", "cgroup-try"):
        assert f"--unshare-{option}" in words
    assert ("--unshare-user" in words) == (user != 0)
    for option in ("--die-with-parent", "--new-session", "--clearenv"):
        assert option in words
    assert values(words, "--cap-drop") == [("ALL",)]
    rights = {("CAP_SYS_ADMIN",)} | ({("CAP_SETUID",), ("CAP_SETGID",)} if user == 0 else set())
    assert set(values(words, "--cap-add")) == rights
    assert values(words, "--tmpfs") == [("/tmp",)]
    assert values(words, "--remount-ro") == [("/",)]
    assert values(words, "--chdir") == [("/tmp",)]
    assert {name for name, _ in values(words, "--setenv", 2)} == {"PYTHONHASHSEED", "PYTHONUTF8", "HOME", "TMPDIR"}
    assert "--bind" not in words
    assert "--proc" not in words
    assert {path for path, _ in values(words, "--dev-bind", 2)} == set(bubblewrap.DEVICES)
    bound = values(words, "--ro-bind", 2)
    assert (str(CHILD), "/harness.py") in bound
    assert all(inside == outside for inside, outside in bound if inside != str(CHILD))
    assert words[words.index("--") + 1 :] == [bubblewrap.interpreter(), "-s", "-S", "-P", "-B", "/harness.py"]
    assert words.index("--tmpfs") < words.index("--remount-ro") < words.index("--")


def test_what_is_visible_is_pythons_and_the_systems_libraries() -> None:
    found = bubblewrap.visible()
    assert bubblewrap.interpreter() in found or "/nix/store" in found
    assert any(os.path.realpath(os.__file__).startswith(os.path.realpath(path) + "/") for path in found)
    for path in ("/", "/home", "/root", "/etc", "/usr", "/proc", "/sys", "/var", str(Path.home()), sys.prefix):
        assert path not in found or path == sys.base_prefix


SYSTEMD_RUN = """#!/bin/sh
printf '%s\\n' "$@" > {log}
{before}while [ "$1" != -- ]; do shift; done
shift
exec "$@"
"""


@pytest.fixture
def systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A script in the place of ``systemd-run``; returns where it writes its arguments."""
    script, log = tmp_path / "systemd-run", tmp_path / "log"
    script.write_text(SYSTEMD_RUN.format(log=log, before=""), encoding="utf-8")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(bubblewrap, "BOOTED", tmp_path)
    monkeypatch.setattr(bubblewrap, "scope", bubblewrap.scope.__wrapped__)
    return log


@pytest.mark.skipif(sys.platform == "win32", reason="a shell script")
def test_a_scope_is_used_where_systemd_makes_one(systemd: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for user in (0, 1000):
        monkeypatch.setattr(os, "geteuid", lambda user=user: user)
        assert bubblewrap.scope()[0] == "systemd-run"
        words = systemd.read_text(encoding="utf-8").split()
        assert ("--user" in words) == (user != 0)
        assert "--scope" in words
        memory = (1 << 30) + bubblewrap.SPARE_MEMORY
        assert {f"--property=MemoryMax={memory}", "--property=MemorySwapMax=0", "--property=TasksMax=40"} <= {*words}
    script = systemd.with_name("systemd-run")
    script.write_text(SYSTEMD_RUN.format(log=systemd, before="exit 1\n"), encoding="utf-8")
    assert bubblewrap.scope() == ()


@needs_sandbox
def test_programs_run_in_the_scope(systemd: Path) -> None:
    outcome = run_test(SQUARE, GOOD)
    assert (outcome.verdict, outcome.isolation) == (Verdict.PASSED, ("bubblewrap", "cgroup"))
    assert "bwrap" in systemd.read_text(encoding="utf-8")


def test_without_bubblewrap_nothing_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sandbox, "unavailable", unavailable.__wrapped__)
    with pytest.raises(DatasetError, match=r"no sandbox here: bubblewrap is .*install bubblewrap.*--unsafe"):
        run_test(SQUARE, f"open({str(tmp_path / 'a')!r}, 'w')\n{GOOD}")
    assert list(tmp_path.iterdir()) == []
    outcome = run_test(SQUARE, GOOD, unsafe=True)
    assert (outcome.verdict, outcome.isolation) == (Verdict.PASSED, ())


def test_on_windows_no_test_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "unavailable", lambda: "bubblewrap is for Linux")
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(DatasetError, match="not on Windows"):
        run_test(SQUARE, GOOD, unsafe=True)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there is none at all")
@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("echo 'bwrap: setting up uid map: Permission denied' >&2; exit 1", "setting up uid map: Permission denied"),
        ("exit 0", "do not start"),
        ("echo started", "a program that should pass does not: error"),
        ('printf \'started\\n{"verdict": "wrong", "detail": ""}\'', "a program that should pass does not: wrong"),
    ],
)
def test_a_bubblewrap_that_does_not_work_is_none(
    script: str, why: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "bwrap").write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    (tmp_path / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(sandbox, "unavailable", unavailable.__wrapped__)
    with pytest.raises(DatasetError, match=why) as refused:
        run_test(SQUARE, GOOD)
    assert "\n" not in str(refused.value)
    assert run_test(SQUARE, GOOD, unsafe=True).passed


def test_without_the_filters_library_nothing_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def missing(name: str) -> None:
        raise OSError(name)

    monkeypatch.setattr("shutil.which", lambda name: name)
    monkeypatch.setattr("ctypes.CDLL", missing)
    assert unavailable.__wrapped__() == (
        "libseccomp is not installed" if sys.platform == "linux" else f"bubblewrap is for Linux, this is {sys.platform}"
    )


EVERYBODYS = "/usr/bin/python3"


@needs_sandbox
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="becomes another user, which root can")
@pytest.mark.skipif(not Path(EVERYBODYS).exists(), reason="there is no Python that everybody may run")
def test_a_user_without_rights_has_the_same_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a namespace of users."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        monkeypatch.setattr(sandbox, "_CHILD", Path(shutil.copy(str(sandbox._CHILD), folder)))
        monkeypatch.setattr(bubblewrap, "interpreter", lambda: os.path.realpath(EVERYBODYS))
        monkeypatch.setattr(sys, "base_prefix", "/usr")
        monkeypatch.setattr(os, "geteuid", lambda: 1000)
        nobody = functools.partial(subprocess.Popen, user=65534, group=65534, extra_groups=[])
        monkeypatch.setattr(subprocess, "Popen", nobody)
        try:
            outcome = run_test(SQUARE, GOOD)
        except DatasetError as error:
            pytest.skip(f"users have no namespaces here: {error}")
        assert (outcome.verdict, outcome.isolation[0]) == (Verdict.PASSED, "bubblewrap")
        assert said("os.getuid()") == "65534"
        for body, why in (
            ("os.fork()", "BlockingIOError"),
            ("os.memfd_create('a')", "PermissionError"),
            ("open('/etc/passwd')", "FileNotFoundError"),
            ("for i in range(2000): open(str(i), 'w').close()", "OSError: [Errno 28]"),
            ("open('/x', 'w')", "OSError: [Errno 30]"),
        ):
            assert run(f"import os\n{body}").detail.startswith(why), body
        threads = "import threading, time\nthreading.stack_size(32768)\nwhile True:\n"
        threads += "    threading.Thread(target=time.sleep, args=(60,)).start()"
        assert run(threads).detail.startswith("RuntimeError: can't start new thread")
