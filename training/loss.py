"""The loss: the cross entropy of the whole vocabulary, and a cheaper estimate of it."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional


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

    BPE ids grow rarer as they grow. The first ids hold most of the probability and are summed exactly; the sample
    stands for all others (importance weights, Bengio and Senecal 2008). `candidates`: distinct ids >= `common`, drawn
    uniformly: [sample].
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
