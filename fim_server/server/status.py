"""What the server tells of itself: its state in one word and in one line, and what its last answer was."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from lsprotocol import types

from fim_server.models.store.catalogue import Entry
from fim_server.models.store.state import State
from fim_server.server.language_server import FimLanguageServer
from fim_server.server.messages import MOST_OF_NAME, latency_json, lines_json, model_json
from fim_server.suggest.answer_cache import Answer
from fim_server.suggest.job import Costs
from fim_server.system.process import resident_lately
from fim_server.text.hidden import MOST_SHOWN, escaped_values, on_one_line
from fim_server.workers.budget import MEGABYTE

STATUS = "fim-server/status"

URIS = frozenset({"uri", "setAside", "inPart"})
"""Fields that name documents as the client does; all others have hidden characters as escapes."""

SOON_SECONDS = 0.02
"""When a state is told that need not be told at once: no answer waits for it."""


def tell_status(ls: FimLanguageServer) -> None:
    """Send the status as it is now."""
    model = ls.worker.model
    state = ls.sent.state = state_of(ls)
    status: dict[str, Any] = {"state": state, "message": message_of(ls, state)}
    if ls.model.progress is not None and state == "loading":
        status["progress"] = ls.model.progress[1]
    if model is not None:
        status["model"] = model_json(model)
    if ls.model.better is not None:
        status["offer"] = offer_json(*ls.model.better)
    fetching = ls.model.fetching or ls.model.downloading
    if fetching is not None:
        status["fetching"] = {
            "name": fetching.name,
            "message": fetching.message,
            "progress": round(fetching.share, 3),
        }
    if ls.requests.suspended:
        status["setAside"] = sorted(ls.requests.suspended)
    if unfinished := ls.worker.unfinished.documents:
        status["inPart"] = unfinished
    status["memory"] = memory_json(ls)
    if ls.sent.last is not None:
        status["last"] = ls.sent.last
    ls.protocol.notify(STATUS, escaped_values(status, MOST_SHOWN, URIS))


def tell_state_soon(ls: FimLanguageServer) -> None:
    """Send the status in a moment, if the state is another then than was told last."""

    def tell() -> None:
        if state_of(ls) != ls.sent.state:
            tell_status(ls)

    asyncio.get_running_loop().call_later(SOON_SECONDS, tell)


def state_of(ls: FimLanguageServer) -> str:
    """The state in one word: `off`, `error`, `loading`, `busy` or `ready`."""
    if not ls.settings.enabled:
        return "off"
    if ls.model.failure is not None:
        return "error"
    if ls.worker.model is None:
        return "loading"
    return "busy" if ls.requests.waiting else "ready"


def message_of(ls: FimLanguageServer, state: str) -> str:
    """A state in one line."""
    match state:
        case "off":
            return "switched off"
        case "error":
            return ls.model.failure or ""
        case "loading":
            what = ls.model.progress[0] if ls.model.progress is not None else "starting"
            return what if ls.model.overdue is None else f"{what}: {ls.model.overdue}"
        case "busy":
            return "completing"
        case _:
            model = ls.worker.model
            ready = (
                f"ready: {on_one_line(model.name, MOST_OF_NAME)} on {model.device}" if model is not None else "ready"
            )
            if model is not None and model.mode == "checked":
                ready += ", checked: its texts are made to fit, and need not be the model's likeliest"
            if model is not None and not model.format.sees_suffix:
                ready += ", from left to right: it was not trained to see what follows"
            if ls.requests.suspended:
                ready += f"; set aside until they change: {', '.join(map(name_of, sorted(ls.requests.suspended)))}"
            if unfinished := ls.worker.unfinished.documents:
                ready += f"; read in part until they change: {', '.join(map(name_of, unfinished))}"
            return ready if ls.model.better is None else f"{ready}; {offer_in_words(*ls.model.better)}"


def name_of(uri: str) -> str:
    """A document's name for people."""
    return unquote(uri.rstrip("/").rpartition("/")[2]) or uri


def memory_json(ls: FimLanguageServer) -> dict[str, Any]:
    """The status's field `memory`; what is not known is null."""
    resident, allowed, last = resident_lately(), ls.supervisor.allowed, ls.supervisor.budget.last
    return {
        "residentMb": None if resident is None else resident // MEGABYTE,
        "budgetMb": None if allowed is None else allowed // MEGABYTE,
        "projectMb": ls.project.size // MEGABYTE,
        "dropped": None if last is None else str(last),
    }


def offer_in_words(entry: Entry, state: State) -> str:
    """That a better model can be had, and how."""
    if state is State.DAMAGED:
        return f"{entry.name} is damaged, the embedded model serves meanwhile: run `{entry.how}`"
    what = f"{entry.name} is outdated" if state is State.OUTDATED else f"a better model, {entry.name}, can be had"
    return f"{what}: run `{entry.how}`"


def offer_json(entry: Entry, state: State) -> dict[str, Any]:
    """The status's field `offer`."""
    return {
        "name": entry.name,
        "state": str(state),
        "bytes": entry.package.wheel.size,
        "how": entry.how,
    }


def tell_declined(ls: FimLanguageServer, uri: str, arrived: float, reason: str) -> None:
    """Tell why a request gets nothing; ``arrived``: when it came, by ``time.perf_counter``."""
    costs = Costs(total_ms=1000 * (time.perf_counter() - arrived))
    last = last_json(uri, costs, None, "none", reason)
    ls.with_answer(lambda: tell_last(ls, last))


def tell_answered(ls: FimLanguageServer, uri: str, costs: Costs, answer: Answer, origin: str) -> None:
    """Tell what a request gets, and log it once it has; ``origin``: `model`, `prefetch` or `cache`."""
    last = last_json(uri, costs, answer, origin, answer.reason)
    ls.with_answer(lambda: tell_last(ls, last))
    ls.once_answered(lambda: log_answer(ls, last))


def tell_last(ls: FimLanguageServer, last: dict[str, Any]) -> None:
    """Send the status with what there is to say of an answer."""
    ls.sent.last = last
    tell_status(ls)


def last_json(uri: str, costs: Costs, answer: Answer | None, origin: str, reason: str | None) -> dict[str, Any]:
    """The status's field `last`."""
    offers = answer.suggestions if answer is not None else ()
    completion = offers[0].completion if offers else None
    return {
        "uri": uri,
        "items": len(offers),
        "guarantee": offers[0].guarantee if offers else "none",
        "coveredLines": lines_json(offers[0].covered_lines) if offers else [],
        "origin": origin,
        "stopReason": str(completion.stop_reason) if completion is not None else None,
        "reason": reason,
        "tokens": completion.statistics.tokens if completion is not None else 0,
        "confidence": None if not offers or offers[0].confidence is None else round(offers[0].confidence, 3),
        "refused": completion.statistics.refused_tokens if completion is not None else 0,
        "passes": completion.statistics.passes if completion is not None else 0,
        "drafted": completion.statistics.drafted_tokens if completion is not None else 0,
        "accepted": completion.statistics.accepted_tokens if completion is not None else 0,
        "latency": latency_json(costs),
    }


def log_answer(ls: FimLanguageServer, last: Mapping[str, Any]) -> None:
    """One line an answer: the guarantee, how it ended, and what it cost."""
    cost = last["latency"]
    lines = ", ".join(f"{found['line'] + 1} to {found['line'] + found['count']}" for found in last["coveredLines"])
    guarantee = f"guarantee {last['guarantee']}" + (f" (lines {lines})" if lines else "")
    what = f"{guarantee}, {last['stopReason']}" if last["items"] else f"nothing ({last['reason']})"
    items = f"{last['items']} item{'s' * (last['items'] != 1)} from the {last['origin']}"
    parts = ", ".join(f"{name.removesuffix('Ms')} {value:g}" for name, value in cost.items() if name != "totalMs")
    ls.log(
        types.MessageType.Log,
        f"{last['uri']}: {items}, {what}, {last['tokens']} tokens, {last['refused']} refused, "
        f"{last['passes']} passes ({last['accepted']} of {last['drafted']} drafted tokens accepted), "
        f"{cost['totalMs']:g} ms ({parts})",
    )
