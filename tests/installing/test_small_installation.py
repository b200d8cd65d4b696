"""Parts that run without torch: the package with the locked packages of `requirements-run.lock` alone."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

from fim_server.models.onnx import backend as onnx_backend
from support.models.tiny_base import tiny_weights, write_tiny_base

ROOT = Path(__file__).resolve().parents[2]
LOCK = ROOT / "requirements-run.lock"
INSTALLS = os.environ.get("FIM_SERVER_LONG") == "1" or "CI" in os.environ
"""Building and installing takes a minute or two, and a registry."""

needs_package = pytest.mark.skipif(not onnx_backend.is_installed(), reason="onnxruntime has no wheel here")

CODE = (
    "def f(items):\n    best = items[0]\n    for item in items:\n        if item > best:\n            \n    return best"
)
NEEDS_TORCH = "needs PyTorch: pip install 'fim-server[torch]'"


def locked(path: Path) -> set[str]:
    """Names of the packages in a lock."""
    return set(re.findall(r"^([a-z0-9-]+)==", path.read_text(encoding="utf-8"), re.MULTILINE))


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of packages with nothing but what the small lock names, by links."""
    folder = tmp_path_factory.mktemp("site-packages")
    for name in locked(LOCK):
        try:
            files = metadata.distribution(name).files or []
        except metadata.PackageNotFoundError:  # of other systems
            continue
        for top in {file.parts[0] for file in files if file.parts[0] not in ("..", "__pycache__")}:
            link = folder / top
            if not link.exists():
                link.symlink_to(Path(str(metadata.distribution(name).locate_file(top))).resolve())
    return folder


def run(small: Path, *arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
    """The command line with those packages alone."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join((str(small), str(ROOT))), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-S", "-m", "fim_server", *arguments]
    return subprocess.run(command, env=environment, input=text, capture_output=True, text=True, check=False, cwd=small)


@pytest.fixture
def source(tmp_path: Path) -> str:
    path = tmp_path / "largest.py"
    path.write_text(CODE, encoding="utf-8")
    return str(path)


def test_the_small_lock_is_a_part_of_the_whole_one_without_torch() -> None:
    small, whole = (
        dict(re.findall(r"^([a-z0-9-]+)==(\S+)", path.read_text(encoding="utf-8"), re.MULTILINE))
        for path in (LOCK, ROOT / "requirements.lock")
    )
    assert small.items() <= whole.items()
    assert not {"torch", "transformers"} & set(small)
    assert {"torch", "transformers"} <= set(whole)


def test_torch_is_not_there(small: Path) -> None:
    environment = {"PYTHONPATH": str(small)}
    code = "import importlib.util as util; print([util.find_spec(name) for name in ('torch', 'transformers')])"
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[None, None]\n"


@needs_package
def test_a_file_is_completed_without_torch(small: Path, source: str) -> None:
    done = run(small, "complete", source, "5:13", "--max-new-tokens", "16", "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["guarantee"] == "exact"
    lines = CODE.split("\n")
    compile("\n".join([*lines[:4], lines[4] + answer["text"], *lines[5:]]), "completed", "exec")


@needs_package
def test_the_default_model_is_built_without_torch(small: Path, source: str, tmp_path: Path) -> None:
    base, made = write_tiny_base(tmp_path / "tiny.gguf", tiny_weights()), tmp_path / "made"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join((str(small), str(ROOT))), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-S", "-m", "fim_server.models.smollm2", str(base), str(made), "--no-adapter"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=small)
    assert done.returncode == 0, done.stderr
    done = run(small, "complete", source, "5:13", "--model", str(made), "--max-new-tokens", "40", "--json")
    assert done.returncode in (0, 1), done.stderr
    assert json.loads(done.stdout)["guarantee"] == "exact"


@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "{source}", "--json"),
        ("explain", "{source}", "5:13", "--json"),
        ("languages", "--json"),
        ("dataset", "--help"),
        ("eval", "--help"),
    ],
    ids=lambda arguments: " ".join(arguments[:2]),
)
def test_what_asks_no_model_runs_without_torch(small: Path, source: str, arguments: tuple[str, ...]) -> None:
    done = run(small, *(part.format(source=source) for part in arguments))
    assert done.returncode in (0, 1), done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout


@needs_package
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--runtime", "torch"), "embedded"),
        (("--device", "cuda"), "device cuda"),
        (("--model", "{folder}"), "{folder}"),
    ],
    ids=["runtime", "device", "no export"],
)
def test_what_needs_torch_says_so_in_one_line(
    small: Path, source: str, tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text("{}", encoding="utf-8")
    done = run(small, "complete", source, "5:13", *(part.format(folder=folder) for part in arguments))
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == f"fim-server: {said.format(folder=folder)}: {NEEDS_TORCH}"
    assert "Traceback" not in done.stderr


@needs_package
def test_without_either_runtime_the_line_names_both(small: Path, source: str, tmp_path: Path) -> None:
    less = tmp_path / "less"
    less.mkdir()
    for entry in small.iterdir():
        if not entry.name.startswith("onnxruntime"):
            (less / entry.name).symlink_to(entry)
    done = run(less, "complete", source, "5:13")
    assert done.returncode == 2
    last = done.stderr.splitlines()[-1]
    assert last == (
        "fim-server: embedded: needs PyTorch (or onnxruntime, where it has a wheel): pip install 'fim-server[torch]'"
    )


# --- the wheel ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from this checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    maturin = Path(sys.executable).with_name("maturin")
    command = [str(maturin), "build", "--release", "--locked", "--quiet", "--interpreter", sys.executable, "--out"]
    subprocess.run([*command, str(folder)], cwd=ROOT, check=True)
    [built] = folder.glob("*.whl")
    return built


@pytest.mark.skipif(not INSTALLS, reason="runs in the long form and in CI: builds the wheel and installs it")
@needs_package
def test_the_wheel_completes_a_file_in_an_empty_environment(wheel: Path, tmp_path: Path, source: str) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert not [name for name in names if name.startswith(("benchmarks/", "training/", "tests/"))]
    assert "fim_server/models/embedded/onnx/model.onnx" in names
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    programs = tmp_path / "venv" / ("Scripts" if sys.platform == "win32" else "bin")
    install = [str(programs / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*install, "--constraint", str(LOCK), str(wheel)], check=True)
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [str(programs / "fim-server"), "complete", source, "5:13", "--max-new-tokens", "16", "--json"]
    done = subprocess.run(command, cwd=tmp_path, env=kept, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["guarantee"] == "exact"
    [packages] = [folder for folder in (tmp_path / "venv").rglob("site-packages") if folder.is_dir()]
    assert not (packages / "torch").exists()
    installed = sum(file.lstat().st_size for file in packages.rglob("*") if file.is_file())
    pip = sum(file.lstat().st_size for file in (packages / "pip").rglob("*") if file.is_file())
    assert installed - pip < 300e6, f"{(installed - pip) / 1e6:.0f} MB"
