"""Completion of a finished run.

A middle that ends with an end token the grammar allows is returned whole. If the budget or the deadline ends it first,
the middle is cut back to its best *complete point*. Complete points are the lengths n (in tokens) at which left +
middle + right was in the language. The best has the greatest

    score(n) = n * p_end(n)

where p_end(n) is the probability of the end tokens after n tokens by the unconstrained model; of equal scores, the
longest. The probability says where the model would have stopped, and the length keeps it from stopping at once. (Melcer
et al., arXiv 2402.17988, take the complete point of the greatest end-token probability and note its liking for short
texts.) At a deadline, and where the text has become unlikely, the longest complete point wins.

Within its budget a middle always comes to an end (:mod:`.landing`): the text that the budget forced competes with the
complete points before it by the same score.
"""

from __future__ import annotations

import time
from codecs import getincrementaldecoder
from itertools import accumulate
from math import log2, prod
from typing import TYPE_CHECKING
from unicodedata import category

from fim_server.decoding.results import Completion, StopReason, Won, Written
from fim_server.language.texts import is_word

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fim_server.decoding.loop.run import Run
    from fim_server.decoding.protocols import Session
    from fim_server.decoding.results import Statistics
    from fim_server.models.model import FimModel
    from fim_server.tokens.vocabulary import Vocabulary


def fill_in(statistics: Statistics, run: Run, total_seconds: float) -> None:
    """Write a finished run's counts and times into ``statistics``."""
    statistics.tokens = len(run.tokens) - run.middle.healed_tokens
    statistics.refused_tokens = run.refused
    statistics.fast_forwarded_tokens = run.fast_forwarded
    statistics.passes = run.passes.count
    statistics.drafted_tokens, statistics.accepted_tokens = run.passes.drafting.drafted, run.passes.drafting.accepted
    statistics.landing_steps = run.budget.landing_steps
    statistics.forced_share = min(1.0, run.refused / len(run.tokens)) if run.tokens else 0.0
    statistics.reused_tokens = run.passes.reused
    statistics.prefilled_tokens = run.passes.prefilled
    statistics.model_ms = 1000 * run.passes.model_seconds
    statistics.prefill_ms = 1000 * run.passes.prefill_seconds
    statistics.engine_ms = 1000 * run.constraint.engine_seconds
    statistics.engine_wait_ms = 1000 * run.constraint.waited_seconds
    waited = run.passes.prefill_seconds - run.passes.hidden_seconds + run.constraint.waited_seconds
    statistics.decode_ms = 1000 * max(0.0, time.perf_counter() - run.passes.started - waited)
    statistics.total_ms = 1000 * total_seconds


def conclude(
    run: Run, session: Session, constrained: bool, stop_reason: StopReason, statistics: Statistics
) -> Completion:
    length = final_length(run, constrained, stop_reason)
    begins = length is None and stop_reason is not StopReason.CANCELLED
    begun = run.repetition() or 0 if stop_reason is StopReason.REPETITION else len(run.tokens)
    scored = begun if begins else length or 0
    won = None if length is None else winner(run, length, constrained, stop_reason)
    return Completion(
        text=None if length is None else text_of(run.model, run.tokens[:length], strict=constrained),
        guarantee=session.guarantee if constrained else "none",
        stop_reason=stop_reason,
        reason=explain_nothing(run, stop_reason) if length is None else None,
        truncated=won not in (None, Won.END_TOKEN) or stop_reason is not StopReason.END_TOKEN,
        won=won,
        diagnostics=tuple(session.diagnostics),
        written=written(run, scored) if run.options.scored else (),
        following=following_text(run, length) if length is not None and stop_reason is StopReason.UNLIKELY else "",
        begun=text_of(run.model, run.tokens[:begun], strict=False) if begins else "",
        bits=bits_of(run, length, stop_reason) if run.options.scored and length is not None else None,
        statistics=statistics,
    )


def bits_of(run: Run, length: int, stop_reason: StopReason) -> float | None:
    """Return the bits of the first ``length`` tokens of a scored run and the end after them; None if unknown.

    Tokens that only write healed text do not count.
    """
    ended = run.ended if stop_reason is StopReason.END_TOKEN and length == len(run.tokens) else None
    if ended is None:
        ended = next((point.end_probability for point in run.middle.points if point.tokens == length), None)
    if ended is None:
        return None
    likelihood = prod(run.middle.probabilities[run.middle.healed_tokens : length]) * ended
    return -log2(likelihood) if likelihood > 0 else None


def final_length(run: Run, constrained: bool, stop_reason: StopReason) -> int | None:
    """Return the length of the middle in tokens; None if there is none to suggest."""
    if stop_reason is StopReason.CANCELLED:
        return None
    length = _longest(run, constrained, stop_reason)
    return None if length is None or not run.rules.may_end(length) else length


def _longest(run: Run, constrained: bool, stop_reason: StopReason) -> int | None:
    """Return the length before the final check of names."""
    landed = run.budget.landing_steps > 0
    if stop_reason is StopReason.END_TOKEN and not landed:
        return len(run.tokens)
    if not constrained and stop_reason is not StopReason.REPETITION:
        return len(run.tokens) or None
    points = [point for point in run.middle.points if point.tokens > run.middle.healed_tokens]
    waited_for = stop_reason in (StopReason.DEADLINE, StopReason.UNLIKELY, StopReason.LOST)
    if waited_for:
        whole = [point for point in points if not cuts_lexeme(run, point.tokens)]
        points = whole if whole or stop_reason is StopReason.UNLIKELY else points
    points = sorted(points, key=lambda point: (0 if waited_for else point.score, point.tokens), reverse=True)
    best = next((point for point in points if run.rules.may_end(point.tokens)), None)
    if best is None:
        return len(run.tokens) if stop_reason is StopReason.END_TOKEN else None
    return best.tokens


def cuts_lexeme(run: Run, length: int) -> bool:
    """Return whether the text after ``length`` tokens goes on with their last lexeme, as far as it is known.

    A word goes on with a letter, and a sign with its like, as three quotes do after two; brackets do not.
    """
    last = text_of(run.model, run.tokens[:length], strict=False)[-1:]
    following = following_text(run, length)[:1]
    if is_word(last) and is_word(following):
        return True
    return last == following != "" and not last.isspace() and category(last) not in ("Ps", "Pe")


def following_text(run: Run, length: int) -> str:
    """Return the text written after ``length`` tokens, with the token that would have come next."""
    before = text_of(run.model, run.tokens[:length], strict=False)
    tokens = run.tokens if run.unwritten is None else [*run.tokens, run.unwritten]
    return text_of(run.model, tokens, strict=False)[len(before) :]


def winner(run: Run, length: int, constrained: bool, stop_reason: StopReason) -> Won:
    """Return the kind of text that the first ``length`` tokens of a finished run are."""
    whole = length == len(run.tokens)
    if whole and stop_reason in (StopReason.END_TOKEN, StopReason.BUDGET) and run.budget.landing_steps:
        return Won.LANDED
    if whole and stop_reason is StopReason.END_TOKEN:
        return Won.END_TOKEN
    return Won.POINT if constrained or stop_reason is StopReason.REPETITION else Won.BUDGET


def written(run: Run, length: int) -> tuple[Written, ...]:
    """Return the ends and probabilities of the first ``length`` tokens of a finished run."""
    decoder = getincrementaldecoder("utf-8")("replace")
    tokens = run.tokens[:length]
    ends = accumulate(len(decoder.decode(run.model.vocabulary.token_bytes(token))) for token in tokens)
    return tuple(Written(end, share) for end, share in zip(ends, run.middle.probabilities, strict=False))


def explain_nothing(run: Run, stop_reason: StopReason) -> str:
    """Return the reason for a run without a text, as a user reads it."""
    healed = run.middle.healed_tokens
    tokens = len(run.tokens) - healed
    count = counted(tokens)
    points = (point.tokens for point in run.middle.points if point.tokens > healed)
    would_load = any(run.rules.unbound(length) for length in points)
    match stop_reason:
        case StopReason.CANCELLED:
            return "cancelled"
        case _ if would_load:
            return "wherever the text was complete it would load an undefined name"
        case StopReason.BUDGET if run.landing is not None and run.landing.needed is not None:
            count = counted(min(tokens, run.budget.tokens - run.budget.healed))
            known = f"the shortest completion known takes {run.landing.needed - healed}"
            return f"at no point within {count} was the text complete; {known}"
        case StopReason.DEAD_END if tokens == 0 and run.rules.refuse_words:
            return (
                "each word that the model proposes would load an undefined name, or lengthen the word before the cursor"
            )
        case StopReason.DEAD_END if tokens == 0:
            return "nothing can connect the text before the cursor with the text after it"
        case StopReason.DEAD_END:
            return f"no token can follow the first {tokens}, and at no point before was the text complete"
        case StopReason.REPETITION:
            return f"the model repeats itself, and at no point within {count} was the text complete"
        case StopReason.UNLIKELY:
            return f"the model is not sure of anything within {count}"
        case StopReason.LOST:
            return f"the model gave nothing more after {count}, and at no point was the text complete"
        case StopReason.DEADLINE:
            return f"the deadline passed after {count}, and at no point was the text complete"
        case _:
            return f"at no point within {count} was the text complete"


def counted(tokens: int) -> str:
    """Return a number of tokens in words."""
    return f"{tokens} token{'s' * (tokens != 1)}"


def text_of(model: FimModel, tokens: Sequence[int], strict: bool) -> str:
    """Return the text of a model's tokens (:func:`decoded`)."""
    return decoded(model.vocabulary, tokens, strict)


def decoded(vocabulary: Vocabulary, tokens: Sequence[int], strict: bool) -> str:
    """Decode tokens together, because one may hold part of a character.

    A complete middle is valid UTF-8 (``strict``); any other is cut before the first byte that is not.
    """
    data = b"".join(vocabulary.token_bytes(token) for token in tokens)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        if strict:
            raise
        return data[: error.start].decode()
