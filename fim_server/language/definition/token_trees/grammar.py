"""Grammar of token trees, written from a language's data: a list of lexemes and of balanced brackets.

The grammar is Lark's text, and the fields are those that a definition of two files has in its TOML file. So everything
behind this module treats both kinds of definitions alike.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fim_server.errors import LanguageError
from fim_server.language.definition.token_trees import patterns
from fim_server.language.definition.token_trees.data import (
    BlockComment,
    HereDocument,
    LineComment,
    StringKind,
    TokenTrees,
)
from fim_server.language.definition.token_trees.patterns import ANY, LINE_BREAK, LINE_ENDS, either, literal, none_of

START = "file"
"""Rule of a whole file. A rule of its own lets files share masks (`rust_core/src/language/follow.rs`)."""

TREES = "trees"
"""Rule of the contents of a bracket."""

_BLANK = r"[ \t\n\r\f]"
_TAB = r"\v"
"""A blank with which no lexeme goes on: each ends before it, which modes need."""

_FOREIGN = r"\x80-\U0010ffff"
_NUMBER = r"\.?[0-9]([0-9A-Za-z_]|\.[0-9A-Za-z_]|[eEpP][+\-])*"
_ESCAPE = "\\"
_INDENT = r"[ \t]*"


def written(spec: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the grammar of a definition of token trees, and its fields without the table `[token_trees]`.

    Fields that the definition has itself count; lists of lexemes are joined.

    Raises LanguageError if a key is unknown or has a wrong value, or a delimiter does not fit the others.
    """
    data = TokenTrees.from_spec(spec)
    try:
        made = _Grammar(data)
    except ValueError as error:
        raise LanguageError(f"language {data.language}: token_trees: {error}") from error
    own = {key: value for key, value in spec.items() if key != "token_trees"}
    fields = made.fields()
    for key in ("error_lexemes", "first_lexemes", "modes"):
        if isinstance(own.get(key), list) and fields[key]:
            own[key] = [*fields[key], *own[key]]
    return made.text(), {**fields, **own}


@dataclass
class _Grammar:
    """Parts of a grammar, in their order.

    Attributes:
        lexemes: Patterns by the names of their lexemes.
        ignored: Names of ignored lexemes.
        errors: Names of lexemes that no rule uses.
        first: Names of lexemes that only the first byte of a file begins.
        trees: Alternatives of a tree.
        rules: Further rules.
    """

    data: TokenTrees
    lexemes: dict[str, str] = field(default_factory=dict)
    ignored: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    first: list[str] = field(default_factory=list)
    comments: list[dict[str, str]] = field(default_factory=list)
    strings: list[str] = field(default_factory=list)
    quotes: list[str] = field(default_factory=list)
    modes: list[dict[str, Any]] = field(default_factory=list)
    constructs: dict[str, str] = field(default_factory=dict)
    shown: dict[str, list[str]] = field(default_factory=dict)
    trees: list[str] = field(default_factory=list)
    rules: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        for line in self.data.line_comments:
            self._line_comment(line)
        for block in self.data.block_comments:
            self._block_comment(block)
        self.lexemes["BLANK"] = f"{_BLANK}+"
        self.lexemes["VERTICAL_TAB"] = f"{_TAB}+"
        self.ignored += ["BLANK", "VERTICAL_TAB"]
        self._tree("WORD", self.data.word or self._word(), "name")
        self._tree("NUMBER", self.data.number or _NUMBER, "number")
        for kind in self.data.strings:
            if kind.holes:
                self._template(kind)
            else:
                self._string(kind)
        for here in self.data.here_documents:
            self._here_document(here)
        for name, pattern in self.data.opaque.items():
            self._tree(name, pattern, _words(name))
        for name, pattern in self.data.lines.items():
            # The line break belongs to the lexeme, which is longer than the blank with it.
            self._tree(name, f"{_BLANK}*{literal(LINE_BREAK)}{_INDENT}{pattern}", _words(name))
            self.first.append(self._tree(f"FIRST_{name}", f"{_INDENT}{pattern}", _words(name)))
        self._tree("SIGN", self.data.operator or self._sign(), "operator")
        for name, pattern in self.data.lexemes.items():
            self._lexeme(name, pattern)
        for opening, closing in self.data.brackets:
            self.trees.append(f"{_quoted(opening)} {TREES} {_quoted(closing)}")

    def text(self) -> str:
        """Return the grammar in Lark's notation."""
        lines = [
            f"{START}: {TREES}",
            f"{TREES}: | {TREES} tree",
            f"tree: {' | '.join([*self.trees, *self.data.trees])}",
            *self.rules,
            *self.data.rules,
            *(f"{name}: /{pattern}/" for name, pattern in self.lexemes.items()),
            *(f"%ignore {name}" for name in self.ignored),
        ]
        return "\n".join(lines) + "\n"

    def fields(self) -> dict[str, Any]:
        """Return the fields of the TOML file of a definition with this grammar."""
        openings = [opening for opening, _ in self.data.brackets]
        closings = [closing for _, closing in self.data.brackets]
        return {
            "start": START,
            "error_lexemes": self.errors,
            "first_lexemes": self.first,
            "strings": self.strings,
            "quotes": list(dict.fromkeys(self.quotes)),
            "comments": self.comments,
            "placeholder": "x",
            "closers": "".join(one for one in (*closings, *self.quotes) if len(one) == 1),
            "modes": self.modes,
            "constructs": self.constructs,
            "shown": self.shown,
            "layout": {"rule": "none"},
            "recovery": {"stand_ins": [*closings, *openings], "joints": openings},
        }

    def _tree(self, name: str, pattern: str, shown: str = "") -> str:
        """Add a lexeme that is a tree by itself; return its name."""
        self._lexeme(name, pattern)
        self.trees.append(name)
        if shown:
            self.shown[name] = [shown]
        return name

    def _lexeme(self, name: str, pattern: str) -> None:
        if name in self.lexemes:
            raise ValueError(f"two lexemes are named {name}")
        self.lexemes[name] = pattern

    def _numbered(self, name: str) -> str:
        return f"{name}_{sum(other.startswith(f'{name}_') for other in self.lexemes)}"

    def _error(self, opening: str) -> None:
        """Refuse an opening, by its pattern, whose end is missing, where it would be read as several lexemes."""
        name = self._numbered("_OPEN")
        self._lexeme(name, opening)
        self.errors.append(name)

    def _line_comment(self, comment: LineComment) -> None:
        # Where a line comment's beginning begins something longer, that is read.
        longer = {
            opening.removeprefix(comment.open)
            for opening in self._openings()
            if opening.startswith(comment.open) and opening != comment.open
        }
        rest = patterns.rest_of_line(longer)
        if comment.joined:
            if longer:
                raise ValueError(f"{comment.open!r} cannot be joined where it begins something longer")
            rest = f"({none_of([*LINE_ENDS, _ESCAPE])}|{literal(_ESCAPE)}{ANY})*"
        name = self._numbered("LINE_COMMENT")
        self._lexeme(name, comment.pattern or literal(comment.open) + rest)
        self.ignored.append(name)
        self.comments.append({"lexeme": name, "prefix": comment.open})

    def _block_comment(self, comment: BlockComment) -> None:
        if comment.depth > 1:
            inside = patterns.nested(comment.open, comment.close, comment.depth)
        else:
            inside = patterns.up_to([comment.close])[comment.close]
        name = self._numbered("BLOCK_COMMENT")
        self._lexeme(name, literal(comment.open) + inside)
        self.ignored.append(name)
        self.comments.append({"lexeme": name, "prefix": comment.open, "suffix": comment.close})
        self._error(literal(comment.open))

    def _string(self, kind: StringKind) -> None:
        inside = kind.pattern or literal(kind.open) + _inside(kind, [])[kind.close]
        self.strings.append(self._tree(self._numbered("STRING"), inside, "string"))
        self._quote(kind)
        if len(kind.open) > 1 and not kind.pattern:
            self._error(literal(kind.open))
        doubled = [text for text in kind.plain if text.startswith(kind.close)]
        for text in doubled:  # it ends no string, even where no other end follows
            self._error(literal(kind.open) + _inside(kind, doubled)[text])

    def _template(self, kind: StringKind) -> None:
        """Add a string with code in it: its opening, texts that end with a hole's opening, and one that ends it."""
        number = len(self.modes)
        found = _inside(kind, [hole.open for hole in kind.holes])
        rule, end = f"string_{number}", f"TEXT_{number}_END"
        begun: list[str] = []
        self._lexeme(end, found[kind.close])
        for at, hole in enumerate(kind.holes):
            name = f"TEXT_{number}_HOLE_{at}"
            self._lexeme(name, found[hole.open])
            begun.append(name)
            self.rules.append(f"hole_{number}_{at}: {name} {TREES} {_quoted(hole.close)}")
            self.constructs[f"hole_{number}_{at}"] = "code in a string"
        holes = " | ".join(f"holes_{number} hole_{number}_{at}" for at in range(len(kind.holes)))
        self.rules.append(f"{rule}: {_quoted(kind.open)} holes_{number} {end}")
        self.rules.append(f"holes_{number}: | {holes}")
        self.trees.append(rule)
        self.constructs[rule] = "string"
        self.shown.update({name: ["string"] for name in (end, *begun)})
        self.modes.append({"name": f"text {number}", "lexemes": [end, *begun], "open": begun})
        self._quote(kind)

    def _quote(self, kind: StringKind) -> None:
        if kind.open == kind.close:
            self.quotes.append(kind.open)

    def _here_document(self, here: HereDocument) -> None:
        pattern = either(patterns.here_document(here.open, word, here.indented) for word in here.words)
        self.strings.append(self._tree(self._numbered("HERE_DOCUMENT"), pattern, "here-document"))
        heads = either(patterns.here_head(here.open, word) for word in here.words)
        self._error(f"{heads}{literal(LINE_BREAK)}|{pattern}[{patterns.NAMED_BY}]")

    def _openings(self) -> Iterable[str]:
        """Return the texts that begin comments, strings and brackets."""
        yield from (line.open for line in self.data.line_comments)
        yield from (block.open for block in self.data.block_comments)
        yield from (kind.open for kind in self.data.strings)
        yield from (opening for opening, _ in self.data.brackets)

    def _word(self) -> str:
        letters = literal(self.data.letters)
        return f"[A-Za-z_{letters}{_FOREIGN}][A-Za-z0-9_{letters}{_FOREIGN}]*"

    def _sign(self) -> str:
        """Return the pattern of a character that begins nothing else."""
        patterned = {kind.open for kind in self.data.strings if kind.pattern}
        begun = {opening for opening in self._openings() if len(opening) == 1} - patterned
        taken = sorted(
            {*"".join(map("".join, self.data.brackets)), *begun, *self.data.no_operators, *self.data.letters}
        )
        blanks = _BLANK[1:-1] + _TAB
        return f"[^A-Za-z0-9_{_FOREIGN}{literal(''.join(taken))}{blanks}]"


def _inside(kind: StringKind, holes: list[str]) -> dict[str, str]:
    """Return the patterns of a string's texts, without its opening, by the words that they end with."""
    found = patterns.up_to(
        [kind.close, *holes],
        escape=kind.escape,
        escaped=ANY if kind.lines or kind.joined else none_of(LINE_BREAK),
        skipped=dict.fromkeys(kind.plain, ""),
        without="" if kind.lines else LINE_BREAK,
    )
    if kind.more:
        found[kind.close] += f"{literal(kind.close[-1])}{{0,{kind.more}}}"
    return found


def _words(name: str) -> str:
    """Return the name of a lexeme in words."""
    return name.lower().replace("_", " ")


def _quoted(text: str) -> str:
    """Return a literal in Lark's notation."""
    return json.dumps(text, ensure_ascii=False)
