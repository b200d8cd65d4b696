"""``./dev bench next-edits``: real edits replayed from release to release, and the next edits that are proposed.

After each edit, the server's own choice is judged by the edits of the same file that are still to come.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.next_edits.fitting import page
from benchmarks.next_edits.replay import Step, Verdict, judged, replayed
from benchmarks.options import add_json, add_seed, positive_count
from benchmarks.report import DONE, machine, percentiles, progress_for, publish, setting_lines, version_of
from benchmarks.suggestions.projects import Project, open_folder
from fim_server.errors import BenchError
from fim_server.language import Language
from fim_server.next_edit.analogies import occurrences
from fim_server.next_edit.change import change_of
from fim_server.next_edit.line_tokens import Lines
from fim_server.next_edit.propose import Proposal
from fim_server.suggest.context.sessions import DocumentSessions
from fim_server.suggest.next_edit import EditQuestion, guarantee_of, next_edit, next_edit_elsewhere, own_proposals
from fim_server.suggest.request import Request
from fim_server.suggest.settings import ServerSettings
from fim_server.text.document import Split
from fim_server.text.terminal import Table

SHARES = {"p50": 0.5, "p95": 0.95}

NO_EDITS = "these releases have no edits"

STEPS = 400
"""Most edits of a project."""


@dataclass(frozen=True)
class NextEditsOptions:
    """Options of ``./dev bench next-edits``."""

    edits: list[list[str]]
    language: list[str] | None
    steps: int
    parse: int
    seed: int
    fit: Path | None
    json: bool


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``./dev bench next-edits``."""
    parser.epilog = "Exit status: 0 measured, 2 bad input."
    parser.add_argument(
        "--edits",
        action="append",
        nargs=2,
        required=True,
        metavar=("OLD", "NEW"),
        help="folders of two releases of a project; may be given several times",
    )
    parser.add_argument(
        "--language",
        action="append",
        metavar="NAME",
        help="of the files; may be given several times, and each project is in the first one it has files of "
        "(default: python)",
    )
    parser.add_argument(
        "--steps", type=positive_count, default=STEPS, metavar="N", help=f"most edits of a project (default: {STEPS})"
    )
    parser.add_argument(
        "--parse",
        type=positive_count,
        default=1,
        metavar="N",
        help="most proposals after an edit, however unsure, that are parsed by the whole file too (default: 1)",
    )
    add_seed(parser, "the order of the edits")
    parser.add_argument(
        "--fit", type=Path, metavar="FILE", help="write weights fitted to these edits, and measure nothing"
    )
    add_json(parser)


def run(options: NextEditsOptions) -> int:
    """Measure, and print tables or JSON, or fit; return the exit status.

    Raises:
        BenchError: A folder has no files of the language, or no edits.
        DatasetError: A folder cannot be read.
    """
    with progress_for(options.json) as progress:
        languages = options.language or ["python"]
        pairs = [open_releases(old, new, languages) for old, new in options.edits]
        if options.fit is not None:
            steps = [(old.language.name, step) for old, new in pairs for step in drawn(old, new, options)]
            if not steps:
                raise BenchError(NO_EDITS)
            options.fit.write_text(page(steps, [old.name for old, _ in pairs]), encoding="utf-8")
            return DONE
        setting = {"machine": machine(), "versions": f"fim-server {version_of('fim-server')}"}
        report = Report(setting | {"seed": str(options.seed)})
        for old, new in pairs:
            progress.say(f"replaying {old.name}")
            replay = Replay(old.language.name, options.parse)
            for step in drawn(old, new, options):
                replay.take(step)
            report.rows[old.name] = replay.counts
            report.repeated[old.name] = replay.repeated
            report.elsewhere[old.name] = replay.elsewhere
            report.milliseconds += replay.milliseconds
    if not report.milliseconds:
        raise BenchError(NO_EDITS)
    publish(report, options.json)
    return DONE


def open_releases(old: str, new: str, languages: Sequence[str]) -> tuple[Project, Project]:
    """Return two releases in the first language of which both have files.

    Raises:
        BenchError: There is none.
        DatasetError: A folder cannot be read.
    """
    *first, last = languages
    for language in first:
        with suppress(BenchError):
            return open_folder(old, language), open_folder(new, language)
    return open_folder(old, last), open_folder(new, last)


def drawn(old: Project, new: Project, options: NextEditsOptions) -> Iterator[Step]:
    return islice(replayed(old, new, options.seed), options.steps)


@dataclass(slots=True)
class Counts:
    """Counts of proposed edits.

    Attributes:
        steps: Edits that were made.
        due: Those after which the file has more to come.
        shown: Those after which an edit was proposed.
        there: Proposals in lines that are still to be changed.
        right: Proposals whose tokens are all among those that come and go there.
        exact: Proposals after which the lines are as they are to be.
        parsed: Proposals in files that parse, those of ``--parse`` included.
        broken: Those of them with which the file does not parse.
    """

    steps: int = 0
    due: int = 0
    shown: int = 0
    there: int = 0
    right: int = 0
    exact: int = 0
    parsed: int = 0
    broken: int = 0

    def add(self, verdict: Verdict) -> None:
        self.shown += 1
        self.there += verdict.is_there
        self.right += verdict.is_right
        self.exact += verdict.is_exact

    def __add__(self, other: Counts) -> Counts:
        return Counts(*(getattr(self, name) + getattr(other, name) for name in self.__slots__))


class Replay:
    """Replay of one project, with the server's choice of next edits."""

    def __init__(self, language: str, most_parsed: int) -> None:
        self._most_parsed = most_parsed
        self._language = Language.load(language)
        self._contexts = DocumentSessions()
        self.counts = Counts()
        self.repeated = Counts()
        """Counts of the baseline: the first place below where the changed text stands."""
        self.milliseconds: list[tuple[float, float]] = []
        """Times of the choice without parsing, and with it."""
        self.elsewhere = Counts()
        """Counts of edits in other files, where the edited one has none."""

    def take(self, step: Step) -> None:
        """Ask for the next edit, and judge it."""
        for counts in (self.counts, self.repeated):
            counts.steps += 1
            counts.due += bool(step.rest)
        began = time.perf_counter()
        asked = EditQuestion(step.file, step.text, step.edits)
        own_proposals(self._language.name, asked)
        chosen = time.perf_counter()
        found = next_edit(self._contexts, self._language, asked)
        self.milliseconds.append((1000 * (chosen - began), 1000 * (time.perf_counter() - chosen)))
        self._contexts.rest()
        if found is not None:
            one = found.proposal
            self.counts.add(judged(step, one.start, one.end, one.text))
        else:
            self._look_elsewhere(step, asked)
        self._parse(step, asked, [] if found is None else [found.proposal])
        self._repeat(step)

    def _look_elsewhere(self, step: Step, asked: EditQuestion) -> None:
        """Ask for an edit of another file, and judge it by the edits that are to come there."""
        self.elsewhere.steps += 1
        self.elsewhere.due += bool(step.others)
        requests = [
            Request(path, Split("", text), self._language.name, path, False, False, ServerSettings())
            for path, (text, _) in step.others.items()
        ]
        found = next_edit_elsewhere(self._contexts, lambda _: self._language, replace(asked, elsewhere=requests))
        self._contexts.rest()
        if found is not None and found.uri is not None:
            one, (text, rest) = found.proposal, step.others[found.uri]
            self.elsewhere.add(judged(Step(found.uri, text, step.edits, rest), one.start, one.end, one.text))
            self.elsewhere.parsed += 1
            self.elsewhere.broken += self._parses(text) and not self._parses(
                text[: one.start] + one.text + text[one.end :]
            )

    def _parse(self, step: Step, asked: EditQuestion, shown: list[Proposal]) -> None:
        """Parse the document with what is shown, and with further proposals that the server would let through."""
        further = (
            (one for one in own_proposals(self._language.name, asked) if one not in shown)
            if self._most_parsed > 1
            else ()
        )
        allowed = (one for one in further if guarantee_of(self._contexts, self._language, asked, one) is not None)
        checked = [*shown, *islice(allowed, self._most_parsed - len(shown))]
        self._contexts.rest()
        if checked and self._parses(step.text):
            self.counts.parsed += len(checked)
            for one in checked:
                self.counts.broken += not self._parses(step.text[: one.start] + one.text + step.text[one.end :])

    def _parses(self, text: str) -> bool:
        return self._language.open(text, "").check("").complete

    def _repeat(self, step: Step) -> None:
        mine = [edit for edit in step.edits if edit.uri == step.file]
        change = change_of(mine[-1]) if mine else None
        if change is None or not change.old:
            return
        places = sorted(occurrences(change, Lines(step.text), 0, len(step.text)), key=lambda place: place.start)
        below = [place for place in places if step.text.count("\n", 0, place.start) > change.edit.line]
        for place in (below or places)[:1]:
            self.repeated.add(judged(step, place.start, place.end, place.text))


@dataclass
class Report:
    """Findings.

    Attributes:
        setting: What was measured, in words.
        rows: Counts by project.
        repeated: Those of the baseline.
        milliseconds: Times of the choice without parsing, and with it.
        elsewhere: Counts of edits in other files.
    """

    setting: dict[str, str]
    rows: dict[str, Counts] = field(default_factory=dict)
    repeated: dict[str, Counts] = field(default_factory=dict)
    milliseconds: list[tuple[float, float]] = field(default_factory=list)
    elsewhere: dict[str, Counts] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return the report as one JSON object."""

        def counts(of: dict[str, Counts]) -> dict[str, Any]:
            return {name: {key: getattr(one, key) for key in one.__slots__} for name, one in of.items()}

        return {
            "setting": self.setting,
            "projects": counts(self.rows),
            "repeated": counts(self.repeated),
            "elsewhere": counts(self.elsewhere),
            "choice_ms": dict(zip(SHARES, self._times(0), strict=True)),
            "answer_ms": dict(zip(SHARES, self._times(1), strict=True)),
        }

    def _times(self, at: int) -> tuple[float | None, ...]:
        return percentiles([pair[at] for pair in self.milliseconds], *SHARES.values())

    def parts(self) -> Iterator[str | Table]:
        """Yield the report as lines of text and a table."""
        yield from setting_lines(self.setting)
        header = ("project", "edits", "more due", "shown, %", "there, %", "right, %", "exact, %", "parsed", "broken")
        rows = [row(name, counts) for name, counts in self.rows.items()]
        rows.append(row("all", sum(self.rows.values(), Counts())))
        rows.append(row("in other files", sum(self.elsewhere.values(), Counts())))
        rows.append(row("the changed text again", sum(self.repeated.values(), Counts())))
        yield Table(header, rows, range(1, len(header)))
        for what, at in (("choice without parsing", 0), ("whole answer", 1)):
            median, most = self._times(at)
            yield f"{what}, ms: p50 {median:.2f}, p95 {most:.2f}" if median is not None and most is not None else ""


def row(name: str, counts: Counts) -> list[str]:
    """Return a row: shares of the shown edits, and of the edits made for the shown ones."""
    shares = [share(counts.shown, counts.steps)]
    shares += [share(one, counts.shown) for one in (counts.there, counts.right, counts.exact)]
    return [name, str(counts.steps), str(counts.due), *shares, str(counts.parsed), str(counts.broken)]


def share(part: int, of: int) -> str:
    return f"{100 * part / of:.1f}" if of else ""
