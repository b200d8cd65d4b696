//! Cursor of a query: the lexemes around it, the part of a word before it, and the indentation.

use crate::lexemes::{Indents, Lexeme, Newline, Piece, START, Splitter, is_blank, is_word, unit_of};
use crate::limits::{AHEAD, BACK, TAIL};
use crate::strings::Strings;

pub(crate) struct Cursor<'t> {
    /// Lexemes before the cursor, or before the part of a word there, nearest first.
    pub(crate) context: Vec<Lexeme>,
    /// Characters of each lexeme of the context.
    sizes: Vec<u32>,
    /// The part of a word just before the cursor.
    pub(crate) prefix: &'t str,
    /// The indentation of the cursor's line.
    pub(crate) indents: Indents,
    /// Lexemes of the rest of the cursor's line.
    pub(crate) rest: Vec<Lexeme>,
    /// Lexemes after that, from the line break on.
    pub(crate) below: Vec<Lexeme>,
    /// Line breaks before the cursor.
    pub(crate) line: u32,
}

impl<'t> Cursor<'t> {
    /// `unit` is the step of indentation, where the document is known; `above` counts line breaks before `left`.
    pub(crate) fn new(left: &'t str, right: &str, above: u32, unit: Option<&str>, strings: &Strings) -> Self {
        let (start, indents) = beginning(left, unit);
        let mut splitter = Splitter::new(&left[start..], indents);
        let mut pieces: Vec<Piece<'t>> = splitter.by_ref().collect();
        let prefix = match pieces.last() {
            Some(&Piece::Text(text)) if text.starts_with(is_word) => {
                pieces.pop();
                text
            }
            _ => "",
        };
        // The text may have been cut within a lexeme.
        let whole = if start == 0 { pieces.as_slice() } else { pieces.get(1..).unwrap_or_default() };
        let number = |piece: &Piece<'_>| match *piece {
            Piece::Text(text) => strings.find(text),
            Piece::Break(lexeme, _) => lexeme,
        };
        let size = |piece: &Piece<'_>| match *piece {
            Piece::Text(text) => text.chars().count() as u32,
            Piece::Break(_, size) => size as u32,
        };
        let mut context: Vec<Lexeme> = whole.iter().rev().map(number).collect();
        let sizes = whole.iter().rev().map(size).collect();
        if start == 0 {
            context.push(START);
        }
        let indents = splitter.indents;
        let mut end = right.len().min(AHEAD);
        while !right.is_char_boundary(end) {
            end -= 1;
        }
        let after: Vec<Lexeme> = Splitter::new(&right[..end], indents.clone()).map(|piece| number(&piece)).collect();
        // The last lexeme may go on in the unread text.
        let after = if end < right.len() { &after[..after.len() - 1] } else { &after[..] };
        let first_break = after.iter().position(|&lexeme| Newline::of(lexeme).is_some()).unwrap_or(after.len());
        let (rest, below) = after.split_at(first_break);
        let blank = rest.last().is_some_and(|&last| strings.text(last).starts_with([' ', '\t']));
        let rest = if blank { &rest[..rest.len() - 1] } else { rest };
        let line = above + left.bytes().filter(|&byte| byte == b'\n').count() as u32;
        Self { context, sizes, prefix, indents, rest: rest.to_vec(), below: below.to_vec(), line }
    }

    /// Number of characters of the last `lexemes` lexemes before the cursor.
    pub(crate) fn characters(&self, lexemes: usize) -> u32 {
        self.sizes.iter().take(lexemes).sum()
    }
}

/// Bytes at the beginning of a text that no query at its end reads, whatever follows: none, or up to a line break.
pub(crate) fn unseen(left: &str) -> usize {
    // Fewer bytes are read as context; this many are read for the indentation where nothing else shows it.
    let mut end = left.len().saturating_sub(4 * TAIL);
    let floor = end.saturating_sub(BACK);
    while !left.is_char_boundary(end) {
        end -= 1;
    }
    // The search for the levels of indentation stops at an unindented line, if not before.
    while let Some(start) = left[..end].rfind('\n') {
        let line = &left[start + 1..];
        if start < floor || !(line.starts_with(is_blank) || line.starts_with('\n')) {
            return start;
        }
        end = start;
    }
    0
}

/// Return where to begin reading before a cursor, and the indentation there: at a line break, if there is one.
fn beginning(left: &str, unit: Option<&str>) -> (usize, Indents) {
    let known = |text| unit.unwrap_or_else(|| unit_of(text));
    if left.len() <= TAIL {
        return (0, Indents::new(known(left)));
    }
    let mut near = left.len() - TAIL;
    while !left.is_char_boundary(near) {
        near += 1;
    }
    let mut far = left.len().saturating_sub(4 * TAIL);
    while !left.is_char_boundary(far) {
        far += 1;
    }
    let unit = known(&left[far..]);
    match left[near..].find('\n') {
        Some(at) => (near + at, Indents::before(&left[..=near + at], unit, BACK)),
        None => (near, Indents::new(unit)),
    }
}

#[cfg(test)]
mod tests {
    use super::{Cursor, unseen};
    use crate::lexemes::{Indents, START, Splitter};
    use crate::strings::Strings;

    #[test]
    fn the_context_of_a_long_text_is_that_of_all_of_it() {
        let mut text = String::from("class A:\n");
        for line in 0..2000 {
            text += &format!("{}call_{line}(x)\n\n", "    ".repeat(1 + line % 5));
        }
        text += "            x = (1 + val";
        let mut strings = Strings::new();
        let all: Vec<u32> = Splitter::new(&text, Indents::new("    "))
            .map(|piece| match piece {
                crate::lexemes::Piece::Text(text) => strings.number(text),
                crate::lexemes::Piece::Break(lexeme, _) => lexeme,
            })
            .collect();
        let cursor = Cursor::new(&text, ") # end\n\n        y", 0, Some("    "), &strings);
        assert_eq!(cursor.prefix, "val");
        assert!(cursor.context.len() > 64);
        let backwards: Vec<u32> = all[..all.len() - 1].iter().rev().take(cursor.context.len()).copied().collect();
        assert_eq!(cursor.context, backwards);
        assert_eq!(cursor.characters(3), 3);
        assert_eq!(cursor.line, 4001);
        assert_eq!(cursor.rest.len(), 5);
        assert_eq!(cursor.below.len(), 2);
        let short = Cursor::new("a", "", 0, None, &strings);
        assert_eq!((short.context, short.prefix), (vec![START], "a"));
    }

    #[test]
    fn unseen_text_changes_no_query() {
        let line = |at: usize, deep: usize| format!("{}call_{at}(x)\n{}", "  ".repeat(deep), "\n".repeat(at % 3 / 2));
        let shallow: String = (0..9_000).map(|at| line(at, at * at % 6)).collect();
        // The lines that show the levels of indentation are far away, but nearer than the last unindented one.
        let far = "b = 1\n".repeat(40_000) + "if a:\n  if b:\n";
        let deep = far.clone() + &(0..6_000).map(|at| line(at, 2 + at * at % 4)).collect::<String>();
        let long = format!("if a:\n  {}\n    y = (\n", "word ".repeat(90_000));
        let mut strings = Strings::new();
        for text in ["call", "x", "word", "if", "a", "y"] {
            strings.number(text);
        }
        let middle = format!("    z\n        y = {}\n   call(", "1 + ".repeat(2_000));
        for (text, least) in [(&shallow, 100_000), (&deep, far.len() - 20), (&long, 0)] {
            let mut cut = 0;
            for step in 0..40 {
                let end = text.len() - step * step * 13;
                let left = &text[..end];
                let start = unseen(left);
                cut = cut.max(start);
                for end in [0, 4, 6, 30, 8_000, middle.len()] {
                    let (whole, rest) =
                        (format!("{left}{}", &middle[..end]), format!("{}{}", &left[start..], &middle[..end]));
                    for unit in [None, Some("  ")] {
                        let one = Cursor::new(&whole, ") x\n", 0, unit, &strings);
                        let above = left[..start].matches('\n').count() as u32;
                        let other = Cursor::new(&rest, ") x\n", above, unit, &strings);
                        assert_eq!((one.context, one.sizes, one.prefix), (other.context, other.sizes, other.prefix));
                        assert_eq!((one.indents, one.below, one.line), (other.indents, other.below, other.line));
                    }
                }
            }
            assert!(cut >= least, "{cut}");
        }
        assert_eq!(unseen(&shallow[..10_000]), 0);
    }
}
