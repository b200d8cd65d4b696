"""Other engines: their grammars, how they are run, and that none of what they do ends a benchmark."""

from __future__ import annotations

import os
import re
import time
from dataclasses import replace

import lark
import numpy as np
import pytest

from benchmarks.peers import grammars, running
from benchmarks.peers.engines import PEERS
from benchmarks.peers.jobs import Engine, Job, Peer, Work
from benchmarks.processes import in_limited_process
from fim_server.language import Language
from fim_server.language.definition import compile as grammar
from support.bench_corpus import SOURCE


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
    assert {"if", "None", "lambda"} <= set(flat.reserved["NAME"])
    assert not {"match", "case", "type", "_"} & set(flat.reserved["NAME"])
    assert "NAME: /" in flat.lark(reserve=True)
    assert "& ~/(" in flat.lark(reserve=True)


def test_the_peers_json_is_the_engines() -> None:
    parser = lark.Lark(grammars.json_grammar(), parser="earley", lexer="dynamic")
    parser.parse('{"a": [1, -2.5e3, "\\u00e9", null]}')
    with pytest.raises(lark.exceptions.LarkError):
        parser.parse("[1,]")


GO = "package p\n\nfunc f(a int) {\n\tx := []int{1, a} // one\n\tif x != nil {\n\t\treturn\n\t}\n}\n"
LOWERED = {name: grammar.lower(grammar.read_builtin(name)) for name in Language.names()}
WITHOUT_LAYOUT = [name for name, lowered in LOWERED.items() if lowered["layout"] is None and not lowered["modes"]]


def test_lowered_go_is_go() -> None:
    parser = lark.Lark(grammars.lowered("go").lark(reserve=False), parser="earley", lexer="dynamic", regex=True)
    parser.parse(GO)
    parser.parse("package p\nvar x = <-chan<- int(nil)\n")
    for wrong in ("package p q\n", "package p\nvar = 1\n", "package p\nfunc f() { if x { }\n", "package p\nx := 1\n"):
        with pytest.raises(lark.exceptions.LarkError):
            parser.parse(wrong)


@pytest.mark.parametrize("language", [name for name in WITHOUT_LAYOUT if name != "json"])
def test_what_is_lowered_is_the_definition(language: str) -> None:
    flat = grammars.lowered(language)
    definition = grammar.read_builtin(language)
    # What no peer can say is left out.
    definition = replace(definition, spec={key: value for key, value in definition.spec.items() if key != "matched"})
    found = grammar.lower(definition)
    errors = definition.spec.get("error_lexemes", [])
    assert len(flat.literals) + len(flat.patterns) == len(found["lexemes"]) - len(errors)
    assert sum(map(len, flat.rules.values())) == len(found["rules"]) + (0 if "start" in flat.rules else 1)
    symbols = {symbol for sides in flat.rules.values() for side in sides for symbol in side}
    assert symbols <= {*flat.rules, *flat.literals, *flat.patterns}
    text = flat.lark(reserve=True)
    assert text.startswith("start: ")
    for line in filter(None, text.split("\n")):  # patterns hold other characters that end lines
        assert re.match(r"[a-z][a-z0-9_]*: |[A-Z][A-Z0-9_]*: /|%ignore [A-Z]", line), line


def test_names_exclude_keywords_and_patterns_those_of_a_higher_priority() -> None:
    flat = grammars.lowered("go")
    assert {"func", "go", "return"} <= set(flat.reserved["NAME"])
    assert "STRING" not in flat.reserved
    lines = {line.partition(":")[0]: line for line in flat.lark(reserve=True).splitlines()}
    assert lines["NAME"].endswith("|type|var)/ & ~NUMBER")
    assert "& ~" not in lines["NUMBER"]
    assert "& ~" not in flat.lark(reserve=False)


def test_a_language_with_layout_is_a_line() -> None:
    peer = Peer(
        "json", "fake", lambda language: grammars.lowered("python").lark(False), lambda work, text: FakeEngine()
    )
    outcome = running.run_here(peer, Work("python", [b"x"], None, [], []))
    assert (outcome.ran, outcome.note) == (False, "no grammar for it: python has layout or modes, which no peer has")


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
@pytest.mark.parametrize("language", ["json", "python", "go"])
def test_installed_peers_take_their_grammar(peer: Peer, language: str) -> None:
    if not peer.installed():
        pytest.skip("not installed")
    if (language, peer.settings) == ("python", "automaton"):
        pytest.skip("takes minutes and gigabytes")
    tokens: list[bytes | None] = [None, *(bytes([byte]) for byte in range(256))]
    left, middle = {
        "python": (b"# a\nx = (", b"\n1)\nelse:\n"),
        "json": (b' {"a": [1', b"2, null]}\n"),
        "go": (b"package p // a\nvar x = f(", b"1,\n)\nvar y int\n"),
    }[language]
    job = Job(left, [byte + 1 for byte in left], [byte + 1 for byte in middle])
    outcome = running.run_here(peer, Work(language, tokens, 0, [job], []))
    assert outcome.ran, outcome.note
    assert (outcome.refused, outcome.refused_left, outcome.steps) == (0, 0, 2 * len(middle))
