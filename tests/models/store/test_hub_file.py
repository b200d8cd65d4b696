"""GGUF models of the catalogue: fetched from a hub on this machine, resumed, checked, loaded by name, and removed."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest

from fim_server.errors import ModelError
from fim_server.evaluation.model_check.known import models_here
from fim_server.models.gguf import library
from fim_server.models.load import load_model
from fim_server.models.source import locate
from fim_server.models.store import hub_file, transfer
from fim_server.models.store.catalogue import Entry, catalogue, entry_of
from fim_server.models.store.get import get, is_removable
from fim_server.models.store.hub_file import chosen, stem_of
from fim_server.models.store.manifest import MANIFEST
from fim_server.models.store.state import State, state_of
from fim_server.tokens.formats import known_formats
from support.command_line import run_command
from support.models.file_hub import COMMIT, FileHub, serving_hub
from support.models.model_store import Habits, Told, serving
from support.models.tiny_base import UNUSED, write_renamed_base

NAME, FILE = "granite-4.0-350m", "granite-4.0-350m-base-Q8_0.gguf"
GRANITE = dict(zip(UNUSED, ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|fim_pad|>"), strict=True))


@dataclass
class Shop:
    """A hub with a small model, and an empty cache."""

    hub: FileHub
    store: Habits
    models: Path

    @property
    def entry(self) -> Entry:
        return entry_of(NAME)

    def names(self) -> set[str]:
        """Return the files of the models' folder."""
        return {path.name for path in self.models.rglob("*") if path.is_file()} - {"verified.json"}


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    names = {**GRANITE, "<|endoftext|>": "<|end_of_text|>"}
    return write_renamed_base(tmp_path_factory.mktemp("tiny") / FILE, names).read_bytes()


@pytest.fixture
def shop(content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("FIM_SERVER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(hub_file, "authorization", dict)
    monkeypatch.setattr(transfer, "FIRST_PAUSE_SECONDS", 0.0)
    store = Habits(content)
    with serving(store, "blob") as address:
        hub = FileHub(entry_of(NAME).hub, content, ["README.md", FILE.replace("Q8_0", "Q4_K_M"), FILE], address)
        with serving_hub(hub) as endpoint:
            monkeypatch.setenv("HF_ENDPOINT", endpoint)
            yield Shop(hub, store, tmp_path / "cache" / "models")


def test_a_model_is_fetched_from_the_mirror_and_checked(shop: Shop) -> None:
    told = Told()
    got = get(NAME, None, told)
    assert (got.folder, got.new) == (shop.models / NAME, True)
    assert shop.names() == {FILE, MANIFEST}
    assert (got.folder / FILE).read_bytes() == shop.hub.content
    kept = json.loads((got.folder / MANIFEST).read_text().split("\n", 1)[1])
    assert kept["files"] == {
        FILE: {"size": len(shop.hub.content), "sha256": hashlib.sha256(shop.hub.content).hexdigest()}
    }
    assert kept["source"] == f"127.0.0.1/{shop.entry.hub} at {COMMIT}"
    assert told.stages == ["asking 127.0.0.1 for " + shop.entry.hub, told.stages[1]]
    assert told.stages[1].startswith("downloading Granite 4.0 350M base, ")
    assert told.stages[1].endswith(" MB, licence Apache-2.0")
    assert told.amounts[-1] == (len(shop.hub.content),) * 2
    assert state_of(shop.entry) is State.READY


def test_a_model_that_is_there_is_not_asked_for_again(shop: Shop) -> None:
    get(NAME, None, Told())
    asked = len(shop.hub.asked)
    assert not get(NAME, None, Told()).new
    assert len(shop.hub.asked) == asked


def test_an_installed_model_has_its_name_everywhere(shop: Shop) -> None:
    get(NAME, None, Told())
    file = shop.models / NAME / FILE
    assert locate(NAME) == str(file)
    here = [one.name for one in models_here()]
    assert NAME in here
    assert str(file) not in here, "once is enough"
    assert is_removable(NAME)
    if library.is_installed():
        model = load_model(NAME)
        assert model.format.family == "Granite 4"
        assert model.runtime == "llama.cpp"
        with pytest.raises(ModelError, match="runtime onnx: runs no GGUF files"):
            load_model(NAME, runtime="onnx")


def test_an_interrupted_download_is_resumed(shop: Shop) -> None:
    def die(done: int, total: int) -> None:
        if done > 100_000:
            raise KeyboardInterrupt

    told = Told()
    told.amount = die  # type: ignore[method-assign]
    shop.store.chunk = 50_000
    with pytest.raises(KeyboardInterrupt):
        get(NAME, None, told)
    assert state_of(shop.entry) is State.MISSING
    get(NAME, None, Told())
    assert shop.store.asked[0] == 0
    assert shop.store.asked[1] > 100_000
    assert state_of(shop.entry) is State.READY
    assert shop.names() == {FILE, MANIFEST}


def test_a_cut_connection_is_taken_up_again(shop: Shop) -> None:
    shop.store.cuts = [50_000, 70_000]
    get(NAME, None, Told())
    assert shop.store.asked == [0, 50_000, 120_000]
    assert state_of(shop.entry) is State.READY


def test_the_rest_of_another_revision_is_dropped(shop: Shop) -> None:
    shop.store.cuts = [50_000] * 9
    shop.store.ranges = False
    with pytest.raises(ModelError, match="cannot be fetched"):
        get(NAME, None, Told())
    (left,) = [name for name in shop.names() if name.endswith(".partial")]
    shop.store.content = shop.hub.content = shop.hub.content + b"\0"
    shop.store.cuts, shop.store.ranges = [], True
    get(NAME, None, Told())
    assert left not in shop.names()
    assert shop.names() == {FILE, MANIFEST}


def test_another_file_than_the_hub_tells_is_refused(shop: Shop) -> None:
    shop.store.content = shop.hub.content[:-1] + b"!"
    with pytest.raises(ModelError, match=f"^{FILE}: not the file that is expected") as refusal:
        get(NAME, None, Told())
    assert "\n" not in str(refusal.value)
    assert shop.names() == set()
    assert state_of(shop.entry) is State.MISSING


def test_a_file_that_is_no_gguf_file_is_refused(shop: Shop) -> None:
    shop.store.content = shop.hub.content = b"<html>" * 1000
    with pytest.raises(ModelError, match="it does not begin as a GGUF file"):
        get(NAME, None, Told())
    assert state_of(shop.entry) is State.MISSING


def test_a_damaged_file_is_told_and_repaired(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    get(NAME, None, Told())
    file = shop.models / NAME / FILE
    file.write_bytes(file.read_bytes()[:-1] + b"!")
    os.utime(file, (1, 1))  # two writes may have one time
    assert f"damaged: run `fim-server models get {NAME}`" in " ".join(run_command(capsys, "models", "list")[1].split())
    with pytest.raises(ModelError, match=f"{NAME} is damaged .*{FILE} is not what was installed"):
        locate(NAME)
    assert get(NAME, None, Told()).new
    assert state_of(shop.entry) is State.READY
    assert locate(NAME) == str(file)


@pytest.mark.parametrize("token", [None, "wrong", "right"])
def test_a_gated_repository_wants_a_token_and_the_store_never_gets_it(
    shop: Shop, token: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.hub.token = "right"
    header = {} if token is None else {"Authorization": f"Bearer {token}"}
    monkeypatch.setattr(hub_file, "authorization", lambda: header)
    if token is not None:
        monkeypatch.setattr("huggingface_hub.utils._headers.get_token", lambda: token)
    if token == "right":
        get(NAME, None, Told())
        assert state_of(shop.entry) is State.READY
    else:
        with pytest.raises(ModelError, match=r"want their licence accepted; do so at http\S+, then set HF_TOKEN"):
            get(NAME, None, Told())
    assert set(shop.store.tokens) <= {None}


def test_what_the_hub_does_not_have_is_told_in_one_line(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused() -> str:
        with pytest.raises(ModelError) as refusal:
            get(NAME, None, Told())
        assert "\n" not in str(refusal.value)
        assert state_of(shop.entry) is State.MISSING
        assert shop.names() == set()
        return str(refusal.value)

    hub = shop.entry.hub
    shop.hub.names = ["README.md", FILE.replace("Q8_0", "Q4_0")]
    assert refused() == f"{hub}: has no GGUF file with the precision Q8_0 (of 1 there)"
    shop.hub.names = [FILE]
    shop.hub.tells_checksum = False
    assert refused() == f"{hub}: 127.0.0.1 does not tell size and SHA-256 of {FILE}"
    for answer in (b"[", b"[]", b"null", b'{"siblings": 3}'):
        shop.hub.answer = answer
        assert refused().startswith(f"{hub}: 127.0.0.1 does not answer as the hub does (")
    shop.hub.repository = "somebody/else"
    assert "127.0.0.1 has no such repository" in refused()
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    assert refused().startswith(f"{hub}: 127.0.0.1 cannot be reached (")


def test_a_full_disk_loses_nothing(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=90_000_000))
        with pytest.raises(ModelError, match=r"models: 90 MB are free, 100 are needed$"):
            get(NAME, None, Told())
    assert shop.store.asked == []

    def fail(*_: object) -> bool:
        raise OSError(errno.ENOSPC, "no space")

    with monkeypatch.context() as patch:
        patch.setattr(transfer, "receive", fail)
        with pytest.raises(ModelError, match=r"the disk is full; 371 MB are needed$"):
            get(NAME, None, Told())
    get(NAME, None, Told())
    assert state_of(shop.entry) is State.READY


def test_the_commands(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    status, output, errors = run_command(capsys, "models", "get", NAME)
    assert (status, output.split(" (")[0]) == (0, f"{NAME} is ready")
    assert re.search(r"^downloading Granite 4.0 350M base, \d+ MB, licence Apache-2.0", errors, re.MULTILINE)
    rows = {row["name"]: row for row in json.loads(run_command(capsys, "models", "list", "--json")[1])}
    assert (rows[NAME]["state"], rows[NAME]["removable"], rows[NAME]["open"]) == ("ready", True, True)
    assert rows["codestral-22b"]["downloadBytes"] == entry_of("codestral-22b").weights
    status, output, _ = run_command(capsys, "models", "remove", NAME)
    assert (status, output.split(",")[0]) == (0, f"{NAME} is removed")
    assert not (shop.models / NAME).exists()
    shop.hub.token = "secret"
    status, output, errors = run_command(capsys, "models", "get", NAME)
    assert (status, output) == (2, "")
    assert errors.splitlines()[-1].startswith(f"fim-server: {shop.entry.hub}: its makers want")
    assert run_command(capsys, "models", "get", NAME, "--from", "x.gguf")[0] == 2


# --- the choice of a file -----------------------------------------------------------------------------------------


def test_a_file_is_chosen_by_its_precision() -> None:
    entry = entry_of(NAME)
    names = ["a-Q4_K_M.gguf", "a.other-Q8_0.gguf", "a-Q8_0.gguf", "mmproj-Q8_0.gguf", "a-Q8_0.txt"]
    assert chosen(entry, names) == ["a-Q8_0.gguf"]
    assert chosen(entry, ["b/a.q8_0.GGUF"]) == ["b/a.q8_0.GGUF"]
    parts = [f"Q8_0/a-Q8_0-{number:05}-of-00002.gguf" for number in (1, 2)]
    assert chosen(entry, parts) == parts
    for wrong in (
        parts[:1],
        ["a-Q8_0-00001-of-00000.gguf"],
        ["a-IQ8_0.gguf"],
        ["../a-Q8_0.gguf"],
        ["/a-Q8_0.gguf"],
        [],
    ):
        with pytest.raises(ModelError, match=entry.hub):
            chosen(entry, wrong)
    assert stem_of("x/a-Q8_0-00001-of-00002.gguf") == "a-Q8_0"


def test_the_catalogue_is_complete() -> None:
    families = {row.family for row in known_formats()}
    for entry in catalogue().values():
        assert entry.family in families
        assert entry.title
        assert entry.about
        assert entry.hub.count("/") == 1
        assert 1e8 < entry.parameters < 1e11
        assert entry.is_file == (entry.name != "smollm2")
        assert entry.open == (entry.licence in ("Apache-2.0", "MIT"))
        assert entry.download > 9e7
