//! What a symbol in progress can come to beside guards: the product of the lexer with the guards' steps.

use crate::bits::{self, BitSet};
use crate::ids::{GuardId, StateId};
use crate::lexing::guards::{Guards, NO_GUARDS};
use crate::lexing::lexer::{DEAD, Lexer};
use rustc_hash::FxHashSet;
use std::hash::Hash;

/// A symbol in progress beside guards, and what else is stepped along.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Beside<T> {
    /// The symbol in progress.
    pub state: StateId,
    /// Its guards.
    pub guards: GuardId,
    /// What is stepped along.
    pub along: T,
    /// Least bytes that lead there.
    pub bytes: u32,
}

/// All that some bytes lead to from a symbol in progress, each once, nearest first; what it begins with is the first.
///
/// `bytes`: one of each class that nothing here tells apart. `step`: a byte's step of what is stepped along; `None` where it may
/// not be. From what `goes_on` refuses no further step is taken.
pub(crate) fn walk_beside<T: Copy + Eq + Hash>(
    lexer: &Lexer,
    guards: &mut Guards,
    bytes: &[u8],
    from: (StateId, GuardId, T),
    step: impl Fn(T, u8) -> Option<T>,
    goes_on: impl Fn(GuardId) -> bool,
) -> Vec<Beside<T>> {
    let (state, id, along) = from;
    let mut seen: FxHashSet<(StateId, GuardId, T)> = std::iter::once(from).collect();
    let mut found = vec![Beside { state, guards: id, along, bytes: 0 }];
    let mut done = 0;
    while done < found.len() {
        let at = found[done];
        done += 1;
        if !goes_on(at.guards) {
            continue;
        }
        for &byte in bytes {
            let state = lexer.step(at.state, byte);
            if state == DEAD {
                continue;
            }
            let Some(along) = step(at.along, byte) else { continue };
            let Some(id) = guards.step(lexer, at.guards, byte) else { continue };
            if seen.insert((state, id, along)) {
                found.push(Beside { state, guards: id, along, bytes: at.bytes + 1 });
            }
        }
    }
    found
}

/// The accept sets that a symbol in progress beside guards can still be, as a mask.
#[must_use]
pub(crate) fn live_beside(lexer: &Lexer, guards: &mut Guards, state: StateId, id: GuardId) -> BitSet {
    let mut live = BitSet::new(lexer.accept_set_count());
    let from = (state, id, ());
    for at in walk_beside(lexer, guards, &lexer.representatives(), from, |(), _| Some(()), |id| id != NO_GUARDS) {
        if at.guards == NO_GUARDS {
            bits::unite(live.words_mut(), lexer.live_mask(at.state));
        } else if lexer.accepts(at.state) {
            live.insert(lexer.accept(at.state).index());
        }
    }
    live
}
