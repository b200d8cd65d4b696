"""The process of a command: what it writes to, what it reads that never ends, and how it is interrupted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from fim_server.language.limited_files import MOST_FILE_BYTES, MOST_LINE_BYTES
from support.interrupts import heed_interrupts
from support.unix import make_pipe

COMMAND = [sys.executable, "-m", "fim_server"]
SECONDS = 60
"""After which a process that should have ended fails a test."""

posix = pytest.mark.skipif(os.name != "posix", reason="signals, devices and a shell's syntax")


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    path = tmp_path / "broken.py"
    path.write_text("while :\n    pass\n", encoding="utf-8")
    return path


def said(errors: str) -> str:
    """Standard error without progress, which a slow machine has time to say."""
    return "".join(line for line in errors.splitlines(keepends=True) if not line.endswith(" ...\n"))


def test_the_hub_library_sends_no_telemetry() -> None:
    script = """
from fim_server.__main__ import run
run(["languages"])
from huggingface_hub import constants
raise SystemExit(not constants.HF_HUB_DISABLE_TELEMETRY)
"""
    environment = {name: value for name, value in os.environ.items() if "TELEMETRY" not in name}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, stdout=subprocess.DEVNULL, timeout=SECONDS, check=False
    )
    assert done.returncode == 0


# --- answers to closed pipes ---------------------------------------------------------------------------------------


def answering(broken: Path) -> list[list[str]]:
    """Commands that have something to write, one of each kind."""
    return [
        ["languages"],
        ["--version"],
        ["check", str(broken)],
        ["check", str(broken), "--json"],
        ["explain", str(broken), "2:5"],
        ["models", "list"],
        ["--help"],
    ]


@posix
@pytest.mark.parametrize("number", range(7))
def test_a_closed_pipe_is_no_verdict(number: int, broken: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as output:
        process = subprocess.run(
            [*COMMAND, *answering(broken)[number]],
            stdout=output,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=SECONDS,
        )
    assert (process.returncode, said(process.stderr)) == (2, "fim-server: standard output: broken pipe\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("number", range(7))
def test_a_full_disk_is_no_verdict(number: int, broken: Path) -> None:
    with Path("/dev/full").open("w") as full:
        process = subprocess.run(
            [*COMMAND, *answering(broken)[number]],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=SECONDS,
        )
    assert (process.returncode, said(process.stderr)) == (2, "fim-server: standard output: no space left on device\n")


def in_shell(script: str) -> tuple[int, str]:
    """Exit status and standard error."""
    process = subprocess.run(["sh", "-c", script], stderr=subprocess.PIPE, text=True, check=False, timeout=SECONDS)
    return process.returncode, said(process.stderr)


@posix
def test_a_closed_standard_output_is_no_verdict(broken: Path) -> None:
    command = f"exec '{sys.executable}' -m fim_server"
    assert in_shell(f"{command} check '{broken}' >&-") == (2, "fim-server: standard output: closed\n")
    assert in_shell(f"{command} languages >&-") == (2, "fim-server: standard output: closed\n")
    assert in_shell(f"{command} --help >&-") == (2, "fim-server: standard output: closed\n")
    assert in_shell(f"{command} serve >&-") == (2, "fim-server: standard input or output is closed\n")


@posix
def test_a_file_that_parses_needs_no_output(tmp_path: Path) -> None:
    """Its verdict is the exit status alone."""
    path = tmp_path / "good.py"
    path.write_text("a = 1\n", encoding="utf-8")
    assert in_shell(f"exec '{sys.executable}' -m fim_server check '{path}' >&-") == (0, "")


@posix
def test_a_closed_standard_input_is_bad_input() -> None:
    script = f"exec '{sys.executable}' -m fim_server check - --language python <&-"
    assert in_shell(script) == (2, "fim-server: standard input: closed\n")


@posix
def test_errors_never_go_to_standard_output() -> None:
    script = f"'{sys.executable}' -m fim_server check missing.py 2>&-"
    process = subprocess.run(["sh", "-c", script], stdout=subprocess.PIPE, text=True, check=False, timeout=SECONDS)
    assert (process.returncode, process.stdout) == (2, "")


# --- what never ends -----------------------------------------------------------------------------------------------

ENDLESS = {
    "check": ["check", "/dev/zero", "--language", "python"],
    "explain": ["explain", "/dev/zero", "1:1", "--language", "python"],
    "complete": ["complete", "/dev/zero", "1:1", "--language", "python"],
    "standard input": ["check", "-", "--language", "python"],
    "token": ["serve", "--tcp", "1", "--token-file", "/dev/zero"],
    "samples": ["dataset", "show", "/dev/zero"],
    "measured samples": ["eval", "run", "--data", "/dev/zero", "--out", "{tmp}/run"],
    "drawn samples": ["dataset", "draw", "/dev/zero", "--count", "1", "--out", "{tmp}/out.jsonl"],
}
LINES = {"samples", "measured samples"}


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no device that never ends")
@pytest.mark.parametrize("case", ENDLESS)
def test_endless_files_are_refused(case: str, tmp_path: Path) -> None:
    with Path("/dev/zero").open("rb") as zeros:
        process = subprocess.run(
            [*COMMAND, *(argument.format(tmp=tmp_path) for argument in ENDLESS[case])],
            stdin=zeros,
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS,
        )
    assert (process.returncode, process.stdout) == (2, "")
    errors = said(process.stderr)
    assert errors.count("\n") == 1
    if case == "drawn samples":
        assert errors == "fim-server: /dev/zero: not a regular file\n"
    else:
        assert str(MOST_LINE_BYTES if case in LINES else MOST_FILE_BYTES) in errors


@posix
def test_a_pipe_that_never_ends_is_refused(tmp_path: Path) -> None:
    fifo = tmp_path / "endless.py"
    make_pipe(fifo)
    process = subprocess.Popen([*COMMAND, "check", str(fifo)], stderr=subprocess.PIPE, text=True)

    def write() -> None:
        try:
            with fifo.open("wb") as pipe:
                while True:
                    pipe.write(b"a = 1\n" * 10_000)
        except BrokenPipeError:
            pass

    threading.Thread(target=write, daemon=True).start()
    _, errors = process.communicate(timeout=SECONDS)
    assert process.returncode == 2
    assert said(errors) == f"fim-server: {fifo}: larger than {MOST_FILE_BYTES} bytes\n"


# --- interrupts ----------------------------------------------------------------------------------------------------


def interrupted(arguments: list[str], is_at_work: Callable[[subprocess.Popen[str]], None]) -> tuple[int, str, float]:
    """Exit status, standard error, and the seconds that a process takes to end once it is interrupted."""
    process = subprocess.Popen(
        arguments,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heed_interrupts,
    )
    try:
        is_at_work(process)
        process.send_signal(signal.SIGINT)
        began = time.monotonic()
        process.wait(timeout=SECONDS)
        seconds = time.monotonic() - began
        assert process.stderr is not None
        return process.returncode, said(process.stderr.read()), seconds
    finally:
        process.kill()
        process.wait()


EARLY = """
import sys, time
class Engine:
    def find_spec(self, name, *_):
        if name == "fim_server._core":
            print("at work", file=sys.stderr, flush=True)
            while True:
                time.sleep(0.01)
sys.meta_path.insert(0, Engine())
sys.argv[1:] = ["languages"]
from fim_server.__main__ import run
run()
"""


@posix
def test_an_interrupt_while_the_program_is_still_being_loaded() -> None:
    """Interrupts are heeded from the program's own first lines on, before it loads the engine."""

    def is_loading(process: subprocess.Popen[str]) -> None:
        assert process.stderr is not None
        assert any(line == "at work\n" for line in process.stderr)  # a busy machine tells of its progress before

    assert interrupted([sys.executable, "-c", EARLY], is_loading)[:2] == (130, "")


@posix
def test_an_interrupt_while_a_pipe_is_waited_for(tmp_path: Path) -> None:
    fifo = tmp_path / "waiting.py"
    make_pipe(fifo)
    held = []

    def opened(_: object) -> None:
        held.append(fifo.open("w"))  # opens when the command does, which then waits for text that never comes

    status, errors, _ = interrupted([*COMMAND, "check", str(fifo)], opened)
    held[0].close()
    assert (status, errors) == (130, "")


SCRIPTED = """
import sys, time
from fim_server import __main__
from fim_server.cli import program
{replaced}
sys.argv[1:] = {arguments!r}
__main__.run()
"""

AT_WORK = """
import ctypes
def at_work(*_, **__):
    print("at work", file=sys.stderr, flush=True)
{work}
"""

WORK = {
    # A lock that is waited for in C: Python's own lock is free, as the engine and the runtimes leave it, and no signal
    # comes through.
    "native code": """
    mutex, library = ctypes.create_string_buffer(64), ctypes.CDLL(None)
    while True:
        library.pthread_mutex_lock(mutex)
""",
    "Python": """
    while True:
        time.sleep(0.01)
""",
    "a library that swallows it": """
    while True:
        try:
            time.sleep(0.01)
        except BaseException:
            pass
""",
}


@pytest.mark.skipif(sys.platform != "linux", reason="a mutex of zeros is one of Linux's")
@pytest.mark.parametrize("work", WORK)
@pytest.mark.parametrize("place", ["model", "engine"])
def test_an_interrupt_ends_a_command_at_once(work: str, place: str, broken: Path) -> None:
    body = AT_WORK.format(work=WORK[work])
    if place == "model":
        body += "import fim_server.models.load\nfim_server.models.load.load_model = at_work\n"
        arguments = ["complete", str(broken), "2:5"]
    else:
        body += "from fim_server.language import Language\nLanguage.open = at_work\n"
        arguments = ["check", str(broken)]

    def is_at_work(process: subprocess.Popen[str]) -> None:
        assert process.stderr is not None
        assert process.stderr.readline() == "at work\n"
        time.sleep(0.5)  # until it is

    script = SCRIPTED.format(replaced=body, arguments=arguments)
    status, errors, seconds = interrupted([sys.executable, "-c", script], is_at_work)
    assert (status, errors) == (130, "")
    assert seconds < 10


@posix
@pytest.mark.parametrize("arguments", [["serve"], ["serve", "--tcp", "127.0.0.1:0"]], ids=["stdio", "tcp"])
def test_an_interrupt_ends_a_server(arguments: list[str]) -> None:
    def is_serving(process: subprocess.Popen[str]) -> None:
        assert process.stdin is not None
        assert process.stderr is not None
        if len(arguments) == 1:
            process.stdin.write("Content-Length: 41\r\n\r\n" + '{"jsonrpc":"2.0","id":1,"method":"hello"}\n')
            process.stdin.flush()
        for line in process.stderr:
            if "listening on" in line or "Sending data" in line:
                break

    status, errors, seconds = interrupted([*COMMAND, *arguments, "--log-level", "debug"], is_serving)
    assert status == 130
    assert "Traceback" not in errors
    assert seconds < 10


@posix
def test_ignored_interrupts_stay_ignored(broken: Path) -> None:
    script = "from fim_server import __main__; import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); "
    script += "__main__.heed_interrupts(); print(signal.getsignal(signal.SIGINT) is signal.SIG_IGN)"
    process = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert process.stdout == "True\n"
