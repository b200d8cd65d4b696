"""Names along a text that is being written: which could still be loaded, and which never could.

A tracker reads the text as :class:`.Reader` does. It refuses a name that nothing visible binds, with two
exceptions. The name may be an argument's. The rest of the statement may bind it: by ``for``, by ``=``, by ``:=``.
So a text that it takes may still load an unbound name, which :mod:`.model` finds in the end. A text that it refuses has
no valid continuation, except those that docs/guarantee.md lists.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from fim_server.language_support.protocol import UndefinedNameError
from fim_server.language_support.python.lexemes import (
    ANY_CASE,
    EXPRESSION_WORDS,
    FURTHER_WORDS,
    JOINING_WORDS,
    LONGER,
    NOWHERE,
    STRING_PREFIXES,
    Frame,
)
from fim_server.language_support.python.model import GIVEN, GIVEN_TO_CLASSES
from fim_server.language_support.python.reader import Chain, Header, Last, Reader, may_be_keyword, pieces

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fim_server.language_support.token_texts import TokenTexts

WORDS_IN_ORDER = sorted(EXPRESSION_WORDS)
VISIBLE = GIVEN | GIVEN_TO_CLASSES | {"__class__"}
"""Names that need no binding, some of them in a class only."""

GIVEN_IN_ORDER = sorted(VISIBLE)


class Visible:
    """Names that a module, class or function binds so far. Copied before another than its owner changes it."""

    __slots__ = ("column", "is_class", "names", "ordered", "owner")

    def __init__(self, is_class: bool, column: int, names: set[str], owner: object) -> None:
        self.is_class = is_class
        self.column = column
        self.names = names
        self.ordered: list[str] | None = None
        self.owner = owner

    def begins(self, text: str) -> bool:
        """Return whether one of the names begins with a text."""
        if self.ordered is None:
            self.ordered = sorted(self.names)
        return begins(self.ordered, text)


class Beyond:
    """Names that are bound right of the cursor, or all words of a text whose scopes are unknown.

    Attributes:
        names: Bound names, each with the least columns of the lines between the cursor and a binding; None for a
            binding in the cursor's own line.
        words: All words of a text that does not parse; None if the scopes are known.
        takes_all: Whether all names of some module are imported.
    """

    def __init__(self, names: dict[str, frozenset[int | None]], words: frozenset[str] | None, takes_all: bool) -> None:
        self.names = names
        self.ordered = sorted(names)
        self.words = words
        self.ordered_words = sorted(words or ())
        self.takes_all = takes_all


NOTHING = Beyond({}, None, False)


class Waiting(NamedTuple):
    """Loaded name that something which follows has to bind.

    Attributes:
        name: The name.
        level: The number of frames around it that may bind it.
        barred: Those of them that cannot, since it stands in their first iterable.
        bare: Whether it may be a target.
    """

    name: str
    level: int
    barred: frozenset[int]
    bare: bool


class Tracker(Reader):
    """Position in a text. Copies are independent."""

    of_bytes = True

    def __init__(self) -> None:
        self.owner = object()
        self.scopes = [Visible(False, -1, set(), self.owner)]
        self.beyond = NOTHING
        self._waiting: tuple[Waiting, ...] = ()
        self._bare: Chain = None
        super().__init__()

    def copy(self) -> Tracker:
        """Return an independent tracker at the same position."""
        other = Tracker.__new__(Tracker)
        other.__dict__.update(self.__dict__)
        self.owner, other.owner = object(), object()
        other.frames = [*self.frames[:-1], self.frames[-1].copy()]
        other.scopes = list(self.scopes)
        return other

    @property
    def bound(self) -> set[str]:
        """Names that the text binds so far and that are visible."""
        scopes = (scope.names for scope in self.visible_scopes())
        return set[str]().union(*scopes, *(frame.bound for frame in self.visible_frames()))

    def takes(self, text: str) -> bool:
        """Return whether a text may come next."""
        copy = self.copy()
        try:
            copy.feed(text)
        except UndefinedNameError:
            return False
        return True

    def allow(self, texts: TokenTexts, mask: NDArray[np.bool_]) -> None:
        """Set in a mask of zeros which tokens may come next."""
        if self.position < self.checked_from:  # the length of a token decides how much of it is checked
            for blank, words in texts.words.items():
                for word, tokens in words.items():
                    mask[tokens] = self.takes(blank + word)
        for token, text in texts.others:
            mask[token] = self.takes(text)
        if self.position < self.checked_from:
            return
        for blank, words in texts.words.items():
            begun = self.copy()
            try:
                begun.feed(blank)
            except UndefinedNameError:
                continue
            beginnings = begun.words_to_come()
            if beginnings is None:
                mask[texts.after[blank]] = True
                continue
            for beginning in beginnings:
                for token in words.get(beginning, ()):
                    mask[token] = True

    # --- lexemes -------------------------------------------------------------------------------------------------

    def begin_line(self) -> None:
        """Leave the scopes that the column of the line ends."""
        while len(self.scopes) > 1 and self.scopes[-1].column >= self.column:
            self.scopes.pop()

    def begin_statement(self) -> None:
        super().begin_statement()
        self._waiting, self._bare = (), None

    def end_statement(self) -> None:
        """Refuse a name that the statement should have bound."""
        if self._waiting:
            raise UndefinedNameError(self._waiting[0].name)

    def operand(self, kind: str) -> None:
        super().operand(kind)
        self._check_waiting()

    def sign(self, sign: str) -> None:
        super().sign(sign)
        self._check_waiting()

    def pop(self) -> None:
        """Leave the innermost frame; names that wait for what it may bind wait for those around it."""
        super().pop()
        self.frames[-1] = self.frames[-1].copy()
        level = len(self.frames) - 1
        self._waiting = tuple(
            waiting if waiting.level <= level else waiting._replace(level=level) for waiting in self._waiting
        )

    # --- names ---------------------------------------------------------------------------------------------------

    def bind(self, name: str) -> None:
        self._bind_at(len(self.scopes) - 1, name)

    def declare(self, name: str) -> None:
        if self.first == "global":
            self._bind_at(0, name)

    def _bind_at(self, at: int, name: str) -> None:
        scope = self.scopes[at]
        if name in scope.names:
            return
        if scope.owner is not self.owner:
            scope = self.scopes[at] = Visible(scope.is_class, scope.column, set(scope.names), self.owner)
        scope.names.add(name)
        scope.ordered = None

    def open_scope(self, header: Header) -> None:
        names = {*header.parameters, *header.types}
        self.scopes.append(Visible(header.kind == "class", header.column, names, self.owner))

    def bind_walrus(self, name: str) -> None:
        super().bind_walrus(name)
        self._waiting = tuple(waiting for waiting in self._waiting if waiting.name != name)

    def bind_comprehended(self, at: int, name: str) -> None:
        self.frames[at] = self.frames[at].copy()
        super().bind_comprehended(at, name)
        self._waiting = tuple(one for one in self._waiting if one.name != name or one.level < at or at in one.barred)

    def load(self, last: Last, following: str, bare: bool) -> None:
        if bare:
            self._bare = last.name, self._bare
            if following == "=" and len(self.frames) == 1 and not self._assigned:
                return
        if last.is_checked and not self.knows(last.name):
            barred = frozenset(at for at, frame in enumerate(self.frames) if frame.is_first_source)
            waiting = Waiting(last.name, len(self.frames) - 1, barred, bare and not self._assigned)
            self._waiting = (*self._waiting, waiting)
            self._check_waiting()

    def assign(self) -> None:
        for name in pieces(self._bare):
            self.bind(name)
        self._bare = None
        self._waiting = tuple(waiting for waiting in self._waiting if not waiting.bare)

    def _check_waiting(self) -> None:
        """Refuse a name that nothing which may follow binds."""
        for waiting in self._waiting:
            if waiting.bare and self._targets:
                continue
            around = range(1, waiting.level + 1)
            if not any(self.frames[at].comprehension and at not in waiting.barred for at in around):
                raise UndefinedNameError(waiting.name)

    # --- names that are visible ----------------------------------------------------------------------------------

    def has_name(self, beginning: str) -> bool:
        """Return whether a visible name begins with a text."""
        if not beginning.isascii() or begins(GIVEN_IN_ORDER, beginning):
            return True
        if begins(self.beyond.ordered_words, beginning):
            return True
        if any(scope.begins(beginning) for scope in self.visible_scopes()):
            return True
        if any(name.startswith(beginning) for frame in self.visible_frames() for name in frame.bound):
            return True
        if any(name.startswith(beginning) for name in self.types):
            return True
        ordered = self.beyond.ordered
        at = bisect_left(ordered, beginning)
        while at < len(ordered) and ordered[at].startswith(beginning):
            if self.is_beyond(ordered[at]):
                return True
            at += 1
        return False

    def knows(self, name: str) -> bool:
        """Return whether a name is visible."""
        if name in VISIBLE or not name.isascii() or self.takes_all or self.beyond.takes_all:
            return True
        if self.beyond.words is not None and name in self.beyond.words:
            return True
        return (
            any(name in scope.names for scope in self.visible_scopes())
            or any(name in frame.bound for frame in self.visible_frames())
            or name in self.types
            or self.is_beyond(name)
        )

    def visible_scopes(self) -> Iterable[Visible]:
        """Return the scopes whose names are visible."""
        innermost = self.scopes[-1]
        return (scope for scope in self.scopes if scope is innermost or not scope.is_class)

    def visible_frames(self) -> Iterable[Frame]:
        """Return the comprehensions and lambdas whose names are visible."""
        return (frame for frame in self.frames if not frame.is_first_source)

    def is_beyond(self, name: str) -> bool:
        """Return whether a visible scope binds a name right of the cursor."""
        for lowest in self.beyond.names.get(name, ()):
            if lowest is None:
                return True
            at = len(self.scopes) - 1
            while self.scopes[at].column >= lowest:
                at -= 1
            if not self.scopes[at].is_class or at == len(self.scopes) - 1:
                return True
        return False

    # --- what may still come -------------------------------------------------------------------------------------

    def check_tail(self) -> None:
        """Refuse a lexeme in progress if it cannot become a valid one."""
        top, text = self.frames[-1], self.tail
        if top.kind in ("text", "spec"):
            return
        first = text[0]
        if is_word(first):
            self._check_word(text)
        elif self._last is not None or self._waiting:
            if first in "'\"":
                self._try("quote", [text])
            elif first.isdigit():
                self._try("number", [text])
            elif text != "\\":
                self._try("sign", LONGER[text])

    def _try(self, kind: str, texts: Iterable[str]) -> None:
        """Refuse if each of some lexemes of a kind is refused."""
        refused = UndefinedNameError(self._last.name if self._last is not None else self._waiting[-1].name)
        for text in texts:
            try:
                self.copy().meet(kind, text)
            except UndefinedNameError as error:
                refused = error
                continue
            return
        raise refused

    def _check_word(self, text: str) -> None:
        if self.previous == "operand":
            if (self._last is not None or self._waiting) and text.lower() not in STRING_PREFIXES:
                self._try("word", [word for word in JOINING_WORDS if word.startswith(text)])
            return
        if self._is_free() or text.lower() in STRING_PREFIXES or begins(WORDS_IN_ORDER, text):
            return
        if not self.has_name(text) and not FURTHER_WORDS.get(self.previous, "").startswith(text):
            raise UndefinedNameError(text)

    def _is_free(self) -> bool:
        """Return whether a word may come next that is no visible name."""
        top = self.frames[-1]
        if self.takes_all or self.beyond.takes_all or self.previous.startswith(".") or self._soft:
            return True
        if top.phase in ("params", "lambda"):
            if not top.is_value:
                return True
        elif top.phase != "expression":
            return True
        if top.takes_targets and self._targets and not self._assigned:
            return True
        if may_be_keyword(top) or self.may_be_walrus(top):
            return True
        return any(frame.comprehension and not frame.is_first_source for frame in self.frames)

    def words_to_come(self) -> set[str] | None:
        """Return the ASCII letters, digits and `_` that may begin a word or go on with the one that is begun.

        None if any may. Only for the middle: a text that is written again is not checked.
        """
        if self._comment or self.frames[-1].kind in ("text", "spec"):
            return None
        copy, tail = self, self.tail
        if not is_word(tail):
            copy, tail = self.copy(), ""
            copy.checked_from = NOWHERE
            try:
                copy.feed("_")
            except UndefinedNameError:
                return set()
            if copy.tail != "_":
                return None  # in a string or a number
        return copy.words_after(tail)

    def words_after(self, begun: str) -> set[str] | None:
        """Return the rests of a word that is begun, and all their beginnings; None if any may come."""
        if self.previous == "operand":
            if self._last is None and not self._waiting:
                return None
            words = {word for word in JOINING_WORDS if word.startswith(begun) and self._takes_word(word)}
        elif self._is_free() or not begun.isascii():
            return None
        else:
            beyond = self.beyond
            words = {*EXPRESSION_WORDS, *VISIBLE, *self.types, *(beyond.words or ())}
            words.add(FURTHER_WORDS.get(self.previous, ""))
            words.update(*(scope.names for scope in self.visible_scopes()))
            words.update(*(frame.bound for frame in self.visible_frames()))
            words.update(name for name in beyond.names if name.startswith(begun) and self.is_beyond(name))
        rests = {word[len(begun) :] for word in words if word.startswith(begun)}
        prefixes = {word[len(begun) :] for word in ANY_CASE if word.startswith(begun)}
        return {rest[:end] for rest in rests for end in range(1, len(rest) + 1)} | prefixes

    def _takes_word(self, word: str) -> bool:
        try:
            self.copy().meet("word", word)
        except UndefinedNameError:
            return False
        return True


def begins(ordered: list[str], text: str) -> bool:
    """Return whether one of some names, in their order, begins with a text."""
    at = bisect_left(ordered, text)
    return at < len(ordered) and ordered[at].startswith(text)


def is_word(text: str) -> bool:
    """Return whether a text begins like a word."""
    return text[:1].isalpha() or text[:1] == "_" or text[:1] >= "\x80"


def as_bytes(text: str) -> str:
    """Return a text as trackers read it: a character for each byte."""
    return text.encode(errors="surrogatepass").decode("latin-1")
