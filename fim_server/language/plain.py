"""Texts without a grammar that judges them: any text may come anywhere, and the guarantee is `none`."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from fim_server.language.definition import compile as grammar
from fim_server.language.definition import paths
from fim_server.language.language import Language
from fim_server.language.session import Session, Verdict
from fim_server.language.spelling import Spelling
from fim_server.language.texts import encodable

REFUSED = "\0"
"""Left context that the grammar of plain texts refuses, as it refuses all."""

OTHER = "text"
"""Name of the language of a file without a suffix, if the editor names none."""


class PlainText(Language):
    """Language without a grammar, named as the editor or the file's suffix names it."""

    def __init__(self, name: str) -> None:
        # Names are the editors' own, without a bound: all share one compiled form, with its shapes.
        vars(self).update(vars(_shared()))
        self.name, self.guarantee = name, "none"

    def open(self, left: str, right: str) -> Session:
        """Return a session with the guarantee `none`. Nothing reads the contexts."""
        encodable(left, "left"), encodable(right, "right")
        return PlainSession(self.spelling, f"there is no grammar for {self.name}: any text may come here")


class PlainSession(Session):
    """Session on contexts that nothing reads."""

    def __init__(self, spelling: Spelling, reason: str) -> None:
        """Take the texts of the contexts' language, and the line that says why nothing reads them."""
        language = _shared()
        super().__init__(
            language.core.open(REFUSED, ""),
            lambda shape, left, right: language.shaped(shape).open(left, right),
            (REFUSED, ""),
            spelling=spelling,
        )
        self._diagnostics = [reason]

    @property
    def diagnostics(self) -> list[str]:
        """Return a line that says why nothing reads the contexts."""
        return self._diagnostics

    def check(self, middle: str) -> Verdict:
        """Return that the middle is complete: no grammar refuses it."""
        encodable(middle, "middle")
        return Verdict(True, True, None)

    @property
    def broken_at(self) -> None:
        """Return None: no place breaks the text."""
        return

    def moved(self, left: str) -> None:
        """Return None: opening is as fast."""
        return


def unjudged(spelling: Spelling, reason: str) -> Session:
    """Return a session without a guarantee on contexts whose language has a grammar that does not help."""
    return PlainSession(spelling, reason)


def plain_name(path: str, editor_id: str = "") -> str | None:
    """Return the name of a file's language without a grammar; None if it is a language of the package.

    ``editor_id``: the editor's name of the language, which overrides the file's suffix.
    """
    file = Path(path).name
    if editor_id in grammar.names() or paths.by_suffix(file) is not None:
        return None
    return editor_id or Path(path).suffix.removeprefix(".").lower() or OTHER


@cache
def _shared() -> Language:
    """Return the language whose compiled form and spelling all languages without a grammar share."""
    here = Path(__file__)
    return Language(grammar.read(here.with_suffix(".lark"), here.with_suffix(".toml")))
