"""llama.cpp's ``/infill``: its fields, as llama.vim and llama.vscode send and read them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fim_server.server.http.wanted import Excerpt, Served, Wanted, common_fields
from fim_server.text.hidden import BYTE_ORDER_MARK


def wanted_of(fields: Mapping[str, Any]) -> Wanted:
    """Return the request in a body that the schema `Infill` has passed."""
    most = int(fields.get("n_predict", -1))
    return Wanted(
        prefix=(fields.get("input_prefix", "") + fields.get("prompt", "")).removeprefix(BYTE_ORDER_MARK),
        suffix=fields.get("input_suffix", ""),
        excerpts=tuple(Excerpt(one.get("filename", ""), one["text"]) for one in fields.get("input_extra") or ()),
        most_tokens=None if most < 0 else most,
        allowed_ms=fields.get("t_max_predict_ms"),
        **common_fields(fields),
    )


def response_of(served: Served, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the response to a request, with the fields that it names."""
    whole = whole_response(served)
    names = fields.get("response_fields")
    return whole if not names else dict(picked(whole, names))


def whole_response(served: Served) -> dict[str, Any]:
    text, costs, statistics = served.texts[0], served.costs, served.statistics
    read = 0 if statistics is None else statistics.prefilled_tokens
    written = 0 if statistics is None else statistics.tokens
    reused = 0 if statistics is None else statistics.reused_tokens
    return {
        "content": text.text,
        "stop": True,
        "stop_type": "none" if not text.text else "limit" if text.is_cut else "eos",
        "model": served.model,
        "tokens_cached": reused,
        "tokens_evaluated": read + reused,
        "tokens_predicted": written,
        "truncated": False,
        "timings": {
            **timings("prompt", read, costs.prefill_ms),
            **timings("predicted", written, costs.decode_ms + costs.engine_ms),
            "cache_n": reused,
            "total_ms": round(costs.total_ms, 3),
        },
        "fim_server": served.about,
    }


def timings(name: str, tokens: int, ms: float) -> dict[str, float]:
    """Return llama.cpp's fields for a number of tokens and their time."""
    return {
        f"{name}_n": tokens,
        f"{name}_ms": round(ms, 3),
        f"{name}_per_token_ms": round(ms / tokens, 3) if tokens else 0.0,
        f"{name}_per_second": round(1000 * tokens / ms, 3) if ms else 0.0,
    }


def picked(whole: Mapping[str, Any], names: list[str]) -> Iterator[tuple[str, Any]]:
    """Return the fields of some names, `a/b` for a nested one. Unknown names are left out."""
    for name in names:
        found: Any = whole
        for part in name.split("/"):
            if not isinstance(found, Mapping) or part not in found:
                break
            found = found[part]
        else:
            yield name, found


def events_of(served: Served, fields: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Return the events of a stream: the text, then the rest."""
    yield {"content": served.texts[0].text, "stop": False}
    yield {**response_of(served, fields), "content": "", "stop": True}
