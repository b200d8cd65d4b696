"""How endpoints are asked, and how they answer: each in its own words.

llama.cpp's server and vLLM take and tell token ids, give the log probabilities of the likeliest before anything is
changed, and can be asked for the likeliest of some tokens: their rows are the model's own. Others take texts on both
sides of the cursor and write text, with the likeliest texts at each place or without.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from fim_server.models.backend import LostError
from fim_server.models.remote.streams import IdSource, Source, Step, TextSource

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fim_server.models.prompt import BoundFormat
    from fim_server.models.remote.client import Client, Patience
    from fim_server.tokens.vocabulary import Vocabulary

TOLD = 20
"""Tokens whose log probabilities are asked for at each place; vLLM tells no more by default."""

CERTAIN = 1000.0
"""What is added to the logits of tokens one of which is to be chosen."""


class Dialect(Protocol):
    """A kind of endpoint."""

    name: str
    exact: bool
    """Whether rows are the model's own, and tokens those that the model would write in this process."""

    def open(self, prefix: Sequence[int], count: int, patience: Patience) -> Source:
        """A stream of the likeliest text after a prefix, at most so many tokens of it. Raises LostError."""

    def likeliest(self, prefix: Sequence[int], tokens: Sequence[int], patience: Patience) -> tuple[int, float] | None:
        """The likeliest of some tokens after a prefix, and its log probability; None where it does not tell."""


class LlamaCpp:
    """llama.cpp's server, by its own `/completion`."""

    name, exact = "llama.cpp", True

    def __init__(self, client: Client, vocabulary: Vocabulary) -> None:
        self._client, self._vocabulary = client, vocabulary

    def open(self, prefix: Sequence[int], count: int, patience: Patience) -> Source:
        """As :meth:`Dialect.open`; end tokens are told and not written, so that a refused end costs nothing."""
        body = self._body(prefix, count)
        body["logit_bias"] = [[token, False] for token in self._vocabulary.end_token_ids]
        stream = self._client.stream("/completion", {**body, "stream": True}, patience)
        return IdSource(prefix, stream, Gapless(), self._vocabulary)

    def likeliest(self, prefix: Sequence[int], tokens: Sequence[int], patience: Patience) -> tuple[int, float] | None:
        """As :meth:`Dialect.likeliest`."""
        size, wanted = self._vocabulary.size, set(tokens)
        body = self._body(prefix, 1)
        if len(wanted) <= size // 2:
            body["logit_bias"] = [[token, CERTAIN] for token in sorted(wanted)]
        else:
            body["logit_bias"] = [[token, False] for token in range(size) if token not in wanted]
        answer = self._client.ask("/completion", {**body, "stream": False}, patience)
        try:
            (found,) = answer["completion_probabilities"]
            token, share = int(found["id"]), float(found["logprob"])
        except (LookupError, TypeError, ValueError):
            raise LostError(f"{self._client.base}: answers without log probabilities") from None
        return (token, share) if token in wanted else None

    def one(self, prefix: Sequence[int], patience: Patience) -> dict[int, float]:
        """The row after a prefix, by a request of its own: a stream holds back tokens that end inside a character."""
        answer = self._client.ask("/completion", {**self._body(prefix, 1), "stream": False}, patience)
        try:
            return dict(entry_of(answer["completion_probabilities"][0]).told)  # type: ignore[arg-type]
        except (LookupError, TypeError, ValueError):
            raise LostError(f"{self._client.base}: answers without log probabilities") from None

    @staticmethod
    def _body(prefix: Sequence[int], count: int) -> dict[str, Any]:
        return {
            "prompt": list(prefix),
            "n_predict": count,
            "n_probs": TOLD,
            "temperature": 0,
            "repeat_penalty": 1.0,
            "presence_penalty": 0.0,
            "frequency_penalty": 0.0,
            "dry_multiplier": 0.0,
            "cache_prompt": True,
            "return_tokens": True,
        }


class Gapless:
    """The steps of llama.cpp's events, as long as none is held back."""

    def __init__(self) -> None:
        self._count = 0

    def __call__(self, event: Any) -> Iterator[Step]:
        """Those of one event. Raises LookupError, TypeError or ValueError for what is none."""
        if "error" in event:
            raise LostError(f"the endpoint has failed: {str(event['error'])[:200]}")
        found = event.get("completion_probabilities") or []
        if event.get("stop") or not found:
            return
        if self._count + len(found) != int(event["tokens_predicted"]):
            raise HeldBack
        self._count += len(found)
        for entry in found:
            yield entry_of(entry)


class HeldBack(Exception):
    """A stream that leaves out a token."""


def entry_of(entry: Any) -> Step:
    """A step as llama.cpp tells it. Raises LookupError, TypeError or ValueError for what is none."""
    told = {int(other["id"]): float(other["logprob"]) for other in entry["top_logprobs"]}
    return Step(int(entry["id"]), bytes(entry.get("bytes") or b""), told)


class VllmServer:
    """vLLM, by `/v1/completions` with token ids."""

    name, exact = "vLLM", True

    def __init__(self, client: Client, vocabulary: Vocabulary, model: str) -> None:
        self._client, self._vocabulary, self._model = client, vocabulary, model

    def open(self, prefix: Sequence[int], count: int, patience: Patience) -> Source:
        """As :meth:`Dialect.open`."""
        body = self._body(prefix, count)
        body["logit_bias"] = {str(token): -100 for token in self._vocabulary.end_token_ids}
        stream = self._client.stream("/v1/completions", {**body, "stream": True}, patience)
        return IdSource(prefix, stream, self._steps, self._vocabulary)

    def likeliest(self, prefix: Sequence[int], tokens: Sequence[int], patience: Patience) -> tuple[int, float] | None:
        """As :meth:`Dialect.likeliest`."""
        body = {**self._body(prefix, 1), "allowed_token_ids": [int(token) for token in tokens]}
        answer = self._client.ask("/v1/completions", body, patience)
        try:
            (step,) = self._steps(answer)
        except (LookupError, TypeError, ValueError, AttributeError):
            raise LostError(f"{self._client.base}: answers without log probabilities") from None
        if step.token is None or step.token not in set(tokens):
            return None
        return step.token, float(step.told.get(step.token, 0.0))  # type: ignore[call-overload]

    def _body(self, prefix: Sequence[int], count: int) -> dict[str, Any]:
        return {
            "model": self._model,
            "prompt": list(prefix),
            "max_tokens": count,
            "temperature": 0,
            "logprobs": TOLD,
            "return_tokens_as_token_ids": True,
            "skip_special_tokens": False,
            "spaces_between_special_tokens": False,
        }

    @staticmethod
    def _steps(event: Any) -> Iterator[Step]:
        for choice in event["choices"]:
            told = choice.get("logprobs")
            if told is None:
                continue
            for token, top in zip(told["tokens"], told["top_logprobs"], strict=True):
                yield Step(id_of(token), b"", {id_of(other): float(share) for other, share in top.items()})


def id_of(token: str) -> int:
    """The id in ``token_id:12``. Raises ValueError for anything else."""
    kind, _, number = token.partition(":")
    if kind != "token_id":
        raise ValueError(f"{token!r} is no token id")
    return int(number)


class Texts:
    """What endpoints that know no token ids are asked for: the text on both sides of the cursor."""

    exact = False

    def __init__(self, client: Client, vocabulary: Vocabulary, bound: BoundFormat, model: str) -> None:
        """``bound``: a format whose prompts are cut apart again at its control tokens."""
        self._client, self._vocabulary, self._bound, self._model = client, vocabulary, bound, model

    def sides(self, prefix: Sequence[int]) -> tuple[str, str]:
        """The texts left and right of where a prompt and what was written after it end."""
        prefix_mark, suffix_mark = self._bound.token("<|fim_prefix|>"), self._bound.token("<|fim_suffix|>")
        parts: dict[int, list[int]] = {prefix_mark: [], suffix_mark: []}
        part: list[int] = []
        for token in prefix:
            if token in parts:
                part = parts[token]
            elif token in self._bound.control_ids:
                part = parts[prefix_mark]  # behind the prompt, what was written goes on with the prefix
            else:
                part.append(token)
        left, right = (
            b"".join(self._vocabulary.token_bytes(token) for token in parts[mark]).decode(errors="ignore")
            for mark in (prefix_mark, suffix_mark)
        )
        return left, right

    def likeliest(self, prefix: Sequence[int], tokens: Sequence[int], patience: Patience) -> tuple[int, float] | None:
        """None: such an endpoint writes what it writes."""
        return None

    def _source(self, prefix: Sequence[int], path: str, body: dict[str, Any], patience: Patience, steps: Any) -> Source:
        stream = self._client.stream(path, body, patience)
        return TextSource(prefix, stream, steps, self._vocabulary, min(self._vocabulary.end_token_ids))


class Ollama(Texts):
    """Ollama, by its own `/api/generate`: the model's template puts the prompt together."""

    name = "Ollama"

    def open(self, prefix: Sequence[int], count: int, patience: Patience) -> Source:
        """As :meth:`Dialect.open`."""
        left, right = self.sides(prefix)
        body = {
            "model": self._model,
            "prompt": left,
            "suffix": right,
            "stream": True,
            "logprobs": True,
            "top_logprobs": TOLD,
            "options": {"temperature": 0, "num_predict": count, "repeat_penalty": 1.0},
        }
        return self._source(prefix, "/api/generate", body, patience, self._steps)

    @staticmethod
    def _steps(event: Any) -> Iterator[Step]:
        if "error" in event:
            raise LostError(f"the endpoint has failed: {str(event['error'])[:200]}")
        entries = event.get("logprobs")
        if not entries:
            if event["response"]:
                yield Step(None, event["response"].encode(), {})
            return
        for entry in entries:
            yield Step(None, bytes_of(entry), shares_of(entry))


class OpenAi(Texts):
    """Any server with OpenAI's older `/v1/completions`: LM Studio, SGLang, text-generation-webui and others."""

    name = "OpenAI"

    def __init__(
        self, client: Client, vocabulary: Vocabulary, bound: BoundFormat, model: str, told: int, sees_suffix: bool
    ) -> None:
        """``told``: log probabilities that it tells at each place; 0: none. ``sees_suffix``: whether it takes one."""
        super().__init__(client, vocabulary, bound, model)
        self.told, self.sees_suffix = told, sees_suffix

    def open(self, prefix: Sequence[int], count: int, patience: Patience) -> Source:
        """As :meth:`Dialect.open`."""
        left, right = self.sides(prefix)
        body: dict[str, Any] = {
            "model": self._model,
            "prompt": left,
            "max_tokens": count,
            "temperature": 0,
            "stream": True,
        }
        if self.sees_suffix:
            body["suffix"] = right
        if self.told:
            body["logprobs"] = self.told
        return self._source(prefix, "/v1/completions", body, patience, self._steps)

    @staticmethod
    def _steps(event: Any) -> Iterator[Step]:
        if "error" in event:
            raise LostError(f"the endpoint has failed: {str(event['error'])[:200]}")
        for choice in event["choices"]:
            told = choice.get("logprobs") or {}
            if entries := told.get("content"):  # as chat completions tell them: llama.cpp and what is built on it
                for entry in entries:
                    yield Step(None, bytes_of(entry), shares_of(entry))
                continue
            tokens = told.get("tokens")
            if not tokens or "".join(tokens) != choice["text"]:  # a token may be a part of a character
                if choice["text"]:
                    yield Step(None, choice["text"].encode(), {})
                continue
            for token, top in zip(tokens, told["top_logprobs"] or [{}] * len(tokens), strict=True):
                shares = {other.encode(): float(share) for other, share in (top or {}).items()}
                yield Step(None, token.encode(), shares)


def shares_of(entry: Any) -> dict[bytes, float]:
    """The log probabilities at a told token's place, by bytes."""
    return {bytes_of(other): float(other["logprob"]) for other in entry.get("top_logprobs") or [entry]}


def bytes_of(entry: Any) -> bytes:
    """A told token's bytes."""
    known = entry.get("bytes")
    return bytes(known) if known else str(entry["token"]).encode()
