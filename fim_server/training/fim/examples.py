"""Examples of the training: a trunk of context, and branches that leave it, each a middle.

Suffix first, the trunk is the suffix, the prefix and the text to fill in, all read once. A branch stands for a cursor
in that text: the middle token, what is left to write and the end token. It sees the trunk up to its cursor and itself,
by the attention mask, at the positions it has when served. Several branches thus cost one context, which is nine
tenths of the tokens otherwise.
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

from fim_server.training.cutting import line_end
from fim_server.training.fim.cuts import Kinds, Pieces, Region, beginnings, region
from fim_server.training.packages import SourceFile

PREFIX, SUFFIX, MIDDLE, END, NEIGHBOUR, PATH = 8, 9, 10, 0, 5, 6
"""Ids of the control tokens, special tokens of SmolLM2 that its base has no use for."""

TRUNK = -1
"""Branch number of the trunk's tokens."""

_DEFINITION = re.compile(r"^(?:class|def) (\w+)[^\n]*(?:\n[ \t]+[^\n]*){0,2}", re.M)


@dataclass(frozen=True)
class Mixture:
    """Shares of layouts and what they hold.

    `no_suffix`: chance that the suffix is left out (`hidden_suffix`: it always is, and all else is drawn as if it were
    not, so that the difference is what a suffix gives); `with_path`, `with_neighbours`: that they stand in front;
    `whole_lines`: that the context's far end is a line's.
    """

    kinds: Kinds = field(default_factory=Kinds)
    suffix_first: float = 0.93
    no_suffix: float = 0.06
    hidden_suffix: bool = False
    with_path: float = 0.25
    with_neighbours: float = 0.3
    whole_lines: float = 0.8
    branches: int = 4


@dataclass
class Example:
    """Token ids with their positions, the branch each is of, the trunk's last token it sees, and its loss weight."""

    ids: list[int] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    branches: list[int] = field(default_factory=list)
    limits: list[int] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)
    """Of the prediction of this token by the one before it in its branch."""
    origins: list[int] = field(default_factory=list)
    """Index of that token; 0 for the first."""

    def add_trunk(self, ids: Sequence[int]) -> None:
        """Append to the trunk, without loss."""
        for token in ids:
            at = len(self.ids)
            self._add(token, at, TRUNK, at, max(0, at - 1), 0.0)

    def add_branch(self, number: int, after: int, context: Sequence[int], middle: Sequence[int]) -> None:
        """Append a branch that leaves the trunk after its token `after`: context without loss, then the middle."""
        position, origin = self.positions[after] + 1, after
        for index, token in enumerate((*context, *middle)):
            at = len(self.ids)
            self._add(token, position + index, number, after, origin, 1.0 if index >= len(context) else 0.0)
            origin = at

    def _add(self, token: int, position: int, branch: int, limit: int, origin: int, weight: float) -> None:
        self.ids.append(token)
        self.positions.append(position)
        self.branches.append(branch)
        self.limits.append(limit)
        self.origins.append(origin)
        self.weights.append(weight)


def encode(tokenizer: Tokenizer, text: str) -> list[int]:
    """Ids of a text in which names of control tokens are text like any other."""
    ids: list[int] = tokenizer.encode(text, add_special_tokens=False).ids
    return ids


def pieces(tokenizer: Tokenizer, text: str) -> Pieces:
    """A text's tokens, and where they and its words start, in characters; a blank belongs to the word after it."""
    encoding = tokenizer.encode(text, add_special_tokens=False)
    starts = [begin for begin, _ in encoding.offsets]
    words = {begin for _, (begin, _) in tokenizer.pre_tokenizer.pre_tokenize_str(text)}
    # Tokens of one character's later bytes start where the first one does, and none of them begins a word.
    begins = [index == 0 or starts[index - 1] != start for index, start in enumerate(starts)]
    return Pieces(encoding.ids, starts, [new and start in words for new, start in zip(begins, starts, strict=True)])


class Source:
    """Draws examples from files, without end."""

    def __init__(self, files: Sequence[SourceFile], tokenizer: Tokenizer, mixture: Mixture, seed: int) -> None:
        self._files = [file for file in files if len(file.text) >= 400]
        self._sizes = np.cumsum([len(file.text) for file in self._files])
        self._tokenizer = tokenizer
        self._mixture = mixture
        self._random = random.Random(seed)

    def draw(self, longest: int) -> Example:
        """An example of at most `longest` tokens."""
        while True:
            number = int(np.searchsorted(self._sizes, self._random.randrange(int(self._sizes[-1])), side="right"))
            text = self._files[number].text
            found = region(text, self._random.randrange(len(text)), self._mixture.kinds, self._random)
            if found is None:
                continue
            example = self._example(number, found, longest)
            if example is not None and len(example.ids) <= longest:
                return example

    def _example(self, number: int, found: Region, longest: int) -> Example | None:
        mixture, generator, text = self._mixture, self._random, self._files[number].text
        wanted = int(longest * generator.uniform(0.45, 0.97))
        suffix_share = generator.uniform(0.12, 0.45)
        is_suffix_first = generator.random() < mixture.suffix_first
        begin = self._context_begin(text, found, wanted)
        whole = pieces(self._tokenizer, text[begin : found.end])
        first = max(0, found.start - begin - 1) if text[found.start - 1 : found.start] == " " else found.start - begin
        cuts = beginnings(whole, first, mixture.branches if is_suffix_first else 1, generator)
        if not cuts or len(whole.ids) - cuts[0] > longest // 3:
            return None
        right = ""
        if generator.random() >= mixture.no_suffix:
            right = self._right(text, found, wanted)
        suffix = encode(self._tokenizer, right)
        front = self._front(number, text[begin : found.end] + right)
        inner = sum(len(whole.ids) - cut + 2 for cut in cuts) + (len(whole.ids) - cuts[0])
        room = wanted - inner - len(front) - 2
        if room < 24:
            return None
        kept_suffix = min(len(suffix), max(int(room * suffix_share), room - cuts[0]))
        dropped = max(0, cuts[0] - (room - kept_suffix))
        trunk, cuts = whole.ids[dropped:], [cut - dropped for cut in cuts]
        if mixture.hidden_suffix:
            kept_suffix = 0
        example = Example()
        if is_suffix_first:
            example.add_trunk([*front, SUFFIX, *suffix[:kept_suffix], PREFIX])
            before = len(example.ids) - 1
            example.add_trunk(trunk)
            for branch, cut in enumerate(cuts):
                example.add_branch(branch, before + cut, [MIDDLE], [*trunk[cut:], END])
        else:
            cut = cuts[0]
            example.add_trunk([*front, PREFIX, *trunk[:cut]])
            example.add_branch(0, len(example.ids) - 1, [SUFFIX, *suffix[:kept_suffix], MIDDLE], [*trunk[cut:], END])
        return example

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
    """Packed examples: arrays [length], but for `mask`, [length, length], true where a token sees another.

    `origins`, `targets`, `weights` [n]: the predictions that count, by the index of the predicting token.
    """

    ids: npt.NDArray[np.int64]
    positions: npt.NDArray[np.int64]
    mask: npt.NDArray[np.bool_]
    origins: npt.NDArray[np.int64]
    targets: npt.NDArray[np.int64]
    weights: npt.NDArray[np.float32]


def pack(examples: Sequence[Example], length: int, rest: float, rest_weight: float, generator: random.Random) -> Window:
    """Lay examples one after the other; none sees another.

    Of the trunk's tokens a share `rest` counts too, by `rest_weight`, so that the model stays one of Python.
    """
    ids, positions = np.zeros(length, np.int64), np.zeros(length, np.int64)
    owner, branch, limit = np.full(length, -1), np.full(length, TRUNK), np.arange(length)
    origins: list[int] = []
    targets: list[int] = []
    weights: list[float] = []
    at = 0
    for number, example in enumerate(examples):
        end = at + len(example.ids)
        ids[at:end], positions[at:end], owner[at:end] = example.ids, example.positions, number
        branch[at:end], limit[at:end] = example.branches, np.array(example.limits) + at
        for index, weight in enumerate(example.weights):
            token = example.ids[index]
            if not weight and index and token > MIDDLE + 6 and generator.random() < rest:
                weight = rest_weight
            if weight:
                origins.append(at + example.origins[index])
                targets.append(token)
                weights.append(weight)
        at = end
    order = np.arange(length)
    same = owner[:, None] == owner[None, :]
    in_trunk = (branch[None, :] == TRUNK) & (order[None, :] <= limit[:, None])
    mask = same & (order[None, :] <= order[:, None]) & (in_trunk | (branch[None, :] == branch[:, None]))
    return Window(
        ids, positions, mask, np.array(origins, np.int64), np.array(targets, np.int64), np.array(weights, np.float32)
    )


def windows(
    source: Source, length: int, generator: random.Random, rest: float = 0.08, rest_weight: float = 0.4, held: int = 64
) -> Iterator[Window]:
    """Pack drawn examples, without end: of `held` waiting ones the longest that still fits comes next."""
    waiting: list[Example] = []
    while True:
        while len(waiting) < held:
            waiting.append(source.draw(length))
        chosen = [waiting.pop(0)]
        left = length - len(chosen[0].ids)
        while True:
            fitting = [one for one in waiting if len(one.ids) <= left]
            if not fitting:
                break
            best = max(fitting, key=lambda one: len(one.ids))
            waiting.remove(best)
            chosen.append(best)
            left -= len(best.ids)
        yield pack(chosen, length, rest, rest_weight, generator)
