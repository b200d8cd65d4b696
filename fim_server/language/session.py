"""Languages, sessions and states: the questions that the engine answers (design, section 1)."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from os import PathLike
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fim_server import _core
from fim_server.errors import LanguageError, SearchLimitError
from fim_server.language import compile as grammar
from fim_server.language.shapes import Shape
from fim_server.language.spelling import Spelling

_SURROGATES = re.compile("[\ud800-\udfff]")

_MOST_SHAPES = 32


class Vocabulary(Protocol):
    """What a session asks of a vocabulary: the engine's own, and how many tokens its masks have."""

    core: _core.Vocabulary
    size: int


@dataclass(frozen=True)
class Verdict:
    """What a middle is, between its two contexts.

    Attributes:
        viable: Some text can follow the middle so that left + middle + text + right is a program.
        complete: left + middle + right is a program.
        rejected_at: Offset in characters of the first character that cannot be; None if the middle is viable.
    """

    viable: bool
    complete: bool
    rejected_at: int | None


@dataclass(frozen=True)
class Explanation:
    """Why a text goes no further.

    Attributes:
        accepted: The part of the text that is allowed.
        rejected_at: Offset in bytes of the first impossible byte; None if all of the text is allowed.
        expected: What may come after the last whole symbol: literals in quotes, other lexemes by name.
        open_left: Open constructs of the left side, innermost first.
        open_right: Brackets that the right side closes, the first one first.
        message: All of it in one sentence.
    """

    accepted: str
    rejected_at: int | None
    expected: list[str] = field(default_factory=list)
    open_left: list[str] = field(default_factory=list)
    open_right: list[str] = field(default_factory=list)
    message: str = ""


@dataclass(frozen=True)
class OpenConstruct:
    """What the end of the left context is inside of.

    Attributes:
        name: What the language's definition calls it (`def`, `call`, `list`), or a bracket.
        offset: Where it begins in the left context, in characters.
    """

    name: str
    offset: int


class Language:
    """A compiled language. Load it once; it is immutable and shared by all sessions and threads."""

    def __init__(self, definition: grammar.Definition) -> None:
        """Compiles a definition; use `load` or `from_files`."""
        self.core = grammar.compile_definition(definition)
        self._shaped: dict[Shape, _core.Language] = {}
        self.name = definition.name
        self.version = definition.version
        """The version it is narrowed to; None is the newest, or that it has no versions."""
        self.suffixes = definition.suffixes
        self.spelling = Spelling.from_spec(definition.spec)
        """Texts of the language that more than its grammar has to know."""

    @staticmethod
    def load(name: str, version: str | None = None) -> "Language":
        """Loads a language that comes with the package, narrowed to a version of it (None, `newest`: the newest).

        Raises:
            LanguageError: There is no such language or version, in one line.
        """
        return _load(name, version)

    @staticmethod
    def from_files(
        grammar_path: str | PathLike[str], spec_path: str | PathLike[str], version: str | None = None
    ) -> "Language":
        """Compiles a language from a Lark grammar and a TOML file of your own.

        Raises:
            LanguageError: Whatever is wrong with them, in one line.
        """
        return Language(grammar.read(Path(grammar_path), Path(spec_path), version))

    @staticmethod
    def names() -> list[str]:
        """Names of the languages that come with the package."""
        return grammar.names()

    @staticmethod
    def versions(name: str) -> tuple[str, ...]:
        """The versions that a language can be narrowed to, oldest first; the last is the newest, its default.

        Empty for a language that has no versions.

        Raises:
            LanguageError: There is no such language.
        """
        return grammar.builtin_versions(name).known

    @staticmethod
    def for_path(
        path: str | PathLike[str], name: str | None = None, versions: Mapping[str, str | None] | None = None
    ) -> "Language":
        """The language of a file, as the file's project has it.

        Args:
            path: Names the language by its suffix, and the project by its folders. The file need not exist.
            name: The language, where the suffix does not matter.
            versions: By language, the version (or `newest`) to use whatever the project says.

        Raises:
            LanguageError: No language has the suffix or name, or the language has no such version.
        """
        name = name or _name_for(Path(path).suffix)
        version = (versions or {}).get(name)
        return _load(name, version or grammar.builtin_versions(name).of_project(Path(path)))

    @staticmethod
    def name_for_path(path: str | PathLike[str]) -> str:
        """The name of the language that files with the path's suffix are in.

        Raises:
            LanguageError: No language has the suffix.
        """
        return _name_for(Path(path).suffix)

    @property
    def title(self) -> str:
        """The name, with the version if it is narrowed to one."""
        return self.name if self.version is None else f"{self.name} {self.version}"

    def shaped(self, shape: Shape) -> _core.Language:
        """The engine's form of the language for middles of a shape.

        Raises:
            ValueError: See `Session.matcher`.
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
        if len(self._shaped) >= _MOST_SHAPES:
            self._shaped.clear()
        self._shaped[shape] = made
        return made

    def open(self, left: str, right: str) -> "Session":
        """Opens a session on the text left and right of a cursor. Never raises on the user's code."""
        left, right = _encodable(left), _encodable(right)
        opened = self.core.open(left, right)
        return Session(
            opened,
            lambda shape, left, right: self.shaped(shape).open(left, right),
            (left, right),
            spelling=self.spelling,
        )

    def __repr__(self) -> str:
        return f"<Language {self.title}>"


def _load(name: str, version: str | None) -> Language:
    # The newest goes by several names; it is compiled and kept once.
    return _load_narrowed(name, version and grammar.builtin_versions(name).narrowed(version))


@cache
def _load_narrowed(name: str, version: str | None) -> Language:
    return Language(grammar.read_builtin(name, version))


def _name_for(suffix: str) -> str:
    for name in grammar.names():
        if suffix in grammar.read_builtin(name).suffixes:
            return name
    raise LanguageError(f"no language for files named *{suffix or '(no suffix)'}; name one with --language")


def _encodable(text: str) -> str:
    """Lone surrogates are no text; as NUL, which no language takes, they are refused instead of raising."""
    return text if text.isascii() else _SURROGATES.sub("\0", text)


class Session:
    """One pair of contexts. Its states may be used from several threads; they wait for each other."""

    def __init__(
        self,
        core: _core.Session,
        reopen: Callable[[Shape, str, str], _core.Session] | None = None,
        texts: tuple[str, str] = ("", ""),
        earlier: Mapping[Shape, _core.Session] | None = None,
        spelling: Spelling | None = None,
    ) -> None:
        """Wraps the engine's session; use `Language.open`.

        Args:
            core: The engine's session.
            reopen: Opens two contexts for middles of a shape.
            texts: The left and the right context, as the engine was given them.
            earlier: By shape, a session on the same right context that one of that shape can go on from.
            spelling: That of the language.
        """
        self._core = core
        self._reopen = reopen
        self._texts = texts
        self._earlier = earlier or {}
        self.spelling = spelling or Spelling()
        """That of the session's language."""
        self._shaped: dict[Shape, _core.Session] = {}

    @property
    def guarantee(self) -> str:
        """`exact`: every answer is exact. `none`: left and right do not parse, so every middle is refused."""
        return self._core.guarantee

    @property
    def diagnostics(self) -> list[str]:
        """Why the guarantee is not `exact`, one line each."""
        return self._core.diagnostics

    @property
    def broken_at(self) -> tuple[str, int] | None:
        """Where the contexts fail, if the guarantee is `none`: which one, and the offset in it in characters.

        `("left", n)`: no program begins with the left context up to and with that character.
        `("right", n)`: no parse of the right context gets past the symbol that begins there (an opening bracket: it is
        never closed). It is read as the end of the left context leaves it, in code or in a string.
        `("between", 0)`: each is possible by itself.
        """
        found = self._core.broken_at
        if found is None:
            return None
        side, at = found
        text = self._texts[0] if side == "left" else self._texts[1]
        return side, len(text.encode()[:at].decode("utf-8", "ignore"))

    @property
    def inside(self) -> str | None:
        """`comment` or `string`: what the cursor is inside of, whatever the middle will be. None: code, or not known.

        The text of a formatted string is a string; its replacement fields are code, but for their format specs. None as
        well where the left context does not parse.
        """
        return self._core.inside

    def check(self, middle: str) -> Verdict:
        """Says whether a middle is viable, and whether it is complete."""
        text = _encodable(middle)
        viable, complete, rejected_at = self._core.check(text)
        if rejected_at is not None:
            rejected_at = len(text.encode()[:rejected_at].decode("utf-8", "ignore"))
        return Verdict(viable, complete, rejected_at)

    def quotient_grammar(self) -> str:
        """The explicit quotient grammar in BNF (paper, Figure 2): the lexeme sequences that a middle may be.

        Literals are quoted; a lexeme that the cursor cuts has `…` on the side that lies outside the middle.
        """
        return self._core.quotient_grammar()

    def open_constructs(self) -> list[OpenConstruct]:
        """What is certainly open at the end of the left context, innermost first.

        Those constructs that the language's definition names, and brackets: `x = f(a, [1, ` has a list, a call and an
        assignment open. What may have ended already is not, even if it could go on (an `if` that may or may not get an
        `else`). A call begins where what is called does. Empty where the left context does not parse.
        """
        encoded = self._texts[0].encode()
        found = self._core.open_constructs()
        return [OpenConstruct(name, len(encoded[:at].decode("utf-8", "ignore"))) for name, at in found]

    def moved(self, left: str) -> "Session | None":
        """A session on another left context and the same right one, which is not read again; likewise for shapes.

        It answers as one that `Language.open` gives, and both go on working. None where it has to be opened afresh,
        because too much has been opened this way, or because the right context has a say in what follows one of the two
        alone. `fim_server.text.reuse.Sessions` does that.
        """
        left = _encodable(left)
        core = self._core.moved(left)
        if core is None:
            return None
        shaped = self._shaped.copy()  # another thread may be adding to it
        earlier = {**self._earlier, **shaped}
        if len(earlier) > _MOST_SHAPES:
            earlier = shaped
        return Session(core, self._reopen, (left, self._texts[1]), earlier, self.spelling)

    def start(self) -> "State":
        """A state before the middle's first byte."""
        return State(self._core.start())

    def matcher(self, vocabulary: Vocabulary, shape: Shape | str | None = None) -> "Matcher":
        """A matcher before the middle's first token.

        Args:
            vocabulary: The model's tokens.
            shape: What the middle must look like; a str is a regular expression that it matches as a whole. The first
                matcher of a shape opens the contexts once more.

        Raises:
            ValueError: A shape that is not understood, that no text has, or of too many states; or a language whose
                lexemes no blank keeps apart.
            TypeError: What is no shape at all.
        """
        return Matcher(self._with(shape).start().matcher(vocabulary.core), vocabulary)

    def _with(self, shape: Shape | str | None) -> _core.Session:
        if shape is None:
            return self._core
        if isinstance(shape, str):
            shape = Shape.regex(shape)
        if not isinstance(shape, Shape):
            raise TypeError(f"a shape is a Shape or a regular expression, not {type(shape).__name__}")
        known = self._shaped.get(shape)
        if known is not None:
            return known
        if self._reopen is None:
            raise ValueError("a session that was not opened by a language has no shapes")
        earlier = self._earlier.get(shape)
        opened = (earlier and earlier.moved(self._texts[0])) or self._reopen(shape, *self._texts)
        if len(self._shaped) >= _MOST_SHAPES:
            self._shaped.clear()
        self._shaped[shape] = opened
        return opened


class State:
    """A middle in progress, in bytes."""

    def __init__(self, core: _core.State) -> None:
        """Wraps the engine's state; use `Session.start`."""
        self._core = core

    def advance(self, text: str | bytes) -> int:
        """Appends a text up to its first impossible byte; returns the number of bytes appended."""
        return self._core.advance(text if isinstance(text, bytes) else _encodable(text).encode())

    def is_complete(self) -> bool:
        """Whether left + middle + right is a program."""
        return self._core.is_complete()

    def is_viable(self) -> bool:
        """Whether some text can still follow; false only where the session's guarantee is `none`."""
        return self._core.is_viable()

    @property
    def inside(self) -> str | None:
        """`comment` or `string`: what the end of the middle is inside of, as `Session.inside`."""
        return self._core.inside

    def fork(self) -> "State":
        """An independent state at the same place."""
        return State(self._core.fork())

    def rollback(self, n_bytes: int) -> None:
        """Takes back bytes.

        Raises:
            ValueError: There are not so many.
        """
        if n_bytes < 0:
            raise ValueError(f"cannot take back {n_bytes} bytes")
        self._core.rollback(n_bytes)

    def __len__(self) -> int:
        """Bytes of middle so far."""
        return len(self._core)

    def distance(self) -> int | None:
        """Least bytes of text that complete the middle; None if no text does.

        Raises:
            SearchLimitError: The search gave up, which is no answer.
        """
        found = self._core.shortest_completion()
        return None if found is None else len(found)

    def shortest_completion(self) -> str | None:
        """A shortest text that completes the middle; None if no text does.

        If the middle ends inside a character, the text's first bytes finish it and stand as U+FFFD here.

        Raises:
            SearchLimitError: The search gave up, which is no answer.
        """
        found = self._core.shortest_completion()
        return None if found is None else found.decode("utf-8", "replace")

    def explain(self, text: str) -> Explanation:
        """Says how far a text goes from here, what may come there, and what stands against the rest."""
        encoded = _encodable(text).encode()
        accepted, viable, expected, open_left, open_right = self._core.explain(encoded)
        shown = encoded[:accepted].decode("utf-8", "ignore")
        rejected_at = None if viable else accepted
        return Explanation(
            accepted=shown,
            rejected_at=rejected_at,
            expected=expected,
            open_left=open_left,
            open_right=open_right,
            message=_message(encoded, rejected_at, expected, open_left, open_right),
        )


def _message(
    text: bytes, rejected_at: int | None, expected: list[str], open_left: list[str], open_right: list[str]
) -> str:
    parts = []
    if rejected_at is None:
        parts.append("all of the text is possible here")
    elif rejected_at < len(text):
        refused = text[rejected_at:].decode("utf-8", "replace")[:1]
        parts.append(f"{refused!r} cannot come here")
    else:
        parts.append("nothing can come here: left and right context do not meet")
    if expected:
        more = f" and {len(expected) - 12} more" if len(expected) > 12 else ""
        parts.append(f"expected {', '.join(expected[:12])}{more}")
    if open_left:
        parts.append(f"inside {', '.join(open_left[:4])}")
    if open_right:
        parts.append(f"the right side closes {', '.join(open_right[:4])}")
    return "; ".join(parts)


class Matcher:
    """A middle in progress, in tokens of a vocabulary."""

    def __init__(self, core: _core.Matcher, vocabulary: Vocabulary) -> None:
        """Wraps the engine's matcher; use `Session.matcher`."""
        self.core = core
        self._vocabulary = vocabulary

    def mask(self) -> NDArray[np.bool_]:
        """Which tokens may follow. Shape: [vocabulary size]. The end tokens are allowed iff the middle is complete."""
        words = np.frombuffer(self.core.mask(), dtype=np.uint8)
        return np.unpackbits(words, bitorder="little")[: self._vocabulary.size].astype(np.bool_)

    def fill_mask(self, words: NDArray[np.uint32]) -> None:
        """Fills a packed mask in place: bit `id % 32` of word `id // 32`. Shape: [ceil(vocabulary size / 32)].

        Raises:
            ValueError: The array has another length, or gaps.
            BufferError: The array is of another type or read-only.
        """
        self.core.fill_mask(words)

    def fill_mask_plain(self, words: NDArray[np.uint32]) -> None:
        """The same mask by a walk over the whole vocabulary, byte by byte, with nothing kept: `fill_mask`'s plain twin.

        Raises:
            ValueError: The array has another length, or gaps.
            BufferError: The array is of another type or read-only.
        """
        self.core.fill_mask_plain(words)

    def forced(self) -> bytes:
        """The bytes that every continuation begins with; none where the middle may end. At most 256.

        `fim_server.tokens.forced.forced_tokens` says which tokens they are.
        """
        return self.core.forced()

    def allows(self, token_id: int) -> bool:
        """Whether one token may follow, without the price of a whole mask.

        Raises:
            ValueError: The token is outside the vocabulary.
        """
        return self.core.allows(token_id)

    def plan(self, enough: int = 0) -> list[int] | None:
        """Tokens that complete the middle; an empty list where it is complete, None if the session has no guarantee.

        They spell a short completion, not always the shortest, in the fewest tokens that do; one that is known already
        will do if it has at most ``enough`` tokens. Raises SearchLimitError if none is found: the search is bounded, a
        completion may have no tokens in the vocabulary, and middles of a shape have no plans.
        """
        tokens, unknown = self.core.landing(enough)
        if unknown:
            raise SearchLimitError("no plan was found within the search's limit")
        return tokens

    def lands(self, token_id: int, left: int) -> bool | None:
        """Whether the middle can end within ``left`` tokens after a token, by a :meth:`plan`; None if not known.

        True for an end token. Raises ValueError for a token that is not allowed, or outside the vocabulary.
        """
        return self.core.lands(token_id, left)

    def fill_landing_mask(self, words: NDArray[np.uint32], left: int) -> int:
        """:meth:`fill_mask` with the tokens alone that :meth:`lands` is true of.

        Returns how many tokens ``left`` has ruled out. Design, section 10.
        """
        return self.core.fill_landing_mask(left, words)

    def commit(self, token_id: int) -> None:
        """Appends a token.

        Raises:
            ValueError: The token is not allowed here, or outside the vocabulary; nothing changes then.
        """
        self.core.commit(token_id)

    def rollback(self, n_tokens: int) -> None:
        """Takes back tokens.

        Raises:
            ValueError: There are not so many.
        """
        if n_tokens < 0:
            raise ValueError(f"cannot take back {n_tokens} tokens")
        self.core.rollback(n_tokens)

    def is_complete(self) -> bool:
        """Whether left + middle + right is a program."""
        return self.core.is_complete()

    @property
    def inside(self) -> str | None:
        """`comment` or `string`: what the end of the middle is inside of, as `Session.inside`."""
        return self.core.inside
