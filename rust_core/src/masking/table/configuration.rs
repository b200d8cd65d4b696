//! Lexer configurations inside a token, and labels of edges between nodes of the token table.

use crate::ids::{AcceptId, GuardId, ModeId, StateId};
use crate::lexing::branch::Cut;
use crate::lexing::layout::Column;

/// Nothing has been read inside the token.
pub(crate) const NOTHING: AcceptId = AcceptId(0);

/// Place in a line: between two symbols of it, or in its indentation, after a run of blanks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Line {
    /// The line has a symbol.
    Middle,
    /// No symbol yet; the run of blanks began with the token.
    Relative(u32),
    /// No symbol yet; the run of blanks began with the line.
    Absolute(u32),
}

/// Label of an edge between nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Label {
    /// A symbol is read; then a mode is in force.
    Read(AcceptId, ModeId),
    /// A newline is ignored: brackets are open.
    Inside,
    /// A newline ends the logical line.
    Newline(AcceptId, ModeId),
    /// A newline ends the logical line, and the next one begins at column 0.
    NewlineBegin(AcceptId, ModeId),
    /// A line begins after a run of blanks.
    Begin(Line),
}

/// A lexer configuration inside a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Configuration {
    /// The symbol in progress.
    pub state: StateId,
    /// Ended symbols that must not match again, in the builder's own numbers.
    pub guards: GuardId,
    /// The lexer's state before a symbol in the mode in force; that of no mode where it does not matter.
    pub start: StateId,
    /// Place in the line.
    pub line: Line,
    /// The last symbol read inside the token, or one that the same symbols follow; none where it does not matter.
    pub after: AcceptId,
    /// Brackets are known to be open.
    pub inside: bool,
}

/// Configuration at the end of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct End {
    /// The symbol in progress.
    pub state: StateId,
    /// Its guards.
    pub guards: GuardId,
    /// The line has no symbol yet.
    pub in_line: bool,
}

impl Cut for Configuration {
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
        self.line != Line::Middle
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
        Self { line: Line::Absolute(0), ..self }
    }
}

/// A run of blanks: an earlier one and a byte more. The first one is empty.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run {
    /// The earlier run.
    pub before: u32,
    /// The byte more.
    pub byte: u8,
    /// Column to which it leads from column 0.
    pub column: Column,
}

/// The bytes of a run.
#[must_use]
pub(crate) fn run_bytes(runs: &[Run], mut id: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    while id != 0 {
        bytes.push(runs[id as usize].byte);
        id = runs[id as usize].before;
    }
    bytes.reverse();
    bytes
}
