"""Models of Ollama, which reports their files' metadata, so that prompts can be put together here."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fim_server.errors import ModelError, VocabularyError, first_line
from fim_server.models.model import FimModel
from fim_server.models.prompt import bind_format, plain_format
from fim_server.models.remote.backend import RemoteBackend
from fim_server.models.remote.client import MOST_VOCABULARY_BYTES
from fim_server.models.remote.dialects import Ollama
from fim_server.models.remote.listing import USUAL_WINDOW, choose_model, reported_window
from fim_server.models.remote.texts import Pieces, Prompts, Sides, Whole
from fim_server.models.remote.tokens import tokenizer_of
from fim_server.models.source import EMBEDDED_NAME, locate
from fim_server.models.tokenizer import FileTokenizer
from fim_server.tokens.formats import Kind
from fim_server.tokens.piece_decoder import BLANK
from fim_server.tokens.tokenizer_file import MOST_TEXT_BYTES, check_lengths
from fim_server.tokens.vocabulary import Vocabulary

if TYPE_CHECKING:
    from fim_server.models.options import LoadOptions
    from fim_server.models.prompt import BoundFormat
    from fim_server.models.remote.client import Client

SPELT = "".join(map(chr, (*range(32, 127), 10)))
"""Characters that a vocabulary for source code has to spell."""

MOST_MERGES = 4
"""Most merges for each token, and their bytes for each byte of a token; real vocabularies have one or two."""

LOAD_SECONDS = 300.0
"""Longest time for Ollama to load a model from its disk; it gives up after as long itself."""

UNKNOWN, CONTROL, USER_DEFINED, UNUSED = 2, 3, 4, 5
"""Kinds of tokens (`tokenizer.ggml.token_type`) of which not all are text."""


def load_ollama(client: Client, wanted: str | None, options: LoadOptions) -> FimModel:
    """Load a model behind Ollama.

    Its prompt is put together here if its tokens have a known format, or it has no template for filling in. Otherwise
    Ollama's template makes the prompt.

    Raises:
        ModelError: The model is not there, or has neither a template for filling in nor known tokens; one line.
    """
    names = [str(entry.get("name")) for entry in models_of(client.get("/api/tags"))]
    model = choose_model(client, names, wanted)
    asked = {"model": model, "verbose": True}
    shown = fields(client.post("/api/show", asked, missing=(404,), most=MOST_VOCABULARY_BYTES))
    info, capabilities = fields(shown.get("model_info")), shown.get("capabilities")
    inserts = not isinstance(capabilities, list) or "insert" in capabilities
    try:
        bound, vocabulary = tokenizer_of(options.tokenizer) if options.tokenizer else reported_tokens(info, model)
        own = bound.sees_suffix or not inserts
    except ModelError as error:
        if options.tokenizer or not inserts:
            raise ModelError(f"{client.base}: {model}: {error}; --tokenizer names a file with its tokens") from error
        own = False
    prompts: Prompts
    if own:
        prompts = Whole(bound, vocabulary, put_before(info), raw=True)
    else:
        bound, vocabulary = tokenizer_of(locate(EMBEDDED_NAME))
        prompts = Sides(bound, vocabulary, sees_suffix=True)
    dialect = Ollama(client, vocabulary, model, prompts, Pieces(vocabulary, bound, own))
    backend = RemoteBackend(client, dialect, vocabulary.size, window_of(client, model, info))
    return FimModel(model, backend, bound, vocabulary)


def window_of(client: Client, model: str, info: dict[str, Any]) -> int:
    """Return the context window that Ollama gives a model, which it reports for loaded models only; this loads it."""
    client.post("/api/generate", {"model": model}, missing=(400, 404), tries=1, seconds=LOAD_SECONDS)
    for entry in models_of(client.get("/api/ps")):
        name = str(entry.get("name"))
        if model in (name, name.removesuffix(":latest")) and entry.get("context_length"):
            return reported_window(entry["context_length"])
    trained = (reported_window(value) for name, value in info.items() if name.endswith(".context_length"))
    return min([USUAL_WINDOW, *trained])


def fields(value: Any) -> dict[str, Any]:
    """Return an object of JSON; an empty one for other values."""
    return value if isinstance(value, dict) else {}


def models_of(answer: Any) -> list[dict[str, Any]]:
    listed = fields(answer).get("models")
    return [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []


def put_before(info: dict[str, Any]) -> int | None:
    """Return the token that Ollama puts before every prompt; None for none."""
    begins = info.get("tokenizer.ggml.add_bos_token", info.get("tokenizer.ggml.model") == "llama")
    return reported_id(info, "bos") if begins else None


def reported_id(info: dict[str, Any], name: str) -> int | None:
    """Return the id of a token with a role; None where it is not among the reported tokens."""
    number, tokens = info.get(f"tokenizer.ggml.{name}_token_id"), info.get("tokenizer.ggml.tokens")
    if type(number) is not int or number < 0:
        return None
    return None if isinstance(tokens, list) and number >= len(tokens) else number


def reported_kind(info: dict[str, Any], model: str) -> Kind:
    """Return what a GGUF file's metadata say of its model's family."""
    name, base, architecture = (str(info.get(f"general.{key}", "")) for key in ("name", "basename", "architecture"))
    return Kind((model, name, base), architecture)


def reported_tokens(info: dict[str, Any], model: str = "") -> tuple[BoundFormat, Vocabulary]:
    """Return the prompt format and the vocabulary in the metadata of a model's GGUF file.

    Texts are encoded roughly as the model does it, which suffices since prompts go out as texts. Raises ModelError.
    """
    tokens, kinds = info.get("tokenizer.ggml.tokens"), info.get("tokenizer.ggml.token_type")
    if not isinstance(tokens, list) or not tokens:
        raise ModelError("does not report its tokens")
    if not isinstance(kinds, list) or len(kinds) != len(tokens):
        kinds = [1] * len(tokens)
    check_reported(tokens, info.get("tokenizer.ggml.merges"))
    try:
        definition = json.dumps(definition_of(info, tokens, kinds))
        tokenizer = FileTokenizer(definition.encode())
        bound = bind_format(tokenizer, reported_kind(info, model))
        if bound is None:
            ends = [reported_id(info, name) for name in ("eos", "eot", "eom")]
            begin = put_before(info)
            stops = [end for end in ends if end is not None]
            if not stops:
                raise ModelError("does not report which token ends its texts")
            bound = plain_format(tokenizer, () if begin is None else (begin,), stops)
        vocabulary = Vocabulary.from_tokenizer(tokenizer, size=len(tokens), end_token_ids=bound.stop_ids)
        vocabulary.encode(SPELT)
        return replace(bound, plain=vocabulary.encode), vocabulary
    except ModelError:
        raise
    except (VocabularyError, LookupError, TypeError, ValueError) as error:
        raise ModelError(f"reports tokens that are not understood ({first_line(error)})") from error
    except Exception as error:  # the `tokenizers` library raises Exception itself
        raise ModelError(f"its tokens make no tokenizer ({first_line(error)})") from error


def check_reported(tokens: list[Any], merges: Any) -> None:
    """Refuse too many or too long tokens and merges before building anything of them. Raises ModelError."""
    merges = merges if isinstance(merges, list) else []
    if not all(isinstance(text, str) for texts in (tokens, merges) for text in texts):
        raise ModelError("its tokens make no tokenizer (not all of them are texts)")
    try:
        check_lengths([len(token) for token in tokens])  # a character has a byte at least
    except VocabularyError as error:
        raise ModelError(f"its vocabulary is too large ({error})") from None
    if len(merges) > MOST_MERGES * len(tokens) or sum(map(len, merges)) > MOST_MERGES * MOST_TEXT_BYTES:
        raise ModelError(f"too many merges: {len(merges)} of {len(tokens)} tokens")


def definition_of(info: dict[str, Any], tokens: list[str], kinds: list[int]) -> dict[str, Any]:
    """Return a `tokenizer.json` with the tokens of a GGUF file. Raises ModelError for an unknown kind."""
    model = info.get("tokenizer.ggml.model")
    added = [
        {"id": number, "content": name, "special": kind in (UNKNOWN, CONTROL, UNUSED), **PLAIN_MATCH}
        for number, (name, kind) in enumerate(zip(tokens, kinds, strict=True))
        if kind in (UNKNOWN, CONTROL, USER_DEFINED, UNUSED)
    ]
    if model == "gpt2":
        merges = [merge.split(" ") for merge in info.get("tokenizer.ggml.merges") or []]
        return {
            "added_tokens": added,
            "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
            "decoder": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
            "model": {
                "type": "BPE",
                "vocab": {name: number for number, name in enumerate(tokens)},
                "merges": [merge for merge in merges if len(merge) == 2],
            },
        }
    if model == "llama":
        scores = info.get("tokenizer.ggml.scores") or [0.0] * len(tokens)
        unknown = next((number for number, kind in enumerate(kinds) if kind == UNKNOWN), 0)
        return {
            "added_tokens": added,
            "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": BLANK},
            "decoder": {
                "type": "Sequence",
                "decoders": [
                    {"type": "Replace", "pattern": {"String": BLANK}, "content": " "},
                    {"type": "ByteFallback"},
                    {"type": "Fuse"},
                ],
            },
            "model": {
                "type": "Unigram",
                "unk_id": unknown,
                "byte_fallback": True,
                "vocab": [[name, float(score)] for name, score in zip(tokens, scores, strict=True)],
            },
        }
    raise ModelError(f"has a tokenizer of the kind {model!r:.60}, which is not known")


PLAIN_MATCH = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
"""Fields that have added tokens found in a text exactly as they stand."""
