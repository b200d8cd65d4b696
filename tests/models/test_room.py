"""Room for a model: what is refused before it is loaded."""

from __future__ import annotations

from pathlib import Path

import pytest

from fim_server.errors import ScarceMemoryError, is_exhaustion
from fim_server.models import load
from fim_server.models.resources import room
from fim_server.models.resources.room import MEGABYTE, free_addresses, require_room, sizes_of_process
from fim_server.system import process
from fim_server.system.process import container_bytes

resource = pytest.importorskip("resource", reason="the system has no limits")
on_linux = pytest.mark.skipif(not room.STATUS.exists(), reason="the system does not tell")


@pytest.fixture(autouse=True)
def unlimited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "free_addresses", lambda: None)
    monkeypatch.setattr(room, "container_bytes", lambda: None)


def test_without_limits_any_model_may_be_loaded() -> None:
    require_room("model", 1 << 50)


@pytest.mark.parametrize(
    ("megabytes", "weights", "fits"), [(210, 8, False), (260, 8, True), (460, 140, False), (510, 140, True)]
)
def test_addresses_have_to_suffice(monkeypatch: pytest.MonkeyPatch, megabytes: int, weights: int, fits: bool) -> None:
    monkeypatch.setattr(room, "free_addresses", lambda: megabytes * MEGABYTE)
    if fits:
        require_room("model", weights * MEGABYTE)
        return
    with pytest.raises(ScarceMemoryError, match="model: too little memory to load it") as raised:
        require_room("model", weights * MEGABYTE)
    assert is_exhaustion(raised.value)


@on_linux
def test_the_limit_of_a_container_has_to_suffice(monkeypatch: pytest.MonkeyPatch) -> None:
    resident = sizes_of_process("VmRSS") or 0
    monkeypatch.setattr(room, "container_bytes", lambda: resident + 100 * MEGABYTE)
    require_room("model", 8 * MEGABYTE)
    with pytest.raises(ScarceMemoryError):
        require_room("model", 140 * MEGABYTE)


def test_a_model_without_room_is_not_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(room, "free_addresses", lambda: 0)
    with pytest.raises(ScarceMemoryError):
        load.load_model("embedded")
    (tmp_path / "model.gguf").write_bytes(b"not read")
    with pytest.raises(ScarceMemoryError):
        load.load_model(str(tmp_path / "model.gguf"))


def test_limits_of_containers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.undo()
    group = tmp_path / "memory.max"
    monkeypatch.setattr(process, "CONTROL_GROUPS", (group, tmp_path / "none"))
    assert container_bytes() is None
    group.write_text("max\n", encoding="ascii")
    assert container_bytes() is None
    group.write_text("1000\n", encoding="ascii")
    assert container_bytes() == 1000


@on_linux
def test_addresses_of_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(resource, "getrlimit", lambda which: (1 << 40, 1 << 40))
    free = free_addresses()
    assert free is not None
    assert 0 < free < 1 << 40
    monkeypatch.setattr(resource, "getrlimit", lambda which: (resource.RLIM_INFINITY, 0))
    assert free_addresses() is None
