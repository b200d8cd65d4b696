//! Tokens that stay in a shape, by the state that each leads to (Outlines, arXiv 2307.09702: the FSM index).

use crate::bits;
use crate::ids::ShapeId;
use crate::language::shape::Shape;
use crate::masking::plain::mask_words;
use crate::masking::vocabulary::Vocabulary;
use rustc_hash::FxHashMap;

/// Packed masks of the tokens that stay in a shape from one of its states, by the state that each leads to.
#[derive(Debug)]
pub(crate) struct ShapeIndex(Vec<(ShapeId, Vec<u32>)>);

impl ShapeIndex {
    /// The index of one state of a shape, by a walk over the vocabulary's trie.
    pub(crate) fn new(vocabulary: &Vocabulary, shape: &Shape, state: ShapeId) -> Self {
        let words = mask_words(vocabulary.len());
        let mut found: FxHashMap<ShapeId, Vec<u32>> = FxHashMap::default();
        let nodes = vocabulary.nodes();
        let mut path = vec![state];
        let mut at = 0;
        while at < nodes.len() {
            let node = &nodes[at];
            path.truncate(node.depth as usize);
            let Some(to) = shape.step(path[path.len() - 1], node.byte) else {
                at = node.skip as usize;
                continue;
            };
            path.push(to);
            let ending = vocabulary.ending(node);
            if !ending.is_empty() {
                let mask = found.entry(to).or_insert_with(|| vec![0; words]);
                ending.iter().for_each(|&token| bits::insert(mask, token.index()));
            }
            at += 1;
        }
        let mut found: Vec<(ShapeId, Vec<u32>)> = found.into_iter().collect();
        found.sort_unstable_by_key(|entry| entry.0);
        Self(found)
    }

    /// The states that tokens lead to, each with a packed mask of those tokens.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (ShapeId, &[u32])> {
        self.0.iter().map(|(state, tokens)| (*state, tokens.as_slice()))
    }
}
