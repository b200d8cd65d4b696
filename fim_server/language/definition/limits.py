"""Limits of a language's definition, each with its unit, the meaning of passing it, and the attack it stops.

Passing one refuses the language, in one line that names the excess. Beside each stands the value of Python's
definition. The engine limits its lexemes' automata and the tables over its rules (`rust_core/src/limits.rs`).
"""

from fim_server.errors import LanguageError

DEFINITION_BYTES = 256 << 10
"""The grammar with all its imports, and the TOML file. Unit: bytes of each. Python: 43 kB and 13 kB."""

IMPORTS = 32
"""Grammar files read because the grammar, or one of them, imports them; one that two files import counts twice. Unit:
files. Python: none. Stops grammars that import each other."""

TOKENS = 24_000
"""Names, literals and signs of a grammar file; also those of one terminal with its parts written out, and half of those
of all terminals so written. Unit: tokens. Python: 5,700, 115 and 2,500. Stops terminals that double."""

BRACKETS = 40
"""Parentheses, brackets and braces of a grammar that are open at once. Unit: brackets. Python: 3."""

DEFINITIONS = 2_000
"""Rules and terminals that a grammar defines. Unit: definitions. Python: 443, and 480 before 3.12."""

NESTING = 150
"""Levels of one definition's tree, of which a pair of parentheses makes three; also the length of a chain of terminals
that refer to each other. Unit: levels. Python: 20. Lark walks trees by recursion."""

TERMINAL_WORK = 2_000_000
"""Characters of all regular expressions of terminals, each counted once for every level that it is copied through.
Unit: characters. Python: 258,000; Rust: 629,000. Stops terminals that double each other."""

TEMPLATE_USES = 2_000
"""Rules made from templates: a template with its arguments is one rule. Unit: rules. Python: 40, and 510 before 3.12.
Stops templates that use themselves with ever longer arguments."""

TEMPLATE_NAME = 1_000
"""Length of such a rule's name, which holds its arguments' names. Unit: characters. Python: 102."""

ALTERNATIVES = 2_000
"""Alternatives of one rule with its groups and optional items written out: each optional item doubles them. Unit:
alternatives. Python: 20."""

SYMBOLS = 150_000
"""Symbols of all rules' alternatives, so written out. Unit: symbols. Python: 2,100, and 8,700 before 3.12; TypeScript:
37,000."""

TREE_PATTERN = 2_000
"""Length of a pattern in the data of a language of token trees. Unit: characters. Bash: 180."""

TREE_DELIMITER = 40
"""Length of a delimiter, or a word of a here-document, of such a language. Unit: characters. SQL: 10."""

TREE_STATES = 200
"""Characters of the delimiters that a string looks for, common beginnings once. Unit: characters. SQL: 11."""

TREE_WRITTEN = 50_000
"""Length of a pattern built from delimiters, which many of them double. Unit: characters. SQL: 330."""

TREE_ENTRIES = 64
"""Entries of one list of such a language: comments, strings, words of here-documents. Unit: entries. C++: 10."""

TREE_NESTED = 8
"""Comments inside each other, and further quotes at a string's end, of such a language. Unit: pieces. Kotlin: 4."""


def check(language: str, what: str, given: int, limit: int) -> None:
    """Raise LanguageError if a definition exceeds a limit; ``what``: the quantity in words."""
    if given > limit:
        raise LanguageError(f"language {language}: {what}: {given} is over the limit of {limit}")
