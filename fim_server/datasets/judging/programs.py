"""Judges of the package, which are built in the cache folder where a language's tools are installed."""

from __future__ import annotations

import hashlib
import json
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from filelock import FileLock

from fim_server.datasets.judging.judge import Judge
from fim_server.errors import JudgeError
from fim_server.language import Language
from fim_server.language.cache import cache_folder

FOLDER = Path(__file__).parent / "programs"
BUILD_S = 600.0
"""Seconds that building a judge may take."""
ASK_ENGINE = "engine"
"""Name of the engine in the place of a judge."""
ASK_NONE = "none"
"""Name in the place of a judge for a language without a grammar: every text is a file."""
ENGINE = "the engine"
"""Title of the engine as the judge of a language whose own parser was not asked."""
NOTHING = "nothing"
"""Title of the judge of a language without a grammar."""
PACKAGES = "node_modules"
"""Folder of packages that may lie in a judge's own, and are none of its sources."""


@cache
def table() -> dict[str, dict[str, Any]]:
    """Return the table of judges by language: the tools, the build, the command, and the name."""
    found = tomllib.loads(Path(__file__).with_name("programs.toml").read_text(encoding="utf-8"))
    # What judges these is where this runs already.
    for language, name in (("python", "CPython's ast"), ("json", "CPython's json")):
        found[language] = {
            "needs": [],
            "run": [sys.executable, "{source}/judge.py"],
            "is": name,
            "told": [sys.executable, "--version"],
        }
    for language, row in found.items():
        if "like" in row:  # a row comes after the one that it is like
            found[language] = {"program": row["like"], **found[row["like"]], **row}
    return found


def unavailable(language: str) -> str | None:
    """Return the reason why a language has no judge here, in one line; None where it has one."""
    row = table().get(language)
    if row is None:
        return f"no judge comes with the package for {language}: name a program with --judge"
    missing = [tool for tool in row["needs"] if shutil.which(tool) is None]
    return f"the judge of {language} needs {' and '.join(missing)}" if missing else None


def name(language: str) -> str:
    return str(table()[language]["is"])


@cache
def title(language: str) -> str:
    """Return the name of a language's judge, with the version of its tools where a command tells it.

    Raises:
        JudgeError: There is no judge, or its tools are not installed.
    """
    reason = unavailable(language)
    if reason is not None:
        raise JudgeError(reason)
    told = _told(language, table()[language])
    return f"{name(language)}, {told}" if told else name(language)


def _told(language: str, row: dict[str, Any]) -> str:
    """Return the tools' version, as they tell it in the judge's folder; empty where no command tells it."""
    if "told" not in row:
        return ""
    try:
        done = subprocess.run(
            row["told"], cwd=_source(language, row), capture_output=True, text=True, timeout=BUILD_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise JudgeError(f"the judge of {language} does not tell its version: {error}") from error
    return next(iter(done.stdout.strip().splitlines()), "")


@dataclass(frozen=True)
class Started:
    """Running judge of a language.

    Attributes:
        version: Version of the language that it judges; None where the language has none.
        title: Its name, with its version and the language's.
    """

    judge: Judge
    version: str | None
    title: str


def start(language: str, version: str | None = None, named: str | None = None) -> Started:
    """Start the judge of a language.

    Args:
        language: Its name.
        version: Version of the language; None is the newest that the tools here can judge.
        named: Command of another program than the package's, which judges the named version or the newest.

    Raises:
        JudgeError: There is none, its tools are not installed, or they know no such version.
    """
    known = Language.versions(language) if language in Language.names() else ()
    if named is not None:
        return Started(Judge(shlex.split(named) or [""]), version, named)
    newest_first: list[str | None] = [*reversed(known)]
    wanted = [version] if version is not None else newest_first or [None]
    said = ""
    for one in wanted:
        judge = Judge(command(language, one), appeal(language, one))
        if judge.verdict("") is not None:
            own = f", {language} {one}" if known else ""
            return Started(judge, one if known else None, title(language) + own)
        said = judge.message("")
        judge.close()
    told = language if version is None else f"{language} {version}"
    raise JudgeError(f"the judge of {told} cannot tell: {said}")


def judged_version(language: str, version: str | None = None) -> str | None:
    """Return the version of a language that its judge knows: the named one, or the newest; None without versions.

    Raises:
        JudgeError: As `start`.
    """
    started = start(language, version)
    started.judge.close()
    return started.version


def command(language: str, version: str | None = None) -> list[str]:
    """Return the command of a language's judge, and build it first if need be.

    Raises:
        JudgeError: There is none, its tools are not installed, or it cannot be built.
    """
    return _command(language, version, "run")


def appeal(language: str, version: str | None = None) -> list[str]:
    """Return the command of the judge with the last word; empty where the first one has it.

    Raises:
        JudgeError: As `command`.
    """
    return _command(language, version, "appeal") if "appeal" in table().get(language, {}) else []


def symbols(language: str, version: str | None = None) -> list[str]:
    """Return the command of the program that tells a text's symbols; empty where lexemes alone tell them.

    Raises:
        JudgeError: As `command`.
    """
    return _command(language, version, "symbols") if "symbols" in table().get(language, {}) else []


def _source(language: str, row: dict[str, Any]) -> Path:
    return FOLDER / str(row.get("program", language))


def _command(language: str, version: str | None, key: str) -> list[str]:
    reason = unavailable(language)
    if reason is not None:
        raise JudgeError(reason)
    row = table()[language]
    source = _source(language, row)
    versions = Language.versions(language) if language in Language.names() else ()
    places = {
        "source": str(source),
        "language": language,
        "version": version or (versions[-1] if versions else ""),
    }
    if "build" in row:
        places["built"] = str(_built(language, row, source))
    return [part.format(**places) for part in row[key]]


def _built(language: str, row: dict[str, Any], source: Path) -> Path:
    """Return the folder of a built judge, which another process may be building at the same time."""
    folder = (cache_folder() or Path(tempfile.gettempdir()) / "fim-server") / "judges"
    digest = hashlib.sha256(json.dumps([row["build"], _told(language, row)]).encode())
    for path in sorted(path for path in source.rglob("*") if path.is_file() and PACKAGES not in path.parts):
        digest.update(path.relative_to(source).as_posix().encode() + b"\0" + path.read_bytes())
    built = folder / f"{source.name}-{digest.hexdigest()[:16]}"
    if not (built / "done").is_file():
        built.mkdir(parents=True, exist_ok=True)
        with FileLock(built / "lock"):
            if not (built / "done").is_file():
                _build(language, row, source, built)
                (built / "done").touch()
    return built


def _build(language: str, row: dict[str, Any], source: Path, built: Path) -> None:
    copied = row.get("copied", False)
    if copied:
        shutil.copytree(source, built, dirs_exist_ok=True, ignore=shutil.ignore_patterns(PACKAGES))
    program, *rest = (part.format(source=source, built=built) for part in row["build"])
    line, place = [shutil.which(program) or program, *rest], built if copied else source
    try:
        done = subprocess.run(line, cwd=place, capture_output=True, text=True, timeout=BUILD_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise JudgeError(f"the judge of {language} cannot be built: {error}") from error
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines() or ["no message"]
        raise JudgeError(f"the judge of {language} cannot be built: {said[0]}")
