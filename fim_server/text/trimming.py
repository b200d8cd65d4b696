"""Changes of texts without what they leave as it is."""

from __future__ import annotations


def trimmed(before: str, start: int, end: int, text: str) -> tuple[int, int, str]:
    """Return a change of a document without the text that it leaves as it is, at its beginning and its end."""
    old = before[start:end]
    head = common(old, text)
    tail = min(common(old[::-1], text[::-1]), len(old) - head, len(text) - head)
    return start + head, end - tail, text[head : len(text) - tail]


def common(some: str, other: str) -> int:
    """Return the length of the longest common beginning of two texts."""
    least, most = 0, min(len(some), len(other))
    while least < most:
        middle = (least + most + 1) // 2
        if some[least:middle] == other[least:middle]:
            least = middle
        else:
            most = middle - 1
    return least
