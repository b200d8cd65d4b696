"""Size of a grammar with its groups, optional items and templates written out, counted before Lark does it.

Lark writes all of them out. A rule of n optional items becomes 2ⁿ rules. A template that uses itself with a longer
argument becomes endlessly many, and terminals that double each other a text of any length. Here they are only counted,
from the trees that Lark has read, and each tree is visited once.
"""

from collections.abc import Iterator
from typing import Any

from lark.load_grammar import SMALL_FACTOR_THRESHOLD, GrammarBuilder
from lark.utils import small_factors

from fim_server.errors import LanguageError
from fim_server.language.definition import limits

_MANY = 1 << 62
"""Bound of counts: they are compared with limits, and need only exceed them."""

_UNROLLED = 50
"""Repetitions from which on Lark makes rules of them, of a few symbols each."""


class Counted(GrammarBuilder):
    """Lark's reader of grammars, which counts a grammar before processing it further."""

    def __init__(self, language: str, import_paths: list[Any]) -> None:
        """Take the language's name, for messages, and Lark's import paths."""
        super().__init__(False, import_paths)
        self._language = language

    def validate(self) -> None:
        """Count, then validate as Lark does, whose time grows with the text of terminals that double each other.

        Raises LanguageError if the grammar is over a limit.
        """
        for name, known in self._definitions.items():
            if known.tree is None and not known.is_term:
                raise LanguageError(f"language {self._language}: rule {name} is declared and never defined")
        defined = {str(name): known for name, known in self._definitions.items() if known.tree is not None}
        limits.check(self._language, "rules and terminals with imported ones", len(defined), limits.DEFINITIONS)
        _check_terminals(self._language, {name: known.tree for name, known in defined.items() if known.is_term})
        rules = {name: known for name, known in defined.items() if not known.is_term}
        _check_rules(self._language, {n: r.tree for n, r in rules.items()}, {n: r.params for n, r in rules.items()})
        super().validate()


def _check_rules(language: str, trees: dict[str, Any], parameters: dict[str, tuple[str, ...]]) -> None:
    templates = {name: names for name, names in parameters.items() if names}
    written: dict[str, tuple[int, int]] = {}
    for name, tree in trees.items():
        limits.check(language, f"nesting of rule {name}", _depth(tree), limits.NESTING)
        written[name] = _written_out(tree)
        limits.check(language, f"alternatives of rule {name}", written[name][0], limits.ALTERNATIVES)
    uses = _template_uses(language, trees, templates)
    rules = [name for name in trees if name not in templates] + uses
    limits.check(language, "symbols of all rules", sum(written[name][1] for name in rules), limits.SYMBOLS)


def _subtrees(tree: Any) -> Iterator[Any]:
    """Yield a tree's own trees, each once and after those inside of it."""
    done = set()
    stack = [(tree, False)]
    while stack:
        at, seen = stack.pop()
        if seen:
            yield at
        elif id(at) not in done:
            done.add(id(at))
            stack.append((at, True))
            stack.extend((child, False) for child in at.children if hasattr(child, "children"))


def _depth(tree: Any) -> int:
    depths: dict[int, int] = {}
    for at in _subtrees(tree):
        depths[id(at)] = 1 + max((depths.get(id(child), 0) for child in at.children), default=0)
    return depths[id(tree)]


def _check_terminals(language: str, trees: dict[str, Any]) -> None:
    sizes: dict[int, tuple[int, int, int]] = {}  # per tree: characters, characters with all copies, levels
    total = 0
    for name, tree in trees.items():
        for at in _subtrees(tree):
            inner = [sizes.get(id(child), (len(str(child)), 0, 0)) for child in at.children]
            size = sum(each[0] for each in inner) + 4
            copied = size + sum(each[1] for each in inner)
            sizes[id(at)] = (min(size, _MANY), min(copied, _MANY), 1 + max((each[2] for each in inner), default=0))
        _, copied, depth = sizes[id(tree)]
        limits.check(language, f"nesting of terminal {name}", depth, limits.NESTING)
        total += copied
        limits.check(language, f"characters up to terminal {name}", total, limits.TERMINAL_WORK)


def _written_out(rule: Any) -> tuple[int, int]:
    """Return a rule's alternatives, and the symbols of them and of the rules that Lark makes for its repetitions."""
    counts: dict[int, tuple[int, int]] = {}  # per tree: alternatives, their symbols
    added = 0
    for at in _subtrees(rule):
        inner = [counts.get(id(child), (1, 1)) for child in at.children]
        kind = at.data
        if kind == "expansions":
            count = sum(each[0] for each in inner), sum(each[1] for each in inner)
        elif kind == "maybe":
            count = inner[0][0] + 1, inner[0][1]
        elif kind == "expr":
            count, more = _repeated(inner[0], [str(child) for child in at.children[1:]])
            added += more
        elif kind in ("value", "alias"):
            count = inner[0]
        elif kind == "expansion":
            count = 1, 0
            for each in inner:
                count = min(count[0] * each[0], _MANY), min(count[0] * each[1] + count[1] * each[0], _MANY)
        else:
            count = 1, 1
        counts[id(at)] = min(count[0], _MANY), min(count[1], _MANY)
    alternatives, symbols = counts[id(rule)]
    return alternatives, min(symbols + added, _MANY)


def _repeated(inner: tuple[int, int], operator: list[str]) -> tuple[tuple[int, int], int]:
    """Return the alternatives and symbols of a repeated item, and the symbols of the rules made for it."""
    alternatives, symbols = inner
    match operator:
        case ["?"]:
            return (alternatives + 1, symbols), 0
        case ["+"]:
            return (1, 1), 2 * symbols + alternatives
        case ["*"]:
            return (2, 1), 2 * symbols + alternatives
        case ["~", *bounds]:
            least, most = int(bounds[0]), int(bounds[-1])
            if most >= _UNROLLED:
                return (1, 2), _rolled(inner, least) + (_rolled(inner, most - least + 1) if most > least else 0)
            powers = [(alternatives**times, times * symbols * alternatives ** max(times - 1, 0))
                      for times in range(least, most + 1)]  # fmt: skip
            return (sum(power[0] for power in powers), sum(power[1] for power in powers)), 0
    return (1, 1), 0


def _rolled(inner: tuple[int, int], times: int) -> int:
    """Return a lower bound of the symbols of the rules for ``times`` repetitions of an item, by its factors."""
    alternatives, symbols = inner
    item, total = alternatives, 0  # the repeated unit: the item itself, then the rule made last
    for factor, rest in small_factors(times, SMALL_FACTOR_THRESHOLD):
        # The rule for exactly so many, and the one for fewer: of each length one alternative.
        most = min(item, _MANY) ** factor * min(alternatives, _MANY) ** rest
        total += (factor + rest) * (factor + rest + 1) * max(symbols, 1) * most
        item = 1
    return min(total, _MANY)


def _template_uses(language: str, trees: dict[str, Any], templates: dict[str, tuple[str, ...]]) -> list[str]:
    """Return the templates that are used, each as often as with different arguments."""
    found: list[str] = []
    seen: set[str] = set()
    pending: list[tuple[str, dict[str, str]]] = [(name, {}) for name in trees if name not in templates]
    while pending:
        rule, names = pending.pop()
        made: dict[int, str] = {}
        for at in _subtrees(trees[rule]):
            if at.data == "value":
                made[id(at)] = _name(at.children[0], names, made)
            if at.data != "template_usage":
                continue
            template = _name(at.children[0], names, made)
            arguments = [_name(child, names, made) for child in at.children[1:]]
            whole = f"{template}{{{','.join(arguments)}}}"
            made[id(at)] = whole
            limits.check(language, f"characters of a use of template {template}", len(whole), limits.TEMPLATE_NAME)
            if whole not in seen and template in templates:
                seen.add(whole)
                found.append(template)
                limits.check(language, f"uses of templates, {template} the last", len(found), limits.TEMPLATE_USES)
                pending.append((template, dict(zip(templates[template], arguments, strict=False))))
    return found


def _name(part: Any, names: dict[str, str], made: dict[int, str]) -> str:
    """Return Lark's name of a template's argument: that of the rule or terminal that it is or becomes."""
    if id(part) in made:
        return made[id(part)]
    if hasattr(part, "children"):
        return " ".join(str(child) for child in part.children)
    name = str(part.name) if hasattr(part, "name") else str(part)
    return names.get(name, name)
