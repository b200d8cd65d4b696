"""How endpoints are asked, and how they answer: each in its own words.

llama.cpp's server and vLLM take and tell token ids, give the log probabilities of the likeliest before anything is
changed, and can be asked for the likeliest of some tokens: their rows are the model's own. Others take texts on both
sides of the cursor and write text, with the likeliest texts at each place or without.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from fim_server.models.backend import LostError
from fim_server.models.remote.streams import IdSource, Source, Step, TextSource, read_event

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fim_server.models.remote.client import Client, Patience
    from fim_server.models.remote.rows import Told
    from fim_server.models.remote.texts import Pieces, Prompts
    from fim_server.tokens.vocabulary import Vocabulary

TOLD = 20
"""Tokens whose log probabilities are asked for at each place; vLLM tells no more by default."""

HOT, DRAWS = 5.0, 3
"""The temperature at which anything may be written, and how often that is tried: each is a trip."""

CERTAIN = 1000.0
"""What is added to the logits of tokens one of which is to be chosen."""


class Dialect(Protocol):
    """A kind of endpoint."""

    name: str
    exact: bool
    """Whether rows are the model's own, and tokens those that the model would write in this process."""

    def open(self, prefix: Sequence[int], count: int, patience: Patience) -> Source:
        """A stream of the likeliest text after a prefix, at most so many tokens of it. Raises LostError."""

    def read(self, prefix: Sequence[int], patience: Patience) -> None:
        """Have it read a prefix, and keep what it has read. Raises LostError."""

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

    def read(self, prefix: Sequence[int], patience: Patience) -> None:
        """As :meth:`Dialect.read`."""
        self._client.ask("/completion", {**self._body(prefix, 1), "stream": False}, patience)

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
        except (LookupError, TypeError, ValueError, ArithmeticError):
            raise LostError(f"{self._client.base}: answers without log probabilities") from None
        return (token, share) if token in wanted else None

    def one(self, prefix: Sequence[int], patience: Patience) -> dict[int, float]:
        """The row after a prefix, by a request of its own: a stream holds back tokens that end inside a character."""
        answer = self._client.ask("/completion", {**self._body(prefix, 1), "stream": False}, patience)
        try:
            return dict(entry_of(answer["completion_probabilities"][0]).told)  # type: ignore[arg-type]
        except (LookupError, TypeError, ValueError, ArithmeticError):
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
    """A stream that leaves out a token."""


def entry_of(entry: Any) -> Step:
    """A step as llama.cpp tells it. Raises LookupError, TypeError or ValueError for what is none."""
    told = {int(other["id"]): float(other["logprob"]) for other in entry["top_logprobs"]}
    return Step(int(entry["id"]), octets(entry.get("bytes")), told)


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

    def read(self, prefix: Sequence[int], patience: Patience) -> None:
        """As :meth:`Dialect.read`."""
        self._client.ask("/v1/completions", {**self._body(prefix, 1), "stream": False}, patience)

    def likeliest(self, prefix: Sequence[int], tokens: Sequence[int], patience: Patience) -> tuple[int, float] | None:
        """As :meth:`Dialect.likeliest`."""
        body = {**self._body(prefix, 1), "allowed_token_ids": [int(token) for token in tokens]}
        answer = self._client.ask("/v1/completions", body, patience)
        try:
            (step,) = self._steps(answer)
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError):
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
    """What endpoints that know no token ids are asked for.

    Attributes:
        path: Where they are asked.
    """

    exact = False
    path: str

    def __init__(self, client: Client, vocabulary: Vocabulary, model: str, prompts: Prompts, pieces: Pieces) -> None:
        self._client, self._vocabulary, self._model = client, vocabulary, model
        self.prompts, self.pieces = prompts, pieces
        self._last_drawn: tuple[tuple[int, ...], Told] = (), {}
        """Of the last place where something unlikely was written: several of its tokens may be asked for."""

    def open(self, prefix: Sequence[int], count: int, patience: Patience) -> Source:
        """As :meth:`Dialect.open`."""
        body = {**self._body(count), **self.prompts.fields(prefix), "stream": True}
        return TextSource(
            prefix, self._client.stream(self.path, body, patience), self._steps, self._vocabulary, self.pieces
        )

    def read(self, prefix: Sequence[int], patience: Patience) -> None:
        """As :meth:`Dialect.read`."""
        self._ask(prefix, self._body(1), patience)

    def likeliest(self, prefix: Sequence[int], tokens: Sequence[int], patience: Patience) -> tuple[int, float] | None:
        """As :meth:`Dialect.likeliest`, of those that are told where something is written.

        Of a place where the likeliest is to end nothing is: it is asked to write something unlikely there.
        """
        place, told = self._last_drawn
        if place != tuple(prefix):
            told = self._told(prefix, patience)
            self._last_drawn = tuple(prefix), told
        known = {token: told[token] for token in set(tokens) & told.keys()}
        return max(known.items(), key=lambda entry: entry[1]) if known else None

    def _told(self, prefix: Sequence[int], patience: Patience) -> Told:
        """What is told where something unlikely is written after a prefix; nothing where that would be the end."""
        for seed in range(DRAWS):
            found = self._drawn(prefix, seed, patience)
            if found is not None:
                return self.pieces.tokens(found.told)  # type: ignore[arg-type]
        return {}

    def _drawn(self, prefix: Sequence[int], seed: int, patience: Patience) -> Step | None:
        """A step after a prefix, nearly by lot; None where that was to end, or where no others are told."""
        raise NotImplementedError

    def _steps(self, event: Any) -> Iterator[Step]:
        """Those of an event. Raises LostError, and LookupError, TypeError or ValueError for what is none."""
        raise NotImplementedError

    def _body(self, count: int) -> dict[str, Any]:
        """What is asked for but the prompt: so many tokens."""
        raise NotImplementedError

    def _ask(self, prefix: Sequence[int], body: dict[str, Any], patience: Patience) -> Step | None:
        """The first step of an answer that tells others at its place; None where none does."""
        answer = self._client.ask(self.path, {**body, **self.prompts.fields(prefix), "stream": False}, patience)
        return next((step for step in read_event(self._steps, answer) if step.told), None)


class Ollama(Texts):
    """Ollama, by its own `/api/generate`; a prompt that is too long is refused, not cut where it must not be."""

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
            "top_logprobs": TOLD,
            "options": {"temperature": temperature, "num_predict": count, "repeat_penalty": 1.0, **options},
        }

    def _steps(self, event: Any) -> Iterator[Step]:
        if "error" in event:
            raise failed(event)
        yield from steps_of(event.get("logprobs") or [], event["response"].encode())


class OpenAi(Texts):
    """Any server with OpenAI's older `/v1/completions`: LM Studio, SGLang, text-generation-webui and others."""

    name, path = "OpenAI", "/v1/completions"

    def __init__(
        self, client: Client, vocabulary: Vocabulary, model: str, prompts: Prompts, pieces: Pieces, told: int
    ) -> None:
        """``told``: log probabilities that it tells at each place; 0: none."""
        super().__init__(client, vocabulary, model, prompts, pieces)
        self.told = told

    def _drawn(self, prefix: Sequence[int], seed: int, patience: Patience) -> Step | None:
        if not self.told:
            return None
        body = {**self._body(1), "temperature": HOT, "seed": seed, "top_p": 1.0}
        return self._ask(prefix, body, patience)

    def _body(self, count: int) -> dict[str, Any]:
        body: dict[str, Any] = {"model": self._model, "max_tokens": count, "temperature": 0}
        return {**body, "logprobs": self.told} if self.told else body

    def _steps(self, event: Any) -> Iterator[Step]:
        if "error" in event:
            raise failed(event)
        for choice in event["choices"]:
            told, text = choice.get("logprobs") or {}, choice["text"].encode()
            if entries := told.get("content"):  # as chat completions tell them: llama.cpp and what is built on it
                yield from steps_of(entries, text)
                continue
            tokens = told.get("tokens")
            if not tokens or "".join(tokens).encode() != text:  # a token may be a part of a character
                if text:
                    yield Step(None, text, {})
                continue
            for token, top in zip(tokens, told["top_logprobs"] or [{}] * len(tokens), strict=True):
                shares = {other.encode(): float(share) for other, share in (top or {}).items()}
                yield Step(None, token.encode(), shares)


def steps_of(entries: Sequence[Any], text: bytes) -> Iterator[Step]:
    """The steps of told tokens and the text that they are together.

    Ollama tells a part of a character as what it is not, and the text when the character is whole: then that is all.
    """
    steps = [Step(None, bytes_of(entry), shares_of(entry)) for entry in entries]
    if b"".join(step.text for step in steps) == text:
        yield from steps
    elif text:
        yield Step(None, text, {})


def failed(event: Any) -> LostError:
    """Return the error that an endpoint sends in the middle of a stream, at full length: it may hold the key."""
    error = event["error"]
    said = str(error.get("message", error) if isinstance(error, dict) else error)
    return LostError(f"the endpoint has failed: {' '.join(said.split())}")


def shares_of(entry: Any) -> dict[bytes, float]:
    """The log probabilities at a told token's place, by bytes."""
    return {bytes_of(other): float(other["logprob"]) for other in entry.get("top_logprobs") or [entry]}


def bytes_of(entry: Any) -> bytes:
    """A told token's bytes."""
    return octets(entry.get("bytes")) or str(entry["token"]).encode()


def octets(known: Any) -> bytes:
    """The bytes that a list tells; a number would be so much memory. Raises TypeError or ValueError for no bytes."""
    if known is not None and not isinstance(known, list):
        raise TypeError("bytes are a list")
    return bytes(known or ())
