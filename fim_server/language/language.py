"""Languages: loaded by name or by a file's path, compiled once, opened at a cursor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from os import PathLike
from pathlib import Path
from threading import Lock

from fim_server import _core
from fim_server.errors import LanguageError
from fim_server.language.argument_types import expect, expect_text
from fim_server.language.definition import compile as grammar
from fim_server.language.definition import facts, paths
from fim_server.language.encodings import decode
from fim_server.language.holes import Holes
from fim_server.language.session import MOST_SHAPES, Session
from fim_server.language.shapes import Shape
from fim_server.language.spelling import Spelling
from fim_server.language.texts import encodable


class Language:
    """Compiled language. Load it once; it is immutable and shared by all sessions and threads.

    Attributes:
        version: Version to which it is narrowed; None for the newest, or for a language without versions.
        guarantee: `exact`; `balanced` if the definition knows only comments, strings and brackets; `none` without a
            grammar.
        spelling: Texts of the language that code outside the engine needs.
    """

    def __init__(self, definition: grammar.Definition) -> None:
        """Compile a definition; use `load` or `from_files`."""
        self.core = grammar.compile_definition(definition)
        self._shaped: dict[Shape, _core.Language] = {}
        self.name = definition.name
        self.version = definition.version
        self.guarantee = definition.guarantee
        self.suffixes = definition.suffixes
        self.spelling = Spelling.from_spec(definition.spec | definition.of_spelling)

    @staticmethod
    def load(name: str, version: str | None = None) -> Language:
        """Load a language of the package, narrowed to a version of it (None, `newest`: the newest).

        Raises LanguageError if there is no such language or version, in one line.
        """
        expect_text("name", name)
        expect("version", version, str | None, "a str or None")
        return _load(name, version)

    @staticmethod
    def from_files(
        grammar_path: str | PathLike[str] | None,
        spec_path: str | PathLike[str],
        version: str | None = None,
        variant: str | None = None,
    ) -> Language:
        """Compile a language from a Lark grammar and a TOML file of your own; one variant of it, if they have several.

        ``grammar_path``: None for a TOML file of token trees. Raises LanguageError for any error in the files, in one
        line.
        """
        expect("grammar_path", grammar_path, str | PathLike | None, "a path or None")
        expect("spec_path", spec_path, str | PathLike, "a path")
        expect("version", version, str | None, "a str or None")
        expect("variant", variant, str | None, "a str or None")
        path = None if grammar_path is None else Path(grammar_path)
        return Language(grammar.read(path, Path(spec_path), version, variant))

    @staticmethod
    def names() -> list[str]:
        return grammar.names()

    @staticmethod
    def suffixes_of(name: str) -> tuple[str, ...]:
        """Return the suffixes of a language's files, with their dot.

        Raises LanguageError if there is no such language.
        """
        expect_text("name", name)
        return paths.suffixes_of(name)

    @staticmethod
    def keeps_returns(name: str) -> bool:
        """Return whether a lone carriage return is no line break in a language of the package.

        Raises LanguageError if there is no such language.
        """
        expect_text("name", name)
        return facts.facts_of(name).keeps_returns

    @staticmethod
    def versions(name: str) -> tuple[str, ...]:
        """Return the versions to which a language can be narrowed, oldest first; the last is its default.

        Empty for a language that has no versions. Raises LanguageError if there is no such language.
        """
        expect_text("name", name)
        return grammar.builtin_versions(name).choices

    @staticmethod
    def for_path(
        path: str | PathLike[str], name: str | None = None, versions: Mapping[str, str | None] | None = None
    ) -> Language:
        """Return the language of a file, in the version of the file's project.

        Raises LanguageError if no language has the suffix or name, or the language has no such version.

        Args:
            path: Names the language by its suffix, and the project by its folders. The file need not exist.
            name: The language, if the suffix does not decide. A longer suffix or the project may choose a variant.
            versions: By language, the version (or `newest`) to use instead of the project's.
        """
        expect("path", path, str | PathLike, "a path")
        expect("name", name, str | None, "a str or None")
        expect("versions", versions, Mapping | None, "a mapping or None")
        asked = name or _name_for(Path(path))
        name = paths.variant_for(asked, Path(path))
        version = (versions or {}).get(name) or (versions or {}).get(asked)
        expect("versions", version, str | None, "a mapping to str or None")
        return _load(name, version or grammar.builtin_versions(name).of_project(Path(path)))

    @staticmethod
    def decode(path: str | PathLike[str], data: bytes, name: str | None = None) -> str:
        """Decode a file as its language does, without the byte order mark.

        Raises LanguageError if there is no language of the name; EncodingError if the bytes are not in the encoding
        that the file declares, or there is no such encoding.

        Args:
            path: Names the language by its suffix; a file of no language is in UTF-8.
            data: The file's bytes.
            name: The language, if the suffix does not decide.
        """
        name = name or paths.by_suffix(Path(path).name)
        return decode(data, facts.facts_of(name).encoding if name else None)

    @staticmethod
    def name_for_path(path: str | PathLike[str]) -> str:
        """Return the name of the language whose files have the path's suffix, the longest that one has.

        Raises LanguageError if no language has the suffix.
        """
        expect("path", path, str | PathLike, "a path")
        return _name_for(Path(path))

    @staticmethod
    def name_for_editor(editor_id: str, path: str = "") -> str:
        """Return the name of the language that an editor calls so; the editor's own if no language has it.

        ``path``: the file. Where editor and suffix name two variants of one definition, the suffix decides, unless it
        is that of the first variant.
        """
        name = facts.editor_names().get(editor_id, editor_id)
        variants = grammar.siblings(name)
        suffix = Path(path).suffix
        return next((one for one in variants[1:] if suffix in paths.suffixes_of(one)), name)

    @property
    def title(self) -> str:
        """Return the name, with the version if it is narrowed to one."""
        return self.name if self.version is None else f"{self.name} {self.version}"

    @property
    def has_grammar(self) -> bool:
        """Return whether a definition judges texts; none judges those of :class:`.plain.PlainText`."""
        return self.guarantee != "none"

    def shaped(self, shape: Shape) -> _core.Language:
        """Return the engine's form of the language for middles of a shape.

        Raises ValueError as `Session.matcher`.
        """
        known = self._shaped.get(shape)
        if known is not None:
            return known
        if shape.most_lines is None:
            made = self.core.matching(shape.pattern or "")
        elif 1 <= shape.most_lines <= 16:
            made = self.core.lines(shape.most_lines)
        else:
            raise ValueError(f"a shape has 1 to 16 lines, not {shape.most_lines}")
        if len(self._shaped) >= MOST_SHAPES:
            self._shaped.clear()
        self._shaped[shape] = made
        return made

    def open(self, left: str, right: str) -> Session:
        """Open a session on the text left and right of a cursor. Never raises on the user's code."""
        left, right = encodable(left, "left"), encodable(right, "right")
        opened = self.core.open(left, right)
        return Session(
            opened,
            lambda shape, left, right: self.shaped(shape).open(left, right),
            (left, right),
            spelling=self.spelling,
            guarantee=self.guarantee,
        )

    def open_holes(self, texts: Sequence[str]) -> Holes:
        """Return the holes between some texts: [left, right], or [left, between, …, right] for several.

        They are judged together, see `Holes`. Raises ValueError for fewer than 2 texts or more than 9; never on the
        user's code.
        """
        return Holes(self.core, texts, self.open)

    def __repr__(self) -> str:
        return f"<Language {self.title}>"


def _load(name: str, version: str | None) -> Language:
    # The newest goes by several names; it is compiled and kept once.
    return _load_once(name, version and grammar.builtin_versions(name).narrowed(version))


def _load_once(name: str, version: str | None) -> Language:
    with _locks.setdefault((name, version), Lock()):  # several threads may want it while the server starts
        return _load_narrowed(name, version)


@cache
def _load_narrowed(name: str, version: str | None) -> Language:
    return Language(grammar.read_builtin(name, version))


_locks: dict[tuple[str, str | None], Lock] = {}


def _name_for(path: Path) -> str:
    name = paths.by_suffix(path.name)
    if name is None:
        raise LanguageError(f"no language for files named *{path.suffix or '(no suffix)'}; name one with --language")
    return name
