"""Blocks in which a name is bound again, by signs that most languages share.

Where the kind of a binding is unclear, the whole block counts: an edit that is not proposed is better than a wrong one.
"""

from __future__ import annotations

from collections.abc import Sequence

from fim_server.next_edit.bindings import LONGEST_SCOPE, block_end, is_in_parameters
from fim_server.next_edit.change import indentation
from fim_server.next_edit.line_tokens import Lines, Token, tokens_of
from fim_server.next_edit.signs import SIGNS

HEADER_LINES = 30
"""Most lines between the first line of a list and one of its names."""


def rebinding_of(lines: Lines, number: int, tokens: Sequence[Token], at: int, scope: range) -> range | None:
    """Return the offsets in which a name is another one that may be bound where it stands; None if it is used there.

    Args:
        lines: The document.
        number: The line of the name.
        tokens: Tokens of that line.
        at: Number of the name among them.
        scope: The lines in which the name in question holds.
    """
    texts = [token.text for token in tokens]
    if is_in_parameters(tokens, at) or is_in_header(texts, at) or is_caught(texts, at):
        return block(lines, number)
    if is_closure(tokens, at) or is_lambda(texts, at):
        return expression(lines, number, tokens, at)
    if is_declared(texts, at):
        return from_here(lines, number, tokens, at)
    if is_redeclared(texts, at):
        is_inner = opens(texts) or is_in_short_block(texts, at)
        same_block = indentation(lines.lines[number]) == margin_of(lines, scope) and not is_inner
        return None if same_block else from_here(lines, number, tokens, at)
    if is_loop_variable(texts, at):
        return loop(lines, number, tokens, at)
    return listed(lines, number, at)


def is_in_header(texts: Sequence[str], at: int) -> bool:
    """Return whether a name is in the brackets of a function's header, by its head word or the block behind them."""
    head = next((one for one in range(at - 1, -1, -1) if texts[one] in SIGNS.heads), None)
    if head is not None:
        depth = 0
        for one in range(head, at):
            if texts[one] == SIGNS.braces[0] and not depth:
                break
            depth += (texts[one] in SIGNS.opens) - (texts[one] in SIGNS.closes)
        else:
            if depth > 0:
                return True
    end = outer_end(texts, at)
    if end is None or texts[end] != SIGNS.parameters_open or not SIGNS.control.isdisjoint(texts):
        return False
    behind = follows_group(texts, at)
    is_header = behind == SIGNS.annotate or behind[:1].isalpha()
    return behind == SIGNS.braces[0] or (is_header and texts[-1] == SIGNS.braces[0])


def outer_end(texts: Sequence[str], at: int) -> int | None:
    """Return the outermost bracket that is open before a token on its line."""
    opened: list[int] = []
    for number in range(at):
        if texts[number] in SIGNS.opens:
            opened.append(number)
        elif texts[number] in SIGNS.closes and opened:
            opened.pop()
    return opened[0] if opened else None


def follows_group(texts: Sequence[str], at: int) -> str:
    """Return the token behind the brackets around another one; empty if they do not end on the line."""
    depth = least = 0
    behind = len(texts)
    for number in range(at + 1, len(texts)):
        depth += (texts[number] in SIGNS.opens) - (texts[number] in SIGNS.closes)
        if depth < least:
            least, behind = depth, number + 1
    return texts[behind] if behind < len(texts) else ""


def is_caught(texts: Sequence[str], at: int) -> bool:
    return any(one in SIGNS.catches for one in texts[:at])


def is_closure(tokens: Sequence[Token], at: int) -> bool:
    """Return whether a name is between the bars of a function's parameters, or before an arrow."""
    texts = [token.text for token in tokens]
    begun = next((one for one in range(at - 1, -1, -1) if texts[one] == SIGNS.bar), None)
    if begun is not None and SIGNS.bar in texts[at:] and (not begun or texts[begun - 1] in SIGNS.before_bar):
        return True
    depth, behind = 0, at + 1
    for number in range(at + 1, len(tokens) - 1):
        if depth == 0 and is_arrow(tokens, number):
            return number == behind or texts[behind] in SIGNS.before_arrow
        depth += (texts[number] in SIGNS.opens) - (texts[number] in SIGNS.closes)
        if depth < 0:
            depth, behind = 0, number + 1
    return False


def is_arrow(tokens: Sequence[Token], number: int) -> bool:
    """Return whether an arrow begins with a token; one without a blank before it may read a member."""
    one, other = tokens[number], tokens[number + 1]
    is_apart = number == 0 or tokens[number - 1].end < one.start or one.text == SIGNS.assign
    return one.end == other.start and one.text + other.text in SIGNS.arrows and is_apart


def is_lambda(texts: Sequence[str], at: int) -> bool:
    """Return whether a name is a parameter of a lambda: a word of one and no end of its parameters stand before."""
    begun = next((one for one in range(at - 1, -1, -1) if texts[one] in SIGNS.lambdas), None)
    return begun is not None and SIGNS.annotate not in texts[begun:at]


def is_declared(texts: Sequence[str], at: int) -> bool:
    """Return whether a word that declares stands before a name, and no value between."""
    begun = next((one for one in range(at - 1, -1, -1) if texts[one] in SIGNS.patterns), None)
    between = () if begun is None else texts[begun:at]
    return begun is not None and not any(
        one == SIGNS.assign or (one in SIGNS.loop_ends and one.isalpha()) for one in between
    )


def is_redeclared(texts: Sequence[str], at: int) -> bool:
    """Return whether a name is in the list before the sign that declares: an annotation's and an assignment's."""
    number = at + 1
    while number + 1 < len(texts) and texts[number] == SIGNS.separator:
        number += 2
    return texts[number : number + 2] == [SIGNS.annotate, SIGNS.assign]


def is_loop_variable(texts: Sequence[str], at: int) -> bool:
    begun = next((one for one in range(at - 1, -1, -1) if texts[one] in SIGNS.loops), None)
    if begun is None or not SIGNS.loop_ends.isdisjoint(texts[begun + 1 : at]):
        return False
    return not SIGNS.loop_ends.isdisjoint(texts[at + 1 :])


def opens(texts: Sequence[str]) -> bool:
    """Return whether a line ends with an opening bracket or the sign of a block."""
    return texts[-1] in SIGNS.opens or texts[-1] == SIGNS.annotate


def margin_of(lines: Lines, scope: range) -> int:
    """Return the indentation of the block in which a name holds: that of the first line of text behind its header."""
    margins = [indentation(lines.lines[number]) for number in scope[:HEADER_LINES] if lines.lines[number].strip()]
    return max(margins[:2], default=0)


def opened_block(lines: Lines, number: int) -> int:
    """Return the line behind the block that a line opens, with the blocks that go on from it."""
    texts, margin, end = lines.lines, indentation(lines.lines[number]), number
    first = tokens_of(texts[number])
    labels = frozenset[str]() if first and first[0].text in SIGNS.labels else SIGNS.labels
    while end < number + LONGEST_SCOPE:
        end = block_end(texts, end, margin + 1)
        tokens = tokens_of(texts[end]) if end < len(texts) and indentation(texts[end]) == margin else ()
        if not tokens or (tokens[0].text not in SIGNS.closes and tokens[0].text not in labels):
            return end
        if tokens[0].text not in labels and not opens([token.text for token in tokens]):
            return end + 1
    return end


def block(lines: Lines, number: int, start: int | None = None) -> range:
    """Return the offsets from a line, or from an offset in it, up to the end of the block that it opens."""
    end = opened_block(lines, number) - 1
    return range(lines.line_starts[number] if start is None else start, line_stop(lines, end))


def line_stop(lines: Lines, number: int) -> int:
    """Return the offset of a line's end."""
    return lines.line_starts[number] + len(lines.lines[number]) + 1


def expression(lines: Lines, number: int, tokens: Sequence[Token], at: int) -> range:
    """Return the offsets of a function without a name: up to the end of the brackets around it, or of its block."""
    offset = lines.line_starts[number]
    texts = [token.text for token in tokens]
    if opens(texts):
        return block(lines, number, offset + tokens[at].start)
    return range(offset + tokens[at].start, line_stop(lines, number))


def from_here(lines: Lines, number: int, tokens: Sequence[Token], at: int) -> range:
    """Return the offsets behind the value of a name that is bound, in its block or in the one that its line opens.

    The value still has the name from outside, unless it has a function.
    """
    texts = [token.text for token in tokens]
    last = next((one for one in range(at + 1, len(texts)) if texts[one] == SIGNS.assign), None)
    is_whole = last is None and not opens(texts) and SIGNS.braces[0] not in texts[at:]
    if last is None:
        last = len(texts) - 1 if opens(texts) else at
    stop = next((one for one in range(last + 1, len(texts)) if texts[one] in SIGNS.ends_value), len(texts) - 1)
    has_function = any(is_arrow(tokens, one) for one in range(len(tokens) - 1)) or not SIGNS.heads.isdisjoint(texts)
    start = lines.line_starts[number] + (tokens[at].start if has_function or is_whole else tokens[stop].end)
    if is_header(texts, at):
        return block(lines, number, start)
    if is_in_short_block(texts, at):
        return range(start, line_stop(lines, number))
    end = block_end(lines.lines, number, indentation(lines.lines[number])) - 1
    return range(start, line_stop(lines, max(number, end)))


def is_header(texts: Sequence[str], at: int) -> bool:
    """Return whether a name is bound for the block that its line opens, as in the header of a loop."""
    return opens(texts) and not SIGNS.control.isdisjoint(texts[:at])


def is_in_short_block(texts: Sequence[str], at: int) -> bool:
    """Return whether a name is bound for a block on its own line, or within one."""
    return texts[-1] == SIGNS.braces[1] and not SIGNS.control.isdisjoint(texts[:at])


def loop(lines: Lines, number: int, tokens: Sequence[Token], at: int) -> range:
    """Return the offsets of a loop's block; of a comprehension's brackets, if the loop is within some."""
    texts = [token.text for token in tokens]
    around = outer_end(texts, next(one for one in range(at - 1, -1, -1) if texts[one] in SIGNS.loops))
    first = at if around is None else around
    if around is None and opens(texts):
        first = len(texts) - 1
    elif around is None and is_in_short_block(texts, at) and SIGNS.braces[0] in texts[at:]:
        first = texts.index(SIGNS.braces[0], at)
    return block(lines, number, lines.line_starts[number] + tokens[first].start)


def listed(lines: Lines, number: int, at: int) -> range | None:
    """Return the offsets in which a name holds that is in a list over several lines, if the list binds its names."""
    texts = lines.lines
    margin = indentation(texts[number])
    first = number - 1
    while first > max(0, number - HEADER_LINES) and (not texts[first].strip() or indentation(texts[first]) >= margin):
        first -= 1
    header = tokens_of(texts[first]) if first >= 0 and indentation(texts[first]) < margin else ()
    if not header or header[-1].text not in SIGNS.opens:
        return None
    end = block_end(texts, number, margin)
    closing = tokens_of(texts[end]) if end < len(texts) else ()
    if not closing or closing[0].text not in SIGNS.closes:
        return None
    words, behind = [token.text for token in header], [token.text for token in closing]
    has_arrow = any(is_arrow(closing, one) for one in range(len(closing) - 1))
    is_round = header[-1].text == SIGNS.parameters_open
    is_method = is_round and behind[-1] == SIGNS.braces[0] and SIGNS.control.isdisjoint(words)
    if has_arrow or is_method or (is_round and not SIGNS.heads.isdisjoint(words)):
        return range(lines.line_starts[first], block(lines, end).stop)
    if not SIGNS.patterns.isdisjoint(words) and SIGNS.assign in behind[:2] and SIGNS.assign not in words:
        return range(lines.line_starts[first], from_here(lines, end, closing, 0).stop)
    return None
