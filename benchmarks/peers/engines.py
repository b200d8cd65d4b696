"""The peers themselves: llguidance and glrmask, with the settings under which they are fastest here."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.engine.vocabularies import longest_first
from benchmarks.peers import grammars
from benchmarks.peers.jobs import Engine, Job, Matcher, Peer, Work

RAISED_LIMITS = {
    "max_items_in_row": 10**6,
    "step_max_items": 10**8,
    "initial_lexer_fuel": 10**9,
    "step_lexer_fuel": 10**9,
    "max_lexer_states": 10**7,
    "max_grammar_size": 10**7,
}
"""llguidance's limits; with its own ones most real Python files end in "too many items"."""


def flat(language: str, longest_match: bool) -> grammars.Flat:
    """A language in rules and expressions alone.

    Raises:
        LanguageError: It has layout or modes, and no way around them is known here.
    """
    return grammars.flat_python(longest_match) if language == "python" else grammars.lowered(language)


# --- llguidance ---------------------------------------------------------------------------------------------------


def llguidance_grammar(language: str) -> str:
    header = '%llguidance {"allow_initial_skip": true}\n'
    if language == "json":
        # It stops where only what is ignored can follow, so a file's last line break has to be a symbol.
        return header + grammars.json_grammar(end="TRAILING?") + "\nTRAILING: /[ \\t\\n\\r]+/\n"
    return header + flat(language, longest_match=True).lark(reserve=True)


class LLGuidance:
    """llguidance with its limits raised, a vocabulary of the same bytes, and its default slices."""

    def __init__(self, work: Work, text: str) -> None:
        import llguidance

        ids = {token: index for index, token in reversed(list(enumerate(work.tokens))) if token}
        longest = max(map(len, ids), default=0)

        class ByteTokenizer:
            """Tokenizer for the engine's wrapper, which cuts a text where the grammar leaves one continuation."""

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

    def open(self, job: Job) -> LLGuidanceMatcher | None:
        matcher = self._start.deep_copy()
        if matcher.try_consume_tokens(job.left_ids) < len(job.left_ids) or matcher.is_error():
            return None
        return LLGuidanceMatcher(matcher, self.words)


class LLGuidanceMatcher:
    """Its matcher, without the checks of the mask that its numpy helper makes."""

    def __init__(self, matcher: Any, words: NDArray[np.int32]) -> None:
        self.matcher = matcher
        self._address, self._size = words.ctypes.data, words.nbytes

    def fill_mask(self) -> None:
        self.matcher.unsafe_compute_mask_ptr(self._address, self._size)

    def commit(self, token_id: int) -> bool:
        return bool(self.matcher.consume_token(token_id))


# --- glrmask ------------------------------------------------------------------------------------------------------


def glrmask_grammar(language: str) -> str:
    return grammars.json_grammar() if language == "json" else flat(language, longest_match=False).lark(reserve=False)


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
