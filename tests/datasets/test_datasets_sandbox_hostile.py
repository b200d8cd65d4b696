"""Programs that try to get out of the sandbox, to take the machine down, or to pass without being right."""

from __future__ import annotations

import os
import socket
import sys
import time
from pathlib import Path

import pytest

from fim_server.datasets import UnitTest
from fim_server.datasets.python import bubblewrap, sandbox, sandbox_child
from fim_server.datasets.python.sandbox import DEFAULT_LIMITS, Limits, Verdict, run_test, unavailable
from fim_server.errors import DatasetError
from support.evaluation.sandbox_programs import GOOD, LIMITS, SHORT, SQUARE, needs_sandbox, run, said
from support.unix import unix_socket

assert sys.platform != "win32"

pytestmark = needs_sandbox

WALK = """
found = []
for folder, folders, files in os.walk('/'):
    folders[:] = [one for one in folders if os.path.join(folder, one) not in {visible!r}]
    found += [one for one in (os.path.join(folder, one) for one in files) if one not in {visible!r}]
"""


def refused(body: str) -> str:
    """The exception that a program dies of."""
    outcome = run(f"import os\n{body}\nreturn x * x")
    assert outcome.verdict is Verdict.ERROR, outcome
    return outcome.detail


# --- what it sees ----------------------------------------------------------------------------------------------------


def test_it_sees_no_file_but_pythons(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("a", encoding="utf-8")
    for path in (
        "/etc/passwd",
        "/etc/hostname",
        Path.home(),
        tmp_path / "secret",
        __file__,
        "/etc/shadow",
        "/root/.ssh",
    ):
        assert refused(f"os.stat({str(path)!r}); open({str(path)!r})").startswith(
            ("FileNotFoundError", "IsADirectoryError")  # the home's own folder, where Python is below it
        )
    runtime = [*bubblewrap.visible(), "/dev"]
    assert said(WALK.format(visible=runtime)) == "['/harness.py']"
    assert said("sorted(os.listdir('/dev'))") == "['null', 'random', 'urandom', 'zero']"


def test_what_it_sees_of_the_home_are_pythons_folders_alone() -> None:
    home = str(Path.home())
    inside = [path for path in bubblewrap.visible() if path.startswith(home + "/")]
    for path in inside:
        assert path.startswith(sys.base_prefix) or path == bubblewrap.interpreter()
    first = sorted({Path(path).relative_to(home).parts[0] for path in inside})
    assert said(f"sorted(os.listdir({home!r})) if os.path.exists({home!r}) else []") == str(first)


def test_it_sees_no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIM_SERVER_TOKEN", "1")
    names = said("sorted({*os.environ} - {'LC_CTYPE'})")
    assert names == "['HOME', 'PWD', 'PYTHONHASHSEED', 'PYTHONUTF8', 'TMPDIR']"


def test_it_sees_no_process_but_its_own() -> None:
    assert refused("os.listdir('/proc')").startswith("FileNotFoundError")
    reached = "found = []\nfor n in range(1, 40000):\n    try: os.kill(n, 0)\n    except ProcessLookupError: continue\n"
    reached += "    except PermissionError: pass\n    found.append(n)"
    assert len(said(reached).split(",")) <= 4  # bubblewrap's own, the test's, the program's
    assert refused(f"os.kill({os.getpid()}, 0)" if os.getpid() > 4 else "os.kill(9999, 0)").startswith("ProcessLookup")


def test_it_has_no_network_and_no_sockets() -> None:
    name = f"\0fim-server-test-{os.getpid()}"
    with socket.create_server(("127.0.0.1", 0)) as server, unix_socket() as abstract:
        abstract.bind(name)
        abstract.listen()
        for family, address in (("AF_INET", server.getsockname()), ("AF_UNIX", name)):
            body = f"import socket\nsocket.socket(socket.{family}).connect({address!r})"
            assert refused(body).startswith("PermissionError")
    assert said("__import__('socket').gethostname()") == "sandbox"


# --- what it changes -------------------------------------------------------------------------------------------------


def test_it_writes_nothing_outside_its_folder(tmp_path: Path) -> None:
    for path in ("/x", "/usr/lib/x", "/dev/x", "/harness.py", str(tmp_path / "x"), os.__file__, "/etc/x"):
        detail = refused(f"open({path!r}, 'w')")
        assert detail.startswith(("OSError: [Errno 30]", "PermissionError", "FileNotFoundError")), (path, detail)
    assert list(tmp_path.iterdir()) == []
    for action in (f"os.remove({os.__file__!r})", "os.mkdir('/x')", "os.symlink('/', '/y')", "os.chmod('/', 0o777)"):
        assert refused(action).startswith(("OSError: [Errno 30]", "PermissionError")), action


@pytest.mark.parametrize(
    "call",
    [
        "unshare(0x10000000)",  # a namespace of users
        "unshare(0x20000)",
        "setns(0, 0)",
        "mount(b'none', b'/tmp', b'tmpfs', 0, None)",
        "mount(None, b'/tmp', None, 32, b'size=1g')",
        "chroot(b'/tmp')",
        "ptrace(16, 2, 0, 0)",
        "process_vm_readv(2, 0, 0, 0, 0, 0)",
        "setuid(0)",
        "syscall(425, 1, 0)",  # io_uring_setup
        "syscall(438, 0, 0, 0)",  # pidfd_getfd
    ],
)
def test_it_gains_no_rights(call: str) -> None:
    found = f"import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\nfound = libc.{call}, ctypes.get_errno()"
    result, error = eval(said(found))
    assert result == -1
    assert error in (1, 22)  # EPERM; EINVAL for a user that the namespace does not have


# --- processes -------------------------------------------------------------------------------------------------------

PROCESSES = {
    "fork": "os.fork()",
    "forkpty": "os.forkpty()",
    "subprocess": "import subprocess, sys\nsubprocess.run([sys.executable, '-c', ''])",
    "spawn": "import sys\nos.posix_spawn(sys.executable, ['a'], {})",
    "exec": "import sys\nos.execv(sys.executable, ['a'])",
    "multiprocessing": "from multiprocessing import Process\np = Process(target=print)\np.start()",
    "daemon": "os.setsid()\nif os.fork() == 0:\n    os.setsid()\n    import time\n    time.sleep(60)",
    "clone": "import ctypes\nl = ctypes.CDLL(None, use_errno=True)\nif l.syscall(56, 17, 0, 0, 0, 0) < 0:\n"
    "    raise OSError(ctypes.get_errno(), 'clone')",
}


@pytest.mark.parametrize("body", PROCESSES.values(), ids=PROCESSES)
def test_it_starts_no_processes(body: str) -> None:
    assert refused(body).split(":")[0] in ("BlockingIOError", "PermissionError", "OSError", "FileNotFoundError")


def test_a_fork_bomb_is_ended() -> None:
    body = "import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        pass"
    assert run(body, limits=SHORT).verdict is Verdict.TIMEOUT


def test_threads_have_a_largest_number() -> None:
    body = "import threading, time\nthreading.stack_size(32768)\nfound = 0\ntry:\n    while True:\n"
    body += "        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n        found += 1\n"
    body += "except RuntimeError:\n    pass"
    assert 8 <= int(said(body)) <= LIMITS.processes


SLEEPERS = {
    "signals ignored": "import signal as s\nfor n in {*s.valid_signals()} - {9, 19}: s.signal(n, s.SIG_IGN)\n",
    "a session of its own": "import os\nos.setsid()\n",
    "threads": "import threading, time\nfor _ in range(3): threading.Thread(target=time.sleep, args=(60,)).start()\n",
}


@pytest.mark.parametrize("body", SLEEPERS.values(), ids=SLEEPERS)
def test_it_does_not_outlive_its_time(body: str) -> None:
    assert run("import time\ntime.sleep(60)", body, limits=SHORT).verdict is Verdict.TIMEOUT
    assert running() == []
    assert run("return x * x", body).verdict is Verdict.PASSED
    assert running() == []


def running() -> list[str]:
    """Sandboxes of this process, or of none, that have not ended."""
    found: list[str] = []
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                fields = (folder / "stat").read_text().rsplit(")", 1)[1].split()
                if b"harness.py" in (folder / "cmdline").read_bytes() and (int(fields[1]) in (1, os.getpid())):
                    found.append(folder.name)
            except OSError:
                continue
        if not found:
            break
        time.sleep(0.02)
    return found


def test_printing_for_ever_ends() -> None:
    outcome = run("import os\nwhile True:\n    print('x' * 100_000)\n    os.write(2, b'y' * 100_000)", limits=SHORT)
    assert outcome.verdict is Verdict.TIMEOUT


# --- memory ----------------------------------------------------------------------------------------------------------

HOARD = """
import os, mmap, ctypes, socket, fcntl
kept = []
libc = ctypes.CDLL(None, use_errno=True)
try:
    while len(kept) < {most}:
        {line}
except (OSError, RuntimeError) as error:
    why = error
found = len(kept)
"""
MIB = "b'x' * (1 << 20)"


def hoarded(line: str, most: int = 100_000, limits: Limits = LIMITS) -> int:
    """Return the most of something that a program can have."""
    return int(said(HOARD.format(line=line, most=most), limits))


def test_unmapped_memory_is_limited() -> None:
    assert hoarded("kept.append(os.memfd_create('a'))") == 0
    assert hoarded("kept.append(open('/dev/shm/a', 'wb'))") == 0
    for call in ("shmget(0, 1 << 20, 0o1600)", "semget(0, 32000, 0o1600)", "msgget(0, 0o1600)"):
        line = f"kept.append(libc.{call})\n        if kept.pop() < 0: raise OSError(ctypes.get_errno(), '')"
        line += "\n        kept.append(0)"
        assert hoarded(line) == 0, call
    assert hoarded("kept.append(socket.socket())") == 0


def test_the_folder_holds_no_more_than_its_size() -> None:
    megabytes = hoarded(f"open(str(len(kept)), 'wb').write({MIB}); kept.append(0)")
    assert 8 <= megabytes <= LIMITS.file_bytes >> 20
    one = hoarded(f"kept.append(0); f = open('a', 'ab'); f.write({MIB}); f.flush()")
    assert one <= (LIMITS.file_bytes >> 20) + 1
    # A file that is deleted, and open, or mapped, is one still.
    deleted = f"f = open('a', 'wb'); os.remove('a'); f.write({MIB}); f.flush(); kept.append(f)"
    assert hoarded(deleted) <= LIMITS.file_bytes >> 20
    sparse = "f = os.open(str(len(kept)), os.O_RDWR | os.O_CREAT); os.posix_fallocate(f, 0, 1 << 20); os.close(f); "
    assert hoarded(f"{sparse}kept.append(0)") <= LIMITS.file_bytes >> 20


@pytest.mark.parametrize("line", ["os.mkdir({name})", "os.symlink('a' * 100, {name})", "open({name}, 'w').close()"])
def test_the_folder_holds_a_number_of_files(line: str) -> None:
    assert hoarded(f"{line.format(name='str(len(kept))')}; kept.append(0)") <= sandbox_child.FILES


def test_kernel_memory_of_descriptors_is_bounded() -> None:
    assert hoarded("kept += os.pipe()") <= sandbox_child.DESCRIPTORS
    assert hoarded("kept.append(open('/dev/null'))") <= sandbox_child.DESCRIPTORS
    pair = "kept.append(socket.socketpair()); kept[-1][0].setblocking(False); kept[-1][0].send(b'x' * 10**5)"
    assert hoarded(pair) <= sandbox_child.DESCRIPTORS // 2
    assert hoarded("fcntl.lockf(f := open('a', 'w'), fcntl.LOCK_EX, 1, len(kept)); kept.append(0)") == 0


SHARED = (
    "import mmap\nk = []\ntry:\n    while True: k.append(mmap.mmap(-1, 1 << 20))\nexcept OSError: raise MemoryError"
)
"""Memory like a memfd's."""


@pytest.mark.parametrize(
    "body",
    [
        "return [0] * 10 ** 10",
        "parts = []\nwhile True: parts.append('x' * 100_000)",
        SHARED,
        "return bytearray(1 << 28)",
    ],
)
def test_mapped_memory_is_bounded(body: str) -> None:
    assert run(body).verdict is Verdict.MEMORY


def test_answers_are_bounded() -> None:
    for answer in ("'x' * (17 << 20)", "[0] * (6 << 20)"):
        outcome = run(f"return {answer}")
        assert (outcome.verdict, outcome.detail) == (Verdict.ERROR, "an answer that is too long")
    outcome = run("import itertools\nreturn itertools.count()")
    assert outcome.verdict is Verdict.WRONG
    nested = "r = []\nfor _ in range(10**5): r = [r]\nreturn r"
    assert run(nested).detail.startswith("RecursionError")
    assert run("r = []\nr.append(r)\nreturn r").detail.startswith("RecursionError")


# --- passing without being right -------------------------------------------------------------------------------------

PASSED = """b'{"verdict": "passed", "detail": ""}\\n'"""
EVERYWHERE = f"import os\nfor d in range(4096):\n    try: os.write(d, {PASSED})\n    except OSError: pass\n"
STOPPED, ENDED = "import os\nos.kill(os.getppid(), 19)\n", "os.kill(os.getppid(), 9)"
FORGERIES = {
    "writes a report wherever it can": EVERYWHERE,
    "the same, and ends": EVERYWHERE + "os._exit(0)",
    "the same, with its test stopped, then ended": STOPPED + EVERYWHERE + ENDED,
    "answers beforehand": "import os\nfor d in range(3, 4096):\n    try: os.write(d, b'{\"value\": 5}\\n' * 9)\n"
    "    except OSError: pass",
    "is equal to everything": "class E:\n    def __eq__(self, other): return True\n    __hash__ = None\nreturn E()",
    "is a number that is equal to everything": "class E(int):\n    def __eq__(self, other): return True\nreturn E(0)",
    "takes assertions away": "import builtins\nbuiltins.AssertionError = None\nbuiltins.__debug__ = False",
    "replaces the harness": "import sys\nm = sys.modules['__main__']\nm.judge = m.packed = m.unpacked = lambda *a: 4\n"
    "sys.modules['json'].loads = lambda *a: {}\nreturn 0",
    "leaves": "import os\nos._exit(0)",
    "leaves politely": "raise SystemExit(0)",
    "ends its test": "import os\nos.kill(os.getppid(), 9)",
    "ends everything": "import os\nos.kill(-1, 9)",
}


@pytest.mark.parametrize("body", FORGERIES.values(), ids=FORGERIES)
def test_it_cannot_pass_by_other_means(body: str) -> None:
    assert run(body).verdict in (Verdict.WRONG, Verdict.ERROR)


def test_a_forged_beginning_is_no_verdict() -> None:
    """The module itself forges it, before there is a function."""
    for program in (
        EVERYWHERE,
        EVERYWHERE + "os._exit(0)",
        STOPPED + EVERYWHERE + ENDED,
        "import os\nos._exit(0)",
        "import os\nos.kill(0, 9)",
    ):
        assert run_test(SQUARE, program, LIMITS).verdict is Verdict.ERROR


def test_a_stopped_test_is_a_timeout() -> None:
    assert run("import os\nos.kill(os.getppid(), 19)", limits=SHORT).verdict is Verdict.TIMEOUT


def test_it_cannot_read_its_test() -> None:
    """Neither in its own memory, which began as a copy of the harness's, nor through what is open."""
    mark = "unlikely_" + "name_in_the_test"
    test = UnitTest("", "", f"{mark} = 1\ndef check(f):\n    assert not f(), f()\n", "f")
    program = (
        "import gc, sys, os\n"
        "def f():\n"
        "    mark = 'unlikely_' + 'name_in_the_test'\n"
        "    found = [o for o in gc.get_objects() if isinstance(o, dict) and any(mark in str(v) for v in o.values()\n"
        "             if isinstance(v, (str, bytes, dict)) and v is not o and len(str(v)) < 10**5)]\n"
        "    frame, names = sys._getframe(), []\n"
        "    while frame:\n"
        "        names += [v for v in frame.f_locals.values() if isinstance(v, (str, bytes)) and mark in str(v)]\n"
        "        frame = frame.f_back\n"
        "    readable = []\n"
        "    for d in range(300):\n"
        "        try:\n"
        "            os.set_blocking(d, False)\n"
        "            readable.append(os.read(d, 1000))\n"
        "        except OSError: pass\n"
        "    return [n for n in names if n != mark] or [r for r in readable if mark.encode() in r]\n"
    )
    outcome = run_test(test, program, LIMITS)
    assert outcome.verdict is not Verdict.WRONG, outcome


def test_samples_do_not_see_each_other() -> None:
    run("open('/tmp/kept', 'w').write('x')\nreturn x * x")
    assert said("os.listdir('/tmp')") == "[]"
    assert said("'kept' in __import__('sys').modules or hasattr(__import__('os'), 'kept')") == "False"


def test_it_costs_little() -> None:
    """Some 50 ms, most of them a Python's start; the bound is one for machines under load."""
    run_test(SQUARE, GOOD, DEFAULT_LIMITS)
    assert min(run_test(SQUARE, GOOD, DEFAULT_LIMITS).seconds for _ in range(5)) < 1


def test_there_is_a_sandbox_here() -> None:
    assert unavailable() is None
    assert run_test(SQUARE, GOOD).isolation[0] == "bubblewrap"


def test_a_sandbox_without_its_filter_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever step fails, nothing is run."""
    text = Path(sandbox_child.__file__).read_text(encoding="utf-8")
    for good, bad in (
        ("libseccomp.so.2", "libnone.so"),
        ("nr_inodes=", "nodes="),
        ("capset(header", "capset(bytes(8)"),
    ):
        assert good in text
        (tmp_path / "child.py").write_text(text.replace(good, bad), encoding="utf-8")
        monkeypatch.setattr(sandbox, "_CHILD", tmp_path / "child.py")
        with pytest.raises(DatasetError):
            run_test(SQUARE, GOOD)
