"""Other engines that make token masks, measured beside this one: llguidance and glrmask, if they are installed.

Each gets the nearest grammar that it can take (`peers.grammars`) and the same tokens at the same steps, and
runs in a process of its own, so that its memory is its own and a crash ends nothing else. None of them has a right
context or indentation; every outcome says what was asked of it.
"""

from __future__ import annotations

import gc
import importlib.util
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fim_server.bench.peers import grammars
from fim_server.bench.processes import (
    forget_peak,
    growth,
    in_limited_process,
    peak_since_forgotten,
    release_free_memory,
    resident_memory,
    timed,
)
from fim_server.bench.vocabularies import longest_first

RAISED_LIMITS = {
    "max_items_in_row": 10**6,
    "step_max_items": 10**8,
    "initial_lexer_fuel": 10**9,
    "step_lexer_fuel": 10**9,
    "max_lexer_states": 10**7,
    "max_grammar_size": 10**7,
}
"""llguidance's limits; with its own ones most real Python files end in "too many items"."""


@dataclass(frozen=True)
class Job:
    """One cursor.

    Attributes:
        left: The text left of it, in bytes.
        left_ids: That text's tokens.
        ids: The true middle's tokens, at each of which a mask is computed.
    """

    left: bytes = field(repr=False)
    left_ids: list[int] = field(repr=False)
    ids: list[int]


@dataclass(frozen=True)
class Work:
    """What every peer is given.

    Attributes:
        language: `python` or `json`.
        tokens: Byte strings by token id; None for special tokens and holes.
        end_token_id: The token that ends a text, if there is one.
        jobs: The cursors.
        others: Cursors in other files.
    """

    language: str
    tokens: list[bytes | None] = field(repr=False)
    end_token_id: int | None
    jobs: list[Job] = field(repr=False)
    others: list[Job] = field(repr=False)


@dataclass
class Outcome:
    """What a peer took. Times in seconds, memory in bytes, None where nothing was measured.

    Attributes:
        name: The peer with its version and settings.
        note: What language it was asked for, or why it did not run.
        preparation: Time for the vocabulary and the grammar.
        prepared_memory: By how much the process had grown after that.
        peak_memory: By how much it grew at most, all cursors included.
        cold: Times of masks in a first pass over all cursors.
        warm: Times of masks in a second pass with new matchers.
        others: Times of masks in a first pass over the other files, after these two.
        commits: Times to append a token, in all passes.
        steps: Masks in all passes.
        refused: True next tokens that a mask refused, in all passes; the replay of the cursor ends there.
        refused_left: Cursors of all passes not measured, because the text left of them was refused.
    """

    name: str
    note: str
    ran: bool = False
    preparation: float | None = None
    prepared_memory: int | None = None
    peak_memory: int | None = None
    cold: list[float] = field(default_factory=list, repr=False)
    warm: list[float] = field(default_factory=list, repr=False)
    others: list[float] = field(default_factory=list, repr=False)
    commits: list[float] = field(default_factory=list, repr=False)
    steps: int = 0
    refused: int = 0
    refused_left: int = 0


class Matcher(Protocol):
    """One cursor in a peer."""

    def fill_mask(self) -> None:
        """Computes the mask into the engine's buffer."""

    def commit(self, token_id: int) -> bool:
        """Appends a token; false if it is refused."""


class Engine(Protocol):
    """A peer with a compiled grammar; `words` is its mask, shape [at least ceil(vocabulary size / 32)], int32."""

    words: NDArray[np.int32]

    def open(self, job: Job) -> Matcher | None:
        """A matcher after the job's left text; None if that is refused."""


@dataclass(frozen=True)
class Peer:
    """A way to run a peer.

    Attributes:
        package: The module that it is imported as, and the distribution that it is installed from.
        settings: What of it is chosen, in words.
        grammar: The text that it is given for a language.
        prepare: Builds it from the vocabulary and that text. Raises ValueError where it refuses one of them.
    """

    package: str
    settings: str
    grammar: Callable[[str], str]
    prepare: Callable[[Work, str], Engine]

    @property
    def name(self) -> str:
        """With the version, if it is installed."""
        try:
            return f"{self.package} {metadata.version(self.package)}, {self.settings}"
        except metadata.PackageNotFoundError:
            return f"{self.package}, {self.settings}"

    def installed(self) -> bool:
        return importlib.util.find_spec(self.package) is not None


def what(language: str, package: str) -> str:
    """The language that a peer is asked for, in words."""
    if language == "json":
        return "JSON, the same grammar"
    names = "keywords reserved" if package == "llguidance" else "keywords not reserved"
    return f"flat Python: lines and brackets, no indentation, f-strings opaque, {names}"


# --- llguidance ---------------------------------------------------------------------------------------------------


def llguidance_grammar(language: str) -> str:
    header = '%llguidance {"allow_initial_skip": true}\n'
    if language == "json":
        # It stops where only what is ignored can follow, so a file's last line break has to be a symbol.
        return header + grammars.json_grammar(end="TRAILING?") + "\nTRAILING: /[ \\t\\n\\r]+/\n"
    return header + grammars.flat_python(longest_match=True).lark(reserve=True)


class LLGuidance:
    """llguidance with its limits raised, a vocabulary of the same bytes, and its default slices."""

    def __init__(self, work: Work, text: str) -> None:
        import llguidance

        ids = {token: index for index, token in reversed(list(enumerate(work.tokens))) if token}
        longest = max(map(len, ids), default=0)

        class ByteTokenizer:
            """What its wrapper asks for. It cuts a text where the grammar leaves one way to go on."""

            eos_token_id = work.end_token_id
            bos_token_id = None

            def __init__(self) -> None:
                self.tokens = [token or b"" for token in work.tokens]
                self.special_token_ids = [index for index, token in enumerate(work.tokens) if token is None]

            def __call__(self, text: bytes) -> list[int]:
                return longest_first(ids, longest, text)

        self._tokenizer = llguidance.LLTokenizer(llguidance.TokenizerWrapper(ByteTokenizer()))
        limits = llguidance.LLParserLimits(**RAISED_LIMITS)
        self._start = llguidance.LLMatcher(self._tokenizer, text, log_level=0, limits=limits)
        if self._start.is_error():
            raise ValueError(self._start.get_error())
        self.words = np.zeros(-(-self._tokenizer.vocab_size // 32), dtype=np.int32)

    def open(self, job: Job) -> Matcher | None:
        matcher = self._start.deep_copy()
        if matcher.try_consume_tokens(job.left_ids) < len(job.left_ids) or matcher.is_error():
            return None
        return LLGuidanceMatcher(matcher, self.words)


class LLGuidanceMatcher:
    """Its matcher, without the checks of the mask that its numpy helper makes."""

    def __init__(self, matcher: Any, words: NDArray[np.int32]) -> None:
        self._matcher = matcher
        self._address, self._size = words.ctypes.data, words.nbytes

    def fill_mask(self) -> None:
        self._matcher.unsafe_compute_mask_ptr(self._address, self._size)

    def commit(self, token_id: int) -> bool:
        return bool(self._matcher.consume_token(token_id))


# --- glrmask ------------------------------------------------------------------------------------------------------


def glrmask_grammar(language: str) -> str:
    return (
        grammars.json_grammar() if language == "json" else grammars.flat_python(longest_match=False).lark(reserve=False)
    )


class GLRMask:
    """glrmask with one of its mask strategies; all else is its default."""

    def __init__(self, work: Work, text: str, automaton: bool) -> None:
        import glrmask

        vocabulary = glrmask.Vocab.from_id_to_bytes({index: token for index, token in enumerate(work.tokens) if token})
        # Of the settings of its trie, merging tokens makes masks four times as fast on Python, and the other parser no
        # difference.
        strategy = glrmask.MaskStrategy.PARSER_DWA if automaton else glrmask.TokenTrie(merge_equivalent_tokens=True)
        self._constraint = glrmask.Grammar.from_lark(text).compile(vocabulary, mask_strategy=strategy)
        # A mask ends with the last token that has bytes.
        self.words = np.zeros(max(self._constraint.mask_len(), -(-len(work.tokens) // 32)), dtype=np.int32)

    def open(self, job: Job) -> Matcher | None:
        state = self._constraint.start()
        return GLRMaskMatcher(state, self.words) if not job.left or state.commit_bytes(job.left) else None


class GLRMaskMatcher:
    """Its state."""

    def __init__(self, state: Any, words: NDArray[np.int32]) -> None:
        self._state = state
        self._words = words

    def fill_mask(self) -> None:
        self._state.fill_mask(self._words)

    def commit(self, token_id: int) -> bool:
        return bool(self._state.commit_token(token_id))


def glrmask_trie(work: Work, text: str) -> Engine:
    return GLRMask(work, text, automaton=False)


def glrmask_automaton(work: Work, text: str) -> Engine:
    return GLRMask(work, text, automaton=True)


PEERS = (
    Peer("llguidance", "limits raised", llguidance_grammar, LLGuidance),
    Peer("glrmask", "trie", glrmask_grammar, glrmask_trie),
    Peer("glrmask", "automaton", glrmask_grammar, glrmask_automaton),
)


# --- running them -------------------------------------------------------------------------------------------------


def run(peer: Peer, work: Work, most_seconds: float) -> Outcome:
    """Prepares a peer and replays all jobs twice, in a process of its own. Never raises for what the peer does.

    Args:
        peer: Which.
        work: The language, the vocabulary and the cursors.
        most_seconds: It is ended and left out if it takes longer.
    """
    if not peer.installed():
        return Outcome(peer.name, "absent: not installed (pip install 'fim-server[peers]')")
    try:
        return in_limited_process(most_seconds, run_here, peer, work)
    except TimeoutError:
        return Outcome(peer.name, f"given up after {most_seconds:,.0f} s")
    except EOFError:
        return Outcome(peer.name, "its process ended without an answer")


def run_here(peer: Peer, work: Work) -> Outcome:
    """The same in this process, which is to be a fresh one."""
    outcome = Outcome(peer.name, what(work.language, peer.package))
    text = peer.grammar(work.language)
    release_free_memory()
    forget_peak()
    before = resident_memory()
    try:
        importlib.import_module(peer.package)
        engine, outcome.preparation = timed(time.perf_counter, peer.prepare, work, text)
    except (ValueError, TypeError, RuntimeError, ImportError, AttributeError, MemoryError) as error:
        outcome.note = "failed: " + " ".join(str(error).split())[:200]
        return outcome
    outcome.prepared_memory = growth(before, resident_memory())
    passes = ((outcome.cold, work.jobs), (outcome.warm, work.jobs), (outcome.others, work.others))
    for masks, jobs in passes:
        for job in jobs:
            replay(engine, job, masks, outcome)
        outcome.steps += len(masks)
    outcome.peak_memory = growth(before, peak_since_forgotten())
    outcome.ran = True
    return outcome


def replay(engine: Engine, job: Job, masks: list[float], outcome: Outcome) -> None:
    """A mask before each of a job's tokens."""
    matcher = engine.open(job)
    if matcher is None:
        outcome.refused_left += 1
        return
    words = engine.words
    gc.collect()
    gc.disable()
    try:
        for token_id in job.ids:
            started = time.perf_counter()
            matcher.fill_mask()
            masks.append(time.perf_counter() - started)
            allowed = int(words[token_id >> 5]) >> (token_id & 31) & 1
            started = time.perf_counter()
            taken = matcher.commit(token_id) if allowed else False
            outcome.commits.append(time.perf_counter() - started)
            if not taken:
                outcome.refused += 1
                outcome.commits.pop()
                return
    finally:
        gc.enable()
