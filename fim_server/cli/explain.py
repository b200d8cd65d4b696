"""``fim-server explain``: the texts that fit at a cursor, and why."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from fim_server.cli.arguments import add_cursor, add_file, add_json, add_versions, bind
from fim_server.cli.output import DONE, NEGATIVE, listing, print_json, progress
from fim_server.cli.source import Part, choose_part, names_of, read_document
from fim_server.errors import SearchLimitError
from fim_server.language import Session, State
from fim_server.text.hidden import escaped


@dataclass(frozen=True)
class ExplainArguments:
    """Arguments of ``fim-server explain``; ``cursor`` is a line and a column, from 1 on."""

    file: str
    any_file: bool
    language: str | None
    cursor: tuple[int, int]
    language_version: str | None
    python_version: str | None
    text: str
    grammar: bool
    json: bool


def add_explain(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "explain",
        help="explain what fits at a cursor",
        description="Show what may come at a cursor, which constructs are open on either side, and the shortest text "
        "that connects them.",
        epilog="Exit status: 0 done, 1 the text of --text is impossible, or any text is, 2 bad input.",
    )
    add_file(parser)
    add_cursor(parser)
    add_versions(parser)
    parser.add_argument("--text", default="", metavar="TEXT", help="judge this text, typed at the cursor")
    parser.add_argument("--grammar", action="store_true", help="print the grammar of all texts that fit")
    add_json(parser)
    bind(parser, ExplainArguments, run_explain)


def run_explain(arguments: ExplainArguments) -> int:
    """Run the command; return the exit status. Raises DocumentError and LanguageError."""
    document = read_document(arguments)
    offset = document.offset_at_line_column(*arguments.cursor)
    with progress(arguments.json) as shown:
        part = choose_part(arguments, document, offset, shown)
        shown.say(f"explaining {arguments.file}")
        session = part.language.open(part.contexts.left, part.contexts.right)
        answer = explanation_as_json(arguments, part, session)
    if arguments.json:
        print_json(answer)
    elif arguments.grammar:
        print(escaped(answer["grammar"]))
    else:
        for line in explanation_lines(answer):
            print(escaped(line))
    return DONE if session.guarantee != "none" and answer["rejected_at"] is None else NEGATIVE


def explanation_as_json(arguments: ExplainArguments, part: Part, session: Session) -> dict[str, Any]:
    state, left = session.start(), part.contexts.left
    explanation = state.explain(arguments.text)
    likely = state.likely_next(explanation, left)
    state.advance(explanation.accepted)
    distance, shortest = connection(state)
    grammar = {"grammar": session.quotient_grammar()} if arguments.grammar else {}
    return {
        "file": arguments.file,
        "line": arguments.cursor[0],
        "column": arguments.cursor[1],
        **names_of(part.language),
        "guarantee": part.guaranteed(session.guarantee),
        "diagnostics": [*session.diagnostics, *part.diagnostics],
        "text": arguments.text,
        **asdict(explanation),
        "open_constructs": [
            {"name": one.name, "line": 1 + left.count("\n", 0, one.offset)} for one in session.open_constructs()
        ],
        "likely": likely,
        "complete": explanation.rejected_at is None and state.is_complete(),
        "distance": distance,
        "shortest_completion": shortest,
        **grammar,
    }


def connection(state: State) -> tuple[int | None, str | None]:
    """Return the distance and shortest completion of a state; neither if the search passes its limit."""
    try:
        return state.distance(), state.shortest_completion()
    except SearchLimitError:
        return None, None


def explanation_lines(answer: dict[str, Any]) -> Iterator[str]:
    language = " ".join(answer[key] for key in ("language", "version") if key in answer)
    yield f"{answer['file']}:{answer['line']}:{answer['column']}: {language}, guarantee {answer['guarantee']}"
    yield from (f"  {line}" for line in answer["diagnostics"])
    if answer["text"]:
        verdict = "complete" if answer["complete"] else "possible, not complete"
        if answer["rejected_at"] is not None:
            verdict = f"impossible after {answer['accepted']!r}"
        yield f"  {answer['text']!r} is {verdict}"
    if answer["likely"] is not None:
        yield f"  likely next: {answer['likely']}"
    yield f"  {listing('may come next', answer['expected'])}"
    if answer["open_constructs"]:
        # The names of rules, `open_left`, are only in the JSON, for authors of definitions.
        constructs = (f"{one['name']} (line {one['line']})" for one in answer["open_constructs"])
        yield f"  open on the left: {', '.join(constructs)}"
    if answer["open_right"]:
        yield f"  open on the right: {', '.join(answer['open_right'])}"
    if answer["shortest_completion"] is not None:
        yield f"  shortest completion: {answer['shortest_completion']!r} (distance {answer['distance']})"
