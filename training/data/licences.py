"""Licences that permit learning from a package's code."""

from __future__ import annotations

import re
from email.message import Message

from fim_server.datasets.licences import classified_licences, spdx

# SPDX identifiers that ask for attribution at most.
_PERMISSIVE = (
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BlueOak-1.0.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSD-3-Clause-Clear",
    "BSL-1.0",
    "CC0-1.0",
    "CNRI-Python",
    "curl",
    "HPND",
    "ICU",
    "ISC",
    "Libpng",
    "libpng-2.0",
    "libtiff",
    "LicenseRef-public-domain",
    "MIT",
    "MIT-0",
    "MIT-CMU",
    "NCSA",
    "PostgreSQL",
    "PSF-2.0",
    "Python-2.0",
    "TCL",
    "Unlicense",
    "WTFPL",
    "X11",
    "Zlib",
)

PERMISSIVE_SPDX = {identifier.lower(): identifier for identifier in _PERMISSIVE}

# Free-text names that packages still use, lower case, beside those that name one licence without a guess
# (fim_server.datasets.licences): here a package that says BSD is taken to ask for attribution.
_LICENCE_NAMES = {
    "apache": "apache-2.0",
    "apache 2": "apache-2.0",
    "apache license version 2.0": "apache-2.0",
    "apache 2.0 license": "apache-2.0",
    "bsd": "bsd-3-clause",
    "bsd license": "bsd-3-clause",
    "3-clause bsd license": "bsd-3-clause",
    "new bsd": "bsd-3-clause",
    "modified bsd license": "bsd-3-clause",
    "psf": "psf-2.0",
    "psf license": "psf-2.0",
    "historical permission notice and disclaimer (hpnd)": "hpnd",
    "cc0 1.0 universal (cc0 1.0) public domain dedication": "cc0-1.0",
}


def permissive_licence(metadata: Message) -> str | None:
    """Return the SPDX expression that the metadata state, or None if it is not permissive.

    The order is the one that the metadata standard gives: `License-Expression`, then the
    classifiers, then the free-text `License` field. Every term of an `AND` must be permissive;
    one alternative of an `OR` is enough. A single copyleft classifier refuses the package.
    """
    expression = metadata.get("License-Expression")
    if expression is not None:
        stated = expression.strip()
        return PERMISSIVE_SPDX.get(stated.lower(), stated) if is_permissive_expression(stated) else None
    classified = classified_licences(metadata.get_all("Classifier", []))
    named = classified or [metadata.get("License", "").strip().split("\n")[0]]
    identifiers = [_spdx_identifier(name) for name in named]
    if not identifiers or any(identifier not in PERMISSIVE_SPDX for identifier in identifiers):
        return None
    return " AND ".join(sorted({PERMISSIVE_SPDX[identifier] for identifier in identifiers}))


def _spdx_identifier(name: str) -> str:
    lowered = name.strip().lower()
    return _LICENCE_NAMES.get(lowered) or (spdx(lowered) or lowered).lower()


def is_permissive_expression(expression: str) -> bool:
    plain = expression.replace("(", " ").replace(")", " ")
    alternatives = re.split(r"\s+OR\s+", plain, flags=re.IGNORECASE)
    return any(
        all(
            term.strip().lower() in PERMISSIVE_SPDX for term in re.split(r"\s+AND\s+", alternative, flags=re.IGNORECASE)
        )
        for alternative in alternatives
    )
