"""Texts that are broken elsewhere: which lines to leave out so that the rest parses (design, section 11).

A parser that only ever says where a text first cannot be continued is enough to find them. Both sides of the cursor are
read the same way, as the beginning of a program: the left side from nothing, the right side after a middle that
bridges the cursor. Where reading fails, a few ways to change the lines around the place are tried, each by reading on
for some lines: leave out the line, the one before, the one that opened what is still open, what stands below it, or put
a line in its place that keeps its block. The one that costs least wins. This is the local repair of Burke and Fisher
(*A practical method for LR and LL syntactic error diagnosis and recovery*, TOPLAS 1987) with lines for symbols, because
a line is what people break, and what they are told about.

What a repair is worth is only an estimate, but what is returned is not: its session was opened on the reduced contexts
and is exact for them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from heapq import heappop, heappush, nsmallest
from itertools import accumulate, count, islice, product
from math import inf

from fim_server.errors import SearchLimitError
from fim_server.language import Matcher, Session, State, Verdict
from fim_server.language.shapes import Shape
from fim_server.tokens.vocabulary import Vocabulary

OpenSession = Callable[[str, str], Session]

BUDGET = 24
"""Sessions opened in one search, the last one included. On a file of 10,000 characters one with nothing on its right
takes 1 ms, and all but two are of that kind; an error takes one or two, so this is enough for about ten."""

AHEAD = 16
"""Lines with text that a repair must let be read after the failure to count as one that solved it."""

BACK = (40, 400)
"""Lines before the failure that are searched for where the broken construct began: first these, then those."""

WHOLE_STATEMENT = 1.5
"""Lines that it costs on top to put something in the place of a whole statement, so that what is below it fits."""

OPENS = 2.0
"""Lines that it costs on top to put a bracket in the place of what may have had one."""

MOST_SINGLE = 24
"""Lines between that place and the failure that are each tried alone."""

MOST_STAND_IN = 6
"""Lines with text in whose place one line is put together."""

MOST_RUN = 40
"""Lines with text that are left out together from one line on, unless their indentation says that they are a block."""

FAR_AHEAD = 100
"""Lines with text that are read at most. A string or bracket that is not closed swallows many; and of two repairs that
solve it, one may have put a method's body into another's, which shows where the next method begins."""

FAR_FAILURE = 0.5
"""Lines that a repair costs on top if reading fails again, but only after `AHEAD` lines. It may be another error."""

UNSETTLED = 4.0
"""Lines that a repair costs on top if something is still open then. (All do in a language that ends but once.)"""

MOST_PLACES = 8
"""Failures that are looked at to get past one: a repair may only be seen to be wrong where the next one is due."""

MOST_READ = 200_000
"""Characters that are read by way of trial to get past one failure, at some 0.1 µs each. A trial counts as 100 more."""

MOST_READ_ALL = 1_500_000
"""The same of all failures of a search. What needs more is prose, or another language."""

SURE = 2.0
"""How many times as many lines as one that may not be enough a repair may cost that is."""

MOST_BRANCHES = 6
"""Repairs at one place that are kept to look at what comes after them."""

MOST_BRIDGE = 48
"""Characters of the left side's shortest completion of which every prefix is tried as the bridge over the cursor."""

BRIDGE_AHEAD = 50
"""Lines of the right side that such a prefix is tried on."""

MOST_ATTEMPTS = 3
"""Times that a line which fails is tried with another bridge before it is taken to be broken."""

MOST_MARKS = 64
"""Groups of lines that a `Recovery` remembers."""

MOST_CHECKED = 4
"""Groups of which each is looked at alone, after an edit elsewhere, to see whether it is still broken."""

STAND_INS = ("pass", "if 1:", "else:", "except:", "try:", "def x():", "finally:", "case _:", "match 1:", "(", "[", "{")
"""Lines that may stand for one that is left out, as far right as it or as what is above it. Without them a broken
header would take its whole block with it, and a block of one broken line its header. They are tried like all else and
kept only where the parser takes them, so a language that has no such lines has only the other repairs."""

CLOSINGS = [
    value + "".join(brackets)
    for depth in range(1, 4)
    for value in ("", "x")
    for brackets in product(")]}", repeat=depth)
]
"""Lines that may stand for one that held the end of brackets as well."""

ENDINGS = ["", "x", *CLOSINGS]
"""What a middle may have to end of the left side. Only where none is right its shortest completion is asked for, which
takes a fifth of a second where a `try:` is open."""

MOST_UNSETTLED = 3
"""Lines with text that count for a bridge although what they are in does not end."""

JOINTS = (
    ",",
    ": 0,",
    "=0,",
    ":",
    "=",
    "+",
    " in ",
    "(",
    "[",
    "{",
    "((",
    "([",
    "({",
    "[(",
    "[[",
    "[{",
    "{0: [",
    "{0: {",
)
HEADERS = ("if 1:", "if 1:pass", "try:pass", "def x():", "match 1:", "match 1:\n case _:pass")
"""What a middle may have to begin for the right side, by which such a middle is tried."""

_CONFLICT = re.compile(r"(?:<{7}|\|{7}|={7}|>{7})(?: |$)")
_MARKS = "<|=>"  # in this order
_LINE = re.compile(r"[^\n]*\n|[^\n]+")


@dataclass(frozen=True)
class IgnoredLines:
    """Lines that were left out together.

    Attributes:
        line: The first one, counted from 0 in left + right.
        count: How many.
        stand_in: The line, without its end, that stands in their place in the reduced contexts; mostly there is none.
    """

    line: int
    count: int
    stand_in: str = ""

    @property
    def diagnostic(self) -> str:
        """The group in one line, for people, who count from 1."""
        if self.count == 1:
            return f"line {self.line + 1} does not parse and is left out"
        return f"lines {self.line + 1} to {self.line + self.count} do not parse and are left out"


@dataclass(frozen=True)
class Recovered:
    """A session on what is left of the contexts once the broken lines are left out.

    Attributes:
        session: Exact, for the reduced contexts.
        left: The reduced left context.
        right: The reduced right context.
        ignored: What was left out, in the order of the document.
        openings: Sessions that were opened to find it.
    """

    session: Session
    left: str
    right: str
    ignored: tuple[IgnoredLines, ...]
    openings: int = 0

    @property
    def guarantee(self) -> str:
        """Always `partial`: the guarantee holds for the text without the ignored lines."""
        return "partial"

    @property
    def diagnostics(self) -> list[str]:
        """One line for each group of ignored lines."""
        return [group.diagnostic for group in self.ignored]

    def check(self, middle: str) -> Verdict:
        """As `Session.check`, for the reduced contexts."""
        return self.session.check(middle)

    def matcher(self, vocabulary: Vocabulary, shape: Shape | str | None = None) -> Matcher:
        """As `Session.matcher`, for the reduced contexts."""
        return self.session.matcher(vocabulary, shape)


def recover(open_session: OpenSession, left: str, right: str, *, budget: int = BUDGET) -> Recovered | None:
    """Leaves lines out of contexts that do not parse, so that the rest does.

    The cursor's own line stays, but for what stands right of the cursor where nothing else helps.

    Args:
        open_session: `Language.open`, or one that keeps what it opens.
        left: The text left of the cursor.
        right: The text right of it.
        budget: Most sessions to open.

    Returns:
        None if no repair was found: the error is in the cursor's own line, or there are too many.
    """
    return _recover(_Opener(open_session, budget), left, right, None)


class Recovery:
    """Opens sessions on one document again and again, and remembers which lines it had to leave out.

    They are known by their own text and that of their neighbours, so edits elsewhere do not matter. Not for several
    threads at once.
    """

    def __init__(self, open_session: OpenSession, *, budget: int = BUDGET) -> None:
        """Starts with no memory; the arguments are those of `recover`."""
        self._open = open_session
        self._budget = budget
        self._marks: list[_Mark] = []
        self._around: _Around = [], []
        """Where the marks were last found to be needed, each of them."""
        self._given_up: _Around | None = None
        """Where no search within the budget is enough."""

    def open(self, left: str, right: str) -> Session | Recovered:
        """A session on the contexts if they parse, else on what is left of them; at worst one without guarantee."""
        session = self._open(left, right)
        if session.guarantee == "exact":
            self._marks = []
            return session
        document = _Document(left, right)
        found = self._remembered(document)
        if found is None and document.around != self._given_up:
            opener = _Opener(self._open, self._budget)
            found = _recover(opener, left, right, session)
            self._given_up = document.around if found is None and opener.count >= self._budget else None
        if found is None:
            return session
        self._marks = _marks(document, found.ignored)
        self._around = document.around
        return found

    def _remembered(self, document: _Document) -> Recovered | None:
        """What leaving out the lines of the last time gives, if it is enough."""
        groups = [group for mark in self._marks if (group := mark.find(document)) is not None]
        if not groups:
            return None
        opener = _Opener(self._open, 1 + MOST_CHECKED)
        session = opener(*document.reduced(_changes(groups)))
        if session.guarantee != "exact":
            return None
        if document.around != self._around and 1 < len(groups) <= MOST_CHECKED:
            # An edit elsewhere, such as a bracket that was closed, may have repaired one of them.
            for group in list(groups):
                others = [other for other in groups if other != group]
                without = opener(*document.reduced(_changes(others)))
                if others and without.guarantee == "exact":
                    groups, session = others, without
        changes = _changes(groups)
        return Recovered(session, *document.reduced(changes), _groups(changes), opener.count)


# ---------------------------------------------------------------- documents as lines


_Around = tuple[list[str], list[str]]
"""The lines above and below the cursor's."""


class _Document:
    """Lines of left + right. The cursor's own line is cut in two: the end of the left side, the start of the right."""

    def __init__(self, left: str, right: str) -> None:
        lines = _LINE.findall(left)
        self.tail = "" if left.endswith("\n") or not lines else lines.pop()
        self.above: list[str] = lines
        self.cursor_line = len(lines)
        following = _LINE.findall(right)
        self.head = following.pop(0) if following else ""
        self.below: list[str] = following

    @property
    def around(self) -> _Around:
        return self.above, self.below

    def __getitem__(self, number: int) -> str:
        """A line other than the cursor's."""
        return self.above[number] if number < self.cursor_line else self.below[number - self.cursor_line - 1]

    def numbers(self) -> Iterator[int]:
        """Of all lines but the cursor's."""
        yield from range(self.cursor_line)
        yield from range(self.cursor_line + 1, self.cursor_line + 1 + len(self.below))

    def reduced(self, changes: dict[int, str | None]) -> tuple[str, str]:
        """Both sides without the lines that are changed, or with what stands for them."""
        left = "".join(_changed(self[n], changes, n) for n in self.numbers() if n < self.cursor_line)
        right = "".join(_changed(self[n], changes, n) for n in self.numbers() if n > self.cursor_line)
        head = _changed(self.head, changes, self.cursor_line)
        return left + self.tail, head + right


def _changed(text: str, changes: dict[int, str | None], number: int) -> str:
    return _in_place(changes[number]) if number in changes else text


def _in_place(stand_in: str | None) -> str:
    """What is put in the place of a line."""
    return "" if stand_in is None else stand_in + "\n"


_BLANKS = " \t\f"


def _groups(changes: dict[int, str | None]) -> tuple[IgnoredLines, ...]:
    """Lines that were left out, those next to each other together; a stand-in begins a group."""
    found: list[IgnoredLines] = []
    for number in sorted(changes):
        last = found[-1] if found else None
        if last is not None and number == last.line + last.count and changes[number] is None:
            found[-1] = IgnoredLines(last.line, last.count + 1, last.stand_in)
        else:
            found.append(IgnoredLines(number, 1, changes[number] or ""))
    return tuple(found)


def _changes(groups: Sequence[IgnoredLines]) -> dict[int, str | None]:
    """The lines of groups, with what stands for each."""
    changes: dict[int, str | None] = {}
    for group in groups:
        changes |= dict.fromkeys(range(group.line, group.line + group.count))
        changes[group.line] = group.stand_in or None
    return changes


@dataclass(frozen=True)
class _Mark:
    """A group of ignored lines, as it is found again after edits: its texts and those of its neighbours with text."""

    texts: tuple[str, ...]
    before: str
    after: str
    stand_in: str

    def find(self, document: _Document) -> IgnoredLines | None:
        """The one place that is most like it; None if there is none or several."""
        most, places = -1, list[int]()
        end = document.cursor_line + 1 + len(document.below)
        for number in document.numbers():
            if document[number].rstrip() != self.texts[0]:
                continue
            numbers = range(number, number + len(self.texts))
            if numbers.stop > end or document.cursor_line in numbers:
                continue
            if any(document[n].rstrip() != text for n, text in zip(numbers, self.texts, strict=True)):
                continue
            before, after = _neighbours(document, numbers)
            alike = (before == self.before) + (after == self.after)
            if alike > most:
                most, places = alike, []
            if alike == most:
                places.append(number)
        return IgnoredLines(places[0], len(self.texts), self.stand_in) if len(places) == 1 else None


def _marks(document: _Document, ignored: Sequence[IgnoredLines]) -> list[_Mark]:
    marks = []
    for group in ignored[:MOST_MARKS]:
        numbers = range(group.line, group.line + group.count)
        if document.cursor_line not in numbers:
            texts = tuple(document[number].rstrip() for number in numbers)
            marks.append(_Mark(texts, *_neighbours(document, numbers), group.stand_in))
    return marks


def _neighbours(document: _Document, numbers: range) -> tuple[str, str]:
    """The nearest lines with text above and below; nothing where that is the cursor's, which changes all the time."""
    end = document.cursor_line + 1 + len(document.below)

    def nearest(candidates: range) -> str:
        for number in candidates:
            if number == document.cursor_line:
                return ""
            if text := document[number].strip():
                return text
        return ""

    return nearest(range(numbers.start - 1, -1, -1)), nearest(range(numbers.stop, end))


# ---------------------------------------------------------------- the search


class _BudgetSpent(Exception):
    """No more sessions may be opened."""


class _Opener:
    """Opens sessions and counts them."""

    def __init__(self, open_session: OpenSession, budget: int) -> None:
        self._open = open_session
        self._budget = budget
        self._read = 0
        self.count = 0

    def spend(self, characters: int) -> None:
        """Counts what was read by way of trial as well."""
        self._read += characters
        if self._read > MOST_READ_ALL:
            self.count = self._budget

    def __call__(self, left: str, right: str) -> Session:
        if self.count >= self._budget:
            raise _BudgetSpent
        self.count += 1
        return self._open(left, right)


def _recover(opener: _Opener, left: str, right: str, known: Session | None) -> Recovered | None:
    """`recover`, where a session on the contexts as they are may be open already."""
    document = _Document(left, right)
    above = _Lines(opener, "", document.above, 0, document.tail, closed=False)
    try:
        if not above.repair():
            return None
        session = known if known is not None and not above.changes else opener(above.text(), right)
        if session.guarantee == "exact":
            changes = above.changes
        elif (below := _repaired_below(above, document, right, session)) is not None:
            changes = above.changes | below
            session = opener(*document.reduced(changes))
        if session.guarantee != "exact" or not changes:
            return None
    except _BudgetSpent:
        return None
    return Recovered(session, *document.reduced(changes), _groups(changes), opener.count)


def _repaired_below(above: _Lines, document: _Document, right: str, session: Session) -> dict[int, str | None] | None:
    """Changes that make the right side meet the left one, which is possible by itself; `session` has them both."""
    broken = session.broken_at
    reach = right.count("\n", 0, broken[1]) if broken is not None and broken[0] == "right" else 0
    bridges = _Bridges(above, document.tail)
    # Where nothing else helps, what is right of the cursor on its line goes; the line's end stays.
    for head in (document.head, "\n") if document.head.strip() else (document.head,):
        before = bridges.before(head, document.below, reach)
        if before is None:
            continue
        below = _Lines(above.opener, before[0], document.below, document.cursor_line + 1, "", closed=True)
        below.other_before = partial(bridges.before, head)
        if reach:
            below.hopeless = document.cursor_line + reach
        if below.repair():
            return below.changes if head == document.head else {document.cursor_line: "", **below.changes}
    return None


class _Bridges:
    """Texts for the cursor's place, so that the right side can be read as what comes after a known text.

    What a middle must do for the right side is seldom more than to end what the left side has begun, or to begin one
    thing that the right side ends: those are tried. (A shortest middle would be exact, but may take a second to find.)
    """

    def __init__(self, above: _Lines, tail: str) -> None:
        """Connects with lines that can be read to their end, and with what is left of the cursor after them."""
        self._above = above
        self._tail = tail
        self._start = above.end()
        self._completion: str | None = None

    def before(self, head: str, lines: Sequence[str], reach: int = 0) -> tuple[str, int] | None:
        """The left side with a bridge and the rest of its line, so that most of the lines can be read after it.

        Args:
            head: The rest of the cursor's line.
            lines: Those below it.
            reach: Number of lines, with the cursor's, that have to be read for the bridge to be good enough.

        Returns:
            The text, and how many of the lines can be read after it; None where not even the rest of the cursor's can.
        """
        trial = [head, *islice(lines, BRIDGE_AHEAD)]
        whole = len(trial) > len(lines)
        best = max((self._read(ending, trial, whole) for ending in ENDINGS), key=_Read.key)
        if best.lines != reach:
            if self._completion is None:
                self._completion = (_completion(self._start) or "")[:MOST_BRIDGE]
            prefixes = (self._completion[:end] for end in range(len(self._completion) + 1))
            best = max(best, *(self._read(prefix, trial, whole) for prefix in prefixes), key=_Read.key)
            for other in self._beginnings(best.bridge, lines):
                read = self._read(other, trial, whole)
                if read.worth > best.worth or (read.key() > best.key() and (best.lines == 0 or not best.settled)):
                    best = read
        if best.lines == 0 and best.partly < _size(head):
            session = self._above.opener(self._above.text(), head)
            bridge = _completion(session.start()) if session.guarantee == "exact" else None
            if bridge is None:
                return None
            best = self._read(bridge, trial, whole)
        return self._above.text() + best.bridge + head, best.lines - 1

    def _beginnings(self, ending: str, lines: Sequence[str]) -> Iterator[str]:
        below = [_indentation(line) for line in islice((line for line in lines if line.strip()), 8)]
        columns = sorted({0, _indentation(self._tail), *below})
        for known in dict.fromkeys((ending, "", self._completion or "")):
            for joined in JOINTS:
                yield known + joined
            for column in columns:
                for header in HEADERS:
                    yield f"{known}\n{' ' * column}{header}"

    def _read(self, bridge: str, trial: Sequence[str], whole: bool) -> _Read:
        state = self._start.fork()
        if state.advance(bridge) < _size(bridge):
            return _Read(bridge, 0, -1, -1, False)
        worth = unsettled = 0
        settled = False
        for number, line in enumerate(trial):
            accepted = state.advance(line)
            if accepted < _size(line):
                return _Read(bridge, number, accepted, worth + min(unsettled, MOST_UNSETTLED), settled)
            unsettled += bool(line.strip())
            if number == 0:
                settled = state.is_complete()
            elif line.strip() and state.is_complete():
                worth, unsettled = worth + unsettled + 1, 0
        return _Read(bridge, len(trial), 0, worth if whole else worth + min(unsettled, MOST_UNSETTLED), settled)


@dataclass(frozen=True)
class _Read:
    """How far the right side can be read after a bridge: whole lines, and bytes of the next.

    Lines with text count for the bridge's worth, those below the cursor's twice where a program could end after them.
    The last ones count little where none could: what opens a bracket or a string lets much be read that is not meant
    so. Settled is a bridge if a program could end after the cursor's line.
    """

    bridge: str
    lines: int
    partly: int
    worth: int
    settled: bool

    def key(self) -> tuple[int, int, int, bool]:
        return self.worth, self.lines, self.partly, self.settled


def _completion(state: State) -> str | None:
    try:
        return state.shortest_completion()
    except SearchLimitError:
        return None


def _size(text: str) -> int:
    """Bytes that the engine takes if it takes all. Lone surrogates it refuses; they must only not raise here."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _line_at(lines: Sequence[str], offset: int) -> int:
    """Index of the line that has the byte at an offset."""
    return sum(end <= offset for end in accumulate(map(_size, lines)))


def _blanks(line: str) -> str:
    return line[: len(line) - len(line.lstrip(_BLANKS))]


def _indentation(line: str) -> int:
    expanded = line.expandtabs()
    return len(expanded) - len(expanded.lstrip(_BLANKS))


# ---------------------------------------------------------------- one side


@dataclass(frozen=True)
class _Repair:
    """Lines from `first` up to `end` go; a stand-in may take their place."""

    first: int
    end: int
    stand_in: str | None
    cost: float


@dataclass(frozen=True)
class _Outcome:
    """What comes of a repair.

    Attributes:
        failed: Index of the line where reading fails next, in the lines before the repair; None if it is not in sight.
        further: Lines that are thought to have to go on top. A repair after which reading soon fails again has probably
            not hit what was wrong; one that leaves something open has probably only moved it out of sight.
    """

    failed: int | None
    further: float


@dataclass
class _Lines:
    """Lines that are to be read after a text that is not theirs to change.

    Attributes:
        opener: Opens sessions.
        before: The text that comes first; a program can begin with it.
        given: The lines as they are in the document.
        number: The document's number of the first of them.
        tail: What comes after them and is not to be changed either.
        closed: The program has to end after them.
        changes: Lines that are left out, by their number in the document, with what stands for each.
        other_before: A text to put in the place of `before`, after which most of the given lines can be read, and how
            many can; None if there is none.
        hopeless: The line, by its number in the document, that no text before the lines makes possible.
    """

    opener: _Opener
    before: str
    given: Sequence[str]
    number: int
    tail: str
    closed: bool
    changes: dict[int, str | None] = field(default_factory=dict)
    other_before: Callable[[Sequence[str]], tuple[str, int] | None] | None = None
    hopeless: int | None = None
    _attempts: int = 0
    _session: Session | None = None
    _anchor: tuple[int, State] | None = None
    """A line's index in `_kept` and the state before it. Repairs are made below it only."""

    def text(self) -> str:
        """All of it, as it stands."""
        return self.before + "".join(text for _, text in self._kept()) + self.tail

    def end(self) -> State:
        """After all of it, once `repair` has found a way to read it."""
        assert self._session is not None
        return self._session.start()

    def repair(self) -> bool:
        """Changes lines until all of it can be read; whether that was possible."""
        while (failure := self._failure()) is not None:
            if self._read_differently(*failure):
                continue
            found = self._markers(failure[0])
            if not found:
                place = self._place(failure[0])
                self._anchor = place.start
                found = _best(place)
                self.opener.spend(place.read[0])
            if not found:
                return False
            for repair in found:
                self._apply(repair)
        self._put_back()
        return True

    def _markers(self, failed: int) -> tuple[_Repair, ...]:
        """If the failing line marks a merge conflict: it and the conflict's later marks, the last one first."""
        found: list[_Repair] = []
        last = -1
        for index, (_, text) in enumerate(self._kept()[failed:], failed):
            rank = _MARKS.index(text[0]) if _CONFLICT.match(text) else -1
            if rank > last:
                found.append(_Repair(index, index + 1, None, 1))
                last = rank
            if not found or text.startswith(_MARKS[-1] * 7):
                break
        return tuple(reversed(found if last == len(_MARKS) - 1 else found[:1]))

    def _place(self, failed: int) -> _Place:
        """The place of a failure, with a line before it at which a program could have ended, if there is one nearby."""
        kept = self._kept()
        texts = [text for _, text in kept]
        place = None
        if self._anchor is not None and self._anchor[0] <= failed <= self._anchor[0] + BACK[0] * 2:
            place = _Place(*self._anchor, texts, self.tail, self.closed, failed)
        for back in BACK:
            if place is not None and (place.begin is not None or place.start[0] == 0):
                break
            first = max(0, failed - back)
            state = self.opener(self.before + "".join(texts[:first]), "").start()
            place = _Place(first, state, texts, self.tail, self.closed, failed)
        assert place is not None
        return place

    def _read_differently(self, failed: int, at_start: bool) -> bool:
        """Whether the failing line is possible after all, if something else comes before the lines.

        A bridge closes what nothing told it to leave open, so a closing bracket or an `else` may find nothing to close.
        """
        kept = self._kept()
        if self.other_before is None or failed >= len(kept) or self._attempts >= MOST_ATTEMPTS:
            return False
        if not at_start or kept[failed][0] == self.hopeless:
            return False
        self._attempts += 1
        other = self.other_before([text for _, text in kept])
        if other is None or other[1] <= failed:
            return False
        self.before, self._anchor = other[0], None
        return True

    def _kept(self) -> list[tuple[int, str]]:
        """Numbers and texts of the lines as they stand."""
        found = []
        for number, text in enumerate(self.given, self.number):
            if number not in self.changes:
                found.append((number, text))
            elif self.changes[number] is not None:
                found.append((number, _in_place(self.changes[number])))
        return found

    def _failure(self) -> tuple[int, bool] | None:
        """Index in `_kept` of the line where reading fails, and whether none of its text can be read.

        The index is their number if it is in the tail or at the end.
        """
        session = self.opener(self.text(), "")
        broken = session.broken_at
        kept = self._kept()
        if broken is None:
            self._session = session
            return None if not self.closed or session.start().is_complete() else (len(kept), False)
        at = broken[1] - len(self.before)
        ends = list(accumulate((len(text) for _, text in kept), initial=0))
        failed = sum(end <= at for end in ends[1:])
        text = kept[failed][1] if failed < len(kept) else self.tail
        return failed, not text[: at - ends[failed]].strip()

    def _apply(self, repair: _Repair) -> None:
        kept = self._kept()
        numbers = [number for number, _ in kept[repair.first : repair.end]]
        # What was left out between these lines belongs to them now.
        for number in range(numbers[0], numbers[-1] + 1):
            self.changes[number] = None
        self.changes[numbers[0]] = repair.stand_in

    def _put_back(self) -> None:
        """Takes back what a later repair further up has made unnecessary."""
        order = list(self.changes)
        for group in _groups(self.changes):
            last = max(order.index(number) for number in range(group.line, group.line + group.count))
            if all(number > group.line for number in order[last + 1 :]):
                continue
            taken = {number: self.changes.pop(number) for number in range(group.line, group.line + group.count)}
            if self._failure() is not None:
                self.changes.update(taken)


class _Place:
    """Where reading fails, and what could be changed around it."""

    def __init__(
        self,
        first: int,
        state: State,
        texts: Sequence[str],
        tail: str,
        closed: bool,
        failed: int,
    ) -> None:
        """Looks at lines from `first` on, before which the state is; reading fails in the one with index `failed`."""
        self.start = (first, state)
        self._from = first
        self._texts = texts
        self._tail = tail
        self._closed = closed
        self._failed = failed
        self._states = {first: state}
        self.read = [0]
        """Characters read by way of trial, here and at the places that were reached from here."""
        self._starts_statement = False
        """A program could have ended before the failing line."""
        self._at_start = False
        """None of the failing line's text can be read: it may just stand in the wrong column."""
        self.begin = self._last_end()
        """The last line before which a program could have ended, and which is not the failing one."""

    def _last_end(self) -> int | None:
        state, found = self.start[1].fork(), None
        for index in range(self._from, self._failed):
            if self._texts[index].strip() and state.is_complete():
                found = index
            state.advance(self._texts[index])
        self._starts_statement = state.is_complete()
        if self._failed < len(self._texts):
            text = self._texts[self._failed]
            self._at_start = state.advance(text) <= len(_blanks(text))
        return found

    def outcomes(self, most: float) -> Iterator[tuple[_Repair, _Outcome]]:
        """The repairs that cost less than `most`, and what comes of each that lets anything more be read."""
        for repair in sorted(self._repairs(), key=lambda repair: repair.cost):
            if repair.cost >= most or self.read[0] > MOST_READ:
                return
            self.read[0] += 100
            outcome = self._outcome(repair)
            if outcome is not None:
                yield repair, outcome

    def after(self, repair: _Repair, failed: int) -> _Place:
        """The place where reading fails next."""
        line = [] if repair.stand_in is None else [_in_place(repair.stand_in)]
        texts = [*self._texts[: repair.first], *line, *self._texts[repair.end :]]
        failed += len(line) - (repair.end - repair.first)
        found = _Place(*self.start, texts, self._tail, self._closed, failed)
        found.read = self.read
        return found

    def _outcome(self, repair: _Repair) -> _Outcome | None:
        state = self._state_at(repair.first).fork()
        if repair.stand_in is not None:
            line = _in_place(repair.stand_in)
            if state.advance(line) < _size(line):
                return None
        settled = state.is_complete()
        passed, index = 0, repair.end
        while passed < FAR_AHEAD and index <= len(self._texts):
            # Line by line first, then faster: all that is still to be seen is whether it goes on.
            many = index + (1 if passed < AHEAD else AHEAD)
            lines = [*self._texts[index:many], *([self._tail] if many > len(self._texts) else [])]
            chunk = "".join(lines)
            self.read[0] += len(chunk)
            accepted = state.advance(chunk)
            if accepted < _size(chunk):
                index += _line_at(lines, accepted)
                if index <= self._failed and repair.end <= self._failed:
                    return None
                if passed == 0 and repair.stand_in is not None and repair.stand_in.strip() != STAND_INS[0]:
                    return None  # a header that heads nothing
                if passed >= AHEAD and settled:
                    return _Outcome(None, FAR_FAILURE)
                return _Outcome(index, 1 + 1 / (1 + passed))
            passed += sum(1 for at, text in enumerate(lines, index) if at >= self._failed and text.strip())
            settled = settled or (self._failed < many <= len(self._texts) and state.is_complete())
            index = many
        if index > len(self._texts) and self._closed and not state.is_complete():
            return None if self._failed == len(self._texts) else _Outcome(len(self._texts), UNSETTLED)
        return _Outcome(None, 0 if settled else UNSETTLED)

    def _state_at(self, index: int) -> State:
        """Before a line."""
        if index not in self._states:
            known = max(other for other in self._states if other < index)
            state = self._states[known].fork()
            state.advance("".join(self._texts[known:index]))
            self._states[index] = state
        return self._states[index]

    def _repairs(self) -> Iterator[_Repair]:
        """What could be changed, in the order in which it is preferred at the same cost."""
        seen: set[tuple[int, int, str | None]] = set()
        for first, end, stand_in in self._spans():
            if self._from <= first < end <= len(self._texts) and (first, end, stand_in) not in seen:
                seen.add((first, end, stand_in))
                cost = float(sum(bool(text.strip()) for text in self._texts[first:end]))
                if stand_in is not None:
                    known = stand_in.lstrip(_BLANKS)
                    cost += 0.25 + (STAND_INS.index(known) if known in STAND_INS else len(STAND_INS)) / 100
                    if stand_in[-1] in "([{":
                        cost += OPENS
                    if first < self._failed and self._starts_statement:
                        cost += WHOLE_STATEMENT
                yield _Repair(first, end, stand_in, cost)

    def _spans(self) -> Iterator[tuple[int, int, str | None]]:
        failed, begin = self._failed, self.begin
        above = self._above(failed, 3)
        headers = self._headers()
        if self._at_start:
            for first in headers:
                if not self._state_at(first + 1).is_complete():
                    yield first, first + 1, None
        yield failed, failed + 1, None
        if begin is not None:
            yield begin, begin + 1, None
        for first in above:
            yield first, first + 1, None
        singles = range(failed - 1, begin if begin is not None else failed - 1, -1)
        for first in singles[:MOST_SINGLE]:
            yield first, first + 1, None
        for first in headers:
            yield first, first + 1, None
        for first in [failed, *above[:1]]:
            closing = self._closing(first)
            if closing is not None:
                yield first, first + 1, closing
        for first in [failed, *([] if begin is None else [begin]), *above[:1], *headers[:1]]:
            for stand_in in self._stand_ins(first):
                yield first, first + 1, stand_in
                if first == begin:
                    yield begin, failed, stand_in
                    yield begin, failed + 1, stand_in
        for first in [failed, *above, *([] if begin is None else [begin])]:
            if first < failed:
                yield first, failed, None
            yield from ((first, end, None) for end in self._run_ends(first, MOST_RUN))
            block = self._block_end(first)
            yield first, block, None
            yield first, block + 1, None
            yield first, self._level_end(first), None
        for stand_in in self._stand_ins(failed):
            for end in self._run_ends(failed, MOST_STAND_IN):
                yield failed, end, stand_in

    def _stand_ins(self, first: int) -> Iterator[str]:
        """Lines for the place of one, with its indentation and with that of the lines above."""
        like = [first, *([] if self.begin is None else [self.begin]), *self._above(first, 1)]
        blanks = dict.fromkeys(_blanks(self._texts[index]) for index in like if index < len(self._texts))
        return (before + stand_in for before in blanks for stand_in in STAND_INS)

    def _closing(self, first: int) -> str | None:
        """A line for the place of one that ends what is open there: a call's last line holds its brackets as well."""
        if first >= len(self._texts) or self.begin is None or self._state_at(first).is_complete():
            return None
        for closing in CLOSINGS:
            state = self._state_at(first).fork()
            if state.advance(closing) == len(closing) and state.is_complete():
                return _blanks(self._texts[first]) + closing
        return None

    def _above(self, index: int, most: int) -> list[int]:
        """The nearest lines with text above one."""
        found = (other for other in range(index - 1, self._from - 1, -1) if self._texts[other].strip())
        return list(islice(found, most))

    def _headers(self) -> list[int]:
        """The nearest lines above that stand further left, each than the one before."""
        found: list[int] = []
        if self._failed >= len(self._texts):
            return found
        lowest = _indentation(self._texts[self._failed])
        for index in range(self._failed - 1, self._from - 1, -1):
            text = self._texts[index]
            if text.strip() and _indentation(text) < lowest and len(found) < 3:
                lowest = _indentation(text)
                found.append(index)
        return found

    def _run_ends(self, first: int, most: int) -> Iterator[int]:
        """Where runs of lines with text end that begin at a line."""
        ends = (index + 1 for index in range(first, len(self._texts)) if self._texts[index].strip())
        return islice(ends, most)

    def _block_end(self, first: int) -> int:
        """Where the lines end that stand further right than a line, below it."""
        if first >= len(self._texts):
            return first
        own = _indentation(self._texts[first])
        return self._first_after(first + 1, lambda column: column <= own)

    def _level_end(self, first: int) -> int:
        """Where the lines end that stand no further left than a line, from it on."""
        if first >= len(self._texts):
            return first
        own = _indentation(self._texts[first])
        return self._first_after(first + 1, lambda column: column < own)

    def _first_after(self, start: int, ends: Callable[[int], bool]) -> int:
        end = start
        for index in range(start, len(self._texts)):
            if self._texts[index].strip():
                if ends(_indentation(self._texts[index])):
                    break
                end = index + 1
        return end


def _best(place: _Place) -> tuple[_Repair, ...]:
    """The repairs, to be made in this order, that are thought to cost least to get past a failure; none if none does.

    Best-first: the cheapest sequence that still fails is looked at where it does, until none can be cheaper than one
    that does not fail in sight.
    """
    order = count()
    waiting: list[tuple[float, int, float, tuple[_Repair, ...], _Place, int]] = []
    done: tuple[float, tuple[_Repair, ...]] = (inf, ())
    for _ in range(MOST_PLACES):
        spent, repairs = (waiting[0][2], waiting[0][3]) if waiting else (0.0, ())
        if waiting:
            price, _, _, _, origin, failed = heappop(waiting)
            if price > done[0]:
                break
            place = origin.after(repairs[-1], failed)
        branches = []
        for repair, outcome in place.outcomes(done[0] - spent):
            price = spent + repair.cost + outcome.further
            if outcome.failed is None:
                if price < done[0]:
                    done = price, (*repairs, repair)
            else:
                branches.append((price, next(order), spent + repair.cost, (*repairs, repair), place, outcome.failed))
        for branch in nsmallest(MOST_BRANCHES, branches):
            heappush(waiting, branch)
        if not waiting:
            break
    if waiting and done[0] > SURE * waiting[0][0]:
        return waiting[0][3]
    return done[1]
