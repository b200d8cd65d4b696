"""A fuzzer of notebooks: `python -m support.editors.notebook_fuzzer --edits 5000 --seed 1`.

Cells come, go, move, change their kind and language, and their texts are edited, several at once or while a request is
under way. After each change the server is asked for the notebook's cells, which have to be the editor's: names,
languages, texts and order. What is offered as `exact`, put into its cell, has to leave a notebook whose cells parse.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence

from fim_server.language_support.python import cells
from support.editors import editor
from support.editors.editor import LINE_BREAK, REQUEST_CANCELLED, Wire
from support.editors.editor_fuzzer import PROGRAM, Different, fits_python, whole
from support.editors.notebooks import INLINE, Cell, NotebookEditor, guarantee, notebook_server

SETTINGS = {"maxTokens": 4, "maxLineTokens": 4, "promptTokens": 64}
LINES = (
    "x = 1", "def f(a):", "    return a", "for row in rows:", "    print(row", "%matplotlib inline", "%timeit f(x)",
    "files = !ls", "!ls '''", "%%time", "from os import path",
    "%%bash", "%time f(", "f?", "if x:", "    %time f(x)", "await f(x)", "x;", "'''",
    "rows = [1, 2]", "total = sum(", ")", "é = '😀'", "", "# c", "%%capture out", "x = f'{x!r}'", "print(x, 'a')",
)  # fmt: skip
PIECES = (
    "x",
    "f(",
    ")",
    "\n",
    "    ",
    "%time ",
    "!",
    "= ",
    "'''",
    "?",
    "print(",
    "rows",
    " in ",
    "[",
    "]",
    "é",
    "😀",
    ":",
)
MENDED = (
    "x = 1\nprint(x", "def f(a):\n    return a", "for row in rows:\n    print(row", "%matplotlib inline\nimport os",
    "%timeit f(x", "files = !ls\nlen(files", "%%time\nf(x", "%%bash\nls (", "if x:\n    %time f(x", "await f(x",
    "x = [1, 2",
)  # fmt: skip
"""Cells as people leave them, but for a closing bracket that is typed last."""
CLOSERS = {"(": ")", "[": "]"}
LANGUAGES = ("python", "python", "python", "python", "python", "python", "markdown", "r", "rust")
MOST_CELLS, LARGEST = 12, 600


class Fuzzer:
    """A user who edits a notebook at random."""

    def __init__(self, wire: Wire, seed: int) -> None:
        self.wire, self.draw = wire, random.Random(f"notebooks {seed}")
        self.counts: Counter[str] = Counter()
        self.numbers = 0
        self.told: list[str] = []
        self.notebook = NotebookEditor(wire, "")

    @property
    def last(self) -> str:
        return "last: " + "; ".join(self.told)

    def text(self) -> str:
        text = "\n".join(self.draw.choice(LINES) for _ in range(self.draw.randint(0, 5)))
        return text.replace("\n", self.draw.choice(("\n", "\n", "\r\n")))

    def new_cell(self) -> Cell:
        return self.notebook.cell(self.text(), self.draw.choice(LANGUAGES))

    async def begin(self) -> None:
        self.numbers += 1
        self.notebook = NotebookEditor(self.wire, f"/fuzzed/{self.numbers} é.ipynb")
        texts = [(self.draw.choice(LANGUAGES), self.text()) for _ in range(self.draw.randint(1, 6))]
        await self.notebook.open(*texts)
        self.say(f"opened {len(texts)} cells")

    async def edit(self) -> None:
        """One change, the comparison, and perhaps a request."""
        kinds = ("text", "mend", "texts", "insert", "delete", "move", "several", "kind", "summary", "again")
        kind = self.draw.choices(kinds, (50, 25, 5, 6, 6, 6, 3, 3, 3, 1))[0]
        asked = await self.begin_asking() if self.draw.random() < 0.2 else None
        await getattr(self, f"_{kind}")()
        self.counts[kind] += 1
        await self.compare()
        if asked is not None:
            await self.take(*asked)
        if self.draw.random() < 0.4:
            found = await self.begin_asking()
            if found is not None:
                await self.take(*found)

    async def _text(self) -> None:
        cell = self.draw.choice(self.notebook.cells) if self.notebook.cells else None
        if cell is not None:
            await self.notebook.change(textContent=[self.change_of(cell)])

    async def _mend(self) -> None:
        """Replace cells that do not parse, as people do: most requests are made in a notebook that could parse."""
        told = []
        for cell in self.notebook.cells:
            units = cells.read(LINE_BREAK.sub("\n", cell.text)).units
            if cell.language == "python" and not all(map(fits_python, units)):
                text = self.draw.choice(MENDED)
                opener = max("([", key=text.rfind)
                closed = text + CLOSERS[opener] if text.count(opener) > text.count(CLOSERS[opener]) else text
                told.append(self.notebook.changed(cell, 0, len(cell.text), closed))
        self.say(f"mended {len(told)}")
        await self.notebook.change(textContent=told)

    async def _texts(self) -> None:
        """Changes of several cells in one message, and of one cell one after the other."""
        cells = [self.draw.choice(self.notebook.cells) for _ in range(3)] if self.notebook.cells else []
        await self.notebook.change(textContent=[self.change_of(cell) for cell in cells])

    async def _insert(self) -> None:
        if len(self.notebook.cells) < MOST_CELLS:
            at = self.draw.randint(0, len(self.notebook.cells))
            await self.notebook.splice(at, 0, [self.new_cell() for _ in range(self.draw.randint(1, 2))])
            self.say(f"inserted at {at}")

    async def _delete(self) -> None:
        at = self.draw.randint(0, len(self.notebook.cells))
        await self.notebook.splice(at, min(self.draw.randint(0, 2), len(self.notebook.cells) - at))
        self.say(f"deleted at {at}")

    async def _move(self) -> None:
        cells = list(self.notebook.cells)
        self.draw.shuffle(cells)
        await self.notebook.splice(0, len(cells), cells)
        self.say("moved")

    async def _several(self) -> None:
        """Some cells replaced by others, some of which stay, and a text changed in the same message."""
        known = self.notebook.cells
        start = self.draw.randint(0, len(known))
        count = self.draw.randint(0, len(known) - start)
        kept = [cell for cell in known[start : start + count] if self.draw.random() < 0.5]
        await self.notebook.splice(start, count, [*kept, self.new_cell()])
        self.say(f"replaced {count} at {start}")

    async def _kind(self) -> None:
        """A cell gets another language: it goes and comes under its name, in one message."""
        if self.notebook.cells:
            at = self.draw.randrange(len(self.notebook.cells))
            old = self.notebook.cells[at]
            cell = Cell(old.uri, old.text, self.draw.choice(LANGUAGES), old.version + 1)
            self.notebook.cells[at] = cell
            structure = {
                "array": {"start": at, "deleteCount": 1, "cells": [cell.in_notebook]},
                "didOpen": [cell.item],
                "didClose": [{"uri": cell.uri}],
            }
            await self.notebook.change(structure=structure)
            self.say(f"cell {at} is {cell.language}")

    async def _summary(self) -> None:
        told = [{**cell.in_notebook, "executionSummary": {"executionOrder": 1}} for cell in self.notebook.cells]
        await self.notebook.change(data=told)

    async def _again(self) -> None:
        await self.notebook.close()
        await self.begin()

    def change_of(self, cell: Cell) -> dict[str, object]:
        draw, text = self.draw, cell.text
        if len(text) > LARGEST:
            start, end, inserted = 0, len(text), self.text()
        else:
            start = whole(text, draw.randint(0, len(text)))
            end = max(start, whole(text, min(len(text), start + draw.choice((0, 0, 0, 1, 4, 20)))))
            inserted = draw.choice(PIECES) if draw.random() < 0.8 else self.text()
        if start and text[start - 1] == "\r":
            inserted = inserted.replace("\n", "\r\n")
        self.say(f"{self.notebook.cells.index(cell)}: {start}:{end} {inserted!r}")
        return self.notebook.changed(cell, start, end, inserted)

    async def begin_asking(self) -> tuple[str, Cell, list[tuple[Cell, str]]] | None:
        """Send a request; its number, its cell, and the notebook as it is then."""
        asked = [cell for cell in self.notebook.cells if cell.language == "python"]
        if not asked:
            return None
        self.numbers += 1
        cell = self.draw.choice(asked)
        place = cell.position(whole(cell.text, self.draw.randint(0, len(cell.text))))
        params = Wire.completion(cell.uri, place["line"], place["character"], self.draw.random() < 0.3)
        await self.wire.send(Wire.request(f"n{self.numbers}", INLINE, params))
        self.counts["asked"] += 1
        return f"n{self.numbers}", Cell(cell.uri, cell.text), [(one, one.text) for one in self.notebook.cells]

    async def take(self, number: str, cell: Cell, before: list[tuple[Cell, str]]) -> None:
        """Check that items labelled exact leave a notebook whose cells parse."""
        answer = await self.wire.answer(number)
        if "error" in answer:
            if answer["error"]["code"] != REQUEST_CANCELLED:
                raise Different(f"a request failed: {answer['error']}\n{self.last}")
            return
        for item in answer["result"]["items"]:
            self.counts[f"offers, {guarantee(item)}"] += 1
            if guarantee(item) != "exact":
                continue
            texts = [text for one, text in before if one.language == "python" and one.uri != cell.uri]
            for text in (*texts, cell.applied(item)):
                read = cells.read(LINE_BREAK.sub("\n", text))
                if not all(map(fits_python, read.units)):
                    raise Different(f"{item['insertText']!r} at {cell.text!r}: {text!r} does not parse\n{self.last}")

    async def compare(self) -> None:
        """The server's cells are the editor's."""
        self.numbers += 1
        answer = await self.wire.ask(f"n{self.numbers}", "test/cells", {"uri": self.notebook.uri})
        expected = [
            {"uri": cell.uri, "language": cell.language, "text": LINE_BREAK.sub("\n", cell.text)}
            for cell in self.notebook.cells
            if cell.language != "markdown"
        ]
        if answer.get("result") != expected:
            raise Different(f"{answer.get('result')}\nin place of\n{expected}\n{self.last}")

    def say(self, what: str) -> None:
        self.told = [*self.told[-9:], what]


async def fuzz(edits: int, seed: int) -> Counter[str]:
    """Make a number of changes. Raises Different."""
    before, editor.SERVE = editor.SERVE, PROGRAM
    try:
        async with notebook_server(**SETTINGS) as wire:
            fuzzer = Fuzzer(wire, seed)
            await fuzzer.begin()
            for _ in range(edits):
                await fuzzer.edit()
                wire.notes.clear()
            command = {"command": "fim-server.statistics", "arguments": []}
            answer = await wire.ask("statistics", "workspace/executeCommand", command)
            if answer["result"]["failed"]:
                raise Different(f"{answer['result']['failed']} requests failed")
            return fuzzer.counts
    finally:
        editor.SERVE = before


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="notebook_fuzzer.py", description="Edits notebooks of a server at random.")
    parser.add_argument("--edits", type=int, default=5_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    started = time.monotonic()
    try:
        counts = asyncio.run(fuzz(options.edits, options.seed))
    except Different as difference:
        print(f"seed {options.seed}: {difference}")
        return 1
    minutes = (time.monotonic() - started) / 60
    print(f"seed {options.seed}, {minutes:.1f} minutes: " + ", ".join(f"{n:,} {name}" for name, n in counts.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
