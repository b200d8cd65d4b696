"""Characters that readers do not see are in no text, constrained or not, whole in a token or in parts."""

from __future__ import annotations

import random

import pytest

from fim_server import Language, Vocabulary
from fim_server.decoding.bias.hidden_characters import DEAD_BEGINNING, Visible
from fim_server.decoding.results import StopReason
from fim_server.text.hidden import HIDDEN, RANGES, escaped, hidden_in, known_at, on_one_line
from support.models.listed_probabilities import Steps, texts_of

HIDDEN_TEXTS = [
    *("\u202a", "\u202e", "\u2066", "\u2069", "\u200b", "\u200f", "\u2060", "\u2064", "\ufeff", "\u00ad", "\u061c"),
    *(
        "\U000e0001",
        "\U000e0041",
        "\U000e007f",
        "\U000e0100",
        "\ufe0f",
        "\u3164",
        "\uffa0",
        "\u180e",
        "\u034f",
        "\ue000",
    ),
    *(
        "\x00",
        "\x07",
        "\x08",
        "\x1b",
        "\x1b[31m",
        "\x1b]0;a\x07",
        "\x7f",
        "\x85",
        "\x9b",
        "\u2028",
        "\u2029",
        "\r",
        "\f",
    ),
]


def vocabulary_of(texts: list[bytes]) -> Vocabulary:
    return Vocabulary([*dict.fromkeys(texts), None], [len(dict.fromkeys(texts))])


@pytest.mark.parametrize("hidden", HIDDEN_TEXTS, ids=ascii)
@pytest.mark.parametrize("constrained", [True, False], ids=["constrained", "free"])
@pytest.mark.parametrize("name", ["python", "go", "rust"])
def test_a_token_with_a_hidden_character_gives_way_to_the_next_best(name: str, constrained: bool, hidden: str) -> None:
    vocabulary = vocabulary_of([b"a", f"b{hidden}".encode(), b'"', b"\n"])
    steps: Steps = {b"": {"a": 1.0}, b"a": {f"b{hidden}": 0.9, '"': 0.1}, b'a"': {"": 1.0}}
    sides = {"python": ('x = "', "\n"), "go": ('package p\nvar x = "', "\n"), "rust": ('const X: &str = "', ";\n")}
    found = texts_of(Language.load(name), vocabulary, steps, sides[name], constrained=constrained)[0]
    assert (found.text, found.stop_reason) == ('a"', StopReason.END_TOKEN)


@pytest.mark.parametrize("hidden", ["\u202e", "\u200b", "\ufeff", "\U000e0041", "\x85"], ids=ascii)
def test_a_hidden_character_in_parts_is_refused_only_at_its_last_part(hidden: str) -> None:
    data = hidden.encode()
    pieces = [data[at : at + 1] for at in range(len(data))]
    # What may follow the first byte or two instead of the hidden character.
    vocabulary = vocabulary_of([b"a", b'"', *pieces, b"\xa6", b"\xbd"])
    visible = Visible(vocabulary)
    for cut in range(1, len(data)):
        tokens = [vocabulary.token_at(piece) for piece in pieces]
        written = [token for token in tokens[:cut] if token is not None]
        last = tokens[cut]
        assert last is not None
        refused = [visible.refuses(written[:at], token) for at, token in enumerate([*written, last])]
        assert any(refused) or cut < len(data) - 1
    joined = vocabulary_of([data[:1], data[1:], b"a"])
    first, rest = joined.token_at(data[:1]), joined.token_at(data[1:])
    assert first is not None
    assert rest is not None
    assert Visible(joined).refuses([first], rest)
    assert not Visible(joined, frozenset(hidden)).refuses([first], rest)


def test_no_text_of_random_bytes_has_a_hidden_character() -> None:
    random.seed(14)
    known = [bytes([byte]) for byte in range(256)]
    known += [chr(random.choice(random.choice(RANGES))).encode("utf-8", "replace") for _ in range(200)]
    vocabulary = vocabulary_of([text for text in known if text != b"?"])
    visible = Visible(vocabulary)
    for _ in range(300):
        written: list[int] = []
        for _ in range(40):
            token = random.randrange(vocabulary.size - 1)
            if not visible.refuses(written, token):
                written.append(token)
        text = b"".join(map(vocabulary.token_bytes, written)).decode(errors="ignore")
        whole = b"".join(map(vocabulary.token_bytes, written))
        if whole.decode(errors="replace").count("\ufffd") == 0:
            assert hidden_in(text) is None
    # Every byte that may begin a character which is seen can be written.
    first = [vocabulary.token_at(bytes([byte])) for byte in (0x41, 0xC3, 0xE2, 0xEF, 0xF0, 0xF3)]
    assert not any(visible.refuses([], token) for token in first if token is not None)


def test_beginnings_of_hidden_characters_alone_are_known() -> None:
    seen: dict[bytes, bool] = {}
    for character in (chr(code) for code in range(0x80, 0x110000) if not 0xD800 <= code < 0xE000):
        data, is_hidden = character.encode(), HIDDEN.match(character) is not None
        for length in range(1, len(data)):
            seen[data[:length]] = seen.get(data[:length], True) and is_hidden
    assert {beginning for beginning, is_dead in seen.items() if is_dead} == {
        beginning for beginning in seen if DEAD_BEGINNING.match(beginning)
    }


def test_healed_text_may_repeat_hidden_characters_of_the_document() -> None:
    vocabulary = vocabulary_of(["a\u200b".encode(), "a\u200bb".encode(), "a\u200bb\u200b".encode()])
    again, more, hidden = (vocabulary.token_at(text.encode()) for text in ("a\u200b", "a\u200bb", "a\u200bb\u200b"))
    assert again is not None
    assert more is not None
    assert hidden is not None
    visible, healing = Visible(vocabulary), "a\u200b".encode()
    assert not visible.refuses([], again, healing)
    assert not visible.refuses([], more, healing)
    assert visible.refuses([], hidden, healing)


def test_hidden_characters_of_the_word_at_the_cursor_are_allowed() -> None:
    zwnj, zwj = "\u200c", "\u200d"
    assert known_at(f'x = "\u0645\u06cc{zwnj}', '\u0647\u0627"') == {zwnj}
    assert known_at('x = "\U0001f469' + zwj, '"') == {zwj}
    assert known_at(f'y = "{zwnj}" + "\u0645', '"') == frozenset()
    assert known_at("\ufeffabc", "") == frozenset()
    assert known_at("a \ufeffabc", "") == {"\ufeff"}
    assert known_at("\x1b[3", "") == frozenset()
    assert known_at("a\u2028b", "") == frozenset()
    # A text with the character of the word, and with another one.
    vocabulary = vocabulary_of([f"a{zwnj}".encode(), f"a{zwj}".encode(), b'"'])
    steps: Steps = {b"": {f"a{zwj}": 0.6, f"a{zwnj}": 0.4}, f"a{zwnj}".encode(): {'"': 1.0}}
    steps[f'a{zwnj}"'.encode()] = {"": 1.0}
    python = Language.load("python")
    found = texts_of(python, vocabulary, steps, (f'x = "b{zwnj}', "\n"), invisible=known_at(f'x = "b{zwnj}', "\n"))
    assert found[0].text == f'a{zwnj}"'


def test_hidden_characters_are_shown_as_escapes_and_long_texts_in_part() -> None:
    for hidden in HIDDEN_TEXTS:
        shown = escaped(f"a{hidden}b", 100)
        assert HIDDEN.search(shown) is None
        assert shown.startswith("a\\")
    assert escaped("é\t\n日本 €") == "é\t\n日本 €"
    assert len(on_one_line("x" * 8_000_000)) < 2_100
    assert on_one_line("a\n\tb\x1b[0m") == "a b\\x1b[0m"
