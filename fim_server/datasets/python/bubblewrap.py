"""Command line of the sandbox: bubblewrap around a Python that sees nothing else of the machine.

The sandbox sees the system's shared libraries, the Python that runs this (its executable and ``lib`` folder), four
devices, and one empty folder in memory. It sees no other file, no process and no network. Where systemd runs, a scope
adds a cgroup, which also counts what no process limit does (kernel objects, for instance).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

BWRAP = "bwrap"
FOLDER = "/tmp"  # the program's own, in the sandbox
HARNESS = "/harness.py"
BESIDE = "/beside.py"

LIBRARIES = ("/lib", "/lib32", "/lib64", "/usr/lib", "/usr/lib32", "/usr/lib64")
LOADER = ("/etc/ld.so.cache", "/etc/ld.so.conf")
DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")
NAMESPACES = ("--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try")

ENVIRONMENT = {"PYTHONHASHSEED": "0", "PYTHONUTF8": "1"}
"""Environment of a program; without a fixed hash seed, one that iterates over a set may pass one time in two."""

SPARE_MEMORY = 128 << 20
"""Bytes of a scope above a program's limit, for the harness and the kernel's bookkeeping."""
SPARE_TASKS = 8
PROBE_S = 10.0
BOOTED = Path("/run/systemd/system")
"""Folder that exists where systemd is the machine's init: sd_booted(3)."""


def is_root() -> bool:
    """Return whether the user is root."""
    return sys.platform != "win32" and os.geteuid() == 0


def interpreter() -> str:
    """Return the executable of the Python that runs this, instead of a virtual environment's link to it."""
    return os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)


def python_command(harness: str) -> list[str]:
    """Return the command that runs a file with the standard library alone, and the hash seed of the environment."""
    # No -I: it would ignore PYTHONHASHSEED.
    return [interpreter(), "-s", "-S", "-P", "-B", harness]


@dataclass(frozen=True, slots=True)
class Harness:
    """Script that runs in a sandbox, or without one.

    Attributes:
        script: The file.
        beside: A second file; the script's argument is the path that it has in the place where it runs.
        reads: Further files and folders of this machine that it can read.
        environment: Further variables of its environment.
    """

    script: Path
    beside: Path | None = None
    reads: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)

    def bare_command(self) -> list[str]:
        """Return the command that runs it without a sandbox."""
        return [*python_command(str(self.script)), *([] if self.beside is None else [str(self.beside)])]


def command(harness: Harness) -> list[str]:
    """Return the command that runs ``harness`` in a sandbox.

    For root it keeps the rights to become a user that owns nothing, since the kernel does not count root's threads.
    Other users get a user namespace. Both keep, until the harness gives it up, the right to limit the folder in memory,
    for which bubblewrap has no option.
    """
    root = is_root()
    words = [BWRAP, *NAMESPACES, *([] if root else ["--unshare-user"]), "--hostname", "sandbox"]
    words += ["--die-with-parent", "--new-session", "--cap-drop", "ALL", "--cap-add", "CAP_SYS_ADMIN"]
    words += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"] if root else []
    paths = visible(harness.reads)
    for folder in sorted({str(above) for path in (*paths, *DEVICES) for above in Path(path).parents} - {"/"}):
        words += ["--dir", folder]  # those that it makes by itself are root's alone
    for path in paths:
        if Path(path).is_symlink():
            words += ["--symlink", str(Path(path).readlink()), path]
        else:
            words += ["--ro-bind", path, path]
    for device in DEVICES:
        words += ["--dev-bind", device, device]
    words += ["--ro-bind", str(harness.script), HARNESS]
    words += [] if harness.beside is None else ["--ro-bind", str(harness.beside), BESIDE]
    words += ["--perms", "0777", "--tmpfs", FOLDER, "--remount-ro", "/", "--chdir", FOLDER, "--clearenv"]
    for name, value in {**ENVIRONMENT, **harness.environment, "HOME": FOLDER, "TMPDIR": FOLDER}.items():
        words += ["--setenv", name, value]
    return [*words, "--", *python_command(HARNESS), *([] if harness.beside is None else [BESIDE])]


def visible(reads: Sequence[str] = ()) -> list[str]:
    """Return the files and folders of this machine that a program can read, none inside another."""
    executable = interpreter()
    wanted = [*reads, *LIBRARIES, *LOADER, *(str(Path(sys.base_prefix, name)) for name in ("lib", "lib64")), executable]
    if executable.startswith("/nix/store/"):
        wanted.append("/nix/store")
    found: list[str] = []
    for path in sorted(set(filter(os.path.lexists, wanted))):
        inside = os.path.realpath(path)
        if Path(path).is_symlink() or not any(inside == one or inside.startswith(one + "/") for one in found):
            found.append(path)
    return found


@cache
def scope() -> tuple[str, ...]:
    """Return the ``systemd-run`` command that makes scopes here; empty where it makes none."""
    if shutil.which("systemd-run") is None or not BOOTED.is_dir():
        return ()
    words = ("systemd-run", *(() if is_root() else ("--user",)), "--scope", "--quiet", "--collect")
    probe = [*words, *scope_limits(1 << 30, 32), "--", "true"]
    try:
        done = subprocess.run(probe, stdin=subprocess.DEVNULL, capture_output=True, timeout=PROBE_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return words if done.returncode == 0 else ()


def scope_limits(memory_bytes: int, processes: int) -> Sequence[str]:
    """Return the limits of a scope for a program with these limits."""
    return (
        f"--property=MemoryMax={memory_bytes + SPARE_MEMORY}",
        "--property=MemorySwapMax=0",
        f"--property=TasksMax={processes + SPARE_TASKS}",
    )
