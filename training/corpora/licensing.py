"""Licences of packages and of their files, where they permit learning."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Mapping
from email.parser import Parser
from fnmatch import translate

from fim_server.datasets.licences import LICENCE_FILES, licence_of_text, spdx, spdx_of_all
from training.data.licences import PERMISSIVE_SPDX, is_permissive_expression, permissive_licence

LicenceOf = Callable[[str], str | None]
"""Permissive licence of a file of a package by its path; None where it has none."""

DESCRIPTIONS: Mapping[str, re.Pattern[str]] = {
    "crates": re.compile(r"Cargo\.toml"),
    "debian": re.compile(r"debian/copyright"),
    "go": LICENCE_FILES,
    "maven": re.compile(r"(?!)"),
    "npm": re.compile(r"package\.json"),
    "wheels": re.compile(r"[^/]+\.dist-info/METADATA"),
}
"""Paths of the files that state a package's licence, by registry."""

_STATED = re.compile(r"SPDX-License-Identifier:\s*([\w.+() -]+)")

_COPYLEFT = re.compile(r"GNU\s+(?:\W{0,4}\s*)?(?:Affero|Lesser|Library|General)\b|Mozilla\s+Public\s+License")

_HEAD = 3_000
"""Characters at the beginning of a file where its own licence stands."""

_DEBIAN_NAMES = {
    "apache": "Apache-2.0",
    "apache-2": "Apache-2.0",
    "asl-2.0": "Apache-2.0",
    "boost-1": "BSL-1.0",
    "boost-1.0": "BSL-1.0",
    "bsd": "BSD-3-Clause",
    "bsd-2": "BSD-2-Clause",
    "bsd-3": "BSD-3-Clause",
    "cc0": "CC0-1.0",
    "expat": "MIT",
    "hylafax": "libtiff",
    "mit/expat": "MIT",
    "mit/x11": "MIT",
    "apache-2.0 with llvm exception": "Apache-2.0 WITH LLVM-exception",
    "zlib/libpng": "Zlib",
    "public-domain": "LicenseRef-public-domain",
}
"""Short names of Debian's that are not SPDX's, lower case."""

_FIELD = re.compile(r"^([\w-]+):[ \t]*([^\n]*(?:\n[ \t][^\n]*|\n(?=\n[ \t]))*)", re.M)

_VARIANT = re.compile(r"~.*|-(?!adv|copyleft|non)[a-z]+$")
"""End of the name of a licence's variant, such as BSD-3-clause-Google or Expat~Netlib."""


def licence_of_package(kind: str, described: Mapping[str, bytes], beside: str | None) -> LicenceOf:
    """Return the licences that a package's descriptions state, by their paths; `beside`: the registry's own word."""
    if kind == "debian":
        return _debian(next(iter(described.values()), b"").decode("utf-8", "replace"))
    licence = beside if kind == "maven" else _stated(kind, described)
    permitted = licence if licence and is_permissive_expression(licence) else None
    return lambda path: permitted


def denies(text: str) -> bool:
    """Return whether a file's beginning states a licence of its own that is not permissive."""
    head = text[:_HEAD]
    stated = _STATED.search(head)
    if stated is not None:
        return not is_permissive_expression(stated[1].strip().removesuffix("*/").strip())
    return _COPYLEFT.search(head) is not None


def _stated(kind: str, described: Mapping[str, bytes]) -> str | None:
    texts = [content.decode("utf-8", "replace") for _, content in sorted(described.items())]
    if kind == "go":
        licences = [licence_of_text(text) for text in texts]
        return None if None in licences else spdx_of_all([one for one in licences if one is not None])
    if not texts:
        return None
    if kind == "wheels":
        return permissive_licence(Parser().parsestr(texts[0]))
    try:
        if kind == "crates":
            stated = tomllib.loads(texts[0])["package"]["license"].replace("/", " OR ")
        else:
            stated = json.loads(texts[0])["license"]
            stated = stated["type"] if isinstance(stated, dict) else stated
        return spdx(stated)
    except (ValueError, LookupError, AttributeError, TypeError):
        return None


def _debian(text: str) -> LicenceOf:
    """Read a machine-readable copyright file: the last paragraph whose patterns match a file has its licence.

    (https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/) Another copyright file is that of all files if
    it holds the text of one permissive licence, and speaks of no GNU licence.
    """
    paragraphs = [
        {found[1].lower(): found[2] for found in _FIELD.finditer(paragraph)}
        for paragraph in re.split(r"\n[ \t]*\n(?=[\w-]+:)", text)
    ]
    own = {}
    for name, newline, body in (fields.get("license", "").partition("\n") for fields in paragraphs):
        if newline and "gpl" not in name.lower():
            own[name.strip().lower()] = licence_of_text(body)
    rules = [
        (
            re.compile("|".join(translate(one.removeprefix("./")) for one in fields["files"].split())),
            _debian_licence(fields["license"].partition("\n")[0], own),
        )
        for fields in paragraphs
        if "files" in fields and "license" in fields
    ]
    if not rules:
        licence = None if re.search(r"\bL?GPL|general\s+public\s+licen", text, re.I) else licence_of_text(text)
        permitted = licence if licence and is_permissive_expression(licence) else None
        return lambda path: permitted

    def licence_of(path: str) -> str | None:
        return next((licence for pattern, licence in reversed(rules) if pattern.match(path)), None)

    return licence_of


def _debian_licence(stated: str, own: Mapping[str, str | None]) -> str | None:
    """Return the SPDX expression of Debian's, if it is permissive: "Expat or GPL-2+", "Apache-2.0 and MIT".

    `own`: licences by the short names whose texts the copyright file holds.
    """
    alternatives = []
    for alternative in re.split(r",?\s+or\s+|\s*\|\s*", stated.strip(), flags=re.I):
        terms = [_debian_term(term, own) for term in re.split(r",?\s+and\s+|,\s*", alternative.strip(), flags=re.I)]
        if all(terms):
            alternatives.append(" AND ".join(dict.fromkeys(term for term in terms if term is not None)))
    return " OR ".join(dict.fromkeys(alternatives)) or None


def _debian_term(term: str, own: Mapping[str, str | None]) -> str | None:
    lowered = term.strip().lower()
    plain = _VARIANT.sub("", lowered)
    for name in (lowered, own.get(lowered) or "", plain):
        if (known := PERMISSIVE_SPDX.get(_DEBIAN_NAMES.get(name, name).lower())) is not None:
            return known
    return None
