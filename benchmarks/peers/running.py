"""Peers in processes of their own: prepared, replayed twice over all cursors, and ended when their time is up."""

from __future__ import annotations

import gc
import importlib
import time

from benchmarks.peers.jobs import Engine, Job, Outcome, Peer, Work
from benchmarks.processes import (
    Clock,
    clock_of,
    forget_peak,
    growth,
    in_limited_process,
    peak_since_forgotten,
    release_free_memory,
    resident_memory,
    timed,
)
from fim_server.errors import LanguageError


def run(peer: Peer, work: Work, most_seconds: float) -> Outcome:
    """Prepares a peer and replays all jobs twice, in a process of its own. Never raises for what the peer does.

    Args:
        peer: Which.
        work: The language, the vocabulary and the cursors.
        most_seconds: It is ended and left out if it takes longer.
    """
    if not peer.installed():
        return Outcome(peer.name, "absent: not installed (pip install 'fim-server[peers]')")
    try:
        return in_limited_process(most_seconds, run_here, peer, work)
    except TimeoutError:
        return Outcome(peer.name, f"given up after {most_seconds:,.0f} s")
    except EOFError:
        return Outcome(peer.name, "its process ended without an answer")


def run_here(peer: Peer, work: Work) -> Outcome:
    """Run a peer in this process, which has to be a fresh one."""
    outcome = Outcome(peer.name, what(work.language, peer.package))
    try:
        text = peer.grammar(work.language)
    except LanguageError as error:
        outcome.note = f"no grammar for it: {error}"
        return outcome
    release_free_memory()
    forget_peak()
    before = resident_memory()
    try:
        importlib.import_module(peer.package)
        engine, outcome.preparation = timed(time.perf_counter, peer.prepare, work, text)
    except (ValueError, TypeError, RuntimeError, ImportError, AttributeError, MemoryError) as error:
        outcome.note = "failed: " + " ".join(str(error).split())[:200]
        return outcome
    outcome.prepared_memory = growth(before, resident_memory())
    passes = ((outcome.cold, work.jobs), (outcome.warm, work.jobs), (outcome.others, work.others))
    for masks, jobs in passes:
        for job in jobs:
            replay(engine, job, masks, outcome, clock_of(work.cpu_time))
        outcome.steps += len(masks)
    outcome.peak_memory = growth(before, peak_since_forgotten())
    outcome.ran = True
    return outcome


def what(language: str, package: str) -> str:
    """The language that a peer is asked for, in words."""
    if language == "json":
        return "JSON, the same grammar"
    names = "keywords reserved" if package == "llguidance" else "keywords not reserved"
    if language != "python":
        return f"the same rules, without error lexemes, {names}"
    return f"flat Python: lines and brackets, no indentation, f-strings opaque, {names}"


def replay(engine: Engine, job: Job, masks: list[float], outcome: Outcome, clock: Clock) -> None:
    """A mask before each of a job's tokens."""
    matcher = engine.open(job)
    if matcher is None:
        outcome.refused_left += 1
        return
    words = engine.words
    gc.collect()
    gc.disable()
    try:
        for token_id in job.ids:
            started = clock()
            matcher.fill_mask()
            masks.append(clock() - started)
            allowed = int(words[token_id >> 5]) >> (token_id & 31) & 1
            started = clock()
            taken = matcher.commit(token_id) if allowed else False
            outcome.commits.append(clock() - started)
            if not taken:
                outcome.refused += 1
                outcome.commits.pop()
                return
    finally:
        gc.enable()
