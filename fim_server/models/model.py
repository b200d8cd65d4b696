"""A loaded model: its network on a backend, its prompt format, and the vocabulary that the engine needs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from fim_server.errors import ModelError, VocabularyError
from fim_server.models.backend import CheckingBackend, RowsBackend
from fim_server.models.tokenizer import FileTokenizer
from fim_server.models.turn import Turn
from fim_server.tokens.vocabulary import Vocabulary, read_vocabulary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fim_server.models.backend import Backend, Logits
    from fim_server.models.prompt import BoundFormat


@dataclass(frozen=True)
class FimModel:
    """A model ready to fill in middles."""

    name: str
    backend: Backend
    format: BoundFormat
    vocabulary: Vocabulary
    turn: Turn = field(default_factory=Turn, repr=False, compare=False)
    """Turns of the threads that share the model, pass by pass. Copies with another name or format share them, too."""

    @property
    def runtime(self) -> str:
        """Name of the backend in :data:`.loaders.LOADERS`."""
        return self.backend.name

    @property
    def device(self) -> str:
        return self.backend.device

    @property
    def window(self) -> int:
        """Context window in tokens, for prompt and middle together."""
        return self.backend.window

    @property
    def size(self) -> int:
        """Length of a row of logits; often padded beyond the tokenizer's own tokens."""
        return self.backend.size

    @property
    def mode(self) -> str:
        """``exact``: texts are the model's own under the grammar; ``checked``: an endpoint's texts, changed to fit."""
        return "exact" if not isinstance(self.backend, CheckingBackend) or self.backend.is_exact else "checked"

    @property
    def gives_rows(self) -> bool:
        """True if :meth:`forward_rows` may be called."""
        return isinstance(self.backend, RowsBackend) and self.backend.gives_rows

    def new_cache(self, room: int | None = None) -> Any:
        """Make an empty KV cache for at least ``room`` tokens; None: for the whole window."""
        return self.backend.new_cache(room)

    def forward(self, token_ids: Sequence[int], cache: Any) -> Logits:
        """Append tokens to the cache, and return the logits [V] after the last of them, in the backend's form.

        Raises the runtime's RuntimeError; the cache's content is then undefined. Raises StoppedError where a stop of
        the thread is set before the pass begins, or ends it early; the cache is then as it was.
        """
        with self.turn:
            return self.backend.forward(token_ids, cache)

    def forward_rows(self, token_ids: Sequence[int], cache: Any, rows: int) -> Sequence[Logits]:
        """Return the logits after each of the last ``rows`` tokens; see :class:`.backend.RowsBackend`."""
        assert isinstance(self.backend, RowsBackend), "gives_rows says so"
        with self.turn:
            return self.backend.forward_rows(token_ids, cache, rows)


def assemble(name: str, backend: Backend, tokenizer: Any, bound: BoundFormat) -> FimModel:
    """Put a model together from its loaded parts. Raises :class:`ModelError` where its tokens' bytes are unknown."""
    # A tokenizer's ids may have holes, and a model fewer logits than ids: no missing token is ever chosen.
    try:
        if isinstance(tokenizer, FileTokenizer):
            vocabulary = read_vocabulary(
                tokenizer.definition, name, backend.size, bound.stop_ids, True, tokenizer.backend_tokenizer
            )
        else:
            size = max(backend.size, 1 + max(tokenizer.get_vocab().values(), default=0))
            vocabulary = Vocabulary.from_tokenizer(tokenizer, size=size, end_token_ids=bound.stop_ids)
    except VocabularyError as error:
        raise ModelError(f"{name}: {error}") from error
    return FimModel(name, backend, replace(bound, plain=vocabulary.encode), vocabulary)
