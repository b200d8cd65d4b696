"""States, matchers, vocabularies and languages: everything the public API promises beyond the verdicts themselves."""

import random
import threading
from collections.abc import Callable
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fim_server import Language, LanguageError, Matcher, Session, State, Vocabulary, VocabularyError
from fim_server.errors import SearchLimitError
from fim_server.language.stop import Stop
from support.engine.corpus import Cut, cuts, python

SEED = 1
LIMIT = 6_000  # bytes of a file
TOKENIZER = Path(__file__).parents[2] / "fim_server" / "models" / "embedded" / "tokenizer.json"
FUNCTION = ("def f(a):\n    return ", "\n\n\nprint(f('é'))\n")


@cache
def chosen_cuts() -> list[Cut]:
    return list(islice(cuts(random.Random(SEED), LIMIT, 4), 24))


def fresh(session: Session, middle: bytes) -> State:
    state = session.start()
    assert state.advance(middle) == len(middle)
    return state


def seen(state: State) -> tuple[bool, bool, int, bytes]:
    """Return the bytes that may follow, by which two states are told apart."""
    allowed = bytes(byte for byte in range(256) if state.fork().advance(bytes([byte])))
    return state.is_viable(), state.is_complete(), len(state), allowed


# ---------------------------------------------------------------- states


def test_advance_returns_the_bytes_that_it_took() -> None:
    state = python().open(*FUNCTION).start()
    assert state.advance("a + ") == 4
    assert state.advance("b)") == 1
    assert len(state) == 5
    assert state.advance("") == 0
    assert state.advance(".x") == 2
    assert state.is_complete()


def test_advance_takes_bytes_that_are_part_of_a_character() -> None:
    state = python().open("a = '", "'\n").start()
    assert state.advance("é".encode()[:1]) == 1
    assert not state.is_complete()
    assert state.is_viable()
    assert state.advance(b"x") == 0
    assert state.advance("é".encode()[1:]) == 1
    assert state.is_complete()
    assert python().open("a = '", "'\n").start().advance(b"\xff") == 0


def test_advance_in_any_pieces_is_the_same() -> None:
    rng = random.Random(SEED)
    for cut in chosen_cuts():
        session = python().open(cut.left, cut.right)
        data = cut.middle.encode()
        whole = fresh(session, data)
        pieces = session.start()
        at = 0
        while at < len(data):
            size = rng.randrange(1, 9)
            assert pieces.advance(data[at : at + size]) == len(data[at : at + size])
            at += size
        assert seen(pieces) == seen(whole)


def test_a_refused_byte_changes_nothing() -> None:
    for cut in chosen_cuts():
        state = fresh(python().open(cut.left, cut.right), cut.middle.encode())
        before = seen(state)
        refused = [byte for byte in range(256) if state.fork().advance(bytes([byte])) == 0]
        for byte in refused[:8]:
            assert state.advance(bytes([byte])) == 0
        assert refused
        assert seen(state) == before


def test_forks_are_independent() -> None:
    session = python().open(*FUNCTION)
    state = fresh(session, b"(a")
    fork = state.fork()
    assert fork.advance(" + 1)") == 5
    assert fork.is_complete()
    assert not state.is_complete()
    assert seen(state) == seen(fresh(session, b"(a"))
    state.rollback(2)
    assert fork.is_complete()
    assert len(fork) == 7
    fork.rollback(7)
    assert seen(fork) == seen(state) == seen(session.start())


def test_rollback_restores() -> None:
    rng = random.Random(SEED)
    for cut in chosen_cuts():
        session = python().open(cut.left, cut.right)
        data = cut.middle.encode()
        state = fresh(session, data)
        for _ in range(6):
            keep = rng.randint(0, len(state))
            state.rollback(len(state) - keep)
            assert seen(state) == seen(fresh(session, data[:keep]))
            state.advance(rng.choice([b"x", b"(", b"'", b"\n", b" ", b")", "é".encode(), b"\xff"]))
            state.rollback(len(state) - keep)
            assert state.advance(data[keep:]) == len(data) - keep
        assert state.is_complete()


def test_rollback_of_more_than_there_is() -> None:
    state = fresh(python().open(*FUNCTION), b"a")
    for count in (2, -1, 1 << 40):
        with pytest.raises(ValueError, match=r"^[^\n]+$"):
            state.rollback(count)
    assert len(state) == 1
    assert state.is_complete()


def test_shortest_completion_completes() -> None:
    state = fresh(python().open("a = (", "\n"), b"[1")
    assert state.distance() == 2
    assert state.shortest_completion() == "])"
    assert state.shortest_completion(100) == "])"
    with pytest.raises(SearchLimitError, match=r"over the limit of 1$"):
        state.shortest_completion(1)
    state.advance("])")
    assert state.distance() == 0
    assert state.shortest_completion() == ""


@pytest.mark.parametrize(
    ("name", "left", "right", "expected"),
    [
        ("python", "x = f(\n    g(a", "\n    b,\n)\n", "),"),
        ("python", "x = f(\n    g(a)", "\n    b,\n)\n", ","),
        ("go", "package a\nfunc f() {\n\tx(\n\t\ta", "\n\t\tb,\n\t)\n}\n", ","),
        ("java", "class A { int[] b = {\n1", "\n2}; }\n", ","),
        ("rust", "fn f() { g(\na", "\nb) }\n", ","),
    ],
)
def test_of_the_shortest_completions_one_without_an_operator_comes_first(
    name: str, left: str, right: str, expected: str
) -> None:
    state = Language.load(name).open(left, right).start()
    assert state.shortest_completion() == expected
    assert state.likely_next(state.explain("")) == f'"{expected[0]}"'


def test_explain_says_what_is_open() -> None:
    explanation = python().open("a = f([", "])\n").start().explain("1]")
    assert explanation.accepted == "1]"
    explanation = python().open("a = f([", "])\n").start().explain("é )")
    assert explanation.accepted == "é "
    assert explanation.rejected_at == 3
    assert explanation.message
    assert "\n" not in explanation.message


def test_lone_surrogates_do_not_raise() -> None:
    assert not python().open("a = ", "\n").check("\ud800").viable
    assert python().open("a = ", "\n").check("b\udfff").rejected_at == 1
    assert python().open("a = '\ud800", "'\n").check("").viable in (True, False)
    assert python().open("a = ", "\udc80\n").guarantee in ("exact", "none")
    assert python().open("a = ", "\n").start().advance("\ud800") == 0
    assert python().open("a = ", "\n").start().explain("\ud800").rejected_at == 0


@pytest.mark.parametrize(
    ("left", "right"),
    [(")", ""), ("", "\na b\n"), ("a b", "\n"), ("", "\n?\n"), ("if a:\n    b\n  c\n", ""), ("'\n", "")],
)
def test_contexts_that_do_not_parse_refuse_everything(left: str, right: str) -> None:
    session = python().open(left, right)
    assert session.guarantee == "none"
    assert session.diagnostics
    assert all(line and "\n" not in line for line in session.diagnostics)
    for middle in ("", "a", "\n", "#", "é"):
        verdict = session.check(middle)
        assert (verdict.viable, verdict.complete, verdict.rejected_at) == (False, False, 0)
    state = session.start()
    assert not state.is_viable()
    assert not state.is_complete()
    assert state.advance("a") == 0
    assert state.distance() is None
    assert state.shortest_completion() is None
    assert state.explain("a").rejected_at == 0
    assert not session.matcher(small_vocabulary()).mask().any()
    assert session.quotient_grammar() is not None


def test_a_large_quotient_grammar_can_be_stopped_while_it_is_reduced() -> None:
    """Looks at a Stop are counted. What reduced it went over all rules as often as one holds another, and looked at
    nothing: 67 s for 30,000 elements, whatever the deadline said."""

    def looks(count: int) -> int:
        session = python().open("x=[", "1," * count + "]\n")
        with Stop() as stop:
            session.quotient_grammar()
        return stop.looks

    few, many = looks(2_000), looks(4_000)
    assert few > 800
    assert many < 2.5 * few


def test_the_quotient_grammar_of_a_hole() -> None:
    grammar = python().open("a = (1 ", "2)\n").quotient_grammar()
    assert "->" in grammar or "::=" in grammar or ":" in grammar
    assert "+" in grammar
    assert '"def"' not in grammar.split("\n")[0]


def test_two_threads_may_check_one_session() -> None:
    cut = max(chosen_cuts(), key=lambda cut: len(cut.middle))
    session = python().open(cut.left, cut.right)
    middles = [cut.middle[:end] for end in range(len(cut.middle) + 1)] + [cut.middle + "$$"]
    expected = [python().open(cut.left, cut.right).check(middle) for middle in middles]
    found: list[list[object]] = [[], [], []]

    def work(results: list[object]) -> None:
        state = session.start()
        for middle in middles:
            results.append(session.check(middle))
            state.rollback(len(state))
            state.advance(middle)
            session.matcher(small_vocabulary()).mask()

    threads = [threading.Thread(target=work, args=(results,)) for results in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(results == expected for results in found)


# ---------------------------------------------------------------- masks


def words(text: str) -> list[str]:
    return text.split()


END = 3
HOLES = (0, 7, 250)


@cache
def small_tokens() -> tuple[bytes | None, ...]:
    """300 tokens: single bytes, part of characters, no UTF-8 at all, line breaks with text, keywords, holes."""
    texts = words(
        "a b x y self i if el else f lambda return def class for in not is None import 0 1 0x 1e 07 _ match case "
        "é 变 😀 ( ) [ ] { } : , . ; = == += -> := ** * // < << # ' \" ''' \"\"\" '' f' b' r\" \\ \\n \\' \\x4 "
        "@ ! $ ? ` ~ ... .."
    )
    texts += [
        "\n",
        "\n\n",
        "\n ",
        "\n  ",
        "\n    ",
        "\n        ",
        "\n\t",
        "\r\n",
        "\r",
        "\f",
        "\t",
        " ",
        "  ",
        "    ",
        "\\\n",
    ]
    texts += [
        "\n    return",
        "\nelse:",
        ":\n    ",
        ":\n        ",
        ")\n",
        "))",
        "()",
        "(a",
        "a)",
        "a,",
        ", ",
        " = ",
        " in ",
        " not",
    ]
    texts += [
        "if a:\n    b\n",
        "x = 1\n",
        "pass\n",
        "# c\n",
        "'a'",
        '"""a\n',
        "a\n  b",
        "a\n\nb",
        "def f(",
        "def f():\n",
        " if",
    ]
    tokens = [text.encode() for text in texts]
    tokens += [bytes([byte]) for byte in range(0x7F, 0x100)]
    tokens += [
        b"\xc3\xa9\xc3",
        b"\x98\x80'",
        b"a\xff",
        b"'\xe5\x8f",
        b"\n\xf0\x9f",
        b"\0",
        b"\x80\x80",
        b"\xf0\x9f\x98",
    ]
    tokens += [bytes([byte]) for byte in range(0x20, 0x7F) if bytes([byte]) not in tokens]
    filled: list[bytes | None] = []
    for token in tokens:
        while len(filled) in HOLES or len(filled) == END:
            filled.append(None)
        filled.append(token)
    return tuple(filled[:300])


@cache
def small_vocabulary() -> Vocabulary:
    return Vocabulary(list(small_tokens()), [END])


@cache
def embedded_vocabulary() -> Vocabulary:
    return Vocabulary.from_file(TOKENIZER)


def is_allowed(state: State, vocabulary: Vocabulary, token: int) -> bool:
    """The plain way: try the token's bytes."""
    if token in vocabulary.end_token_ids:
        return state.is_complete()
    data = vocabulary.token_bytes(token)
    return bool(data) and state.fork().advance(data) == len(data)


def places() -> list[tuple[Session, bytes]]:
    """Sessions and viable middles in them, some of which end inside a character."""
    rng = random.Random(SEED)
    found = []
    for cut in chosen_cuts():
        data = cut.middle.encode()
        found.append((python().open(cut.left, cut.right), data[: rng.randint(0, len(data))]))
    found.append((python().open("a = '", "'\n"), "b😀".encode()[:3]))
    found.append((python().open(*FUNCTION), b"a"))
    found.append((python().open("", ""), b""))
    found.append((python().open("if a:\n    b\n", "else:\n    c\n"), b"  "))
    return found


def matcher_at(session: Session, vocabulary: Vocabulary, middle: bytes) -> Matcher:
    """A matcher after a middle, byte by byte (every byte is a token of the vocabulary)."""
    matcher = session.matcher(vocabulary)
    for byte in middle:
        matcher.commit(next(t for t in range(vocabulary.size) if vocabulary.token_bytes(t) == bytes([byte])))
    return matcher


def test_the_small_vocabulary_is_what_it_says() -> None:
    assert len(small_tokens()) == 300
    assert {small_tokens()[index] for index in (*HOLES, END)} == {None}
    assert small_vocabulary().size == 300
    assert small_vocabulary().token_bytes(HOLES[0]) == b""


def test_the_mask_of_a_small_vocabulary_is_the_check_of_every_token() -> None:
    tokens = [bytes([byte]) for byte in range(256)] + [token or b"" for token in small_tokens()]
    vocabulary = Vocabulary([token or None for token in tokens], [256 + END])
    allowed = refused = 0
    for session, middle in places():
        state = fresh(session, middle)
        matcher = matcher_at(session, vocabulary, middle)
        mask = matcher.mask()
        assert mask.shape == (vocabulary.size,)
        for token in range(vocabulary.size):
            expected = is_allowed(state, vocabulary, token)
            assert mask[token] == expected == matcher.allows(token), (middle, vocabulary.token_bytes(token))
            allowed, refused = allowed + expected, refused + (not expected)
        assert mask[256 + END] == state.is_complete() == matcher.is_complete()
    print(f"{allowed} allowed, {refused} refused")
    assert allowed
    assert refused


def test_the_mask_of_the_embedded_vocabulary_is_the_check_of_a_sample_of_tokens() -> None:
    rng = random.Random(SEED)
    vocabulary = embedded_vocabulary()
    assert vocabulary.end_token_ids
    for session, middle in places():
        state = fresh(session, middle)
        matcher = matcher_at(session, vocabulary, middle)
        mask = matcher.mask()
        allowed = np.flatnonzero(mask).tolist()
        sample = rng.sample(range(vocabulary.size), 300) + rng.sample(allowed, min(len(allowed), 100))
        for token in [*sample, *vocabulary.end_token_ids]:
            assert mask[token] == is_allowed(state, vocabulary, token), (middle, vocabulary.token_bytes(token))


def test_fill_mask_packs_the_mask() -> None:
    for vocabulary in (small_vocabulary(), embedded_vocabulary()):
        matcher = python().open(*FUNCTION).matcher(vocabulary)
        words = np.full((vocabulary.size + 31) // 32, 0xDEADBEEF, dtype=np.uint32)
        matcher.fill_mask(words)
        mask = matcher.mask()
        assert mask.any()
        assert [bool(words[token // 32] >> (token % 32) & 1) for token in range(vocabulary.size)] == mask.tolist()
        assert all(not words[token // 32] >> (token % 32) & 1 for token in range(vocabulary.size, 32 * len(words)))


@pytest.mark.parametrize(
    "words",
    [np.zeros(9, np.uint32), np.zeros(11, np.uint32), np.zeros(0, np.uint32), np.zeros((2, 10), np.uint32)],
    ids=["short", "long", "empty", "two rows"],
)
def test_fill_mask_refuses_other_arrays(words: NDArray[np.uint32]) -> None:
    with pytest.raises(ValueError, match=r"^[^\n]+$"):
        python().open(*FUNCTION).matcher(small_vocabulary()).fill_mask(words)


def test_fill_mask_fills_every_second_word_or_refuses() -> None:
    matcher = python().open(*FUNCTION).matcher(small_vocabulary())
    words, wide = np.zeros(10, np.uint32), np.zeros(20, np.uint32)
    matcher.fill_mask(words)
    try:
        matcher.fill_mask(wide[::2])
    except ValueError:
        return
    assert (wide[::2] == words).all()
    assert not wide[1::2].any()


def test_fill_mask_refuses_arrays_of_another_type() -> None:
    matcher = python().open(*FUNCTION).matcher(small_vocabulary())
    read_only = np.zeros(10, np.uint32)
    read_only.flags.writeable = False
    others: list[Any] = [np.zeros(10, np.float32), np.zeros(10, np.uint64), read_only]
    for array in others:
        with pytest.raises(BufferError):
            matcher.fill_mask(array)


def test_a_refused_token_changes_nothing() -> None:
    vocabulary = small_vocabulary()
    matcher = python().open(*FUNCTION).matcher(vocabulary)
    before = matcher.mask()
    for token in np.flatnonzero(~before).tolist():
        with pytest.raises(ValueError, match=r"^[^\n]+$"):
            matcher.commit(token)
    assert (matcher.mask() == before).all()
    for outside in (vocabulary.size, 1 << 31):
        with pytest.raises(ValueError, match=r"^[^\n]+$"):
            matcher.commit(outside)
        with pytest.raises(ValueError, match=r"^[^\n]+$"):
            matcher.allows(outside)


def test_after_the_end_token_there_is_nothing() -> None:
    vocabulary = small_vocabulary()
    matcher = python().open(*FUNCTION).matcher(vocabulary)
    matcher.commit(small_tokens().index(b"a"))
    before = matcher.mask()
    assert before[END]
    matcher.commit(END)
    assert not matcher.mask().any()
    assert not any(matcher.allows(token) for token in range(vocabulary.size))
    with pytest.raises(ValueError, match=r"^[^\n]+$"):
        matcher.commit(END)
    matcher.rollback(1)
    assert (matcher.mask() == before).all()


def test_matcher_rollback_restores() -> None:
    rng = random.Random(SEED)
    vocabulary = small_vocabulary()
    for session, _ in places()[::3]:
        matcher = session.matcher(vocabulary)
        masks = [matcher.mask()]
        for _ in range(12):
            allowed = [int(token) for token in np.flatnonzero(masks[-1]) if token != END]
            if not allowed:
                break
            matcher.commit(rng.choice(allowed))
            masks.append(matcher.mask())
        while len(masks) > 1:
            count = rng.randint(1, len(masks) - 1)
            matcher.rollback(count)
            del masks[-count:]
            assert (matcher.mask() == masks[-1]).all()
            assert matcher.is_complete() == masks[-1][END]
        for count in (1, -1):
            with pytest.raises(ValueError, match=r"^[^\n]+$"):
                matcher.rollback(count)


def test_tokens_and_text_agree() -> None:
    """A random walk along allowed tokens stays viable, and its text is what check says of it."""
    rng = random.Random(SEED)
    vocabulary = embedded_vocabulary()
    for cut in chosen_cuts()[::3]:
        session = python().open(cut.left, cut.right)
        matcher = session.matcher(vocabulary)
        text = b""
        for _ in range(25):
            allowed = [t for t in np.flatnonzero(matcher.mask()).tolist() if t not in vocabulary.end_token_ids]
            assert allowed
            token = rng.choice(allowed)
            matcher.commit(token)
            text += vocabulary.token_bytes(token)
        state = fresh(session, text)
        assert state.is_viable()
        assert state.is_complete() == matcher.is_complete()


# ---------------------------------------------------------------- bad input


def test_vocabularies_that_are_none(tmp_path: Path) -> None:
    unreadable = tmp_path / "tokenizer.json"
    unreadable.write_bytes(b"\xff\xfe{")
    empty = tmp_path / "empty.json"
    empty.write_text("{}")
    makers: tuple[Callable[[], Vocabulary], ...] = (
        lambda: Vocabulary([], []),
        lambda: Vocabulary([b"a"], [1]),
        lambda: Vocabulary([b"a"], [-1]),
        lambda: Vocabulary([b"a"], [1 << 40]),
        lambda: Vocabulary.from_file(unreadable),
        lambda: Vocabulary.from_file(empty),
        lambda: Vocabulary.from_file(tmp_path),
        lambda: Vocabulary.from_file(tmp_path / "missing.json"),
        lambda: Vocabulary.from_tokenizer(object()),
    )
    for make in makers:
        with pytest.raises(VocabularyError, match=r"^[^\n]+$"):
            make()


@pytest.mark.parametrize("content", ["[]", "1", '"a"', "null", '{"model": 1}', '{"model": {"vocab": [1]}}'])
def test_tokenizer_files_of_another_shape(tmp_path: Path, content: str) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(content)
    with pytest.raises(VocabularyError, match=r"^[^\n]+$"):
        Vocabulary.from_file(path)


JSON = r"""
start: value
value: object | array | STRING | NUMBER | "true" | "false" | "null"
object: "{" (member ("," member)*)? "}"
member: STRING ":" value
array: "[" (value ("," value)*)? "]"
STRING: /"([^"\\\x00-\x1f]|\\(["\\\/bfnrt]|u[0-9a-fA-F]{4}))*"/
NUMBER: /-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?/
BLANK: /[ \t\r\n]+/
%ignore BLANK
"""
SPEC = 'name = "json"\nsuffixes = [".json"]\nstart = "start"\nbrackets = [["{", "}"], ["[", "]"]]\n'


def files(folder: Path, grammar: str = JSON, spec: str = SPEC) -> tuple[Path, Path]:
    grammar_path, spec_path = folder / "toy.lark", folder / "toy.toml"
    grammar_path.write_text(grammar, encoding="utf-8")
    spec_path.write_text(spec, encoding="utf-8")
    return grammar_path, spec_path


@pytest.mark.parametrize(
    ("left", "middle", "right", "viable", "complete"),
    [
        ('{"a": ', "1", "}", True, True),
        ('{"a": ', '[{"b', '": null}]}', True, True),
        ('{"a": ', '[{"b', '": null}', True, False),
        ('{"a": [', "1, 2", "]}", True, True),
        ('{"a": [', "1, 2]", "]}", True, False),
        ('{"a": [', "1, 2}", "]}", False, False),
        ("", "tr", "ue", True, True),
        ("1", "2", "3", True, True),
        ("-", "0", "1", True, False),
        ("-", "0", ".1", True, True),
        ('"\\u00', "e", '9"', True, True),
        ('"\\u00', "g", '9"', False, False),
        ("  \n\t", "[]", "\n", True, True),
        ("\t[\n1,", "\n", "  2\n]", True, True),
        ("", "", "", True, False),
        ("[1,", "", "]", True, False),
        ("[1,", ",", "]", False, False),
    ],
)
def test_a_language_of_ones_own(
    tmp_path: Path, left: str, middle: str, right: str, viable: bool, complete: bool
) -> None:
    language = Language.from_files(*files(tmp_path))
    assert language.suffixes == (".json",)
    verdict = language.open(left, right).check(middle)
    assert (verdict.viable, verdict.complete) == (viable, complete)
    if viable:
        state = language.open(left, right).start()
        state.advance(middle)
        found = state.shortest_completion()
        assert found is not None
        assert (found == "") == complete
        assert language.open(left, right).check(middle + found).complete


BAD_LANGUAGES = {
    "no TOML": (JSON, "name = "),
    "a field is missing": (JSON, 'name = "json"\nsuffixes = []\n'),
    "bad regular expression": (JSON.replace("(0|", "(0|("), SPEC),
    "lookahead": (JSON.replace("/[ \\t\\r\\n]+/", "/[ \\t]+(?=a)/"), SPEC),
    "undefined rule": (JSON.replace("object |", "object | missing |"), SPEC),
    "undefined lexeme": (JSON.replace("| STRING", "| MISSING"), SPEC),
    "start without a text": ('start: start "a"\n', 'name = "toy"\nsuffixes = []\nstart = "start"\n'),
    "no such start": (JSON, SPEC.replace('start = "start"', 'start = "beginning"')),
    "empty lexeme": (JSON.replace("+/\n%ignore", "*/\n%ignore"), SPEC),
    "no grammar": ("start: (\n", SPEC),
    "unknown layout": (JSON, SPEC + '[layout]\nrule = "columns"\n'),
    "layout without its lexemes": (JSON, SPEC + '[layout]\nrule = "indent"\n'),
    "bracket that no rule uses": (JSON, SPEC.replace('["{"', '["<"')),
    "soft keyword that no rule uses": (JSON, 'soft_keywords = ["a"]\n' + SPEC),
}


@pytest.mark.parametrize(("grammar", "spec"), BAD_LANGUAGES.values(), ids=BAD_LANGUAGES.keys())
def test_languages_that_are_none(tmp_path: Path, grammar: str, spec: str) -> None:
    with pytest.raises(LanguageError, match=r"^[^\n]+$"):
        Language.from_files(*files(tmp_path, grammar, spec))


def test_languages_that_cannot_be_read(tmp_path: Path) -> None:
    grammar_path, spec_path = files(tmp_path)
    with pytest.raises(LanguageError, match=r"^unknown language 'klingon'; known: [^\n]*python[^\n]*$"):
        Language.load("klingon")
    for grammar, spec in (
        (tmp_path / "no.lark", spec_path),
        (grammar_path, tmp_path / "no.toml"),
        (tmp_path, tmp_path),
    ):
        with pytest.raises(LanguageError, match=r"^[^\n]+$"):
            Language.from_files(grammar, spec)
    grammar_path.write_bytes(b'start: "\xff"\n')
    with pytest.raises(LanguageError, match=r"^[^\n]+$"):
        Language.from_files(grammar_path, spec_path)


def test_languages_by_name_and_by_path() -> None:
    assert "python" in Language.names()
    assert Language.for_path("a/b.pyi").name == "python"
    with pytest.raises(LanguageError, match=r"^[^\n]+$"):
        Language.for_path("a.unknown")


@pytest.mark.parametrize("brackets", ["()", "[]", "{}"])
def test_brackets_nest_200_deep_wherever_the_cursor_is(brackets: str) -> None:
    """CPython's tokenizer takes 200 open brackets (MAXLEVEL in its lexer)."""
    for depth, expected in ((200, True), (201, False)):
        text = brackets[0] * depth + brackets[1] * depth
        for start, end in ((0, 0), (0, len(text)), (150, 300), (len(text), len(text)), (depth, depth)):
            verdict = python().open(text[:start], text[end:]).check(text[start:end])
            assert verdict.complete == expected, (depth, start, end)


def test_brackets_of_fields_count_wherever_they_are() -> None:
    """Those of a formatted string that the right side opens, and those around it."""
    for depth, expected in ((199, True), (200, False)):
        text = "x = f'{" + "(" * depth + "y" + ")" * depth + "}'\n"
        for start, end in ((0, 0), (4, 4), (0, len(text)), (4, len(text)), (len(text), len(text))):
            assert python().open(text[:start], text[end:]).check(text[start:end]).complete == expected, (depth, start)
    for depth, expected in ((198, True), (199, False)):
        left, right = "x = " + "(" * depth, "f'{(x)}'" + ")" * depth
        assert python().open(left, right).check("").complete == expected


def test_a_block_too_many_is_refused_where_its_header_ends() -> None:
    left = "".join(" " * level + "if x:\n" for level in range(99)) + " " * 99
    session = python().open(left, "")
    assert session.check("if x: y").complete
    assert session.check("if x:\n").rejected_at == len("if x:")


def test_blocks_nest_99_deep_on_the_left_and_in_the_middle() -> None:
    """CPython's tokenizer takes 99 columns besides 0 (MAXINDENT); what R alone opens is not counted."""
    for depth, expected in ((99, True), (100, False)):
        text = "".join(" " * level + "if x:\n" for level in range(depth)) + " " * depth + "y\n"
        for start in (0, len(text) // 2, len(text)):
            assert python().open(text[:start], "").check(text[start:]).complete == expected, (depth, start)


def test_a_limit_that_is_passed_is_named() -> None:
    session = python().open("(" * 201 + "x", "")
    assert session.guarantee == "none"
    assert "200 brackets are open, and no more may be" in session.diagnostics[0]
