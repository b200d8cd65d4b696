"""Words and signs that most languages share, read from ``signs.toml``: guesses, which the grammar judges afterwards."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, fields
from importlib import resources


@dataclass(frozen=True, slots=True)
class Signs:
    """Words and signs, as the file explains them."""

    keywords: frozenset[str]
    declare: frozenset[str]
    use: frozenset[str]
    patterns: frozenset[str]
    loops: frozenset[str]
    loop_ends: frozenset[str]
    catches: frozenset[str]
    lambdas: frozenset[str]
    control: frozenset[str]
    labels: frozenset[str]
    arrows: frozenset[str]
    before_arrow: frozenset[str]
    bar: str
    before_bar: frozenset[str]
    ends_value: frozenset[str]
    heads: frozenset[str]
    types: frozenset[str]
    no_types: frozenset[str]
    imports: frozenset[str]
    imported: str
    packages: frozenset[str]
    before_parameters: frozenset[str]
    several: tuple[str, ...]
    receivers: str
    objects: frozenset[str]
    class_object: str
    owner: str
    members: tuple[str, ...]
    generics: str
    header: str
    lists_names: frozenset[str]
    braces: str
    opens: str
    closes: str
    quotes: str
    parameters_open: str
    member: str
    escape: str
    separator: str
    separators: frozenset[str]
    assign: str
    arrow: str
    annotate: str
    ends_declaration: frozenset[str]


def read_signs() -> Signs:
    """Return the words and signs of the package."""
    table = tomllib.loads(resources.files("fim_server.next_edit").joinpath("signs.toml").read_text(encoding="utf-8"))
    kinds = {"frozenset[str]": frozenset, "tuple[str, ...]": tuple, "str": str}
    return Signs(**{one.name: kinds[str(one.type)](table[one.name]) for one in fields(Signs)})


SIGNS = read_signs()
