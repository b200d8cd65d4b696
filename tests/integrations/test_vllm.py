"""The plug-in of vLLM against stand-ins of what it replaces and implements, with the engine's real masks.

`python -m benchmarks.engines.vllm` does the same with a real vLLM (docs/engines.md).
"""

from __future__ import annotations

import json
import logging
import random
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from prometheus_client import CollectorRegistry, generate_latest

from fim_server import Language, Vocabulary
from fim_server.errors import HoleError, VersionError
from fim_server.integrations import meter
from fim_server.integrations.holes import PREFIX
from fim_server.models.load import load_model
from fim_server.models.source import locate
from fim_server.models.tokenizer import read_tokenizer
from support.models.engine_stand_ins import (
    AnythingGrammar,
    BatchUpdate,
    MoveDirectionality,
    StructuredOutputsParams,
    VLLMValidationError,
    grammar_of,
    vllm_config,
    vllm_stand_in,
)

HOLES: list[dict[str, Any]] = [
    {"left": "def f(x):\n    return ", "right": "\n"},
    {"left": '{"a": [1, ', "right": "}\n", "language": "json"},
    {"left": "value = call(a, [1, ", "right": "\nprint(value)\n", "shape": {"lines": 1}},
    {"left": "for x in ", "right": ":\n    print(x)\n"},
]


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return load_model("embedded").vocabulary


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return read_tokenizer(Path(locate("embedded")), "embedded")


@pytest.fixture
def manager(tokenizer: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[type]:
    monkeypatch.setattr(meter, "start_collector", lambda: False)
    with vllm_stand_in(tokenizer) as found:
        from fim_server.integrations import vllm as plug_in

        plug_in.register()
        plug_in.register()  # vLLM may call it again
        yield found


def params(grammar: object = None, vocabulary: Vocabulary | None = None, **settings: Any) -> Any:
    import vllm  # the stand-in

    outputs = None if grammar is None else StructuredOutputsParams(grammar=as_grammar(grammar))
    ends = set() if vocabulary is None else set(vocabulary.end_token_ids)
    return vllm.SamplingParams(structured_outputs=outputs, all_stop_token_ids=ends, **settings)


def as_grammar(hole: object) -> str:
    return hole if isinstance(hole, str) else PREFIX + json.dumps(hole)


def request(given: Any) -> Any:
    held = None if given.structured_outputs is None else SimpleNamespace(params=given.structured_outputs, grammar=None)
    return SimpleNamespace(sampling_params=given, structured_output_request=held)


def verify(given: Any, processors: tuple[Any, ...] = ()) -> None:
    given.verify(vllm_config(100, processors).model_config, SimpleNamespace(backend="auto"), object())


def allowed(row: torch.Tensor) -> list[int]:
    octets = row.numpy().view(np.uint8)
    found: list[int] = np.flatnonzero(np.unpackbits(octets, bitorder="little")).tolist()
    return found


def expected(hole: dict[str, Any], vocabulary: Vocabulary, tokens: list[int]) -> list[int]:
    """By a matcher that was only moved forwards, and the walk with nothing kept."""
    from fim_server.integrations.holes import Hole

    read = Hole.of(hole)
    matcher = read.open().matcher(vocabulary, shape=read.shape)
    for token in tokens:
        matcher.commit(token)
    words = np.zeros(-(-vocabulary.size // 32), dtype=np.uint32)
    matcher.fill_mask_plain(words)
    return allowed(torch.from_numpy(words.view(np.int32)))


# --- validation -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("grammar", "settings", "said"),
    [
        ({"right": ""}, {}, "^fim-server: left: missing"),
        ("fim-server:{", {}, "^fim-server: the hole is no JSON"),
        ({"left": "x = )"}, {}, "^fim-server: nothing fits between left and right"),
        (HOLES[0], {"stop": ["\n"]}, "^fim-server: stop: "),
        (HOLES[0], {"ignore_eos": True}, "^fim-server: ignore_eos: "),
        (HOLES[0], {"min_tokens": 4}, "^fim-server: min_tokens: "),
        (HOLES[0], {"extra_args": {"fim_server": "{}"}}, "^fim-server: a hole in both "),
        (
            None,
            {"extra_args": {"fim_server": "{}"}},
            "^fim-server: no logits processor is there: start vLLM with --log",
        ),
    ],
)
def test_wrong_requests_are_refused_where_they_come_in(
    grammar: object, settings: dict[str, Any], said: str, manager: type
) -> None:
    with pytest.raises(VLLMValidationError, match=said):
        verify(params(grammar, **settings))


def test_requests_with_a_hole_are_checked_and_others_left_to_vllm(manager: type) -> None:
    hole, other, none = params(HOLES[0]), params('root ::= "a"'), params()
    for given in (hole, other, none):
        verify(given)
    assert [given.validated for given in (hole, other, none)] == [False, True, True]
    for named in ("fim_server.integrations.vllm:FimLogitsProcessor", processor_class()):
        given = params(extra_args={"fim_server": json.dumps(HOLES[0])})
        verify(given, (named,))
        assert given.validated


# --- versions -------------------------------------------------------------------------------------------------------


def test_an_unknown_version_says_so_and_refuses(tokenizer: Any, caplog: pytest.LogCaptureFixture) -> None:
    with vllm_stand_in(tokenizer, "0.99.1") as manager, caplog.at_level(logging.ERROR):
        from fim_server.integrations import vllm as plug_in

        init = manager.grammar_init
        plug_in.register()
        assert "does not know vLLM 0.99.1, only 0.32, 0.33" in caplog.text
        assert manager.grammar_init is init
        with pytest.raises(VLLMValidationError, match=r"fim-server: .*does not know vLLM 0\.99\.1"):
            verify(params(HOLES[0]))
        with pytest.raises(VLLMValidationError, match=r"does not know vLLM 0\.99\.1"):
            verify(params(extra_args={"fim_server": "{}"}))
        other = params('root ::= "a"')
        verify(other)
        assert other.validated


def test_an_unknown_version_can_be_tried_if_its_form_is_known(
    tokenizer: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("FIM_SERVER_UNTESTED_VERSIONS", "1")
    monkeypatch.setattr(meter, "start_collector", lambda: False)
    with vllm_stand_in(tokenizer, "0.99.1"):
        from fim_server.integrations import vllm as plug_in

        plug_in.register()
        verify(params(HOLES[0]))
    with vllm_stand_in(tokenizer, "0.99.1") as manager:
        from fim_server.integrations import vllm as again

        def grammar_init(self: Any, request: Any, priority: int) -> None: ...

        setattr(manager, "grammar_init", grammar_init)  # noqa: B010  # of another form than the class has
        again.register()
        assert "grammar_init has the parameters self, request, priority" in caplog.text
        with pytest.raises(VLLMValidationError, match="does not fit vLLM"):
            verify(params(HOLES[0]))


def test_a_version_without_validation_stops_the_start(tokenizer: Any) -> None:
    with vllm_stand_in(tokenizer):
        import sys

        from fim_server.integrations import vllm as plug_in

        del sys.modules["vllm.v1.structured_output.backend_types"]
        with pytest.raises(VersionError, match="does not fit this vLLM"):
            plug_in.register()


# --- structured outputs ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("in_background", [True, False])
def test_rows_of_a_batch_have_the_masks_of_their_holes(
    in_background: bool, manager: Any, tokenizer: Any, vocabulary: Vocabulary
) -> None:
    """Requests with holes, one with a grammar of vLLM's own, and drafted tokens, over some steps."""
    drawn = random.Random(2)
    made = manager(vllm_config(vocabulary.size, drafts=2), tokenizer, in_background)
    requests = [request(params(hole, vocabulary, max_tokens=400)) for hole in HOLES]
    requests.insert(2, request(params('root ::= "a"', vocabulary)))
    holes: list[dict[str, Any] | None] = [*HOLES[:2], None, *HOLES[2:]]
    for given in requests:
        made.grammar_init(given)
    assert isinstance(grammar_of(requests[2]), AnythingGrammar)
    written: list[list[int]] = [[] for _ in requests]
    for _ in range(5):
        drafts = []
        for number, given in enumerate(requests):
            asked = [drawn.randrange(vocabulary.size) for _ in range(2)]
            if drawn.random() < 0.7 and holes[number] is not None:
                asked[0] = drawn.choice(expected(holes[number] or {}, vocabulary, written[number]))
            valid = grammar_of(given).validate_tokens(asked)
            assert valid == asked[: len(valid)]
            drafts.append(valid)
        masks = made.grammar_bitmask(requests, drafts)
        row = 0
        for number, (given, drafted) in enumerate(zip(requests, drafts, strict=True)):
            for count in range(len(drafted) + 1):
                history = written[number] + drafted[:count]
                hole = holes[number]
                ended = any(token in vocabulary.end_token_ids for token in history)
                if hole is None or ended:
                    assert bool((masks[row] == -1).all())
                else:
                    assert allowed(masks[row]) == expected(hole, vocabulary, history)
                row += 1
            if holes[number] is not None:
                texts = [
                    token
                    for token in expected(holes[number] or {}, vocabulary, written[number])
                    if token not in vocabulary.end_token_ids
                ]
                token = drawn.choice(texts)
                assert grammar_of(given).accept_tokens("request", [token])
                written[number].append(token)
        assert row == len(masks)


def test_only_grammars_of_ones_own_need_a_backend(manager: Any, tokenizer: Any, vocabulary: Vocabulary) -> None:
    made = manager(vllm_config(vocabulary.size), tokenizer)
    given = request(params(HOLES[0], vocabulary))
    made.grammar_init(given)
    assert made.grammar_bitmask([given], [[]]).shape == (1, -(-vocabulary.size // 32))
    plain = request(params())
    made.grammar_init(plain)
    assert plain.structured_output_request is None


def test_a_request_ends_within_its_tokens(manager: Any, tokenizer: Any, vocabulary: Vocabulary) -> None:
    drawn = random.Random(4)
    made = manager(vllm_config(vocabulary.size), tokenizer)
    for hole in (HOLES[0], HOLES[1], HOLES[3]):
        given = request(params(hole, vocabulary, max_tokens=20))
        made.grammar_init(given)
        written = b""
        for _ in range(20):
            tokens = allowed(made.grammar_bitmask([given], [[]])[0])
            texts = [token for token in tokens if token not in vocabulary.end_token_ids]
            token = drawn.choice(texts or tokens)
            assert grammar_of(given).accept_tokens("request", [token])
            if token in vocabulary.end_token_ids:
                break
            written += vocabulary.token_bytes(token)
        assert grammar_of(given).is_terminated()
        opened = Language.load(hole.get("language", "python")).open(hole["left"], hole["right"])
        assert opened.check(written.decode()).complete


def test_drafts_beyond_the_budget_have_masks(manager: Any, tokenizer: Any, vocabulary: Vocabulary) -> None:
    for most in (1, 2, 3, 4):
        made = manager(vllm_config(vocabulary.size, drafts=3), tokenizer)
        given = request(params(HOLES[0], vocabulary, max_tokens=most))
        made.grammar_init(given)
        drafted = vocabulary.encode("x + 1")[:3]
        assert grammar_of(given).validate_tokens(drafted) == drafted
        masks = made.grammar_bitmask([given], [drafted])
        assert all(allowed(row) for row in masks)
        assert grammar_of(given).accept_tokens("request", drafted)


def test_a_mask_that_cannot_be_filled_ends_its_own_request(
    manager: Any,
    tokenizer: Any,
    vocabulary: Vocabulary,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    made = manager(vllm_config(vocabulary.size), tokenizer)
    given = request(params(HOLES[0], vocabulary))
    made.grammar_init(given)

    def broken(*_: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(grammar_of(given)._middle, "fill", broken)
    made.grammar_bitmask([given], [[]])
    assert "could not be filled" in caplog.text
    assert not grammar_of(given).accept_tokens("request", vocabulary.encode("x")[:1])


def test_refused_tokens_and_ends(manager: Any, tokenizer: Any, vocabulary: Vocabulary) -> None:
    made = manager(vllm_config(vocabulary.size), tokenizer)
    given = request(params(HOLES[0], vocabulary))
    made.grammar_init(given)
    grammar = grammar_of(given)
    body, end = vocabulary.encode("x + 1"), vocabulary.end_token_ids[0]
    assert not grammar.accept_tokens("request", vocabulary.encode(")"))
    assert grammar.accept_tokens("request", [*body, end])
    assert grammar.is_terminated()
    grammar.rollback(1)
    assert not grammar.is_terminated()
    grammar.reset()
    assert allowed(made.grammar_bitmask([given], [[]])[0])[:50] == expected(HOLES[0], vocabulary, [])[:50]


def test_a_hole_that_cannot_be_opened_fails_its_own_request(
    manager: Any, tokenizer: Any, vocabulary: Vocabulary
) -> None:
    for in_background in (True, False):
        made = manager(vllm_config(vocabulary.size), tokenizer, in_background)
        bad, endless = request(params({"left": "x = )"}, vocabulary)), request(params(HOLES[0]))
        for given, said in ((bad, "nothing fits"), (endless, "no end token")):
            made.grammar_init(given)
            with pytest.raises(HoleError, match=said):
                grammar_of(given)


# --- the logits processor -------------------------------------------------------------------------------------------


def processor_class() -> Any:
    from fim_server.integrations.vllm import FimLogitsProcessor

    return FimLogitsProcessor


def xargs(hole: object, vocabulary: Vocabulary) -> Any:
    extra = None if hole is None else {"fim_server": json.dumps(hole)}
    return params(None, vocabulary, extra_args=extra, max_tokens=400)


def assert_masked(
    logits: torch.Tensor, before: torch.Tensor, hole: dict[str, Any] | None, vocabulary: Vocabulary, written: list[int]
) -> None:
    if hole is None:
        assert torch.equal(logits, before)
        return
    kept = torch.zeros(len(before), dtype=torch.bool)
    kept[expected(hole, vocabulary, written)] = True
    assert torch.equal(logits, before.masked_fill(~kept, float("-inf")))


def test_a_processor_of_the_first_interface_follows_its_rows(
    manager: Any, tokenizer: Any, vocabulary: Vocabulary
) -> None:
    drawn = random.Random(5)
    processor = processor_class()(vllm_config(vocabulary.size), torch.device("cpu"), False)
    assert not processor.is_argmax_invariant()
    holes: list[Any] = [HOLES[0], None, HOLES[1], HOLES[3]]
    written: list[list[int]] = [[] for _ in holes]
    processor.update_state(
        BatchUpdate(4, added=[(row, xargs(hole, vocabulary), [1], written[row]) for row, hole in enumerate(holes)])
    )

    def step() -> None:
        before = torch.randn(len(holes), vocabulary.size)
        logits = processor.apply(before.clone())
        for row, hole in enumerate(holes):
            assert_masked(logits[row], before[row], hole, vocabulary, written[row])
            tokens = [1] if hole is None else expected(hole, vocabulary, written[row])
            written[row].append(drawn.choice([t for t in tokens if t not in vocabulary.end_token_ids]))

    step()
    processor.update_state(None)
    step()
    processor.update_state(BatchUpdate(4, moved=[(0, 1, MoveDirectionality.SWAP)]))
    for held in (holes, written):
        held[0], held[1] = held[1], held[0]
    step()
    # The second request has gone, and the last one takes its row.
    processor.update_state(BatchUpdate(3, removed=[1], moved=[(3, 1, MoveDirectionality.UNIDIRECTIONAL)]))
    for held in (holes, written):
        held[1] = held.pop()
    step()
    # A new request in a row that another has left.
    holes[2], written[2] = HOLES[2], []
    processor.update_state(BatchUpdate(3, added=[(2, xargs(HOLES[2], vocabulary), None, written[2])]))
    step()
    processor.update_state(BatchUpdate(0, removed=[0, 1, 2]))
    plain = torch.randn(3, vocabulary.size)
    assert processor.apply(plain) is plain


def test_a_token_that_was_never_allowed_ends_the_row(manager: Any, tokenizer: Any, vocabulary: Vocabulary) -> None:
    processor = processor_class()(vllm_config(vocabulary.size), torch.device("cpu"), False)
    written = vocabulary.encode(")")
    processor.update_state(BatchUpdate(1, added=[(0, xargs(HOLES[0], vocabulary), [1], written)]))
    logits = processor.apply(torch.zeros(1, vocabulary.size))
    assert torch.nonzero(~logits[0].isinf()).flatten().tolist() == vocabulary.end_token_ids


def test_a_hole_that_cannot_be_opened_any_more_ends_the_row(
    manager: Any, tokenizer: Any, vocabulary: Vocabulary, caplog: pytest.LogCaptureFixture
) -> None:
    processor = processor_class()(vllm_config(vocabulary.size), torch.device("cpu"), False)
    processor.update_state(BatchUpdate(1, added=[(0, xargs({"left": "x = )"}, vocabulary), [1], [])]))
    assert "could not be opened" in caplog.text
    logits = processor.apply(torch.zeros(1, vocabulary.size))
    assert torch.nonzero(~logits[0].isinf()).flatten().tolist() == vocabulary.end_token_ids


def test_a_processor_of_the_second_interface_reads_tokens_on_the_device(
    manager: Any, tokenizer: Any, vocabulary: Vocabulary
) -> None:
    """Slots in another order than rows, prompts before the texts, and drafted tokens in rows of their own."""
    length, slots = 64, 4
    states = SimpleNamespace(
        all_token_ids=SimpleNamespace(gpu=torch.zeros(slots, length, dtype=torch.int32)),
        prompt_len=SimpleNamespace(np=np.array([3, 5, 2, 1])),
        total_len=SimpleNamespace(gpu=torch.tensor([3, 5, 2, 1], dtype=torch.int32)),
    )
    processor = processor_class()(vllm_config(vocabulary.size), states)
    assert processor.add_request(2, xargs(HOLES[0], vocabulary))
    assert not processor.add_request(0, xargs(None, vocabulary))
    assert processor.add_request(1, xargs(HOLES[1], vocabulary))
    processor.apply_staged_writes()
    texts = {1: vocabulary.encode("2, 3"), 2: vocabulary.encode("x"), 0: [7]}
    for slot, tokens in texts.items():
        begin = int(states.prompt_len.np[slot])
        states.all_token_ids.gpu[slot, begin : begin + len(tokens)] = torch.tensor(tokens, dtype=torch.int32)
        states.total_len.gpu[slot] = begin + len(tokens)
    drafted = vocabulary.encode(" + 1")[:2]
    assert len(drafted) == 2
    # Rows: the request of slot 2 with two drafted tokens, then those of slots 0 and 1.
    ctx = SimpleNamespace(
        expanded_idx_mapping=torch.tensor([2, 2, 2, 0, 1]),
        expanded_local_pos=torch.tensor([0, 1, 2, 0, 0]),
        input_ids=torch.tensor([texts[2][-1], *drafted, 7, texts[1][-1]]),
    )
    before = torch.randn(5, vocabulary.size)
    logits = processor.apply(before.clone(), ctx)
    for count in range(3):
        assert_masked(logits[count], before[count], HOLES[0], vocabulary, texts[2] + drafted[:count])
    assert_masked(logits[3], before[3], None, vocabulary, [])
    assert_masked(logits[4], before[4], HOLES[1], vocabulary, texts[1])
    # The slot is given to a request without a hole.
    assert not processor.add_request(2, xargs(None, vocabulary))
    assert torch.equal(processor.apply(before.clone(), ctx)[:4], before[:4])


def test_the_processor_refuses_wrong_holes(manager: Any, vocabulary: Vocabulary) -> None:
    check = processor_class().validate_params
    check(xargs(None, vocabulary))
    check(xargs(HOLES[0], vocabulary))
    for given, said in (({"left": "x = )"}, "nothing fits"), ({"rigth": ""}, "no key of a hole")):
        with pytest.raises(ValueError, match=said):
            check(xargs(given, vocabulary))
    with pytest.raises(ValueError, match="a string of JSON, not int"):
        check(params(extra_args={"fim_server": 3}))
    with pytest.raises(ValueError, match="stop"):
        check(params(extra_args={"fim_server": json.dumps(HOLES[0])}, stop=["a"]))


# --- metrics --------------------------------------------------------------------------------------------------------


def test_sums_of_several_processes_are_added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(meter.FOLDER, str(tmp_path))
    for process in (1, 2):
        one = meter._meter.__wrapped__(process)
        one.add("requests")
        one.add("session_seconds", 0.5)
        one.mask(3e-5)
        one.mask(2.0)
    (tmp_path / "3.sums").write_bytes(b"cut short")
    found = meter.totals(tmp_path)
    assert found[meter.PLACES["requests"]] == 2
    assert found[meter.PLACES["session_seconds"]] == 1.0
    assert found[meter.MASK_SECONDS] == pytest.approx(4.00006)
    counts = found[meter.MASK_SECONDS + 1 :]
    assert counts.sum() == 4
    assert counts[meter.BOUNDS.index(5e-5)] == 2
    assert counts[-1] == 2


def test_metrics_in_the_form_of_prometheus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    registry = CollectorRegistry()
    monkeypatch.setenv(meter.FOLDER, str(tmp_path))
    one = meter._meter.__wrapped__(1)
    one.add("refusals", 3)
    one.mask(3e-5)
    registry.register(meter.Collector(tmp_path))
    text = generate_latest(registry).decode()
    assert "fim_server_refusals_total 3.0" in text
    assert 'fim_server_mask_seconds_bucket{le="2e-05"} 0.0' in text
    assert 'fim_server_mask_seconds_bucket{le="5e-05"} 1.0' in text
    assert "fim_server_mask_seconds_count 1.0" in text


def test_the_entry_points_name_what_there_is() -> None:
    import tomllib

    root = Path(__file__).parents[2]
    points = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["entry-points"]
    for group in ("vllm.general_plugins", "sglang.srt.plugins"):
        (target,) = points[group].values()
        name, _, function = target.partition(":")
        file = root / name.replace(".", "/")
        source = (file / "__init__.py" if file.is_dir() else file.with_suffix(".py")).read_text(encoding="utf-8")
        assert f"def {function}() -> None:" in source
