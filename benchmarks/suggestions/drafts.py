"""What it is worth that the memory of a project drafts what the model checks, several tokens in a pass.

    python -m benchmarks.suggestions.drafts FOLDER... --holes 45

Lines of each folder's files are cut at a lexeme, and the rest of each is written greedily, one line, with the memory of
the rest of the folder mixed in as the server does it. Each is written with and without drafts, in turns. It
is told how many passes and how much time that took, and how many texts differ: none, where the model's logits do not
depend on how many tokens a pass has (``fim_server.models.backend.RowsBackend``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from benchmarks.suggestions.context import MOST_TOKENS, Hole, holes
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

if TYPE_CHECKING:
    from fim_server.models.model import FimModel
    from fim_server.suggest.sources.project import Project

KINDS = ("without drafts", "with drafts")


@dataclass(frozen=True)
class Written:
    """What was written into a hole.

    Attributes:
        text: All of it.
        right: Whether that is the rest of the line.
        passes: Forward passes after the prompt's.
        drafted: Tokens read ahead.
        accepted: Those of them that were chosen.
        tokens: Of the text.
        model_ms: What the passes took.
        decode_ms: Passes and choosing.
    """

    text: str
    right: bool
    passes: int
    drafted: int
    accepted: int
    tokens: int
    model_ms: float
    decode_ms: float


def fill(
    model: FimModel, language: Language, hole: Hole, project: Project, drafted: bool, options: DecodeOptions
) -> Written:
    """Have the model write the rest of a line."""
    session = language.open(hole.split.left, hole.split.right)
    healing = Healing.of(model, hole.split)
    options = replace(
        options,
        advice=project.advice(hole.uri, hole.split.left),
        drafts=project.drafts(hole.uri, hole.split.left) if drafted else None,
        closing=Closing.of(session, hole.split.left, hole.split.right),
    )
    completion = healing.undo(complete_session(model, session, healing.split, options, healing=healing.text))
    text, cost = (completion.text or "").rstrip(), completion.statistics
    return Written(
        text,
        text == hole.rest.rstrip(),
        cost.passes,
        cost.drafted_tokens,
        cost.accepted_tokens,
        cost.tokens,
        cost.model_ms - cost.prefill_ms,
        cost.decode_ms,
    )


def table(found: Sequence[dict[str, Written]]) -> str:
    """Passes and times with and without drafts, and how many texts differ."""
    lines = [
        "| | tokens | passes | drafted | kept | passes, ms a text | decoding, ms a text | lines right | other texts |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for kind in KINDS:
        mine = [one[kind] for one in found]
        cells = [kind, *(str(sum(getattr(one, name) for one in mine)) for name in ("tokens", "passes"))]
        cells += [str(sum(getattr(one, name) for one in mine)) for name in ("drafted", "accepted")]
        cells += [f"{sum(getattr(one, name) for one in mine) / len(mine):.1f}" for name in ("model_ms", "decode_ms")]
        cells.append(str(sum(one.right for one in mine)))
        cells.append(str(sum(one[kind].text != one[KINDS[0]].text for one in found)))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Fill in holes, and print a table."""
    parser = command_line("What drafts of a project's memory save.", "--holes", "lines of", 45, 0)
    add_prompt_tokens(parser)
    parser.add_argument("--runtime", choices=("onnx", "torch"), help="default: as the server chooses")
    given = parser.parse_args(arguments)
    model, language = load_model(given.model, None, given.runtime), Language.load("python")
    options = options_of(given.prompt_tokens, MOST_TOKENS, single_line=True, scored=True)
    found: list[dict[str, Written]] = []
    for sources in drawn_of(given.folder, given.drawn, given.seed, lambda: f"{len(found)} holes\n{table(found)}"):
        with remembered(sources) as (root, project):
            for hole in holes(sources, project, language, root.as_uri(), given.seed):
                order = KINDS if len(found) % 2 else KINDS[::-1]
                found.append({kind: fill(model, language, hole, project, kind == KINDS[1], options) for kind in order})
    ran = f"{model.runtime}, threads: {model.backend.threads}" + ("" if model.gives_rows else ", takes no drafts")
    print(f"{len(found)} holes ({ran})\n\n{table(found)}")
    return 0


if __name__ == "__main__":
    end_with(main)
