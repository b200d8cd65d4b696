"""Sessions, states and matchers in use, with each answer compared with a plainer one.

An operation is a list that JSON can hold: a name and its arguments. It can run in any world: indices are taken modulo
the number of things. So any part of a list of operations is one too, and failures can be made smaller by leaving some
out.

CPython's compiler or JSON's reader judges complete texts. `check` is compared with the middle byte by byte, a moved or
used session with one opened afresh, and a moved state with a new one. Masks are compared with the plain walk over all
tokens, and several threads with one.
"""

from __future__ import annotations

import random
import re
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from fim_server import Language, Matcher, Session, State, Vocabulary
from fim_server.errors import SearchLimitError, StoppedError
from fim_server.language import Stop
from fim_server.language.shapes import Shape
from fim_server.text.reuse import Sessions
from support.engine.corpus import cause_of, causes, reference, walk
from support.languages.json_judge import judge

Operation = list[Any]
"""A name and its arguments, all of which JSON can hold."""

TOKENIZER = Path(__file__).parents[3] / "fim_server" / "models" / "embedded" / "tokenizer.json"
SHAPES: tuple[Shape | None, ...] = (
    None,
    None,
    Shape.lines(1),
    Shape.lines(3),
    Shape.regex(r"[^\n#]{0,12}"),
    Shape.regex(r"(?s).*[\])}\"]"),
)
MOST_STATES, MOST_MATCHERS, MOST_REMEMBERED = 5, 3, 6
SAMPLED = 24  # tokens of each mask that are tried by their bytes
PATIENCE = 60.0
"""Seconds after which an operation is taken for one that hangs."""


class Difference(Exception):
    """Disagreement of an answer with its plainer counterpart."""


@cache
def vocabulary() -> Vocabulary:
    """The embedded model's 16,384 tokens: every byte is one of them."""
    return Vocabulary.from_file(TOKENIZER)


@cache
def byte_tokens() -> dict[bytes, int]:
    """The tokens of single bytes."""
    known = vocabulary()
    return {known.token_bytes(token): token for token in range(known.size) if len(known.token_bytes(token)) == 1}


def agree(what: str, found: object, expected: object) -> None:
    """Raises Difference unless two answers are equal."""
    if found != expected:
        raise Difference(f"{what}: {found!r}, but {expected!r}")


def described(session: Session) -> tuple[object, ...]:
    """Return a session's description of itself."""
    constructs = tuple((construct.name, construct.offset) for construct in session.open_constructs())
    return session.guarantee, tuple(session.diagnostics), session.broken_at, session.inside, constructs


def seen(state: State, every: bool) -> tuple[object, ...]:
    """Return the features that tell two states apart; with ``every``, also the bytes that may follow."""
    allowed = bytes(byte for byte in range(256) if every and state.fork().advance(bytes([byte])))
    return state.is_viable(), state.is_complete(), len(state), state.inside, allowed


def bytewise(state: State, data: bytes) -> int:
    """Advances by single bytes; returns how many were taken."""
    for index in range(len(data)):
        if state.advance(data[index : index + 1]) != 1:
            return index
    return len(data)


def outcome(work: Callable[[], object]) -> object:
    """A result, or that the search gave up."""
    try:
        return work()
    except SearchLimitError:
        return "gave up"


@dataclass
class HeldState:
    state: State
    middle: bytes


@dataclass
class HeldMatcher:
    matcher: Matcher
    shape: Shape | None
    tokens: list[int] = field(default_factory=list)

    @property
    def middle(self) -> bytes:
        return b"".join(vocabulary().token_bytes(token) for token in self.tokens)


@dataclass
class Asked:
    """A question that an earlier session has answered, which it still has to answer likewise."""

    session: Session
    middle: str
    verdict: object


class World:
    """One document in one language, and what holds on to it."""

    def __init__(self, language: str) -> None:
        self.language = Language.load(language)
        self.sessions = Sessions(3)
        self.left = self.right = ""
        self.session = self.language.open("", "")
        self._fresh: Session | None = None
        self.states: list[HeldState] = []
        self.matchers: list[HeldMatcher] = []
        self.remembered: list[Asked] = []
        self.counts: Counter[str] = Counter()

    @property
    def fresh(self) -> Session:
        """A session on the same contexts that was opened by itself."""
        if self._fresh is None:
            self._fresh = self.language.open(self.left, self.right)
        return self._fresh

    def do(self, operation: Operation) -> None:
        """Carries an operation out. Raises Difference, and whatever the package raises."""
        name, *arguments = operation
        self.counts[name] += 1
        try:
            with Stop(PATIENCE):
                getattr(self, f"do_{name}")(*arguments)
        except StoppedError:
            raise Difference(f"{name}: no answer within {PATIENCE:.0f} s") from None

    # --- contexts

    def do_open(self, left: str, right: str) -> None:
        self._settle(left, right, self.language.open(left, right))

    def do_reuse(self, left: str, right: str) -> None:
        """Open as an editor does, with the remains of earlier sessions."""
        self._settle(left, right, self.sessions.open(self.language, left, right))
        agree("a session that was reused", described(self.session), described(self.fresh))

    def do_move(self, left: str) -> None:
        moved = self.session.moved(left)
        self.counts["moved" if moved is not None else "not moved"] += 1
        self._settle(left, self.right, moved or self.language.open(left, self.right))
        agree("a session that was moved", described(self.session), described(self.fresh))

    def _settle(self, left: str, right: str, session: Session) -> None:
        self.left, self.right, self.session, self._fresh = left, right, session, None
        self.states, self.matchers = [], []

    def do_again(self, index: int) -> None:
        """Check that an earlier session still gives its answers after others continued from it."""
        if self.remembered:
            asked = self.remembered[index % len(self.remembered)]
            agree(f"check({asked.middle!r}) again", asked.session.check(asked.middle), asked.verdict)

    # --- questions about a session

    def do_check(self, middle: str) -> None:
        verdict = self.session.check(middle)
        self.remembered = [*self.remembered[1 - MOST_REMEMBERED :], Asked(self.session, middle, verdict)]
        agree(f"check({middle!r}) of a fresh session", self.fresh.check(middle), verdict)
        agree(f"check({middle!r}) by characters", walk(self.session, middle), verdict.rejected_at)
        agree("viable", verdict.viable, verdict.rejected_at is None)
        data = middle.encode()
        taken = bytewise(self.fresh.start(), data)
        agree(f"check({middle!r}) by bytes", len(data[:taken].decode(errors="ignore")), _whole(verdict, middle))
        self.counts["complete" if verdict.complete else "viable" if verdict.viable else "refused"] += 1
        self._judge(middle, verdict.complete)

    def _judge(self, middle: str, complete: bool) -> None:
        """Another program's word on the whole text."""
        text = self.left + middle + self.right
        if self.language.name == "json":
            agree(f"complete of {middle!r}, by JSON's reader", complete, judge(text))
        elif complete != reference(text):
            cause = cause_of(self.left, middle, self.right)
            self.counts["differs from CPython for a known cause"] += 1
            if cause is None or cause not in causes():
                raise Difference(f"complete of {middle!r}: {complete}, not by CPython ({cause})")

    def do_grammar(self) -> None:
        agree("quotient grammar", self.session.quotient_grammar(), self.fresh.quotient_grammar())

    # --- states

    def do_start(self) -> None:
        self.states = [*self.states[1 - MOST_STATES :], HeldState(self.session.start(), b"")]

    def _state(self, index: int) -> HeldState:
        if not self.states:
            self.do_start()
        return self.states[index % len(self.states)]

    def _plain(self, middle: bytes) -> State:
        """A state of the fresh session after a middle."""
        state = self.fresh.start()
        agree(f"{middle!r} taken by a fresh state", state.advance(middle), len(middle))
        return state

    def do_advance(self, index: int, text: str) -> None:
        """``text`` is Latin-1 for bytes."""
        held, data = self._state(index), text.encode("latin-1")
        taken = held.state.advance(data)
        agree(f"advance({data!r}) after {held.middle!r}", taken, bytewise(self._plain(held.middle), data))
        held.middle += data[:taken]

    def do_rollback(self, index: int, count: int) -> None:
        held = self._state(index)
        if count > len(held.middle):
            _refuses(lambda: held.state.rollback(count), "a rollback beyond the beginning")
            return
        held.state.rollback(count)
        held.middle = held.middle[: len(held.middle) - count]
        agree("the length after a rollback", len(held.state), len(held.middle))

    def do_fork(self, index: int) -> None:
        held = self._state(index)
        self.states = [*self.states[1 - MOST_STATES :], HeldState(held.state.fork(), held.middle)]

    def do_observe(self, index: int, every: bool) -> None:
        held = self._state(index)
        agree(f"a state after {held.middle!r}", seen(held.state, every), seen(self._plain(held.middle), every))

    def do_shortest(self, index: int) -> None:
        held = self._state(index)
        found = outcome(held.state.shortest_completion)
        if found == "gave up":
            self.counts["searches that gave up"] += 1
            return
        plain = self._plain(held.middle)
        agree(f"distance after {held.middle!r}", outcome(plain.distance), outcome(held.state.distance))
        if not isinstance(found, str):
            agree("no completion", (found, held.state.is_viable()), (None, False))
            return
        agree("distance 0", found == "", held.state.is_complete())
        try:
            middle = held.middle.decode()
        except UnicodeDecodeError:
            return
        agree(f"{found!r} completes {middle!r}", self.fresh.check(middle + found).complete, True)
        self._judge(middle + found, True)

    def do_explain(self, index: int, text: str) -> None:
        held = self._state(index)
        found, plain = held.state.explain(text), self._plain(held.middle)
        agree(f"explain({text!r})", found, plain.explain(text))
        data = text.encode()
        taken = bytewise(held.state.fork(), data)
        agree("what explain accepts", found.accepted, data[:taken].decode(errors="ignore"))
        if held.state.is_viable():
            agree("where explain stops", found.rejected_at, None if taken == len(data) else taken)
        agree("lines of a message", found.message.count("\n"), 0)

    # --- matchers

    def do_matcher(self, shape: int) -> None:
        chosen = SHAPES[shape % len(SHAPES)]
        made = HeldMatcher(self.session.matcher(vocabulary(), chosen), chosen)
        self.matchers = [*self.matchers[1 - MOST_MATCHERS :], made]

    def _matcher(self, index: int) -> HeldMatcher:
        if not self.matchers:
            self.do_matcher(0)
        return self.matchers[index % len(self.matchers)]

    def _plain_matcher(self, held: HeldMatcher) -> Matcher:
        matcher = self.fresh.matcher(vocabulary(), held.shape)
        for token in held.tokens:
            matcher.commit(token)
        return matcher

    def do_commit(self, index: int, token: int) -> None:
        held = self._matcher(index)
        token %= vocabulary().size
        if token in vocabulary().end_token_ids:
            return
        allowed = held.matcher.allows(token)
        if allowed:
            held.matcher.commit(token)
            held.tokens.append(token)
        else:
            _refuses(lambda: held.matcher.commit(token), f"token {token} after {held.middle!r}")

    def do_take_back(self, index: int, count: int) -> None:
        held = self._matcher(index)
        if count > len(held.tokens):
            _refuses(lambda: held.matcher.rollback(count), "a rollback beyond the beginning")
            return
        held.matcher.rollback(count)
        held.tokens = held.tokens[: len(held.tokens) - count]

    def do_mask(self, index: int, seed: int) -> None:
        held, known = self._matcher(index), vocabulary()
        mask = held.matcher.mask()
        words = np.zeros((known.size + 31) // 32, np.uint32)
        held.matcher.fill_mask_plain(words)
        plain = np.unpackbits(words.view(np.uint8), bitorder="little")[: known.size].astype(np.bool_)
        at = f"after {held.middle!r}, shape {held.shape}"
        agree(f"mask and plain walk {at}", np.flatnonzero(mask != plain).tolist(), [])
        fresh = self._plain_matcher(held)
        agree(f"mask of a fresh session {at}", np.flatnonzero(fresh.mask() != mask).tolist(), [])
        agree(f"complete {at}", held.matcher.is_complete(), fresh.is_complete())
        draw = random.Random(seed)
        allowed = np.flatnonzero(mask).tolist()
        sample = draw.sample(allowed, min(SAMPLED // 2, len(allowed))) + draw.sample(range(known.size), SAMPLED // 2)
        state = self._plain(held.middle)
        for token in sample:
            agree(f"allows({token}) {at}", held.matcher.allows(token), bool(mask[token]))
            data = known.token_bytes(token)
            if held.shape is None and data and token not in known.end_token_ids:
                agree(f"the bytes of {token} {at}", state.fork().advance(data) == len(data), bool(mask[token]))
        for token in known.end_token_ids:
            agree(f"the end {at}", bool(mask[token]), held.matcher.is_complete())

    def do_plan(self, index: int, enough: int) -> None:
        held = self._matcher(index)
        tokens = outcome(lambda: held.matcher.plan(enough))
        if not isinstance(tokens, list):
            self.counts["plans that gave up"] += tokens == "gave up"
            return
        for token in tokens:
            held.matcher.commit(token)
        agree(f"complete after the plan {tokens}", held.matcher.is_complete(), True)
        text = held.middle + b"".join(vocabulary().token_bytes(token) for token in tokens)
        agree(f"complete of {text!r}, planned", self.fresh.check(text.decode()).complete, True)
        if held.shape is not None:
            agree(f"{text!r} has its shape", has_shape(text.decode(), held.shape), True)
        held.matcher.rollback(len(tokens))

    def do_land(self, index: int, left: int, seed: int) -> None:
        held, known = self._matcher(index), vocabulary()
        mask = held.matcher.mask()
        words = np.zeros((known.size + 31) // 32, np.uint32)
        held.matcher.fill_landing_mask(words, left)
        landing = np.unpackbits(words.view(np.uint8), bitorder="little")[: known.size].astype(np.bool_)
        agree("tokens that land and are refused", np.flatnonzero(landing & ~mask).tolist(), [])
        allowed = np.flatnonzero(mask).tolist()
        for token in random.Random(seed).sample(allowed, min(4, len(allowed))):
            if held.matcher.lands(token, left) and token not in known.end_token_ids:
                held.matcher.commit(token)
                plan = outcome(lambda: held.matcher.plan(left))
                held.matcher.rollback(1)
                agree(f"a plan of at most {left} tokens", isinstance(plan, list) and len(plan) <= left, True)

    def do_forced(self, index: int) -> None:
        held = self._matcher(index)
        data = held.matcher.forced()
        if held.shape is not None:
            return
        state = self._plain(held.middle)
        for byte in data:
            allowed = bytes(other for other in range(256) if state.fork().advance(bytes([other])))
            agree(f"{data!r} is forced after {held.middle!r}", (allowed, state.is_complete()), (bytes([byte]), False))
            state.advance(bytes([byte]))

    # --- being stopped, and several threads

    def do_stop(self, milliseconds: float, left: str, middle: str) -> None:
        """Stop work of each kind that can take long; the session and its language answer afterwards as ever."""
        works: list[Callable[[], object]] = [
            lambda: self.language.open(left, self.right).check(middle),
            lambda: self.session.moved(left),
            lambda: self.session.check(middle),
            lambda: outcome(self.session.start().shortest_completion),
            lambda: self.session.start().explain(middle),
            lambda: self.session.matcher(vocabulary()).mask(),
            lambda: self.session.matcher(vocabulary(), Shape.lines(2)).mask(),
            lambda: outcome(self.session.matcher(vocabulary()).plan),
            self.session.quotient_grammar,
        ]
        for work in works:
            try:
                with Stop(milliseconds / 1000):
                    work()
                self.counts["not stopped"] += 1
            except StoppedError:
                self.counts["stopped"] += 1
        agree("a session that was stopped", described(self.session), described(self.fresh))
        agree("check after a stop", self.session.check(middle), self.fresh.check(middle))
        moved = self.session.moved(left)
        if moved is not None:
            agree("moved after a stop", moved.check(middle), self.language.open(left, self.right).check(middle))
        mask = self.session.matcher(vocabulary(), Shape.lines(2)).mask()
        fresh = self.language.open(self.left, self.right).matcher(vocabulary(), Shape.lines(2)).mask()
        agree("mask after a stop", np.flatnonzero(mask != fresh).tolist(), [])

    def do_threads(self, middles: list[str], milliseconds: float) -> None:
        """Several threads at one session and one state; one of them is stopped by another."""
        fresh = self.fresh
        expected = [fresh.check(middle) for middle in middles]
        masks = [_mask_after(fresh, middle) for middle in middles]
        shared, stop = self.session.start(), Stop()
        problems: list[BaseException] = []

        def work(watched: bool, offset: int) -> None:
            try:
                for number in range(offset, offset + len(middles)):
                    middle = middles[number % len(middles)]
                    found = self.session.check(middle)
                    agree(f"check({middle!r}) in a thread", found, expected[number % len(middles)])
                    own = _mask_after(self.session, middle)
                    agree(f"mask after {middle!r} in a thread", own == masks[number % len(middles)], True)
                    shared.fork().advance(middle)
                    moved = self.session.moved(self.left)
                    if moved is not None:
                        agree(f"check({middle!r}), moved in a thread", moved.check(middle), found)
            except StoppedError as error:
                if not watched:
                    problems.append(error)
            except BaseException as error:  # noqa: BLE001, a panic among them
                problems.append(error)

        def stopped() -> None:
            with stop:
                work(True, 2)

        threads = [threading.Thread(target=work, args=(False, number)) for number in range(2)]
        threads.append(threading.Thread(target=stopped))
        timer = threading.Timer(milliseconds / 1000, stop.set)
        for thread in (*threads, timer):
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        timer.cancel()
        agree("threads that still run", sum(thread.is_alive() for thread in threads), 0)
        if problems:
            raise problems[0]
        agree("a state that threads have forked", seen(shared, False), seen(self._plain(b""), False))


def _whole(verdict: Any, middle: str) -> int:
    return len(middle) if verdict.rejected_at is None else verdict.rejected_at


def _refuses(work: Callable[[], object], what: str) -> None:
    """Raises Difference unless there is a ValueError of one line."""
    try:
        work()
    except ValueError as error:
        agree(f"lines of the message for {what}", str(error).count("\n"), 0)
    else:
        raise Difference(f"{what} was not refused")


def _mask_after(session: Session, middle: str) -> bytes:
    """The mask after as much of a middle as is viable."""
    matcher = session.matcher(vocabulary())
    for byte in middle.encode():
        token = byte_tokens()[bytes([byte])]
        if not matcher.allows(token):
            break
        matcher.commit(token)
    return matcher.mask().tobytes()


def has_shape(text: str, shape: Shape) -> bool:
    """Return whether a text has a shape of :data:`SHAPES`, by Python's own means."""
    if shape.most_lines is not None:
        return text.count("\n") < shape.most_lines and "\r" not in text
    assert shape.pattern is not None
    return re.fullmatch(shape.pattern, text) is not None
