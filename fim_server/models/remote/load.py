"""Loading the model of an endpoint: find out which kind it is, and put the model together."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fim_server.errors import AwayError, ModelError, StoppedError
from fim_server.language.stop import Stop, heed
from fim_server.models.backend import LostError
from fim_server.models.kind import names_in
from fim_server.models.model import FimModel
from fim_server.models.prompt import bind_format, plain_format, with_edits
from fim_server.models.remote.address import address_of
from fim_server.models.remote.backend import RemoteBackend
from fim_server.models.remote.client import Client, SilentError
from fim_server.models.remote.dialects import MOST_REPORTED, LlamaCpp, OpenAi, VllmServer
from fim_server.models.remote.listing import USUAL_WINDOW, choose_model, reported_window, vllm_models
from fim_server.models.remote.ollama import load_ollama
from fim_server.models.remote.texts import Pieces, Sides, Whole
from fim_server.models.remote.tokens import has_llama_cpp, here, in_model_folders, remedy, shown, tokenizer_of
from fim_server.models.remote.vocabulary import ENDS, LlamaCppTokenizer
from fim_server.models.source import EMBEDDED_NAME, is_gguf, locate
from fim_server.tokens.formats import Kind
from fim_server.tokens.vocabulary import Vocabulary

if TYPE_CHECKING:
    from fim_server.models.options import LoadOptions
    from fim_server.models.prompt import BoundFormat
    from fim_server.models.remote.texts import Prompts


LOADING_SECONDS = 600.0
"""Longest time for all answers together that are needed before the first text; each has its own limit, too."""


def load_remote(name: str, options: LoadOptions) -> FimModel:
    """Load the model behind an address.

    Raises:
        AwayError: The endpoint does not answer now.
        ModelError: The address is invalid, nothing there answers as an endpoint does, the model is not there, or its
            tokens are unknown; one line.
    """
    address = address_of(name, options.api_key_env, options.allow_plain_http)
    client = Client(address)
    try:
        with Stop(LOADING_SECONDS):
            return probe(client, address.model, options)
    except StoppedError:
        heed()  # raises where the loading was stopped from outside
        raise AwayError(f"{client.base}: has not described its model within {LOADING_SECONDS:.0f} s") from None
    except SilentError as error:
        raise AwayError(client.message_of(error)) from None
    except LostError as error:
        raise ModelError(client.message_of(error)) from None


def is_there(name: str, options: LoadOptions) -> bool:
    """Return whether a server answers at an address now. Raises ModelError where the address is invalid."""
    try:
        Client(address_of(name, options.api_key_env, options.allow_plain_http)).get("/v1/models")
    except SilentError:
        return False
    except LostError:
        pass
    return True


def probe(client: Client, wanted: str | None, options: LoadOptions) -> FimModel:
    """Ask an endpoint what it is, and load its model. Raises ModelError and LostError."""
    properties = client.get("/props")
    if isinstance(properties, dict) and "default_generation_settings" in properties:
        return load_llama_cpp(client, properties, options)
    if isinstance(client.get("/api/version"), dict):
        return load_ollama(client, wanted, options)
    listed = client.get("/v1/models")
    if listed is None:
        raise ModelError(f"{client.base}: no endpoint for completions (it has no /v1/models)")
    models = vllm_models(listed)
    model = choose_model(client, [str(entry.get("id")) for entry in models], wanted)
    entry = next((entry for entry in models if entry.get("id") == model), {})
    if entry.get("owned_by") == "vllm":
        return load_vllm(client, model, entry, options)
    return load_openai(client, model, options)


def load_llama_cpp(client: Client, properties: dict[str, Any], options: LoadOptions) -> FimModel:
    """Load the model of llama.cpp's server, with the tokens of its file if that is readable here, else its own."""
    path = str(properties.get("model_path") or "")
    settings = properties["default_generation_settings"]
    window = reported_window(settings.get("n_ctx")) if isinstance(settings, dict) else USUAL_WINDOW
    bound: BoundFormat | None
    source = options.tokenizer
    if source is None and is_gguf(path) and has_llama_cpp():
        file = in_model_folders(path)
        source = str(file) if file is not None and file.is_file() else None
    if source is not None:
        bound, vocabulary = tokenizer_of(source)
    else:
        tokenizer = LlamaCppTokenizer(client)
        bound = bind_format(tokenizer, Kind(names_in(path)))
        if bound is None:
            ends = [number for number in range(tokenizer.size) if tokenizer.convert_ids_to_tokens(number) in ENDS]
            if not ends:
                raise ModelError(f"{client.base}: no token is known that ends a text; --tokenizer names a file with it")
            bound = plain_format(tokenizer, (), ends)
        vocabulary = Vocabulary(tokenizer.tokens(), bound.stop_ids, encoder=tokenizer.ids)
    backend = RemoteBackend(client, LlamaCpp(client, vocabulary), vocabulary.size, window)
    return FimModel(shown(Path(path).stem) or client.base, backend, replace(bound, plain=vocabulary.encode), vocabulary)


def load_vllm(client: Client, model: str, entry: dict[str, Any], options: LoadOptions) -> FimModel:
    """Load the model of vLLM, with the tokens of its source if that is here or in the hub's cache."""
    named = str(entry.get("root") or model)
    try:
        bound, vocabulary = tokenizer_of(options.tokenizer or here(named))
    except ModelError as error:
        problem = f"the tokens of its model are not known ({error})"
        raise ModelError(f"{client.base}: {problem}: {remedy(named)}") from error
    window = reported_window(entry.get("max_model_len"))
    backend = RemoteBackend(client, VllmServer(client, vocabulary, model), vocabulary.size, window)
    bound = with_edits(replace(bound, plain=vocabulary.encode), Kind(names_in(named)))
    return FimModel(model, backend, bound, vocabulary)


def load_openai(client: Client, model: str, options: LoadOptions) -> FimModel:
    """Load the model of another server with `/v1/completions`, and find out how much it reports.

    Its tokens are those that `options` names, else the embedded model's.
    """
    known = tokenizer_of(options.tokenizer) if options.tokenizer else None
    bound, vocabulary = known or tokenizer_of(locate(EMBEDDED_NAME))
    for sees_suffix, reported in itertools.product((False,) if known else (True, False), (MOST_REPORTED, 5, 0)):
        body = {"model": model, "prompt": "a = ", "max_tokens": 1, "temperature": 0}
        body |= {"suffix": "\n"} if sees_suffix else {}
        body |= {"logprobs": reported} if reported else {}
        answer = client.post("/v1/completions", body, missing=(400, 422))
        if answer is not None:
            break
    else:
        raise ModelError(f"{client.base}: refuses completions of {model}")
    prompts: Prompts = Sides(bound, vocabulary, sees_suffix)
    if known:
        bound = with_edits(bound, Kind(names_in(model)))
        prompts = Whole(bound, vocabulary, None, raw=False)
    pieces = Pieces(vocabulary, bound, own=known is not None)
    dialect = OpenAi(client, vocabulary, model, prompts, pieces, reported if has_log_probabilities(answer) else 0)
    return FimModel(model, RemoteBackend(client, dialect, vocabulary.size, USUAL_WINDOW), bound, vocabulary)


def has_log_probabilities(answer: Any) -> bool:
    """Return whether an answer has log probabilities of tokens. Never raises."""
    try:
        reported = answer["choices"][0]["logprobs"]
        return bool(reported.get("content") or reported.get("top_logprobs"))
    except (LookupError, TypeError, AttributeError):
        return False
