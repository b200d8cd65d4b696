//! Token masks by a walk over the vocabulary's trie. The walk knows a [`Recognizer`] and nothing of parsing.

use crate::bits;
use crate::masking::trie::TrieNode;
use crate::masking::vocabulary::Vocabulary;
use crate::stop::poll;

/// Text that a mask is computed with: it grows and shrinks at its end by bytes.
pub(crate) trait Recognizer {
    /// Append a byte if some completion remains; otherwise change nothing and return false.
    fn try_push(&mut self, byte: u8) -> bool;
    /// Take back pushed bytes until this many are left.
    fn pop_to(&mut self, length: usize);
    /// Return whether the text may end here.
    fn is_complete(&mut self) -> bool;
}

/// Words of a mask over this many tokens.
#[must_use]
pub fn mask_words(tokens: usize) -> usize {
    bits::words_for::<u32>(tokens)
}

/// Fill a packed mask: bit `id % 32` of word `id / 32` says whether the token is allowed. The end tokens are allowed
/// iff the text may end.
///
/// # Panics
/// If `words` is not [`mask_words`] long.
pub(crate) fn fill_mask(recognizer: &mut impl Recognizer, vocabulary: &Vocabulary, words: &mut [u32]) {
    words.fill(0);
    add_tokens(recognizer, vocabulary, words);
    if recognizer.is_complete() {
        add_end_tokens(vocabulary, words);
    }
}

/// Add the tokens that may follow to a packed mask, without the end tokens.
///
/// # Panics
/// If `words` is not [`mask_words`] long.
pub(crate) fn add_tokens(recognizer: &mut impl Recognizer, vocabulary: &Vocabulary, words: &mut [u32]) {
    assert_eq!(words.len(), mask_words(vocabulary.len()), "one word for 32 tokens");
    walk(recognizer, vocabulary, |_, node| {
        vocabulary.ending(node).iter().for_each(|&token| bits::insert(words, token.index()));
    });
}

/// Walk over the trie's nodes whose bytes a recognizer allows, and call `visit` at each. The recognizer ends where it
/// began.
pub(crate) fn walk<R: Recognizer>(
    recognizer: &mut R,
    vocabulary: &Vocabulary,
    mut visit: impl FnMut(&mut R, &TrieNode),
) {
    let nodes = vocabulary.nodes();
    let mut at = 0;
    while at < nodes.len() {
        poll();
        let node = &nodes[at];
        recognizer.pop_to(node.depth as usize - 1);
        if !recognizer.try_push(node.byte) {
            at = node.skip as usize;
            continue;
        }
        visit(recognizer, node);
        at += 1;
    }
    recognizer.pop_to(0);
}

/// Add the end tokens to a packed mask.
pub(crate) fn add_end_tokens(vocabulary: &Vocabulary, words: &mut [u32]) {
    vocabulary.end_tokens().iter().for_each(|&token| bits::insert(words, token.index()));
}
