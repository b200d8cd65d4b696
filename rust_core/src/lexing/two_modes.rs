//! One text read in mode 0 and in another mode at once.

use crate::ids::{AcceptId, ModeId, StateId};
use crate::lexing::lexer::{DEAD, Lexer};

/// States and longest matches of a text in both modes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TwoModes {
    plain: StateId,
    in_mode: StateId,
    /// Longest match so far in mode 0; 0 for none.
    pub(crate) last_plain: AcceptId,
    /// Longest match so far in the other mode; 0 for none.
    pub(crate) last_in_mode: AcceptId,
    /// True if the two matches have one length.
    pub(crate) level: bool,
}

impl TwoModes {
    /// The empty text.
    pub(crate) fn start(lexer: &Lexer, mode: ModeId) -> Self {
        let (plain, in_mode) = (lexer.start(), lexer.start_of(mode));
        Self { plain, in_mode, last_plain: AcceptId(0), last_in_mode: AcceptId(0), level: true }
    }

    /// The text with one more byte; `None` if no lexeme begins so in either mode.
    pub(crate) fn after(self, lexer: &Lexer, byte: u8) -> Option<Self> {
        let (plain, in_mode) = (lexer.step(self.plain, byte), lexer.step(self.in_mode, byte));
        if (plain, in_mode) == (DEAD, DEAD) {
            return None;
        }
        let (accepts, accepts_in_mode) = (lexer.accepts(plain), lexer.accepts(in_mode));
        Some(Self {
            plain,
            in_mode,
            last_plain: if accepts { lexer.accept(plain) } else { self.last_plain },
            last_in_mode: if accepts_in_mode { lexer.accept(in_mode) } else { self.last_in_mode },
            level: if accepts || accepts_in_mode { accepts == accepts_in_mode } else { self.level },
        })
    }

    /// Return whether both modes have the same longest match so far.
    pub(crate) fn matches_alike(self) -> bool {
        self.last_plain == self.last_in_mode && self.level
    }

    /// Return whether both modes read every longer text alike.
    pub(crate) fn goes_on_alike(self) -> bool {
        self.plain == self.in_mode && self.matches_alike()
    }
}
