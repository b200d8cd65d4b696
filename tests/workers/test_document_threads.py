"""Objects of one thread refuse every other thread."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from fim_server.language import Language
from fim_server.suggest.answer_cache import Answer, AnswerCache
from fim_server.suggest.context.sessions import DocumentSessions
from fim_server.text.document import Split

ANSWER = Answer(("file:///a.json", "json"), "[", "]", single_line=True, suggestions=(), complete=False)
USES: dict[str, Callable[[AnswerCache, DocumentSessions], object]] = {
    "adding": lambda memory, contexts: memory.add(ANSWER),
    "finding": lambda memory, contexts: memory.find(ANSWER.key, "[", "]", True, False),
    "forgetting answers": lambda memory, contexts: memory.forget("file:///a.json"),
    "clearing the memory": lambda memory, contexts: memory.clear(),
    "opening": lambda memory, contexts: contexts.open("file:///a.json", Language.load("json"), Split("[", "]")),
    "forgetting lines": lambda memory, contexts: contexts.forget("file:///a.json"),
    "clearing the contexts": lambda memory, contexts: contexts.clear(),
}


@pytest.mark.parametrize("use", USES)
def test_only_the_first_thread_may_use_an_object(use: str) -> None:
    memory, contexts = AnswerCache(), DocumentSessions()
    with ThreadPoolExecutor(1) as owner, ThreadPoolExecutor(1) as another:
        for _ in range(2):
            for one in USES.values():
                owner.submit(one, memory, contexts).result()
        with pytest.raises(AssertionError):
            another.submit(USES[use], memory, contexts).result()
