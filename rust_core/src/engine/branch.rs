//! A branch: one way to cut the text so far into symbols.

use crate::ids::{GuardId, IndentationId, SetId, ShapeId, StateId, TextId};
use crate::lexing::branch::Cut;
use crate::lexing::layout::Column;

/// Where in a logical line a branch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum InLine {
    /// The line has no symbol yet: its indentation so far, and the column a backslash-newline has fixed.
    Start {
        /// The column of the next byte.
        column: Column,
        /// The column that a backslash-newline has fixed.
        kept: Option<Column>,
    },
    /// The line has a symbol (always so in a language without layout).
    Middle,
}

/// One way to cut the text so far into symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Branch {
    /// The left chart's set after the last ended symbol.
    pub set: SetId,
    /// The symbol in progress; the lexer's start state between symbols.
    pub state: StateId,
    /// Ended symbols that must not match again.
    pub guards: GuardId,
    /// Where in the logical line.
    pub line: InLine,
    /// Open brackets.
    pub depth: u32,
    /// Open blocks.
    pub indentation: IndentationId,
    /// The last byte ended a backslash-newline: the file must not end here.
    pub joined: bool,
    /// Where in its shape the middle is, if it must have one: at its beginning while L is read.
    pub at: ShapeId,
    /// What has been read of the symbol in progress, where its text may bind or match.
    pub text: TextId,
}

/// Which side of a bracket the newline is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Nesting {
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

/// What may stand first in a line, as far as blocks are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opens {
    /// The first line of a block.
    Always,
    /// That, or something else.
    Maybe,
    /// A line of a block that is open.
    Never,
}
