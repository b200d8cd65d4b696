"""Several completions of one cursor.

:func:`alternatives` decodes once, and then again from the places where the model nearly chose otherwise;
:func:`candidates` looks at the next token alone.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

from fim_server.decoding.loop.conclusion import conclude, fill_in
from fim_server.decoding.loop.loop import decode, decode_from
from fim_server.decoding.loop.run import budget_of, start
from fim_server.decoding.loop.watch import Interrupted, Watch
from fim_server.decoding.options import DecodeOptions
from fim_server.decoding.protocols import FlooredSession
from fim_server.decoding.results import Candidate, Statistics, StopReason
from fim_server.decoding.strategies.aligned import drawn
from fim_server.decoding.strategies.search import searched
from fim_server.errors import StoppedError
from fim_server.language.stop import heed, watch_also, watching
from fim_server.models.reading import Reading, passes
from fim_server.tokens.vocabulary import MOST_UNSETTLED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from fim_server.decoding.ending.merged_tokens import MergedTokens
    from fim_server.decoding.loop.run import Choice, Run, RunnerUp
    from fim_server.decoding.protocols import CancelFlag, Session, StartedPrefill
    from fim_server.decoding.results import Completion
    from fim_server.models.backend import Logits
    from fim_server.models.model import FimModel
    from fim_server.models.reading import Lent, Readings
    from fim_server.text.document import Split
    from fim_server.tokens.vocabulary import Vocabulary

ATTEMPTS = 2
"""Runs for each alternative that is asked for: some come to a text that is there already."""


def complete_session(
    model: FimModel,
    session: Session,
    split: Split,
    options: DecodeOptions | None = None,
    cancelled: CancelFlag | None = None,
    on_token: Callable[[Sequence[int]], None] = lambda tokens: None,
    readings: Readings | Lent | None = None,
    healing: str = "",
) -> Completion:
    """As :func:`.complete.complete`, in a session that is open.

    The model reads ``split``, whatever contexts the session has. ``readings``: what the model has read for the requests
    before, and will have read after this one. ``healing``: what the text has to begin with, before the session's
    middle does (:class:`.healing.Healing`).
    """
    return next(alternatives(model, session, split, 1, options, cancelled, on_token, readings, healing))


def alternatives(
    model: FimModel,
    session: Session,
    split: Split,
    count: int,
    options: DecodeOptions | None = None,
    cancelled: CancelFlag | None = None,
    on_token: Callable[[Sequence[int]], None] = lambda tokens: None,
    readings: Readings | Lent | None = None,
    healing: str = "",
    prefill: StartedPrefill | None = None,
) -> Iterator[Completion]:
    """The completion, and then up to ``count - 1`` others with other texts, the more likely beginnings first.

    Each of them leaves an earlier one at the token where the model's second choice was the likeliest of all second
    choices met so far, and goes on from there as the first did. The deadline holds for all of them together. At least
    one completion comes, others only if they have a text. ``prefill``: the prompt, where its reading was begun before.
    """
    options = options or DecodeOptions()
    started = time.perf_counter()
    watch = Watch(options.deadline_ms, cancelled, options.first_end_ms)
    if prefill is None:
        prompt, reading = read_before(model, split, options, readings, bool(healing))
    else:
        prompt, reading = prefill.prompt, prefill.reading
    constrained = options.constrained and session.guarantee != "none"
    if constrained and options.floor != "off" and isinstance(session, FlooredSession):
        session = session.floored(options.floor)
    runners: list[RunnerUp] = []
    texts: set[str | None] = set()
    joined: MergedTokens | None = None
    # Masks are watched by what watches this thread.
    with ThreadPoolExecutor(1, "fim-mask", watch_also, (watching(),)) as worker:
        if options.search > 1 and count == 1 and constrained and not options.usable_temperature:
            yield searched(model, session, prompt, reading, options, watch, worker, healing, prefill, on_token)
            return
        if options.samples > 1 and count == 1 and constrained and options.usable_temperature:
            yield drawn(model, session, prompt, reading, options, watch, worker, healing, prefill, on_token)
            return
        for attempt in range(1 if count == 1 else count * ATTEMPTS):
            statistics = Statistics(prompt_tokens=len(prompt))
            run = start(model, reading, session if constrained else None, options, watch, worker, healing)
            run.runners_up = None if count == 1 else runners
            run.merged_tokens = joined = joined or run.merged_tokens
            try:
                if attempt == 0:
                    run.prefill = prefill
                    stop_reason = decode(run, prompt, on_token)
                elif (runner := take_likeliest(runners)) is not None:
                    stop_reason = branch_off(run, prompt, runner, on_token)
                else:
                    break
            finally:
                run.constraint.close()
            fill_in(statistics, run, time.perf_counter() - started)
            completion = conclude(run, session, constrained, stop_reason, statistics)
            if completion.text not in texts or attempt == 0:
                texts.update((completion.text, healing, "", None))
                latest = completion.statistics
                yield completion
            else:  # nobody sees it, but it took its time
                latest.prefill_ms += statistics.prefill_ms
                latest.decode_ms += statistics.decode_ms
                latest.engine_wait_ms += statistics.engine_wait_ms
            if len(texts) - len({"", healing, None}) >= count or stop_reason.is_interruption:
                break


def read_before(
    model: FimModel, split: Split, options: DecodeOptions, readings: Readings | Lent | None, heals: bool = False
) -> tuple[list[int], Reading]:
    """The prompt of a cut, and what the model has read of it, if anything, with room for the middle.

    ``heals``: whether something is written again before it.
    """
    prompt, room = prompt_of(model, split, options, heals)
    return prompt, Reading(model, room) if readings is None else readings.nearest(prompt, room)


def prompt_of(model: FimModel, split: Split, options: DecodeOptions, heals: bool) -> tuple[list[int], int]:
    """The prompt of a cut, and the tokens that it and what is written after it take at most."""
    budget = budget_of(model, options) + (MOST_UNSETTLED if heals else 0)
    limit = min(options.max_prompt_tokens, model.window - budget)
    most = int(options.max_prompt_tokens * options.context_share)
    prompt = model.format.encode(split.left, split.right, limit, options.prompt_grid, options.context, most)
    return prompt, len(prompt) + budget


def read_ahead(
    model: FimModel,
    split: Split,
    options: DecodeOptions,
    cancelled: CancelFlag,
    readings: Readings | Lent,
    heals: bool = False,
    least: int = 1,
) -> int:
    """Read the prompt of a cut before anybody asks, until ``cancelled`` is set; returns how many tokens were read.

    What was read is kept in ``readings``. The last token is left: its logits are wanted when somebody asks. ``heals``:
    as in :func:`read_before`. ``least``: nothing is read where fewer tokens are new.
    """
    prompt, reading = read_before(model, split, options, readings, heals)
    count = 0
    kept = reading.shared(prompt)
    if len(prompt) - 1 - kept < least:
        return 0
    for part in passes(prompt[:-1], reading.resume(prompt), options.prefill_chunk):
        if cancelled.is_set():
            if reading.reads_late:
                reading.forget()
                return 0
            break
        reading.forward(part)
        count += len(part)
    else:
        before = reading.patience
        reading.wait_with(partial(unless, cancelled))
        try:
            count = count if reading.read_now() else 0
        except StoppedError:
            count = 0
            heed()  # it may be what watches the thread
        finally:
            reading.wait_with(before)
    return count


def unless(cancelled: CancelFlag) -> None:
    """Raises StoppedError where what is read ahead is not wanted any more."""
    if cancelled.is_set():
        raise StoppedError("something else is asked")


def take_likeliest(runners: list[RunnerUp]) -> RunnerUp | None:
    """Remove and return the likeliest runner-up."""
    if not runners:
        return None
    best = max(runners, key=lambda runner: runner.probability)
    runners.remove(best)
    return best


def branch_off(
    run: Run, prompt: Sequence[int], runner: RunnerUp, on_token: Callable[[Sequence[int]], None]
) -> StopReason:
    """Decode the middle that begins with a runner-up's path and goes on with its token."""
    for token in runner.path:
        run.append(token)
    run.probability = runner.probability
    if runner.token in run.stop_ids:
        return StopReason.END_TOKEN

    def first() -> Choice:
        run.append(runner.token)
        wanted = [*prompt, *run.tokens]
        logits = None
        for part in passes(wanted, run.reading.resume(wanted), run.chunk):
            logits = run.forward(part)
        assert logits is not None, "resume leaves the last token to be read"
        return run.choose(logits)

    return decode_from(run, first, on_token)


def candidates(
    model: FimModel,
    session: Session,
    split: Split,
    count: int,
    options: DecodeOptions,
    readings: Readings | Lent | None = None,
    cancelled: CancelFlag | None = None,
    healing: str = "",
) -> list[Candidate]:
    """What the unconstrained model would most likely write next at the cursor: ``count`` tokens, likeliest first.

    None where ``cancelled`` is set, or the options' deadline is over, before it has read the prompt. ``split``: what
    the model reads; ``healing``: what it writes again before the cursor, in its likeliest tokens as far as they end
    within that.
    """
    watch = Watch(options.deadline_ms, cancelled)
    prompt, reading = read_before(model, split, options, readings, bool(healing))
    before = reading.patience
    reading.wait_with(watch.check)
    try:
        for part in passes(prompt, reading.resume(prompt), options.prefill_chunk):
            watch.check()
            logits = reading.forward(part)
        return likeliest_of(model, session, reading, logits, count, healing)
    except Interrupted:
        return []
    finally:
        reading.wait_with(before)
        reading.rest()


def likeliest_of(
    model: FimModel, session: Session, reading: Reading, logits: Logits, count: int, healing: str
) -> list[Candidate]:
    """The same where the prompt is read; ``logits`` [V]: after it."""
    arithmetic = model.backend.arithmetic
    vocabulary = model.vocabulary
    rest = healing.encode()
    known = session.guarantee != "none"
    matcher = session.matcher(vocabulary, healing=rest) if rest else session.matcher(vocabulary)
    while rest:
        logits = arithmetic.only(logits, vocabulary.towards(rest, len(logits)))
        token = arithmetic.likeliest(logits)
        written = vocabulary.token_bytes(token)
        if len(written) > len(rest) or not written or (known and not matcher.allows(token)):
            break
        if known:
            matcher.commit(token)
        rest = rest[len(written) :]
        logits = reading.forward([token])
    likeliest = arithmetic.top(arithmetic.shares(logits), count)
    return [
        Candidate(
            text=text_after(vocabulary, token, len(rest)),
            probability=probability,
            allowed=known and token < vocabulary.size and matcher.allows(token),
        )
        for token, probability in likeliest
        if probability > 0
    ]


def text_after(vocabulary: Vocabulary, token: int, healed: int) -> str:
    """The text of a token without its first bytes; nothing of one that ends the middle."""
    if token in vocabulary.end_token_ids:
        return ""
    return vocabulary.token_bytes(token)[healed:].decode("utf-8", "replace")
