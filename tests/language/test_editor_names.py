"""Editors' names of languages, with and without a file."""

from __future__ import annotations

import pytest

from fim_server import Language


@pytest.mark.parametrize(
    ("editor_id", "path", "name"),
    [
        ("javascriptreact", "", "jsx"),
        ("typescriptreact", "", "tsx"),
        ("typescript", "", "typescript"),
        ("JavaScript", "a.js", "JavaScript"),
        ("vue", "a.vue", "vue"),
        # The suffix decides between the variants of a definition, but for the first variant's.
        ("typescript", "/a/b.tsx", "tsx"),
        ("typescriptreact", "a.ts", "typescript"),
        ("typescriptreact", "a.d.ts", "typescript"),
        ("javascript", "a.jsx", "jsx"),
        ("javascript", "a.mts", "typescript"),
        ("javascriptreact", "a.js", "jsx"),
        ("typescript", "a.js", "typescript"),
        ("python", "a.ts", "python"),
    ],
)
def test_the_name_of_a_language_in_an_editor(editor_id: str, path: str, name: str) -> None:
    assert Language.name_for_editor(editor_id, path) == name
