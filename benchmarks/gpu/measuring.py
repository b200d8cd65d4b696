"""The steps of a batch with each constraint by turns, and what a keystroke's prompt costs."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from benchmarks.engine.cursors import Choice, choose
from benchmarks.gpu.masked_steps import MaskedSteps
from benchmarks.gpu.report import KeystrokeRow, StepRow
from benchmarks.processes import timed
from benchmarks.report import percentile
from fim_server.errors import BenchError, first_line
from fim_server.models.masking import word_count
from fim_server.models.pytorch.backend import TorchBackend, free_memory
from fim_server.models.pytorch.rows import PLAIN_USES, StaticRows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from benchmarks.engine.vocabularies import Tokens
    from benchmarks.gpu.replays import Contestant, Replay

BLOCK = 16
"""Steps of a contestant at a time."""

LEAST_STEPS = 3
"""Least steps of a block that takes too long."""

LEAST_ROUNDS, MOST_TIMES = 2, 6
"""Rounds that there are even where they take longer than was given, but never so many times as long."""

GOALS = {1: 0.003, 64: 0.01, 512: 0.03}
"""Share of a token that the constraint may take, by rows of the batch (docs/design.md, section 14)."""

NO_CONSTRAINT = "none"

TYPED = 24
"""Keystrokes of each prompt."""

MARKERS = 3
"""Tokens of a prompt's format; which ones is of no matter to the time."""


@dataclass
class Entry:
    """A contestant in a batch; a failure is noted, and ends it. Times in seconds."""

    contestant: Contestant | None
    replay: Replay | None = None
    note: str = ""
    opening: float | None = None
    steps: list[float] = field(default_factory=list, repr=False)
    alone: list[float] = field(default_factory=list, repr=False)

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Work of this contestant."""
        try:
            yield
        except Exception as error:  # noqa: BLE001  # each engine raises its own; the others can still be measured
            self.note = self.note or first_line(error) or type(error).__name__
            free_memory()

    def again(self) -> Entry:
        """Return the same rows without measurements, to measure them with other settings."""
        self.forget()
        return Entry(self.contestant, self.replay, self.note, self.opening, alone=self.alone)

    def forget(self) -> None:
        """Forget the times of the rows' work."""
        if self.replay is not None:
            self.replay.fills, self.replay.commits = [], []


def opened(contestants: Sequence[Contestant], tokens: Tokens, batch: int, seed: int) -> list[Entry]:
    """The contestants with a batch's matchers open, and one that is no constraint."""
    entries = [Entry(None)]
    words = np.zeros(word_count(tokens.vocabulary.size), dtype=np.uint32)
    for contestant in contestants:
        entry = Entry(contestant)
        with entry.attempt():
            replay, entry.opening = timed(time.perf_counter, contestant.replay, tokens, batch, seed)
            replay.engine.fill_one(0, words)  # the first of a vocabulary makes its tables, which takes seconds
            entry.alone = replay.alone(words)
            entry.replay = replay
        entries.append(entry)
    return entries


def measure_steps(
    network: Any,
    place: torch.device,
    shape: str,
    entries: Sequence[Entry],
    size: int,
    batch: int,
    context: int,
    seconds: float,
    graphs: bool,
) -> list[StepRow]:
    """Steps of a batch whose rows have read ``context`` tokens: blocks of every contestant by turns, for some seconds.

    Nothing raises: what cannot be measured is a row that says why.
    """
    failure = ""
    rows = None
    try:
        rows = StaticRows(network, place, batch, context + BLOCK + 2, graphs=graphs)
        for _ in range(batch):
            rows.new()
        until = None
        latest = time.perf_counter() + MOST_TIMES * seconds
        done = 0
        while until is None or time.perf_counter() < until or done <= LEAST_ROUNDS:
            for entry in entries:
                if time.perf_counter() > latest:
                    entry.note = entry.note or ("" if entry.steps else "no time was left")
                elif not entry.note:
                    with entry.attempt():
                        found = block(rows, entry, size, context, seconds / 2)
                        if done:  # the first warms up, and captures
                            entry.steps += found
                        else:
                            entry.forget()
            done += 1
            until = until or time.perf_counter() + seconds
        failure = rows.failure or ""
    except Exception as error:  # noqa: BLE001  # above all of memory
        failure = first_line(error) or type(error).__name__
    finally:
        captured = rows is not None and rows.captured > 0
        del rows
        gc.collect()
        free_memory()
    free = next((percentile(entry.steps, 0.5) for entry in entries if entry.contestant is None), None)
    return [row_of(shape, batch, graphs and captured, entry, free, failure) for entry in entries]


def block(rows: StaticRows, entry: Entry, size: int, context: int, seconds: float) -> list[float]:
    """Seconds of the steps of one block: from when one's choice is known to when the next one's is.

    It is shorter where it takes longer than ``seconds``.
    """
    until = time.perf_counter() + seconds
    arrived: list[float] = []

    def work(chosen: NDArray[np.int64] | None, words: NDArray[np.uint32]) -> bool:
        if chosen is not None:
            arrived.append(time.perf_counter())
        return entry.replay is not None and entry.replay.work(chosen, words)

    overlapped = entry.contestant is None or entry.contestant.overlapped
    gc.collect()
    gc.disable()
    try:
        with torch.inference_mode(), MaskedSteps(rows, size, overlapped=overlapped) as steps:
            for row in range(len(rows.lengths)):
                rows.set_length(row, context)
            for number in range(BLOCK):
                if number >= LEAST_STEPS and time.perf_counter() > until:
                    break
                steps.step(work)
            steps.chosen()
            arrived.append(time.perf_counter())
    finally:
        gc.enable()
    return list(np.diff(arrived))


def row_of(shape: str, batch: int, graphs: bool, entry: Entry, free: float | None, failure: str) -> StepRow:
    """A contestant's figures."""
    median = percentile(entry.steps, 0.5)
    replay = entry.replay
    contestant = entry.contestant

    def per_row(values: Sequence[float]) -> float | None:
        middle = percentile(values, 0.5)
        return None if middle is None else 1e6 * middle / batch

    def scaled(value: float | None, factor: float) -> float | None:
        return None if value is None else factor * value

    return StepRow(
        shape=shape,
        batch=batch,
        graphs=graphs,
        engine=NO_CONSTRAINT if contestant is None else contestant.engine,
        what="" if contestant is None else contestant.what,
        steps=len(entry.steps),
        step_ms=scaled(median, 1e3),
        step_p99_ms=scaled(percentile(entry.steps, 0.99), 1e3),
        share=None if contestant is None or not median or not free else (median - free) / free,
        goal=None if contestant is None else GOALS.get(batch),
        masks_us_a_row=None if replay is None else per_row(replay.fills),
        commits_us_a_row=None if replay is None else per_row(replay.commits),
        mask_p50_us=scaled(percentile(entry.alone, 0.5), 1e6),
        mask_p99_us=scaled(percentile(entry.alone, 0.99), 1e6),
        opening_s=entry.opening,
        refused=0 if replay is None else replay.refused,
        note=entry.note or failure,
    )


# --- one row as the server has it ---------------------------------------------------------------------------------


def measure_single(network: Any, place: torch.device, shape: str, context: int, seconds: float) -> list[StepRow]:
    """A row decoded by itself through the backend, in a cache that grows and in a static one, by turns."""
    times: dict[bool, list[float]] = {False: [], True: []}
    captured = {False: False, True: False}
    failure = ""
    try:
        backends = {static: TorchBackend(network, place, static_cache=static) for static in times}
        until = time.perf_counter() + seconds
        number = 0
        while number <= LEAST_ROUNDS or time.perf_counter() < until:
            for static, backend in backends.items():
                cache = backend.new_cache(context + BLOCK)
                logits = backend.forward([1] * context, cache)
                found = [0.0] * BLOCK
                for step in range(BLOCK):
                    token = int(logits.argmax())
                    started = time.perf_counter()
                    logits = backend.forward([token], cache)
                    found[step] = time.perf_counter() - started
                captured[static] = static and cache.captured > 0
                times[static] += found[PLAIN_USES + 1 :] if number else []
            number += 1
    except Exception as error:  # noqa: BLE001  # as above
        failure = first_line(error) or type(error).__name__
    finally:
        free_memory()
    entries = {static: Entry(None, steps=found) for static, found in times.items()}
    words = {False: "one row by itself, cache that grows", True: "one row by itself, static cache"}
    return [
        replace(row_of(shape, 1, captured[static], entry, None, failure), what=words[static])
        for static, entry in entries.items()
    ]


# --- keystrokes ---------------------------------------------------------------------------------------------------


def measure_keystrokes(
    network: Any, place: torch.device, shape: str, tokens: Tokens, context: int, seconds: float, seed: int
) -> list[KeystrokeRow]:
    """Measure reading a prompt after a keystroke, in both orders of its parts, and reading all of it."""
    found = []
    try:
        prompts = list(typed(tokens, context, seed))
        if not prompts:
            raise BenchError("the vocabulary cannot spell the files to measure on")
        longest = max(len(tokens) for pair in prompts for tokens in pair)
        for order, name in enumerate(("prefix first", "suffix first", "suffix first, nothing kept")):
            read = order < 2
            rows = StaticRows(network, place, 1, longest + 1)
            found.append(keystrokes(rows, shape, name, [pair[min(order, 1)] for pair in prompts], seconds, keep=read))
            del rows
            free_memory()
    except Exception as error:  # noqa: BLE001  # as above
        found.append(KeystrokeRow(shape, "", 0, None, None, None, None, first_line(error) or type(error).__name__))
    return found


def typed(tokens: Tokens, context: int, seed: int) -> Iterator[tuple[list[int], list[int]]]:
    """Prompts after each key of some text, with the prefix first and with the suffix first."""
    vocabulary = tokens.vocabulary
    cursors, _ = choose("python", vocabulary, Choice(None, 4, 2, TYPED, seed))
    for cursor in cursors:
        left, right = cursor.left[-2 * context :], cursor.right[: 2 * context]
        after = vocabulary.encode(right)[: context // 3]
        for count in range(1, min(TYPED, len(cursor.middle)) + 1):
            before = vocabulary.encode(left + cursor.middle[:count])[-(context - len(after) - MARKERS) :]
            yield [0, *before, 1, *after, 2], [1, *after, 0, *before, 2]


def keystrokes(
    rows: StaticRows, shape: str, name: str, prompts: Sequence[list[int]], seconds: float, keep: bool
) -> KeystrokeRow:
    """Read each prompt after the one before it."""
    times: list[float] = []
    read: list[int] = []
    known: list[int] = []
    until = time.perf_counter() + seconds
    with torch.inference_mode():
        rows.new()
        rows.read(0, prompts[0])  # warms up
        for number, prompt in enumerate(prompts):
            if time.perf_counter() > until and len(times) > BLOCK:
                break
            started = time.perf_counter()
            kept, logits = rows.resume(0, known if keep else [], prompt)
            int(logits.argmax())  # waits for the device
            if number % TYPED:  # the first of a text is no keystroke
                times.append(time.perf_counter() - started)
                read.append(len(prompt) - kept)
            known = prompt
    milliseconds = [1e3 * seconds for seconds in times]
    half, most = (percentile(milliseconds, share) for share in (0.5, 0.95))
    tokens_half, tokens_most = (percentile(read, share) for share in (0.5, 0.95))
    return KeystrokeRow(shape, name, len(times), tokens_half, tokens_most, half, most)
