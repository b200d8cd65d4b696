"""The benchmark of the masks in SGLang, with a stand-in of its server: what is asked, and what is judged."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
import pytest

from benchmarks.engines import sglang
from benchmarks.engines.serving import Request
from benchmarks.engines.sglang import SglangOptions
from fim_server import Vocabulary
from fim_server.errors import HoleError
from fim_server.integrations.holes import hole_of, is_hole
from fim_server.integrations.middles import begin
from fim_server.models.load import load_model
from fim_server.models.masking import word_count

GIVEN = ["--python", "python", "--model", "embedded", "--requests", "4", "--tokens", "12"]


class StandIn(sglang.Server):
    """Writes the likeliest of no scores at all: the first token that is allowed."""

    def __init__(self, vocabulary: Vocabulary, says: str | None) -> None:
        super().__init__("http://stand-in")
        self.vocabulary, self.says = vocabulary, says
        self.left: list[Request] = []

    def ask(self, request: Request, tokens: int, **settings: Any) -> httpx2.Response:
        asked = json.loads(json.dumps(sglang.body(request, tokens, settings)))["sampling_params"]
        wrong = {"stop", "stop_regex", "ignore_eos", "min_new_tokens", "regex", "json_schema"} & asked.keys()
        grammar = asked.get("ebnf")
        if wrong or (grammar is not None and not is_hole(grammar)):
            return httpx2.Response(400, json={"error": {"message": "no"}})
        try:
            ids = self.vocabulary.encode("x ") if grammar is None else self.fill(grammar, asked["max_new_tokens"])
        except HoleError as error:
            return httpx2.Response(400, json={"error": {"message": f"fim-server: {error}"}})
        text = b"".join(self.vocabulary.token_bytes(token) for token in ids if token not in self.ends).decode()
        said = self.says if self.says is not None and grammar is not None else text
        reason = {"type": "stop" if ids[-1] in self.ends else "length"}
        return httpx2.Response(200, json={"text": said, "output_ids": ids, "meta_info": {"finish_reason": reason}})

    def leave(self, request: Request, tokens: int) -> None:
        self.left.append(request)

    @property
    def ends(self) -> set[int]:
        return set(self.vocabulary.end_token_ids)

    def fill(self, grammar: str, tokens: int) -> list[int]:
        hole = hole_of(grammar)
        middle = begin(hole.open(), hole, self.vocabulary, tokens - 1)
        words = np.zeros(word_count(self.vocabulary.size), dtype=np.uint32)
        while not middle.ended and len(middle.tokens) < tokens:
            middle.fill(words)
            allowed = np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little"))
            assert middle.take(int(allowed[0]))
        return middle.tokens


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> list[tuple[str, ...]]:
    """Servers are stand-ins; gives what each was started with."""
    vocabulary, found = load_model("embedded").vocabulary, []

    @contextmanager
    def serving(options: SglangOptions, *arguments: str) -> Iterator[StandIn]:
        found.append(arguments)
        yield StandIn(vocabulary, getattr(request, "param", None))

    monkeypatch.setattr(sglang, "serving", serving)
    return found


def test_rows_that_fit(started: list[tuple[str, ...]], capsys: pytest.CaptureFixture[str]) -> None:
    assert sglang.main(GIVEN) == 0
    said = capsys.readouterr().out
    assert started == [(), sglang.BACKEND, (*sglang.BACKEND, "--disable-overlap-schedule")]
    assert "masked rows: 4, viable 4" in said
    assert "unmasked rows: 2 of 2 the same as without" in said
    assert said.count("wrong requests: 12 refused") == 2
    assert "4 of 4 the same as before" in said


@pytest.mark.parametrize("started", ["\x00"], indirect=True)
def test_rows_that_do_not_fit(started: list[tuple[str, ...]], capsys: pytest.CaptureFixture[str]) -> None:
    assert sglang.main([*GIVEN, "--only", "structured"]) == 1
    assert started == [sglang.BACKEND]
    assert "NOT AS PROMISED: with the backend: '\\x00' does not fit" in capsys.readouterr().out


def test_a_folder_without_weights_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    assert sglang.main([*GIVEN, "--model", str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"fim-server: {tmp_path}: its folder has no weights (*.safetensors)\n"


def test_an_environment_without_sglang(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    interpreter = tmp_path / "python"
    interpreter.write_text("#!/bin/sh\necho no such module\nexit 1\n", encoding="utf-8")
    interpreter.chmod(0o755)
    assert sglang.main([*GIVEN, "--python", str(interpreter), "--port", "8437"]) == 2
    assert "SGLang did not start: no such module" in capsys.readouterr().err
