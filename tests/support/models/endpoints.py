"""Endpoints played over a model in this process: llama.cpp's server, vLLM, Ollama, and one of OpenAI's kind.

What they say has the form that the real ones have: llama.cpp's was written down from its server, the others' from their
documentation. A list of faults says what goes wrong with which request.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fim_server.models.model import FimModel
from fim_server.models.reading import Readings
from support.http_serving import QuietHandler, serving_by

TOLD = 20


@dataclass
class Endpoint:
    """Behaviour of an endpoint.

    Attributes:
        model: The model that writes.
        kind: `llama.cpp`, `vllm`, `ollama` or `openai`.
        faults: Fault of each request for text in turn, or the empty string. It is an HTTP status, `cut N` (gone after
        so many events), `garbage`, `error` (an error in the stream), `ids` (unknown ids) or `bytes` (another token's).
        Further faults are `shares` (no log probability) and `silent` (nothing comes).
        told: Number of log probabilities at each place; 0 for none.
        refuses: Fields with which a request is refused.
        newer: True if log probabilities come as in chat completions.
        shows: True if Ollama sends its model's tokens.
        inserts: True if Ollama's model comes with a template for filling in.
        unmarked: True if those tokens lack the prompt format's.
        entry: Ollama's data on a token, in place of the true one.
        said: The fault, in the endpoint's words.
        key: Key that a client has to show.
        file: The model's file in llama.cpp's answer.
        asked: Bodies of requests for text.
        gone: Number of streams that clients left.
    """

    model: FimModel
    kind: str
    faults: list[str] = field(default_factory=list)
    told: int = TOLD
    refuses: tuple[str, ...] = ()
    newer: bool = False
    shows: bool = False
    inserts: bool = True
    unmarked: bool = False
    entry: dict[str, Any] | None = None
    said: str = ""
    key: str | None = None
    file: str = ""
    asked: list[dict[str, Any]] = field(default_factory=list)
    gone: int = 0

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._readings = Readings(self.model)

    def fault(self) -> str:
        """Fault of the next request."""
        with self._lock:
            return self.faults.pop(0) if self.faults else ""

    def row(self, prefix: list[int]) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Log probabilities [V] after a prompt."""
        with self._lock:
            reading = self._readings.take(prefix)
            kept = reading.resume(prefix)
            logits = np.asarray(reading.forward(prefix[kept:]), dtype=np.float64)
            self._readings.give_back(reading)
        highest = float(logits.max())
        logits -= highest + float(np.log(np.exp(logits - highest).sum()))
        return logits

    def write(
        self, prompt: list[int], count: int, change: Callable[[np.ndarray[Any, Any]], None]
    ) -> Iterator[tuple[int, np.ndarray[Any, Any]]]:
        """The likeliest tokens and the rows before them; ``change``: what is done to a row before one is chosen."""
        prefix = list(prompt)
        for _ in range(count):
            row = self.row(prefix)
            changed = row.copy()
            change(changed)
            token = int(changed.argmax())
            yield token, row
            if token in self.model.vocabulary.end_token_ids:
                return
            prefix.append(token)

    def prompt_of(self, body: dict[str, Any]) -> list[int]:
        """The prompt of a request: what it says itself, or of two texts, as a server with a template makes it."""
        prompt, right = body["prompt"], body.get("suffix", "")
        if any(name in prompt for name in ("<|fim_prefix|>", "<|fim_suffix|>")):
            tokenizer = self.model.format.tokenizer
            return list(tokenizer.encode(prompt, add_special_tokens=False, split_special_tokens=False))
        return self.model.format.encode(prompt, right, 600)

    def bytes_of(self, token: int) -> bytes:
        """A token's bytes."""
        return self.model.vocabulary.token_bytes(token)

    def shown(self, token: int) -> bytes:
        """A token as endpoints show it that know texts: control tokens by their names."""
        return self.bytes_of(token) or str(self.model.format.tokenizer.convert_ids_to_tokens(token)).encode()


def likeliest(row: np.ndarray[Any, Any], count: int) -> list[tuple[int, float]]:
    """The likeliest tokens with their log probabilities."""
    return [(int(token), float(row[token])) for token in np.argsort(-row, kind="stable")[:count]]


@contextmanager
def serving(endpoint: Endpoint, port: int = 0) -> Iterator[str]:
    """The endpoint's address on this machine; the port 0 is any that is free. Raises OSError for one that is taken."""

    class Handler(QuietHandler):
        def do_GET(self) -> None:
            found = GETS[endpoint.kind].get(self.path)
            self._whole(404, {"error": "not found"}) if found is None else self._whole(200, found(endpoint))

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if endpoint.key is not None and self.headers.get("Authorization") != f"Bearer {endpoint.key}":
                self._whole(401, {"error": {"message": f"wrong key {self.headers.get('Authorization')}"}})
                return
            answer = POSTS[endpoint.kind].get(self.path)
            if answer is None:
                self._whole(404, {"error": "not found"})
                return
            if self.path not in TEXT_PATHS or "prompt" not in body:
                self._whole(200, answer(endpoint, body))
                return
            if set(endpoint.refuses) & set(body):
                self._whole(400, {"error": {"message": f"not supported: {endpoint.refuses}"}})
                return
            endpoint.asked.append(body)
            fault = endpoint.fault()
            if fault.isdecimal():
                self._whole(int(fault), {"error": {"message": endpoint.said or "not now"}}, retry="0.01")
                return
            if fault == "silent":
                time.sleep(30)
                return
            events = answer(endpoint, {**body, "fault": fault})
            if not body.get("stream"):
                self._whole(200, events)
                return
            self._stream(events, fault)

        def _whole(self, status: int, content: Any, retry: str | None = None) -> None:
            data = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            if retry is not None:
                self.send_header("Retry-After", retry)
            with suppress(OSError):  # who asked has gone
                self.end_headers()
                self.wfile.write(data)

        def _stream(self, events: Iterator[Any], fault: str) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            self.close_connection = True
            form = "{}\n" if endpoint.kind == "ollama" else "data: {}\n\n"
            left = int(fault.removeprefix("cut ")) if fault.startswith("cut ") else None
            try:
                for number, event in enumerate(events):
                    if number == left:
                        return
                    text = "{nonsense" if fault == "garbage" else json.dumps(event)
                    if fault == "error":
                        text = json.dumps({"error": {"message": endpoint.said or "out of memory"}})
                    self.wfile.write(form.format(text).encode())
                    self.wfile.flush()
                if endpoint.kind in ("vllm", "openai"):
                    self.wfile.write(b"data: [DONE]\n\n")
            except OSError:
                endpoint.gone += 1

    with serving_by(Handler, port) as address:
        yield address


TEXT_PATHS = ("/completion", "/v1/completions", "/api/generate")


# --- llama.cpp ----------------------------------------------------------------------------------------------------


def llama_cpp_completion(endpoint: Endpoint, body: dict[str, Any]) -> Any:
    """Events, or one answer. A token that ends inside a character is held back, as the real server does."""
    prompt = body["prompt"]
    if isinstance(prompt, str):
        prompt = endpoint.model.vocabulary.encode(prompt)
    count = min(body["n_probs"], endpoint.model.size)

    def change(row: np.ndarray[Any, Any]) -> None:
        for token, bias in body.get("logit_bias", []):
            row[token] = -np.inf if bias is False else row[token] + bias

    def entry(token: int, row: np.ndarray[Any, Any]) -> dict[str, Any]:
        told = [
            {"id": other, "token": "", "bytes": list(endpoint.bytes_of(other)), "logprob": share}
            for other, share in likeliest(row, count)
        ]
        number, text = token, endpoint.bytes_of(token)
        if body["fault"] == "ids":
            number = 10**6
        if body["fault"] == "shares":
            told[0]["logprob"] = float("nan")
        if body["fault"] == "bytes":
            text = b"another"
        return {"id": number, "token": "", "bytes": list(text), "logprob": float(row[token]), "top_logprobs": told}

    written = endpoint.write(prompt, body["n_predict"], change)
    if not body.get("stream"):
        found = [entry(token, row) for token, row in written]
        return {"content": "", "tokens": [one["id"] for one in found], "completion_probabilities": found}

    def events() -> Iterator[Any]:
        text = b""
        for number, (token, row) in enumerate(written):
            text += endpoint.bytes_of(token)
            try:
                text.decode()
            except UnicodeDecodeError:
                continue
            probabilities = [entry(token, row)]
            yield {
                "content": "",
                "stop": False,
                "tokens_predicted": number + 1,
                "completion_probabilities": probabilities,
            }
        yield {"content": "", "stop": True, "tokens_predicted": body["n_predict"]}

    return events()


def llama_cpp_tokenize(endpoint: Endpoint, body: dict[str, Any]) -> Any:
    """The ids of a text."""
    tokenizer = endpoint.model.format.tokenizer
    ids = tokenizer.encode(
        body["content"], add_special_tokens=False, split_special_tokens=not body.get("parse_special", False)
    )
    return {"tokens": ids}


# --- vLLM ---------------------------------------------------------------------------------------------------------


def vllm_completion(endpoint: Endpoint, body: dict[str, Any]) -> Any:
    """Events, or one answer."""
    allowed = body.get("allowed_token_ids")

    def change(row: np.ndarray[Any, Any]) -> None:
        for token, bias in body.get("logit_bias", {}).items():
            row[int(token)] += bias
        if allowed is not None:
            kept = row[allowed].copy()
            row[:] = -np.inf
            row[allowed] = kept

    def choice(token: int, row: np.ndarray[Any, Any]) -> Any:
        told = {f"token_id:{other}": share for other, share in likeliest(row, body["logprobs"])}
        told[f"token_id:{token}"] = float(row[token])
        number = 10**6 if body["fault"] == "ids" else token
        return {"choices": [{"text": "", "logprobs": {"tokens": [f"token_id:{number}"], "top_logprobs": [told]}}]}

    written = endpoint.write(body["prompt"], body["max_tokens"], change)
    if not body.get("stream"):
        return next(choice(token, row) for token, row in written)
    return (choice(token, row) for token, row in written)


# --- texts --------------------------------------------------------------------------------------------------------


def texts(
    endpoint: Endpoint, body: dict[str, Any], count: int
) -> Iterator[tuple[bytes, list[tuple[bytes, float]], bool]]:
    """Texts of tokens, whole characters, with the likeliest ones; the last one is empty where the model has ended."""
    options = body.get("options", body)
    noise = np.random.default_rng(options.get("seed", 0))

    def change(row: np.ndarray[Any, Any]) -> None:
        row += options["temperature"] * noise.gumbel(size=len(row))

    for token, row in endpoint.write(endpoint.prompt_of(body), count, change):
        told = [(endpoint.shown(other), share) for other, share in likeliest(row, endpoint.told)]
        yield endpoint.bytes_of(token), told, token in endpoint.model.vocabulary.end_token_ids


def ollama_show(endpoint: Endpoint, body: dict[str, Any]) -> Any:
    """Description of the model with its tokens, as Ollama 0.17 gives it for a GGUF file."""
    found: dict[str, Any] = {"capabilities": ["completion", *(["insert"] if endpoint.inserts else [])]}
    if not endpoint.shows:
        return {**found, "model_info": {"tokenizer.ggml.tokens": None}}
    definition = json.loads(endpoint.model.format.tokenizer.backend_tokenizer.to_str())  # type: ignore[attr-defined]
    pieces = {number: piece for piece, number in definition["model"]["vocab"].items()}
    special = {token["id"]: token["content"] for token in definition["added_tokens"]}
    names = [(pieces | special)[number] for number in range(len(pieces | special))]
    if endpoint.unmarked:
        names = [name.replace("|fim_", "|other_") for name in names]
    merges = [" ".join(merge) for merge in definition["model"]["merges"]]
    return {
        **found,
        "model_info": {
            "tokenizer.ggml.model": "gpt2",
            "tokenizer.ggml.tokens": names,
            "tokenizer.ggml.token_type": [3 if number in special else 1 for number in range(len(names))],
            "tokenizer.ggml.merges": merges,
            "tokenizer.ggml.eos_token_id": endpoint.model.vocabulary.end_token_ids[0],
            "llama.context_length": 2048,
        },
    }


def ollama_generate(endpoint: Endpoint, body: dict[str, Any]) -> Any:
    """Lines of JSON; without a prompt, one, after loading. What is no character is told as one that stands for it."""

    def one(text: bytes, share: float) -> dict[str, Any]:
        shown = text.decode(errors="replace")
        return {"token": shown, "bytes": list(shown.encode()), "logprob": share}

    if "prompt" not in body:
        return {"response": "", "done": True, "done_reason": "load"}

    def events() -> Iterator[Any]:
        count = body["options"]["num_predict"]
        for text, told, is_end in texts(endpoint, body, count):
            if is_end:
                yield {"response": "", "done": True, "done_reason": "stop"}
                return
            event: dict[str, Any] = {"response": text.decode(errors="replace"), "done": False}
            if endpoint.entry is not None:
                event["response"] = endpoint.entry["token"]
                event["logprobs"] = [{**endpoint.entry, "top_logprobs": [endpoint.entry]}]
            elif endpoint.told:
                event["logprobs"] = [{**one(text, told[0][1]), "top_logprobs": [one(*entry) for entry in told]}]
            yield event
        yield {"response": "", "done": True, "done_reason": "length"}

    return events() if body.get("stream", True) else next(events())


def openai_completion(endpoint: Endpoint, body: dict[str, Any]) -> Any:
    """Events, or one answer."""

    def choice(text: bytes, told: list[tuple[bytes, float]]) -> dict[str, Any]:
        shown = text.decode(errors="replace")
        found: dict[str, Any] = {"text": shown, "finish_reason": None, "logprobs": None}
        if endpoint.told and body.get("logprobs") and endpoint.newer:
            entries = [{"token": "", "bytes": list(other), "logprob": share} for other, share in told]
            found["logprobs"] = {"content": [{"token": shown, "bytes": list(text), "top_logprobs": entries}]}
        elif endpoint.told and body.get("logprobs"):
            shares = {other.decode(errors="replace"): share for other, share in told}
            found["logprobs"] = {"tokens": [shown], "top_logprobs": [shares]}
        return found

    def events() -> Iterator[Any]:
        for text, told, is_end in texts(endpoint, body, body["max_tokens"]):
            if is_end:
                yield {"choices": [{"text": "", "finish_reason": "stop", "logprobs": None}]}
                return
            yield {"choices": [choice(text, told)]}
        yield {"choices": [{"text": "", "finish_reason": "length", "logprobs": None}]}

    return events() if body.get("stream") else next(events())


def listed(name: str, owner: str) -> Callable[[Endpoint], Any]:
    """The answer of `/v1/models`."""
    return lambda endpoint: {"data": [{"id": name, "owned_by": owner, "root": endpoint.file, "max_model_len": 1024}]}


GETS: dict[str, dict[str, Callable[[Endpoint], Any]]] = {
    "llama.cpp": {
        "/props": lambda endpoint: {"default_generation_settings": {"n_ctx": 1024}, "model_path": endpoint.file}
    },
    "vllm": {"/v1/models": listed("a-model", "vllm")},
    "ollama": {
        "/api/version": lambda endpoint: {"version": "0.30"},
        "/api/ps": lambda endpoint: {"models": [{"name": "a-model:latest", "context_length": 1024}]},
        "/api/tags": lambda endpoint: {"models": [{"name": "a-model:latest"}]},
        "/v1/models": listed("a-model:latest", "library"),
    },
    "openai": {"/v1/models": listed("a-model", "somebody")},
}

POSTS: dict[str, dict[str, Callable[[Endpoint, dict[str, Any]], Any]]] = {
    "llama.cpp": {"/completion": llama_cpp_completion, "/tokenize": llama_cpp_tokenize},
    "vllm": {"/v1/completions": vllm_completion},
    "ollama": {"/api/generate": ollama_generate, "/api/show": ollama_show},
    "openai": {"/v1/completions": openai_completion},
}
