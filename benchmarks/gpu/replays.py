"""Constraints of a batch's rows: each engine along true middles of files.

The loop waits for the network's choice, as in decoding, but a row commits the next token of its middle. Random weights
write nothing, and random choices under a grammar write texts that no programmer writes. A row at its middle's end
starts again. Rows of one cursor are a few tokens apart.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from benchmarks.engine.cursors import Choice, choose
from benchmarks.peers import grammars
from benchmarks.peers.engines import LLGuidance, llguidance_grammar
from benchmarks.peers.jobs import Job, Work
from fim_server.errors import BenchError
from fim_server.language import Language
from fim_server.models.masking import contains
from fim_server.tokens.masks import fill_masks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from benchmarks.engine.cursors import Cursor
    from benchmarks.engine.vocabularies import Tokens
    from fim_server.language import Session
    from fim_server.tokens.vocabulary import Vocabulary

STRIDE = 3
"""By how many tokens rows of one cursor are apart."""

CURSORS_PER_FILE, MOST_FILES = 8, 16
MIDDLE_TOKENS = 64

ALONE_MASKS, ALONE_SECONDS = 2000, 4.0
"""Masks that are computed one by one, to see how their times are distributed; fewer where that takes longer."""


class Engine(Protocol):
    """The matchers of a batch's rows."""

    def fill(self, words: NDArray[np.uint32]) -> None:
        """All rows' masks, [rows, W], on as many threads as the engine wants."""

    def fill_one(self, row: int, words: NDArray[np.uint32]) -> None:
        """One row's mask, [W], on this thread."""

    def commit(self, rows: Sequence[int], tokens: Sequence[int]) -> list[bool]:
        """Append a token to each of some rows; whether it was taken."""

    def rollback(self, row: int, count: int) -> None:
        """Take back the last tokens of a row."""


@dataclass
class Replay:
    """An engine along the middles. Times in seconds.

    Attributes:
        ids: Each row's middle.
        at: How many tokens of it each row has taken in.
        fills: Times of all rows' masks.
        commits: Times of all rows' tokens.
        refused: Tokens of the true middles that were refused.
    """

    engine: Engine
    ids: list[list[int]] = field(repr=False)
    at: list[int] = field(repr=False)
    fills: list[float] = field(default_factory=list, repr=False)
    commits: list[float] = field(default_factory=list, repr=False)
    refused: int = 0

    def work(self, chosen: NDArray[np.int64] | None, words: NDArray[np.uint32]) -> bool:
        """The host's part of a step (:mod:`benchmarks.gpu.masked_steps`)."""
        started = time.perf_counter()
        if chosen is not None:
            self.advance()
        committed = time.perf_counter()
        self.engine.fill(words)
        self.commits.append(committed - started)
        self.fills.append(time.perf_counter() - committed)
        return True

    def advance(self) -> None:
        """Every row takes its next token in, or goes back to its beginning."""
        going = []
        for row, at in enumerate(self.at):
            if at >= len(self.ids[row]):
                self.engine.rollback(row, at)
                self.at[row] = 0
            else:
                going.append(row)
        taken = self.engine.commit(going, [self.ids[row][self.at[row]] for row in going])
        for row, was_taken in zip(going, taken, strict=True):
            if was_taken:
                self.at[row] += 1
            else:
                self.refused += 1
                self.ids[row] = self.ids[row][: self.at[row]]  # its end from now on

    def alone(self, words: NDArray[np.uint32]) -> list[float]:
        """Times of masks that are computed one by one; also checks that they allow what comes next."""
        times: list[float] = []
        until = time.perf_counter() + ALONE_SECONDS
        while len(times) < ALONE_MASKS and time.perf_counter() < until:
            for row in range(min(len(self.ids), ALONE_MASKS)):
                started = time.perf_counter()
                self.engine.fill_one(row, words)
                times.append(time.perf_counter() - started)
                at = self.at[row]
                if at < len(self.ids[row]) and not contains(words, self.ids[row][at]):
                    self.refused += 1
            self.advance()
        return times


@dataclass(frozen=True)
class Contestant:
    """A way to constrain a batch.

    Attributes:
        engine: Whose.
        what: The languages, and whether the right context counts.
        languages: Of the rows, by turns.
        make: The engine for each row's cursor.
        overlapped: Whether masks are computed while the model runs.
    """

    engine: str
    what: str
    languages: tuple[str, ...]
    make: Callable[[Tokens, Sequence[tuple[str, Cursor]]], Engine]
    overlapped: bool = True

    @property
    def name(self) -> str:
        """Name of the engine, then the name of its constraint."""
        return f"{self.engine} {self.what}"

    def replay(self, tokens: Tokens, batch: int, seed: int) -> Replay:
        """The engine for a batch, each row somewhere in its middle. Raises what the engine raises."""
        share = -(-batch // len(self.languages))
        files = min(MOST_FILES, -(-share // CURSORS_PER_FILE))
        chosen = {language: cursors_in(language, tokens.vocabulary, files, seed) for language in self.languages}
        rows, starts = [], []
        for number in range(batch):
            language = self.languages[number % len(self.languages)]
            index = number // len(self.languages)
            cursor = chosen[language][index % len(chosen[language])]
            rows.append((language, cursor))
            starts.append(index // len(chosen[language]) * STRIDE % len(cursor.ids))
        replay = Replay(self.make(tokens, rows), [cursor.ids for _, cursor in rows], [0] * batch)
        for row, start in enumerate(starts):
            for token in replay.ids[row][:start]:
                if not replay.engine.commit([row], [token])[0]:
                    break
                replay.at[row] += 1
        return replay


@lru_cache(maxsize=8)
def cursors_in(language: str, vocabulary: Vocabulary, files: int, seed: int) -> list[Cursor]:
    """The cursors of so many files, the same for all engines. Raises BenchError where there are none."""
    found, _ = choose(language, vocabulary, Choice(None, files, CURSORS_PER_FILE, MIDDLE_TOKENS, seed))
    if not found:
        raise BenchError(f"the vocabulary cannot spell the {language} files to measure on")
    return found


@lru_cache(maxsize=4 * MOST_FILES * CURSORS_PER_FILE)
def session_at(language: str, left: str, right: str) -> Session:
    """A session that all rows of a cursor share."""
    return Language.load(language).open(left, right)


# --- this engine --------------------------------------------------------------------------------------------------


class Ours:
    """Sessions of this package, each with its own language."""

    def __init__(self, tokens: Tokens, rows: Sequence[tuple[str, Cursor]], right: bool) -> None:
        self._matchers = [
            session_at(language, cursor.left, cursor.right if right else "").matcher(tokens.vocabulary)
            for language, cursor in rows
        ]

    def fill(self, words: NDArray[np.uint32]) -> None:
        """See :meth:`Engine.fill`."""
        fill_masks(self._matchers, words)

    def fill_one(self, row: int, words: NDArray[np.uint32]) -> None:
        """See :meth:`Engine.fill_one`."""
        self._matchers[row].fill_mask(words)

    def commit(self, rows: Sequence[int], tokens: Sequence[int]) -> list[bool]:
        """See :meth:`Engine.commit`."""
        taken = []
        for row, token in zip(rows, tokens, strict=True):
            try:
                self._matchers[row].commit(token)
            except ValueError:
                taken.append(False)
            else:
                taken.append(True)
        return taken

    def rollback(self, row: int, count: int) -> None:
        """See :meth:`Engine.rollback`."""
        self._matchers[row].rollback(count)


def with_right(tokens: Tokens, rows: Sequence[tuple[str, Cursor]]) -> Engine:
    """This engine with the text right of each cursor."""
    return Ours(tokens, rows, right=True)


def without_right(tokens: Tokens, rows: Sequence[tuple[str, Cursor]]) -> Engine:
    """This engine with nothing right of the cursors, as the peers have it."""
    return Ours(tokens, rows, right=False)


# --- peers --------------------------------------------------------------------------------------------------------


def copies(
    rows: Sequence[tuple[str, Cursor]], opened: Callable[[Cursor], Any], copied: Callable[[Any], Any]
) -> list[Any]:
    """A matcher for each row; those of one cursor are copies of one that has read its left text."""
    known: dict[int, Any] = {}
    for _, cursor in rows:
        if id(cursor) not in known:
            known[id(cursor)] = opened(cursor)
    return [copied(known[id(cursor)]) for _, cursor in rows]


class GuidanceRows:
    """llguidance's matchers, masks and tokens on its own threads."""

    def __init__(self, tokens: Tokens, rows: Sequence[tuple[str, Cursor]]) -> None:
        import llguidance

        language = rows[0][0]
        ends = tokens.vocabulary.end_token_ids
        made = LLGuidance(
            Work(language, tokens.tokens, ends[0] if ends else None, [], []), llguidance_grammar(language)
        )
        self._executor = llguidance.LLExecutor()

        def opened(cursor: Cursor) -> Any:
            found = made.open(Job(cursor.left.encode(), tokens.vocabulary.encode(cursor.left), cursor.ids))
            if found is None:
                raise BenchError("it refuses the text left of a cursor")
            return found.matcher

        self._matchers = copies(rows, opened, lambda matcher: matcher.deep_copy())

    def fill(self, words: NDArray[np.uint32]) -> None:
        """See :meth:`Engine.fill`."""
        asked = [(matcher, row) for row, matcher in enumerate(self._matchers)]
        self._executor.unsafe_compute_mask_ptr(asked, words.ctypes.data, words.shape[1] * 4, len(words))

    def fill_one(self, row: int, words: NDArray[np.uint32]) -> None:
        """See :meth:`Engine.fill_one`."""
        self._matchers[row].unsafe_compute_mask_ptr(words.ctypes.data, words.nbytes)

    def commit(self, rows: Sequence[int], tokens: Sequence[int]) -> list[bool]:
        """See :meth:`Engine.commit`."""
        given = [(self._matchers[row], token) for row, token in zip(rows, tokens, strict=True)]
        return list(self._executor.consume_token_par(given)) if given else []  # it raises for none

    def rollback(self, row: int, count: int) -> None:
        """See :meth:`Engine.rollback`."""
        self._matchers[row].rollback(count)


class XGrammarRows:
    """XGrammar's matchers, masks on its own threads."""

    def __init__(self, tokens: Tokens, rows: Sequence[tuple[str, Cursor]], grammar: str | None = None) -> None:
        """``grammar``: in its notation; default: its own JSON, whose texts are objects and arrays."""
        import xgrammar

        info = xgrammar.TokenizerInfo(
            [token or b"" for token in tokens.tokens],
            xgrammar.VocabType.RAW,
            vocab_size=len(tokens.tokens),
            stop_token_ids=list(tokens.vocabulary.end_token_ids),
        )
        compiled = xgrammar.GrammarCompiler(info).compile_grammar(
            xgrammar.Grammar.builtin_json_grammar() if grammar is None else grammar
        )
        self._batch = xgrammar.BatchGrammarMatcher()

        def opened(cursor: Cursor) -> Any:
            matcher = xgrammar.GrammarMatcher(compiled)
            if not all(matcher.accept_token(token) for token in tokens.vocabulary.encode(cursor.left)):
                raise BenchError("it refuses the text left of a cursor")
            return matcher

        self._matchers = copies(rows, opened, lambda matcher: matcher.fork())

    def fill(self, words: NDArray[np.uint32]) -> None:
        """See :meth:`Engine.fill`."""
        self._batch.batch_fill_next_token_bitmask(self._matchers, words.view(np.int32))

    def fill_one(self, row: int, words: NDArray[np.uint32]) -> None:
        """See :meth:`Engine.fill_one`."""
        self._matchers[row].fill_next_token_bitmask(words.view(np.int32)[None])

    def commit(self, rows: Sequence[int], tokens: Sequence[int]) -> list[bool]:
        """See :meth:`Engine.commit`."""
        given = [self._matchers[row] for row in rows]
        return list(self._batch.batch_accept_token(given, list(tokens))) if given else []

    def rollback(self, row: int, count: int) -> None:
        """See :meth:`Engine.rollback`."""
        if count:
            self._matchers[row].rollback(count)


def same_json(tokens: Tokens, rows: Sequence[tuple[str, Cursor]]) -> Engine:
    """XGrammar with the JSON that all have."""
    return XGrammarRows(tokens, rows, grammars.JSON_EBNF)


RIGHT, NO_RIGHT = "with R", "without R"

OURS = (
    Contestant("fim-server", f"Python {RIGHT}", ("python",), with_right),
    Contestant("fim-server", f"Python {RIGHT}, not overlapped", ("python",), with_right, overlapped=False),
    Contestant("fim-server", f"Python and JSON {RIGHT}", ("python", "json"), with_right),
    Contestant("fim-server", f"Python {NO_RIGHT}", ("python",), without_right),
    Contestant("fim-server", f"JSON {NO_RIGHT}", ("json",), without_right),
)

PEERS = {
    "llguidance": (
        Contestant("llguidance", f"JSON {NO_RIGHT}", ("json",), GuidanceRows),
        Contestant("llguidance", f"flat Python {NO_RIGHT}", ("python",), GuidanceRows),
    ),
    "xgrammar": (
        Contestant("XGrammar", f"JSON {NO_RIGHT}", ("json",), same_json),
        Contestant("XGrammar", f"its own JSON {NO_RIGHT}", ("json",), XGrammarRows),
    ),
}
"""By the package that they need."""
