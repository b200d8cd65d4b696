"""Stopping the engine: what is watched is left soon, and what others keep is whole afterwards."""

from __future__ import annotations

import threading

import pytest

from fim_server import Language, Stop, StoppedError, Vocabulary
from fim_server.language.shapes import SINGLE_LINE

LONG = "1," * 1_000_000 + "]\n"
"""A right context that takes many seconds to open."""

RIGHT = "b)\n" + "x = [1, 2]\n" * 200


def python() -> Language:
    return Language.load("python")


def test_opening_is_left_when_another_thread_says_so() -> None:
    stop = Stop()
    begun = threading.Event()
    raised: list[BaseException] = []

    def work() -> None:
        try:
            with stop:
                begun.set()
                python().open("x = [", LONG)
        except StoppedError as error:
            raised.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    begun.wait()
    stop.set()
    thread.join(20)
    assert not thread.is_alive()
    assert len(raised) == 1


def test_opening_is_left_after_a_time() -> None:
    stop = Stop(0.02)
    assert not stop.is_set()
    with stop, pytest.raises(StoppedError):
        python().open("x = [", LONG)
    assert stop.is_set()


@pytest.mark.parametrize("left", ["x = [" + "1," * 1_000_000, "def f(" + "a, " * 500_000])
def test_reading_the_left_context_is_left(left: str) -> None:
    with Stop(0.02), pytest.raises(StoppedError):
        python().open(left, "")


def test_a_stopped_session_answers_as_a_fresh_one() -> None:
    """Stopped at many places, an engine that sessions share says what one says that was never stopped."""
    fresh = python().open("a = f(", RIGHT)
    tokens = [None, *(bytes([byte]) for byte in range(256)), b"b, ", b"x(y)", b'f"{']
    vocabulary = Vocabulary(tokens, [0])
    session = python().open("a = f(", RIGHT)
    stopped = 0
    for micros in range(0, 4_000, 40):
        with Stop(micros / 1e6):
            try:
                state = session.start()
                state.advance("b, c[")
                state.shortest_completion()
                moved = session.moved("a = f(x, ")
                if moved is not None:
                    moved.matcher(vocabulary).mask()
            except StoppedError:
                stopped += 1
    assert 0 < stopped < 100
    for middle in ("", "b, c", "b)", "x for x in ", "lambda: "):
        assert session.check(middle) == fresh.check(middle)
    one, other = session.start(), fresh.start()
    assert one.advance("b, [") == other.advance("b, [")
    assert (one.distance(), one.shortest_completion()) == (other.distance(), other.shortest_completion())
    assert (session.matcher(vocabulary).mask() == fresh.matcher(vocabulary).mask()).all()


def test_blocks_within_blocks_are_left_for_each_of_them() -> None:
    outer, inner = Stop(), Stop()
    outer.set()
    with outer, inner, pytest.raises(StoppedError):
        python().open("", "x\n")
    with inner:
        assert python().open("", "x\n").guarantee == "exact"
    assert python().open("", "x\n").guarantee == "exact"


@pytest.mark.parametrize("within", [-1.0, float("nan")])
def test_a_wrong_time_is_refused(within: float) -> None:
    with pytest.raises(ValueError, match="within"):
        Stop(within)


HOSTILE = {
    "nested in L": ("f(" * 150 + "[x for x in " * 40, "\n"),
    "nested in R": ("x = (", "a" + ")" * 120 + "\n"),
    "blocks": ("".join(" " * at + "try:\n" for at in range(60)) + " " * 60, ""),
}


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("mask", "nested in L"),
        ("mask", "blocks"),
        ("line", "nested in R"),
        ("plan", "nested in R"),
        ("lands", "blocks"),
        ("lands", "nested in R"),
        ("completion", "nested in L"),
    ],
)
def test_engine_calls_heed_their_stops(name: str, question: str) -> None:
    """However the work is done, by the table or the trie: work that looks is left within some dozens of its steps."""
    session = python().open(*HOSTILE[name])
    assert session.guarantee == "exact"
    tokens = [None, *(bytes([byte]) for byte in range(256)), b"): ", b"x, y", b"if x", b"\n    ", b'f"{', b" for x in "]
    matcher = session.matcher(Vocabulary(tokens, [0]), SINGLE_LINE if question == "line" else None)
    stop = Stop()
    with stop:
        match question:
            case "mask" | "line":
                matcher.mask()
            case "plan":
                matcher.plan()
            case "lands":
                matcher.lands(ord("(") + 1, 12)
            case "completion":
                session.start().shortest_completion()
    assert stop.looks > 0


def test_a_stopped_call_moves_nothing() -> None:
    """A state and a matcher that were stopped are where they were, and go on as others do."""
    left, right = HOSTILE["nested in R"]
    tokens = [None, *(bytes([byte]) for byte in range(256)), b"a, b", b'f"{']
    vocabulary = Vocabulary(tokens, [0])
    stopped = 0
    for micros in range(0, 2_000, 20):
        session = python().open(left, right)
        matcher, state = session.matcher(vocabulary), session.start()
        fresh = python().open(left, right).matcher(vocabulary)
        middle = "a, b, [c for d in e if f("
        try:
            with Stop(micros / 1e6):
                state.advance(middle)
                matcher.lands(ord("[") + 1, 4)
                matcher.commit(ord("(") + 1)
        except StoppedError:
            stopped += 1
            assert len(state) in (0, len(middle))
        else:
            fresh.commit(ord("(") + 1)
        assert (matcher.mask() == fresh.mask()).all()
    assert stopped > 0


def test_a_call_beyond_its_memory_ends_and_the_next_runs() -> None:
    stop = Stop(holding=2_000_000)
    with stop:
        with pytest.raises(StoppedError):
            python().open("x = [", LONG)
        assert not stop.is_set()
        small = python().open("x = [", "1, 2]\n")
    assert small.guarantee == "exact"
    with pytest.raises(OverflowError):
        Stop(holding=-1)


def test_a_session_reports_its_bytes() -> None:
    """Twice the text holds some twice as much, and what follows a keystroke holds no less than what it goes on from."""
    small, large = (python().open("x = [", "1, [2, 3],\n" * count + "]\n") for count in (2_000, 4_000))
    assert 1.5 < large.held / small.held < 2.5
    moved = large.moved("x = [1, ")
    assert moved is not None
    assert large.held <= moved.held < 1.1 * large.held
