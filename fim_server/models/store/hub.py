"""Models in the hub's cache, which its library keeps and other programs share."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from fim_server.errors import ModelError
from fim_server.language.limited_files import parse_json, read_found
from fim_server.models.source import names_gguf_model

if TYPE_CHECKING:
    from huggingface_hub import CachedRepoInfo, CachedRevisionInfo, HFCacheInfo

CAUSAL = "ForCausalLM"
"""Ending of the architectures of language models in `config.json`."""


@dataclass(frozen=True)
class HubModel:
    """Model in the hub's cache.

    Attributes:
        name: ``OWNER/NAME``, the hub's name.
        folder: The files of its main revision.
        size: Bytes of all its revisions.
        is_loaded_by_name: Whether the main revision is a language model in the transformers layout, which `--model`
            takes by its name.
        gguf_files: GGUF files of the main revision, which `--model` takes by their paths.
    """

    name: str
    folder: Path
    size: int
    is_loaded_by_name: bool
    gguf_files: Sequence[Path]


def hub_folder() -> Path:
    """Return the folder of the hub's downloads, which may not exist."""
    from huggingface_hub.constants import HF_HUB_CACHE

    return Path(HF_HUB_CACHE)


def hub_models() -> list[HubModel]:
    """Return the usable models in the hub's cache, by name; none where it cannot be read."""
    found = [_model_of(repository) for repository in _repositories(_scan())]
    kept = [model for model in found if model is not None and (model.is_loaded_by_name or model.gguf_files)]
    return sorted(kept, key=lambda model: model.name)


def is_in_hub_cache(name: str) -> bool:
    """Return whether the hub's cache has a language model of a name."""
    return "/" in name and any(model.name == name and model.is_loaded_by_name for model in hub_models())


def remove_from_hub_cache(name: str) -> int:
    """Delete all revisions of a model from the hub's cache, and return the bytes that they had.

    Raises ModelError where none of that name is there, and OSError where the disk refuses.
    """
    scan = _scan()
    for repository in _repositories(scan):
        if scan is not None and repository.repo_id == name:
            # The library looks for revisions in all repositories, and copies of one have the same.
            alone = replace(scan, repos=frozenset({repository}))
            strategy = alone.delete_revisions(*(revision.commit_hash for revision in repository.revisions))
            strategy.execute()  # it passes over what it cannot delete
            if repository.repo_path.exists():
                raise ModelError(f"{name}: not all of {repository.repo_path} could be deleted")
            return strategy.expected_freed_size
    raise ModelError(f"{name}: not in the hub's cache")


def _scan() -> HFCacheInfo | None:
    folder = hub_folder()
    if not folder.is_dir():  # the library's import takes its time
        return None
    from huggingface_hub import scan_cache_dir

    with suppress(OSError, ValueError):
        return scan_cache_dir(folder)
    return None


def _repositories(scan: HFCacheInfo | None) -> list[CachedRepoInfo]:
    return [] if scan is None else [repository for repository in scan.repos if repository.repo_type == "model"]


def _model_of(repository: CachedRepoInfo) -> HubModel | None:
    main = repository.refs.get("main")  # which is loaded where none is named
    if main is None:
        return None
    files = sorted(file.file_path for file in main.files if names_gguf_model(file.file_name))
    return HubModel(repository.repo_id, main.snapshot_path, repository.size_on_disk, _is_language_model(main), files)


def _is_language_model(revision: CachedRevisionInfo) -> bool:
    """Return whether a revision has a language model's weights; an interrupted download may have left only the rest."""
    names = {file.file_name for file in revision.files}
    if "config.json" not in names or not any(name.endswith(".safetensors") for name in names):
        return False
    try:
        config = parse_json(read_found(revision.snapshot_path / "config.json"))
        return any(str(one).endswith(CAUSAL) for one in config["architectures"])
    except (OSError, ValueError, LookupError, TypeError):
        return False
