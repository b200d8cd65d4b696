"""Data of a language of token trees: the table `[token_trees]` of its TOML file, checked."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self, TypeVar

from fim_server.errors import LanguageError
from fim_server.language.definition import limits

T = TypeVar("T")


class Fields:
    """Reader of one TOML table that reports wrong and unknown keys.

    Args:
        language: The language's name, for messages.
        place: The table's key, for messages.
        value: The table.

    Raises LanguageError if the value is no table.
    """

    def __init__(self, language: str, place: str, value: object) -> None:
        self._language, self._place = language, place
        if not isinstance(value, dict):
            raise self.error("expected a table")
        self._left = dict(value)

    def error(self, what: str, key: str = "") -> LanguageError:
        place = f"{self._place}.{key}" if key else self._place
        return LanguageError(f"language {self._language}: {place}: {what}")

    def pattern(self, key: str) -> str:
        """Return a pattern; empty without the key."""
        return self.text(key, "", limits.TREE_PATTERN)

    def text(self, key: str, default: str | None = None, most: int = limits.TREE_DELIMITER) -> str:
        """Return a text of at least one character; ``default``: without one, the key is required."""
        if key not in self._left and default is not None:
            return default
        value = self._left.pop(key, None)
        if not isinstance(value, str) or not value:
            raise self.error("expected a text that is not empty", key)
        limits.check(self._language, f"characters of {self._place}.{key}", len(value), most)
        return value

    def flag(self, key: str) -> bool:
        value = self._left.pop(key, False)
        if not isinstance(value, bool):
            raise self.error("expected true or false", key)
        return value

    def number(self, key: str, least: int, most: int) -> int:
        """Return a number between two; the smaller one without the key."""
        value = self._left.pop(key, least)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise self.error(f"expected a number from {least} to {most}", key)
        return value

    def items(self, key: str) -> list[Any]:
        """Return a list of any values."""
        value = self._left.pop(key, [])
        if not isinstance(value, list):
            raise self.error("expected a list", key)
        limits.check(self._language, f"entries of {self._place}.{key}", len(value), limits.TREE_ENTRIES)
        return value

    def texts(self, key: str, most: int = limits.TREE_DELIMITER) -> tuple[str, ...]:
        value = self.items(key)
        if not all(isinstance(one, str) and one for one in value):
            raise self.error("expected a list of texts that are not empty", key)
        longest = max(map(len, value), default=0)
        limits.check(self._language, f"characters of a text of {self._place}.{key}", longest, most)
        return tuple(value)

    def rows(self, key: str, read: Callable[["Fields"], T], of_text: str = "") -> tuple[T, ...]:
        """Return the tables of a list, read; ``of_text``: key that a text in the place of a table stands for."""
        found = []
        for number, value in enumerate(self.items(key)):
            table = {of_text: value} if of_text and isinstance(value, str) else value
            fields = Fields(self._language, f"{self._place}.{key}[{number}]", table)
            found.append(read(fields))
            fields.end()
        return tuple(found)

    def patterns(self, key: str) -> dict[str, str]:
        """Return a table of patterns by the names of their lexemes."""
        value = self._left.pop(key, {})
        if not isinstance(value, dict) or not all(isinstance(one, str) and one for one in value.values()):
            raise self.error("expected a table of patterns", key)
        limits.check(self._language, f"entries of {self._place}.{key}", len(value), limits.TREE_ENTRIES)
        longest = max(map(len, value.values()), default=0)
        limits.check(self._language, f"characters of a pattern of {self._place}.{key}", longest, limits.TREE_PATTERN)
        wrong = next((name for name in value if not (name.isidentifier() and name.isascii() and name.isupper())), None)
        if wrong is not None:
            raise self.error(f"{wrong!r} is no name of a lexeme: capitals, digits and _", key)
        return dict(value)

    def end(self) -> None:
        """Raise LanguageError for a key that nothing has read."""
        for key in self._left:
            raise self.error("unknown key", key)


@dataclass(frozen=True)
class LineComment:
    """Comment up to the end of its line.

    Attributes:
        open: Its beginning.
        joined: A backslash at the end of a line continues it.
        pattern: Pattern of the whole comment; empty if the beginning tells it.
    """

    open: str
    joined: bool
    pattern: str

    @classmethod
    def read(cls, fields: Fields) -> Self:
        return cls(fields.text("open"), fields.flag("joined"), fields.pattern("pattern"))


@dataclass(frozen=True)
class BlockComment:
    """Comment between two delimiters.

    Attributes:
        open: Its beginning.
        close: Its end.
        depth: Greatest number of comments inside each other; 1 if they do not nest.
    """

    open: str
    close: str
    depth: int

    @classmethod
    def read(cls, fields: Fields) -> Self:
        return cls(fields.text("open"), fields.text("close"), fields.number("nested", 1, limits.TREE_NESTED))


@dataclass(frozen=True)
class Hole:
    """Code in a string.

    Attributes:
        open: Its beginning.
        close: Its end, a closing bracket.
    """

    open: str
    close: str

    @classmethod
    def read(cls, fields: Fields) -> Self:
        return cls(fields.text("open"), fields.text("close"))


@dataclass(frozen=True)
class StringKind:
    """Kind of string literals.

    Attributes:
        open: Its beginning.
        close: Its end; the beginning if there is no other.
        escape: Text after which the next character is ordinary; empty if there is none.
        plain: Texts in it that neither end it nor begin code, such as its end written twice.
        lines: It may run over several lines.
        joined: It may after an escape.
        more: Number of further characters of the end that still belong to it, as in four quotes.
        holes: Code in it.
        pattern: Pattern of the whole string; empty if the delimiters tell it.
    """

    open: str
    close: str
    escape: str
    plain: tuple[str, ...]
    lines: bool
    joined: bool
    more: int
    holes: tuple[Hole, ...]
    pattern: str

    @classmethod
    def read(cls, fields: Fields) -> Self:
        opening = fields.text("open")
        found = cls(
            opening,
            fields.text("close", opening),
            fields.text("escape", ""),
            fields.texts("plain"),
            fields.flag("lines"),
            fields.flag("joined"),
            fields.number("more", 0, limits.TREE_NESTED),
            fields.rows("holes", Hole.read),
            fields.pattern("pattern"),
        )
        if found.pattern and (found.holes or found.escape or found.plain or found.more):
            raise fields.error("either the whole or its parts expected", "pattern")
        taken = {found.open, found.close}
        for hole in found.holes:
            if hole.open in taken:
                raise fields.error(f"{hole.open!r} begins or ends the string, or another hole", "holes")
            taken.add(hole.open)
        return found


@dataclass(frozen=True)
class HereDocument:
    """Text up to a line with a word that its beginning names.

    Attributes:
        open: Text before the word.
        words: The words that are known.
        indented: Blanks may stand before the last one.
    """

    open: str
    words: tuple[str, ...]
    indented: bool

    @classmethod
    def read(cls, fields: Fields) -> Self:
        found = cls(fields.text("open"), fields.texts("words"), fields.flag("indented"))
        if not found.words:
            raise fields.error("expected at least one word", "words")
        return found


@dataclass(frozen=True)
class TokenTrees:
    """Data of a language.

    Attributes:
        language: Its name.
        brackets: Pairs of brackets, which nest.
        line_comments: Comments that end with their line.
        block_comments: Comments between two delimiters.
        strings: Kinds of string literals.
        here_documents: Kinds of here-documents.
        letters: Characters of names beside letters, digits and `_`.
        word: Pattern of names; empty for letters, digits and :attr:`letters`.
        number: Pattern of numbers; empty for the usual one.
        operator: Pattern of a single sign; empty for all characters that begin nothing else.
        no_operators: Characters that are no signs by themselves.
        opaque: Patterns of other lexemes, by their names.
        lines: Patterns of lexemes that only blanks precede on their line, by their names.
        lexemes: Patterns of lexemes that only :attr:`trees` and :attr:`rules` use, by their names.
        trees: Further alternatives of a tree, in Lark's notation.
        rules: Further rules, in Lark's notation.
    """

    language: str
    brackets: tuple[tuple[str, str], ...]
    line_comments: tuple[LineComment, ...]
    block_comments: tuple[BlockComment, ...]
    strings: tuple[StringKind, ...]
    here_documents: tuple[HereDocument, ...]
    letters: str
    word: str
    number: str
    operator: str
    no_operators: str
    opaque: Mapping[str, str]
    lines: Mapping[str, str]
    lexemes: Mapping[str, str]
    trees: tuple[str, ...]
    rules: tuple[str, ...]

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> Self:
        """Read the table `[token_trees]` of a TOML file's fields, and its brackets.

        Raises LanguageError if a key is unknown or has a wrong value.
        """
        language = str(spec.get("name"))
        fields = Fields(language, "token_trees", spec.get("token_trees"))
        pairs = spec.get("brackets", [])
        if not isinstance(pairs, list) or not all(_is_pair(pair) for pair in pairs):
            raise LanguageError(f"language {language}: brackets: expected pairs of texts")
        openings, closings = ({pair[end] for pair in pairs} for end in (0, 1))
        for both in sorted(openings & closings):
            raise LanguageError(f"language {language}: brackets: {both!r} opens and closes one")
        found = cls(
            language,
            tuple((opening, closing) for opening, closing in pairs),
            fields.rows("line_comments", LineComment.read, "open"),
            fields.rows("block_comments", BlockComment.read),
            fields.rows("strings", StringKind.read, "open"),
            fields.rows("here_documents", HereDocument.read),
            fields.text("letters", ""),
            fields.pattern("word"),
            fields.pattern("number"),
            fields.pattern("operator"),
            fields.text("no_operators", ""),
            fields.patterns("opaque"),
            fields.patterns("lines"),
            fields.patterns("lexemes"),
            fields.texts("trees", limits.TREE_PATTERN),
            fields.texts("rules", limits.TREE_PATTERN),
        )
        fields.end()
        for number, kind in enumerate(found.strings):
            for hole in kind.holes:
                if hole.close not in closings:
                    raise fields.error(f"{hole.close!r} is no closing bracket of brackets", f"strings[{number}].holes")
        return found


def _is_pair(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(isinstance(one, str) and one for one in value)
