//! What the nodes of R's lattice stand before.

use crate::grammar::compiled::Grammar;
use crate::ids::{DotId, ModeId};
use crate::lexing::layout::Column;

/// What is on top of the indentation stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Top {
    /// This column.
    Exact(Column),
    /// Some column right of the next line's.
    Above,
    /// Some column right of the next line's that the indentation cut by the cursor can have (an index of entries).
    AboveEntry(u16),
    /// Nothing is known (in the first, partial line).
    Unknown,
}

/// What a node stands before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    /// A symbol at a byte of R, in a line whose column is `line`.
    Middle {
        /// Byte offset in R.
        position: u32,
        /// The line's own column, as far as it is known.
        line: Top,
    },
    /// The first symbol of a line at column `column`, with another column on top of the stack.
    Line {
        /// Byte offset in R.
        position: u32,
        /// The line's own column.
        column: Column,
        /// What is on top of the stack.
        top: Top,
    },
    /// A symbol of code inside a field of a formatted string, or whatever else stands between lexemes of another mode. Line
    /// breaks do not count there, and nothing is assumed of what comes after: the parser sees to it.
    Nested {
        /// Byte offset in R.
        position: u32,
    },
    /// A symbol of a mode that reads no code.
    Text {
        /// Byte offset in R.
        position: u32,
        /// The mode.
        mode: ModeId,
    },
    /// The end of the file, all blocks closed.
    End,
}

impl Place {
    /// The byte offset in R; none for the end of the file.
    #[must_use]
    pub(crate) fn position(self) -> Option<u32> {
        match self {
            Self::Middle { position, .. }
            | Self::Line { position, .. }
            | Self::Nested { position }
            | Self::Text { position, .. } => Some(position),
            Self::End => None,
        }
    }

    /// The same at another position; the end of the file has none.
    pub(super) fn at(self, position: u32) -> Self {
        match self {
            Self::Middle { line, .. } => Self::Middle { position, line },
            Self::Line { column, top, .. } => Self::Line { position, column, top },
            Self::Nested { .. } => Self::Nested { position },
            Self::Text { mode, .. } => Self::Text { position, mode },
            Self::End => Self::End,
        }
    }

    /// Return whether it is inside of a literal that holds code.
    #[must_use]
    pub(super) fn is_in_literal(self) -> bool {
        matches!(self, Self::Nested { .. } | Self::Text { .. })
    }
}

/// The place where a rule began, as far as what ends it has to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Begun {
    /// In a line that no literal holds.
    Line(Top),
    /// Elsewhere in R.
    Elsewhere,
}

impl Place {
    /// What is kept of it as the place where a rule began.
    pub(super) fn begun(self) -> Begun {
        match self {
            Self::Middle { line, .. } => Begun::Line(line),
            _ => Begun::Elsewhere,
        }
    }
}

/// Which of the items that have a symbol next are read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ItemFilter {
    /// All.
    All,
    /// Those after which a lexeme of one of some modes can come.
    Modes(u64),
    /// Those after which code goes on, of rules begun in a line with this column, or in the middle where it is unknown.
    EndsIn(Top),
    /// Those after which code goes on, of rules begun elsewhere than in a line.
    EndsNested,
}

impl ItemFilter {
    /// Return whether an item is filter, with its dot moved, whose rule began at a place (none in the middle).
    pub(super) fn admits(self, grammar: &Grammar, dot: DotId, begun: Option<Begun>) -> bool {
        let modes = grammar.modes_after(dot);
        let goes_on = modes & grammar.code_modes() != 0;
        match self {
            Self::All => true,
            Self::Modes(wanted) => modes & wanted != 0,
            Self::EndsIn(line) => goes_on && begun.map_or(line == Top::Unknown, |begun| begun == Begun::Line(line)),
            Self::EndsNested => goes_on && !matches!(begun, Some(Begun::Line(_))),
        }
    }
}
