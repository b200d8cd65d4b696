"""Files of a release: wheels for five platforms, the source distribution and the extension.

The wheels are cross-compiled with Zig from the package index. The workflow `wheels` builds them on each system itself;
the rehearsal shows beforehand that the code compiles and links there. For Windows it builds the native module alone,
since maturin's list of its exports (1.13 to 1.16) names a symbol that Zig's linker does not find.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from release.running import ReleaseError, run

EPOCH = "1577836800"
"""Time of all files in the source distribution, in seconds since 1970."""

MANYLINUX = "manylinux_2_28"
"""Oldest Linux that the wheels run on, as in the workflow."""


@dataclass(frozen=True)
class Target:
    """A platform with a wheel.

    Attributes:
        name: As in the workflow `wheels`.
        triple: Rust's name.
        tag: The end of the wheel's name begins so.
        module: Name of the native module in the wheel.
    """

    name: str
    triple: str
    tag: str
    module: str = "fim_server/_core.abi3.so"

    @property
    def is_windows(self) -> bool:
        return "windows" in self.triple


TARGETS = (
    Target("linux-x86_64", "x86_64-unknown-linux-gnu", f"{MANYLINUX}_x86_64"),
    Target("linux-aarch64", "aarch64-unknown-linux-gnu", f"{MANYLINUX}_aarch64"),
    Target("macos-x86_64", "x86_64-apple-darwin", "macosx_"),
    Target("macos-aarch64", "aarch64-apple-darwin", "macosx_"),
    Target("windows-x86_64", "x86_64-pc-windows-gnu", "win_amd64", "fim_server/_core.pyd"),
)


@dataclass(frozen=True)
class Workshop:
    """Folders of a rehearsal.

    Attributes:
        root: The checkout.
        source: A clone of its last commit, so that nothing uncommitted is packed.
        out: The files of the release.
        logs: Outputs of the programs.
        tools: Programs of the rehearsal's own environment.
        target: Cargo's build folder, kept between rehearsals.
    """

    root: Path
    source: Path
    out: Path
    logs: Path
    tools: Path
    target: Path

    def clone(self, folder: Path) -> None:
        """Clone the checkout's last commit.

        Raises:
            ReleaseError: git fails.
        """
        run(["git", "clone", "--quiet", "--no-hardlinks", self.root, folder], self.root, self.logs / "clone.log")


def build_wheel(shop: Workshop, target: Target) -> Path:
    """Build a platform's wheel.

    Raises:
        ReleaseError: It does not compile, or has another name.
    """
    log = prepare(shop, target)
    command: list[str | Path] = [shop.tools / "maturin"]
    command += ["build", "--release", "--locked", "--zig", "--target", target.triple]
    if "linux" in target.triple:
        command += ["--compatibility", MANYLINUX]
    before = set(shop.out.glob("*.whl"))
    run([*command, "--out", shop.out], shop.source, log, variables_of(shop))
    return only(set(shop.out.glob("*.whl")) - before, f"{target.name}: wheel")


def build_module(shop: Workshop, target: Target) -> Path:
    """Build the native module of a platform alone, and check that Python finds its beginning.

    Raises:
        ReleaseError: It does not compile.
    """
    log = prepare(shop, target)
    command: list[str | Path] = [shop.tools / "cargo-zigbuild", "zigbuild", "--release", "--locked", "--lib"]
    command += ["--target", target.triple, "--manifest-path", "rust_core/py/Cargo.toml"]
    run(command, shop.source, log, {**variables_of(shop), "PYO3_NO_PYTHON": "1"})
    module = shop.target / target.triple / "release" / "_core.dll"
    if b"PyInit__core\0" not in module.read_bytes():
        raise ReleaseError(f"{target.name}: the module does not export PyInit__core")
    return module


def prepare(shop: Workshop, target: Target) -> Path:
    """Install the platform's standard library where rustup manages Rust; return the log of its build.

    Raises:
        ReleaseError: rustup fails.
    """
    log = shop.logs / f"wheel-{target.name}.log"
    if shutil.which("rustup"):
        run(["rustup", "target", "add", target.triple], shop.source, log)
    return log


def variables_of(shop: Workshop) -> dict[str, str]:
    """Return the environment variables of a build."""
    return {
        "PATH": f"{shop.tools}{os.pathsep}{os.environ['PATH']}",
        "CARGO_TARGET_DIR": str(shop.target),
        "CFLAGS": "-Wno-date-time",  # Zig refuses the dates that mimalloc prints
    }


def build_sdist(shop: Workshop) -> Path:
    """Build the source distribution twice, from two clones, and compare the bytes.

    Raises:
        ReleaseError: It cannot be built, or the two differ.
    """
    again = shop.source.parent / "again"
    shop.clone(again)
    built = []
    for source, out in ((shop.source, shop.out), (again, again / "dist")):
        command: list[str | Path] = [shop.tools / "maturin", "sdist", "--out", out]
        run(command, source, shop.logs / "sdist.log", {"SOURCE_DATE_EPOCH": EPOCH})
        built.append(only(set(out.glob("*.tar.gz")), "source distribution"))
    if built[0].read_bytes() != built[1].read_bytes():
        raise ReleaseError("the source distribution differs when it is built again")
    return built[0]


def build_extension(shop: Workshop) -> Path:
    """Package the VS Code extension, the same file for all platforms: it brings no server.

    Raises:
        ReleaseError: npm or vsce fails.
    """
    folder, log = shop.source / "vscode-extension", shop.logs / "vsix.log"
    run(["npm", "ci", "--no-audit", "--no-fund"], folder, log)
    run(["npm", "run", "--silent", "package", "--", "--out", shop.out], folder, log)
    return only(set(shop.out.glob("*.vsix")), "extension")


def only(found: set[Path], name: str) -> Path:
    """Return the only path.

    Raises:
        ReleaseError: There are none or several.
    """
    if len(found) != 1:
        raise ReleaseError(f"{name}: {len(found)} files instead of one")
    return found.pop()
