"""Fill-in-the-middle examples: parts laid out with their markers, as text and as token ids."""

from __future__ import annotations

from typing import NamedTuple

from tokenizers import Tokenizer

from training.data.cutting import Hole, Order
from training.tokenizer import END, MIDDLE, PAD, PREFIX, SUFFIX, token_id


def lay_out(hole: Hole, order: Order) -> str:
    """The training text of an example, markers included; what a plain order says is the text.

    Raises ValueError if a part itself holds a marker.
    """
    if any(mark in part for part in hole for mark in (END, PREFIX, SUFFIX, MIDDLE, PAD)):
        raise ValueError("a part holds a marker")
    if order is Order.PLAIN:
        return "".join(hole)
    if order is Order.SUFFIX_FIRST:
        return f"{SUFFIX}{hole.right}{PREFIX}{hole.left}{MIDDLE}{hole.middle}{END}"
    return f"{PREFIX}{hole.left}{SUFFIX}{hole.right}{MIDDLE}{hole.middle}{END}"


class Example(NamedTuple):
    """Token ids, and for each id the weight of its loss: both [length]."""

    ids: list[int]
    weights: list[float]


def encode_example(tokenizer: Tokenizer, hole: Hole, order: Order, limit: int, middle_weight: float) -> Example:
    """Tokenize the parts apart, as a server must, and trim the contexts to `limit` tokens.

    The trimmed ends are those away from the cursor: the left's start and the right's end.
    """
    if order is Order.PLAIN:
        ids = tokenizer.encode("".join(hole), add_special_tokens=False).ids[:limit]
        return Example(ids, [1.0] * len(ids))
    left, middle, right = (encoding.ids for encoding in tokenizer.encode_batch(list(hole), add_special_tokens=False))
    marks = {mark: token_id(tokenizer, mark) for mark in (END, PREFIX, SUFFIX, MIDDLE)}
    middle = middle[: limit // 2]
    room = limit - len(middle) - 4
    right = right[: max(room // 3, room - len(left))]
    left = left[max(0, len(left) - (room - len(right))) :]
    if order is Order.SUFFIX_FIRST:
        context = [marks[SUFFIX], *right, marks[PREFIX], *left, marks[MIDDLE]]
    else:
        context = [marks[PREFIX], *left, marks[SUFFIX], *right, marks[MIDDLE]]
    answer = [*middle, marks[END]]
    weights = [1.0] * len(context) + [middle_weight] * len(answer)
    return Example(context + answer, weights)
