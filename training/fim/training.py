"""The training itself: steps on one device or in several processes on a processor, held-out figures, checkpoints."""

from __future__ import annotations

import importlib.util
import math
import os
import pickle
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as functional
from tokenizers import Tokenizer
from torch import Tensor

from fim_server.errors import ModelError, TrainingError, first_line
from fim_server.models.pytorch.backend import choose_device
from fim_server.models.smollm2.adapter import PARTS, Adapter, read_adapter, write_adapter
from fim_server.models.smollm2.base import Base, read_base
from fim_server.models.smollm2.build import built_of
from fim_server.models.smollm2.merging import check_fits, stacked_places
from fim_server.models.smollm2.shape import EMBEDDING, LlamaShape
from training.data.packages import SourceFile
from training.fim.batches import Batch, Batches, Lengths, Rest, batch_of, drawn_by
from training.fim.checkpoints import ADAPTER_FILE, BOTH, LEFT_ONLY, Checkpoints, HeldOut, Measured
from training.fim.examples import END, MIDDLE, PREFIX, SUFFIX, Mixture, Source, pack
from training.fim.network import FULL, HALF, INT8, Network, Sight, fastest, widths
from training.fim.team import ALONE, Team, asked_to_stop, can_fork, run_together

STATE_FILE = "state.pt"

MOST_TOKENS = 8192
"""Most tokens of an example or a window: SmolLM2's window. Attention takes its square in memory."""

UNREADABLE = (EOFError, pickle.UnpicklingError)
"""Further errors that torch raises for a damaged file."""

ROW_IDS = (PREFIX, SUFFIX, MIDDLE, END)

LIKE = ((5,), (5,), (5,), (0,))
"""Tokens of the base whose embeddings the rows of :data:`ROW_IDS` begin as (a mean, where there are two)."""


@dataclass(frozen=True)
class Plan:
    """Plan of a training: its length, rates and data.

    `lengths`, `shares`, `window` and `tokens`, for a step of one process: see :class:`Lengths`. `rest`, `rest_weight`:
    see :class:`Rest`. `average`: share of the steps so far whose weights are averaged for a checkpoint, up to
    `most_averaged` steps. `decay`: share of the time at the end in which the rate falls to zero. `held_out`: examples
    of up to `held_out_length` tokens that every checkpoint is measured on, with the suffix and without. `drawing`:
    processes that draw examples for a GPU.
    """

    minutes: float
    rank: int = 16
    alpha: float = 16.0
    rate: float = 1e-3
    warm_up: int = 40
    tokens: int = 1024
    lengths: tuple[int, ...] = (256, 512, 1024)
    shares: tuple[float, ...] = (0.4, 0.3, 0.3)
    window: int | None = None
    rest: float = 0.4
    rest_weight: float = 0.3
    average: float = 0.2
    most_averaged: int = 3000
    decay: float = 0.0
    save_seconds: float = 600.0
    held_out: int = 96
    held_out_length: int = 768
    drawing: int = 0
    arithmetic: str = INT8
    compiled: bool = True
    seed: int = 1


@dataclass
class Progress:
    """Totals of all processes."""

    step: int = 0
    tokens: int = 0
    middle_tokens: int = 0
    examples: int = 0
    seconds: float = 0.0


class Trainer:
    """A network with its optimizer and the running average of its weights."""

    def __init__(self, network: Network, plan: Plan, device: torch.device, team: Team = ALONE) -> None:
        self.network, self.plan, self.device, self.team = network, plan, device, team
        self.parameters = [*network.updates, network.rows]
        self.optimizer = torch.optim.AdamW(
            self.parameters, plan.rate, betas=(0.9, 0.98), weight_decay=0.0, foreach=True
        )
        self.averages = [parameter.detach().clone() for parameter in self.parameters]
        self.progress = Progress()
        self._since = 0
        """Steps since this run began: what the rate and the averaging warm up by."""
        self.time_left = 1.0
        """Share of the plan's time."""

    def step(self, batch: Batch) -> Tensor:
        """One step on each process's batch; returns this one's loss, which a GPU is not waited for."""
        rate = self.plan.rate * min(1.0, (self._since + 1) / self.plan.warm_up)
        if self.plan.decay:
            rate *= min(1.0, max(0.0, self.time_left) / self.plan.decay)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        loss = self.loss(batch)
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
        progress.tokens += self.team.size * batch.ids.numel()
        progress.middle_tokens += self.team.size * batch.middle_tokens
        progress.examples += self.team.size * batch.examples
        return loss.detach()

    def loss(self, batch: Batch) -> Tensor:
        """The weighted mean over the predictions that count."""
        logits, targets, weights = self.predictions(batch)
        losses = functional.cross_entropy(logits, targets, reduction="none")
        return (losses * weights).sum() / weights.sum()

    def predictions(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        """Logits [n, vocabulary], targets [n] and weights [n] of the predictions that count."""
        there = batch.on(self.device)
        hidden = self.network.hidden(there.ids, there.positions, self._sight(there))
        picked = hidden.reshape(-1, hidden.shape[-1])[there.origins]
        return self.network.logits(picked), there.targets, there.weights

    def _sight(self, batch: Batch) -> Sight:
        if self.device.type != "cpu":
            return Sight(runs=batch.runs, longest=batch.ids.shape[1])
        seen = (batch.owners[:, :, None] == batch.owners[:, None, :]).tril_()
        mask = torch.zeros(seen.shape, dtype=self.network.dtype).masked_fill_(~seen, -1e9)
        return Sight(mask[:, None])

    def _share_gradients(self) -> None:
        if self.team.size == 1:
            return
        flat = torch.cat([parameter.grad.flatten() for parameter in self.parameters if parameter.grad is not None])
        self.team.add_up(flat)
        flat /= self.team.size
        at = 0
        for parameter in self.parameters:
            if parameter.grad is not None:
                parameter.grad.copy_(flat[at : at + parameter.numel()].view_as(parameter))
                at += parameter.numel()

    @torch.no_grad()
    def held_out(self, batches: Sequence[Batch]) -> HeldOut:
        """Figures of the averaged weights; see :class:`HeldOut`.

        A middle whose every token is the likeliest is what greedy decoding would write.
        """
        kept = [parameter.detach().clone() for parameter in self.parameters]
        _assign(self.parameters, self.averages)
        nats = tokens = exact = middles = 0.0
        for batch in batches:
            with torch.compiler.set_stance("force_eager"):  # compiling for this alone takes longer than it does
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
        """Take an adapter's weights; a smaller rank is filled up, which changes nothing at first.

        Raises TrainingError or ModelError where it does not fit.
        """
        check_adapter(adapter, self.network.shape, self.plan.rank)
        # B A is scaled by alpha / rank, which may have been another.
        factor = (adapter.alpha / adapter.rank) / (self.plan.alpha / self.plan.rank)
        with torch.no_grad():
            for number, name in enumerate(f"layers.{i}.{m}" for i in range(self.network.shape.layers) for m in PARTS):
                if name not in adapter.matrices:
                    continue  # as one that changes nothing
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
            "alpha": self.plan.alpha,
        }
        torch.save(state, folder / f"{STATE_FILE}.new")
        (folder / f"{STATE_FILE}.new").replace(folder / STATE_FILE)

    def resume(self, folder: Path) -> None:
        """Go on from what `save` wrote. Raises TrainingError where there is nothing, or it does not fit."""
        shapes = [tuple(parameter.shape) for parameter in self.parameters]
        state = read_state(folder, shapes, self.plan.alpha)
        _assign(self.parameters, state["parameters"])
        _assign(self.averages, state["averages"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.progress, self._since = Progress(**state["progress"]), state["since"]


def read_state(folder: Path, shapes: Sequence[tuple[int, ...]], alpha: float) -> dict[str, Any]:
    """Read a checkpoint of :meth:`Trainer.save`, with parameters of these shapes, scaled by this alpha.

    Raises TrainingError where it is missing or does not fit.
    """
    path = folder / STATE_FILE
    try:
        state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
        if any([tuple(one.shape) for one in state[name]] != [*shapes] for name in ("parameters", "averages")):
            raise ValueError("of another base or rank")
        if state.get("alpha", alpha) != alpha:  # older ones do not say it
            raise ValueError(f"its alpha is {state['alpha']:g}, not {alpha:g}")
        Progress(**state["progress"])
        # Older states have the rows in a group of their own, after the updates.
        groups = state["optimizer"]["param_groups"]
        group = {**groups[0], "params": [number for one in groups for number in one["params"]]}
        if len(group["params"]) != len(shapes) or not isinstance(state["since"], int):
            raise ValueError("not whole")
    except (*UNREADABLE, OSError, RuntimeError, LookupError, TypeError, ValueError, AttributeError) as error:
        raise TrainingError(f"{path}: nothing to resume from ({first_line(error)})") from error
    return {**state, "optimizer": {**state["optimizer"], "param_groups": [group]}}


def shapes_of(shape: LlamaShape, rank: int) -> list[tuple[int, ...]]:
    """The shapes of the parameters of a :class:`Trainer`."""
    pairs = [one for name in PARTS for one in ((rank, widths(shape)[name][0]), (widths(shape)[name][1], rank))]
    return [*pairs * shape.layers, (len(ROW_IDS), shape.width)]


def check_adapter(adapter: Adapter, shape: LlamaShape, rank: int) -> None:
    """Raises TrainingError where an adapter's rank is above another, ModelError where it is of another base."""
    if adapter.rank > rank:
        raise TrainingError(f"the adapter's rank is {adapter.rank}, above the plan's {rank}")
    check_fits(shape, adapter, stacked_places(shape))


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
    """Arguments of every process.

    `start_from`: an adapter; `resume`: continue from the folder's own state. `weights`, `held_out_weights`: chances of
    the files; None: by their lengths. `languages`: held-out files that are also measured alone, by language.
    """

    plan: Plan
    base: Path
    corpus: Sequence[SourceFile]
    held_out: Sequence[SourceFile]
    folder: Path
    start_from: Path | None = None
    resume: bool = False
    device: str = "cpu"
    recipe: str = ""
    weights: Sequence[int] | None = None
    held_out_weights: Sequence[int] | None = None
    languages: Mapping[str, Sequence[SourceFile]] = field(default_factory=dict)


@dataclass(frozen=True)
class Start:
    """Inputs that are read and checked before any process is forked. `probes`: held-out windows."""

    device: torch.device
    base: Base
    adapter: Adapter | None
    probes: dict[str, list[Batch]]


def train(job: Job, processes: int, say: Callable[[str], None]) -> Measured | None:
    """Train until the plan's minutes are over, write an adapter to the folder, and return the run's best checkpoint.

    On a processor, `processes` of one thread each share the work. Beside other programs this is faster than as many
    threads in one process.

    Raises TrainingError where there is nothing to train on or to resume, or where a process fails. Raises ModelError
    where the base or the adapter cannot be read or do not fit each other.
    """
    start = prepare(job)
    if start.device.type == "cpu" and job.plan.arithmetic == INT8:
        arithmetic = fastest()
        if arithmetic != INT8:
            say(f"this processor is faster in {'float32' if arithmetic == FULL else arithmetic} than in 8-bit integers")
        job = replace(job, plan=replace(job.plan, arithmetic=arithmetic))
    job.folder.mkdir(parents=True, exist_ok=True)
    checkpoints = Checkpoints(job.folder, job.resume)
    work = partial(_run, job=job, start=start, checkpoints=checkpoints, say=say)
    if start.device.type != "cpu":
        processes = 1
    elif processes > 1 and not can_fork():
        say(f"processes cannot be forked here: one with {os.cpu_count() or 1} threads instead of {processes}")
        processes = 1
    if processes == 1:
        work(ALONE)
    else:
        run_together(processes, work)
    return checkpoints.best


def prepare(job: Job) -> Start:
    """Read and check what a training is given, but for the weights; raises as :func:`train` does."""
    device = device_of(job.device)
    if device.type != "cpu" and importlib.util.find_spec("torch.nn.attention.varlen") is None:
        raise TrainingError("training on a GPU needs torch 2.11 or newer")
    if not job.corpus or not job.held_out:
        raise TrainingError("no text to train on, or none held out")
    if built_of(job.base)[1]:
        raise TrainingError(f"{job.base}: has an adapter in its weights already; give what it was built of")
    base, plan = read_base(job.base), job.plan
    narrowest = min(size for sizes in widths(base.shape).values() for size in sizes)
    if max(plan.window or 0, *plan.lengths) > MOST_TOKENS:
        raise TrainingError(f"examples and windows have at most {MOST_TOKENS} tokens")
    if plan.window is not None and plan.window < max(plan.lengths):
        raise TrainingError(f"windows of {plan.window} tokens, and examples of up to {max(plan.lengths)}")
    if plan.rank > narrowest:
        raise TrainingError(f"the rank is {plan.rank}, and the base's narrowest product has {narrowest}")
    adapter = None if job.start_from is None else read_adapter(job.start_from)
    if adapter is not None:
        check_adapter(adapter, base.shape, plan.rank)
    if job.resume:
        read_state(job.folder, shapes_of(base.shape, plan.rank), plan.alpha)
    base.tokenizer.encode_special_tokens = True  # names of control tokens in a file are text
    for name, files, weights in (
        ("the text to train on", job.corpus, job.weights),
        ("the held-out text", job.held_out, job.held_out_weights),
        *((f"the held-out text of {language}", files, None) for language, files in job.languages.items()),
    ):
        try:
            source = Source(files, base.tokenizer, Mixture(), plan.seed, weights)
            for length in plan.lengths:
                source.draw(length)
        except TrainingError as error:
            raise TrainingError(f"{name}: {error}") from error
    return Start(device, base, adapter, _probes(job, base.tokenizer))


def device_of(name: str) -> torch.device:
    """A processor or a GPU. Raises TrainingError where it is neither, or not there."""
    try:
        device = choose_device(name)
    except ModelError as error:
        raise TrainingError(str(error)) from error
    if device.type not in ("cpu", "cuda"):
        raise TrainingError(f"device {name}: neither cpu nor cuda")
    return device


def _run(team: Team, job: Job, start: Start, checkpoints: Checkpoints, say: Callable[[str], None]) -> None:
    plan, tokenizer = job.plan, start.base.tokenizer
    trainer = _trainer(team, job, start)
    seed = plan.seed * 1009 + trainer.progress.step * 31 + team.rank
    lengths = Lengths(plan.lengths, plan.shares, plan.window, plan.tokens)
    rest = Rest(plan.rest, plan.rest_weight)
    drawn = Batches(job.corpus, tokenizer, lengths, rest, seed, plan.seed + trainer.progress.step, job.weights)
    batches = drawn_by(plan.drawing if start.device.type != "cpu" else 0, drawn)
    begun = saved = time.monotonic()
    first, past_steps = trainer.progress.tokens, trainer.progress.step
    mean, past = torch.tensor(math.nan), trainer.progress.seconds
    with asked_to_stop() as asked:
        while True:
            # All learn at one rate, so that they stay one network: the first process says how much time is left.
            left = 1 - (time.monotonic() - begun) / (60 * plan.minutes)
            trainer.time_left = team.agreed(0.0 if asked.is_set() else left)
            if trainer.time_left <= 0:
                break
            loss = trainer.step(next(batches))
            mean = loss if trainer.progress.step == past_steps + 1 else 0.97 * mean + 0.03 * loss
            trainer.progress.seconds = past + time.monotonic() - begun
            if team.rank == 0 and trainer.progress.step % 20 == 0:
                rate = (trainer.progress.tokens - first) / (time.monotonic() - begun)
                done = trainer.progress
                say(f"step {done.step}  {done.tokens / 1e6:.3f} M tokens  loss {float(mean):.3f}  {rate:.0f} tokens/s")
            if team.rank == 0 and time.monotonic() - saved >= plan.save_seconds:
                _checkpoint(trainer, start.probes, job, checkpoints, float(mean), say)
                saved = time.monotonic()
        if team.rank == 0:
            _checkpoint(trainer, start.probes, job, checkpoints, float(mean), say)


def _trainer(team: Team, job: Job, start: Start) -> Trainer:
    """The trainer of one process, with what it goes on from."""
    plan, device, shape = job.plan, start.device, start.base.shape
    if device.type == "cpu":
        torch.set_num_threads(1 if team.size > 1 else os.cpu_count() or 1)
    weights = {name: torch.from_numpy(start.base.weight(name)) for name, _ in shape.sizes()}
    rows, row_ids = first_rows(weights[EMBEDDING], plan.seed), torch.tensor(ROW_IDS)
    arithmetic = plan.arithmetic if device.type == "cpu" else HALF
    dtype = torch.bfloat16 if arithmetic == HALF else torch.float32
    network = Network(weights, shape, plan.rank, plan.alpha, rows, row_ids, arithmetic, dtype, plan.seed).to(device)
    network.move(device)
    trainer = Trainer(network, plan, device, team)
    if start.adapter is not None:
        trainer.start_from(start.adapter)
    if job.resume:
        trainer.resume(job.folder)
    if plan.compiled:
        network.compiled()
    return trainer


def _probes(job: Job, tokenizer: Tokenizer) -> dict[str, list[Batch]]:
    """Held-out windows: with the suffix, and the same cuts without, so that the difference is what it gives.

    Those of each language share the number of one of these.
    """
    plan, length = job.plan, job.plan.held_out_length
    plain = Mixture(suffix_first=1.0, with_path=0.0, no_suffix=0.0)
    found = {}
    for name, files, weights, mixture, number in (
        (BOTH, job.held_out, job.held_out_weights, plain, plan.held_out),
        (LEFT_ONLY, job.held_out, job.held_out_weights, replace(plain, hidden_suffix=True), plan.held_out),
        *((name, files, None, plain, -(-plan.held_out // len(job.languages))) for name, files in job.languages.items()),
    ):
        source = Source(files, tokenizer, mixture, 77, weights)
        count = min(number, max(1, plan.tokens // length))
        probes = [pack([source.draw(length)], length, 0.0, 0.0, random.Random(0)) for _ in range(number)]
        found[name] = [batch_of(probes[at : at + count]) for at in range(0, len(probes), count)]
    return found


def _checkpoint(
    trainer: Trainer,
    probes: dict[str, list[Batch]],
    job: Job,
    checkpoints: Checkpoints,
    mean: float,
    say: Callable[[str], None],
) -> None:
    trainer.save(job.folder, job.recipe)
    figures = {name: trainer.held_out(batches) for name, batches in probes.items()}
    is_best = checkpoints.add(asdict(trainer.progress), mean, figures)
    told = "; ".join(
        f"{name}: {one.nats:.4f} nats, {100 * one.exact:.1f} % of {one.middles} exact" for name, one in figures.items()
    )
    best = "; the best so far" if is_best else ""
    say(f"held out after {trainer.progress.tokens / 1e6:.3f} M tokens: {told}{best}")
