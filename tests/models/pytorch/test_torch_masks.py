"""Packed masks on tensors: every type and shape, in place and in copies, on the CPU and as other devices do it."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from fim_server.models.masking import contains, word_count
from fim_server.models.pytorch import masks
from fim_server.models.pytorch.masks import KERNELS, _refused, apply_mask, apply_mask_, mask_buffer, masked_argmax


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


# --- the likeliest allowed token ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize(("size", "masked_size"), [(1, 1), (33, 33), (64, 320), (1000, 990), (40, 32)])
def test_the_likeliest_allowed_token(dtype: torch.dtype, size: int, masked_size: int) -> None:
    generator = np.random.default_rng(size)
    packed, words = mask_buffer(masked_size, 5)
    words[:] = generator.integers(0, 1 << 32, words.shape, dtype=np.uint32)
    words[0] = 0
    logits = torch.randn(5, size).to(dtype)
    logits[1] = 0.0
    logits[2, ::2] = float("nan")
    logits[3, ::3] = float("inf")
    before = logits.clone()
    expected = apply_mask(logits, words).argmax(dim=-1)
    out = torch.full((5,), -1)
    for form in (words, packed):
        assert torch.equal(masked_argmax(logits, form), expected)
        assert masked_argmax(logits, form, out) is out
        assert torch.equal(out, expected)
    assert int(masked_argmax(logits[4], words[4])) == int(expected[4])
    assert torch.equal(masked_argmax(logits, words[3])[3], expected[3])
    assert same_bits(logits, before)
    with torch.inference_mode():
        out = torch.zeros(5, dtype=torch.int64)
    assert torch.equal(masked_argmax(logits.float().requires_grad_(), words, out), expected)
    assert masked_argmax(logits[:0], words[:0]).shape == (0,)


def test_bad_places_for_the_choice_are_refused() -> None:
    logits, words = torch.zeros(2, 3), np.zeros((2, 1), dtype=np.uint32)
    for out in (torch.zeros(2), torch.zeros(3, dtype=torch.int64), torch.zeros(2, dtype=torch.int64, device="meta")):
        with pytest.raises(ValueError, match="cannot hold"):
            masked_argmax(logits, words, out)
    with pytest.raises(ValueError, match="no logits"):
        masked_argmax(logits[:, :0], words)
    with pytest.raises(ValueError, match="masks of shape"):
        masked_argmax(logits, words[:1])


# --- kernels --------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed")
def test_kernels_in_the_interpreter() -> None:
    cases = Path(__file__).with_name("test_kernels.py")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", str(cases)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        command, env=environment | {"TRITON_INTERPRET": "1"}, capture_output=True, text=True, timeout=500
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert " passed" in done.stdout


@pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed")
@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_kernels_compile_for_a_gpu(dtype: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The interpreter accepts more than the compiler, which needs no GPU."""
    from triton import compile as compiled
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from fim_server.models.pytorch import kernels

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))

    def code(kernel: Any, constant: int, **kinds: str) -> str:
        names = list(kernel.arg_names)
        assert names[:-1] == list(kinds)
        aligned = [place for place, name in enumerate(names) if name in ("logits", "words", "logits_stride")]
        source = ASTSource(
            fn=kernel,
            signature={**kinds, names[-1]: "constexpr"},
            constexprs={(len(kinds),): constant},
            attrs={(place,): [["tt.divisibility", 16]] for place in aligned},
        )
        target = GPUTarget("cuda", 90, 32)
        return str(compiled(source, target=target, options={"enable_fp_fusion": False}).asm["ptx"])

    given = {"logits": f"*{dtype}", "words": "*i32"}
    sizes = ["size", "words_a_row", "logits_stride", "words_stride"]
    code(kernels._refuse, kernels.STORED, **given, **dict.fromkeys(sizes, "i32"))
    sizes = ["size", "logits_stride", "words_stride", "tiles", "parts"]
    found = code(kernels._choose_in_parts, kernels.TILE, **given, keys="*i64", **dict.fromkeys(sizes, "i32"))
    assert "ld.global.v4.b32" in found, "16 bytes of logits at once"
    code(kernels._choose_of_parts, kernels.MOST_PARTS, keys="*i64", chosen="*i64", parts="i32", chosen_stride="i32")


def test_logits_that_kernels_take(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = torch.zeros(4, 6)
    assert not KERNELS.take(batch)
    monkeypatch.setattr(KERNELS, "devices", {"cpu"})
    for given in (batch, batch[::2], batch[:, 1:4], batch[:1], torch.zeros(1, 1), batch.double()):
        assert KERNELS.take(given)
    refused = (
        *(batch[0], batch[:0], batch[:, :0], batch.T, batch[:, ::2], batch[:1].expand(3, -1)),
        *(torch.zeros(2, 2, requires_grad=True), torch.nn.Parameter(batch), torch.zeros(2, 2, device="meta")),
    )
    for given in refused:
        assert not KERNELS.take(given)


def mask_with(kernels: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mask and choose twice, with a module in the kernels' place, and check the results."""
    monkeypatch.setattr(masks, "KERNELS", masks.Kernels())
    monkeypatch.setattr(masks.KERNELS, "devices", {"cpu"})
    name = "fim_server.models.pytorch.kernels"
    monkeypatch.delattr(sys.modules["fim_server.models.pytorch"], "kernels", raising=False)
    monkeypatch.setitem(sys.modules, name, kernels)
    if kernels is not None:
        monkeypatch.setattr(sys.modules["fim_server.models.pytorch"], "kernels", kernels, raising=False)
    words = np.array([[0b01], [0b10]], dtype=np.uint32)
    for _ in range(2):
        logits = torch.zeros(2, 2)
        assert masked_argmax(logits, words).tolist() == [0, 1]
        assert apply_mask_(logits, words).isinf().tolist() == [[False, True], [True, False]]


def test_without_triton_torch_does_it(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        mask_with(None, monkeypatch)
    assert masks.KERNELS.failure
    assert not caplog.records


def test_kernels_that_cannot_be_compiled_are_told_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    calls = []

    def fail(*given: Any) -> None:
        calls.append(given)
        raise RuntimeError("Failed to find C compiler.\nPlease specify via CC")

    with caplog.at_level(logging.INFO):
        mask_with(SimpleNamespace(choose=fail, refuse_=fail), monkeypatch)
    assert len(calls) == 1
    [record] = caplog.records
    assert record.levelname == "WARNING"
    assert record.getMessage().endswith("Triton: Failed to find C compiler")


def test_memory_that_runs_out_is_no_failure_of_the_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*given: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    with pytest.raises(torch.OutOfMemoryError):
        mask_with(SimpleNamespace(choose=fail), monkeypatch)
    assert masks.KERNELS.failure is None


def test_the_cpu_needs_no_triton() -> None:
    program = """
import sys, torch
from fim_server.models.pytorch.masks import apply_mask, masked_argmax
words = torch.ones(2, 1, dtype=torch.int32)
masked_argmax(apply_mask(torch.zeros(2, 32), words), words)
print("triton" in sys.modules)
"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=300)
    assert found.stdout.split() == ["False"]
