"""Languages of the package by the paths of files."""

from functools import cache
from pathlib import Path

from fim_server.language.definition import compile as grammar
from fim_server.language.definition.adopting import Adopted
from fim_server.language.definition.facts import facts_of


@cache
def _suffixes() -> dict[str, str]:
    """Return the languages of the package by the suffixes of their files: the first language of each."""
    return {suffix: name for name in reversed(grammar.names()) for suffix in suffixes_of(name)}


def by_suffix(file: str) -> str | None:
    """Return the language of a file's name, by the longest suffix that a language has; None for none."""
    known = _suffixes()
    if file in known:  # a suffix without a dot is a whole name
        return known[file]
    places = (at for at in range(1, len(file)) if file[at] == ".")
    return next((known[file[at:]] for at in places if file[at:] in known), None)


def variant_for(name: str, path: Path) -> str:
    """Return the variant of a named language's definition to which a file of that language belongs.

    Editors know `a.d.ts` as TypeScript, and each `.js` file as JavaScript: a longer suffix decides, and the project.
    Raises LanguageError if there is no such language.
    """
    if not path.name.endswith(suffixes_of(name)):
        return name
    longest = by_suffix(path.name)
    if longest in grammar.siblings(name):
        name = longest
    for other, adopted in _adopting(name):
        if name != other and adopted.adopts(path):
            return other
    return name


def suffixes_of(name: str) -> tuple[str, ...]:
    """Return the suffixes of a language of the package. Raises LanguageError if there is no such language."""
    return facts_of(name).suffixes


@cache
def _adopting(name: str) -> tuple[tuple[str, Adopted], ...]:
    """Return the variants of a language's definition that may take files from others, and which."""
    found = ((one, facts_of(one).adopted) for one in grammar.siblings(name) or (name,))
    return tuple((one, adopted) for one, adopted in found if adopted is not None)
