//! Product of the lexer with guards: the configurations that a symbol in progress can reach.

use crate::bits::{self, BitSet};
use crate::ids::{GuardId, StateId};
use crate::lexing::guards::{Guards, NO_GUARDS};
use crate::lexing::lexer::{DEAD, Lexer};
use rustc_hash::FxHashSet;
use std::hash::Hash;

/// A symbol in progress with guards, and a value that is stepped along.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Beside<T> {
    /// The symbol in progress.
    pub state: StateId,
    /// Its guards.
    pub guards: GuardId,
    /// The value that is stepped along.
    pub along: T,
    /// Least bytes to this configuration.
    pub bytes: u32,
}

/// Configurations reachable from a symbol in progress, each once, nearest first, beginning with `from` itself.
///
/// `bytes` holds one byte of each class. `step` steps the value along; `None` forbids the byte. Configurations that
/// `goes_on` refuses are not expanded.
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

/// The accept sets that a symbol in progress with guards can still become, as a mask.
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
