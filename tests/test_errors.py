"""The exceptions of both halves: one base, limits with their figures, one line and status 2 on the command line."""

from __future__ import annotations

import inspect
import json
import pickle
import subprocess
import sys

import pytest

from fim_server import _core, errors
from fim_server.cli import main
from fim_server.language import Matcher
from fim_server.language.definition import compile as grammar

CLASSES = [value for _, value in inspect.getmembers(errors, inspect.isclass) if value.__module__ == errors.__name__]


@pytest.mark.parametrize("error", CLASSES)
def test_all_have_one_base_and_are_exported(error: type[Exception]) -> None:
    assert issubclass(error, errors.FimServerError)
    assert error.__name__ in errors.__all__


@pytest.mark.parametrize("error", CLASSES)
def test_all_can_travel_between_processes(error: type[Exception]) -> None:
    again = pickle.loads(pickle.dumps(error("why")))
    assert type(again) is error
    assert str(again) == "why"


def test_limits_carry_their_figures_between_processes() -> None:
    again = pickle.loads(pickle.dumps(errors.LimitError("too many", 3, 2)))
    assert (str(again), again.given, again.limit) == ("too many", 3, 2)


def test_the_engine_raises_the_packages_own_classes() -> None:
    with pytest.raises(errors.LanguageError, match=r"^language definition: "):
        _core.Language("{}")


def test_a_limit_of_the_engine_carries_its_figures() -> None:
    definition = grammar.lower(grammar.read_builtin("json"))
    definition["modes"] = [{"name": f"mode{number}", "lexemes": []} for number in range(100)]
    with pytest.raises(errors.LimitError, match=r"^modes: 100 is over the limit of ") as refusal:
        _core.Language(json.dumps(definition))
    assert refusal.value.given == 100
    assert refusal.value.limit == 63


def test_a_plan_that_is_not_found_is_no_overflow() -> None:
    class Unknown:
        def landing(self, enough: int) -> tuple[None, bool]:
            return None, True

    matcher = Matcher.__new__(Matcher)
    matcher.core = Unknown()  # type: ignore[assignment]
    with pytest.raises(errors.SearchLimitError):
        matcher.plan()
    assert not issubclass(errors.SearchLimitError, OverflowError)


@pytest.mark.parametrize("error", CLASSES)
def test_the_command_line_says_any_of_them_in_one_line(
    error: type[Exception], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*args: object) -> object:
        raise error("first\nsecond")

    monkeypatch.setattr("fim_server.text.document.Document.read", refuse)
    assert main(["check", "missing.py"]) == 2
    assert capsys.readouterr().err == "fim-server: first second\n"


def test_errors_import_nothing_of_the_package() -> None:
    source = inspect.getsource(errors)
    assert "import fim_server" not in source
    assert "from fim_server" not in source


def test_they_can_be_imported_without_torch() -> None:
    code = "import sys, fim_server.errors; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
