//! A model's vocabulary: the bytes of each token, and which tokens end a middle.

use crate::error::{Error, ErrorKind};
use crate::ids::TokenId;
use crate::masking::trie::{Trie, TrieNode};

/// A vocabulary: byte strings by token id. Immutable; shared by all sessions.
#[derive(Debug)]
pub struct Vocabulary {
    bytes: Vec<u8>,
    offsets: Vec<u32>,
    end_tokens: Vec<TokenId>,
    is_end: Vec<bool>,
    trie: Trie,
    fingerprint: u128,
}

impl Vocabulary {
    /// Build the trie. A token without bytes (a special token, a hole in the ids) is never allowed; `end_tokens` end the
    /// middle.
    ///
    /// # Errors
    /// An end token outside the vocabulary.
    pub fn new(tokens: &[Option<Vec<u8>>], end_tokens: &[u32]) -> Result<Self, Error> {
        let mut is_end = vec![false; tokens.len()];
        for &id in end_tokens {
            let slot = is_end.get_mut(id as usize).ok_or_else(|| {
                Error::new(
                    ErrorKind::Vocabulary,
                    format!("end token {id} is outside the vocabulary of {} tokens", tokens.len()),
                )
            })?;
            *slot = true;
        }
        let mut bytes = Vec::new();
        let mut offsets = vec![0];
        for (token, &end) in tokens.iter().zip(&is_end) {
            if let Some(token) = token.as_ref().filter(|_| !end) {
                bytes.extend_from_slice(token);
            }
            offsets.push(
                u32::try_from(bytes.len()).map_err(|_| Error::new(ErrorKind::Vocabulary, "vocabulary over 4 GiB"))?,
            );
        }
        let mut vocabulary = Self {
            bytes,
            offsets,
            end_tokens: end_tokens.iter().map(|&id| TokenId(id)).collect(),
            is_end,
            trie: Trie::default(),
            fingerprint: 0,
        };
        vocabulary.fingerprint = vocabulary.hash();
        let ids = (0..vocabulary.len()).map(TokenId::from_index).filter(|&id| !vocabulary.bytes_of(id).is_empty());
        vocabulary.trie = Trie::new(ids.collect(), |id| vocabulary.bytes_of(id));
        Ok(vocabulary)
    }

    fn hash(&self) -> u128 {
        let mut hasher = xxhash_rust::xxh3::Xxh3::new();
        hasher.update(bytemuck::cast_slice(&self.offsets));
        hasher.update(&self.bytes);
        hasher.digest128()
    }

    /// A hash of the tokens' bytes by id.
    #[must_use]
    pub fn fingerprint(&self) -> u128 {
        self.fingerprint
    }

    /// The number of token ids, holes included: the length of a mask.
    #[must_use]
    pub fn len(&self) -> usize {
        self.is_end.len()
    }

    /// Return whether there are no tokens.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.is_end.is_empty()
    }

    /// A token's bytes; empty for special tokens and holes.
    #[must_use]
    pub fn bytes_of(&self, id: TokenId) -> &[u8] {
        &self.bytes[self.offsets[id.index()] as usize..self.offsets[id.index() + 1] as usize]
    }

    /// Return whether a token ends the middle.
    #[must_use]
    pub fn is_end(&self, id: TokenId) -> bool {
        self.is_end[id.index()]
    }

    /// The tokens that end the middle.
    #[must_use]
    pub fn end_tokens(&self) -> &[TokenId] {
        &self.end_tokens
    }

    /// The trie's nodes in depth-first order.
    #[must_use]
    pub fn nodes(&self) -> &[TrieNode] {
        self.trie.nodes()
    }

    /// Tokens that end at a node.
    #[must_use]
    pub fn ending(&self, node: &TrieNode) -> &[TokenId] {
        self.trie.ending(node)
    }

    /// Add the tokens that are prefixes of a text, shorter ones first, one of each length, as (bytes, first token).
    pub fn tokens_along(&self, text: &[u8], found: &mut Vec<(usize, TokenId)>) {
        self.trie.tokens_along(text, found);
    }

    /// Bytes of the longest token.
    #[must_use]
    pub fn longest(&self) -> usize {
        self.trie.longest()
    }
}
