"""The evaluation, killed at random moments: `python -m support.evaluation.killed_evaluation --kills 100 --seed 1`.

`fim-server eval run` is started and ended by SIGKILL, some time into its start or after it has written some more. It is
started again until it ends by itself. Then the results are compared with those of an undisturbed run, line by line and
byte for byte apart from times. This repeats until the number of kills is reached.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fim_server.datasets import write_samples
from fim_server.models.source import locate
from support.evaluation.evaluation_samples import sample_of

TIMES = frozenset({"open_ms", "model_ms", "engine_ms", "engine_wait_ms", "total_ms"})
RUN_TIMES = frozenset({"started"})
SAMPLES = 40
PATIENCE = 600  # seconds for a process that is not killed
STARTING = 2.0  # seconds within which a process is killed that is killed while it starts
MOST_BYTES = 12_000  # that a process writes before it is killed
MOST_KILLS_OF_A_RUN = 20


class NotTheSame(Exception):
    """A run that was killed has other results than one that was not."""


@dataclass
class Evaluation:
    """Runs of one evaluation in folders of their own."""

    folder: Path
    draw: random.Random
    model: str = field(default_factory=lambda: str(locate("embedded")))
    kills: int = 0
    runs: int = 0
    torn: int = 0
    """Kills that left a line half written."""

    def __post_init__(self) -> None:
        self.data = self.folder / "samples.jsonl"
        write_samples(self.data, [sample_of(number) for number in range(SAMPLES)])

    def command(self, out: Path) -> list[str]:
        settings = ["--budget", "10", "--batch", "3", "--temperature", "0.5", "--max-prompt-tokens", "64"]
        settings += ["--device", "cpu", "--model", self.model]
        run = [sys.executable, "-m", "fim_server", "eval", "run", "--data", str(self.data), "--out", str(out)]
        return [*run, *settings]

    def undisturbed(self) -> Path:
        """A run from its beginning to its end."""
        out = self.folder / "whole"
        done = subprocess.run(self.command(out), capture_output=True, timeout=PATIENCE, check=False)
        if done.returncode:
            raise RuntimeError(f"exit status {done.returncode}: {done.stderr.decode()[-2000:]}")
        return out

    def disturbed(self, kills: int) -> Path:
        """A run that is killed so many times at most, and then goes on to its end."""
        self.runs += 1
        out = self.folder / f"killed-{self.runs}"
        for _ in range(min(kills, MOST_KILLS_OF_A_RUN)):
            if self._is_over(out):
                return out
        done = subprocess.run(self.command(out), capture_output=True, timeout=PATIENCE, check=False)
        if done.returncode:
            raise NotTheSame(f"does not go on, exit status {done.returncode}: {done.stderr.decode()[-2000:]}")
        return out

    def _is_over(self, out: Path) -> bool:
        """Start a process and kill it; true if it came to its end before."""
        file = out / "samples.jsonl"
        before = size_of(file)
        starting = self.draw.random() < 0.25
        wanted = before + self.draw.randrange(1, MOST_BYTES)
        ends = time.monotonic() + (self.draw.uniform(0, STARTING) if starting else PATIENCE)
        process = subprocess.Popen(self.command(out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None and time.monotonic() < ends and (starting or size_of(file) < wanted):
            time.sleep(0.0005)
        if not starting:
            time.sleep(self.draw.choice((0.0, 0.0, self.draw.uniform(0, 0.2))))
        if process.poll() is not None:
            if process.returncode:
                raise NotTheSame(f"ended by itself with status {process.returncode}")
            return True
        process.kill()
        process.wait()
        self.kills += 1
        self.torn += bool(size_of(file)) and not file.read_bytes().endswith(b"\n")
        return False


def size_of(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def without_times(path: Path) -> list[bytes]:
    """The lines of a file of results, each without its times."""
    found = []
    for line in path.read_bytes().split(b"\n")[:-1]:
        record: dict[str, Any] = json.loads(line)
        found.append(json.dumps({name: value for name, value in record.items() if name not in TIMES}).encode())
    return found


def compare(whole: Path, killed: Path) -> None:
    """Raises NotTheSame unless two runs have the same results in the same order, of the same settings."""
    if [path.name for path in sorted(whole.iterdir())] != [path.name for path in sorted(killed.iterdir())]:
        raise NotTheSame(f"files: {sorted(killed.iterdir())}")
    first, second = (json.loads((run / "run.json").read_bytes()) for run in (whole, killed))
    different = [name for name in first if name not in RUN_TIMES and first[name] != second.get(name)]
    if different or set(first) != set(second):
        raise NotTheSame(f"run.json: {different}")
    expected, found = (without_times(run / "samples.jsonl") for run in (whole, killed))
    if len(found) != len(expected):
        raise NotTheSame(f"{len(found)} results in place of {len(expected)}")
    for number, (one, other) in enumerate(zip(expected, found, strict=True)):
        if one != other:
            raise NotTheSame(f"result {number}: {other!r} in place of {one!r}")


def killed_and_compared(kills: int, seed: int, minutes: float | None = None) -> Evaluation:
    """Kills until there were so many, or the time is up; raises NotTheSame."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        evaluation = Evaluation(Path(folder), random.Random(f"kills {seed}"))
        whole = evaluation.undisturbed()
        while evaluation.kills < kills and (minutes is None or time.monotonic() < started + 60 * minutes):
            compare(whole, evaluation.disturbed(kills - evaluation.kills))
            print(f"{evaluation.kills} killed, {evaluation.runs} runs the same", file=sys.stderr, flush=True)
    return evaluation


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="killed_evaluation.py", description="Kills the evaluation, and compares.")
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, help="begin no other run after that time")
    options = parser.parse_args(arguments)
    started = time.monotonic()
    try:
        found = killed_and_compared(options.kills, options.seed, options.minutes)
    except NotTheSame as difference:
        print(f"seed {options.seed}: {difference}")
        return 1
    minutes = (time.monotonic() - started) / 60
    print(
        f"seed {options.seed}: {found.kills} killed ({found.torn} in a line), {found.runs} runs, {minutes:.1f} minutes"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
