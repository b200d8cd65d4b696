"""Grammars for engines that have neither indentation nor modes nor a right context, in their Lark dialects.

Languages without layout and modes are their own lowered definitions (`lowered`): rules, literals, patterns, and ignored
lexemes. They lose the rank between lexemes where a dialect cannot express it, and ``error_lexemes``, which only forbid
something.

Python is derived from the package's own definition, so that all engines parse nearly the same language:

- Without INDENT and DEDENT a file is a list of lines. The header of a block (``if x:``) is a line of its own, and so is
  ``else:``.
- Line breaks count outside brackets only. Every rule that can stand inside brackets exists twice, and inside brackets a
  line break may follow every symbol.
- A formatted string is one lexeme, like a string with an `f` before it: its fields are not parsed.
- Lexemes that only forbid something (``error_lexemes``) are left out.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from fim_server.errors import LanguageError
from fim_server.language.definition import compile as grammar

START = "start"
"""The one name of a first rule that all peers take."""

FORMATTED = {"[uU]?": "[fF]", "[rR]": "(?:[fF][rR]|[rR][fF])"}
"""The prefixes of strings, as the lexeme's pattern has them, and those of formatted strings."""

LONG_NEWLINE = r"[\r\n]([ \t\x0c\r\n]|#[^\r\n\x00]*[\r\n])*(#[^\r\n\x00]*)?"
"""A line break with all blank lines and comments after it. After each of its characters it may also be over: an engine
that matches longest without going back needs that."""

INSIDE = "_in"
"""Suffix of the rules that stand inside brackets."""

JSON_EBNF = r"""
root ::= ws value ws
value ::= object | array | string | number | "true" | "false" | "null"
object ::= "{" ws ( member ( ws "," ws member )* ws )? "}"
member ::= string ws ":" ws value
array ::= "[" ws ( value ( ws "," ws value )* ws )? "]"
string ::= "\"" rest
rest ::= "\"" | [^"\\\x00-\x1f] rest | "\\" escape rest
escape ::= ["\\/bfnrt] | "u" [0-9a-fA-F] [0-9a-fA-F] [0-9a-fA-F] [0-9a-fA-F]
number ::= "-"? ( "0" | [1-9] [0-9]* ) ( "." [0-9]+ )? ( [eE] [-+]? [0-9]+ )?
ws ::= [ \t\n\r]*
"""
"""RFC 8259 in the notation that XGrammar takes. Strings are recursive: repeated, a mask takes it 200 times as long."""

JSON_LARK = r"""
start: WS? value WS?
value: object | array | STRING | NUMBER | "true" | "false" | "null"
object: "{" WS? (member (WS? "," WS? member)* WS?)? "}"
member: STRING WS? ":" WS? value
array: "[" WS? (value (WS? "," WS? value)* WS?)? "]"
STRING: /"([^"\\\x00-\x1f]|\\(["\\\/bfnrt]|u[0-9a-fA-F]{4}))*"/
NUMBER: /-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?/
WS: /[ \t\n\r]+/
"""
"""The grammar of JSON in llguidance's notation."""

Rules = dict[str, list[list[str]]]
"""The right sides of every nonterminal."""


@dataclass(frozen=True)
class Flat:
    """A context-free grammar without layout.

    Attributes:
        rules: The right sides by nonterminal; `start` is the first.
        literals: Texts by terminal.
        patterns: Regular expressions by terminal.
        ignored: Terminals between any two symbols.
        reserved: By pattern, the literals that it matches and must not be.
        priorities: Numbers by pattern: what a pattern of a higher one matches, no other does. 0 where none is named.
    """

    rules: Rules
    literals: dict[str, str]
    patterns: dict[str, str]
    ignored: tuple[str, ...]
    reserved: Mapping[str, tuple[str, ...]]
    priorities: Mapping[str, int] = field(default_factory=dict)

    def lark(self, reserve: bool) -> str:
        """The grammar as Lark text that uses nothing but literals, patterns and alternatives.

        Args:
            reserve: Whether names exclude keywords, and patterns those of a higher priority, by the intersection of
                expressions that llguidance's dialect has.
        """
        lines = [
            f"{name}: " + " | ".join(" ".join(map(self._shown, side)) for side in sides)
            for name, sides in self.rules.items()
        ]
        used = {symbol for sides in self.rules.values() for side in sides for symbol in side} | set(self.ignored)
        for name in sorted(used & self.patterns.keys(), key=list(self.patterns).index):
            excluded = "".join(f" & ~{what}" for what in self._excluded(name, used)) if reserve else ""
            lines.append(f"{name}: /{slashed(self.patterns[name])}/{excluded}")
        return "\n".join([*lines, *(f"%ignore {name}" for name in self.ignored), ""])

    def _excluded(self, name: str, used: set[str]) -> Iterator[str]:
        """Texts that a pattern must not match, though its expression does."""
        if name in self.reserved:
            yield f"/({'|'.join(map(slashed, map(re.escape, self.reserved[name])))})/"
        priority = self.priorities.get(name, 0)
        yield from (other for other in self.patterns if other in used and self.priorities.get(other, 0) > priority)

    def _shown(self, symbol: str) -> str:
        return quoted(self.literals[symbol]) if symbol in self.literals else symbol


def json_grammar(end: str = "") -> str:
    """The package's own JSON, which needs nothing that the peers lack; `start` is the one name that they ask for.

    Args:
        end: What may follow the value, as Lark's text.
    """
    definition = grammar.read_builtin("json")
    return f"start: {definition.spec['start']} {end}\n{definition.grammar}"


def lowered(language: str) -> Flat:
    """The newest version of a language that has neither layout nor modes, as the engine gets it.

    Raises:
        LanguageError: It has one of them, or there is no such language.
    """
    definition = grammar.read_builtin(language)
    # That a text has to come again no peer can say.
    definition = replace(definition, spec={key: value for key, value in definition.spec.items() if key != "matched"})
    found = grammar.lower(definition)
    if found["layout"] is not None or found["modes"]:
        raise LanguageError(f"{language} has layout or modes, which no peer has")
    named = {found["start"]: START}
    for rule in found["rules"]:
        named.setdefault(rule["lhs"], unused(rename(rule["lhs"]).lower(), named.values()))
    lexemes = [each for each in found["lexemes"] if each["name"] not in definition.spec.get("error_lexemes", [])]
    for lexeme in lexemes:
        named[lexeme["name"]] = unused(rename(lexeme["name"]), named.values())
    rules: Rules = {START: []}
    for rule in found["rules"]:
        rules.setdefault(named[rule["lhs"]], []).append([named[symbol] for symbol in rule["rhs"]])
    literals = {named[each["name"]]: each["literal"] for each in lexemes if "literal" in each}
    patterns = {named[each["name"]]: each["pattern"] for each in lexemes if "pattern" in each}
    soft = {named[name] for name in found["soft_keywords"]}
    fixed = sorted(text for name, text in literals.items() if name not in soft)
    reserved = {name: tuple(filter(like(pattern).fullmatch, fixed)) for name, pattern in patterns.items()}
    return Flat(
        rules=rules,
        literals=literals,
        patterns=patterns,
        ignored=tuple(named[name] for name in found["ignore"]),
        reserved={name: texts for name, texts in reserved.items() if texts},
        priorities={named[each["name"]]: each["priority"] for each in lexemes if "pattern" in each},
    )


def like(pattern: str) -> re.Pattern[str]:
    """Return a pattern of Python's own for one of a grammar's, whose character classes Python lacks."""
    return re.compile(re.sub(r"\\p\{\w+\}", r"\\w", pattern))


def unused(name: str, used: Collection[str]) -> str:
    """A name, with a number if it is used already."""
    numbered = (f"{name}_{number}" for number in itertools.count(2))
    return name if name not in used else next(other for other in numbered if other not in used)


def formatted(pattern: str) -> str:
    """The pattern of strings with other prefixes."""
    for plain, prefix in FORMATTED.items():
        assert pattern.count(plain) == 1
        pattern = pattern.replace(plain, prefix)
    return pattern


def flat_python(longest_match: bool) -> Flat:
    """Return the newest Python without indentation.

    Args:
        longest_match: True if the engine takes the longest lexeme. Otherwise it tries every split of a text, and each
            lexeme has to be as short as can be.
    """
    lowered = grammar.lower(grammar.read_builtin("python"))
    literals = {lexeme["name"]: lexeme["literal"] for lexeme in lowered["lexemes"] if "literal" in lexeme}
    patterns = {lexeme["name"]: lexeme["pattern"] for lexeme in lowered["lexemes"] if "pattern" in lexeme}
    patterns["F_STRING"] = formatted(patterns["STRING"])
    rules: Rules = {}
    for rule in lowered["rules"]:
        rules.setdefault(rule["lhs"], []).append(list(rule["rhs"]))
    layout = lowered["layout"]
    newline, structure = layout["newline"], {layout["indent"], layout["dedent"]}
    patterns |= {newline: LONG_NEWLINE} if longest_match else {}
    rules["f_string"] = [["F_STRING"]]
    rules["t_string"] = []
    if longest_match:
        # After `..` there is no way back to two dots, because it might become `...`.
        literals["DOT_DOT"] = ".."
        for sides in rules.values():
            sides += [[*side[:-1], "DOT_DOT"] for side in sides if is_dots(side)]
    rules = lines_only(rules, newline, structure)
    if not longest_match:
        rules["statement"].append([newline])
    rules["start"] = [[lowered["start"]], *([[newline, lowered["start"]]] if longest_match else [])]
    rules = bracketed(rules, dict(lowered["brackets"]), newline, many=not longest_match)
    rules = reachable(productive(rules))
    soft = {*lowered["soft_keywords"], "UNDERSCORE"}
    return Flat(
        rules={rename(name): [[rename(symbol) for symbol in side] for side in sides] for name, sides in rules.items()},
        literals={rename(name): text for name, text in literals.items()},
        patterns={rename(name): pattern for name, pattern in patterns.items()},
        ignored=tuple(map(rename, lowered["ignore"])),
        reserved={"NAME": tuple(sorted(t for name, t in literals.items() if t.isidentifier() and name not in soft))},
    )


def is_dots(side: Sequence[str]) -> bool:
    """Return whether a right side is one of the list of dots before a relative import's module."""
    return side[-1:] == ["DOT"] and (len(side) == 1 or (len(side) == 2 and side[0].startswith("__import_source")))


# --- without indentation ------------------------------------------------------------------------------------------


def lines_only(rules: Rules, newline: str, structure: set[str]) -> Rules:
    """Makes every part of a compound statement that ends in a block a statement by itself, and the block's body, too.

    A block's nonterminal is one of whose right sides has INDENT.
    """
    blocks = {name for name, sides in rules.items() if any(structure.intersection(side) for side in sides)}
    flat = {name: list(sides) for name, sides in rules.items()}
    for name in blocks:
        flat[name] = [[newline], *(side for side in rules[name] if not structure.intersection(side))]
    compound = derive(flat, blocks) - blocks - derive(flat, {"statement"})
    flat |= {name: [] for name in (*compound, "statement")}
    for name in sorted({*compound, "statement"}):
        for side in rules[name]:
            parts = pieces(side, compound | blocks)
            if name in compound and parts[0] != [name]:
                add(flat[name], parts[0])
            for part in parts:
                if len(part) > 1 or part[0] not in compound:
                    add(flat["statement"], part)
    return flat


def add(sides: list[list[str]], side: list[str]) -> None:
    if side not in sides:
        sides.append(side)


def derive(rules: Rules, wanted: set[str]) -> set[str]:
    """The nonterminals in which one of some nonterminals can occur, and these."""
    found = set(wanted)
    while True:
        more = {name for name, sides in rules.items() if any(found.intersection(side) for side in sides)} - found
        if not more:
            return found
        found |= more


def pieces(side: Sequence[str], ends: set[str]) -> list[list[str]]:
    """Cuts a right side after every symbol that ends in a block."""
    cut: list[list[str]] = [[]]
    for index, symbol in enumerate(side):
        cut[-1].append(symbol)
        if symbol in ends and index + 1 < len(side):
            cut.append([])
    return cut


# --- line breaks inside brackets ----------------------------------------------------------------------------------


def bracketed(rules: Rules, brackets: dict[str, str], newline: str, many: bool) -> Rules:
    """Copies all rules for the inside of brackets, where a line break, or many, may follow every terminal."""
    closing = set(brackets.values())
    both: Rules = {name: [] for name in rules}
    padded: set[str] = set()

    def pad(terminal: str) -> str:
        padded.add(terminal)
        return f"t_{terminal}"

    for name, sides in rules.items():
        inner = both.setdefault(name + INSIDE, [])
        for side in sides:
            depth = 0
            outside, inside = [], []
            for symbol in side:
                depth -= symbol in closing
                within = symbol + INSIDE if symbol in rules else pad(symbol)
                inside.append(within)
                if depth:
                    outside.append(within)
                else:
                    outside.append(pad(symbol) if symbol in brackets else symbol)
                depth += symbol in brackets
            add(both[name], outside)
            if newline not in side:
                add(inner, inside)
    for terminal in sorted(padded):
        padding = f"t_{terminal}"
        both[padding] = [[terminal], [padding if many else terminal, newline]]
    return both


# --- housekeeping -------------------------------------------------------------------------------------------------


def productive(rules: Rules) -> Rules:
    """Without the right sides that derive no text."""
    good: set[str] = set()

    def derives(side: Iterable[str]) -> bool:
        return all(symbol in good or symbol not in rules for symbol in side)

    while more := {name for name, sides in rules.items() if any(map(derives, sides))} - good:
        good |= more
    return {name: [side for side in sides if derives(side)] for name, sides in rules.items() if name in good}


def reachable(rules: Rules) -> Rules:
    """Without the nonterminals that `start` never leads to."""
    seen, waiting = {"start"}, ["start"]
    while waiting:
        for side in rules[waiting.pop()]:
            for symbol in side:
                if symbol in rules and symbol not in seen:
                    seen.add(symbol)
                    waiting.append(symbol)
    return {name: sides for name, sides in rules.items() if name in seen}


def rename(name: str) -> str:
    """A name that every dialect takes, of letters, digits and inner underscores; terminals are in upper case."""
    if name.startswith("t_") and name[2:].lstrip("_").isupper():
        return "t_" + name[2:].lstrip("_").lower()
    return re.sub(r"\W", "_", name.lstrip("_"))


def slashed(pattern: str) -> str:
    """A regular expression between slashes, its control characters written as escapes."""

    def escapes() -> Iterator[str]:
        escaped = False
        for character in pattern:
            if character == "/" and not escaped:
                yield "\\/"
            elif ord(character) < 0x20 or ord(character) == 0x7F:
                yield f"\\x{ord(character):02x}"
            else:
                yield character
            escaped = character == "\\" and not escaped

    return "".join(escapes())


def quoted(text: str) -> str:
    """A literal in double quotes."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
