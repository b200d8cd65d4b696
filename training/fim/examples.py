"""Examples of the training: suffix, prefix and middle, with no token between prefix and middle.

The middle is thus the continuation of the prefix, which the base model writes already; it learns to look at the suffix
and to end. Every place in the text is a cursor whose middle is the tokens after it. One example teaches as many cuts as
its last lines have tokens. Codestral's format is the same. A middle token costs the base model's habit of continuing
(docs/training.md).
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from fim_server.errors import TrainingError
from training.data.cutting import line_end
from training.data.packages import SourceFile
from training.data.windows import take_window
from training.fim.cuts import Kinds, Pieces, Region, comments_of, first_token, region

PREFIX, SUFFIX, MIDDLE, END, NEIGHBOUR, PATH = 8, 9, 10, 0, 5, 6
"""Ids of the control tokens, special tokens of SmolLM2 that its base has no use for."""

LAST_SPECIAL = 16
"""The highest id of a special token; what comes after is text."""

SHORTEST = 400
"""Characters of a file that examples are cut out of."""

TRIES = 10_000
"""Places that are looked at for an example; two of three are good for one in ordinary code."""

MIDDLE_WEIGHT, END_WEIGHT = 1.0, 2.0
"""Weights in the loss of a middle's tokens, and of its end. One end stands for all cuts before it."""

_DEFINITION = re.compile(
    r"^(?:(?:export|default|public|pub|abstract|final|async|static|data|sealed) )*"
    r"(?:class|def|enum|fn|func|fun|function|interface|object|struct|trait|type) (\w+)[^\n]*(?:\n[ \t]+[^\n]*){0,2}",
    re.M,
)


@dataclass(frozen=True)
class Mixture:
    """Shares of layouts and of their parts.

    `no_suffix`: chance that the suffix is left out. `hidden_suffix`: it is always left out, and all else is drawn
    the same, so that the difference is the suffix's worth. `with_path`, `with_neighbours`: chances that they stand in
    front. `whole_lines`: chance that the context's far end is the end of a line.
    """

    kinds: Kinds = field(default_factory=Kinds)
    suffix_first: float = 0.93
    no_suffix: float = 0.06
    hidden_suffix: bool = False
    with_path: float = 0.25
    with_neighbours: float = 0.3
    whole_lines: float = 0.8


class Example(NamedTuple):
    """Token ids, and the loss weight of each one's prediction by the one before it."""

    ids: list[int]
    weights: list[float]


def encode(tokenizer: Tokenizer, text: str) -> list[int]:
    """Ids of a text in which names of control tokens are text like any other."""
    ids: list[int] = tokenizer.encode(text, add_special_tokens=False).ids
    return ids


def pieces(tokenizer: Tokenizer, text: str) -> Pieces:
    """A text's tokens, and where they start, in characters."""
    encoding = tokenizer.encode(text, add_special_tokens=False)
    return Pieces(encoding.ids, [begin for begin, _ in encoding.offsets])


class Source:
    """Draws examples from files, without end.

    `weights`: chances of the files; None: by their lengths. Raises TrainingError where none of the files is long
    enough.
    """

    def __init__(
        self,
        files: Sequence[SourceFile],
        tokenizer: Tokenizer,
        mixture: Mixture,
        seed: int,
        weights: Sequence[int] | None = None,
    ) -> None:
        chances = [len(file.text) for file in files] if weights is None else weights
        long_enough = [number for number, file in enumerate(files) if len(file.text) >= SHORTEST]
        self._files = [files[number] for number in long_enough]
        if not self._files:
            raise TrainingError(f"none of {len(files)} files has {SHORTEST} characters")
        self._sizes = np.cumsum([chances[number] for number in long_enough])
        self._tokenizer = tokenizer
        self._mixture = mixture
        self._random = random.Random(seed)

    def draw(self, longest: int) -> Example:
        """An example of at most `longest` tokens. Raises TrainingError where the files give none."""
        for _ in range(TRIES):
            number = int(np.searchsorted(self._sizes, self._random.randrange(int(self._sizes[-1])), side="right"))
            text, comments = self._files[number].text, comments_of(self._files[number].path)
            found = region(text, self._random.randrange(len(text)), self._mixture.kinds, self._random, comments)
            if found is None:
                continue
            example = self._example(number, found, longest)
            if example is not None and len(example.ids) <= longest:
                return example
        raise TrainingError(f"no place for an example of up to {longest} tokens in {TRIES} tries")

    def _example(self, number: int, found: Region, longest: int) -> Example | None:
        mixture, generator, text = self._mixture, self._random, self._files[number].text
        wanted = int(longest * generator.uniform(0.3, 0.97))
        suffix_share = generator.uniform(0.12, 0.45)
        begin = self._context_begin(text, found, wanted)
        whole = pieces(self._tokenizer, text[begin : found.end])
        first = first_token(whole, found.start - begin)
        if first >= len(whole.ids) or len(whole.ids) - first > longest // 2:
            return None
        right = self._right(text, found, wanted) if generator.random() >= mixture.no_suffix else ""
        suffix = encode(self._tokenizer, right)
        front = self._front(number, text[begin : found.end] + right)
        room = wanted - (len(whole.ids) - first) - len(front) - 3
        if room < 24:
            return None
        kept = min(len(suffix), max(int(room * suffix_share), room - first))
        dropped = max(0, first - (room - kept))
        suffix = [] if mixture.hidden_suffix else suffix[:kept]
        prefix = whole.ids[dropped:first]
        if generator.random() < mixture.suffix_first:
            context = [*front, SUFFIX, *suffix, PREFIX, *prefix]
        else:
            # The cut is one of the middle's own here, because what comes first says where it is.
            cut = generator.randrange(first, len(whole.ids))
            context = [*front, PREFIX, *whole.ids[dropped:cut], SUFFIX, *suffix, MIDDLE]
            first = cut
        middle = whole.ids[first:]
        weights = [0.0] * len(context) + [MIDDLE_WEIGHT] * len(middle) + [END_WEIGHT]
        return Example([*context, *middle, END], weights)

    def _context_begin(self, text: str, found: Region, wanted: int) -> int:
        begin = max(0, found.start - 5 * wanted)
        if begin and self._random.random() < self._mixture.whole_lines:
            # A served prompt loses whole lines; how many tokens remain is not told exactly by characters.
            begin = max(0, found.start - int(3.2 * wanted * self._random.uniform(0.45, 0.95)))
            begin = min(line_end(text, begin) + 1, text.rfind("\n", 0, found.start) + 1) if begin else 0
        return begin

    def _right(self, text: str, found: Region, wanted: int) -> str:
        end = min(len(text), found.end + 5 * wanted)
        if self._random.random() < self._mixture.whole_lines:
            end = line_end(text, min(len(text), found.end + int(3.2 * wanted * self._random.uniform(0.15, 0.5))))
        return text[found.end : end]

    def _front(self, number: int, around: str) -> list[int]:
        """The file's path, and definitions of its neighbours that are named around the cursor."""
        if self._random.random() >= self._mixture.with_path:
            return []
        ids: list[int] = []
        path = self._files[number].path
        if self._random.random() < self._mixture.with_neighbours:
            for other in (number - 1, number + 1):
                if 0 <= other < len(self._files) and _folder(self._files[other].path) == _folder(path):
                    ids += self._definitions(self._files[other], around)
        return [*ids, PATH, *encode(self._tokenizer, path + "\n")]

    def _definitions(self, file: SourceFile, around: str) -> list[int]:
        for found in _DEFINITION.finditer(file.text):
            if found[1] in around:
                return [NEIGHBOUR, *encode(self._tokenizer, f"{file.path}\n{found[0]}\n")[:60]]
        return []


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


class Window(NamedTuple):
    """Packed examples: `ids`, `positions` and `owners` (which example; -1 for none), [length].

    `origins`, `targets`, `weights` [n]: the predictions that count, by the index of the predicting token.
    """

    ids: npt.NDArray[np.int64]
    positions: npt.NDArray[np.int64]
    owners: npt.NDArray[np.int64]
    origins: npt.NDArray[np.int64]
    targets: npt.NDArray[np.int64]
    weights: npt.NDArray[np.float32]


def pack(examples: Sequence[Example], length: int, rest: float, rest_weight: float, generator: random.Random) -> Window:
    """Pack examples one after the other; none sees another.

    Of the text before a middle a share `rest` counts in the loss, by `rest_weight`. The prefix is written with the
    suffix in view too, from further away, and no end stands in it.
    """
    ids, positions = np.zeros(length, np.int64), np.zeros(length, np.int64)
    owners = np.full(length, -1)
    origins: list[int] = []
    targets: list[int] = []
    weights: list[float] = []
    at = 0
    for number, example in enumerate(examples):
        end = at + len(example.ids)
        ids[at:end], positions[at:end], owners[at:end] = example.ids, np.arange(end - at), number
        for index, (token, given) in enumerate(zip(example.ids, example.weights, strict=True)):
            is_text = index > 0 and token > LAST_SPECIAL
            weight = rest_weight if not given and is_text and generator.random() < rest else given
            if weight:
                origins.append(at + index - 1)
                targets.append(token)
                weights.append(weight)
        at = end
    return Window(
        ids, positions, owners, np.array(origins, np.int64), np.array(targets, np.int64), np.array(weights, np.float32)
    )


def windows(
    source: Source,
    length: int,
    generator: random.Random,
    rest: float,
    rest_weight: float,
    longest: Sequence[int],
    shares: Sequence[float],
    held: int = 64,
) -> Iterator[Window]:
    """Pack drawn examples of up to `longest` tokens, by `shares`, without end, chosen among `held` waiting ones."""
    waiting: list[Example] = []
    while True:
        while len(waiting) < held:
            waiting.append(source.draw(generator.choices(longest, shares)[0]))
        yield pack(take_window(waiting, length), length, rest, rest_weight, generator)
