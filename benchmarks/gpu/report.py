"""Report of ``./dev bench gpu``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks.report import setting_lines, shown
from fim_server.text.terminal import Table


@dataclass(frozen=True)
class ChoiceRow:
    """Choosing a batch's tokens on the device, in one way. ``microseconds`` is None where ``note`` says why."""

    batch: int
    what: str
    microseconds: float | None
    note: str = ""

    def cells(self) -> tuple[str, ...]:
        """A line of the table."""
        return (str(self.batch), self.what, shown(self.microseconds), self.note)


CHOICE_HEADER = ("batch", "choice of the tokens", "µs", "")


@dataclass(frozen=True)
class StepRow:
    """A batch under one constraint. None where there is no figure.

    Attributes:
        shape: The network's.
        batch: Rows.
        graphs: Whether steps were CUDA graphs.
        engine: Whose constraint.
        what: The languages, and whether the right context counts.
        steps: Measured.
        step_ms: Median of a step.
        step_p99_ms: Its 99th percentile.
        share: By how much the median is longer than without a constraint, over that.
        goal: What the share should not exceed.
        masks_us_a_row: Median of all rows' masks by the clock, over the rows: on all threads, mostly beside the model.
        commits_us_a_row: The same of taking all rows' tokens in.
        mask_p50_us: Of masks computed one by one on one thread while nothing else runs.
        mask_p99_us: Their 99th percentile.
        opening_s: Seconds to open all rows.
        refused: Tokens of the true middles that were refused.
        note: Why there are no figures, or what to know about them.
    """

    shape: str
    batch: int
    graphs: bool
    engine: str
    what: str
    steps: int
    step_ms: float | None
    step_p99_ms: float | None
    share: float | None
    goal: float | None
    masks_us_a_row: float | None
    commits_us_a_row: float | None
    mask_p50_us: float | None
    mask_p99_us: float | None
    opening_s: float | None
    refused: int
    note: str = ""

    def cells(self) -> tuple[str, ...]:
        """A line of the table."""
        return (
            *(self.shape, str(self.batch), "yes" if self.graphs else "no", self.engine, self.what),
            *(shown(self.step_ms), shown(self.step_p99_ms)),
            *("-" if share is None else f"{share:.1%}" for share in (self.share, self.goal)),
            *map(shown, (self.masks_us_a_row, self.commits_us_a_row, self.mask_p50_us, self.mask_p99_us)),
            *(str(self.refused), self.note),
        )


STEP_HEADER = (
    *("shape", "batch", "graphs", "constraint", "language", "step ms", "p99 ms", "share", "goal"),
    *("masks µs/row", "tokens µs/row", "one mask p50 µs", "p99 µs", "refused", ""),
)


@dataclass(frozen=True)
class KeystrokeRow:
    """Reading a prompt again after a keystroke."""

    shape: str
    order: str
    keystrokes: int
    tokens_p50: float | None
    """Tokens that were read."""
    tokens_p95: float | None
    p50_ms: float | None
    p95_ms: float | None
    note: str = ""

    def cells(self) -> tuple[str, ...]:
        """A line of the table."""
        figures = (self.tokens_p50, self.tokens_p95, self.p50_ms, self.p95_ms)
        return (self.shape, self.order, str(self.keystrokes), *map(shown, figures), self.note)


KEYSTROKE_HEADER = ("shape", "prompt", "keystrokes", "tokens read p50", "p95", "ms p50", "p95", "")


@dataclass
class Report:
    """All of it."""

    setting: dict[str, str]
    choices: list[ChoiceRow] = field(default_factory=list)
    steps: list[StepRow] = field(default_factory=list)
    keystrokes: list[KeystrokeRow] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    """Parts that were not measured, with the reasons."""

    def as_json(self) -> dict[str, Any]:
        """The report as one JSON object."""
        return asdict(self)

    def parts(self) -> Iterator[str | Table]:
        """The report as lines of text and tables."""
        yield from setting_lines(self.setting)
        if self.choices:
            yield ""
            yield Table(CHOICE_HEADER, [row.cells() for row in self.choices], numbers=(0, 2))
        yield ""
        yield Table(STEP_HEADER, [row.cells() for row in self.steps], numbers=range(5, 14))
        if self.keystrokes:
            yield ""
            yield Table(KEYSTROKE_HEADER, [row.cells() for row in self.keystrokes], numbers=range(2, 7))
        for each in self.left_out:
            yield f"left out: {each}"
