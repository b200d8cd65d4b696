"""FIM prompts: a format bound to a model's tokenizer, and the prompt it makes of two contexts.

A row of ``formats.toml`` is bound to a tokenizer once, when a model is loaded; binding checks every token's real id, so
a model that cannot fill in the middle is refused then and not by nonsense later. Formats: Bavarian et al., *Efficient
Training of Language Models to Fill in the Middle* (arXiv 2207.14255), and each family's own model card.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from fim_server.errors import ModelError
from fim_server.tokens.formats import Slot, known_formats

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fim_server.tokens.formats import Format

SUFFIX_SHARE = 4
"""The suffix gets one part in this many of a prompt that is too short for both contexts: what stands before the
cursor says more about what comes next, and what is left over by one side goes to the other."""

CHARACTERS_PER_TOKEN = (6, 16)
"""Contexts are cut to this many characters a token before they are encoded, so that the cost of a prompt does not grow
with the file. Source code has 3 to 4 (measured); where the first cut leaves room, because long runs of blanks have
more, the second is tried."""

KNOWN_TEXTS = 16

TAIL_CHARACTERS, TAIL_LINES = 200, 8
"""Where the part of a prefix ends that is encoded once: that far before the cursor, and at every so many lines."""


class Tokenizer(Protocol):
    """What is asked of a transformers tokenizer, whose own types are wider."""

    def convert_tokens_to_ids(self, tokens: str, /) -> Any: ...
    def convert_ids_to_tokens(self, ids: int, /) -> Any: ...
    def encode(self, text: str, /, *, add_special_tokens: bool, split_special_tokens: bool) -> list[int]: ...


@dataclass(frozen=True, slots=True)
class BoundFormat:
    """A format and the tokenizer it was bound to."""

    family: str
    tokenizer: Tokenizer
    pieces: tuple[int | Slot, ...]
    stop_ids: tuple[int, ...]
    """Ids of the tokens with which the model ends a middle."""
    control_ids: frozenset[int]
    """Ids of all tokens of the format; none of them is ever text."""
    guard: str = ""
    plain: Callable[[str], list[int]] | None = None
    """Encodes a text without control tokens, for tokenizers that find their own names in a user's code (Qwen's)."""
    known: OrderedDict[tuple[str, str], list[int]] = field(default_factory=OrderedDict, repr=False, compare=False)
    """Ids of the texts that were encoded lately, where prompts are cut in steps: most of one stays as it was."""

    def encode(self, left: str, right: str, limit: int, grid: int = 1) -> list[int]:
        """Token ids of the prompt for a middle between two contexts, at most ``limit`` of them.

        Contexts that are too long lose what is farthest from the cursor. ``grid``: what they lose is cut in steps of
        this many tokens, so that the prompt goes on beginning the same while someone types at its end, and what the
        model has read of it can be kept. Above 1, what is encoded is kept as well, and the last lines of the prefix are
        encoded by themselves. Raises ValueError where ``limit`` does not even hold the control tokens.
        """
        room = limit - sum(1 for piece in self.pieces if not isinstance(piece, Slot))
        if room < 0:
            raise ValueError(f"a prompt of {limit} tokens is too short for the {self.family} format")
        prefix = self._nearest(left, room, grid, before=True)
        suffix = self._nearest(right, room, grid, before=False)
        kept_prefix, kept_suffix = share(steps(len(prefix), grid), len(suffix), room)
        dropped = steps(len(prefix) - min(kept_prefix, len(prefix)), grid)
        texts = {Slot.PREFIX: prefix[dropped:], Slot.SUFFIX: suffix[:kept_suffix]}
        prompt: list[int] = []
        for piece in self.pieces:
            prompt.extend(texts[piece] if isinstance(piece, Slot) else [piece])
        return prompt

    def _nearest(self, text: str, room: int, grid: int, before: bool) -> list[int]:
        """Ids of the part of a context that is nearest to the cursor, at least ``room`` of them if it has so many."""
        ids: list[int] = []
        for ratio in CHARACTERS_PER_TOKEN:
            longest = (room + grid) * ratio
            if before:
                dropped = steps(max(0, len(text) - longest), grid * ratio)
                head, tail = split_lines(text[dropped:]) if grid > 1 else ("", text[dropped:])
                ids = self._known_ids(head) + self._ids(tail)
            elif grid > 1:
                ids = self._known_ids(text[:longest], self.guard)
            else:
                ids = self._ids(text[:longest], self.guard)
            if len(ids) >= room or len(text) <= longest:
                break
        return ids

    def _known_ids(self, text: str, guard: str = "") -> list[int]:
        """The same ids, remembered."""
        key = guard, text
        ids = self.known.get(key)
        if ids is None:
            ids = self.known[key] = self._ids(text, guard)
            if len(self.known) > KNOWN_TEXTS:
                self.known.popitem(last=False)
        else:
            self.known.move_to_end(key)
        return ids

    def _ids(self, text: str, guard: str = "") -> list[int]:
        """Ids of plain text; the names of control tokens in it are text like any other."""
        if not text:
            return []
        ids = self.tokenizer.encode(guard + text, add_special_tokens=False, split_special_tokens=True)
        if self.plain is not None and not self.control_ids.isdisjoint(ids):
            return self.plain(text)
        if guard:
            dropped = self.tokenizer.encode(guard, add_special_tokens=False, split_special_tokens=True)
            return list(ids[len(dropped) :])
        return list(ids)


def bind(row: Format, tokenizer: Tokenizer) -> BoundFormat | None:
    """A format with a tokenizer's ids, or None if that lacks one of the tokens."""
    ids = {token: token_id(tokenizer, token) for token in row.tokens}
    known = {token: number for token, number in ids.items() if number is not None}
    if len(known) < len(ids):
        return None
    pieces = tuple(Slot(piece) if piece in tuple(Slot) else known[piece] for piece in row.pieces)
    stop_ids = tuple(known[token] for token in row.stop)
    return BoundFormat(row.family, tokenizer, pieces, stop_ids, frozenset(known.values()), row.guard)


def find_format(tokenizer: Tokenizer, model_name: str, formats: Sequence[Format] | None = None) -> BoundFormat:
    """The first known format whose tokens the tokenizer has.

    Raises :class:`ModelError` if there is none: the model was not trained to fill in the middle.
    """
    formats = known_formats() if formats is None else formats
    for candidate in formats:
        bound = bind(candidate, tokenizer)
        if bound is not None:
            return bound
    families = ", ".join(candidate.family for candidate in formats)
    raise ModelError(
        f"{model_name}: not a fill-in-the-middle model (its tokenizer has the tokens of none of: {families})"
    )


def split_lines(text: str) -> tuple[str, str]:
    """A text cut at a line's start, at least :data:`TAIL_CHARACTERS` before its end, and always at the same few places.

    The places depend on the lines before them alone, so the first part stays as it is while the second one grows.
    """
    end = max(0, len(text) - TAIL_CHARACTERS)
    starts = [match.end() for match in re.finditer("\n", text[:end])]
    kept = len(starts) - len(starts) % TAIL_LINES
    cut = starts[kept - 1] if kept else 0
    return text[:cut], text[cut:]


def steps(count: int, grid: int) -> int:
    """The least multiple of ``grid`` that is not below ``count``."""
    return -(-count // grid) * grid


def share(prefix: int, suffix: int, room: int) -> tuple[int, int]:
    """How many tokens of each context fit: the suffix yields first, down to its guaranteed part.

    >>> share(1000, 1000, 100)
    (75, 25)
    >>> share(10, 1000, 100), share(1000, 10, 100)
    ((10, 90), (90, 10))
    """
    kept_suffix = min(suffix, max(room // SUFFIX_SHARE, room - prefix))
    return min(prefix, room - kept_suffix), kept_suffix


def token_id(tokenizer: Tokenizer, token: str) -> int | None:
    """The id of a token named exactly so, or None. Tokenizers answer unknown names with their unknown token."""
    number = tokenizer.convert_tokens_to_ids(token)
    if number is None or tokenizer.convert_ids_to_tokens(number) != token:
        return None
    return int(number)
