"""Names along a text that is being written: which one could still be loaded, and which never could.

It knows of the grammar as much as says where a name is bound: it does not check the text, which the engine does beside
it. A name that nothing visible binds is refused, unless what may still follow in the same statement binds it (the
``for`` of a comprehension whose first element it stands in, an assignment that it is a target of, ``:=``), or it names
an argument of a call. So what is not refused may load what is not bound, which :mod:`.binding` finds in the end; what
is refused never becomes a text that obeys, but for what docs/guarantee.md lists.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fim_server.language_support.protocol import UndefinedNameError
from fim_server.language_support.python.scanning import (
    ANY_CASE,
    AUGMENTED,
    BLOCK_WORDS,
    CONDITION_WORDS,
    EXPRESSION_WORDS,
    FURTHER_WORDS,
    JOINING_WORDS,
    KEYWORDS,
    LONGER,
    NAMING_WORDS,
    NOWHERE,
    SOFT_WORDS,
    STATEMENT_WORDS,
    STRING_PREFIXES,
    Frame,
)
from fim_server.language_support.python.visible import VISIBLE, Scope, Visible, begins

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fim_server.language_support.token_texts import TokenTexts

WORDS_IN_ORDER = sorted(EXPRESSION_WORDS)


@dataclass(frozen=True, slots=True)
class Last:
    """A name of which the next lexeme says what it is."""

    name: str
    phase: str
    is_checked: bool
    bare: bool
    keyword: bool
    walrus: bool


@dataclass(frozen=True, slots=True)
class Waiting:
    """A name that is loaded, and that something which may follow has to bind.

    Attributes:
        level: How many frames are around it, of those that may bind it.
        barred: Those of them that do not, since it stands in what their first `for` goes through.
        bare: It may be a target.
    """

    name: str
    level: int
    barred: frozenset[int]
    bare: bool


class Tracker(Visible):
    """A place in a text. Copies are independent."""

    def __init__(self) -> None:
        super().__init__()
        self.owner = object()
        self.scopes = [Scope(False, -1, set(), self.owner)]
        self.recorded: dict[str, set[int | None]] = {}
        """What is bound, since that is asked for."""
        self._lowest: int | None = None
        self._waiting: tuple[Waiting, ...] = ()
        self._fresh_line = False
        self._begin_statement()

    def copy(self) -> Tracker:
        """An independent tracker at the same place."""
        other = Tracker.__new__(Tracker)
        other.__dict__.update(self.__dict__)
        self.owner, other.owner = object(), object()
        other.frames = [*self.frames[:-1], self.frames[-1].copy()]
        other.scopes = list(self.scopes)
        return other

    def record(self) -> None:
        """Note from here on what is bound outside of what begins here."""
        self.recorded, self.recording = {}, True
        self._lowest = None

    def pop(self) -> None:
        """Leave the innermost frame; names that wait for what it may bind wait for those around it."""
        super().pop()
        level = len(self.frames) - 1
        self._waiting = tuple(
            waiting if waiting.level <= level else replace(waiting, level=level) for waiting in self._waiting
        )

    def begin_line(self) -> None:
        """The column of the line says which scopes have ended."""
        while len(self.scopes) > 1 and self.scopes[-1].column >= self.column:
            self.scopes.pop()
        if self.recording:
            self._lowest = self.column if self._lowest is None else min(self._lowest, self.column)

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
        if self.position < self.checked_from:  # what is written again depends on how long tokens are
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
                mask[texts.numbers[blank]] = True
                continue
            for beginning in beginnings:
                for token in words.get(beginning, ()):
                    mask[token] = True

    # --- what may still come -------------------------------------------------------------------------------------

    def check_tail(self) -> None:
        """Refuse a lexeme in progress that nothing it may become can be."""
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
        """Refuse what none of some lexemes of a kind would be taken as."""
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
        """Whether a word at this place may be a name that nothing binds yet."""
        top = self.frames[-1]
        if self.takes_all or self.beyond.takes_all or self.previous.startswith(".") or self._soft:
            return True
        if top.phase in ("params", "lambda"):
            if not top.is_value:
                return True
        elif top.phase != "expression":
            return True
        if self._may_be_target(top) or may_be_keyword(top) or self._may_be_walrus(top):
            return True
        return any(frame.comprehension and not frame.is_first_source for frame in self.frames)

    def _may_be_target(self, top: Frame) -> bool:
        return top.takes_targets and self._targets and not self._assigned

    def _may_be_walrus(self, top: Frame) -> bool:
        if not top.is_start:
            return False
        return not top.kind or top.role in ("group", "call") or (top.role == "display" and top.comprehension > 0)

    def words_to_come(self) -> set[str] | None:
        """What of ASCII letters, digits and `_` may begin a word here, or go on with the one that is begun.

        None where any may. For the middle alone: what is written again is not checked.
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
        if self.previous == "operand":
            if self._last is None and not self._waiting:
                return None
            words = {word for word in JOINING_WORDS if word.startswith(begun) and self._takes_word(word)}
        elif self._is_free() or not begun.isascii():
            return None
        else:
            scopes = (name for scope in self.visible_scopes() for name in scope.names)
            frames = (name for frame in self.visible_frames() for name in frame.bound)
            others = (name for name in self.beyond.names if name.startswith(begun) and self.is_beyond(name))
            further = FURTHER_WORDS.get(self.previous, "")
            words = {
                *EXPRESSION_WORDS,
                further,
                *VISIBLE,
                *scopes,
                *frames,
                *others,
                *self.types,
                *(self.beyond.words or ()),
            }
        rests = {word[len(begun) :] for word in words if word.startswith(begun)}
        prefixes = {word[len(begun) :] for word in ANY_CASE if word.startswith(begun)}
        return {rest[:end] for rest in rests for end in range(1, len(rest) + 1)} | prefixes

    def _takes_word(self, word: str) -> bool:
        try:
            self.copy().meet("word", word)
        except UndefinedNameError:
            return False
        return True

    # --- lexemes -------------------------------------------------------------------------------------------------

    def _begin_statement(self) -> None:
        self.frames = [Frame(takes_targets=True, recorded=self.recording)]
        self._first = ""
        self.previous = ""
        self._last: Last | None = None
        self._waiting = ()
        self._bare: tuple[str, ...] = ()
        self._targets = True
        """Whether all of the statement so far may be targets."""
        self._assigned = self._annotated = False
        self._soft = ""
        self._header: Scope | None = None
        self.types: frozenset[str] = frozenset()
        self._imported = ""
        self._as = False

    def newline(self) -> None:
        """A statement ends, unless it is in brackets."""
        self._fresh_line = True
        if len(self.frames) > 1:
            return
        if not self.is_at_margin:
            self._end_statement()
        self.end_line()

    def _end_statement(self) -> None:
        self._settle("\n")
        self._bind_imported()
        self._refuse_waiting()
        self._begin_statement()

    def _refuse_waiting(self) -> None:
        """The statement has ended, and what was to be bound in it was not."""
        if self._waiting:
            raise UndefinedNameError(self._waiting[0].name)

    def word(self, word: str, is_checked: bool) -> None:
        if self._fresh_line and len(self.frames) > 1 and word in STATEMENT_WORDS:
            self._begin_statement()  # the bracket before was never closed
        self._fresh_line = False
        if self.previous == "." and self.frames[-1].phase != "names":
            self.previous = "operand"
            self.frames[-1].is_start = False
            return
        if not word.isascii():
            word = unicodedata.normalize("NFKC", word.encode("latin-1").decode(errors="replace"))
        self._settle(word)
        top = self.frames[-1]
        if len(self.frames) == 1 and not self._first and self._begin_with(word, top):
            return
        if self._soft:
            self._after_soft(word, top)
        if word in KEYWORDS and top.phase != "conversion":
            self._keyword(word, top)
        else:
            self._name(word, top, is_checked)
        top.is_start = word in CONDITION_WORDS and top.kind == "" and self._first == word

    def _begin_with(self, word: str, top: Frame) -> bool:
        """A statement's first word; whether nothing more is to be done about it."""
        if word == "async":
            return True
        self._first = word
        if word in SOFT_WORDS:
            self._soft = word
            self._last = Last(word, "expression", False, True, False, False)
            self.previous = "soft"
            return True
        if word not in KEYWORDS or word in EXPRESSION_WORDS:
            return False
        self._targets = False
        if word in ("def", "class"):
            top.phase = "define"
        elif word in NAMING_WORDS:
            top.phase = "names"
        elif word in ("for", "del"):
            top.phase = "target"
        self.previous = word
        top.is_start = word in CONDITION_WORDS
        return True

    def _after_soft(self, word: str, top: Frame) -> None:
        """What follows `match`, `case` or `type` at a statement's beginning says whether it is a keyword."""
        if self._soft == "case":
            top.phase = "pattern"
        elif self._soft == "type" and word.isidentifier() and word not in KEYWORDS:
            top.phase = "alias"
        self._targets = False
        self._soft = ""

    def _keyword(self, word: str, top: Frame) -> None:
        previous, self.previous = self.previous, word
        if top.takes_targets:
            self._targets = False
        if top.phase == "names":
            if word == "import":
                self._imported = ""
            elif word != "as":
                self.previous = previous
            return
        match word:
            case "for" if top.comprehension:
                top.next_is_first = top.comprehension == 1
                top.comprehension, top.phase, top.is_first_source = 2, "target", False
            case "in" if top.phase == "target":
                top.phase, top.is_first_source = "expression", top.next_is_first and top.comprehension == 2
            case "if" if top.comprehension == 2:
                top.is_first_source = False
            case "if" if top.phase == "pattern" and top.kind == "":
                top.phase = "expression"
            case "as" if top.phase == "expression":
                top.phase, self._as = "target", True
            case "lambda":
                top.was = (*top.was, (top.phase, top.is_value))
                top.phase, top.is_value = "lambda", False
            case "None" | "True" | "False":
                self.previous = "operand"

    def _name(self, word: str, top: Frame, is_checked: bool) -> None:
        previous, self.previous = self.previous, "operand"
        match top.phase:
            case "conversion":
                return
            case "define":
                self.bind(word)
                self._header = Scope(self._first == "class", self.column, set(), self.owner, self.recording)
                top.phase = "header"
            case "alias":
                self.bind(word)
            case "names":
                if not previous.startswith("."):
                    self._imported = word
                if self._first == "global":
                    self.bind(word, self.scopes[0])
            case "params" if not top.is_value:
                self._bind_parameter(word, top)
            case "lambda" if not top.is_value:
                self._bind_in(top, word)
            case "target" | "pattern":
                self._last = Last(word, top.phase, is_checked, False, False, False)
            case _:
                bare = top.takes_targets and self._targets
                walrus = self._may_be_walrus(top)
                self._last = Last(word, "expression", is_checked, bare, may_be_keyword(top), walrus)

    def _bind_parameter(self, word: str, top: Frame) -> None:
        if top.role == "types":
            self.types |= {word}
        header = self._header
        if header is not None:
            self._header = Scope(header.is_class, header.column, header.names | {word}, self.owner, header.recorded)

    def operand(self, kind: str) -> None:
        """A number or a string."""
        self._fresh_line = False
        self._settle(kind)
        top = self.frames[-1]
        if self._soft:
            self._after_soft(kind, top)
        if len(self.frames) == 1 and not self._first:
            self._first = kind
        if top.takes_targets:
            self._targets = False
        top.is_start = False
        self.previous = "operand"
        self._check_waiting()

    def sign(self, sign: str) -> None:
        self._fresh_line = False
        self._settle(sign)
        if self._soft and sign in "([{*-":
            self._after_soft(sign, self.frames[-1])
            if self._first == "match":
                self.previous = "soft"
        elif self._soft:
            self._soft = ""
        if len(self.frames) == 1 and not self._first:
            self._first = sign
        top = self.frames[-1]
        was_start, top.is_start = top.is_start, False
        match sign:
            case "(" | "[" | "{":
                self._open(sign, top)
            case ")" | "]" | "}":
                self._close(sign)
            case ",":
                self._comma(top)
            case ":":
                self._colon(top)
            case "=":
                self._equals(top)
            case ";" if not top.kind:
                self._end_statement()
                return
            case ".":
                dots = self.previous + sign if self.previous in (".", "..") else sign
                self.previous = "operand" if dots == "..." and top.phase != "names" else dots
            case "!" if top.kind == "field":
                top.phase = "conversion"
            case "*" if was_start or self.previous in ("", "(", ","):
                if was_start:
                    top.comprehension = 0
                self.previous = "*"
            case "->":
                top.phase, self.previous = "expression", sign
            case _:
                if top.takes_targets:
                    self._targets = False
                if top.phase == "names" and sign == "*":
                    self.takes_all = True
                self.previous = sign
        self._check_waiting()

    def _open(self, sign: str, top: Frame) -> None:
        after_operand = self.previous == "operand"
        frame = Frame(sign, recorded=self.recording, is_start=True)
        if top.phase == "header" and sign == "[":
            frame.role, frame.phase = "types", "params"
        elif top.phase == "header":
            is_class = self._header is not None and self._header.is_class
            frame.role, frame.phase = ("call", "expression") if is_class else ("params", "params")
        elif top.phase == "alias" and sign == "[":
            frame.role, frame.phase = "types", "params"
        elif top.phase in ("names", "pattern") or (top.phase == "target" and not after_operand):
            frame.role, frame.phase = "inner", top.phase
        elif after_operand and sign == "[":
            frame.role = "subscript"
        else:
            is_call = sign == "(" and (after_operand or self.previous == "soft")
            frame.role = "call" if is_call else "group" if sign == "(" else "display"
            frame.comprehension = 1
            frame.takes_targets = top.takes_targets and self._targets and not after_operand and sign != "{"
            if top.takes_targets and not after_operand and sign == "{":
                self._targets = False
        if after_operand and self._closed_targets and top.takes_targets:
            self._targets = False
        self.frames.append(frame)
        self.previous = "("

    @property
    def _closed_targets(self) -> bool:
        return any(waiting.bare and waiting.level >= len(self.frames) for waiting in self._waiting)

    def _close(self, sign: str) -> None:
        if len(self.frames) > 1:
            if self.frames[-1].phase == "names":
                self._bind_imported()
            self.pop()
        self.previous = "operand"

    def _comma(self, top: Frame) -> None:
        if top.phase == "names":
            self._bind_imported()
        if self._as and top.phase == "target" and top.role != "inner":
            top.phase, self._as = "expression", False
        if top.comprehension == 1:
            top.comprehension = 0
        if top.phase in ("params", "lambda"):
            top.is_value = False
        top.is_start = bool(top.kind)
        self.previous = ","

    def _colon(self, top: Frame) -> None:
        self.previous = ":"
        if top.phase == "lambda":
            *earlier, (top.phase, top.is_value) = top.was
            top.was = tuple(earlier)
        elif top.kind == "field":
            top.kind = "spec"
        elif top.phase == "params":
            top.is_value = True
        elif not top.kind:
            if self._header is not None or self._first in BLOCK_WORDS:
                self._enter()
            else:
                self._targets, self._annotated = False, True

    def _enter(self) -> None:
        """A block begins, which may stand in the same line."""
        self._refuse_waiting()
        header = self._header
        self._begin_statement()
        if header is not None:
            self.scopes.append(header)

    def _equals(self, top: Frame) -> None:
        self.previous = "="
        if top.phase in ("params", "lambda"):
            top.is_value = True
        elif not top.kind:
            if top.phase in ("alias", "pattern"):
                top.phase = "expression"
            if self._targets or self._annotated:
                for name in self._bare:
                    self.bind(name)
                self._waiting = tuple(waiting for waiting in self._waiting if not waiting.bare)
                self._bare, self._assigned = (), True
        elif top.comprehension == 1:
            top.comprehension = 0

    # --- names ---------------------------------------------------------------------------------------------------

    def _settle(self, following: str) -> None:
        """The lexeme after a name says what it is. ``following``: a sign, a word, or what kind of operand."""
        last, self._last = self._last, None
        if last is None:
            return
        if last.phase == "target":
            if following in (".", "(", "["):
                self._load(last, False)
            else:
                self._bind_target(last.name)
        elif last.phase == "pattern":
            if following in (".", "("):
                self._load(last, False)
            elif following != "=":
                self.bind(last.name)
        elif last.bare and following in (",", "=", ")", "]"):
            self._bare = (*self._bare, last.name)
            if not (following == "=" and len(self.frames) == 1 and not self._assigned):
                self._load(last, not self._assigned)
        elif last.bare and len(self.frames) == 1 and (following in AUGMENTED or following == ":"):
            self.bind(last.name)
        elif following == ":=" and (last.walrus or not last.is_checked):
            self.bind(last.name)
            self._waiting = tuple(waiting for waiting in self._waiting if waiting.name != last.name)
        elif not (following == "=" and last.keyword):
            self._load(last, False)

    def _load(self, last: Last, bare: bool) -> None:
        if last.is_checked and not self.knows(last.name):
            barred = frozenset(at for at, frame in enumerate(self.frames) if frame.is_first_source)
            self._waiting = (*self._waiting, Waiting(last.name, len(self.frames) - 1, barred, bare))
            self._check_waiting()

    def _check_waiting(self) -> None:
        """Refuse a name that nothing which may follow binds."""
        for waiting in self._waiting:
            if waiting.bare and self._targets:
                continue
            around = range(1, waiting.level + 1)
            if not any(self.frames[at].comprehension and at not in waiting.barred for at in around):
                raise UndefinedNameError(waiting.name)

    def _bind_target(self, name: str) -> None:
        at = len(self.frames) - 1
        while at and self.frames[at].role == "inner":
            at -= 1
        if self.frames[at].comprehension == 2:
            self.frames[at] = self.frames[at].copy()
            self._bind_in(self.frames[at], name)
            self._waiting = tuple(
                one for one in self._waiting if one.name != name or one.level < at or at in one.barred
            )
        else:
            self.bind(name)

    def _bind_in(self, frame: Frame, name: str) -> None:
        frame.bound |= {name}
        if self.recording and not frame.recorded:
            self.recorded.setdefault(name, set()).add(None)

    def bind(self, name: str, scope: Scope | None = None) -> None:
        """A name is bound; in the innermost scope where no other is said."""
        at = len(self.scopes) - 1 if scope is None else self.scopes.index(scope)
        inner = self.scopes[at]
        if self.recording and not inner.recorded:
            self.recorded.setdefault(name, set()).add(self._lowest if scope is None else None)
        if name in inner.names:
            return
        if inner.owner is not self.owner:
            inner = Scope(inner.is_class, inner.column, set(inner.names), self.owner, inner.recorded)
            self.scopes[at] = inner
        inner.names.add(name)
        inner.ordered = None

    def _bind_imported(self) -> None:
        if self._imported and self._first in ("import", "from"):
            self.bind(self._imported)
        self._imported = ""


def is_word(text: str) -> bool:
    """Whether a text begins like a word."""
    return text[:1].isalpha() or text[:1] == "_" or text[:1] >= "\x80"


def may_be_keyword(top: Frame) -> bool:
    """Whether a name at this place may be that of an argument."""
    return top.role == "call" and top.is_start


def as_bytes(text: str) -> str:
    """A text as trackers read it: a character for each byte."""
    return text.encode(errors="surrogatepass").decode("latin-1")
