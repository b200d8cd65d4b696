"""``fim-server languages``: the languages that are known."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any

from fim_server.cli.arguments import add_json, bind
from fim_server.cli.output import DONE, print_json, progress
from fim_server.language import Language


@dataclass(frozen=True)
class LanguagesArguments:
    """What ``fim-server languages`` is asked for."""

    json: bool


def add_languages(commands: Any) -> None:
    """Add the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "languages", help="list the languages", description="List the known languages."
    )
    add_json(parser)
    bind(parser, LanguagesArguments, run_languages)


def run_languages(arguments: LanguagesArguments) -> int:
    """Run the command; returns the exit status."""
    with progress(arguments.json) as shown:
        shown.say("loading the languages")
        languages = [Language.load(name) for name in Language.names()]
    if arguments.json:
        print_json([{"name": language.name, "suffixes": list(language.suffixes)} for language in languages])
    else:
        for language in languages:
            print(f"{language.name}\t{' '.join(language.suffixes)}")
    return DONE
