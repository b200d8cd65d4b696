"""Two runs as one set of columns, sample by sample.

Runs A and B are paired on the samples that both have: the same set and identifier, and the same hole.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fim_server.errors import RecordError
from fim_server.evaluation.records import MODES, Record, RunInfo, read_run
from fim_server.evaluation.reporting.measured import Bools, Measured, files_of, measured

NOT_SETTINGS = frozenset({"started"})
"""Fields of ``run.json`` that differ between any two runs."""


@dataclass(frozen=True)
class Joined:
    """Two runs as one set of columns, with a column ``A MODE`` and ``B MODE`` for every mode that both have.

    Attributes:
        only_a: Samples that B has not, of those that A has in a common mode.
        different: Samples left out because the same identifier has another hole.
        prompts: Samples of which some mode's prompt is not the same token for token.
    """

    data: Measured
    infos: tuple[RunInfo, RunInfo]
    modes: tuple[str, ...]
    only_a: int
    only_b: int
    different: int
    prompts: int


def join(a: str | Path, b: str | Path) -> Joined:
    """Two runs on their common samples.

    Raises RecordError where a folder is no run, or the runs have no sample and mode in common.
    """
    infos = RunInfo.read(a), RunInfo.read(b)
    ours, theirs = ({(one.set, one.sample, one.mode): one for one in read_run(folder)} for folder in (a, b))
    modes = tuple(mode for mode in MODES if all(any(key[2] == mode for key in side) for side in (ours, theirs)))
    samples_a, samples_b = ({key[:2] for key in side if key[2] in modes} for side in (ours, theirs))
    holes_a, holes_b = ({key[:2]: _hole(one) for key, one in side.items()} for side in (ours, theirs))
    common = samples_a & samples_b
    different = {key for key in common if holes_a[key] != holes_b[key]}
    common -= different
    if not common:
        raise RecordError(f"{a} and {b} have no sample in common")
    records = [
        replace(one, mode=f"{name} {one.mode}")
        for name, side in (("A", ours), ("B", theirs))
        for key, one in side.items()
        if key[:2] in common and key[2] in modes
    ]
    names = [f"{name} {mode}" for mode in modes for name in ("A", "B")]
    prompts = {
        key[:2]
        for key, one in ours.items()
        if key[:2] in common and key in theirs and one.prompt_hash != theirs[key].prompt_hash
    }
    files = files_of(infos[:1])
    if isinstance(files, str):
        files = files_of(infos[1:])
    data = measured(infos, records, files, order=names)
    only_a, only_b = len(samples_a - samples_b), len(samples_b - samples_a)
    return Joined(data, infos, modes, only_a, only_b, len(different), len(prompts))


def _hole(record: Record) -> tuple[str, int, int]:
    return record.reference, record.left_characters, record.right_characters


def settings(infos: tuple[RunInfo, RunInfo]) -> list[tuple[str, str, str]]:
    """Return the options that differ: field, value in A, value in B. Fields of objects are ``object.field``."""
    ours, theirs = (_flat(info.to_json()) for info in infos)
    names = dict.fromkeys([*ours, *theirs])
    return [
        (name, ours.get(name, "–"), theirs.get(name, "–"))
        for name in names
        if ours.get(name) != theirs.get(name) and name.split(".")[0] not in NOT_SETTINGS
    ]


def _flat(values: Mapping[str, Any], before: str = "") -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            found |= _flat(value, f"{before}{name}.")
        elif name == "data":
            found["data"] = ", ".join(f"{Path(one['path']).name} ({one['sha256'][:12]})" for one in value)
        else:
            found[before + name] = value if isinstance(value, str) else json.dumps(value)
    return found


def changed_mask(joined: Joined, mode: str, which: str) -> Bools:
    """The samples on which B succeeds and A does not (``won``), or the other way round (``lost``)."""
    kept, _ = joined.data.pairs((f"A {mode}", f"B {mode}"))
    a, b = (joined.data.modes[f"{name} {mode}"].success for name in ("A", "B"))
    return kept & b & ~a if which == "won" else kept & a & ~b


def changed_first(joined: Joined) -> list[int]:
    """The samples that B lost in some mode, that it won, on which both fail, the rest; constrained before others."""
    data = joined.data

    def rank(place: int) -> tuple[int, ...]:
        found = []
        for mode in reversed(joined.modes):
            a, b = (bool(data.modes[f"{name} {mode}"].success[place]) for name in ("A", "B"))
            found.append({(True, False): 0, (False, True): 1, (False, False): 2, (True, True): 3}[a, b])
        return (min(found), *found)

    return sorted(range(data.count), key=rank)
