"""Checks of a release's files: names, contents, metadata, and the program in an empty environment."""

from __future__ import annotations

import json
import sys
import tarfile
import venv
import zipfile
from collections.abc import Sequence
from pathlib import Path

from release.building import Target, Workshop
from release.running import ReleaseError, run

WHEEL_HAS = (
    "fim_server/py.typed",
    "fim_server/_core.pyi",
    "fim_server/models/embedded/onnx/model.onnx",
    "fim_server/models/adapters/smollm2.safetensors",
    "fim_server/tokens/formats.toml",
)
"""Files without which an installed package fails."""

SDIST_HAS = ("LICENSE", "README.md", "pyproject.toml", "rust_core/Cargo.lock", "fim_server/py.typed")

EXTENSION_HAS = ("extension/package.json", "extension/out/extension.js", "extension/readme.md", "extension/LICENSE.txt")

STRAYS = ("tests/", "benchmarks/", "training/", "release/")
"""Folders at the top of which no file is published."""

STRAYS_ANYWHERE = (".work/", "target/", "node_modules/", "__pycache__/")

MOST_WHEEL, MOST_EXTENSION = 100_000_000, 2_000_000
"""Largest files in bytes. The package index takes wheels of at most 100 MB."""

UNIX_ONLY = ("fcntl", "grp", "pwd", "resource", "termios")
"""Modules that Windows lacks."""

OTHER_SYSTEMS = ("win32", "darwin")
"""Systems that types are also checked for, as ``sys.platform`` names them."""

IMPORTS = """
import sys
for name in {missing!r}:
    sys.modules[name] = None
import fim_server.cli.check, fim_server.cli.complete, fim_server.cli.program, fim_server.cli.serve
import fim_server.cli.dataset, fim_server.cli.evaluate, fim_server.evaluation.running.run
import fim_server.evaluation.model_check.speed, fim_server.models.gguf.trial
import fim_server.models.onnx.backend, fim_server.server.app, fim_server.workers.worker
"""


def check_wheel(wheel: Path, target: Target) -> None:
    """Check a wheel's name, contents and size.

    Raises:
        ReleaseError: Something is wrong.
    """
    if f"-cp311-abi3-{target.tag}" not in wheel.name:
        raise ReleaseError(f"{wheel.name}: the tag is not cp311-abi3-{target.tag}")
    with zipfile.ZipFile(wheel) as file:
        expect(wheel, file.namelist(), (*WHEEL_HAS, target.module))
    if wheel.stat().st_size > MOST_WHEEL:
        raise ReleaseError(f"{wheel.name}: {wheel.stat().st_size:,} bytes, at most {MOST_WHEEL:,} are accepted")


def check_sdist(sdist: Path) -> None:
    """Check the contents of the source distribution.

    Raises:
        ReleaseError: Something is wrong.
    """
    with tarfile.open(sdist) as file:
        names = [name.partition("/")[2] for name in file.getnames()]
    expect(sdist, names, SDIST_HAS)


def check_extension(package: Path) -> None:
    """Check the contents and the size of the extension's package.

    Raises:
        ReleaseError: Something is wrong.
    """
    with zipfile.ZipFile(package) as file:
        expect(package, file.namelist(), EXTENSION_HAS)
    if package.stat().st_size > MOST_EXTENSION:
        raise ReleaseError(f"{package.name}: {package.stat().st_size:,} bytes, more than {MOST_EXTENSION:,}")


def expect(package: Path, names: Sequence[str], wanted: Sequence[str]) -> None:
    """Check that a package has the wanted files and no stray ones.

    Raises:
        ReleaseError: One is missing or stray.
    """
    if missing := [name for name in wanted if name not in names]:
        raise ReleaseError(f"{package.name} lacks {', '.join(missing)}")
    anywhere = [f"/{stray}" for stray in STRAYS_ANYWHERE]
    if strays := [name for name in names if name.startswith(STRAYS) or any(one in f"/{name}" for one in anywhere)]:
        raise ReleaseError(f"{package.name} has {strays[0]} and {len(strays) - 1} more files that do not belong there")


def check_metadata(shop: Workshop, files: Sequence[Path]) -> None:
    """Check the package index's metadata and the stable ABI of all wheels.

    Raises:
        ReleaseError: Something is wrong.
    """
    log = shop.logs / "metadata.log"
    run([shop.tools / "twine", "check", "--strict", *files], shop.root, log)
    wheels = [file for file in files if file.suffix == ".whl"]
    run([shop.tools / "abi3audit", "--strict", "--report", *wheels], shop.root, log)


def check_installed(shop: Workshop, wheel: Path) -> Path:
    """Install this platform's wheel into an empty environment, complete a file, and return the environment's Python.

    Raises:
        ReleaseError: It does not install, or gives another answer than it should.
    """
    folder, log = shop.source.parent / "installed", shop.logs / "installed.log"
    venv.create(folder, clear=True, with_pip=True)
    programs = folder / ("Scripts" if sys.platform == "win32" else "bin")
    run([programs / "python", "-m", "pip", "install", "--quiet", wheel], shop.root, log)
    example = shop.source / "examples" / "temperatures.py"
    outside = shop.source.parent  # not in the checkout, whose package would be imported instead
    answer = run([programs / "fim-server", "complete", example, "15:43", "--model", "embedded", "--json"], outside, log)
    found = json.loads(answer.splitlines()[-1])
    if found.get("guarantee") != "exact":
        raise ReleaseError(f"the installed program completes {example.name} with {answer.strip()}")
    run([programs / "fim-server", "check", shop.source / "fim_server" / "__init__.py"], outside, log)
    return programs / "python"


def check_imports(shop: Workshop, python: Path) -> None:
    """Check that the server and the commands import without the modules that Windows lacks.

    Raises:
        ReleaseError: One does not.
    """
    run([python, "-c", IMPORTS.format(missing=UNIX_ONLY)], shop.source.parent, shop.logs / "imports.log")


def check_types(shop: Workshop) -> None:
    """Check all types as they are on other systems.

    Raises:
        ReleaseError: Code uses what such a system lacks.
    """
    for system in OTHER_SYSTEMS:
        python = shop.root / ".venv" / "bin" / "python"
        cache = shop.logs.parent / "mypy" / system
        command: list[str | Path] = [python, "-m", "mypy", "--platform", system, "--cache-dir", cache]
        run(command, shop.source, shop.logs / "types.log")


def check_workflows(shop: Workshop) -> str:
    """Check the workflows with zizmor, and with actionlint where it is installed; return what was left out.

    Raises:
        ReleaseError: A workflow is wrong.
    """
    log = shop.logs / "workflows.log"
    run([shop.tools / "zizmor", "--offline", "--no-progress", ".github/workflows"], shop.root, log)
    try:
        run(["actionlint"], shop.root, log)
    except ReleaseError as error:
        if str(error).startswith("actionlint: "):
            return "without actionlint, which is not installed"
        raise
    return ""
