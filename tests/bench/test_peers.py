"""Other engines: their grammars, how they are run, and that none of what they do ends a benchmark."""

from __future__ import annotations

import os
import time

import lark
import numpy as np
import pytest

from bench_corpus import SOURCE
from fim_server.bench.peers import grammars, running
from fim_server.bench.peers.engines import PEERS
from fim_server.bench.peers.jobs import Engine, Job, Peer, Work
from fim_server.bench.processes import in_limited_process


@pytest.fixture(scope="module", params=[True, False], ids=["longest match", "any split"])
def flat_parser(request: pytest.FixtureRequest) -> lark.Lark:
    text = grammars.flat_python(longest_match=request.param).lark(reserve=False)
    return lark.Lark(text, parser="earley", lexer="dynamic", regex=True)


def test_flat_python_takes_python(flat_parser: lark.Lark) -> None:
    flat_parser.parse(SOURCE)
    flat_parser.parse("class A: x: int = 1; y = 2\nasync def f(): pass\n\n# end\n")
    flat_parser.parse("try:\n  pass\nexcept* A as b:\n  pass\nfinally:\n  with (a as b,\n  c): pass\n")


@pytest.mark.parametrize("text", ["x = = 1\n", "if a\n", "f(\n", "x = (1\ny)\n", "@d x\n", "x = 1 y = 2\n", "x.\n"])
def test_flat_python_is_not_everything(flat_parser: lark.Lark, text: str) -> None:
    with pytest.raises(lark.exceptions.LarkError):
        flat_parser.parse(text)


def test_flat_python_has_no_layout() -> None:
    flat = grammars.flat_python(longest_match=True)
    symbols = {symbol for sides in flat.rules.values() for side in sides for symbol in side}
    assert symbols <= {*flat.rules, *flat.literals, *flat.patterns}
    assert not [name for name in symbols if "DENT" in name or "QUOTE" in name]
    assert {"if", "None", "lambda"} <= set(flat.reserved)
    assert not {"match", "case", "type", "_"} & set(flat.reserved)
    assert "NAME: /" in flat.lark(reserve=True)
    assert "& ~/(" in flat.lark(reserve=True)


def test_the_peers_json_is_the_engines() -> None:
    parser = lark.Lark(grammars.json_grammar(), parser="earley", lexer="dynamic")
    parser.parse('{"a": [1, -2.5e3, "\\u00e9", null]}')
    with pytest.raises(lark.exceptions.LarkError):
        parser.parse("[1,]")


class FakeEngine:
    """Allows every token but 9, and refuses left texts that end in a space."""

    def __init__(self) -> None:
        self.words = np.full(1, ~(1 << 9), dtype=np.int32)

    def open(self, job: Job) -> FakeEngine | None:
        return None if job.left.endswith(b" ") else self

    def fill_mask(self) -> None: ...

    def commit(self, token_id: int) -> bool:
        assert token_id != 9
        return True


def work(*jobs: Job, others: tuple[Job, ...] = ()) -> Work:
    return Work("json", [b"x"] * 32, None, list(jobs), list(others))


def test_a_peer_is_measured_and_its_refusals_counted() -> None:
    fake = Peer("json", "fake", lambda language: language, lambda work, text: FakeEngine())
    jobs = (Job(b"a", [0], [1, 2, 3]), Job(b"a", [0], [1, 9, 3]), Job(b"a ", [0], [1]))
    outcome = running.run_here(fake, work(*jobs, others=jobs[:1]))
    assert outcome.ran
    assert (len(outcome.cold), len(outcome.warm), len(outcome.others), len(outcome.commits)) == (5, 5, 3, 11)
    assert (outcome.steps, outcome.refused, outcome.refused_left) == (13, 2, 2)
    assert outcome.preparation is not None


def test_a_peer_that_refuses_its_grammar_is_a_line() -> None:
    def refuse(work: Work, text: str) -> Engine:
        raise ValueError("no such\nrule")

    outcome = running.run_here(Peer("json", "fake", lambda language: language, refuse), work())
    assert (outcome.ran, outcome.note) == (False, "failed: no such rule")


def test_an_absent_peer_is_a_line() -> None:
    absent = Peer("no_such_engine", "trie", lambda language: language, lambda work, text: FakeEngine())
    outcome = running.run(absent, work(), 1)
    assert (outcome.ran, outcome.name) == (False, "no_such_engine, trie")
    assert outcome.note.startswith("absent")


def test_a_peer_has_its_time() -> None:
    assert in_limited_process(60, os.path.basename, "a/b") == "b"
    with pytest.raises(TimeoutError):
        in_limited_process(0.2, time.sleep, 60)
    with pytest.raises(EOFError):
        in_limited_process(60, os._exit, 3)


@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: f"{peer.package} {peer.settings}")
@pytest.mark.parametrize("language", ["json", "python"])
def test_installed_peers_take_their_grammar(peer: Peer, language: str) -> None:
    if not peer.installed():
        pytest.skip("not installed")
    if (language, peer.settings) == ("python", "automaton"):
        pytest.skip("takes minutes and gigabytes")
    tokens: list[bytes | None] = [None, *(bytes([byte]) for byte in range(256))]
    left, middle = (b"# a\nx = (", b"\n1)\nelse:\n") if language == "python" else (b' {"a": [1', b"2, null]}\n")
    job = Job(left, [byte + 1 for byte in left], [byte + 1 for byte in middle])
    outcome = running.run_here(peer, Work(language, tokens, 0, [job], []))
    assert outcome.ran, outcome.note
    assert (outcome.refused, outcome.refused_left, outcome.steps) == (0, 0, 2 * len(middle))
