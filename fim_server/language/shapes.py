"""Shapes: what a middle must look like besides completing the program."""

from dataclasses import dataclass

from fim_server.language.argument_types import expect, expect_count


@dataclass(frozen=True)
class Shape:
    """A regular language that the middle must be in. Use `Shape.lines`, `Shape.regex` or `SINGLE_LINE`.

    A matcher with a shape allows a token only if some middle that begins with it has the shape *and* completes the
    program (the FSM index of Outlines, arXiv 2307.09702, taken together with the grammar, not one after the other).
    Where a blank may stand anywhere in the shape without changing what it asks next, as in `lines`, that is exact. For
    other shapes one thing is left out: that two lexemes may need a blank between them, and a line an indentation, is
    not held against the shape. It can then allow a token after which the middle cannot be finished; nothing that could
    be is refused, and what is finished always has the shape.

    Attributes:
        pattern: A regular expression that the whole middle matches, or None.
        most_lines: The most lines that it may have, or None.
    """

    pattern: str | None = None
    most_lines: int | None = None

    def __post_init__(self) -> None:
        """Raises ValueError unless there is just one of the two, TypeError for what is neither."""
        expect("pattern", self.pattern, str | None, "a str or None")
        if self.most_lines is not None:
            expect_count("most_lines", self.most_lines)
        if (self.pattern is None) == (self.most_lines is None):
            raise ValueError("a shape is either a regular expression or a number of lines")

    @staticmethod
    def lines(most: int) -> "Shape":
        """Middles of at most some lines: fewer line breaks (`\\n`, and no `\\r` at all) than that. 1 to 16."""
        expect_count("most", most)
        return Shape(most_lines=most)

    @staticmethod
    def regex(pattern: str) -> "Shape":
        """Middles that match a regular expression as a whole.

        The syntax is that of Rust's `regex` crate: Unicode classes, no look-around, no back references. `.` is not a
        line break unless `(?s)` says so.
        """
        expect("pattern", pattern, str, "a str")
        return Shape(pattern=pattern)


SINGLE_LINE = Shape.lines(1)
"""Middles without a line break."""
