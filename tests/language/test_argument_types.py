"""Arguments of a wrong type: a TypeError that names the argument, wherever they are given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fim_server import Language, Stop, Vocabulary, VocabularyError
from fim_server.decoding.complete import complete
from fim_server.language.shapes import Shape
from fim_server.text.document import Split

LOOSE: Any = None
SPLIT = Split("a = ", "\n")


class Model:
    """Stand-in for a model: the argument after it is the wrong one."""

    def forward(self) -> None:
        raise AssertionError("never asked")


def language() -> Any:
    return Language.load("json")


def session() -> Any:
    return language().open("[", "]")


def vocabulary() -> Any:
    return Vocabulary([b"1", b"]", None], [2])


def matcher() -> Any:
    return session().matcher(vocabulary())


WRONG: dict[str, tuple[str, Callable[[], object]]] = {
    "load": ("name", lambda: Language.load(LOOSE)),
    "load a version": ("version", lambda: Language.load("python", 3.12)),  # type: ignore[arg-type]
    "from files": ("grammar_path", lambda: Language.from_files(1, "a.toml")),  # type: ignore[arg-type]
    "from files, the other": ("spec_path", lambda: Language.from_files("a.lark", LOOSE)),
    "for a path": ("path", lambda: Language.for_path(b"a.py")),  # type: ignore[arg-type]
    "for a path by name": ("name", lambda: Language.for_path("a.py", 1)),  # type: ignore[arg-type]
    "for a path by version": ("versions", lambda: Language.for_path("a.py", None, "3.12")),  # type: ignore[arg-type]
    "name for a path": ("path", lambda: Language.name_for_path(LOOSE)),
    "versions": ("name", lambda: Language.versions(LOOSE)),
    "left": ("left", lambda: language().open(1, "")),
    "right": ("right", lambda: language().open("", b"")),
    "check": ("middle", lambda: session().check(None)),
    "check bytes": ("middle", lambda: session().check(b"1")),
    "moved": ("left", lambda: session().moved(1)),
    "matcher": ("vocabulary", lambda: session().matcher([b"1"])),
    "shape": ("shape", lambda: session().matcher(vocabulary(), 1)),
    "healing": ("healing", lambda: session().matcher(vocabulary(), healing=1)),
    "advance": ("text", lambda: session().start().advance(1)),
    "explain": ("text", lambda: session().start().explain(b"1")),
    "rollback": ("n_bytes", lambda: session().start().rollback("1")),
    "rollback of tokens": ("n_tokens", lambda: matcher().rollback(1.5)),
    "allows": ("token", lambda: matcher().allows("1")),
    "commit": ("token", lambda: matcher().commit(None)),
    "lands": ("left", lambda: matcher().lands(0, "1")),
    "plan": ("enough", lambda: matcher().plan("1")),
    "plan with an array": ("enough", lambda: matcher().plan(np.zeros(2))),
    "mask": ("words", lambda: matcher().fill_mask([0])),
    "mask, the plain way": ("words", lambda: matcher().fill_mask_plain(LOOSE)),
    "landing mask": ("words", lambda: matcher().fill_landing_mask(LOOSE, 1)),
    "landing mask of what length": ("left", lambda: matcher().fill_landing_mask(np.zeros(1, np.uint32), 1.0)),
    "lines": ("most", lambda: Shape.lines("2")),  # type: ignore[arg-type]
    "pattern": ("pattern", lambda: Shape.regex(LOOSE)),
    "pattern of a shape": ("pattern", lambda: Shape(b"a")),  # type: ignore[arg-type]
    "likely next": ("explanation", lambda: session().start().likely_next("1")),
    "suffixes": ("name", lambda: Language.suffixes_of(LOOSE)),
    "versions by name": ("versions", lambda: Language.for_path("a.py", None, {"python": 3.12})),  # type: ignore[dict-item]
    "stop within": ("within", lambda: Stop("1")),  # type: ignore[arg-type]
    "stop holding": ("holding", lambda: Stop(None, 1.5)),  # type: ignore[arg-type]
    "unsettled": ("text", lambda: vocabulary().unsettled(LOOSE)),
    "tokens": ("tokens", lambda: Vocabulary("abc", [0])),  # type: ignore[arg-type]
    "tokens as a set": ("tokens", lambda: Vocabulary({b"a"}, [0])),  # type: ignore[arg-type]
    "no tokens": ("tokens", lambda: Vocabulary(LOOSE, [0])),
    "end tokens": ("end_token_ids", lambda: Vocabulary([b"a"], 0)),  # type: ignore[arg-type]
    "encode": ("text", lambda: vocabulary().encode(1)),
    "token bytes": ("token", lambda: vocabulary().token_bytes("1")),
    "from a file": ("path", lambda: Vocabulary.from_file(1)),  # type: ignore[arg-type]
    "from a file of a size": ("size", lambda: Vocabulary.from_file("a", size="1")),  # type: ignore[arg-type]
    "complete by no model": ("model", lambda: complete(LOOSE, language(), SPLIT)),
    "complete in no language": ("language", lambda: complete(Model(), "python", SPLIT)),  # type: ignore[arg-type]
    "complete no cut": ("split", lambda: complete(Model(), language(), ("a = ", "\n"))),  # type: ignore[arg-type]
    "complete with no options": ("options", lambda: complete(Model(), language(), SPLIT, {})),  # type: ignore[arg-type]
    "complete until what": ("cancelled", lambda: complete(Model(), language(), SPLIT, None, True)),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("case", WRONG)
def test_the_error_names_the_argument(case: str) -> None:
    name, call = WRONG[case]
    with pytest.raises(TypeError) as caught:
        call()
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)


def test_whole_numbers_of_other_libraries_are_taken() -> None:
    state, tokens = session().start(), matcher()
    state.advance("1")
    state.rollback(np.int64(1))
    tokens.commit(np.int64(0))
    tokens.rollback(np.int32(1))
    assert (len(state), tokens.is_complete()) == (0, True)


OUTSIDE: dict[str, tuple[str, Callable[[int], object]]] = {
    "commit": ("token", lambda token: matcher().commit(token)),
    "allows": ("token", lambda token: matcher().allows(token)),
    "lands": ("token", lambda token: matcher().lands(token, 1)),
    "token bytes": ("token", lambda token: vocabulary().token_bytes(token)),
    "rollback": ("take back|range", lambda count: session().start().rollback(count)),
    "rollback of tokens": ("take back|range", lambda count: matcher().rollback(count)),
}


@pytest.mark.parametrize("number", [-1, 3, 1 << 32, 1 << 80])
@pytest.mark.parametrize("case", OUTSIDE)
def test_out_of_range_numbers_are_value_errors(case: str, number: int) -> None:
    """Numbers of either size raise the same error."""
    name, call = OUTSIDE[case]
    with pytest.raises(ValueError, match=name):
        call(number)


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("tokens: byte strings", lambda: Vocabulary([b"a", "a"], [0])),  # type: ignore[list-item]
        ("end_token_ids: a whole number", lambda: Vocabulary([b"a"], ["0"])),  # type: ignore[list-item]
    ],
)
def test_the_error_names_the_wrong_entry_of_a_vocabulary(name: str, make: Callable[[], object]) -> None:
    with pytest.raises(VocabularyError, match=name):
        make()
