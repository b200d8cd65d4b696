"""What can be offered at all: lines typed to a model that is sure of what is to come.

    python -m benchmarks.suggestions.reachable FOLDER... --lines 200 --seed 2 [--inserted]

What such a model writes is the rest of the line, so that all that is not offered, or goes wrong, is the server's doing:
which closers are left to the middle, where a text may end, what is shown. Lines are typed as an editor types them,
which closes brackets and quotes, up to two places in each and its beginning. Of the function or class nothing stands
below yet but the brackets that were closed on lines of their own; with ``--inserted`` all the rest is there. No weights
are used but the tokenizer of the model. 200 lines take less than a minute.
"""

from __future__ import annotations

import io
import random
import re
import time
import tokenize
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from benchmarks.played_editor import DELETE, Editor, next_key
from benchmarks.scenarios import Item
from benchmarks.suggestions.judge import Truth, judge
from benchmarks.suggestions.recipes import command_line, drawn_of, end_with
from fim_server.decoding.loop.healing import Healing
from fim_server.language import Language, Stop
from fim_server.models.load import load_model
from fim_server.models.masking import word_count
from fim_server.models.numpy_logits import NumpyArithmetic
from fim_server.models.pace import Pace
from fim_server.models.turn import Turn
from fim_server.server.requests import as_shown
from fim_server.suggest.context.cursor import Place, wants_single_line
from fim_server.suggest.context.prompts import KeptReadings
from fim_server.suggest.context.sessions import Contexts
from fim_server.suggest.job import PromptTokens, Request
from fim_server.suggest.pipeline import Completer, Loaded
from fim_server.suggest.postprocess.blocks import owes_block
from fim_server.suggest.settings import ServerSettings
from fim_server.text.document import Split

if TYPE_CHECKING:
    from benchmarks.suggestions.lines import Task
    from fim_server.models.model import FimModel
    from fim_server.suggest.answer_cache import Offer

SURE = 0.995
"""The probability of the token that is to come; all others share the rest."""

CUTS = 2
"""Places within a line at which it is asked, besides its beginning."""

FOLLOWING = 3
"""Lines after the cursor's that the model would write, where they are not there."""

MOST_KEYS = 40
"""Characters that an editor may add to what is typed."""

OUTCOMES = ("whole line", "right as far as it goes", "first lexeme right, what follows wrong", "wrong", "nothing")
TOP = re.compile(r"(?:async[ \t]+def|def|class)\b|@")
OPENERS = {"(": ")", "[": "]", "{": "}"}


class Cache(list[int]):
    """The tokens that were read."""

    def crop(self, length: int) -> None:
        """Forget the last ones: a negative number of them."""
        del self[length:]


class SureBackend:
    """A network that is sure of one text: behind it, and where another was written, of the end."""

    name, device, window, threads = "onnx", "cpu", 4096, 1

    def __init__(self, model: FimModel) -> None:
        self.arithmetic = NumpyArithmetic()
        self.size, self._vocabulary = model.size, model.vocabulary
        self._left, self._prompt, self._text = b"", b"", b""
        self._next: dict[int, int] = {}

    def aim(self, left: bytes, text: bytes) -> None:
        """Be sure of a text after what a prompt ends with, which ``left`` ends with."""
        self._left, self._prompt, self._text, at = left, b"", text, 0
        self._next = {}
        for token in self._vocabulary.encode(text):
            self._next[at] = token
            at += len(self._vocabulary.token_bytes(token))

    def new_cache(self, room: int | None = None) -> Cache:
        """As :meth:`.backend.Backend.new_cache`."""
        return Cache()

    def mask_words(self, size: int) -> NDArray[np.uint32]:
        """As :meth:`.backend.Backend.mask_words`."""
        return np.zeros(word_count(size), np.uint32)

    def forward(self, token_ids: Sequence[int], cache: Cache) -> NDArray[np.float32]:
        """As :meth:`.backend.Backend.forward`."""
        cache.extend(token_ids)
        row = np.full(self.size, np.log((1 - SURE) / self.size), np.float32)
        row[self._follows(self._written(cache))] = np.log(SURE)
        return row

    def _written(self, cache: Sequence[int]) -> bytes:
        """What stands behind the prompt, whose text after its last control token the left context ends with."""
        pieces = []
        for token in reversed(cache):
            piece = self._vocabulary.token_bytes(token)
            if not piece:
                break
            pieces.append(piece)
        text = b"".join(reversed(pieces))
        if self._left.endswith(text):
            self._prompt = text
        return text.removeprefix(self._prompt)

    def _follows(self, written: bytes) -> int:
        """The token that comes after a beginning of the text."""
        vocabulary, rest = self._vocabulary, self._text.removeprefix(written)
        if not self._text.startswith(written) or not rest:
            return min(vocabulary.end_token_ids)
        if len(written) in self._next:
            return self._next[len(written)]
        towards = (token for token in vocabulary.tokens_towards(rest) if token < self.size)
        return max((token for token in towards if rest.startswith(vocabulary.token_bytes(token))), key=self._length)

    def _length(self, token: int) -> int:
        return len(self._vocabulary.token_bytes(token))


class Asked:
    """A document's thread with such a model, without a project; names are not judged."""

    def __init__(self, name: str | None) -> None:
        model = load_model(name, None, None)
        self._backend = SureBackend(model)
        self._model = replace(model, backend=self._backend, turn=Turn())
        self._loading: Future[Loaded] = Future()
        self._loading.set_result(Loaded(self._model, Pace(), KeptReadings(self._model)))
        self._settings = ServerSettings(deadline_ms=8000, languages={}, names="off")
        self._python, self._contexts = Language.load("python"), Contexts()
        self._completer = Completer(self._contexts, PromptTokens(), count(1), lambda: True)

    def covered(self, split: Split) -> int:
        """Closers right of the cursor that are left to the middle."""
        return self._contexts.open("file:///a.py", self._python, split, stands_in=True).covered

    def offer(self, split: Split, text: str) -> Offer | None:
        """What is shown where the model is sure of a text."""
        single = wants_single_line(Place.of(split), self._settings, owes_block(split, "python"))
        request = Request("file:///a.py", split, "python", "/a.py", False, single, self._settings)
        healing = Healing.of(self._model, split).text
        left = split.left.encode()
        self._backend.aim(left[: len(left) - len(healing.encode())], (healing + text).encode())
        work = self._completer.answer(self._loading, request, Stop(), time.perf_counter())
        self._completer.give_back()
        return None if work is None else next(iter(as_shown(work.answer, request).offers), None)


def closers_below(before: str) -> str:
    """The closers of the brackets that a text leaves open, those of a line above on a line of their own.

    As an editor puts them there where a line break is typed in a pair.
    """
    found: list[tuple[int, str]] = []
    with suppress(tokenize.TokenError, SyntaxError):  # the text ends in the middle of a program
        for token in tokenize.generate_tokens(io.StringIO(before).readline):
            if token.type == tokenize.OP and token.string in OPENERS:
                found.append((token.start[0] - 1, OPENERS[token.string]))
            elif token.type == tokenize.OP and found and token.string == found[-1][1]:
                found.pop()
    lines = before.split("\n")
    closers, last = "", len(lines) - 1
    for number, closer in reversed(found):
        indentation = lines[number][: len(lines[number]) - len(lines[number].lstrip())]
        closers += closer if number == last else f"\n{indentation}{closer}"
        last = number
    return closers


def unwritten(task: Task) -> tuple[Task, str]:
    """A line of whose block nothing stands below yet, and the lines that would."""
    lines = task.after.split("\n")
    below = next((at for at, line in enumerate(lines[1:], 1) if TOP.match(line)), len(lines))
    after = "\n\n\n" + "\n".join(lines[below:]) if below < len(lines) else "\n"
    following = "".join(f"\n{line}" for line in lines[1:below][:FOLLOWING])
    return replace(task, after=closers_below(task.before) + after), following


def typed(task: Task, end: int) -> Editor | None:
    """An editor in which so many characters of a line are typed; None where its keys cannot write them."""
    start = len(task.before)
    editor = Editor(task.before + task.after, start)
    while editor.text[start : editor.cursor] != task.wanted[:end]:
        key = next_key(editor, start, task.wanted)
        if key is None or key == DELETE or editor.cursor > start + end + MOST_KEYS:
            return None
        editor.press(key)
    return editor


def outcomes(asked: Asked, tasks: Sequence[Task], inserted: bool, chance: random.Random) -> Iterator[str]:
    """What becomes of each cut of some lines."""
    for task in tasks:
        now, following = (task, "") if inserted else unwritten(task)
        length = len(task.wanted)
        whole = now.before + now.wanted + following + now.after
        truth = Truth(whole, len(now.before) + length + len(following))
        for end in sorted({0, *(chance.randrange(length) for _ in range(CUTS))}):
            editor = typed(now, end)
            rest = task.wanted[end:]
            if editor is None or not rest.strip():
                continue
            split = Split(editor.text[: editor.cursor], editor.text[editor.cursor :])
            kept = editor.closers[asked.covered(split) :]
            text = rest.removesuffix(kept)
            if not text:
                continue  # nothing is missing but what the editor has closed
            offer = asked.offer(split, text if text != rest else rest + following)
            if offer is None:
                yield "nothing"
                continue
            found = judge(editor, truth, Item(offer.text, offer.covered, None))
            right = (found.line, found.agrees, found.lexeme, True)
            yield OUTCOMES[right.index(True)]


def main(arguments: Sequence[str] | None = None) -> int:
    """Ask at every cut, and print what became of them."""
    parser = command_line("Type lines to a model that is sure of them.", "--lines", "lines of", 200, 2)
    parser.add_argument("--inserted", action="store_true", help="all that stands below the line is there")
    given = parser.parse_args(arguments)
    asked, found = Asked(given.model), Counter[str]()
    for sources in drawn_of(given.folder, given.drawn, given.seed, lambda: f"{found.total():,} cuts"):
        chance = random.Random(f"{sources.name} {given.seed}")
        found.update(outcomes(asked, sources.tasks, given.inserted, chance))
    print(f"{found.total():,} cuts")
    for outcome in OUTCOMES:
        print(f"{found[outcome]:7,}  {outcome}")
    return 0


if __name__ == "__main__":
    end_with(main)
