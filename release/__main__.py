"""``./dev release``: a rehearsal of a release to its last step."""

from __future__ import annotations

import argparse
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

from release import building, checking, licences, notes
from release.building import TARGETS, Target, Workshop
from release.running import ReleaseError

DONE, FAILED, BAD_INPUT = 0, 1, 2

Result = TypeVar("Result")


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = argparse.ArgumentParser(
        prog="./dev release",
        description="Build the files of a release from the last commit, check them, and write its notes, checksums and "
        "bills of materials. Nothing is published: a tag does that.",
        epilog="Exit status: 0 all is right, 1 a file cannot be built or a check fails, 2 bad input.",
    )
    made.add_argument("--dry-run", action="store_true", help="required, since there is nothing else that this can do")
    names = [target.name for target in TARGETS]
    made.add_argument(
        "--platform",
        action="append",
        choices=names,
        help="build this wheel alone, beside that of this machine; may be given several times (default: all)",
    )
    made.add_argument("--out", default=".work/release/dist", help="folder of the files (default: %(default)s)")
    return made


def main() -> int:
    """Rehearse a release; returns the exit status."""
    options = parser().parse_args()
    if not options.dry_run:
        print("./dev release: only --dry-run; a tag v1.2.3 on main releases (CONTRIBUTING.md)", file=sys.stderr)
        return BAD_INPUT
    own = this_platform()
    if own is None:
        print(f"./dev release: there is no wheel for {platform.system()} {platform.machine()}", file=sys.stderr)
        return BAD_INPUT
    root, work = Path(__file__).resolve().parent.parent, Path(".work/release").resolve()
    out = Path(options.out).resolve()
    if out.exists() and any(file.suffix not in (".whl", ".gz", ".vsix", ".json", ".md", "") for file in out.iterdir()):
        print(f"./dev release: {options.out} has files of others", file=sys.stderr)
        return BAD_INPUT
    shutil.rmtree(out, ignore_errors=True)
    shutil.rmtree(work / "logs", ignore_errors=True)
    out.mkdir(parents=True)
    targets = [
        target for target in TARGETS if not options.platform or target in (own,) or target.name in options.platform
    ]
    with tempfile.TemporaryDirectory(prefix="fim-server-release-") as folder:
        shop = Workshop(root, Path(folder) / "source", out, work / "logs", Path(sys.executable).parent, work / "target")
        try:
            rehearse(shop, targets, own)
        except ReleaseError as error:
            print(f"./dev release: {error}", file=sys.stderr)
            return FAILED
    return DONE


def this_platform() -> Target | None:
    """Return the platform of this machine, or None if it has no wheel."""
    system = {"Darwin": "macos"}.get(platform.system(), platform.system().lower())
    machine = {"AMD64": "x86_64", "arm64": "aarch64"}.get(platform.machine(), platform.machine())
    return next((target for target in TARGETS if target.name == f"{system}-{machine}"), None)


def rehearse(shop: Workshop, targets: list[Target], own: Target) -> None:
    """Build and check everything.

    Raises:
        ReleaseError: A file cannot be built, or a check fails.
    """
    version = step("versions", lambda: notes.version_of(shop.root))
    shop.clone(shop.source)
    step("workflows", lambda: checking.check_workflows(shop))
    step("types on Windows and macOS", lambda: checking.check_types(shop))
    step("source distribution, twice the same", lambda: checking.check_sdist(building.build_sdist(shop)))
    step("extension", lambda: checking.check_extension(building.build_extension(shop)))
    wheels: dict[Target, Path] = {}
    for target in targets:
        if target.is_windows:
            step(f"native module for {target.name}", partial(building.build_module, shop, target))
            continue
        wheels[target] = step(f"wheel for {target.name}", partial(building.build_wheel, shop, target))
        checking.check_wheel(wheels[target], target)
    files = sorted(file for file in shop.out.iterdir() if file.suffix in (".whl", ".gz"))
    step("metadata and stable ABI", lambda: checking.check_metadata(shop, files))
    python = step("this platform's wheel in an empty environment", lambda: checking.check_installed(shop, wheels[own]))
    step("imports without Unix's modules", lambda: checking.check_imports(shop, python))
    bills = step("bills of materials", lambda: licences.write_bills(shop, python, wheels[own]))
    step("licences", lambda: f"{licences.check_licences(shop, bills)} components")
    changelog = (shop.source / "CHANGELOG.md").read_text(encoding="utf-8")
    (shop.out / notes.NOTES).write_text(notes.notes_of(changelog, version), encoding="utf-8")
    notes.write_checksums([file for file in shop.out.iterdir() if file.name != notes.NOTES], shop.out)
    print()
    for file in sorted(shop.out.iterdir()):
        print(f"{file.stat().st_size:>12,}  {file.name}")


def step(name: str, work: Callable[[], Result]) -> Result:
    """Do a step, and print its name, its result if that is a text, and its time."""
    print(f"{name} …", end=" ", flush=True)
    started = time.monotonic()
    result = work()
    said = f"{result}, " if isinstance(result, str) and result else ""
    print(f"{said}{time.monotonic() - started:.0f} s", flush=True)
    return result


if __name__ == "__main__":
    sys.exit(main())
