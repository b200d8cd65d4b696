"""What ends a text in the middle of a line: the closer right of the cursor, and the rest of the line.

    python -m benchmarks.suggestions.rests FOLDER... --lines 60 --seed 5

Of each line that is drawn up to four lexemes are taken out before its last one, and, at another place, nothing. What
the model writes there, on that line and under the grammar, is counted by what its writing ends: line breaks alone,
closers as well (`DecodeOptions.closing`), what else stands right of the cursor as well (`DecodeOptions.following`).
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from benchmarks.suggestions.context import LEXEME
from benchmarks.suggestions.recipes import add_prompt_tokens, command_line, drawn_of, end_with, options_of
from fim_server.decoding.ending.rest_of_line import Following
from fim_server.decoding.ending.right_closer import Closing
from fim_server.decoding.loop.healing import Healing
from fim_server.decoding.options import DecodeOptions
from fim_server.decoding.strategies.alternatives import complete_session
from fim_server.language import Language
from fim_server.models.load import load_model
from fim_server.models.reading import Readings
from fim_server.text.document import Split

if TYPE_CHECKING:
    from benchmarks.suggestions.lines import Project as Sources
    from fim_server.models.model import FimModel

MOST_TOKENS, MOST_LEXEMES = 24, 4
"""Of a text that is written, and of one that is taken out."""

GROUPS = ("before a closer", "before something else", "nothing belongs there")
ENDS = ("line breaks", "closers", "the rest of the line")
OUTCOMES = ("right", "first lexeme right", "wrong", "nothing")


@dataclass(frozen=True)
class Hole:
    """A file without a part of a line."""

    split: Split
    middle: str


def holes(sources: Sources, seed: int) -> Iterator[Hole]:
    """Two holes in each line that has three lexemes: of some of them, and of none."""
    chance = random.Random(f"rests {sources.name} {seed}")
    for task in sources.tasks:
        line = task.wanted.partition("\n")[0]
        lexemes = [match.span() for match in LEXEME.finditer(line)]
        if len(lexemes) < 3:
            continue
        first = chance.randrange(len(lexemes) - 1)
        last = chance.randrange(first, min(first + MOST_LEXEMES, len(lexemes) - 1))
        start, end = lexemes[first][0], lexemes[last][1]
        whole = task.wanted + task.after
        yield Hole(Split(task.before + line[:start], whole[end:]), line[start:end])
        at = chance.choice(lexemes[1:])[0]
        yield Hole(Split(task.before + line[:at], whole[at:]), "")


def outcomes(model: FimModel, language: Language, hole: Hole, options: DecodeOptions) -> tuple[str, list[str]] | None:
    """What kind of hole one is, and what comes of it by what ends a text; None where it is no hole of code."""
    left, right = hole.split.left, hole.split.right
    session = language.open(left, right)
    if session.guarantee != "exact" or session.inside is not None or not session.check(hole.middle).complete:
        return None
    closing, following = Closing.of(session, left, right), Following.of(session, right)
    group = GROUPS[2] if not hole.middle else GROUPS[0] if closing is not None else GROUPS[1]
    healing, readings = Healing.of(model, hole.split), Readings(model)
    found = []
    for ends in ((None, None), (closing, None), (closing, following)):
        chosen = replace(options, closing=ends[0], following=ends[1])
        written = complete_session(model, session, healing.split, chosen, readings=readings, healing=healing.text)
        found.append(outcome(healing.undo(written).text, hole.middle))
    return group, found


def outcome(text: str | None, middle: str) -> str:
    """What a text is beside what was taken out."""
    text, middle = (text or "").strip(), middle.strip()
    if not text:
        return OUTCOMES[3]
    if text == middle:
        return OUTCOMES[0]
    firsts = [match[0] if (match := LEXEME.match(one)) is not None else None for one in (text, middle)]
    return OUTCOMES[1] if firsts[0] == firsts[1] else OUTCOMES[2]


def table(found: Sequence[tuple[str, list[str]]]) -> str:
    """How often each outcome was, by kind of hole and what ends a text."""
    lines = [f"| hole | ends at | holes | {' | '.join(OUTCOMES)} |", f"|---|---|---:|{'---:|' * len(OUTCOMES)}"]
    for group in GROUPS:
        mine = [outcomes for kind, outcomes in found if kind == group]
        for number, ends in enumerate(ENDS if mine else ()):
            counts = Counter(outcomes[number] for outcomes in mine)
            cells = (f"{counts[name]}" for name in OUTCOMES)
            lines.append(f"| {group} | {ends} | {len(mine)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Fill in holes, and print the table."""
    parser = command_line("What ends a text in the middle of a line.", "--lines", "lines of", 60, 5)
    add_prompt_tokens(parser)
    given = parser.parse_args(arguments)
    model, language = load_model(given.model, None, None), Language.load("python")
    options = options_of(given.prompt_tokens, MOST_TOKENS, single_line=True)
    found: list[tuple[str, list[str]]] = []
    for sources in drawn_of(given.folder, given.drawn, given.seed, lambda: f"{len(found)} holes"):
        for hole in holes(sources, given.seed):
            one = outcomes(model, language, hole, options)
            if one is not None:
                found.append(one)
    print(table(found))
    return 0


if __name__ == "__main__":
    end_with(main)
