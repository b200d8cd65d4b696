"""Runs: what is measured, what is written, and that a kill at any point loses nothing and doubles nothing."""

from __future__ import annotations

import math
import os
import random
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from fim_server import Language
from fim_server.datasets import Sample, read_samples, write_samples
from fim_server.decoding.ending.rest_of_line import RestOfLine
from fim_server.decoding.loop.healing import Healing
from fim_server.decoding.loop.run import start as begin
from fim_server.evaluation.records import (
    MODES,
    RunInfo,
    encode_record,
    read_records,
    read_run,
)
from fim_server.evaluation.running import measures, modes, provenance, run, worker
from fim_server.evaluation.running.journal import Journal
from fim_server.evaluation.running.judge import Judge
from fim_server.evaluation.running.modes import Decoder, follow, tokens_of_line
from fim_server.evaluation.running.shards import Shard
from fim_server.evaluation.running.time_limit import TimeLimit
from fim_server.evaluation.running.worker import Worker
from fim_server.models.model import FimModel
from fim_server.models.onnx import backend as onnx_backend
from fim_server.models.source import locate
from fim_server.models.store.manifest import write_manifest
from fim_server.text.document import Split
from support.command_line import run_command
from support.evaluation.evaluating import Eval, results, size_of
from support.evaluation.evaluation_samples import FILE, record_of, sample_of
from support.unix import KILLED

pytest_plugins = ("support.evaluation.fixtures",)

LONG = os.environ.get("FIM_SERVER_LONG") == "1"


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    made = Judge()
    yield made
    made.close()


def test_a_run_measures_every_sample_in_every_mode(evaluate: Eval, data: Path, judge: Judge, tmp_path: Path) -> None:
    status, output, errors = evaluate(tmp_path / "run", landing=True)
    assert (status, output) == (0, "")
    assert "14 of 14 samples" in errors
    found = {record.key: record for record in read_run(tmp_path / "run")}
    samples = {sample.id: sample for sample in read_samples(data)}
    assert set(found) == {(name, mode) for name in samples for mode in MODES}
    language = Language.load("python", RunInfo.read(tmp_path / "run").language_version)
    texts = 0
    for (name, mode), record in found.items():
        sample = samples[name]
        assert record.error is None
        assert record.reference == sample.middle
        assert record.hole_characters == len(sample.middle)
        assert sample.left.endswith(record.left_tail)
        assert sample.right.startswith(record.right_head)
        assert record.prompt_hash == found[name, "unconstrained"].prompt_hash
        assert record.tokens is not None
        assert record.complete_at is not None
        if record.text is None:
            assert (record.won, record.parses, record.complete, record.text_tokens) == (None, False, False, 0)
            continue
        texts += 1
        assert record.parses is judge.parses(sample.filled(record.text))
        assert record.complete is language.open(sample.left, sample.right).check(record.text).complete
        assert record.edit_similarity == pytest.approx(measures.edit_similarity(record.text, sample.middle), abs=1e-6)
        assert record.text_tokens is not None
        inside = any(first <= record.text_tokens <= last for first, last in record.complete_at)
        if mode != "unconstrained":
            assert record.complete
            assert inside
        free = found[name, "unconstrained"]
        if mode == "checked":
            assert free.text is not None
            assert free.text.startswith(record.text)
        if mode == "constrained" and not record.refused and not record.landing:
            assert record.tokens == free.tokens
    assert texts > 14
    assert {record.won for record in found.values()} & {"landed", "point", "prefix", "budget"}


def test_the_file_is_what_was_asked_for(evaluate: Eval, data: Path, tiny_folder: Path, tmp_path: Path) -> None:
    evaluate(tmp_path / "run", "--modes", "constrained", "--limit", "3", "--python-version", "3.10")
    info = RunInfo.read(tmp_path / "run")
    assert info.data[0].samples == 14
    assert (info.samples, info.modes, info.budget, info.batch) == (3, ("constrained",), 12, 4)
    assert (info.model, info.language_version, info.device) == (str(tiny_folder), "3.10", "cpu")
    assert info.model_sha256 == provenance.model_hash(str(tiny_folder)) != provenance.model_hash(None)
    assert len(results(tmp_path / "run")) == 3


def test_a_model_is_told_by_its_weights_or_else_by_its_export(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    shutil.copytree(locate("embedded"), one)
    whole = provenance.model_hash(str(one))
    (one / "model.safetensors").unlink()
    small = provenance.model_hash(str(one))
    assert small != whole
    shutil.copytree(one, other)
    write_manifest(other)
    assert provenance.model_hash(str(other)) == small, "checksums and stamps are of the folder, not of the model"
    (other / "onnx" / "model.onnx").write_bytes(b"another")
    assert provenance.model_hash(str(other)) != small
    shutil.rmtree(other / "onnx")
    assert provenance.model_hash(str(other)) != small


def test_prefixes_that_fit_are_those_that_checking_each_finds(tiny: FimModel) -> None:
    language = Language.load("python")
    vocabulary = tiny.vocabulary
    choose = random.Random(1)
    complete = 0
    for number in range(12):
        sample = sample_of(number)
        session = language.open(sample.left, sample.right)
        tokens = vocabulary.encode(sample.middle + choose.choice(["", "\n", " + 1", ")", "\n    x"]))
        bytes_of = [b"".join(map(vocabulary.token_bytes, tokens[:n])) for n in range(len(tokens) + 1)]
        wanted = [n for n, text in enumerate(bytes_of) if session.check(text.decode()).complete]
        assert follow(session, tiny, tokens).complete == wanted
        complete += len(wanted)
    assert complete > 12


def test_a_run_goes_on_wherever_it_was_cut(evaluate: Eval, tmp_path: Path) -> None:
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    evaluate(whole)
    wanted = results(whole)
    content = (whole / "samples.jsonl").read_bytes()
    choose = random.Random(2)
    for size in [0, len(content), *(choose.randrange(len(content)) for _ in range(4))]:
        shutil.rmtree(cut, ignore_errors=True)
        cut.mkdir()
        shutil.copy(whole / "run.json", cut)
        (cut / "samples.jsonl").write_bytes(content[:size])
        assert evaluate(cut)[0] == 0
        assert results(cut) == wanted
        kept = content[: content.rfind(b"\n", 0, size) + 1]
        assert (cut / "samples.jsonl").read_bytes().startswith(kept)


def test_a_run_in_pieces_has_the_results_of_a_whole_one(
    evaluate: Eval, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, pieces = tmp_path / "whole", tmp_path / "pieces"
    evaluate(whole)
    left = 14
    monkeypatch.setattr(run, "TimeLimit", lambda ends: TimeLimit(0.0, iter(range(99)).__next__))  # a batch a piece
    while left > 4:
        left -= 4
        status, _, errors = evaluate(pieces, "--minutes", "1")
        assert (status, f"out of time, {left} samples are left" in errors) == (5, True)
        assert len(results(pieces)) == (14 - left) * len(MODES)
    assert evaluate(pieces, "--minutes", "1")[0] == 0
    assert results(pieces) == results(whole)


@pytest.mark.parametrize(
    ("ends", "times", "begin"),
    [
        (None, [0, 900, 9000], [True, True, True]),
        (720, [0, 300, 500], [True, True, False]),  # a third would end at 800
        (720, [730, 800], [True, False]),
    ],
)
def test_no_batch_begins_that_would_end_too_late(ends: float | None, times: list[float], begin: list[bool]) -> None:
    limit = TimeLimit(ends, iter(times).__next__)
    assert [limit.has_time() for _ in times] == begin


def test_a_killed_run_loses_and_doubles_nothing(evaluate: Eval, tmp_path: Path, command: list[str]) -> None:
    """Real processes, killed when they have written some more, and again while they start."""
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    choose = random.Random(0)
    file = killed / "samples.jsonl"
    for _ in range(12 if LONG else 2):
        process = subprocess.Popen([*command, "--out", str(killed)], stderr=subprocess.DEVNULL)
        wanted = size_of(file) + choose.randrange(1, 8000)
        while process.poll() is None and size_of(file) < wanted:
            time.sleep(0.001)
        process.kill()
        assert process.wait() in (KILLED, 0)
    assert 0 < len(results(killed)) < 14 * len(MODES) or LONG
    assert subprocess.run([*command, "--out", str(killed)], stderr=subprocess.DEVNULL, check=False).returncode == 0
    evaluate(whole)
    assert results(killed) == results(whole)


def test_shards_together_are_the_whole(evaluate: Eval, tmp_path: Path) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    evaluate(whole, "--batch", "1")
    for index in (2, 1):
        assert evaluate(parts, "--batch", "1", "--shard", f"{index}/3")[0] == 0
    assert sorted(path.name for path in parts.glob("samples*")) == ["samples-1-of-3.jsonl", "samples-2-of-3.jsonl"]
    assert evaluate(parts, "--batch", "1")[0] == 0  # what the third lacks
    assert results(parts) == results(whole)
    assert len(list(read_records(parts / "samples.jsonl"))) == len(MODES) * 4


def test_more_samples_may_follow(evaluate: Eval, tmp_path: Path) -> None:
    evaluate(tmp_path / "run", "--limit", "5")
    assert evaluate(tmp_path / "run", "--limit", "3")[0] == 0
    assert RunInfo.read(tmp_path / "run").limit == 5
    evaluate(tmp_path / "run", "--limit", "7")
    assert {name for name, _ in results(tmp_path / "run")} == {f"sample-{number}" for number in range(7)}
    evaluate(tmp_path / "run")
    assert RunInfo.read(tmp_path / "run").limit is None
    assert len(results(tmp_path / "run")) == len(MODES) * 14


@pytest.mark.parametrize(
    "changed",
    [
        ("--budget", "13"),
        ("--batch", "5"),
        ("--seed", "1"),
        ("--temperature", "0"),
        ("--modes", "constrained,unconstrained"),
        ("--max-prompt-tokens", "99"),
        ("--python-version", "3.9"),
        ("--no-landing",),
        ("--contexts", "left"),
        ("--no-healing",),
        ("--single-line",),
        ("--score",),
        ("--no-truncation",),
    ],
)
def test_other_settings_are_refused(evaluate: Eval, tmp_path: Path, changed: Sequence[str]) -> None:
    evaluate(tmp_path / "run", "--limit", "1", landing=changed == ("--no-landing",))
    before = (tmp_path / "run" / "samples.jsonl").read_bytes()
    status, output, errors = evaluate(tmp_path / "run", "--limit", "2", *changed)
    assert (status, output, errors.count("\n")) == (2, "", 1)
    assert changed[0].replace("--no-", "").replace("--", "") in errors
    assert (tmp_path / "run" / "samples.jsonl").read_bytes() == before


def test_other_data_and_another_model_are_refused(
    evaluate: Eval, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluate(tmp_path / "run", "--limit", "1")
    other = tmp_path / "other.jsonl"
    write_samples(other, [sample_of(99)])
    status, _, errors = evaluate(tmp_path / "run", data=other)
    assert (status, errors.count("\n")) == (2, 1)
    assert "--data" in errors
    monkeypatch.setattr(worker, "model_hash", lambda *asked: "3" * 64)
    status, _, errors = evaluate(tmp_path / "run")
    assert (status, errors.count("\n")) == (2, 1)
    assert "--model" in errors


def test_bad_input_is_one_line(evaluate: Eval, data: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "torn.jsonl").write_text('{"id": 1\n')
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "samples.jsonl").write_bytes(encode_record(record_of()))
    cases: list[tuple[Path, list[str], Path]] = [
        (tmp_path / "run", [], tmp_path / "nowhere.jsonl"),
        (tmp_path / "run", [], tmp_path / "torn.jsonl"),
        (tmp_path / "run", [], tmp_path / "file"),
        (tmp_path / "file", [], data),
        (tmp_path / "results", [], data),
        (tmp_path / "run", ["--modes", "best"], data),
        (tmp_path / "run", ["--shard", "3/2"], data),
        (tmp_path / "run", ["--budget", "0"], data),
        (tmp_path / "run", ["--temperature", "nan"], data),
        (tmp_path / "run", ["--python-version", "2.7"], data),
        (tmp_path / "run", ["--ray", "2", "--shard", "1/2"], data),
        (tmp_path / "run", ["--data", str(data), str(data)], data),
    ]
    for out, arguments, path in cases:
        status, output, errors = evaluate(out, *arguments, data=path)
        assert (status, output, errors.count("\n")) == (2, "", 1), (arguments, errors)
    assert not (tmp_path / "run").exists()


def test_what_cannot_judge_is_said_in_one_line(evaluate: Eval, tmp_path: Path) -> None:
    for executable in ("no-such-python", "true", str(tmp_path)):
        status, output, errors = evaluate(tmp_path / "run", "--judge", executable)
        assert (status, output, errors.count("\n")) == (2, "", 1)
        assert executable in errors


def test_two_processes_do_not_write_one_file(evaluate: Eval, tmp_path: Path) -> None:
    evaluate(tmp_path / "run", "--limit", "1")
    with Journal(tmp_path / "run", Shard()):
        status, _, errors = evaluate(tmp_path / "run")
        assert (status, errors.count("\n")) == (2, 1)
        assert "another process" in errors
        assert evaluate(tmp_path / "run", "--shard", "1/2")[0] == 0


def test_a_dry_run_writes_nothing(evaluate: Eval, tmp_path: Path) -> None:
    status, output, _ = evaluate(tmp_path / "run", "--dry-run", "--max-prompt-tokens", "60", "--shard", "1/2")
    assert status == 0
    assert "7 samples, 21 results" in output
    assert "7 samples lose context to the limit of 60 tokens" in output
    assert "decoded now" in output
    assert not (tmp_path / "run").exists()


def test_a_sample_that_fails_is_recorded_and_can_be_tried_again(
    evaluate: Eval, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = Worker._open

    def refusing(self: Worker, language: str, left: str, right: str) -> Any:
        if (left, right) == (sample_of(5).left, sample_of(5).right):
            raise OverflowError("too deep\nfor this")
        return opened(self, language, left, right)

    with monkeypatch.context() as patch:
        patch.setattr(Worker, "_open", refusing)
        status, _, errors = evaluate(tmp_path / "run")
        assert status == 1
        assert "1 failed" in errors
    found = list(read_run(tmp_path / "run"))
    failed = [record for record in found if record.error is not None]
    assert len(found) == 14 * len(MODES)
    assert [record.mode for record in failed] == list(MODES)
    assert {(record.sample, record.error) for record in failed} == {("sample-5", "OverflowError: too deep for this")}
    assert (failed[0].text, failed[0].parses, failed[0].tokens) == (None, None, None)
    assert failed[0].reference == sample_of(5).middle
    assert evaluate(tmp_path / "run")[0] == 0  # it has its results
    assert list(read_run(tmp_path / "run")) == found
    assert evaluate(tmp_path / "run", "--retry-failed")[0] == 0
    assert all(record["error"] is None for record in results(tmp_path / "run").values())
    evaluate(tmp_path / "whole")
    assert results(tmp_path / "run") == results(tmp_path / "whole")


def test_a_sample_in_a_language_without_a_judge_is_recorded(evaluate: Eval, tmp_path: Path) -> None:
    path = tmp_path / "mixed.jsonl"
    write_samples(path, [sample_of(1), sample_of(2, language="latin"), sample_of(3)])
    assert evaluate(tmp_path / "run", data=path)[0] == 1
    errors = {record.sample: record.error for record in read_run(tmp_path / "run")}
    assert errors == {"sample-1": None, "sample-2": "ValueError: no parser for latin to judge by", "sample-3": None}


def test_a_batch_that_fails_as_a_whole_is_decoded_one_by_one(
    evaluate: Eval, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    decode = Decoder.decode
    sizes: list[int] = []

    def short_of_memory(self: Decoder, samples: Any) -> Any:
        sizes.append(len(samples))
        if len(samples) > 1 or samples[0].sample.id == "sample-3":
            raise MemoryError("no more")
        return decode(self, samples)

    with monkeypatch.context() as patch:
        patch.setattr(Decoder, "decode", short_of_memory)
        assert evaluate(tmp_path / "run")[0] == 1
    assert sorted(set(sizes)) == [1, 2, 4]
    failed = {record.sample: record.error for record in read_run(tmp_path / "run") if record.error is not None}
    assert failed == {"sample-3": "MemoryError: no more"}
    evaluate(tmp_path / "alone", "--batch", "1")
    alone = results(tmp_path / "alone")
    assert all(found == alone[key] for key, found in results(tmp_path / "run").items() if key[0] != "sample-3")


def test_a_run_in_which_everything_fails_ends_and_forgets(
    evaluate: Eval, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    decode = Decoder.decode
    calls: list[int] = []

    def gone(self: Decoder, samples: Any) -> Any:
        calls.append(len(samples))
        if len(calls) > 1:
            raise RuntimeError("the device is gone")
        return decode(self, samples)

    monkeypatch.setattr(run, "FAILURES_IN_A_ROW", 6)
    with monkeypatch.context() as patch:
        patch.setattr(Decoder, "decode", gone)
        status, _, errors = evaluate(tmp_path / "run")
    assert status == 2
    assert "the device is gone" in errors
    assert len(results(tmp_path / "run")) == 4 * len(MODES)
    assert all(record.error is None for record in read_run(tmp_path / "run"))
    assert evaluate(tmp_path / "run")[0] == 0
    assert len(results(tmp_path / "run")) == 14 * len(MODES)


def test_an_interrupted_run_can_be_gone_on_with(
    evaluate: Eval, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measure = Worker.measure
    calls: list[int] = []

    def interrupted(self: Worker, samples: Any) -> Any:
        calls.append(len(samples))
        if len(calls) == 3:
            raise KeyboardInterrupt
        return measure(self, samples)

    with monkeypatch.context() as patch:
        patch.setattr(Worker, "measure", interrupted)
        status, _, errors = evaluate(tmp_path / "run")
    assert status == 130
    assert "the same command continues the run" in errors
    assert len(results(tmp_path / "run")) == 8 * len(MODES)
    assert evaluate(tmp_path / "run")[0] == 0
    evaluate(tmp_path / "whole")
    assert results(tmp_path / "run") == results(tmp_path / "whole")


def line_samples(path: Path) -> list[Sample]:
    """Rests of lines: cut in words, before blanks, and at a line's first character."""
    cuts = {
        "rea": "d(self):",
        "return": ' [os.path.join(name, "x") for name in argv if name]',
        "    ": "def read(self):",
    }
    samples = []
    for number, (before, middle) in enumerate(cuts.items()):
        left, found, right = FILE.partition(before + middle)
        assert found
        samples.append(
            sample_of(number, set="line-rest", kind="line-rest", left=left + before, middle=middle, right=right)
        )
    write_samples(path, samples)
    return samples


def healed_of(model: FimModel, sample: Sample) -> tuple[str, str]:
    """The left context without what is healed, and that."""
    healing = Healing.of(model, Split(sample.left, sample.right))
    return healing.split.left, healing.text


def test_texts_begin_with_what_was_healed_and_lack_it(evaluate: Eval, tiny: FimModel, tmp_path: Path) -> None:
    data = tmp_path / "lines.jsonl"
    samples = {sample.id: sample for sample in line_samples(data)}
    evaluate(tmp_path / "cut", "--no-healing", data=data)
    evaluate(tmp_path / "healed", data=data)
    found = list(read_run(tmp_path / "healed"))
    for record in found:
        left, text = healed_of(tiny, samples[record.sample])
        assert record.text is None or record.parses or record.mode == "unconstrained"
        assert record.healed == len(text)
        assert record.prompt_tokens == len(tiny.format.encode(left, samples[record.sample].right, 244))
        if text and record.mode == "unconstrained":  # they may have ended before they had healed
            assert record.text is not None
    assert [record.healed for record in found if record.mode == "checked"][:2] > [0, 0]
    assert all(record.healed == 0 for record in read_run(tmp_path / "cut"))
    assert not RunInfo.read(tmp_path / "cut").healing


def test_lines_end_at_their_end(evaluate: Eval, tmp_path: Path) -> None:
    data = tmp_path / "lines.jsonl"
    line_samples(data)
    settings = ["--budget", "60", "--temperature", "2"]
    evaluate(tmp_path / "free", *settings, data=data)
    evaluate(tmp_path / "lines", "--single-line", *settings, data=data)
    texts = {key: record["text"] for key, record in results(tmp_path / "lines").items()}
    assert not any("\n" in text for text in texts.values() if text is not None)
    assert any(texts.values())
    free = {key: record["text"] for key, record in results(tmp_path / "free").items()}
    assert any("\n" in text for text in free.values() if text is not None)
    others = tmp_path / "others.jsonl"
    write_samples(others, [replace(sample, set="block", kind="function") for sample in line_samples(data)])
    evaluate(tmp_path / "blocks", "--single-line", *settings, data=others)
    assert {key: record["text"] for key, record in results(tmp_path / "blocks").items()} == free


def test_constrained_single_lines_end_at_the_rest_of_their_line(
    evaluate: Eval, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "lines.jsonl"
    left, right = "def f(value):\n    total = ", " + value\n    return total\n"
    write_samples(data, [sample_of(0, set="line", kind="rest", left=left, middle="2", right=right)])
    given: list[tuple[bool, RestOfLine | None]] = []

    def start(*arguments: Any) -> Any:
        given.append((arguments[2] is not None, arguments[3].rest_of_line))
        return begin(*arguments)

    monkeypatch.setattr(modes, "start", start)
    evaluate(tmp_path / "lines", "--single-line", "--budget", "8", data=data)
    evaluate(tmp_path / "whole", "--budget", "8", data=data)
    assert sorted(given, key=repr) == [(False, None)] * 2 + [(True, None), (True, RestOfLine(b" + value", b" +"))]


def test_of_single_lines_the_break_stays(evaluate: Eval, tmp_path: Path) -> None:
    left, middle, right = FILE.partition("        self.path = path\n")
    data = tmp_path / "single.jsonl"
    write_samples(
        data, [sample_of(0, set="human-eval-infilling", kind="single-line", left=left, middle=middle, right=right)]
    )
    evaluate(tmp_path / "lines", "--single-line", data=data)
    evaluate(tmp_path / "whole", data=data)
    for name, reference in (("lines", middle[:-1]), ("whole", middle)):
        found = list(read_run(tmp_path / name))
        assert {record.reference for record in found} == {reference}
        texts = [record.text for record in found if record.text is not None]
        assert name == "whole" or not any("\n" in text for text in texts)
        assert {record.right_characters for record in found} == {len(FILE) - len(left) - len(reference)}


def test_a_break_that_is_written_again_ends_no_line(tiny: FimModel) -> None:
    tokens = [token for text in ("\n", "    ", "x", "\n", "y") for token in tiny.vocabulary.encode(text)]
    run: Any = SimpleNamespace(model=tiny, tokens=tokens)
    before = [sum(len(tiny.vocabulary.encode(text)) for text in texts) for texts in ((), ("\n", "    ", "x"))]
    assert tokens_of_line(run, "") == before[0] == 0
    assert tokens_of_line(run, "\n") == before[1] > 2
    assert tokens_of_line(run, "\n    x\n") == len(tokens)


def test_the_right_context_can_be_kept_from_the_model(evaluate: Eval, tiny: FimModel, tmp_path: Path) -> None:
    data = tmp_path / "lines.jsonl"
    samples = line_samples(data)
    lengths = {}
    for reads in ("both", "left", "left-alone"):
        evaluate(tmp_path / reads, "--contexts", reads, "--max-prompt-tokens", "240", data=data)
        assert RunInfo.read(tmp_path / reads).contexts == reads
        found = list(read_run(tmp_path / reads))
        lengths[reads] = {record.sample: record.prompt_tokens for record in found}
        constrained = [record for record in found if record.mode == "constrained" and record.text is not None]
        assert constrained
        assert all(record.complete for record in constrained)  # the grammar has seen it
    healed, _ = healed_of(tiny, samples[0])
    assert lengths["both"]["sample-0"] == len(tiny.format.encode(healed, samples[0].right, 240))
    assert lengths["left"]["sample-0"] == len(tiny.format.encode(healed, "", 240))
    assert lengths["left-alone"]["sample-0"] == len(tiny.vocabulary.encode(healed))


def test_a_prompt_without_anything_left_is_not_empty(evaluate: Eval, tmp_path: Path) -> None:
    data = tmp_path / "first.jsonl"
    write_samples(data, [sample_of(0, left="", middle=FILE[:10], right=FILE[10:])])
    assert evaluate(tmp_path / "run", "--contexts", "left-alone", data=data)[0] == 0
    assert {record["prompt_tokens"] for record in results(tmp_path / "run").values()} == {1}


def test_the_bits_of_a_middle_are_those_of_its_tokens(evaluate: Eval, tiny: FimModel, tmp_path: Path) -> None:
    data = tmp_path / "lines.jsonl"
    samples = line_samples(data)
    evaluate(tmp_path / "run", "--score", data=data)
    found = {record.sample: record for record in read_run(tmp_path / "run")}
    for sample in samples:
        record = found[sample.id]
        left, healed = healed_of(tiny, sample)
        prompt = tiny.format.encode(left, sample.right, 244)
        tokens = tiny.vocabulary.encode(healed + sample.middle)
        network: Any = tiny.backend
        with torch.inference_mode():
            logits = network.network(torch.tensor([[*prompt, *tokens]])).logits[0, len(prompt) - 1 :].double()
        bits = 0.0
        for row, token in zip(logits, tokens, strict=False):
            among = row
            if healed:  # the share among the tokens that lead there
                texts = {one: tiny.vocabulary.token_bytes(one) for one in range(8, tiny.vocabulary.size)}
                leads = [
                    one
                    for one, text in texts.items()
                    if text and (healed.encode().startswith(text) or text.startswith(healed.encode()))
                ]
                among = torch.full_like(row, -torch.inf).index_copy(0, torch.tensor(leads), row[leads])
                healed = healed[len(texts[token]) :]
            bits -= float(among.log_softmax(0)[token]) / math.log(2)
        assert record.reference_bits == pytest.approx(bits, rel=1e-3)
        ends = logits[-1].log_softmax(0)[list(tiny.vocabulary.end_token_ids)].exp().sum()
        assert record.end_bits == pytest.approx(float(-ends.log2()), rel=1e-3)


@pytest.mark.skipif(not onnx_backend.is_installed(), reason="onnxruntime has no wheel here")
def test_the_runtime_that_serves_is_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "lines.jsonl"
    line_samples(data)
    found: dict[str, dict[tuple[str, str], dict[str, Any]]] = {}
    for runtime in ("onnx", "torch"):
        out = tmp_path / runtime
        command = ["--data", str(data), "--model", "embedded-model", "--budget", "24", "--single-line", "--score"]
        named = [] if runtime == "onnx" else ["--runtime", runtime]
        command[3] = locate(None)
        assert run_command(capsys, "eval", "run", *command, *named, "--out", str(out))[0] == 0
        info = RunInfo.read(out)
        assert (info.runtime, info.export_sha256 is None) == (runtime, runtime == "torch")
        found[runtime] = results(out)
    assert found["onnx"].keys() == found["torch"].keys()
    for key, record in found["onnx"].items():
        other = found["torch"][key]
        assert record["prompt_hash"] == other["prompt_hash"]
        # Eight bits for thirty-two: the same model but for rounding.
        assert record["reference_bits"] == pytest.approx(other["reference_bits"], rel=0.1, abs=1)
