"""Options of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from fim_server.datasets.python.text import LANGUAGE as PYTHON
from fim_server.evaluation.running.shards import Shard
from fim_server.models.options import LoadOptions


class Reads(StrEnum):
    """Contexts of a sample that the model reads. The grammar always reads both."""

    BOTH = "both"
    """The prompt of the model's format."""
    LEFT = "left"
    """The left context and an empty suffix: the difference to ``both`` is the suffix's worth."""
    LEFT_ALONE = "left-alone"
    """The left context and no control token: for models that were not trained to fill in."""


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """Options of a worker, in a form that can be sent to another machine."""

    model: str | None
    device: str | None
    modes: tuple[str, ...]
    budget: int
    max_prompt_tokens: int
    seed: int
    temperature: float
    judge: str | None
    """The Python whose ``ast.parse`` says what parses of Python; None is the one that runs the worker."""
    language_version: str | None
    """Version of Python's grammar; None is the judge's own version, or the newest known one."""
    landing: bool = True
    runtime: str | None = None
    """See :func:`fim_server.models.load.load_model`, also for the next field."""
    load: LoadOptions = field(default_factory=LoadOptions)
    reads: Reads = Reads.BOTH
    heal: bool = True
    single_line: bool = False
    score: bool = False
    truncation: bool = True
    """Cut unconstrained texts as their benchmark does (SAFIM)."""
    unsafe: bool = False
    """Run the samples' own tests without a sandbox where there is none."""
    tested: bool = True
    """Run the samples' own tests."""
    languages: tuple[str, ...] = (PYTHON,)
    """Languages of the samples."""
    judges: Mapping[str, str] = field(default_factory=dict)
    """By language, the command of a judge other than the package's own (:mod:`.judges`)."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """By language other than Python, the version that counts; the newest that the judge knows where none is named."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Options of a run beside those of its workers."""

    data: tuple[str, ...]
    out: Path
    batch: int
    limit: int | None = None
    shard: Shard = field(default_factory=Shard)
    retry_failed: bool = False
    ends: float | None = None
    """Time on the monotonic clock when the run ends, finished or not."""
