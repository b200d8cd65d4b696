"""Proposals of the next edit: the change of lines alike, of the same text, and of a renamed name's uses."""

from __future__ import annotations

import itertools
import time

import pytest

from fim_server.next_edit.analogies import MOST_PLACES
from fim_server.next_edit.bindings import is_bound
from fim_server.next_edit.change import change_of
from fim_server.next_edit.confidence import NAMES, fitted_weights
from fim_server.next_edit.edit_memory import Edit, EditMemory
from fim_server.next_edit.line_tokens import tokens_of
from fim_server.next_edit.propose import LONGEST_DOCUMENT, Proposal, proposals
from fim_server.suggest.next_edit import LEAST_CONFIDENCE

URI = "file:///a.py"
SURE = LEAST_CONFIDENCE


class Edited:
    """A document, and its edits."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.memory = EditMemory(lambda uri: self.text)

    def replace(self, old: str, new: str) -> None:
        """Replace the first occurrence of a text."""
        self.change(self.text.index(old), old, new)

    def change(self, start: int, old: str, new: str) -> None:
        end = start + len(old)
        assert self.text[start:end] == old
        self.memory.change(URI, self.text, start, end, new)
        self.text = self.text[:start] + new + self.text[end:]

    def proposed(self, least: float = SURE) -> list[Proposal]:
        return [one for one in proposals(self.memory.latest(), URI, self.text) if one.confidence >= least]

    def accept_all(self) -> list[int]:
        """Accept what is proposed first, again and again; return the lines, from 1."""
        lines = []
        for _ in range(20):
            found = self.proposed()
            if not found:
                break
            one = found[0]
            lines.append(self.text.count("\n", 0, one.start) + 1)
            self.change(one.start, self.text[one.start : one.end], one.text)
        return lines


def test_the_uses_of_a_renamed_parameter_follow_in_their_order() -> None:
    edited = Edited("def total(values):\n    for one in values:\n        print(one)\n    return len(values)\n")
    edited.replace("values", "items")
    assert edited.accept_all() == [2, 4]
    assert "values" not in edited.text


@pytest.mark.parametrize(
    "text",
    [
        "func Sum(values []int) int {\n\tfor _, v := range values {\n\t\tt += v\n\t}\n\treturn len(values)\n}\n",
        "function f(values) {\n  for (const v of values) {\n    t += v;\n  }\n  return values.length;\n}\n",
        "fn sum(values: &[u8]) -> usize {\n    for v in values {\n        t += v;\n    }\n    values.len()\n}\n",
        "void f() {\n    int values = 1;\n    g(values);\n    return values + 1;\n}\n",
    ],
)
def test_names_are_renamed_in_any_language(text: str) -> None:
    edited = Edited(text)
    edited.replace("values", "items")
    assert edited.accept_all()[:1] == [text[: text.index("values", text.index("values") + 1)].count("\n") + 1]
    assert "values" not in edited.text


def test_a_block_that_binds_the_name_again_is_left_alone() -> None:
    edited = Edited("def f(a):\n    def g(a):\n        return a\n    return g(a)\n")
    edited.replace("a", "b")
    assert {one.start for one in edited.proposed(least=0.0)} == {edited.text.rindex("a")}


def test_a_word_that_may_be_a_key_is_left_alone() -> None:
    edited = Edited("function f(a) {\n  g(a, { a, b: a });\n}\n")
    edited.replace("a", "n")
    assert [edited.text[: one.start][-4:] for one in edited.proposed(least=0.0) if one.is_use] == ["  g(", " b: "]


def test_two_names_do_not_become_one() -> None:
    edited = Edited("def f(a):\n    b = 2\n    return a + b\n")
    edited.replace("a", "b")
    assert not any(one.is_use for one in edited.proposed(least=0.0))


def test_the_calls_of_a_renamed_function_follow() -> None:
    edited = Edited(
        "class A:\n    def load(self):\n        pass\n\n    def run(self):\n        self.load()\n        self.load()\n"
    )
    edited.replace("load", "read")
    assert edited.accept_all() == [6, 7]


def test_a_change_is_carried_to_lines_alike_with_their_names() -> None:
    edited = Edited('if a:\n    x = load(a)\n    log("a")\nelif b:\n    x = load(b)\n    log("b")\n')
    edited.replace("load(a)", "read(a, a.size)")
    [first, *_] = edited.proposed(least=0.0)
    assert (first.start, first.text) == (edited.text.index("load(b"), "read(b, b.size")


def test_a_change_that_was_made_twice_is_sure() -> None:
    edited = Edited("".join(f"x{n} = load({n}, None)\n" for n in range(5)))
    edited.change(edited.text.index(", None"), ", None", "")
    before = edited.proposed(least=0.0)[0].confidence
    edited.change(edited.text.index(", None"), ", None", "")
    assert edited.proposed(least=0.0)[0].confidence > max(before, SURE)
    assert edited.accept_all() == [3, 4, 5]


def test_lines_that_are_inserted_are_not_proposed_at_once() -> None:
    edited = Edited("a()\nb = 1\nc()\nb = 1\n")
    edited.replace("b = 1", "b = 1\nd = 2")
    assert edited.proposed(least=0.0) == []


def test_what_is_done_is_not_proposed() -> None:
    edited = Edited("load(1)\nload(2)\n")
    edited.replace("load(1)", "read(1)")
    for one in edited.proposed(least=0.0):
        assert one.start > edited.text.index("\n")


def test_no_word_is_cut() -> None:
    edited = Edited("value = 1\nvalues = value\nmy_value = 2\n")
    edited.replace("value", "item")
    for one in edited.proposed(least=0.0):
        assert edited.text[one.start : one.end] == "value"
        assert not edited.text[one.end : one.end + 1].isalnum()
        assert edited.text[one.start - 1] != "_"


@pytest.mark.parametrize(("old", "new"), [("    a", "        a"), ("a = 1", "a  =  1"), ("a", "a")])
def test_changes_of_blanks_are_no_change(old: str, new: str) -> None:
    assert change_of(Edit(URI, 0, old, new)) is None


def test_a_change_repeats_its_edit() -> None:
    """Put in the old text's place, the new text of a change gives the new lines, or there is no change."""
    pieces = ["f", "(", ")", "a", ", ", " ", "\n    ", "1", "="]
    for number, (old, new) in enumerate(itertools.product(itertools.product(pieces, repeat=3), repeat=2)):
        if number % 97:
            continue
        edit = Edit(URI, 0, "".join(old), "".join(new))
        change = change_of(edit)
        if change is not None:
            start = change.start
            assert edit.old[start : start + len(change.old)] == change.old
            assert edit.old[:start] + change.new + edit.old[start + len(change.old) :] == edit.new


@pytest.mark.parametrize(
    ("line", "name", "bound"),
    [
        ("def f(a, b=1):", "a", True),
        ("def f(a, b=1):", "b", True),
        ("x = a", "a", False),
        ("a = 1", "a", True),
        ("a == 1", "a", False),
        ("f(a=1)", "a", False),
        ("for a in x:", "a", True),
        ("import a", "a", True),
        ("x.a = 1", "a", False),
        ("let mut a = 1;", "a", True),
        ("a := 1", "a", True),
        ("int a = 1;", "a", True),
        ("return a;", "a", False),
    ],
)
def test_lines_bind_names(line: str, name: str, bound: bool) -> None:
    tokens = tokens_of(line)
    number = next(at for at, token in enumerate(tokens) if token.text == name)
    assert is_bound(tokens, number) is bound


def test_nothing_follows_an_undone_edit() -> None:
    text = "def total(values):\n    a = 1\n    return len(values)\n\n\ndef g(items):\n    return items\n"
    edited = Edited(text)
    edited.replace("values", "items")
    edited.replace("len(values)", "len(items)")
    edited.replace("len(items)", "len(values)")
    edited.replace("items", "values")
    assert edited.text == text
    assert edited.proposed(least=0.0) == []
    edited.replace("values", "items")  # done again
    assert edited.accept_all() == [3]


def test_a_name_may_be_renamed_back() -> None:
    edited = Edited("def total(values):\n    a = 1\n    return len(values)\n")
    edited.replace("values", "items")
    assert edited.accept_all() == [3]
    edited.replace("items", "values")
    assert edited.accept_all() == [3]


def test_long_documents_get_no_proposal() -> None:
    edited = Edited("load(1)\nload(2)\n" + "x\n" * (LONGEST_DOCUMENT // 2))
    edited.replace("load(1)", "read(1)")
    assert edited.proposed(least=0.0) == []


def test_every_feature_has_a_weight() -> None:
    assert len(fitted_weights()) == len(NAMES) == len(set(NAMES))


TWELVE = "\n".join(["a = b"] * 11)


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        ("def a<>" * 42_000 + "\ndef f(a):\n    pass\n", "f(a)", "f(a, b)"),
        (f"{TWELVE}\n" + "c = d\n" * 49_000, TWELVE, TWELVE.replace("b", "e")),
        ("a = '😀'\n" * 37_000, "😀", "😀😀"),
    ],
    ids=["header", "lines alike", "done already"],
)
def test_the_time_is_bounded(text: str, old: str, new: str) -> None:
    edited = Edited(text)
    edited.replace(old, new)
    began = time.process_time()
    edited.proposed()
    assert time.process_time() - began < 2


def test_the_nearest_places_are_looked_at() -> None:
    edited = Edited("".join(f"x{n} = load({n}, None)\n" for n in range(200)))
    for line in (150, 151):
        edited.change(edited.text.index(f"x{line} =") + len(f"x{line} = load({line}"), ", None", "")
    lines = {edited.text.count("\n", 0, one.start) for one in edited.proposed(least=0.0)}
    assert {148, 149, 152, 153} <= lines
    assert len(lines) <= 2 * MOST_PLACES


def test_an_edit_is_known_after_most_of_its_document_is_gone() -> None:
    edited = Edited("total = 1\n" + "x = 1\n" * 400 + "print(value)\n")
    edited.replace("print(value)", "print(total)")
    edited.replace("total = 1", "total = 2")
    edited.change(0, edited.text, "total = 1\nprint(total)\n")
    assert edited.proposed() == []
