//! Shortest completion: a further middle of the least bytes that makes a whole program.
//!
//! The search is A* over branches, byte by byte. Its bound is the requirements' (min, +) distance. The bound prices
//! every lexeme at its shortest text, separators between words, and a block's indentation where R names its column. It
//! never exceeds the truth, so the first whole branch taken off the queue is a shortest one.

use crate::engine::branch::Branch;
use crate::engine::verdicts::Engine;
use crate::error::Error;
use crate::language::free::Cost;
use crate::planning::search::{self, Step, Steps};
use rustc_hash::FxHashMap;

/// A shortest further middle from any of the branches; `None` if there is none.
///
/// # Errors
/// More than `most` states were looked at.
pub(crate) fn shortest_completion(
    engine: &mut Engine,
    branches: &[Branch],
    most: usize,
) -> Result<Option<Vec<u8>>, Error> {
    let mut bytes = Bytes::new(engine);
    search::search(engine, branches, &mut bytes, most)
}

/// Every byte, each for one.
pub(super) struct Bytes {
    alphabet: Vec<u8>,
    /// Number of bytes that represent a class of the lexer; the others belong to texts that may come again.
    alike: usize,
    stepped: Vec<Branch>,
}

impl Bytes {
    pub(super) fn new(engine: &Engine) -> Self {
        let mut alphabet = alphabet(engine);
        let alike = alphabet.len();
        let own = engine.parser.bytes_of_texts().filter(|byte| !alphabet[..alike].contains(byte));
        let own: Vec<u8> = own.collect();
        alphabet.extend(own);
        Self { alphabet, alike, stepped: Vec::new() }
    }
}

impl Steps for Bytes {
    type Note = ();

    fn admits(&mut self, (): &()) -> bool {
        true
    }

    fn each(&mut self, engine: &mut Engine, branch: &Branch, from: usize, out: &mut Vec<Step>) -> Option<usize> {
        if from == self.alike && !engine.parser.may_read_text(branch) {
            return None;
        }
        engine.advance(&[*branch], *self.alphabet.get(from)?, &mut self.stepped);
        out.extend(self.stepped.iter().map(|&after| Step { text: from, after, cost: 1 }));
        Some(from + 1)
    }

    fn text(&self, text: usize) -> &[u8] {
        &self.alphabet[text..=text]
    }

    fn note(&mut self, _: &Engine, _: (&Branch, &()), _: &Step) {}

    fn bound(&self, engine: &mut Engine, branch: &Branch, _: &()) -> Cost {
        engine.bound(branch)
    }

    fn is_goal(&self, engine: &mut Engine, branch: &Branch) -> bool {
        engine.complete(branch)
    }
}

/// The most readable byte of each class that the lexer and the middle's shape distinguish. Space and tab are always
/// included, since columns distinguish them where the lexer does not. A form feed is never needed: a newline does the
/// same.
pub(crate) fn alphabet(engine: &Engine) -> Vec<u8> {
    let lexer = &engine.language.lexer;
    let readability = |byte| engine.language.spelling.readability(byte);
    let shaped = engine.language.shaped.as_ref();
    let mut chosen: FxHashMap<u8, u8> = FxHashMap::default();
    for byte in (0..=255u8).filter(|&byte| shaped.is_none_or(|shaped| shaped.takes(byte))) {
        let class = shaped.map_or_else(|| lexer.class_of(byte), |shaped| shaped.class_of(byte));
        let current = chosen.entry(class).or_insert(byte);
        if readability(byte) < readability(*current) {
            *current = byte;
        }
    }
    let mut bytes: Vec<u8> = chosen.into_values().collect();
    bytes.extend(b" \t".iter().filter(|&&byte| shaped.is_none_or(|shaped| shaped.takes(byte))));
    // Ties go to the first: an operator needs an operand, so `f(a` above `b)` lacks a comma and not a `%`.
    bytes.sort_unstable_by_key(|&byte| (readability(byte), engine.language.spelling.is_operator(byte), byte));
    bytes.dedup();
    bytes
}
