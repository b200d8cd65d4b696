"""Measure an exported model on held-out packages: bits a byte, and holes filled greedily."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from tokenizers import Tokenizer
from torch.nn import functional
from transformers import LlamaForCausalLM

from fim_server.errors import TrainingError
from training.data.cutting import Hole, Mixture, Order, cut
from training.data.layout import encode_example
from training.data.packages import SourceFile
from training.tokenizer import END, MIDDLE, load_tokenizer, token_id

# Contexts as an editor sends them: characters on both sides together.
CONTEXT_CHARACTERS = 2_000
# A mixture with one kind of middle each.
HOLES = {
    "rest of line": Mixture(rest_of_line=1.0, lines=0.0, block=0.0),
    "lines": Mixture(rest_of_line=0.0, lines=1.0, block=0.0),
    "block": Mixture(rest_of_line=0.0, lines=0.0, block=1.0),
    "random span": Mixture(rest_of_line=0.0, lines=0.0, block=0.0),
}


@dataclass(frozen=True)
class Measured:
    """Figures of one kind of hole.

    `bits_a_byte`: of the middle with its end token, over the middle's UTF-8 bytes.
    `exact`: share of holes whose greedy fill equals the middle, ends stripped.
    """

    kind: str
    order: Order
    holes: int
    bits_a_byte: float
    exact: float


def load(folder: Path) -> tuple[LlamaForCausalLM, Tokenizer]:
    """Load an exported folder as float32. Raises TrainingError if it is not one."""
    if not (folder / "config.json").is_file():
        raise TrainingError(f"{folder}: no exported model")
    model = LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32)
    model.train(False)
    return model, load_tokenizer(folder)


def holes_of(files: Sequence[SourceFile], mixture: Mixture, count: int, generator: random.Random) -> list[Hole]:
    """Draw `count` holes that are not blank, files weighted by their length."""
    holes: list[Hole] = []
    sizes = [len(file.text) for file in files]
    while len(holes) < count:
        text = generator.choices(files, weights=sizes)[0].text
        start = generator.randrange(max(1, len(text) - CONTEXT_CHARACTERS // 2))
        start = text.rfind("\n", 0, start) + 1
        hole = cut(text[start : start + CONTEXT_CHARACTERS], mixture, generator)
        if hole.middle.strip():
            holes.append(hole)
    return holes


@torch.inference_mode()
def measure_plain(
    model: LlamaForCausalLM, tokenizer: Tokenizer, files: Sequence[SourceFile], windows: int
) -> tuple[float, float]:
    """Left-to-right loss on windows of half the context: nats a token, bits a byte."""
    length = model.config.max_position_embeddings // 2
    nats, tokens, size = 0.0, 0, 0
    for index in range(windows):
        text = files[index * len(files) // windows].text
        encoding = tokenizer.encode(text[: 6 * length], add_special_tokens=False)
        ids = encoding.ids[:length]
        if len(ids) < 2:
            continue
        logits = model(input_ids=torch.tensor([ids])).logits[0, :-1]
        nats += float(functional.cross_entropy(logits, torch.tensor(ids[1:]), reduction="sum"))
        tokens += len(ids) - 1
        begin, end = encoding.offsets[1][0], encoding.offsets[len(ids) - 1][1]
        size += len(text[begin:end].encode())
    return nats / tokens, nats / math.log(2) / size


@torch.inference_mode()
def measure_holes(
    model: LlamaForCausalLM,
    tokenizer: Tokenizer,
    holes: Sequence[Hole],
    kind: str,
    order: Order,
    new_tokens: int = 96,
) -> Measured:
    """Score the true middles, and fill each hole greedily without any grammar."""
    nats, size, exact = 0.0, 0, 0
    begin_id, end_id = token_id(tokenizer, MIDDLE), token_id(tokenizer, END)
    limit = model.config.max_position_embeddings - new_tokens
    for hole in holes:
        ids = encode_example(tokenizer, hole, order, limit, 1.0).ids
        start = ids.index(begin_id) + 1
        logits = model(input_ids=torch.tensor([ids])).logits[0, start - 1 : -1]
        nats += float(functional.cross_entropy(logits, torch.tensor(ids[start:]), reduction="sum"))
        size += len(hole.middle.encode())
        filled = fill(model, ids[:start], new_tokens, end_id)
        if filled is not None:
            exact += tokenizer.decode(filled).strip() == hole.middle.strip()
    return Measured(kind, order, len(holes), nats / math.log(2) / size, exact / len(holes))


@torch.inference_mode()
def fill(model: LlamaForCausalLM, prompt: Sequence[int], new_tokens: int, end: int) -> list[int] | None:
    """Decode greedily up to the end token, which is left out; None if it does not come."""
    filled: list[int] = []
    step = torch.tensor([prompt])
    cache = None
    for _ in range(new_tokens):
        output = model(input_ids=step, past_key_values=cache, use_cache=True)
        cache = output.past_key_values
        chosen = int(output.logits[0, -1].argmax())
        if chosen == end:
            return filled
        filled.append(chosen)
        step = torch.tensor([[chosen]])
    return None
