"""Texts in CPython's own tests."""

from __future__ import annotations

import ast
import doctest
import sysconfig
import textwrap
import warnings
from functools import cache
from pathlib import Path

LIBRARY = Path(sysconfig.get_path("stdlib"))


def words(text: str) -> list[str]:
    return text.split()


SYNTAX_TESTS = words(
    "test_grammar test_syntax test_fstring test_exceptions test_positional_only_arg test_keywordonlyarg "
    "test_named_expressions test_patma test_except_star test_unpack test_unpack_ex test_string_literals "
    "test_int_literal test_bytes test_ast test_genexps test_listcomps test_dictcomps test_setcomps test_eof "
    "test_with test_coroutines test_generators test_decorators test_augassign test_subclassinit test_pep646_syntax "
    "test_type_comments test_unicode_identifiers test_tokenize test_compile test_cmd_line test_codeop test_scope "
    "test_global test_super test_extcall test_lambda test_dis test_symtable test_peg_generator test_source_encoding"
)


def read(path: Path) -> str | None:
    """The file's text, or None where it is not UTF-8."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return None


@cache
def texts_in_cpythons_own_tests() -> tuple[str, ...]:
    """Every string constant and doctest example of CPython's syntax tests, valid or not, as a whole text."""
    folder = LIBRARY / "test"
    texts: dict[str, None] = {}
    for name in SYNTAX_TESTS:
        for path in (folder / f"{name}.py", *sorted((folder / name).glob("*.py"))):
            text = read(path) if path.exists() else None
            if text is None:
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse(text)
            for node in ast.walk(tree):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    texts[node.value] = None
                    texts[textwrap.dedent(node.value)] = None
                    if ">>>" in node.value:
                        try:
                            examples = doctest.DocTestParser().get_examples(node.value)
                        except ValueError:
                            continue
                        texts |= {example.source: None for example in examples}
    return tuple(text for text in texts if len(text) < 10_000)
