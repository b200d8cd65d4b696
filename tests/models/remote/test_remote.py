"""Models behind endpoints, played here and, where it is installed, llama.cpp's own server: texts, trips and faults."""

from __future__ import annotations

import ast
import itertools
import json
import logging
import random
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.models.remote import llama_cpp_server
from fim_server.cli import program as cli
from fim_server.decoding.complete import complete
from fim_server.decoding.options import DecodeOptions
from fim_server.decoding.results import Completion, StopReason
from fim_server.errors import ModelError, StoppedError
from fim_server.language.stop import Stop
from fim_server.models.backend import LostError
from fim_server.models.gguf import library
from fim_server.models.gguf.writing import SPLITTERS, write_gguf
from fim_server.models.load import load_model
from fim_server.models.model import FimModel
from fim_server.models.options import LoadOptions
from fim_server.models.remote import client as client_module
from fim_server.models.remote.address import address_of
from fim_server.models.remote.backend import RemoteBackend
from fim_server.models.remote.dialects import OpenAi
from fim_server.models.remote.load import load_openai
from fim_server.models.remote.rows import MOST_EXACT_STEPS, RemoteArithmetic, RemoteRow
from fim_server.models.source import locate
from fim_server.text.document import Split
from support.engine.corpus import cuts, python
from support.models.endpoints import Endpoint, serving

EMBEDDED = locate("embedded")
LEFT = "import os\n\n\ndef load(path):\n    with open(path) as file:\n        "
RIGHT = "\n\n\nload(os.sep)\n"
EXACT, KINDS = ("llama.cpp", "vllm"), ("llama.cpp", "vllm", "ollama", "openai")


@pytest.fixture(scope="module")
def local() -> FimModel:
    return load_model("embedded", "cpu", "onnx")


def options_of(kind: str) -> LoadOptions:
    return LoadOptions(tokenizer=EMBEDDED) if kind in EXACT else LoadOptions()


def written(model: FimModel, split: Split, **options: Any) -> tuple[Completion, list[int]]:
    steps: list[Any] = []
    completion = complete(model, python(), split, DecodeOptions(**options), on_token=steps.append)
    return completion, list(steps[-1]) if steps else []


def trips_of(model: FimModel) -> int:
    assert isinstance(model.backend, RemoteBackend)
    return model.backend.client.trips


# --- texts --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("single_line", [True, False])
@pytest.mark.parametrize("kind", EXACT)
def test_tokens_are_those_of_the_model_in_this_process(local: FimModel, kind: str, single_line: bool) -> None:
    with serving(Endpoint(local, kind)) as address:
        remote = load_model(address, options=options_of(kind))
        for cut in itertools.islice(cuts(random.Random(7), 6_000, 2), 6):
            split = Split(cut.left, cut.right)
            options: dict[str, Any] = {"max_new_tokens": 24, "max_prompt_tokens": 300, "single_line": single_line}
            here, there = (written(model, split, **options) for model in (local, remote))
            assert there[1] == here[1]
            assert there[0].stop_reason == here[0].stop_reason
            if here[0].stop_reason is StopReason.END_TOKEN:  # else it is cut where the end was likely
                assert there[0].text == here[0].text


@pytest.mark.parametrize("kind", EXACT)
def test_a_text_that_is_the_model_s_own_takes_one_trip(local: FimModel, kind: str) -> None:
    with serving(Endpoint(local, kind)) as address:
        remote = load_model(address, options=options_of(kind))
        counted = 0
        for cut in itertools.islice(cuts(random.Random(7), 6_000, 2), 12):
            before = trips_of(remote)
            completion, _ = written(remote, Split(cut.left, cut.right), max_new_tokens=24, single_line=True, heal=False)
            ended = completion.stop_reason is StopReason.END_TOKEN and not completion.statistics.landing_steps
            if ended and not completion.statistics.refused_tokens and not completion.statistics.forced_share:
                assert trips_of(remote) - before == 1
                counted += 1
        assert counted


@pytest.mark.parametrize("told", [20, 0])
@pytest.mark.parametrize("kind", ["ollama", "openai"])
def test_texts_without_ids_fit(local: FimModel, kind: str, told: int) -> None:
    with serving(Endpoint(local, kind, told=told)) as address:
        remote = load_model(address)
        assert remote.mode == "checked"
        offered = 0
        for cut in itertools.islice(cuts(random.Random(3), 6_000, 2), 6):
            completion, _ = written(remote, Split(cut.left, cut.right), max_new_tokens=24)
            if completion.text is not None:
                assert completion.guarantee == "exact"
                ast.parse(cut.left + completion.text + cut.right)
                offered += 1
        assert offered >= 4


def test_an_endpoint_with_texts_gives_the_model_s_own_text(local: FimModel) -> None:
    options: dict[str, Any] = {"max_new_tokens": 24, "single_line": True, "heal": False, "max_prompt_tokens": 500}
    wanted: list[tuple[Split, str | None]] = []
    for cut in cuts(random.Random(7), 1500, 2):
        split = Split(cut.left, cut.right)
        completion, _ = written(local, split, **options)
        cost = completion.statistics
        if completion.stop_reason is StopReason.END_TOKEN and not cost.refused_tokens and not cost.landing_steps:
            wanted.append((split, completion.text))
        if len(wanted) == 3:
            break
    for kind, told, newer in (*itertools.product(("ollama", "openai"), (20, 0), (False,)), ("openai", 20, True)):
        with serving(Endpoint(local, kind, told=told, newer=newer)) as address:
            remote = load_model(address)
            for split, text in wanted:
                assert written(remote, split, **options)[0].text == text, (kind, told, newer)


@pytest.mark.parametrize("refused", [("suffix",), ("logprobs",), ("suffix", "logprobs")])
def test_requests_avoid_what_an_endpoint_refuses(local: FimModel, refused: tuple[str, ...]) -> None:
    with serving(Endpoint(local, "openai", refuses=refused)) as address:
        remote = load_model(address)
        completion, _ = written(
            remote, Split("values = [1, 2]\nresult = [", "]\n"), max_new_tokens=16, single_line=True
        )
        assert completion.text is not None
        ast.parse(f"values = [1, 2]\nresult = [{completion.text}]\n")
    with serving(Endpoint(local, "openai", refuses=("prompt",))) as address, pytest.raises(ModelError, match="refuses"):
        load_model(address)


@pytest.mark.parametrize("options", [{"search": 2}, {"samples": 3, "temperature": 0.7}, {"temperature": 0.9}])
def test_search_and_samples_take_endpoints(local: FimModel, options: dict[str, Any]) -> None:
    left, right = "values = [1, 2]\nresult = [", "]\n"
    with serving(Endpoint(local, "llama.cpp")) as address:
        remote = load_model(address, options=options_of("llama.cpp"))
        completion, _ = written(remote, Split(left, right), max_new_tokens=12, single_line=True, **options)
    assert completion.text is not None
    ast.parse(left + completion.text + right)


def test_the_whole_vocabulary_is_asked_for_where_no_file_has_it(local: FimModel) -> None:
    with serving(Endpoint(local, "llama.cpp")) as address:
        remote = load_model(address)
    for token in range(local.vocabulary.size):
        assert remote.vocabulary.token_bytes(token) == local.vocabulary.token_bytes(token)
    assert remote.vocabulary.end_token_ids == local.vocabulary.end_token_ids
    assert remote.format.family == local.format.family


def test_a_character_in_several_tokens_takes_its_own_request(local: FimModel) -> None:
    """llama.cpp's stream holds a token back that ends inside a character."""
    left, right = 'snowman = "\N{SNOWMAN}"\ncopied = "', '"\n'
    options: dict[str, Any] = {"max_new_tokens": 8, "heal": False}
    pieces = local.vocabulary.encode("\N{SNOWMAN}")
    assert len(pieces) > 1
    with serving(Endpoint(local, "llama.cpp")) as address:
        remote = load_model(address, options=options_of("llama.cpp"))
        prefix = local.format.encode(left, right, 100)
        cache = remote.new_cache()
        row = remote.forward([*prefix, *pieces[:1]], cache)
        wanted = np.asarray(local.forward([*prefix, *pieces[:1]], local.new_cache()))
        assert remote.backend.arithmetic.likeliest(row) == int(wanted.argmax())
        here, there = (written(model, Split(left, right), **options) for model in (local, remote))
        assert here[1] == there[1]


def test_streams_are_left_when_a_text_ends(local: FimModel) -> None:
    endpoint = Endpoint(local, "llama.cpp")
    with serving(endpoint) as address:
        remote = load_model(address, options=options_of("llama.cpp"))
        written(remote, Split("x = [1, 2", "]\n"), max_new_tokens=2, single_line=True)
        end = time.monotonic() + 20
        while not endpoint.gone and time.monotonic() < end:
            time.sleep(0.05)
    assert endpoint.gone


# --- rows ---------------------------------------------------------------------------------------------------------


def row_of(told: dict[int, float], hidden: dict[int, float], asked: list[list[int]], size: int = 100) -> RemoteRow:
    """A row that tells some tokens, and others when it is asked for them."""

    def likeliest(tokens: Any) -> tuple[int, float] | None:
        asked.append(tokens.tolist())
        found = {token: hidden[token] for token in tokens.tolist() if token in hidden}
        return max(found.items(), key=lambda entry: entry[1]) if found else None

    return RemoteRow(size, lambda: told, likeliest)


def words(*tokens: int, size: int = 100) -> Any:
    found = np.zeros(-(-size // 32), dtype=np.uint32)
    for token in tokens:
        found[token // 32] |= np.uint32(1 << (token % 32))
    return found


def test_the_likeliest_allowed_token_is_reported_or_requested() -> None:
    arithmetic, asked = RemoteArithmetic(), list[list[int]]()
    row = row_of({3: -0.5, 4: -1.5}, {70: -7.0, 71: -6.0, 72: -9.0}, asked)
    sampler = arithmetic.sampler(0, 0)
    assert sampler.draw(row) == 3
    assert sampler.draw(arithmetic.masked(row, words(4, 70))) == 4
    assert asked == []
    masked = arithmetic.masked(row, words(70, 71, 72, 80))
    assert sampler.draw(masked) == 71
    assert asked == [[70, 71, 72, 80]]
    arithmetic.refuse(masked, 71)
    assert sampler.draw(masked) == 70
    assert asked[1:] == [[70, 72, 80]]
    for token in (70, 72):
        arithmetic.refuse(masked, token)
    assert arithmetic.is_spent(masked)


def test_refused_tokens_are_not_requested_again() -> None:
    arithmetic, asked = RemoteArithmetic(), list[list[int]]()
    row = row_of({3: -0.5}, {3: -0.5, 9: -4.0}, asked)
    changed = arithmetic.copy(row)
    arithmetic.refuse(changed, 3)
    masked = arithmetic.masked(changed, words(3, 9))
    assert arithmetic.sampler(0, 0).draw(masked) == 9
    assert asked == [[9]]
    healed = arithmetic.only(row, [9, 10])
    assert arithmetic.sampler(0, 0).draw(healed) == 9
    assert arithmetic.share_of(arithmetic.only(row, [50]), [50]) == 0.0


def test_steps_at_one_place_are_bounded() -> None:
    arithmetic, asked = RemoteArithmetic(), list[list[int]]()
    row = arithmetic.masked(row_of({}, {token: -float(token) for token in range(1, 99)}, asked), words(*range(100)))
    for _ in range(2 * MOST_EXACT_STEPS):
        if arithmetic.is_spent(row):
            break
        arithmetic.refuse(row, arithmetic.likeliest(row))
    assert len(asked) == MOST_EXACT_STEPS


# --- faults -------------------------------------------------------------------------------------------------------


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is waited for."""
    monkeypatch.setattr(client_module, "FIRST_PAUSE_SECONDS", 0.01)


@pytest.mark.parametrize("fault", ["429", "500", "503", "cut 0", "garbage"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_passing_fault_costs_no_text(local: FimModel, hasty: None, kind: str, fault: str) -> None:
    endpoint = Endpoint(local, kind)
    with serving(endpoint) as address:
        remote = load_model(address, options=options_of(kind))
        split = Split(LEFT, RIGHT)
        wanted, tokens = written(remote, split, max_new_tokens=16, single_line=True)
        endpoint.faults = [fault]
        found, again = written(remote, split, max_new_tokens=16, single_line=True)
        assert endpoint.faults == []
        assert (found.text, again) == (wanted.text, tokens)


@pytest.mark.parametrize("kind", EXACT)
def test_a_request_survives_the_server_s_death(local: FimModel, hasty: None, kind: str) -> None:
    endpoint = Endpoint(local, kind)
    with serving(endpoint) as address:
        remote = load_model(address, options=options_of(kind))
        split = Split("values = [1, 2]\nresult = sum(values) ", "\n")
        _, tokens = written(remote, split, max_new_tokens=16)
        assert len(tokens) > 2
        endpoint.faults = ["cut 2"]
        assert written(remote, split, max_new_tokens=16)[1] == tokens
        assert endpoint.faults == []


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("ids", "reports a token 1000000, and its model has"),
        ("bytes", "has another tokenizer"),
        ("shares", "sent an invalid log probability"),
        ("error", "the endpoint has failed"),
        ("400", "HTTP 400 (not now)"),
        ("401", "a key goes by --api-key-env"),
    ],
)
def test_an_inconsistent_server_is_one_line(local: FimModel, hasty: None, fault: str, said: str) -> None:
    endpoint = Endpoint(local, "llama.cpp")
    with serving(endpoint) as address:
        remote = load_model(address, options=options_of("llama.cpp"))
        endpoint.faults = [fault] * 20
        with pytest.raises(LostError) as error:
            written(remote, Split(LEFT, RIGHT), max_new_tokens=16)
        assert said in str(error.value)
        assert "\n" not in str(error.value)
        endpoint.faults = []
        assert written(remote, Split(LEFT, RIGHT), max_new_tokens=16)[0].text is not None


def test_a_text_that_was_complete_before_a_fault_is_shown(local: FimModel, hasty: None) -> None:
    endpoint = Endpoint(local, "llama.cpp")
    split = Split("x = 1\n# Returns", "\ny = 2\n")
    options: dict[str, Any] = {"max_new_tokens": 8, "single_line": True, "heal": False}
    with serving(endpoint) as address:
        remote = load_model(address, options=options_of("llama.cpp"))
        _, whole = written(remote, split, **options)
        assert len(whole) > 3
        endpoint.faults = ["cut 3", *["500"] * 20]
        completion, tokens = written(remote, split, **options)
    assert completion.stop_reason is StopReason.LOST
    assert tokens == whole[:3]
    assert completion.text is not None
    ast.parse(split.left + completion.text + split.right)


def test_a_server_that_says_nothing_is_waited_for_until_the_deadline(local: FimModel) -> None:
    endpoint = Endpoint(local, "llama.cpp")
    with serving(endpoint) as address:
        remote = load_model(address, options=options_of("llama.cpp"))
        endpoint.faults = ["silent"]
        completion, _ = written(remote, Split(LEFT, RIGHT), max_new_tokens=16, deadline_ms=200)
        assert completion.stop_reason is StopReason.DEADLINE
        endpoint.faults = ["silent"]
        stop = Stop()
        threading.Timer(0.2, stop.set).start()
        with stop, pytest.raises(StoppedError):
            written(remote, Split(LEFT, RIGHT), max_new_tokens=16)


def test_an_absent_server_is_reported(hasty: None) -> None:
    with pytest.raises(ModelError) as error:
        load_model("http://127.0.0.1:9")
    assert "http://127.0.0.1:9: ConnectError" in str(error.value)


# --- addresses and keys -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("http://example.com:8080", "without TLS"),
        ("http://10.0.0.7", "without TLS"),
        ("http://", "an address is"),
        ("http://user:secret@localhost:1", "keys go by --api-key-env"),
        ("https://host?key=secret", "keys go by --api-key-env"),
        ("http://localhost:port", "no address"),
    ],
)
def test_addresses_that_are_refused(name: str, said: str) -> None:
    with pytest.raises(ModelError) as error:
        load_model(name)
    assert said in str(error.value)
    assert "secret" not in str(error.value)


def test_plain_http_needs_loopback_or_permission() -> None:
    for name in ("http://localhost:1", "http://127.0.0.1:1", "http://[::1]:1", "https://example.com"):
        assert address_of(name, None, False).base == name
    assert address_of("http://example.com/v1/", None, True).base == "http://example.com"
    assert address_of("https://example.com/api#model", None, False).model == "model"


def test_a_key_is_sent_and_never_shown(
    local: FimModel, hasty: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("THE_KEY", "sesame-open")
    monkeypatch.setenv("WRONG_KEY", "sesame-shut")
    with serving(Endpoint(local, "llama.cpp", key="sesame-open")) as address:
        options = LoadOptions(tokenizer=EMBEDDED, api_key_env="THE_KEY")
        remote = load_model(address, options=options)
        assert written(remote, Split(LEFT, RIGHT), max_new_tokens=4)[1]
        assert "sesame" not in repr(remote)
        wrong = load_model(address, options=LoadOptions(tokenizer=EMBEDDED, api_key_env="WRONG_KEY"))
        with pytest.raises(LostError) as error:
            written(wrong, Split(LEFT, RIGHT), max_new_tokens=4)
        assert "HTTP 401" in str(error.value)
        assert "sesame" not in str(error.value)  # the server has said it
    assert "sesame" not in caplog.text
    with pytest.raises(ModelError, match="NO_SUCH_KEY, which is to hold the key, is not set"):
        load_model("http://127.0.0.1:9", options=LoadOptions(api_key_env="NO_SUCH_KEY"))


def test_options_of_other_models_are_refused_for_endpoints() -> None:
    with pytest.raises(ModelError, match="are for endpoints, and embedded is none"):
        load_model("embedded", options=LoadOptions(api_key_env="KEY"))
    with pytest.raises(ModelError, match="--device and --runtime are for models here"):
        load_model("http://127.0.0.1:9", "cpu")
    with pytest.raises(ModelError, match="an endpoint has its own"):
        load_model("http://127.0.0.1:9", options=LoadOptions(gpu_layers=1))


def test_models_are_named_where_there_are_several(local: FimModel) -> None:
    with serving(Endpoint(local, "ollama")) as address:
        assert load_model(f"{address}#a-model").name == "a-model"
        with pytest.raises(ModelError, match="has no model other; there is a-model:latest"):
            load_model(f"{address}#other")


# --- the command line, and the real server ------------------------------------------------------------------------


def test_the_command_line_takes_an_address(local: FimModel, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "a.py"
    source.write_text(LEFT + RIGHT)
    place = f"{LEFT.count(chr(10)) + 1}:{len(LEFT.splitlines()[-1]) + 1}"
    with serving(Endpoint(local, "ollama")) as address:
        assert cli.main(["complete", "--model", address, "--json", str(source), place]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["guarantee"] == "exact"
    ast.parse(LEFT + answer["text"] + RIGHT)
    assert cli.main(["complete", "--model", "http://example.com", str(source), place]) == 2
    assert "without TLS" in capsys.readouterr().err


@pytest.mark.skipif(not library.is_installed(), reason="xllamacpp is not installed (the extra `gguf`)")
def test_the_real_server_gives_the_tokens_of_the_same_file_here(tmp_path: Path) -> None:
    file = tmp_path / "embedded.gguf"
    write_gguf(Path(EMBEDDED), file, "f32", next(iter(SPLITTERS)))
    here = load_model(str(file))
    with llama_cpp_server(file) as address:
        there = load_model(address)
        told = load_model(address, options=LoadOptions(tokenizer=str(file)))
        assert there.mode == "exact"
        # The same server as one of which nothing is known but that it has OpenAI's older interface.
        client = client_module.Client(address_of(address, None, False))
        texts = load_openai(client, "any", LoadOptions())
        assert isinstance(texts.backend, RemoteBackend)
        assert isinstance(texts.backend.dialect, OpenAi)
        assert (texts.mode, texts.backend.dialect.reported) == ("checked", 20)
        left, right = "values = [1, 2]\nresult = [", "]\n"
        completion, _ = written(texts, Split(left, right), max_new_tokens=12, single_line=True)
        assert completion.text is not None
        ast.parse(left + completion.text + right)
        for cut in itertools.islice(cuts(random.Random(11), 6_000, 2), 10):
            options: dict[str, Any] = {"max_new_tokens": 24, "max_prompt_tokens": 300, "single_line": True}
            split = Split(cut.left, cut.right)
            assert written(there, split, **options)[1] == written(here, split, **options)[1]
        assert told.vocabulary.end_token_ids == here.vocabulary.end_token_ids
        file.rename(tmp_path / "elsewhere.gguf")  # its tokens are to be asked for
        asked = load_model(address)
    for token in range(here.vocabulary.size):
        assert asked.vocabulary.token_bytes(token) == here.vocabulary.token_bytes(token), token
    assert asked.format.family == here.format.family
