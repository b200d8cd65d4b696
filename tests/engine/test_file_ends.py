"""Files that are lists with a head, that end with a comment without a line break, or that begin in several ways.

Random languages of that kind are compared with brute force. Sessions in which R has no say are compared with sessions
that ask R at every step (`language/follow`).
"""

import os
import random
from collections import Counter

from fim_server import Session
from support.languages.definitions import compiled_or_none
from support.languages.file_lists import random_files
from support.languages.toys import Oracle, check_contexts, contexts

LONG = os.environ.get("FIM_SERVER_LONG") == "1"
LANGUAGES = 800 if LONG else 22


def test_files_with_heads_and_last_comments_agree_with_brute_force() -> None:
    verdicts = {"complete": 0, "viable": 0, "refused": 0, "languages": 0}
    loose: Counter[bool] = Counter()
    for index in range(LANGUAGES):
        rng = random.Random(f"files {index}")
        toy = random_files(rng)
        language = compiled_or_none(toy.spec())
        if language is None:
            continue
        oracle = Oracle(toy)
        members = [text for text in oracle.texts(5) if oracle.member(text)]
        if not members:
            continue
        verdicts["languages"] += 1
        for left, right in contexts(oracle, rng, members):
            check_contexts(language, oracle, left, right, rng, verdicts, toy)
            session, tight = Session(language.open(left, right)), Session(language.open(left, right))
            loose[session._core.is_loose()] += bool(right)
            tight._core.tighten()
            for middle in oracle.texts(3):
                assert session.check(middle) == tight.check(middle), (toy, left, middle, right)
    assert min(verdicts.values()) > 0, verdicts
    assert min(loose[True], loose[False]) > 20, loose
