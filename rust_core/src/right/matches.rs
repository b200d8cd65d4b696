//! Longest matches at the positions of R, in linear time.
//!
//! A raw string that does not end is read to the end of R, and then something shorter is taken. Where thousands begin,
//! each would be read to the end, as would comments that may begin at thousands of places of one line. So the last
//! acceptance after a state of the lexer is remembered, at every [`EVERY`]th byte (Reps, "Maximal-munch tokenization in
//! linear time", 1998, remembers states without one).

use crate::ids::{AcceptId, ModeId, StateId};
use crate::lexing::lexer::{DEAD, Lexer};
use rustc_hash::FxHashMap;
use std::sync::{Mutex, PoisonError};

/// Bytes between the places at which states are remembered.
const EVERY: usize = 64;

/// End of a match in R, and its accept set.
type End = (usize, AcceptId);

/// The last end of a symbol after some states, each with its position; `None` if none follows.
#[derive(Debug, Default)]
pub(super) struct Matches {
    known: Mutex<FxHashMap<(StateId, usize), Option<End>>>,
}

impl Matches {
    /// The longest match of R at a position in a mode: its length in bytes and its accept set.
    pub(super) fn longest(
        &self,
        lexer: &Lexer,
        mode: ModeId,
        text: &[u8],
        position: usize,
    ) -> Option<(usize, AcceptId)> {
        let mut state = lexer.start_of(mode);
        let mut best = None;
        let mut passed: Vec<(StateId, usize)> = Vec::new();
        for (index, &byte) in text.iter().enumerate().skip(position) {
            state = lexer.step(state, byte);
            if state == DEAD {
                break;
            }
            let at = index + 1;
            if lexer.accepts(state) {
                best = Some((at, lexer.accept(state)));
            }
            if at % EVERY == 0 {
                if let Some(known) = self.known(state, at) {
                    best = known.or(best);
                    break;
                }
                passed.push((state, at));
            }
        }
        if !passed.is_empty() {
            let after = passed.into_iter().map(|place| (place, best.filter(|&(end, _)| end > place.1)));
            self.known.lock().unwrap_or_else(PoisonError::into_inner).extend(after);
        }
        best.map(|(end, accept)| (end - position, accept))
    }

    fn known(&self, state: StateId, at: usize) -> Option<Option<End>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).get(&(state, at)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_languages::{Random, compile, slashes, strings};

    #[test]
    fn matches_are_those_of_the_lexer() {
        let mut random = Random::new(12);
        let mut known = [0, 0];
        for (spec, alphabet) in [(strings(), &b"ab<<>{}"[..]), (slashes(), b"ab/();`{}")] {
            let language = compile(&spec);
            let lexer = &language.lexer;
            let modes: Vec<ModeId> = (0..language.mode_count()).map(ModeId::from_index).collect();
            for round in 0..200 {
                // Few kinds of bytes, so that symbols are long.
                let kinds = 1 + random.below(alphabet.len());
                let text: Vec<u8> =
                    (0..300).map(|_| alphabet[(round + random.below(kinds)) % alphabet.len()]).collect();
                let matches = Matches::default();
                for _ in 0..2 {
                    for position in 0..=text.len() {
                        for &mode in &modes {
                            assert_eq!(
                                matches.longest(lexer, mode, &text, position),
                                lexer.longest_match(mode, &text[position..]),
                                "{position} of {text:?}"
                            );
                        }
                    }
                }
                for end in matches.known.into_inner().expect("no panic").into_values() {
                    known[usize::from(end.is_some())] += 1;
                }
            }
        }
        assert!(known.iter().all(|&count| count > 100), "{known:?} places without and with an end after them");
    }
}
