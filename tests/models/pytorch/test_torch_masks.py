"""Packed masks on tensors: every type and shape, in place and in copies, on the CPU and as other devices do it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from fim_server.models.masking import contains, word_count
from fim_server.models.pytorch.masks import _refused, apply_mask, apply_mask_, mask_buffer


@pytest.mark.parametrize("size", [1, 31, 32, 33, 300])
def test_a_packed_mask_is_applied_bit_by_bit(size: int) -> None:
    generator = np.random.default_rng(size)
    allowed = generator.random(size) < 0.5
    padded = np.zeros(word_count(size) * 32, dtype=bool)
    padded[:size] = allowed
    words = np.packbits(padded, bitorder="little").view("<u4").astype(np.uint32)
    logits = torch.randn(size)
    masked = apply_mask(logits, words)
    assert torch.equal(masked.isinf(), torch.from_numpy(~allowed))
    assert torch.equal(masked[~masked.isinf()], logits[torch.from_numpy(allowed)])
    assert [contains(words, token) for token in range(size)] == allowed.tolist()


def test_logits_beyond_the_mask_are_refused_and_words_beyond_the_logits_do_not_count() -> None:
    words = np.full(2, 0xFFFFFFFF, dtype=np.uint32)
    assert torch.equal(apply_mask(torch.zeros(40), words), torch.zeros(40))
    for rows in ((), (3,)):
        masked = apply_mask(torch.zeros(*rows, 70), words)
        assert torch.equal(masked[..., :64], torch.zeros(*rows, 64))
        assert bool((masked[..., 64:] == float("-inf")).all())
    assert not contains(words, 64)


FLOATS = [torch.float32, torch.bfloat16, torch.float16, torch.float64]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize(("size", "masked_size"), [(1, 1), (33, 33), (300, 300), (64, 320), (320, 33), (1000, 990)])
def test_a_batch_of_masks_is_applied_row_by_row(dtype: torch.dtype, size: int, masked_size: int) -> None:
    generator = np.random.default_rng(size)
    rows = 5
    packed, words = mask_buffer(masked_size, rows)
    assert [*packed.shape] == [*words.shape] == [rows, word_count(masked_size)]
    words[:] = generator.integers(0, 1 << 32, words.shape, dtype=np.uint32)
    words[0], words[1] = 0, 0xFFFFFFFF
    logits = torch.randn(rows, size).to(dtype)
    logits[2] = float("nan")
    logits[3] = float("inf")
    logits[4] = -0.0
    expected = logits.clone()
    beyond = word_count(masked_size) * 32
    for row in range(rows):
        for token in range(size):
            if token >= beyond or not contains(words[row], token):
                expected[row, token] = float("-inf")
    for form in (words, packed, words.copy(order="F")):
        assert same_bits(apply_mask(logits, form), expected)
        changed = logits.clone()
        assert apply_mask_(changed, form) is changed
        assert same_bits(changed, expected)
    for row in range(rows):
        assert same_bits(apply_mask(logits[row], words[row]), expected[row])
        assert same_bits(apply_mask(logits[row], packed[row]), expected[row])
    assert same_bits(apply_mask(logits, words[4])[4], expected[4])  # one mask for all rows
    assert bool(apply_mask(logits, words[0]).isinf().all())


def same_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Equality that takes NaN for equal to itself and zeros of different signs for different."""
    integers = {2: torch.int16, 4: torch.int32, 8: torch.int64}[one.element_size()]
    return one.dtype == other.dtype and torch.equal(one.view(integers), other.view(integers))


def test_unpacking_as_on_other_devices_says_the_same() -> None:
    words = np.random.default_rng(0).integers(0, 1 << 32, (3, 4), dtype=np.uint32)
    packed = torch.from_numpy(words.view(np.int32))
    for size in (1, 31, 97, 128):
        refused = _refused(packed[:, : word_count(size)], size)
        expected = [[not contains(row, token) for token in range(size)] for row in words]
        assert refused.tolist() == expected
        assert _refused(packed[0, : word_count(size)], size).tolist() == expected[0]


def test_masks_are_applied_to_parts_of_tensors_in_place() -> None:
    words = np.array([0b1010, 0], dtype=np.uint32)
    whole = torch.zeros(4, 3, 8)
    apply_mask_(whole[:, 1], words)
    assert bool((whole[:, [0, 2]] == 0).all())
    assert torch.equal(whole[:, 1].isinf(), torch.tensor([True, False] * 2 + [True] * 4).expand(4, -1))
    columns = torch.zeros(8, 2).T  # not contiguous
    apply_mask_(columns, words)
    assert columns[0].isinf().tolist() == [True, False, True, False, True, True, True, True]


def test_masks_are_applied_in_inference_mode_and_with_gradients() -> None:
    words = np.array([0b01], dtype=np.uint32)
    with torch.inference_mode():
        logits = torch.zeros(2)
    assert apply_mask(logits, words).tolist() == [0.0, float("-inf")]
    assert logits.tolist() == [0.0, 0.0]
    assert apply_mask_(logits, words).tolist() == [0.0, float("-inf")]
    learnt = torch.zeros(2, requires_grad=True)
    apply_mask(learnt, words)[0].backward()  # type: ignore[no-untyped-call]
    assert learnt.grad is not None
    assert learnt.grad.tolist() == [1.0, 0.0]


def test_read_only_words_are_fine_and_other_types_and_shapes_are_not() -> None:
    frozen = np.frombuffer(b"\x01\0\0\0", dtype=np.uint32)
    assert apply_mask(torch.zeros(2), frozen).tolist() == [0.0, float("-inf")]
    wrong: list[tuple[Any, Any]] = [
        (torch.zeros(2), np.zeros(1, dtype=np.int64)),
        (torch.zeros(2), torch.zeros(1, dtype=torch.int64)),
        (torch.zeros(2), np.zeros((1, 1), dtype=np.uint32)),
        (torch.zeros(2, 2), np.zeros((3, 1), dtype=np.uint32)),
        (torch.zeros(2, 2, 2), np.zeros(1, dtype=np.uint32)),
        (torch.zeros(()), np.zeros(1, dtype=np.uint32)),
        (torch.zeros(2), np.zeros((), dtype=np.uint32)),
        (torch.zeros(2, dtype=torch.int64), np.zeros(1, dtype=np.uint32)),
    ]
    for logits, words in wrong:
        with pytest.raises(ValueError, match=r"shape|type"):
            apply_mask(logits, words)


def test_a_mask_buffer_is_one_memory_in_two_views() -> None:
    for rows in (None, 3):
        packed, words = mask_buffer(33, rows)
        assert [*packed.shape] == [*words.shape] == ([2] if rows is None else [3, 2])
        assert not words.any()
        words[..., 0] = 0x80000001
        assert bool((packed[..., 0] == -(2**31) + 1).all())
        assert packed.is_pinned() == torch.cuda.is_available()
