"""Language definitions: a Lark grammar and a TOML file, lowered to what the engine compiles.

Lark's own loader reads the grammar text and lowers EBNF to BNF; nothing here parses grammars.
"""

import hashlib
import json
import tempfile
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from fim_server import _core
from fim_server.errors import LanguageError
from fim_server.language.cache import cache_folder
from fim_server.language.versions import Versions

_LANGUAGES = Path(__file__).parents[1] / "languages"
_CACHE_FORMAT = 2
_AS_WRITTEN = ("strings", "comments", "quotes", "placeholder", "operators", "block_lines", "openings", "limits")
"""Keys of the TOML file that the engine gets as they are."""


@dataclass(frozen=True)
class Definition:
    """The two files of a language, read, without the lines that other versions of the language have.

    Attributes:
        name: The language's name.
        suffixes: File suffixes with their dot.
        grammar: The Lark grammar's text.
        spec: The TOML file's fields.
        version: The version that both are narrowed to; None is the newest, or that the language has no versions.
    """

    name: str
    suffixes: tuple[str, ...]
    grammar: str
    spec: dict[str, Any]
    version: str | None = None


def names() -> list[str]:
    """Names of the languages that come with the package."""
    return sorted(path.name for path in _LANGUAGES.iterdir() if (path / f"{path.name}.toml").is_file())


def read_builtin(name: str, version: str | None = None) -> Definition:
    """Reads a language that comes with the package.

    Raises:
        LanguageError: There is no such language, or no such version of it.
    """
    return read(*_builtin_files(name), version)


@cache
def builtin_versions(name: str) -> Versions:
    """The versions of a language that comes with the package.

    Raises:
        LanguageError: There is no such language.
    """
    return Versions.from_spec(tomllib.loads(_builtin_files(name)[1].read_text(encoding="utf-8")))


def _builtin_files(name: str) -> tuple[Path, Path]:
    if name not in names():
        known = ", ".join(names())
        raise LanguageError(f"unknown language {name!r}; known: {known}")
    return _LANGUAGES / name / f"{name}.lark", _LANGUAGES / name / f"{name}.toml"


def read(grammar_path: Path, spec_path: Path, version: str | None = None) -> Definition:
    """Reads a language from its two files, narrowed to one version of it (None: the newest).

    Raises:
        LanguageError: A file cannot be read, a key of the TOML file is wrong (it is named), or no such version.
    """
    try:
        grammar = grammar_path.read_text(encoding="utf-8")
        text = spec_path.read_text(encoding="utf-8")
        versions = Versions.from_spec(tomllib.loads(text))
        version = versions.narrowed(version)
        grammar = versions.select(grammar, version)
        spec = tomllib.loads(versions.select(text, version))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise LanguageError(f"language definition: {_one_line(error)}") from error
    _check(spec)
    return Definition(spec["name"], tuple(spec["suffixes"]), grammar, spec, version)


def _check(spec: dict[str, Any]) -> None:
    """Raises LanguageError where a TOML file has a key that is none, lacks one, or holds in it what it must not."""
    _core.check_definition(json.dumps(spec, default=str))


def compile_definition(definition: Definition) -> _core.Language:
    """Compiles a definition, or loads what an earlier run compiled.

    The cache is keyed by the content's hash and the engine's version; a file that does not load is rebuilt.

    Raises:
        LanguageError: The definition cannot be compiled.
    """
    path = _cache_path(definition)
    if path is not None:
        try:
            cached = json.loads(path.read_text(encoding="utf-8"))
            return _core.Language(cached["definition"], cached["table"].encode())
        except (OSError, ValueError, KeyError, TypeError):
            pass
    lowered = json.dumps(lower(definition))
    language = _core.Language(lowered)
    if path is not None:
        _write_cache(path, json.dumps({"definition": lowered, "table": language.table().decode()}))
    return language


def lower(definition: Definition) -> dict[str, Any]:
    """Lowers a definition to the engine's form: lexemes, BNF rules, layout (`LanguageSpec` in `rust_core/src/spec.rs`).

    Raises:
        LanguageError: Lark refuses the grammar, or the TOML file names what the grammar lacks.
    """
    # Lark is slow to import and not needed when the cache holds the language.
    from lark.exceptions import LarkError
    from lark.grammar import NonTerminal
    from lark.lexer import PatternStr
    from lark.load_grammar import load_grammar

    spec = definition.spec
    _check(spec)
    # Terminals that only other terminals use are building blocks, not lexemes; error lexemes are used by no rule.
    kept = set(spec.get("error_lexemes", []))
    try:
        grammar, _ = load_grammar(definition.grammar, f"{definition.name}.lark", [], False)
        terminals, rules, ignored = grammar.compile([spec["start"]], kept)
    except (LarkError, ValueError) as error:
        raise LanguageError(f"language {definition.name}: {_one_line(error)}") from error
    # A mode whose lexemes no rule uses (any more, in an older version of the language) is none.
    used = {str(symbol.name) for rule in rules for symbol in rule.expansion}
    declared = spec.get("modes", [])
    modes = [mode for mode in declared if used & set(mode["lexemes"])]
    unused = {name for mode in declared if mode not in modes for name in mode["lexemes"]}
    lexemes = []
    by_text = {}
    for terminal in terminals:
        if terminal.name in unused:
            continue
        lexeme: dict[str, Any] = {"name": terminal.name, "priority": terminal.priority}
        if isinstance(terminal.pattern, PatternStr) and not terminal.pattern.flags:
            lexeme["literal"] = terminal.pattern.value
            by_text[terminal.pattern.value] = terminal.name
        else:
            lexeme["pattern"] = terminal.pattern.to_regexp()
        lexemes.append(lexeme)
    layout = spec.get("layout", {"rule": "none"})
    layout = None if layout.get("rule") == "none" else layout
    if layout is not None:
        lexemes.extend({"name": layout[kind]} for kind in ("indent", "dedent"))

    def named(key: str, text: str) -> str:
        if text not in by_text:
            raise LanguageError(f"language {definition.name}: {key}: no rule uses the literal {text!r}")
        return str(by_text[text])

    return {
        "name": definition.name,
        "start": spec["start"],
        "lexemes": lexemes,
        "ignore": list(ignored),
        "rules": [
            {
                "lhs": f"{rule.origin.name}",
                "rhs": [
                    str(symbol.name) if not isinstance(symbol, NonTerminal) else f"{symbol.name}"
                    for symbol in rule.expansion
                ],
            }
            for rule in rules
        ],
        "layout": layout and {key: value for key, value in layout.items() if key != "rule"},
        "brackets": [[named("brackets", text) for text in pair] for pair in spec.get("brackets", [])],
        "soft_keywords": [named("soft_keywords", text) for text in spec.get("soft_keywords", [])],
        **{key: spec[key] for key in _AS_WRITTEN if key in spec},
        "constructs": [_construct(key, name, named) for key, name in spec.get("constructs", {}).items()],
        "modes": [_mode(mode, named) for mode in modes],
    }


def _mode(mode: dict[str, Any], named: Callable[[str, str], str]) -> dict[str, Any]:
    return {**mode, "without": [named("modes.without", text) for text in mode.get("without", [])]}


def _construct(key: str, name: str, named: Callable[[str, str], str]) -> dict[str, Any]:
    rule, _, text = key.partition(" ")
    return {"rule": rule, "lexeme": named(f"constructs.{key}", text) if text else None, "name": name}


def _cache_path(definition: Definition) -> Path | None:
    """Where a compiled definition is kept; None where the user wants no cache (FIM_SERVER_CACHE is empty)."""
    base = cache_folder()
    if base is None:
        return None
    content = json.dumps([_CACHE_FORMAT, _engine_version(), definition.grammar, definition.spec], sort_keys=True)
    return base / f"{definition.name}-{hashlib.sha256(content.encode()).hexdigest()[:32]}.json"


def _engine_version() -> str:
    """The engine's version, and its file's size and time, so that a rebuilt engine never reads an old table."""
    try:
        version = metadata.version("fim-server")
    except metadata.PackageNotFoundError:
        version = "unknown"
    stat = Path(_core.__file__ or __file__).stat()
    return f"{version}/{stat.st_size}/{stat.st_mtime_ns}"


def _write_cache(path: Path, text: str) -> None:
    """Writes atomically; a cache that cannot be written is only slower."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, delete=False) as file:
            file.write(text)
        Path(file.name).replace(path)
    except OSError:
        return


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
