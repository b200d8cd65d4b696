"""The sandbox, with programs that models write on bad days.

The long form runs HumanEval-Infilling's own solutions: FIM_SERVER_HUMAN_EVAL is the folder of its files.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fim_server.datasets import Origin, Sample, UnitTest, read_samples
from fim_server.datasets.python import sandbox
from fim_server.datasets.python.human_eval import build_human_eval
from fim_server.datasets.python.sandbox import Limits, Outcome, Verdict, run_sample, run_test
from fim_server.errors import DatasetError

HUMAN_EVAL = os.environ.get("FIM_SERVER_HUMAN_EVAL")
SQUARE = UnitTest("square", "", "def check(f):\n    assert f(2) == 4\n    assert f(-3) == 9\n", "square")
LIMITS = Limits(seconds=20.0, cpu_seconds=10, memory_bytes=256 << 20)
SHORT = Limits(seconds=1.0, cpu_seconds=1, memory_bytes=256 << 20)
"""For programs that do not end."""
GOOD = "def square(x):\n    return x * x\n"


def run(body: str, before: str = "", limits: Limits = LIMITS) -> Outcome:
    """The outcome of a function with this body."""
    lines = "".join(f"    {line}\n" for line in body.split("\n"))
    return run_test(SQUARE, f"{before}\ndef square(x):\n{lines}", limits)


@pytest.mark.parametrize(
    "program",
    {
        "plain": GOOD,
        "prints": "def square(x):\n    print('x' * 1_000_000)\n    return x * x\n",
        "keeps a file": "def square(x):\n    with open('a', 'w') as f:\n        f.write('x')\n    return x * x\n",
        "dataclass": "from dataclasses import dataclass\n@dataclass\nclass A:\n    b: int\n\n"
        "def square(x):\n    return A(x * x).b\n",
        "threads that go on": "import threading, time\n\ndef square(x):\n    for daemon in (True, False):\n"
        "        threading.Thread(target=time.sleep, args=(60,), daemon=daemon).start()\n    return x * x\n",
        "event loop": "import asyncio\n\nasync def later(x):\n    return x * x\n\n"
        "def square(x):\n    return asyncio.run(later(x))\n",
        "exits at the end": "import atexit, time\natexit.register(time.sleep, 60)\n" + GOOD,
        "replaces what the harness needs": "import os, sys\nos.write = os._exit = sys.exit = None\n" + GOOD,
        "is a script": GOOD + "if __name__ == '__main__':\n    raise SystemExit\n",
        "signal handlers": "import signal\nfor s in (signal.SIGTERM, signal.SIGXCPU, signal.SIGALRM):\n"
        "    signal.signal(s, signal.SIG_IGN)\n" + GOOD,
    }.values(),
)
def test_right_programs_pass(program: str) -> None:
    outcome = run_test(SQUARE, program, LIMITS)
    assert outcome.verdict is Verdict.PASSED, outcome
    assert outcome.passed
    assert outcome.detail == ""


@pytest.mark.parametrize("body", ["return x", "assert False", "pass"])
def test_wrong_programs_are_wrong(body: str) -> None:
    assert run(body).verdict is Verdict.WRONG


@pytest.mark.parametrize(
    ("body", "before", "detail"),
    [
        ("import os\nos._exit(0)", "", "ended before its test did"),
        ("raise SystemExit(0)", "", "SystemExit: 0"),
        ("return x * x", "raise SystemExit", "SystemExit"),
        ("return x * x", "import os\nos._exit(0)", "ended before its test did"),
        ("return x * x", "assert False", "AssertionError"),
        ("return x +", "", "SyntaxError: invalid syntax"),
        ("return y", "", "NameError: name 'y' is not defined"),
        ("return square(x)", "", "RecursionError"),
        ("return int(input())", "", "EOFError"),
        ("import sys\nreturn int(sys.stdin.read())", "", "ValueError"),
        ("raise KeyboardInterrupt", "", "KeyboardInterrupt"),
        ("raise E", "class E(Exception):\n    def __str__(self):\n        raise SystemExit", "E"),
        ("raise ValueError('a\\nb' + 'c' * 10_000)", "", "ValueError: a b"),
        ("import os\nos.abort()", "", "killed by SIGABRT"),
        ("import ctypes\nctypes.string_at(0)", "", "killed by SIGSEGV"),
        ("import os\nos.closerange(0, 1000)\nreturn x * x", "", "ended before its test did"),
        ("return x * x", "square = 1\ndel square, check", "NameError"),
        ("import threading, os\nthreading.Thread(target=os._exit, args=(0,)).start()\nwhile True: pass", "", "ended"),
    ],
)
def test_programs_that_end_otherwise_have_not_passed(body: str, before: str, detail: str) -> None:
    outcome = run(body, before)
    assert outcome.verdict is Verdict.ERROR
    assert outcome.detail.startswith(detail)
    assert len(outcome.detail) <= 300
    assert "\n" not in outcome.detail


@pytest.mark.parametrize(
    "body",
    [
        "while True: pass",
        "import time\ntime.sleep(60)",
        "while True: print('x' * 1_000_000)",
        "return 10 ** 10 ** 10",
        "import signal as s\nfor n in {*s.valid_signals()} - {9, 19}: s.signal(n, s.SIG_IGN)\nwhile True: pass",
        "import os\nos.setsid()\nwhile True: pass",
        "try:\n    while True: pass\nfinally:\n    while True: pass",
    ],
)
def test_programs_that_do_not_end_are_ended(body: str) -> None:
    started = time.monotonic()
    outcome = run(body, limits=SHORT)
    assert outcome.verdict is Verdict.TIMEOUT, outcome
    assert SHORT.seconds <= outcome.seconds <= time.monotonic() - started < SHORT.seconds + 10


@pytest.mark.skipif(sys.platform != "linux", reason="macOS does not limit address space")
@pytest.mark.parametrize(
    "body",
    [
        "return [0] * 10 ** 10",
        "parts = []\nwhile True: parts.append('x' * 100_000)",
        "global kept\nkept = []\nwhile True: kept.append(bytes(100_000))",
    ],
)
def test_programs_that_take_all_memory_are_ended(body: str) -> None:
    assert run(body).verdict is Verdict.MEMORY


def test_files_have_a_largest_size() -> None:
    outcome = run("with open('a', 'wb') as f:\n    while True: f.write(bytes(1_000_000))")
    assert outcome.verdict is Verdict.ERROR
    assert "File too large" in outcome.detail or "No space left" in outcome.detail


def test_the_folder_and_the_environment_are_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIM_SERVER_SECRET", "1")
    outcome = run("import os\nraise ValueError(sorted(os.environ), os.listdir(), os.getcwd() == os.environ['HOME'])")
    names = "['HOME', 'LC_CTYPE', 'PYTHONHASHSEED', 'PYTHONUTF8', 'TMPDIR']"
    assert outcome.detail.replace("'LC_CTYPE', ", "") == f"ValueError: ({names}, [], True)".replace("'LC_CTYPE', ", "")


def test_folders_are_gone_afterwards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    run("open('a', 'w').write('x')\nreturn x * x")
    run("open('a', 'w').write('x')\nwhile True: pass", limits=SHORT)
    assert list(tmp_path.iterdir()) == []


def test_sets_are_gone_through_in_one_order() -> None:
    body = "raise ValueError(list({'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'}))"
    assert len({run(body).detail for _ in range(3)}) == 1


def test_there_is_no_network() -> None:
    for family, kind in (("AF_INET", "SOCK_STREAM"), ("AF_INET", "SOCK_DGRAM"), ("AF_INET6", "SOCK_STREAM")):
        outcome = run(
            f"import socket\ns = socket.socket(socket.{family}, socket.{kind})\n"
            f"s.settimeout(1)\ns.connect(({'::1' if family == 'AF_INET6' else '127.0.0.1'!r}, 9))\nreturn x * x"
        )
        assert outcome.verdict is Verdict.ERROR
        assert outcome.detail.split(":")[0] in ("PermissionError", "OSError", "ModuleNotFoundError", "ImportError")


PROCESSES = {
    "fork": "import os\nos.fork()\nreturn x * x",
    "subprocess": "import subprocess\nsubprocess.run(['ls'])\nreturn x * x",
    "multiprocessing": "from multiprocessing import Process\np = Process(target=print)\np.start()\nreturn x * x",
    # Signal 0 would reach the same processes as 9 does, and leave them alive if this fails.
    "signal to the parent": "import os\nos.kill(os.getppid(), 0)\nreturn x * x",
    "signal to everything": "import os\nos.kill(-1, 0)\nreturn x * x",
    "signal to the group": "import os\nos.killpg(0, 0)\nreturn x * x",
}


@pytest.mark.parametrize("body", PROCESSES.values(), ids=PROCESSES)
def test_processes_are_neither_started_nor_signalled(body: str) -> None:
    outcome = run(body)
    if "system calls" in outcome.isolation or "python alone" in outcome.isolation:
        assert outcome.verdict is Verdict.ERROR
        assert outcome.detail.split(":")[0] in (
            *("BlockingIOError", "PermissionError", "AttributeError", "ModuleNotFoundError", "ImportError"),
        )


def test_a_fork_bomb_is_ended() -> None:
    outcome = run(
        "import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        pass", limits=SHORT
    )
    if "system calls" in outcome.isolation:
        assert outcome.verdict is Verdict.TIMEOUT


def test_threads_have_a_largest_number() -> None:
    outcome = run("import threading, time\nwhile True:\n    threading.Thread(target=time.sleep, args=(60,)).start()")
    assert outcome.verdict in (Verdict.ERROR, Verdict.MEMORY)


def test_other_files_are_read_only(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("kept", encoding="utf-8")
    outcome = run(f"import os\nos.remove({str(path)!r})\nreturn x * x")
    if "read-only files" in outcome.isolation:
        assert outcome.verdict is Verdict.ERROR
        assert "Read-only file system" in outcome.detail
        assert path.read_text(encoding="utf-8") == "kept"


def test_what_is_written_to_the_harness_says_nothing() -> None:
    """Without the run's number, that is; and without end, it is not read for ever."""
    lines = "'passed\\nverdict passed\\n' + '0' * 32 + ' verdict passed\\n'"
    for number, text, verdict in ((1, f"({lines}).encode()", Verdict.WRONG), (100, "bytes(10_000)", Verdict.ERROR)):
        outcome = run(
            f"import os\nfor d in {number} * [*range(3, 300)]:\n    try: os.write(d, {text})\n    except OSError: pass"
        )
        assert outcome.verdict is verdict, outcome


WITHOUT = """
import sys
sys.path.insert(0, {folder!r})
import sandbox_child
{change}
sandbox_child.main()
"""


def without(change: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have programs run where the system does not permit something."""
    child = folder / "child.py"
    child.write_text(WITHOUT.format(folder=str(Path(sandbox.__file__).parent), change=change), encoding="utf-8")
    monkeypatch.setattr(sandbox, "_CHILD", child)


NO_NAMESPACES = "sandbox_child.enter_namespaces = lambda folder, size: []"


@pytest.mark.parametrize(
    ("change", "isolation"),
    [("sandbox_child.libc = None", ("python alone",)), (NO_NAMESPACES, ("system calls",))],
    ids=["alone", "without namespaces"],
)
def test_with_less_help_of_the_system(
    change: str, isolation: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "system calls" in isolation and "system calls" not in run("return x").isolation:
        pytest.skip("there is no filter of system calls here")
    without(change, tmp_path, monkeypatch)
    assert run("return x * x").isolation == isolation
    assert run("return x * x").passed
    assert run("return x").verdict is Verdict.WRONG
    assert run("import os\nos._exit(0)").verdict is Verdict.ERROR
    for body in PROCESSES.values():
        assert run(body).verdict is Verdict.ERROR, body
    test_there_is_no_network()
    test_programs_that_do_not_end_are_ended("import time\ntime.sleep(60)")
    test_programs_that_do_not_end_are_ended("import os\nos.setsid()\nwhile True: pass")


def test_with_namespaces_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if "namespaces" not in run("return x").isolation:
        pytest.skip("there are no namespaces here")
    without("sandbox_child.drop_privileges = lambda: []", tmp_path, monkeypatch)
    assert run("return x * x").passed
    test_there_is_no_network()
    test_programs_that_do_not_end_are_ended("import os\nos.setsid()\nos.fork()\nwhile True: pass")


@pytest.mark.parametrize("child", ["raise SystemExit", "import sys; sys.stdin.read(); raise SystemExit"])
def test_a_sandbox_that_does_not_start_is_no_verdict(
    child: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "child.py").write_text(child, encoding="utf-8")
    monkeypatch.setattr(sandbox, "_CHILD", tmp_path / "child.py")
    for program in (GOOD, GOOD + "#" * 1_000_000):  # less and more than a pipe holds
        with pytest.raises(DatasetError, match="does not start"):
            run_test(SQUARE, program, LIMITS)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_nothing_runs_on_when_the_one_who_runs_it_is_killed(tmp_path: Path) -> None:
    code = (
        "from fim_server.datasets.python.sandbox import *\nfrom fim_server.datasets import UnitTest\n"
        "run_test(UnitTest('', '', '', 'f'), 'import time\\ntime.sleep(60)', Limits(seconds=60))"
    )
    with subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "TMPDIR": str(tmp_path)}) as process:
        children: set[int] = set()
        deadline = time.monotonic() + 20
        while len(children) < 3 and time.monotonic() < deadline:
            children |= descendants(process.pid)
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
    assert len(children) == 3
    deadline = time.monotonic() + 10
    while any(Path(f"/proc/{child}").exists() for child in children) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not [child for child in children if Path(f"/proc/{child}").exists()]


def descendants(process: int) -> set[int]:
    found: set[int] = set()
    for listed in Path(f"/proc/{process}/task").glob("*/children"):
        for child in map(int, listed.read_text().split()):
            found |= {child} | descendants(child)
    return found


def test_samples_bring_their_test() -> None:
    origin = Origin("s", None, None, "a.py", None, "00")
    sample = Sample("a", "line", "line", "def square(x):\n    ", "return x * x", "\n", "python", origin, SQUARE)
    with ThreadPoolExecutor(2) as threads:
        outcomes = list(
            threads.map(lambda middle: run_sample(sample, middle), ["return x * x", "return x", "return ("])
        )
    assert [outcome.verdict for outcome in outcomes] == [Verdict.PASSED, Verdict.WRONG, Verdict.ERROR]
    with pytest.raises(DatasetError, match="has no test"):
        run_sample(Sample.from_json({**sample.to_json(), "test": None}), "")


@pytest.mark.skipif(HUMAN_EVAL is None, reason="FIM_SERVER_HUMAN_EVAL does not name the folder of HumanEval-Infilling")
def test_own_solutions_pass(tmp_path: Path) -> None:
    """One hole of every task in the long form, of every fourth in the short one. Hardly any passes left empty."""
    build_human_eval(Path(str(HUMAN_EVAL)), tmp_path / "he.jsonl", ["random-span-light"])
    every = 1 if os.environ.get("FIM_SERVER_LONG") == "1" else 4
    samples = list(read_samples(tmp_path / "he.jsonl"))[::every]
    assert len(samples) == 164 // every
    with ThreadPoolExecutor(2) as threads:
        outcomes = list(threads.map(lambda sample: run_sample(sample, sample.middle), samples))
        empty = list(threads.map(lambda sample: run_sample(sample, "\n"), samples))
    assert [(sample.id, outcome) for sample, outcome in zip(samples, outcomes, strict=True) if not outcome.passed] == []
    assert sum(outcome.passed for outcome in empty) < len(samples) / 10
