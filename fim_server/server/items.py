"""Suggestions as items of the protocol: of inline completion, and of the suggestion list."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lsprotocol import types

from fim_server.suggest.context.cursor import Place
from fim_server.text.document import PositionEncoding
from fim_server.text.hidden import hidden_in, known_at

if TYPE_CHECKING:
    from fim_server.suggest.answer_cache import Answer
    from fim_server.suggest.context.placeholders import StandIn
    from fim_server.suggest.suggestion import Suggestion
    from fim_server.text.document import Split

ACCEPTED = "fim-server.accepted"
"""Command that an editor runs when an item is accepted."""

LABEL_CHARACTERS = 60
"""Most characters of an entry's label in the suggestion list."""


def inline_items(
    answer: Answer,
    split: Split,
    position: types.Position,
    encoding: PositionEncoding,
    selected: types.SelectedCompletionInfo | None,
) -> list[types.InlineCompletionItem]:
    """Return the suggestions as inline completion items. Neovim fails on items without a range."""
    items = []
    for suggestion in visible_suggestions(answer, split):
        text = split.restore(suggestion.text)
        start, end = position, after(position, split.right[: suggestion.covered], encoding)
        if selected is not None:
            text, start = selected.text + text, selected.range.start
            # The selected text replaces its range, and the closers covered stand right behind that.
            end = after(selected.range.end, split.right[: suggestion.covered], encoding)
        items.append(
            types.InlineCompletionItem(text, range=types.Range(start, end), command=accepted_command(suggestion, split))
        )
    return items


def visible_suggestions(answer: Answer, split: Split) -> list[Suggestion]:
    """Return the suggestions of an answer without hidden characters other than those of the word at the cursor.

    Decoding and the project's memory refuse the others. A carriage return counts as hidden, so an item differs from its
    judged text only in the document's line breaks.
    """
    known = known_at(split.left, split.right)
    return [suggestion for suggestion in answer.suggestions if hidden_in(suggestion.text, known) is None]


def accepted_command(suggestion: Suggestion, split: Split) -> types.Command:
    """Return the command that an editor runs when a suggestion is accepted."""
    argument: dict[str, Any] = {"id": suggestion.identity, "guarantee": suggestion.origin.guarantee}
    if suggestion.origin.guarantee == "partial":
        argument["coveredLines"] = lines_json(suggestion.origin.covered_lines)
    if suggestion.origin.stand_in is not None:
        argument["standIn"] = stand_in_json(suggestion.origin.stand_in, split.left)
    return types.Command(title="Completion accepted", command=ACCEPTED, arguments=[argument])


def lines_json(lines: tuple[range, ...]) -> list[dict[str, int]]:
    """Return ranges of lines, from line 0."""
    return [{"line": stretch.start, "count": len(stretch)} for stretch in lines]


def stand_in_json(stand_in: StandIn, left: str) -> dict[str, Any]:
    """Return the text that has to follow the cursor's line, and the line of the document, from 0, that it continues."""
    return {"line": left.count("\n") + stand_in.below, "text": stand_in.text}


def list_items(
    answer: Answer, split: Split, position: types.Position, encoding: PositionEncoding, kinds: FallbackKinds
) -> list[types.CompletionItem]:
    """Return the suggestions as entries of the suggestion list, for clients without inline completion."""
    place = Place.of(split)
    word = word_before(place.before)
    width = after(position, word, encoding).character - position.character
    word_start = types.Position(position.line, position.character - width)
    items = []
    for rank, suggestion in enumerate(visible_suggestions(answer, split)):
        written = kinds.write(suggestion.text, place.before)
        if written is None:
            continue
        text, form, mode = written
        end = after(position, split.right[: suggestion.covered], encoding)
        first = first_line(suggestion.text)
        items.append(
            types.CompletionItem(
                label=(word + first)[:LABEL_CHARACTERS] + ("…" if first.strip() != suggestion.text.strip() else ""),
                kind=types.CompletionItemKind.Snippet if "\n" in suggestion.text else types.CompletionItemKind.Text,
                detail=f"fim-server, guarantee {suggestion.origin.guarantee}",
                documentation=split.restore(suggestion.text) if "\n" in suggestion.text else None,
                sort_text=f" {rank}",
                # Clients drop an entry whose filter text does not begin with the word at the cursor.
                filter_text=word + first,
                # The word is part of the edit, because eglot has replaced it by the label.
                text_edit=types.TextEdit(types.Range(word_start, end), word + split.restore(text)),
                insert_text_format=form,
                insert_text_mode=mode,
                command=accepted_command(suggestion, split),
            )
        )
    return items


class FallbackKinds:
    """Forms in which a client without inline completion takes texts."""

    def __init__(self, capabilities: types.ClientCapabilities) -> None:
        completion = capabilities.text_document and capabilities.text_document.completion
        item = completion.completion_item if completion else None
        modes = item.insert_text_mode_support if item else None
        self._takes_snippets = bool(item and item.snippet_support)
        self._takes_as_is = bool(modes and types.InsertTextMode.AsIs in modes.value_set)

    @property
    def takes_lines(self) -> bool:
        """True if texts of several lines can arrive unchanged."""
        return self._takes_snippets or self._takes_as_is

    def write(self, text: str, before: str) -> tuple[str, types.InsertTextFormat, types.InsertTextMode | None] | None:
        """Return a text as the client takes it, or None if it cannot arrive unchanged.

        ``before``: the line left of the cursor. Clients indent a snippet's further lines like the line of the cursor,
        so they are written relative to it; a snippet cannot have lines that are indented less.
        """
        if "\n" not in text and self._takes_snippets:  # Neovim 0.11 inserts a plain text only up to a blank
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
    """Return the first line of a text that is not blank: the text's first line as it is, a later one stripped."""
    first, *rest = text.split("\n")
    return first if first.strip() else next((line.strip() for line in rest if line.strip()), "")


def escaped_snippet(text: str) -> str:
    """Escape a text for the snippet syntax (LSP 3.18, "Snippet Syntax")."""
    return text.replace("\\", "\\\\").replace("$", "\\$").replace("}", "\\}")


def word_before(text: str) -> str:
    """Return the name at the end of a line."""
    start = len(text)
    while start and (text[start - 1] == "_" or text[start - 1].isalnum()):
        start -= 1
    return text[start:]


def after(position: types.Position, text: str, encoding: PositionEncoding) -> types.Position:
    """Return the position behind a text that follows a position on its line."""
    return types.Position(position.line, position.character + sum(encoding.width(character) for character in text))
