//! What the masks of the sessions of one engine keep for themselves, beside the engine.

use crate::engine::branch::{Branch, InLine};
use crate::ids::ShapeId;
use crate::language::shape::Shape;
use crate::limits;
use crate::masking::cache::{Key, Mask};
use crate::masking::shape_index::ShapeIndex;
use crate::masking::stack::KnownForms;
use crate::masking::vocabulary::Vocabulary;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// What is kept beside an engine.
#[derive(Debug, Default)]
pub(crate) struct OwnMasks {
    /// Forms of the left chart's sets.
    pub(crate) forms: KnownForms,
    /// Room for a key.
    pub(crate) key: Vec<u32>,
    /// Masks where R has a say, and which masks they are: of another vocabulary, or from before they were cleared, they are forgotten.
    masks: FxHashMap<Key, Mask>,
    of: (u64, u64),
    /// The tokens that do not leave the shape, by vocabulary and place.
    indexes: FxHashMap<(u128, ShapeId), Arc<ShapeIndex>>,
}

impl OwnMasks {
    /// A mask where R has a say.
    pub(crate) fn get(&mut self, of: (u64, u64), key: &[u32]) -> Option<&Mask> {
        if self.of != of {
            self.of = of;
            self.masks.clear();
        }
        self.masks.get(key)
    }

    /// Keeps a mask where R has a say.
    pub(crate) fn keep(&mut self, key: Key, words: &[u32]) {
        if self.masks.len() * size_of_val(words) >= limits::OWN_MASK_BYTES {
            self.masks.clear();
        }
        self.masks.insert(key, words.into());
    }

    /// The tokens that do not leave a shape.
    pub(crate) fn shape_index(&mut self, vocabulary: &Vocabulary, shape: &Shape, at: ShapeId) -> Arc<ShapeIndex> {
        if self.indexes.len() >= limits::SHAPE_INDEXES {
            self.indexes.clear();
        }
        let key = (vocabulary.fingerprint(), at);
        self.indexes.entry(key).or_insert_with(|| Arc::new(ShapeIndex::new(vocabulary, shape, at))).clone()
    }
}

/// The key of a state that is not loose, in its own session.
pub(crate) fn own_key(vocabulary: &Vocabulary, branches: &[Branch]) -> Key {
    let print = vocabulary.fingerprint();
    let mut key = Vec::with_capacity(16);
    key.extend([
        branches.first().map_or(0, |branch| branch.at.0),
        (print & 0xffff_ffff) as u32,
        (print >> 32 & 0xffff_ffff) as u32,
        (print >> 64 & 0xffff_ffff) as u32,
    ]);
    for branch in branches {
        key.extend([branch.set.0, branch.state.0, branch.guards.0, branch.depth, branch.indentation.0]);
        push_line(&mut key, branch.line);
    }
    key.into()
}

/// Adds to a key where in a line a branch is.
pub(crate) fn push_line(key: &mut Vec<u32>, line: InLine) {
    match line {
        InLine::Middle => key.push(0),
        InLine::Start { column, kept } => {
            key.extend([if kept.is_some() { 2 } else { 1 }, column.wide, column.narrow]);
            key.extend(kept.into_iter().flat_map(|kept| [kept.wide, kept.narrow]));
        }
    }
}
