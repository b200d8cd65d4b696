"""Prompts that clients write by themselves, in the format of any known family, taken apart again.

A client may write the prompt for another model than the one that serves. Its parts are found by the tokens' names. The
prompt has to begin and end as the format says. Text that begins otherwise may mention such tokens and stays text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache

from fim_server.tokens.formats import FixedText, Slot, known_layouts

SPACE = "▁"
"""Mark of a space before a token, as SentencePiece writes it. Clients write a space there, or none."""

OPENERS = frozenset({"<s>", "<bos>", "<｜begin▁of▁sentence｜>", "[gMASK]", "<sop>"})
"""Tokens that begin a text and that clients leave out: the engine adds them."""

ASIDE = frozenset({"<|user|>", "<|assistant|>"})
"""Tokens of a conversation around a prompt, which clients may leave out."""

FILE_MARKS = ("<|file_sep|>", "<file_sep>", "<filename>", "<reponame>", "<|repo_name|>", "<repo_name>", "<|user|>")
"""Tokens with which the text before a prompt begins, if it has other files or the path."""

NO_FILES = frozenset({"<reponame>", "<|repo_name|>", "<repo_name>", "<|user|>"})
"""Those of them with no file behind them."""

FILE_MARK = re.compile("|".join(map(re.escape, FILE_MARKS)))

PATH = re.compile(r"[^\s<>:\"|?*]{1,4000}\.\w{1,12}|[\w./-]{0,4000}(?:Dockerfile|Makefile)")
"""Path of a file, alone on its line."""

NAMED_PATH = re.compile(r"^###PATH:[ \t]*(\S[^\n]{0,4000})$", re.MULTILINE)
"""Line with a file's path, of CodeGeeX4."""

PLUSES = "+++++ "
"""Beginning of a line with a file's path, of Codestral, in the prefix."""

NAMED_LANGUAGE = re.compile(r"^###LANGUAGE:[ \t]*(\S[^\n]{0,60})$", re.MULTILINE)


MARKUP = re.compile(r"<(?!fim)\w+>|\[\w+\]")
"""Tokens that are also tags, or headings of INI files: code may begin with them."""


class AmbiguousPromptError(ValueError):
    """Prompt that begins as one of a known format, and can be taken apart in no way or in several."""


@dataclass(frozen=True, slots=True)
class WrittenPrompt:
    """Parts of a prompt.

    Attributes:
        prefix: The text before the cursor.
        suffix: The text after it.
        path: The file's path; empty if the prompt does not name it.
        language: The language's name; empty if the prompt does not name it.
        files: Other files: paths, which may be empty, and texts.
    """

    prefix: str
    suffix: str
    path: str = ""
    language: str = ""
    files: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Layout:
    """Tokens of a format around its two texts, in the order of the prompt.

    Attributes:
        first: The tokens before the first text.
        second: The token before the second text.
        last: The token behind it; may be empty.
        tokens: All of the tokens.
        prefix_comes_first: Whether the first text is the prefix.
        has_spaces: Whether the tokens have spaces around them.
    """

    first: str
    second: str
    last: str
    tokens: tuple[str, ...]
    prefix_comes_first: bool
    has_spaces: bool

    @property
    def with_empty_prefix(self) -> Layout:
        """Return the order suffix first of a format for prefix first: an empty prefix, and the prefix as a middle."""
        first = (" " if self.has_spaces else "").join((self.first, self.second))
        return replace(self, first=first, second=self.last, last="", prefix_comes_first=False)


@cache
def layouts() -> tuple[Layout, ...]:
    """Return the different layouts of all known formats; those that end with a token come first."""
    found = dict.fromkeys(layout for pieces in known_layouts() if (layout := layout_of(pieces)) is not None)
    found |= dict.fromkeys(one.with_empty_prefix for one in found if one.prefix_comes_first and one.last)
    return tuple(sorted(found, key=lambda layout: not layout.last))


def layout_of(pieces: tuple[str | FixedText, ...]) -> Layout | None:
    """Return the layout of a prompt; None if a text has no token before it."""
    names = [piece for piece in pieces if not isinstance(piece, FixedText) and piece not in OPENERS | ASIDE]
    one, other = (index for index, piece in enumerate(names) if piece in tuple(Slot))
    has_spaces = names[0].startswith(SPACE)
    groups = (names[:one], names[one + 1 : other], names[other + 1 :])
    # Inside of a token's name the mark is no space.
    first, second, last = ("".join(f" {name[1:]}" if has_spaces else name for name in group) for group in groups)
    if not first or not second:
        return None
    tokens = tuple(name.removeprefix(SPACE) for group in groups for name in group)
    return Layout(first.strip(), second.strip(), last.strip(), tokens, names[one] == Slot.PREFIX, has_spaces)


def take_apart(prompt: str) -> WrittenPrompt | None:
    """Return the parts of a prompt in a known format; None for any other text.

    Raises AmbiguousPromptError if a text in it has a token of its format, or if it begins with such a token and has
    no known format.
    """
    body = prompt
    while opener := next((one for one in OPENERS if body.startswith(one)), ""):
        body = body[len(opener) :]
    found = next((found for layout in layouts() if (found := parts_by(layout, body)) is not None), None)
    if found is None and (token := token_at_beginning(body)):
        raise AmbiguousPromptError(f"the prompt begins with {token}, but is in no known format")
    return found


def token_at_beginning(body: str) -> str:
    """Return the token with which a text begins that is a prompt or a part of one; empty for any other text."""
    begins = body.lstrip()
    token = next((one for one in all_tokens() if begins.startswith(one)), "")
    if not MARKUP.fullmatch(token):
        return token
    return token if any(layout.first in begins and layout.second in begins for layout in layouts()) else ""


@cache
def all_tokens() -> tuple[str, ...]:
    """Return the tokens of all layouts, and those before a file."""
    return tuple(dict.fromkeys((*(token for layout in layouts() for token in layout.tokens), *FILE_MARKS)))


def parts_by(layout: Layout, body: str) -> WrittenPrompt | None:
    """Return the parts of a prompt in one layout; None if it has another."""
    first, second, last = layout.first, layout.second, layout.last
    whole = body.rstrip().removesuffix("<|assistant|>").rstrip() if last else body
    head, begin, rest = whole.partition(first)
    if not begin or not rest.endswith(last) or not is_head(head):
        return None
    rest = rest[: len(rest) - len(last)]
    if second not in rest:
        return None
    if any(rest.count(token) > (token == second) for token in layout.tokens):
        raise AmbiguousPromptError(f"the prompt has {' or '.join(layout.tokens)} more than once")
    texts = rest.split(second)
    if layout.has_spaces:
        texts[0] = texts[0].removesuffix(" ")
        if layout.prefix_comes_first:
            texts = [texts[0].removeprefix(" "), texts[1].removesuffix(" ")]
        else:
            texts[1] = texts[1].removeprefix(" ")
    prefix, suffix = texts if layout.prefix_comes_first else reversed(texts)
    return with_files(head, prefix, suffix)


def is_head(head: str) -> bool:
    """Return whether a text may stand before a prompt."""
    return not head.strip() or head.lstrip().startswith(FILE_MARKS)


def with_files(head: str, prefix: str, suffix: str) -> WrittenPrompt:
    """Return a prompt with the files and the path that the text before it, or the beginning of its prefix, names."""
    marks, parts = FILE_MARK.findall(head), FILE_MARK.split(head)[1:]
    files = [file_of(part) for mark, part in zip(marks, parts, strict=True) if mark not in NO_FILES]
    path = language = ""
    if files and files[-1][0] and not files[-1][1].strip():
        path = files.pop()[0]
    elif marks and PATH.fullmatch(prefix.partition("\n")[0]):
        path, _, prefix = prefix.partition("\n")
    if prefix.startswith(PLUSES):
        *before, last = re.split(rf"(?:\A|\n\n|\n){re.escape(PLUSES)}", prefix)[1:]
        files += [file_of(part) for part in before]
        path, _, prefix = last.partition("\n")
    if not path and (named := NAMED_PATH.findall(head)):
        path = named[-1]
    if spoken := NAMED_LANGUAGE.findall(head):
        language = spoken[-1]
    kept = tuple((name, text) for name, text in files if text.strip())
    return WrittenPrompt(prefix, suffix, path.strip(), language.strip().lower(), kept)


def file_of(part: str) -> tuple[str, str]:
    """Return the path in the first line of a part, if it is one, and the text behind it."""
    line, _, text = part.partition("\n")
    return (line.strip(), text) if PATH.fullmatch(line.strip()) else ("", part)
