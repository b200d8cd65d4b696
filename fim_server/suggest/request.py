"""Snapshot of one request."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fim_server.language import Language
from fim_server.language.plain import PlainText, plain_name
from fim_server.suggest.answer_cache import Answer
from fim_server.suggest.ranking.personal import shifted_threshold
from fim_server.text.document import Split
from fim_server.text.notebook import CellContexts, healable

if TYPE_CHECKING:
    from fim_server.suggest.ranking.reasons import Suppression
    from fim_server.suggest.settings import ServerSettings
    from fim_server.suggest.suggestion import Suggestion

LANGUAGES = frozenset(Language.names())


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one request, within those of the settings; None: as the settings say.

    Attributes:
        tokens: Most tokens of a text.
        temperature: Temperature of sampling.
        alternatives: Suggestions for an explicit request.
    """

    tokens: int | None = None
    temperature: float | None = None
    alternatives: int | None = None

    def within(self, settings: ServerSettings) -> ServerSettings:
        """Return the settings of the request."""
        most = {name: getattr(settings, name) for name in ("max_tokens", "max_line_tokens")}
        if self.tokens is not None:
            most = {name: min(self.tokens, value) for name, value in most.items()}
        return replace(
            settings,
            **most,
            temperature=settings.temperature if self.temperature is None else self.temperature,
            alternatives=settings.alternatives if self.alternatives is None else self.alternatives,
        )


NO_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Request:
    """Snapshot of one request.

    Attributes:
        uri: The document.
        split: The text, cut at the cursor. In a notebook, the text of all cells.
        language_id: The editor's name of the language.
        path: The path, which names the language if the editor's name is unknown.
        invoked: Whether the request is explicit.
        single_line: Whether one line is wanted.
        settings: The settings, within the limits.
        word_ends: Whether the word before the cursor is whole, because the user chose it from a list.
        cell: The contexts of the cursor's cell in a notebook, or of its region in a file of another language.
        described: The language by the editor's own data, if the package has none.
        dismissed: Texts that the user dismissed at this cursor.
        shift: Shift of the threshold by what the user accepts and dismisses in the language.
        is_held: Whether the answer waits for an explicit request (trigger `subtle`).
        allowed_ms: Time that the client allows, in milliseconds; None: as the settings say.
        limits: The request's own limits.
    """

    uri: str
    split: Split
    language_id: str
    path: str
    invoked: bool
    single_line: bool
    settings: ServerSettings
    word_ends: bool = False
    cell: CellContexts | None = None
    described: Language | None = None
    dismissed: tuple[str, ...] = ()
    shift: float = 0.0
    is_held: bool = False
    allowed_ms: float | None = None
    limits: Limits = NO_LIMITS

    @property
    def deadline_ms(self) -> float | None:
        """Return the deadline, in milliseconds; 0 or None is none."""
        named = self.settings.invoked_deadline_ms if self.invoked else self.settings.deadline_ms
        if self.allowed_ms is None:
            return named
        return min(named, self.allowed_ms) if named else self.allowed_ms

    @property
    def contexts(self) -> Split:
        """Return the texts around the cursor that must parse."""
        return self.split if self.cell is None else replace(self.split, left=self.cell.left, right=self.cell.right)

    @property
    def named(self) -> Split:
        """Return the texts around the cursor in which names are looked up."""
        return self.split if self.cell is None else replace(self.split, left=self.cell.given + self.split.left)

    @property
    def remembered(self) -> Split:
        """Return the text for the project's memory: of a file with regions only the cursor's."""
        return self.split if self.cell is None or self.cell.region is None else self.contexts

    @property
    def offset(self) -> int:
        return len(self.own.left)

    @property
    def own(self) -> Split:
        """Return the document's own texts around the cursor."""
        return self.split if self.cell is None else replace(self.split, left=self.cell.before, right=self.cell.after)

    @property
    def least(self) -> float:
        """Return the least confidence of a suggestion that is not asked for."""
        return shifted_threshold(self.settings.min_confidence, self.shift)

    @property
    def above(self) -> int:
        """Return the number of lines before the cursor that are other cells of a notebook."""
        return self.split.left.count("\n") - self.own.left.count("\n")

    @property
    def healable(self) -> int | None:
        """Return the number of characters before the cursor that the model may write again; None for any number."""
        return None if self.cell is None else healable(self.split.left, self.cell.left)

    @property
    def has_grammar(self) -> bool:
        """Return whether the document's language has a grammar, or the editor's data stands in for one."""
        return self.described is not None or plain_name(self.path, self.language_id) is None

    def language(self) -> Language:
        """Return the document's language. Raises LanguageError for an unknown version of it."""
        plain = plain_name(self.path, self.language_id)
        if plain is not None:
            return self.described or PlainText(plain)
        name = self.language_id if self.language_id in LANGUAGES else None
        if name is not None and self.cell is not None and self.cell.region is not None:
            return Language.load(name, self.settings.versions.get(name))  # a project's files tell of other files
        return Language.for_path(self.path, name, self.settings.versions)

    @property
    def key(self) -> tuple[str, str]:
        """Return the key that answers to other cursors must share to hold here."""
        language = self.language_id if self.described is None else f"{self.language_id} described"
        if self.limits != NO_LIMITS:
            language = f"{language} {self.limits}"
        return self.uri, language if self.cell is None else f"{language} {self.cell.key}"

    def answered(
        self,
        suggestions: tuple[Suggestion, ...],
        reason: str | None = None,
        lasting: bool = True,
        suppressed: tuple[Suppression, ...] = (),
    ) -> Answer:
        return Answer(
            key=self.key,
            left=self.split.left,
            right=self.split.right,
            single_line=self.single_line,
            suggestions=suggestions,
            complete=self.invoked,
            word_ends=self.word_ends,
            reason=reason,
            above=self.above,
            lasting=lasting,
            suppressed=suppressed,
        )


def language_name(request: Request) -> str:
    """Return the name of a request's language; the editor's own for one without a definition."""
    return Language.name_for_editor(request.language_id)
