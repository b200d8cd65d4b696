"""Modes with code in languages with layout: compiled ones read alike on both sides, others are refused.

Small random languages with such modes, of which each text is judged whole and at its cuts. The verdict on the whole
text needs no right context, so that the two ways share no reading of it. Languages without layout have no such limit
(`test_united_modes.py`).
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from fim_server import Language, LanguageError
from fim_server.errors import LimitError

LONG = os.environ.get("FIM_SERVER_LONG") == "1"
LANGUAGES = 3_000 if LONG else 120
LONGEST = 7 if LONG else 6
TEXTS = 120 if LONG else 40
LONGEST_SENTENCE, DEEPEST = 16, 3
ALPHABET = "ab=/(){}` "

SHARED = ("a", "b", "=", "/", "==")
OWN = ["/\\/[ab]\\//", "/\\/[ab=]*\\//", "/=/", "/==/", "/=a/", "/a/", "/aa/", "/ab?/", "/b/", "/b=/", "/\\(a/"]
TEXT = """
literal: TICK (T_OPEN field "}")* T_END
TICK: /`/
T_OPEN: /[ab=]*\\{/
T_END: /[ab=]*`/
BLANK: " "
%ignore BLANK
"""
LAYOUT = """
line: TOP _NEWLINE | TOP block
block: _NEWLINE _INDENT line+ _DEDENT
file: line*
_NEWLINE: /\\n/
COMMENT: /#[^\\n]*/
%ignore COMMENT
%declare _INDENT _DEDENT
"""
LAYOUT_KEYS = """
[layout]
newline = "_NEWLINE"
indent = "_INDENT"
dedent = "_DEDENT"
blank = "BLANK"
comment = "COMMENT"
"""


def grammar_and_spec(rng: random.Random) -> tuple[str, str]:
    """Return the two files of a random language: items outside of literals, and in the fields of literals."""
    own = {f"X{number}": rng.choice(OWN) for number in range(rng.choice((1, 1, 2)))}
    where = rng.choice(("field", "field", "field", "brackets", "anywhere"))
    shared = [f'"{text}"' for text in rng.sample(SHARED, rng.randrange(1, 4))]

    def rule(name: str, items: list[str], always: str) -> str:
        sequences = (" ".join(rng.choices(items, k=rng.randrange(1, 4))) for _ in range(rng.randrange(1, 4)))
        return f"{name}: {always} | " + " | ".join(sequences)

    inner = list(own) if where != "brackets" else []
    rules = [
        "start: item*",
        rule("item", [*shared, *(own if where == "anywhere" else [])], '"(" start ")" | "{" start "}" | literal'),
        rng.choice(("field: part*", "field: part", "field: part+")),
        rule("part", [*shared, *inner, "literal"], '"(" within ")"'),
        rule("within", [*shared, '"(" within ")"', *own], rng.choice([*shared, *own])),
    ]
    used = [one for one in (*shared, *own) if any(one in rule.split() for rule in rules)]
    lexemes = [f"{name}: {pattern}" for name, pattern in own.items() if name in used]
    modes = ['{ name = "text", lexemes = ["T_OPEN", "T_END"], open = ["T_OPEN"] }']
    plain = [one for one in used if one in shared]
    for name in (one for one in used if one in own):
        without = rng.sample(plain, min(len(plain), rng.randrange(2)))
        modes.append(f'{{ name = "code {name}", lexemes = ["{name}"], code = true, without = [{", ".join(without)}] }}')
    rng.shuffle(modes)
    spec = 'name = "small"\nsuffixes = [".small"]\nstart = "file"\nbrackets = [["(", ")"], ["{", "}"]]\n'
    grammar = "\n".join([*rules, *lexemes]) + TEXT + LAYOUT.replace("TOP", "item start")
    return grammar, f"{spec}modes = [{', '.join(modes)}]\n{LAYOUT_KEYS}"


def load(folder: Path, grammar: str, spec: str) -> Language:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "small.lark").write_text(grammar)
    (folder / "small.toml").write_text(spec)
    return Language.from_files(folder / "small.lark", folder / "small.toml")


EXAMPLES = {
    "/\\/[ab]\\//": ("/a/", "/b/"),
    "/\\/[ab=]*\\//": ("//", "/=/", "/ab/"),
    "/=/": ("=",),
    "/==/": ("==",),
    "/=a/": ("=a",),
    "/a/": ("a",),
    "/aa/": ("aa",),
    "/ab?/": ("a", "ab"),
    "/b/": ("b",),
    "/b=/": ("b=",),
    "/\\(a/": ("(a",),
}
"""Texts of each pattern."""


def sentence(grammar: str, rng: random.Random, symbol: str = "start", depth: int = 0) -> str:
    """Return a random text that the grammar derives, whatever the lexer makes of it."""
    rules = dict(line.split(": ", 1) for line in grammar.splitlines() if ": " in line)
    blank = " " if rng.random() < 0.1 else ""
    if symbol.startswith('"'):
        return symbol[1:-1] + blank
    if symbol.isupper() or symbol[1:].isdigit():
        return rng.choice(EXAMPLES[rules[symbol]]) + blank
    if symbol == "literal":
        count = rng.randrange(3 - min(2, depth))
        held = (
            rng.choice(("", "a", "=")) + "{" + sentence(grammar, rng, "field", depth + 1) + "}" for _ in range(count)
        )
        return "`" + "".join(held) + rng.choice(("", "b")) + "`" + blank
    if rules[symbol][-1] in "*+" and " " not in rules[symbol]:
        count = rng.randrange(rules[symbol][-1] == "+", 3)
        return "".join(sentence(grammar, rng, rules[symbol][:-1], depth) for _ in range(count))
    choices = rules[symbol].split(" | ")
    if depth > DEEPEST:
        choices = [one for one in choices if not {"start", "within", "literal"} & set(one.split())] or choices[-1:]
    return "".join(sentence(grammar, rng, one, depth + 1) for one in rng.choice(choices).split())


def texts(language: Language, grammar: str, rng: random.Random) -> Iterator[str]:
    """Random texts: sentences of the grammar, texts viable from the left, and parts of them put together."""
    session = language.open("", "")
    for _ in range(TEXTS):
        try:
            text = sentence(grammar, rng)
        except RecursionError:
            continue
        if len(text) <= LONGEST_SENTENCE:
            yield text + "\n"
    for _ in range(TEXTS):
        text = ""
        for _ in range(rng.randrange(1, LONGEST + 1)):
            longer = [text + one for one in ALPHABET if session.check(text + one).viable]
            if not longer:
                break
            text = rng.choice(longer)
        yield text
        yield text[: rng.randrange(len(text) + 1)] + "".join(rng.choices(ALPHABET, k=rng.randrange(3)))
        if (middle := _ending(language, text)) is not None:
            yield text + middle


def _ending(language: Language, text: str) -> str | None:
    session = language.open(text, "")
    try:
        return session.start().shortest_completion() if session.guarantee == "exact" else None
    except LimitError:
        return None


def differences(language: Language, grammar: str, rng: random.Random) -> list[tuple[str, str, str, bool]]:
    """Cuts of texts whose verdict is not the whole text's."""
    whole = language.open("", "")
    found = []
    for text in dict.fromkeys(texts(language, grammar, rng)):
        expected = whole.check(text).complete
        for start in range(len(text) + 1):
            for end in {start, rng.randrange(start, len(text) + 1), len(text)}:
                left, middle, right = text[:start], text[start:end], text[end:]
                verdict = language.open(left, right).check(middle)
                if verdict.complete != expected or (expected and not verdict.viable):
                    found.append((left, middle, right, expected))
    return found


def test_whatever_is_compiled_reads_alike_on_both_sides(tmp_path: Path) -> None:
    taken = refused = 0
    for seed in range(LANGUAGES):
        rng = random.Random(seed)
        files = grammar_and_spec(rng)
        try:
            language = load(tmp_path / str(seed), *files)
        except LanguageError as error:
            refused += "right of the cursor" in str(error)
            continue
        taken += 1
        assert differences(language, files[0], rng)[:3] == [], (seed, *files)
    print(f"{taken} languages taken, {refused} refused")
    assert taken > LANGUAGES // 10
    assert refused > LANGUAGES // 10


HEAD = 'name = "small"\nsuffixes = [".small"]\nstart = "file"\nbrackets = [["{", "}"]]\n'
REGEX = 'modes = [{ name = "regex", lexemes = ["REGEX"], code = true }]\n' + LAYOUT_KEYS
LITERAL = """
s: item*
item: WORD | "=" | "{" s "}" | literal
literal: TICK (T_OPEN e "}")* T_END
WORD: /[a-z]/
REGEX: /\\/[a-z]\\//
TICK: /`/
T_OPEN: /[a-z]*\\{/
T_END: /[a-z]*`/
BLANK: " "
%ignore BLANK
"""
TICKED = '{ name = "ticked", lexemes = ["T_OPEN", "T_END"], open = ["T_OPEN"] }'


@pytest.mark.parametrize(
    "rules",
    [
        's: | s WORD | s "=" | s "=" REGEX | s "{" s "}"',
        's: e | "{" s "}"\ne: WORD | e "/" WORD | REGEX',
        's: REGEX | "{" WORD "}"',
        's: WORD | "{" REGEX "}"',
    ],
)
def test_lexemes_outside_of_literals_are_refused(tmp_path: Path, rules: str) -> None:
    grammar = rules + '\nWORD: /[a-z]/\nREGEX: /\\/[a-z]\\//\nBLANK: " "\n%ignore BLANK\n' + LAYOUT.replace("TOP", "s")
    with pytest.raises(LanguageError, match=r"mode regex: lexeme REGEX can stand outside of a literal.*$") as raised:
        load(tmp_path, grammar, HEAD + REGEX)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("rules", "refused"),
    [
        ('e: | e WORD | e "=" | e "=" REGEX', None),
        ('e: WORD | e "/" WORD | REGEX', None),
        ('e: WORD | e "/" WORD | e REGEX', "SLASH"),
        ('e: WORD | e "/" WORD | "=" "=" REGEX', None),
        ('e: WORD "/" WORD | "=" REGEX | "{" "=" "/" WORD "}"', None),
        ('e: WORD "/" WORD | "=" REGEX | "=" "/" WORD', "SLASH"),
    ],
)
def test_in_literals_only_what_cannot_be_told_is_refused(tmp_path: Path, rules: str, refused: str | None) -> None:
    spec = HEAD + f'modes = [{{ name = "regex", lexemes = ["REGEX"], code = true }}, {TICKED}]\n' + LAYOUT_KEYS
    rules += LAYOUT.replace("TOP", "s")
    if refused is not None:
        with pytest.raises(LanguageError, match=f"lexeme REGEX and {refused} can come at the same place"):
            load(tmp_path, LITERAL + rules, spec)
        return
    language = load(tmp_path, LITERAL + rules, spec)
    for text in (
        "`{a}`\n",
        "`{a=/x/}`\n",
        "`{a=b c=/x/}` a\n",
        "`{/a/}`\n",
        "`{a/b}`\n",
        "`{a/b/c}`\n",
        "`{==/x/}`\n",
        "`{a /b/}`\n",
        "`{=/x/}`\n",
        "`{{=/b}}`\n",
    ):
        expected = language.open("", "").check(text).complete
        for start in range(len(text) + 1):
            for end in range(start, len(text) + 1):
                verdict = language.open(text[:start], text[end:]).check(text[start:end])
                assert verdict.complete == expected, (text, start, end)


@pytest.mark.parametrize("name", Language.names())
def test_the_languages_that_come_with_the_package_are_taken(name: str) -> None:
    for version in (*Language.versions(name), "newest"):
        assert Language.for_path("x", name, {name: version}).name == name
