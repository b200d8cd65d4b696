//! Right contexts that begin a line: the part of that line's indentation that R brings.

use crate::language::compiled::Language;
use crate::language::definition::CommentEnd;
use crate::lexing::layout::Column;
use crate::lexing::roles::Role;
use crate::right::queries::Right;

/// Beginning of R where the middle ends before a line.
#[derive(Debug, Clone, Copy)]
pub(super) struct AtLine {
    /// Bytes before R's first symbol; `None` if the first line of R has none.
    pub(super) passed: Option<u32>,
    /// The column of R's second line, if a comment swallows its first one; the rightmost of all if unknown.
    pub(super) after_comment: Column,
    /// True if the language joins lines: a backslash-newline keeps the column before it.
    pub(super) joins: bool,
}

impl AtLine {
    /// Read the beginning of R.
    pub(super) fn new(language: &Language, right: &Right) -> Self {
        let mut comments = language.lexer.accept_sets().filter_map(|accept| language.comment(accept));
        let after_comment = if comments.any(|end| end != CommentEnd::Line) {
            RIGHTMOST
        } else {
            match right.text().iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
                Some(end) => right.line_start(end as u32 + 1, true).and_then(|start| start.column).unwrap_or(RIGHTMOST),
                None => Column::ZERO,
            }
        };
        let joins = language.lexer.accept_sets().any(|accept| language.accept_role(accept) == Role::Join);
        Self { passed: right.line_start(0, false).map(|start| start.position), after_comment, joins }
    }
}

const RIGHTMOST: Column = Column { wide: u32::MAX, narrow: u32::MAX };
