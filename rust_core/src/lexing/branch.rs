//! One byte's step of the lexer and of the layout stage, for any reader of symbols.
//!
//! Where a symbol may have ended and may also go on, a branch forks. One branch ends the symbol beside a guard, the
//! other goes on with it. The [`Reader`] decides what follows the end of a symbol. The engine lets the parser read it;
//! the builder of the token table records that some parser will be asked. The reader is chosen at compile time, so
//! nothing here is dispatched dynamically.

use crate::ids::{AcceptId, GuardId, StateId};
use crate::lexing::lexer::{DEAD, Lexer};
use crate::lexing::roles::{LineByte, Role};

/// One division of a text into symbols, as far as lexer and layout see it. The reader's own fields travel along.
pub(crate) trait Cut: Copy {
    /// The symbol in progress; a start state between two symbols.
    fn state(&self) -> StateId;

    /// Ended symbols that must not match again.
    fn guards(&self) -> GuardId;

    /// Return whether the line has no symbol yet that is passed on.
    fn is_before_line(&self) -> bool;

    /// This branch with another symbol in progress.
    fn with_state(self, state: StateId) -> Self;

    /// This branch beside other guards.
    fn with_guards(self, guards: GuardId) -> Self;

    /// This branch at column 0 of a line.
    fn at_line_start(self) -> Self;
}

/// Reader of symbols, with the state from which lexing goes on.
pub(crate) trait Reader {
    /// A branch.
    type Branch: Cut;

    /// Result of reading before the step's byte.
    type Read: Copy;

    /// Result of reading nothing.
    const NOTHING: Self::Read;

    /// The lexer.
    fn lexer(&self) -> &Lexer;

    /// The role of an accept set.
    fn role(&self, accept: AcceptId) -> Role;

    /// The effect of a byte at the start of a line.
    fn line_byte(&self, byte: u8) -> LineByte;

    /// The guards after a byte; `None` if one of them accepts.
    fn step_guards(&mut self, guards: GuardId, byte: u8) -> Option<GuardId>;

    /// The guards with a state more.
    fn add_guard(&mut self, guards: GuardId, state: StateId) -> GuardId;

    /// Pass over an ignored lexeme. `each` gets the branches after it, between two symbols.
    fn pass_over(&mut self, branch: Self::Branch, each: impl FnMut(&mut Self, Self::Branch, Self::Read));

    /// The branch after a blank of an indentation; `None` beyond the last column.
    fn indent(&mut self, branch: Self::Branch, byte: u8) -> Option<Self::Branch>;

    /// The branch after a line join has ended, which may fix a column; `None` where the reader cannot say.
    fn join(&mut self, branch: Self::Branch) -> Option<Self::Branch>;

    /// Read a newline. `each` gets a branch in the line if brackets are open, otherwise one before the next line.
    fn end_line(
        &mut self,
        branch: Self::Branch,
        accept: AcceptId,
        each: impl FnMut(&mut Self, Self::Branch, Self::Read),
    );

    /// Read a symbol that is passed on whatever is open. `each` gets the branches after it, between two symbols.
    fn read(
        &mut self,
        branch: Self::Branch,
        accept: AcceptId,
        role: Role,
        each: impl FnMut(&mut Self, Self::Branch, Self::Read),
    );

    /// The step leads to a branch.
    fn reach(&mut self, branch: Self::Branch, read: Self::Read, out: &mut Vec<Self::Branch>);

    /// The step begins a symbol in the middle of a line.
    fn begin_symbol(&mut self, branch: Self::Branch, read: Self::Read, out: &mut Vec<Self::Branch>);

    /// The step begins the first symbol of a line, in a state; the branch is still before the line.
    fn begin_line(&mut self, branch: Self::Branch, state: StateId, read: Self::Read, out: &mut Vec<Self::Branch>);
}

/// Step a branch by one byte; `out` gets the branches that the reader allows.
#[inline]
pub(crate) fn step<R: Reader>(reader: &mut R, branch: R::Branch, byte: u8, out: &mut Vec<R::Branch>) {
    let Some(guards) = reader.step_guards(branch.guards(), byte) else { return };
    let branch = branch.with_guards(guards);
    let state = branch.state();
    let lexer = reader.lexer();
    if branch.is_before_line() && lexer.is_start(state) {
        return step_indentation(reader, branch, byte, R::NOTHING, out);
    }
    let target = lexer.step(state, byte);
    if lexer.accepts(state) && !lexer.accepts(target) {
        let accept = lexer.accept(state);
        let mut beside = None;
        end_symbol(reader, branch, accept, |reader, ended, read| {
            let guards = *beside.get_or_insert_with(|| reader.add_guard(guards, target));
            begin(reader, ended.with_guards(guards), byte, read, out);
        });
    }
    if target != DEAD {
        reader.reach(branch.with_state(target), R::NOTHING, out);
    }
}

/// End the symbol in progress as an accept set, with unchanged guards. `each` gets the branches after it, between two
/// symbols.
#[inline]
pub(crate) fn end_symbol<R: Reader>(
    reader: &mut R,
    branch: R::Branch,
    accept: AcceptId,
    each: impl FnMut(&mut R, R::Branch, R::Read),
) {
    match reader.role(accept) {
        Role::Blank | Role::Comment => reader.pass_over(branch, each),
        Role::Join => {
            if let Some(joined) = reader.join(branch) {
                reader.pass_over(joined, each);
            }
        }
        Role::Newline => reader.end_line(branch, accept, each),
        role @ (Role::Symbol | Role::Open | Role::Close) => reader.read(branch, accept, role, each),
    }
}

/// The first byte after a symbol.
#[inline]
fn begin<R: Reader>(reader: &mut R, branch: R::Branch, byte: u8, read: R::Read, out: &mut Vec<R::Branch>) {
    if branch.is_before_line() {
        return step_indentation(reader, branch, byte, read, out);
    }
    let state = reader.lexer().step(branch.state(), byte);
    if state != DEAD {
        reader.begin_symbol(branch.with_state(state), read, out);
    }
}

/// A byte in an indentation.
#[inline]
fn step_indentation<R: Reader>(reader: &mut R, branch: R::Branch, byte: u8, read: R::Read, out: &mut Vec<R::Branch>) {
    match reader.line_byte(byte) {
        LineByte::Blank => {
            if let Some(indented) = reader.indent(branch, byte) {
                reader.reach(indented, read, out);
            }
        }
        LineByte::Newline => reader.reach(branch.at_line_start(), read, out),
        LineByte::Trivia => {
            let state = reader.lexer().step(branch.state(), byte);
            if state != DEAD {
                reader.reach(branch.with_state(state), read, out);
            }
        }
        LineByte::Symbol => {
            let state = reader.lexer().step(branch.state(), byte);
            if state != DEAD {
                reader.begin_line(branch, state, read, out);
            }
        }
    }
}
