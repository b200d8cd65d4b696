"""``fim-server complete``: complete a file at a cursor."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from fim_server.cli.arguments import (
    ModelArguments,
    add_color,
    add_cursor,
    add_decoding,
    add_file,
    add_json,
    add_model,
    add_prompt_tokens,
    add_seed,
    add_versions,
    bind,
    load_options,
    positive,
)
from fim_server.cli.diff import diff_lines, promise
from fim_server.cli.excerpt import excerpt_lines
from fim_server.cli.output import BAD_INPUT, DONE, NEGATIVE, complain, print_json, progress
from fim_server.cli.source import Part, choose_part, names_of, read_document
from fim_server.decoding.bias.undefined_names import NAMES
from fim_server.errors import ModelError, first_line
from fim_server.language import Language
from fim_server.language.session import FLOORS
from fim_server.models.source import name_of
from fim_server.recovery.recovery import Recovery
from fim_server.suggest.postprocess.plain import plain_line
from fim_server.suggest.ranking.reasons import Suppression
from fim_server.text.document import Split
from fim_server.text.hidden import escaped
from fim_server.text.regions import ENDS_CODE
from fim_server.text.terminal import ColourChoice, Progress, is_terminal, wants_colour

if TYPE_CHECKING:
    from fim_server.decoding.results import Completion


@dataclass(frozen=True)
class CompleteArguments(ModelArguments):
    """Arguments of ``fim-server complete``.

    Attributes:
        cursor: Line and column, from 1 on.
    """

    file: str
    any_file: bool
    language: str | None
    cursor: tuple[int, int]
    language_version: str | None
    python_version: str | None
    max_new_tokens: int
    temperature: float
    deadline_ms: float | None
    max_prompt_tokens: int
    seed: int
    unconstrained: bool
    no_landing: bool
    floor: str
    names: str
    search: int
    samples: int
    diff: bool
    show: bool
    color: ColourChoice
    json: bool


def add_complete(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "complete",
        help="complete a file at a cursor",
        description="Print a completion for a cursor, with which the whole file parses if its language has a grammar.",
        epilog="Exit status: 0 completed, 1 no completion, 2 bad input.",
    )
    add_file(parser)
    add_cursor(parser)
    add_versions(parser)
    add_model(parser)
    add_decoding(parser)
    add_prompt_tokens(parser, 1024, "1024")
    add_seed(parser)
    parser.add_argument("--unconstrained", action="store_true", help="switch the grammar off, for comparison")
    parser.add_argument(
        "--no-landing",
        action="store_true",
        help="allow tokens after which the text cannot end within --max-new-tokens",
    )
    parser.add_argument(
        "--floor",
        choices=FLOORS,
        default="off",
        help="constructs that the text must not close and open again: brackets closed after the cursor, or "
        "the block at the cursor (default: off)",
    )
    parser.add_argument(
        "--names",
        choices=NAMES,
        default="off",
        help="require: only texts without undefined names, in Python (default: off)",
    )
    parser.add_argument(
        "--search",
        type=positive(int),
        default=1,
        metavar="N",
        help="search up to N texts for the likeliest (default: 1, the likeliest token at each step)",
    )
    parser.add_argument(
        "--samples",
        type=positive(int),
        default=1,
        metavar="N",
        help="with --temperature: sample N texts, each informed by those before, and take the last; a greater N "
        "brings its distribution nearer to the model's (default: 1)",
    )
    parser.add_argument("--diff", action="store_true", help="print the changed lines instead of the text alone")
    parser.add_argument("--show", action="store_true", help="print the text in the lines around it, and its costs")
    add_color(parser, "--diff and --show")
    add_json(parser)
    bind(parser, CompleteArguments, run_complete)


def run_complete(arguments: CompleteArguments) -> int:
    """Run the command; return the exit status. Raises DocumentError, LanguageError and ModelError."""
    if (problem := contradiction(arguments)) is not None:
        complain(problem)
        return BAD_INPUT
    document = read_document(arguments)
    offset = document.offset_at_line_column(*arguments.cursor)
    with progress(arguments.json) as shown:
        part = choose_part(arguments, document, offset, shown, takes_any=True)
        language, split = part.language, part.split
        decoded = on_its_line(decode(arguments, part, shown), part, arguments.unconstrained)
        completion = in_its_file(decoded, part)
    if arguments.json:
        print_json(completion_as_json(arguments, language, split, completion))
    elif completion.text is not None and arguments.show:
        colour = wants_colour(arguments.color)
        name = name_of(arguments.model)
        for line in excerpt_lines(arguments.file, split, completion, language, name, colour):
            print(line)
    elif completion.text is not None and arguments.diff:
        colour = wants_colour(arguments.color)
        for line in diff_lines(arguments.file, split, completion, language, colour):
            print(line)
    elif completion.text is not None:
        # Programs get the text unchanged; on a terminal, no character of it moves the cursor.
        print(escaped(completion.text) if is_terminal(sys.stdout) else split.restore(completion.text))
    if not arguments.json:
        report(completion, language)
    return DONE if completion.text is not None else NEGATIVE


def contradiction(arguments: CompleteArguments) -> str | None:
    """Return the reason why the options contradict each other, or None."""
    if arguments.search > 1 and arguments.temperature:
        return "argument --search: not with --temperature, which draws texts (--samples)"
    if arguments.samples > 1 and not arguments.temperature:
        return "argument --samples: only with --temperature above 0"
    if arguments.unconstrained and max(arguments.search, arguments.samples) > 1:
        return "argument --unconstrained: not with --search or --samples, which need the grammar"
    return None


def on_its_line(completion: Completion, part: Part, unconstrained: bool) -> Completion:
    """Return a completion; where no grammar judges it, the part of its first line that repeats nothing near the cursor.

    ``unconstrained``: whether the user has switched the grammar off.
    """
    language = part.language
    is_judged = completion.guarantee != "none" or language.guarantee == "exact" or unconstrained
    if completion.text is None or (language.has_grammar and is_judged):
        return completion
    line = plain_line(completion.text, part.split, language.open("", ""))
    if isinstance(line, Suppression):
        return replace(completion, text=None, reason=line.message)
    return replace(completion, text=line, truncated=completion.truncated or line != completion.text)


def in_its_file(completion: Completion, part: Part) -> Completion:
    """Return a completion of a part of a file, with the guarantee for the file; no text that moves the part's end."""
    if part.region is not None and completion.text is not None and not part.region.keeps(completion.text, 0):
        completion = replace(completion, text=None, reason=ENDS_CODE)
    return replace(
        completion,
        guarantee=part.guaranteed(completion.guarantee),
        diagnostics=(*completion.diagnostics, *part.diagnostics),
    )


def decode(arguments: CompleteArguments, part: Part, shown: Progress) -> Completion:
    """Return the model's completion. Raises ModelError and LostError."""
    from fim_server.decoding.complete import complete
    from fim_server.decoding.options import DecodeOptions
    from fim_server.models.backend import LostError
    from fim_server.models.load import load_model
    from fim_server.models.store.catalogue import DEFAULT_NAME, entry_of
    from fim_server.models.store.folders import embedded_instead

    shown.say(f"loading model {name_of(arguments.model)}")
    model = load_model(arguments.model, arguments.device, arguments.runtime, load_options(arguments))
    if arguments.model is None and (replaced := embedded_instead(entry_of(DEFAULT_NAME))) is not None:
        complain(replaced)
    options = DecodeOptions(
        max_new_tokens=arguments.max_new_tokens,
        temperature=arguments.temperature,
        seed=arguments.seed,
        deadline_ms=arguments.deadline_ms,
        max_prompt_tokens=arguments.max_prompt_tokens,
        constrained=not arguments.unconstrained,
        landing=not arguments.no_landing,
        stop_repetition=True,
        trimmed=True,
        floor=arguments.floor,
        names=arguments.names,
        single_line=not part.language.has_grammar,
        search=arguments.search,
        samples=arguments.samples,
    )
    shown.say("completing")
    try:
        return complete(
            model,
            Recovery(part.language.open, name=part.language.name) if part.language.has_grammar else part.language,
            part.split,
            options,
            on_token=lambda tokens: shown.say(f"completing, token {len(tokens)}"),
            contexts=None if part.region is None else part.contexts,
        )
    except LostError:
        raise
    except RuntimeError as error:  # of the runtime: too little memory, a failed pass
        raise ModelError(f"{model.name}: {first_line(error)}") from error


def completion_as_json(
    arguments: CompleteArguments, language: Language, split: Split, completion: Completion
) -> dict[str, Any]:
    """Return the fields of ``complete --json``; the text has the file's own line breaks."""
    return {
        "file": arguments.file,
        "line": arguments.cursor[0],
        "column": arguments.cursor[1],
        **names_of(language),
        "model": name_of(arguments.model),
        "text": None if completion.text is None else split.restore(completion.text),
        "guarantee": completion.guarantee,
        "diagnostics": list(completion.diagnostics),
        "stop_reason": completion.stop_reason,
        "won": completion.won,
        "truncated": completion.truncated,
        "reason": completion.reason,
        "statistics": {
            name: round(value, 3) if isinstance(value, float) else value
            for name, value in asdict(completion.statistics).items()
        },
    }


def report(completion: Completion, language: Language) -> None:
    """Report on standard error that there is no completion, or that it is not exact."""
    if completion.text is None:
        complain(f"no completion: {completion.reason}")
    elif completion.text == "":
        complain("the model inserts nothing here")
    if completion.text is not None and completion.guarantee != "exact":
        complain(promise(completion, language))
    for line in completion.diagnostics:
        complain(line)
