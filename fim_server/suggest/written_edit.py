"""Next edits that a model writes: the lines around the cursor anew, as the grammar allows them."""

from __future__ import annotations

from dataclasses import replace
from difflib import SequenceMatcher
from math import prod
from typing import TYPE_CHECKING

from fim_server.errors import StoppedError
from fim_server.language import Stop
from fim_server.models.backend import LostError
from fim_server.next_edit.edit_memory import MOST_LINES
from fim_server.next_edit.propose import Proposal
from fim_server.suggest import limits
from fim_server.suggest.next_edit import NextEdit, guarantee_of, key_of
from fim_server.text.document import Split
from fim_server.text.trimming import trimmed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fim_server.decoding.protocols import CancelFlag
    from fim_server.language import Language, Session
    from fim_server.models.model import FimModel
    from fim_server.next_edit.edit_memory import Edit
    from fim_server.suggest.context.sessions import DocumentSessions
    from fim_server.suggest.next_edit import EditQuestion

LONGEST_WINDOW = 4000
"""Longest window that is written anew, in characters."""

MOST_PROMPT, MOST_WRITTEN = 3072, 768
"""Most tokens of the prompt and of the window."""

LEAST_WRITTEN = 0.3
"""Least probability of a written window. Unchanged lines have one of nearly 1. It is not measured."""


def written_edit(
    contexts: DocumentSessions, language: Language, asked: EditQuestion, model: FimModel, stopped: CancelFlag
) -> NextEdit | None:
    """Return the edit that a model writes, as :func:`.next_edit.next_edit`; ``stopped`` stops it within a pass."""
    if not language.has_grammar:
        return None
    from fim_server.tokens import masks

    def open_session(split: Split) -> Session | None:
        opened = contexts.open(asked.uri, language, split)
        is_read = opened.guarantee != "none" and opened.has_grammar and not opened.is_unfinished
        return opened.session if is_read and opened.stand_in is None and not opened.covered else None

    masks.prepare(language, model.vocabulary)
    try:
        with Stop(limits.ENGINE_SECONDS + (asked.deadline_ms or 0) / 1000):
            for proposal in written_proposals(model, open_session, asked, stopped):
                key = key_of(asked, proposal)
                guarantee = None if key in asked.dismissed else guarantee_of(contexts, language, asked, proposal)
                if guarantee is not None:
                    return NextEdit(proposal, guarantee, key)
    except (StoppedError, LostError):
        pass
    return None


def written_proposals(
    model: FimModel, open_session: Callable[[Split], Session | None], asked: EditQuestion, cancelled: CancelFlag
) -> Iterator[Proposal]:
    """Yield the edit that a model writes: its change nearest to the cursor alone, and then all of it.

    There is none without a model that is trained to write edits, and in a document that does not parse. A text counts
    only if the model is sure of it and ends it in time.

    Args:
        model: The model.
        open_session: Opens the document around a part; None if it does not parse.
        asked: The document and its edits.
        cancelled: Stops the model within a forward pass.
    """
    from fim_server.decoding.options import DecodeOptions
    from fim_server.decoding.results import StopReason
    from fim_server.decoding.strategies.alternatives import complete_session
    from fim_server.models.edit_prompt import PastEdit, copied, prompt_of, window_of

    row = model.format.edits
    if row is None or not asked.edits:
        return
    past = [PastEdit(path_of(asked, edit.uri), edit.line, edit.old, edit.new) for edit in asked.edits]
    is_here = asked.edits[-1].uri == asked.uri
    cursor = asked.cursor if asked.cursor is not None else end_of(asked.edits[-1], asked.text)
    window = window_of(row, path_of(asked, asked.uri), asked.text, cursor, past[-1] if is_here else None)
    if len(window.now) > LONGEST_WINDOW or not window.old.strip():
        return
    split = Split(asked.text[: window.kept], asked.text[window.end :])
    session = open_session(split)
    if session is None:
        return
    asking = replace(model, format=prompt_of(model.format, window, past))
    options = DecodeOptions(
        max_new_tokens=MOST_WRITTEN,
        max_prompt_tokens=MOST_PROMPT,
        deadline_ms=asked.deadline_ms,
        drafts=copied(window.old),
        scored=True,
        least_likelihood=LEAST_WRITTEN,
        end_mark=row.end.encode(),
    )
    try:
        completion = complete_session(asking, session, split, options, cancelled)
    except ValueError:
        return  # the prompt is longer than the model's window
    text = completion.text
    likelihood = prod(token.probability for token in completion.written)
    if not text or not text.strip() or completion.stop_reason is not StopReason.END_TOKEN or completion.truncated:
        return
    yield from hunks(window.old, like(window.old, text), window.kept, cursor, min(likelihood, 1.0))


def path_of(asked: EditQuestion, uri: str) -> str:
    return asked.paths.get(uri, uri.rpartition("/")[2])


def end_of(edit: Edit, text: str) -> int:
    """Return the offset of the end of an edit's lines in a text; of the text's, if that is shorter."""
    at = 0
    for _ in range(edit.line + edit.new.count("\n")):
        at = text.find("\n", at) + 1
        if not at:
            return len(text)
    return len(text) if (end := text.find("\n", at)) < 0 else end


def like(old: str, new: str) -> str:
    """Return a window with a line break at its end exactly if the old one has it."""
    if old.endswith("\n"):
        return new if new.endswith("\n") else f"{new}\n"
    return new.removesuffix("\n")


def hunks(old: str, new: str, start: int, cursor: int, likelihood: float) -> Iterator[Proposal]:
    """Yield the change of lines nearest to a cursor, and that of all lines that differ.

    Args:
        old: The window.
        new: The window that the model wrote.
        start: Offset of the window.
        cursor: Offset of the cursor.
        likelihood: Probability of what the model wrote.
    """
    before, after = old.split("\n"), new.split("\n")
    changed = [
        code[1:] for code in SequenceMatcher(None, before, after, autojunk=False).get_opcodes() if code[0] != "equal"
    ]
    if not changed:
        return
    line = old.count("\n", 0, max(0, cursor - start))
    nearest = min(changed, key=lambda part: (part[1] < line, abs(part[0] - line)))
    whole = (changed[0][0], changed[-1][1], changed[0][2], changed[-1][3])
    for first, last, begin, end in dict.fromkeys((nearest, whole)):
        if last - first <= MOST_LINES and end - begin <= MOST_LINES:
            yield replaced(before, start, (first, last), after[begin:end], likelihood)


def replaced(before: list[str], start: int, lines: tuple[int, int], new: list[str], likelihood: float) -> Proposal:
    """Return the proposal that replaces lines of a window, without what both have in common at their ends."""
    first, last = lines
    at = start + sum(len(line) + 1 for line in before[:first])
    old = "\n".join(before[first:last])
    text = "\n".join(new)
    if first == last:  # new lines stand before the next line, or behind the last one
        at, text = (at, f"{text}\n") if first < len(before) else (at - 1, f"\n{text}")
    elif not new:
        if last < len(before):
            old += "\n"
        elif first:
            at, old = at - 1, f"\n{old}"
    begin, end, text = trimmed(old, 0, len(old), text)
    return Proposal(at + begin, at + end, text, likelihood)
