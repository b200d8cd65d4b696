"""Other side of `sandbox`: a script that runs a program, and its test in another process than the program.

It is started as a file, alone, and imports nothing of the package. The first of two processes has the test and reports
its result. The second is forked before the first has read the test. It has the program, and calls its function when the
first one asks. Plain data goes between them. So a program can neither see its test, nor claim that it has passed, nor
answer with an object that equals everything.
"""

from __future__ import annotations

import builtins
import collections.abc
import ctypes
import errno
import json
import os
import resource
import signal
import struct
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

assert sys.platform != "win32"

LINUX = sys.platform == "linux"
DETAIL_CHARACTERS = 300
SPARE_MEMORY = 64 << 20  # bytes above the limit, for saying that it was reached
LONGEST_ANSWER = 16 << 20  # bytes
MOST_ITEMS = 1 << 17  # of something that can be iterated over, and is none of the types that are sent as they are
DESCRIPTORS = 64  # that a program may have open
HIGHEST_DESCRIPTOR = 4096
FILES = 1024  # in the folder

# linux/prctl.h, linux/mount.h, linux/capability.h, linux/sched.h
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_GET_NO_NEW_PRIVS = 1, 4, 39
MS_NOSUID, MS_NODEV, MS_REMOUNT = 2, 4, 32
CAPABILITY_VERSION_3 = 0x2008_0522
CLONE_THREAD = 0x0001_0000
NOBODY = 65534

# seccomp.h
SECCOMP_LIBRARY = "libseccomp.so.2"
ALLOW, ERRNO, EQUAL, MASKED_EQUAL, UNKNOWN = 0x7FFF_0000, 0x0005_0000, 4, 7, -1
LOCKS = (6, 7, 37, 38)  # fcntl.h: F_SETLK, F_SETLKW, F_OFD_SETLK, F_OFD_SETLKW
REFUSED = {
    # Each process has the limits of memory for itself.
    errno.EAGAIN: ("fork", "vfork"),
    errno.ENOSYS: ("clone3",),  # whose flags a filter cannot see; the C library falls back to clone
    errno.EPERM: (
        *("execve", "execveat", "ptrace", "process_vm_readv", "process_vm_writev", "pidfd_open", "pidfd_getfd"),
        # What holds memory that no limit of a process counts.
        *("memfd_create", "memfd_secret", "shmget", "semget", "msgget", "mq_open", "io_uring_setup", "userfaultfd"),
        *("perf_event_open", "bpf", "add_key", "request_key", "keyctl", "inotify_init", "inotify_init1"),
        *("fanotify_init", "socket"),
        # A namespace of users would give the right to mount.
        *("unshare", "setns", "mount", "umount2", "pivot_root", "chroot", "fsopen", "fsmount", "fspick"),
        *("open_tree", "move_mount", "mount_setattr"),
    ),
}
"""System calls by name; the library knows their numbers on each machine, and which a machine does not have."""


class Comparison(ctypes.Structure):
    """``struct scmp_arg_cmp``."""

    _fields_ = (
        ("argument", ctypes.c_uint),
        ("operation", ctypes.c_int),
        ("a", ctypes.c_uint64),
        ("b", ctypes.c_uint64),
    )


libc = ctypes.CDLL(None, use_errno=True) if LINUX else None


def main() -> NoReturn:
    """Read the program, then its test, from standard input; report on standard output."""
    request = json.loads(read_message(0))
    sandboxed = request["sandboxed"]
    report = os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 1)
    if sandboxed:
        close_off(request)
    elif libc is not None:
        libc.prctl(PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL))
    limit(request)
    asking, answering = os.pipe(), os.pipe()
    program = os.fork()
    if program == 0:
        os.dup2(nothing, 0)
        kept = sorted((asking[0], answering[1]))
        for low, high in zip((2, *kept), (*kept, HIGHEST_DESCRIPTOR), strict=True):
            os.closerange(low + 1, high)
        if sandboxed:
            refuse_system_calls()
        elif libc is not None:
            libc.prctl(PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL))
        os.dup2(0, 2)  # until here it says why a sandbox does not start
        serve(request, os.fdopen(asking[0], "rb"), answering[1])
    os.close(asking[0])
    os.close(answering[1])
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    other = Program(program, request["cpu_seconds"], asking[1], os.fdopen(answering[0], "rb"))
    verdict, detail = "error", ""
    if other.starts():
        write_all(report, b"started\n")  # before the program can end this process
        os.dup2(nothing, 2)
        # Not before: the program's process began as a copy of this one.
        verdict, detail = judge(json.loads(read_message(0)), other)
        write_all(report, json.dumps({"verdict": verdict, "detail": detail}).encode("ascii") + b"\n")
    if not sandboxed:
        with suppress(OSError):
            os.kill(program, signal.SIGKILL)
    os._exit(0)


def read_message(descriptor: int) -> bytes:
    """Read eight bytes with a message's length, and the message, but no further byte of the pipe."""
    return read_exactly(descriptor, int.from_bytes(read_exactly(descriptor, 8), "big"))


def read_exactly(descriptor: int, length: int) -> bytes:
    """Read exactly ``length`` bytes. Raises EOFError where there are fewer."""
    found = b""
    while len(found) < length:
        piece = os.read(descriptor, length - len(found))
        if not piece:
            raise EOFError
        found += piece
    return found


def write_all(descriptor: int, data: bytes, write: Callable[[int, bytes], int] = os.write) -> None:
    """Write all data. ``write`` is the original function, which a program may have replaced."""
    while data:
        data = data[write(descriptor, data) :]


# --- limits ----------------------------------------------------------------------------------------------------------


def close_off(request: dict[str, Any]) -> None:
    """Limit the folder, and give up all rights. Raises OSError where that is not possible."""
    assert libc is not None
    options = f"size={request['file_bytes']},nr_inodes={FILES}".encode()
    done = libc.mount(None, os.fsencode(Path.cwd()), None, ctypes.c_ulong(MS_REMOUNT | MS_NOSUID | MS_NODEV), options)
    must(done, "the folder's size")
    if request["root"]:
        become_nobody()
    header = struct.pack("=Ii", CAPABILITY_VERSION_3, 0)
    must(libc.capset(header, bytes(24)), "the capabilities")
    # The program has the same user: it shall not look into the process of its test.
    must(libc.prctl(PR_SET_DUMPABLE, *map(ctypes.c_ulong, (0, 0, 0, 0))), "the memory of the harness")
    must(libc.prctl(PR_GET_NO_NEW_PRIVS, *map(ctypes.c_ulong, (0, 0, 0, 0))) - 1, "the privileges")


def become_nobody() -> None:
    """Become an unused user, since the kernel counts threads by user; `nobody` where that fails."""
    os.setgroups([])
    for user in (1 << 30 | int.from_bytes(os.urandom(3), "big"), NOBODY):
        try:
            if sys.platform == "linux":
                os.setresgid(user, user, user)
                os.setresuid(user, user, user)
        except OSError as error:
            if user == NOBODY or error.errno != errno.EINVAL:
                raise
        else:
            return


def must(result: int, what: str) -> None:
    """Raise OSError unless a call of the C library went well."""
    if result != 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")


def limit(request: dict[str, Any]) -> None:
    """Set the limits that the system knows, of both processes."""
    seconds = request["cpu_seconds"]
    bounds = {
        "RLIMIT_CORE": (0, 0),
        "RLIMIT_CPU": (seconds, seconds + 1),
        "RLIMIT_FSIZE": (request["file_bytes"], request["file_bytes"]),
        "RLIMIT_AS": (request["memory_bytes"], request["memory_bytes"] + SPARE_MEMORY),
    }
    if request["sandboxed"]:
        bounds |= {
            "RLIMIT_NPROC": (request["processes"], request["processes"]),
            "RLIMIT_NOFILE": (DESCRIPTORS, DESCRIPTORS),
            "RLIMIT_MEMLOCK": (0, 0),
            "RLIMIT_MSGQUEUE": (0, 0),
            "RLIMIT_SIGPENDING": (DESCRIPTORS, DESCRIPTORS),
        }
    for name, bound in bounds.items():
        try:
            resource.setrlimit(getattr(resource, name), bound)
        except (OSError, ValueError, AttributeError):  # macOS has not all of them
            if request["sandboxed"] and hasattr(resource, name):
                raise


def refuse_system_calls(allowed: Sequence[str] = ()) -> None:
    """Refuse for good what starts processes, and what holds memory outside the limits. Raises OSError."""
    library = ctypes.CDLL(SECCOMP_LIBRARY)
    library.seccomp_init.restype = ctypes.c_void_p
    library.seccomp_init.argtypes = [ctypes.c_uint32]
    library.seccomp_rule_add_array.argtypes = [
        *(ctypes.c_void_p, ctypes.c_uint32, ctypes.c_int, ctypes.c_uint, ctypes.POINTER(Comparison))
    ]
    library.seccomp_load.argtypes = [ctypes.c_void_p]
    filter_ = library.seccomp_init(ALLOW)

    def refuse(name: str, error: int, *comparisons: Comparison) -> None:
        call = library.seccomp_syscall_resolve_name(name.encode())
        if call != UNKNOWN:
            array = (Comparison * len(comparisons))(*comparisons)
            done = library.seccomp_rule_add_array(filter_, ERRNO | error, call, len(comparisons), array)
            if done != 0:
                raise OSError(-done, f"{name}: {os.strerror(-done)}")

    for error, names in REFUSED.items():
        for name in names:
            if name not in allowed:
                refuse(name, error)
    refuse("clone", errno.EAGAIN, Comparison(0, MASKED_EQUAL, CLONE_THREAD, 0))
    for lock in LOCKS:
        refuse("fcntl", errno.EPERM, Comparison(1, EQUAL, lock, 0))
    done = library.seccomp_load(filter_)
    if done != 0:
        raise OSError(-done, f"the filter of system calls: {os.strerror(-done)}")


# --- plain data ------------------------------------------------------------------------------------------------------


class Opaque:
    """Stands, on the side of the test, for something of another type; equal to nothing but itself."""

    def __init__(self, name: str, truth: bool, items: list[Any] | None) -> None:
        self._name, self._truth, self._items = name, truth, items

    def __repr__(self) -> str:
        return f"<{self._name}>"

    def __bool__(self) -> bool:
        return self._truth

    def __iter__(self) -> Iterator[Any]:
        if self._items is None:
            raise TypeError(f"{self._name!r} object is not iterable")
        return iter(self._items)

    def __len__(self) -> int:
        if self._items is None:
            raise TypeError(f"object of type {self._name!r} has no len()")
        return len(self._items)


def packed(value: Any) -> Any:
    """Return a value as JSON; a value of another type is an object with one name, its type.

    Subclasses become the types that they are derived from, which they are equal to. Raises RecursionError.
    """
    if value is None or isinstance(value, (bool, str)):
        return value if value is None or isinstance(value, bool) else str.__str__(value)
    if isinstance(value, int):
        return int(value) if -(1 << 63) <= value < 1 << 63 else {"int": hex(value)}
    if isinstance(value, float):
        return float(value)
    if isinstance(value, complex):
        return {"complex": [value.real, value.imag]}
    if isinstance(value, (bytes, bytearray)):
        return {type(value).__name__ if type(value) in (bytes, bytearray) else "bytes": bytes(value).hex()}
    if isinstance(value, list):
        return [packed(one) for one in value]
    if isinstance(value, range):
        return {"range": [packed(one) for one in (value.start, value.stop, value.step)]}
    if isinstance(value, dict):
        return {"dict": [[packed(key), packed(one)] for key, one in value.items()]}
    for kind, name in ((tuple, "tuple"), (frozenset, "frozenset"), (collections.abc.Set, "set")):
        if isinstance(value, kind):
            return {name: [packed(one) for one in value]}
    name = type(value).__name__
    if name in ("Decimal", "Fraction"):
        return {name: str(value)}
    items = None
    if isinstance(value, collections.abc.Iterable):
        items = [packed(one) for one, _ in zip(value, range(MOST_ITEMS), strict=False)]
    return {"object": [name, bool(value), items]}


def unpacked(data: Any) -> Any:
    """Return the value of :func:`packed`. Raises ValueError, and other errors for wrong data."""
    if isinstance(data, list):
        return [unpacked(one) for one in data]
    if not isinstance(data, dict):
        return data
    [(kind, inside)] = data.items()
    if kind == "int":
        return int(inside, 16)
    if kind == "complex":
        return complex(*inside)
    if kind in ("bytes", "bytearray"):
        return getattr(builtins, kind).fromhex(inside)
    if kind in ("tuple", "frozenset", "set"):
        return getattr(builtins, kind)(map(unpacked, inside))
    if kind == "range":
        return range(*map(unpacked, inside))
    if kind == "dict":
        return {unpacked(key): unpacked(one) for key, one in inside}
    if kind == "Decimal":
        from decimal import Decimal

        return Decimal(inside)
    if kind == "Fraction":
        from fractions import Fraction

        return Fraction(inside)
    if kind == "object":
        name, truth, items = inside
        return Opaque(str(name), bool(truth), None if items is None else list(map(unpacked, items)))
    raise ValueError(kind)


# --- the program -----------------------------------------------------------------------------------------------------


def serve(request: dict[str, Any], asked: BinaryIO, answer: int) -> NoReturn:
    """Run the program, and call its function with whatever comes. Nothing that the program starts is waited for."""
    leave, write, encode, decode = os._exit, os.write, json.dumps, json.loads  # which a program may replace
    module = types.ModuleType("solution")
    sys.modules["solution"] = module
    names = module.__dict__

    def say(what: str, inside: Any) -> None:
        text = encode({what: inside}).encode("ascii")
        write_all(answer, text + b"\n", write)

    def attempt(action: Callable[[], Any]) -> None:
        try:
            value = packed(action())
        except MemoryError:
            with suppress(OSError, ValueError):
                hard = resource.getrlimit(resource.RLIMIT_AS)[1]
                resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
            names.clear()
            say("memory", None)
        except BaseException as error:  # noqa: BLE001  # SystemExit and KeyboardInterrupt are errors, too
            say("raised", [type(error).__name__, describe(error)])
        else:
            say("value", value)

    def begin() -> None:
        exec(compile(request["program"], "solution.py", "exec"), names)
        if request["entry_point"] not in names:
            raise NameError(f"name {request['entry_point']!r} is not defined")

    def call(line: bytes) -> Any:
        arguments, named = decode(line)
        function = names[request["entry_point"]]
        return function(*map(unpacked, arguments), **{name: unpacked(one) for name, one in named.items()})

    try:
        say("ready", None)
        if asked.readline():
            attempt(begin)
        while line := asked.readline():
            attempt(lambda line=line: call(line))  # type: ignore[misc]
    finally:
        leave(0)


def describe(error: BaseException) -> str:
    try:
        text = " ".join(str(error).split())
    except BaseException:  # noqa: BLE001  # a program's own exception may do anything
        text = ""
    return f"{type(error).__name__}: {text}"[:DETAIL_CHARACTERS].rstrip(": ")


# --- the test --------------------------------------------------------------------------------------------------------


class Ended(BaseException):
    """End of the program; a test that catches all exceptions may go on, but has not passed."""


class Program:
    """Process of the program, as the test sees it."""

    def __init__(self, process: int, cpu_seconds: int, ask: int, answers: BinaryIO) -> None:
        self._process, self._cpu_seconds, self._ask, self._answers = process, cpu_seconds, ask, answers
        self.outcome: tuple[str, str] | None = None
        """Verdict and detail once it has ended."""
        self.raised: tuple[BaseException, str] | None = None
        """Last exception of the program's function, and its description."""

    def starts(self) -> bool:
        return self._answers.readline(LONGEST_ANSWER) == b'{"ready": null}\n'

    def begin(self) -> None:
        """Run it up to where its function can be called. Raises its exceptions, and :class:`Ended`."""
        write_all(self._ask, b"\n")
        self.answer()

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call the function with copies of the arguments. Raises its exceptions, and :class:`Ended`."""
        asked = json.dumps([[packed(one) for one in arguments], {name: packed(one) for name, one in named.items()}])
        with suppress(BrokenPipeError):
            write_all(self._ask, asked.encode("ascii") + b"\n")
        return self.answer()

    def answer(self) -> Any:
        if self.outcome is not None:
            raise Ended
        line = self._answers.readline(LONGEST_ANSWER)
        if not line.endswith(b"\n"):
            self.outcome = ("error", "an answer that is too long") if len(line) == LONGEST_ANSWER else self._ending()
            raise Ended
        try:
            [(what, inside)] = json.loads(line).items()
            if what == "value":
                return unpacked(inside)
            if what == "memory":
                self.outcome = ("memory", "")
            else:
                name, detail = inside
                self.raised = (exception(str(name), str(detail)), plain(str(detail)))
        except Exception:  # noqa: BLE001  # the program may write what it likes
            self.outcome = ("error", "an answer that is none")
        if self.outcome is not None or self.raised is None:
            raise Ended
        raise self.raised[0]

    def _ending(self) -> tuple[str, str]:
        _, status, used = os.wait4(self._process, 0)
        code = os.waitstatus_to_exitcode(status)
        if code == -signal.SIGXCPU or (code == -signal.SIGKILL and used.ru_utime + used.ru_stime >= self._cpu_seconds):
            return "timeout", "processor time"
        return "error", f"killed by {signal.Signals(-code).name}" if code < 0 else "ended before its test did"


def exception(name: str, detail: str) -> BaseException:
    """An exception like the program's: of the built-in type of that name, or of one of its own."""
    text = plain(detail.removeprefix(name).removeprefix(": "))
    kind = getattr(builtins, name, None)
    if isinstance(kind, type) and issubclass(kind, BaseException):
        with suppress(TypeError):
            found: BaseException = kind(text)
            return found
    own: type[Exception] = type(name if name.isidentifier() else "Error", (Exception,), {})
    return own(text)


def plain(text: str) -> str:
    """One line of a length that one can read."""
    return " ".join(text.split())[:DETAIL_CHARACTERS]


def judge(test: dict[str, Any], program: Program) -> tuple[str, str]:
    """Return the verdict of a test, and its detail."""
    verdict, detail, testing = "error", "", False
    names = types.ModuleType("test").__dict__
    try:
        program.begin()
        with suppress(Exception):
            exec(compile(test["reference"], "reference.py", "exec"), names)
        names[test["entry_point"]] = program
        exec(compile(test["test"], "test.py", "exec"), names)
        testing = True
        names["check"](program)
        verdict = "passed"
    except BaseException as error:  # noqa: BLE001  # as above
        verdict = "wrong" if testing and isinstance(error, AssertionError) else "error"
        detail = describe(error)
        if program.raised is not None and error is program.raised[0]:
            detail = program.raised[1]
    return program.outcome or (verdict, detail)


if __name__ == "__main__":
    main()
