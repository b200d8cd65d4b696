//! The trie of a vocabulary's tokens, in depth-first order.

use crate::ids::TokenId;

/// One node of the trie.
#[derive(Debug, Clone, Copy)]
pub struct TrieNode {
    /// The byte on the edge to this node.
    pub byte: u8,
    /// Bytes from the root; the root's children have 1.
    pub depth: u32,
    /// The node after this one's subtree.
    pub skip: u32,
    /// Tokens that end here: a range of [`Trie::ending`].
    begin: u32,
    end: u32,
}

/// The trie: its root is no node, since no token is empty.
#[derive(Debug, Default)]
pub(crate) struct Trie {
    nodes: Vec<TrieNode>,
    ending: Vec<TokenId>,
    longest: usize,
}

impl Trie {
    /// The trie of some tokens, none of them empty.
    pub(crate) fn new<'a>(mut tokens: Vec<TokenId>, bytes_of: impl Fn(TokenId) -> &'a [u8]) -> Self {
        tokens.sort_by(|&one, &other| bytes_of(one).cmp(bytes_of(other)));
        let mut trie = Self { nodes: Vec::new(), ending: Vec::with_capacity(tokens.len()), longest: 0 };
        let mut path: Vec<u32> = Vec::new();
        let mut previous: &[u8] = &[];
        for id in tokens {
            let token = bytes_of(id);
            let shared = previous.iter().zip(token).take_while(|(one, other)| one == other).count();
            trie.close(path.drain(shared..));
            let at = u32::try_from(trie.ending.len()).expect("tokens fit u32");
            for (index, &byte) in token.iter().enumerate().skip(shared) {
                path.push(u32::try_from(trie.nodes.len()).expect("trie fits u32"));
                let depth = u32::try_from(index + 1).expect("token length fits u32");
                trie.nodes.push(TrieNode { byte, depth, skip: 0, begin: at, end: at });
            }
            trie.ending.push(id);
            let last = *path.last().expect("a token with bytes has a node") as usize;
            trie.nodes[last].end = at + 1;
            trie.longest = trie.longest.max(token.len());
            previous = token;
        }
        trie.close(path.into_iter());
        trie
    }

    /// Close nodes: they have no more descendants than those present.
    fn close(&mut self, nodes: impl Iterator<Item = u32>) {
        let skip = u32::try_from(self.nodes.len()).expect("trie fits u32");
        nodes.for_each(|node| self.nodes[node as usize].skip = skip);
    }

    /// The nodes in depth-first order.
    #[inline(always)]
    pub(crate) fn nodes(&self) -> &[TrieNode] {
        &self.nodes
    }

    /// Tokens that end at a node.
    #[inline(always)]
    pub(crate) fn ending(&self, node: &TrieNode) -> &[TokenId] {
        &self.ending[node.begin as usize..node.end as usize]
    }

    /// Bytes of the longest token.
    pub(crate) fn longest(&self) -> usize {
        self.longest
    }

    /// Add the tokens that are prefixes of a text, shorter ones first, one of each length, as (bytes, first token).
    pub(crate) fn tokens_along(&self, text: &[u8], found: &mut Vec<(usize, TokenId)>) {
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
}
