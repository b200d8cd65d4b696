"""The command line: ``fim-server COMMAND ...``.

Exit status: 0 done, 1 a negative verdict (no completion, a file that does not parse), 2 bad input, 130 interrupted.
Results go to standard output, everything said about them to standard error. What a command needs is imported when it
runs, so that ``check`` and ``languages`` start without torch.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, fields
from importlib import metadata
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from fim_server.datasets import DatasetError
from fim_server.evaluation.records import RecordError
from fim_server.language.session import Language, LanguageError, Session, State
from fim_server.language.versions import NEWEST
from fim_server.models.onnx_runtime import RUNTIMES
from fim_server.recovery.recovery import Recovery
from fim_server.text.document import Document, DocumentError, Split
from fim_server.tokens.formats import ModelError

if TYPE_CHECKING:
    from fim_server.decoding.loop import Completion

Number = TypeVar("Number", int, float)

PROGRAM = "fim-server"

DONE, NEGATIVE, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130

QUIET_SECONDS = 1.0
"""Work shorter than this says nothing about its progress."""

SHOWN_EXPECTED = 12
"""Alternatives listed where a text is refused; ``--json`` lists all."""

DIFF_CONTEXT = 3
"""Unchanged lines shown around a change, as diff(1) does."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status. Bad usage exits with status 2 by SystemExit, as argparse does."""
    argv = sys.argv[1:] if argv is None else list(argv)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")  # source code has characters that a console's own encoding may lack
    try:
        arguments = build_parser(argv).parse_args(argv)
        status: int = arguments.run(arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader has what it wanted. Python flushes standard output again at exit, which must not fail either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except (DatasetError, DocumentError, LanguageError, ModelError, RecordError) as error:
        print(f"{PROGRAM}: {one_line(str(error))}", file=sys.stderr)
        return BAD_INPUT
    return status


# --- arguments ----------------------------------------------------------------------------------------------------


class Parser(argparse.ArgumentParser):
    """An argument parser that complains in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(BAD_INPUT, f"{self.prog}: {one_line(message)} (see {self.prog} --help)\n")


def build_parser(argv: Sequence[str]) -> Parser:
    """The parser of all commands. ``argv`` tells which of them need their own modules loaded for their options."""
    parser = Parser(prog=PROGRAM, description="Code completions that always parse.")
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {version()}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    add_complete(commands)
    add_check(commands)
    add_explain(commands)
    add_languages(commands)
    add_serve(commands)
    add_bench(commands, wanted="bench" in argv[:1])
    add_dataset(commands, wanted="dataset" in argv[:1])
    add_eval(commands, wanted="eval" in argv[:1])
    return parser


def add_complete(commands: Any) -> None:
    parser = commands.add_parser(
        "complete",
        help="complete a file at a cursor",
        description="Print the text that fits at a cursor, so that the whole file parses with it.",
        epilog="Exit status: 0 completed, 1 no completion, 2 bad input.",
    )
    add_file(parser)
    add_cursor(parser)
    add_python_version(parser)
    add_model_options(parser)
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the draws (default: 0)")
    parser.add_argument("--unconstrained", action="store_true", help="switch the grammar off, to compare")
    parser.add_argument(
        "--no-landing",
        action="store_true",
        help="let texts run into the budget's end, instead of choosing only tokens after which they can end within it",
    )
    parser.add_argument("--diff", action="store_true", help="print the changed lines instead of the text alone")
    parser.add_argument("--color", choices=("auto", "always", "never"), default="auto", help="colour of --diff")
    add_json(parser)
    parser.set_defaults(run=run_complete)


def add_check(commands: Any) -> None:
    parser = commands.add_parser(
        "check",
        help="say whether a file parses",
        description="Say whether a file parses, and if not, where it fails and what was allowed there.",
        epilog="Exit status: 0 it parses, 1 it does not, 2 bad input.",
    )
    add_file(parser)
    add_python_version(parser)
    add_json(parser)
    parser.set_defaults(run=run_check)


def add_explain(commands: Any) -> None:
    parser = commands.add_parser(
        "explain",
        help="say what fits at a cursor, and why",
        description="Say what may come at a cursor, which constructs are open on either side, and the shortest "
        "text that connects them.",
        epilog="Exit status: 0 done, 1 the text given with --text, or any text at all, is impossible, 2 bad input.",
    )
    add_file(parser)
    add_cursor(parser)
    add_python_version(parser)
    parser.add_argument("--text", default="", metavar="TEXT", help="a text typed at the cursor, to be judged")
    parser.add_argument("--grammar", action="store_true", help="print the grammar of all texts that fit there")
    add_json(parser)
    parser.set_defaults(run=run_explain)


def add_languages(commands: Any) -> None:
    parser = commands.add_parser("languages", help="list the languages", description="List the known languages.")
    add_json(parser)
    parser.set_defaults(run=run_languages)


def add_serve(commands: Any) -> None:
    parser = commands.add_parser(
        "serve",
        help="run the language server",
        description="Speak the Language Server Protocol, with textDocument/inlineCompletion, on standard input and "
        "output.",
    )
    parser.add_argument("--tcp", type=address, metavar="HOST:PORT", help="listen there instead")
    add_python_version(parser)
    add_model_options(parser)
    parser.add_argument("--log-level", choices=("error", "warning", "info", "debug"), default="warning")
    # What is not named here is the editor's to say.
    parser.set_defaults(run=run_serve, max_new_tokens=None, temperature=None, deadline_ms=None)


def add_bench(commands: Any, wanted: bool) -> None:
    parser = commands.add_parser("bench", help="measure", description="Measure on this machine.")
    subjects = parser.add_subparsers(title="subjects", metavar="SUBJECT", required=True)
    engine = subjects.add_parser("engine", help="sessions, checks and masks", description="Measure the engine.")
    masks = subjects.add_parser(
        "masks",
        help="token masks along real files, beside other engines",
        description="Measure token masks along real files, with a model's vocabulary.",
    )
    server = subjects.add_parser(
        "server",
        help="the language server while somebody types",
        description="Measure the language server through the protocol, while code of real files is typed again.",
    )
    runtimes = subjects.add_parser(
        "runtimes",
        help="the model in several runtimes and precisions",
        description="Measure what a model's runtime and precision cost and gain on the CPU.",
    )
    if wanted:
        from fim_server.bench import engine as engine_bench
        from fim_server.bench import masks as masks_bench
        from fim_server.bench import runtimes as runtimes_bench
        from fim_server.bench import server as server_bench

        engine_bench.add_arguments(engine)
        bind(engine, engine_bench.EngineOptions, engine_bench.run)
        masks_bench.add_arguments(masks)
        bind(masks, masks_bench.MasksOptions, masks_bench.run)
        server_bench.add_arguments(server)
        bind(server, server_bench.ServerOptions, server_bench.run)
        runtimes_bench.add_arguments(runtimes)
        bind(runtimes, runtimes_bench.RuntimesOptions, runtimes_bench.run)


def bind(parser: argparse.ArgumentParser, kind: type[Any], run: Callable[[Any], int]) -> None:
    """Have ``parser`` choose ``run``, to be called with its options as the dataclass ``kind``."""
    names = [field.name for field in fields(kind)]
    parser.set_defaults(run=lambda given: run(kind(**{name: getattr(given, name) for name in names})))


def add_dataset(commands: Any, wanted: bool) -> None:
    parser = commands.add_parser(
        "dataset",
        help="build sets of samples to measure on",
        description="Build sets of samples, holes in real files, and look at them.",
    )
    if wanted:
        from fim_server.datasets import command

        command.add_arguments(parser)


def add_eval(commands: Any, wanted: bool) -> None:
    parser = commands.add_parser(
        "eval",
        help="measure a model on samples, with the grammar and without",
        description="Measure a model on a set of samples, in several modes side by side, and report on it.",
    )
    if wanted:
        from fim_server.evaluation import command

        command.add_arguments(parser)


def add_file(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a source file in UTF-8, or - for standard input")
    parser.add_argument("--language", metavar="NAME", help="the file's language (default: by its suffix)")


def add_cursor(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "cursor", type=cursor, metavar="LINE:COLUMN", help="the cursor, from 1 on; columns count characters"
    )


def add_python_version(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--python-version",
        type=python_version,
        metavar="X.Y",
        help=f"for Python files, the version whose grammar counts, or {NEWEST} (default: the oldest that "
        "requires-python in the nearest pyproject.toml admits, else the newest)",
    )


def add_model_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", metavar="NAME", help="a model folder or hub name (default: the embedded model)")
    parser.add_argument("--device", metavar="DEVICE", help="cpu, cuda, ... (default: a GPU if there is one)")
    add_runtime(parser)
    parser.add_argument(
        "--max-new-tokens", type=positive(int), default=128, metavar="N", help="longest completion (default: 128)"
    )
    parser.add_argument(
        "--temperature",
        type=positive(float, zero=True),
        default=0.0,
        metavar="T",
        help="0 takes the likeliest token (default), more draws",
    )
    parser.add_argument(
        "--deadline-ms", type=positive(float), metavar="MS", help="return the best text so far after this time"
    )


def add_runtime(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--runtime",
        choices=RUNTIMES,
        help="what runs the model; onnx: onnxruntime-genai, on the CPU (default: onnx where the model has an export "
        "and the package is installed, else torch)",
    )


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def cursor(text: str) -> tuple[int, int]:
    """``LINE:COLUMN`` as two numbers."""
    try:
        line, column = (int(part) for part in text.split(":"))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a cursor: LINE:COLUMN expected, as in 12:5") from None
    return line, column


def python_version(text: str) -> str:
    """One of the versions of Python that are known, or the word for the newest."""
    known = Language.versions("python")
    if text not in (*known, NEWEST):
        raise argparse.ArgumentTypeError(f"{text!r} is not a known version: {', '.join(known)} or {NEWEST} expected")
    return text


def address(text: str) -> tuple[str, int]:
    """``HOST:PORT``."""
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not an address: HOST:PORT expected, as in 127.0.0.1:8765")
    return host.strip("[]"), int(port)


def positive(number: Callable[[str], Number], zero: bool = False) -> Callable[[str], Number]:
    """An argument type for numbers above (or from) zero."""

    def convert(text: str) -> Number:
        try:
            value = number(text)
        except ValueError:
            value = number("-1")
        if not (value > 0 or (zero and value == 0)):
            raise argparse.ArgumentTypeError(f"{text!r} is not a number {'from' if zero else 'above'} 0")
        return value

    return convert


# --- commands -----------------------------------------------------------------------------------------------------


def run_complete(arguments: argparse.Namespace) -> int:
    document = read_document(arguments)
    split = document.split(document.offset_at_line_column(*arguments.cursor))
    with Progress(arguments) as progress:
        language = choose_language(arguments, progress)
        progress.say("loading torch")
        from fim_server.decoding.loop import DecodeOptions, complete
        from fim_server.models.load import load_model

        progress.say(f"loading model {arguments.model or 'embedded'}")
        model = load_model(arguments.model, arguments.device, arguments.runtime)
        options = DecodeOptions(
            max_new_tokens=arguments.max_new_tokens,
            temperature=arguments.temperature,
            seed=arguments.seed,
            deadline_ms=arguments.deadline_ms,
            constrained=not arguments.unconstrained,
            landing=not arguments.no_landing,
            heal=True,
        )
        progress.say("completing")
        completion = complete(
            model,
            Recovery(language.open),
            split,
            options,
            on_token=lambda count: progress.say(f"completing, token {count}"),
        )
    if arguments.json:
        print_json(completion_as_json(arguments, language, split, completion))
    elif completion.text is not None and arguments.diff:
        colour = wants_colour(arguments.color)
        for line in diff_lines(arguments.file, split, completion, language.title, colour):
            print(line)
    elif completion.text is not None:
        print(split.restore(completion.text))
    if not arguments.json:
        report(completion, language.title)
    return DONE if completion.text is not None else NEGATIVE


def run_check(arguments: argparse.Namespace) -> int:
    document = read_document(arguments)
    with Progress(arguments) as progress:
        language = choose_language(arguments, progress)
        progress.say(f"checking {arguments.file}")
        state = language.open("", "").start()
        encoded = document.text.encode()
        accepted = state.advance(document.text)
        valid = accepted == len(encoded) and state.is_complete()
        explanation = None if valid else state.explain(encoded[accepted:].decode(errors="replace"))
    offset = len(encoded[:accepted].decode(errors="ignore"))
    line, column = document.line_column_at(offset)
    if arguments.json:
        verdict: dict[str, Any] = {"file": arguments.file, **names_of(language), "valid": valid}
        if explanation is not None:
            verdict |= {
                "position": {"line": line, "column": column, "offset": offset},
                "at_end": accepted == len(encoded),
                "expected": list(explanation.expected),
            }
        print_json(verdict)
    elif explanation is not None:
        where = "the file ends too early" if accepted == len(encoded) else f"{document.text[offset]!r} cannot be here"
        where += f" ({language.title})" if language.version is not None else ""
        print(f"{arguments.file}:{line}:{column}: {where}; {listing('expected', explanation.expected)}")
    return DONE if valid else NEGATIVE


def run_explain(arguments: argparse.Namespace) -> int:
    document = read_document(arguments)
    split = document.split(document.offset_at_line_column(*arguments.cursor))
    with Progress(arguments) as progress:
        language = choose_language(arguments, progress)
        progress.say(f"explaining {arguments.file}")
        session = language.open(split.left, split.right)
        answer = explanation_as_json(arguments, language, session)
    if arguments.json:
        print_json(answer)
    elif arguments.grammar:
        print(answer["grammar"])
    else:
        for line in explanation_lines(answer):
            print(line)
    return DONE if session.guarantee != "none" and answer["rejected_at"] is None else NEGATIVE


def explanation_as_json(arguments: argparse.Namespace, language: Language, session: Session) -> dict[str, Any]:
    """The fields of ``explain --json``."""
    state = session.start()
    explanation = state.explain(arguments.text)
    state.advance(explanation.accepted)
    distance, shortest = connection(state)
    grammar = {"grammar": session.quotient_grammar()} if arguments.grammar else {}
    return {
        "file": arguments.file,
        "line": arguments.cursor[0],
        "column": arguments.cursor[1],
        **names_of(language),
        "guarantee": session.guarantee,
        "diagnostics": session.diagnostics,
        "text": arguments.text,
        **asdict(explanation),
        "complete": explanation.rejected_at is None and state.is_complete(),
        "distance": distance,
        "shortest_completion": shortest,
        **grammar,
    }


def connection(state: State) -> tuple[int | None, str | None]:
    """Distance and shortest completion of a state; neither where the search passes its limit."""
    try:
        return state.distance(), state.shortest_completion()
    except OverflowError:
        return None, None


def run_languages(arguments: argparse.Namespace) -> int:
    with Progress(arguments) as progress:
        progress.say("loading the languages")
        languages = [Language.load(name) for name in Language.names()]
    if arguments.json:
        print_json([{"name": language.name, "suffixes": list(language.suffixes)} for language in languages])
    else:
        for language in languages:
            print(f"{language.name}\t{' '.join(language.suffixes)}")
    return DONE


def run_serve(arguments: argparse.Namespace) -> int:
    from fim_server.server import ServerSettings, serve

    named = {
        "max_tokens": arguments.max_new_tokens,
        "temperature": arguments.temperature,
        "deadline_ms": arguments.deadline_ms,
    }
    settings = ServerSettings(
        model=arguments.model,
        device=arguments.device,
        runtime=arguments.runtime,
        python_version=arguments.python_version,
        log_level=arguments.log_level,
        **{name: value for name, value in named.items() if value is not None},
    )
    return serve(settings, arguments.tcp, version())


def read_document(arguments: argparse.Namespace) -> Document:
    """The file the user named. Standard input is not waited for in vain."""
    if arguments.file == "-" and arguments.language is None:
        raise LanguageError("standard input has no suffix: name its language with --language")
    return Document.read(arguments.file)


def choose_language(arguments: argparse.Namespace, progress: Progress) -> Language:
    """The language the user named, or the one of the file's suffix; standard input belongs to the current folder."""
    progress.say("loading the language")
    return Language.for_path(arguments.file, arguments.language, {"python": arguments.python_version})


# --- output -------------------------------------------------------------------------------------------------------


class Progress:
    """Says on standard error what is being done, once it has taken longer than :data:`QUIET_SECONDS`.

    On a terminal it is one line that counts seconds and vanishes at the end; elsewhere, one line for the work that was
    under way when the time was up.
    """

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._text = ""
        self._ended = threading.Event()
        self._terminal = sys.stderr.isatty()
        enabled = self._terminal or not arguments.json  # a program that reads JSON may read standard error too
        self._thread = threading.Thread(target=self._show, daemon=True) if enabled else None
        self._started = time.monotonic()

    def say(self, text: str) -> None:
        """Name what is being done now."""
        self._text = text

    def __enter__(self) -> Progress:
        if self._thread is not None:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def _show(self) -> None:
        if self._ended.wait(QUIET_SECONDS):
            return
        if not self._terminal:
            print(f"{self._text} ...", file=sys.stderr, flush=True)
            return
        while True:
            seconds = time.monotonic() - self._started
            print(f"\r\x1b[K{self._text} ({seconds:.0f} s)", end="", file=sys.stderr, flush=True)
            if self._ended.wait(0.2):
                break
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def completion_as_json(
    arguments: argparse.Namespace, language: Language, split: Split, completion: Completion
) -> dict[str, Any]:
    """The fields of ``complete --json``; the text has the file's own line breaks."""
    return {
        "file": arguments.file,
        "line": arguments.cursor[0],
        "column": arguments.cursor[1],
        **names_of(language),
        "model": arguments.model or "embedded",
        "text": None if completion.text is None else split.restore(completion.text),
        "guarantee": completion.guarantee,
        "diagnostics": list(completion.diagnostics),
        "stop_reason": completion.stop_reason,
        "won": completion.won,
        "truncated": completion.truncated,
        "reason": completion.reason,
        "statistics": {
            name: round(value, 3) if isinstance(value, float) else value
            for name, value in asdict(completion.statistics).items()
        },
    }


def report(completion: Completion, language: str) -> None:
    """Say on standard error what the text alone does not: that there is none, or that nothing vouches for it."""
    if completion.text is None:
        print(f"{PROGRAM}: no completion: {completion.reason}", file=sys.stderr)
    elif completion.text == "":
        print(f"{PROGRAM}: the model inserts nothing here", file=sys.stderr)
    if completion.text is not None and completion.guarantee != "exact":
        print(f"{PROGRAM}: {promise(completion, language)}", file=sys.stderr)
    for line in completion.diagnostics:
        print(f"{PROGRAM}: {line}", file=sys.stderr)


def promise(completion: Completion, language: str) -> str:
    """The guarantee in plain words."""
    match completion.guarantee:
        case "exact":
            return f"guarantee exact: with this text the whole file parses as {language}"
        case "partial":
            return f"guarantee partial: with this text, and without the lines left out, the file parses as {language}"
        case _:
            return f"guarantee none: nothing says that the file parses as {language} with this text"


def diff_lines(path: str, split: Split, completion: Completion, language: str, colour: bool) -> Iterator[str]:
    """A unified diff of the file without and with the completion, headed by the guarantee.

    In colour, the inserted characters themselves stand out from the lines that hold them.
    """
    import difflib

    text = completion.text or ""
    inserted = range(len(split.left), len(split.left) + len(text))
    statistics = completion.statistics
    yield paint(
        f"{promise(completion, language)} ({statistics.tokens} tokens, {statistics.refused_tokens} refused, "
        f"{statistics.total_ms:.0f} ms)",
        "1;32" if completion.guarantee == "exact" else "1;33",
        colour,
    )
    old, new = keep_line_ends(split.joined("")), keep_line_ends(split.joined(text))
    offset_of = line_offsets(new)
    number = 0
    for row, line in enumerate(difflib.unified_diff(old, new, path, path, n=DIFF_CONTEXT)):
        body = line[1:].removesuffix("\n")
        if row < 2:
            yield paint(line.rstrip("\n"), "1", colour)
            continue
        if line.startswith("@@"):
            number = int(line.split("+")[1].split(",")[0].split(" ")[0]) - 1
            yield paint(line.rstrip("\n"), "36", colour)
            continue
        if line.startswith("+"):
            yield paint("+", "32", colour) + highlight(body, offset_of[number], inserted, colour)
        else:
            yield paint(line[0] + body, "31", colour) if line.startswith("-") else line[0] + body
        number += not line.startswith("-")
        if not line.endswith("\n"):
            yield "\\ No newline at end of file"


def highlight(line: str, offset: int, inserted: range, colour: bool) -> str:
    """A line of the new text, the part of it that lies in ``inserted`` set off from the rest."""
    start = min(max(inserted.start - offset, 0), len(line))
    end = min(max(inserted.stop - offset, 0), len(line))
    set_off = "1;7;32" if line[start:end].isspace() else "1;92"  # blanks show in reverse video only
    parts = ((line[:start], "32"), (line[start:end], set_off), (line[end:], "32"))
    return "".join(paint(part, code, colour) for part, code in parts if part)


def keep_line_ends(text: str) -> list[str]:
    """The lines of a text, each with its ``"\\n"``; only the last may lack one."""
    lines = [line + "\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def line_offsets(lines: Sequence[str]) -> list[int]:
    """Offset of each line's first character."""
    offsets = [0]
    for line in lines:
        offsets.append(offsets[-1] + len(line))
    return offsets


def names_of(language: Language) -> dict[str, Any]:
    """A language in JSON; the version is there only if the grammar is narrowed to one."""
    return {"language": language.name, **({} if language.version is None else {"version": language.version})}


def explanation_lines(answer: dict[str, Any]) -> Iterator[str]:
    """The answer of ``explain`` for people."""
    language = " ".join(answer[key] for key in ("language", "version") if key in answer)
    yield f"{answer['file']}:{answer['line']}:{answer['column']}: {language}, guarantee {answer['guarantee']}"
    yield from (f"  {line}" for line in answer["diagnostics"])
    if answer["text"]:
        verdict = "complete" if answer["complete"] else "possible, not complete"
        if answer["rejected_at"] is not None:
            verdict = f"impossible after {answer['accepted']!r}"
        yield f"  {answer['text']!r} is {verdict}"
    yield f"  {listing('may come next', answer['expected'])}"
    for side in ("left", "right"):
        if answer[f"open_{side}"]:
            yield f"  open on the {side}: {', '.join(answer[f'open_{side}'])}"
    if answer["shortest_completion"] is not None:
        yield f"  shortest completion: {answer['shortest_completion']!r} (distance {answer['distance']})"


def listing(title: str, alternatives: Sequence[str]) -> str:
    """``title: a, b, c and 5 more``."""
    if not alternatives:
        return f"{title}: nothing"
    rest = len(alternatives) - SHOWN_EXPECTED
    return f"{title}: {', '.join(alternatives[:SHOWN_EXPECTED])}{f' and {rest} more' if rest > 0 else ''}"


def wants_colour(choice: str) -> bool:
    """Whether standard output is to be coloured; NO_COLOR (no-color.org) speaks for those who did not choose."""
    if choice != "auto":
        return choice == "always"
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def paint(text: str, code: str, colour: bool) -> str:
    """Text in an ANSI colour."""
    return f"\x1b[{code}m{text}\x1b[0m" if colour else text


def print_json(value: object) -> None:
    """One line of JSON."""
    print(json.dumps(value, ensure_ascii=False))


def one_line(text: str) -> str:
    """A message without line breaks."""
    return " ".join(text.split())


def version() -> str:
    """The installed version."""
    try:
        return metadata.version(PROGRAM)
    except metadata.PackageNotFoundError:
        return "(not installed)"
