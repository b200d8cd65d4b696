"""Support of Python: the operations of :mod:`fim_server.language_support.protocol`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fim_server.language_support.python import cells, imports, marks, members, model, required
from fim_server.language_support.python.around import Around, names_around
from fim_server.language_support.python.lacking import bound_at
from fim_server.language_support.python.modules import Modules
from fim_server.language_support.python.preferring import Preference
from fim_server.language_support.python.unbound import unbound_load

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from fim_server.language_support.protocol import Definitions, Importable, Parameters, ReadFile, Weighted
    from fim_server.language_support.python.tracking import Tracker
    from fim_server.next_edit.edit_memory import Edit
    from fim_server.next_edit.propose import Proposal
    from fim_server.next_edit.renames import NameUses
    from fim_server.text.notebook import Reader


@dataclass(frozen=True, slots=True)
class PythonScope:
    """Names around a cursor in Python code."""

    around: Around

    def preference(self, left: str, parameters: Parameters, modules: Importable | None) -> Preference:
        return Preference(left, self.around, parameters, modules)

    def bound_at(self, line: str) -> Sequence[str]:
        return bound_at(line, self.around)

    def unbound_load(self, left: str, right: str, text: str) -> int | None:
        return unbound_load(left, right, text)


class PythonSupport:
    """Names and notebooks of Python."""

    @property
    def cells(self) -> Reader:
        return cells

    def scope_at(self, left: str, right: str) -> PythonScope:
        return PythonScope(names_around(left, right))

    def modules(self, folders: Sequence[Path], read: ReadFile) -> Modules:
        return Modules(folders, read)

    def parameters_of(self, header: str) -> Sequence[str]:
        return model.parameters_of(header)

    def completions(
        self, line: str, source: str, above: int, definitions: Definitions, modules: Importable | None
    ) -> Weighted:
        if imports.begun(line) is None:
            found = imports.definable(line, source, above)
        else:
            found = imports.importable(line, source, definitions, modules)
        return () if found is None else found[1]

    def is_import(self, line: str) -> bool:
        return imports.import_of(line) is not None

    def imports_again(self, line: str, source: str) -> bool:
        return imports.imports_again(line, source)

    def is_needless(self, line: str, source: str, modules: Importable | None) -> bool:
        return imports.is_needless(line, source, modules)

    def missing(self, source: str) -> Mapping[str, int]:
        return model.missing(source)

    def uses_of(self, source: str, at: int, old: str) -> NameUses | None:
        from fim_server.language_support.python.next_edits.uses import uses_of

        return uses_of(source, at, old)

    def import_edits(self, source: str, uri: str, edits: Sequence[Edit], others: Mapping[str, str]) -> list[Proposal]:
        from fim_server.language_support.python.next_edits.import_edits import import_edits

        return import_edits(source, uri, edits, others)

    def imports_unknown(self, left: str, text: str, right: str) -> bool:
        from fim_server.language_support.python.next_edits.import_edits import imports_unknown

        return imports_unknown(left, text, right)

    def unknown_member(self, left: str, right: str, text: str) -> tuple[int, int] | None:
        return members.unknown_member(left, right, text)

    def decorators(self, above: str, line: str, below: str) -> tuple[str, Weighted] | None:
        return marks.likely(above, line, below)

    def track(self, left: str, right: str, healing: str, is_whole: bool) -> Tracker:
        return required.track(left, right, healing, is_whole)

    def unbound(self, left: str, middle: str, right: str, is_whole: bool) -> tuple[str, ...]:
        return required.unbound(left, middle, right, is_whole)
