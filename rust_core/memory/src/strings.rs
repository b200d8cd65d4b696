//! Texts of lexemes, each kept once and known by a number.

use crate::lexemes::{ASCII, Lexeme, NEWLINE, UNKNOWN, WORDS};
use hashbrown::HashTable;
use std::hash::{BuildHasher, RandomState};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The texts, by number. Those of one ASCII character have the numbers from `ASCII` on.
pub(crate) struct Strings {
    texts: String,
    ends: Vec<u32>,
    numbers: HashTable<Lexeme>,
    seed: u64,
}

impl Strings {
    pub(crate) fn new() -> Self {
        let texts: String = (0..128).map(|byte: u8| char::from(byte)).collect();
        let seed = RandomState::new().hash_one(0);
        Self { texts, ends: (1..=128).collect(), numbers: HashTable::new(), seed }
    }

    /// The number of a text, which is one lexeme: a new one where it is new.
    pub(crate) fn number(&mut self, text: &str) -> Lexeme {
        if let &[byte @ 0..128] = text.as_bytes() {
            return ASCII + Lexeme::from(byte);
        }
        let seed = self.seed;
        let hash = xxh3_64_with_seed(text.as_bytes(), seed);
        if let Some(&number) = self.numbers.find(hash, |&number| self.text(number) == text) {
            return number;
        }
        let number = ASCII + self.ends.len() as Lexeme;
        let end = self.texts.len() + text.len();
        if number >= NEWLINE || u32::try_from(end).is_err() {
            return UNKNOWN;
        }
        self.texts.push_str(text);
        self.ends.push(end as u32);
        let (texts, ends) = (&self.texts, &self.ends);
        self.numbers
            .insert_unique(hash, number, |&number| xxh3_64_with_seed(text_of(texts, ends, number).as_bytes(), seed));
        number
    }

    /// The number of a text; `UNKNOWN` if it was never seen.
    pub(crate) fn find(&self, text: &str) -> Lexeme {
        if let &[byte @ 0..128] = text.as_bytes() {
            return ASCII + Lexeme::from(byte);
        }
        let hash = xxh3_64_with_seed(text.as_bytes(), self.seed);
        self.numbers.find(hash, |&number| self.text(number) == text).copied().unwrap_or(UNKNOWN)
    }

    /// The text of a lexeme; empty for marks and line breaks.
    pub(crate) fn text(&self, lexeme: Lexeme) -> &str {
        text_of(&self.texts, &self.ends, lexeme)
    }

    /// Bytes held.
    pub(crate) fn held(&self) -> usize {
        self.texts.capacity() + 4 * self.ends.capacity() + 5 * self.numbers.capacity()
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }
}

fn text_of<'t>(texts: &'t str, ends: &[u32], lexeme: Lexeme) -> &'t str {
    const { assert!(WORDS == ASCII + 128) };
    let Some(index) = lexeme.checked_sub(ASCII).map(|index| index as usize) else { return "" };
    let Some(&end) = ends.get(index) else { return "" };
    let start = if index == 0 { 0 } else { ends[index - 1] };
    &texts[start as usize..end as usize]
}
