"""Loading a GGUF file: its network, its own tokenizer, and the prompt format that its tokens' names show."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fim_server.errors import ModelError, VocabularyError
from fim_server.models.gguf.backend import GgufBackend, read_tokenizer
from fim_server.models.gguf.library import load_library
from fim_server.models.gguf.trial import Tried, require_sound
from fim_server.models.model import FimModel
from fim_server.models.prompt import bind_format, plain_format
from fim_server.tokens.vocabulary import Vocabulary

if TYPE_CHECKING:
    from pathlib import Path

    from fim_server.models.gguf.tokenizer import GgufTokenizer
    from fim_server.models.prompt import BoundFormat


def load_gguf(path: Path, threads: int, gpu_layers: int | None = None, adapter: Path | None = None) -> FimModel:
    """Load a GGUF file. A model without a known prompt format sees only the text left of the cursor.

    Args:
        path: The file.
        threads: Threads of a pass.
        gpu_layers: Layers that a GPU computes; -1 for all, None for all where the library has a GPU.
        adapter: A low-rank adapter in another GGUF file.

    Raises:
        ModelError: It cannot be loaded or completes no texts, or llama.cpp is not installed; one line.
    """
    if gpu_layers is None:
        gpu_layers = -1 if load_library().llama_supports_gpu_offload() else 0
    named = None if adapter is None else str(adapter.absolute())
    require_sound(Tried(str(path.absolute()), gpu_layers, named))
    return load_sound_gguf(path, threads, gpu_layers, adapter)


def load_sound_gguf(path: Path, threads: int, gpu_layers: int, adapter: Path | None = None) -> FimModel:
    """Load a file without a trial. Raises as :func:`load_gguf`; a bad file may end the process."""
    backend = GgufBackend(path, threads, gpu_layers, adapter)
    bound, vocabulary = tokens_of(backend.tokenizer, path)
    return FimModel(path.stem, backend, bound, vocabulary)


def read_gguf_tokens(path: Path) -> tuple[BoundFormat, Vocabulary]:
    """Read the prompt format and the tokens of a GGUF file, without its network.

    Raises :class:`ModelError`, one line.
    """
    require_sound(Tried(str(path.absolute()), vocabulary=True))
    return read_sound_tokens(path)


def read_sound_tokens(path: Path) -> tuple[BoundFormat, Vocabulary]:
    """Read the tokens of a file without a trial. Raises as :func:`read_gguf_tokens`."""
    return tokens_of(read_tokenizer(path), path)


def tokens_of(tokenizer: GgufTokenizer, path: Path) -> tuple[BoundFormat, Vocabulary]:
    """Return the prompt format that the tokens' names show, and the vocabulary.

    Raises :class:`ModelError`, one line.
    """
    bound = bind_format(tokenizer, tokenizer.kind(path.name))
    if bound is None:
        if not tokenizer.end_ids:
            raise ModelError(f"{path}: no token of it ends a text")
        bound = plain_format(tokenizer, tokenizer.begin_ids, tokenizer.end_ids)
    elif tokenizer.begin_ids and bound.pieces[0] not in tokenizer.begin_ids:
        begun = (*tokenizer.begin_ids, *bound.pieces)
        bound = replace(bound, pieces=begun, control_ids=bound.control_ids.union(tokenizer.begin_ids))
    try:
        vocabulary = Vocabulary(tokenizer.tokens(), bound.stop_ids, encoder=tokenizer.ids)
    except (ModelError, VocabularyError) as error:
        raise ModelError(f"{path}: {error}") from error
    return replace(bound, plain=vocabulary.encode), vocabulary
