"""A run on a cluster, and on a stand-in for one."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from fim_server.datasets import Sample
from fim_server.evaluation.records import (
    MODES,
    Record,
)
from fim_server.evaluation.running.settings import WorkerSettings
from fim_server.evaluation.running.worker import Worker
from fim_server.models.model import FimModel
from support.evaluation.evaluating import Eval, results, size_of
from support.unix import KILLED

pytest_plugins = ("support.evaluation.fixtures",)

LONG = os.environ.get("FIM_SERVER_LONG") == "1"


class Died(Exception):
    """Stands in for Ray's error of a worker that died."""


class StubRay:
    """Ray in one process, with workers that die of some samples, and now and then of none."""

    def __init__(self, tiny: FimModel, deadly: set[str], deaths: int) -> None:
        self.exceptions = type("exceptions", (), {"RayActorError": Died, "RayError": Exception})
        self.tiny, self.deadly, self.deaths = tiny, deadly, deaths
        self.started = 0
        self.running: list[tuple[Callable[[], Any], Any]] = []

    def init(self, **options: Any) -> None:
        assert "num_cpus" in options

    def shutdown(self) -> None: ...

    def kill(self, worker: Any) -> None: ...

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 3}

    def remote(self, actor: type[Worker]) -> Any:
        stub = self

        class Handle:
            def __init__(self, settings: WorkerSettings) -> None:
                stub.started += 1
                worker = actor(settings, stub.tiny)
                self.about = Remote(worker.about)
                self.measure = Remote(lambda samples: stub.survive(worker, samples))

        class Remote:
            def __init__(self, call: Callable[..., Any]) -> None:
                self.call = call

            def remote(self, *arguments: Any) -> Any:
                return lambda: self.call(*arguments)

        class Actor:
            def options(self, **resources: Any) -> Any:
                return self

            def remote(self, settings: WorkerSettings) -> Any:
                return Handle(settings)

        return Actor()

    def survive(self, worker: Worker, samples: Sequence[Sample]) -> list[Record]:
        if {sample.id for sample in samples} & self.deadly:
            raise Died("killed\nby a sample")
        if self.deaths:
            self.deaths -= 1
            raise Died("killed")
        return worker.measure(samples)

    def wait(self, references: list[Any], num_returns: int) -> tuple[list[Any], list[Any]]:
        return references[-1:], references[:-1]

    def get(self, reference: Any) -> Any:
        return [one() for one in reference] if isinstance(reference, list) else reference()


@pytest.fixture
def stub_ray(tiny: FimModel, monkeypatch: pytest.MonkeyPatch) -> Callable[..., StubRay]:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)

    def make(deadly: set[str], deaths: int) -> StubRay:
        stub = StubRay(tiny, deadly, deaths)
        monkeypatch.setitem(sys.modules, "ray", stub)
        return stub

    return make


def test_batches_of_workers_that_die_are_given_out_again(
    evaluate: Eval, stub_ray: Callable[..., StubRay], tmp_path: Path
) -> None:
    stub = stub_ray({"sample-6"}, 2)
    assert evaluate(tmp_path / "run", "--ray", "3")[0] == 1
    assert stub.started > 3
    found = results(tmp_path / "run")
    failed = {name: record["error"] for (name, _), record in found.items() if record["error"] is not None}
    assert failed == {"sample-6": "Died: by a sample"}
    evaluate(tmp_path / "alone", "--batch", "1")
    alone = results(tmp_path / "alone")
    assert set(found) == set(alone)
    same = sum(found[key] == alone[key] for key in alone)
    assert same >= len(alone) - len(MODES) - 2  # other batches: rounding, and the one that failed


def test_without_ray_it_is_said(evaluate: Eval, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    status, _, errors = evaluate(tmp_path / "run", "--ray", "2")
    assert (status, errors.count("\n")) == (2, 1)
    assert "fim-server[cluster]" in errors


@pytest.mark.skipif(not LONG, reason="starts a cluster: in the long form")
def test_a_real_cluster_survives_the_death_of_a_worker(evaluate: Eval, tmp_path: Path, command: list[str]) -> None:
    pytest.importorskip("ray")
    process = subprocess.Popen([*command, "--out", str(tmp_path / "run"), "--ray", "3"], stderr=subprocess.DEVNULL)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    killed = False
    while process.poll() is None:
        time.sleep(0.01)
        if not killed and size_of(tmp_path / "run" / "samples.jsonl"):
            killed = any(kill_worker(int(child)) for child in children.read_text().split())
    assert process.returncode == 0
    assert killed
    evaluate(tmp_path / "whole")
    assert results(tmp_path / "run") == results(tmp_path / "whole")


def kill_worker(process: int) -> bool:
    """Kill one of Ray's workers among a process' descendants."""
    try:
        if b"ray::Worker" in Path(f"/proc/{process}/cmdline").read_bytes():
            os.kill(process, -KILLED)
            return True
        below = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    except OSError:
        return False
    return any(kill_worker(int(child)) for child in below)
