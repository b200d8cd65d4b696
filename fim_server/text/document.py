"""Text and cursor positions, converted once at the edge.

Everything behind this module sees character offsets into text whose only line break is ``"\\n"``. Editors and users
count lines and columns, in three encodings and with three line breaks; that ends here. A column before a line break
does not depend on the break's spelling, so positions survive the normalisation unchanged.

The lines are those of the Language Server Protocol (``\\n``, ``\\r\\n``, ``\\r``). ``str.splitlines`` also breaks at
form feeds and at U+2028, which editors do not.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from itertools import accumulate

from fim_server.errors import DocumentError, FimServerError, LimitError
from fim_server.language import Language
from fim_server.language.encodings import EncodingError
from fim_server.language.limited_files import read_all, read_limited

LINE_BREAK = re.compile("\r\n|\r|\n")

LARGEST_WHOLE = 0xFFFF
"""Largest character that is one unit in UTF-16."""

STRETCH = 1 << 12
"""Characters in which to look for a line at first; the stretch doubles while the line is further on."""


class PositionEncoding(StrEnum):
    """Unit in which a position counts the characters of a line (LSP 3.17, ``PositionEncodingKind``)."""

    UTF8 = "utf-8"
    UTF16 = "utf-16"
    UTF32 = "utf-32"

    def width(self, character: str) -> int:
        """Return the code units of one character: "é" has 2 in UTF-8, 1 in UTF-16; "😀" has 4, 2 and 1."""
        match self:
            case PositionEncoding.UTF8:
                return len(character.encode(errors="surrogatepass"))
            case PositionEncoding.UTF16:
                return 2 if ord(character) > LARGEST_WHOLE else 1
            case PositionEncoding.UTF32:
                return 1


@dataclass(frozen=True, slots=True)
class Split:
    """Document cut at the cursor, as the engine and the model see it."""

    left: str
    """Text before the cursor; line breaks are ``"\\n"``. A ``"\\r"`` is no line break (:meth:`Document.split`)."""
    right: str
    """Text after the cursor; line breaks are ``"\\n"``."""
    version: int = 0
    """Version of the document at the cut; a result for an older one is stale."""
    newline: str = "\n"
    """Line break of the document."""

    def joined(self, middle: str) -> str:
        """Return the whole text with ``middle`` at the cursor."""
        return self.left + middle + self.right

    def restore(self, middle: str) -> str:
        """Return ``middle`` with the document's own line breaks, ready to be inserted into it.

        Only line feeds change, because some languages do not read a carriage return as a line break.
        """
        return middle if self.newline == "\n" else middle.replace("\n", self.newline)


@dataclass(frozen=True)
class Document:
    """Text with normalised line breaks. Immutable: a change gives a new document."""

    text: str
    """Its only line break is ``"\\n"``."""
    newline: str = "\n"
    """Most frequent line break of the original."""
    version: int = 0
    anchor: tuple[int, int] = field(default=(0, 0), compare=False, repr=False)
    """A line, from 0, and the offset of its first character: the last edit's, near which lines are found fastest."""
    sound: bool | None = field(default=None, compare=False, repr=False)
    """True if the text is known to hold no half of a surrogate pair; None if that is unknown."""
    with_returns: str | None = field(default=None, compare=False, repr=False)
    """Text with the original's lone carriage returns, if any; as long as :attr:`text`."""

    @classmethod
    def from_text(cls, text: str, version: int = 0) -> Document:
        """Take an editor's text, with any line breaks."""
        if not is_sound(text):
            text = join_halves(text)
        if "\r" not in text:
            return cls(text, "\n", version, sound=is_sound(text))
        breaks = LINE_BREAK.findall(text)
        newline = max(("\n", "\r\n", "\r"), key=breaks.count)
        read = text.replace("\r\n", "\n")
        with_returns = read if "\r" in read else None
        return cls(read.replace("\r", "\n"), newline, version, sound=is_sound(text), with_returns=with_returns)

    @classmethod
    def from_bytes(cls, data: bytes, name: str, language: str | None = None) -> Document:
        """Decode a file as its language does: from UTF-8, unless the file declares another encoding.

        ``name``: the file's name in errors; ``language``: its language, if its suffix does not decide. Raises
        :class:`DocumentError` at bytes that are not in this encoding.
        """
        try:
            return cls.from_text(Language.decode(name, data, language))
        except EncodingError as error:
            raise DocumentError(f"{name}: {error}") from None

    @classmethod
    def read(cls, path: str, language: str | None = None) -> Document:
        """Read a file, or standard input for ``"-"``.

        Raises :class:`DocumentError` if that fails, or if there is more than ``language.limited_files`` allows.
        """
        if path != "-":
            return cls.read_file(path, language)
        if sys.stdin is None:
            raise DocumentError("standard input: closed")
        try:
            return cls.from_bytes(read_all(sys.stdin.buffer), "standard input", language)
        except LimitError as error:
            raise DocumentError(f"standard input: {error}") from None
        except OSError as error:
            raise DocumentError(f"standard input: {(error.strerror or str(error)).lower()}") from None

    @classmethod
    def read_file(cls, path: str, language: str | None = None) -> Document:
        """Read a file of any name. Raises as :meth:`read`."""
        try:
            return cls.from_bytes(read_limited(path), path, language)
        except LimitError as error:
            raise DocumentError(f"{path}: {error}") from None
        except OSError as error:
            raise DocumentError(f"{path}: {(error.strerror or str(error)).lower()}") from None
        except ValueError as error:  # a NUL in the path
            if isinstance(error, FimServerError):
                raise
            raise DocumentError(f"{path!r}: {error}") from None

    @cached_property
    def line_starts(self) -> list[int]:
        """Return the offset of the first character of each line."""
        return [0, *(match.end() for match in re.finditer("\n", self.text))]

    def line(self, index: int) -> str:
        """Return the line at a 0-based index, without its break."""
        starts = self.line_starts
        end = starts[index + 1] - 1 if index + 1 < len(starts) else len(self.text)
        return self.text[starts[index] : end]

    def offset_at_line_column(self, line: int, column: int) -> int:
        """Return the offset of a 1-based line and column, the column counting characters.

        ``1:1`` is the start of the text; one past a line's last character is its end. Raises :class:`DocumentError`
        outside the text.
        """
        count = len(self.line_starts)
        if not 1 <= line <= count:
            raise DocumentError(f"line {line} is outside the file, which has {count} line{'s' * (count != 1)}")
        length = len(self.line(line - 1))
        if not 1 <= column <= length + 1:
            raise DocumentError(f"column {column} is outside line {line}, whose columns go from 1 to {length + 1}")
        return self.line_starts[line - 1] + column - 1

    def offset_at_position(self, line: int, character: int, encoding: PositionEncoding) -> int:
        """Return the offset of a 0-based position whose character counts code units of ``encoding``.

        A character past the end of its line means the end (LSP 3.17, ``Position``), as does a line past the end of the
        text. A character inside a surrogate pair means the start of that pair. Numbers below 0 mean 0.
        """
        line, character = max(0, line), max(0, character)
        start = self.start_of_line(line)
        if start is None:
            return len(self.text)
        text = self._line_from(start)
        if encoding is PositionEncoding.UTF32 or text.isascii():
            return start + min(character, len(text))
        ends = accumulate(encoding.width(c) for c in text)
        return start + sum(1 for end in ends if end <= character)

    def clamped(self, line: int, character: int, encoding: PositionEncoding) -> tuple[int, int]:
        """Return the line and character of the offset that :meth:`offset_at_position` finds for a position."""
        offset = self.offset_at_position(line, character, encoding)
        line = max(0, line)
        if self.start_of_line(line) is None:
            line = self.text.count("\n")
        before = self.text[self.text.rfind("\n", 0, offset) + 1 : offset]
        return line, sum(encoding.width(c) for c in before)

    def replace_between(
        self, first: tuple[int, int], last: tuple[int, int], text: str, encoding: PositionEncoding
    ) -> Document:
        """Replace the text between two positions, given in either order.

        In UTF-16 a position may split a surrogate pair; then the other half of it stays.
        """
        (start, start_halves), (end, end_halves) = sorted(self._place(*place, encoding) for place in (first, last))
        if start_halves:
            text = halves_of(self.text[start])[0] + text
        if end_halves:
            text += halves_of(self.text[end])[1]
            end += 1
        return self.replace(start, end, text)

    def _place(self, line: int, character: int, encoding: PositionEncoding) -> tuple[int, bool]:
        """Return the offset of a position, and whether the position splits the character there."""
        offset = self.offset_at_position(line, character, encoding)
        if encoding is not PositionEncoding.UTF16 or ord(self.text[offset : offset + 1] or "\0") <= LARGEST_WHOLE:
            return offset, False
        return offset, self.clamped(line, character, encoding) != (max(0, line), max(0, character))

    def _line_from(self, start: int) -> str:
        """Return the rest of a line from an offset on, without its break."""
        end = self.text.find("\n", start)
        return self.text[start : len(self.text) if end < 0 else end]

    def start_of_line(self, line: int) -> int | None:
        """Return the offset of a line's first character, from 0; None without the line. Fast near the last edit."""
        at, start = self.anchor if line >= self.anchor[0] else (0, 0)
        missing, stretch = line - at, STRETCH
        while (found := self.text.count("\n", start, start + stretch)) < missing:
            missing, start, stretch = missing - found, start + stretch, 2 * stretch
            if start >= len(self.text):
                return None
        while stretch > STRETCH:
            stretch //= 2
            found = self.text.count("\n", start, start + stretch)
            if found < missing:
                missing, start = missing - found, start + stretch
        for _ in range(missing):
            start = self.text.index("\n", start) + 1
        return start

    def line_column_at(self, offset: int) -> tuple[int, int]:
        """Return the 1-based line and column of an offset: the inverse of :meth:`offset_at_line_column`."""
        line = self.text.count("\n", 0, offset)
        return line + 1, offset - self.line_starts[line] + 1

    def replace(self, start: int, end: int, text: str) -> Document:
        """Return the document with the characters ``start:end`` replaced; ``text`` may have any line breaks."""
        inserted = LINE_BREAK.sub("\n", text)
        if not self.sound or not is_sound(inserted):
            start, end, inserted = self._with_halves(start, end, inserted)
        line, known = self.anchor if self.anchor[1] <= start else (0, 0)
        anchor = line + self.text.count("\n", known, start), self.text.rfind("\n", 0, start) + 1
        whole = self.text[:start] + inserted + self.text[end:]
        sound = (self.sound and is_sound(inserted)) or is_sound(whole)
        changed = Document(whole, self.newline, self.version, anchor, sound)
        if self.with_returns is None and "\r" not in text:
            return changed
        return self._with_returns(changed, start, end, text)

    def _with_returns(self, changed: Document, start: int, end: int, text: str) -> Document:
        """Return a changed document with its lone carriage returns, once ``start:end`` is replaced by ``text``."""
        before = self.text if self.with_returns is None else self.with_returns
        inserted = text.replace("\r\n", "\n")
        read = before[:start] + inserted + before[end:]
        seams = [] if self.newline == "\r\n" else [(start + len(inserted), text[-1:]), (start, before[:start][-1:])]
        for seam, left in seams if text or start < end else ():
            follows = (text + before[end:])[:1] if seam == start else before[end : end + 1]
            if left + follows == "\r\n":  # halves of a line break have come together
                read = read[: seam - 1] + read[seam:]
                changed = Document(read.replace("\r", "\n"), self.newline, self.version, sound=changed.sound)
        is_aligned = "\r" in read and len(read) == len(changed.text)
        return replace(changed, with_returns=read) if is_aligned else changed

    def _with_halves(self, start: int, end: int, inserted: str) -> tuple[int, int, str]:
        """Return a replacement that joins halves of surrogate pairs wherever two come side by side."""
        if is_high_half(self.text[max(0, start - 1) : start]):
            start, inserted = start - 1, self.text[start - 1] + inserted
        if is_low_half(self.text[end : end + 1]):
            inserted, end = inserted + self.text[end], end + 1
        return start, end, join_halves(inserted)

    def split(self, offset: int, keeps_returns: bool = False) -> Split:
        """Cut the text at an offset.

        ``keeps_returns``: whether a lone carriage return is no line break in the document's language, so that it stays
        (:meth:`.Language.keeps_returns`). Raises :class:`DocumentError` if the text holds half a surrogate pair, which
        no encoding can carry.
        """
        try:
            if not self.sound:
                self.text.encode()
        except UnicodeEncodeError as error:
            raise DocumentError(f"half a surrogate pair at character {error.start}") from None
        if keeps_returns and self.with_returns is not None:
            text, newline = self.with_returns, "\n" if self.newline == "\r" else self.newline
            return Split(text[:offset], text[offset:], self.version, newline)
        return Split(self.text[:offset], self.text[offset:], self.version, self.newline)


def is_high_half(character: str) -> bool:
    return "\ud800" <= character <= "\udbff"


def is_low_half(character: str) -> bool:
    return "\udc00" <= character <= "\udfff"


def halves_of(character: str) -> tuple[str, str]:
    """Return the two halves of a character that takes a surrogate pair in UTF-16."""
    units = character.encode("utf-16-be")
    high, low = (units[at : at + 2].decode("utf-16-be", "surrogatepass") for at in (0, 2))
    return high, low


def join_halves(text: str) -> str:
    """Join the halves of surrogate pairs in a text wherever two stand side by side."""
    return text.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "surrogatepass")


def is_sound(text: str) -> bool:
    """Return whether a text holds no half of a surrogate pair."""
    try:
        return text.isascii() or bool(text.encode())
    except UnicodeEncodeError:
        return False
