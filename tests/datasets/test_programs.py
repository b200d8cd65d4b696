"""Whole programs on inputs with known outputs, and calls beside the ones that stood there."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from fim_server.datasets import Case, ProgramTest
from fim_server.datasets.calls import is_same_call
from fim_server.datasets.programs import running
from fim_server.datasets.programs.outputs import is_right
from fim_server.datasets.programs.running import RUNNING, missing_tool, run_program
from fim_server.datasets.programs.toolchains import toolchains
from fim_server.datasets.python import sandbox
from fim_server.datasets.python.sandbox import Verdict
from fim_server.errors import DatasetError
from support.evaluation.sandbox_programs import needs_sandbox

SUM = ProgramTest((Case("1 2\n", ("3",)), Case("5 6", ("0", "11\n"))))
ADDS = "import sys\na, b = map(int, input().split())\nprint(a + b)\n"
JAVA = """\
import java.util.Scanner;
class Pair {}
%s class Sum {
    static class Inner {}
    public static void main(String[] args) throws Exception {
        Scanner in = new Scanner(System.in);
        int a = in.nextInt();
        %s
        System.out.println(a + in.nextInt());
    }
}
"""
CPP = '#include <cstdio>\nint main() { int a, b; scanf("%d %d", &a, &b); printf("%d", a + b); }\n'
FORK = 'new ProcessBuilder(System.getProperty("java.home") + "/bin/java").start();'

MODES = [pytest.param(True, id="sandbox", marks=needs_sandbox), pytest.param(False, id="unsafe")]


@pytest.fixture(params=MODES)
def sandboxed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Return whether programs run in the sandbox, or where there is none."""
    if not request.param:
        monkeypatch.setattr(sandbox, "unavailable", lambda: "none wanted")
    return bool(request.param)


def needs(language: str) -> pytest.MarkDecorator:
    """Skip where the tools of a language are missing, and in the short tests: compilers take seconds."""
    missing = missing_tool(language)
    if missing is None and "FIM_SERVER_LONG" not in os.environ:
        missing = "FIM_SERVER_LONG"
    return pytest.mark.skipif(missing is not None, reason=f"needs {missing}")


@pytest.mark.usefixtures("sandboxed")
@pytest.mark.parametrize(
    ("program", "verdict", "detail"),
    [
        (ADDS + "exit()\n", Verdict.PASSED, ""),
        ("print(3)\n", Verdict.WRONG, "another output"),
        ("print(1 +\n", Verdict.ERROR, "SyntaxError: '(' was never closed"),
        (ADDS + "sys.exit(3)\n", Verdict.ERROR, "exit status 3"),
        ("bytearray(1 << 33)\n", Verdict.MEMORY, "MemoryError"),
        ("import os\nos.kill(os.getpid(), 9)\n", Verdict.ERROR, "killed by SIGKILL"),
    ],
)
def test_python_programs(program: str, verdict: Verdict, detail: str) -> None:
    outcome = run_program("python", program, SUM, unsafe=True)
    assert (outcome.verdict, outcome.detail) == (verdict, detail)


@pytest.mark.usefixtures("sandboxed")
def test_programs_that_do_not_end() -> None:
    short = replace(RUNNING, seconds=0.5)
    assert run_program("python", "while True: pass\n", SUM, short, unsafe=True).verdict is Verdict.TIMEOUT


@needs_sandbox
@pytest.mark.parametrize(
    "attempt",
    [
        "import os\nos.fork()\n",
        "import subprocess\nsubprocess.run([sys.executable])\n",
        "import socket\nsocket.socket()\n",
        "open('/etc/passwd')\n",
        f"open({str(running.__file__)!r})\n",
        "open('/proc/self/mem')\n",
        "import os\nos.write(3, b'x')\n",
    ],
)
def test_programs_reach_nothing_outside(attempt: str) -> None:
    outcome = run_program("python", ADDS + attempt, SUM)
    assert (outcome.verdict, outcome.isolation[0]) == (Verdict.ERROR, "bubblewrap")


@pytest.mark.usefixtures("sandboxed")
@needs("java")
@pytest.mark.parametrize("public", ["public", "final", "public final"])
def test_java_programs(public: str) -> None:
    assert run_program("java", JAVA % (public, ""), SUM, unsafe=True).verdict is Verdict.PASSED


@needs_sandbox
@needs("java")
def test_java_programs_start_no_process() -> None:
    assert run_program("java", JAVA % ("", FORK), SUM).verdict is Verdict.ERROR
    outcome = run_program("java", JAVA % ("", "int a;"), SUM)
    assert outcome.verdict is Verdict.ERROR
    assert outcome.detail.startswith("does not compile")


@pytest.mark.usefixtures("sandboxed")
@needs("cpp")
def test_cpp_programs() -> None:
    assert run_program("cpp", CPP, SUM, unsafe=True).verdict is Verdict.PASSED


def test_the_class_that_java_files_are_named_after() -> None:
    java = toolchains()["java"]
    names = [
        "public final class A {}",
        "class A { public class B {} }",
        "class A {}\n\tpublic enum C {}",
        "// public\n",
    ]
    assert [java.words([java.file], text) for text in names] == [["A.java"], ["Main.java"], ["C.java"], ["Main.java"]]


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DatasetError, match="cobol: programs cannot be run, no tools are known"):
        run_program("cobol", "", SUM)
    monkeypatch.setattr(sandbox, "unavailable", lambda: "no bubblewrap")
    with pytest.raises(DatasetError, match="no sandbox here: no bubblewrap"):
        run_program("python", "", SUM)
    monkeypatch.setenv("PATH", "")
    assert missing_tool("java") == "javac is not installed"


@pytest.mark.parametrize(
    ("output", "expected", "right"),
    [
        ("1 2 \n3\n\n", "1 2\n3", True),
        ("1\n2", "1 2", True),
        ("YES", "Yes", True),
        ("Yes", "No", False),
        ("maybe", "Maybe", False),
        ("0.50", "0.5", True),
        ("0.5000000000001", "0.5", True),
        ("0.500001", "0.5", False),
        ("9" * 100, "9" * 99 + "8", False),
        ("1 2", "1", False),
        ("", "", True),
        ("nan", "nan", True),
        ("1e999999999", "1", False),
    ],
)
def test_outputs(output: str, expected: str, right: bool) -> None:
    assert is_right(output, expected) is right


@pytest.mark.parametrize(
    ("text", "reference", "language", "same"),
    [
        ("f( a,\n b )", "f(a, b)", "java", True),
        ("g(a, b)", "f(a, b)", "java", False),
        ("g(a, b)", "f(a, b)", "python", True),  # the benchmark compares the arguments alone
        ("f(y=1, x=2)", "f(x=2, y=1)", "python", True),
        ("f(2, y=1)", "f(x=2, y=1)", "python", False),
        ("f(a)[0]", "f(a)", "python", False),
        ("f(", "f(a)", "python", False),
        ("f(" * 5000, "f(a)", "python", False),
    ],
)
def test_calls(text: str, reference: str, language: str, same: bool) -> None:
    assert is_same_call(text, reference, language) is same


@needs_sandbox
def test_a_program_that_kills_its_harness_has_not_passed() -> None:
    killing = "import os\nfor number in range(1, os.getpid()):\n    try: os.kill(number, 9)\n    except OSError: pass\n"
    assert run_program("python", ADDS + killing, SUM).verdict is Verdict.ERROR
