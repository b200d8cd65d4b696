//! Hash index into a table, so that the table's entries need no second copy as keys.

use crate::chunked::Chunked;
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{Hash, Hasher};

/// The hash by which something is found.
#[allow(clippy::cast_possible_truncation)] // the upper half
pub(crate) fn hash<T: Hash + ?Sized>(of: &T) -> u32 {
    let mut hasher = FxHasher::default();
    of.hash(&mut hasher);
    (hasher.finish() >> 32) as u32
}

/// The hashes of a table's entries, in their order.
#[derive(Debug, Default)]
pub(crate) struct Hashes {
    /// The last entry of each hash.
    last: FxHashMap<u32, u32>,
    /// Per entry: the previous entry with the same hash, plus one.
    before: Chunked<u32>,
}

impl Hashes {
    /// The entry with a hash for which `is` holds.
    #[inline]
    pub(crate) fn find(&self, hash: u32, is: impl Fn(usize) -> bool) -> Option<usize> {
        let mut at = *self.last.get(&hash)? as usize;
        loop {
            if is(at) {
                return Some(at);
            }
            at = self.before.get(at).checked_sub(1)? as usize;
        }
    }

    /// Take note of the hash of the table's next entry.
    pub(crate) fn push(&mut self, hash: u32) {
        let index = u32::try_from(self.before.len()).expect("a table fits u32");
        let before = self.last.insert(hash, index);
        self.before.push(before.map_or(0, |before| before + 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_with_one_hash_are_distinguished() {
        let table = ["a", "b", "c", "d"];
        let mut hashes = Hashes::default();
        for (index, entry) in table.iter().enumerate() {
            assert_eq!(hashes.find(7, |at| table[at] == *entry), None);
            hashes.push(if index == 2 { 8 } else { 7 });
        }
        let found = |hash, entry| hashes.find(hash, |at| table[at] == entry);
        assert_eq!(["a", "b", "d"].map(|entry| found(7, entry)), [Some(0), Some(1), Some(3)]);
        assert_eq!((found(8, "c"), found(7, "c"), found(9, "a")), (Some(2), None, None));
    }
}
