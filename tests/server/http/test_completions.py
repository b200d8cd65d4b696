"""OpenAI's endpoint, with its own client."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

import pytest

for library in ("starlette", "uvicorn", "jsonschema"):
    pytest.importorskip(library)
openai = pytest.importorskip("openai")

from support.servers.http_served import PATIENCE, TEXT_LEFT, TEXT_RIGHT

if TYPE_CHECKING:
    from support.servers.http_served import HttpServed

PYTHON = {"language": "python"}


@pytest.fixture
def client(served: HttpServed) -> Any:
    return openai.OpenAI(base_url=f"{served.url}/v1", api_key="none", timeout=PATIENCE, max_retries=0)


def test_the_text_fits(client: Any) -> None:
    done = client.completions.create(model="any", prompt=TEXT_LEFT, suffix=TEXT_RIGHT, extra_body=PYTHON)
    (choice,) = done.choices
    assert choice.text.strip()
    assert choice.finish_reason == "stop"
    ast.parse(TEXT_LEFT + choice.text + TEXT_RIGHT)
    assert done.model_extra["fim_server"]["guarantee"] == "exact"
    assert done.usage.total_tokens == done.usage.prompt_tokens + done.usage.completion_tokens


def test_several_alternatives(client: Any) -> None:
    done = client.completions.create(model="any", prompt=TEXT_LEFT, suffix=TEXT_RIGHT, n=3, extra_body=PYTHON)
    texts = [choice.text for choice in done.choices]
    assert 1 < len(texts) <= 3
    assert len(set(texts)) == len(texts)
    for text in texts:
        ast.parse(TEXT_LEFT + text + TEXT_RIGHT)


def test_a_stream_has_the_text_and_its_end(client: Any) -> None:
    settings = {"model": "any", "prompt": TEXT_LEFT, "suffix": TEXT_RIGHT, "extra_body": PYTHON}
    plain = client.completions.create(**settings)
    chunks = list(client.completions.create(**settings, stream=True, stream_options={"include_usage": True}))
    assert "".join(chunk.choices[0].text for chunk in chunks if chunk.choices) == plain.choices[0].text
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices] == [None, "stop"]
    assert chunks[-1].usage is not None


def test_a_text_ends_before_a_stop_where_it_fits(client: Any) -> None:
    prompt, suffix = "def area(width, height):\n", "\n\nprint(area(2, 3))\n"
    done = client.completions.create(
        model="any", prompt=prompt, suffix=suffix, stop=["\n"], extra_body={**PYTHON, "invoked": True}
    )
    text = done.choices[0].text
    assert "\n" not in text
    assert text
    ast.parse(prompt + text + suffix)


def test_alternatives_that_a_stop_makes_equal_are_one(client: Any) -> None:
    settings = {"model": "any", "prompt": "def f(x):\n    return ", "suffix": "\n", "extra_body": PYTHON}
    done = client.completions.create(**settings, n=5, stop=[" ", "("])
    texts = [choice.text for choice in done.choices]
    assert len(set(texts)) == len(texts)


def test_few_tokens_end_in_a_text_that_fits(client: Any) -> None:
    left = "values = {'a': [1, (2, "
    done = client.completions.create(
        model="any", prompt=left, suffix="", max_tokens=8, extra_body={**PYTHON, "invoked": True}
    )
    ast.parse(left + done.choices[0].text)


def test_the_model_is_listed(client: Any) -> None:
    (model,) = client.models.list().data
    assert model.id


def test_errors_are_those_of_the_client(client: Any) -> None:
    with pytest.raises(openai.BadRequestError, match="n: at most 5 expected"):
        client.completions.create(model="any", prompt="x", n=6)
    with pytest.raises(openai.BadRequestError, match="prompt: at most 1 element expected"):
        client.completions.create(model="any", prompt=[1, 2, 3])
    with pytest.raises(openai.BadRequestError, match=r"begins with <\|fim_prefix\|>, but is in no known format"):
        client.completions.create(model="any", prompt="<|fim_prefix|>x = (<|fim_suffix|>)\n")
    with pytest.raises(openai.BadRequestError, match="echo: not supported"):
        client.completions.create(model="any", prompt="x", echo=True)
