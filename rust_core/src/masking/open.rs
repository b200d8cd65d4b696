//! Tokens that a mask leaves open, with an index of the texts in them.
//!
//! Names decide only tokens that hold one or end with the beginning of one. Sorted lists lead from a name to these
//! tokens, so that the others are not looked at.

use crate::ids::TokenId;
use crate::language::compiled::Language;
use crate::language::marks::run;
use crate::lexing::lexer::DEAD;
use crate::masking::vocabulary::Vocabulary;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// Tokens that a mask leaves open.
#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) tokens: Arc<OpenTokens>,
    /// True if a token may bind the very text that comes again in it: then no name at hand decides it.
    pub(crate) bind: bool,
    /// Places of the tokens that may follow the wanted text as the symbol in progress, if no later text is a wanted one.
    ended: OnceLock<Box<[u32]>>,
}

impl Open {
    pub(crate) fn new(tokens: OpenTokens, bind: bool) -> Self {
        Self { tokens: Arc::new(tokens), bind, ended: OnceLock::new() }
    }

    /// Places of the tokens that may follow the whole wanted text; `find` finds them.
    pub(crate) fn ended(&self, find: impl FnOnce() -> Vec<u32>) -> &[u32] {
        self.ended.get_or_init(|| find().into())
    }

    /// Bytes in memory without the tokens.
    pub(crate) fn bytes(&self) -> usize {
        self.ended.get().map_or(0, |ended| size_of_val(&**ended))
    }
}

/// Some tokens, sorted by bytes. Masks with equal open tokens share them.
#[derive(Debug)]
pub(crate) struct OpenTokens {
    ids: Box<[TokenId]>,
    /// Ends of tokens from where a text may begin in them, as (place, first byte), sorted by bytes.
    inner: OnceLock<Box<[(u32, u32)]>>,
}

impl OpenTokens {
    pub(crate) fn new(mut ids: Vec<TokenId>, vocabulary: &Vocabulary) -> Self {
        ids.sort_unstable_by_key(|&id| (vocabulary.bytes_of(id), id));
        Self { ids: ids.into(), inner: OnceLock::new() }
    }

    /// The tokens, sorted by bytes.
    pub(crate) fn ids(&self) -> &[TokenId] {
        &self.ids
    }

    /// The places of all tokens.
    pub(crate) fn places(&self) -> Vec<u32> {
        (0..self.ids.len() as u32).collect()
    }

    /// Bytes in memory.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.ids) + self.inner.get().map_or(0, |inner| size_of_val(&**inner))
    }

    /// Add the places of the tokens that begin a text or begin with it.
    pub(crate) fn add_beginning(&self, vocabulary: &Vocabulary, text: &[u8], places: &mut Vec<u32>) {
        let found = |range: Range<usize>| places.extend(range.map(|place| place as u32));
        agreeing(self.ids.len(), |place| vocabulary.bytes_of(self.ids[place]), text, found);
    }

    /// Add the places of the tokens in which a text begins after their first byte.
    pub(crate) fn add_inner(&self, language: &Language, vocabulary: &Vocabulary, text: &[u8], places: &mut Vec<u32>) {
        let inner = self.inner.get_or_init(|| self.find_inner(language, vocabulary));
        let found = |range: Range<usize>| places.extend(inner[range].iter().map(|&(place, _)| place));
        agreeing(inner.len(), |at| self.rest(vocabulary, inner[at]), text, found);
    }

    /// Add the places of the tokens that hold some bytes.
    pub(crate) fn add_holding(&self, vocabulary: &Vocabulary, bytes: &[u8], places: &mut Vec<u32>) {
        let holds = |id: TokenId| vocabulary.bytes_of(id).windows(bytes.len()).any(|part| part == bytes);
        places.extend(self.ids.iter().enumerate().filter(|&(_, &id)| holds(id)).map(|(place, _)| place as u32));
    }

    fn rest<'a>(&self, vocabulary: &'a Vocabulary, (place, at): (u32, u32)) -> &'a [u8] {
        &vocabulary.bytes_of(self.ids[place as usize])[at as usize..]
    }

    fn find_inner(&self, language: &Language, vocabulary: &Vocabulary) -> Box<[(u32, u32)]> {
        let Some(marks) = &language.marks else { return Box::default() };
        let lexer = &language.lexer;
        let begins = |byte: u8| {
            marks.starts().iter().any(|&start| {
                let state = run(lexer, start, &[byte]);
                state != DEAD && marks.are_live(state)
            })
        };
        // By byte before a text and first byte of it.
        let mut may = vec![false; 1 << 16];
        for byte in (0..=255u8).filter(|&byte| begins(byte)) {
            for before in 0..=255u8 {
                may[usize::from(before) << 8 | usize::from(byte)] = marks.begins_after(lexer, byte, before);
            }
        }
        let mut found = Vec::new();
        for (place, &id) in self.ids.iter().enumerate() {
            for (at, pair) in vocabulary.bytes_of(id).windows(2).enumerate() {
                if may[usize::from(pair[0]) << 8 | usize::from(pair[1])] {
                    found.push((place as u32, at as u32 + 1));
                }
            }
        }
        found.sort_unstable_by_key(|&rest| self.rest(vocabulary, rest));
        found.into()
    }
}

/// Pass on the ranges of a sorted list whose bytes begin a text or begin with it.
fn agreeing<'a>(length: usize, bytes_of: impl Fn(usize) -> &'a [u8], text: &[u8], mut found: impl FnMut(Range<usize>)) {
    let (mut begin, mut end) = (0, length);
    for (depth, &byte) in text.iter().enumerate() {
        // All that are left share the bytes before; those that end here come first.
        let longer = partition(begin..end, |at| bytes_of(at).len() <= depth);
        found(begin..longer);
        begin = partition(longer..end, |at| bytes_of(at)[depth] < byte);
        end = partition(begin..end, |at| bytes_of(at)[depth] <= byte);
        if begin == end {
            return;
        }
    }
    found(begin..end);
}

/// The first number of a range of which a condition is false; it is false of all later ones.
fn partition(range: Range<usize>, is_before: impl Fn(usize) -> bool) -> usize {
    let (mut begin, mut end) = (range.start, range.end);
    while begin < end {
        let middle = begin.midpoint(end);
        if is_before(middle) { begin = middle + 1 } else { end = middle }
    }
    begin
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_languages::Random;

    fn text(random: &mut Random, longest: usize) -> Vec<u8> {
        (0..1 + random.below(longest)).map(|_| b"ab<"[random.below(3)]).collect()
    }

    #[test]
    fn the_index_finds_tokens_as_a_look_at_each_does() {
        let mut random = Random::new(11);
        let (mut some, mut none) = (0, 0);
        for _ in 0..200 {
            let bytes: Vec<Option<Vec<u8>>> = (0..30).map(|_| Some(text(&mut random, 5))).collect();
            let vocabulary = Vocabulary::new(&bytes, &[]).expect("a vocabulary");
            let ids = (0..30).filter(|_| random.below(4) > 0).map(TokenId::from_index).collect();
            let tokens = OpenTokens::new(ids, &vocabulary);
            let bytes_at = |place: u32| vocabulary.bytes_of(tokens.ids()[place as usize]);
            let sorted = |mut places: Vec<u32>| {
                places.sort_unstable();
                places
            };
            for _ in 0..20 {
                let wanted = text(&mut random, 4);
                let of = |is: &dyn Fn(&[u8]) -> bool| -> Vec<u32> {
                    tokens.places().into_iter().filter(|&place| is(bytes_at(place))).collect()
                };
                let agree = |token: &[u8]| token.starts_with(&wanted) || wanted.starts_with(token);
                let (mut beginning, mut holding) = (Vec::new(), Vec::new());
                tokens.add_beginning(&vocabulary, &wanted, &mut beginning);
                tokens.add_holding(&vocabulary, &wanted, &mut holding);
                assert_eq!(sorted(beginning), of(&agree), "{wanted:?}");
                let holds = |token: &[u8]| token.windows(wanted.len()).any(|part| part == wanted);
                assert_eq!(sorted(holding), of(&holds), "{wanted:?}");
                if of(&agree).is_empty() { none += 1 } else { some += 1 }
            }
        }
        assert!(some > 100 && none > 10, "{some} texts are begun, {none} are not");
    }
}
