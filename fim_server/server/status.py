"""Status of the server: its state, the reasons for it, and its last answer."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from lsprotocol import types

from fim_server.models.store.catalogue import Entry
from fim_server.models.store.folders import EMBEDDED_INSTEAD
from fim_server.models.store.state import State
from fim_server.server.items import lines_json
from fim_server.server.language_server import FimLanguageServer
from fim_server.server.usage import rounded
from fim_server.suggest.answer_cache import Answer
from fim_server.suggest.job import Costs
from fim_server.suggest.ranking.reasons import Suppression, reasons_in_words
from fim_server.system.process import resident_lately
from fim_server.text.hidden import MOST_SHOWN, escaped_values, on_one_line
from fim_server.workers.budget import MEGABYTE

if TYPE_CHECKING:
    from fim_server.models.model import FimModel

STATUS = "fim-server/status"

URIS = frozenset({"uri", "setAside", "inPart"})
"""Fields with the client's own names of documents; all others have hidden characters escaped."""

MOST_OF_NAME = 200
"""Most characters of a model's name."""

SOON_SECONDS = 0.02
"""Delay of a change of state, so that no answer waits for it."""


def send_status(ls: FimLanguageServer) -> None:
    model = ls.worker.model
    state = ls.sent.state = state_of(ls)
    status: dict[str, Any] = {"state": state, "message": message_of(ls, state)}
    if ls.model.progress is not None and state == "loading":
        status["progress"] = ls.model.progress[1]
    if model is not None:
        status["model"] = model_json(model)
    if ls.model.better is not None:
        status["offer"] = better_json(*ls.model.better)
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


def send_state_soon(ls: FimLanguageServer) -> None:
    """Send the status after a moment, if the state is then new."""

    def tell() -> None:
        if state_of(ls) != ls.sent.state:
            send_status(ls)

    asyncio.get_running_loop().call_later(SOON_SECONDS, tell)


def state_of(ls: FimLanguageServer) -> str:
    """Return the state in one word: `off`, `error`, `loading`, `busy` or `ready`."""
    if not ls.settings.enabled:
        return "off"
    if ls.model.failure is not None:
        return "error"
    if ls.worker.model is None:
        return "loading"
    return "busy" if ls.requests.waiting else "ready"


def message_of(ls: FimLanguageServer, state: str) -> str:
    """Return a state in one line."""
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
            return ready_message(ls)


def ready_message(ls: FimLanguageServer) -> str:
    """Return the message of a ready server, with what limits its suggestions."""
    model = ls.worker.model
    if model is None:
        return "ready"
    ready = f"ready: {on_one_line(model.name, MOST_OF_NAME)} on {model.device}"
    if model.mode == "checked":
        ready += ", checked: texts are corrected to parse, and need not be the model's likeliest"
    if not model.format.sees_suffix:
        ready += ", left to right: the model was not trained to see the text after the cursor"
    if ls.requests.suspended:
        ready += f"; no suggestions until they change: {', '.join(map(name_of, sorted(ls.requests.suspended)))}"
    if unfinished := ls.worker.unfinished.documents:
        ready += f"; read in part until they change: {', '.join(map(name_of, unfinished))}"
    return ready if ls.model.better is None else f"{ready}; {better_in_words(*ls.model.better)}"


def name_of(uri: str) -> str:
    """Return a document's name for the user."""
    return unquote(uri.rstrip("/").rpartition("/")[2]) or uri


def memory_json(ls: FimLanguageServer) -> dict[str, Any]:
    """Return the status's field `memory`; unknown values are null."""
    resident, allowed, last = resident_lately(), ls.supervisor.allowed, ls.supervisor.budget.last
    return {
        "residentMb": None if resident is None else (resident + ls.checkers.resident_bytes) // MEGABYTE,
        "budgetMb": None if allowed is None else allowed // MEGABYTE,
        "projectMb": ls.project.size // MEGABYTE,
        "dropped": None if last is None else str(last),
    }


def model_json(model: FimModel) -> dict[str, Any]:
    """Return the status's field `model`."""
    learnt = model.format.languages
    return {
        "name": on_one_line(model.name, MOST_OF_NAME),
        "device": str(model.device),
        "runtime": model.runtime,
        "format": model.format.family,
        "mode": model.mode,
        "languages": None if learnt is None else sorted(learnt),
    }


def better_in_words(entry: Entry, state: State) -> str:
    """Return the message about a better model."""
    match state:
        case State.DAMAGED:
            what = f"{entry.name} is damaged, {EMBEDDED_INSTEAD}"
        case State.OUTDATED:
            what = f"{entry.name} is outdated"
        case _:
            what = f"a better model, {entry.name}, is available"
    return f"{what}: run `{entry.how}`"


def better_json(entry: Entry, state: State) -> dict[str, Any]:
    """Return the status's field `offer`."""
    return {
        "name": entry.name,
        "state": str(state),
        "bytes": entry.download,
        "how": entry.how,
    }


def report_declined(ls: FimLanguageServer, uri: str, arrived: float, reason: str) -> None:
    """Report and log that a request gets no suggestion; ``arrived``: its time by ``time.perf_counter``."""
    costs = Costs(total_ms=1000 * (time.perf_counter() - arrived))
    report_last(ls, last_json(uri, costs, None, "none", reason))


def report_answered(ls: FimLanguageServer, uri: str, costs: Costs, answer: Answer, origin: str, is_held: bool) -> None:
    """Report and log an answer.

    Args:
        ls: The server.
        uri: The document.
        costs: The answer's costs.
        answer: The answer.
        origin: `model`, `memory`, `prefetch` or `cache`.
        is_held: Whether the answer waits for an explicit request.
    """
    report_last(ls, last_json(uri, costs, answer, origin, answer.reason) | {"ready": is_held}, answer.suppressed)


def report_last(ls: FimLanguageServer, last: dict[str, Any], suppressed: tuple[Suppression, ...] = ()) -> None:
    """Send the status with an answer, and log it once it is sent; ``suppressed``: suggestions that are not shown.

    The log has one line for requests in a row that are declined for the same reason.
    """
    is_repeated = last["origin"] == "none" and is_like(last, ls.sent.last)

    def tell() -> None:
        ls.sent.last = last
        send_status(ls)

    ls.with_answer(tell)
    if not is_repeated:
        ls.once_answered(lambda: ls.log(types.MessageType.Log, log_line(last, suppressed)))


def is_like(last: dict[str, Any], before: dict[str, Any] | None) -> bool:
    """Return whether two fields `last` have the same document, origin and reason."""
    return before is not None and all(last[name] == before[name] for name in ("uri", "origin", "reason"))


def latency_json(costs: Costs) -> dict[str, float]:
    """Return the costs of a request, in milliseconds."""
    return {
        "totalMs": rounded(costs.total_ms),
        "debounceMs": rounded(costs.debounce_ms),
        "queueMs": rounded(costs.queue_ms),
        "openMs": rounded(costs.open_ms),
        "prefillMs": rounded(costs.prefill_ms),
        "decodeMs": rounded(costs.decode_ms),
        "engineMs": rounded(costs.engine_ms),
        "serverMs": rounded(costs.server_ms),
    }


def last_json(uri: str, costs: Costs, answer: Answer | None, origin: str, reason: str | None) -> dict[str, Any]:
    """Return the status's field `last`."""
    suggestions = answer.suggestions if answer is not None else ()
    first = suggestions[0] if suggestions else None
    completion = None if first is None else first.origin.completion
    statistics = None if completion is None else completion.statistics
    return {
        "uri": uri,
        "items": len(suggestions),
        "ready": False,
        "guarantee": "none" if first is None else first.origin.guarantee,
        "coveredLines": [] if first is None else lines_json(first.origin.covered_lines),
        "origin": origin,
        "stopReason": None if completion is None else str(completion.stop_reason),
        "reason": reason,
        "tokens": statistics.tokens if statistics is not None else 0,
        "confidence": None if first is None or first.display.confidence is None else round(first.display.confidence, 3),
        "refused": statistics.refused_tokens if statistics is not None else 0,
        "passes": statistics.passes if statistics is not None else 0,
        "drafted": statistics.drafted_tokens if statistics is not None else 0,
        "accepted": statistics.accepted_tokens if statistics is not None else 0,
        "latency": latency_json(costs),
    }


def log_line(last: dict[str, Any], suppressed: tuple[Suppression, ...]) -> str:
    """Return the log line of an answer: its suggestions, the reasons for hiding others or all, and the costs."""
    uri, origin, cost = last["uri"], last["origin"], last["latency"]
    reasons = reasons_in_words(last["reason"], suppressed)
    noted = f" ({reasons})" if reasons else ""
    if origin == "none":
        return f"{uri}: no suggestion{noted}"
    parts = ", ".join(f"{name.removesuffix('Ms')} {value:g}" for name, value in cost.items() if name != "totalMs")
    times = f"{cost['totalMs']:g} ms ({parts})"
    if not last["items"]:
        known = f", from the {origin}" if origin in ("cache", "prefetch") else ""
        return f"{uri}: no suggestion{noted}{known}, {times}"
    held = ", ready for a request" if last["ready"] else ""
    lines = ", ".join(f"{found['line'] + 1} to {found['line'] + found['count']}" for found in last["coveredLines"])
    return (
        f"{uri}: {last['items']} item{'s' * (last['items'] != 1)} from the {origin}{noted}{held}, "
        f"guarantee {last['guarantee']}{lines and f' (lines {lines})'}, {last['stopReason']}, "
        f"{last['tokens']} tokens, {last['refused']} refused, "
        f"{last['passes']} passes ({last['accepted']} of {last['drafted']} drafted tokens accepted), {times}"
    )
