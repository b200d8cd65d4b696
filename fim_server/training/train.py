"""Train the embedded model on one core, by wall clock, and checkpoint as it goes."""

from __future__ import annotations

import dataclasses
import json
import math
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn import functional
from transformers import LlamaConfig, LlamaForCausalLM

from fim_server.errors import TrainingError
from fim_server.training.fim import Mixture, Window, windows
from fim_server.training.optimizer import Muon, schedule
from fim_server.training.tokenizer import END, PAD, token_id

CHECKPOINT_FILE = "checkpoint.pt"
HISTORY_FILE = "history.jsonl"


@dataclass(frozen=True)
class Shape:
    """The model's size. `context`: the longest sequence served, in tokens."""

    width: int = 256
    layers: int = 4
    heads: int = 4
    key_heads: int = 2
    inner: int = 704
    context: int = 1024


@dataclass(frozen=True)
class Plan:
    """How to train.

    `seconds`: wall clock, all steps and the decay included. `batch_tokens`: tokens a step.
    `length`: tokens a window; from `long_from` of the time on, every second step uses windows
    of the whole context instead. `candidates`: the rarer tokens that the loss is estimated
    with until `full_from` of the time; 0 computes the whole softmax throughout. `hold`: share of
    the time before the rates begin to decay to zero; 1 for a part that another goes on from.
    `resumed_tokens`: what the weights that training goes on from had seen. `half`: multiply
    matrices in bfloat16, which a processor with instructions for it does three times as fast;
    weights, norms and losses stay in float32.
    """

    seconds: float = 4200.0
    batch_tokens: int = 4096
    length: int = 512
    long_from: float = 0.6
    matrix_rate: float = 0.02
    other_rate: float = 0.003
    candidates: int = 1024
    common: int = 2048
    full_from: float = 0.7
    checkpoint_seconds: float = 180.0
    seed: int = 0
    compiled: bool = True
    report_steps: int = 20
    steps: int | None = None
    hold: float = 0.35
    resumed_tokens: int = 0
    half: bool = False
    mixture: Mixture = field(default_factory=Mixture)


def new_model(shape: Shape, tokenizer: Tokenizer, seed: int) -> LlamaForCausalLM:
    """Build a model with fresh weights; the embedding is also the output layer.

    Raises TrainingError if the heads do not divide the width evenly.
    """
    if shape.width % shape.heads or shape.heads % shape.key_heads:
        raise TrainingError(f"{shape.heads} heads, {shape.key_heads} for keys: do not divide a width of {shape.width}")
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=shape.width,
        intermediate_size=shape.inner,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.key_heads,
        max_position_embeddings=shape.context,
        rms_norm_eps=1e-5,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=token_id(tokenizer, END),
        pad_token_id=token_id(tokenizer, PAD),
    )
    model = LlamaForCausalLM(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith(("o_proj.weight", "down_proj.weight")):
                parameter.zero_()
            elif parameter.dim() == 2 and "embed" not in name:
                parameter.normal_(std=shape.width**-0.5 * 0.6)
            elif "embed" in name:
                parameter.normal_(std=0.02)
    return model


# --- loss ---------------------------------------------------------------------------------


def full_loss(hidden: Tensor, embedding: Tensor, targets: Tensor, weights: Tensor) -> Tensor:
    """Weighted mean cross entropy in nats.

    `hidden`: [positions, width], `embedding`: [vocabulary, width], `targets` and `weights`:
    [positions].
    """
    losses = functional.cross_entropy((hidden @ embedding.T).float(), targets, reduction="none")
    return (losses * weights).sum() / weights.sum()


def sampled_loss(
    hidden: Tensor,
    embedding: Tensor,
    targets: Tensor,
    weights: Tensor,
    common: int,
    candidates: Tensor,
) -> Tensor:
    """Estimate `full_loss` from the first `common` ids and a sample of the others.

    BPE ids grow rarer as they grow, so the first ids hold most of the probability and are
    summed exactly; the sampled rest stands for all of the rest (importance weights, Bengio
    and Senecal 2008). `candidates`: distinct ids >= `common`, drawn uniformly: [sample].
    """
    rest = embedding.size(0) - common
    chosen = torch.cat([embedding[:common], embedding[candidates]])
    correction = math.log(rest / len(candidates))
    scores = (hidden @ chosen.T).float()
    scores = torch.cat([scores[:, :common], scores[:, common:] + correction], dim=1)
    own = (hidden * embedding[targets]).sum(1)
    # A rare target's own score always belongs to the sum; when sampled it is there already.
    rare = targets >= common
    sampled = torch.isin(targets, candidates)
    extra = torch.where(rare & ~sampled, own, torch.full_like(own, -torch.inf))
    total = torch.logaddexp(torch.logsumexp(scores, dim=1), extra)
    return ((total - own) * weights).sum() / weights.sum()


# --- the loop -----------------------------------------------------------------------------


@dataclass
class Progress:
    """Where a run stands; `tokens` counts positions trained on, padding included."""

    step: int = 0
    tokens: int = 0
    seconds: float = 0.0
    history: list[dict[str, float]] = field(default_factory=list)


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
    # Compiled, attention written out is twice as fast here as the kernel for processors, forward and backward.
    model.set_attn_implementation("eager" if plan.compiled else "sdpa")
    forward = torch.compile(model.model, dynamic=False) if plan.compiled else model.model
    estimate = torch.compile(sampled_loss, dynamic=False) if plan.compiled else sampled_loss
    optimizers = _optimizers(model, plan)
    batches = {length: _batches(texts, tokenizer, plan, length) for length in {plan.length, shape.context}}
    generator = torch.Generator().manual_seed(plan.seed)
    embedding = model.model.embed_tokens.weight
    progress = Progress()
    saved = started
    mean_loss = 0.0
    model.train()
    while True:
        done = _share_done(progress, plan, time.monotonic() - started)
        if done >= 1:
            break
        for optimizer in optimizers:
            for group in optimizer.param_groups:
                group["lr"] = group["initial_lr"] * schedule(done, hold=plan.hold)
        is_long = done >= plan.long_from and progress.step % 2 == 1
        ids, counted = next(batches[shape.context if is_long else plan.length])
        targets, wanted = ids[:, 1:].flatten(), counted[:, 1:].flatten()
        with torch.autocast("cpu", torch.bfloat16, enabled=plan.half):
            hidden = forward(input_ids=ids[:, :-1], use_cache=False).last_hidden_state.flatten(0, 1)
            if plan.candidates and done < plan.full_from:
                sample = torch.randperm(len(embedding) - plan.common, generator=generator)
                sample = sample[: plan.candidates] + plan.common
                loss = estimate(hidden, embedding, targets, wanted, plan.common, sample)
            else:
                loss = full_loss(hidden, embedding, targets, wanted)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        value = float(loss.detach())
        mean_loss = value if progress.step == 0 else 0.95 * mean_loss + 0.05 * value
        progress.step += 1
        progress.tokens += targets.numel()
        now = time.monotonic()
        progress.seconds = now - started
        if progress.step % plan.report_steps == 0:
            entry = {
                "step": progress.step,
                "tokens": progress.tokens,
                "seconds": round(progress.seconds, 1),
                "loss": round(mean_loss, 4),
            }
            progress.history.append(entry)
            rate = progress.tokens / progress.seconds
            say(
                f"step {progress.step}  {progress.tokens / 1e6:.2f} M tokens  "
                f"loss {mean_loss:.3f}  {rate:.0f} tokens/s  {100 * done:.1f} %"
            )
        if now - saved >= plan.checkpoint_seconds:
            save_checkpoint(model, shape, plan, progress, folder)
            saved = now
    save_checkpoint(model, shape, plan, progress, folder)
    return model, progress


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


# --- checkpoints --------------------------------------------------------------------------


def load_checkpoint(folder: Path) -> tuple[Shape, int, dict[str, Tensor]]:
    """Read shape, tokens seen and weights of the latest checkpoint.

    Raises TrainingError if there is none.
    """
    path = folder / CHECKPOINT_FILE
    if not path.is_file():
        raise TrainingError(f"{path}: no checkpoint to go on from")
    record = torch.load(path, map_location="cpu", weights_only=True)
    tokens = record["progress"]["tokens"] + record["plan"].get("resumed_tokens", 0)
    return Shape(**record["shape"]), tokens, record["weights"]


def save_checkpoint(model: LlamaForCausalLM, shape: Shape, plan: Plan, progress: Progress, folder: Path) -> None:
    """Write weights and record so that a reader never sees half a file."""
    record = {
        "shape": dataclasses.asdict(shape),
        "plan": dataclasses.asdict(plan),
        "progress": dataclasses.asdict(progress),
        "weights": {name: value.clone() for name, value in model.state_dict().items()},
    }
    unfinished = folder / (CHECKPOINT_FILE + ".unfinished")
    torch.save(record, unfinished)
    unfinished.replace(folder / CHECKPOINT_FILE)
    with (folder / HISTORY_FILE).open("w", encoding="utf-8") as lines:
        lines.writelines(json.dumps(entry) + "\n" for entry in progress.history)
