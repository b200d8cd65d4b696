"""A user at the keyboard, who types everything and only looks, or accepts right suggestions; and the record of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from benchmarks.server.played_editor import Editor, common, next_key
from benchmarks.server.scenarios import Item
from benchmarks.suggestions import judge
from benchmarks.suggestions.judge import Judgement, Truth
from benchmarks.suggestions.projects import Task
from benchmarks.suggestions.suggesting import OVERTAKEN, Answer, Suggester
from benchmarks.suggestions.typed_language import typed

TYPING, ACCEPTING, HASTY = "typing", "accepting", "hasty"
"""Sweeps: everything is typed; offers are accepted as far as they are right; or half-right ones as well, as a whole."""

LINE_SWEEPS = TYPING, ACCEPTING
"""Sweeps of lines."""

HALF = 0.5
"""Share of an offer's characters that have to be right for a hasty user."""

KEPT, LONGER, SHORTER, REPLACED, GONE = "kept", "longer", "shorter", "replaced", "gone"
"""Fates of a suggestion whose next character was typed."""

WHOLE, WORD, KEY = "whole", "word", "key"
"""Next actions: accepting a suggestion or its first word, or pressing a key."""


@dataclass
class Record:
    """One request: where, what was offered, and whether that was right."""

    by: str
    """Name of the suggester."""
    sweep: str
    """``typing`` or ``accepting``."""
    project: str
    file: str
    line: int
    column: int
    """Characters left of the cursor on its line."""
    kind: str
    """Kind of place, one of `judge.KINDS`."""
    typed: str
    """The line left of the cursor, without its indentation."""
    rest: str
    """Missing text of the line."""
    closers: str
    """Closers that the editor inserted right of the cursor."""
    outcome: str
    text: str | None
    """The offer; None where there is none."""
    covered: int
    told: dict[str, Any]
    judged: Judgement | None
    """None where nothing is offered, or beside the way."""
    change: str | None
    """Fate of the suggestion before, where the key agreed with it and some of it was left."""
    height: int | None
    """Lines by which the offer's height differs from what was shown before; None where no answer came in time."""
    milliseconds: float
    origin: str
    """Origin of the answer, as the server reports it."""
    own: float | None
    """The server's own share, without pauses and the model, in milliseconds."""
    last: dict[str, Any] | None = field(repr=False)
    """The server's report on the request, from its status."""
    action: str = ""
    """Next action; empty at the end."""


@dataclass(frozen=True)
class Effort:
    """Costs of a task."""

    by: str
    project: str
    file: str
    line: int
    alone: int
    """Keys of typing without offers."""
    keys: int
    """Keys that were pressed."""
    accepted: int
    """Offers that were accepted, whole or by a word."""
    sweep: str = ACCEPTING
    inserted: int = 0
    """Characters of accepted offers."""
    kept: int = 0
    """Those of them that are not taken back."""


@dataclass(frozen=True)
class Ghost:
    """An offer on the screen: the document that it leads to, and where its text begins and ends in it."""

    document: str
    start: int
    end: int

    @classmethod
    def of(cls, editor: Editor, item: Item) -> Ghost:
        """An offer at the cursor."""
        at = editor.cursor
        document = editor.text[:at] + item.text + editor.text[at + item.covered :]
        return cls(document, at, at + len(item.text))

    def left_after(self, editor: Editor) -> str | None:
        """Return the rest of a suggestion after a key; None where the key differs."""
        at = editor.cursor
        agrees = self.start < at <= self.end and editor.text[self.start : at] == self.document[self.start : at]
        return self.document[at : self.end] if agrees else None


class Screen:
    """A task being typed, and what is seen meanwhile."""

    def __init__(self, task: Task, suggester: Suggester, sweep: str, editor: Editor | None = None) -> None:
        """Begin a task, in an editor with its text or in a new one."""
        self.task = task
        language = typed(task.language)
        self.editor = editor or Editor(task.before + task.after, len(task.before), language.keyboard)
        self.records: list[Record] = []
        self.inserted = self.kept = 0
        self._truth = Truth(task.before + task.wanted + task.after, len(task.before) + len(task.wanted), language)
        self._suggester = suggester
        self._sweep = sweep
        self._ghost: Ghost | None = None
        self._height = 0

    @property
    def by(self) -> str:
        """Return the suggester's name."""
        return self._suggester.name

    @property
    def key(self) -> str | None:
        """The key that comes next; None where all is typed."""
        return next_key(self.editor, len(self.task.before), self.task.wanted)

    async def look(self) -> tuple[Item | None, Judgement | None]:
        """Ask, and note what is on the screen when the next key comes."""
        answer = await self._suggester.ask(self.editor)
        editor, item = self.editor, answer.item
        kind = judge.kind_of(editor, self._truth)
        judged = None if item is None or kind == judge.BESIDE else judge.judge(editor, self._truth, item)
        self._note(kind, answer, judged)
        return item, judged

    def press(self, key: str) -> None:
        """Press a key."""
        self.records[-1].action = KEY
        self._suggester.edited(self.editor, self.editor.press(key))

    def accept(self, item: Item, part: str) -> None:
        """Accept an offer or its first word."""
        whole = part == item.text
        self.records[-1].action = WHOLE if whole else WORD
        self.inserted += len(part)
        self.kept += self.right_of(part)
        edit = self.editor.accept(part, item.covered if whole else 0)
        if whole:
            self._suggester.accepted(item)
        self._suggester.edited(self.editor, edit)

    def right_of(self, text: str) -> int:
        """Return how many of a text's first characters are the next ones."""
        return common(text, self._truth.rest(self.editor.cursor))

    def _note(self, kind: str, answer: Answer, judged: Judgement | None) -> None:
        editor, item, request = self.editor, answer.item, answer.request
        missing = self._truth.rest(editor.cursor) if kind != judge.BESIDE else ""
        change = height = None
        if request.outcome != OVERTAKEN:  # an editor goes on showing what it has
            ghost = None if item is None else Ghost.of(editor, item)
            change = None if self._ghost is None else became(self._ghost, editor, ghost)
            lines = 0 if item is None else item.text.count("\n")
            height, self._height = abs(lines - self._height), lines
            self._ghost = ghost
        self.records.append(
            Record(
                by=self._suggester.name,
                sweep=self._sweep,
                project=self.task.project,
                file=self.task.file,
                line=self.task.line + editor.text.count("\n", len(self.task.before), editor.cursor),
                column=len(editor.line),
                kind=kind,
                typed=editor.line.lstrip(),
                rest=missing.partition("\n")[0],
                closers=editor.closers,
                outcome=request.outcome,
                text=None if item is None else item.text,
                covered=0 if item is None else item.covered,
                told=dict(answer.told),
                judged=judged,
                change=change,
                height=height,
                milliseconds=request.milliseconds,
                origin=request.origin,
                own=request.own,
                last=request.last,
            )
        )


def became(before: Ghost, editor: Editor, now: Ghost | None) -> str | None:
    """Return the fate of a suggestion after a key; None where none of it was left, or the key differed."""
    left = before.left_after(editor)
    if left is None or not left.strip():
        return None
    if now is None:
        return GONE
    if now.document == before.document:
        return KEPT
    new = now.document[now.start : now.end]
    return LONGER if new.startswith(left) else SHORTER if left.startswith(new) else REPLACED


async def type_out(screen: Screen) -> None:
    """Type a task key by key, and look after each.

    Raises:
        BenchError: The server has ended or does not answer.
    """
    await screen.look()
    while (key := screen.key) is not None:
        screen.press(key)
        await screen.look()


async def accept(screen: Screen, sweep: str = ACCEPTING) -> Effort:
    """Type a task, accepting each offer that is right as far as it goes, else its first word if that is.

    A hasty user also accepts an offer whose first lexeme is right and half of whose characters are, and takes the rest
    back.

    Raises:
        BenchError: The server has ended or does not answer.
    """
    item, judged = await screen.look()
    while (key := screen.key) is not None:
        if item is None or judged is None or not item.text:
            screen.press(key)
        elif judged.agrees or (
            sweep == HASTY and judged.lexeme and screen.right_of(item.text) >= HALF * len(item.text)
        ):
            screen.accept(item, item.text)
        elif judged.word:
            screen.accept(item, judged.word)
        else:
            screen.press(key)
        item, judged = await screen.look()
    actions = [record.action for record in screen.records]
    task, accepted = screen.task, actions.count(WHOLE) + actions.count(WORD)
    place = screen.by, task.project, task.file, task.line
    return Effort(*place, keys_alone(task), actions.count(KEY), accepted, sweep, screen.inserted, screen.kept)


async def play(task: Task, suggester: Suggester, sweep: str) -> tuple[list[Effort], list[Record]]:
    """Do a task in one way, in a document of its own; return what it cost and what was seen.

    Raises:
        BenchError: The server has ended or does not answer.
    """
    screen = Screen(task, suggester, sweep)
    suggester.open(task)
    await suggester.rest(screen.editor)
    efforts = []
    if sweep == TYPING:
        await type_out(screen)
    else:
        efforts.append(await accept(screen, sweep))
    suggester.close()
    return efforts, screen.records


def keys_alone(task: Task) -> int:
    """Keys of typing a task without offers, in an editor that closes brackets by itself."""
    editor = Editor(task.before + task.after, len(task.before), typed(task.language).keyboard)
    keys = 0
    while (key := next_key(editor, len(task.before), task.wanted)) is not None:
        editor.press(key)
        keys += 1
    return keys
