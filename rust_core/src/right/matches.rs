//! Longest matches at the positions of R, in linear time.
//!
//! A raw string that does not end is read to the end of R, and then something shorter is taken. Where thousands begin,
//! each would be read to the end. So states of the lexer after which nothing more is accepted are remembered, at every
//! [`EVERY`]th byte (Reps, "Maximal-munch tokenization in linear time", 1998).

use crate::ids::{AcceptId, ModeId, StateId};
use crate::lexing::lexer::{DEAD, Lexer};
use rustc_hash::FxHashSet;
use std::sync::{Mutex, PoisonError};

/// Bytes between the places at which states are remembered.
const EVERY: usize = 64;

/// States from which R leads to no end of a symbol, each with its position.
#[derive(Debug, Default)]
pub(super) struct Matches {
    futile: Mutex<FxHashSet<(StateId, usize)>>,
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
            if lexer.accepts(state) {
                best = Some((index + 1 - position, lexer.accept(state)));
                passed.clear();
            }
            if (index + 1) % EVERY == 0 {
                if self.is_futile((state, index + 1)) {
                    break;
                }
                passed.push((state, index + 1));
            }
        }
        if !passed.is_empty() {
            self.futile.lock().unwrap_or_else(PoisonError::into_inner).extend(passed);
        }
        best
    }

    fn is_futile(&self, place: (StateId, usize)) -> bool {
        self.futile.lock().unwrap_or_else(PoisonError::into_inner).contains(&place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_languages::{Random, compile, slashes, strings};

    #[test]
    fn matches_are_those_of_the_lexer() {
        let mut random = Random::new(12);
        let mut futile = 0;
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
                futile += matches.futile.into_inner().expect("no panic").len();
            }
        }
        assert!(futile > 100, "{futile} places are futile");
    }
}
