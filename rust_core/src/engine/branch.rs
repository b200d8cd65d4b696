//! Branch: one division of the text so far into symbols.

use crate::ids::{GuardId, IndentationId, SetId, ShapeId, StateId, TextId};
use crate::lexing::branch::Cut;
use crate::lexing::layout::Column;

/// Place of a branch in a logical line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum InLine {
    /// The line has no symbol yet.
    Start {
        /// The column of the next byte.
        column: Column,
        /// The column that a backslash-newline has fixed.
        kept: Option<Column>,
    },
    /// The line has a symbol (always so in a language without layout).
    Middle,
}

/// One division of the text so far into symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Branch {
    /// The left chart's set after the last ended symbol.
    pub set: SetId,
    /// The symbol in progress; the lexer's start state between symbols.
    pub state: StateId,
    /// Ended symbols that must not match again.
    pub guards: GuardId,
    /// Place in the logical line.
    pub line: InLine,
    /// Open brackets.
    pub depth: u32,
    /// Open blocks.
    pub indentation: IndentationId,
    /// True after a backslash-newline: the file must not end here.
    pub joined: bool,
    /// State of the middle's shape, if it must have one; the initial state while L is read.
    pub at: ShapeId,
    /// Text read of the symbol in progress, where it may bind or match.
    pub text: TextId,
}

/// Place of a newline: outside of all brackets, where the parser reads it, or inside of one, where it is ignored. In a
/// language without layout every place counts as inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum BracketSide {
    Outside,
    Inside,
}

impl Cut for Branch {
    #[inline(always)]
    fn state(&self) -> StateId {
        self.state
    }

    #[inline(always)]
    fn guards(&self) -> GuardId {
        self.guards
    }

    #[inline(always)]
    fn is_before_line(&self) -> bool {
        matches!(self.line, InLine::Start { .. })
    }

    #[inline(always)]
    fn with_state(self, state: StateId) -> Self {
        Self { state, ..self }
    }

    #[inline(always)]
    fn with_guards(self, guards: GuardId) -> Self {
        Self { guards, ..self }
    }

    #[inline(always)]
    fn at_line_start(self) -> Self {
        Self { line: InLine::Start { column: Column::ZERO, kept: None }, ..self }
    }
}

/// Symbols that may stand first in a line, as far as blocks are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opens {
    /// The first line of a block.
    Always,
    /// The first line of a block, or another line.
    Maybe,
    /// A line of a block that is open.
    Never,
}
