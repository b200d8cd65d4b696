"""The sandbox, with programs that models write on bad days; each in it, where there is one, and without.

The long form runs HumanEval-Infilling's own solutions: FIM_SERVER_HUMAN_EVAL is the folder of its files.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fim_server.datasets import Origin, Sample, UnitTest, read_samples
from fim_server.datasets.python import bubblewrap, sandbox
from fim_server.datasets.python.human_eval import build_human_eval
from fim_server.datasets.python.sandbox import Verdict, run_sample, run_test
from fim_server.errors import DatasetError
from support.evaluation.sandbox_programs import GOOD, LIMITS, SHORT, SQUARE, needs_sandbox, run, said

HUMAN_EVAL = os.environ.get("FIM_SERVER_HUMAN_EVAL")
MODES = [pytest.param(True, id="sandbox", marks=needs_sandbox), pytest.param(False, id="unsafe")]


@pytest.fixture(autouse=True, params=MODES)
def sandboxed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Return whether programs run in the sandbox, or where there is none."""
    if not request.param:
        monkeypatch.setattr(sandbox, "unavailable", lambda: "none wanted")
    return bool(request.param)


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
    outcome = run_test(SQUARE, program, LIMITS, unsafe=True)
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
def test_other_ends_of_a_program_are_errors(body: str, before: str, detail: str) -> None:
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
    assert said("sorted({*os.environ} - {'LC_CTYPE', 'PWD'}), os.listdir(), os.getcwd() == os.environ['HOME']") == (
        "(['HOME', 'PYTHONHASHSEED', 'PYTHONUTF8', 'TMPDIR'], [], True)"
    )


def test_folders_are_gone_afterwards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    run("open('a', 'w').write('x')\nreturn x * x")
    run("open('a', 'w').write('x')\nwhile True: pass", limits=SHORT)
    assert list(tmp_path.iterdir()) == []


def test_sets_have_a_fixed_order() -> None:
    assert len({said("list({'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'})") for _ in range(3)}) == 1


# --- what goes between program and test -----------------------------------------------------------------------------

VALUES = [
    *(
        "None",
        "True",
        "-1",
        "9223372036854775807",
        "9223372036854775808",
        "10**4000",
        "1.5",
        "-0.0",
        "float('inf')",
        "2j",
    ),
    *(
        "'a\\nb'",
        "'\\ud800'",
        "b'\\0'",
        "bytearray(b'a')",
        "[]",
        "[1,[2]]",
        "(1,)",
        "()",
        "{}",
        "{1:(2,)}",
        "{(1,2):[]}",
    ),
    *("{1}", "set()", "frozenset({2})", "range(1,9,2)"),
]


def test_values_arrive_as_they_are() -> None:
    values = ", ".join(VALUES)
    test = f"def check(f):\n    for n, v in enumerate([{values}]):\n"
    test += "        for found in (f(v), f(n, True)):\n            assert repr(found) == repr(v), (found, v)\n"
    program = f"def f(x, own=False):\n    return [{values}][x] if own else x\n"
    outcome = run_test(UnitTest("", "", test, "f"), program, LIMITS, unsafe=True)
    assert outcome.passed, outcome


@pytest.mark.parametrize(
    ("program", "test"),
    [
        ("from collections import Counter as f", "f('aab') == {'a': 2, 'b': 1}"),
        ("from collections import OrderedDict as f", "f() == {}"),
        ("from collections import namedtuple\nN = namedtuple('N', 'a')\ndef f(): return N(1)", "f() == (1,)"),
        ("from enum import IntEnum\nclass E(IntEnum):\n    A = 3\ndef f(): return E.A", "f() == 3"),
        ("from fractions import Fraction\ndef f(): return Fraction(1, 2)", "f() == 0.5"),
        ("from decimal import Decimal\ndef f(): return Decimal('0.5')", "f() == 0.5"),
        ("def f(): return (c for c in 'ab')", "list(f()) == ['a', 'b'] and f() != ['a', 'b']"),
        ("def f(): return map(str, [1])", "sorted(f()) == ['1']"),
        ("def f(): return {1: 2}.keys()", "f() == {1} and len(f()) == 1"),
        ("def f(): return reversed([1, 2])", "tuple(f()) == (2, 1)"),
        ("from collections import deque\ndef f(): return deque()", "not f() and len(f()) == 0 and f() != []"),
        ("def f(*a, k): return a, k", "f(1, 2, k='3') == ((1, 2), '3')"),
    ],
)
def test_values_of_other_types_are_what_they_are_equal_to(program: str, test: str) -> None:
    outcome = run_test(UnitTest("", "", f"def check(f):\n    assert {test}\n", "f"), program, LIMITS, unsafe=True)
    assert outcome.passed, outcome


def test_a_test_may_catch_what_the_program_raises() -> None:
    test = (
        "def check(f):\n    try:\n        f(1)\n    except ZeroDivisionError as e:\n        assert 'zero' in str(e)\n"
    )
    test += "    else:\n        assert False\n"
    assert run_test(UnitTest("", "", test, "f"), "def f(x): return x / 0", LIMITS, unsafe=True).passed
    assert run_test(UnitTest("", "", test, "f"), "def f(x): return x", LIMITS, unsafe=True).verdict is Verdict.WRONG


def test_a_test_that_catches_everything_does_not_pass_a_program_that_ended() -> None:
    test = "def check(f):\n    try:\n        f(1)\n    except BaseException:\n        pass\n"
    outcome = run_test(UnitTest("", "", test, "f"), "import os\ndef f(x): os._exit(0)", LIMITS, unsafe=True)
    assert (outcome.verdict, outcome.detail) == (Verdict.ERROR, "ended before its test did")


def test_a_test_may_use_names_of_the_sample() -> None:
    test = UnitTest("", "", "def check(g):\n    assert g(helper(2)) == f(4) == 5\n", "f")
    reference = "def helper(x): return x * 2\ndef f(x): return 0\n"
    assert run_test(test, "def f(x): return x + 1", LIMITS, reference=reference, unsafe=True).passed


# --- around it -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("child", "message"),
    [
        ("raise SystemExit", "do not start"),
        ("import sys; sys.stdin.read(); raise SystemExit", "do not start"),
        ("raise OSError(1, 'no such right')", "no such right"),
    ],
)
def test_a_sandbox_that_does_not_start_is_no_verdict(
    child: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "child.py").write_text(child, encoding="utf-8")
    monkeypatch.setattr(sandbox, "_CHILD", tmp_path / "child.py")
    for program in (GOOD, GOOD + "#" * 1_000_000):  # less and more than a pipe holds
        with pytest.raises(DatasetError, match=message):
            run_test(SQUARE, program, LIMITS, unsafe=True)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_no_process_outlives_a_killed_runner(tmp_path: Path, sandboxed: bool) -> None:
    code = (
        "from fim_server.datasets.python import sandbox\nfrom fim_server.datasets import UnitTest\n"
        f"sandbox.unavailable = lambda: {None if sandboxed else 'x'!r}\n"
        "sandbox.run_test(UnitTest('', '', 'def check(f): pass', 'f'), 'import time\\ntime.sleep(60)', "
        "sandbox.Limits(seconds=60), unsafe=True)"
    )
    expected = 4 if sandboxed else 2  # bubblewrap outside, bubblewrap inside, and the two of the harness
    with subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "TMPDIR": str(tmp_path)}) as process:
        children: set[int] = set()
        deadline = time.monotonic() + 20
        while len(children) < expected and time.monotonic() < deadline:
            children |= descendants(process.pid)
            time.sleep(0.02)
        process.kill()
    assert len(children) >= expected
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
            threads.map(
                lambda middle: run_sample(sample, middle, unsafe=True), ["return x * x", "return x", "return ("]
            )
        )
    assert [outcome.verdict for outcome in outcomes] == [Verdict.PASSED, Verdict.WRONG, Verdict.ERROR]
    with pytest.raises(DatasetError, match="has no test"):
        run_sample(Sample.from_json({**sample.to_json(), "test": None}), "")


def test_outcomes_name_their_isolation(sandboxed: bool) -> None:
    isolation = run("return x * x").isolation
    assert isolation == (("bubblewrap", "cgroup")[: 1 + bool(bubblewrap.scope())] if sandboxed else ())


@pytest.mark.skipif(HUMAN_EVAL is None, reason="FIM_SERVER_HUMAN_EVAL does not name the folder of HumanEval-Infilling")
def test_own_solutions_pass(tmp_path: Path) -> None:
    """One hole of every task in the long form, of every fourth in the short one. Hardly any passes left empty."""
    build_human_eval(Path(str(HUMAN_EVAL)), tmp_path / "he.jsonl", ["random-span-light"])
    every = 1 if os.environ.get("FIM_SERVER_LONG") == "1" else 4
    samples = list(read_samples(tmp_path / "he.jsonl"))[::every]
    assert len(samples) == 164 // every
    with ThreadPoolExecutor(2) as threads:
        outcomes = list(threads.map(lambda sample: run_sample(sample, sample.middle, unsafe=True), samples))
        empty = list(threads.map(lambda sample: run_sample(sample, "\n", unsafe=True), samples))
    assert [(sample.id, outcome) for sample, outcome in zip(samples, outcomes, strict=True) if not outcome.passed] == []
    assert sum(outcome.passed for outcome in empty) < len(samples) / 10
