"""Attributes that the class around the cursor does not have."""

from __future__ import annotations

import pytest

from fim_server.language_support.python import members
from fim_server.language_support.python.members import unknown_member

CLASS = """{mark}class {name}{bases}:
    rate: int = 1

    def __init__(self, session):
        self.session = session{more}

    def find(self, partner):
        {line}

    def close(self):
        self.session.close()


def timeout():
    pass
"""


def found(line: str, text: str, **more: str) -> str | None:
    parts = {"mark": "", "name": "Service", "bases": "", "more": "", "line": line, **more}
    left, right = CLASS.format(**parts).split("|")
    ends = unknown_member(left, right, text)
    return None if ends is None else text[ends[0] : ends[1]]


@pytest.mark.parametrize(
    ("line", "text", "expected"),
    [
        ("x = |", "self.timeout", "self.timeout"),
        ("x = |", "f(self.session, timeout=self.timeout)", "self.timeout"),
        ("x = self.t|", "imeout + 1", "imeout"),
        ("x = self.timeout|", " + 1", None),  # the user has written it
        ("x = |", "self.session", None),
        ("x = |", "self.find", None),
        ("x = |", "self.rate", None),
        ("x = |", "self.__class__", None),
        ("x = |", "self.partner", "self.partner"),  # a parameter is no attribute
        ("x = |", "self.service_of(self.session)", "self.service_of"),
        ("x = |", "cls.timeout", None),  # its class is unknown
        ("x = |", "partner.timeout", None),
        ("|", "self.timeout = 1", None),  # it has it from now on
        ("|", "self.timeout: int = 1", None),
        ("|", "self.timeout == 1", "self.timeout"),
        ("|", "self.session\nself.timeout", None),
        ("|", "self.left, self.right = partner", None),
        ("|", "(self.left, self.right) = partner", None),
        ("|", "self.left, x = self.right", "self.right"),
        ("|", "self.left = x == self.right", "self.right"),
        ("self.| = 3", "timeout", None),
        ("f(| = 3)", "x, self.left", "self.left"),
        ("|", "self.timeout: int", None),
        ("with open(partner) as |:", "self.file", None),
        ("with open(|):", "self.file", "self.file"),
        ("for self.i, |:", "self.j in partner", None),
        ("x = 1  # |", "as self.timeout says", None),
        ("f(|)", "'self.timeout is late'", None),
        ("f(|)", "f'{self.timeout} is late'", "self.timeout"),
        ("x = |" + 5_000 * " ", "self.timeout", None),  # longer than what is looked at
    ],
)
def test_attributes_that_a_class_does_not_have(line: str, text: str, expected: str | None) -> None:
    assert found(line, text) == expected


@pytest.mark.parametrize(
    ("more", "is_known"),
    [
        ({"bases": "(Base)"}, True),
        ({"bases": "(metaclass=Meta)"}, True),
        ({"name": "ServiceMixin"}, True),
        ({"bases": "()"}, False),
        ({"bases": "(object)"}, False),
        ({"mark": "@dataclass\n"}, False),
        ({"mark": "@attrs.define\n"}, False),
        ({"mark": "@dataclass\n@registered\n"}, True),
        ({"mark": "@registered(1)\n@dataclass\n"}, True),
        ({"mark": "@registered(\n    1,\n)\n"}, True),
        ({"mark": "x = 1\n\n\n"}, False),
        ({"more": "\n        self.__dict__.update(session)"}, True),
        ({"more": "\n        vars(self).update(session)"}, True),
        ({"more": '\n        """Late."""'}, False),
        ({"more": '\n        """\nA text that is indented less than the class.\n        """'}, False),
        ({"more": "\n\n    def __getattr__(self, name):\n        return 1"}, True),
        ({"more": "\n        for name in session:\n            setattr(self, name, 1)"}, True),
    ],
)
def test_classes_that_may_have_others(more: dict[str, str], is_known: bool) -> None:
    assert (found("x = |", "self.timeout", **more) is None) is is_known


@pytest.mark.parametrize(
    "more",
    [
        "other.timeout = 1",
        "given['timeout'] = 1",
        "x = 1\n\n    def timeout(self): ...",
        "x = 1\n\n    async def timeout(self): ...",
        "x = 1\n\n    timeout: int",
        "x = 1\n\n    late, timeout = 1, 2",
        "x = 1\n\n    (\n        timeout,\n        late,\n    ) = 1, 2",
        "x = 1\n\n    if late:\n        timeout = 1",
        "x = 1\n\n    if late:\n        def timeout(self): ...",
        "x = 1\n\n    class timeout: ...",
        "x = 1\n\n    from late import timeout",
        "x = 1\n\n    for timeout in late: ...",
        "self. timeout = 1",
        "x = 1\n\n    def late(self, timeout):\n        self.__dict__.update(locals())",
    ],
)
def test_what_may_be_a_member(more: str) -> None:
    assert found("x = |", "self.timeout", more=f"\n        {more}") is None


@pytest.mark.parametrize(
    "more",
    [
        "timeout = 1",
        "timeout: int = 1",
        "for timeout in late: ...",
        "timeout(late)",
        "x = 1\n\n    def late(self, timeout): ...",
        "x = 1\n\n    def late(\n        self,\n        timeout,\n    ): ...",
    ],
)
def test_what_a_methods_own_names_are_not(more: str) -> None:
    assert found("x = |", "self.timeout", more=f"\n        {more}") == "self.timeout"


@pytest.mark.parametrize(
    ("more", "is_known"),
    [
        ("class Late(Service):\n    def partner(self): ...\n", True),
        ("class Late(Base, mod.Service, Other):\n    pass\n", True),
        ("class Late(\n    Base,\n    Service,\n):\n    pass\n", True),
        ("class Late(Services):\n    def partner(self): ...\n", False),
        ("service.partner = 1\n", True),
        ("service.partner, x = 1, 2\n", True),
        ("service.partner == 1\n", False),
    ],
)
def test_who_else_may_give_it_one(more: str, is_known: bool) -> None:
    left, right = CLASS.format(mark="", name="Service", bases="", more="", line="x = |").split("|")
    assert (unknown_member(left, f"{right}\n\n{more}", "self.partner") is None) is is_known


def test_of_many_unknown_names_a_few_are_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    real = members.is_bound_by_others

    def noted(name: str, left: str, right: str) -> bool:
        asked.append(name)
        return real(name, left, right)

    monkeypatch.setattr(members, "is_bound_by_others", noted)
    left, right = CLASS.format(mark="", name="Service", bases="", more="", line="x = |").split("|")
    names = [f"name_{number}" for number in range(20)]
    bound = "".join(f"other.{name} = 1\n" for name in names)
    text = " + ".join(f"self.{name} + self.{name}" for name in names)
    assert unknown_member(left, f"{right}\n\n{bound}", text) is None
    assert asked == names[: members.MOST_ASKED]
    twice = "self.name_0 + self.name_0 + self.left + self.left"
    start = twice.index("self.left")
    assert unknown_member(left, f"{right}\n\n{bound}", twice) == (start, start + len("self.left"))


def test_a_text_that_is_indented_less_ends_no_method() -> None:
    text = """class A:
    def f(self, late):
        x = |

    def g(self):
        '''
  def h():
        '''

    late = 1
"""
    left, right = text.split("|")
    assert unknown_member(left, right, "self.late") is None


def test_outside_of_a_class_nothing_is_known() -> None:
    inner = "class A:\n    def f(self):\n        def g(self):\n            x = "
    assert unknown_member(inner, "\n", "self.timeout") is None
    other = "class A:\n    def f(own, self):\n        x = "
    assert unknown_member(other, "\n", "self.timeout") is None
    text = """class A:
    def f(self):
        x = |

    def g(self):
        return '''
b
'''

    def h(self):
        self.d = 1
"""
    left, right = text.split("|")
    assert unknown_member(left, right, "self.d") is None
    assert unknown_member("class A:\n    pass\n\n\ndef f(self):\n    x = ", "\n", "self.timeout") is None
    assert unknown_member("x = ", "", "self.timeout") is None


def test_a_class_that_is_not_read_to_its_end_may_have_others(monkeypatch: pytest.MonkeyPatch) -> None:
    left, right = "class A:\n    def f(self):\n        x = ", "\n\n    def g(self):\n        return self.b\n\n\nc = 1\n"
    assert unknown_member(left, right, "self.d") is not None
    monkeypatch.setattr(members, "MOST_CHARACTERS", 40)
    assert unknown_member(left, right, "self.d") is None
