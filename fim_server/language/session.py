"""Session on two contexts: the engine's answers about the middle between them (design, section 1)."""

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
"""Shapes that a language, and a session, keeps; beyond them all are forgotten."""

WHOLE = ("exact", "balanced")
"""Guarantees for the whole text: all of the language's syntax, or its comments, strings and brackets."""

FLOORS = ("off", "brackets", "block")
"""Floors of `Session.floored`."""


@dataclass(frozen=True)
class Verdict:
    """Verdict on a middle between its two contexts.

    Attributes:
        viable: Some text can follow the middle so that left + middle + text + right is a program.
        complete: left + middle + right is a program.
        rejected_at: Offset in characters of the first impossible character; None if the middle is viable.
    """

    viable: bool
    complete: bool
    rejected_at: int | None


@dataclass(frozen=True)
class OpenConstruct:
    """Construct that is open at the end of the left context.

    Attributes:
        name: Its name in the language's definition (`def`, `call`, `list`), or a bracket.
        offset: Offset of its beginning in the left context, in characters.
    """

    name: str
    offset: int


class Session:
    """One pair of contexts. Its states may be used from several threads; they wait for each other.

    Attributes:
        spelling: Texts of the session's language.
    """

    def __init__(
        self,
        core: _core.Session,
        reopen: Callable[[Shape, str, str], _core.Session] | None = None,
        texts: tuple[str, str] = ("", ""),
        earlier: Mapping[Shape, _core.Session] | None = None,
        spelling: Spelling | None = None,
        guarantee: str = "exact",
    ) -> None:
        """Wrap the engine's session; use `Language.open`.

        Args:
            core: The engine's session.
            reopen: Opens two contexts for middles of a shape.
            texts: The left and the right context, as given to the engine.
            earlier: By shape, a session on the same right context that one of that shape can go on from.
            spelling: Texts of the language.
            guarantee: The language's guarantee.
        """
        self._core = core
        self._guarantee = guarantee
        self._reopen = reopen
        self._texts = texts
        self._earlier = earlier or {}
        self.spelling = spelling or Spelling()
        self._shaped: dict[Shape, _core.Session] = {}
        self._floored: dict[str, Session] = {}
        self._earlier_floored: dict[str, Session] = {}
        self._floor = "off"

    @property
    def floor(self) -> str:
        """Return the floor that middles keep, see `floored`; also `off` if none could."""
        return self._floor

    @property
    def kept(self) -> int:
        """Return how many brackets, or blocks, the middle has to leave open by the session's floor."""
        return self._core.floor

    @property
    def guarantee(self) -> str:
        """Return the language's guarantee; `none` if left and right do not parse: every middle is refused.

        `exact`: every answer is exact for the language. `balanced`: for its comments, strings and brackets.
        """
        return "none" if self._core.guarantee == "none" else self._guarantee

    @property
    def language_guarantee(self) -> str:
        """Return the language's guarantee, whether or not left and right parse."""
        return self._guarantee

    @property
    def diagnostics(self) -> list[str]:
        """Return the reasons for the guarantee `none`, one line each."""
        return self._core.diagnostics

    @property
    def broken_at(self) -> tuple[str, int] | None:
        """Return the context that fails, if the guarantee is `none`, and the offset in it in characters.

        `("left", n)`: no program begins with the left context up to and with that character. `("right", n)`: no parse
        of the right context gets past the symbol that begins there (an opening bracket: it is never closed). It is read
        as the end of the left context leaves it, in code or in a string. `("between", 0)`: each is possible by itself.
        """
        found = self._core.broken_at
        if found is None:
            return None
        side, at = found
        text = self._texts[0] if side == "left" else self._texts[1]
        return side, characters(text.encode(), at)

    @property
    def shares_masks(self) -> bool:
        """Return whether the right context decides only where the middle may end: masks equal another file's."""
        return self._core.is_loose()

    @property
    def inside(self) -> str | None:
        """Return `comment` or `string` if the cursor is inside of one, whatever the middle; None: code, or unknown.

        The text of a formatted string is a string; its replacement fields are code, except for their format specs. None
        as well if the left context does not parse.
        """
        return self._core.inside

    @property
    def held(self) -> int:
        """Return the bytes that opening the session, its shapes, and the sessions it was moved from took."""
        shaped = {**self._earlier, **self._shaped.copy()}  # another thread may be adding to it
        floored = {**self._earlier_floored, **self._floored.copy()}
        own = [session for session in floored.values() if session is not self and session.kept]
        return self._core.held + sum(core.held for core in shaped.values()) + sum(session.held for session in own)

    def check(self, middle: str) -> Verdict:
        """Return whether a middle is viable, and whether it is complete."""
        text = encodable(middle, "middle")
        viable, complete, rejected_at = self._core.check(text)
        if rejected_at is not None:
            rejected_at = characters(text.encode(), rejected_at)
        return Verdict(viable, complete, rejected_at)

    def quotient_grammar(self) -> str:
        """Return the explicit quotient grammar in BNF (paper, Figure 2): the lexeme sequences that a middle may be.

        Literals are quoted; a lexeme that the cursor cuts has `…` on the side that lies outside the middle.
        """
        return self._core.quotient_grammar()

    def open_constructs(self) -> list[OpenConstruct]:
        """Return the constructs that are certainly open at the end of the left context, innermost first.

        They are brackets and the constructs that the language's definition names: `x = f(a, [1, ` has a list, a call
        and an assignment open. A construct that may have ended is not among them, even if it could go on (an `if` that
        may or may not get an `else`). A call begins with its callee. Empty if the left context does not parse.
        """
        encoded = self._texts[0].encode()
        found = self._core.open_constructs()
        return [OpenConstruct(name, characters(encoded, at)) for name, at in found]

    def moved(self, left: str) -> Session | None:
        """Return a session on another left context and the same right one, which is not read again.

        It answers as one of `Language.open`, and both go on working; the same holds for shapes. None if it has to be
        opened afresh: too much has been opened this way, or the right context affects what follows one of the two left
        contexts alone. Callers use `fim_server.text.reuse.Sessions`.
        """
        left = encodable(left, "left")
        core = self._core.moved(left)
        if core is None:
            return None
        shaped = self._shaped.copy()  # another thread may be adding to it
        earlier = {**self._earlier, **shaped}
        if len(earlier) > MOST_SHAPES:
            earlier = shaped
        moved = Session(core, self._reopen, (left, self._texts[1]), earlier, self.spelling, self._guarantee)
        moved._earlier_floored = {**self._earlier_floored, **self._floored.copy()}
        return moved

    def floored(self, floor: str) -> Session:
        """Return a session on the same contexts that refuses context escape: text that closes open constructs.

        Verdicts, masks, plans and completions are exact for the language and the floor together. If no middle keeps the
        floor, it is this session, and its `floor` is `off`. The first one reads both contexts once more, unless there
        is nothing to keep.

        With `brackets` the middle closes no bracket that the left context opens and the right one closes. Its depth
        does not fall below the number of closers that the right context, read on from the left one, does not open
        itself. (In a formatted string that number is unknown and none is kept.)

        With `block` no line that begins in the middle is indented by less than the cursor's block. In an indentation,
        that is the innermost block that begins at the cursor's column or left of it.

        Raises ValueError if there is no such floor.

        Args:
            floor: `off` (the whole language), `brackets` or `block`.
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
        session = Session(core, None, self._texts, shaped, self.spelling, self._guarantee)
        session._reopen = lambda shape, *texts: self._shaped_on_floor(session, shape, floor)
        session._floor = floor
        return session

    def _shaped_on_floor(self, session: Session, shape: Shape, floor: str) -> _core.Session:
        core = self._with(shape)
        return core.floored(floor, session._earlier.get(shape)) or core

    def start(self, shape: Shape | str | None = None) -> State:
        """Return a state before the middle's first byte.

        Raises ValueError as `matcher`.

        Args:
            shape: As for `matcher`. The state is viable if and only if some middle of that shape completes the program.
        """
        return State(self._with(shape).start())

    def matcher(
        self, vocabulary: Vocabulary, shape: Shape | str | None = None, *, healing: str | bytes = b""
    ) -> Matcher:
        """Return a matcher before the middle's first token.

        Raises ValueError for a shape that is not understood, that no text has, or of too many states; or a language
        whose lexemes no blank keeps apart.

        Args:
            vocabulary: The model's tokens.
            shape: Shape of the middle; a str is a regular expression that it matches as a whole. The first matcher of a
                shape opens the contexts once more.
            healing: Text that the model writes again first: the end of the left context, taken from its prompt (token
                healing). A token may reach from it into the middle. The matcher counts tokens from the beginning of
                this text; the shape and all verdicts concern the text after it.
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
