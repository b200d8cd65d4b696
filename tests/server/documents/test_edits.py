"""Random edits of real files, typed as in VS Code: whatever is shown meanwhile gives a text that parses.

Unless the text around the cursor is broken already, and then the item says so.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator
from importlib.util import find_spec
from pathlib import Path

import pytest
import pytest_asyncio
from lsprotocol import types

from fim_server import Language
from support.editors.editor import (
    AUTOMATIC,
    CLOSERS,
    INVOKED,
    PYTHON,
    Client,
    Editor,
    guarantee_of,
    in_comment,
    parses,
    serving,
    written,
)
from support.editors.typist import PAIRS, Typist

pytestmark = pytest.mark.asyncio(loop_scope="module")

EDITS = 5000 if os.environ.get("FIM_SERVER_LONG") else 150
EDITS_OF_A_FILE = 50
MODULES = (
    "bisect",
    "colorsys",
    "fnmatch",
    "reprlib",
    "linecache",
    "sched",
    "getopt",
    "quopri",
    "rlcompleter",
    "netrc",
    "symtable",
)
F_PREFIX = re.compile(r"(?<![\w'\"])(?:[fF]([rR]?)|([rR])[fF])(?=['\"])")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client() -> AsyncIterator[Client]:
    options = {"pythonVersion": PYTHON, "debounceMs": 0, "maxTokens": 20, "maxLineTokens": 10, "minConfidence": 0}
    async with serving(options=options) as client:
        yield client


def sources() -> list[tuple[str, str]]:
    """Files of the standard library, of moderate size."""
    found = [(name, find_spec(name)) for name in MODULES]
    files = [(name, Path(spec.origin)) for name, spec in found if spec is not None and spec.origin is not None]
    texts = [(name, path.read_text(encoding="utf-8")) for name, path in files]
    return [(name, text) for name, text in texts if 2000 < len(text) < 15000]


def fits_python(text: str) -> bool:
    """Return whether Python accepts a text. Definitions before 3.12 do not look into f-strings; Python does."""
    return parses(text) or (sys.version_info < (3, 12) and parses(F_PREFIX.sub(r"\1\2", text)))


class Replay:
    """One file being edited, and the checks."""

    def __init__(self, client: Client, name: str, source: str, seed: int, counts: Counter[str]) -> None:
        self.random = random.Random(seed)
        self.client, self.name, self.counts = client, name, counts
        self.typist = Typist(Editor(client, f"edited/{name}_{seed}.py", source))
        self.lines = [line.strip() for line in source.splitlines() if line.strip()]
        self.to_type = ""
        self.shown: list[types.InlineCompletionItem] = []
        self.unheeded: asyncio.Task[list[types.InlineCompletionItem]] | None = None
        self.told = ""
        self.problems: list[tuple[str, ...]] = []

    async def edit(self) -> None:
        """Something happens to the text or the cursor, and the editor asks."""
        self.told = self.act()
        self.counts["edits"] += 1
        chance = self.random.random()
        if chance < 0.04:  # asked, and overtaken by the next keystroke
            self.unheeded = asyncio.ensure_future(self.typist.editor.ask(self.typist.cursor, kind=AUTOMATIC))
            await asyncio.sleep(self.random.choice([0, 0.01, 0.05]))
            self.shown = []
        elif chance < 0.1:
            self.shown = []
        else:
            await self.ask(INVOKED if chance < 0.15 else AUTOMATIC)

    async def ask(self, kind: types.InlineCompletionTriggerKind) -> None:
        editor, cursor = self.typist.editor, self.typist.cursor
        self.shown = await editor.ask(cursor, kind=kind)
        if self.unheeded is not None:
            await self.unheeded
            self.unheeded = None
        assert len(self.shown) <= (1 if kind is AUTOMATIC else 3)
        assert len({written(item) for item in self.shown}) == len(self.shown)
        self.counts["asked"] += 1
        if self.shown:
            self.counts[self.client.last["origin"]] += 1
        for item in self.shown:
            self.check(item)

    def check(self, item: types.InlineCompletionItem) -> None:
        """The guarantee that an item names holds, and it names the best one there is."""
        text, cursor = self.typist.text, self.typist.cursor
        guarantee = guarantee_of(item)
        self.counts["shown"] += 1
        self.counts[guarantee] += 1
        applied = self.typist.editor.applied(item, cursor)
        _, end = self.typist.editor.span(item)
        if end > cursor:
            self.counts["covering"] += 1
        context = (
            self.name,
            guarantee,
            self.told,
            written(item),
            text[max(0, cursor - 80) : cursor] + "|" + text[cursor:][:80],
        )
        if guarantee == "exact":
            fits = fits_python(applied)
            self.expect(fits, "does not parse", context)
            rest = text[end:].split("\n", 1)[0].strip()
            if fits and rest and not rest.startswith("#") and not in_comment(text[:end], end - 1):
                behind = cursor + len(written(item))
                self.expect(not in_comment(applied, behind), "comments out what follows", context)
        else:
            session = Language.load("python", PYTHON).open(text[:cursor], text[cursor:])
            self.expect(session.guarantee == "none", f"{guarantee}, where all is well", context)
            self.expect(end > cursor or not doubled(text, cursor, written(item)), "doubles a bracket", context)

    def expect(self, holds: bool, problem: str, context: tuple[str, ...]) -> None:
        if not holds:
            self.problems.append((problem, *context))

    def act(self) -> str:
        """One random edit."""
        typist, choose = self.typist, self.random
        if self.to_type and choose.random() < 0.85:
            typist.press(self.to_type[0])
            self.to_type = self.to_type[1:]
            return "typed on"
        self.to_type = ""
        chance = choose.random()
        if self.shown and chance < 0.35:
            item = choose.choice(self.shown)
            if choose.random() < 0.4 and typist.cursor == typist.editor.span(item)[0]:
                typist.accept_word(item)
                return f"accepted a word of {written(item)!r}"
            if choose.random() < 0.3:
                self.to_type = written(item)  # typed by hand instead
                return "began to type what is shown"
            typist.accept(item)
            return f"accepted {written(item)!r}"
        if chance < 0.55:
            at = choose.choice([found.start() for found in re.finditer("\n|$", typist.text)])
            typist.cursor = at
            if choose.random() < 0.6:
                typist.press("\n")
            self.to_type = choose.choice(self.lines)
            return "went to a line's end"
        if chance < 0.65:
            typist.press(choose.choice("()[]{}\"'"))
            return "typed a bracket"
        if chance < 0.7:
            typist.press("\n")
            return "pressed Enter"
        if chance < 0.78:
            typist.backspace()
            return "pressed backspace"
        if chance < 0.82:
            end = min(len(typist.text), typist.cursor + choose.randint(1, 30))
            typist.replace(typist.cursor, end, "")
            return "deleted"
        if chance < 0.9:
            for _ in range(choose.randint(1, 8)):
                typist.undo()
            return "took back"
        typist.cursor = choose.randint(0, len(typist.text))
        return "jumped"

    def mend(self) -> None:
        """Take back what made the file unparsable, as people do."""
        while self.typist.history and not fits_python(self.typist.text):
            self.typist.undo()
        self.to_type = ""


def doubled(text: str, cursor: int, middle: str) -> bool:
    """Return whether a middle closes a bracket that the rest of the line closes again; simple lines only."""
    start = text.rfind("\n", 0, cursor) + 1
    stop = text.find("\n", cursor)
    line = text[start : len(text) if stop < 0 else stop]
    if "\n" in middle or any(character in line + middle for character in "\"'#\\"):
        return False
    inserted = text[start:cursor] + middle + text[cursor : len(text) if stop < 0 else stop]
    return is_balanced(line) and text[cursor : cursor + 1] in set(CLOSERS) and not is_balanced(inserted)


def is_balanced(line: str) -> bool:
    opened = []
    for character in line:
        if character in "([{":
            opened.append(PAIRS[character])
        elif character in ")]}" and (not opened or opened.pop() != character):
            return False
    return not opened


async def test_random_edits(client: Client) -> None:
    await client.is_ready()
    counts: Counter[str] = Counter()
    started = time.monotonic()
    files = sources()
    assert len(files) >= 5
    problems: list[tuple[str, ...]] = []
    seed = 0
    while counts["edits"] < EDITS:
        name, source = files[seed % len(files)]
        replay = Replay(client, name, source, seed, counts)
        for number in range(EDITS_OF_A_FILE):
            await replay.edit()
            if number % 10 == 9 and replay.random.random() < 0.9:
                replay.mend()
        replay.typist.editor.close()
        problems += replay.problems
        seed += 1
    seconds = time.monotonic() - started
    print(f"{seconds:.0f} s: " + ", ".join(f"{count} {name}" for name, count in counts.items()))
    print(dict(Counter(problem for problem, *_ in problems)))
    assert problems == []
    assert counts["shown"] >= counts["edits"] // 4
    assert counts["exact"] > counts["shown"] // 3
    assert counts["cache"] + counts["prefetch"] > 0
    statistics = await client.run("statistics")
    assert statistics["failed"] == 0
    assert "Traceback" not in client.stderr.decode()
