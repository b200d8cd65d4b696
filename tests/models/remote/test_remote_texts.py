"""Endpoints that take and report texts: prompts put together here, reported texts as tokens, Ollama's metadata."""

from __future__ import annotations

import ast
import itertools
import random
from typing import Any

import numpy as np
import pytest

from fim_server.decoding.complete import complete
from fim_server.decoding.options import DecodeOptions
from fim_server.decoding.results import Completion
from fim_server.errors import ModelError
from fim_server.models.backend import LostError
from fim_server.models.load import load_model
from fim_server.models.model import FimModel
from fim_server.models.options import LoadOptions
from fim_server.models.prompt import PLAIN
from fim_server.models.remote.backend import RemoteBackend
from fim_server.models.remote.dialects import Texts
from fim_server.models.remote.ollama import reported_tokens
from fim_server.models.remote.texts import Pieces, Sides, Whole
from fim_server.models.source import locate
from fim_server.text.document import Split
from support.engine.corpus import cuts, python
from support.models import endpoints
from support.models.endpoints import Endpoint, serving

EMBEDDED = locate("embedded")
KNOWN = {"ollama": LoadOptions(), "openai": LoadOptions(tokenizer=EMBEDDED)}
"""Sources of the model's tokens."""


@pytest.fixture(scope="module")
def local() -> FimModel:
    return load_model("embedded", "cpu", "onnx")


def written(model: FimModel, split: Split, **options: Any) -> Completion:
    return complete(model, python(), split, DecodeOptions(max_new_tokens=24, max_prompt_tokens=500, **options))


def dialect_of(model: FimModel) -> Texts:
    assert isinstance(model.backend, RemoteBackend)
    assert isinstance(model.backend.dialect, Texts)
    return model.backend.dialect


@pytest.mark.parametrize("kind", sorted(KNOWN))
def test_texts_are_those_of_the_model_in_this_process(local: FimModel, kind: str) -> None:
    """Also where the grammar refuses tokens, nearly always: the likeliest allowed one is among the told."""
    endpoint = Endpoint(local, kind, shows=True, inserts=False)
    refused = {False: [], True: []}  # type: dict[bool, list[bool]]
    with serving(endpoint) as address:
        remote = load_model(address, options=KNOWN[kind])
        assert (remote.mode, remote.format.family) == ("checked", local.format.family)
        for cut in itertools.islice(cuts(random.Random(7), 1_500, 2), 24):
            split = Split(cut.left, cut.right)
            here, there = (written(model, split, single_line=True, heal=False) for model in (local, remote))
            if there.text is not None:
                ast.parse(cut.left + there.text + cut.right)
            if not here.statistics.landing_steps:
                refused[here.statistics.refused_tokens > 0].append(there.text == here.text)
    assert refused[False]
    assert all(refused[False])
    assert sum(refused[True]) > 0.6 * len(refused[True]) > 0
    prompts = [body for body in endpoint.asked if len(body["prompt"]) > 10]
    assert all(body["prompt"].startswith("<|fim_suffix|>") and "suffix" not in body for body in prompts)
    assert all(body.get("raw") is (True if kind == "ollama" else None) for body in prompts)


def test_tokens_at_the_model_s_end_are_requested(local: FimModel) -> None:
    """The likeliest is to end, which the grammar refuses: endpoints with texts tell nothing of such a place."""
    for kind, options in KNOWN.items():
        with serving(Endpoint(local, kind, shows=True)) as address:
            remote = load_model(address, options=options)
            prefix = [*local.format.encode("a = ", "\n", 50), *local.vocabulary.encode("1")]
            row = np.asarray(local.forward(prefix, local.new_cache()))
            ends = local.vocabulary.end_token_ids
            others = [token for token in np.argsort(-row).tolist() if token not in ends]
            found = dialect_of(remote).likeliest(prefix, others[1:], lambda: None)
            assert found is not None
            assert found[0] == others[1]
            assert dialect_of(remote).likeliest(prefix, others[30:], lambda: None) is None


def test_the_window_is_the_endpoint_s(local: FimModel) -> None:
    with serving(Endpoint(local, "ollama", shows=True)) as address:
        assert load_model(address).backend.window == 1024


def test_reported_tokens_are_the_models(local: FimModel) -> None:
    with serving(Endpoint(local, "ollama", shows=True)) as address:
        remote = load_model(address)
    vocabulary = local.vocabulary
    for token in range(vocabulary.size):
        assert remote.vocabulary.token_bytes(token) == vocabulary.token_bytes(token)
    assert remote.vocabulary.end_token_ids == vocabulary.end_token_ids
    text = "def load(path):\n    return [path, 1_000]\n"
    assert b"".join(remote.vocabulary.token_bytes(token) for token in remote.vocabulary.encode(text)) == text.encode()


def test_a_template_is_used_where_no_tokens_are_reported(local: FimModel) -> None:
    endpoint = Endpoint(local, "ollama")
    with serving(endpoint) as address:
        remote = load_model(address)
        assert isinstance(dialect_of(remote).prompts, Sides)
        assert written(remote, Split("values = [", "]\n"), single_line=True).text is not None
    assert all(body["suffix"] == "]\n" and "raw" not in body for body in endpoint.asked)


def test_a_model_without_template_and_tokens_is_refused(local: FimModel) -> None:
    with (
        serving(Endpoint(local, "ollama", inserts=False)) as address,
        pytest.raises(ModelError, match=r"a-model:latest: does not report its tokens; --tokenizer names a file"),
    ):
        load_model(address)
    with serving(Endpoint(local, "ollama", inserts=False)) as address:
        remote = load_model(address, options=LoadOptions(tokenizer=EMBEDDED))
        assert isinstance(dialect_of(remote).prompts, Whole)


def test_a_control_token_s_name_is_no_text(local: FimModel) -> None:
    own = Pieces(local.vocabulary, local.format, own=True)
    other = Pieces(local.vocabulary, local.format, own=False)
    end = min(local.vocabulary.end_token_ids)
    for pieces in (own, other):
        assert pieces.token(b"<|endoftext|>") == end
        assert pieces.token(b"<|fim_prefix|>") is None
        assert pieces.token(b"<fim_middle>") is None
        assert pieces.token(b"") == end
    assert other.token(b"</s>") == end
    assert local.vocabulary.token_bytes(own.token(b" = ") or own.token(b" =") or 0) in (b" = ", b" =")
    # A text that is no token of the model's own is none; over another's, its beginning is.
    assert own.token(b"qzx qzx") is None
    assert other.token(b"qzx qzx") is not None


def test_lost_characters_are_ignored(local: FimModel) -> None:
    pieces = Pieces(local.vocabulary, local.format, own=False)
    assert pieces.tokens({"\ufffd".encode(): -0.1}) == {}
    (token,) = pieces.tokens({"\ufffd".encode(): -0.1, b"(": -3.0})
    assert local.vocabulary.token_bytes(token) == b"("


@pytest.mark.parametrize("kind", sorted(KNOWN))
def test_characters_in_several_tokens_are_written(local: FimModel, kind: str) -> None:
    pieces = local.vocabulary.encode("\N{SNOWMAN}")
    assert len(pieces) > 1
    left, right = 'snowman = "\N{SNOWMAN}"\ncopied = "', '"\n'
    with serving(Endpoint(local, kind, shows=True)) as address:
        remote = load_model(address, options=KNOWN[kind])
        cache = remote.new_cache()
        prefix = local.format.encode(left, right, 100)
        row = remote.forward(prefix, cache)
        assert 0 <= remote.backend.arithmetic.likeliest(row) < remote.vocabulary.size
        completion = written(remote, Split(left, right), single_line=True)
    if completion.text is not None:
        ast.parse(left + completion.text + right)


def test_a_token_that_the_endpoint_puts_first_is_not_sent_twice(local: FimModel) -> None:
    begin = local.format.token("<|fim_suffix|>")
    prompt = local.format.encode("a = ", "\nb = 2\n", 50)
    whole = Whole(local.format, local.vocabulary, None, raw=True).fields(prompt)
    assert whole == {"prompt": "<|fim_suffix|>\nb = 2\n<|fim_prefix|>a = <|fim_middle|>", "raw": True}
    fields = Whole(local.format, local.vocabulary, begin, raw=False).fields(prompt)
    assert fields == {"prompt": "\nb = 2\n<|fim_prefix|>a = <|fim_middle|>"}


def sentence_piece(**others: Any) -> dict[str, Any]:
    names = ["<unk>", "<s>", "</s>", "<0x0A>", "▁", "▁a", "a", "=", "▁=", "1", "▁1", "    "]
    letters = [character for character in map(chr, range(33, 127)) if character not in names]
    return {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": names + letters,
        "tokenizer.ggml.token_type": [2, 3, 3, 6, 1, 1, 1, 1, 1, 1, 1, 4, *([1] * len(letters))],
        "tokenizer.ggml.scores": [0.0] * 4
        + [-float(number) for number in range(1, 8)]
        + [0.0]
        + [-20.0] * len(letters),
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        **others,
    }


def test_tokens_of_sentencepiece_s_kind_are_read() -> None:
    bound, vocabulary = reported_tokens(sentence_piece())
    texts = [vocabulary.token_bytes(token) for token in range(vocabulary.size)]
    assert texts[:12] == [b"", b"", b"", b"\n", b" ", b" a", b"a", b"=", b" =", b"1", b" 1", b"    "]
    assert (bound.family, bound.pieces[0], bound.stop_ids) == (PLAIN, 1, (2,))
    assert b"".join(texts[token] for token in vocabulary.encode("a = 1\n    a")) == b"a = 1\n    a"
    unbegun, _ = reported_tokens(sentence_piece(**{"tokenizer.ggml.add_bos_token": False}))
    assert len(unbegun.pieces) == 1


@pytest.mark.parametrize(
    ("others", "problem"),
    [
        ({"tokenizer.ggml.tokens": None}, "does not report its tokens"),
        ({"tokenizer.ggml.model": "bert"}, "a tokenizer of the kind 'bert'"),
        ({"tokenizer.ggml.eos_token_id": None}, "does not report which token ends its texts"),
        ({"tokenizer.ggml.scores": [0.0]}, "reports tokens that are not understood"),
        ({"tokenizer.ggml.tokens": [1, 2, 3], "tokenizer.ggml.scores": None}, "its tokens make no tokenizer"),
    ],
)
def test_unreadable_tokens_are_one_line(others: dict[str, Any], problem: str) -> None:
    with pytest.raises(ModelError, match=problem) as failure:
        reported_tokens(sentence_piece(**others))
    assert "\n" not in str(failure.value)


def test_a_model_without_fim_tokens_reads_the_prefix(local: FimModel) -> None:
    """Behind a template for filling in, Ollama puts the prompt together; without one, the grammar connects."""
    endpoint = Endpoint(local, "ollama", shows=True, unmarked=True)
    with serving(endpoint) as address:
        assert isinstance(dialect_of(load_model(address)).prompts, Sides)
        endpoint.inserts = False
        remote = load_model(address)
        assert remote.format.family == PLAIN
        assert dialect_of(remote).prompts.fields(remote.format.encode("a = ", "\n", 50)) == {
            "prompt": "a = ",
            "raw": True,
        }


@pytest.mark.parametrize("odd", [None, [], 3, "x", {"models": 3}, {"models": [3, None]}, {"models": [{"name": None}]}])
def test_answers_of_other_kinds_are_no_models(local: FimModel, odd: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in ("/api/tags", "/api/ps"):
        with monkeypatch.context() as patch, serving(Endpoint(local, "ollama", shows=True)) as address:
            patch.setitem(endpoints.GETS["ollama"], path, lambda endpoint: odd)
            if path == "/api/ps":
                assert load_model(address).backend.window == 2048  # what the model was trained with
            else:
                with pytest.raises(ModelError):
                    load_model(f"{address}#a-model")


@pytest.mark.parametrize("odd", [[], "x", {"model_info": 3}, {"model_info": {"llama.context_length": "long"}}])
def test_ollama_s_description_may_be_anything(local: FimModel, odd: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(endpoints.POSTS["ollama"], "/api/show", lambda endpoint, body: odd)
    with serving(Endpoint(local, "ollama")) as address:
        assert isinstance(dialect_of(load_model(address)).prompts, Sides)


@pytest.mark.parametrize(
    "entry",
    [
        {"token": "a", "bytes": 300_000_000, "logprob": -1.0},
        {"token": "a", "bytes": 10**30, "logprob": -1.0},
        {"token": "a", "bytes": [400], "logprob": -1.0},
        {"token": "a", "logprob": 1000.0},
        {"token": "a", "logprob": float("nan")},
        {"token": "a", "logprob": float("inf")},
        {"token": "a", "logprob": "x"},
    ],
)
def test_invalid_reported_texts_are_ignored(local: FimModel, entry: dict[str, Any]) -> None:
    endpoint = Endpoint(local, "ollama", shows=True, entry=entry)
    with serving(endpoint) as address:
        remote = load_model(address)
        row = remote.forward(local.format.encode("a = ", "\n", 50), remote.new_cache())
        with pytest.raises(LostError):
            remote.backend.arithmetic.likeliest(row)


def test_a_key_that_the_endpoint_repeats_is_in_no_message(local: FimModel, monkeypatch: pytest.MonkeyPatch) -> None:
    key = "sesame-open-0123456789"
    monkeypatch.setenv("A_KEY", key)
    for said in (f"bad Bearer {key}", "x" * 190 + key):
        endpoint = Endpoint(local, "ollama", shows=True, key=key, said=said)
        with serving(endpoint) as address:
            remote = load_model(address, options=LoadOptions(api_key_env="A_KEY"))
            for faults in (["error"], ["400"]):
                endpoint.faults = list(faults)
                row = remote.forward(local.format.encode("a = ", "\n", 50), remote.new_cache())
                with pytest.raises(LostError) as failure:
                    remote.backend.arithmetic.likeliest(row)
                assert "sesame" not in str(failure.value)


def test_tokens_that_cannot_spell_source_code_are_none() -> None:
    with pytest.raises(ModelError, match="reports tokens"):
        reported_tokens(sentence_piece(**{"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.merges": []}))
    for odd in (-1, 10**20, 999, True, "x"):
        bound, _ = reported_tokens(sentence_piece(**{"tokenizer.ggml.bos_token_id": odd}))
        assert len(bound.pieces) == 1


def test_an_endpoint_s_names_cause_no_download(local: FimModel, monkeypatch: pytest.MonkeyPatch) -> None:
    def fetched(*values: Any, **options: Any) -> str:
        raise AssertionError("something is fetched")

    monkeypatch.setattr("fim_server.models.source.fetch", fetched)
    with (
        serving(Endpoint(local, "vllm", file="somebody/some-model")) as address,
        pytest.raises(ModelError, match="name --tokenizer"),
    ):
        load_model(address)


@pytest.mark.parametrize("named", ["x" * 5000 + "/y", "~nobody-of-that-name/model", "a/b\x1b[31m\nred", "a\0b"])
def test_an_endpoint_that_names_its_model_oddly_gets_one_line(local: FimModel, named: str) -> None:
    with serving(Endpoint(local, "vllm", file=named)) as address, pytest.raises(ModelError) as failure:
        load_model(address)
    said = str(failure.value)
    assert said.endswith("nor in the hub's cache): name --tokenizer")
    assert said.isprintable()
    assert len(said) < 300
