"""Source files of a language: its own two, and the grammars that its grammar imports."""

import hashlib
import stat
from pathlib import Path

from fim_server.errors import LanguageError, LimitError
from fim_server.language.definition import limits
from fim_server.language.definition.scan import look_through
from fim_server.language.limited_files import read_limited


def read_source(path: Path) -> str:
    """Return the text of one of a language's files.

    Raises LanguageError if it is missing, no regular file, too large or no UTF-8.
    """
    return _decode(path, _read(path, limits.DEFINITION_BYTES))


def _read(path: Path, most: int) -> bytes:
    try:
        # What is no regular file may keep its reader waiting for ever.
        regular = stat.S_ISREG(path.stat().st_mode)
        content = read_limited(path, most) if regular else b""
    except LimitError as error:
        raise LanguageError(f"language definition: {path}: {error}") from error
    except (OSError, ValueError) as error:
        raise LanguageError(f"language definition: {error}") from error
    if not regular:
        raise LanguageError(f"language definition: {path} is no regular file")
    return content


def _decode(path: Path, content: bytes) -> str:
    try:
        # As text files are read everywhere else: any line end is one.
        return content.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise LanguageError(f"language definition: {path}: {error}") from error


class Sources:
    """Imported files of a grammar, read before Lark asks for them, with their hashes.

    Attributes:
        hashes: SHA-256 of each file that was read, by its path.
    """

    def __init__(self, folder: Path | None) -> None:
        """Take the grammar's folder; None for one in no file, which can import only Lark's own ones."""
        self.hashes: dict[str, str] = {}
        self._folder = folder
        self._texts: dict[str, str] = {}
        self._count = 0
        self._bytes = 0

    def examine(self, language: str, grammar: str) -> None:
        """Read all imports of a grammar, and theirs.

        Raises LanguageError if a file cannot be read, or a text is over a limit.

        Args:
            language: Its name, for messages.
            grammar: Its text.
        """
        self._heaviest(language, grammar, self._folder)

    def _heaviest(self, language: str, grammar: str, folder: Path | None) -> int:
        scan = look_through(language, grammar)
        imported = 0
        for parts in scan.imports:
            self._count += 1
            limits.check(language, "imported grammar files", self._count, limits.IMPORTS)
            if folder is None:
                raise LanguageError(f"language {language}: it is in no folder to import {'.'.join(parts)} from")
            path = folder.joinpath(*parts).with_suffix(".lark")
            text = self._import(path)
            imported = max(imported, self._heaviest(language, text, path.parent))
        return scan.heaviest(language, imported)

    def _import(self, path: Path) -> str:
        if str(path) not in self._texts:
            content = _read(path, limits.DEFINITION_BYTES - self._bytes)
            self._bytes += len(content)
            self.hashes[str(path)] = hashlib.sha256(content).hexdigest()
            self._texts[str(path)] = _decode(path, content)
        return self._texts[str(path)]

    def __call__(self, base: object, name: str) -> tuple[str, str]:
        """Return an imported file to Lark: its path and its text.

        Raises OSError if it is one of Lark's own, which Lark has to read itself; LanguageError if `examine` has not
        read it.

        Args:
            base: The importing grammar's folder; None, or another type, for one of Lark's own files.
            name: The file's path from there.
        """
        if not isinstance(base, str):
            raise FileNotFoundError(name)
        # Lark knows only the folders of the files that this method returned, not the grammar's own.
        for folder in (Path(base), self._folder):
            path = str(folder and folder / name)
            if path in self._texts:
                return path, self._texts[path]
        raise LanguageError(f"imported grammar file {name}: not found where the grammar is")

    @staticmethod
    def have_changed(hashes: dict[str, str]) -> bool:
        for path, digest in hashes.items():
            try:
                content = _read(Path(path), limits.DEFINITION_BYTES)
            except LanguageError:
                return True
            if hashlib.sha256(content).hexdigest() != digest:
                return True
        return False
