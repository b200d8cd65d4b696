"""Downloads: cut off, gone on with, of another file, of no file. The server is one of this machine."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from fim_server.errors import ModelError
from fim_server.models.store import transfer
from fim_server.models.store.transfer import TransferError, download, partial_of
from support.models.model_store import Habits, pinned, serving

CONTENT = random.Random(3).randbytes(1_000_000)
WANTED = pinned("file.whl", CONTENT)


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer, "FIRST_PAUSE_SECONDS", 0.0)


def quiet(done: int, total: int) -> None:
    assert 0 <= done <= total == len(CONTENT)


def test_a_file_is_downloaded_completely(tmp_path: Path) -> None:
    amounts: list[int] = []
    with serving(Habits(CONTENT)) as url:
        download(url, tmp_path / "file.whl", WANTED, lambda done, total: amounts.append(done))
    assert (tmp_path / "file.whl").read_bytes() == CONTENT
    assert amounts == sorted(amounts)
    assert (amounts[0], amounts[-1]) == (0, len(CONTENT))
    assert [path.name for path in tmp_path.iterdir()] == ["file.whl"]


def test_a_cut_download_is_resumed(tmp_path: Path) -> None:
    habits = Habits(CONTENT, cuts=[400_000, 0, 300_000])
    with serving(habits) as url:
        download(url, tmp_path / "file.whl", WANTED, quiet)
    assert habits.asked == [0, 400_000, 400_000, 700_000]
    assert (tmp_path / "file.whl").read_bytes() == CONTENT


def test_a_killed_download_is_resumed(tmp_path: Path) -> None:
    def die(done: int, total: int) -> None:
        if done > 300_000:
            raise KeyboardInterrupt

    habits = Habits(CONTENT)
    with serving(habits) as url:
        with pytest.raises(KeyboardInterrupt):
            download(url, tmp_path / "file.whl", WANTED, die)
        kept = partial_of(tmp_path / "file.whl", WANTED).stat().st_size
        assert 300_000 < kept < len(CONTENT)
        assert not (tmp_path / "file.whl").exists()
        download(url, tmp_path / "file.whl", WANTED, quiet)
    assert habits.asked == [0, kept]
    assert (tmp_path / "file.whl").read_bytes() == CONTENT


def test_a_server_without_ranges_begins_again(tmp_path: Path) -> None:
    habits = Habits(CONTENT, cuts=[400_000, 300_000], ranges=False)
    with serving(habits) as url:
        download(url, tmp_path / "file.whl", WANTED, quiet)
    assert habits.asked == [0, 400_000, 300_000]
    assert (tmp_path / "file.whl").read_bytes() == CONTENT


@pytest.mark.parametrize("ranges", [True, False])
def test_a_server_that_always_cuts_is_abandoned(tmp_path: Path, ranges: bool) -> None:
    habits = Habits(CONTENT, cuts=[100_000, *[0] * 20], ranges=ranges)
    with serving(habits) as url, pytest.raises(TransferError, match=r"file.whl cannot be fetched: "):
        download(url, tmp_path / "file.whl", WANTED, quiet)
    assert len(habits.asked) == 1 + transfer.TRIES
    assert not (tmp_path / "file.whl").exists()


def test_a_busy_server_is_asked_again(tmp_path: Path) -> None:
    habits = Habits(CONTENT, statuses=[503, 429])
    with serving(habits) as url:
        download(url, tmp_path / "file.whl", WANTED, quiet)
    assert habits.asked == [0, 0, 0]


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_server_that_refuses_is_not_asked_again(tmp_path: Path, status: int) -> None:
    habits = Habits(CONTENT, statuses=[status] * 5)
    with serving(habits) as url, pytest.raises(TransferError, match=f"the server answers {status}"):
        download(url, tmp_path / "file.whl", WANTED, quiet)
    assert habits.asked == [0]


def test_an_absent_server_is_one_line(tmp_path: Path) -> None:
    with serving(Habits(CONTENT)) as url:
        pass
    with pytest.raises(TransferError) as caught:
        download(url, tmp_path / "file.whl", WANTED, quiet)
    assert "file.whl cannot be fetched: " in str(caught.value)
    assert "\n" not in str(caught.value)


def test_another_file_of_that_size_is_refused_and_not_kept(tmp_path: Path) -> None:
    habits = Habits(CONTENT[:-1] + b"?")
    with serving(habits) as url, pytest.raises(ModelError, match="not the file that is expected"):
        download(url, tmp_path / "file.whl", WANTED, quiet)
    assert habits.asked == [0]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [CONTENT + b"?", CONTENT[:-1], b""])
def test_a_file_of_another_size_is_refused(tmp_path: Path, content: bytes) -> None:
    with serving(Habits(content)) as url, pytest.raises(TransferError):
        download(url, tmp_path / "file.whl", WANTED, quiet)
    assert not (tmp_path / "file.whl").exists()


def test_a_beginning_of_another_file_does_not_spoil_the_download(tmp_path: Path) -> None:
    partial_of(tmp_path / "file.whl", WANTED).write_bytes(b"?" * 500_000)
    habits = Habits(CONTENT)
    with serving(habits) as url:
        download(url, tmp_path / "file.whl", WANTED, quiet)
    assert habits.asked == [500_000, 0]
    assert (tmp_path / "file.whl").read_bytes() == CONTENT


def test_a_partial_file_that_is_whole_needs_no_server(tmp_path: Path) -> None:
    partial_of(tmp_path / "file.whl", WANTED).write_bytes(CONTENT)
    download("http://127.0.0.1:9/file.whl", tmp_path / "file.whl", WANTED, quiet)
    assert (tmp_path / "file.whl").read_bytes() == CONTENT


def test_a_file_of_this_machine_is_copied(tmp_path: Path) -> None:
    (tmp_path / "a file.whl").write_bytes(CONTENT)
    (tmp_path / "other.whl").write_bytes(CONTENT[::-1])
    download((tmp_path / "a file.whl").as_uri(), tmp_path / "file.whl", WANTED, quiet)
    assert (tmp_path / "file.whl").read_bytes() == CONTENT
    with pytest.raises(ModelError, match="not the file that is expected"):
        download((tmp_path / "other.whl").as_uri(), tmp_path / "file.whl", WANTED, quiet)
    with pytest.raises(TransferError, match="no such file"):
        download((tmp_path / "none.whl").as_uri(), tmp_path / "file.whl", WANTED, quiet)
    assert not list(tmp_path.glob("*.partial"))


def test_a_server_that_sends_single_bytes_is_abandoned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer, "LEAST_SECONDS", 0.5)
    habits = Habits(CONTENT, pause=0.01, chunk=10)
    with serving(habits) as url, pytest.raises(TransferError, match=r"file.whl: the server sends it too slowly"):
        download(url, tmp_path / "file.whl", WANTED, quiet)
    assert len(habits.asked) == 1
