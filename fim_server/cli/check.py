"""``fim-server check``: whether a file parses."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any

from fim_server.cli.arguments import add_file, add_json, add_versions, bind
from fim_server.cli.output import DONE, NEGATIVE, expectation, print_json, progress
from fim_server.cli.source import choose_language, names_of, read_document
from fim_server.language import Language
from fim_server.text.hidden import escaped

NEAR = 100
"""Characters before a place in which the symbol that ends there begins."""


@dataclass(frozen=True)
class CheckArguments:
    """What ``fim-server check`` is asked for."""

    file: str
    language: str | None
    language_version: str | None
    python_version: str | None
    json: bool


def add_check(commands: Any) -> None:
    """Add the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "check",
        help="say whether a file parses",
        description="Say whether a file parses, and if not, where it fails and what was allowed there.",
        epilog="Exit status: 0 it parses, 1 it does not, 2 bad input.",
    )
    add_file(parser)
    add_versions(parser)
    add_json(parser)
    bind(parser, CheckArguments, run_check)


def run_check(arguments: CheckArguments) -> int:
    """Run the command; returns the exit status. Raises DocumentError and LanguageError."""
    document = read_document(arguments.file, arguments.language)
    with progress(arguments.json) as shown:
        language = choose_language(arguments, shown)
        shown.say(f"checking {arguments.file}")
        state = language.open("", "").start()
        text = document.split(len(document.text), Language.keeps_returns(language.name)).left
        encoded = text.encode()
        accepted = state.advance(text)
        valid = accepted == len(encoded) and state.is_complete()
        explanation = None if valid else state.explain(encoded[accepted:].decode(errors="replace"))
        likely = (
            None
            if explanation is None
            else state.likely_next(explanation, encoded[:accepted].decode(errors="ignore")[-NEAR:])
        )
    offset = len(encoded[:accepted].decode(errors="ignore"))
    line, column = document.line_column_at(offset)
    if arguments.json:
        verdict: dict[str, Any] = {"file": arguments.file, **names_of(language), "valid": valid}
        if explanation is not None:
            verdict |= {
                "position": {"line": line, "column": column, "offset": offset},
                "at_end": accepted == len(encoded),
                "likely": likely,
                "expected": list(explanation.expected),
            }
        print_json(verdict)
    elif explanation is not None:
        where = "the file ends too early" if accepted == len(encoded) else f"{text[offset]!r} cannot be here"
        where += f" ({language.title})" if language.version is not None else ""
        told = f"{arguments.file}:{line}:{column}: {where}; {expectation(likely, explanation.expected)}"
        print(escaped(told))
    return DONE if valid else NEGATIVE
