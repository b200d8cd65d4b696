"""Installation of the plug-in in vLLM.

vLLM has no registry of structured-output backends, so the plug-in wraps two of its functions. One validates an incoming
request, the other begins its grammar when it is scheduled. All other requests go to the original functions.
"""

from __future__ import annotations

import os
from concurrent.futures import Future
from functools import wraps
from typing import Any

import vllm
from vllm.exceptions import VLLMValidationError
from vllm.logger import init_logger
from vllm.sampling_params import SamplingParams
from vllm.v1.structured_output import StructuredOutputManager
from vllm.v1.structured_output.backend_types import StructuredOutputGrammar

from fim_server.errors import HoleError, VersionError
from fim_server.integrations.holes import Hole, hole_of, is_hole
from fim_server.integrations.meter import meter, start_collector
from fim_server.integrations.versions import check_form, check_version
from fim_server.integrations.vllm.structured import FimBackend

KNOWN_VERSIONS = ("0.32", "0.33")

ARGUMENT = "fim_server"
"""Key of `SamplingParams.extra_args` (`vllm_xargs` in a request) that holds a hole for the logits processor."""

PROCESSOR = "fim_server.integrations.vllm:FimLogitsProcessor"

VALIDATES, MASKS = "_validate_structured_outputs", "_grammar_bitmask"
"""Method of vLLM's `SamplingParams`, and attribute with the rows of masks of a manager of structured outputs."""

FORM = (
    (
        SamplingParams,
        VALIDATES,
        ("self", "model_config", "structured_outputs_config", "tokenizer"),
    ),
    (StructuredOutputManager, "grammar_init", ("self", "request")),
    (StructuredOutputGrammar, "accept_tokens", ("self", "request_id", "tokens")),
    (StructuredOutputGrammar, "validate_tokens", ("self", "tokens")),
    (StructuredOutputGrammar, "rollback", ("self", "num_tokens")),
    (StructuredOutputGrammar, "fill_bitmask", ("self", "bitmask", "batch_index")),
    (StructuredOutputGrammar, "is_terminated", ("self",)),
    (StructuredOutputGrammar, "reset", ("self",)),
)
"""Methods that the plug-in replaces, and those of it that vLLM calls, with their parameters."""

INSTALLED = "__fim_server__"

# A child of vLLM's own logger: others have no handler there.
logger = init_logger("vllm.fim_server")


def install() -> None:
    """Install as `fim_server.integrations.vllm.register` does."""
    if hasattr(getattr(SamplingParams, VALIDATES, None), INSTALLED):
        return
    try:
        check_version("vLLM", vllm.__version__, KNOWN_VERSIONS)
        check_form("vLLM", vllm.__version__, FORM)
    except VersionError as error:
        logger.error("%s. Requests with a hole are refused.", error)
        wrap_validation(str(error))
        return
    wrap_validation(None)
    wrap_grammar_init()
    if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
        logger.warning("fim-server: no metrics of its own with several API servers")
    elif start_collector():
        logger.info("fim-server: grammars that begin with 'fim-server:' are holes; metrics are fim_server_*")


def wrap_validation(refusal: str | None) -> None:
    """Validate requests with a hole here. ``refusal``: reason to refuse all of them, or None."""
    validate: Any = getattr(SamplingParams, VALIDATES, None)
    if validate is None:
        raise VersionError(f"fim-server's plug-in does not fit vLLM {vllm.__version__} and could refuse nothing in it")

    @wraps(validate)
    def validated(self: Any, *args: Any, **settings: Any) -> None:
        outputs = self.structured_outputs
        structured = outputs is not None and is_hole(outputs.grammar)
        if not structured and ARGUMENT not in (self.extra_args or {}):
            validate(self, *args, **settings)
            return
        try:
            if refusal is not None:
                raise HoleError(refusal)
            if structured:
                check_structured(self, *args, **settings)
            else:
                check_processor(self, *args, **settings)
                validate(self, *args, **settings)
        except HoleError as error:
            meter().add("refusals")
            where = "structured_outputs" if structured else "vllm_xargs"
            raise VLLMValidationError(f"fim-server: {error}", parameter=where) from error
        meter().add("requests")

    setattr(validated, INSTALLED, True)
    setattr(SamplingParams, VALIDATES, validated)


def check_structured(params: SamplingParams, model_config: Any, structured_outputs_config: Any, tokenizer: Any) -> None:
    if structured_outputs_config is None or tokenizer is None or model_config.is_diffusion:
        raise HoleError("structured outputs are not to be had with this model or without its tokenizer")
    if ARGUMENT in (params.extra_args or {}):
        raise HoleError(f"a hole in both structured_outputs and {ARGUMENT}")
    check_ending(params)
    hole_of(params.structured_outputs.grammar).open()


def check_processor(params: SamplingParams, model_config: Any, structured_outputs_config: Any, tokenizer: Any) -> None:
    """Raise HoleError for a request to a logits processor that is not loaded; the processor checks the rest."""
    named = [known if isinstance(known, str) else known.__name__ for known in model_config.logits_processors or ()]
    if not any(name.rpartition(":")[2] == "FimLogitsProcessor" for name in named):
        raise HoleError(f"no logits processor is there: start vLLM with --logits-processors {PROCESSOR}")


def check_ending(params: SamplingParams) -> None:
    """Raise HoleError for settings with which a middle does not end where it is complete."""
    if params.ignore_eos:
        raise HoleError("ignore_eos: a middle ends with an end token")
    if params.min_tokens:
        raise HoleError("min_tokens: a middle may have to end before")
    if params.stop:
        raise HoleError('stop: it would cut a middle where it is not complete; "shape": {"lines": 1} ends it at a line')


def hole_of_request(params: SamplingParams) -> Hole | None:
    """Return the hole that a request has for a logits processor, or None. Raises HoleError."""
    given = (params.extra_args or {}).get(ARGUMENT)
    if given is None:
        return None
    if not isinstance(given, str):
        raise HoleError(f"{ARGUMENT}: the hole is a string of JSON, not {type(given).__name__}")
    check_ending(params)
    return Hole.from_json(given)


def wrap_grammar_init() -> None:
    """Begin the grammars of requests with a hole here."""
    init: Any = StructuredOutputManager.grammar_init

    @wraps(init)
    def begun(self: Any, request: Any) -> None:
        structured = request.structured_output_request
        if structured is None or not is_hole(structured.params.grammar):
            if isinstance(self.backend, FimBackend):
                self.backend = None  # of its own kind for this request; holes need none
            init(self, request)
            return
        backend = backend_of(self)
        if self._use_async_grammar_compilation:
            structured.grammar = self.executor.submit(backend.begin, request)
            return
        try:
            structured.grammar = backend.begin(request)
        except Exception as error:  # noqa: BLE001  # the scheduler ends this request alone
            failed: Future[Any] = Future()
            failed.set_exception(error)
            structured.grammar = failed

    setattr(begun, INSTALLED, True)
    StructuredOutputManager.grammar_init = begun


def backend_of(manager: Any) -> FimBackend:
    """Return the manager's backend for holes, made at the first one."""
    backend: FimBackend | None = getattr(manager, INSTALLED, None)
    if backend is None:
        config = manager.vllm_config
        backend = FimBackend(config, manager.tokenizer, config.model_config.get_vocab_size())
        setattr(manager, INSTALLED, backend)
    if manager.backend is None:
        manager.backend = backend
    if getattr(manager, MASKS) is None:
        setattr(manager, MASKS, backend.allocate_token_bitmask(config_rows(manager.vllm_config)))
    return backend


def config_rows(config: Any) -> int:
    """Return the most rows of masks that vLLM asks for: one for each request and each drafted token."""
    return int(config.scheduler_config.max_num_seqs * (1 + config.num_speculative_tokens))
