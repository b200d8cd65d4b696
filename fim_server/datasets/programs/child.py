"""Other side of `running`: a script that compiles a program and runs it on its inputs.

It is started as a file, in a sandbox or without, and imports nothing of the package. Its argument is the path of
`sandbox_child`, which has the limits and the filter. The script itself is outside of the limits and never reads the
outputs that are right. A running program can start no process, and its output is a file without a name.
"""

from __future__ import annotations

import importlib.util
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NoReturn

assert sys.platform != "win32"

DETAIL_CHARACTERS = 300
OUTPUT_BYTES = 4 << 20
"""Bytes of an output that are read."""
NO_MEMORY = ("MemoryError", "OutOfMemoryError", "bad_alloc")
ENTRY = (b"\x01\x00\x04main", b"\x01\x00\x16([Ljava/lang/String;)V")
"""Name and type of an entry point in the constants of a class file (Java Virtual Machine Specification, 4.4.7)."""


def main() -> NoReturn:
    """Read the request from standard input, and report on standard output."""
    tools = loaded(sys.argv[1])
    request = json.loads(tools.read_message(0))
    report = os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    if request["sandboxed"]:
        tools.close_off(request)
    tools.write_all(report, b"started\n")
    os.dup2(nothing, 2)
    tools.write_all(report, json.dumps(results(tools, request)).encode("ascii") + b"\n")
    os._exit(0)


def loaded(path: str) -> Any:
    """Return a module from its file."""
    found = importlib.util.spec_from_file_location("sandbox_child", path)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def results(tools: Any, request: dict[str, Any]) -> list[dict[str, str]]:
    """Return the verdict of each run up to the first that fails, with its output; one for a failed compilation."""
    Path(request["file"]).write_text(request["program"], encoding="utf-8", errors="replace")
    if request["compile"]:
        compiled = run(tools, request, request["compile"], "", request["compiling"])
        if compiled["verdict"] != "passed":
            return [{**compiled, "detail": f"does not compile: {compiled['detail']}"}]
    command = request["run"]
    if request["classes"]:
        main_class = entry(Path(request["classes"]))
        if main_class is None:
            return [{"verdict": "error", "output": "", "detail": "no class has an entry point"}]
        command = [word.replace("{main}", main_class) for word in command]
    found = []
    for asked in request["inputs"]:
        found.append(run(tools, request, command, asked, request["running"]))
        if found[-1]["verdict"] != "passed":
            break
    return found


def run(tools: Any, request: dict[str, Any], command: list[str], asked: str, limits: dict[str, Any]) -> dict[str, str]:
    """Run a command with an input, under limits; return verdict, output and detail."""

    def prepare() -> None:
        tools.limit({**limits, "sandboxed": request["sandboxed"]})
        if request["sandboxed"]:
            if limits["filtered"]:
                tools.refuse_system_calls(allowed=("execve",))
        elif tools.libc is not None:
            tools.libc.prctl(tools.PR_SET_PDEATHSIG, tools.ctypes.c_ulong(signal.SIGKILL))

    with tempfile.TemporaryFile() as input_, tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        input_.write(asked.encode("utf-8", "replace"))
        input_.seek(0)
        before = cpu_seconds()
        try:
            process = subprocess.Popen(command, stdin=input_, stdout=output, stderr=errors, preexec_fn=prepare)
        except (OSError, subprocess.SubprocessError) as error:
            return {"verdict": "error", "output": "", "detail": str(error)[:DETAIL_CHARACTERS]}
        try:
            status = process.wait(limits["seconds"])
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            return {"verdict": "timeout", "output": "", "detail": "wall clock"}
        complaint = text_of(errors)
        if status == 0:
            return {"verdict": "passed", "output": text_of(output), "detail": ""}
    if status == -signal.SIGXCPU or (status == -signal.SIGKILL and cpu_seconds() - before >= limits["cpu_seconds"]):
        return {"verdict": "timeout", "output": "", "detail": "processor time"}
    verdict = "memory" if any(word in complaint for word in NO_MEMORY) else "error"
    last = next((line.strip() for line in reversed(complaint.splitlines()) if line.strip()), "")
    detail = f"killed by {signal.Signals(-status).name}" if status < 0 else last or f"exit status {status}"
    return {"verdict": verdict, "output": "", "detail": detail[:DETAIL_CHARACTERS]}


def text_of(file: Any) -> str:
    """Return the beginning of a file."""
    file.seek(0)
    return str(file.read(OUTPUT_BYTES), "utf-8", "replace")


def cpu_seconds() -> float:
    """Return the processor time of the processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def entry(folder: Path) -> str | None:
    """Return the name of the outer class with an entry point."""
    for file in sorted(folder.rglob("*.class")):
        data = file.read_bytes()
        if "$" not in file.name and all(part in data for part in ENTRY):
            return ".".join(file.relative_to(folder).with_suffix("").parts)
    return None


if __name__ == "__main__":
    main()
