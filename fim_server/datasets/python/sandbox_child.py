"""The other side of `sandbox`: a script that isolates itself and runs one program with its test.

It is started as a file, alone, and imports nothing of the package. Three processes: this one makes namespaces, which
only its children are in; the second is the first of its process namespace, so that all of them end with it; the third
has the limits and runs the program. Each step that the system does not permit is left out, and what was done is
reported.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import os
import platform
import resource
import signal
import struct
import sys
import types
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NoReturn

LINUX = sys.platform == "linux"
CHANNEL = 200  # lowest descriptor for the report, out of the way of what a program may open or close
DETAIL_CHARACTERS = 300
SPARE_MEMORY = 64 << 20  # bytes above the limit, for reporting that it was reached

# linux/sched.h, linux/mount.h, linux/prctl.h
CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC = 0x0002_0000, 0x0400_0000, 0x0800_0000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x1000_0000, 0x2000_0000, 0x4000_0000
CLONE_THREAD = 0x0001_0000
MS_NOSUID, MS_NODEV, MS_REC, MS_PRIVATE = 2, 4, 0x4000, 0x4_0000
SYS_MOUNT_SETATTR, AT_FDCWD, AT_RECURSIVE, MOUNT_ATTR_RDONLY = 442, -100, 0x8000, 1
PR_SET_PDEATHSIG, PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, SECCOMP_MODE_FILTER = 1, 22, 38, 2
CAPABILITY_VERSION_3 = 0x2008_0522

ARCHITECTURES = {"x86_64": 0xC000_003E, "aarch64": 0xC000_00B7}  # linux/audit.h
SYSTEM_CALLS = {  # asm/unistd.h
    "x86_64": {
        "clone": 56, "fork": 57, "vfork": 58, "clone3": 435, "tgkill": 234,
        "socket": 41, "connect": 42, "kill": 62, "ptrace": 101, "rt_sigqueueinfo": 129, "mount": 165, "umount2": 166,
        "tkill": 200, "unshare": 272, "rt_tgsigqueueinfo": 297, "setns": 308, "process_vm_readv": 310,
        "process_vm_writev": 311, "bpf": 321, "pidfd_send_signal": 424, "io_uring_setup": 425, "pidfd_open": 434,
    },
    "aarch64": {
        "clone": 220, "clone3": 435, "tgkill": 131,
        "socket": 198, "connect": 203, "kill": 129, "ptrace": 117, "rt_sigqueueinfo": 138, "mount": 40, "umount2": 39,
        "tkill": 130, "unshare": 97, "rt_tgsigqueueinfo": 240, "setns": 268, "process_vm_readv": 270,
        "process_vm_writev": 271, "bpf": 280, "pidfd_send_signal": 424, "io_uring_setup": 425, "pidfd_open": 434,
    },
}  # fmt: skip
NO_PROCESSES = ("fork", "vfork")

libc = ctypes.CDLL(None, use_errno=True) if LINUX else None


def main() -> NoReturn:
    """Read the request from standard input, report on standard output."""
    request = json.loads(sys.stdin.buffer.read())
    nonce = request.pop("nonce")
    channel = fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, CHANNEL)
    write = os.write  # programs have been seen to replace such functions

    def say(what: str, text: str = "") -> None:
        write(channel, f"{nonce} {what} {text}\n".encode("ascii", "backslashreplace"))

    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    end_with_parent()
    isolation = enter_namespaces(request["folder"], request["file_bytes"])
    first = os.fork()
    if first == 0:
        end_with_parent()
        program = os.fork()
        if program == 0:
            end_with_parent()
            isolation += drop_privileges()
            limit(request, isolation)
            if not {"namespaces", "system calls"} & set(isolation):
                take_away()
                isolation.append("python alone")
            say("isolation", ",".join(isolation))
            run(request, say)
        _, status = os.waitpid(program, 0)
        code = os.waitstatus_to_exitcode(status)
        say("ended", str(code))
        os._exit(0)
    os.waitpid(first, 0)
    os._exit(0)


# --- isolation -----------------------------------------------------------------------------------------------------


def end_with_parent() -> None:
    """Have this process killed when the one that started it ends."""
    if libc is not None:
        libc.prctl(PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL))


def enter_namespaces(folder: str, folder_bytes: int) -> list[str]:
    """New namespaces (processes, network, mounts, ...) for the children, all files read-only but a folder in memory.

    Without privileges this takes a user namespace, which not every system permits.
    """
    if libc is None:
        return []
    user, group = os.getuid(), os.getgid()
    apart = CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWPID | CLONE_NEWNET
    if libc.unshare(apart | CLONE_NEWUSER) == 0:
        with suppress(OSError):
            for name, line in (
                ("setgroups", "deny"),
                ("uid_map", f"{user} {user} 1"),
                ("gid_map", f"{group} {group} 1"),
            ):
                descriptor = os.open(f"/proc/self/{name}", os.O_WRONLY)
                os.write(descriptor, line.encode())
                os.close(descriptor)
    elif libc.unshare(apart) != 0:
        return []
    entered = ["namespaces"]
    libc.mount(b"none", b"/", None, ctypes.c_ulong(MS_REC | MS_PRIVATE), None)
    attributes = struct.pack("<4Q", MOUNT_ATTR_RDONLY, 0, 0, 0)
    if libc.syscall(SYS_MOUNT_SETATTR, AT_FDCWD, b"/", AT_RECURSIVE, attributes, ctypes.c_size_t(len(attributes))) == 0:
        options = f"size={folder_bytes},mode=700".encode()
        flags = ctypes.c_ulong(MS_NOSUID | MS_NODEV)
        if libc.mount(b"tmpfs", os.fsencode(folder), b"tmpfs", flags, options) == 0:
            entered.append("read-only files")
    os.chdir(folder)
    return entered


def drop_privileges() -> list[str]:
    """Give up all capabilities for good, and refuse the system calls that start processes or reach other ones."""
    if libc is None:
        return []
    libc.prctl(PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1), ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0))
    libc.capset(struct.pack("<Ii", CAPABILITY_VERSION_3, 0), struct.pack("<6I", 0, 0, 0, 0, 0, 0))
    machine = platform.machine()
    if machine not in ARCHITECTURES:
        return []
    filter_ = seccomp_filter(ARCHITECTURES[machine], SYSTEM_CALLS[machine], os.getpid())
    buffer = ctypes.create_string_buffer(filter_, len(filter_))
    program = struct.pack("<HxxxxxxQ", len(filter_) // 8, ctypes.addressof(buffer))  # struct sock_fprog
    done = libc.prctl(
        PR_SET_SECCOMP, ctypes.c_ulong(SECCOMP_MODE_FILTER), program, ctypes.c_ulong(0), ctypes.c_ulong(0)
    )
    return ["system calls"] if done == 0 else []


def seccomp_filter(architecture: int, calls: dict[str, int], process: int) -> bytes:
    """A filter program for seccomp(2): threads may be started and the process's own signalled, everything else goes on.

    Starting processes fails with EAGAIN, as it does at a limit; clone3, whose flags a filter cannot see, with ENOSYS,
    for which the C library falls back to clone.
    """
    load, equal, any_bit, at_least, answer = 0x20, 0x15, 0x45, 0x35, 0x06  # linux/bpf_common.h
    allow, kill, error = 0x7FFF_0000, 0x8000_0000, 0x0005_0000  # linux/seccomp.h
    number, architecture_at, argument = 0, 4, 16  # offsets in struct seccomp_data

    def op(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
        return struct.pack("<HBBI", code, if_true, if_false, value)

    def fail(why: int) -> bytes:
        return op(answer, error | why)

    program = [op(load, architecture_at), op(equal, architecture, 1), op(answer, kill), op(load, number)]
    if architecture == ARCHITECTURES["x86_64"]:
        program += [op(at_least, 0x4000_0000, 0, 1), fail(errno.EPERM)]  # the calls of x32
    for name, call in calls.items():
        if name == "clone":
            body = [op(load, argument), op(any_bit, CLONE_THREAD, 1), fail(errno.EAGAIN), op(answer, allow)]
        elif name == "tgkill":
            body = [op(load, argument), op(equal, process, 1), fail(errno.EPERM), op(answer, allow)]
        elif name == "clone3":
            body = [fail(errno.ENOSYS)]
        else:
            body = [fail(errno.EAGAIN if name in NO_PROCESSES else errno.EPERM)]
        program += [op(equal, call, 0, len(body)), *body]
    return b"".join([*program, op(answer, allow)])


def limit(request: dict[str, Any], isolation: list[str]) -> None:
    """Set the limits that the system knows."""
    seconds = request["cpu_seconds"]
    bounds = {
        "RLIMIT_CORE": (0, 0),
        "RLIMIT_CPU": (seconds, seconds + 1),
        "RLIMIT_FSIZE": (request["file_bytes"], request["file_bytes"]),
        "RLIMIT_AS": (request["memory_bytes"], request["memory_bytes"] + SPARE_MEMORY),
    }
    if "namespaces" in isolation:
        bounds["RLIMIT_NPROC"] = (request["processes"], request["processes"])
    elif "system calls" not in isolation:
        bounds["RLIMIT_NPROC"] = (1, 1)  # counts all of the user's processes, so that no more can be started
    for name, bound in bounds.items():
        with suppress(OSError, ValueError, AttributeError):
            resource.setrlimit(getattr(resource, name), bound)


def take_away() -> None:
    """Remove from this Python what opens sockets, and starts or signals processes."""
    for module in ("socket", "_socket", "_posixsubprocess", "_multiprocessing"):
        sys.modules[module] = None  # type: ignore[assignment]
    for name in ("fork", "forkpty", "posix_spawn", "posix_spawnp", "system", "kill", "killpg"):
        if hasattr(os, name):
            delattr(os, name)


# --- the program ---------------------------------------------------------------------------------------------------


def run(request: dict[str, Any], say: Callable[[str, str], None]) -> NoReturn:
    """Run the program, then its test, and report the verdict. Nothing that the program starts is waited for."""
    leave = os._exit
    verdict, detail = "error", ""
    module = types.ModuleType("solution")
    sys.modules["solution"] = module
    names = module.__dict__
    testing = False
    try:
        try:
            exec(compile(request["program"], "solution.py", "exec"), names)
            exec(compile(request["test"], "test.py", "exec"), names)
            testing = True
            names["check"](names[request["entry_point"]])
            verdict = "passed"
        except MemoryError:
            with suppress(OSError, ValueError):
                hard = resource.getrlimit(resource.RLIMIT_AS)[1]
                resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
            verdict = "memory"
            names.clear()
        except AssertionError as error:
            verdict = "wrong" if testing else "error"
            detail = describe(error)
        except BaseException as error:  # noqa: BLE001  # SystemExit and KeyboardInterrupt are errors, too
            detail = describe(error)
        say("verdict", verdict)
        say("detail", detail)
    finally:
        leave(0)


def describe(error: BaseException) -> str:
    """The error in one line."""
    try:
        text = " ".join(str(error).split())
    except BaseException:  # noqa: BLE001  # a program's own exception may do anything
        text = ""
    return f"{type(error).__name__}: {text}"[:DETAIL_CHARACTERS].rstrip(": ")


if __name__ == "__main__":
    main()
