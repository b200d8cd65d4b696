//! Interned sets of tokens: as ids, or as a packed mask where that is faster to add.

use crate::bits;
use crate::ids::TokenId;
use crate::masking::plain::mask_words;
use rustc_hash::FxHashMap;
use xxhash_rust::xxh3::xxh3_64;

/// Bit of a set's length: the words of a mask follow, instead of ids.
pub(crate) const DENSE: u32 = 1 << 31;

/// Interned sets.
#[derive(Debug)]
pub(crate) struct TokenSets {
    /// Start of each set in `data`, and its length or [`DENSE`].
    pub sets: Vec<[u32; 2]>,
    /// Ids and masks.
    pub data: Vec<u32>,
    by_hash: FxHashMap<u64, Vec<u32>>,
    mask: Vec<u32>,
    listed: Vec<u32>,
}

impl TokenSets {
    /// No sets yet, over some number of tokens.
    #[must_use]
    pub(crate) fn new(tokens: usize) -> Self {
        Self {
            sets: Vec::new(),
            data: Vec::new(),
            by_hash: FxHashMap::default(),
            mask: vec![0; mask_words(tokens)],
            listed: Vec::new(),
        }
    }

    /// The number of the union of some lists.
    pub(crate) fn intern(&mut self, lists: &[&[TokenId]]) -> u32 {
        let count: usize = lists.iter().map(|list| list.len()).sum();
        self.listed.clear();
        // Adding a mask takes a fraction of the time of as many ids.
        let dense = count * 8 >= self.mask.len();
        if dense {
            self.mask.fill(0);
            for token in lists.iter().copied().flatten() {
                bits::insert(&mut self.mask, token.index());
            }
        } else {
            self.listed.extend(lists.iter().copied().flatten().map(|token| token.0));
            self.listed.sort_unstable();
            self.listed.dedup();
        }
        let words = if dense { &self.mask } else { &self.listed };
        let length = u32::try_from(words.len()).expect("set fits u32") | if dense { DENSE } else { 0 };
        let same = self.by_hash.entry(xxh3_64(bytemuck::cast_slice(words)) ^ u64::from(length)).or_default();
        for &id in same.iter() {
            let [begin, own] = self.sets[id as usize];
            if own == length && self.data[begin as usize..begin as usize + words.len()] == words[..] {
                return id;
            }
        }
        let id = u32::try_from(self.sets.len()).expect("set count fits u32");
        same.push(id);
        self.sets.push([u32::try_from(self.data.len()).expect("table fits u32"), length]);
        self.data.extend_from_slice(words);
        id
    }
}
