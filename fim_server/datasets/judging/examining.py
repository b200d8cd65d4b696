"""What is asked of a cut: whether the engine says of middles what the judge says of the texts with them.

- refused middle: the true middle is viable after every character, and complete at its end;
- complete: of its prefixes, of longer texts and of mutated ones, `complete` is the judge's verdict;
- refused prefix: what the engine refuses is completed by none of the texts tried, which the judge is asked about;
- shortest completion: there is one wherever the middle is viable, and the judge takes the text with it;
- inconsistent: `check` says what advancing says;
- crash: the engine does not panic.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from fim_server.datasets.judging.cutting import Case, Looks
from fim_server.datasets.judging.differences import Differences
from fim_server.datasets.judging.judge import Judge
from fim_server.errors import SearchLimitError
from fim_server.language import Language, Session

CHECKS = ("refused middle", "complete", "refused prefix", "shortest completion", "inconsistent", "crash")

MUTANTS = 5
EXTENSIONS = 4
MOST_PREFIXES = 10  # complete ones that are judged
INCOMPLETE_PREFIXES = 2
MOST_SHORTEST = 2
SEARCHES = 2  # refused prefixes for which a completing text is looked for
TAILS = 10  # texts tried for each

BLANKS = (" ", "  ", "\t", "\n", "\n\n", "\n ", "\n\t", "    ", "\f", "\v", "\u00a0")
CHARACTERS = (*map(chr, range(32, 127)), "\n", "\t", "\0", "\f", "é", "·", "\u00a0", "😀", "ª", "\u200b", "變")
MUTATIONS = ("token", "token", "blank", "character", "bracket", "word", "quote", "line")


@dataclass(frozen=True)
class Claim:
    """What the engine says, or implies, about the left, a text and the right; the judge is asked.

    Attributes:
        added: The end of the text that is not the engine's question but an answer to it.
    """

    check: str
    text: str
    engine: bool
    added: str = ""


@dataclass
class Result:
    """What was done, and what differs."""

    counts: Counter[str] = field(default_factory=Counter)
    failures: list[dict[str, Any]] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)


class Examiner:
    """A language, its judge, and the texts that middles are changed by."""

    def __init__(self, language: Language, looks: Looks, judge: Judge, differences: Differences) -> None:
        self.language = language
        self.judge = judge
        self._differences = differences
        self._brackets = [text for pair in looks.brackets for text in pair]
        self._closers = (*(close for _, close in looks.brackets), *looks.quotes, "\n", ";", " x", "x", ":", "", " ")
        comments = [begin + " c " + end for begin, end in looks.comments]
        self._pieces = (
            *looks.words,
            *comments,
            *looks.quotes,
            *BLANKS,
            "x",
            "0",
            ".5",
            "1.",
            "0x1",
            "é",
            "_",
            "$",
            "#",
        )
        self._quotes = looks.quotes or ("'",)
        self._words = [word for word in looks.words if word.isidentifier()] or ["x"]

    def examine(self, case: Case, rng: random.Random) -> Result:
        """All checks of a case: first what the engine says, then what the judge says of it."""
        result = Result()
        try:
            self._ask(case, rng, result)
        except BaseException as error:  # a panic of the engine is no Exception
            if type(error).__name__ != "PanicException":
                raise
            _fail(result, case, "crash", case.middle, note=str(error))
        texts = [case.left + claim.text + case.right for claim in result.claims]
        self.judge.verdicts(texts)  # all at once, which is faster
        for claim, text in zip(result.claims, texts, strict=True):
            truth, said = self.judge.decided(text, claim.engine)
            if truth is None:
                result.counts["the judge gave up"] += 1
            elif truth != claim.engine:
                name = self._differences.name(text, claim.engine, said)
                if name is None:
                    _fail(
                        result,
                        case,
                        claim.check,
                        claim.text,
                        added=claim.added,
                        engine=claim.engine,
                        judge=truth,
                        said=said,
                    )
                else:
                    result.counts[f"documented: {name}"] += 1
        result.counts["texts judged"] += len(texts)
        return result

    def _ask(self, case: Case, rng: random.Random, result: Result) -> None:
        middle = case.middle
        session = self.language.open(case.left, case.right)
        if session.guarantee != "exact":
            _fail(result, case, "refused middle", middle, note=f"guarantee {session.guarantee}")
            return
        viable = self._walk(session, case, rng, result)
        result.counts["characters"] += len(middle)
        if viable == len(middle) and not session.check(middle).complete:
            _fail(result, case, "inconsistent", middle, note="check and advance differ")
        refused = []
        for name, text in (*self._extensions(rng, case), *self.mutants(rng, case)):
            result.counts[name] += 1
            verdict = session.check(text)
            state = session.start()
            advanced = state.advance(text)
            whole = advanced == len(text.encode("utf-8", "replace"))
            if verdict.viable != whole or verdict.complete != (whole and state.is_complete()):
                _fail(result, case, "inconsistent", text, note=f"{verdict}, but advancing takes {advanced} bytes")
            result.claims.append(Claim("complete", text, verdict.complete))
            if verdict.rejected_at is not None and verdict.rejected_at < len(text):
                refused.append((text, verdict.rejected_at))
        searches = rng.sample(refused, min(len(refused), SEARCHES))
        for text, at in searches:
            result.counts["refused prefixes searched"] += 1
            for tail in self._tails(rng, session, text, at, middle):
                result.claims.append(Claim("refused prefix", text[: at + 1] + tail, False, tail))
        if searches:
            text, at = searches[0]
            self._shortest(session, case, text[:at], result)

    def _walk(self, session: Session, case: Case, rng: random.Random, result: Result) -> int:
        """The true middle, character by character; returns how many are viable."""
        middle = case.middle
        state = session.start()
        complete = [state.is_complete()]
        for at, character in enumerate(middle):
            if state.advance(character) != len(character.encode()):
                _fail(result, case, "refused middle", middle, note=f"refused at {at}")
                break
            complete.append(state.is_complete())
        viable = len(complete) - 1
        if viable == len(middle) and not complete.pop():
            _fail(result, case, "refused middle", middle, note="viable, but not complete")
        whole = [at for at in range(viable) if complete[at]]
        part = [at for at in range(viable) if not complete[at]]
        chosen = rng.sample(whole, min(len(whole), MOST_PREFIXES))
        chosen += rng.sample(part, min(len(part), INCOMPLETE_PREFIXES))
        result.claims += [Claim("complete", middle[:at], complete[at]) for at in chosen]
        result.counts["prefixes"] += len(chosen)
        for at in rng.sample(range(viable + 1), min(viable + 1, MOST_SHORTEST)):
            self._shortest(session, case, middle[:at], result)
        return viable

    def _shortest(self, session: Session, case: Case, prefix: str, result: Result) -> None:
        state = session.start()
        state.advance(prefix)
        try:
            found = state.shortest_completion()
        except SearchLimitError:
            result.counts["over the search's limit"] += 1
            return
        if found is None:
            _fail(result, case, "shortest completion", prefix, note="there is none")
            return
        result.counts["shortest completions"] += 1
        if not session.check(prefix + found).complete:
            _fail(result, case, "shortest completion", prefix + found, added=found, note="the engine does not take it")
        result.claims.append(Claim("shortest completion", prefix + found, True, found))

    # ---------------------------------------------------------------- other texts than the middle

    def _some_token(self, rng: random.Random, case: Case) -> str:
        if not case.tokens or rng.random() < 0.3:
            return rng.choice(self._pieces)
        start, end = rng.choice(case.tokens)
        return rng.choice(("", "", " ")) + case.text[start:end][:40]

    def _extensions(self, rng: random.Random, case: Case) -> Iterator[tuple[str, str]]:
        for _ in range(EXTENSIONS):
            begun = case.right[: rng.randint(1, 12)] if rng.random() < 0.25 else ""
            yield "extensions", case.middle + (begun or self._some_token(rng, case))

    def mutants(self, rng: random.Random, case: Case) -> Iterator[tuple[str, str]]:
        """Middles that a case's own is changed into, each with what is counted."""
        for kind in rng.sample(MUTATIONS, MUTANTS):
            yield f"mutants: {kind}", self._mutated(rng, case, kind)

    def _mutated(self, rng: random.Random, case: Case, kind: str) -> str:
        middle = case.middle
        match kind:
            case "token":
                return self._mutated_tokens(rng, case)
            case "blank":
                return _put(rng, middle, [at for at, it in enumerate(middle) if it.isspace()], rng.choice(BLANKS))
            case "bracket":
                places = [at for at, it in enumerate(middle) if it in self._brackets]
                return _put(rng, middle, places, rng.choice(self._brackets or ["("]))
            case "quote":
                places = [at for at, it in enumerate(middle) if it in self._quotes or it == "\\"]
                return _put(rng, middle, places, rng.choice((*self._quotes, "\\", "//", "/*", "*/")))
            case "word":
                spans = [(a - case.start, b - case.start) for a, b in case.tokens if a >= case.start and b <= case.end]
                words = [(a, b) for a, b in spans if middle[a:b].isidentifier()]
                if not words:
                    return _put(rng, middle, [], rng.choice(self._words) + " ")
                start, end = rng.choice(words)
                return middle[:start] + rng.choice(self._words) + middle[end:]
            case "line":
                lines = middle.splitlines(keepends=True) or [""]
                at = rng.randrange(len(lines))
                changed = (lines[:at] + lines[at + 1 :], [*lines[: at + 1], *lines[at:]], lines[::-1])
                return "".join(rng.choice(changed))
            case _:
                return _put(rng, middle, [*range(len(middle))], rng.choice(CHARACTERS))

    def _mutated_tokens(self, rng: random.Random, case: Case) -> str:
        """A token deleted, doubled, swapped with another one, or another put in or in its place."""
        middle = case.middle
        spans = [(a - case.start, b - case.start) for a, b in case.tokens if a >= case.start and b <= case.end]
        if not spans:
            return _put(rng, middle, [], self._some_token(rng, case))
        start, end = rng.choice(spans)
        match rng.randrange(5):
            case 0:
                return middle[:start] + middle[end:]
            case 1:
                return middle[:end] + rng.choice(("", " ")) + middle[start:end] + middle[end:]
            case 2:
                return middle[:start] + self._some_token(rng, case) + middle[end:]
            case 3:
                return middle[:start] + self._some_token(rng, case) + " " + middle[start:]
            case _:
                (a, b), (c, d) = sorted([(start, end), rng.choice(spans)])
                return (
                    middle[:start] + middle[end:]
                    if b > c
                    else middle[:a] + middle[c:d] + middle[b:c] + middle[a:b] + middle[d:]
                )

    def _tails(self, rng: random.Random, session: Session, text: str, at: int, middle: str) -> list[str]:
        """Texts that might complete what was refused: closers, what was there, what the engine would have written."""
        tails = {"", text[at + 1 :], middle[at + 1 :], middle[at:]}
        state = session.start()
        state.advance(text[:at])
        try:
            found = state.shortest_completion()
        except SearchLimitError:
            found = None
        if found:
            tails |= {found, found[1:]}
        while len(tails) < TAILS:
            tails.add("".join(rng.choice(self._closers) for _ in range(rng.randint(1, 3))))
        return sorted(tails)[:TAILS]


def _put(rng: random.Random, middle: str, places: Sequence[int], piece: str) -> str:
    """One of the places' characters deleted or replaced, or a piece put in somewhere."""
    choice = rng.randrange(3) if places else 2
    at = rng.choice(places) if places and choice < 2 else rng.randint(0, len(middle))
    return middle[:at] + ("" if choice == 0 else piece) + middle[at + (choice < 2) :]


def _fail(result: Result, case: Case, check: str, text: str, **facts: Any) -> None:
    added = facts.get("added", "")
    result.failures.append({
        "check": check, "left": case.left, "middle": text[: len(text) - len(added)], "right": case.right, **facts
    })  # fmt: skip
