"""FIM prompts: a format bound to a model's tokenizer, and the prompt that it makes of two contexts.

Loading a model binds a row of ``formats.toml`` to its tokenizer. Binding checks the id of every token, so a model that
cannot fill in the middle is refused at once instead of writing nonsense later. Formats: Bavarian et al., *Efficient
Training of Language Models to Fill in the Middle* (arXiv 2207.14255), and each family's model card.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

from fim_server.errors import FormatError
from fim_server.tokens.edit_formats import edit_format_of
from fim_server.tokens.formats import FixedText, Kind, Slot, known_formats

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fim_server.models.project_context import ProjectContext
    from fim_server.tokens.edit_formats import EditFormat
    from fim_server.tokens.formats import Format, Repository

SUFFIX_SHARE = 4
"""Divisor that gives the suffix's share of a prompt that is too short for both contexts.

The text before the cursor says more about the middle. Tokens that one side leaves go to the other.
"""

CHARACTERS_PER_TOKEN = (6, 16)
"""Characters per token to which contexts are cut before encoding, so that a prompt's cost does not grow with the file.

Source code has 3 to 4. The second figure serves where the first cut leaves room, since long runs of blanks have more.
"""

PLAIN = "plain"
"""Name of the format without tokens of its own."""

KNOWN_TEXTS = 2048
"""Number of texts whose ids are cached, for prompts of two lengths: some 64 pieces of the longest prefix, and lines and
ends of a few suffixes.
"""

CHARACTERS_PER_STEP = 3
"""Characters per token of a step: a prefix that is cut in steps may begin at one line in so many characters."""


class Tokenizer(Protocol):
    """Part of a transformers tokenizer that prompts need."""

    def convert_tokens_to_ids(self, tokens: str, /) -> Any: ...
    def convert_ids_to_tokens(self, ids: int, /) -> Any: ...
    def encode(self, text: str, /, *, add_special_tokens: bool, split_special_tokens: bool) -> list[int]: ...


@dataclass(frozen=True, slots=True)
class BoundFormat:
    """Format with the tokenizer that it is bound to."""

    family: str
    tokenizer: Tokenizer
    pieces: tuple[int | Slot, ...]
    stop_ids: tuple[int, ...]
    """Tokens with which the model ends a middle."""
    control_ids: frozenset[int]
    """All tokens of the format; none of them is ever text."""
    guard: str = ""
    plain: Callable[[str], list[int]] | None = None
    """Encoder without control tokens, for tokenizers that find their own names in a user's code (Qwen's)."""
    known: OrderedDict[tuple[str, str], list[int]] = field(default_factory=OrderedDict, repr=False, compare=False)
    """Cached ids of recently encoded texts, where prompts are cut in steps: most of a text stays as it was."""

    repository: Repository | None = None
    """Layout of other files, for models trained on several files in one prompt."""
    languages: frozenset[str] | None = None
    """Languages that the model knows; None for all or unknown ones."""
    edits: EditFormat | None = None
    """Format of next edits, for models that are trained to write them."""

    @property
    def sees_suffix(self) -> bool:
        """True if the prompt has the text after the cursor. The grammar always sees it."""
        return Slot.SUFFIX in self.pieces

    def encode(
        self, left: str, right: str, limit: int, grid: int = 1, context: ProjectContext | None = None, most: int = 0
    ) -> list[int]:
        """Return the token ids of the prompt for a middle between two contexts.

        Contexts that are too long lose whole lines, the farthest from the cursor first. A line is cut only if the
        cursor's own line is too long.

        Args:
            left: The text before the cursor.
            right: The text after the cursor.
            limit: Most tokens.
            grid: Step in tokens in which contexts are cut, so that the prompt's beginning and its KV cache stay the
                same while the user types at its end. Above 1, the prefix is encoded in pieces that end with a line, and
                the ids are cached.
            context: Excerpts of other files.
            most: Most tokens of the excerpts.

        Raises:
            ValueError: ``limit`` does not even hold the control tokens.
        """
        front, head = ((), ()) if context is None else context.ids(self, min(most, limit // 2))
        room = limit - sum(1 for piece in self.pieces if not isinstance(piece, Slot)) - len(front) - len(head)
        if room < 0:
            raise ValueError(f"a prompt of {limit} tokens is too short for the {self.family} format")
        prefix = self._prefix(left, room, grid)
        ids = self._suffix(right if self.sees_suffix else "", steps(prefix.length, grid), room, grid)
        texts = {Slot.PREFIX: [*head, *prefix.last(room - len(ids), grid)], Slot.SUFFIX: ids}
        prompt = list(front)
        for piece in self.pieces:
            prompt.extend(texts[piece] if isinstance(piece, Slot) else [piece])
        return prompt

    def _prefix(self, left: str, room: int, grid: int) -> Prefix:
        """Return the end of the text before the cursor, at least ``room`` tokens if it has so many."""
        encode = self._known_ids if grid > 1 else self._ids
        step = CHARACTERS_PER_STEP * grid if grid > 1 else 1
        for ratio in CHARACTERS_PER_TOKEN:
            begin = max(0, len(left) - (room + grid) * ratio)
            prefix = Prefix.of(left, begin, step, encode, self.guard)
            if prefix.length >= room or begin == 0:
                break
        return prefix

    def _suffix(self, right: str, prefix: int, room: int, grid: int) -> list[int]:
        """Return the ids of the text after the cursor beside ``prefix`` tokens of the text before it."""
        found = None
        if grid > 1:
            _, most = share(prefix, room, room)
            found = self._lines_within(right[: (room + grid) * CHARACTERS_PER_TOKEN[-1]], most)
        return self._suffix_plain(right, prefix, room, grid) if found is None else found

    def _suffix_plain(self, right: str, prefix: int, room: int, grid: int) -> list[int]:
        """Encode all that might fit, and then shorter beginnings until one fits."""
        text, ids = "", list[int]()
        for ratio in CHARACTERS_PER_TOKEN:
            text = right[: (room + grid) * ratio]
            ids = self._suffix_ids(text, grid)
            if len(ids) >= room or len(text) == len(right):
                break
        _, kept = share(prefix, len(ids), room)
        if len(ids) <= kept:
            return ids
        ends = [match.end() for match in re.finditer("\n", text)]
        count = bisect_right(ends, kept, key=lambda end: len(self._suffix_ids(text[:end], grid)))
        return self._suffix_ids(text[: ends[count - 1]], grid) if count else ids[:kept]

    def _lines_within(self, text: str, most: int) -> list[int] | None:
        """Return the ids of as many lines as ``most`` tokens hold; None where not even the first one fits.

        The cached ids of single lines show about where the limit is. So a text with one changed line is encoded only up
        to there.
        """
        ends = [0]
        cut = counted = 0
        while counted <= most and ends[-1] < len(text):
            start, end = ends[-1], text.find("\n", ends[-1]) + 1 or len(text)
            ends.append(end)
            if line := text[start:end].rstrip():  # a line break is joined with the indentation after it
                counted += len(self._known_ids(text[cut : start + len(line)], self.guard))
                cut = start + len(line)

        def length(end: int) -> int:
            return len(self._known_ids(text[:end], self.guard))

        further = 1
        while ends[-1] < len(text) and length(ends[-1]) <= most:  # joined, lines may have fewer tokens than apart
            for _ in range(further):
                if ends[-1] < len(text):
                    ends.append(text.find("\n", ends[-1]) + 1 or len(text))
            further *= 2
        if length(ends[-1]) <= most:
            count = len(ends)
        elif len(ends) > 1 and length(ends[-2]) <= most:
            count = len(ends) - 1
        else:
            count = bisect_right(ends, most, key=length)
        return self._known_ids(text[: ends[count - 1]], self.guard) if count > 1 or not text else None

    def _suffix_ids(self, text: str, grid: int) -> list[int]:
        return self._known_ids(text, self.guard) if grid > 1 else self._ids(text, self.guard)

    def _known_ids(self, text: str, guard: str = "") -> list[int]:
        """Return the ids of a text from the cache, or encode it."""
        key = guard, text
        ids = self.known.get(key)
        if ids is None:
            ids = self.known[key] = self._ids(text, guard)
            if len(self.known) > KNOWN_TEXTS:
                self.known.popitem(last=False)
        else:
            self.known.move_to_end(key)
        return ids

    def text_ids(self, text: str) -> list[int]:
        """Return the ids of a text that stands between tokens."""
        return self._ids(text, self.guard)

    def token(self, name: str) -> int:
        """Return the id of a token of the format."""
        number = token_id(self.tokenizer, name)
        assert number is not None, "bound with its tokens"
        return number

    def _ids(self, text: str, guard: str = "") -> list[int]:
        """Encode plain text; names of control tokens in it are text like any other."""
        if not text:
            return []
        ids = self.tokenizer.encode(guard + text, add_special_tokens=False, split_special_tokens=True)
        if self.plain is not None and not self.control_ids.isdisjoint(ids):
            return self.plain(text)
        if guard:
            dropped = self.tokenizer.encode(guard, add_special_tokens=False, split_special_tokens=True)
            return list(ids[len(dropped) :])
        return list(ids)


@dataclass(frozen=True, slots=True)
class Prefix:
    """End of the text before a cursor, in pieces, with the lines at which a prompt may begin.

    A piece ends with a line's last character that is no blank. Tokenizers of source code cut there in any case, since
    they join a line break with the indentation after it. So the ids of the pieces are those of the whole text, and only
    the last piece changes while the user types.
    """

    text: str
    starts: list[int]
    """Offsets of the lines at which a prompt may begin, in ascending order; the pieces begin at the first."""
    cuts: list[int]
    """Offsets of the pieces; each lies before the line breaks that precede its line."""
    pieces: list[list[int]]
    """Ids of the pieces."""
    encode: Callable[[str, str], list[int]]
    """Encoder of a text after a guard, which may be empty."""

    @classmethod
    def of(cls, text: str, begin: int, step: int, encode: Callable[[str, str], list[int]], guard: str) -> Prefix:
        """Cut the text after about ``begin`` into pieces.

        A prompt may begin at the first line in each ``step`` characters. Steps count from the text's beginning, so that
        they stay in place as the user writes at its end.
        """
        begin = begin // step * step
        starts, cuts = [begin], [begin]
        at = begin
        while (found := text.find("\n", max(at - 1, 0))) >= 0:
            start = cut = found + 1
            while cut > cuts[-1] and text[cut - 1].isspace():
                cut -= 1
            if cut > cuts[-1]:
                starts.append(start)
                cuts.append(cut)
            at = (start // step + 1) * step
        ends = [*cuts[1:], len(text)]
        pieces = [encode(text[cut:end], guard) for cut, end in zip(cuts, ends, strict=True)]
        return cls(text, starts, cuts, pieces, encode)

    @property
    def length(self) -> int:
        return sum(map(len, self.pieces))

    def last(self, room: int, grid: int) -> list[int]:
        """Return the ids of as many last lines as ``room`` tokens hold.

        If not even the last piece fits, its beginning is left out, in steps of ``grid``.
        """
        first, length = len(self.starts), 0
        while first > 0 and length + self._length_of(first - 1, grid) <= room:
            first -= 1
            length += self._length_of(first, grid)
        if first == 0 and not self._begins_line(0):
            first = 1
        while first < len(self.starts):
            ids = self._from(first, grid)
            if len(ids) <= room:  # they may be one more than counted, without the line break before them
                return ids
            first += 1
        ids = [token for piece in self.pieces for token in piece]
        return ids[steps(len(ids) - min(room, len(ids)), grid) :]

    def _length_of(self, number: int, grid: int) -> int:
        """Return a piece's number of tokens, rounded up to steps for the last piece, in which the user types.

        A word's number of tokens goes up and down while it is written, which would move the prompt's far end back and
        forth.
        """
        count = len(self.pieces[number])
        return max(grid, steps(count, grid)) if grid > 1 and number == len(self.pieces) - 1 else count

    def _begins_line(self, number: int) -> bool:
        start = self.starts[number]
        return start == 0 or self.text[start - 1] == "\n"

    def _from(self, number: int, grid: int) -> list[int]:
        """Return the ids from a start on: of the pieces where prompts are cut in steps, else of the whole text."""
        start = self.starts[number]
        if grid == 1:
            return self.encode(self.text[start:], "")
        end = self.cuts[number + 1] if number + 1 < len(self.cuts) else len(self.text)
        return [
            *self.encode(self.text[start:end], ""),
            *(token for piece in self.pieces[number + 1 :] for token in piece),
        ]


def bind(row: Format, tokenizer: Tokenizer) -> BoundFormat | None:
    """Return a format with a tokenizer's ids, or None if the tokenizer lacks a token."""
    ids = {token: token_id(tokenizer, token) for token in row.tokens}
    known = {token: number for token, number in ids.items() if number is not None}
    if len(known) < len(ids):
        return None
    pieces: list[int | Slot] = []
    for piece in row.pieces:
        if isinstance(piece, FixedText):
            pieces.extend(tokenizer.encode(piece.text, add_special_tokens=False, split_special_tokens=True))
        else:
            pieces.append(Slot(piece) if piece in tuple(Slot) else known[piece])
    stop_ids = tuple(known[token] for token in row.stop)
    repository = row.repository
    if repository is not None:
        others = {token: token_id(tokenizer, token) for token in repository.tokens}
        if None in others.values():
            repository = None
        else:
            known |= {token: number for token, number in others.items() if number is not None}
    control = frozenset(known.values())
    return BoundFormat(
        row.family,
        tokenizer,
        tuple(pieces),
        stop_ids,
        control,
        row.guard,
        repository=repository,
        languages=row.languages,
    )


NO_KIND = Kind()


def bind_format(
    tokenizer: Tokenizer, kind: Kind = NO_KIND, formats: Sequence[Format] | None = None
) -> BoundFormat | None:
    """Return the first known format whose tokens the tokenizer has, and whose marks the model has; None for none."""
    for row in known_formats() if formats is None else formats:
        if row.known_by is None or row.known_by.fits(kind, lambda name: token_id(tokenizer, name) is not None):
            bound = bind(row, tokenizer)
            if bound is not None:
                return with_edits(bound, kind)
    return None


def with_edits(bound: BoundFormat, kind: Kind) -> BoundFormat:
    """Return a format with that of next edits, if a model of its names is trained to write them."""
    edits = edit_format_of(kind.names)
    if edits is None:
        return bound
    control = {number for name in edits.tokens if (number := token_id(bound.tokenizer, name)) is not None}
    return replace(bound, edits=edits, control_ids=bound.control_ids | control)


def find_format(
    tokenizer: Tokenizer, model_name: str, kind: Kind = NO_KIND, formats: Sequence[Format] | None = None
) -> BoundFormat:
    """Return the first known format whose tokens the tokenizer has, and whose marks the model has.

    ``kind``: what is known of the model beside its tokens.

    Raises :class:`FormatError` if there is none: the model was not trained to fill in the middle.
    """
    formats = known_formats() if formats is None else formats
    bound = bind_format(tokenizer, kind, formats)
    if bound is not None:
        return bound
    families = ", ".join(candidate.family for candidate in formats)
    raise FormatError(
        f"{model_name}: not a fill-in-the-middle model (its tokenizer has the tokens of none of: {families})"
    )


def plain_format(tokenizer: Tokenizer, begin: Sequence[int], stop_ids: Sequence[int]) -> BoundFormat:
    """Return the format of a model that was not trained to fill in the middle: it reads the prefix and writes on.

    ``begin``: ids at the beginning of its texts; ``stop_ids``: ids that end them.
    """
    return BoundFormat(PLAIN, tokenizer, (*begin, Slot.PREFIX), tuple(stop_ids), frozenset((*begin, *stop_ids)))


def steps(count: int, grid: int) -> int:
    """Return the least multiple of ``grid`` that is not below ``count``."""
    return -(-count // grid) * grid


def share(prefix: int, suffix: int, room: int) -> tuple[int, int]:
    """Return the number of tokens of each context that fit: the suffix yields first, down to its guaranteed part.

    >>> share(1000, 1000, 100)
    (75, 25)
    >>> share(10, 1000, 100), share(1000, 10, 100)
    ((10, 90), (90, 10))
    """
    kept_suffix = min(suffix, max(room // SUFFIX_SHARE, room - prefix))
    return min(prefix, room - kept_suffix), kept_suffix


def token_id(tokenizer: Tokenizer, token: str) -> int | None:
    """Return the id of a token of exactly that name, or None. Tokenizers map unknown names to their unknown token."""
    number = tokenizer.convert_tokens_to_ids(token)
    if number is None or tokenizer.convert_ids_to_tokens(number) != token:
        return None
    return int(number)
