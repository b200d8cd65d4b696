//! How R goes on where a middle ends before a line: what it may bring of that line's indentation.

use crate::language::compiled::Language;
use crate::language::definition::CommentEnd;
use crate::lexing::layout::Column;
use crate::lexing::roles::Role;
use crate::right::queries::Right;

/// How R goes on where the middle ends before a line.
#[derive(Debug, Clone, Copy)]
pub(super) struct AtLine {
    /// Bytes before its first symbol; `None` where it has none there.
    pub(super) passed: Option<u32>,
    /// The column of the line after its first one, if a comment takes that in: the rightmost of all where it is not known.
    pub(super) after_comment: Column,
    /// True if the language joins lines: a backslash-newline keeps the column before it.
    pub(super) joins: bool,
}

impl AtLine {
    /// Of R.
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
