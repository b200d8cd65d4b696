"""The training itself: steps on one device or in several processes on a processor, held-out figures, checkpoints."""

from __future__ import annotations

import json
import math
import os
import random
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as functional
from tokenizers import Tokenizer
from torch import Tensor, distributed

from fim_server.errors import TrainingError
from fim_server.models.adapter import PARTS, Adapter, read_adapter, write_adapter
from fim_server.models.smollm2.base import read_base
from fim_server.models.smollm2.shape import EMBEDDING
from fim_server.training.fim.examples import END, MIDDLE, PREFIX, SUFFIX, Mixture, Source, Window, pack, windows
from fim_server.training.fim.network import FULL, INT8, Network
from fim_server.training.packages import SourceFile

ADAPTER_FILE, STATE_FILE, LOG_FILE = "adapter.safetensors", "state.pt", "log.jsonl"

ROW_IDS = (PREFIX, SUFFIX, MIDDLE, END)

LIKE = ((5,), (5,), (5,), (0,))
"""Tokens of the base whose embeddings the rows of :data:`ROW_IDS` begin as (a mean, where there are two)."""


@dataclass(frozen=True)
class Plan:
    """How long, how fast and on what.

    `lengths`: windows of so many tokens take turns, by `shares`; `tokens`: in a step of one process; `average`: the
    share of the steps so far over which the weights are averaged for what is saved, up to `most_averaged` steps;
    `held_out`: examples that are measured at every checkpoint, with the suffix and without.
    """

    minutes: float
    rank: int = 16
    alpha: float = 16.0
    rate: float = 1e-3
    warm_up: int = 40
    tokens: int = 1024
    lengths: tuple[int, ...] = (256, 512, 1024)
    shares: tuple[float, ...] = (0.5, 0.35, 0.15)
    average: float = 0.2
    most_averaged: int = 3000
    save_seconds: float = 600.0
    held_out: int = 96
    arithmetic: str = INT8
    compiled: bool = True
    seed: int = 1


@dataclass
class Progress:
    """What was done, over all processes."""

    step: int = 0
    tokens: int = 0
    middle_tokens: int = 0
    examples: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class HeldOut:
    """Of held-out middles: nats a token, the share whose every token is the likeliest, and how many.

    Each token of a region begins a middle.
    """

    nats: float
    exact: float
    middles: int


class Trainer:
    """A network with its optimizer and the running average of its weights."""

    def __init__(self, network: Network, plan: Plan, device: torch.device, processes: int) -> None:
        self.network, self.plan, self.device, self.processes = network, plan, device, processes
        self.parameters = [*network.updates, network.rows]
        groups: list[dict[str, Any]] = [
            {"params": list(network.updates), "lr": plan.rate},
            {"params": [network.rows], "lr": plan.rate},
        ]
        self.optimizer = torch.optim.AdamW(groups, betas=(0.9, 0.98), weight_decay=0.0, foreach=True)
        self.averages = [parameter.detach().clone() for parameter in self.parameters]
        self.progress = Progress()
        self._since = 0
        """Steps since this run began: what the rate and the averaging warm up by."""

    def step(self, batch: Sequence[Window]) -> float:
        """One step on each process's batch; returns this one's loss."""
        rate = self.plan.rate * min(1.0, (self._since + 1) / self.plan.warm_up)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        loss, counted = self.loss(batch)
        loss.backward()  # type: ignore[no-untyped-call]
        self._share_gradients()
        torch.nn.utils.clip_grad_norm_(self.parameters, 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self._since += 1
        horizon = min(self.plan.most_averaged, max(1.0, self.plan.average * self._since))
        torch._foreach_lerp_(self.averages, [one.detach() for one in self.parameters], 1 / horizon)
        progress = self.progress
        progress.step += 1
        progress.tokens += self.processes * sum(len(window.ids) for window in batch)
        progress.middle_tokens += self.processes * counted
        progress.examples += self.processes * sum(int(window.owners.max()) + 1 for window in batch)
        return float(loss.detach())

    def loss(self, batch: Sequence[Window]) -> tuple[Tensor, int]:
        """The weighted mean over the predictions that count, and how many are a middle's."""
        logits, targets, weights = self.predictions(batch)
        losses = functional.cross_entropy(logits, targets, reduction="none")
        return (losses * weights).sum() / weights.sum(), int((weights >= 1).sum())

    def predictions(self, batch: Sequence[Window]) -> tuple[Tensor, Tensor, Tensor]:
        """Logits [n, vocabulary], targets [n] and weights [n] of the predictions that count."""
        ids = torch.from_numpy(np.stack([window.ids for window in batch])).to(self.device)
        positions = torch.from_numpy(np.stack([window.positions for window in batch])).to(self.device)
        owners = torch.from_numpy(np.stack([window.owners for window in batch])).to(self.device)
        seen = (owners[:, :, None] == owners[:, None, :]).tril_()
        mask = torch.zeros(seen.shape, dtype=self.network.dtype, device=self.device).masked_fill_(~seen, -1e9)
        hidden = self.network.hidden(ids, positions, mask[:, None])
        length = ids.shape[1]
        origins = np.concatenate([window.origins + number * length for number, window in enumerate(batch)])
        targets = torch.from_numpy(np.concatenate([window.targets for window in batch])).to(self.device)
        weights = torch.from_numpy(np.concatenate([window.weights for window in batch])).to(self.device)
        picked = hidden.reshape(-1, hidden.shape[-1])[torch.from_numpy(origins).to(self.device)]
        return self.network.logits(picked), targets, weights

    def _share_gradients(self) -> None:
        if self.processes == 1:
            return
        flat = torch.cat([parameter.grad.flatten() for parameter in self.parameters if parameter.grad is not None])
        distributed.all_reduce(flat)
        flat /= self.processes
        at = 0
        for parameter in self.parameters:
            if parameter.grad is not None:
                parameter.grad.copy_(flat[at : at + parameter.numel()].view_as(parameter))
                at += parameter.numel()

    @torch.no_grad()
    def held_out(self, batches: Sequence[Sequence[Window]]) -> HeldOut:
        """Figures of the averaged weights; see :class:`HeldOut`.

        A middle whose every token is the likeliest is what greedy decoding would write.
        """
        kept = [parameter.detach().clone() for parameter in self.parameters]
        _assign(self.parameters, self.averages)
        nats = tokens = exact = middles = 0.0
        for batch in batches:
            logits, targets, weights = self.predictions(batch)
            wanted = weights >= 1
            nats += float(functional.cross_entropy(logits[wanted], targets[wanted], reduction="sum"))
            tokens += int(wanted.sum())
            run = 0
            for is_right, target in zip(
                (logits.argmax(-1) == targets)[wanted].tolist(), targets[wanted].tolist(), strict=True
            ):
                if target != END:
                    run, middles = run + 1 if is_right else 0, middles + 1
                else:
                    exact, run = exact + run * is_right, 0
        _assign(self.parameters, kept)
        return HeldOut(nats / tokens, exact / middles, int(middles))

    def adapter(self, recipe: str) -> Adapter:
        """The averaged weights, to be written."""
        arrays = [average.cpu().float().numpy() for average in self.averages]
        names = [f"layers.{layer}.{module}" for layer in range(self.network.shape.layers) for module in PARTS]
        matrices = {name: (arrays[2 * i], arrays[2 * i + 1]) for i, name in enumerate(names)}
        row_ids = self.network.row_ids.cpu().numpy()
        return Adapter(
            self.plan.rank, self.plan.alpha, self.progress.tokens, matrices, arrays[-1], row_ids, "SmolLM2-135M", recipe
        )

    def start_from(self, adapter: Adapter) -> None:
        """Take an adapter's weights; a smaller rank is filled up, which changes nothing at first."""
        if adapter.rank > self.plan.rank:
            raise TrainingError(f"the adapter's rank is {adapter.rank}, above the plan's {self.plan.rank}")
        # B A is scaled by alpha / rank, which may have been another.
        factor = (adapter.alpha / adapter.rank) / (self.plan.alpha / self.plan.rank)
        with torch.no_grad():
            for number, name in enumerate(f"layers.{i}.{m}" for i in range(self.network.shape.layers) for m in PARTS):
                down, up = adapter.matrices[name]
                own_down, own_up = self.parameters[2 * number], self.parameters[2 * number + 1]
                own_down[: adapter.rank].copy_(torch.from_numpy(down.astype(np.float32)))
                own_up[:, : adapter.rank].copy_(torch.from_numpy(factor * up.astype(np.float32)))
            slots = {int(token): row for token, row in zip(adapter.row_ids, adapter.rows, strict=True)}
            for slot, token in enumerate(self.network.row_ids.tolist()):
                if token in slots:
                    self.network.rows[slot].copy_(torch.from_numpy(slots[token].astype(np.float32)))
        self.averages = [parameter.detach().clone() for parameter in self.parameters]
        self.progress.tokens = adapter.tokens

    def save(self, folder: Path, recipe: str) -> None:
        """Write the adapter and what `resume` needs."""
        write_adapter(folder / ADAPTER_FILE, self.adapter(recipe))
        state = {
            "parameters": [parameter.detach().cpu() for parameter in self.parameters],
            "averages": [average.cpu() for average in self.averages],
            "optimizer": self.optimizer.state_dict(),
            "progress": asdict(self.progress),
            "since": self._since,
        }
        torch.save(state, folder / f"{STATE_FILE}.new")
        (folder / f"{STATE_FILE}.new").replace(folder / STATE_FILE)

    def resume(self, folder: Path) -> None:
        """Go on from what `save` wrote. Raises TrainingError where there is nothing, or it does not fit."""
        try:
            state = torch.load(folder / STATE_FILE, weights_only=True)
            _assign(self.parameters, state["parameters"])
            _assign(self.averages, state["averages"])
            self.optimizer.load_state_dict(state["optimizer"])
        except (OSError, RuntimeError, ValueError, KeyError) as error:
            raise TrainingError(f"{folder / STATE_FILE}: nothing to resume from ({error})") from error
        self.progress, self._since = Progress(**state["progress"]), state["since"]


def _assign(to: Sequence[Tensor], values: Sequence[Tensor]) -> None:
    with torch.no_grad():
        for one, value in zip(to, values, strict=True):
            one.copy_(value)


def first_rows(embedding: Tensor, seed: int) -> Tensor:
    """Embeddings that the control tokens begin with, [4, hidden]: those of tokens of a like use, and some noise."""
    generator = torch.Generator().manual_seed(seed)
    rows = torch.stack([embedding[list(tokens)].float().mean(0) for tokens in LIKE])
    return rows + 0.02 * torch.randn(rows.shape, generator=generator)


@dataclass(frozen=True)
class Job:
    """What every process is given. `start_from`: an adapter; `resume`: go on from the folder's own state."""

    plan: Plan
    base: Path
    corpus: Sequence[SourceFile]
    held_out: Sequence[SourceFile]
    folder: Path
    start_from: Path | None = None
    resume: bool = False
    device: str = "cpu"
    recipe: str = ""


def train(job: Job, processes: int, say: Callable[[str], None]) -> None:
    """Train until the plan's minutes are over, and leave an adapter in the folder.

    On a processor `processes` of one thread each share the work; where other programs use the cores that is faster
    than as many threads in one.

    Raises TrainingError where there is nothing to train on or to go on from.
    """
    if not job.corpus or not job.held_out:
        raise TrainingError("no text to train on, or none held out")
    job.folder.mkdir(parents=True, exist_ok=True)
    if processes == 1:
        _run(0, 1, job, "", say)
        return
    with tempfile.TemporaryDirectory() as folder:
        context = torch.multiprocessing.get_context("fork")
        arguments = (processes, job, f"{folder}/rendezvous", say)
        others = [context.Process(target=_run, args=(rank, *arguments), daemon=True) for rank in range(1, processes)]
        for other in others:
            other.start()
        _run(0, *arguments)
        for other in others:
            other.join()


def _run(rank: int, processes: int, job: Job, rendezvous: str, say: Callable[[str], None]) -> None:
    plan, device = job.plan, torch.device(job.device)
    if processes > 1:
        distributed.init_process_group("gloo", init_method=f"file://{rendezvous}", rank=rank, world_size=processes)
    if device.type == "cpu":
        torch.set_num_threads(1 if processes > 1 else os.cpu_count() or 1)
    base = read_base(job.base)
    weights = {name: torch.from_numpy(base.weight(name)) for name, _ in base.shape.sizes()}
    rows = first_rows(weights[EMBEDDING], plan.seed)
    arithmetic, dtype = (plan.arithmetic, torch.float32) if device.type == "cpu" else (FULL, torch.bfloat16)
    shape, row_ids = base.shape, torch.tensor(ROW_IDS)
    network = Network(weights, shape, plan.rank, plan.alpha, rows, row_ids, arithmetic, dtype, plan.seed).to(device)
    network.move(device)
    del weights
    trainer = Trainer(network, plan, device, processes)
    if job.start_from is not None:
        trainer.start_from(read_adapter(job.start_from))
    if job.resume:
        trainer.resume(job.folder)
    if plan.compiled:
        network.compiled()
    tokenizer = base.tokenizer
    tokenizer.encode_special_tokens = True  # names of control tokens in a file are text
    seed = plan.seed * 1009 + trainer.progress.step * 31 + rank
    batches = {
        length: _batches(job.corpus, tokenizer, Mixture(), length, plan.tokens, seed + length)
        for length in plan.lengths
    }
    probes = _probes(job, tokenizer) if rank == 0 else {}
    asked = _asked_to_stop(rank)
    turns, started, saved = random.Random(plan.seed + trainer.progress.step), time.monotonic(), time.monotonic()
    first = trainer.progress.tokens
    mean, past = math.nan, trainer.progress.seconds
    while True:
        passed = time.monotonic() - started
        if _agreed(asked.is_set() or passed >= 60 * plan.minutes, processes):
            break
        length = turns.choices(plan.lengths, plan.shares)[0]
        loss = trainer.step(next(batches[length]))
        mean = loss if math.isnan(mean) else 0.97 * mean + 0.03 * loss
        trainer.progress.seconds = past + time.monotonic() - started
        if rank == 0 and trainer.progress.step % 20 == 0:
            rate = (trainer.progress.tokens - first) / (time.monotonic() - started)
            done = trainer.progress
            say(f"step {done.step}  {done.tokens / 1e6:.3f} M tokens  loss {mean:.3f}  {rate:.0f} tokens/s")
        if rank == 0 and time.monotonic() - saved >= plan.save_seconds:
            _checkpoint(trainer, probes, job, mean, say)
            saved = time.monotonic()
    if rank == 0:
        _checkpoint(trainer, probes, job, mean, say)
    if processes > 1:
        distributed.destroy_process_group()


def _asked_to_stop(rank: int) -> threading.Event:
    """Set when the process is to end (interrupted, or asked to terminate): what was learned is saved first."""
    asked = threading.Event()
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            # The others end with the first one.
            signal.signal(number, (lambda *_: asked.set()) if rank == 0 else signal.SIG_IGN)
    return asked


def _agreed(over: bool, processes: int) -> bool:
    """Whether the first process says that the time is over."""
    if processes == 1:
        return over
    flag = torch.tensor([float(over)])
    distributed.broadcast(flag, 0)
    return bool(flag.item())


def _batches(
    files: Sequence[SourceFile], tokenizer: Tokenizer, mixture: Mixture, length: int, tokens: int, seed: int
) -> Iterator[list[Window]]:
    source = windows(Source(files, tokenizer, mixture, seed), length, random.Random(seed))
    while True:
        yield [next(source) for _ in range(max(1, tokens // length))]


def _probes(job: Job, tokenizer: Tokenizer) -> dict[str, list[list[Window]]]:
    """Held-out windows: with the suffix, and the same cuts without, so that the difference is what it gives."""
    length = job.plan.lengths[0]
    plain = Mixture(suffix_first=1.0, with_path=0.0, no_suffix=0.0)
    found = {}
    for name, mixture in (("both", plain), ("left only", replace(plain, hidden_suffix=True))):
        source = Source(job.held_out, tokenizer, mixture, 77)
        count = max(1, job.plan.tokens // length)
        probes = [pack([source.draw(length)], length, 0.0, 0.0, random.Random(0)) for _ in range(job.plan.held_out)]
        found[name] = [probes[at : at + count] for at in range(0, len(probes) - count + 1, count)]
    return found


def _checkpoint(
    trainer: Trainer, probes: dict[str, list[list[Window]]], job: Job, mean: float, say: Callable[[str], None]
) -> None:
    trainer.save(job.folder, job.recipe)
    figures = {name: trainer.held_out(batches) for name, batches in probes.items()}
    told = "; ".join(
        f"{name}: {one.nats:.4f} nats, {100 * one.exact:.1f} % of {one.middles} exact" for name, one in figures.items()
    )
    say(f"held out after {trainer.progress.tokens / 1e6:.3f} M tokens: {told}")
    entry = {**asdict(trainer.progress), "loss": mean, **{name: asdict(one) for name, one in figures.items()}}
    with (job.folder / LOG_FILE).open("a", encoding="utf-8") as log:
        log.write(json.dumps(entry) + "\n")
    kept = job.folder / f"{ADAPTER_FILE.partition('.')[0]}-{trainer.progress.tokens}.safetensors"
    kept.write_bytes((job.folder / ADAPTER_FILE).read_bytes())
