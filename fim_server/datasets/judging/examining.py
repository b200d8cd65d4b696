"""Examination of a cut: the engine's verdicts on middles, compared with a judge's verdicts on the texts with them.

- refused middle: the true middle is viable after every character, and complete at its end;
- complete: `complete` is the judge's verdict on prefixes of the middle, on longer texts and on mutated ones;
- refused prefix: no text that was tried completes a prefix that the engine refuses, as the judge sees it;
- shortest completion: there is one wherever the middle is viable, and the judge takes the text with it;
- inconsistent: `check` and advancing agree;
- crash: the engine does not panic.
"""

from __future__ import annotations

import random
import time
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from fim_server.datasets.judging.cutting import Looks
from fim_server.datasets.judging.differences import Differences, refused_at
from fim_server.datasets.judging.judge import Judge
from fim_server.errors import SearchLimitError
from fim_server.language import Language, Session

CHECKS = ("refused middle", "complete", "refused prefix", "shortest completion", "inconsistent", "crash")

OVER = "\0 over the limit"
"""Stands for a shortest completion whose search passes its limit."""

BLANKS = (" ", "  ", "\t", "\n", "\n\n", "\n ", "\n\t", "    ", "\f", "\v", "\u00a0")
CHARACTERS = (*map(chr, range(32, 127)), "\n", "\t", "\0", "\f", "é", "·", "\u00a0", "😀", "ª", "\u200b", "變")
MUTATIONS = ("token", "token", "blank", "character", "bracket", "word", "quote", "line")


class Part(Protocol):
    """Cut of a text into left, middle and right, with the spans of the text's symbols."""

    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def tokens(self) -> tuple[tuple[int, int], ...]: ...
    @property
    def text(self) -> str: ...
    @property
    def left(self) -> str: ...
    @property
    def middle(self) -> str: ...
    @property
    def right(self) -> str: ...


C = TypeVar("C", bound=Part)


@dataclass(frozen=True)
class Claim:
    """The engine's verdict on a text between left and right, for the judge to confirm.

    Attributes:
        added: End of the text that the engine or the examiner has added to the prefix in question.
    """

    check: str
    text: str
    engine: bool
    added: str = ""


@dataclass
class Result:
    """Counts, failures, claims and seconds of an examination."""

    counts: Counter[str] = field(default_factory=Counter)
    failures: list[dict[str, Any]] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))

    def fail(self, case: Part, check: str, text: str, **facts: Any) -> None:
        middle = text[: len(text) - len(facts.get("added", ""))]
        self.failures.append({"check": check, "left": case.left, "middle": middle, "right": case.right, **facts})


class Examination(ABC, Generic[C]):
    """Examination of cuts in one language; subclasses choose the texts and ask the judge."""

    gave_up = "the judge gave up"
    """Name of the count of texts without a verdict."""
    most_prefixes, incomplete_prefixes = 10, 2
    """Complete and incomplete prefixes of a middle that are judged."""
    most_tails = 10
    """Texts that are tried for a refused prefix."""
    large: int | None = None
    """Length of a text from which on a third as many texts are tried; None for no limit."""

    def __init__(self, language: Language) -> None:
        self.language = language

    @abstractmethod
    def verdicts(self, texts: Sequence[str], claimed: Sequence[bool]) -> Iterable[tuple[bool | None, dict[str, Any]]]:
        """Return the judge's verdict on each text, and the facts of a failure."""

    @abstractmethod
    def difference(self, text: str, engine: bool, facts: dict[str, Any]) -> str | None:
        """Return the name of a documented difference between engine and judge; None for a failure."""

    @abstractmethod
    def extensions(self, rng: random.Random, case: C) -> Iterator[tuple[str, str]]:
        """Yield longer texts than the middle, each with the name of its count."""

    @abstractmethod
    def mutants(self, rng: random.Random, case: C) -> Iterator[tuple[str, str]]:
        """Yield changed middles, each with the name of its count."""

    @abstractmethod
    def some_token(self, rng: random.Random, case: C) -> str:
        """Return a symbol of the text, or another short text."""

    @abstractmethod
    def searches(
        self, rng: random.Random, session: Session, refused: Sequence[tuple[str, int]], viable: str
    ) -> list[tuple[str, int]]:
        """Return the refused texts, each with the place of its refusal, for which completions are tried."""

    @abstractmethod
    def tails(self, rng: random.Random, session: Session, text: str, at: int, middle: str) -> list[str]:
        """Return texts that may complete the refused `text[:at + 1]`, the likeliest first."""

    @abstractmethod
    def shortest_places(self, rng: random.Random, viable: int, few: int) -> list[int]:
        """Return the lengths of the viable prefixes whose shortest completions are judged."""

    def examine(self, case: C, rng: random.Random) -> Result:
        """Make all checks of a case: ask the engine first, and then the judge."""
        result = Result()
        started = time.perf_counter()
        try:
            self._ask_engine(case, rng, result)
        except BaseException as error:  # a panic of the engine is no Exception
            if type(error).__name__ != "PanicException":
                raise
            result.fail(case, "crash", case.middle, note=str(error))
        self._excuse(case, result)
        asked = time.perf_counter()
        texts = [case.left + claim.text + case.right for claim in result.claims]
        answers = self.verdicts(texts, [claim.engine for claim in result.claims])
        for claim, text, (truth, facts) in zip(result.claims, texts, answers, strict=True):
            if truth is None:
                result.counts[self.gave_up] += 1
            elif truth != claim.engine:
                name = self.difference(text, claim.engine, facts)
                if name is not None:
                    result.counts[f"documented: {name}"] += 1
                else:
                    result.fail(case, claim.check, claim.text, added=claim.added, engine=claim.engine, **facts)
        result.counts["texts judged"] += len(texts)
        result.seconds["engine"] += asked - started
        result.seconds["oracle"] += time.perf_counter() - asked
        return result

    def _excuse(self, case: C, result: Result) -> None:
        """Count a text apart that the engine refuses as a whole by a documented difference, with all its middles.

        A part of a file may differ where the file does not: TypeScript's `a<b|c` at the end, of `a<b|c>()`.
        """
        refused = any(failure["check"] == "refused middle" for failure in result.failures)
        if refused and not self.language.open("", "").check(case.text).complete:
            name = self.difference(case.text, False, {"said": ""})
            if name is not None:
                result.failures.clear()
                result.claims.clear()
                result.counts[f"documented: {name}"] += 1

    def _ask_engine(self, case: C, rng: random.Random, result: Result) -> None:
        middle = case.middle
        session = self.language.open(case.left, case.right)
        if session.guarantee == "none":
            result.fail(case, "refused middle", middle, note=f"guarantee {session.guarantee}")
            return
        few = 3 if self.large is not None and len(case.text) > self.large else 1
        viable = self._walk(session, case, rng, result, few)
        result.counts["characters"] += len(middle)
        if viable == len(middle) and not session.check(middle).complete:
            result.fail(case, "inconsistent", middle, note=f"{session.check(middle)} of a complete middle")
        refused = []
        for name, text in (*self.extensions(rng, case), *self.mutants(rng, case)):
            result.counts[name] += 1
            verdict = session.check(text)
            state = session.start()
            advanced = state.advance(text)
            whole = advanced == len(text.encode("utf-8", "replace"))
            if verdict.viable != whole or verdict.complete != (whole and state.is_complete()):
                result.fail(case, "inconsistent", text, note=f"{verdict}, but advancing takes {advanced} bytes")
            result.claims.append(Claim("complete", text, verdict.complete))
            if verdict.rejected_at is not None and verdict.rejected_at < len(text):
                refused.append((text, verdict.rejected_at))
        searches = self.searches(rng, session, refused, middle[:viable])
        for text, at in searches[: max(1, len(searches) // few)]:
            result.counts["refused prefixes searched"] += 1
            tails = self.tails(rng, session, text, at, middle)[: self.most_tails // few]
            result.claims += [Claim("refused prefix", text[: at + 1] + tail, False, tail) for tail in tails]
        if searches:
            text, at = searches[0]
            self._shortest(session, case, text[:at], result)

    def _walk(self, session: Session, case: C, rng: random.Random, result: Result, few: int) -> int:
        """Advance over the true middle by characters, and return how many are viable."""
        middle = case.middle
        state = session.start()
        complete = [state.is_complete()]
        for at, character in enumerate(middle):
            if state.advance(character) != len(character.encode()):
                result.fail(case, "refused middle", middle, note=f"refused at {at}")
                break
            complete.append(state.is_complete())
        viable = len(complete) - 1
        if viable == len(middle) and not complete.pop():
            result.fail(case, "refused middle", middle, note="viable, but not complete")
        whole = [at for at in range(viable) if complete[at]]
        part = [at for at in range(viable) if not complete[at]]
        chosen = rng.sample(whole, min(len(whole), self.most_prefixes // few))
        chosen += rng.sample(part, min(len(part), self.incomplete_prefixes))
        result.claims += [Claim("complete", middle[:at], complete[at]) for at in chosen]
        result.counts["prefixes"] += len(chosen)
        for at in self.shortest_places(rng, viable, few):
            self._shortest(session, case, middle[:at], result)
        return viable

    def _shortest(self, session: Session, case: C, prefix: str, result: Result) -> None:
        found = completion(session, prefix, result.counts)
        if found is None:
            result.fail(case, "shortest completion", prefix, note="there is none")
        elif found != OVER:
            result.counts["shortest completions"] += 1
            text = prefix + found
            if not session.check(text).complete:
                result.fail(case, "shortest completion", text, added=found, note="the engine does not take it")
            result.claims.append(Claim("shortest completion", text, True, found))

    def mutated_tokens(self, rng: random.Random, case: C) -> str:
        """Delete, double or swap a symbol of the middle, or put another one before it or in its place."""
        middle = case.middle
        spans = symbols_inside(case)
        if not spans:
            return put(rng, middle, [], self.some_token(rng, case))
        start, end = rng.choice(spans)
        match rng.randrange(5):
            case 0:
                return middle[:start] + middle[end:]
            case 1:
                return middle[:end] + rng.choice(("", " ")) + middle[start:end] + middle[end:]
            case 2:
                return middle[:start] + self.some_token(rng, case) + middle[end:]
            case 3:
                return middle[:start] + self.some_token(rng, case) + " " + middle[start:]
            case _:
                (a, b), (c, d) = sorted([(start, end), rng.choice(spans)])
                if b > c:
                    return middle[:start] + middle[end:]
                return middle[:a] + middle[c:d] + middle[b:c] + middle[a:b] + middle[d:]


def completion(session: Session, prefix: str, counts: Counter[str]) -> str | None:
    """Return the shortest completion after a viable prefix, or :data:`OVER`; None where there is none."""
    state = session.start()
    state.advance(prefix)
    try:
        return state.shortest_completion()
    except SearchLimitError:
        counts["over the search's limit"] += 1
        return OVER


def symbols_inside(case: Part) -> list[tuple[int, int]]:
    """Return the spans of the symbols that lie in the middle, relative to it."""
    return [(a - case.start, b - case.start) for a, b in case.tokens if a >= case.start and b <= case.end]


def put(rng: random.Random, middle: str, places: Sequence[int], piece: str) -> str:
    """Delete or replace a character at one of the places, or put a piece in anywhere."""
    choice = rng.randrange(3) if places else 2
    at = rng.choice(places) if places and choice < 2 else rng.randint(0, len(middle))
    return middle[:at] + ("" if choice == 0 else piece) + middle[at + (choice < 2) :]


class Examiner(Examination[Part]):
    """Examination by a language's look: its brackets, quotes, comments and words."""

    extension_count, mutant_count, search_count, most_shortest = 4, 5, 2, 2

    def __init__(self, language: Language, looks: Looks, judge: Judge, differences: Differences) -> None:
        super().__init__(language)
        self.judge = judge
        self._differences = differences
        self._brackets = [text for pair in looks.brackets for text in pair]
        self._closers = (*(close for _, close in looks.brackets), *looks.quotes, "\n", ";", " x", "x", ":", "", " ")
        comments = [begin + " c " + end for begin, end in looks.comments]
        numbers = ("x", "0", ".5", "1.", "0x1", "é", "_", "$", "#")
        self._pieces = (*looks.words, *comments, *looks.quotes, *BLANKS, *numbers)
        self._quotes = looks.quotes or ("'",)
        self._words = [word for word in looks.words if word.isidentifier()] or ["x"]

    def verdicts(self, texts: Sequence[str], claimed: Sequence[bool]) -> Iterator[tuple[bool | None, dict[str, Any]]]:
        self.judge.verdicts(texts)  # all at once, which is faster
        for text, engine in zip(texts, claimed, strict=True):
            truth, said = self.judge.decided(text, engine)
            yield truth, {"judge": truth, "said": said}

    def difference(self, text: str, engine: bool, facts: dict[str, Any]) -> str | None:
        place = None if engine else refused_at(self.language, text)
        return self._differences.name(text, engine, facts["said"], place)

    def some_token(self, rng: random.Random, case: Part) -> str:
        if not case.tokens or rng.random() < 0.3:
            return rng.choice(self._pieces)
        start, end = rng.choice(case.tokens)
        return rng.choice(("", "", " ")) + case.text[start:end][:40]

    def extensions(self, rng: random.Random, case: Part) -> Iterator[tuple[str, str]]:
        for _ in range(self.extension_count):
            begun = case.right[: rng.randint(1, 12)] if rng.random() < 0.25 else ""
            yield "extensions", case.middle + (begun or self.some_token(rng, case))

    def mutants(self, rng: random.Random, case: Part) -> Iterator[tuple[str, str]]:
        for kind in rng.sample(MUTATIONS, self.mutant_count):
            yield f"mutants: {kind}", self._mutated(rng, case, kind)

    def _mutated(self, rng: random.Random, case: Part, kind: str) -> str:
        middle = case.middle
        match kind:
            case "token":
                return self.mutated_tokens(rng, case)
            case "blank":
                return put(rng, middle, [at for at, it in enumerate(middle) if it.isspace()], rng.choice(BLANKS))
            case "bracket":
                places = [at for at, it in enumerate(middle) if it in self._brackets]
                return put(rng, middle, places, rng.choice(self._brackets or ["("]))
            case "quote":
                places = [at for at, it in enumerate(middle) if it in self._quotes or it == "\\"]
                return put(rng, middle, places, rng.choice((*self._quotes, "\\", "//", "/*", "*/")))
            case "word":
                words = [(a, b) for a, b in symbols_inside(case) if middle[a:b].isidentifier()]
                if not words:
                    return put(rng, middle, [], rng.choice(self._words) + " ")
                start, end = rng.choice(words)
                return middle[:start] + rng.choice(self._words) + middle[end:]
            case "line":
                lines = middle.splitlines(keepends=True) or [""]
                at = rng.randrange(len(lines))
                changed = (lines[:at] + lines[at + 1 :], [*lines[: at + 1], *lines[at:]], lines[::-1])
                return "".join(rng.choice(changed))
            case _:
                return put(rng, middle, [*range(len(middle))], rng.choice(CHARACTERS))

    def searches(
        self, rng: random.Random, session: Session, refused: Sequence[tuple[str, int]], viable: str
    ) -> list[tuple[str, int]]:
        return rng.sample(refused, min(len(refused), self.search_count))

    def shortest_places(self, rng: random.Random, viable: int, few: int) -> list[int]:
        return rng.sample(range(viable + 1), min(viable + 1, self.most_shortest))

    def tails(self, rng: random.Random, session: Session, text: str, at: int, middle: str) -> list[str]:
        tails = {"", text[at + 1 :], middle[at + 1 :], middle[at:]}
        found = completion(session, text[:at], Counter())
        if found and found != OVER:
            tails |= {found, found[1:]}
        while len(tails) < self.most_tails:
            tails.add("".join(rng.choice(self._closers) for _ in range(rng.randint(1, 3))))
        return sorted(tails)
