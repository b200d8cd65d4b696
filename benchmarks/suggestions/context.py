"""What it is worth to show the model other files, at equal lengths of the prompt (setting projectContext).

    python -m benchmarks.suggestions.context FOLDER... --holes 22 --shares 0 0.25 0.4

Lines of each folder's files are cut at a lexeme, and the rest of each is written greedily, one line, with the memory of
the rest of the folder mixed in as the server does it, or not: without other files in the prompt, and with as large a
share of its tokens for them as is asked for. The files that lines are taken from are not on the disk. It is told how
often the first lexeme and all of the rest were right, and in how many holes that changed.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from benchmarks.suggestions.recipes import (
    add_prompt_tokens,
    command_line,
    drawn_of,
    end_with,
    options_of,
    remembered,
)
from fim_server.decoding.ending.right_closer import Closing
from fim_server.decoding.loop.healing import Healing
from fim_server.decoding.options import DecodeOptions
from fim_server.decoding.strategies.alternatives import complete_session
from fim_server.language import Language
from fim_server.models.load import load_model
from fim_server.suggest.context.cross_file import choose
from fim_server.suggest.job import Request
from fim_server.suggest.settings import ServerSettings
from fim_server.text.document import Split

if TYPE_CHECKING:
    from benchmarks.suggestions.lines import Project as Sources
    from fim_server.models.model import FimModel
    from fim_server.models.project_context import ProjectContext
    from fim_server.suggest.sources.project import Project

LEXEME = re.compile(r"\w+|[^\w\s]")

MOST_TOKENS = 48
"""Of a line."""


@dataclass(frozen=True)
class Hole:
    """The rest of a line, and what there is to show there of other files."""

    split: Split
    rest: str
    uri: str
    context: ProjectContext | None


@dataclass(frozen=True)
class Filled:
    """What was written into a hole.

    Attributes:
        first: Whether its first lexeme is right.
        whole: Whether all of it is.
        tokens: Of the prompt.
    """

    first: bool
    whole: bool
    tokens: int


def holes(sources: Sources, project: Project, language: Language, root: str, seed: int) -> Iterator[Hole]:
    """The holes of a folder, each while its document is open."""
    chance = random.Random(f"context {sources.name} {seed}")
    for task in sources.tasks:
        starts = [match.start() for match in LEXEME.finditer(task.wanted)]
        at = chance.choice(starts[:-1] or starts)
        split = Split(task.before + task.wanted[:at], task.after)
        uri = f"{root}/{task.file}"
        project.opened(uri)
        project.tell(uri, split)
        project.memory.settle()
        request = Request(uri, split, "python", task.file, False, True, ServerSettings())
        yield Hole(split, task.wanted[at:], uri, choose(project, request, language))
        project.forget(uri)


def fill(model: FimModel, language: Language, hole: Hole, project: Project | None, options: DecodeOptions) -> Filled:
    """Have the model write the rest of a line. ``project``: whose memory is mixed in; None mixes in nothing."""
    session = language.open(hole.split.left, hole.split.right)
    healing = Healing.of(model, hole.split)
    options = replace(
        options,
        advice=None if project is None else project.advice(hole.uri, hole.split.left),
        closing=Closing.of(session, hole.split.left, hole.split.right),
    )
    completion = healing.undo(complete_session(model, session, healing.split, options, healing=healing.text))
    text = (completion.text or "").rstrip()
    wanted = LEXEME.match(hole.rest)
    found = LEXEME.match(text)
    first = wanted is not None and found is not None and wanted[0] == found[0]
    return Filled(first, text == hole.rest.rstrip(), completion.statistics.prompt_tokens)


def table(found: Sequence[Sequence[Filled]], shares: Sequence[float]) -> str:
    """How often it was right, by share; the changes are against the first of them."""
    lines = [
        "| for other files | prompt tokens | first lexeme right | rest of the line right | first: +, - | rest: +, - |",
        "|---:|---:|---:|---:|---:|---:|",
    ]
    for number, share in enumerate(shares):
        mine, other = [one[number] for one in found], [one[0] for one in found]
        cells = [f"{100 * share:.0f} %", f"{sum(one.tokens for one in mine) / len(mine):.0f}"]
        right = sum(one.first for one in mine), sum(one.whole for one in mine)
        cells += [f"{100 * count / len(mine):.1f} %" for count in right]
        for name in ("first", "whole"):
            pairs = [(getattr(one, name), getattr(two, name)) for one, two in zip(mine, other, strict=True)]
            cells.append(f"{pairs.count((True, False))}, {pairs.count((False, True))}")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Fill in holes, and print a table."""
    parser = command_line("What it is worth to show the model other files.", "--holes", "lines of", 22, 0)
    parser.add_argument("--shares", type=float, nargs="+", default=[0, 0.25], help="of the prompt, for other files")
    parser.add_argument("--without-memory", action="store_true", help="mix nothing into what the model says")
    add_prompt_tokens(parser)
    given = parser.parse_args(arguments)
    model, language = load_model(given.model, None, None), Language.load("python")
    plain = options_of(given.prompt_tokens, MOST_TOKENS, single_line=True)
    found: list[list[Filled]] = []
    shown = 0
    for sources in drawn_of(
        given.folder, given.drawn, given.seed, lambda: f"{len(found)} holes\n{table(found, given.shares)}"
    ):
        with remembered(sources) as (root, project):
            for hole in holes(sources, project, language, root.as_uri(), given.seed):
                shown += hole.context is not None
                found.append([])
                for share in given.shares:
                    options = replace(plain, context=hole.context if share else None, context_share=share)
                    mixed = None if given.without_memory else project
                    found[-1].append(fill(model, language, hole, mixed, options))
    print(f"{len(found)} holes, {shown} with something to show\n\n{table(found, given.shares)}")
    return 0


if __name__ == "__main__":
    end_with(main)
