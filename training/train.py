"""Train the embedded model on one core, by wall clock, and checkpoint as it goes."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor
from transformers import LlamaForCausalLM

from fim_server.errors import TrainingError
from training.checkpoints import Progress, save_checkpoint
from training.data.windows import Window, windows
from training.loss import full_loss, sampled_loss
from training.model import new_model
from training.optimizer import Muon, schedule
from training.plan import Plan, Shape


def train(
    texts: Sequence[str],
    tokenizer: Tokenizer,
    shape: Shape,
    plan: Plan,
    folder: Path,
    say: Callable[[str], None] = print,
    weights: Mapping[str, Tensor] | None = None,
) -> tuple[LlamaForCausalLM, Progress]:
    """Train until the plan's time or steps are over; leave a checkpoint in `folder`.

    With `weights` training goes on from them, the optimizers' own state fresh.

    Raises TrainingError if there is nothing to train on.
    """
    if not texts:
        raise TrainingError("no text to train on")
    folder.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    model = new_model(shape, tokenizer, plan.seed)
    if weights is not None:
        model.load_state_dict(weights)
    stepper = _Stepper(model, plan)
    batches = {length: _batches(texts, tokenizer, plan, length) for length in {plan.length, shape.context}}
    progress = Progress()
    saved = started
    mean_loss = 0.0
    model.train()
    while True:
        done = _share_done(progress, plan, time.monotonic() - started)
        if done >= 1:
            break
        is_long = done >= plan.long_from and progress.step % 2 == 1
        ids, counted = next(batches[shape.context if is_long else plan.length])
        loss = stepper.step(ids, counted, done)
        mean_loss = loss if progress.step == 0 else 0.95 * mean_loss + 0.05 * loss
        progress.step += 1
        progress.tokens += ids[:, 1:].numel()
        now = time.monotonic()
        progress.seconds = now - started
        if progress.step % plan.report_steps == 0:
            say(f"{_noted(progress, mean_loss)}  {100 * done:.1f} %")
        if now - saved >= plan.checkpoint_seconds:
            save_checkpoint(model, shape, plan, progress, folder)
            saved = now
    save_checkpoint(model, shape, plan, progress, folder)
    return model, progress


class _Stepper:
    """A model with its optimizers, which makes one step of training after the other."""

    def __init__(self, model: LlamaForCausalLM, plan: Plan) -> None:
        self._model = model
        self._plan = plan
        # Compiled, attention written out is twice as fast here as the kernel for processors, forward and backward.
        model.set_attn_implementation("eager" if plan.compiled else "sdpa")
        self._forward = torch.compile(model.model, dynamic=False) if plan.compiled else model.model
        self._estimate = torch.compile(sampled_loss, dynamic=False) if plan.compiled else sampled_loss
        self._optimizers = _optimizers(model, plan)
        self._generator = torch.Generator().manual_seed(plan.seed)

    def step(self, ids: Tensor, counted: Tensor, done: float) -> float:
        """One step; returns its loss. `ids` and `counted`: [batch, length + 1]; `done`: share of the training."""
        for optimizer in self._optimizers:
            for group in optimizer.param_groups:
                group["lr"] = group["initial_lr"] * schedule(done, hold=self._plan.hold)
        with torch.autocast("cpu", torch.bfloat16, enabled=self._plan.half):
            loss = self._loss(ids, counted, done)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self._model.parameters(), 1.0)
        for optimizer in self._optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        return float(loss.detach())

    def _loss(self, ids: Tensor, counted: Tensor, done: float) -> Tensor:
        plan, embedding = self._plan, self._model.model.embed_tokens.weight
        targets, wanted = ids[:, 1:].flatten(), counted[:, 1:].flatten()
        hidden = self._forward(input_ids=ids[:, :-1], use_cache=False).last_hidden_state.flatten(0, 1)
        if not plan.candidates or done >= plan.full_from:
            return full_loss(hidden, embedding, targets, wanted)
        sample = torch.randperm(len(embedding) - plan.common, generator=self._generator)
        return self._estimate(hidden, embedding, targets, wanted, plan.common, sample[: plan.candidates] + plan.common)


def _noted(progress: Progress, mean_loss: float) -> str:
    """Add an entry to the history; returns it as text."""
    entry = {
        "step": progress.step,
        "tokens": progress.tokens,
        "seconds": round(progress.seconds, 1),
        "loss": round(mean_loss, 4),
    }
    progress.history.append(entry)
    rate = progress.tokens / progress.seconds
    return f"step {progress.step}  {progress.tokens / 1e6:.2f} M tokens  loss {mean_loss:.3f}  {rate:.0f} tokens/s"


def _share_done(progress: Progress, plan: Plan, seconds: float) -> float:
    if plan.steps is not None:
        return progress.step / plan.steps
    return seconds / plan.seconds


def _optimizers(model: LlamaForCausalLM, plan: Plan) -> list[torch.optim.Optimizer]:
    named = dict(model.named_parameters())
    matrices = [value for name, value in named.items() if value.dim() == 2 and "embed" not in name]
    others = [value for name, value in named.items() if value.dim() != 2 or "embed" in name]
    optimizers: list[torch.optim.Optimizer] = [
        Muon(matrices, lr=plan.matrix_rate, half=plan.half),
        torch.optim.AdamW(others, lr=plan.other_rate, betas=(0.9, 0.95), eps=1e-10, weight_decay=0.0, fused=True),
    ]
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["initial_lr"] = group["lr"]
    return optimizers


def _batches(texts: Sequence[str], tokenizer: Tokenizer, plan: Plan, length: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield ids [batch, length + 1] and loss weights of the same shape, without end."""
    source = windows(texts, tokenizer, plan.mixture, length + 1, random.Random(plan.seed * 7919 + length))
    count = max(1, plan.batch_tokens // length)
    while True:
        yield stack([next(source) for _ in range(count)])


def stack(batch: Sequence[Window]) -> tuple[Tensor, Tensor]:
    """Stack windows into ids and weights: both [batch, length]."""
    ids = torch.from_numpy(np.stack([window.ids for window in batch]))
    weights = torch.from_numpy(np.stack([window.weights for window in batch]))
    return ids, weights
