"""Language definitions: a Lark grammar and a TOML file, lowered to the engine's input.

Lark's own loader reads the grammar text and lowers EBNF to BNF; this module parses no grammars.
"""

import hashlib
import json
import re
import tomllib
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fim_server import _core
from fim_server.errors import LanguageError, LimitError
from fim_server.language.cache import cache_folder, read_text, write_text
from fim_server.language.definition import breaks, flags
from fim_server.language.definition.adopting import Adopted
from fim_server.language.definition.lexeme_names import LexemeNames
from fim_server.language.definition.matching import Matching
from fim_server.language.definition.sources import Sources, read_source
from fim_server.language.definition.splitting import split
from fim_server.language.definition.variants import Variants
from fim_server.language.definition.versions import Versions
from fim_server.language.encodings import Declaration

_LANGUAGES = Path(__file__).parents[2] / "languages"
_SHARED = "token_trees"
"""Folder with one TOML file for each definition of token trees."""
_LOWERING = Path(__file__).parent
_CACHE_FORMAT = 3
_AS_WRITTEN = (
    "strings", "comments", "comment_symbols", "quotes", "placeholder", "operators", "block_lines", "openings", "limits",
)  # fmt: skip
"""Keys of the TOML file that go to the engine as they are."""
_OF_SPELLING = ("closes", "definitions", "line_comments", "surroundings")
"""Keys of the TOML file that the engine does not read, but :class:`.Spelling`."""
_OF_LOWERING = ("breaks", "flags")
"""Keys of the TOML file that are resolved here: the engine gets plain rules."""

_TOKEN_TREES = re.compile(r"^\[token_trees\]", re.MULTILINE)

EXACT, BALANCED = "exact", "balanced"
"""Guarantees of definitions: all of a language's syntax, or comments, strings and brackets."""


@dataclass(frozen=True)
class Definition:
    """Two files of a language, without the lines of its other versions and variants.

    Attributes:
        name: The language's name; that of the variant, if the files have several.
        suffixes: File suffixes with their dot.
        grammar: The Lark grammar's text.
        spec: The TOML file's fields.
        version: Version to which both are narrowed; None for the newest, or for a language without versions.
        folder: Folder of the grammar's own imports (`%import .name.RULE`); None for a grammar without them.
        encoding: Rule by which files declare their encoding; None where they are in UTF-8.
        keeps_returns: True if a lone carriage return is no line break.
        of_spelling: Fields of the TOML file that the engine does not read.
        editor_ids: Names that editors have for the language, beside its own.
        longer_suffixes: Suffixes of other variants that end with one of these: such files are theirs.
        adopted: Files of another variant that are this one's in some projects.
        guarantee: `exact`; `balanced` if it knows only the language's comments, strings and brackets.
    """

    name: str
    suffixes: tuple[str, ...]
    grammar: str
    spec: dict[str, Any]
    version: str | None = None
    folder: Path | None = None
    encoding: Declaration | None = None
    keeps_returns: bool = False
    of_spelling: dict[str, Any] = field(default_factory=dict)
    editor_ids: tuple[str, ...] = ()
    longer_suffixes: tuple[str, ...] = ()
    adopted: Adopted | None = None
    guarantee: str = EXACT


def names() -> list[str]:
    return sorted(places(_LANGUAGES))


def read_builtin(name: str, version: str | None = None) -> Definition:
    """Read a language of the package.

    Raises LanguageError if there is no such language, or no such version of it.
    """
    return read(*builtin_files(name), version, builtin_variant(name))


@cache
def builtin_versions(name: str) -> Versions:
    """Return the versions of a language of the package. Raises LanguageError if there is no such language."""
    spec, variants, variant = _tables(read_source(builtin_files(name)[1]), builtin_variant(name))
    return Versions.from_spec(variants.narrowed(spec, variant))


def siblings(name: str) -> tuple[str, ...]:
    """Return the variants of a language's definition, in its order; none for a definition or name without any."""
    found = places(_LANGUAGES)
    spec, variant = found.get(name, (None, None))
    return () if variant is None else tuple(one for one, (other, _) in found.items() if other == spec)


def builtin_files(name: str) -> tuple[Path, Path]:
    """Return the grammar and the TOML file of a language of the package. One of token trees has no grammar file.

    Raises LanguageError if there is no such language.
    """
    spec = _place(name)[0]
    return spec.with_suffix(".lark"), spec


def builtin_variant(name: str) -> str | None:
    """Return the variant of its files that a language of the package is; None where they are one language.

    Raises LanguageError if there is no such language.
    """
    return _place(name)[1]


def _place(name: str) -> tuple[Path, str | None]:
    found = places(_LANGUAGES)
    if name not in found:
        known = ", ".join(sorted(found))
        raise LanguageError(f"unknown language {name!r}; known: {known}")
    return found[name]


@cache
def places(languages: Path) -> dict[str, tuple[Path, str | None]]:
    """Return the TOML file of each language, and its variant of the definition there.

    Raises LanguageError if two languages have one name.
    """
    found: dict[str, tuple[Path, str | None]] = {}
    own = [spec for folder in languages.iterdir() if (spec := folder / f"{folder.name}.toml").is_file()]
    for spec in (*own, *sorted((languages / _SHARED).glob("*.toml"))):
        variants = Variants.of(read_source(spec)).names
        for name in variants or (spec.stem,):
            if name in found:
                raise LanguageError(f"two languages are named {name!r}: in {spec} and {found[name][0]}")
            found[name] = spec, name if variants else None
    return found


def read(
    grammar_path: Path | None, spec_path: Path, version: str | None = None, variant: str | None = None
) -> Definition:
    """Read a language from its two files, narrowed to one version of it (None: the newest) and to a variant.

    A TOML file with the table `[token_trees]` needs no grammar: there is no file of that path, or no path.

    Raises LanguageError if a file cannot be read, a key of the TOML file is wrong (it is named), or there is no such
    version or variant.
    """
    text = read_source(spec_path)
    grammar = "" if has_token_trees(text) else _read_grammar_file(grammar_path, spec_path)
    try:
        spec, variants, variant = _tables(text, variant)
        declared = spec
        versions = Versions.from_spec(variants.narrowed(spec, variant))
        version = versions.narrowed(version)
        grammar, text = (versions.select(variants.select(each, variant), version) for each in (grammar, text))
        spec = variants.narrowed(tomllib.loads(text), variant)
        guarantee = _guarantee_of(spec)
        if "token_trees" in spec:
            if grammar_path is not None and grammar_path.exists():
                raise LanguageError(f"language {spec.get('name')}: token_trees: {grammar_path} would not be read")
            from fim_server.language.definition.token_trees.grammar import written

            grammar, spec = written(spec)
    # ValueError: a number of thousands of digits; RecursionError: thousands of brackets.
    except (RecursionError, ValueError) as error:
        if isinstance(error, LanguageError):
            raise
        raise LanguageError(f"language definition: {_one_line(error)}") from error
    encoding = Declaration.from_spec(spec)
    spec.pop("encoding", None)  # the engine reads texts, not files
    keeps = spec.pop("keeps_returns", False)
    if not isinstance(keeps, bool):
        raise LanguageError("keeps_returns: true or false expected")
    editor_ids = spec.pop("editor_ids", [])
    if not isinstance(editor_ids, list) or not all(isinstance(name, str) for name in editor_ids):
        raise LanguageError("editor_ids: a list of texts expected")
    spelling = {key: spec.pop(key) for key in _OF_SPELLING if key in spec}
    if guarantee == BALANCED and "matched" not in spec and spec.get("brackets"):
        spelling.setdefault("surroundings", [["", ""]])
    adopted = Adopted.from_spec(spec)
    spec.pop("adopts", None)
    _check(spec)
    suffixes = tuple(spec["suffixes"])
    folder = spec_path.parent.absolute() if grammar_path is None else grammar_path.parent.absolute()
    return Definition(
        spec["name"],
        suffixes,
        grammar,
        spec,
        version,
        folder,
        encoding,
        keeps,
        spelling,
        tuple(editor_ids),
        variants.longer_suffixes(declared, suffixes),
        adopted,
        guarantee,
    )


def has_token_trees(text: str) -> bool:
    """Return whether a TOML file's text, which need not be valid, has the table `[token_trees]`."""
    return _TOKEN_TREES.search(text) is not None


def _read_grammar_file(path: Path | None, spec_path: Path) -> str:
    if path is None:
        raise LanguageError(f"language definition: {spec_path} has no table [token_trees], so it needs a grammar")
    return read_source(path)


def _guarantee_of(spec: dict[str, Any]) -> str:
    """Take the guarantee out of a TOML file's fields. Raises LanguageError if it is wrong."""
    guarantee = spec.pop("guarantee", EXACT)
    if guarantee not in (EXACT, BALANCED):
        raise LanguageError(f"language {spec.get('name')}: guarantee: {EXACT} or {BALANCED} expected")
    if guarantee != BALANCED and "token_trees" in spec:
        raise LanguageError(f"language {spec.get('name')}: guarantee: token trees are {BALANCED}")
    return str(guarantee)


@lru_cache(8)
def _tables(text: str, variant: str | None) -> tuple[dict[str, Any], Variants, str | None]:
    """Return the fields of a TOML file that a variant has, the variants of the file, and the variant.

    The fields are shared: they must not be changed. Raises LanguageError if there is no such variant; ValueError if a
    text is no TOML.
    """
    variants = Variants.of(text)
    variant = variants.chosen(variant)
    return tomllib.loads(variants.select(text, variant)), variants, variant


def _check(spec: dict[str, Any]) -> None:
    """Raise LanguageError if a TOML file has an unknown key, lacks one, or has a wrong value."""
    # The engine would take a list for a table: its values in order.
    for key in ("layout", "limits", "recovery"):
        if not isinstance(spec.get(key, {}), dict):
            raise LanguageError(f"language {spec.get('name')}: {key}: expected a table")
    flags.read_scopes(spec.get("name", ""), spec)
    a_break = spec.get("breaks")
    if "breaks" in spec and (not isinstance(a_break, str) or not a_break):
        raise LanguageError(f"language {spec.get('name')}: breaks: expected the name of a rule or lexeme")
    engine = {key: value for key, value in spec.items() if key not in _OF_LOWERING}
    try:
        text = json.dumps(engine, default=str, allow_nan=False)
    except (RecursionError, ValueError) as error:
        raise LanguageError(f"language definition: {_one_line(error)}") from error
    _core.check_definition(text)


def compile_definition(definition: Definition) -> _core.Language:
    """Compile a definition, or load it as an earlier run compiled it.

    The cache is keyed by the content's hash, the engine's version and the code here that lowers definitions. The
    imported grammar files must be unchanged. A damaged or foreign file is never used: it is made again. Raises
    LanguageError if the definition cannot be compiled.
    """
    path = _cache_path(definition)
    cached = None if path is None else _load(path, definition)
    if cached is not None:
        return cached
    sources = Sources(definition.folder)
    lowered = json.dumps(_lower(definition, sources))
    try:
        language = _core.Language(lowered)
    except LimitError as error:
        raise LanguageError(f"language {definition.name}: {error}") from error
    if path is not None:
        kept = {"imported": sources.hashes, "definition": lowered, "table": language.table().decode()}
        write_text(path, json.dumps(kept))
    return language


def _load(path: Path, definition: Definition) -> _core.Language | None:
    """Load the compiled form of an earlier run; return None if there is no such file or its sources have changed.

    The checksum finds damage; the engine checks for forgery.
    """
    text = read_text(path)
    if text is None:
        return None
    try:
        cached = json.loads(text)
        if Sources(definition.folder).have_changed(cached["imported"]):
            return None
        return _core.Language(cached["definition"], cached["table"].encode())
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
        return None


def lower(definition: Definition) -> dict[str, Any]:
    """Lower a definition to the engine's form: lexemes, BNF rules, layout (`LanguageSpec` in `rust_core/src/spec.rs`).

    Raises LanguageError if Lark refuses the grammar, or the TOML file names a symbol that the grammar lacks.
    """
    return _lower(definition, Sources(definition.folder))


def _lower(definition: Definition, sources: Sources) -> dict[str, Any]:
    # Lark is slow to import and not needed when the cache holds the language.
    from lark.lexer import PatternStr

    spec = definition.spec
    _check(spec)
    scopes = flags.read_scopes(definition.name, spec)
    terminals, defined, rules, ignored = _read_grammar(definition, sources, scopes)
    literals = {
        terminal.pattern.value: str(terminal.name)
        for terminal in terminals
        if isinstance(terminal.pattern, PatternStr) and not terminal.pattern.flags
    }
    names = LexemeNames(definition.name, literals, {str(terminal.name) for terminal in terminals}, defined)
    used = {str(symbol.name) for rule in rules for symbol in rule.expansion}
    parts = _parts(definition, names)
    modes, unused = names.modes(spec.get("modes", []), used | parts.keys())
    lexemes = []
    for terminal in terminals:
        if terminal.name in unused:
            continue
        lexeme: dict[str, Any] = {"name": terminal.name, "priority": terminal.priority}
        if literals.get(terminal.pattern.value) == terminal.name:
            lexeme["literal"] = terminal.pattern.value
        else:
            lexeme["pattern"] = terminal.pattern.to_regexp()
        if terminal.name in spec.get("shown", {}):
            lexeme["shown"] = spec["shown"][terminal.name]
        lexemes.append(lexeme)
    layout = spec.get("layout", {"rule": "none"})
    layout = None if layout.get("rule") == "none" else layout
    if layout is not None:
        lexemes.extend({"name": layout[kind]} for kind in ("indent", "dedent"))

    first = spec.get("first_lexemes", [])
    written = [(str(rule.origin.name), tuple(str(symbol.name) for symbol in rule.expansion)) for rule in rules]
    if "breaks" in spec:
        hidden = {name for name, _ in written if scopes and flags.is_condition(name)}
        bare = spec.get("matched", {}).get("symbol")
        written = breaks.with_breaks(definition.name, written, spec["breaks"], hidden, bare)
    if scopes:
        written = flags.with_copies(definition.name, spec["start"], written, scopes)
    marks, slotted = [], []
    if matched := spec.get("matched"):
        if layout is not None:
            raise LanguageError(f"language {definition.name}: matched: not in a language with a layout")
        matching = Matching(definition.name, spec["start"], written, matched)
        written, marks, slotted = matching.rules, matching.marks(), matching.slotted()
        modes = matching.in_modes(modes)
        lexemes.extend({"name": mark["name"]} for mark in marks)
    if parts:
        written = split(definition.name, spec["start"], written, parts)
    return {
        "name": definition.name,
        "start": spec["start"],
        "lexemes": lexemes,
        "ignore": list(ignored),
        "rules": [{"lhs": name, "rhs": list(symbols)} for name, symbols in written],
        "layout": layout and {key: value for key, value in layout.items() if key != "rule"},
        "brackets": [[names.literal("brackets", text) for text in pair] for pair in spec.get("brackets", [])],
        "soft_keywords": [names.literal("soft_keywords", text) for text in spec.get("soft_keywords", [])],
        **{key: spec[key] for key in _AS_WRITTEN if key in spec},
        "constructs": [_construct(key, name, names) for key, name in spec.get("constructs", {}).items()],
        "modes": modes,
        **({"first_lexemes": [names.lexeme("first_lexemes", text) for text in first]} if first else {}),
        **({"marks": marks, "slotted": slotted} if marks else {}),
    }


def _read_grammar(
    definition: Definition, sources: Sources, scopes: dict[str, str]
) -> tuple[list[Any], set[str], list[Any], list[str]]:
    """Read a grammar by Lark.

    Return its terminals, the names of all that it defines, its BNF rules, and the names of ignored terminals.

    Raises LanguageError if Lark refuses it, or it is above the limits.
    """
    from fim_server.language.definition.expansion import Counted

    sources.examine(definition.name, definition.grammar)
    # Terminals that only other terminals use are building blocks, not lexemes. No rule need use an error lexeme, or one
    # that is split.
    kept = {*definition.spec.get("error_lexemes", []), *definition.spec.get("split", {})}
    try:
        builder = Counted(definition.name, [sources])
        added = flags.templates(scopes) + (breaks.TEMPLATE if "breaks" in definition.spec else "")
        builder.load_grammar(definition.grammar + added, f"{definition.name}.lark")
        grammar = builder.build()
        a_break = definition.spec.get("breaks", "")
        starts = [definition.spec["start"], *([a_break] if a_break.islower() else [])]
        terminals, rules, ignored = grammar.compile(starts, kept | ({a_break} - set(starts)))
    except LanguageError:
        raise
    # What Lark does not expect in a grammar fails as whatever it happens to fail as: assertions, keys, recursion.
    except Exception as error:
        reason = _one_line(error)
        raise LanguageError(f"language {definition.name}: {reason or type(error).__name__}") from error
    return terminals, {str(name) for name, _ in grammar.term_defs}, _without_empty(rules, bool(scopes)), ignored


def _without_empty(rules: list[Any], has_flags: bool) -> list[Any]:
    """Return BNF rules without the nonterminals that stand for nothing, such as an empty argument of a template."""
    texts = {rule.origin for rule in rules if rule.expansion}
    empty = {rule.origin for rule in rules} - texts
    if has_flags:
        empty = {origin for origin in empty if not flags.is_condition(str(origin.name))}
    for rule in rules:
        rule.expansion = [symbol for symbol in rule.expansion if symbol not in empty]
    return [rule for rule in rules if rule.origin not in empty]


def _parts(definition: Definition, names: LexemeNames) -> dict[str, list[str]]:
    """Return the split lexemes with their parts, by their names.

    The text of a literal has to be that of its parts. Whether a pattern's texts are, is not checked.
    """
    found = {}
    for text, parts in definition.spec.get("split", {}).items():
        lexeme, parts_of = names.lexeme("split", text), [names.lexeme(f"split.{text}", part) for part in parts]
        literal = all(name in names.literals.values() for name in (lexeme, *parts_of))
        if len(parts) < 2 or (literal and "".join(parts) != text):
            raise LanguageError(f"language {definition.name}: split.{text}: its parts, put together, are not {text!r}")
        found[lexeme] = parts_of
    inside = {lexeme: set(parts) for lexeme, parts in found.items()}
    for middle in found:
        for within in inside.values():
            within |= inside[middle] if middle in within else set()
    if endless := next((lexeme for lexeme, within in inside.items() if lexeme in within), None):
        raise LanguageError(f"language {definition.name}: split.{endless}: it is among its own parts")
    return found


def _construct(key: str, name: str, names: LexemeNames) -> dict[str, Any]:
    rule, _, text = key.partition(" ")
    return {"rule": rule, "lexeme": names.literal(f"constructs.{key}", text) if text else None, "name": name}


def _cache_path(definition: Definition) -> Path | None:
    """Return the file of a compiled definition; None if the user wants no cache (FIM_SERVER_CACHE is empty)."""
    base = cache_folder()
    if base is None:
        return None
    # Where a grammar imports others, the same text in another folder is another grammar.
    folder = str(definition.folder) if "%import" in definition.grammar else None
    versions = [_CACHE_FORMAT, *_stamp_of(_core.__file__), hash_of_lowering(), *_stamp_of(_lark())]
    content = [*versions, folder, definition.grammar, definition.spec]
    digest = hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()[:32]
    # The name helps readers of the folder; it is the definition's, and may be any text.
    return base / f"{re.sub('[^a-z0-9]+', '_', definition.name.lower())[:32]}-{digest}.json"


def _stamp_of(file: str | None) -> tuple[int, int]:
    """Return the size and time of a module's file, so that a rebuilt engine or another Lark reads no old table.

    Their versions would take longer to find than the language to load.
    """
    if file is None:
        return 0, 0
    stat = Path(file).stat()
    return stat.st_size, stat.st_mtime_ns


def _lark() -> str | None:
    """Return the file of Lark that holds its version, without importing it."""
    found = find_spec("lark")
    return None if found is None else found.origin


def hash_of_lowering() -> str:
    """Return a hash of this folder's Python files, so that changed code never reads an old definition."""
    return _hash_of(_LOWERING)


@cache
def _hash_of(folder: Path) -> str:
    sources = sorted(folder.rglob("*.py"))
    return hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()


def _one_line(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "it nests too deeply"
    return " ".join(str(error).split())
