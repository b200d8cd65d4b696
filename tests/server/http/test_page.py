"""The OpenAPI page by schemathesis, the metrics, and prompts that clients write themselves."""

from __future__ import annotations

import ast
import os
from typing import TYPE_CHECKING, Any

import pytest

for library in ("starlette", "uvicorn", "jsonschema", "prometheus_client"):
    pytest.importorskip(library)

from support.servers.http_served import TEXT_LEFT, TEXT_RIGHT

if TYPE_CHECKING:
    from support.servers.http_served import HttpServed

EXAMPLES = 400 if os.environ.get("FIM_SERVER_LONG") else 12
"""Requests for each endpoint; the long form sends more."""


def test_responses_are_as_the_page_says(served: HttpServed) -> None:
    schemathesis = pytest.importorskip("schemathesis")
    hypothesis = pytest.importorskip("hypothesis")
    page = schemathesis.openapi.from_url(f"{served.url}/openapi.json")
    seen: set[str] = set()

    for result in page.get_all_operations():
        operation = result.ok()

        def answers_as_said(case: Any) -> None:
            response = case.call(base_url=served.url)
            assert response.status_code < 500, response.text
            case.validate_response(response)

        limits = hypothesis.settings(
            max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(hypothesis.HealthCheck)
        )
        hypothesis.given(case=operation.as_strategy())(limits(answers_as_said))()
        seen.add(operation.path)
    assert seen == {"/infill", "/v1/completions", "/v1/models", "/health", "/metrics"}


def test_metrics_count_answers(served: HttpServed) -> None:
    from prometheus_client.parser import text_string_to_metric_families

    def counted() -> float:
        families = text_string_to_metric_families(served.get("/metrics").text)
        answers = [
            sample for family in families for sample in family.samples if sample.name == "fim_http_answers_total"
        ]
        return float(sum(sample.value for sample in answers if sample.labels["language"] == "python"))

    before = counted()
    served.infill(TEXT_LEFT, TEXT_RIGHT)
    assert counted() == before + 1
    served.post("/infill", {"input_prefix": "x", "language": "a-language-of-no-name"})
    assert "a-language" not in served.get("/metrics").text


@pytest.mark.parametrize(
    "prompt",
    [
        "<|fim_prefix|>{left}<|fim_suffix|>{right}<|fim_middle|>",
        "<PRE> {left} <SUF>{right} <MID>",
        "[SUFFIX]{right}[PREFIX]+++++ a.py\nx = 1\n\n+++++ b.py\n{left}",
    ],
)
def test_prompts_of_other_models_are_taken_apart(served: HttpServed, prompt: str) -> None:
    written = prompt.format(left=TEXT_LEFT, right=TEXT_RIGHT)
    response = served.post("/v1/completions", {"prompt": written, "stop": ["<|fim_prefix|>"], "language": "python"})
    assert response.headers["x-fim-guarantee"] == "exact"
    text = response.json()["choices"][0]["text"]
    assert text.strip()
    ast.parse(TEXT_LEFT + text + TEXT_RIGHT)


def test_an_ambiguous_prompt_gets_a_reason(served: HttpServed) -> None:
    prompt = "<|fim_prefix|>x = '<|fim_suffix|>'<|fim_suffix|>\n<|fim_middle|>"
    response = served.post("/v1/completions", {"prompt": prompt})
    assert response.status_code == 400
    assert "more than once" in response.json()["error"]["message"]
