"""A few files to measure on, some of which their languages refuse."""

from __future__ import annotations

from pathlib import Path

from benchmarks.engine import json_documents

SOURCE = '''\
"""Cafés, in metres."""
from .. import thing  # a remark, é


@thing.cached
def area(width, *, height=(2,
                           3)):

    if width :
        return f"{width!r}" * height
    elif height: pass
    else:
        total = [1,
            2]
'''

GO_SOURCE = """\
// Package p has cafés, in metres.
package p

import "fmt"

func area(width, height int) (int, error) {
	if width < 0 || (height < 0 &&
		width > 0) {
		return 0, fmt.Errorf("%d is\\tno width", width) // é
	}
	all := []struct{ x int }{{1}, {x: 2}}
	for _, each := range all {
		width += each.x
	}
	return width * height, nil
}
"""

TYPED_SOURCE = '''"""A module."""

import os


def greet(name, *, mark="!"):
    """Say hello."""
    for letter in name:
        if letter == "(":
            print([letter, {"a": 1}])

    return "".join(("hello ", name, mark))


class Box:
    size = os.environ.get("SIZE")

    def fill(self, things):
        self.things = [thing for thing in things if thing]  # "those that are
        return self
'''
"""Code with holes of every kind."""


def write_corpus(folder: Path) -> Path:
    """Write three files of each language that parse, and one that does not."""
    for number in range(3):
        (folder / f"m{number}.py").write_text(SOURCE.replace("area", f"area_{number}"), encoding="utf-8")
        (folder / f"g{number}.go").write_text(GO_SOURCE.replace("area", f"area{number}"), encoding="utf-8")
        (folder / f"d{number}.json").write_text(json_documents.document(number), encoding="utf-8")
    (folder / "broken.py").write_text("def f(:\n")
    (folder / "broken.go").write_text("package p\nfunc f(\n")
    (folder / "broken.json").write_text("[NaN]")
    return folder
