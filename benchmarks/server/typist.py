"""Typist at an editor, who types code by a scenario, and asks for, accepts and follows suggestions."""

from __future__ import annotations

import asyncio
import itertools
import math
import random
import time
from collections.abc import Sequence
from typing import Any

from benchmarks.server.lsp_client import AUTOMATIC, INVOKED, Asked, Client
from benchmarks.server.played_editor import (
    BACKSPACE,
    DELETE,
    Edit,
    Editor,
    Hole,
    first_word,
    next_key,
    position,
    span,
)
from benchmarks.server.scenarios import Item, Played, Request, note
from fim_server.language.texts import is_word

EDITOR_DELAY = 0.05
"""Seconds that VS Code waits after a keystroke before it asks (its `InlineCompletionsDebounce`)."""

SPREAD = 0.4
"""Standard deviation of the logarithm of the time between two keys."""

KEY_SECONDS = (0.03, 1.5)
"""No two keys are nearer or farther apart than this, but for pauses."""

PAUSE_SHARE, PAUSE_SECONDS = 0.15, (0.4, 1.2)
"""Share of words before which the typist thinks, and seconds of it."""

READING_SECONDS = (0.3, 0.7)
"""Seconds that the typist looks at a suggestion before accepting it."""

AGREEING = 3
"""Characters besides blanks on which an offer has to agree with what is to be typed to be accepted."""

ACCEPT_SHARE, WORD_SHARE, INVOKED_SHARE, FOLLOW_SHARE = 0.8, 0.5, 0.03, 0.3
"""Shares of accepted agreeing suggestions, accepted words of partly right ones, explicit requests, and following."""

FOLLOWED_CHARACTERS = (3, 12)
FOLLOWED_OFFERS = 2
"""Offers that are followed one after the other before all of it is taken out again."""

KEYS_PER_HOLE = 25
"""Keystrokes after which the typist goes elsewhere, and the rest of the hole comes in one piece."""


class Typist:
    """Typist at an editor."""

    def __init__(self, client: Client, played: Played, interval: float, draw: random.Random) -> None:
        self.client = client
        self.played = played
        self.scenario = played.scenario
        self.interval = interval * played.scenario.pace
        self.draw = draw
        self.left = 0
        """Keystrokes that are still to come."""
        self.editor = Editor("", 0)
        self.uri = ""
        self.version = 0
        self.item: Item | None = None
        """The offer on the screen."""
        self.asked: Asked | None = None
        """Last request."""
        self.right: str | None = None
        """The text right of the cursor at that time."""
        self.due = 0.0
        """Time of the next key."""
        self.turned_down: int | None = None
        """Offset at which a suggestion was followed and taken out again."""

    async def type_in(self, name: str, text: str, gaps: Sequence[Hole], keystrokes: int) -> None:
        """Open a file, and take text out of it and type it again, until so many keystrokes are spent."""
        self.left = keystrokes
        self.uri, self.version = f"file:///typed/{name}", 1
        opening = {"uri": self.uri, "languageId": "python", "version": 1, "text": text}
        self.client.notify("textDocument/didOpen", {"textDocument": opening})
        self.editor = Editor(text, 0)
        after = "opened"
        for hole in itertools.cycle(gaps):
            self.turned_down = None
            await self.change(self.editor.replace(hole.start, hole.end, ""), after, self.draw.uniform(*PAUSE_SECONDS))
            await self.fill(hole.start, text[hole.start : hole.end], self.left - KEYS_PER_HOLE)
            await self.settle()
            after = "moved"
            if self.left <= 0:
                break
            if self.editor.text != text:
                self.send(self.editor.restore(text, hole.end))
        self.client.notify("textDocument/didClose", {"textDocument": {"uri": self.uri}})

    async def fill(self, start: int, wanted: str, until: int) -> None:
        """Type a text, and accept and follow offers as the scenario says, until so many keystrokes are left."""
        while self.left > max(until, 0):
            await asyncio.sleep(self.due - time.perf_counter())
            item = self.item
            if item is not None and await self.agrees(item, wanted[self.editor.cursor - start :]):
                continue
            if item is not None and self.follows():
                await self.follow(item)
                continue
            key = next_key(self.editor, start, wanted)
            if key is None:
                return
            await self.change(self.editor.press(key), "key", self.interval_after(key))
            if self.scenario.waits and self.draw.random() < INVOKED_SHARE:
                self.ask("invoked")
                await self.settle()

    async def agrees(self, item: Item, wanted: str) -> bool:
        """Return whether an offer, or its first word, was accepted because it is what was to be typed."""
        whole = item.text if item.covered <= len(self.editor.closers) else ""
        word = first_word(item.text, item.covered)
        for part, covered, share in ((whole, item.covered, ACCEPT_SHARE), (word, 0, WORD_SHARE)):
            enough = len("".join(part.split())) >= AGREEING
            if enough and wanted.startswith(part) and self.draw.random() < share:
                await self.accept(item, part, covered)
                return True
        return False

    def follows(self) -> bool:
        """Return whether the typist follows the visible suggestion."""
        new = self.turned_down != self.editor.cursor
        return self.scenario.follows and new and self.draw.random() < FOLLOW_SHARE

    async def follow(self, item: Item) -> None:
        """Follow an offer, and perhaps the next one, then take it all out again."""
        text, cursor, closers = self.editor.text, self.editor.cursor, self.editor.closers
        following: Item | None = item
        for _ in range(FOLLOWED_OFFERS):
            if following is None:
                break
            self.played.counts.followed += 1
            word = first_word(following.text, following.covered)
            match self.draw.choice(("whole", "word", "letters")):
                case "word" if word:
                    await self.accept(following, word, 0)
                case "letters":
                    await self.retype(following.text[: self.draw.randint(*FOLLOWED_CHARACTERS)])
                case _:
                    await self.accept(following, following.text, following.covered)
            following = self.item
        await asyncio.sleep(self.draw.uniform(*READING_SECONDS))
        edit = self.editor.restore(text, cursor)
        self.editor.closers = closers
        self.turned_down = cursor
        await self.change(edit, "removed", self.interval)

    async def retype(self, text: str) -> None:
        """Type the beginning of an offer."""
        start = self.editor.cursor
        while (key := next_key(self.editor, start, text)) not in (None, BACKSPACE, DELETE):
            await asyncio.sleep(self.due - time.perf_counter())
            await self.change(self.editor.press(str(key)), "key", self.interval_after(str(key)))

    async def accept(self, item: Item, part: str, covered: int) -> None:
        """Accept an offer or a part of it, after a look at it."""
        await asyncio.sleep(self.draw.uniform(*READING_SECONDS))
        self.played.counts.accepted += 1
        self.played.counts.accepted_characters += len(part)
        edit = self.editor.accept(part, covered)
        if part == item.text and item.command is not None:
            command = {name: item.command.get(name) for name in ("command", "arguments")}
            self.client.ask("workspace/executeCommand", command)
        await self.change(edit, "accepted", self.interval)

    async def change(self, edit: Edit, after: str, pause: float = 0.0) -> None:
        """Tell the server of an edit, and ask for completions if the next key does not come too soon."""
        self.due = time.perf_counter() + pause
        self.left -= 1
        self.played.counts.keystrokes += 1
        self.send(edit)
        self.item = None
        if self.asked is not None:
            self.client.cancel(self.asked)
        if not self.scenario.waits and 0 < pause <= EDITOR_DELAY:
            self.played.counts.unasked += 1
            return
        await asyncio.sleep(EDITOR_DELAY)
        self.ask(after)
        if self.scenario.waits:
            await self.settle()

    def send(self, edit: Edit) -> None:
        """Tell the server of an edit that was just made."""
        self.version += 1
        changes = [{"range": span(self.editor.before, edit.start, edit.end), "text": edit.text}]
        document = {"uri": self.uri, "version": self.version}
        self.client.notify("textDocument/didChange", {"textDocument": document, "contentChanges": changes})

    def ask(self, after: str) -> None:
        """Ask for completions at the cursor."""
        right = self.editor.text[self.editor.cursor :]
        request = Request(self.scenario.name, after, same_right=right == self.right)
        self.right = right
        self.played.requests.append(request)
        version = self.version
        self.asked = asked = self.client.ask(
            "textDocument/inlineCompletion",
            {
                "textDocument": {"uri": self.uri},
                "position": position(self.editor.text, self.editor.cursor),
                "context": {"triggerKind": INVOKED if after == "invoked" else AUTOMATIC},
            },
        )

        def finish(answer: asyncio.Future[dict[str, Any]]) -> None:
            if answer.cancelled() or answer.exception() is not None:
                return
            items = note(request, asked, answer.result())
            if asked.cancelled is None and version == self.version:
                self.item = items[0] if items else None

        asked.answer.add_done_callback(finish)

    async def settle(self) -> None:
        """Wait for the last answer."""
        if self.asked is not None:
            await self.client.answer_to(self.asked)

    def interval_after(self, key: str) -> float:
        """Seconds from a key to the next one."""
        seconds = self.draw.lognormvariate(math.log(self.interval), SPREAD)
        thinks = self.scenario.pace == 1 and not is_word(key[-1:]) and self.draw.random() < PAUSE_SHARE
        seconds = min(max(seconds, KEY_SECONDS[0]), KEY_SECONDS[1])
        return seconds + (self.draw.uniform(*PAUSE_SECONDS) if thinks else 0.0)
