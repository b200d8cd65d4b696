"""Endpoints that answer with given bytes: what a request for text gets is the test's, the rest is as it should be.

The model has 256 tokens of a byte each, a control token of each part of a prompt, and one that ends a text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler
from typing import Any

from support.http_serving import QuietHandler, serving_by

NAMES = ("<|endoftext|>", "<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>")
SIZE = 256 + len(NAMES)

TEXT_PATHS = {"llama.cpp": "/completion", "vllm": "/v1/completions", "ollama": "/api/generate"}
TEXT_PATHS["openai"] = TEXT_PATHS["vllm"]

Answer = Callable[[BaseHTTPRequestHandler, dict[str, Any]], None]
"""Writes all of an answer; is given the request's body."""


def byte_characters() -> list[str]:
    """The characters that stand for bytes in byte-level BPE."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    return [chr(byte if byte in plain else next(others)) for byte in range(256)]


def whole(content: object, status: int = 200, headers: dict[str, str] | None = None) -> Answer:
    """An answer of one piece: bytes as they are, anything else as JSON."""
    data = content if isinstance(content, bytes) else json.dumps(content).encode()

    def answer(handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        handler.send_response(status)
        for name, value in {"Content-Length": str(len(data)), **(headers or {})}.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(data)

    return answer


def probabilities(size: int = SIZE, text: Callable[[int], bytes] = lambda number: bytes([number])) -> Answer:
    """llama.cpp's answer that tells its vocabulary."""
    told = [
        {"id": number, "bytes": list(text(number)) if number < 256 else [], "logprob": -1.0} for number in range(size)
    ]
    return whole({"completion_probabilities": [{"id": 1, "logprob": -1.0, "top_logprobs": told}]})


def tokenize(handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
    """llama.cpp's answer to a text."""
    text = body["content"]
    is_name = body.get("parse_special") and text in NAMES
    whole({"tokens": [256 + NAMES.index(text)] if is_name else list(text.encode())})(handler, body)


def shown() -> dict[str, Any]:
    """Description of the model, as Ollama sends it."""
    return {
        "capabilities": ["completion", "insert"],
        "model_info": {
            "tokenizer.ggml.model": "gpt2",
            "tokenizer.ggml.tokens": [*byte_characters(), *NAMES],
            "tokenizer.ggml.token_type": [1] * 256 + [3] * len(NAMES),
            "tokenizer.ggml.merges": [],
            "tokenizer.ggml.eos_token_id": 256,
        },
    }


def usual(kind: str) -> dict[str, Answer]:
    """Return an endpoint's answers to requests other than for text, by its kind."""
    listed = {"data": [{"id": "a-model", "owned_by": kind, "root": "/models/a-model", "max_model_len": 4096}]}
    answers: dict[str, dict[str, Answer]] = {
        "llama.cpp": {
            "/props": whole({"default_generation_settings": {"n_ctx": 4096}, "model_path": "/models/a.gguf"}),
            "/tokenize": tokenize,
        },
        "vllm": {"/v1/models": whole(listed)},
        "ollama": {
            "/api/version": whole({"version": "0.30"}),
            "/api/ps": whole({"models": []}),
            "/api/tags": whole({"models": [{"name": "a-model"}]}),
            "/api/show": whole(shown()),
        },
        "openai": {"/v1/models": whole(listed)},
    }
    return answers[kind]


@contextmanager
def answering(kind: str, texts: Answer, **others: Answer) -> Iterator[str]:
    """The address of an endpoint. ``texts``: its answers to requests for text; ``others``: by path, `/` being `_`."""
    answers = {**usual(kind), **{"/" + path.replace("_", "/"): answer for path, answer in others.items()}}

    class Handler(QuietHandler):
        protocol_version = "HTTP/1.0"

        def do_GET(self) -> None:
            self._answer({})

        def do_POST(self) -> None:
            self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        def _answer(self, body: dict[str, Any]) -> None:
            answer = answers.get(self.path, whole({"error": "not found"}, 404))
            if self.path == TEXT_PATHS[kind] and self.path.lstrip("/").replace("/", "_") not in others:
                answer = texts
                if kind == "llama.cpp" and body.get("n_probs", 0) > SIZE:
                    answer = probabilities()
                if kind == "ollama" and "prompt" not in body:
                    answer = whole({"done": True})
                if kind == "openai" and body.get("max_tokens") == 1 and not body.get("stream"):
                    answer = whole({"choices": [{"text": "a", "logprobs": None}]})
            with suppress(OSError):
                answer(self, body)

    with serving_by(Handler) as address:
        yield address
