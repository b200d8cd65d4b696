"""The training of the FIM adapter: its network is the base's with the adapter, and what is saved goes on."""

from __future__ import annotations

import gc
import json
import os
import random
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from fim_server.errors import ModelError, TrainingError
from fim_server.models.smollm2.adapter import read_adapter, write_adapter
from fim_server.models.smollm2.merging import merge
from support.models.small_llama import SOURCE, small_shape, small_tokenizer, small_weights
from training.__main__ import main
from training.data.packages import SourceFile
from training.fim import step, training
from training.fim.batches import Batch, Batches, Lengths, Rest, batch_of, drawn_by
from training.fim.checkpoints import ADAPTER_FILE, BEST_FILE, BOTH, LEFT_ONLY, LOG_FILE, HeldOut, Measured
from training.fim.examples import END, MIDDLE, PREFIX, SUFFIX, Mixture, Source, Window, pack
from training.fim.network import (
    FULL,
    HALF,
    INT8,
    Int8Product,
    MergedProduct,
    Network,
    Sight,
    adapted,
    attended,
    attended_by_runs,
    fastest,
    quantised,
)
from training.fim.training import ROW_IDS, STATE_FILE, Job, Plan, Trainer, first_rows, prepare, train

FILES = [SourceFile("made", f"made/one{number}.py", SOURCE.replace("total", f"total_{number}")) for number in range(3)]

PLAN = Plan(
    minutes=1,
    rank=4,
    alpha=4.0,
    rate=3e-3,
    tokens=512,
    lengths=(256, 512),
    shares=(0.8, 0.2),
    held_out_length=256,
    arithmetic="full",
    compiled=False,
    warm_up=2,
)


def network(rank: int = 4, arithmetic: str = "full", seed: int = 0) -> Network:
    weights = {name: torch.from_numpy(weight) for name, weight in small_weights().items()}
    rows = first_rows(weights["model.embed_tokens.weight"], 1)
    dtype = torch.bfloat16 if arithmetic == HALF else torch.float32
    return Network(weights, small_shape(), rank, float(rank), rows, torch.tensor(ROW_IDS), arithmetic, dtype, seed)


def stirred(seed: int = 2) -> Network:
    """A network whose adapter does something."""
    made = network()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in made.updates:
            parameter.add_(0.05 * torch.randn(parameter.shape, generator=generator))
    return made


def window(seed: int, length: int = 256) -> Window:
    source = Source(FILES, small_tokenizer(), Mixture(), seed)
    return pack([source.draw(length // 2) for _ in range(2)], length, 0.0, 0.4, random.Random(seed))


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A folder such as the base comes in."""
    folder = tmp_path / "base"
    folder.mkdir()
    save_file(
        {name: torch.from_numpy(weight) for name, weight in small_weights().items()}, folder / "model.safetensors"
    )
    small_tokenizer().save(str(folder / "tokenizer.json"))
    (folder / "config.json").write_text(json.dumps(small_shape().config()), encoding="utf-8")
    return folder


def test_a_packed_example_has_the_logits_of_one_alone() -> None:
    """The mask's plain twin: each example read by itself."""
    trainer = Trainer(stirred(), PLAN, torch.device("cpu"))
    for seed in range(4):
        source = Source(FILES, small_tokenizer(), Mixture(), seed)
        examples = [source.draw(120) for _ in range(2)]
        packed = pack(examples, 256, 0.0, 0.4, random.Random(0))
        logits, targets, _ = trainer.predictions(batch_of([packed]))
        at = 0
        for example in examples:
            alone, own, _ = trainer.predictions(
                batch_of([pack([example], len(example.ids), 0.0, 0.4, random.Random(0))])
            )
            assert torch.allclose(logits[at : at + len(own)], alone, atol=2e-4)
            assert (targets[at : at + len(own)] == own).all()
            at += len(own)


def test_examples_of_all_lengths_are_packed_together_and_read_by_other_processes() -> None:
    lengths = Lengths((64, 200), (0.5, 0.5), 256, 1024)
    drawn = drawn_by(2, Batches(FILES, small_tokenizer(), lengths, Rest(0.4, 0.3), 3, 1))
    batches = [next(drawn) for _ in range(4)]
    assert len({tuple(batch.ids.flatten().tolist()) for batch in batches}) == len(batches)
    longest = 0
    for batch in batches:
        assert batch.ids.shape == (4, 256)
        owners = batch.owners.flatten()
        runs = list(zip(batch.runs.tolist(), batch.runs.tolist()[1:], strict=False))
        assert (runs[0][0], runs[-1][1]) == (0, 1024)
        for begin, end in runs:
            assert len(set(owners[begin:end].tolist())) == 1
            assert begin // 256 == (end - 1) // 256
            if owners[begin] >= 0:
                longest = max(longest, end - begin)
                assert batch.positions.flatten()[begin:end].tolist() == list(range(end - begin))
        assert sum(owners[begin] >= 0 for begin, _ in runs) == batch.examples >= 4
        assert int((batch.weights >= 1).sum()) == batch.middle_tokens > 0
    assert 64 < longest <= 200


@pytest.mark.skipif(not torch.cuda.is_available(), reason="the kernel is of GPUs")
def test_the_kernel_for_a_gpu_sees_what_the_mask_shows() -> None:
    batch = batch_of([window(seed) for seed in range(4)])
    generator = torch.Generator().manual_seed(1)
    shape = (*batch.ids.shape, 6, 64)
    q, k, v = (torch.randn(shape, generator=generator)[:, :, :heads] / 4 for heads in (6, 2, 2))
    seen = (batch.owners[:, :, None] == batch.owners[:, None, :]).tril()
    mask = torch.zeros(seen.shape).masked_fill(~seen, -1e9)[:, None]
    found: list[torch.Tensor] = []
    wanted: list[torch.Tensor] = []
    for results, device, dtype in (wanted, "cpu", torch.float32), (found, "cuda", torch.bfloat16):
        queries, keys, values = given = [one.to(device, dtype).requires_grad_() for one in (q, k, v)]
        mixed = (
            attended(queries, keys, values, mask)
            if device == "cpu"
            else attended_by_runs(queries, keys, values, batch.runs.to(device), 256)
        )
        (mixed.float() * torch.linspace(-1, 1, mixed.shape[-1], device=device)).sum().backward()  # type: ignore[no-untyped-call]
        results += [mixed.detach(), *(one.grad for one in given if one.grad is not None)]
    for one, other in zip(found, wanted, strict=True):
        assert (one.cpu().float() - other).norm() < 0.02 * other.norm()


def test_the_network_is_the_base_with_the_adapter_merged() -> None:
    """Against transformers' Llama on the weights that the model folder is built of."""
    from transformers import LlamaConfig, LlamaForCausalLM

    made = stirred()
    adapter = Trainer(made, PLAN, torch.device("cpu")).adapter("test")
    weights = small_weights()
    merged = merge(small_shape(), weights.__getitem__, adapter)
    llama: Any = LlamaForCausalLM(LlamaConfig(**small_shape().config()))
    state = {name: torch.from_numpy(np.array(merged(name))) for name in weights}
    llama.load_state_dict({**state, "lm_head.weight": state["model.embed_tokens.weight"]})
    ids = torch.tensor([[SUFFIX, 40, 41, PREFIX, 90, 91, 92, MIDDLE, 60, 61, END]])
    length = ids.shape[1]
    causal = torch.full((length, length), -1e9).triu(1)[None, None]
    with torch.no_grad():
        wanted = llama.eval()(input_ids=ids).logits[0]
        found = made.logits(made.hidden(ids, torch.arange(length)[None], Sight(causal))[0])
    assert torch.allclose(found, wanted, atol=1e-3)


def test_products_in_8_bits_are_near_the_whole_ones() -> None:
    generator = torch.Generator().manual_seed(0)
    x, weight = torch.randn(64, 96, generator=generator), torch.randn(48, 96, generator=generator)
    gradient = torch.randn(64, 48, generator=generator)
    x.requires_grad_()
    product = Int8Product.apply(x, *quantised(weight))
    product.backward(gradient)
    assert (product - x @ weight.t()).norm() < 0.015 * (x @ weight.t()).norm()
    assert x.grad is not None
    assert (x.grad - gradient @ weight).norm() < 0.015 * (gradient @ weight).norm()


def test_a_product_with_its_update_merged_is_the_plain_one_forward_and_backward() -> None:
    """Products of a GPU equal those of a processor."""
    generator = torch.Generator().manual_seed(0)
    shapes = ((3, 64, 96), (48, 96), (4, 96), (48, 4))
    x, weight, down, up = (torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes)
    gradient = torch.randn((3, 64, 48), generator=generator, dtype=torch.float64)

    def results(product: Callable[..., Any], of: Any) -> list[Any]:
        given = [one.clone().requires_grad_() for one in (x, down, up)]
        made = product(given[0], of, given[1], given[2], 0.7)
        made.backward(gradient)
        return [made.detach(), *(one.grad for one in given)]

    for plain, merged in zip(results(adapted, (weight,)), results(MergedProduct.apply, weight), strict=True):
        assert plain.abs().max() > 1
        assert torch.allclose(plain, merged)


def test_the_rate_falls_to_zero_at_the_end_of_the_time() -> None:
    trainer = Trainer(stirred(), replace(PLAN, decay=0.5, warm_up=1), torch.device("cpu"))
    rates = []
    for left in (1.0, 0.6, 0.25, 0.0, -0.1):
        trainer.time_left = left
        trainer.step(batch_of([window(3)]))
        rates.append(trainer.optimizer.param_groups[0]["lr"] / PLAN.rate)
    assert rates == [1, 1, 0.5, 0, 0]


def test_the_arithmetic_is_the_one_that_is_fastest_here() -> None:
    def slow(x: torch.Tensor, weight: tuple[torch.Tensor, ...]) -> None:
        time.sleep(0.05)

    def quick(x: torch.Tensor, weight: tuple[torch.Tensor, ...]) -> None:
        pass

    for kind in (INT8, HALF, FULL):
        assert fastest({one: quick if one == kind else slow for one in (INT8, HALF, FULL)}) == kind
    assert fastest() in (INT8, HALF, FULL)


@pytest.mark.parametrize("kind", [INT8, HALF])
def test_gradients_in_few_bits_point_where_the_whole_ones_do(kind: str) -> None:
    gradients = []
    for arithmetic in (FULL, kind):
        made = network(arithmetic=arithmetic)
        trainer = Trainer(made, PLAN, torch.device("cpu"))
        loss = trainer.loss(batch_of([window(1), window(2)]))
        loss.backward()  # type: ignore[no-untyped-call]
        gradients.append(torch.cat([one.grad.flatten() for one in trainer.parameters]))
    assert torch.cosine_similarity(gradients[0], gradients[1], dim=0) > 0.97


def test_steps_learn_and_the_average_is_what_is_measured() -> None:
    trainer = Trainer(network(), PLAN, torch.device("cpu"))
    batch = batch_of([window(1), window(2)])
    before = trainer.held_out([batch])
    for _ in range(60):
        trainer.step(batch)
    after = trainer.held_out([batch])
    assert after.nats < 0.8 * before.nats
    assert after.middles == before.middles > 3
    losses = float(trainer.loss(batch).detach())
    assert losses != pytest.approx(after.nats, abs=1e-4)  # the last weights are not the average


def test_what_counts_as_exact_is_what_greedy_decoding_writes() -> None:
    trainer = Trainer(network(), replace(PLAN, rate=1e-2), torch.device("cpu"))
    source = Source(FILES, small_tokenizer(), Mixture(suffix_first=1.0), 3)
    examples = [source.draw(110) for _ in range(2)]
    batch = batch_of([pack(examples, 256, 0.0, 0.4, random.Random(0))])
    for _ in range(80):
        trainer.step(batch)
    with torch.no_grad():
        for parameter, average in zip(trainer.parameters, trainer.averages, strict=True):
            average.copy_(parameter)
    exact = total = 0
    for example in examples:
        first = next(index for index, weight in enumerate(example.weights) if weight)
        for cut in range(first, len(example.ids) - 1):
            written: list[int] = []
            while len(written) < len(example.ids) - cut:
                ids = torch.tensor([example.ids[:cut] + written])
                causal = torch.full((ids.shape[1], ids.shape[1]), -1e9).triu(1)[None, None]
                with torch.no_grad():
                    hidden = trainer.network.hidden(ids, torch.arange(ids.shape[1])[None], Sight(causal))
                    written.append(int(trainer.network.logits(hidden[0, -1:]).argmax()))
            exact += written == example.ids[cut:]
            total += 1
    found = trainer.held_out([batch])
    assert found.middles == total
    assert found.exact == pytest.approx(exact / total)
    assert exact > 0


def test_an_adapter_of_lower_rank_is_gone_on_from() -> None:
    trainer = Trainer(stirred(), PLAN, torch.device("cpu"))
    trainer.averages = [parameter.detach().clone() for parameter in trainer.parameters]
    wider = Trainer(network(rank=6, seed=9), replace(PLAN, rank=6, alpha=6.0), torch.device("cpu"))
    wider.start_from(trainer.adapter("test"))
    batch = batch_of([window(1)])
    assert wider.held_out([batch]).nats == pytest.approx(trainer.held_out([batch]).nats, abs=1e-3)
    with pytest.raises(TrainingError, match="rank"):
        trainer.start_from(wider.adapter("test"))


def test_saved_training_goes_on_as_if_it_had_not_stopped(tmp_path: Path) -> None:
    batches = [batch_of([window(seed)]) for seed in range(6)]
    whole = Trainer(network(), PLAN, torch.device("cpu"))
    for batch in batches:
        whole.step(batch)
    first = Trainer(network(), PLAN, torch.device("cpu"))
    for batch in batches[:3]:
        first.step(batch)
    first.save(tmp_path, "test")
    second = Trainer(network(seed=5), PLAN, torch.device("cpu"))
    second.resume(tmp_path)
    for batch in batches[3:]:
        second.step(batch)
    assert second.progress.step == 6
    for one, other in zip(whole.averages, second.averages, strict=True):
        assert torch.allclose(one, other, atol=1e-6)
    with pytest.raises(TrainingError, match="nothing to resume"):
        second.resume(tmp_path / "elsewhere")
    wider = Trainer(network(rank=6), replace(PLAN, rank=6, alpha=6.0), torch.device("cpu"))
    with pytest.raises(TrainingError, match="of another base or rank"):
        wider.resume(tmp_path)


def test_a_state_with_the_rows_in_a_group_of_their_own_is_gone_on_from(tmp_path: Path) -> None:
    """Earlier checkpoints keep the rows in a group of their own."""
    batches = [batch_of([window(seed)]) for seed in range(6)]
    trainer = Trainer(network(), PLAN, torch.device("cpu"))
    for batch in batches[:3]:
        trainer.step(batch)
    trainer.save(tmp_path, "test")
    state = torch.load(tmp_path / STATE_FILE, weights_only=True)
    (group,) = state["optimizer"]["param_groups"]
    count = len(group["params"])
    state["optimizer"]["param_groups"] = [
        {**group, "params": [*range(count - 1)]},
        {**group, "params": [count - 1]},
    ]
    torch.save(state, tmp_path / STATE_FILE)
    second = Trainer(network(seed=5), PLAN, torch.device("cpu"))
    second.resume(tmp_path)
    for batch in batches[3:]:
        trainer.step(batch)
        second.step(batch)
    for one, other in zip(trainer.parameters, second.parameters, strict=True):
        assert torch.equal(one, other)


def test_an_adapter_of_another_base_is_none_to_go_on_from(tmp_path: Path) -> None:
    trainer = Trainer(network(), PLAN, torch.device("cpu"))
    adapter = trainer.adapter("test")
    with pytest.raises(ModelError, match="of another embedding"):
        trainer.start_from(replace(adapter, rows=adapter.rows[:, 1:]))
    trainer.start_from(replace(adapter, matrices={}))  # what an adapter does not have changes nothing


@pytest.mark.parametrize("processes", [1, 2])
def test_a_run_leaves_an_adapter_and_its_figures(tmp_path: Path, base: Path, processes: int) -> None:
    said: list[str] = []
    job = Job(replace(PLAN, minutes=0.05, held_out=4), base, FILES, FILES[:1], tmp_path / "run", recipe="test")
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    best = train(job, processes, said.append)
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == handlers
    adapter = read_adapter(tmp_path / "run" / ADAPTER_FILE)
    assert adapter.tokens > 0
    assert list(adapter.row_ids) == list(ROW_IDS)
    entries = [json.loads(line) for line in (tmp_path / "run" / LOG_FILE).read_text(encoding="utf-8").splitlines()]
    assert entries[-1]["tokens"] == adapter.tokens
    assert {"both", "left only"} <= set(entries[-1])
    assert best == Measured(adapter.tokens, HeldOut(**entries[-1]["both"]))
    best = train(replace(job, resume=True), processes, said.append)
    assert read_adapter(tmp_path / "run" / ADAPTER_FILE).tokens > adapter.tokens
    assert best is not None
    assert read_adapter(tmp_path / "run" / BEST_FILE).tokens == best.tokens


def test_the_rate_falls_alike_in_all_processes(tmp_path: Path, base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lefts = tmp_path / "lefts"
    lefts.mkdir()
    real = Trainer.step

    def step(self: Trainer, batch: Batch) -> torch.Tensor:
        with (lefts / str(self.team.rank)).open("a") as file:
            file.write(f"{self.time_left!r}\n")
        return real(self, batch)

    monkeypatch.setattr(Trainer, "step", step)
    train(
        Job(replace(PLAN, minutes=0.05, held_out=4, decay=1.0), base, FILES, FILES[:1], tmp_path / "run"),
        2,
        lambda text: None,
    )
    first, second = ([float(line) for line in (lefts / rank).read_text().split()] for rank in "01")
    assert first == second
    assert len(first) > 2
    assert 1 > first[0] > first[-1] > 0


def test_processes_share_their_gradients(tmp_path: Path, base: Path) -> None:
    """Two processes that see the same batches learn what one does."""
    # Seeds differ between processes, so only the agreement of their weights is asked: rank 0 saves, and goes on alone.
    job = Job(replace(PLAN, minutes=0.03, held_out=4), base, FILES, FILES[:1], tmp_path / "run")
    train(job, 2, lambda text: None)
    one = Trainer(network(), PLAN, torch.device("cpu"))
    one.resume(tmp_path / "run")
    assert one.progress.tokens == one.progress.step * 2 * 512


def test_where_nothing_can_be_forked_one_process_trains(
    tmp_path: Path, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pretend that the system cannot fork, like Windows."""
    monkeypatch.delattr(os, "fork")
    said: list[str] = []
    job = Job(replace(PLAN, minutes=0.01, held_out=4), base, FILES, FILES[:1], tmp_path / "run")
    assert train(job, 2, said.append) is not None
    assert "cannot be forked" in said[0]


def test_who_asks_a_training_to_end_gets_what_it_has_learned(tmp_path: Path, base: Path) -> None:
    job = Job(replace(PLAN, minutes=8, held_out=4), base, FILES, FILES[:1], tmp_path / "run")

    def end(text: str) -> None:
        if text.startswith("step "):
            os.kill(os.getpid(), signal.SIGTERM)

    best = train(job, 1, end)
    assert best is not None
    assert best.tokens >= 20 * 512


@pytest.mark.parametrize(
    ("text", "told"), [("x = 1\n", "none of 1 files has 400 characters"), ("\n" * 500, "no place for an example")]
)
@pytest.mark.parametrize(("where", "named"), [("corpus", "the text to train on"), ("held_out", "the held-out text")])
def test_files_without_examples_are_told_before_anything_is_forked(
    tmp_path: Path, base: Path, text: str, told: str, where: str, named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "run_together", lambda *_: pytest.fail("it was begun"))
    job = Job(PLAN, base, FILES, FILES, tmp_path / "run")
    empty = [SourceFile("made", "made/empty.py", text)]
    job = replace(job, corpus=empty) if where == "corpus" else replace(job, held_out=empty)
    with pytest.raises(TrainingError, match=f"^{named}: {told}"):
        train(job, 2, lambda text: None)
    assert not (tmp_path / "run").exists()


def run_fim(tmp_path: Path, *given: str) -> int:
    """The exit status of the step, on a small corpus."""
    corpus = tmp_path / "corpus"
    corpus.mkdir(exist_ok=True)
    lines = "".join(json.dumps(file._asdict()) + "\n" for file in FILES)
    for name in ("train.jsonl", "held_out.jsonl"):
        (corpus / name).write_text(lines, encoding="utf-8")
    try:
        return main(["fim", "--work", str(tmp_path), "--eager", "--minutes", "1", *given])
    except SystemExit as ended:
        return int(str(ended.code))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("--base nowhere.gguf", "nowhere.gguf"),
        ("--base merged", "has an adapter in its weights already"),
        *((f"--base BASE --minutes={wrong}", "positive") for wrong in ("nan", "inf", "-inf", "0", "-1", "1e999")),
        *((f"--base BASE --save-minutes={wrong}", "positive") for wrong in ("nan", "inf", "0")),
        *((f"--base BASE --rate={wrong}", "positive") for wrong in ("nan", "inf", "0")),
        *((f"--base BASE --decay={wrong}", "--decay") for wrong in ("nan", "inf", "-0.1", "1.1", "half", "")),
        ("--base BASE --device nonsense", "device nonsense"),
        ("--base BASE --device cuda:99", "device cuda:99"),
        ("--base BASE --device meta", "it computes nothing"),
        ("--base BASE --resume", "nothing to resume"),
        ("--base BASE --resume --run-name broken", "nothing to resume"),
        ("--base BASE --resume --run-name other --rank 3", "nothing to resume from (of another base or rank)"),
        ("--base BASE --start-from nothing", "nothing"),
        ("--base BASE --start-from broken/state.pt", "not a readable adapter"),
        ("--base BASE --start-from other/adapter.safetensors --rank 3", "the adapter's rank is 4"),
        ("--base BASE --rank 100000", "the rank is 100000"),
    ],
)
def test_wrong_arguments_are_told_in_a_line_before_anything_is_forked(
    tmp_path: Path,
    base: Path,
    arguments: str,
    told: str,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(training, "run_together", lambda *_: pytest.fail("it was begun"))
    monkeypatch.chdir(tmp_path)
    for name in ("broken", "other", "merged"):
        (tmp_path / name).mkdir()
    (tmp_path / "merged" / "build.json").write_text('{"version": 2, "adapter_sha256": "abc"}', encoding="utf-8")
    (tmp_path / "broken" / STATE_FILE).write_bytes(b"nothing")
    Trainer(network(), PLAN, torch.device("cpu")).save(tmp_path / "other", "test")
    status = run_fim(tmp_path, "--processes", "2", *arguments.replace("BASE", str(base)).split())
    printed = capfd.readouterr().err.strip()
    assert status == 2
    assert told in printed
    assert len(printed.splitlines()) == 1


def test_languages_are_trained_on_by_their_shares(
    tmp_path: Path, base: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    jobs: list[Job] = []
    monkeypatch.setattr(training, "train", lambda job, processes, say: jobs.append(job))
    for language, files in (("python", FILES[:1]), ("go", FILES[1:])):
        folder = tmp_path / "corpora" / language
        folder.mkdir(parents=True)
        lines = "".join(json.dumps(file._asdict()) + "\n" for file in files)
        (folder / "train.jsonl").write_text(lines)
        (folder / "held_out.jsonl").write_text(lines if language == "python" else "")
    assert run_fim(tmp_path, "--base", str(base), "--share", "python=0.5,go=0.5") == 0
    (job,) = jobs
    assert job.corpus == FILES
    assert job.weights is not None
    assert job.weights[0] == pytest.approx(sum(job.weights[1:]))
    assert list(job.languages) == ["python"], "a language may have nothing held out"
    for wrong, told in (
        ("go", "not LANGUAGE=SHARE"),
        ("go=0", "not positive"),
        ("zig=1", "zig/train.jsonl: not found; run `corpus` first"),
    ):
        assert run_fim(tmp_path, "--base", str(base), "--share", wrong) == 2
        assert told in capsys.readouterr().err


def test_held_out_files_of_each_language_are_measured(tmp_path: Path, base: Path) -> None:
    job = Job(
        replace(PLAN, held_out=4), base, FILES, FILES, tmp_path / "run", languages={"a": FILES[:1], "b": FILES[1:]}
    )
    probes = prepare(job).probes
    assert {name: sum(batch.examples for batch in batches) for name, batches in probes.items()} == {
        BOTH: 4,
        LEFT_ONLY: 4,
        "a": 2,
        "b": 2,
    }


def test_the_best_is_published(
    tmp_path: Path, base: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Trainer(stirred(), PLAN, torch.device("cpu")).adapter("test")

    def trained(job: Job, processes: int, say: object) -> Measured:
        job.folder.mkdir()
        for name, tokens in ((ADAPTER_FILE, 1_300_000), (BEST_FILE, 1_250_000)):
            write_adapter(job.folder / name, replace(made, tokens=tokens))
        return Measured(1_250_000, HeldOut(1.75, 0.1, 40))

    monkeypatch.setattr(training, "train", trained)
    published = tmp_path / "package" / "adapter.safetensors"
    monkeypatch.setattr(step, "ADAPTER", published)
    assert run_fim(tmp_path, "--base", str(base)) == 0
    assert not published.exists()
    (tmp_path / "fim").rename(tmp_path / "earlier")
    assert run_fim(tmp_path, "--base", str(base), "--publish") == 0
    assert read_adapter(published).tokens == 1_250_000
    assert published.stat().st_size < (tmp_path / "fim" / BEST_FILE).stat().st_size
    assert "after 1.250 M tokens (1.7500 nats" in capsys.readouterr().err


def test_rank_and_alpha_are_those_of_what_is_gone_on_from(
    tmp_path: Path, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans: list[Plan] = []
    monkeypatch.setattr(training, "train", lambda job, processes, say: plans.append(job.plan))
    made = Trainer(stirred(), replace(PLAN, alpha=2.0), torch.device("cpu")).adapter("test")
    brought = tmp_path / "brought.safetensors"
    write_adapter(brought, made, small=True)
    monkeypatch.setattr(step, "ADAPTER", brought)
    (tmp_path / "fim").mkdir()
    write_adapter(tmp_path / "fim" / ADAPTER_FILE, made)
    for arguments in (
        (),
        ("--from-committed",),
        ("--start-from", str(brought)),
        ("--resume",),
        ("--from-committed", "--rank", "32"),
        ("--rank", "32", "--alpha", "8"),
    ):
        assert run_fim(tmp_path, "--base", str(base), *arguments) == 0
    sizes = [(plan.rank, plan.alpha) for plan in plans]
    assert sizes == [(16, 16.0), (4, 2.0), (4, 2.0), (4, 2.0), (32, 32.0), (32, 8.0)]


def test_weights_of_a_rate_that_falls_are_averaged_over_less(
    tmp_path: Path, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans: list[Plan] = []
    monkeypatch.setattr(training, "train", lambda job, processes, say: plans.append(job.plan))
    for arguments in ((), ("--decay", "0.4")):
        assert run_fim(tmp_path, "--base", str(base), *arguments) == 0
    assert [(plan.decay, plan.average) for plan in plans] == [(0.0, 0.2), (0.4, 0.05)]


def test_training_with_another_alpha_is_not_gone_on_with(tmp_path: Path) -> None:
    Trainer(network(), PLAN, torch.device("cpu")).save(tmp_path, "test")
    with pytest.raises(TrainingError, match="its alpha is 4, not 8"):
        Trainer(network(), replace(PLAN, alpha=8.0), torch.device("cpu")).resume(tmp_path)


@pytest.mark.parametrize("lengths", ["abc", "256", "256:0", "256:nan", "64:1", "256:1,256:2", "256:1e308,512:1e308"])
def test_lengths_that_are_none_are_told(
    tmp_path: Path, base: Path, lengths: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_fim(tmp_path, "--base", str(base), "--lengths", lengths) == 2
    assert "--lengths" in capsys.readouterr().err


def test_windows_have_room_for_the_longest_examples(tmp_path: Path, base: Path) -> None:
    job = Job(replace(PLAN, window=256), base, FILES, FILES[:1], tmp_path / "run")
    with pytest.raises(TrainingError, match="windows of 256 tokens, and examples of up to 512"):
        train(job, 1, lambda text: None)
    for lengths, window in (((10**8,), None), ((256,), 10**8)):
        job = replace(job, plan=replace(PLAN, lengths=lengths, shares=(1.0,), window=window))
        with pytest.raises(TrainingError, match="examples and windows have at most"):
            train(job, 1, lambda text: None)


def test_who_draws_for_another_and_fails_is_told_in_a_line() -> None:
    lengths = Lengths((20,), (1.0,), 256, 1024)
    drawn = drawn_by(
        1, Batches([SourceFile("made", "made/a.py", "# " + 500 * "a")], small_tokenizer(), lengths, Rest(0, 0), 3, 1)
    )
    with pytest.raises(
        TrainingError, match=r"^a process that draws examples failed: .*no place for an example"
    ) as failed:
        next(drawn)
    assert "\n" not in str(failed.value)
    del drawn, failed  # its traceback holds the process that draws
    gc.collect()
