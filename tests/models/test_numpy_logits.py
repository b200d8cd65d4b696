"""The arithmetic on arrays against torch's on tensors: the same choices, and the same probabilities up to rounding."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from fim_server.decoding.options import DecodeOptions
from fim_server.models.masking import contains, word_count
from fim_server.models.numpy_logits import NumpyArithmetic
from fim_server.models.pytorch.backend import TorchArithmetic

OURS, THEIRS = NumpyArithmetic(), TorchArithmetic(torch.device("cpu"))


def row(size: int, seed: int) -> NDArray[np.float32]:
    return (5 * np.random.default_rng(seed).standard_normal(size)).astype(np.float32)


@pytest.mark.parametrize("size", [1, 31, 32, 33, 1000])
@pytest.mark.parametrize("masked", [1, 32, 64, 1000, 1056])
def test_masks_are_bit_for_bit_the_same(size: int, masked: int) -> None:
    logits = row(size, size)
    words = np.random.default_rng(masked).integers(0, 1 << 32, word_count(masked), dtype=np.uint32)
    before = logits.copy()
    found = OURS.masked(logits, words)
    wanted = THEIRS.masked(torch.from_numpy(logits), words)
    assert np.array_equal(found.view(np.int32), wanted.numpy().view(np.int32))
    assert np.array_equal(logits, before), "masked copies"
    allowed = [contains(words, token) for token in range(size)]
    assert np.isfinite(found).tolist() == allowed
    assert OURS.is_spent(found) == THEIRS.is_spent(wanted) == (not any(allowed))


@pytest.mark.parametrize("seed", range(20))
def test_choices_and_probabilities_are_the_same(seed: int) -> None:
    logits = row(500, seed)
    if seed % 2:
        logits[seed::7] = float("-inf")
    tensor = torch.from_numpy(logits)
    assert OURS.likeliest(logits) == THEIRS.likeliest(tensor)
    assert OURS.sampler(0, 0).draw(logits) == THEIRS.sampler(0, 0).draw(tensor)
    np.testing.assert_allclose(OURS.shares(logits), THEIRS.shares(tensor).numpy(), rtol=1e-5, atol=1e-9)
    ours, theirs = OURS.top(OURS.shares(logits), 8), THEIRS.top(THEIRS.shares(tensor), 8)
    assert [token for token, _ in ours] == [token for token, _ in theirs]
    assert [share for _, share in ours] == pytest.approx([share for _, share in theirs], rel=1e-5)
    assert OURS.share_of(logits, {3, 200, 4}) == pytest.approx(THEIRS.share_of(tensor, {3, 200, 4}), rel=1e-5)
    np.testing.assert_allclose(OURS.tempered(logits, 0.7), THEIRS.tempered(tensor, 0.7).numpy(), rtol=1e-6)
    assert OURS.tempered(logits, 0.7).dtype == np.float32
    kept = OURS.only(logits, [5, 9])
    assert np.array_equal(kept, THEIRS.only(tensor, [5, 9]).numpy())
    OURS.refuse(kept, 5)
    assert np.isinf(kept[5])
    assert len(OURS.top(OURS.shares(logits[:3]), 8)) == 3


@pytest.mark.parametrize("scale", [0.0, 0.01, 1.0, 4.0, 30.0])
@pytest.mark.parametrize("count", [1, 32, 900, 5000])
def test_the_greatest_shares_are_those_that_sorting_finds(scale: float, count: int) -> None:
    logits = (np.random.default_rng(count).standard_normal(1000) * scale).astype(np.float32)
    logits[::11] = float("-inf")
    shares = OURS.shares(logits)
    found = OURS.top(shares, count)
    assert [share for _, share in found] == sorted(shares.tolist(), reverse=True)[:count]
    assert len({token for token, _ in found}) == min(count, 1000)
    assert all(shares[token] == share for token, share in found)


def test_of_equal_logits_the_first_is_chosen() -> None:
    logits = np.array([1, 3, 3, 3], dtype=np.float32)
    assert OURS.likeliest(logits) == THEIRS.likeliest(torch.from_numpy(logits)) == 1


def test_refused_tokens_are_never_drawn_and_seeds_repeat() -> None:
    logits = np.full(1000, float("-inf"), dtype=np.float32)
    logits[[3, 700]] = [1.0, 0.5]
    for seed in (-1, 0, 1 << 63, 1 << 70):
        sampler, again = OURS.sampler(1.0, seed), OURS.sampler(1.0, seed)
        drawn = [sampler.draw(logits) for _ in range(200)]
        assert set(drawn) == {3, 700}
        assert drawn == [again.draw(logits) for _ in range(200)]


@pytest.mark.parametrize("temperature", [5e-324, 1e-320, 1e-40, 1e-30, 1e30, 1e39, 1e308])
@pytest.mark.filterwarnings("error")
def test_any_temperature_draws_what_is_allowed(temperature: float) -> None:
    usable = DecodeOptions(temperature=temperature).usable_temperature
    logits = row(100, 1)
    logits[::2] = float("-inf")
    ours, theirs = OURS.sampler(usable, 0), THEIRS.sampler(usable, 0)
    tensor = torch.from_numpy(logits)
    for drawn in ({ours.draw(logits) for _ in range(20)}, {theirs.draw(tensor) for _ in range(20)}):
        assert all(token % 2 for token in drawn)
        assert drawn == {int(logits.argmax())} if temperature < 1 else len(drawn) > 5


@pytest.mark.parametrize("seed", [-1, -(1 << 63), 0, 1 << 63, (1 << 64) - 1])
def test_seeds_draw_as_torch_does_and_may_be_longer(seed: int) -> None:
    logits = torch.from_numpy(row(50, 1))
    generator = torch.Generator().manual_seed(seed)
    wanted = [int(torch.multinomial(torch.softmax(logits, dim=-1), 1, generator=generator)) for _ in range(20)]
    for given in (seed, seed + (1 << 70)):
        sampler = THEIRS.sampler(1.0, given)
        assert [sampler.draw(logits) for _ in range(20)] == wanted


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_draws_have_the_shares_of_the_softmax(temperature: float) -> None:
    logits = np.array([2.0, 1.0, 0.0, -1.0], dtype=np.float32)
    sampler = OURS.sampler(temperature, 11)
    counts = np.bincount([sampler.draw(logits) for _ in range(20_000)], minlength=4)
    expected = 20_000 * OURS.shares(logits / np.float32(temperature)).astype(np.float64)
    # Chi-squared with three degrees of freedom: 16.3 is passed once in a thousand, and the seed is fixed.
    assert float((((counts - expected) ** 2) / expected).sum()) < 16.3


def test_some_logits_are_shifted() -> None:
    logits = row(200, 4)
    logits[7] = float("-inf")
    before, changes = logits.copy(), {3: 1.5, 7: 2.0, 150: -0.25}
    for found in (OURS.shifted(logits, changes), THEIRS.shifted(torch.from_numpy(logits), changes).numpy()):
        others = [token for token in range(200) if token not in changes]
        assert np.array_equal(found[others], before[others])
        assert found[[3, 150]].tolist() == pytest.approx([before[3] + 1.5, before[150] - 0.25])
        assert np.isneginf(found[7])
    assert np.array_equal(logits, before), "shifted copies"


@pytest.mark.parametrize("seed", range(10))
def test_shares_are_mixed_with_the_models_own(seed: int) -> None:
    logits = row(200, seed)
    logits[7] = float("-inf")
    before = logits.copy()
    shares = {3: 0.25, 7: 0.1, 150: 0.4}
    wanted = 0.25 * OURS.shares(logits).astype(np.float64)
    for token, share in shares.items():
        wanted[token] += share
    for found in (OURS.mixed(logits, shares), THEIRS.mixed(torch.from_numpy(logits), shares).numpy()):
        np.testing.assert_allclose(OURS.shares(found), wanted, rtol=2e-5, atol=1e-9)
        others = [token for token in range(200) if token not in shares]
        assert np.array_equal(found[others], before[others])
    assert np.array_equal(logits, before), "mixed copies"
