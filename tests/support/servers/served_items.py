"""A fuzzer of the items that the server sends: `python -m support.servers.served_items --items 20000 --seed 0`.

Lines of real files are cut as an editor leaves them (:mod:`served_places`). A server process is asked there: with and
without a trigger, for alternatives, as an editor without inline completion, after partial acceptance. Its items are
applied as an editor applies them, and have to keep the invariants of :mod:`served_checks`. With `--model texts`, the
default, the model writes texts that often break: the true rest with one fault, closers, lines from below, blanks,
control characters, and noise. Other names are those of `fim-server models`.

Prints the counts and the violations, each made smaller, and ends with status 1 where there are any.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fim_server.errors import JudgeError
from support.editors import editor
from support.editors.editor import LINE_BREAK, PYTHON, SETTINGS, Wire, wired
from support.editors.notebooks import SYNCHRONIZES, NotebookEditor
from support.servers.served_cells import Notebook, notebook
from support.servers.served_checks import (
    Document,
    Item,
    Seen,
    Verdicts,
    Violation,
    applied,
    court,
    examine,
    inline_item,
    list_item,
    lsp4ij_item,
)
from support.servers.served_places import (
    BALANCED_LANGUAGES,
    KINDS,
    LANGUAGES,
    SUFFIXES,
    Cutter,
    Place,
    Texts,
    broken,
)

PROGRAM = [sys.executable, str(Path(__file__).with_name("served_program.py"))]
PATIENCE = 120.0
ON_REQUEST = ("json", *BALANCED_LANGUAGES)
"""Languages that wait for a request by default."""
BATCH = 25
"""Cases whose items are judged together, and that share their settings."""
TEXTS, OWN_TEXTS = 60, 6
"""Programs of a language that are cut."""
SHRUNK, SHRINKING = 2, 60
"""Violations of a kind that are made smaller, and requests for each."""
ACCEPTED = ("", "", "", "word", "line", "word word")
"""Parts of an item to accept before the next request."""
NOTEBOOK = "notebook"
"""A client whose documents are cells; of files in Python alone."""
LSP4IJ = "LSP4IJ"
"""JetBrains' editors, which replace nothing right of the cursor."""
CLIENTS: dict[str, dict[str, Any]] = {
    "inline": {"inlineCompletion": {}},
    "snippets": {"completion": {"completionItem": {"snippetSupport": True}}},
    "as is": {"completion": {"completionItem": {"insertTextModeSupport": {"valueSet": [1]}}}},
    "plain": {"completion": {"completionItem": {}}},
    NOTEBOOK: {"inlineCompletion": {}},
    LSP4IJ: {"inlineCompletion": {}},
}
OFTEN = ("inline",) * 5 + tuple(CLIENTS)
SHORT = {"maxTokens": 24, "maxLineTokens": 16, "promptTokens": 128, "deadlineMs": 0, "invokedDeadlineMs": 0}


@dataclass(frozen=True)
class Case:
    """Requests at a place.

    Attributes:
        number: Of the case, from 0.
        place: The place of the first request.
        client: One of :data:`CLIENTS`.
        invoked: Whether the user asks.
        newline: The document's line break.
        texts: What the model is to write, the likeliest first.
        noise: The seed of what it writes elsewhere.
        accepted: The part to accept before the next request, one of :data:`ACCEPTED`.
        settings: The server's.
    """

    number: int
    place: Place
    client: str
    invoked: bool
    newline: str
    texts: tuple[str, ...]
    noise: int
    accepted: str
    settings: tuple[tuple[str, Any], ...]


# --- what is drawn -------------------------------------------------------------------------------------------------


class Writer:
    """Draws cases."""

    def __init__(self, languages: Sequence[str], seed: int, own: bool) -> None:
        self.seed, self.languages = seed, languages
        count = OWN_TEXTS if own else TEXTS
        self.texts = {
            name: Texts(name, court(name).looks, court(name).judge, seed, count, own).found for name in languages
        }

    def settings(self, batch: int) -> tuple[tuple[str, Any], ...]:
        """The settings of a batch of cases."""
        draw = random.Random(f"settings {self.seed} {batch}")
        return (
            ("minConfidence", draw.choice((0, 0, 0, 0.45))),
            ("alternatives", draw.choice((1, 3, 5))),
            ("multiline", draw.choice(("auto", "auto", "always", "never"))),
            ("floor", draw.choice(("off", "off", "brackets", "block"))),
            ("names", draw.choice(("off", "prefer", "prefer", "require"))),
            ("projectMemory", draw.random() < 0.3),
            ("insideStrings", True),
            ("insideComments", True),
        )

    def case(self, number: int) -> Case:
        """A case by its number."""
        draw = random.Random(f"items {self.seed} {number}")
        language = draw.choice(self.languages)
        cutter = Cutter(court(language).looks)
        place = None
        while place is None:
            place = cutter.place(draw, language, draw.choice(self.texts[language]), draw.choice(KINDS))
        if draw.random() < 0.08:
            place = broken(draw, place, cutter)
        client = draw.choice(OFTEN)
        return Case(
            number,
            place,
            "inline" if client == NOTEBOOK and language != "python" else client,
            draw.random() < 0.7,
            draw.choice(("\n", "\n", "\r\n")),
            tuple(proposals(draw, place, draw.choice(self.texts[language]))),
            draw.randrange(1 << 16),
            draw.choice(ACCEPTED),
            self.settings(number // BATCH),
        )


def proposals(draw: random.Random, place: Place, other: str) -> list[str]:
    """Return a model's proposal at a place: the true rest, mostly with one thing wrong."""
    rest, right, blanks = place.rest or other[: draw.randint(1, 30)], place.right, place.indentation
    below = next((line for line in right.split("\n")[1:] if line.strip()), "x")
    line = f"\n{blanks}"
    at = draw.randint(0, len(rest))
    words = rest.split()
    start = draw.randint(0, len(other))
    odd = draw.choice(
        ("\u202e", "\u2066", "\u200b", "\ufeff", "\U000e0041", "\x1b[31m", "\x07", "\u2028", "\r", "\r\n")
    )
    ways: list[Callable[[], str]] = [
        lambda: rest,
        lambda: rest,
        lambda: draw.choice(("\t", "    ", blanks or " ", "\n", "\n\t")) + rest,
        lambda: blanks + rest,
        lambda: below.strip() + line + rest,
        lambda: rest + "\n" + below,
        lambda: rest + right[: draw.randint(0, 80)],
        lambda: (rest + draw.choice((" ", line, "", ", "))) * 6,
        lambda: (draw.choice(words or ["x"]) + draw.choice((".", " ", ", ", "(", line))) * 8,
        lambda: rest[:at] + odd + rest[at:],
        lambda: (
            rest[:at] + draw.choice(('"', "'", "#", "//", "/*", "(", "[", "{", ")", "]", "}", ":", ";")) + rest[at:]
        ),
        lambda: place.closers + draw.choice((rest, "(", "[", "", ":", line + rest)),
        lambda: " ".join(words[:1]) + draw.choice((" in range(", "(", "[", "{", " = (", ": [", '"')),
        lambda: other[start : start + draw.randint(1, 60)],
        lambda: rest[: len(rest) - draw.randint(0, 3)],
        lambda: "",
    ]
    return [draw.choice(ways)() for _ in range(draw.choice((0, 1, 1, 2, 3)))]


# --- servers -------------------------------------------------------------------------------------------------------


class Client:
    """An editor of a kind, with a server of its own."""

    def __init__(self, kind: str, wire: Wire, versions: dict[str, str]) -> None:
        self.kind, self.wire, self.versions = kind, wire, versions
        self.numbers = 0
        self.settings: tuple[tuple[str, Any], ...] = ()

    def number(self) -> str:
        """A name for a request or a document."""
        self.numbers += 1
        return f"n{self.numbers}"

    async def begin(self) -> None:
        """Initialise the server."""
        offered = {"textDocument": CLIENTS[self.kind], "general": {"positionEncodings": ["utf-16"]}}
        if self.kind == NOTEBOOK:
            offered["notebookDocument"] = SYNCHRONIZES
        params = {"processId": None, "rootUri": None, "capabilities": offered, "initializationOptions": self._all(())}
        if self.kind == LSP4IJ:
            params["clientInfo"] = {"name": "PyCharm 2026.2", "version": "PyCharm (build PY-262.10968.63)"}
        await self.wire.ask("initialize", "initialize", params, PATIENCE)
        await self.wire.send(Wire.note("initialized", {}))
        await self.wire.is_ready()

    def _all(self, settings: tuple[tuple[str, Any], ...]) -> dict[str, Any]:
        versions = {
            "pythonVersion": PYTHON,
            "languageVersions": self.versions,
            "languages": dict.fromkeys(ON_REQUEST, "automatic"),
        }
        return {**SETTINGS, **SHORT, **versions, "prefetch": False, **dict(settings)}

    async def use(self, settings: tuple[tuple[str, Any], ...]) -> None:
        """Change the settings."""
        if settings != self.settings:
            self.settings = settings
            params = {"settings": {"fim-server": self._all(settings)}}
            await self.wire.send(Wire.note("workspace/didChangeConfiguration", params))

    async def told(self, left: str, texts: Sequence[str], noise: int) -> None:
        """Have the model write texts after ``left``."""
        before = left[-60:]
        params = {"wanted": [[before, text] for text in texts], "seed": noise}
        await self.wire.ask(self.number(), "test/writes", params, PATIENCE)

    async def ask(self, document: Document, column: int, invoked: bool) -> list[Item]:
        """The items at the document's cursor. Raises ServerFailure for an answer that is none."""
        at = document.position(document.cursor)
        at["character"] += column
        if "inlineCompletion" in CLIENTS[self.kind]:
            params = Wire.completion(document.uri, at["line"], at["character"], invoked)
            answer = await self.wire.ask(self.number(), "textDocument/inlineCompletion", params, PATIENCE)
        else:
            context = {"triggerKind": 1 if invoked else 3}
            params = {"textDocument": {"uri": document.uri}, "position": at, "context": context}
            answer = await self.wire.ask(self.number(), "textDocument/completion", params, PATIENCE)
        if "error" in answer:
            raise ServerFailure(f"a request failed: {answer['error']}")
        inline = lsp4ij_item if self.kind == LSP4IJ else inline_item
        make = inline if "inlineCompletion" in CLIENTS[self.kind] else list_item
        return [make(document, item) for item in answer["result"]["items"]]

    async def run(self, case: Case) -> list[Seen]:
        """All requests of a case, one after the other."""
        await self.use(case.settings)
        found = notebook(case.place, case.noise) if self.kind == NOTEBOOK else Notebook((), case.place, ())
        place = found.place
        text = place.text.replace("\n", case.newline)
        editor = await self._open(found, text, case.newline)
        document = editor.document
        answers: list[Seen] = []
        required = dict(case.settings).get("names") == "require"
        try:
            for step, piece in enumerate(("", *case.accepted.split())):
                invoked = case.invoked
                if step:
                    exact = [item for item in answers[-1].items if item.start <= document.cursor <= item.end]
                    following = accepted(answers[-1], exact[0], piece) if exact else None
                    if following is None:
                        break
                    place = following
                    await editor.insert(place.left.replace("\n", case.newline)[document.cursor :])
                    invoked = invoked and "inlineCompletion" in CLIENTS[self.kind]  # a list right after a change
                document.cursor = len(place.left.replace("\n", case.newline))
                await self.told(place.left, case.texts if not step else (), case.noise)
                items = await self.ask(document, place.column, invoked)
                number = case.number, step
                cells = found.before, found.after
                seen = Seen(place, document.text, document.cursor, invoked, tuple(items), required, number, cells)
                answers.append(seen)
        finally:
            await editor.close()
            self.wire.notes.clear()
        return answers

    async def _open(self, found: Notebook, text: str, newline: str) -> OpenFile | OpenCell:
        if self.kind != NOTEBOOK:
            uri = f"file:///items/{self.number()}{SUFFIXES[found.place.language]}"
            await self.wire.open(uri, text, found.place.language)
            return OpenFile(self.wire, Document(uri, text))
        book = NotebookEditor(self.wire, f"/items/{self.number()}.ipynb")
        others = ([cell.replace("\n", newline) for cell in cells] for cells in (found.before, found.after))
        before, after = others
        await book.open(*before, text, *after)
        return OpenCell(book, len(before), Document(book.cells[len(before)].uri, text))


@dataclass
class OpenFile:
    """A file in an editor."""

    wire: Wire
    document: Document

    async def insert(self, text: str) -> None:
        """Insert a text at the cursor."""
        document = self.document
        start = document.position(document.cursor)
        document.text = document.text[: document.cursor] + text + document.text[document.cursor :]
        document.version += 1
        change = {"range": {"start": start, "end": start}, "text": text}
        identity = {"uri": document.uri, "version": document.version}
        params = {"textDocument": identity, "contentChanges": [change]}
        await self.wire.send(Wire.note("textDocument/didChange", params))

    async def close(self) -> None:
        """Close it."""
        params = {"textDocument": {"uri": self.document.uri}}
        await self.wire.send(Wire.note("textDocument/didClose", params))


@dataclass
class OpenCell:
    """A cell of a notebook in an editor."""

    book: NotebookEditor
    at: int
    document: Document

    async def insert(self, text: str) -> None:
        """Insert a text at the cursor."""
        document = self.document
        await self.book.edit(self.at, document.cursor, document.cursor, text)
        document.text = self.book.cells[self.at].text

    async def close(self) -> None:
        """Close the notebook."""
        await self.book.close()


class ServerFailure(Exception):
    """An answer that is none."""


def accepted(seen: Seen, item: Item, piece: str) -> Place | None:
    """The place after a piece of an item was accepted; None where nothing of it is left."""
    place = seen.place
    typed = seen.text[item.start : seen.cursor]
    text = LINE_BREAK.sub("\n", item.text.removeprefix(typed))
    found = re.match(r"\s*(?:\w+|[^\w\s]+)" if piece == "word" else r"\n?[^\n]*", text)
    taken = found[0] if found else ""
    if not taken or taken == text:
        return None
    covered = item.end - seen.cursor
    after = place.closers + place.right
    is_program = item.label == court(place.language).label and court(place.language).takes(
        LINE_BREAK.sub("\n", applied(seen, item))
    )
    return replace(
        place,
        kind=f"{place.kind}, then a {piece}",
        left=place.left + taken,
        closers=after[:covered],
        rest=text[len(taken) :],
        right=after[covered:],
        column=0,
        broken=not is_program,
    )


# --- the run -------------------------------------------------------------------------------------------------------


async def serve(stack: AsyncExitStack, kinds: Sequence[str], model: str, versions: dict[str, str]) -> dict[str, Client]:
    """A server for each kind of client."""
    clients = {}
    for kind in kinds:
        _, wire = await stack.enter_async_context(wired(f"--model={model}"))
        clients[kind] = Client(kind, wire, versions)
        await clients[kind].begin()
    return clients


async def fuzz(
    items: int,
    seed: int,
    languages: Sequence[str] = LANGUAGES,
    model: str = "texts",
    own: bool = False,
    say: Callable[[str], None] = lambda line: None,
) -> tuple[Verdicts, list[Violation]]:
    """Ask until there are so many items. Returns what was found, and the violations made smaller."""
    found = Verdicts()
    writer = Writer(languages, seed, own)
    versions = {name: version for name in languages if (version := court(name).version) and name != "python"}
    before, editor.SERVE = editor.SERVE, PROGRAM
    try:
        async with AsyncExitStack() as stack:
            clients = await serve(stack, tuple(CLIENTS), model, versions)
            cases: dict[int, Case] = {}
            said = time.monotonic()
            while found.counts.get("items", 0) < items:
                batch = [writer.case(number) for number in range(len(cases), len(cases) + BATCH)]
                cases |= {case.number: case for case in batch}
                answers = await together(clients, batch)
                more = examine(answers)
                for violation in more.violations:  # at once, for whoever does not wait until they are smaller
                    if violation.kind not in {one.kind for one in found.violations}:
                        say(str(violation))
                    found.violations.append(violation)
                for name, count in more.counts.items():
                    found.count(name, count)
                for seen in answers:
                    found.count(f"items at {seen.place.kind}", len(seen.items))
                if time.monotonic() > said + 30:
                    said = time.monotonic()
                    say(f"{found.counts.get('items', 0)} items, {Counter(one.kind for one in found.violations)}")
            smallest = [await smaller(clients, cases[one.seen.case[0]], one) for one in first_ones(found.violations)]
            return found, smallest
    finally:
        editor.SERVE = before


async def together(clients: dict[str, Client], cases: Sequence[Case]) -> list[Seen]:
    """The answers to some cases, those of each client one after the other."""

    async def mine(client: Client) -> list[Seen]:
        return [seen for case in cases if case.client == client.kind for seen in await client.run(case)]

    work: list[Awaitable[list[Seen]]] = [mine(client) for client in clients.values()]
    return [seen for answers in await asyncio.gather(*work) for seen in answers]


def first_ones(violations: Sequence[Violation]) -> list[Violation]:
    """The first violations of each kind and language."""
    counts: Counter[tuple[str, str]] = Counter()
    kept = []
    for violation in violations:
        counts[violation.kind, violation.seen.place.language] += 1
        if counts[violation.kind, violation.seen.place.language] <= SHRUNK:
            kept.append(violation)
    return kept


async def smaller(clients: dict[str, Client], case: Case, violation: Violation) -> Violation:
    """A violation of the same kind in less text: lines are left out while it lasts."""
    best, left = violation, SHRINKING

    async def lasts(other: Case) -> bool:
        nonlocal best, left
        left -= 1
        if not court(other.place.language).judge.verdict(other.place.truth) and not other.place.broken:
            return False
        answers = await clients[other.client].run(other)
        again = [one for one in examine(answers).violations if one.kind == violation.kind]
        if again:
            best = again[0]
        return bool(again)

    for other in (replace(case, accepted=""), replace(case, newline="\n"), replace(case, client="inline")):
        if other != case and await lasts(other):
            case = other
    size = 8
    while size and left > 0:
        shrunk = False
        for part in ("left", "right"):
            at = 0
            while left > 0:
                lines = getattr(case.place, part).split("\n")
                first = 0 if part == "left" else 1
                last = len(lines) - 1 if part == "left" else len(lines)
                start = first + at
                if start >= last:
                    break
                kept = "\n".join(lines[:start] + lines[min(start + size, last) :])
                place = replace(case.place, left=kept) if part == "left" else replace(case.place, right=kept)
                other = replace(case, place=place)
                if await lasts(other):
                    case, shrunk = other, True
                else:
                    at += size
        size = size if shrunk and size == 1 else size // 2
    return best


def available(languages: Sequence[str]) -> list[str]:
    """Return those of some languages that have a judge here, and print the others."""
    found = []
    for name in languages:
        try:
            court(name)
            found.append(name)
        except JudgeError as error:
            print(f"{name}: left out, {error}", file=sys.stderr)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="served_items.py", description="Checks the items that a server sends.")
    parser.add_argument("--items", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--language", choices=LANGUAGES, action="append", help="may be repeated; default: all")
    parser.add_argument("--model", default="texts", help="texts (default), or a name of `fim-server models`")
    parser.add_argument("--own", action="store_true", help="cut files of this repository alone")
    options = parser.parse_args(arguments)
    languages = available(options.language or LANGUAGES)
    started = time.monotonic()

    def say(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    found, smallest = asyncio.run(fuzz(options.items, options.seed, languages, options.model, options.own, say))
    counts = Counter(one.kind for one in found.violations)
    for violation in smallest:
        print(f"{violation}\n  case {violation.seen.case[0]}")
    minutes = (time.monotonic() - started) / 60
    print(f"seed {options.seed}, {options.model}, {', '.join(languages)}, {minutes:.1f} minutes")
    print(", ".join(f"{count:,} {name}" for name, count in sorted(found.counts.items())))
    print("violations: " + (", ".join(f"{count:,} {name}" for name, count in counts.most_common()) or "none"))
    return 1 if found.violations else 0


if __name__ == "__main__":
    sys.exit(main())
