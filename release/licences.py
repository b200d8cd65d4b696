"""Licences and bills of materials (CycloneDX) of what a release is made of: crates, Python packages, npm packages."""

from __future__ import annotations

import json
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from release.building import Workshop
from release.running import ReleaseError, run

CRATES, PYTHON, NPM = "sbom-crates.json", "sbom-python.json", "sbom-npm.json"

ALLOWED = frozenset(
    {
        *(
            "0BSD",
            "Apache-2.0",
            "BSD-2-Clause",
            "BSD-3-Clause",
            "BSL-1.0",
            "CC0-1.0",
            "CNRI-Python",
            "ISC",
            "MIT",
            "MPL-2.0",
        ),
        *("PSF-2.0", "Python-2.0", "Unicode-3.0", "Unlicense", "Zlib"),
    }
)
"""Licences of components. The crates, which are linked in, are held to the shorter list of rust_core/deny.toml."""

NAMED = {
    "Apache License 2.0": "Apache-2.0",
    "Apache License, Version 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "License :: OSI Approved :: Apache Software License": "Apache-2.0",
    "License :: OSI Approved :: BSD License": "BSD-3-Clause",
    "License :: OSI Approved :: MIT License": "MIT",
    "License :: OSI Approved :: Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "3-Clause BSD License": "BSD-3-Clause",
    "BSD": "BSD-3-Clause",
    "MIT License": "MIT",
}
"""SPDX's identifiers of licences that packages name in words."""


UNSAID = {"protobuf": "BSD-3-Clause"}
"""Licences of packages whose metadata have none, by their licence files."""


def write_bills(shop: Workshop, python: Path, wheel: Path) -> list[Path]:
    """Write the bills of materials into the folder of the release.

    Raises:
        ReleaseError: One cannot be made.
    """
    log = shop.logs / "licences.log"
    with zipfile.ZipFile(wheel) as file:
        inside = [name for name in file.namelist() if "/sboms/" in name and name.endswith(".json")]
        if not inside:
            raise ReleaseError(f"{wheel.name} has no bill of materials of its crates")
        (shop.out / CRATES).write_bytes(file.read(inside[0]))
    command: list[str | Path] = [shop.tools / "cyclonedx-py", "environment", "--output-reproducible"]
    run([*command, "--output-file", shop.out / PYTHON, python], shop.root, log)
    bill = run(
        ["npm", "sbom", "--omit=dev", "--sbom-format=cyclonedx"],
        shop.source / "vscode-extension",
        shop.logs / "npm.log",
    )
    (shop.out / NPM).write_text(bill, encoding="utf-8")
    return [shop.out / name for name in (CRATES, PYTHON, NPM)]


def check_licences(shop: Workshop, bills: list[Path]) -> int:
    """Check the licences of all components and return their number.

    Raises:
        ReleaseError: One has a licence that is not allowed, or none.
    """
    deny = tomllib.loads((shop.root / "rust_core" / "deny.toml").read_text(encoding="utf-8"))
    count, refused = 0, []
    for bill in bills:
        allowed = frozenset(deny["licenses"]["allow"]) if bill.name == CRATES else ALLOWED
        for component in json.loads(bill.read_text(encoding="utf-8")).get("components", []):
            if component["name"].startswith("fim-server"):
                continue
            count += 1
            expressions = list(expressions_of(component)) or [UNSAID.get(component["name"], "")]
            if not any(is_allowed(expression, allowed) for expression in expressions):
                refused.append(f"{component['name']} {component.get('version', '')}: {' / '.join(expressions)}")
    if refused:
        raise ReleaseError("licences that are not allowed: " + "; ".join(refused))
    return count


def expressions_of(component: dict[str, Any]) -> Iterator[str]:
    """Yield a component's licences, each as an SPDX expression where it can be told."""
    for one in component.get("licenses", []):
        told = one.get("expression") or one["license"].get("id") or one["license"].get("name", "")
        yield NAMED.get(told, told)


def is_allowed(expression: str, allowed: frozenset[str]) -> bool:
    """Return whether some choice of an SPDX expression needs allowed licences alone.

    >>> is_allowed("MIT OR GPL-3.0-only", frozenset({"MIT"})), is_allowed("MIT AND GPL-3.0-only", frozenset({"MIT"}))
    (True, False)
    """
    from license_expression import ExpressionError, get_spdx_licensing

    try:
        parsed = get_spdx_licensing().parse(expression.replace("/", " OR "), validate=True)
    except ExpressionError:
        return False
    return parsed is not None and _holds(parsed, allowed)


def _holds(expression: Any, allowed: frozenset[str]) -> bool:
    if not getattr(expression, "args", ()):
        symbol = getattr(expression, "license_symbol", expression)  # of a licence with an exception
        return symbol.key in allowed
    holds = [_holds(part, allowed) for part in expression.args]
    return any(holds) if expression.operator.strip().upper() == "OR" else all(holds)
