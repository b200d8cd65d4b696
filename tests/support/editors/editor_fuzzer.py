"""A fuzzer of edits: `python -m support.editors.editor_fuzzer --edits 10000 --seed 1`.

Several documents are edited at random through a server process: incremental changes, several in one message, whole
texts, undone and redone. The texts have characters of one to four bytes, halves of surrogate pairs, and line breaks of
each kind; positions are UTF-16. Some requests in between are cancelled. After each edit the server returns its text,
which has to be the editor's. Each suggestion, put into the text of its request, has to parse where its guarantee says
so.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.server.played_editor import common
from support.editors import editor
from support.editors.editor import LINE_BREAK, PYTHON, REQUEST_CANCELLED, Wire, parses, wired
from support.engine.corpus import sources
from support.engine.session_fuzzer import PIECES

PROGRAM = [sys.executable, str(Path(__file__).parents[1] / "servers" / "server_telling_texts.py")]
SETTINGS = {"pythonVersion": PYTHON, "maxTokens": 4, "maxLineTokens": 4, "promptTokens": 64, "debounceMs": 0}
INLINE, CHANGE = "textDocument/inlineCompletion", "textDocument/didChange"
DOCUMENTS = 6
LIMIT = 5_000  # bytes of a file
LARGEST = 12_000  # characters; a document that has grown beyond them is replaced
BREAKS = ("\n", "\n", "\r\n", "\r")
EXOTIC = ("é", "变", "😀", "a\u0301", "\u2028", "\x0b", "\x85", "𝒳 = 1", "\f", "\ufeff", "\t", "'😀'")
F_PREFIX = re.compile(r"(?<![\w'\"])(?:[fF]([rR]?)|([rR])[fF])(?=['\"])")
PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
PATIENCE = 120.0


class Different(Exception):
    """The server has another text than the editor, or an offer breaks its promise."""


@dataclass
class Change:
    start: int
    end: int
    text: str


@dataclass
class Document:
    """A document as an editor has it whose texts are of UTF-16 units: a character may be two, and one of them go."""

    uri: str
    text: str
    """With each half of a surrogate pair as a character of its own."""
    line_break: str
    version: int = 1
    cursor: int = 0
    undone: list[Change] = field(default_factory=list)
    done: list[Change] = field(default_factory=list)

    def position(self, offset: int) -> dict[str, int]:
        lines = LINE_BREAK.split(self.text[:offset])
        return {"line": len(lines) - 1, "character": len(lines[-1])}

    def offset(self, position: dict[str, int]) -> int:
        starts = [0, *(found.end() for found in LINE_BREAK.finditer(self.text))]
        start = starts[position["line"]]
        line = LINE_BREAK.split(self.text[start:], maxsplit=1)[0]
        return start + min(position["character"], len(line))

    def apply(self, change: Change) -> tuple[dict[str, Any], Change]:
        """Makes a change; gives it as the protocol has it, and what takes it back."""
        span = {"start": self.position(change.start), "end": self.position(change.end)}
        back = Change(change.start, change.start + len(change.text), self.text[change.start : change.end])
        self.text = self.text[: change.start] + change.text + self.text[change.end :]
        self.cursor = change.start + len(change.text)
        return {"range": span, "text": change.text}, back


@dataclass
class Asked:
    """A request, and the text that it was made in."""

    number: str
    document: Document
    text: str
    cursor: int
    cancelled: bool = False


class Fuzzer:
    """Random editor of documents."""

    def __init__(self, wire: Wire, seed: int) -> None:
        self.wire, self.draw = wire, random.Random(f"edits {seed}")
        self.files = sources(random.Random(f"edited files {seed}"), LIMIT)
        self.documents: list[Document] = []
        self.counts: Counter[str] = Counter()
        self.asked: list[Asked] = []
        self.numbers = 0
        self.told: list[str] = []
        """Last operations, for the report."""

    def number(self) -> str:
        self.numbers += 1
        return f"n{self.numbers}"

    async def begin(self) -> None:
        for _ in range(DOCUMENTS):
            await self.open()

    async def open(self) -> None:
        line_break = self.draw.choice(BREAKS)
        text = units(LINE_BREAK.sub("\n", next(self.files).text).replace("\n", line_break))
        document = Document(f"file:///edited/{self.number()} é.py", text, line_break)
        self.documents.append(document)
        await self.wire.open(document.uri, document.text)
        self.counts["opened"] += 1

    async def edit(self) -> None:
        """One edit, the comparison, and perhaps a request."""
        draw = self.draw
        document = draw.choice(self.documents)
        if len(document.text) > LARGEST or draw.random() < 0.005:
            await self.close(document)
            await self.open()
            document = self.documents[-1]
        changes = self.changes(document)
        document.version += 1
        identity = {"uri": document.uri, "version": document.version}
        await self.wire.send(Wire.note(CHANGE, {"textDocument": identity, "contentChanges": changes}))
        self.counts["edits"] += 1
        if draw.random() < 0.6:
            await self.ask(document)
        await self.compare(document)
        if len(self.asked) > 3 or draw.random() < 0.4:
            await self.take_answers()

    def changes(self, document: Document) -> list[dict[str, Any]]:
        """Edit a document, and return the changes that report it: one range, several, or the whole text."""
        draw = self.draw
        match draw.choices(("one", "several", "whole", "undo", "redo", "mend", "half"), (60, 8, 2, 16, 10, 10, 6))[0]:
            case "mend" if document.done and not fits_python(LINE_BREAK.sub("\n", characters(document.text))):
                # As people do: so most of what is asked is asked of files that could parse.
                return [self.step(document, document.done, document.undone) for _ in range(len(document.done))]
            case "undo" if document.done:
                return [self.step(document, document.done, document.undone) for _ in range(self.steps(document.done))]
            case "redo" if document.undone:
                count = self.steps(document.undone)
                return [self.step(document, document.undone, document.done) for _ in range(count)]
            case "whole":
                document.text = self.changed(document).text + document.text
                document.done, document.undone = [], []
                document.cursor = min(document.cursor, len(document.text))
                self.say("whole text")
                return [{"text": document.text}]
            case "half":
                return [self.make(document, change) for change in self.halved(document)]
            case "several":
                return [self.make(document, self.changed(document)) for _ in range(draw.randint(2, 4))]
            case _:
                return [self.make(document, self.changed(document))]

    def steps(self, history: Sequence[Change]) -> int:
        return self.draw.randint(1, min(5, len(history)))

    def step(self, document: Document, source: list[Change], target: list[Change]) -> dict[str, Any]:
        told, back = document.apply(source.pop())
        target.append(back)
        self.say("undone or done again")
        return told

    def make(self, document: Document, change: Change) -> dict[str, Any]:
        told, back = document.apply(change)
        document.done.append(back)
        document.undone = []
        self.say(f"{change.start}:{change.end} {change.text!r}")
        return told

    def changed(self, document: Document) -> Change:
        """A random change; never between the two characters of one line break."""
        draw, text = self.draw, document.text
        kind = draw.random()
        at = document.cursor if kind < 0.55 else draw.randint(0, len(text))
        start = whole(text, min(at, len(text)))
        end = whole(text, min(len(text), start + draw.choice((0, 0, 0, 0, 1, 2, 8, 40))))
        if kind > 0.9:
            inserted = text[end : end + draw.randint(0, 60)]
        else:
            pieces = EXOTIC if draw.random() < 0.1 else PIECES["python"]
            inserted = "".join(draw.choice(pieces) for _ in range(draw.choice((0, 1, 1, 1, 2, 5))))
        inserted = inserted.replace("\0", "")
        inserted = units(LINE_BREAK.sub("\n", inserted).replace("\n", document.line_break))
        return Change(start, max(start, end), inserted)

    def halved(self, document: Document) -> list[Change]:
        """Half of a surrogate pair deleted, and mostly typed again; where there is no pair, after one was typed."""
        draw, text, typed = self.draw, document.text, []
        pairs = [found.start() for found in PAIR.finditer(text)]
        if not pairs:
            high, low = list(units("😀"))
            pairs = [whole(text, min(document.cursor, len(text)))]
            typed = [Change(pairs[0], pairs[0], high), Change(pairs[0] + 1, pairs[0] + 1, low)]
            text = text[: pairs[0]] + high + low + text[pairs[0] :]
        self.counts["halved"] += 1
        at = draw.choice(pairs) + draw.randint(0, 1)
        between = draw.choice(("", "", "x"))
        again = [Change(at, at + len(between), text[at])] if draw.random() < 0.7 else []
        return [*typed, Change(at, at + 1, between), *again]

    async def ask(self, document: Document) -> None:
        draw = self.draw
        cursor = document.cursor if draw.random() < 0.8 else draw.randint(0, len(document.text))
        cursor = whole(document.text, cursor)
        at = document.position(cursor)
        asked = Asked(self.number(), document, document.text, cursor)
        params = Wire.completion(document.uri, at["line"], at["character"], draw.random() < 0.1)
        await self.wire.send(Wire.request(asked.number, INLINE, params))
        self.asked.append(asked)
        self.counts["asked"] += 1
        if draw.random() < 0.3:
            await asyncio.sleep(draw.choice((0, 0, 0.002, 0.01)))
            await self.wire.send(Wire.note("$/cancelRequest", {"id": asked.number}))
            asked.cancelled = True
            self.counts["cancelled"] += 1
        if draw.random() < 0.01:
            argument = {"uri": document.uri, "position": at, "text": draw.choice(PIECES["python"])}
            command = {"command": "fim-server.explainAt", "arguments": [argument]}
            answer = await self.wire.ask(self.number(), "workspace/executeCommand", command, PATIENCE)
            if "error" in answer and is_sound(characters(document.text)):
                raise Different(f"an explanation failed: {answer['error']}\n{self.last}")
            self.counts["explained"] += 1

    async def compare(self, document: Document) -> None:
        """The server's text is the editor's."""
        answer = await self.wire.ask(self.number(), "test/text", {"uri": document.uri}, PATIENCE)
        expected = LINE_BREAK.sub("\n", characters(document.text))
        if answer.get("result") != {"text": expected, "version": document.version}:
            found = str((answer.get("result") or {}).get("text", ""))
            at = common(found, expected)
            shown = [text[max(0, at - 40) : at + 40] for text in (found, expected)]
            raise Different(f"{document.uri}: {shown[0]!r} in place of {shown[1]!r}\n{self.last}")

    async def take_answers(self) -> None:
        for asked in self.asked:
            answer = await self.wire.answer(asked.number, PATIENCE)
            if "error" in answer:
                if answer["error"]["code"] != REQUEST_CANCELLED or not asked.cancelled:
                    # One that the next request has overtaken is answered with nothing, not with an error.
                    raise Different(f"a request failed: {answer['error']}\n{self.last}")
                self.counts["answered as cancelled"] += 1
                continue
            for item in answer["result"]["items"]:
                self.check(asked, item)
        self.asked = []

    def check(self, asked: Asked, item: dict[str, Any]) -> None:
        """Check that suggestions parse at their request's place if their guarantee says so."""
        before = Document(asked.document.uri, asked.text, asked.document.line_break)
        start, end = before.offset(item["range"]["start"]), before.offset(item["range"]["end"])
        (argument,) = item["command"]["arguments"]
        self.counts[f"offers, {argument['guarantee']}"] += 1
        if not start <= asked.cursor <= end:
            raise Different(f"an offer at {start}:{end}, not at {asked.cursor}\n{self.last}")
        if argument["guarantee"] == "exact":
            text = LINE_BREAK.sub("\n", characters(asked.text[:start] + item["insertText"] + asked.text[end:]))
            if not fits_python(text):
                near = asked.text[max(0, start - 60) : start], item["insertText"], asked.text[end : end + 60]
                raise Different(f"an offer does not parse: {near!r}\n{self.last}")

    async def close(self, document: Document) -> None:
        await self.take_answers()
        self.documents.remove(document)
        await self.wire.send(Wire.note("textDocument/didClose", {"textDocument": {"uri": document.uri}}))
        self.counts["closed"] += 1

    def say(self, what: str) -> None:
        self.told = [*self.told[-9:], what]

    @property
    def last(self) -> str:
        return "last: " + "; ".join(self.told)


def whole(text: str, offset: int) -> int:
    """An offset that is not inside of a line break."""
    return offset - 1 if text[offset - 1 : offset + 1] == "\r\n" else offset


def units(text: str) -> str:
    """A text with each half of a surrogate pair as a character of its own."""
    data = text.encode("utf-16-le", "surrogatepass")
    return "".join(chr(data[at] | data[at + 1] << 8) for at in range(0, len(data), 2))


def characters(text: str) -> str:
    """A text with each surrogate pair as one character."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def is_sound(text: str) -> bool:
    """Return whether no half of a surrogate pair stands by itself."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def fits_python(text: str) -> bool:
    """Return whether Python takes a text. The definitions before 3.12 do not look into f-strings; Python does."""
    return is_sound(text) and (parses(text) or (sys.version_info < (3, 12) and parses(F_PREFIX.sub(r"\1\2", text))))


async def fuzz(edits: int, seed: int, minutes: float | None = None) -> Counter[str]:
    """So many edits, or as many as there is time for; raises Different."""
    before, editor.SERVE = editor.SERVE, PROGRAM
    try:
        async with wired("--model=embedded") as (server, wire):
            await wire.initialize(**SETTINGS)
            await wire.is_ready()
            fuzzer = Fuzzer(wire, seed)
            await fuzzer.begin()
            started = said = time.monotonic()
            while fuzzer.counts["edits"] < edits and (minutes is None or time.monotonic() < started + 60 * minutes):
                await fuzzer.edit()
                wire.notes.clear()
                if time.monotonic() > said + 60:
                    said = time.monotonic()
                    print(dict(fuzzer.counts), file=sys.stderr, flush=True)
            await fuzzer.take_answers()
            command = {"command": "fim-server.statistics", "arguments": []}
            answer = await wire.ask("statistics", "workspace/executeCommand", command)
            if answer["result"]["failed"] or "Traceback" in server.errors.decode():
                raise Different(f"the server failed: {server.errors.decode()[-2000:]}")
            answer = await wire.ask("kept", "test/kept", {})
            fuzzer.counts["messages kept"] = answer["result"]
            return fuzzer.counts
    finally:
        editor.SERVE = before


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="editor_fuzzer.py", description="Edits documents of a server at random.")
    parser.add_argument("--edits", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float)
    options = parser.parse_args(arguments)
    started = time.monotonic()
    try:
        counts = asyncio.run(fuzz(options.edits, options.seed, options.minutes))
    except Different as difference:
        print(f"seed {options.seed}: {difference}")
        return 1
    minutes = (time.monotonic() - started) / 60
    print(f"seed {options.seed}, {minutes:.1f} minutes: " + ", ".join(f"{n:,} {name}" for name, n in counts.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
