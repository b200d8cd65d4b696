"""Answers in the protocol's own types: items, the fallback's items, status, explanations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lsprotocol import types

from fim_server.errors import SearchLimitError
from fim_server.server.usage import rounded
from fim_server.suggest.context.cursor import Place
from fim_server.text.document import PositionEncoding
from fim_server.text.hidden import escaped_values, hidden_in, known_at, on_one_line

if TYPE_CHECKING:
    from fim_server.models.model import FimModel
    from fim_server.suggest.answer_cache import Answer, Suggestion
    from fim_server.suggest.context.placeholders import StandIn
    from fim_server.suggest.context.sessions import Opened
    from fim_server.suggest.job import Costs, Explained
    from fim_server.text.document import Split

ACCEPTED = "fim-server.accepted"
"""The command that an editor runs when an item is accepted."""

CURSOR = "fim-server/cursor"
"""The notification by which an editor tells where a cursor came to rest."""

MOST_EXPLAINED = 1_000_000
"""Most characters of a text in an explanation; a grammar is long."""

LABEL_CHARACTERS = 60

MOST_OF_NAME = 200
"""Most characters of a model's name."""


def inline_items(
    answer: Answer,
    split: Split,
    position: types.Position,
    encoding: PositionEncoding,
    selected: types.SelectedCompletionInfo | None,
) -> list[types.InlineCompletionItem]:
    """The offers as inline completion items. A range is always sent: Neovim fails on items without one."""
    items = []
    for offer in visible_offers(answer, split):
        text = split.restore(offer.text)
        start, end = position, after(position, split.right[: offer.covered], encoding)
        if selected is not None:
            text, start = selected.text + text, selected.range.start
            # What is selected replaces its range, and the closers covered stand right behind that.
            end = after(selected.range.end, split.right[: offer.covered], encoding)
        items.append(
            types.InlineCompletionItem(text, range=types.Range(start, end), command=accepted_command(offer, split))
        )
    return items


def visible_offers(answer: Answer, split: Split) -> list[Suggestion]:
    """Return the offers of an answer that hold no hidden character but those of the word at the cursor.

    Decoding and the memory have refused the others. A carriage return counts as hidden, so an item differs from its
    judged text only in the document's line breaks.
    """
    known = known_at(split.left, split.right)
    return [offer for offer in answer.suggestions if hidden_in(offer.text, known) is None]


def accepted_command(offer: Suggestion, split: Split) -> types.Command:
    """What an editor runs when an offer is accepted."""
    argument: dict[str, Any] = {"id": offer.identity, "guarantee": offer.guarantee}
    if offer.guarantee == "partial":
        argument["coveredLines"] = lines_json(offer.covered_lines)
    if offer.stand_in is not None:
        argument["standIn"] = stand_in_json(offer.stand_in, split.left)
    return types.Command(title="Completion accepted", command=ACCEPTED, arguments=[argument])


def lines_json(lines: tuple[range, ...]) -> list[dict[str, int]]:
    """Stretches of lines, counted from 0."""
    return [{"line": stretch.start, "count": len(stretch)} for stretch in lines]


def stand_in_json(stand_in: StandIn, left: str) -> dict[str, Any]:
    """Return the text that has to follow the cursor's line, and the line of the document, from 0, that it continues."""
    return {"line": left.count("\n") + stand_in.below, "text": stand_in.text}


def list_items(
    answer: Answer, split: Split, position: types.Position, encoding: PositionEncoding, kinds: FallbackKinds
) -> list[types.CompletionItem]:
    """The offers as items of an editor's suggestion list, for clients without inline completion."""
    place = Place.of(split)
    word = word_before(place.before)
    width = after(position, word, encoding).character - position.character
    word_start = types.Position(position.line, position.character - width)
    items = []
    for rank, offer in enumerate(visible_offers(answer, split)):
        written = kinds.write(offer.text, place.before)
        if written is None:
            continue
        text, form, mode = written
        end = after(position, split.right[: offer.covered], encoding)
        first = first_line(offer.text)
        items.append(
            types.CompletionItem(
                label=(word + first)[:LABEL_CHARACTERS] + ("…" if first.strip() != offer.text.strip() else ""),
                kind=types.CompletionItemKind.Snippet if "\n" in offer.text else types.CompletionItemKind.Text,
                detail=f"fim-server, guarantee {offer.guarantee}",
                documentation=split.restore(offer.text) if "\n" in offer.text else None,
                sort_text=f" {rank}",
                # Clients compare this with the word at the cursor, and drop the item where it does not begin with it.
                filter_text=word + first,
                # The word is part of the edit: eglot has put the label in its place before, and restores that alone.
                text_edit=types.TextEdit(types.Range(word_start, end), word + split.restore(text)),
                insert_text_format=form,
                insert_text_mode=mode,
                command=accepted_command(offer, split),
            )
        )
    return items


class FallbackKinds:
    """How a client without inline completion takes texts of several lines."""

    def __init__(self, capabilities: types.ClientCapabilities) -> None:
        completion = capabilities.text_document and capabilities.text_document.completion
        item = completion.completion_item if completion else None
        modes = item.insert_text_mode_support if item else None
        self._takes_snippets = bool(item and item.snippet_support)
        self._takes_as_is = bool(modes and types.InsertTextMode.AsIs in modes.value_set)

    @property
    def takes_lines(self) -> bool:
        """Whether a text of several lines can arrive unchanged."""
        return self._takes_snippets or self._takes_as_is

    def write(self, text: str, before: str) -> tuple[str, types.InsertTextFormat, types.InsertTextMode | None] | None:
        """A text as a client takes it, or None if it cannot arrive unchanged.

        ``before``: the line left of the cursor. Clients indent a snippet's further lines as the line they are inserted
        in, so theirs are written relative to that; lines that are indented less cannot be.
        """
        if "\n" not in text and self._takes_snippets:  # of a plain text Neovim 0.11 inserts what stands before a blank
            return escaped_snippet(text), types.InsertTextFormat.Snippet, None
        if "\n" not in text:
            return text, types.InsertTextFormat.PlainText, None
        if self._takes_as_is:
            return text, types.InsertTextFormat.PlainText, types.InsertTextMode.AsIs
        indentation = before[: len(before) - len(before.lstrip())]
        first, *rest = text.split("\n")
        if not self._takes_snippets or any(line.strip() and not line.startswith(indentation) for line in rest):
            return None
        relative = "\n".join([first, *(line.removeprefix(indentation) for line in rest)])
        return escaped_snippet(relative), types.InsertTextFormat.Snippet, types.InsertTextMode.AdjustIndentation


def first_line(text: str) -> str:
    """The first line of a text that is not blank; the text's own first line as it is, blanks and all."""
    first, *rest = text.split("\n")
    return first if first.strip() else next((line.strip() for line in rest if line.strip()), "")


def escaped_snippet(text: str) -> str:
    """A text that means itself in the snippet syntax (LSP 3.18, "Snippet Syntax")."""
    return text.replace("\\", "\\\\").replace("$", "\\$").replace("}", "\\}")


def word_before(text: str) -> str:
    """The name that a line ends with."""
    start = len(text)
    while start and (text[start - 1] == "_" or text[start - 1].isalnum()):
        start -= 1
    return text[start:]


def after(position: types.Position, text: str, encoding: PositionEncoding) -> types.Position:
    """The position behind a text that follows a position on its line."""
    return types.Position(position.line, position.character + sum(encoding.width(character) for character in text))


def latency_json(costs: Costs) -> dict[str, float]:
    """The costs of a request, in milliseconds."""
    return {
        "totalMs": rounded(costs.total_ms),
        "debounceMs": rounded(costs.debounce_ms),
        "queueMs": rounded(costs.queue_ms),
        "openMs": rounded(costs.open_ms),
        "prefillMs": rounded(costs.prefill_ms),
        "decodeMs": rounded(costs.decode_ms),
        "engineMs": rounded(costs.engine_ms),
        "serverMs": rounded(costs.server_ms),
    }


def model_json(model: FimModel) -> dict[str, Any]:
    """The model that completes."""
    learnt = model.format.languages
    return {
        "name": on_one_line(model.name, MOST_OF_NAME),
        "device": str(model.device),
        "runtime": model.runtime,
        "format": model.format.family,
        "mode": model.mode,
        "languages": None if learnt is None else sorted(learnt),
    }


def explanation_json(uri: str, position: types.Position, explained: Explained, text: str | None) -> dict[str, Any]:
    """The answer of `fim-server.explainAt`."""
    opened, session = explained.opened, explained.opened.session
    state = session.start()
    here = state.explain("")
    answer: dict[str, Any] = {
        "uri": uri,
        "position": {"line": position.line, "character": position.character},
        "language": explained.language.title,
        "guarantee": opened.guarantee,
        "diagnostics": list(opened.diagnostics),
        "ignored": [{"line": group.line, "count": group.count, "beyond": group.beyond} for group in opened.ignored],
        "coveredLines": lines_json(opened.covered_lines),
        "standIn": None if opened.stand_in is None else stand_in_json(opened.stand_in, opened.left),
        "inside": session.inside,
        "expected": here.expected,
        "likely": state.likely_next(here, opened.left) if opened.guarantee != "none" else None,
        "openLeft": [
            {"name": construct.name, **line_of(opened, construct.offset)} for construct in session.open_constructs()
        ],
        "openRight": [closer_json(closer, opened) for closer in here.open_right],
        "grammar": session.quotient_grammar() if opened.guarantee != "none" else "",
        "shortest": shortest_of(state) if opened.guarantee != "none" else None,
        "candidates": [
            {"text": one, "probability": probability, "allowed": allowed, "reason": reason}
            for one, probability, allowed, reason in explained.candidates
        ],
    }
    if text is not None:
        verdict = session.check(text)
        answer["verdict"] = {
            "viable": verdict.viable,
            "complete": verdict.complete,
            "rejectedAt": verdict.rejected_at,
        }
    shown: dict[str, Any] = escaped_values(answer, MOST_EXPLAINED, frozenset({"uri"}))
    return shown


def line_of(opened: Opened, offset: int) -> dict[str, Any]:
    """The line of the document that an offset in the left context is on, and its text from there to its end."""
    text = opened.left
    end = text.find("\n", offset)
    shown = text[offset : len(text) if end < 0 else end]
    return {"line": opened.line_in_document(text.count("\n", 0, offset)), "text": shown[:LABEL_CHARACTERS]}


def closer_json(closer: str, opened: Opened) -> dict[str, Any]:
    """A bracket that the right side closes: the engine says `) (line 2 after the cursor)`, the first line being 1."""
    text, _, rest = closer.partition(" (line ")
    below = int(rest.split(" ", 1)[0]) - 1 if rest else 0
    return {"text": text, "line": opened.line_in_document(opened.left.count("\n") + below)}


def shortest_of(state: Any) -> str | None:
    """The shortest completion, where it can be found."""
    try:
        found: str | None = state.shortest_completion()
    except SearchLimitError:
        return None
    return found
