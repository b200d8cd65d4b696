"""Comments, strings and other text of JavaScript and its relatives, which editors treat apart from code."""

from __future__ import annotations

import pytest

from fim_server import Language


@pytest.mark.parametrize(
    ("variant", "left", "right", "inside"),
    [
        ("javascript", "f() // a", "\n", "comment"),
        ("javascript", "// a", "", "comment"),
        ("javascript", "/* a\n", " */ f()", "comment"),
        ("javascript", "f(/* a", " */)", "comment"),
        ("javascript", "#!/a", "\n", "comment"),
        ("javascript", "x = 'a", "'", "string"),
        ("javascript", "x = /a", "/", "string"),
        ("javascript", "x = a / ", "b", None),
        ("javascript", "x = `a", "`", "string"),
        ("javascript", "x = `${a}b", "`", "string"),
        ("javascript", "x = `a${f(", ")}b`", None),
        ("typescript", "type A = `a", "${B}`", "string"),
        ("typescript", "let x: 'a", "'", "string"),
        ("jsx", "x = <p>a", "</p>", "string"),
        ("jsx", "x = <p a='b", "'/>", "string"),
        ("tsx", "x = <p a='b\nc", "'/>", "string"),
        ("tsx", "x = <p a={", "b}/>", None),
        ("tsx", "x = <p>{a.", "b}</p>", None),
        ("tsx", "x = <p ", "/>", None),
    ],
)
def test_inside_of_comments_and_strings(variant: str, left: str, right: str, inside: str | None) -> None:
    assert Language.load(variant).open(left, right).inside == inside
