//! A model's vocabulary as a trie of token bytes.

use crate::error::{Error, ErrorKind};
use crate::ids::TokenId;

/// One node of the trie, in depth-first order.
#[derive(Debug, Clone, Copy)]
pub struct TrieNode {
    /// The byte on the edge to this node.
    pub byte: u8,
    /// Bytes from the root; the root's children have 1.
    pub depth: u32,
    /// The node after this one's subtree.
    pub skip: u32,
    /// Tokens that end here: a range of [`Vocabulary::ending`].
    begin: u32,
    end: u32,
}

/// A vocabulary: byte strings by token id. Immutable; shared by all sessions.
#[derive(Debug)]
pub struct Vocabulary {
    bytes: Vec<u8>,
    offsets: Vec<u32>,
    end_tokens: Vec<TokenId>,
    is_end: Vec<bool>,
    nodes: Vec<TrieNode>,
    ending: Vec<TokenId>,
    longest: usize,
    fingerprint: u128,
}

impl Vocabulary {
    /// Builds the trie. A token without bytes (a special token, a hole in the ids) is never allowed; `end_tokens` end the
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
            nodes: Vec::new(),
            ending: Vec::new(),
            longest: 0,
            fingerprint: 0,
        };
        vocabulary.fingerprint = vocabulary.hash();
        vocabulary.build_trie();
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

    fn build_trie(&mut self) {
        let mut order: Vec<TokenId> =
            (0..self.is_end.len()).map(TokenId::from_index).filter(|&id| !self.bytes_of(id).is_empty()).collect();
        order.sort_by(|&one, &other| self.bytes_of(one).cmp(self.bytes_of(other)));
        let mut path: Vec<u32> = Vec::new();
        let mut previous: Vec<u8> = Vec::new();
        let mut nodes: Vec<TrieNode> = Vec::new();
        let mut ending: Vec<TokenId> = Vec::with_capacity(order.len());
        let mut longest = 0;
        for id in order {
            let token = self.bytes_of(id);
            let shared = previous.iter().zip(token).take_while(|(one, other)| one == other).count();
            for node in path.drain(shared..) {
                nodes[node as usize].skip = u32::try_from(nodes.len()).expect("trie fits u32");
            }
            for (index, &byte) in token.iter().enumerate().skip(shared) {
                path.push(u32::try_from(nodes.len()).expect("trie fits u32"));
                let at = u32::try_from(ending.len()).expect("tokens fit u32");
                nodes.push(TrieNode {
                    byte,
                    depth: u32::try_from(index + 1).expect("token length fits u32"),
                    skip: 0,
                    begin: at,
                    end: at,
                });
            }
            ending.push(id);
            let last = *path.last().expect("a token with bytes has a node") as usize;
            nodes[last].end = u32::try_from(ending.len()).expect("tokens fit u32");
            longest = longest.max(token.len());
            previous.clear();
            previous.extend_from_slice(token);
        }
        for node in path {
            nodes[node as usize].skip = u32::try_from(nodes.len()).expect("trie fits u32");
        }
        self.nodes = nodes;
        self.ending = ending;
        self.longest = longest;
    }

    /// The number of token ids, holes included: the length of a mask.
    #[must_use]
    pub fn len(&self) -> usize {
        self.is_end.len()
    }

    /// Whether there are no tokens.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.is_end.is_empty()
    }

    /// A token's bytes; empty for special tokens and holes.
    #[must_use]
    pub fn bytes_of(&self, id: TokenId) -> &[u8] {
        &self.bytes[self.offsets[id.index()] as usize..self.offsets[id.index() + 1] as usize]
    }

    /// Whether a token ends the middle.
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
        &self.nodes
    }

    /// Tokens that end at a node.
    #[must_use]
    pub fn ending(&self, node: &TrieNode) -> &[TokenId] {
        &self.ending[node.begin as usize..node.end as usize]
    }

    /// Adds the tokens that a text begins with, shorter ones first, one of each length: (bytes, the first token of them).
    pub fn tokens_along(&self, text: &[u8], found: &mut Vec<(usize, TokenId)>) {
        let mut at = 0;
        let mut end = self.nodes.len();
        for (index, &byte) in text.iter().enumerate() {
            while at < end && self.nodes[at].byte != byte {
                at = self.nodes[at].skip as usize;
            }
            if at >= end {
                return;
            }
            let node = &self.nodes[at];
            if let Some(&token) = self.ending(node).first() {
                found.push((index + 1, token));
            }
            end = node.skip as usize;
            at += 1;
        }
    }

    /// Bytes of the longest token.
    #[must_use]
    pub fn longest(&self) -> usize {
        self.longest
    }
}
