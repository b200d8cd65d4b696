"""Several completions at one cursor.

:func:`alternatives` decodes once, and then again from places where the model nearly chose otherwise;
:func:`candidates` looks at the next token alone.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

from fim_server.decoding.loop.budget import budget_of
from fim_server.decoding.loop.conclusion import conclude
from fim_server.decoding.loop.loop import branch, decode, decode_from
from fim_server.decoding.loop.watch import Interrupted, Watch
from fim_server.decoding.options import DecodeOptions
from fim_server.decoding.protocols import FlooredSession
from fim_server.decoding.results import Candidate, StopReason
from fim_server.decoding.strategies.aligned import drawn
from fim_server.decoding.strategies.cursor import Cursor
from fim_server.decoding.strategies.search import searched
from fim_server.errors import StoppedError
from fim_server.language.stop import heed, watch_also, watching
from fim_server.models.reading import Reading, passes
from fim_server.tokens.vocabulary import MOST_UNSETTLED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from fim_server.decoding.loop.choice import RunnerUp
    from fim_server.decoding.loop.run import Run
    from fim_server.decoding.options import PromptOptions
    from fim_server.decoding.protocols import CancelFlag, Session, StartedPrefill
    from fim_server.decoding.results import Completion
    from fim_server.models.backend import Logits
    from fim_server.models.model import FimModel
    from fim_server.models.reading import Lent, Readings
    from fim_server.text.document import Split
    from fim_server.tokens.vocabulary import Vocabulary

ATTEMPTS = 2
"""Runs for each alternative: some end with a text that another has already."""


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
    """Complete in an open session; the arguments are those of :func:`alternatives`."""
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
    """Yield the completion, and then up to ``count - 1`` others with other texts, likelier beginnings first.

    Each of the others leaves an earlier one where the model's second choice was the likeliest of all second choices so
    far, and continues as the first did. The deadline holds for all together. There is always a first completion; the
    others have a text.

    Args:
        model: Writes the texts.
        session: Session at the cursor.
        split: Text around the cursor that the model reads, whatever contexts the session has.
        count: Most completions.
        options: How to decode.
        cancelled: Stops decoding within a forward pass once it is set.
        on_token: Gets the tokens so far.
        readings: KV caches of earlier requests, kept for later ones.
        healing: Text to write again before the middle (:class:`.healing.Healing`).
        prefill: A prefill of the prompt on another thread.
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
    # The stops that watch this thread watch the masks' thread as well.
    with ThreadPoolExecutor(1, "fim-mask", watch_also, (watching(),)) as worker:
        cursor = Cursor(model, session, constrained, prompt, reading, watch, worker, healing, prefill, started)
        if count == 1 and constrained and options.search > 1 and not options.usable_temperature:
            yield searched(cursor, options, on_token)
            return
        if count == 1 and constrained and options.samples > 1 and options.usable_temperature:
            yield drawn(cursor, options, on_token)
            return
        for attempt in range(1 if count == 1 else count * ATTEMPTS):
            run = cursor.start(options)
            run.chooser.runners_up = None if count == 1 else runners
            try:
                if attempt == 0:
                    stop_reason = decode(run, prompt, on_token)
                elif (runner := take_likeliest(runners)) is not None:
                    stop_reason = branch_off(run, prompt, runner, on_token)
                else:
                    break
            finally:
                run.constraint.close()
            statistics = cursor.statistics_of(run)
            completion = conclude(run, session, constrained, stop_reason, statistics)
            if completion.text not in texts or attempt == 0:
                texts.update((completion.text, healing, "", None))
                latest = completion.statistics
                yield completion
            else:  # not shown, but its time counts
                latest.prefill_ms += statistics.prefill_ms
                latest.decode_ms += statistics.decode_ms
                latest.engine_wait_ms += statistics.engine_wait_ms
            if len(texts) - len({"", healing, None}) >= count or stop_reason.is_interruption:
                break


def read_before(
    model: FimModel, split: Split, options: DecodeOptions, readings: Readings | Lent | None, heals: bool = False
) -> tuple[list[int], Reading]:
    """Return the prompt of a cut, and the KV cache nearest to it, with room for the middle.

    ``heals``: whether the run writes a healed text before the middle.
    """
    prompt, room = prompt_of(model, split, options, heals)
    return prompt, Reading(model, room) if readings is None else readings.nearest(prompt, room)


def prompt_of(model: FimModel, split: Split, options: DecodeOptions, heals: bool) -> tuple[list[int], int]:
    """Return the prompt of a cut, and the most tokens of the prompt and the text after it."""
    budget = budget_of(model, options) + (MOST_UNSETTLED if heals else 0)
    prompt = encoded(model, split, options, min(options.max_prompt_tokens, model.window - budget))
    return prompt, len(prompt) + budget


def encoded(model: FimModel, split: Split, options: PromptOptions, limit: int) -> list[int]:
    """Return the prompt of a cut in at most ``limit`` tokens."""
    most = int(options.max_prompt_tokens * options.context_share)
    return model.format.encode(split.left, split.right, limit, options.prompt_grid, options.context, most)


def read_ahead(
    model: FimModel,
    split: Split,
    options: DecodeOptions,
    cancelled: CancelFlag,
    readings: Readings | Lent,
    heals: bool = False,
    least: int = 1,
) -> int:
    """Read the prompt of a cut into ``readings`` before a request, until ``cancelled``; return the tokens read.

    The last token is left for the request, which needs its logits. ``heals``: as in :func:`read_before`. ``least``:
    fewest new tokens that are worth a pass.
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
        reading.wait_with(partial(check_cancelled, cancelled))
        try:
            count = count if reading.read_now() else 0
        except StoppedError:
            count = 0
            heed()  # the stop may be one that watches the thread
        finally:
            reading.wait_with(before)
    return count


def check_cancelled(cancelled: CancelFlag) -> None:
    if cancelled.is_set():
        raise StoppedError("the read-ahead is cancelled")


def take_likeliest(runners: list[RunnerUp]) -> RunnerUp | None:
    if not runners:
        return None
    best = max(runners, key=lambda runner: runner.probability)
    runners.remove(best)
    return best


def branch_off(
    run: Run, prompt: Sequence[int], runner: RunnerUp, on_token: Callable[[Sequence[int]], None]
) -> StopReason:
    """Decode the middle that begins with a runner-up's path and token."""
    run.follow(runner.path, [1.0] * len(runner.path))
    run.chooser.path_probability = runner.probability
    if runner.token in run.stop_ids:
        return StopReason.END_TOKEN
    return decode_from(run, lambda: branch(run, prompt, runner.token, 1.0), on_token)


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
    """Return the unconstrained model's ``count`` likeliest next tokens at the cursor, likeliest first.

    Empty if ``cancelled`` is set or the deadline passes before the prompt is read. ``healing``: text that the model
    first writes again in its likeliest tokens, as far as they end within it.
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
    """Return the likeliest tokens after a prompt that is read; ``logits``: [V], after it."""
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
    """Return a token's text after its first ``healed`` bytes; empty for an end token."""
    if token in vocabulary.end_token_ids:
        return ""
    return vocabulary.token_bytes(token)[healed:].decode("utf-8", "replace")
