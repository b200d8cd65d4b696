"""``fim-server languages``: list the languages."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any

from fim_server.cli.arguments import add_json, bind
from fim_server.cli.output import DONE, print_json
from fim_server.language import Language
from fim_server.language.definition.compile import BALANCED, read_builtin
from fim_server.language.spelling import Spelling


@dataclass(frozen=True)
class LanguagesArguments:
    """Arguments of ``fim-server languages``."""

    json: bool


def add_languages(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "languages",
        help="list the languages",
        description="List the languages, the guarantee of each, and the parser that it is compared with.",
    )
    add_json(parser)
    bind(parser, LanguagesArguments, run_languages)


def run_languages(arguments: LanguagesArguments) -> int:
    listed = [row(name) for name in Language.names()]
    if arguments.json:
        print_json(listed)
    else:
        for each in listed:
            versions = each["versions"]
            numbered = all(version[:1].isdigit() for version in versions)
            known = f"{versions[0]} to {versions[-1]}" if numbered and versions else ", ".join(versions)
            known = known and f": {known}"
            checked = each["closes"] if each["reference"] is None else f"compared with {each['reference']}"
            print(f"{each['name']}\t{' '.join(each['suffixes'])}\t{each['guarantee']}, {checked}{known}")
    return DONE


def row(name: str) -> dict[str, Any]:
    """Return the facts about a language, without compiling it."""
    definition = read_builtin(name)
    is_balanced = definition.guarantee == BALANCED
    return {
        "name": name,
        "suffixes": list(definition.suffixes),
        "versions": list(Language.versions(name)),
        "guarantee": definition.guarantee,
        "reference": definition.spec.get("reference"),
        "closes": Spelling.from_spec(definition.spec | definition.of_spelling).closes if is_balanced else None,
    }
