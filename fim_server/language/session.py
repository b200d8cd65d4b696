"""Two contexts, opened: the questions that the engine answers about the middle between them (design, section 1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from fim_server import _core
from fim_server.language.matcher import Matcher, Vocabulary
from fim_server.language.shapes import Shape
from fim_server.language.spelling import Spelling
from fim_server.language.state import State
from fim_server.language.texts import characters, encodable

MOST_SHAPES = 32
"""Shapes that are kept by a language, and by a session; beyond them all are forgotten."""

FLOORS = ("off", "brackets", "block")
"""See `Session.floored`."""


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
class OpenConstruct:
    """What the end of the left context is inside of.

    Attributes:
        name: What the language's definition calls it (`def`, `call`, `list`), or a bracket.
        offset: Where it begins in the left context, in characters.
    """

    name: str
    offset: int


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
        self._floored: dict[str, Session] = {}
        self._earlier_floored: dict[str, Session] = {}
        self._floor = "off"

    @property
    def floor(self) -> str:
        """The floor that middles keep, see `floored`; `off` as well where none could."""
        return self._floor

    @property
    def kept(self) -> int:
        """How many brackets, or blocks, the middle has to leave open by the session's floor."""
        return self._core.floor

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
        return side, characters(text.encode(), at)

    @property
    def shares_masks(self) -> bool:
        """Whether the right context decides no more than where the middle may end: masks are then any other file's."""
        return self._core.is_loose()

    @property
    def inside(self) -> str | None:
        """`comment` or `string`: what the cursor is inside of, whatever the middle will be. None: code, or not known.

        The text of a formatted string is a string; its replacement fields are code, but for their format specs. None as
        well where the left context does not parse.
        """
        return self._core.inside

    @property
    def held(self) -> int:
        """Bytes of memory that opening it took, for its shapes as well, with the sessions it shares the work of.

        Those are the sessions that it was moved from.
        """
        shaped = {**self._earlier, **self._shaped.copy()}  # another thread may be adding to it
        floored = {**self._earlier_floored, **self._floored.copy()}
        own = [session for session in floored.values() if session is not self and session.kept]
        return self._core.held + sum(core.held for core in shaped.values()) + sum(session.held for session in own)

    def check(self, middle: str) -> Verdict:
        """Says whether a middle is viable, and whether it is complete.

        Raises:
            TypeError: The middle is no str.
        """
        text = encodable(middle, "middle")
        viable, complete, rejected_at = self._core.check(text)
        if rejected_at is not None:
            rejected_at = characters(text.encode(), rejected_at)
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
        return [OpenConstruct(name, characters(encoded, at)) for name, at in found]

    def moved(self, left: str) -> Session | None:
        """A session on another left context and the same right one, which is not read again; likewise for shapes.

        It answers as one that `Language.open` gives, and both go on working. None where it has to be opened afresh,
        because too much has been opened this way, or because the right context has a say in what follows one of the two
        alone. `fim_server.text.reuse.Sessions` does that.
        """
        left = encodable(left, "left")
        core = self._core.moved(left)
        if core is None:
            return None
        shaped = self._shaped.copy()  # another thread may be adding to it
        earlier = {**self._earlier, **shaped}
        if len(earlier) > MOST_SHAPES:
            earlier = shaped
        moved = Session(core, self._reopen, (left, self._texts[1]), earlier, self.spelling)
        moved._earlier_floored = {**self._earlier_floored, **self._floored.copy()}
        return moved

    def floored(self, floor: str) -> Session:
        """A session of the same contexts against context escape: text that closes what is open, and opens it again.

        Verdicts, masks, plans and completions are exact for the language and the floor together. Where no middle keeps
        the floor, it is this session, and its `floor` says `off`. The first one reads both contexts once more, unless
        there is nothing to keep.

        Args:
            floor: `off`, the whole language. `brackets`: of the brackets that the left context opens, the middle closes
                none that the right one closes: the middle's depth does not fall below the number of closers that the
                right context, read on from the left one, does not open itself (nothing is kept where that cannot be
                said: in a formatted string). `block`: no line that begins in the middle is indented by less than the
                block that the cursor is in; in an indentation, that is the innermost one that begins at the cursor's
                column or left of it.

        Raises:
            ValueError: There is no such floor.
        """
        if floor not in FLOORS:
            raise ValueError(f"floor: one of {', '.join(FLOORS)} expected, not {floor}")
        if floor == "off" or floor == self._floor:
            return self
        if self._floor != "off":
            raise ValueError(f"the session keeps the floor {self._floor} already")
        known = self._floored.get(floor)
        if known is None:
            known = self._floored[floor] = self._open_floored(floor)
        return known

    def _open_floored(self, floor: str) -> Session:
        earlier = self._earlier_floored.get(floor)
        core = self._core.floored(floor, None if earlier is None else earlier._core)  # noqa: SLF001
        if core is None:
            return self
        shaped = None if earlier is None else {**earlier._earlier, **earlier._shaped.copy()}  # noqa: SLF001
        session = Session(core, None, self._texts, shaped, self.spelling)
        session._reopen = lambda shape, *texts: self._shaped_on_floor(session, shape, floor)
        session._floor = floor
        return session

    def _shaped_on_floor(self, session: Session, shape: Shape, floor: str) -> _core.Session:
        core = self._with(shape)
        return core.floored(floor, session._earlier.get(shape)) or core

    def start(self, shape: Shape | str | None = None) -> State:
        """Return a state before the middle's first byte.

        Args:
            shape: As for `matcher`. The state is viable if and only if some middle of that shape completes the program.

        Raises:
            ValueError: As `matcher`.
            TypeError: The shape is of no kind that `matcher` takes.
        """
        return State(self._with(shape).start())

    def matcher(
        self, vocabulary: Vocabulary, shape: Shape | str | None = None, *, healing: str | bytes = b""
    ) -> Matcher:
        """A matcher before the middle's first token.

        Args:
            vocabulary: The model's tokens.
            shape: What the middle must look like; a str is a regular expression that it matches as a whole. The first
                matcher of a shape opens the contexts once more.
            healing: A text that the model writes again before it goes on: the end of the left context, taken from its
                prompt (token healing). A token may reach from it into the middle, whose tokens the matcher counts from
                the beginning of this text; the shape and all verdicts are of what comes after it.

        Raises:
            ValueError: A shape that is not understood, that no text has, or of too many states; or a language whose
                lexemes no blank keeps apart.
            TypeError: What is no vocabulary, no shape or no text at all.
        """
        again = healing if isinstance(healing, bytes) else encodable(healing, "healing").encode()
        if not isinstance(getattr(vocabulary, "core", None), _core.Vocabulary):
            raise TypeError(f"vocabulary: a Vocabulary expected, not {type(vocabulary).__name__}")
        return Matcher(self._with(shape).start().matcher(vocabulary.core, again), vocabulary)

    def _with(self, shape: Shape | str | None) -> _core.Session:
        if shape is None:
            return self._core
        if isinstance(shape, str):
            shape = Shape.regex(shape)
        if not isinstance(shape, Shape):
            raise TypeError(f"shape: a Shape or a regular expression expected, not {type(shape).__name__}")
        known = self._shaped.get(shape)
        if known is not None:
            return known
        if self._reopen is None:
            raise ValueError("a session that was not opened by a language has no shapes")
        earlier = self._earlier.get(shape)
        if self._floor != "off":
            earlier = None  # whether it keeps as much is found out where the shape is opened
        opened = (earlier and earlier.moved(self._texts[0])) or self._reopen(shape, *self._texts)
        if len(self._shaped) >= MOST_SHAPES:
            self._shaped.clear()
        self._shaped[shape] = opened
        return opened
