"""Shapes: regular languages for the middle, besides completing the program."""

from dataclasses import dataclass

from fim_server.language.argument_types import expect, expect_count


@dataclass(frozen=True)
class Shape:
    """Regular language that the middle must be in. Use `Shape.lines`, `Shape.regex` or `SINGLE_LINE`.

    A matcher with a shape allows a token only if some middle that begins with it has the shape *and* completes the
    program. It takes the FSM index of Outlines (arXiv 2307.09702) together with the grammar, not one after the other.
    If a blank may stand anywhere in the shape without changing its next demand, as in `lines`, that is exact.

    For other shapes one thing is left out: a blank that two lexemes may need between them, or a line's indentation,
    does not count against the shape. The matcher can then allow a token after which the middle cannot be finished. It
    refuses no possible token, and every finished middle has the shape.

    Attributes:
        pattern: Regular expression that the whole middle matches, or None.
        most_lines: Most lines of the middle, or None.
    """

    pattern: str | None = None
    most_lines: int | None = None

    def __post_init__(self) -> None:
        """Raise ValueError unless there is just one of the two, TypeError for a wrong type."""
        expect("pattern", self.pattern, str | None, "a str or None")
        if self.most_lines is not None:
            expect_count("most_lines", self.most_lines)
        if (self.pattern is None) == (self.most_lines is None):
            raise ValueError("a shape is either a regular expression or a number of lines")

    @staticmethod
    def lines(most: int) -> "Shape":
        """Return the shape of at most some lines, 1 to 16: fewer line breaks `\\n` than that, and none of another kind.

        Other kinds are `\\r`, U+2028 and U+2029.
        """
        expect_count("most", most)
        return Shape(most_lines=most)

    @staticmethod
    def regex(pattern: str) -> "Shape":
        """Return the shape of middles that match a regular expression as a whole.

        The syntax is that of Rust's `regex` crate: Unicode classes, no look-around, no back references. `.` is not a
        line break unless `(?s)` says so.
        """
        expect("pattern", pattern, str, "a str")
        return Shape(pattern=pattern)


SINGLE_LINE = Shape.lines(1)
"""Shape of middles without a line break."""
