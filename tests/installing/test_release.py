"""The rehearsal of a release: its platforms, notes, licences and contents. Its builds are too long for tests."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from release.building import TARGETS
from release.checking import check_wheel
from release.notes import notes_of, version_of, write_checksums
from release.running import ReleaseError, run

ROOT = Path(__file__).resolve().parents[2]


def test_the_workflow_builds_the_same_platforms() -> None:
    workflow = (ROOT / ".github" / "workflows" / "wheels.yml").read_text(encoding="utf-8")
    named = [line.split("platform: ")[1].split(",")[0] for line in workflow.splitlines() if "{ platform: " in line]
    assert named == [target.name for target in TARGETS]


def test_the_next_release_has_notes() -> None:
    assert notes_of((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), version_of(ROOT)).strip()
    with pytest.raises(ReleaseError, match=r"no part on 1\.0"):
        notes_of("# Changelog\n\n## 1.0.1\n\n- One.\n", "1.0")


@pytest.mark.parametrize(
    ("name", "files", "problem"),
    [
        ("fim_server-1-cp312-cp312-win_amd64.whl", [], "the tag is not"),
        ("fim_server-1-cp311-abi3-win_amd64.whl", ["fim_server/py.typed"], "lacks fim_server/_core.pyi"),
        ("fim_server-1-cp311-abi3-win_amd64.whl", None, "has tests/test_it.py and 0 more"),
    ],
)
def test_a_bad_wheel_is_refused(tmp_path: Path, name: str, files: list[str] | None, problem: str) -> None:
    from release.checking import WHEEL_HAS

    target = TARGETS[-1]
    wheel = tmp_path / name
    with zipfile.ZipFile(wheel, "w") as file:
        for one in [*WHEEL_HAS, target.module, "tests/test_it.py"] if files is None else files:
            file.writestr(one, "")
    with pytest.raises(ReleaseError, match=problem):
        check_wheel(wheel, target)


def test_a_failed_program_is_told_with_its_last_lines(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "one.log"
    with pytest.raises(ReleaseError, match=r"(?s)ended with status 3 .*\nno luck$"):
        run([sys.executable, "-c", "print('no luck'); raise SystemExit(3)"], tmp_path, log)
    assert "no luck" in log.read_text(encoding="utf-8")
    with pytest.raises(ReleaseError, match="no-such-program: No such file"):
        run(["no-such-program"], tmp_path, log)


def test_checksums_are_those_of_sha256sum(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a", encoding="ascii")
    sums = write_checksums([tmp_path / "a"], tmp_path).read_text(encoding="ascii")
    assert sums == "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb  a\n"


def test_nothing_is_released_from_here(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-m", "release"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
