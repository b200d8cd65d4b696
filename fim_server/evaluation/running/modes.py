"""Modes of decoding a sample, side by side on one prompt.

``unconstrained`` is the model alone. ``constrained`` is under the grammar; until the grammar refuses a token both texts
are the same and share their forward passes. ``checked`` is the paper's checked-unconstrained baseline (Melcer et al.,
arXiv 2402.17988, section VII). It costs no forward pass: the parser tries every prefix of the unconstrained tokens. A
text that the model ended and that fits wins. Otherwise the fitting prefix with the greatest ``n * p_end(n)`` wins
(:mod:`.decoding.loop.conclusion`).

All modes use token healing (:mod:`.decoding.loop.healing`) as the server does; texts exclude the healed characters.
The model may read less of the contexts than the grammar (:class:`Reads`).
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fim_server.datasets.safim import SET as SAFIM
from fim_server.datasets.safim import truncated
from fim_server.decoding.ending.rest_of_line import RestOfLine
from fim_server.decoding.ending.right_closer import ClosedSession, RightCloser
from fim_server.decoding.loop.conclusion import final_length, text_of, winner
from fim_server.decoding.loop.healing import Healing
from fim_server.decoding.loop.run import Run, start
from fim_server.decoding.loop.watch import Watch
from fim_server.decoding.options import DecodeOptions
from fim_server.decoding.protocols import CheckingSession
from fim_server.decoding.results import StopReason
from fim_server.decoding.strategies.batches import decode_together
from fim_server.decoding.strategies.in_turn import SharedReading, decode_in_turn
from fim_server.decoding.strategies.outcomes import Task
from fim_server.evaluation.running.measures import stretches
from fim_server.evaluation.running.scoring import Score, score
from fim_server.evaluation.running.settings import Reads
from fim_server.models.backend import BatchBackend
from fim_server.models.reading import Reading
from fim_server.text.document import Split
from fim_server.tokens.formats import Slot
from fim_server.tokens.vocabulary import MOST_UNSETTLED

if TYPE_CHECKING:
    from fim_server.datasets.samples import Sample
    from fim_server.decoding.protocols import Session
    from fim_server.decoding.strategies.outcomes import Outcome
    from fim_server.models.model import FimModel

LINES = ("line", "line-rest", "mid-indentation", "single-line")
"""The kinds whose holes end where their line does."""


@dataclass(frozen=True, slots=True)
class Decoding:
    """Decoding options of all samples of a run."""

    modes: tuple[str, ...]
    budget: int
    """Tokens of a middle, at most."""
    max_prompt_tokens: int
    seed: int
    temperature: float
    landing: bool = True
    """True if the constrained mode has to end within the budget."""
    reads: Reads = Reads.BOTH
    """Contexts of a sample in the prompt."""
    heal: bool = True
    single_line: bool = False
    """True if texts for holes of :data:`LINES` end at the line's end, like an editor's requests for one line.

    Constrained texts of all sets then also end at a closer that the right context begins with
    (:mod:`.decoding.ending.right_closer`), and at the rest of the cursor's line (:mod:`.decoding.ending.rest_of_line`).
    """
    score: bool = False
    """True if the true middles are scored."""
    truncation: bool = True
    """True if unconstrained texts are cut as their benchmark cuts them."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A sample, ready to be decoded."""

    sample: Sample
    prompt: tuple[int, ...]
    session: Session
    open_ms: float
    healing: str = ""
    """Characters that token healing took from the left context; every text begins with them."""
    single_line: bool = False

    @property
    def prompt_hash(self) -> str:
        """SHA-256 of the prompt's ids in decimal, separated by commas; the first 16 hexadecimal digits."""
        return hashlib.sha256(",".join(map(str, self.prompt)).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Offer:
    """Result of one mode; the fields are those of :class:`fim_server.evaluation.records.Record`."""

    text: str | None
    guarantee: str
    stop_reason: str
    won: str | None
    tokens: int
    text_tokens: int
    refused: int
    forced: int
    landing: int
    complete_at: tuple[tuple[int, int], ...]
    open_ms: float
    model_ms: float
    engine_ms: float
    engine_wait_ms: float
    total_ms: float
    healed: int | None = None
    reference_bits: float | None = None
    end_bits: float | None = None


Offers = Mapping[str, Offer] | Exception
"""By mode, or why there are none."""


def as_line(sample: Sample) -> Sample:
    """A sample whose hole takes in its line's break (HumanEval's single lines), with the break right of the hole."""
    if sample.kind not in LINES or not sample.middle.endswith("\n"):
        return sample
    return replace(sample, middle=sample.middle[:-1], right="\n" + sample.right)


class Decoder:
    """A model that decodes samples in all modes."""

    def __init__(self, model: FimModel, open_session: Callable[[str, str, str], Session], decoding: Decoding) -> None:
        """``open_session`` opens two contexts of a language, which is named first."""
        if decoding.reads is Reads.LEFT_ALONE:
            # A prefix and nothing else: what any language model reads, whether it was trained to fill in or not.
            plain = replace(model.format, family="none (left context alone)", pieces=(Slot.PREFIX,))
            model = replace(model, format=plain)
        self.model = model
        self._open = open_session
        self._decoding = decoding
        self.budget = min(decoding.budget, model.window // 2)
        self.longest_prompt = min(
            decoding.max_prompt_tokens, model.window - self.budget - (MOST_UNSETTLED if decoding.heal else 0)
        )

    def prompt(self, sample: Sample, limit: int | None = None, left: str | None = None) -> list[int]:
        """The ids of a sample's prompt. Raises ValueError where the format does not fit into the limit.

        ``left``: of its left context what is read, by default all.
        """
        left = sample.left if left is None else left
        right = sample.right if self._decoding.reads is Reads.BOTH else ""
        # A model has to read something before it can say anything.
        return self.model.format.encode(left, right, limit or self.longest_prompt) or [min(self.model.format.stop_ids)]

    def prepare(self, sample: Sample) -> Prepared:
        """Encode the prompt and open the session; of the prompt what the tokenizer may have cut otherwise is healed."""
        started = time.perf_counter()
        session = self._open(sample.language, sample.left, sample.right)
        healing = Healing(Split(sample.left, sample.right), "")
        if self._decoding.heal:
            healing = Healing.of(self.model, healing.split)
        open_ms = 1000 * (time.perf_counter() - started)
        prompt = tuple(self.prompt(sample, left=healing.split.left))
        single_line = self._decoding.single_line and sample.kind in LINES
        return Prepared(sample, prompt, session, open_ms, healing.text, single_line)

    def decode(self, samples: Sequence[Prepared]) -> list[Offers]:
        """Decode samples together. Raises whatever the model raises; what one sample raises is its own result."""
        modes = self._decoding.modes
        found: list[Offers] = []
        with ThreadPoolExecutor(1, thread_name_prefix="fim-mask") as worker:
            if isinstance(self.model.backend, BatchBackend):
                tasks = [self._task(one, modes, worker) for one in samples]
                outcomes = decode_together(self.model, [Task(one.prompt, list(runs.values())) for one, runs in tasks])
                for (one, runs), own in zip(tasks, outcomes, strict=True):
                    found.append(self._found(one, modes, runs, own, Reading(self.model)))
            else:
                for one in samples:
                    reading = SharedReading(self.model, self._room(one))
                    _, runs = self._task(one, modes, worker)
                    outcomes_of_one = decode_in_turn(Task(one.prompt, list(runs.values())), reading)
                    reading.begin()
                    found.append(self._found(one, modes, runs, outcomes_of_one, reading))
        return found

    def _room(self, one: Prepared) -> int:
        """Tokens that a sample's reading has to hold: the budget and what is written again, or its middle's bytes."""
        middle = len((one.healing + one.sample.middle).encode(errors="replace")) if self._decoding.score else 0
        return min(self.model.window, len(one.prompt) + max(self.budget + MOST_UNSETTLED, middle) + 1)

    def _found(
        self,
        one: Prepared,
        modes: Sequence[str],
        runs: Mapping[str, Run],
        outcomes: Sequence[Outcome],
        reading: Reading,
    ) -> Offers:
        """Return the results of a sample's runs. Scoring its middle continues from ``reading``."""
        try:
            offers = self._offers(one, runs, dict(zip(runs, outcomes, strict=True)), modes)
            if not self._decoding.score or not one.sample.middle:
                return offers
            scored = score(self.model, reading, one.prompt, one.healing.encode(), one.sample.middle)
            return offers if scored is None else {mode: with_score(offer, scored) for mode, offer in offers.items()}
        except Exception as error:  # noqa: BLE001  # recorded as the sample's own
            return error

    def _task(self, one: Prepared, modes: Sequence[str], worker: ThreadPoolExecutor) -> tuple[Prepared, dict[str, Run]]:
        """The runs of a sample by mode; all with the same seed, which is the sample's own."""
        digest = hashlib.sha256(f"{self._decoding.seed}:{one.sample.id}".encode(errors="replace")).digest()
        options = DecodeOptions(
            max_new_tokens=self._decoding.budget,
            temperature=self._decoding.temperature,
            seed=int.from_bytes(digest[:6], "big"),
            max_prompt_tokens=self._decoding.max_prompt_tokens,
            landing=self._decoding.landing,
            single_line=one.single_line,
        )
        runs: dict[str, Run] = {}
        if {"unconstrained", "checked"} & set(modes):
            runs["unconstrained"] = self._start(one, None, options, worker)
        if "constrained" in modes:
            exact = one.session.guarantee != "none"
            if self._decoding.single_line and isinstance(one.session, ClosedSession):  # as an editor is served
                left, right = one.sample.left, one.sample.right
                closer, rest = RightCloser.of(one.session, left, right), RestOfLine.of(one.session, right)
                options = replace(options, right_closer=closer, rest_of_line=rest)
            runs["constrained"] = self._start(one, one.session if exact else None, options, worker)
        return one, runs

    def _start(self, one: Prepared, session: Session | None, options: DecodeOptions, worker: ThreadPoolExecutor) -> Run:
        return start(self.model, Reading(self.model), session, options, Watch(None, None), worker, one.healing)

    def _offers(
        self, one: Prepared, runs: Mapping[str, Run], outcomes: Mapping[str, Outcome], modes: Sequence[str]
    ) -> dict[str, Offer]:
        for outcome in outcomes.values():
            if isinstance(outcome.ending, Exception):
                raise outcome.ending
        offers: dict[str, Offer] = {}
        if "unconstrained" in runs:
            run, outcome = runs["unconstrained"], outcomes["unconstrained"]
            tokens = run.tokens[: tokens_of_line(run, one.healing) if one.single_line else None]
            followed = follow(one.session, self.model, tokens, one.healing)
            free = offer(one, run, outcome, text_of_run(run, outcome, False), followed.complete)
            offers["unconstrained"] = as_benchmark(one, free) if self._decoding.truncation else free
            checked = checked_text(run, outcome, followed.complete)
            offers["checked"] = offer(one, run, outcome, checked, followed.complete, followed.engine_ms)
        if "constrained" in runs:
            run, outcome = runs["constrained"], outcomes["constrained"]
            exact = one.session.guarantee != "none"
            text = text_of_run(run, outcome, exact)
            offers["constrained"] = offer(
                one, run, outcome, text, [p.tokens for p in run.middle.points] if exact else []
            )
        return {mode: offers[mode] for mode in modes}


@dataclass(frozen=True, slots=True)
class Text:
    """Length and origin of a run's text in tokens; None for no text."""

    length: int | None
    won: str | None
    whole: bool
    """True if the text is complete, so that its bytes are UTF-8; others are cut after their last whole character."""


NOTHING = Text(None, None, whole=True)


def text_of_run(run: Run, outcome: Outcome, exact: bool) -> Text:
    """Return the text that a run itself ends with; ``exact``: under a grammar."""
    ending = ended(outcome)
    length = final_length(run, exact, ending)
    return NOTHING if length is None else Text(length, str(winner(run, length, exact, ending)), whole=exact)


def ended(outcome: Outcome) -> StopReason:
    """Return the end reason of a run that raised no error."""
    assert isinstance(outcome.ending, StopReason)
    return outcome.ending


def checked_text(run: Run, outcome: Outcome, complete: Sequence[int]) -> Text:
    """Return the unconstrained text whose prefix the parser chooses (see the module).

    An empty text counts only where the model itself ended it, as in the constrained mode.
    """
    if outcome.ending is StopReason.END_TOKEN and len(run.tokens) in complete:
        return Text(len(run.tokens), "end_token", whole=True)
    points = [
        point for point in run.middle.points if point.tokens in complete and point.tokens > run.middle.healed_tokens
    ]
    best = max(points, key=lambda point: (point.score, point.tokens), default=None)
    return NOTHING if best is None else Text(best.tokens, "prefix", whole=True)


@dataclass(frozen=True, slots=True)
class Followed:
    """The numbers of tokens after which a text was complete, and the time that took to find out."""

    complete: list[int]
    engine_ms: float


def follow(session: Session, model: FimModel, tokens: Sequence[int], healing: str = "") -> Followed:
    """Try every prefix of some tokens with the parser. After the first impossible token nothing fits any more.

    ``healing``: what they write before the session's middle.
    """
    started = time.perf_counter()
    complete: list[int] = []
    if session.guarantee != "none":
        matcher = session.matcher(model.vocabulary, healing=healing.encode())
        for count in range(len(tokens) + 1):
            if matcher.is_complete():
                complete.append(count)
            if count == len(tokens) or not matcher.allows(tokens[count]):
                break
            matcher.commit(tokens[count])
    return Followed(complete, 1000 * (time.perf_counter() - started))


def offer(
    one: Prepared, run: Run, outcome: Outcome, text: Text, complete: Sequence[int], extra_ms: float = 0.0
) -> Offer:
    """The fields of a run. ``extra_ms``: of the engine, after the run."""
    length = 0 if text.length is None else text.length
    engine_ms = 1000 * run.constraint.engine_seconds + extra_ms
    wait_ms = 1000 * run.constraint.waited_seconds + extra_ms
    model_ms = 1000 * run.passes.model_seconds
    return Offer(
        text=None if text.length is None else cut_text(one, text_of(run.model, run.tokens[:length], text.whole)),
        guarantee=one.session.guarantee,
        stop_reason=str(outcome.ending),
        won=text.won,
        tokens=len(run.tokens),
        text_tokens=length,
        refused=run.refused,
        forced=run.fast_forwarded,
        landing=0 if run.landing is None else run.landing.steps,
        complete_at=stretches(count for count in complete if count >= run.middle.healed_tokens),
        open_ms=one.open_ms,
        model_ms=model_ms,
        engine_ms=engine_ms,
        engine_wait_ms=wait_ms,
        total_ms=one.open_ms + model_ms + outcome.choosing_ms + extra_ms,
        healed=len(one.healing),
    )


def cut_text(one: Prepared, text: str) -> str | None:
    """A text for the cut as it was, and where one line is wanted, its first; None where it ended while it healed.

    Under the grammar there is one line. Without it a token may hold a line's end and more.
    """
    if not text.startswith(one.healing):
        return None
    text = text[len(one.healing) :]
    return text.partition("\n")[0] if one.single_line else text


def as_benchmark(one: Prepared, offer: Offer) -> Offer:
    """An unconstrained offer as its benchmark judges it: SAFIM cuts texts that run on."""
    session = one.session
    if one.sample.set != SAFIM or offer.text is None or not isinstance(session, CheckingSession):
        return offer
    text = truncated(one.sample, offer.text, lambda text: session.check(text).complete)
    return offer if text == offer.text else replace(offer, text=text, won="truncated")


def tokens_of_line(run: Run, healing: str) -> int:
    """The tokens of a run before the first that holds a line's end, behind what only writes again what stood there."""
    at, again = 0, len(healing.encode())
    for count, token in enumerate(run.tokens):
        text = run.model.vocabulary.token_bytes(token)
        if b"\n" in text[max(0, again - at) :]:
            return count
        at += len(text)
    return len(run.tokens)


def with_score(offer: Offer, scored: Score) -> Offer:
    """An offer with the bits of the middle that stood there."""
    return replace(offer, reference_bits=scored.text_bits, end_bits=scored.end_bits)
