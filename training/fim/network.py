"""SmolLM2 with an adapter: frozen weights, low-rank updates in float32, and logits only where they are needed.

Low-rank adaptation: Hu et al., *LoRA* (arXiv 2106.09685). The frozen products are nine tenths of the work. They can be
8-bit integers, forward and backward to the activations (Wortsman et al., *Stable and low-precision training*, arXiv
2304.13013, section 2). With VNNI instructions this is four times as fast as float32; units for bfloat16 (AMX, GPUs) are
faster yet.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as functional
from torch import Tensor, nn

from fim_server.models.smollm2.adapter import PARTS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from fim_server.models.smollm2.shape import LlamaShape

INT8, HALF, FULL = "int8", "bfloat16", "full"
"""Arithmetic of the frozen products: 8-bit integers, bfloat16 throughout, or float32 throughout."""


def fastest(products: Mapping[str, Callable[[Tensor, tuple[Tensor, ...]], object]] | None = None) -> str:
    """The arithmetic that takes the least time on this processor, for products as :func:`frozen_product` makes them.

    Three of [256, 576] by [576, 576] are made each way (of 8 bits with their rounding). Without VNNI those in 8 bits
    took 60 times as long as in float32; without units for bfloat16 it is half as fast as float32, with AMX many times.
    """
    x, weight = torch.ones((256, 576)), torch.ones((576, 576))
    factors = {INT8: (x, quantised(weight)), HALF: (x.bfloat16(), (weight.bfloat16(),)), FULL: (x, (weight,))}

    def seconds(kind: str) -> float:
        product = frozen_product if products is None else products[kind]
        found = []
        for _ in range(3):
            began = time.perf_counter()
            product(*factors[kind])
            found.append(time.perf_counter() - began)
        return min(found)

    taken = {kind: seconds(kind) for kind in factors}
    return min(taken, key=taken.__getitem__)


def widths(shape: LlamaShape) -> dict[str, tuple[int, int]]:
    """In and out of each adapted product."""
    queries, keys = shape.heads * shape.head_size, shape.kv_heads * shape.head_size
    return {
        "qkv": (shape.width, queries + 2 * keys),
        "o": (queries, shape.width),
        "gate_up": (shape.width, 2 * shape.inner),
        "down": (shape.inner, shape.width),
    }


class Int8Product(torch.autograd.Function):
    """x W^T with both factors in 8 bits: a scale for each row of x, and for each row of W.

    Backward only to x: the gradient's rows and the columns of W get scales of their own, so W is kept twice.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, forward: Tensor, forward_scale: Tensor, backward: Tensor, backward_scale: Tensor
    ) -> Tensor:
        """x: [n, in]; forward: [in, out] int8, its scale [1, out]; backward: [out, in] int8, its scale [1, in]."""
        ctx.save_for_backward(backward, backward_scale)
        return _product(x, forward, forward_scale)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None, None]:
        """The gradient of x."""
        backward, scale = ctx.saved_tensors
        return _product(gradient, backward, scale), None, None, None, None


def _product(x: Tensor, weights: Tensor, scale: Tensor) -> Tensor:
    rows = x.abs().amax(-1, keepdim=True).clamp_min(1e-12) / 127
    whole = torch.round(x / rows).to(torch.int8)
    return torch._int_mm(whole, weights).to(x.dtype) * (rows * scale)  # noqa: SLF001  # no public one scales by rows


def quantised(weight: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Quantise a weight [out, in] for :class:`Int8Product`."""
    per_out = weight.abs().amax(1, keepdim=True).clamp_min(1e-12) / 127
    per_in = weight.abs().amax(0, keepdim=True).clamp_min(1e-12) / 127
    # The forward factor is a transposed view: the kernel wants its columns contiguous.
    forward = torch.round(weight / per_out).to(torch.int8).t()
    return forward, per_out.t().contiguous(), torch.round(weight / per_in).to(torch.int8), per_in


def frozen_product(x: Tensor, weight: tuple[Tensor, ...]) -> Tensor:
    """A product with a frozen weight: in 8 bits if it was :func:`quantised`, else as it is."""
    if len(weight) == 1:
        return functional.linear(x, weight[0])
    flat: Tensor = Int8Product.apply(x.reshape(-1, x.shape[-1]), *weight)
    return flat.view(*x.shape[:-1], -1)


class MergedProduct(torch.autograd.Function):
    """Adapted product for a GPU: the update is added to the weight beforehand.

    This saves a product with a low-rank matrix, which moves as many bytes of activations as the frozen product. A
    sum rounded to bfloat16 loses no more than products in bfloat16: both are 0.4 % off in a layer of the base.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, down: Tensor, up: Tensor, scale: float) -> Tensor:
        """x: [..., in]; weight: [out, in]; down: A [rank, in]; up: B [out, rank]."""
        merged = torch.addmm(weight, up, down, alpha=scale)
        ctx.save_for_backward(x, merged, down, up)
        ctx.scale = scale
        return functional.linear(x, merged)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, Tensor, Tensor, None]:
        """The gradients of x, A and B."""
        x, merged, down, up = ctx.saved_tensors
        rows, given = x.reshape(-1, x.shape[-1]), gradient.reshape(-1, gradient.shape[-1])
        of_down = ctx.scale * ((given @ up).t() @ rows)
        of_up = ctx.scale * (given.t() @ (rows @ down.t()))
        return (given @ merged).view(x.shape), None, of_down, of_up, None


def adapted(x: Tensor, weight: tuple[Tensor, ...], down: Tensor, up: Tensor, scale: float) -> Tensor:
    """Add the update, scale x A^T B^T, to x W^T; down: A [rank, in], up: B [out, rank]."""
    if x.is_cuda:
        assert len(weight) == 1, "8-bit products are for processors"
        merged: Tensor = MergedProduct.apply(x, weight[0], down, up, scale)
        return merged
    return frozen_product(x, weight) + functional.linear(functional.linear(x, down) * scale, up)


def normed(x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
    """Root-mean-square normalisation, in float32."""
    wide = x.float()
    return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + epsilon) * weight).to(x.dtype)


def rotated(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Rotary position embedding of x [batch, length, heads, head]; cosine, sine: [batch, length, 1, head / 2]."""
    first, second = x.float().chunk(2, -1)
    return torch.cat([first * cosine - second * sine, second * cosine + first * sine], -1).to(x.dtype)


Weights = tuple[Tensor, ...]
"""Weights of a product: one matrix, or the result of :func:`quantised`."""


def projected(
    x: Tensor,
    cosine: Tensor,
    sine: Tensor,
    norm: Tensor,
    weight: Weights,
    update: tuple[Tensor, Tensor],
    shape: LlamaShape,
    scale: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Queries [batch, length, heads, head] and keys and values [batch, length, key heads, head] of x [.., hidden]."""
    batch, length, _ = x.shape
    key_heads, head = shape.kv_heads, shape.head_size
    qkv = adapted(normed(x, norm, shape.epsilon), weight, *update, scale)
    q, k, v = torch.split(qkv, [shape.heads * head, key_heads * head, key_heads * head], -1)
    q = rotated(q.view(batch, length, shape.heads, head), cosine, sine) * (1 / math.sqrt(head))
    k = rotated(k.view(batch, length, key_heads, head), cosine, sine)
    return q, k, v.reshape(batch, length, key_heads, head)


def attended(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """Attention, [batch, length, heads * head], of what :func:`projected` gives; mask: [batch, 1, length, length].

    It is written out, because the library's backward is slow on processors; the heads that share a key stand one below
    the other in its product.
    """
    batch, length, heads, head = q.shape
    key_heads = k.shape[2]
    group = heads // key_heads
    q = q.transpose(1, 2).reshape(batch * key_heads, group * length, head)
    k = k.transpose(1, 2).reshape(batch * key_heads, length, head)
    v = v.transpose(1, 2).reshape(batch * key_heads, length, head)
    scores = torch.bmm(q, k.transpose(1, 2)).view(batch, heads, length, length) + mask
    shares = torch.softmax(scores.float(), -1).to(q.dtype).view(batch * key_heads, group * length, length)
    mixed = torch.bmm(shares, v).view(batch, heads, length, head).transpose(1, 2)
    return mixed.reshape(batch, length, heads * head)


def attended_by_runs(q: Tensor, k: Tensor, v: Tensor, runs: Tensor, longest: int) -> Tensor:
    """Attend with the library's kernel for a GPU, which skips hidden tokens.

    `runs` [n + 1], int32: the start of each example in all windows laid end to end, and the end. `longest`: an upper
    bound of their lengths in tokens.
    """
    from torch.nn.attention.varlen import varlen_attn

    batch, length, heads, head = q.shape
    group = heads // k.shape[2]
    k, v = k.repeat_interleave(group, 2), v.repeat_interleave(group, 2)
    q, k, v = (one.reshape(batch * length, heads, head) for one in (q, k, v))
    mixed = varlen_attn(q, k, v, runs, runs, longest, longest, scale=1.0, window_size=(-1, 0))
    assert isinstance(mixed, Tensor)  # a pair only where more is asked for
    return mixed.reshape(batch, length, heads * head)


def finished(
    x: Tensor,
    mixed: Tensor,
    norm: Tensor,
    weights: tuple[Weights, ...],
    updates: tuple[Tensor, ...],
    shape: LlamaShape,
    scale: float,
) -> Tensor:
    """The layer's x and what attention gives, to the next layer's x."""
    x = x + adapted(mixed, weights[0], updates[0], updates[1], scale)
    h = normed(x, norm, shape.epsilon)
    gate, up = adapted(h, weights[1], updates[2], updates[3], scale).chunk(2, -1)
    return x + adapted(functional.silu(gate) * up, weights[2], updates[4], updates[5], scale)


@dataclass(frozen=True)
class Sight:
    """Attention of packed windows: each token sees its own example up to itself.

    `mask` [batch, 1, length, length] is added to the scores; on a GPU, `runs` and `longest` are those of
    :func:`attended_by_runs`.
    """

    mask: Tensor | None = None
    runs: Tensor | None = None
    longest: int = 0


def layer(
    x: Tensor,
    cosine: Tensor,
    sine: Tensor,
    mask: Tensor,
    norms: tuple[Tensor, Tensor],
    weights: tuple[Weights, ...],
    updates: tuple[Tensor, ...],
    shape: LlamaShape,
    scale: float,
) -> Tensor:
    """One layer; x: [batch, length, hidden], mask: [batch, 1, length, length]."""
    q, k, v = projected(x, cosine, sine, norms[0], weights[0], (updates[0], updates[1]), shape, scale)
    return finished(x, attended(q, k, v, mask), norms[1], weights[1:], updates[2:], shape, scale)


class Network(nn.Module):
    """The base with an adapter on it.

    Parameters: `updates`, for each layer A and B of :data:`PARTS`; `rows`: embeddings of the tokens `row_ids`, which
    take the place of the base's.
    """

    embedding: Tensor
    last_norm: Tensor
    row_ids: Tensor
    frequencies: Tensor

    def __init__(
        self,
        weights: Mapping[str, Tensor],
        shape: LlamaShape,
        rank: int,
        alpha: float,
        rows: Tensor,
        row_ids: Tensor,
        arithmetic: str = FULL,
        dtype: torch.dtype = torch.float32,
        seed: int = 0,
    ) -> None:
        """`weights`: of the base, by the names transformers has for a Llama."""
        super().__init__()
        self.shape, self.rank, self.alpha, self.dtype = shape, rank, alpha, dtype
        self.register_buffer("embedding", weights["model.embed_tokens.weight"].to(dtype), persistent=False)
        self.register_buffer("last_norm", weights["model.norm.weight"].float(), persistent=False)
        self.frozen = [_frozen(weights, number, arithmetic, dtype) for number in range(shape.layers)]
        generator = torch.Generator().manual_seed(seed)
        self.updates = nn.ParameterList()
        sizes = widths(shape)
        for _ in range(shape.layers):
            for name in PARTS:
                wide_in, wide_out = sizes[name]
                drawn = torch.rand(rank, wide_in, generator=generator) * 2 - 1
                self.updates.append(nn.Parameter(drawn / math.sqrt(wide_in)))
                self.updates.append(nn.Parameter(torch.zeros(wide_out, rank)))
        self.rows = nn.Parameter(rows.float().clone())
        self.register_buffer("row_ids", row_ids.clone(), persistent=False)
        frequencies = shape.theta ** (-torch.arange(0, shape.head_size, 2).float() / shape.head_size)
        self.register_buffer("frequencies", frequencies, persistent=False)
        self.layer, self.projected, self.finished = layer, projected, finished

    def move(self, device: torch.device) -> None:
        """Bring the frozen weights to a device, which `to` does not know of."""
        self.frozen = [
            (
                (norms[0].to(device), norms[1].to(device)),
                tuple(tuple(part.to(device) for part in weight) for weight in weights),
            )
            for norms, weights in self.frozen
        ]

    def compiled(self) -> None:
        """Compile the layer, which all layers share; around the kernel for a GPU, which is compiled, its two halves."""
        self.layer = torch.compile(layer, dynamic=False)
        self.projected = torch.compile(projected, dynamic=False)
        self.finished = torch.compile(finished, dynamic=False)

    def hidden(self, ids: Tensor, positions: Tensor, sight: Sight) -> Tensor:
        """Hidden states [batch, length, hidden] of ids [batch, length]."""
        x = functional.embedding(ids, self.embedding)
        which = ids[..., None] == self.row_ids
        # A product, because the gradient of rows that are picked by index is added up one token after the other.
        own = which.to(self.dtype) @ self.rows.to(self.dtype)
        x = torch.where(which.any(-1, keepdim=True), own, x)
        angles = positions[..., None, None].float() * self.frequencies
        cosine, sine = angles.cos(), angles.sin()
        scale = self.alpha / self.rank
        for number, (norms, weights) in enumerate(self.frozen):
            count = 2 * len(PARTS)
            updates = tuple(self.updates[count * number + i].to(self.dtype) for i in range(count))
            if sight.mask is not None:
                x = self.layer(x, cosine, sine, sight.mask, norms, weights, updates, self.shape, scale)
                continue
            assert sight.runs is not None
            first = (updates[0], updates[1])
            q, k, v = self.projected(x, cosine, sine, norms[0], weights[0], first, self.shape, scale)
            mixed = attended_by_runs(q, k, v, sight.runs, sight.longest)
            x = self.finished(x, mixed, norms[1], weights[1:], updates[2:], self.shape, scale)
        return normed(x, self.last_norm, self.shape.epsilon)

    def logits(self, hidden: Tensor) -> Tensor:
        """Logits [n, vocabulary], float32, of hidden states [n, hidden]."""
        all_logits = functional.linear(hidden, self.embedding).float()
        return all_logits.index_copy(1, self.row_ids, functional.linear(hidden.float(), self.rows))


def _frozen(
    weights: Mapping[str, Tensor], number: int, arithmetic: str, dtype: torch.dtype
) -> tuple[tuple[Tensor, Tensor], tuple[tuple[Tensor, ...], ...]]:
    prefix = f"model.layers.{number}."

    def read(*names: str) -> tuple[Tensor, ...]:
        weight = torch.cat([weights[f"{prefix}{name}_proj.weight"].float() for name in names])
        return quantised(weight) if arithmetic == INT8 else (weight.to(dtype),)

    norms = tuple(weights[f"{prefix}{name}_layernorm.weight"].float() for name in ("input", "post_attention"))
    products = (
        read("self_attn.q", "self_attn.k", "self_attn.v"),
        read("self_attn.o"),
        read("mlp.gate", "mlp.up"),
        read("mlp.down"),
    )
    return (norms[0], norms[1]), products
