"""Masks by Triton's kernels against numpy: on a GPU, or in Triton's interpreter (``TRITON_INTERPRET=1``) without one.

``test_torch_masks.py`` runs this file in the interpreter, which has to be chosen before Triton is imported.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from fim_server.models.masking import word_count
from fim_server.models.pytorch import masks
from fim_server.models.pytorch.masks import KERNELS, apply_by_torch_, apply_mask, apply_mask_, masked_argmax

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
CUDA = torch.cuda.is_available() and not INTERPRETED
PLACE = torch.device("cuda" if CUDA else "cpu")

pytestmark = pytest.mark.skipif(not CUDA and not INTERPRETED, reason="neither a GPU nor Triton's interpreter")
on_gpu = pytest.mark.skipif(not CUDA, reason="no CUDA device")

FLOATS = [torch.float32, torch.bfloat16, torch.float16]
SIZES = [1, 31, 32, 33, 1023, 1024, 1025, 4097, 32769]
"""Numbers of logits around those of words, of tiles, and of parts with several tiles."""
MOST = SIZES[-1] if CUDA else 33
"""Most logits that get all cases: the interpreter takes 20 ms for a tile."""


@pytest.fixture(autouse=True)
def kernels_alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have the kernels do everything, and torch's way fail."""

    def refuse(*given: Any) -> Any:
        raise AssertionError(KERNELS.failure or "not the kernels' way")

    monkeypatch.setattr(KERNELS, "devices", {PLACE.type})
    monkeypatch.setattr(KERNELS, "failure", None)
    monkeypatch.setattr(masks, "apply_by_torch_", refuse)
    yield
    assert KERNELS.failure is None


def masked(logits: torch.Tensor, words: NDArray[np.uint32]) -> NDArray[np.float32]:
    """Return masked logits [B, V], bit by bit in numpy."""
    rows, size = logits.shape
    bits = np.unpackbits(np.ascontiguousarray(np.atleast_2d(words)).view(np.uint8), axis=1, bitorder="little")
    allowed = np.zeros((rows, size), dtype=bool)
    allowed[:, : bits.shape[1]] = bits[:, :size]
    return np.where(allowed, logits.float().cpu().numpy(), np.float32("-inf"))


def random_words(generator: np.random.Generator, *shape: int) -> NDArray[np.uint32]:
    return generator.integers(0, 1 << 32, shape, dtype=np.uint32)


def check(logits: torch.Tensor, words: NDArray[np.uint32]) -> None:
    """Compare both kernels with numpy, and with torch's argmax, which numpy equals in ties and NaN."""
    before = logits.clone()
    expected = masked(logits, words)
    packed = torch.from_numpy(words.view(np.int32)).to(PLACE)
    chosen = masked_argmax(logits, packed)
    assert chosen.dtype == torch.int64
    assert chosen.tolist() == expected.argmax(axis=1).tolist()
    assert torch.equal(bits(logits), bits(before))
    found = apply_mask(logits, packed)
    np.testing.assert_array_equal(found.float().cpu().numpy(), expected)
    kept = ~found.isneginf()
    assert torch.equal(bits(found)[kept], bits(before)[kept])
    assert torch.equal(found.argmax(dim=-1), chosen)


def bits(logits: torch.Tensor) -> torch.Tensor:
    return logits.view({2: torch.int16, 4: torch.int32, 8: torch.int64}[logits.element_size()])


@pytest.mark.parametrize(
    ("size", "dtype"),
    [(size, dtype) for size in SIZES for dtype in FLOATS if CUDA or dtype == torch.float32 or size == 33],
)
def test_random_logits(size: int, dtype: torch.dtype) -> None:
    generator = np.random.default_rng(size)
    count = word_count(size)
    rows = 1 + SIZES.index(size) % 4 if size < SIZES[-1] else 1
    logits = torch.from_numpy(generator.standard_normal((rows, size))).to(PLACE, dtype)
    check(logits, random_words(generator, rows, count))
    if size <= MOST:
        check(logits, random_words(generator, count))  # one mask for all rows
        check(logits, random_words(generator, rows, count + 2))
        check(logits, random_words(generator, rows, max(count - 1, 0)))
        check(logits, random_words(generator, rows, count) & np.uint32(0x11))


def test_words_of_numpy() -> None:
    generator = np.random.default_rng(0)
    logits = torch.from_numpy(generator.standard_normal((2, 70))).to(PLACE, torch.float32)
    words = random_words(generator, 2, 3)
    expected = masked(logits, words)
    assert masked_argmax(logits, words).tolist() == expected.argmax(axis=1).tolist()
    np.testing.assert_array_equal(apply_mask(logits, words).cpu().numpy(), expected)


@pytest.mark.parametrize(("size", "dtype"), [(33, torch.bfloat16), (1024, torch.float32), (4097, torch.float16)])
def test_the_last_token_alone(size: int, dtype: torch.dtype) -> None:
    """Each row allows one token; others are greater, and so are those beyond the words."""
    places = [size - 1, size // 32 * 32, size // 32 * 32 - 1, 0, 31, size // 2]
    tokens = [token for token in places if token < size]
    logits = torch.zeros(len(tokens), size + (40 if size % 32 == 0 else 0), dtype=dtype, device=PLACE)
    words = np.zeros((len(tokens), word_count(size)), dtype=np.uint32)
    logits[:, 2::3] = 5
    for row, token in enumerate(tokens):
        words[row, token // 32] = np.uint32(1) << np.uint32(token % 32)
        logits[row, token] = -7
    check(logits, words)
    assert masked_argmax(logits, words).tolist() == tokens


@pytest.mark.parametrize(("size", "dtype"), [(1100, torch.float32), *((40, dtype) for dtype in FLOATS)])
def test_ties_zeros_infinities_and_nan(size: int, dtype: torch.dtype) -> None:
    generator = np.random.default_rng(size)
    tiny = torch.finfo(dtype).smallest_normal
    if dtype != torch.bfloat16 or CUDA:  # the interpreter takes subnormal ones of bfloat16 for zero
        tiny /= 4
    nan, infinity = float("nan"), float("inf")
    rows = [
        generator.integers(0, 3, size),
        generator.choice([0.0, -0.0], size),
        generator.choice([-1.0, -0.0, 0.0, -tiny], size),
        generator.choice([0.0, tiny, -tiny], size),
        generator.choice([nan, infinity, 1.0], size, p=[0.01, 0.1, 0.89]),
        generator.choice([nan, -nan, -infinity], size, p=[0.5, 0.3, 0.2]),
        generator.choice([infinity, -infinity], size),
        np.full(size, -infinity),
        np.full(size, nan),
        np.full(size, infinity),
        np.full(size, float(torch.finfo(dtype).min)),
    ]
    logits = torch.from_numpy(np.array(rows)).to(PLACE, dtype)
    count = word_count(size)
    words = random_words(generator, len(rows), count)
    check(logits, words)
    words[:, 0] = 0  # a tie at minus infinity is the first token's, though it is refused
    check(logits, words)
    if CUDA or size < 1000:
        check(logits, np.full_like(words, 0xFFFFFFFF))
        check(logits, np.zeros_like(words))
        check(logits, words[:, :0])


@pytest.mark.parametrize("size", [70, 1100])
def test_parts_of_tensors(size: int) -> None:
    """Rows and columns of larger tensors: neither kernel touches what is beside them."""
    generator = np.random.default_rng(size)
    words = random_words(generator, 3, word_count(size))
    packed = torch.from_numpy(words.view(np.int32)).to(PLACE)
    for part in (
        (slice(0, 6, 2), slice(0, size)),
        (slice(1, 4), slice(3, 3 + size)),
        (slice(2, 5), slice(64, 64 + size)),
    ):
        whole = torch.from_numpy(generator.standard_normal((6, size + 70))).to(PLACE, torch.float32)
        before = whole.clone()
        expected = masked(whole[part], words)
        out = torch.full((6,), -5, device=PLACE)
        assert masked_argmax(whole[part], packed, out=out[1:6:2]) is not None
        assert out.tolist() == [-5 if row % 2 == 0 else expected.argmax(axis=1)[row // 2] for row in range(6)]
        wide = torch.zeros(3, 2 * packed.shape[1] + 1, dtype=torch.int32, device=PLACE)
        for view in (wide[:, 1 : 1 + packed.shape[1]], wide[:, : 2 * packed.shape[1] : 2]):
            view.copy_(packed)
            assert masked_argmax(whole[part], view).tolist() == expected.argmax(axis=1).tolist()
            changed = whole.clone()
            apply_mask_(changed[part], view)
            np.testing.assert_array_equal(changed[part].cpu().numpy(), expected)
            changed[part] = before[part]
            assert torch.equal(changed, before)


def test_double_precision_is_masked_too(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(1)
    logits = torch.from_numpy(generator.standard_normal((3, 1500))).to(PLACE)
    words = random_words(generator, 3, word_count(1500))
    found = apply_mask(logits, words)
    expected = np.where(np.isfinite(masked(logits, words)), logits.cpu().numpy(), -np.inf)
    np.testing.assert_array_equal(found.cpu().numpy(), expected)
    monkeypatch.setattr(masks, "apply_by_torch_", apply_by_torch_)  # chooses
    assert masked_argmax(logits, words).tolist() == expected.argmax(axis=1).tolist()


def test_a_change_is_told_to_autograd() -> None:
    logits = torch.zeros(2, 40, device=PLACE)
    weight = torch.ones(40, requires_grad=True, device=PLACE)
    product = (logits * weight).sum()
    apply_mask_(logits, np.zeros(2, dtype=np.uint32))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.backward()  # type: ignore[no-untyped-call]


def test_inference_tensors_change_anywhere() -> None:
    with torch.inference_mode():
        logits = torch.zeros(2, 40, device=PLACE)
    apply_mask_(logits, np.array([1, 0], dtype=np.uint32))
    assert logits.isinf().sum(dim=1).tolist() == [39, 39]
    assert masked_argmax(logits, np.array([2, 0], dtype=np.uint32)).tolist() == [0, 0]


# --- the size of a model's vocabulary, on a GPU ---------------------------------------------------------------------


@on_gpu
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("width", [151_669, 151_680, 151_936])
@pytest.mark.parametrize("rows", [1, 64, 512])
def test_a_vocabulary(rows: int, width: int, dtype: torch.dtype) -> None:
    size = 151_669
    torch.manual_seed(rows)
    logits = torch.randn(rows, width, device=PLACE).mul_(4).to(dtype)  # bfloat16 has many ties
    words = torch.randint(-(1 << 31), 1 << 31, (rows, word_count(size)), dtype=torch.int64, device=PLACE)
    packed = words.to(torch.int32)
    packed[::7] &= 0x01010101
    packed[::11] = 0
    logits[::5, 1000::999] = float("nan")
    logits[::3, 77::1001] = float("inf")
    for part in (logits, logits[:, :size]):
        expected = apply_by_torch_(part.clone(), packed)
        assert torch.equal(masked_argmax(part, packed), expected.argmax(dim=-1))
        assert torch.equal(bits(apply_mask(part, packed)), bits(expected))


@on_gpu
def test_steps_of_a_graph() -> None:
    torch.manual_seed(0)
    logits = torch.randn(8, 5000, device=PLACE)
    packed = torch.full((8, word_count(5000)), -1, dtype=torch.int32, device=PLACE)
    chosen = masked_argmax(logits, packed)  # compiles
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        masked_argmax(logits, packed, out=chosen)
    for seed in range(3):
        logits.copy_(torch.randn(8, 5000))
        packed.copy_(torch.from_numpy(random_words(np.random.default_rng(seed), *packed.shape).view(np.int32)))
        graph.replay()
        assert torch.equal(chosen, apply_by_torch_(logits.clone(), packed).argmax(dim=-1))
