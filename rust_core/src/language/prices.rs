//! Prices of a free middle, which distinguish more states than its possibilities do. The bounds of searches rest on
//! them.
//!
//! The possibilities after a name equal those after a bracket, and those at a line's start do not depend on whether its
//! blanks are written. The costs differ. After a name, another word needs a blank before it; a line whose blanks are
//! written does not pay for them again. A search tries each byte that a bound leaves out in every place where it may be
//! saved, so it grows exponentially with them. Two more states distinguish these cases, for requirements and bounds
//! alone: R's chart and all verdicts know the free states only.

use crate::grammar::compiled::Grammar;
use crate::ids::{AcceptId, FreeId, LexemeId, StateId};
use crate::language::closing::{Relations, close};
use crate::language::terminals::{Cost, INFINITE, LINE, Lasts, MIDDLE};
use crate::lexing::layout::Layout;
use crate::lexing::lexer::{DEAD, Lexer, NEVER};
use crate::lexing::roles::Role;
use rustc_hash::FxHashSet;

/// Set of bytes.
type Bytes = [u64; 4];

/// Relations over the free states and these: after a word, and at the start of a line whose blanks are written.
#[derive(Debug)]
pub(crate) struct Prices {
    /// The number of states.
    pub(super) count: usize,
    /// Per state: its free state.
    free: Vec<FreeId>,
    /// Costs of symbols between the states.
    pub(super) relations: Relations,
    /// Per state of the lexer: whether a word ends there.
    word_states: Vec<bool>,
    /// Per accept set: whether it is a word's in all its states.
    word_accepts: Vec<bool>,
    after_word: FreeId,
    written: Option<FreeId>,
}

impl Prices {
    /// Prices of a language with separators.
    pub(super) fn derive(
        lexer: &Lexer,
        grammar: &Grammar,
        roles: &[Role],
        layout: Option<Layout>,
        lasts: &Lasts,
    ) -> Self {
        let words = Words::of(lexer, roles);
        let kinds = if layout.is_some() { vec![MIDDLE, LINE] } else { vec![MIDDLE] };
        let after_word = FreeId::from_index(kinds.len());
        let written = layout.is_some().then(|| FreeId::from_index(kinds.len() + 1));
        let free = [kinds, vec![MIDDLE], written.map(|_| LINE).into_iter().collect()].concat();
        let count = free.len();
        let mut relation = vec![INFINITE; grammar.lexeme_count() * count * count];
        let mut set = |lexeme: LexemeId, from: FreeId, to: FreeId, cost: Cost| {
            let cell = &mut relation[(lexeme.index() * count + from.index()) * count + to.index()];
            *cell = (*cell).min(cost);
        };
        for accept in lexer.accept_sets().filter(|&accept| lexer.shortest(accept) != NEVER) {
            let bytes = Cost::from(lexer.shortest(accept));
            let apart = words.least_apart(lexer, accept).min(bytes + 1);
            let after = if words.accepts[accept.index()] { after_word } else { MIDDLE };
            for &lexeme in lexer.lexemes(accept) {
                let role = roles[lexeme.index()];
                if role.is_ignored() || lasts.has(lexeme) {
                    continue;
                }
                let to = if role == Role::Newline { LINE } else { after };
                set(lexeme, MIDDLE, to, bytes);
                set(lexeme, after_word, to, apart);
                for line in [layout.map(|_| LINE), written].into_iter().flatten().filter(|_| role != Role::Newline) {
                    set(lexeme, line, to, bytes);
                }
            }
        }
        if let (Some(layout), Some(written)) = (layout, written) {
            set(layout.indent, LINE, LINE, 1);
            set(layout.indent, written, written, 0);
            set(layout.dedent, LINE, LINE, 0);
            set(layout.dedent, written, written, 0);
        }
        let relations = close(&relation, grammar, count);
        Self { count, free, relations, word_states: words.states, word_accepts: words.accepts, after_word, written }
    }

    /// The states of a free state.
    pub(super) fn states_of(&self, free: FreeId) -> impl Iterator<Item = FreeId> + '_ {
        (0..self.count).filter(move |&index| self.free[index] == free).map(FreeId::from_index)
    }

    /// Least costs among the free states. None is less after a word, so all may begin as after another symbol.
    pub(super) fn over_free(&self, free_count: usize) -> Relations {
        self.relations.over(free_count, |matrix| {
            let rows = matrix.chunks_exact(self.count).take(free_count);
            let least =
                |from: &[Cost], to| self.states_of(to).map(|state| from[state.index()]).min().unwrap_or(INFINITE);
            let cells = rows.flat_map(|from| (0..free_count).map(move |to| least(from, FreeId::from_index(to))));
            cells.collect()
        })
    }

    /// Return whether a line's blanks are written in a state.
    pub(super) fn is_written(&self, state: FreeId) -> bool {
        self.written == Some(state)
    }

    /// The start of a line whose blanks are written.
    pub(super) fn written(&self) -> Option<FreeId> {
        self.written
    }

    /// The state `finish` bytes after a state of the lexer, at whose end it has read a symbol.
    pub(super) fn after(&self, state: StateId, accept: AcceptId, finish: Cost) -> FreeId {
        let in_word = finish == 0 && self.word_states[state.index()];
        if in_word || self.word_accepts[accept.index()] { self.after_word } else { MIDDLE }
    }
}

/// Words: symbols after which another symbol that begins with one of some bytes needs a separator.
struct Words {
    bytes: Bytes,
    states: Vec<bool>,
    accepts: Vec<bool>,
}

impl Words {
    /// Choose the bytes such that most pairs of symbols need separators.
    fn of(lexer: &Lexer, roles: &[Role]) -> Self {
        let symbol = |accept: AcceptId| lexer.lexemes(accept).iter().any(|lexeme| !roles[lexeme.index()].is_ignored());
        let ends = |state: &StateId| !lexer.is_start(*state) && lexer.accepts(*state) && symbol(lexer.accept(*state));
        let swallowed: Vec<(StateId, Bytes)> = (1..lexer.state_count())
            .map(StateId::from_index)
            .filter(ends)
            .map(|state| (state, swallowed(lexer, state)))
            .collect();
        let sets: FxHashSet<Bytes> = swallowed.iter().map(|pair| pair.1).filter(|&bytes| bytes != [0; 4]).collect();
        let mut best = Self { bytes: [0; 4], states: Vec::new(), accepts: vec![false; lexer.accept_set_count()] };
        best.states = vec![false; lexer.state_count()];
        let mut most = (0, [0; 4]);
        for bytes in sets {
            let mut words = Self {
                bytes,
                states: vec![false; lexer.state_count()],
                accepts: vec![false; lexer.accept_set_count()],
            };
            for &(state, own) in &swallowed {
                words.states[state.index()] = own.iter().zip(&bytes).all(|(own, bytes)| bytes & !own == 0);
                words.accepts[lexer.accept(state).index()] |= words.states[state.index()];
            }
            for &(state, _) in swallowed.iter().filter(|pair| !words.states[pair.0.index()]) {
                words.accepts[lexer.accept(state).index()] = false;
            }
            let ending = words.accepts.iter().filter(|&&word| word).count();
            let raised = lexer.accept_sets().filter(|&accept| {
                symbol(accept) && words.least_apart(lexer, accept) > Cost::from(lexer.shortest(accept))
            });
            let rank = (ending * raised.count(), bytes);
            if rank > most {
                (most, best) = (rank, words);
            }
        }
        best
    }

    /// Least bytes of a symbol that does not begin with one of the bytes; [`INFINITE`] if there is none.
    fn least_apart(&self, lexer: &Lexer, accept: AcceptId) -> Cost {
        let mut least = INFINITE;
        for byte in (0..=255u8).filter(|&byte| self.bytes[usize::from(byte >> 6)] >> (byte & 63) & 1 == 0) {
            for state in lexer.starts().map(|start| lexer.step(start, byte)).filter(|&state| state != DEAD) {
                let rest = if lexer.accept(state) == accept { 0 } else { lexer.to_accept(state, accept) };
                if rest != NEVER {
                    least = least.min(1 + Cost::from(rest));
                }
            }
        }
        least
    }
}

/// The bytes with which a symbol goes on and is one again.
fn swallowed(lexer: &Lexer, state: StateId) -> Bytes {
    let mut found = [0; 4];
    for byte in 0..=255u8 {
        let after = lexer.step(state, byte);
        if after != DEAD && lexer.accepts(after) {
            found[usize::from(byte >> 6)] |= 1 << (byte & 63);
        }
    }
    found
}
