"""Licence of a source as an SPDX expression, where it is known without guessing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from importlib import metadata
from pathlib import Path

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

from fim_server.language.limited_files import read_found

# Names, mostly of classifiers, that stand for one licence. "BSD License" may be several and is not among them. "Apache
# Software License" has no number either, but packages have meant 2.0 by it for as long as there have been wheels.
_NAMES = {
    "apache 2.0": "Apache-2.0",
    "apache license 2.0": "Apache-2.0",
    "apache license, version 2.0": "Apache-2.0",
    "apache software license": "Apache-2.0",
    "apache software license, version 2.0": "Apache-2.0",
    "apache-2.0 license": "Apache-2.0",
    "bsd 2-clause license": "BSD-2-Clause",
    "bsd 3-clause": "BSD-3-Clause",
    "bsd 3-clause license": "BSD-3-Clause",
    "bsd-3-clause license": "BSD-3-Clause",
    "eclipse public license - v 2.0": "EPL-2.0",
    "eclipse public license 2.0": "EPL-2.0",
    "eclipse public license v2.0": "EPL-2.0",
    "gnu affero general public license v3": "AGPL-3.0-only",
    "gnu general public license v2 (gplv2)": "GPL-2.0-only",
    "gnu general public license v2 or later (gplv2+)": "GPL-2.0-or-later",
    "gnu general public license v3 (gplv3)": "GPL-3.0-only",
    "gnu general public license v3 or later (gplv3+)": "GPL-3.0-or-later",
    "gnu lesser general public license v3 (lgplv3)": "LGPL-3.0-only",
    "gnu lesser general public license v3 or later (lgplv3+)": "LGPL-3.0-or-later",
    "isc license (iscl)": "ISC",
    "isc license": "ISC",
    "mit license": "MIT",
    "mit no attribution license (mit-0)": "MIT-0",
    "mozilla public license 2.0 (mpl 2.0)": "MPL-2.0",
    "python software foundation license": "PSF-2.0",
    "the apache license, version 2.0": "Apache-2.0",
    "the apache software license, version 2.0": "Apache-2.0",
    "the mit license": "MIT",
    "the mit license (mit)": "MIT",
    "the unlicense (unlicense)": "Unlicense",
    "zlib/libpng license": "Zlib",
}

# Words of a licence's own text that no other one has, as `licence_of_text` reads them.
_TEXTS = {
    "Apache-2.0": "apache license version 2 0 january 2004",
    "BSD": "redistribution and use in source and binary forms with or without modification are permitted",
    "ISC": "permission to use copy modify and or distribute this software for any purpose with or without fee",
    "MIT": "permission is hereby granted free of charge to any person obtaining a copy of this software and associated",
    "MPL-2.0": "mozilla public license version 2 0 1 definitions",
}
_ENDORSING, _ADVERTISING = "neither the name", "all advertising materials"
"""Beginnings of the third of BSD's clauses, and of the fourth, which makes another licence."""

LICENCE_FILES = re.compile(r"(licen[cs]e|copying)([.-].*)?", re.IGNORECASE)


def spdx(stated: str) -> str | None:
    """Return the SPDX expression that a text is or names, in its canonical spelling, or None."""
    stated = " ".join(stated.split())
    try:
        return str(canonicalize_license_expression(_NAMES.get(stated.lower(), stated)))
    except InvalidLicenseExpression:
        return None


def spdx_of_all(stated: Sequence[str]) -> str | None:
    """Return the expression for all of several licences together, or None if one is unknown or there is none.

    Lists of licences mostly do not tell whether a user may choose; requiring all of them is safe.
    """
    known = [spdx(name) for name in stated]
    if not known or None in known:
        return None
    unique = sorted({f"({name})" if " OR " in name and len(known) > 1 else name for name in known if name is not None})
    return " AND ".join(unique)


def classified_licences(classifiers: Iterable[str]) -> list[str]:
    """Return the licences in a distribution's classifiers, without "OSI Approved", which names none."""
    return [
        value.rsplit("::", 1)[-1].strip()
        for value in classifiers
        if value.startswith("License ::") and value.strip() != "License :: OSI Approved"
    ]


def licence_of(described: metadata.PackageMetadata) -> str | None:
    """Return the licence in a distribution's metadata: `License-Expression`, else the classifiers, else `License`."""
    if "License-Expression" in described:
        return spdx(described["License-Expression"])
    classified = classified_licences(described.get_all("Classifier") or [])
    licence = spdx_of_all(classified)
    return licence if licence is not None else spdx((described.get_all("License") or [""])[0])


def licence_of_text(text: str) -> str | None:
    """Return the licence whose text a file holds; None where it holds no known one, or several."""
    words = " ".join(re.findall(r"\w+", text.lower()))
    found = [name for name, own in _TEXTS.items() if own in words]
    if len(found) != 1:
        return None
    if found != ["BSD"]:
        return found[0]
    if _ADVERTISING in words:
        return None
    return "BSD-3-Clause" if _ENDORSING in words else "BSD-2-Clause"


def licence_of_folder(folder: Path) -> str | None:
    """Return the joint licence of a folder, by the texts in its licence files."""
    stated = []
    for path in sorted(folder.iterdir()):
        if LICENCE_FILES.fullmatch(path.name) and path.is_file():
            try:
                stated.append(licence_of_text(read_found(path).decode("utf-8", "replace")))
            except OSError:
                stated.append(None)
    return None if None in stated else spdx_of_all([one for one in stated if one is not None])
