"""Next edits that parse: the first proposal with which the document is a valid program where it was one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from fim_server.errors import StoppedError
from fim_server.language import Stop
from fim_server.language_support.registry import support_of
from fim_server.text.document import Split

if TYPE_CHECKING:
    from fim_server.language import Language
    from fim_server.next_edit.edit_memory import Edit
    from fim_server.next_edit.propose import Proposal
    from fim_server.next_edit.renames import FindUses
    from fim_server.suggest.context.sessions import DocumentSessions
    from fim_server.suggest.request import Request

LEAST_CONFIDENCE = 0.4
"""Least confidence of a next edit. There, four of five places were right in releases that the weights had not seen."""

MOST_TRIED = 4
"""Most proposals that are parsed."""

LONGEST_NAMED = 200_000
"""Longest document whose names are looked up, in characters."""

SECONDS = 0.5
"""Seconds to parse all of them."""

LATEST_ELSEWHERE = 4
"""Latest different changes that an edit of another document than the user's may follow from."""


@dataclass(frozen=True, slots=True)
class EditQuestion:
    """Question for the next edit of a document.

    Attributes:
        uri: The document.
        text: Its text.
        edits: Latest edits, the latest last.
        others: Texts of other open documents of the language that may be read, by their URI.
        dismissed: Keys of proposals and documents that the user has dismissed, see :class:`NextEdit`.
        cursor: Offset of the cursor; None for the latest edit's.
        paths: Paths of documents in prompts, by their URI.
        deadline_ms: Time for a model to write, in milliseconds; None without a limit.
        elsewhere: Requests for other documents whose edit may be the answer, the likeliest first.
    """

    uri: str
    text: str
    edits: Sequence[Edit]
    others: Mapping[str, str] = field(default_factory=dict)
    dismissed: Collection[int] = ()
    cursor: int | None = None
    paths: Mapping[str, str] = field(default_factory=dict)
    deadline_ms: float | None = None
    elsewhere: Sequence[Request] = ()


@dataclass(frozen=True, slots=True)
class NextEdit:
    """Edit that may follow the latest one.

    Attributes:
        proposal: The edit.
        guarantee: `exact`, `balanced` or `partial`.
        key: Key of the edit at its place.
        uri: Its document, if the user's is another.
        document_key: Key of all edits of that document that follow from the same one.
    """

    proposal: Proposal
    guarantee: str
    key: int
    uri: str | None = None
    document_key: int | None = None


def next_edit(contexts: DocumentSessions, language: Language, asked: EditQuestion) -> NextEdit | None:
    """Return the likeliest edit that parses and loads no unbound name; None if none is likely enough."""
    # Their import takes 25 ms, which the start of the server can spare.
    from fim_server.next_edit.elsewhere import proposals_from_others

    with suppress(StoppedError), Stop(SECONDS):
        own = own_proposals(language.name, asked)
        if all(proposal.confidence < LEAST_CONFIDENCE for proposal in own):
            own = proposals_from_others(asked.edits, asked.uri, asked.text, asked.others)
        return first_that_parses(contexts, language, asked, own)
    return None


def next_edit_elsewhere(
    contexts: DocumentSessions, language_of: Callable[[Request], Language], asked: EditQuestion
) -> NextEdit | None:
    """Return the first edit of another document that follows from the latest edits of others and parses."""
    from fim_server.next_edit.elsewhere import Sources

    texts = {asked.uri: asked.text, **asked.others}
    sources = Sources(asked.edits, texts)
    with suppress(StoppedError), Stop(SECONDS) as stop:
        for request in asked.elsewhere:
            if stop.is_set():
                break
            uri, text = request.uri, request.split.right
            following = sources.following(uri, text, LATEST_ELSEWHERE)
            if following is None or (document_key := hash((uri, following[0].key))) in asked.dismissed:
                continue
            question = EditQuestion(uri, text, asked.edits, texts, asked.dismissed)
            found = first_that_parses(contexts, language_of(request), question, following[1])
            if found is not None:
                return replace(found, uri=uri, document_key=document_key)
    return None


def first_that_parses(
    contexts: DocumentSessions, language: Language, asked: EditQuestion, made: Iterable[Proposal]
) -> NextEdit | None:
    """Return the first likely proposal that parses, loads no unbound name, and was not dismissed."""
    tried = 0
    for proposal in made:
        if tried == MOST_TRIED:
            break
        if proposal.confidence < LEAST_CONFIDENCE or (key := key_of(asked, proposal)) in asked.dismissed:
            continue
        tried += 1
        guarantee = guarantee_of(contexts, language, asked, proposal)
        if guarantee is not None:
            return NextEdit(proposal, guarantee, key)
    return None


def uses_in(language: str, text: str) -> FindUses | None:
    """Return a search for the uses of names, if the language has one and the text is not too long."""
    support = support_of(language)
    return None if support is None or len(text) > LONGEST_NAMED else support.uses_of


def own_proposals(language: str, asked: EditQuestion) -> list[Proposal]:
    """Return the edits of any confidence that may follow the latest edit of the document itself, the best first."""
    from fim_server.next_edit.imports import needless_imports
    from fim_server.next_edit.propose import in_order, proposals, standing

    found = proposals(asked.edits, asked.uri, asked.text, uses_in(language, asked.text))
    support = support_of(language)
    mine = standing([edit for edit in asked.edits if edit.uri == asked.uri])
    if support is None:
        return in_order([*found, *needless_imports(mine, asked.text)])
    if not mine or len(asked.text) > LONGEST_NAMED:
        return found
    return in_order([*found, *support.import_edits(asked.text, asked.uri, mine, asked.others)])


def guarantee_of(contexts: DocumentSessions, language: Language, asked: EditQuestion, proposal: Proposal) -> str | None:
    """Return the guarantee of the document with a proposal; None if it does not parse or loads an unbound name."""
    left, right = asked.text[: proposal.start], asked.text[proposal.end :]
    opened = contexts.open(asked.uri, language, Split(left, right))
    if opened.guarantee == "none" or not opened.has_grammar:
        return None
    if opened.is_unfinished or opened.stand_in is not None:
        return None  # the document is parsed in part only so far, or with text that is missing
    if proposal.is_use and opened.session.inside is not None:
        return None  # the same word in a string or comment
    if not opened.session.check(proposal.text + right[: opened.covered]).complete:
        return None
    if proposal.needs_whole and opened.guarantee != "exact":
        return None
    support = support_of(language.name)
    if support is not None and support.imports_unknown(left, proposal.text, right):
        return None
    if support is not None and len(asked.text) <= LONGEST_NAMED:
        is_whole = opened.guarantee == "exact"
        before = support.unbound(left, asked.text[proposal.start : proposal.end], right, is_whole)
        if set(support.unbound(left, proposal.text, right, is_whole)) - set(before):
            return None
        # The other uses of a renamed name follow one by one.
        if is_whole and not proposal.is_use:
            missing = support.missing(asked.text)
            after = support.missing(left + proposal.text + right)
            if any(number > missing.get(name, 0) for name, number in after.items()):
                return None
    return opened.guarantee


def key_of(asked: EditQuestion, proposal: Proposal) -> int:
    """Return a hash of the document's name and of a proposal's lines, with those beside them, before and after."""
    text = asked.text
    first = text.rfind("\n", 0, text.rfind("\n", 0, proposal.start) if "\n" in text[: proposal.start] else 0) + 1
    last = text.find("\n", proposal.end)
    last = len(text) if last < 0 else text.find("\n", last + 1)
    last = len(text) if last < 0 else last
    after = text[first : proposal.start] + proposal.text + text[proposal.end : last]
    return hash((asked.uri, text[first:last], after))
