"""``fim-server check``: does a file parse?"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fim_server.cli.arguments import add_file, add_json, add_versions, bind
from fim_server.cli.output import DONE, NEGATIVE, expectation, print_json, progress
from fim_server.cli.source import choose_language, host_of_file, names_of, read_document
from fim_server.language import Language
from fim_server.text.document import Document
from fim_server.text.hidden import escaped
from fim_server.text.regions import Host
from fim_server.text.terminal import Progress

NEAR = 100
"""Characters before a place that hold the symbol that ends there."""


@dataclass(frozen=True)
class CheckArguments:
    """Arguments of ``fim-server check``."""

    file: str
    any_file: bool
    language: str | None
    language_version: str | None
    python_version: str | None
    json: bool


def add_check(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "check",
        help="check that a file parses",
        description="Check that a file parses. If not, show where it fails and what is allowed there.",
        epilog="Exit status: 0 it parses, 1 it does not, 2 bad input.",
    )
    add_file(parser)
    add_versions(parser)
    add_json(parser)
    bind(parser, CheckArguments, run_check)


def run_check(arguments: CheckArguments) -> int:
    """Run the command; return the exit status. Raises DocumentError and LanguageError."""
    document = read_document(arguments)
    host = host_of_file(arguments)
    with progress(arguments.json) as shown:
        whole: list[Verdict] = []
        if host is None or host.name in Language.names():
            whole = [checked(arguments, document, choose_language(arguments, shown), 0, len(document.text), shown)]
        code = []
        if host is not None:
            code = [
                checked(
                    arguments,
                    document,
                    choose_language(arguments, shown, region.language),
                    region.start,
                    region.end,
                    shown,
                )
                for region in host.regions(document.text)
                if region.language is not None
            ]
    valid = all(verdict.expected is None for verdict in (*whole, *code))
    if arguments.json:
        print_json({"file": arguments.file, **as_json(host, document, whole, code)})
    else:
        for verdict in (*whole, *code):
            if verdict.expected is not None:
                print(escaped(f"{arguments.file}:{error_line(document, verdict)}"))
    return DONE if valid else NEGATIVE


@dataclass(frozen=True)
class Verdict:
    """Verdict on a file, or on the code in a file of another language.

    Attributes:
        language: The language.
        start: Offset of the text in the file.
        offset: Offset in the file up to which it parses.
        at_end: Whether that is the text's end.
        likely: The likeliest text there, if it fails.
        expected: What may come there; None for a text that parses.
    """

    language: Language
    start: int
    offset: int
    at_end: bool
    likely: str | None = None
    expected: tuple[str, ...] | None = None


def checked(
    arguments: CheckArguments, document: Document, language: Language, start: int, end: int, shown: Progress
) -> Verdict:
    """Return the verdict on a stretch of a file."""
    shown.say(f"checking {arguments.file}")
    state = language.open("", "").start()
    text = document.split(end, Language.keeps_returns(language.name)).left[start:]
    encoded = text.encode()
    accepted = state.advance(text)
    read, at_end = encoded[:accepted].decode(errors="ignore"), accepted == len(encoded)
    offset = start + len(read)
    if at_end and state.is_complete():
        return Verdict(language, start, offset, at_end)
    explanation = state.explain(encoded[accepted:].decode(errors="replace"))
    likely = state.likely_next(explanation, read[-NEAR:])
    return Verdict(language, start, offset, at_end, likely, tuple(explanation.expected))


def as_json(
    host: Host | None, document: Document, whole: Sequence[Verdict], verdicts: Sequence[Verdict]
) -> dict[str, Any]:
    """Return the fields of ``check --json``.

    Args:
        host: The file's language, if it holds code of others.
        document: The file.
        whole: The verdict on the whole file; none if its language has no grammar.
        verdicts: The verdicts on its code.
    """
    answer: dict[str, Any] = {"valid": True}
    for verdict in whole:
        answer = verdict_as_json(document, verdict)
    if host is None:
        return answer
    code = [
        {"line": document.line_column_at(verdict.start)[0], **verdict_as_json(document, verdict)}
        for verdict in verdicts
    ]
    valid = answer["valid"] and all(one["valid"] for one in code)
    return {**answer, "language": host.name, "valid": valid, "code": code}


def verdict_as_json(document: Document, verdict: Verdict) -> dict[str, Any]:
    valid = verdict.expected is None
    answer: dict[str, Any] = {**names_of(verdict.language), "valid": valid}
    if verdict.expected is not None:
        line, column = document.line_column_at(verdict.offset)
        answer |= {
            "position": {"line": line, "column": column, "offset": verdict.offset},
            "at_end": verdict.at_end,
            "likely": verdict.likely,
            "expected": list(verdict.expected),
        }
    return answer


def error_line(document: Document, verdict: Verdict) -> str:
    """Return the line of output about a text that does not parse, without the file's name."""
    line, column = document.line_column_at(verdict.offset)
    ending = "the file ends too early" if verdict.start == 0 else "the code ends too early"
    where = ending if verdict.at_end else f"{document.text[verdict.offset]!r} cannot come here"
    where += f" ({verdict.language.title})" if verdict.language.version is not None else ""
    return f"{line}:{column}: {where}; {expectation(verdict.likely, verdict.expected or ())}"
