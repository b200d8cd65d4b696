"""Lexemes at the first byte of a file alone, against brute force on random small languages.

The oracle reads the longest of them at the beginning of a text, if one matches, and lexes the rest as always.
"""

import os
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from fim_server import Language, LanguageError, Session, Vocabulary, _core
from support.languages.file_lists import random_files
from support.languages.file_starts import StartOracle, compiled, random_language
from support.languages.random_vocabularies import vocabulary_of
from support.languages.toys import Oracle, check_contexts, contexts

LONG = os.environ.get("FIM_SERVER_LONG") == "1"
LANGUAGES = 1200 if LONG else 60


def vocabulary(rng: random.Random) -> Vocabulary:
    texts = {"".join(rng.choice("aabbc") for _ in range(rng.randint(2, 5))) for _ in range(40)}
    return vocabulary_of([text.encode() for text in ["a", "b", "c", *sorted(texts)]] + [b"\xff", b"\xffa"])


def check_masks(language: _core.Language, left: str, right: str, rng: random.Random, where: object) -> int:
    """Masks are those of every token by itself, on the way through a middle; return their number."""
    session, tokens = Session(language.open(left, right)), vocabulary(rng)
    matcher = session.matcher(tokens)
    for count in range(4):
        mask = [int(token) for token in matcher.mask().nonzero()[0]]
        assert mask == [token for token in range(tokens.size) if matcher.allows(token)], (where, left, right)
        if not mask:
            return count
        matcher.commit(rng.choice(mask))
    return 4


@pytest.mark.parametrize("chunk", range(3))
def test_first_lexemes_agree_with_brute_force(chunk: int) -> None:
    verdicts = {"complete": 0, "viable": 0, "refused": 0, "languages": 0, "begun": 0, "masks": 0, "moved": 0}
    loose: Counter[bool] = Counter()
    for index in range(LANGUAGES // 3):
        rng = random.Random(f"starts {chunk} {index}")
        toy, first, ignored = random_language(rng)
        language = compiled(toy, first, ignored)
        if language is None:
            continue
        oracle, plain = StartOracle(toy, first, ignored), Oracle(toy)
        members = [text for text in oracle.texts(5) if oracle.member(text)]
        if not members:
            continue
        verdicts["languages"] += 1
        begun = [text for text in members if not plain.member(text)]
        verdicts["begun"] += bool(begun)
        pairs = contexts(oracle, rng, members) + contexts(oracle, rng, begun or members)
        # The cursor at the first byte, and a file that is right of it as a whole.
        pairs += [("", rng.choice(members)), ("", rng.choice(begun or members)[1:]), (toy.alphabet[-1], members[-1])]
        for left, right in pairs:
            check_contexts(language, oracle, left, right, rng, verdicts, toy)
            core, tight = language.open(left, right), Session(language.open(left, right))
            session = Session(core)
            loose[core.is_loose()] += 1
            tight._core.tighten()
            for middle in oracle.texts(2):
                assert session.check(middle) == tight.check(middle), (toy, first, left, middle, right)
            verdicts["masks"] += check_masks(language, left, right, rng, toy)
            # A session moved to another left side, from it and to it.
            for other in ("", "a", "b"):
                moved = core.moved(other)
                if moved is not None:
                    verdicts["moved"] += 1
                    fresh = language.open(other, right)
                    for middle in oracle.texts(2):
                        assert moved.check(middle) == fresh.check(middle), (toy, first, left, other, middle, right)
    print(verdicts, loose)
    assert min(verdicts.values()) > 0, verdicts
    assert min(loose[True], loose[False]) > 0, loose


def test_files_with_heads_begin_with_a_first_lexeme() -> None:
    """Lists of lines, where R may have no say, behind a first lexeme or none."""
    verdicts = {"complete": 0, "viable": 0, "refused": 0, "languages": 0}
    loose: Counter[tuple[bool, bool]] = Counter()
    for index in range(LANGUAGES // 5):
        rng = random.Random(f"heads {index}")
        toy = random_files(rng)
        first = {"F": rng.choice(["ad*", "d[ab]", "a+e", "b"])}
        # A last comment stands beside what goes on: no file has to end with one.
        left_out = rng.choice(["", "commented", "module"])
        begun = {("s", ("F", *rhs)) for lhs, rhs in toy.rules if lhs == "s" and rhs != (left_out,)}
        toy = replace(toy, rules=tuple(sorted({*toy.rules, *begun, *rng.choice([[], [("s", ("F",))]])})))
        language = compiled(toy, first, set())
        if language is None:
            continue
        oracle = StartOracle(toy, first, set())
        members = [text for text in oracle.texts(4) if oracle.member(text)]
        if not members:
            continue
        verdicts["languages"] += 1
        for left, right in [*contexts(oracle, rng, members), ("", rng.choice(members)), ("", "")]:
            check_contexts(language, oracle, left, right, rng, verdicts, toy)
            session, tight = Session(language.open(left, right)), Session(language.open(left, right))
            loose[session._core.is_loose(), not left] += 1
            tight._core.tighten()
            for middle in oracle.texts(3):
                assert session.check(middle) == tight.check(middle), (toy, first, left, middle, right)
    print(verdicts, loose)
    assert min(verdicts.values()) > 0, verdicts
    assert min(loose[loosely, at_start] for loosely in (True, False) for at_start in (True, False)) > 0, loose


GRAMMAR = """
program: SHEBANG? line*
line: NAME ";" | "#" NAME ";" | "#" "!" "[" NAME "]"
SHEBANG: /#![ ]*[^ \\[\\n][^\\n]*/
MARK: "?"
NAME: /[a-z]+/
BLANK: /[ \\n]+/
%ignore BLANK
%ignore MARK
"""
SPEC = """
name = "shell"
suffixes = [".sh"]
start = "program"
first_lexemes = ["SHEBANG", "?"]
[layout]
rule = "none"
"""


def load(folder: Path, spec: str = SPEC) -> Language:
    (folder / "shell.lark").write_text(GRAMMAR)
    (folder / "shell.toml").write_text(spec)
    return Language.from_files(folder / "shell.lark", folder / "shell.toml")


def test_a_line_for_the_shell_begins_a_file(tmp_path: Path) -> None:
    language = load(tmp_path)
    whole = ["#!/bin/sh\na;", "#! a b ; [\n", "#![a] a;", "#! [a]", "?a;", "?#a;", "", "?", "#a;"]
    for text in [*whole, "#!", "a; #!/bin/sh\n", " #!/bin/sh\n", "a;?", "??a;", "?#!/bin/sh\n"]:
        for start in range(len(text) + 1):
            for end in range(start, len(text) + 1):
                verdict = language.open(text[:start], text[end:]).check(text[start:end])
                assert verdict.complete == (text in whole), (text, start, end)
                assert verdict.viable or text not in whole, (text, start, end)
    explained = language.open("", "a;").start().explain("?")
    assert "start of file" not in str(explained)
    assert language.open("", "\nb;").start().shortest_completion() == ""


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ('"SHEBANG", "?"', '"SHEBANG", "!!"', "first_lexemes: no rule uses the literal '!!'"),
        ('"SHEBANG", "?"', '"NAMES"', "first_lexemes: no rule uses the literal 'NAMES'"),
        ('start = "program"', 'start = "program"\nmodes = [{ name = "m", lexemes = ["SHEBANG"] }]', "is in a mode"),
        ('["SHEBANG", "?"]', "true", "first_lexemes: invalid type"),
    ],
)
def test_wrong_first_lexemes_are_named(tmp_path: Path, before: str, after: str, message: str) -> None:
    assert before in SPEC
    with pytest.raises(LanguageError, match=message):
        load(tmp_path, SPEC.replace(before, after))
