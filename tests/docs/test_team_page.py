"""The files of docs/team.md, without Docker: they agree with each other and with the package."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from fnmatch import fnmatchcase
from typing import Any

import pytest
from packaging.requirements import Requirement

from fim_server.integrations.meter import SUMS
from support.markdown_pages import ROOT, text_of, tracked

TEAM = ROOT / "docs" / "team"


def read(name: str) -> str:
    return (TEAM / name).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    yaml = pytest.importorskip("yaml")
    return dict(yaml.safe_load(read("compose.yaml")))


@pytest.fixture(scope="module")
def package() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_vllm_is_of_the_version_that_the_plug_in_knows(package: dict[str, Any]) -> None:
    (version,) = re.findall(r"^FROM vllm/vllm-openai:v(\S+)$", read("Dockerfile"), re.M)
    (wanted,) = map(Requirement, package["project"]["optional-dependencies"]["vllm"])
    assert wanted.specifier.contains(version)
    assert re.findall(r"vLLM (\d+\.\d+)", text_of("docs/team.md"))[0] == version.rsplit(".", 1)[0]


def test_vllm_loads_the_plug_in_and_is_reached_by_its_services_alone(
    compose: dict[str, Any], package: dict[str, Any]
) -> None:
    services = compose["services"]
    vllm = services["vllm"]
    assert vllm["environment"]["VLLM_PLUGINS"] in package["project"]["entry-points"]["vllm.general_plugins"]
    assert "ports" not in vllm
    assert all(port.startswith("127.0.0.1:") for port in services["prometheus"]["ports"])
    assert services["proxy"]["ports"] == ["443:443"]
    targets = read("Caddyfile") + read("prometheus.yaml")
    assert re.findall(r"\b(\w+):8000", targets) == ["vllm", "vllm"]
    assert re.findall(r"handle (\S+) ", read("Caddyfile")) == ["/v1/*"]


def test_the_site_may_be_an_address() -> None:
    """TLS does not name one, and in a container Caddy does not see which one was asked for."""
    assert "default_sni {$SITE}" in read("Caddyfile")


def test_mounted_files_and_named_volumes_are_there(compose: dict[str, Any]) -> None:
    for service in compose["services"].values():
        for mounted in service.get("volumes", []):
            source = mounted.split(":")[0]
            assert (TEAM / source).is_file() if source.startswith(".") else source in compose["volumes"]
    build = compose["services"]["vllm"]["build"]
    assert (TEAM / build["context"]).resolve() == ROOT
    assert (ROOT / build["dockerfile"]).is_file()


def test_the_page_says_which_variables_there_are() -> None:
    asked = set(re.findall(r"\$\{(\w+)", read("compose.yaml")))
    assert asked == set(re.findall(r"^    ([A-Z_]+)=", text_of("docs/team.md"), re.M))


def test_metrics_that_the_page_names_are_told() -> None:
    told = {f"fim_server_{name}_total" for name in SUMS} | {"fim_server_mask_seconds_bucket"}
    named = set(re.findall(r"fim_server_\w+", text_of("docs/team.md")))
    assert len(named) > 4
    assert named <= told


def rules() -> list[tuple[str, bool]]:
    """Patterns of files that the build does not get, and whether each takes some back; the last that fits counts."""
    lines = [line for line in read("Dockerfile.dockerignore").splitlines() if line and not line.startswith("#")]
    return [(line.removeprefix("!"), line.startswith("!")) for line in lines]


def goes_to_the_build(path: str) -> bool:
    parts = path.split("/")
    places = ["/".join(parts[:length]) for length in range(1, len(parts) + 1)]
    goes = True
    for pattern, back in rules():
        anywhere = pattern.removeprefix("**/")
        if any(fnmatchcase(place.rsplit("/", 1)[-1] if anywhere != pattern else place, anywhere) for place in places):
            goes = back
    return goes


def test_the_build_gets_what_the_wheel_is_made_of_and_no_key() -> None:
    files = {path for path in tracked() if (ROOT / path).is_file()}
    given = {path for path in files if goes_to_the_build(path)}
    assert {"pyproject.toml", "README.md", "LICENSE", "rust_core/Cargo.lock", "rust_core/py/Cargo.toml"} <= given
    sources = {path for path in files if path.startswith(("fim_server/", "rust_core/src/", "rust_core/memory/"))}
    assert sources <= given
    for left in ("docs/team/.env", ".git/config", ".venv/bin/python", "rust_core/target/x", "fim_server/_core.abi3.so"):
        assert not goes_to_the_build(left)


def test_git_leaves_the_key_out() -> None:
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("no checkout")
    assert subprocess.run([git, "check-ignore", "-q", "docs/team/.env"], cwd=ROOT, check=False).returncode == 0
