"""Endpoints that fail, lie or attack: the command line says so in one line with status 2, whatever they send."""

from __future__ import annotations

import gzip
import json
import os
import struct
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from fim_server.cli import program as cli
from fim_server.errors import AwayError, ModelError, VocabularyError
from fim_server.models.load import load_model
from fim_server.models.options import LoadOptions
from fim_server.models.remote import backend as backend_module
from fim_server.models.remote import client as client_module
from fim_server.models.remote import load as load_module
from fim_server.models.remote import ollama, streams
from fim_server.models.remote.client import SilentError
from fim_server.models.remote.rows import RemoteRow
from fim_server.models.remote.tokens import in_model_folders
from fim_server.models.source import locate
from fim_server.tokens.tokenizer_file import MOST_TEXT_BYTES, MOST_TOKEN_BYTES
from fim_server.tokens.vocabulary import Vocabulary
from support.models.hostile_endpoint import SIZE, Answer, answering, byte_characters, probabilities, shown, whole

EMBEDDED = locate("embedded")
KINDS = ("llama.cpp", "vllm", "ollama", "openai")


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Little is waited for."""
    monkeypatch.setattr(client_module, "FIRST_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(client_module, "READ_SECONDS", 1.0)
    monkeypatch.setattr(streams, "ROW_SECONDS", 1.0)


def raw(data: bytes) -> Answer:
    """An answer without a head."""

    def answer(handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        handler.wfile.write(data)

    return answer


def streamed(*parts: bytes, repeat: bool = False, reset: bool = False, pause: float = 0.0) -> Answer:
    """A stream of parts; the last one again and again, or the connection reset after it."""

    def answer(handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        for part in parts:
            handler.wfile.write(part)
        while repeat:
            handler.wfile.write(parts[-1])
            time.sleep(pause)
        if reset:
            handler.wfile.flush()
            handler.connection.setsockopt(1, 13, struct.pack("ii", 1, 0))  # SO_LINGER: close with a reset
            handler.connection.close()

    return answer


def raw_forever(head: bytes, part: bytes) -> Answer:
    """Bytes without an end, slowly."""

    def answer(handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        handler.wfile.write(head)
        while True:
            handler.wfile.write(part)
            time.sleep(0.05)

    return answer


def event(kind: str, content: object) -> bytes:
    """An event of a stream."""
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    return data + b"\n" if kind == "ollama" else b"data: " + data + b"\n\n"


def step(kind: str, number: object = 97, text: object = "a", share: object = -0.1) -> dict[str, Any]:
    """An event of one token."""
    told = {"id": number, "token": text, "logprob": share}
    match kind:
        case "llama.cpp":
            entry = {**told, "top_logprobs": [told]}
            return {"content": text, "stop": False, "tokens_predicted": 1, "completion_probabilities": [entry]}
        case "vllm":
            name = f"token_id:{number}"
            return {"choices": [{"text": text, "logprobs": {"tokens": [name], "top_logprobs": [{name: share}]}}]}
        case "ollama":
            return {"response": text, "done": False, "logprobs": [{**told, "top_logprobs": [told]}]}
        case _:
            return {"choices": [{"text": text, "logprobs": {"tokens": [text], "top_logprobs": [{str(text): share}]}}]}


def many(kind: str, count: int = 2000) -> dict[str, Any]:
    """An event of one token, with so many log probabilities at its place."""
    found = step(kind)
    told = [{"id": number % SIZE, "token": f"a{number}", "logprob": -9.0} for number in range(count)]
    match kind:
        case "llama.cpp":
            found["completion_probabilities"][0]["top_logprobs"] = [{**one, "id": n} for n, one in enumerate(told)]
        case "ollama":
            found["logprobs"][0]["top_logprobs"] = told
        case "vllm":
            shares = {f"token_id:{number}": -9.0 for number in range(count)}
            found["choices"][0]["logprobs"]["top_logprobs"] = [shares]
        case _:
            found["choices"][0]["logprobs"]["top_logprobs"] = [{one["token"]: -9.0 for one in told}]
    return found


FAULTS: dict[str, Callable[[str], Answer]] = {
    "an error event": lambda kind: streamed(event(kind, {"error": {"message": "out\nof memory"}})),
    "an error that is a text": lambda kind: streamed(event(kind, {"error": "no"})),
    "status 500": lambda kind: whole({"error": "broken"}, 500),
    "status 500 with a page": lambda kind: whole(b"<html>\n<h1>Internal\nerror</h1>" * 9000, 500),
    "status 404": lambda kind: whole({"error": "gone"}, 404),
    "status 401": lambda kind: whole({"error": "who?"}, 401),
    "status 200 with a page": lambda kind: whole(b"<html>hello</html>", headers={"Content-Type": "text/html"}),
    "a redirect": lambda kind: whole(b"", 307, {"Location": "http://127.0.0.1:9/"}),
    "a redirect in a circle": lambda kind: whole(b"", 302, {"Location": "/completion"}),
    "an empty body": lambda kind: whole(b""),
    "no content": lambda kind: whole(b"", 204),
    "no head": lambda kind: raw(b"{}\r\n\r\n"),
    "a head of a megabyte": lambda kind: raw(b"HTTP/1.1 200 OK\r\nX: " + b"x" * (1 << 20) + b"\r\n\r\n"),
    "half a head": lambda kind: raw(b"HTTP/1.1 200 OK\r\nContent-Len"),
    "nothing": lambda kind: raw(b""),
    "no JSON": lambda kind: streamed(event(kind, b"{nonsense")),
    "deep JSON": lambda kind: streamed(event(kind, b"[" * 100_000)),
    "a long number": lambda kind: streamed(event(kind, b'{"choices": ' + b"9" * 100_000 + b"}")),
    "a list": lambda kind: streamed(event(kind, [1, 2])),
    "a number": lambda kind: streamed(event(kind, 5)),
    "null": lambda kind: streamed(event(kind, None)),
    "bytes that are no UTF-8": lambda kind: streamed(event(kind, b'{"response": "\xff\xfe", "choices": [\xc0]}')),
    "UTF-16": lambda kind: streamed(json.dumps(step(kind)).encode("utf-16")),
    "NaN": lambda kind: streamed(event(kind, step(kind, share=float("nan")))),
    "a probability above 1": lambda kind: streamed(event(kind, step(kind, share=1e300))),
    "infinity": lambda kind: streamed(event(kind, step(kind, share=float("inf")))),
    "a log probability that is a text": lambda kind: streamed(event(kind, step(kind, share="x"))),
    "many log probabilities": lambda kind: streamed(event(kind, many(kind))),
    "half of a surrogate pair": lambda kind: streamed(event(kind, step(kind, 10**9, "\ud800"))),
    "a text that is a number": lambda kind: streamed(event(kind, step(kind, 10**9, 7))),
    "gzip": lambda kind: whole(gzip.compress(b"x" * 1000), headers={"Content-Encoding": "gzip"}),
    "a gzip bomb": lambda kind: whole(gzip.compress(bytes(1 << 26)), headers={"Content-Encoding": "gzip"}),
    "another encoding": lambda kind: whole(b"\x1b\x00", headers={"Content-Encoding": "br"}),
    "a stream without an end": lambda kind: streamed(b": alive\n\n" * 10_000, repeat=True),
    "events without a token": lambda kind: streamed(event(kind, {}) * 10_000, repeat=True),
    "a line without an end": lambda kind: streamed(b"data: " + b"x" * 65536, repeat=True),
    "signs of life": lambda kind: streamed(b": alive\n\n", repeat=True, pause=0.05),
    "a reset": lambda kind: streamed(event(kind, step(kind))[:20], reset=True),
    "a length that is not kept": lambda kind: whole(b"{}", headers={"Content-Length": "900"}),
}
"""Answers to requests for text, by the kind of endpoint."""

UNFIT: dict[str, Callable[[str], Answer]] = {
    "a token beyond them": lambda kind: streamed(event(kind, step(kind, 10**9))),
    "a negative token": lambda kind: streamed(event(kind, step(kind, -1))),
    "a token that is no number": lambda kind: streamed(event(kind, step(kind, "x"))),
    "a fraction": lambda kind: streamed(event(kind, step(kind, float("inf")))),
}
"""Answers with wrong ids, where the endpoint sends ids."""


def completed(address: str, kind: str, tmp_path: Path) -> int:
    """The exit status of ``complete`` with an endpoint; with ``--json`` it says nothing of its progress."""
    source = tmp_path / "a.py"
    source.write_text("value = ", encoding="utf-8")
    named = ["--tokenizer", EMBEDDED] if kind == "vllm" else []
    return cli.main(["complete", str(source), "1:9", "--model", address, *named, "--max-new-tokens", "4", "--json"])


def expect_one_line(status: int, captured: Any) -> None:
    assert status == 2, captured
    assert captured.out == ""
    assert captured.err.count("\n") == 1, captured.err[:2000]
    assert captured.err.startswith("fim-server: ")
    assert captured.err[:-1].isprintable()
    assert len(captured.err) < 600


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_fault_in_a_text_is_one_line(
    kind: str, fault: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with answering(kind, FAULTS[fault](kind)) as address:
        status = completed(address, kind, tmp_path)
    expect_one_line(status, capsys.readouterr())


@pytest.mark.parametrize("fault", UNFIT)
@pytest.mark.parametrize("kind", ["llama.cpp", "vllm"])
def test_invalid_ids_are_one_line(kind: str, fault: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with answering(kind, UNFIT[fault](kind)) as address:
        status = completed(address, kind, tmp_path)
    expect_one_line(status, capsys.readouterr())


@pytest.mark.parametrize("kind", KINDS)
def test_log_probabilities_at_one_place_have_a_limit(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with answering(kind, streamed(event(kind, many(kind)))) as address:
        status = completed(address, kind, tmp_path)
    captured = capsys.readouterr()
    expect_one_line(status, captured)
    assert "more than 1,024 log probabilities" in captured.err


@pytest.mark.parametrize("kind", KINDS)
def test_an_event_without_a_completion_names_no_class(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with answering(
        kind, streamed(event(kind, {"choices": [5], "logprobs": 5, "completion_probabilities": 7}))
    ) as address:
        status = completed(address, kind, tmp_path)
    captured = capsys.readouterr()
    expect_one_line(status, captured)
    assert "sends something other than completions" in captured.err
    assert "Error" not in captured.err


def test_valid_answers_are_accepted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The endpoint of this module is one that works, apart from its faults."""
    for kind in ("llama.cpp", "ollama"):
        with answering(kind, streamed(event(kind, step(kind)))) as address:
            model = load_model(address)
            assert model.vocabulary.token_bytes(97) == b"a"
            assert model.vocabulary.size == SIZE


PATHS = {
    "llama.cpp": ("props", "tokenize", "completion"),
    "vllm": ("v1_models",),
    "ollama": ("api_version", "api_tags", "api_show", "api_generate", "api_ps"),
    "openai": ("v1_models", "v1_completions"),
}
ODD: tuple[Answer, ...] = (
    whole({"error": "broken"}, 500),
    whole(b"{nonsense"),
    whole([]),
    whole({"default_generation_settings": None, "version": 1, "data": [[]], "models": [None, 5], "model_info": []}),
    whole({"data": [{"id": None}], "models": [{"name": {}}], "tokens": [-1, "x"], "capabilities": 7}),
    whole({"data": [{"id": "x\ud800" * 9}], "models": [{"name": "x\n" * 9}], "tokens": [10**30]}),
    whole({"data": [{"id": "x" * 10**6}], "models": [{"name": "x" * 10**6}], "tokens": [1] * 10**5}),
    whole(gzip.compress(bytes(1 << 26)), headers={"Content-Encoding": "gzip"}),
    whole(b"", 302, {"Location": "http://127.0.0.1:9/"}),
    streamed(b"[" + b"1," * 65536, repeat=True),
)
"""Answers to requests for an endpoint's description."""


@pytest.mark.parametrize(("kind", "path"), [(kind, path) for kind in KINDS for path in PATHS[kind]])
def test_a_fault_during_the_probe_is_one_line(
    kind: str, path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for odd in ODD:
        with answering(kind, whole({"error": "broken"}, 500), **{path: odd}) as address:
            status = completed(address, kind, tmp_path)
        expect_one_line(status, capsys.readouterr())


def test_invalid_hosts_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for address in ("https://no-such-host.invalid", "https://a..b", f"https://{'a' * 300}.invalid", "http://[::1]:1"):
        expect_one_line(completed(address, "openai", tmp_path), capsys.readouterr())
    with answering("openai", whole({})) as address:  # which knows no TLS
        expect_one_line(completed(address.replace("http:", "https:"), "openai", tmp_path), capsys.readouterr())


def test_an_invalid_proxy_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALL_PROXY", "nonsense://x")
    expect_one_line(completed("https://no-such-host.invalid", "openai", tmp_path), capsys.readouterr())


# --- vocabularies ---------------------------------------------------------------------------------------------------


def test_tokens_have_the_same_limits_wherever_they_come_from() -> None:
    least = [bytes([number]) for number in range(256)]
    with pytest.raises(VocabularyError, match=f"a token of {MOST_TOKEN_BYTES + 1} bytes: not more than"):
        Vocabulary([*least, bytes(MOST_TOKEN_BYTES + 1)], [0])
    with pytest.raises(VocabularyError, match="bytes together: not more than"):
        Vocabulary([*least, *(number.to_bytes(2) * 20_000 for number in range(105))], [0])
    assert Vocabulary([*least, bytes(MOST_TOKEN_BYTES)], [0]).longest_token == MOST_TOKEN_BYTES


@pytest.mark.parametrize("length", [MOST_TOKEN_BYTES + 1, 4_000_000])
def test_a_long_token_of_an_endpoint_is_refused_first(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "READ_SECONDS", 60.0)
    with (
        answering(
            "llama.cpp", whole({}), completion=probabilities(text=lambda number: b"x" * (length if number == 7 else 1))
        ) as address,
        pytest.raises(ModelError, match=f"too large .a token of {length} bytes"),
    ):
        load_model(address)
    told = shown()
    told["model_info"]["tokenizer.ggml.tokens"][7] = "x" * length
    with answering("ollama", whole({}), api_show=whole(told)) as address:
        model = load_model(address)  # asked through its template, over another vocabulary
        assert model.vocabulary.size > SIZE
    told["capabilities"] = ["completion"]
    with (
        answering("ollama", whole({}), api_show=whole(told)) as address,
        pytest.raises(ModelError, match=f"too large .a token of {length} bytes"),
    ):
        load_model(address)


def test_too_many_tokens_of_an_endpoint_are_refused_first() -> None:
    count = MOST_TEXT_BYTES // 200 + 1
    told = shown()
    told["capabilities"] = ["completion"]
    told["model_info"]["tokenizer.ggml.tokens"] += [f"{number:0200}" for number in range(count)]
    with answering("ollama", whole({}), api_show=whole(told)) as address, pytest.raises(ModelError, match="together"):
        load_model(address)
    told = shown()
    told["capabilities"] = ["completion"]
    told["model_info"]["tokenizer.ggml.merges"] = ["a b"] * 5 * SIZE
    with answering("ollama", whole({}), api_show=whole(told)) as address, pytest.raises(ModelError, match="too many"):
        load_model(address)
    assert len(byte_characters()) == 256


# --- paths ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache with a folder of models in it, beside a folder that is none."""
    monkeypatch.setenv("FIM_SERVER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "cache" / "models" / "mine").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    for folder in (tmp_path / "cache" / "models" / "mine", tmp_path / "elsewhere"):
        (folder / "tokenizer.json").symlink_to(Path(EMBEDDED) / "tokenizer.json")
    os.chdir(tmp_path)
    return tmp_path


def test_a_path_of_an_endpoint_is_looked_up_in_folders_of_models_alone(folders: Path) -> None:
    models = folders / "cache" / "models"
    (models / "mine" / "a.gguf").write_bytes(b"GGUF")
    (models / "out").symlink_to(folders / "elsewhere")
    (models / "round").symlink_to(models / "round")
    assert in_model_folders(str(models / "mine")) == models / "mine"
    assert in_model_folders(str(models / "mine" / "a.gguf")) == models / "mine" / "a.gguf"
    for named in (
        folders / "elsewhere",
        models / "mine" / ".." / ".." / ".." / "elsewhere",
        models / "out",
        models / "out" / "tokenizer.json",
        models / "round",
        models / "not there",
        "cache/models/mine",
        "mine",
        "~/models/a",
        "elsewhere",
        "//host/share/a.gguf",
        "\\\\host\\share\\a.gguf",
        "C:\\models\\a.gguf",
        "/" + "x" * 5000,
        f"{models}/mine\0",
        "",
        "/",
        "/proc/self/root",
    ):
        assert in_model_folders(str(named)) is None, named


@pytest.mark.parametrize("named", ["{0}/elsewhere", "elsewhere", "./elsewhere", "{0}/cache/models/../../elsewhere"])
def test_tokens_elsewhere_are_not_read_because_an_endpoint_names_them(folders: Path, named: str) -> None:
    root = named.format(folders)
    listed = {"data": [{"id": "a", "owned_by": "vllm", "root": root, "max_model_len": 4096}]}
    with answering("vllm", whole({}), v1_models=whole(listed)) as address:
        with pytest.raises(ModelError, match="not in a folder of models here, nor in the hub's cache"):
            load_model(address)
        assert load_model(address, options=LoadOptions(tokenizer=str(folders / "elsewhere"))).vocabulary.size > SIZE


# --- time -----------------------------------------------------------------------------------------------------------


def counted(answer: Answer, heard: list[str]) -> Answer:
    """An answer that notes each request's path."""

    def answered(handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        heard.append(handler.path)
        answer(handler, body)

    return answered


SLOW: dict[str, Answer] = {
    "signs of life": streamed(b": alive\n\n", repeat=True, pause=0.05),
    "a byte at a time": streamed(b"d", repeat=True, pause=0.05),
    "a head without an end": raw_forever(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n"),
    "nothing": lambda handler, body: time.sleep(3),
}
"""Answers that never end, though some show signs of life all the while."""


@pytest.mark.parametrize("slow", SLOW)
@pytest.mark.parametrize("kind", KINDS)
def test_a_text_that_never_comes_is_requested_once(
    kind: str, slow: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The time limit is that of all attempts together."""
    heard: list[str] = []
    with answering(kind, counted(SLOW[slow], heard)) as address:
        status = completed(address, kind, tmp_path)
    captured = capsys.readouterr()
    expect_one_line(status, captured)
    assert "within 1 s" in captured.err or "ReadTimeout" in captured.err
    assert len(heard) == 1, heard


@pytest.mark.parametrize("slow", SLOW)
@pytest.mark.parametrize(("kind", "path"), [(kind, path) for kind in KINDS for path in PATHS[kind]])
def test_a_description_that_never_comes_is_requested_once(
    kind: str, path: str, slow: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "PROBE_SECONDS", 1.0)
    monkeypatch.setattr(ollama, "LOAD_SECONDS", 2.0)
    heard: list[str] = []
    with (
        answering(kind, whole({}), **{path: counted(SLOW[slow], heard)}) as address,
        pytest.raises(AwayError, match=r"within \d s|ReadTimeout"),
    ):
        load_model(address, options=LoadOptions(tokenizer=EMBEDDED if kind == "vllm" else None))
    assert len(heard) == 1, heard


def test_a_description_of_many_slow_answers_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load_module, "LOADING_SECONDS", 1.0)
    heard: list[str] = []

    def slow_tokenize(handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        time.sleep(0.3)
        whole({"tokens": [1, 2]})(handler, body)

    with (
        answering("llama.cpp", whole({}), tokenize=counted(slow_tokenize, heard)) as address,
        pytest.raises(AwayError, match="has not described its model within 1 s"),
    ):
        load_model(address)
    assert len(heard) < 10


@pytest.mark.parametrize("kind", KINDS)
def test_a_stalled_stream_is_not_restarted(kind: str) -> None:
    """The error says that the endpoint may answer later, so that the server asks again."""
    heard: list[str] = []
    prompt_only = streamed(event(kind, step(kind)), b": alive\n\n", repeat=True, pause=0.05)
    options = LoadOptions(tokenizer=EMBEDDED if kind == "vllm" else None)
    with answering(kind, counted(prompt_only, heard)) as address:
        model = load_model(address, options=options)
        cache = model.new_cache(64)
        told = model.forward([97, 98], cache)

        def write(row: RemoteRow) -> None:
            for _ in range(3):
                row = model.forward([int(row.values.argmax())], cache)
                assert len(row.values)

        with pytest.raises(SilentError, match="the endpoint has not answered within 1 s"):
            write(told)
    assert len(heard) == 1, heard


def test_a_text_of_many_slow_answers_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend_module, "TEXT_SECONDS", 1.0)
    heard: list[str] = []

    def slow_text(handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        time.sleep(0.3)
        streamed(event("llama.cpp", step("llama.cpp")))(handler, body)

    with answering("llama.cpp", counted(slow_text, heard)) as address:
        model = load_model(address)
        cache = model.new_cache(64)

        def write() -> None:
            for _ in range(30):
                assert len(model.forward([98], cache).values)

        with pytest.raises(SilentError, match="more than 1 s for one text"):
            write()
        assert len(heard) < 30
        cache.rest()
        assert len(model.forward([98], cache).values)  # another text has its own time
