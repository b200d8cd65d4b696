//! Places in R before which the nodes of the lattice stand.

use crate::bits;
use crate::grammar::compiled::Grammar;
use crate::ids::{DotId, ModeId, SymbolId};
use crate::lexing::layout::Column;

/// Column on top of the indentation stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Top {
    /// This column.
    Exact(Column),
    /// Some column right of the next line's.
    Above,
    /// A column right of the next line's that the indentation cut by the cursor can have (an index of entries).
    AboveEntry(u16),
    /// Nothing is known (in the first, partial line).
    Unknown,
}

/// Place before which a node stands.
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
        /// Column on top of the stack.
        top: Top,
    },
    /// A symbol of code inside a field of a formatted string, or between other lexemes of another mode, in a language
    /// with layout. Line breaks do not count there. Nothing is assumed about the next symbol: the parser decides it.
    Nested {
        /// Byte offset in R.
        position: u32,
    },
    /// A symbol of code, in a language with modes and without layout. Nothing is assumed about the next symbol: the
    /// parser decides it.
    Code {
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
            | Self::Code { position }
            | Self::Text { position, .. } => Some(position),
            Self::End => None,
        }
    }

    /// This place at another position; the end of the file has none.
    pub(super) fn at(self, position: u32) -> Self {
        match self {
            Self::Middle { line, .. } => Self::Middle { position, line },
            Self::Line { column, top, .. } => Self::Line { position, column, top },
            Self::Nested { .. } => Self::Nested { position },
            Self::Code { .. } => Self::Code { position },
            Self::Text { mode, .. } => Self::Text { position, mode },
            Self::End => Self::End,
        }
    }

    /// Return whether the place is inside a literal that holds code.
    #[must_use]
    pub(super) fn is_in_literal(self) -> bool {
        matches!(self, Self::Nested { .. } | Self::Text { .. })
    }
}

/// Place where a rule began, as far as the end of the rule depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Begun {
    /// In a line that no literal holds.
    Line(Top),
    /// Elsewhere in R.
    Elsewhere,
}

impl Place {
    /// The place as the beginning of a rule.
    pub(super) fn begun(self) -> Begun {
        match self {
            Self::Middle { line, .. } => Begun::Line(line),
            _ => Begun::Elsewhere,
        }
    }
}

/// Filter of the items that have a symbol next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ItemFilter {
    /// All.
    All,
    /// Items after which a lexeme of one of some modes can come.
    Modes(u64),
    /// Items after which code goes on, of rules begun in a line with this column, or in the middle where it is unknown.
    EndsIn(Top),
    /// Items after which code goes on, of rules begun elsewhere than in a line.
    EndsNested,
}

impl ItemFilter {
    /// Return whether the filter admits an item with its dot moved. `begun` is where its rule began, `None` in the
    /// middle.
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

/// Restriction of the items at a place by the modes of the lexemes that can come there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Stands {
    /// The language has no modes.
    Anywhere,
    /// Code.
    Code,
    /// Code inside of a literal.
    Nested,
    /// Text of a mode, with the symbol that R has there, if one is read.
    Text(ModeId, Option<SymbolId>),
}

impl Stands {
    /// The restriction at a place. `next` is R's symbol there, if known.
    pub(super) fn at(grammar: &Grammar, place: Place, next: Option<SymbolId>) -> Self {
        match place {
            _ if !grammar.has_modes() => Self::Anywhere,
            Place::Nested { .. } => Self::Nested,
            Place::Text { mode, .. } => Self::Text(mode, next),
            _ => Self::Code,
        }
    }

    /// Return whether a symbol after a dot can come there.
    pub(super) fn admits(self, grammar: &Grammar, dot: DotId) -> bool {
        match self {
            Self::Anywhere => true,
            Self::Code => grammar.modes_after(dot) & grammar.code_modes() != 0,
            Self::Nested => grammar.modes_after(dot) & grammar.code_modes() != 0 && grammar.is_nested(dot),
            Self::Text(mode, next) => {
                bits::has(grammar.modes_after(dot), mode.index())
                    && next.is_some_and(|next| grammar.can_come(dot, next))
            }
        }
    }
}
