"""The training of the FIM adapter: its network is the base's with the adapter, and what is saved goes on."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from fim_server.errors import TrainingError
from fim_server.models.adapter import read_adapter
from fim_server.models.smollm2.merging import merge
from fim_server.training.__main__ import main
from fim_server.training.fim.examples import END, MIDDLE, PREFIX, SUFFIX, Mixture, Source, Window, pack
from fim_server.training.fim.network import INT8, Int8Product, Network, quantised
from fim_server.training.fim.training import ADAPTER_FILE, LOG_FILE, ROW_IDS, Job, Plan, Trainer, first_rows, train
from fim_server.training.packages import SourceFile
from small_llama import SOURCE, small_shape, small_tokenizer, small_weights

FILES = [SourceFile("made", f"made/one{number}.py", SOURCE.replace("total", f"total_{number}")) for number in range(3)]

PLAN = Plan(minutes=1, rank=4, alpha=4.0, rate=3e-3, tokens=512, arithmetic="full", compiled=False, warm_up=2)


def network(rank: int = 4, arithmetic: str = "full", seed: int = 0) -> Network:
    weights = {name: torch.from_numpy(weight) for name, weight in small_weights().items()}
    rows = first_rows(weights["model.embed_tokens.weight"], 1)
    return Network(weights, small_shape(), rank, float(rank), rows, torch.tensor(ROW_IDS), arithmetic, seed=seed)


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
    trainer = Trainer(stirred(), PLAN, torch.device("cpu"), 1)
    for seed in range(4):
        source = Source(FILES, small_tokenizer(), Mixture(), seed)
        examples = [source.draw(120) for _ in range(2)]
        packed = pack(examples, 256, 0.0, 0.4, random.Random(0))
        logits, targets, _ = trainer.predictions([packed])
        at = 0
        for example in examples:
            alone, own, _ = trainer.predictions([pack([example], len(example.ids), 0.0, 0.4, random.Random(0))])
            assert torch.allclose(logits[at : at + len(own)], alone, atol=2e-4)
            assert (targets[at : at + len(own)] == own).all()
            at += len(own)


def test_the_network_is_the_base_with_the_adapter_merged() -> None:
    """Against transformers' Llama on the weights that the model folder is built of."""
    from transformers import LlamaConfig, LlamaForCausalLM

    made = stirred()
    adapter = Trainer(made, PLAN, torch.device("cpu"), 1).adapter("test")
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
        found = made.logits(made.hidden(ids, torch.arange(length)[None], causal)[0])
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


def test_gradients_in_8_bits_point_where_the_whole_ones_do() -> None:
    gradients = []
    for arithmetic in ("full", INT8):
        made = network(arithmetic=arithmetic)
        trainer = Trainer(made, PLAN, torch.device("cpu"), 1)
        loss, _ = trainer.loss([window(1), window(2)])
        loss.backward()  # type: ignore[no-untyped-call]
        gradients.append(torch.cat([one.grad.flatten() for one in trainer.parameters]))
    assert torch.cosine_similarity(gradients[0], gradients[1], dim=0) > 0.97


def test_steps_learn_and_the_average_is_what_is_measured() -> None:
    trainer = Trainer(network(), PLAN, torch.device("cpu"), 1)
    batch = [window(1), window(2)]
    before = trainer.held_out([batch])
    for _ in range(60):
        trainer.step(batch)
    after = trainer.held_out([batch])
    assert after.nats < 0.8 * before.nats
    assert after.middles == before.middles > 3
    losses = float(trainer.loss(batch)[0].detach())
    assert losses != pytest.approx(after.nats, abs=1e-4)  # the last weights are not the average


def test_what_counts_as_exact_is_what_greedy_decoding_writes() -> None:
    trainer = Trainer(network(), replace(PLAN, rate=1e-2), torch.device("cpu"), 1)
    source = Source(FILES, small_tokenizer(), Mixture(suffix_first=1.0), 3)
    examples = [source.draw(110) for _ in range(2)]
    batch = [pack(examples, 256, 0.0, 0.4, random.Random(0))]
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
                    hidden = trainer.network.hidden(ids, torch.arange(ids.shape[1])[None], causal)
                    written.append(int(trainer.network.logits(hidden[0, -1:]).argmax()))
            exact += written == example.ids[cut:]
            total += 1
    found = trainer.held_out([batch])
    assert found.middles == total
    assert found.exact == pytest.approx(exact / total)
    assert exact > 0


def test_an_adapter_of_lower_rank_is_gone_on_from() -> None:
    trainer = Trainer(stirred(), PLAN, torch.device("cpu"), 1)
    trainer.averages = [parameter.detach().clone() for parameter in trainer.parameters]
    wider = Trainer(network(rank=6, seed=9), replace(PLAN, rank=6, alpha=6.0), torch.device("cpu"), 1)
    wider.start_from(trainer.adapter("test"))
    batch = [window(1)]
    assert wider.held_out([batch]).nats == pytest.approx(trainer.held_out([batch]).nats, abs=1e-3)
    with pytest.raises(TrainingError, match="rank"):
        trainer.start_from(wider.adapter("test"))


def test_saved_training_goes_on_as_if_it_had_not_stopped(tmp_path: Path) -> None:
    batches = [[window(seed)] for seed in range(6)]
    whole = Trainer(network(), PLAN, torch.device("cpu"), 1)
    for batch in batches:
        whole.step(batch)
    first = Trainer(network(), PLAN, torch.device("cpu"), 1)
    for batch in batches[:3]:
        first.step(batch)
    first.save(tmp_path, "test")
    second = Trainer(network(seed=5), PLAN, torch.device("cpu"), 1)
    second.resume(tmp_path)
    for batch in batches[3:]:
        second.step(batch)
    assert second.progress.step == 6
    for one, other in zip(whole.averages, second.averages, strict=True):
        assert torch.allclose(one, other, atol=1e-6)
    with pytest.raises(TrainingError, match="nothing to resume"):
        second.resume(tmp_path / "elsewhere")


@pytest.mark.parametrize("processes", [1, 2])
def test_a_run_leaves_an_adapter_and_its_figures(tmp_path: Path, base: Path, processes: int) -> None:
    said: list[str] = []
    job = Job(replace(PLAN, minutes=0.05, held_out=4), base, FILES, FILES[:1], tmp_path / "run", recipe="test")
    train(job, processes, said.append)
    adapter = read_adapter(tmp_path / "run" / ADAPTER_FILE)
    assert adapter.tokens > 0
    assert list(adapter.row_ids) == list(ROW_IDS)
    entries = [json.loads(line) for line in (tmp_path / "run" / LOG_FILE).read_text(encoding="utf-8").splitlines()]
    assert entries[-1]["tokens"] == adapter.tokens
    assert {"both", "left only"} <= set(entries[-1])
    train(replace(job, resume=True), processes, said.append)
    assert read_adapter(tmp_path / "run" / ADAPTER_FILE).tokens > adapter.tokens


def test_processes_share_their_gradients(tmp_path: Path, base: Path) -> None:
    """Two processes that see the same batches learn what one does."""
    # Seeds differ between processes, so only the agreement of their weights is asked: rank 0 saves, and goes on alone.
    job = Job(replace(PLAN, minutes=0.03, held_out=4), base, FILES, FILES[:1], tmp_path / "run")
    train(job, 2, lambda text: None)
    one = Trainer(network(), PLAN, torch.device("cpu"), 1)
    one.resume(tmp_path / "run")
    assert one.progress.tokens == one.progress.step * 2 * 512


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--base", "nowhere.gguf"], "nowhere.gguf"),
        (["--base", "BASE", "--minutes", "0"], "not positive"),
        (["--base", "BASE", "--resume"], "nothing to resume"),
        (["--base", "BASE", "--start-from", "nothing"], "nothing"),
    ],
)
def test_wrong_arguments_are_told_in_a_line(
    tmp_path: Path, base: Path, arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    lines = "".join(json.dumps(file._asdict()) + "\n" for file in FILES)
    for name in ("train.jsonl", "held_out.jsonl"):
        (corpus / name).write_text(lines, encoding="utf-8")
    given = [str(base) if one == "BASE" else one for one in arguments]
    status = main(["fim", "--work", str(tmp_path), "--processes", "1", "--eager", "--minutes", "1", *given])
    printed = capsys.readouterr().err.strip()
    assert status == 2
    assert told in printed
    assert len(printed.splitlines()) == 1
