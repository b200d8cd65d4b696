"""What best-first search is worth: the texts of `DecodeOptions.search` beside those of one text.

    python -m benchmarks.suggestions.searching FOLDER... --holes 20 --search 1 2 4 8

Lines of each folder's files are cut at a lexeme. The rest of each is written, of the line alone and of it with the
two below it, under the grammar and with nothing mixed in. It is told how often the text was right, its bits by the
model without the grammar, its end included, and the passes that it took: of all holes, and of those where the
grammar refused the model's own choice in the first text.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from benchmarks.suggestions.context import LEXEME
from benchmarks.suggestions.recipes import add_prompt_tokens, command_line, drawn_of, end_with, options_of
from fim_server.decoding.ending.right_closer import Closing
from fim_server.decoding.loop.healing import Healing
from fim_server.decoding.options import DecodeOptions
from fim_server.decoding.results import Statistics
from fim_server.decoding.strategies.alternatives import complete_session
from fim_server.language import Language
from fim_server.models.load import load_model
from fim_server.models.reading import Readings
from fim_server.text.document import Split

if TYPE_CHECKING:
    from benchmarks.suggestions.lines import Project as Sources
    from fim_server.models.model import FimModel

MOST_TOKENS = 64
"""Of a middle."""

LINES = 3
"""That a hole ends with at most, its own among them."""


@dataclass(frozen=True)
class Hole:
    """A file without some of its text."""

    split: Split
    middle: str
    single_line: bool


@dataclass(frozen=True)
class Filled:
    """What came of a hole: whether it was right, its bits or None where there is no text, and what it took."""

    right: bool
    bits: float | None
    statistics: Statistics


def holes(sources: Sources, seed: int) -> Iterator[Hole]:
    """Two holes for each of a folder's lines: its rest, and that with the lines below."""
    chance = random.Random(f"searching {sources.name} {seed}")
    for task in sources.tasks:
        starts = [match.start() for match in LEXEME.finditer(task.wanted)]
        at = chance.choice(starts[:-1] or starts)
        yield Hole(Split(task.before + task.wanted[:at], task.after), task.wanted[at:], True)
        below = task.after.split("\n")
        further = "\n".join(below[:LINES])
        yield Hole(Split(task.before + task.wanted[:at], task.after[len(further) :]), task.wanted[at:] + further, False)


def fill(
    model: FimModel, language: Language, hole: Hole, searches: Sequence[int], options: DecodeOptions
) -> list[Filled]:
    """Have the model write a hole's middle, with each number of texts that may be tried."""
    session = language.open(hole.split.left, hole.split.right)
    healing = Healing.of(model, hole.split)
    readings = Readings(model)
    found = []
    for search in searches:
        chosen = replace(
            options,
            single_line=hole.single_line,
            search=search,
            closing=Closing.of(session, hole.split.left, hole.split.right),
        )
        completion = complete_session(model, session, healing.split, chosen, readings=readings, healing=healing.text)
        text = healing.undo(completion).text
        right = text is not None and text.rstrip() == hole.middle.rstrip()
        found.append(Filled(right, completion.bits if text is not None else None, completion.statistics))
    return found


def table(found: Sequence[Sequence[Filled]], searches: Sequence[int]) -> str:
    """The figures by number of texts."""
    lines = ["| texts | holes | right | bits of the text | passes |", "|---:|---:|---:|---:|---:|"]
    compared = [one for one in found if all(two.bits is not None for two in one)]
    for number, search in enumerate(searches):
        mine = [one[number] for one in compared]
        if mine:
            right = f"{sum(one.right for one in mine)}"
            bits = f"{sum(one.bits or 0.0 for one in mine) / len(mine):.2f}"
            passes = f"{sum(one.statistics.passes for one in mine) / len(mine):.1f}"
            lines.append(f"| {search} | {len(mine)} | {right} | {bits} | {passes} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Fill in holes, and print tables."""
    parser = command_line("What best-first search is worth.", "--holes", "lines of", 20, 0)
    parser.add_argument("--search", type=int, nargs="+", default=[1, 2, 4, 8], help="texts that are tried at most")
    add_prompt_tokens(parser)
    given = parser.parse_args(arguments)
    model, language = load_model(given.model, None, None), Language.load("python")
    options = options_of(given.prompt_tokens, MOST_TOKENS, scored=True)
    found: dict[bool, list[list[Filled]]] = {True: [], False: []}
    for sources in drawn_of(given.folder, given.drawn, given.seed, lambda: f"{sum(map(len, found.values()))} holes"):
        for hole in holes(sources, given.seed):
            found[hole.single_line].append(fill(model, language, hole, given.search, options))
    for single_line, mine in found.items():
        refused = [one for one in mine if one[0].statistics.refused_tokens]
        print(f"{'Rests of lines' if single_line else f'Rests of lines and {LINES - 1} below'}:\n")
        print(f"{table(mine, given.search)}\n\nThose where a choice was refused:\n\n{table(refused, given.search)}\n")
    return 0


if __name__ == "__main__":
    end_with(main)
