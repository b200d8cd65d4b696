"""Fit `block_likelihood` of `suggest/postprocess/constants.toml`: measure how often a new block's first line is right.

    python -m benchmarks.suggestions.blocks FOLDER... --blocks 40

In files that lines of a folder are drawn from, a header and its whole block are taken away. The server's worker is
asked in this process after the header's first word, with the rest of the folder as the project. The report tells how
often the model's first line of the block is the true one, by the model's likelihood of it after the header.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from benchmarks.suggestions.projects import Project as Sources
from benchmarks.suggestions.recipes import PROMPT_TOKENS, command_line, drawn_of, end_with, remembered
from fim_server.suggest.context.cursor import indentation
from fim_server.suggest.postprocess.blocks import FIRST_WORD, likelihood_of_block, owes_block
from fim_server.suggest.request import Request
from fim_server.suggest.settings import ServerSettings
from fim_server.text.document import Split
from fim_server.workers.worker import CompletionWorker

BOUNDS = (0.0, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
"""Bounds of the likelihoods of a block's first line."""


class Found(NamedTuple):
    """A header with the first line of its block, as the model wrote them.

    Attributes:
        likelihood: Of the block's first line after the header.
        header: Whether the header is right.
        line: Whether the block's first line is.
    """

    likelihood: float
    header: bool
    line: bool


class Gap(NamedTuple):
    """A file without a header and its block, and the first two lines of what was taken out, without their blanks."""

    split: Split
    header: str
    line: str


def gaps(text: str) -> Iterator[Gap]:
    """Every header that stands on one line, taken out with its block but for its first word."""
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    for at, line in enumerate(lines[:-1]):
        first = FIRST_WORD.match(line)
        if first is None or not line.rstrip().endswith(":"):
            continue
        end = at + 1
        while end < len(lines) and (not lines[end].strip() or indentation(lines[end]) > indentation(line)):
            end += 1
        block = [one.strip() for one in lines[at + 1 : end] if one.strip()]
        cut = first.end(1)
        split = Split(text[: starts[at] + cut] + " ", "\n" + text[starts[end] :])
        if block and line[cut : cut + 1] == " " and owes_block(split, "python"):
            yield Gap(split, line[cut:].strip(), block[0])


def found_in(sources: Sources, seed: int, model: str | None) -> Iterator[Found]:
    """Yield the model's blocks where lines were drawn, once in a file for each of its lines."""
    chance = random.Random(f"blocks {sources.name} {seed}")
    settings = ServerSettings(
        model=model, prefetch=False, deadline_ms=None, prompt_tokens=PROMPT_TOKENS, min_confidence=0.0
    )
    with remembered(sources) as (root, project):
        worker = CompletionWorker(settings, project=project)
        worker.load().result()
        for task in sources.tasks:
            there = list(gaps(task.before + task.wanted + task.after))
            if not there:
                continue
            gap = chance.choice(there)
            uri = (root / task.file).as_uri()
            project.opened(uri)
            work = worker.submit(Request(uri, gap.split, "python", task.file, False, False, settings)).future.result()
            for completion in work.completions if work is not None else ():
                likely = likelihood_of_block(completion)
                if likely is not None:
                    header, line, *_ = (one.strip() for one in (completion.text or "").split("\n"))
                    yield Found(likely, header == gap.header, line == gap.line)
        worker.close()


def report(found: Sequence[Found]) -> str:
    """Return the table of headers and right first lines, by the likelihood of the first line."""
    lines = [f"{len(found)} headers with a block, {sum(one.header for one in found)} headers right"]
    lines.append("likelihood of the block's first line | headers | right | first lines right")
    for low, high in pairwise(BOUNDS):
        within = [one for one in found if low <= one.likelihood < high or one.likelihood == high == BOUNDS[-1]]
        right = [one for one in within if one.header]
        lines.append(f"{low} to {high} | {len(within)} | {len(right)} | {sum(one.line for one in within)}")
    return "\n".join(lines)


def examined(folders: Sequence[str], drawn: int, seed: int, model: str | None) -> list[Found]:
    """Collect the model's blocks in all folders."""
    found: list[Found] = []

    def tell() -> str:
        return f"{len(found)} headers"

    for sources in drawn_of(folders, drawn, seed, tell):
        found += found_in(sources, seed, model)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Print how often first lines of blocks are right."""
    parser = command_line(__doc__ or "", "--blocks", "headers with a block from", count=40, seed=5)
    options = parser.parse_args(arguments)
    print(report(examined(options.folder, options.drawn, options.seed, options.model)))
    return 0


if __name__ == "__main__":
    end_with(main)
