"""Decoding: a model's tokens under a session's constraint.

Three functions, after gpt-fast: :func:`prefill` reads the prompt, :func:`decode_one_token` appends one token and
chooses the next (:meth:`.run.Run.choose`), :func:`decode` repeats that until the middle ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fim_server.decoding.loop.watch import Interrupted
from fim_server.decoding.results import StopReason
from fim_server.language.stop import heed
from fim_server.models.backend import LostError
from fim_server.models.reading import passes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fim_server.decoding.loop.run import Choice, Run


def prefill(run: Run, prompt: Sequence[int]) -> Choice:
    """Read what is new in the prompt, a chunk a forward pass; choose the first token that is not forced.

    What was read when it is interrupted stays in the run's reading: the next prompt that begins so goes on from there.
    """
    prompt = [*prompt, *run.append_forced()]
    if not run.healing:  # few tokens do: they are asked about one by one
        run.constraint.prefetch(float("inf"))
    logits = run.read_concurrently(prompt)
    if logits is not None:
        return run.choose(logits)
    kept = run.reading.resume(prompt)
    run.reused = max(0, kept - run.prefilled)
    for part in passes(prompt, kept, run.chunk):
        before = run.model_seconds
        logits = run.forward(part)
        run.prefill_seconds += run.model_seconds - before
        run.prefilled += len(part)
    return run.choose(logits)


def decode_one_token(run: Run, token: int) -> Choice:
    """Append a token to the middle, and those forced after it; choose the next, whose mask is computed meanwhile.

    Where the token was read ahead, no pass is made, and none to compute a mask behind.
    """
    run.append(token)
    forced = run.append_forced()
    logits = run.drafting.take(token)
    if logits is None:
        if not run.healing:
            run.constraint.prefetch(run.forward_seconds)
        logits = run.read_on([token, *forced])
    return run.choose(logits)


def decode(run: Run, prompt: Sequence[int], on_token: Callable[[Sequence[int]], None]) -> StopReason:
    """Decode a middle within the run's budget into ``run.tokens``, noting its complete points."""
    return decode_from(run, lambda: prefill(run, prompt), on_token)


def decode_from(run: Run, first: Callable[[], Choice], on_token: Callable[[Sequence[int]], None]) -> StopReason:
    """Go on decoding from a first choice."""
    run.reading.wait_with(run.watch.check)
    try:
        choice = first()
        while True:
            token = run.take(choice)
            if isinstance(token, StopReason):
                return token
            on_token([*run.tokens, token])
            choice = decode_one_token(run, token)
    except Interrupted as interruption:
        return interruption.stop_reason
    except LostError:
        if not run.points:
            raise
        return StopReason.LOST  # what was complete before is offered
    finally:
        run.reading.wait_with(heed)
        run.reading.rest()
