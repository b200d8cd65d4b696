"""llama.cpp's endpoint, with the requests of llama.vim and llama.vscode as their sources write them."""

from __future__ import annotations

import ast
import json
import time
from typing import Any

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
pytest.importorskip("jsonschema")

from fim_server.server.documents.secret_documents import IS_SECRET
from fim_server.suggest.settings import ServerSettings
from support.servers.http_served import PATIENCE, TEXT_LEFT, TEXT_RIGHT, HttpServed

LLAMA_VIM_FIELDS = [
    "content",
    *(f"timings/prompt_{name}" for name in ("n", "ms", "per_token_ms", "per_second")),
    *(f"timings/predicted_{name}" for name in ("n", "ms", "per_token_ms", "per_second")),
    "truncated",
    "tokens_cached",
]


def llama_vim(left: str, right: str, **fields: Any) -> dict[str, Any]:
    """Return the request of llama.vim: the cursor's line up to the cursor is the prompt."""
    above, _, line = left.rpartition("\n")
    return {
        "input_prefix": f"{above}\n",
        "input_suffix": right,
        "input_extra": [],
        "prompt": line,
        "n_predict": 256,
        "n_indent": 4,
        "top_k": 40,
        "top_p": 0.99,
        "stream": False,
        "samplers": ["top_k", "top_p", "infill"],
        "cache_prompt": True,
        "t_max_prompt_ms": 500,
        "t_max_predict_ms": 60_000,
        "response_fields": LLAMA_VIM_FIELDS,
        **fields,
    }


def test_llama_vim_gets_the_fields_it_names(served: HttpServed) -> None:
    response = served.post("/infill", llama_vim(TEXT_LEFT, TEXT_RIGHT, filename="area.py"))
    found = response.json()
    assert list(found) == LLAMA_VIM_FIELDS
    assert response.headers["x-fim-language"] == "python"
    assert response.headers["x-fim-guarantee"] == "exact"
    assert found["content"].strip()
    ast.parse(TEXT_LEFT + found["content"] + TEXT_RIGHT)


def test_a_byte_order_mark_costs_no_guarantee(served: HttpServed) -> None:
    found = served.infill(f"\ufeff{TEXT_LEFT}", TEXT_RIGHT)
    assert found["fim_server"]["guarantee"] == "exact"
    ast.parse(TEXT_LEFT + found["content"] + TEXT_RIGHT)


def test_llama_vscode_reads_nested_timings(served: HttpServed) -> None:
    found = served.infill(TEXT_LEFT + "total + ", TEXT_RIGHT)
    assert found["timings"]["predicted_n"] >= 0
    assert found["tokens_evaluated"] >= found["tokens_cached"]
    assert found["fim_server"]["language"] == "python"
    assert found["fim_server"]["reason"] is None


def test_an_equal_request_is_answered_from_the_cache(served: HttpServed) -> None:
    left = TEXT_LEFT + "total - "
    first, second = (served.infill(left, TEXT_RIGHT) for _ in range(2))
    assert second["content"] == first["content"] != ""
    assert second["fim_server"]["origin"] == "cache"
    typed = served.infill(left + first["content"][0], TEXT_RIGHT)
    assert typed["content"] == first["content"][1:]
    assert len(first["content"]) == 1 or typed["fim_server"]["origin"] == "cache"


def test_a_file_of_secrets_is_not_completed(served: HttpServed) -> None:
    found = served.infill("KEY = ", "\n", filename="settings/.env")
    assert (found["content"], found["fim_server"]["reason"]) == ("", IS_SECRET)


def test_no_token_reads_the_excerpts_only(served: HttpServed) -> None:
    """Request of llama.vim's ring buffer, which reads no field of the response."""
    excerpt = {"filename": "other.py", "time": [1, 2], "text": "def volume(width, height, depth):\n    return 1\n"}
    body = {"input_prefix": "", "prompt": "", "input_suffix": "", "input_extra": [excerpt], "n_predict": 0}
    response = served.post("/infill", {**body, "t_max_predict_ms": 1, "response_fields": [""]})
    assert (response.status_code, response.json()) == (200, {})


def test_lines_of_excerpts_are_recalled() -> None:
    line = '    quartile = interpolated(0.25, method="nearest")\n'
    excerpt = {"filename": "other.py", "text": f"def first():\n{line * 3}"}
    left = "def second():\n    quartile = interpolated("
    with HttpServed(ServerSettings(model="embedded", ask_model=False, min_confidence=0.0)) as memory_alone:
        memory_alone.await_model()
        found = memory_alone.infill(left, "\n")
        assert "0.25" not in found["content"]
        ends, number = time.monotonic() + PATIENCE, 0
        while "0.25" not in found["content"] and time.monotonic() < ends:  # excerpts are read in the background
            number += 1  # another text, since answers are cached
            found = memory_alone.infill(f"# {number}\n{left}", "\n", input_extra=[excerpt])
            time.sleep(0.1)
    assert found["content"].startswith("0.25")
    assert found["fim_server"]["origin"] == "memory"


def test_a_text_of_a_stream_is_that_of_a_response(served: HttpServed) -> None:
    plain = served.infill(TEXT_LEFT, TEXT_RIGHT)
    body = {"input_prefix": TEXT_LEFT, "input_suffix": TEXT_RIGHT, "language": "python", "stream": True}
    response = served.post("/infill", body)
    assert response.headers["content-type"].startswith("text/event-stream")
    events = [json.loads(line.removeprefix("data: ")) for line in response.text.splitlines() if line]
    assert "".join(event["content"] for event in events) == plain["content"]
    assert [event["stop"] for event in events] == [False, True]


def test_a_client_without_excerpts_may_send_null(served: HttpServed) -> None:
    assert "content" in served.infill("x = ", "\n", input_extra=None)


def test_line_breaks_are_those_of_the_client(served: HttpServed) -> None:
    left, right = "def area(width):\n".replace("\n", "\r\n"), "\r\n\r\nprint(area(1))\r\n"
    found = served.infill(left + "    ", right, invoked=True)
    assert "\n" not in found["content"].replace("\r\n", "")
    response = served.post("/infill", {"input_prefix": "x = 1\r", "input_suffix": "\n"})
    assert (response.status_code, response.json()["error"]["message"]) == (400, "the cursor is inside a line break")


@pytest.mark.parametrize(("left", "right"), [("print(", ")\n"), ("x = [1, ", "]\ny = 2\n"), ("f({'a': ", "})\n")])
def test_brackets_right_of_the_cursor_are_not_repeated(served: HttpServed, left: str, right: str) -> None:
    """An HTTP client only inserts: a text that replaces the closers would double them."""
    found = served.infill(left, right, invoked=True)
    assert found["content"], found
    ast.parse(left + found["content"] + right)


def test_a_language_without_a_definition_is_said_to_be_none(served: HttpServed) -> None:
    response = served.post("/infill", {"input_prefix": "dear all,\nthis is ", "input_suffix": "\n", "invoked": True})
    assert response.headers["x-fim-language"] == response.headers["x-fim-guarantee"] == "none"


GO = 'package main\n\nimport "fmt"\n\nfunc main() {\n\tfor i := 0; i < 3; i++ {\n\t\tfmt.Println(i'


def test_the_language_is_guessed_from_the_text(served: HttpServed) -> None:
    pytest.importorskip("magika")
    for text, rest, language in ((GO, ")\n\t}\n}\n", "go"), (TEXT_LEFT, TEXT_RIGHT, "python")):
        response = served.post("/infill", {"input_prefix": text, "input_suffix": rest, "invoked": True})
        assert response.headers["x-fim-language"] == language
        assert response.headers["x-fim-guarantee"] == "exact"


@pytest.mark.parametrize(
    ("fields", "language"),
    [
        ({"language": "C++"}, "cpp"),
        ({"language": "py"}, "python"),
        ({"language": "日本語"}, "none"),
        ({"language": "a\r\nb: c"}, "none"),
        ({"filename": "a.日本語"}, "none"),
        ({"path": "C:\\code\\lib.rs"}, "rust"),
        ({"filename": "page.vue"}, "vue"),
        ({"input_prefix": "-- language: lua\n-- indentation: tabs\nlocal x = "}, "lua"),
        ({"input_extra": [{"filename": "a/b.go", "text": "package a\n"}]}, "go"),
    ],
)
def test_the_language_is_named(served: HttpServed, fields: dict[str, Any], language: str) -> None:
    response = served.post("/infill", {"input_prefix": "x", **fields})
    assert response.headers["x-fim-language"] == language
