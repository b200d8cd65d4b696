//! Guards: what keeps a symbol that was ended early from having a longer match after all.
//!
//! While a middle is being written no lookahead exists, so a symbol may be ended where a longer match is still possible.
//! The DFA goes on running as a guard beside the symbols that follow: should it accept again, the symbol was not a longest
//! match and the branch dies. A set of guards is interned; the empty set is `GuardId(0)`.

use crate::ids::{GuardId, StateId};
use crate::lexing::lexer::{DEAD, Lexer};
use rustc_hash::{FxHashMap, FxHashSet};

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

    /// Interns a set; states that can never accept again are dropped.
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

/// The accept sets that a symbol in progress beside guards can still be, as a mask.
#[must_use]
pub(crate) fn live_beside(lexer: &Lexer, guards: &mut Guards, state: StateId, id: GuardId) -> Box<[u64]> {
    let mut live = vec![0u64; lexer.live_mask(state).len()].into_boxed_slice();
    let mut seen: FxHashSet<(StateId, GuardId)> = FxHashSet::default();
    let mut stack = vec![(state, id)];
    let representatives = lexer.representatives();
    while let Some((state, id)) = stack.pop() {
        if !seen.insert((state, id)) {
            continue;
        }
        if id == NO_GUARDS {
            for (word, more) in live.iter_mut().zip(lexer.live_mask(state)) {
                *word |= more;
            }
            continue;
        }
        let accept = lexer.accept(state).index();
        if accept != 0 {
            live[accept / 64] |= 1 << (accept % 64);
        }
        for &byte in &representatives {
            let target = lexer.step(state, byte);
            if target != DEAD
                && let Some(stepped) = guards.step(lexer, id, byte)
            {
                stack.push((target, stepped));
            }
        }
    }
    live
}
