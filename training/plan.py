"""Plan of a training run: the model's size, the time and the data."""

from __future__ import annotations

from dataclasses import dataclass, field

from training.data.cutting import Mixture


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
    """Schedule of the training.

    `seconds`: wall clock, all steps and the decay included. `batch_tokens`: tokens a step. `length`: tokens a window;
    from `long_from` of the time on, every second step uses windows of the whole context. `candidates`: rarer tokens
    in the estimate of the loss until `full_from` of the time; 0 computes the whole softmax throughout. `hold`: share
    of the time before the rates begin to decay to zero; 1 for a part that another one continues. `resumed_tokens`:
    tokens that the starting weights had seen. `half`: multiply matrices in bfloat16; weights, norms and losses stay
    in float32.
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
