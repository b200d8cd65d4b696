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

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fim_server.decoding.loop.choice import Choice
    from fim_server.decoding.loop.run import Run


def prefill(run: Run, prompt: Sequence[int]) -> Choice:
    """Read what is new in the prompt and choose the first token that is not forced."""
    prompt = [*prompt, *run.append_forced()]
    if not run.middle.healing:  # few tokens write healed text: they are checked one by one
        run.constraint.prefetch(float("inf"))
    return run.choose(run.passes.read_prompt(prompt))


def decode_one_token(run: Run, token: int) -> Choice:
    """Append a token and those forced after it; choose the next, whose mask a worker computes meanwhile.

    A token that was read ahead needs no pass, and no mask is computed behind one.
    """
    run.append(token)
    forced = run.append_forced()
    logits = run.passes.drafting.take(token)
    if logits is None:
        if not run.middle.healing:
            run.constraint.prefetch(run.passes.forward_seconds)
        logits = run.read_on([token, *forced])
    return run.choose(logits)


def decode(run: Run, prompt: Sequence[int], on_token: Callable[[Sequence[int]], None]) -> StopReason:
    """Decode a middle within the run's budget into ``run.middle``."""
    return decode_from(run, lambda: prefill(run, prompt), on_token)


def decode_from(run: Run, first: Callable[[], Choice], on_token: Callable[[Sequence[int]], None]) -> StopReason:
    """Decode on from a first choice. Raises LostError if the model is lost before any complete point."""
    reading = run.passes.reading
    reading.wait_with(run.passes.watch.check)
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
        if not run.middle.points:
            raise
        return StopReason.LOST  # the middle can end at a complete point
    finally:
        reading.wait_with(heed)
        reading.rest()


def branch(run: Run, prompt: Sequence[int], token: int, probability: float) -> Choice:
    """Append a token of another beginning, read all tokens after the prompt, and choose the next."""
    run.follow([token], [probability])
    return run.choose(run.passes.read([*prompt, *run.tokens]))
