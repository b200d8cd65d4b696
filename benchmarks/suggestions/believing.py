"""Fit the weights of the project index beside the model (`fim_server/memory/belief.py`).

    python -m benchmarks.suggestions.believing FOLDER... --lines 100

Lines of each folder's files are cut, in a word or before one, and their rests are read token by token. At each token
the model is asked, and the indexes of three kinds of projects. These are the rest of the folder, a few parts of its
files with the lines around the cursor, and those lines alone. The weights maximise the likelihood of the true tokens,
all kinds together. The report compares weights fitted to the other folders with the model alone and with constant
weights. The grammar restricts the index's tokens, as in the server, but not the model's. 100 lines take some two
minutes.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from benchmarks.suggestions.holes import LEXEME
from benchmarks.suggestions.projects import Project as Sources
from benchmarks.suggestions.projects import Task
from benchmarks.suggestions.recipes import PROMPT_TOKENS, command_line, drawn_of, end_with, remembered
from fim_server.decoding.bias.lexeme_check import LexemeCheck
from fim_server.decoding.bias.project_bias import project_bias_tokens
from fim_server.decoding.loop.healing import Healing
from fim_server.decoding.options import DecodeOptions
from fim_server.decoding.strategies.alternatives import read_before
from fim_server.language import Language
from fim_server.memory.belief import FITTED, Belief, features
from fim_server.models.load import load_model
from fim_server.models.reading import passes
from fim_server.suggest.sources.project import MemoryBias, Project
from fim_server.text.document import Split

if TYPE_CHECKING:
    from fim_server.language.session import Session
    from fim_server.models.backend import Logits
    from fim_server.models.model import FimModel

Array = NDArray[np.float64]

OPTIONS = DecodeOptions(max_new_tokens=48, max_prompt_tokens=PROMPT_TOKENS)

MOST_TOKENS = 14
"""Most tokens of a line."""

KINDS = {"whole": 1, "small": 2, "file": 1}
"""Number of projects of each kind that a place is asked in: the folder, parts of its files, the file by itself."""

OWN_LINES, OTHER_LINES, OTHER_FILES = (30, 160), (100, 1300), (2, 7)
"""Around the cursor and in other files, in the projects that are not the whole folder; how many those are."""

LIKELIEST = 8
"""Tokens of the model among which the one that would be written is sought."""

CONSTANT = 0.9
"""The part of each weight that was believed before this was fitted."""

STEPS, PENALTY = 100, 1e-3


@dataclass(frozen=True)
class Foretold:
    """A token that a memory foretells: its weight, its probability by the model, and whether it is right."""

    weight: float
    probability: float
    right: bool


@dataclass(frozen=True)
class Step:
    """A token of a line, with what the model and a memory say of it.

    Attributes:
        folder: The package's name.
        kind: The project's, one of :data:`KINDS`.
        place: The cut and the project, the same for all tokens of a line.
        characters: Of the project.
        first: Whether the first lexeme has not ended.
        right: The probability of what is right, by the model.
        certainty: That of its likeliest token.
        foretold: What the memory says.
        others: The model's likeliest tokens that it does not foretell: probabilities, and whether they are right.
    """

    folder: str
    kind: str
    place: str
    characters: int
    first: bool
    right: float
    certainty: float
    foretold: tuple[Foretold, ...]
    others: tuple[tuple[float, bool], ...]


# --- what is asked -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Asked:
    """A project at a cut."""

    kind: str
    name: str
    project: Project
    advice: MemoryBias


def around(split: Split, before: int, after: int) -> Split:
    """The lines around a cursor."""
    left = split.left.split("\n")[-before - 1 :]
    return Split("\n".join(left), "\n".join(split.right.split("\n")[: after + 1]))


def parts(sources: Sources, chance: random.Random, folder: Path) -> None:
    """Write parts of a few files of a project into a folder."""
    files = sorted((path, content) for path, content in sources.workspace if content.strip())
    chosen = chance.sample(files, min(chance.randint(*OTHER_FILES), len(files)))
    lines = chance.randint(*OTHER_LINES) // max(1, len(chosen))
    for number, (_, content) in enumerate(chosen):
        text = content.decode(errors="ignore").split("\n")
        start = chance.randint(0, max(0, len(text) - lines))
        (folder / f"part_{number}.py").write_text("\n".join(text[start : start + lines]))


def projects(sources: Sources, whole: Project, uri: str, split: Split, chance: random.Random) -> Iterator[Asked]:
    """The projects of a cut, each while the document is open in it."""
    for kind, count in KINDS.items():
        for number in range(count):
            project, seen = whole, split
            with tempfile.TemporaryDirectory(prefix="fim-believing-") as folder:
                if kind != "whole":
                    project, lines = Project(), chance.randint(*OWN_LINES)
                    before = chance.randint(0, lines)
                    seen = around(split, before, lines - before)
                if kind == "small":
                    parts(sources, chance, Path(folder))
                    project.read([Path(folder).as_uri()], {".py": "python"})
                project.opened(uri)
                project.send(uri, seen)
                project.memory.settle()
            yield Asked(kind, f"{kind} {number}", project, project.bias(uri, seen.left))


def cut(task: Task, chance: random.Random) -> tuple[Split, str]:
    """A line that is cut, in a word or before a lexeme, and its rest."""
    starts = [match.start() for match in LEXEME.finditer(task.wanted)]
    inside = [at for match in LEXEME.finditer(task.wanted) for at in range(match.start() + 1, match.end())]
    at = chance.choice(inside if inside and chance.random() < 0.5 else starts[:-1] or starts)
    return Split(task.before + task.wanted[:at], task.after), task.wanted[at:]


# --- what is said --------------------------------------------------------------------------------------------------


class Line:
    """The rest of a line, gone through token by token."""

    def __init__(self, model: FimModel, split: Split, rest: str, session: Session) -> None:
        self._model, self._rest = model, rest
        vocabulary = model.vocabulary
        healing = Healing.of(model, split)
        self.healing = healing.text.encode()
        self._todo = self.healing + rest.encode()
        self.middle = b""
        self._tokens = vocabulary.encode(self._todo)
        self._prompt, self._reading = read_before(model, healing.split, OPTIONS, None, bool(healing.text))
        self._standing = LexemeCheck(session.start())
        self._ends = {
            token
            for token in range(min(model.size, vocabulary.size))
            if token in vocabulary.end_token_ids or self._breaks(token)
        }

    def _breaks(self, token: int) -> bool:
        return self._model.vocabulary.token_bytes(token).lstrip(b" \t\r").startswith(b"\n")

    def is_right(self, token: int) -> bool:
        """Return whether a token goes on with what stands there, or ends where that does."""
        if not self._todo:
            return token in self._ends
        text = self._model.vocabulary.token_bytes(token) if token not in self._ends else b""
        return bool(text) and self._todo.startswith(text)

    def rows(self) -> Iterator[Logits]:
        """The model's logits [V] before each token; while something is written again, those of tokens that do."""
        for part in passes(self._prompt, self._reading.resume(self._prompt), OPTIONS.prefill_chunk):
            logits = self._reading.forward(part)
        for token in (*self._tokens[: MOST_TOKENS - 1], None):
            if self.healing:
                towards = self._model.vocabulary.towards(self.healing, self._model.size)
                logits = self._model.backend.arithmetic.only(logits, towards)
            yield logits
            if token is None or not self._todo:
                break
            self._take(token)
            logits = self._reading.forward([token])

    def right_ones(self) -> list[int]:
        """The tokens that are right next."""
        wanted = self._model.vocabulary.tokens_towards(self._todo) if self._todo else sorted(self._ends)
        return [token for token in wanted if token < self._model.size and self.is_right(token)]

    def foretold(self, asked: Asked) -> dict[int, float]:
        """The tokens that a memory foretells, with its weights."""
        vocabulary, size = self._model.vocabulary, self._model.size
        return project_bias_tokens(asked.advice, self.middle, self.healing, vocabulary, size, self._counts)

    def steps(self, folder: str, place: str, asked: Sequence[Asked]) -> Iterator[Step]:
        """Each token, with each of the projects."""
        arithmetic = self._model.backend.arithmetic
        first = LEXEME.match(self._rest)
        for logits in self.rows():
            shares = arithmetic.shares(logits)
            right = sum(float(shares[token]) for token in self.right_ones())
            likeliest = arithmetic.top(shares, LIKELIEST)
            for one in asked:
                weights = self.foretold(one)
                yield Step(
                    folder,
                    one.kind,
                    f"{folder} {place} {one.name}",
                    one.advice.characters,
                    first is not None and len(self.middle.decode(errors="ignore")) < first.end(),
                    right,
                    likeliest[0][1],
                    tuple(
                        Foretold(weight, float(shares[token]), self.is_right(token))
                        for token, weight in weights.items()
                    ),
                    tuple((share, self.is_right(token)) for token, share in likeliest if token not in weights),
                )

    def _counts(self, token: int, text: bytes) -> bool:
        return self._breaks(token) or self._standing.allows(self.middle, text)

    def _take(self, token: int) -> None:
        length = len(self._model.vocabulary.token_bytes(token))
        self.middle += self._todo[len(self.healing) : length]
        self.healing, self._todo = self.healing[length:], self._todo[length:]


def steps(model: FimModel, sources: Sources, seed: int) -> Iterator[Step]:
    """Examples from the lines of a folder."""
    chance = random.Random(f"believing {sources.name} {seed}")
    python = Language.load("python")
    with remembered(sources) as (root, whole):
        for number, task in enumerate(sources.tasks):
            split, rest = cut(task, chance)
            uri = f"{root.as_uri()}/{task.file}"
            asked = list(projects(sources, whole, uri, split, chance))
            yield from Line(model, split, rest, python.open(split.left, split.right)).steps(
                sources.name, str(number), asked
            )
            whole.forget(uri)
            for one in asked:
                if one.project is not whole:
                    one.project.close()


# --- what is fitted ------------------------------------------------------------------------------------------------


class Examples:
    """Steps as arrays; what is foretold is one axis, filled up with what has no weight.

    Attributes:
        inputs: What a belief weighs [steps, foretold, numbers].
        weights: Of what is foretold [steps, foretold].
        rights: 1 where that is right [steps, foretold].
        right: The probability of what is right, by the model [steps].
        counted: How much a step counts [steps], so that each kind counts alike.
    """

    def __init__(self, found: Sequence[Step]) -> None:
        most = max((len(step.foretold) for step in found), default=0)
        numbers = len(astuple(FITTED))
        self.steps = found
        self.inputs = np.zeros((len(found), most, numbers))
        self.weights, self.rights = np.zeros((len(found), most)), np.zeros((len(found), most))
        self.probabilities = np.zeros((len(found), most))
        self.right = np.array([step.right for step in found])
        self.counted = np.array([1 / KINDS[step.kind] for step in found])
        for row, step in enumerate(found):
            heaviest = max((one.weight for one in step.foretold), default=0.0)
            for column, one in enumerate(step.foretold):
                given = features(step.characters, heaviest, step.certainty, one.probability)
                self.inputs[row, column] = given
                self.weights[row, column], self.rights[row, column] = one.weight, one.right
                self.probabilities[row, column] = one.probability

    def shares(self, numbers: Array) -> Array:
        """Return the probabilities that some weights give to the index's tokens [steps, tokens]."""
        shares: Array = self.weights / (1 + np.exp(-np.clip(self.inputs @ numbers, -30, 30)))
        return shares

    def likelihood(self, shares: Array) -> Array:
        """The probability of what is right, with shares mixed in [steps]."""
        mixed: Array = (1 - shares.sum(1)) * self.right + (shares * self.rights).sum(1)
        return np.maximum(mixed, 1e-9)

    def loss(self, numbers: Array) -> float:
        """Return the loss that :func:`fit` minimises: nats and a penalty."""
        nats = -np.log(self.likelihood(self.shares(numbers)))
        return float(np.average(nats, weights=self.counted) + PENALTY * (numbers**2).sum())


def fit(examples: Examples) -> Array:
    """The numbers that make what is right likeliest (Gauss-Newton steps, halved until they help)."""
    numbers = np.zeros(examples.inputs.shape[2])
    loss = examples.loss(numbers)
    counted = examples.counted / examples.counted.sum()
    for _ in range(STEPS):
        shares = examples.shares(numbers)
        believed = np.divide(shares, examples.weights, out=np.zeros_like(shares), where=examples.weights > 0)
        turned = shares * (1 - believed) * (examples.rights - examples.right[:, None])
        slopes = np.einsum("sf,sfn->sn", turned, examples.inputs) / examples.likelihood(shares)[:, None]
        curve = (slopes * counted[:, None]).T @ slopes + PENALTY * np.eye(len(numbers))
        step = np.linalg.solve(curve, counted @ slopes - 2 * PENALTY * numbers)
        while (after := examples.loss(numbers + step)) > loss and np.abs(step).max() > 1e-6:
            step /= 2
        if after > loss or np.abs(step).max() < 1e-5:
            break
        numbers, loss = numbers + step, after
    return numbers


# --- what is told --------------------------------------------------------------------------------------------------


def writes_right(step: Step, shares: Array) -> bool:
    """Return whether the token is right that is likeliest with shares mixed in."""
    left = 1 - float(shares.sum())
    mixed = [(left * one.probability + share, one.right) for one, share in zip(step.foretold, shares, strict=False)]
    return max(mixed + [(left * share, right) for share, right in step.others])[1]


def row(name: str, examples: Examples, shares: Array, kind: str) -> str:
    """A line of the table: places, tokens, bits of a token, and shares that are right, of a kind of projects."""
    bits = -np.log2(examples.likelihood(shares))
    chosen = [index for index, step in enumerate(examples.steps) if step.kind == kind]
    first: dict[str, bool] = {}
    whole: dict[str, bool] = {}
    tokens = 0
    for index in chosen:
        step = examples.steps[index]
        right = writes_right(step, shares[index])
        tokens += right
        first[step.place] = first.get(step.place, True) and (right or not step.first)
        whole[step.place] = whole.get(step.place, True) and right
    rates = [tokens / len(chosen), sum(first.values()) / len(first), sum(whole.values()) / len(whole)]
    cells = [kind, name, f"{len(first):,}", f"{len(chosen):,}", f"{bits[chosen].mean():.3f}"]
    return f"| {' | '.join(cells + [f'{100 * rate:.1f} %' for rate in rates])} |"


def held_out(examples: Examples, fitted: Callable[[Examples], Array]) -> Array:
    """Shares of each folder's steps by numbers that were fitted to the other folders."""
    shares = np.zeros_like(examples.weights)
    for folder in sorted({step.folder for step in examples.steps}):
        mine = np.array([step.folder == folder for step in examples.steps])
        others = [step for step in examples.steps if step.folder != folder]
        numbers = fitted(Examples(others)) if others else fitted(examples)
        shares[mine] = examples.shares(numbers)[mine]
    return shares


def report(found: Sequence[Step]) -> str:
    """The numbers, and what they are worth."""
    examples = Examples(found)
    numbers = Belief(*(round(float(number), 2) for number in fit(examples)))
    compared = {
        "the model alone": np.zeros_like(examples.weights),
        f"{100 * CONSTANT:.0f} % of each weight": CONSTANT * examples.weights,
        "fitted to other folders": held_out(examples, fit),
    }
    lines = [
        "| project | believed | cuts | tokens | bits of a token | tokens right | first lexeme | line |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    kinds = [kind for kind in KINDS if any(step.kind == kind for step in found)]
    lines += [row(name, examples, shares, kind) for kind in kinds for name, shares in compared.items()]
    return f"{len(found):,} tokens\nFITTED = {numbers}\n\n" + "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Ask, fit, and print."""
    parser = command_line("Fit how far a memory is believed beside a model.", "--lines", "lines of", 100, 7)
    given = parser.parse_args(arguments)
    model = load_model(given.model, None, None)
    found: list[Step] = []
    for sources in drawn_of(given.folder, given.drawn, given.seed, lambda: f"{len(found):,} tokens"):
        found.extend(steps(model, sources, given.seed))
    print(report(found))
    return 0


if __name__ == "__main__":
    end_with(main)
