//! Masks that belong to one engine's sessions.

use crate::engine::branch::Branch;
use crate::ids::{ShapeId, TokenId};
use crate::language::shape::Shape;
use crate::limits;
use crate::masking::key::{Doubtful, Kept, Key};
use crate::masking::shape_index::ShapeIndex;
use crate::masking::stack::KnownForms;
use crate::masking::vocabulary::Vocabulary;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A vocabulary, and the branches that a middle goes on from.
type Place = (u128, Box<[Branch]>);

/// Masks kept beside an engine.
#[derive(Debug, Default)]
pub(crate) struct OwnMasks {
    /// Forms of the left chart's sets.
    pub(crate) forms: KnownForms,
    /// Room for a key.
    pub(crate) key: Vec<u32>,
    /// Masks of constrained states.
    masks: FxHashMap<Key, Kept>,
    /// Settled open tokens, by vocabulary and branches.
    settled: FxHashMap<Place, Arc<[TokenId]>>,
    /// The id of the cache, and its number of clearings. Beside another cache the masks are forgotten.
    of: (u64, u64),
    /// Tokens that stay in the shape, by vocabulary and place.
    indexes: FxHashMap<(u128, ShapeId), Arc<ShapeIndex>>,
}

impl OwnMasks {
    /// A mask of a constrained state.
    pub(crate) fn get(&mut self, of: (u64, u64), key: &[u32]) -> Option<&Kept> {
        if self.of != of {
            self.of = of;
            self.masks.clear();
        }
        self.masks.get(key)
    }

    /// Keep a mask of a constrained state.
    pub(crate) fn keep(&mut self, key: Key, words: &[u32], doubtful: Doubtful) {
        if self.masks.len() * size_of_val(words) >= limits::OWN_MASK_BYTES {
            self.masks.clear();
        }
        self.masks.insert(key, Kept { mask: words.into(), doubtful });
    }

    /// The open tokens of a mask that may follow some branches; `settle` computes them.
    pub(crate) fn settled(
        &mut self,
        vocabulary: &Vocabulary,
        branches: &[Branch],
        settle: impl FnOnce() -> Vec<TokenId>,
    ) -> Arc<[TokenId]> {
        if self.settled.len() >= limits::SETTLED_MASKS {
            self.settled.clear();
        }
        self.settled.entry((vocabulary.fingerprint(), branches.into())).or_insert_with(|| settle().into()).clone()
    }

    /// The tokens that stay in a shape.
    pub(crate) fn shape_index(&mut self, vocabulary: &Vocabulary, shape: &Shape, at: ShapeId) -> Arc<ShapeIndex> {
        if self.indexes.len() >= limits::SHAPE_INDEXES {
            self.indexes.clear();
        }
        let key = (vocabulary.fingerprint(), at);
        self.indexes.entry(key).or_insert_with(|| Arc::new(ShapeIndex::new(vocabulary, shape, at))).clone()
    }
}
