"""Grammars of others beside the package's own: real files that each takes, and wrong texts that it takes as well.

    python -m benchmarks.acceptance --source go=FOLDER --grammar NAME=go=FILE.lark --tree-sitter

A judge, the language's own parser, says which files are right, and which of their small mutants are wrong
(`fim_server.datasets.judging`). A Lark grammar runs in Lark itself: as LALR with the lexer that is asked for, or, where
it is none, by Earley's algorithm. tree-sitter's parsers (packages `tree-sitter-LANGUAGE`) mend what is wrong: a tree
with an error in it counts as a refusal.
"""

from __future__ import annotations

import argparse
import importlib
import random
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from types import FrameType
from typing import Any

from benchmarks.options import positive_count
from fim_server.datasets.judging import programs
from fim_server.datasets.judging.cutting import KINDS, Files, Looks, cases
from fim_server.datasets.judging.differences import Differences
from fim_server.datasets.judging.examining import Examiner
from fim_server.datasets.judging.judge import Judge
from fim_server.errors import BenchError, FimServerError
from fim_server.language import Language
from fim_server.language import compile as definitions
from fim_server.text.terminal import Table

LARGEST = 40_000
"""Characters of a file that is drawn; Lark takes seconds for a larger one."""

TRIES = 50
"""How many files, or texts with mutants, are drawn for each one that is wanted."""

Takes = Callable[[str], bool]
"""Whether a grammar takes a text."""


@dataclass(frozen=True)
class Texts:
    """What every grammar of a language is given: files, small texts, and wrong mutants, each with its small text."""

    files: list[str] = field(repr=False)
    small: list[str] = field(repr=False)
    wrong: list[tuple[str, str]] = field(repr=False)


@dataclass
class Counts:
    """How many of the texts a grammar takes, and at how many its time was up."""

    files: int = 0
    small: int = 0
    wrong: int = 0
    wrong_of: int = 0
    """Wrong mutants whose unchanged text is taken: those alone say something of what is refused."""
    given_up: int = 0


def draw(name: str, folders: Sequence[Path], judge: Judge, wanted: tuple[int, int], seed: int) -> Texts:
    """Files that the judge takes, and mutants of small texts that it does not.

    Args:
        name: The language.
        folders: Where its files are, each being a project.
        judge: Its judge.
        wanted: How many files, and how many mutants.
        seed: Decides all.

    Raises:
        BenchError: A folder is not there, or has too few files.
    """
    try:
        files = Files(folders, Language.suffixes_of(name))
    except OSError as error:
        raise BenchError(str(error)) from error
    definition = definitions.read_builtin(name)
    looks = Looks.of(definition)
    rng = random.Random(f"acceptance {name} {seed}")
    right: dict[str, None] = {}
    for _ in range(TRIES * wanted[0]):
        drawn = files.drawn(rng)
        if drawn is not None and len(drawn[2]) <= LARGEST and judge.verdict(drawn[2]):
            right[drawn[2]] = None
        if len(right) == wanted[0]:
            break
    examiner = Examiner(Language.load(name), looks, judge, Differences())
    wrong: dict[str, str] = {}
    for _ in range(TRIES * wanted[1]):
        found = cases(rng, looks, judge, files, rng.randrange(len(KINDS)), KINDS)
        for case in rng.sample(found, min(len(found), 1)):
            texts = [case.left + middle + case.right for _, middle in examiner.mutants(rng, case)]
            refused = [text for text in texts if judge.verdict(text) is False]
            # One of each text, or a few would have most of the mutants.
            wrong |= dict.fromkeys(refused[:1], case.text)
        if len(wrong) == wanted[1]:
            break
    if not right or not wrong:
        raise BenchError(f"{name}: no file of at most {LARGEST:,} characters that {programs.name(name)} takes")
    return Texts(list(right), list(dict.fromkeys(wrong.values())), list(wrong.items()))


def own(language: str) -> Takes:
    """The package's definition."""
    loaded = Language.load(language)
    return lambda text: loaded.open(text, "").check("").complete


def lark_grammar(path: Path, lexer: str, optional: Sequence[str]) -> tuple[str, Takes]:
    """A Lark grammar in Lark, with the parser that it is for.

    Args:
        path: Its file. Where it declares `_INDENT`, indentation is told by Lark's own indenter for Python.
        lexer: What is used where LALR takes the grammar.
        optional: Terminals that are skipped where the parser cannot take them, as the line ends of some are.

    Raises:
        BenchError: It cannot be read, or Lark refuses it.
    """
    import lark
    from lark.indenter import PythonIndenter

    try:
        text = path.read_text(encoding="utf-8")
        postlex = PythonIndenter() if "_INDENT" in text else None
        try:
            parser = lark.Lark(text, parser="lalr", lexer=lexer, postlex=postlex)
        except lark.exceptions.GrammarError:  # two ways to read a text
            parser = lark.Lark(text, parser="earley", lexer="dynamic")
    except (OSError, UnicodeDecodeError, lark.exceptions.LarkError) as error:
        raise BenchError(f"{path.name}: {' '.join(str(error).split())[:200]}") from error

    def takes(text: str) -> bool:
        try:
            if optional and parser.options.parser == "lalr":
                interactive = parser.parse_interactive(text)
                for token in interactive.lexer_thread.lex(interactive.parser_state):
                    if token.type not in optional or token.type in interactive.accepts():
                        interactive.feed_token(token)
                interactive.feed_eof()
            else:
                parser.parse(text)
        except lark.exceptions.LarkError:
            return False
        return True

    return parser.options.parser, takes


def tree_sitter(language: str) -> tuple[str, Takes]:
    """tree-sitter's parser of a language, with its version.

    Raises:
        BenchError: It is not installed.
    """
    package = f"tree-sitter-{language}"
    try:
        library: Any = importlib.import_module("tree_sitter")
        module = importlib.import_module(package.replace("-", "_"))
    except ModuleNotFoundError as error:
        raise BenchError(f"{package}: not installed (pip install tree-sitter {package})") from error
    parser = library.Parser(library.Language(module.language()))
    return metadata.version(package), lambda text: not parser.parse(text.encode()).root_node.has_error


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Raises TimeoutError in the midst of what takes longer: parsers in Python have no limit of their own."""

    def ring(number: int, frame: FrameType | None) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def count(takes: Takes, texts: Texts, seconds: float) -> Counts:
    """What a grammar takes; a text that takes it longer than some seconds counts as not taken."""
    counts = Counts()

    def taken(text: str) -> bool:
        try:
            with at_most(seconds):
                return takes(text)
        except (TimeoutError, RecursionError):
            counts.given_up += 1
            return False

    counts.files = sum(map(taken, texts.files))
    small = {text for text in texts.small if taken(text)}
    counts.small = len(small)
    for text, origin in texts.wrong:
        if origin in small:
            counts.wrong_of += 1
            counts.wrong += taken(text)
    return counts


def row(language: str, name: str, counts: Counts, texts: Texts) -> list[str]:
    """A line of the table."""
    pairs = ((counts.files, len(texts.files)), (counts.small, len(texts.small)), (counts.wrong, counts.wrong_of))
    return [language, name, *(f"{taken} of {all_}" for taken, all_ in pairs), str(counts.given_up)]


HEADER = ("language", "grammar", "true files taken", "true small texts taken", "wrong mutants taken", "given up")


def named(text: str, parts: int, what: str) -> list[str]:
    """The parts of an option's value.

    Raises:
        BenchError: It has others, or the language is none of the package's.
    """
    found = text.split("=", parts - 1)
    if len(found) != parts or not all(found) or found[parts - 2] not in Language.names():
        raise BenchError(f"{text}: expected {what}, the language one of {', '.join(Language.names())}")
    return found


@dataclass(frozen=True)
class AcceptanceOptions:
    """What the recipe is asked for; a field for each of its options."""

    source: list[str]
    grammar: list[str]
    tree_sitter: bool
    lexer: str
    optional: list[str]
    files: int
    mutants: int
    seconds: int
    seed: int


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add_arguments(parser)
    given = AcceptanceOptions(**vars(parser.parse_args(arguments)))
    try:
        print("\n".join(table(given)))
    except FimServerError as error:
        parser.error(str(error))
    return 0


def table(given: AcceptanceOptions) -> list[str]:
    """The table's lines, and who judged.

    Raises:
        FimServerError: Something that was named is not there, or cannot be used.
    """
    sources: dict[str, list[Path]] = {}
    for language, folder in (named(source, 2, "LANGUAGE=FOLDER") for source in given.source):
        sources.setdefault(language, []).append(Path(folder))
    grammars = [named(each, 3, "NAME=LANGUAGE=FILE.lark") for each in given.grammar]
    rows = []
    judged = []
    for language, folders in sources.items():
        with ExitStack() as stack:
            judge = stack.enter_context(Judge(programs.command(language)))
            texts = draw(language, folders, judge, (given.files, given.mutants), given.seed)
        judged.append(f"{language}: {programs.name(language)}")
        takers: list[tuple[str, Takes]] = [("fim-server", own(language))]
        for name, other, path in grammars:
            if other == language:
                kind, takes = lark_grammar(Path(path), given.lexer, given.optional)
                takers.append((f"{name}, Lark {metadata.version('lark')}, {kind}", takes))
        if given.tree_sitter:
            version, takes = tree_sitter(language)
            takers.append((f"tree-sitter-{language} {version}, no error in its tree", takes))
        for name, takes in takers:
            print(f"{language}: {name}", file=sys.stderr)
            rows.append(row(language, name, count(takes, texts, given.seconds), texts))
    return [f"judges: {'; '.join(judged)}", "", *Table(HEADER, rows, numbers=range(2, len(HEADER))).markdown()]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    several = {"action": "append", "default": []}
    parser.add_argument("--source", metavar="LANG=FOLDER", required=True, action="append", help="real files")
    parser.add_argument("--grammar", metavar="NAME=LANG=FILE", **several, help="a Lark grammar of others")  # type: ignore[arg-type]
    parser.add_argument("--tree-sitter", action="store_true", help="tree-sitter's parsers as well")
    parser.add_argument("--lexer", choices=("basic", "contextual"), default="basic", help="of LALR (default: basic)")
    parser.add_argument("--optional", metavar="TERMINAL", **several, help="skipped where it cannot be taken")  # type: ignore[arg-type]
    parser.add_argument("--files", type=positive_count, default=100, metavar="N", help="(default: 100)")
    parser.add_argument("--mutants", type=positive_count, default=200, metavar="N", help="(default: 200)")
    parser.add_argument("--seconds", type=positive_count, default=20, metavar="S", help="for a text (default: 20)")
    parser.add_argument("--seed", type=int, default=0, metavar="N")


if __name__ == "__main__":
    sys.exit(main())
