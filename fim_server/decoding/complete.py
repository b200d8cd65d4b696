"""Completion of a document at a cursor: open a session, heal the cut, decode a middle."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from fim_server.decoding.bias.undefined_names import NAMES, UndefinedNames
from fim_server.decoding.ending.rest_of_line import RestOfLine
from fim_server.decoding.ending.right_closer import ClosedSession, RightCloser
from fim_server.decoding.ending.trimming.completions import first_trimmed
from fim_server.decoding.ending.trimming.indentation import starts_line
from fim_server.decoding.loop.healing import Healing
from fim_server.decoding.options import DecodeOptions
from fim_server.decoding.protocols import NamedLanguage
from fim_server.decoding.strategies.alternatives import alternatives, complete_session
from fim_server.language import Session
from fim_server.language.argument_types import expect, expect_able
from fim_server.recovery.recovery import Recovered
from fim_server.text.document import Split
from fim_server.text.hidden import known_at
from fim_server.text.notebook import healable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fim_server.decoding.protocols import CancelFlag, Language
    from fim_server.decoding.results import Completion
    from fim_server.models.model import FimModel

ALTERNATIVES = 3
"""Alternatives to try if the first text repeats itself or the document."""


def complete(
    model: FimModel,
    language: Language,
    split: Split,
    options: DecodeOptions | None = None,
    cancelled: CancelFlag | None = None,
    on_token: Callable[[Sequence[int]], None] = lambda tokens: None,
    contexts: Split | None = None,
) -> Completion:
    """Complete a split document.

    The engine sees the whole file, or ``contexts``; the model sees as much around the cursor as its window holds. A
    file that does not parse gives ``guarantee="none"`` and an unconstrained text. Raises TypeError for an argument of a
    wrong type, and ValueError for wrong options, but never on the user's code.

    Args:
        model: Writes the text.
        language: Language of the document.
        split: Document around the cursor.
        options: How to decode.
        cancelled: Stops decoding within a forward pass once it is set.
        on_token: Gets the tokens so far.
        contexts: Texts around the cursor that must parse; None for the whole document.
    """
    expect_able("model", model, "forward", "a FimModel")
    expect_able("language", language, "open", "a Language")
    expect("split", split, Split, "a Split")
    expect("options", options, DecodeOptions | None, "DecodeOptions or None")
    expect("contexts", contexts, Split | None, "a Split or None")
    if cancelled is not None:
        expect_able("cancelled", cancelled, "is_set", "a threading.Event or None")
    options = options or DecodeOptions()
    if options.names not in NAMES:
        raise ValueError(f"names: one of {', '.join(NAMES)} expected, not {options.names}")
    started = time.perf_counter()
    part = contexts or split
    session = language.open(part.left, part.right)
    options = replace(options, invisible=options.invisible | known_at(split.left, split.right))
    most = None if contexts is None else healable(split.left, part.left)
    healing = Healing.of(model, split, most) if options.heal else Healing(split, "")
    if options.right_closer is None and isinstance(session, ClosedSession):
        options = replace(options, right_closer=RightCloser.of(session, part.left, part.right))
    if options.rest_of_line is None and isinstance(session, ClosedSession):
        options = replace(options, rest_of_line=RestOfLine.of(session, part.right))
    if options.names == "require" and options.undefined_names is None and options.constrained:
        if not isinstance(language, NamedLanguage) or not language.name:
            raise ValueError("names: the language has no name, so there are no rules for its names")
        names = UndefinedNames.of(language.name, part.left, part.right, session.guarantee)
        options = replace(options, undefined_names=names)
    opened = time.perf_counter() - started
    if options.deadline_ms is not None:
        options = replace(options, deadline_ms=options.deadline_ms - 1000 * opened)
    whole = session.session if isinstance(session, Recovered) else session
    if options.trimmed and options.constrained and isinstance(whole, Session) and whole.guarantee != "none":
        options = replace(options, line_begun=starts_line(whole, split))
        count = ALTERNATIVES if options.search == options.samples == 1 and not options.usable_temperature else 1
        found = alternatives(model, session, healing.split, count, options, cancelled, on_token, healing=healing.text)
        completion = first_trimmed(map(healing.undo, found), whole, split)
    else:
        completion = complete_session(model, session, healing.split, options, cancelled, on_token, healing=healing.text)
        completion = healing.undo(completion)
    completion.statistics.open_ms = 1000 * opened
    completion.statistics.total_ms = 1000 * (time.perf_counter() - started)
    return completion
