//! Guards, which keep a symbol that was ended early from having a longer match after all.
//!
//! While a middle is being written no lookahead exists, so a symbol may be ended where a longer match is still
//! possible. The DFA goes on running as a guard beside the symbols that follow. If it accepts again, the symbol was not
//! a longest match and the branch dies. A set of guards is interned; the empty set is `GuardId(0)`.

use crate::ids::{GuardId, StateId};
use crate::lexing::lexer::{DEAD, Lexer};
use rustc_hash::FxHashMap;

/// The empty set of guards.
pub(crate) const NO_GUARDS: GuardId = GuardId(0);

/// Interned guard sets.
#[derive(Debug, Clone)]
pub(crate) struct Guards {
    sets: Vec<Box<[StateId]>>,
    ids: FxHashMap<Box<[StateId]>, GuardId>,
}

impl Default for Guards {
    fn default() -> Self {
        let empty: Box<[StateId]> = Box::new([]);
        Self { sets: vec![empty.clone()], ids: std::iter::once((empty, NO_GUARDS)).collect() }
    }
}

impl Guards {
    /// The number of sets, the empty one included.
    #[must_use]
    pub(crate) fn len(&self) -> usize {
        self.sets.len()
    }

    /// The states of a set, ascending.
    #[must_use]
    pub(crate) fn states(&self, id: GuardId) -> &[StateId] {
        &self.sets[id.index()]
    }

    /// Intern a set; states that can never accept again are dropped.
    pub(crate) fn intern(&mut self, lexer: &Lexer, mut states: Vec<StateId>) -> GuardId {
        states.retain(|&state| state != DEAD && lexer.extends(state));
        states.sort_unstable();
        states.dedup();
        let states = states.into_boxed_slice();
        if let Some(&id) = self.ids.get(&states) {
            return id;
        }
        let id = GuardId::from_index(self.sets.len());
        self.sets.push(states.clone());
        self.ids.insert(states, id);
        id
    }

    /// The set after one byte; `None` if a guard accepts, that is, if the branch must die.
    pub(crate) fn step(&mut self, lexer: &Lexer, id: GuardId, byte: u8) -> Option<GuardId> {
        if id == NO_GUARDS {
            return Some(id);
        }
        let mut stepped = Vec::with_capacity(self.sets[id.index()].len());
        for &state in &self.sets[id.index()] {
            let target = lexer.step(state, byte);
            if lexer.accepts(target) {
                return None;
            }
            stepped.push(target);
        }
        Some(self.intern(lexer, stepped))
    }

    /// The set with one more state.
    pub(crate) fn with(&mut self, lexer: &Lexer, id: GuardId, state: StateId) -> GuardId {
        if state == DEAD || !lexer.extends(state) {
            return id;
        }
        let mut states = self.sets[id.index()].to_vec();
        states.push(state);
        self.intern(lexer, states)
    }
}
