"""Runs that are decoded together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import torch
from transformers.cache_utils import DynamicCache

from fim_server.decoding.loop.conclusion import final_length, text_of
from fim_server.decoding.loop.run import Run, start
from fim_server.decoding.loop.watch import Watch
from fim_server.decoding.options import DecodeOptions
from fim_server.decoding.results import StopReason
from fim_server.decoding.strategies.batches import decode_together
from fim_server.decoding.strategies.outcomes import Outcome, Task
from fim_server.models.model import FimModel
from fim_server.models.pytorch.backend import TorchBackend
from fim_server.models.reading import Reading
from fim_server.text.document import Split
from support.models.bracket_language import (
    CONTROL,
    END,
    SIZE,
    Script,
    ScriptedModel,
    after_prompt,
    noise,
    scripted,
)


@dataclass
class TokenNetwork:
    """Network that keeps the tokens that it reads as keys, and gives the logits of a script for the tokens in sight."""

    script: Script
    config: Any = field(default_factory=lambda: SimpleNamespace(_attn_implementation="sdpa"))
    rows_seen: list[int] = field(default_factory=list)

    def __call__(
        self,
        input_ids: torch.Tensor,
        past_key_values: Any,
        attention_mask: torch.Tensor | None = None,
        position_ids: torch.Tensor | None = None,
        **_: Any,
    ) -> SimpleNamespace:
        before = past_key_values.get_seq_length()
        if position_ids is None:
            position_ids = torch.arange(input_ids.shape[1])[None] + before
        states = (one[:, None, :, None].float() for one in (input_ids, position_ids))
        keys, positions = past_key_values.update(*states, 0)
        self.rows_seen.append(len(keys))
        logits = []
        for row in range(len(keys)):
            seen = slice(None) if attention_mask is None else attention_mask[row, 0, 0]
            assert positions[row, 0, seen, 0].tolist() == list(range(int(positions[row, 0, seen, 0].max()) + 1))
            logits.append(self.script([int(token) for token in keys[row, 0, seen, 0]]))
        return SimpleNamespace(logits=torch.stack(logits)[:, None])


class CachedBackend(TorchBackend):
    """A network without a configuration."""

    def new_cache(self, room: int | None = None) -> Any:
        return DynamicCache()


class CachedModel(ScriptedModel):
    """The scripted model, on its network and cache."""

    def new_cache(self, room: int | None = None) -> Any:
        return DynamicCache()

    def forward(self, token_ids: Sequence[int], cache: Any) -> torch.Tensor:
        assert isinstance(self.backend, TorchBackend)
        logits: torch.Tensor = self.backend.network(torch.tensor([token_ids]), cache).logits
        return logits[0, -1]


def cached_whole(script: Script) -> CachedModel:
    """A model whose logits a script gives for prompt and middle."""
    made = scripted(script)
    backend = CachedBackend(TokenNetwork(script), torch.device("cpu"), window=4096)
    return CachedModel(made.name, backend, made.format, made.vocabulary, script=script)


def rows_seen(model: FimModel) -> list[int]:
    """Rows of each pass of a scripted network."""
    assert isinstance(model.backend, TorchBackend)
    found: list[int] = model.backend.network.rows_seen
    return found


def runs_of(
    model: FimModel, sessions: Sequence[Any], worker: ThreadPoolExecutor, options: DecodeOptions
) -> tuple[Run, ...]:
    """A run under each session's constraint; None: under none."""
    return tuple(start(model, Reading(model), one, options, Watch(None, None), worker) for one in sessions)


def together(
    model: FimModel, splits: Sequence[Split], sessions: Callable[[Split], Sequence[Any]], options: DecodeOptions
) -> list[list[tuple[str | None, StopReason, Run]]]:
    """Texts, stop reasons and runs of all splits, decoded in one batch."""
    with ThreadPoolExecutor(1) as worker:
        opened = [sessions(split) for split in splits]
        prompts = [model.format.encode(split.left, split.right, 900) for split in splits]
        tasks = [
            Task(prompt, runs_of(model, own, worker, options)) for prompt, own in zip(prompts, opened, strict=True)
        ]
        outcomes = decode_together(model, tasks)
    return [
        [told(run, outcome, one is not None) for run, outcome, one in zip(task.runs, found, own, strict=True)]
        for task, found, own in zip(tasks, outcomes, opened, strict=True)
    ]


def told(run: Run, outcome: Outcome, exact: bool) -> tuple[str | None, StopReason, Run]:
    assert isinstance(outcome.ending, StopReason), outcome.ending
    length = final_length(run, exact, outcome.ending)
    text = None if length is None else text_of(run.model, run.tokens[:length], strict=exact)
    return text, outcome.ending, run


def wandering(seed: int) -> Script:
    """Brackets, letters and ends in no order, different for each prompt, more likely to end the longer the text is."""
    noises = noise(seed)

    def script(tokens: list[int]) -> torch.Tensor:
        logits = torch.full((SIZE,), -20.0)
        some = [ord(one) for one in "()[]ab\n"]
        logits[some] = noises(tokens)[some]
        logits[END] = len(after_prompt(tokens)) - 6.0
        logits[CONTROL] = -2.0
        return logits

    return script


SPLITS = [Split("(" * (n % 4) + "x" * (7 * n % 23), ")" * (n % 4)) for n in range(11)]

CUTS = [
    Split("def f(a, b):\n    if a > b:\n        return ", "\n    return b\n"),
    Split("import os\n\n\ndef read(path):\n    with open(", ") as file:\n        return file.read()\n"),
    Split("class A:\n    def __init__(self, x):\n        self.", "\n\n    def get(self):\n        return self.x\n"),
    Split("values = [", "]\nprint(values)\n"),
    Split("for i in range(10):\n    ", "\nelse:\n    print('done')\n"),
    Split("x = {'a': 1, ", "}\n"),
    Split("def g(n):\n    while n:\n        n -= 1\n", "    return n\n"),
    Split("print(f'{", "}')\n"),
]
