"""``fim-server check``: does a file parse?"""

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
"""Characters before a place that hold the symbol that ends there."""


@dataclass(frozen=True)
class CheckArguments:
    """Arguments of ``fim-server check``."""

    file: str
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
        where = "the file ends too early" if accepted == len(encoded) else f"{text[offset]!r} cannot come here"
        where += f" ({language.title})" if language.version is not None else ""
        line_of_error = f"{arguments.file}:{line}:{column}: {where}; {expectation(likely, explanation.expected)}"
        print(escaped(line_of_error))
    return DONE if valid else NEGATIVE
