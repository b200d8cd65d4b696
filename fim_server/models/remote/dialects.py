"""Dialects of endpoints: their requests and answers.

llama.cpp's server and vLLM take and report token ids, give the log probabilities of the likeliest tokens before any
change, and can choose among given tokens. So their rows are the model's own. Others take the texts on both sides of the
cursor and write text, with or without the likeliest texts at each place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from fim_server.models.backend import LostError
from fim_server.models.remote.streams import IdSource, Source, Step, TextSource, read_event

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fim_server.models.remote.client import Client, Patience
    from fim_server.models.remote.rows import Reported
    from fim_server.models.remote.texts import Pieces, Prompts
    from fim_server.tokens.vocabulary import Vocabulary

MOST_REPORTED = 20
"""Log probabilities to ask for at each place; vLLM reports no more by default."""

HOT, DRAWS = 5.0, 3
"""Temperature at which the model may write anything, and the number of draws at it; each is a trip."""

CERTAIN = 1000.0
"""Bias on the logits of tokens from which the endpoint has to choose."""


class Dialect(Protocol):
    """Kind of endpoint."""

    name: str
    exact: bool
    """True if rows are the model's own, and tokens those that the model would write in this process."""

    def open(self, prefix: Sequence[int], count: int, patience: Patience) -> Source:
        """Open a stream of the likeliest text after a prefix, of at most ``count`` tokens. Raises LostError."""

    def read(self, prefix: Sequence[int], patience: Patience) -> None:
        """Have the endpoint read and keep a prefix. Raises LostError."""

    def likeliest(self, prefix: Sequence[int], tokens: Sequence[int], patience: Patience) -> tuple[int, float] | None:
        """Return the likeliest of some tokens after a prefix and its log probability; None where it is unknown."""


class LlamaCpp:
    """Dialect of llama.cpp's server, with its own `/completion`."""

    name, exact = "llama.cpp", True

    def __init__(self, client: Client, vocabulary: Vocabulary) -> None:
        self._client, self._vocabulary = client, vocabulary

    def open(self, prefix: Sequence[int], count: int, patience: Patience) -> Source:
        """Open a stream in which end tokens are reported and not written, so that a refused end costs nothing."""
        body = self._body(prefix, count)
        body["logit_bias"] = [[token, False] for token in self._vocabulary.end_token_ids]
        stream = self._client.stream("/completion", {**body, "stream": True}, patience)
        return IdSource(prefix, stream, Gapless(), self._vocabulary)

    def read(self, prefix: Sequence[int], patience: Patience) -> None:
        self._client.ask("/completion", {**self._body(prefix, 1), "stream": False}, patience)

    def likeliest(self, prefix: Sequence[int], tokens: Sequence[int], patience: Patience) -> tuple[int, float] | None:
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
        except (LookupError, TypeError, ValueError, ArithmeticError):
            raise LostError(f"{self._client.base}: answers without log probabilities") from None
        return (token, share) if token in wanted else None

    def one(self, prefix: Sequence[int], patience: Patience) -> dict[int, float]:
        """Return the row after a prefix from a request of its own.

        Streams hold back tokens that end inside a character.
        """
        answer = self._client.ask("/completion", {**self._body(prefix, 1), "stream": False}, patience)
        try:
            return dict(entry_of(answer["completion_probabilities"][0]).reported)  # type: ignore[arg-type]
        except (LookupError, TypeError, ValueError, ArithmeticError):
            raise LostError(f"{self._client.base}: answers without log probabilities") from None

    @staticmethod
    def _body(prefix: Sequence[int], count: int) -> dict[str, Any]:
        return {
            "prompt": list(prefix),
            "n_predict": count,
            "n_probs": MOST_REPORTED,
            "temperature": 0,
            "repeat_penalty": 1.0,
            "presence_penalty": 0.0,
            "frequency_penalty": 0.0,
            "dry_multiplier": 0.0,
            "cache_prompt": True,
            "return_tokens": True,
        }


class Gapless:
    """Reader of llama.cpp's events that notices tokens held back."""

    def __init__(self) -> None:
        self._count = 0

    def __call__(self, event: Any) -> Iterator[Step]:
        """Yield the steps of an event. Raises LookupError, TypeError or ValueError for an invalid event."""
        if "error" in event:
            raise failed(event)
        found = event.get("completion_probabilities") or []
        if event.get("stop") or not found:
            return
        if self._count + len(found) != int(event["tokens_predicted"]):
            raise HeldBack
        self._count += len(found)
        for entry in found:
            yield entry_of(entry)


class HeldBack(Exception):
    """Signal that a stream leaves out a token."""


def entry_of(entry: Any) -> Step:
    """Return the step in an entry of llama.cpp's. Raises LookupError, TypeError or ValueError for an invalid entry."""
    reported = {int(other["id"]): float(other["logprob"]) for other in entry["top_logprobs"]}
    return Step(int(entry["id"]), octets(entry.get("bytes")), reported)


class VllmServer:
    """Dialect of vLLM, with `/v1/completions` and token ids."""

    name, exact = "vLLM", True

    def __init__(self, client: Client, vocabulary: Vocabulary, model: str) -> None:
        self._client, self._vocabulary, self._model = client, vocabulary, model

    def open(self, prefix: Sequence[int], count: int, patience: Patience) -> Source:
        body = self._body(prefix, count)
        body["logit_bias"] = {str(token): -100 for token in self._vocabulary.end_token_ids}
        stream = self._client.stream("/v1/completions", {**body, "stream": True}, patience)
        return IdSource(prefix, stream, self._steps, self._vocabulary)

    def read(self, prefix: Sequence[int], patience: Patience) -> None:
        self._client.ask("/v1/completions", {**self._body(prefix, 1), "stream": False}, patience)

    def likeliest(self, prefix: Sequence[int], tokens: Sequence[int], patience: Patience) -> tuple[int, float] | None:
        body = {**self._body(prefix, 1), "allowed_token_ids": [int(token) for token in tokens]}
        answer = self._client.ask("/v1/completions", body, patience)
        try:
            (step,) = self._steps(answer)
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError):
            raise LostError(f"{self._client.base}: answers without log probabilities") from None
        if step.token is None or step.token not in set(tokens):
            return None
        return step.token, float(step.reported.get(step.token, 0.0))  # type: ignore[call-overload]

    def _body(self, prefix: Sequence[int], count: int) -> dict[str, Any]:
        return {
            "model": self._model,
            "prompt": list(prefix),
            "max_tokens": count,
            "temperature": 0,
            "logprobs": MOST_REPORTED,
            "return_tokens_as_token_ids": True,
            "skip_special_tokens": False,
            "spaces_between_special_tokens": False,
        }

    @staticmethod
    def _steps(event: Any) -> Iterator[Step]:
        for choice in event["choices"]:
            reported = choice.get("logprobs")
            if reported is None:
                continue
            for token, top in zip(reported["tokens"], reported["top_logprobs"], strict=True):
                yield Step(id_of(token), b"", {id_of(other): float(share) for other, share in top.items()})


def id_of(token: str) -> int:
    """Return the id in ``token_id:12``. Raises ValueError for anything else."""
    kind, _, number = token.partition(":")
    if kind != "token_id":
        raise ValueError(f"{token!r} is no token id")
    return int(number)


class Texts:
    """Base of the dialects without token ids.

    Attributes:
        path: Path of the requests.
    """

    exact = False
    path: str

    def __init__(self, client: Client, vocabulary: Vocabulary, model: str, prompts: Prompts, pieces: Pieces) -> None:
        self._client, self._vocabulary, self._model = client, vocabulary, model
        self.prompts, self.pieces = prompts, pieces
        self._last_drawn: tuple[tuple[int, ...], Reported] = (), {}
        """Place and row of the last draw, since the caller may ask for several of its tokens."""

    def open(self, prefix: Sequence[int], count: int, patience: Patience) -> Source:
        body = {**self._body(count), **self.prompts.fields(prefix), "stream": True}
        return TextSource(
            prefix, self._client.stream(self.path, body, patience), self._steps, self._vocabulary, self.pieces
        )

    def read(self, prefix: Sequence[int], patience: Patience) -> None:
        self._ask(prefix, self._body(1), patience)

    def likeliest(self, prefix: Sequence[int], tokens: Sequence[int], patience: Patience) -> tuple[int, float] | None:
        """Return the likeliest of the tokens that the endpoint reports beside its text.

        It reports none where its likeliest continuation is the end, so a draw makes it write something unlikely.
        """
        place, reported = self._last_drawn
        if place != tuple(prefix):
            reported = self._reported(prefix, patience)
            self._last_drawn = tuple(prefix), reported
        known = {token: reported[token] for token in set(tokens) & reported.keys()}
        return max(known.items(), key=lambda entry: entry[1]) if known else None

    def _reported(self, prefix: Sequence[int], patience: Patience) -> Reported:
        """Return the row at a place where the endpoint draws something unlikely; empty where each draw is the end."""
        for seed in range(DRAWS):
            found = self._drawn(prefix, seed, patience)
            if found is not None:
                return self.pieces.tokens(found.reported)  # type: ignore[arg-type]
        return {}

    def _drawn(self, prefix: Sequence[int], seed: int, patience: Patience) -> Step | None:
        """Draw a step at a high temperature; return None for the end, or where the endpoint reports no other tokens."""
        raise NotImplementedError

    def _steps(self, event: Any) -> Iterator[Step]:
        """Yield the steps of an event.

        Raises LostError, and LookupError, TypeError or ValueError for an invalid event.
        """
        raise NotImplementedError

    def _body(self, count: int) -> dict[str, Any]:
        """Return the fields of a request for ``count`` tokens, without the prompt."""
        raise NotImplementedError

    def _ask(self, prefix: Sequence[int], body: dict[str, Any], patience: Patience) -> Step | None:
        """Return the first step of an answer with other tokens at its place; None where there is none."""
        answer = self._client.ask(self.path, {**body, **self.prompts.fields(prefix), "stream": False}, patience)
        return next((step for step in read_event(self._steps, answer) if step.reported), None)


class Ollama(Texts):
    """Dialect of Ollama, with its own `/api/generate`. A prompt that is too long is refused instead of cut anywhere."""

    name, path = "Ollama", "/api/generate"

    def _drawn(self, prefix: Sequence[int], seed: int, patience: Patience) -> Step | None:
        body = self._body(1, temperature=HOT, seed=seed, top_p=1.0, min_p=0.0)
        return self._ask(prefix, body, patience)

    def _body(self, count: int, temperature: float = 0, **options: float) -> dict[str, Any]:
        return {
            "model": self._model,
            "truncate": False,
            "shift": False,
            "logprobs": True,
            "top_logprobs": MOST_REPORTED,
            "options": {"temperature": temperature, "num_predict": count, "repeat_penalty": 1.0, **options},
        }

    def _steps(self, event: Any) -> Iterator[Step]:
        if "error" in event:
            raise failed(event)
        yield from steps_of(event.get("logprobs") or [], event["response"].encode())


class OpenAi(Texts):
    """Dialect of servers with OpenAI's older `/v1/completions`: LM Studio, SGLang, text-generation-webui and others."""

    name, path = "OpenAI", "/v1/completions"

    def __init__(
        self, client: Client, vocabulary: Vocabulary, model: str, prompts: Prompts, pieces: Pieces, reported: int
    ) -> None:
        """Make the dialect. ``reported``: log probabilities that the server reports at each place; 0: none."""
        super().__init__(client, vocabulary, model, prompts, pieces)
        self.reported = reported

    def _drawn(self, prefix: Sequence[int], seed: int, patience: Patience) -> Step | None:
        if not self.reported:
            return None
        body = {**self._body(1), "temperature": HOT, "seed": seed, "top_p": 1.0}
        return self._ask(prefix, body, patience)

    def _body(self, count: int) -> dict[str, Any]:
        body: dict[str, Any] = {"model": self._model, "max_tokens": count, "temperature": 0}
        return {**body, "logprobs": self.reported} if self.reported else body

    def _steps(self, event: Any) -> Iterator[Step]:
        if "error" in event:
            raise failed(event)
        for choice in event["choices"]:
            reported, text = choice.get("logprobs") or {}, choice["text"].encode()
            if entries := reported.get("content"):  # the form of chat completions, as of llama.cpp
                yield from steps_of(entries, text)
                continue
            tokens = reported.get("tokens")
            if not tokens or "".join(tokens).encode() != text:  # a token may be a part of a character
                if text:
                    yield Step(None, text, {})
                continue
            for token, top in zip(tokens, reported["top_logprobs"] or [{}] * len(tokens), strict=True):
                shares = {other.encode(): float(share) for other, share in (top or {}).items()}
                yield Step(None, token.encode(), shares)


def steps_of(entries: Sequence[Any], text: bytes) -> Iterator[Step]:
    """Yield the steps of reported tokens and their joint text.

    Ollama reports a part of a character as a replacement, and the text when the character is complete. Then the text
    is one step without log probabilities.
    """
    steps = [Step(None, bytes_of(entry), shares_of(entry)) for entry in entries]
    if b"".join(step.text for step in steps) == text:
        yield from steps
    elif text:
        yield Step(None, text, {})


def failed(event: Any) -> LostError:
    """Return an endpoint's error in the middle of a stream, at full length: it may hold the key."""
    error = event["error"]
    refusal = str(error.get("message", error) if isinstance(error, dict) else error)
    return LostError(f"the endpoint has failed: {' '.join(refusal.split())}")


def shares_of(entry: Any) -> dict[bytes, float]:
    """Return the log probabilities at a reported token's place, by bytes."""
    return {bytes_of(other): float(other["logprob"]) for other in entry.get("top_logprobs") or [entry]}


def bytes_of(entry: Any) -> bytes:
    return octets(entry.get("bytes")) or str(entry["token"]).encode()


def octets(known: Any) -> bytes:
    """Return the bytes in a list. Raises TypeError or ValueError for anything else; a number would allocate memory."""
    if known is not None and not isinstance(known, list):
        raise TypeError("bytes are a list")
    return bytes(known or ())
