"""Models in the hub's own cache: listed by name, and removed by the hub's library."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from fim_server.errors import ModelError
from fim_server.evaluation.model_check.known import models_here
from fim_server.evaluation.model_check.listing import list_models
from fim_server.models.store import hub as module
from fim_server.models.store.catalogue import catalogue
from fim_server.models.store.get import is_removable, remove
from fim_server.models.store.hub import hub_models

CAUSAL = json.dumps({"architectures": ["LlamaForCausalLM"]})


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the hub's cache of a user who has nothing else."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("FIM_SERVER_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "hub"
    folder.mkdir()
    monkeypatch.setattr(module, "hub_folder", lambda: folder)
    return folder


def put(cache: Path, name: str, files: dict[str, str], *, kind: str = "models", reference: str = "main") -> Path:
    """A repository as the hub's library lays it out: blobs, one revision of links to them, and what refers to it."""
    repository = cache / f"{kind}--{name.replace('/', '--')}"
    revision = hashlib.sha1(reference.encode()).hexdigest()
    for file, text in files.items():
        blob = repository / "blobs" / hashlib.sha1(text.encode()).hexdigest()
        blob.parent.mkdir(parents=True, exist_ok=True)
        blob.write_text(text)
        link = repository / "snapshots" / revision / file
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(blob)
    (repository / "refs").mkdir(exist_ok=True)
    (repository / "refs" / reference).write_text(revision)
    return repository / "snapshots" / revision


def test_language_models_and_gguf_files_are_listed(cache: Path) -> None:
    folder = put(cache, "owner/coder", {"config.json": CAUSAL, "model.safetensors": "weights"})
    put(cache, "owner/coder", {"model.safetensors": "older weights"}, reference="v1")
    files = {f"Q8-{part}.gguf": part for part in ("00001-of-00002", "00002-of-00002")}
    parts = put(cache, "owner/coder-GGUF", {**files, "mmproj-Q8.gguf": "pictures"})
    put(cache, "owner/classifier", {"config.json": '{"architectures": ["BertModel"]}', "model.safetensors": "weights"})
    put(cache, "owner/interrupted", {"config.json": CAUSAL})
    put(cache, "owner/damaged", {"config.json": "[", "model.safetensors": "weights"})
    put(cache, "owner/other-revision", {"config.json": CAUSAL, "model.safetensors": "weights"}, reference="v1")
    put(cache, "owner/table", {"config.json": CAUSAL, "model.safetensors": "weights"}, kind="datasets")
    (cache / "models--owner--nothing").mkdir()
    (cache / "version.txt").write_text("1")
    file = str(parts / "Q8-00001-of-00002.gguf")
    rows = {row["name"]: row for row in list_models(models_here()).rows}
    assert list(rows) == [*catalogue(), "embedded", "owner/coder", file]
    coder, gguf = rows["owner/coder"], rows[file]
    assert (coder["state"], coder["folder"], coder["removable"]) == ("hub", str(folder), True)
    assert coder["bytes"] == len(CAUSAL + "weights" + "older weights")
    assert (gguf["state"], gguf["bytes"], gguf["removable"]) == ("file", 2 * len("00001-of-00002"), False)


def test_all_revisions_of_a_model_are_removed_and_nothing_else_is(cache: Path) -> None:
    model = {"config.json": CAUSAL, "model.safetensors": "weights"}
    put(cache, "owner/coder", model)
    put(cache, "owner/coder", {"model.safetensors": "older weights"}, reference="v1")
    for name, kind in (("owner/other", "models"), ("owner/coder", "datasets")):
        put(cache, name, model, kind=kind)
    assert is_removable("owner/coder")
    assert remove("owner/coder") == len(CAUSAL + "weights" + "older weights")
    assert sorted(path.name for path in cache.iterdir() if "--" in path.name) == [
        "datasets--owner--coder",
        "models--owner--other",
    ]
    assert not is_removable("owner/coder")
    for name in ("owner/coder", "coder", "other", "../hub", "owner/", ""):
        with pytest.raises(ModelError, match="not an installed model"):
            remove(name)
    assert [one.name for one in hub_models()] == ["owner/other"]


def test_a_cache_that_is_not_there_or_is_a_file_has_nothing(cache: Path) -> None:
    cache.rmdir()
    assert hub_models() == []
    cache.write_text("no folder")
    assert hub_models() == []
