"""Operations on a language's names and notebooks that its definition cannot express.

A language works without them. One that has them is listed in :mod:`fim_server.language_support.registry`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from fim_server.language_support.token_texts import TokenTexts
    from fim_server.next_edit.edit_memory import Edit
    from fim_server.next_edit.propose import Proposal
    from fim_server.next_edit.renames import NameUses
    from fim_server.text.notebook import Reader

    Weighted = Sequence[tuple[str, float]]
    """Names with weights whose sum is at most 1."""

    Parameters = Callable[[str], Sequence[str]]
    """Returns the parameters of a name that other files of the project define."""

    Definitions = Callable[[Sequence[str]], Iterable[tuple[str, str]]]
    """Returns those of some names that other files of the project define, each with such a file."""

    ReadFile = Callable[[Path, int, Path], bytes]
    """Reads a file of a folder up to a number of bytes."""


class UndefinedNameError(Exception):
    """A name without a binding stands where no later text can bind it."""


class NameTracker(Protocol):
    """Position in a text whose names must be bound."""

    def copy(self) -> Self:
        """Return an independent tracker at the same position."""

    def feed(self, data: str, /) -> None:
        """Read on, a character for each byte. Raises UndefinedNameError, after which the tracker is of no use."""

    def allow(self, texts: TokenTexts, mask: NDArray[np.bool_], /) -> None:
        """Set the allowed tokens in a mask of zeros, as feeding each token to a copy decides. ``mask``: [tokens]."""


class NameRules(Protocol):
    """Rules by which a middle must not load an unbound name."""

    def track(self, left: str, right: str, healing: str, is_whole: bool) -> NameTracker:
        """Return a tracker before a middle, of which the caller moves copies alone.

        Args:
            left: The text left of the cursor.
            right: The text right of the cursor.
            healing: The end of the left text that the tracker reads again before the middle.
            is_whole: Whether the texts parse with some middle. If not, every word of them counts as bound.
        """

    def unbound(self, left: str, middle: str, right: str, is_whole: bool) -> tuple[str, ...]:
        """Return the names that a middle loads and nothing binds: at least one of them where there are any."""


class Importable(Protocol):
    """Modules that a file can import."""

    def below(self, name: str, /) -> frozenset[str]:
        """Return the modules of a package, named with a final dot; for an empty name those that one word imports."""

    def public(self, name: str, /) -> frozenset[str] | None:
        """Return the public names of a module; None if it is not found."""


class Modules(Protocol):
    """Modules of a workspace."""

    @property
    def folders(self) -> Sequence[Path]:
        """Return the folders of the workspace."""

    def at(self, file: Path, /) -> Importable:
        """Return the modules that a file can import."""


class NamePreference(Protocol):
    """Changes of the probabilities of tokens by the names they write."""

    def __call__(self, middle: str, healing: str, texts: Sequence[str | None], /) -> Sequence[float]:
        """Return the changes of the logits of tokens; None is the text of a token that is no text by itself."""


class NameScope(Protocol):
    """Names around a cursor."""

    def preference(self, left: str, parameters: Parameters, modules: Importable | None) -> NamePreference:
        """Return the preference for names that exist. ``left``: the text up to the cursor."""

    def bound_at(self, line: str) -> Sequence[str]:
        """Return the names that the cursor's line probably binds next. ``line``: its beginning, up to a name."""

    def unbound_load(self, left: str, right: str, text: str) -> int | None:
        """Return the end of the first name in a suggestion that it loads unbound, in characters."""


class LanguageSupport(NameRules, Protocol):
    """Names and notebooks of one language."""

    @property
    def cells(self) -> Reader:
        """Return the reader of notebook cells."""

    def scope_at(self, left: str, right: str) -> NameScope:
        """Return the names around a cursor, without those of the cursor's line."""

    def modules(self, folders: Sequence[Path], read: ReadFile) -> Modules:
        """Return the modules of a workspace."""

    def parameters_of(self, header: str) -> Sequence[str]:
        """Return the parameters of the function that a header defines."""

    def completions(
        self, line: str, source: str, above: int, definitions: Definitions, modules: Importable | None
    ) -> Weighted:
        """Return undefined names of a document that an import or definition ending at the cursor may bring.

        Args:
            line: The cursor's line up to the cursor.
            source: The document without that line.
            above: The number of the document's lines above it.
            definitions: Looks up definitions in other files.
            modules: Modules that can be imported, if they are known.
        """

    def is_import(self, line: str) -> bool:
        """Return whether a line is one complete import statement."""

    def imports_again(self, line: str, source: str) -> bool:
        """Return whether a line imports only what the rest of the document imports at its top level."""

    def is_needless(self, line: str, source: str, modules: Importable | None) -> bool:
        """Return whether a line imports modules of which the document needs none, while it needs others."""

    def missing(self, source: str) -> Mapping[str, int]:
        """Return the names that a document loads and nothing binds, with their numbers; none if it cannot be read."""

    def uses_of(self, source: str, at: int, old: str) -> NameUses | None:
        """Return where the old name of a variable stands, which is bound at an offset by its new name.

        None if that is unknown.
        """

    def import_edits(
        self, source: str, uri: str, edits: Sequence[Edit], others: Mapping[str, str]
    ) -> Sequence[Proposal]:
        """Return the removals and the additions of imports that follow from the latest edits of a document.

        Args:
            source: The document.
            uri: Its name.
            edits: Its latest edits, the latest last.
            others: Other open documents, by their names.
        """

    def imports_unknown(self, left: str, text: str, right: str) -> bool:
        """Return whether a line with ``text`` imports a built-in name from a module of the standard library."""

    def unknown_member(self, left: str, right: str, text: str) -> tuple[int, int] | None:
        """Return start and end of the first attribute in a suggestion that the class around the cursor lacks."""

    def decorators(self, above: str, line: str, below: str) -> tuple[str, Weighted] | None:
        """Return the typed part of a decorator that ends at the cursor, and decorators that fit the definition below.

        Args:
            above: The text above the cursor's line.
            line: That line up to the cursor.
            below: The text below it.
        """
