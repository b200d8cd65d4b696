"""Checkers that answer, are late, crash, or are not there."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from fim_server.server.checking import checkers as module
from fim_server.server.checking.catalogue import Entry, catalogue, checker_of
from fim_server.server.checking.checkers import MOST_STARTS, Checkers, LanguageChecker, findings_of
from fim_server.suggest.ranking.findings import Finding, Kind
from fim_server.text.document import PositionEncoding

PROGRAM = Path(__file__).parents[2] / "support" / "servers" / "checker_server.py"
WORDS = ("name=missing", "member=.absent", "other=unused")
KINDS = {"name": Kind.NAME, "member": Kind.MEMBER}
TEXT = "value = 1\nvalue.missing\n"


class Workplace:
    """A client's checkers, with a made-up one for Python."""

    def __init__(self, folder: Path) -> None:
        self.uri = (folder / "a.py").as_uri()
        self.is_on = True
        self.others: dict[str, str] = {}
        self.logged: list[str] = []
        self.folder = folder.as_uri()
        self.checkers = Checkers(
            lambda: self.is_on, lambda: [self.folder], lambda language: self.others, self.logged.append
        )

    @property
    def checker(self) -> LanguageChecker:
        found = self.checkers.checker("python", self.uri)
        assert found is not None
        return found

    async def findings(self, text: str = TEXT, line: int = 1, seconds: float = 20.0) -> list[Finding] | None:
        deadline = asyncio.get_running_loop().time() + seconds
        found = await self.checker.findings(self.uri, text, range(line, line + 1), deadline)
        return None if found is None else list(found)


@pytest_asyncio.fixture
async def workplace(tmp_path: Path) -> AsyncIterator[Workplace]:
    workplace = Workplace(tmp_path)
    yield workplace
    workplace.checkers.close()
    await asyncio.sleep(0.05)  # the processes end


def use(monkeypatch: pytest.MonkeyPatch, *options: str, program: str = sys.executable) -> None:
    """Have the made-up checker be Python's."""
    command = ("python", "-S", str(PROGRAM), *options, *WORDS)
    entry = replace(catalogue()[0], name="made up", command=command, kinds=KINDS)
    monkeypatch.setattr(module, "checker_of", lambda language: entry)
    monkeypatch.setattr(Entry, "program", lambda self, folders: program or None)


@pytest.mark.parametrize("options", [(), ("--push",)])
@pytest.mark.asyncio
async def test_a_finding_has_its_place_and_kind(
    workplace: Workplace, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    use(monkeypatch, *options)
    assert await workplace.findings() == [Finding(16, 23, Kind.NAME)]
    assert await workplace.findings("value = 1\n'\U0001f600', missing\n") == [Finding(15, 22, Kind.NAME)]
    assert await workplace.findings("value = 1\nunused\n") == []


@pytest.mark.asyncio
async def test_only_what_is_new_on_the_line_counts(workplace: Workplace, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch)
    assert await workplace.findings("missing\nvalue.missing\n") == []
    assert await workplace.findings(TEXT, line=0) == []


@pytest.mark.asyncio
async def test_a_late_finding_is_known_the_next_time(workplace: Workplace, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, "--slow", "0.2")
    workplace.checker.warm(workplace.uri, TEXT)
    started = time.monotonic()
    assert await workplace.findings(seconds=0.05) is None
    assert time.monotonic() - started < 0.15
    assert workplace.checker.wait_seconds == catalogue()[0].wait_ms / 1000
    await asyncio.sleep(0.6)
    assert workplace.checker.wait_seconds == 0.0
    assert await workplace.findings(seconds=0.0) == [Finding(16, 23, Kind.NAME)]


@pytest.mark.asyncio
async def test_a_crashed_checker_starts_again_a_few_times(
    workplace: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, "--crash", "0")
    for number in range(MOST_STARTS + 1):
        assert await workplace.findings(f"{TEXT}{number}") is None
    assert len(workplace.logged) == MOST_STARTS
    assert workplace.checkers.resident_bytes == 0


@pytest.mark.parametrize("program", ["", "/no/such/program", "/bin/cat"])
@pytest.mark.asyncio
async def test_without_a_checker_nothing_is_found(
    workplace: Workplace, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    use(monkeypatch, program=program)
    assert await workplace.findings(seconds=0.5) is None
    assert len(workplace.logged) == 1


@pytest.mark.asyncio
async def test_other_open_documents_are_shown(workplace: Workplace, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch)
    workplace.others = {workplace.uri: "missing", f"{workplace.folder}/b.py": "b = 1\n"}
    assert await workplace.findings() == [Finding(16, 23, Kind.NAME)]


@pytest.mark.asyncio
async def test_memory_counts_until_the_end(workplace: Workplace, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch)
    await workplace.findings()
    if sys.platform == "linux":
        assert workplace.checkers.resident_bytes > 1 << 20
    workplace.checkers.close()
    assert workplace.checkers.resident_bytes == 0
    assert workplace.checkers.checker("python", workplace.uri) is None


@pytest.mark.asyncio
async def test_nothing_starts_when_off_or_outside_of_the_workspace(
    workplace: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch)
    assert workplace.checkers.checker("python", "file:///elsewhere/a.py") is None
    assert workplace.checkers.checker("python", "untitled:a.py") is None
    workplace.is_on = False
    assert workplace.checkers.checker("python", workplace.uri) is None


@pytest.mark.asyncio
async def test_a_huge_document_is_not_checked(workplace: Workplace, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch)
    assert await workplace.findings(TEXT + " " * catalogue()[0].most_characters) is None


def test_a_program_of_the_workspace_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "bin" / "gopls"
    program.parent.mkdir()
    program.write_text("")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    assert catalogue()[0].program([str(tmp_path / "other")]) == str(program.resolve())
    assert catalogue()[0].program([str(tmp_path)]) is None


def test_every_kind_is_counted_by_its_code() -> None:
    places = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 1}}
    gopls = checker_of("go")
    assert gopls is not None
    codes = ("UndeclaredName", "MissingFieldOrMethod", "WrongArgCount", "IncompatibleAssign", "UnusedVar")
    found = [
        findings_of(
            [{"range": places, "code": code, "message": ""}], gopls.kinds, "x", range(1), PositionEncoding.UTF16
        )
        for code in codes
    ]
    assert [[one.kind for one in findings] for findings in found] == [*([kind] for kind in Kind), []]
