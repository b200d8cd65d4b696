"""Imports that follow from edits of Python files."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import ndiff

import pytest

from fim_server.language_support.python.next_edits.import_edits import import_edits, imports_unknown
from fim_server.next_edit.edit_memory import Edit

URI = "file:///p/a.py"


def edited(
    before: str, old: str, new: str, uri: str = URI, others: Mapping[str, str] | None = None
) -> list[tuple[str, ...]]:
    """Replace the first occurrence of a text; return the lines that each proposed import edit takes away and adds."""
    start = before.index(old)
    source = before[:start] + new + before[start + len(old) :]
    first, line = before.rfind("\n", 0, start) + 1, before.count("\n", 0, start)
    end, stop = before.find("\n", start + len(old)), source.find("\n", start + len(new))
    edit = Edit(
        uri, line, before[first : len(before) if end < 0 else end], source[first : len(source) if stop < 0 else stop]
    )
    found: list[tuple[str, ...]] = []
    for one in import_edits(source, uri, [edit], others or {}):
        after = source[: one.start] + one.text + source[one.end :]
        changes = [line for line in ndiff(source.split("\n"), after.split("\n")) if line[2:].strip()]
        found.append(tuple("\n".join(line[2:] for line in changes if line[0] == sign) for sign in "-+"))
    return found


@pytest.mark.parametrize(
    ("imports", "gone", "left"),
    [
        ("import os\nimport sys\n", "import os", ""),
        ("import sys\nfrom x import os\n", "from x import os", ""),
        ("from x import a, os, sys\n", "from x import a, os, sys", "from x import a, sys"),
        ("from x import sys, os\n", "from x import sys, os", "from x import sys"),
        ("from x import (\n    a,\n    os,\n    sys,\n)\n", "    os,", ""),
        ("from x import b as os, sys\n", "from x import b as os, sys", "from x import sys"),
    ],
)
def test_an_import_without_a_use_goes(imports: str, gone: str, left: str) -> None:
    text = f"{imports}\n\ndef f(a):\n    return os.b(a, sys)\n"
    assert edited(text, "os.b(a, sys)", "a, sys") == [(gone, left)]


@pytest.mark.parametrize(
    ("text", "uri"),
    [
        ("import os  # noqa\nx = os.b\n", URI),
        ("import os\nx = os.b\n", "file:///p/__init__.py"),
        ("import os\nx = os.b\n__all__ = []\n", URI),
        ("from y import os as os\nx = os.b\n", URI),
        ("import os\nx = os.b\ny = 'os'\n", URI),
        ("import os\nx = os.b\ny = os\n", URI),
        ("try:\n    import os\nexcept ImportError:\n    pass\nx = os.b\n", URI),
        ("from __future__ import os\nx = os.b\n", URI),
        ("from y import (\n    z,\n    os,  # for others\n)\nx = os.b\n", URI),
    ],
)
def test_an_import_stays(text: str, uri: str) -> None:
    assert edited(text, "os.b", "1", uri) == []


def test_an_import_that_moves_stays() -> None:
    text = "import os\nimport b\n"
    edits = [Edit(URI, 2, "import os\nx = 1", "x = 1"), Edit(URI, 0, "import a", "import os")]
    assert import_edits(text, URI, edits, {}) == []


def test_an_imported_name_follows_its_last_use() -> None:
    text = "from x import first, sys\n\n\ny = first(sys)\n"
    assert edited(text, "first(sys)", "other(sys)") == [("from x import first, sys", "from x import other, sys")]


@pytest.mark.parametrize(
    ("imports", "use", "gone", "come"),
    [
        ("import json\nimport re\n", "os.b", "", "import os"),
        ("import json\n", "importlib.resources.files(a)", "", "import importlib.resources"),
        ("from x import a\n", "os.b", "", "import os"),
        ("import a\nimport b\n", "Thing(a)", "", "from x.y import Thing"),
        ("from x.y import Other, a\n", "Thing(a)", "from x.y import Other, a", "from x.y import Other, Thing, a"),
        ("from x.y import (\n    A,\n    b,\n)\n", "Thing(b)", "", "    Thing,"),
        ("from __future__ import a\n\nimport json\n", "np.b", "", "import numpy as np"),
    ],
)  # fmt: skip
def test_a_missing_import_comes(imports: str, use: str, gone: str, come: str) -> None:
    others = {"file:///q/b.py": "from x.y import (\n    Thing,\n    b,\n)\nimport numpy as np\nfrom .c import Far\n"}
    found = edited(f"{imports}\n\ny = 1\n", "y = 1", f"y = {use}", others=others)
    assert found == [(gone, come)]


@pytest.mark.parametrize(
    ("use", "why"),
    [
        ("Thing()", "two ways"),
        ("string", "a module's name may be a variable's"),
        ("Far()", "a relative import of another folder"),
        ("len(json)", "bound names"),
        ("Unknown()", "no way"),
    ],
)
def test_no_import_comes_where_it_is_unsure(use: str, why: str) -> None:
    others = {
        "file:///q/b.py": "from x import Thing\nfrom .c import Far\n",
        "file:///p/c.py": "from y import Thing\n",
    }
    assert edited("import json\n\ny = 1\n", "y = 1", f"y = {use}", others=others) == [], why


def test_a_relative_import_of_the_same_folder_comes() -> None:
    others = {"file:///p/c.py": "from .d import Near\n"}
    found = edited("import json\n\nfrom .a import B\n\ny = 1\n", "y = 1", "y = Near", others=others)
    assert found == [("", "from .d import Near")]


@pytest.mark.parametrize(
    ("use", "added"),
    [
        ("os.getcwd()", "import os"),
        ("os.path.join(a)", "import os"),
        ("xml.etree.ElementTree.parse(a)", "import xml.etree.ElementTree"),
        ("email.mime.text.MIMEText(a)", "import email.mime.text"),
        ("concurrent.futures.ThreadPoolExecutor()", "import concurrent.futures"),
        ("token.strip()", None),
        ("string.upper()", None),
        ("queue.append(a)", None),
        ("time.total_seconds()", None),
    ],
)
def test_a_standard_module_is_imported_for_its_own_members(use: str, added: str | None) -> None:
    found = edited("import sys\n\n\ndef f(a):\n    return 1\n", "1", use)
    assert found == ([] if added is None else [("", added)])


def test_no_built_in_name_is_imported_from_a_standard_module() -> None:
    assert imports_unknown("from typing import ", "list", ", Any\n")
    assert not imports_unknown("from typing import ", "Mapping", ", Any\n")
    assert not imports_unknown("from x import ", "list", "\n")
    assert not imports_unknown("x = ", "list", "\n")
