"""Stand-ins for vLLM 0.32 and SGLang 0.5.23, which are gigabytes: what the plug-ins import of them.

Names, signatures and the order of calls are those of the engines' sources. What a plug-in does in the real engines is
measured by `python -m benchmarks.engines.vllm` and `python -m benchmarks.engines.sglang`.
"""

from __future__ import annotations

import enum
import logging
import pkgutil
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType, SimpleNamespace
from typing import Any

import torch


def module(name: str, **members: Any) -> None:
    made = ModuleType(name)
    made.__path__ = []
    for member, value in members.items():
        setattr(made, member, value)
    sys.modules[name] = made
    parent, _, last = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], last, made)


@contextmanager
def only_while(engine: str, plug_in: str) -> Iterator[None]:
    """Take an engine's modules, and those of the plug-in that have imported them, away at the end."""
    forget(engine, plug_in)
    try:
        yield
    finally:
        forget(engine, plug_in)


def forget(*packages: str) -> None:
    for package in packages:
        for name in [name for name in sys.modules if of(name, package)]:
            del sys.modules[name]
        parent, _, last = package.rpartition(".")
        if parent in sys.modules and hasattr(sys.modules[parent], last):
            delattr(sys.modules[parent], last)


def of(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")


# --- vLLM -----------------------------------------------------------------------------------------------------------


class VLLMValidationError(ValueError):
    def __init__(self, message: str, *, parameter: str | None = None, value: Any = None) -> None:
        super().__init__(message)
        self.parameter = parameter


@dataclass
class StructuredOutputsParams:
    grammar: str | None = None
    json: str | None = None
    _backend: str | None = None


class StructuredOutputGrammar(ABC):
    @abstractmethod
    def accept_tokens(self, request_id: str, tokens: list[int]) -> bool: ...
    @abstractmethod
    def validate_tokens(self, tokens: list[int]) -> list[int]: ...
    @abstractmethod
    def rollback(self, num_tokens: int) -> None: ...
    @abstractmethod
    def fill_bitmask(self, bitmask: torch.Tensor, batch_index: int) -> None: ...
    @abstractmethod
    def is_terminated(self) -> bool: ...
    @abstractmethod
    def reset(self) -> None: ...


@dataclass
class StructuredOutputBackend(ABC):
    vllm_config: Any
    tokenizer: Any
    vocab_size: int

    @abstractmethod
    def compile_grammar(
        self, request_type: Any, grammar_spec: str, stop_token_ids: set[int] | None = None
    ) -> StructuredOutputGrammar: ...
    @abstractmethod
    def allocate_token_bitmask(self, max_num_seqs: int) -> torch.Tensor: ...
    @abstractmethod
    def destroy(self) -> None: ...


class AnythingGrammar(StructuredOutputGrammar):
    """Grammar of another backend, which allows everything."""

    def accept_tokens(self, request_id: str, tokens: list[int]) -> bool:
        return True

    def validate_tokens(self, tokens: list[int]) -> list[int]:
        return tokens

    def rollback(self, num_tokens: int) -> None: ...

    def fill_bitmask(self, bitmask: torch.Tensor, batch_index: int) -> None:
        bitmask[batch_index].fill_(-1)

    def is_terminated(self) -> bool:
        return False

    def reset(self) -> None: ...


class OtherBackend(StructuredOutputBackend):
    """vLLM's own."""

    def compile_grammar(
        self, request_type: Any, grammar_spec: str, stop_token_ids: set[int] | None = None
    ) -> StructuredOutputGrammar:
        return AnythingGrammar()

    def allocate_token_bitmask(self, max_num_seqs: int) -> torch.Tensor:
        return torch.full((max_num_seqs, -(-self.vocab_size // 32)), -1, dtype=torch.int32)

    def destroy(self) -> None: ...


class StructuredOutputManager:
    def __init__(self, vllm_config: Any, tokenizer: Any, in_background: bool = True) -> None:
        self.backend: StructuredOutputBackend | None = None
        self.vllm_config = vllm_config
        self.tokenizer = tokenizer
        self.executor = ThreadPoolExecutor(1)
        self._use_async_grammar_compilation = in_background
        self._grammar_bitmask: torch.Tensor | None = None

    def grammar_init(self, request: Any) -> None:
        if request.structured_output_request is None:
            return
        if self.backend is None:
            size = self.vllm_config.model_config.get_vocab_size()
            self.backend = OtherBackend(self.vllm_config, self.tokenizer, size)
        grammar = self.backend.compile_grammar(None, request.structured_output_request.params.grammar)
        request.structured_output_request.grammar = grammar

    def grammar_bitmask(self, requests: Sequence[Any], drafts: Sequence[Sequence[int]]) -> torch.Tensor:
        """The rows of requests and of their drafts, as the scheduler has them filled."""
        if self._grammar_bitmask is None:
            assert self.backend is not None
            config = self.vllm_config
            rows = config.scheduler_config.max_num_seqs * (1 + config.num_speculative_tokens)
            self._grammar_bitmask = self.backend.allocate_token_bitmask(rows)
        row = 0
        for request, drafted in zip(requests, drafts, strict=True):
            grammar, advanced = grammar_of(request), 0
            for token in [*drafted, None]:
                if grammar.is_terminated():
                    self._grammar_bitmask[row].fill_(-1)
                else:
                    grammar.fill_bitmask(self._grammar_bitmask, row)
                row += 1
                if token is not None and not grammar.is_terminated():
                    advanced += grammar.accept_tokens("request", [token])
            if advanced:
                grammar.rollback(advanced)
        return self._grammar_bitmask[:row]


def grammar_of(request: Any) -> Any:
    grammar = request.structured_output_request.grammar
    return grammar.result() if isinstance(grammar, Future) else grammar


@dataclass
class SamplingParams:
    structured_outputs: StructuredOutputsParams | None = None
    extra_args: dict[str, Any] | None = None
    max_tokens: int | None = 16
    ignore_eos: bool = False
    min_tokens: int = 0
    stop: list[str] = field(default_factory=list)
    all_stop_token_ids: set[int] = field(default_factory=set)
    validated: bool = False

    def _validate_structured_outputs(self, model_config: Any, structured_outputs_config: Any, tokenizer: Any) -> None:
        self.validated = True

    def verify(self, model_config: Any, structured_outputs_config: Any, tokenizer: Any) -> None:
        self._validate_structured_outputs(model_config, structured_outputs_config, tokenizer)


class MoveDirectionality(enum.Enum):
    UNIDIRECTIONAL = enum.auto()
    SWAP = enum.auto()


@dataclass(frozen=True)
class BatchUpdate:
    batch_size: int
    removed: Sequence[int] = ()
    added: Sequence[tuple[int, Any, list[int] | None, list[int]]] = ()
    moved: Sequence[tuple[int, int, MoveDirectionality]] = ()


class V1LogitsProcessor(ABC):
    @classmethod  # noqa: B027
    def validate_params(cls, sampling_params: Any) -> None: ...
    @abstractmethod
    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None: ...
    @abstractmethod
    def apply(self, logits: torch.Tensor) -> torch.Tensor: ...
    @abstractmethod
    def is_argmax_invariant(self) -> bool: ...
    @abstractmethod
    def update_state(self, batch_update: BatchUpdate | None) -> None: ...


class V2LogitsProcessor(ABC):
    def __init__(self, vllm_config: Any, req_states: Any) -> None: ...  # noqa: B027
    @classmethod  # noqa: B027
    def validate_params(cls, sampling_params: Any) -> None: ...
    def add_request(self, req_idx: int, sampling_params: Any) -> bool:
        return True

    def apply_staged_writes(self) -> None: ...  # noqa: B027
    @abstractmethod
    def apply(self, logits: torch.Tensor, ctx: Any) -> torch.Tensor: ...


def vllm_config(size: int, processors: Sequence[Any] = (), drafts: int = 0) -> Any:
    return SimpleNamespace(
        model_config=SimpleNamespace(
            get_vocab_size=lambda: size, is_diffusion=False, logits_processors=list(processors)
        ),
        scheduler_config=SimpleNamespace(max_num_seqs=8),
        num_speculative_tokens=drafts,
    )


@contextmanager
def vllm_stand_in(tokenizer: Any, version: str = "0.32.0") -> Iterator[type[StructuredOutputManager]]:
    """vLLM's modules, with classes of their own each time: the plug-in replaces methods of them."""
    own = {"grammar_init": StructuredOutputManager.grammar_init}
    manager = type("StructuredOutputManager", (StructuredOutputManager,), own)
    params = type("SamplingParams", (SamplingParams,), {})
    with only_while("vllm", "fim_server.integrations.vllm"):
        module("vllm", __version__=version, SamplingParams=params)
        module("vllm.exceptions", VLLMValidationError=VLLMValidationError)
        module("vllm.logger", init_logger=logging.getLogger)
        module("vllm.sampling_params", SamplingParams=params, StructuredOutputsParams=StructuredOutputsParams)
        module("vllm.tokenizers", cached_tokenizer_from_config=lambda model_config: tokenizer)
        module("vllm.v1")
        module("vllm.v1.structured_output", StructuredOutputManager=manager)
        module(
            "vllm.v1.structured_output.backend_types",
            StructuredOutputBackend=StructuredOutputBackend,
            StructuredOutputGrammar=StructuredOutputGrammar,
        )
        for name in ("sample", "sample.logits_processor", "worker", "worker.gpu", "worker.gpu.sample"):
            module(f"vllm.v1.{name}")
        module("vllm.v1.worker.gpu.sample.logits_processor")
        module(
            "vllm.v1.sample.logits_processor.interface",
            LogitsProcessor=V1LogitsProcessor,
            MoveDirectionality=MoveDirectionality,
            BatchUpdate=BatchUpdate,
        )
        module("vllm.v1.worker.gpu.sample.logits_processor.interface", LogitsProcessor=V2LogitsProcessor)
        yield manager


# --- SGLang ---------------------------------------------------------------------------------------------------------


class BaseGrammarObject:
    def __init__(self) -> None:
        self._finished = False
        self.grammar_stats = None

    def accept_token(self, token: int) -> None:
        raise NotImplementedError

    def rollback(self, k: int) -> None:
        raise NotImplementedError

    def is_terminated(self) -> bool:
        return False

    def allocate_vocab_mask(self, vocab_size: int, batch_size: int, device: Any) -> torch.Tensor:
        raise NotImplementedError

    def fill_vocab_mask(self, vocab_mask: torch.Tensor, idx: int) -> None:
        raise NotImplementedError

    @staticmethod
    def fill_vocab_mask_batched(entries: Sequence[Any], vocab_mask: torch.Tensor) -> None:
        for entry in entries:
            entry.grammar.fill_vocab_mask(vocab_mask, entry.row)

    @staticmethod
    def move_vocab_mask(vocab_mask: torch.Tensor, device: Any) -> torch.Tensor:
        raise NotImplementedError

    @staticmethod
    def apply_vocab_mask(logits: torch.Tensor, vocab_mask: torch.Tensor) -> None:
        raise NotImplementedError

    def copy(self) -> BaseGrammarObject:
        return self

    @property
    def finished(self) -> bool:
        return self._finished

    @finished.setter
    def finished(self, finished: bool) -> None:
        self._finished = finished


class InvalidGrammarObject(BaseGrammarObject):
    def __init__(self, error_message: str = "Unknown grammar error") -> None:
        super().__init__()
        self.error_message = error_message


class BaseGrammarBackend:
    def __init__(self) -> None:
        self.executor = ThreadPoolExecutor(1)
        self.cache: dict[tuple[str, str], BaseGrammarObject] = {}

    def dispatch_ebnf(self, key_string: str) -> BaseGrammarObject:
        return InvalidGrammarObject()

    def dispatch_json(self, key_string: str) -> BaseGrammarObject:
        return InvalidGrammarObject()

    def get_request_grammar_key(
        self, key: tuple[str, str], *, input_ids: Sequence[int], thinking_budget: int | None
    ) -> tuple[str, str]:
        return key

    def get_cached_or_future_value(self, key: tuple[str, str], require_reasoning: bool) -> tuple[Any, bool]:
        value = self.cache.get(key)
        if value:
            return value.copy(), True
        return self.executor.submit(self.dispatch_ebnf, key[1]), False

    def set_cache(self, key: tuple[str, str], value: BaseGrammarObject) -> None:
        self.cache[key] = value


class GrammarManager:
    """Manager that asks a backend for the grammars of requests."""

    grammar_backend: BaseGrammarBackend
    grammar_queue: list[Any]

    def process_req_with_grammar(self, req: Any) -> bool:
        if req.sampling_params.ebnf is None:
            return False
        key = self.grammar_backend.get_request_grammar_key(
            ("ebnf", req.sampling_params.ebnf), input_ids=req.origin_input_ids, thinking_budget=None
        )
        req.grammar, _ = self.grammar_backend.get_cached_or_future_value(key, req.require_reasoning)
        req.grammar_key = key
        self.grammar_queue.append(req)
        return True

    def get_ready_grammar_requests(self) -> list[Any]:
        for req in self.grammar_queue:
            req.grammar = req.grammar.result()
            self.grammar_backend.set_cache(req.grammar_key, req.grammar.copy())
        return self.grammar_queue


class HookType(enum.Enum):
    BEFORE = "before"


@contextmanager
def sglang_or_stand_in() -> Iterator[SimpleNamespace]:
    """SGLang's own classes where it is installed: they can be imported without a GPU. Else their stand-ins."""
    if find_spec("sglang") is None:
        with sglang_stand_in() as found:
            yield found
        return
    grammars = import_module("sglang.srt.constrained.base_grammar_backend")
    yield SimpleNamespace(
        choices=import_module("sglang.srt.arg_groups.choices").GRAMMAR_BACKEND_CHOICES,
        registry=grammars.GRAMMAR_BACKEND_REGISTRY,
        invalid=grammars.InvalidGrammarObject,
        manager=import_module("sglang.srt.constrained.grammar_manager").GrammarManager,
        apply_hooks=import_module("sglang.srt.plugins.hook_registry").HookRegistry.apply_hooks,
    )


@contextmanager
def sglang_stand_in(version: str = "0.5.23") -> Iterator[SimpleNamespace]:
    """SGLang's modules; gives the choices of its command line, its registry, and what asks for grammars."""
    choices = ["xgrammar", "outlines", "llguidance", "none"]
    registry: dict[str, Any] = {}
    hooks: dict[str, Any] = {}
    manager: Any = type("GrammarManager", (GrammarManager,), vars(GrammarManager).copy())

    def hook(target: str, before: Any, hook_type: HookType) -> None:
        assert hook_type is HookType.BEFORE
        assert target not in hooks
        hooks[target] = before

    def apply_hooks() -> None:
        for target, before in hooks.items():
            path, _, name = target.rpartition(".")
            owner = pkgutil.resolve_name(path)
            setattr(owner, name, hooked(getattr(owner, name), before))

    with only_while("sglang", "fim_server.integrations.sglang"):
        module("sglang", __version__=version)
        module("sglang.srt")
        module("sglang.srt.server_args", add_grammar_backend_choices=choices.extend)
        module("sglang.srt.constrained")
        module(
            "sglang.srt.constrained.base_grammar_backend",
            BaseGrammarBackend=BaseGrammarBackend,
            BaseGrammarObject=BaseGrammarObject,
            InvalidGrammarObject=InvalidGrammarObject,
            GRAMMAR_BACKEND_REGISTRY=registry,
            register_grammar_backend=registry.__setitem__,
        )
        module("sglang.srt.constrained.grammar_manager", GrammarManager=manager)
        module("sglang.srt.plugins")
        module("sglang.srt.plugins.hook_registry", HookRegistry=SimpleNamespace(register=hook), HookType=HookType)
        yield SimpleNamespace(
            choices=choices,
            registry=registry,
            invalid=InvalidGrammarObject,
            manager=manager,
            apply_hooks=apply_hooks,
        )


def hooked(original: Any, before: Any) -> Any:
    def both(*args: Any) -> Any:
        before(*args)
        return original(*args)

    return both
