//! Masks of one language and vocabulary, shared by all sessions: the token spanner table, and a cache of computed
//! masks.
//!
//! Where a parse stack is unconstrained (see `follow`), a mask depends only on the stack's form (see `stack`), the
//! lexer's configuration, the bracket depth and the open blocks. Keys are compared whole, so equal keys are equal
//! states. The masks of other stacks belong to their session.

use crate::engine::branch::Branch;
use crate::engine::verdicts::Engine;
use crate::limits;
use crate::masking::doubtful;
use crate::masking::key::{Doubtful, Kept, Key, Mask, own_key, write_unconstrained_key};
use crate::masking::open::{Open, OpenTokens};
use crate::masking::own::OwnMasks;
use crate::masking::parts::Parts;
use crate::masking::plain::mask_words;
use crate::masking::stack::Forms;
use crate::masking::table::file::Spanner;
use crate::masking::vocabulary::Vocabulary;
use crate::masking::walk::{self, Rest};
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use xxhash_rust::xxh3::xxh3_64;

const SHARDS: usize = 16;

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// Masks of one language and vocabulary, for all sessions.
#[derive(Debug)]
pub struct MaskCache {
    /// The table.
    pub spanner: Spanner,
    /// True if the table came from a file.
    pub cached: bool,
    /// Seconds to load or build it.
    pub seconds: f64,
    /// Unique id of this cache; never 0.
    id: u64,
    words: usize,
    forms: Mutex<Forms>,
    parts: Parts,
    shards: Vec<Mutex<Shard>>,
    contents: Mutex<Contents>,
    /// Open tokens of masks by their hash.
    open: Mutex<FxHashMap<u64, Weak<OpenTokens>>>,
    /// Number of times that the masks were cleared.
    cleared: AtomicU64,
    hits: AtomicU64,
    misses: AtomicU64,
}

/// Masks in two generations. A mask of the older one that is used moves to the younger; when the younger is full, the
/// older is forgotten.
#[derive(Debug, Default)]
struct Shard {
    young: FxHashMap<Key, Kept>,
    old: FxHashMap<Key, Kept>,
}

impl Shard {
    /// Make room: forget masks that were not used in the younger generation.
    fn age(&mut self) {
        self.old = std::mem::take(&mut self.young);
    }
}

/// Cached masks by the hash of their words, and the number made since the shards last aged.
#[derive(Debug, Default)]
struct Contents {
    masks: FxHashMap<u64, Weak<[u32]>>,
    made: usize,
}

/// Statistics of the caches.
#[derive(Debug, Clone, Copy, Default)]
pub struct Statistics {
    /// Cached masks, for all sessions.
    pub masks: usize,
    /// Cached masks, equal ones counted once.
    pub distinct: usize,
    /// Lookups that found a mask.
    pub hits: u64,
    /// Lookups that computed a mask.
    pub misses: u64,
    /// Bytes of the cached masks.
    pub bytes: usize,
    /// Bytes of the table.
    pub table: usize,
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl MaskCache {
    /// Make an empty cache with a table.
    #[must_use]
    pub fn new(spanner: Spanner, vocabulary: &Vocabulary, cached: bool, seconds: f64) -> Self {
        Self {
            spanner,
            cached,
            seconds,
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            words: mask_words(vocabulary.len()),
            forms: Mutex::default(),
            parts: Parts::default(),
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            contents: Mutex::default(),
            open: Mutex::default(),
            cleared: AtomicU64::new(0),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
        }
    }

    /// Fill a packed mask with the tokens that may follow, without end tokens. `own` holds the masks that belong to the
    /// engine.
    pub(crate) fn fill(
        &self,
        engine: &mut Engine,
        own: &mut OwnMasks,
        vocabulary: &Vocabulary,
        branches: &[Branch],
        words: &mut [u32],
    ) {
        let unconstrained = engine.is_unconstrained();
        if unconstrained {
            self.find_key(engine, own, branches);
            if let Some(doubtful) = self.find(&own.key, words) {
                self.hits.fetch_add(1, Ordering::Relaxed);
                doubtful::settle(engine, own, vocabulary, branches, &doubtful, words);
                return;
            }
        }
        let key = own_key(vocabulary, branches);
        if let Some(kept) = own.get((self.id, self.cleared.load(Ordering::Relaxed)), &key) {
            self.hits.fetch_add(1, Ordering::Relaxed);
            words.copy_from_slice(&kept.mask);
            let doubtful = kept.doubtful.clone();
            doubtful::settle(engine, own, vocabulary, branches, &doubtful, words);
            return;
        }
        self.misses.fetch_add(1, Ordering::Relaxed);
        let asked = engine.right_asked();
        let mut compute = |engine: &mut Engine, branches: &[Branch], words: &mut [u32]| {
            self.compute(engine, own, vocabulary, branches, words);
        };
        let open = doubtful::compute(engine, vocabulary, branches, words, &mut compute);
        let doubtful = open.map(|open| Arc::new(self.share_open(open)));
        if unconstrained && engine.right_asked() == asked {
            self.keep(own.key.as_slice().into(), words, doubtful.clone());
        } else {
            own.keep(key, words, doubtful.clone());
        }
        doubtful::settle(engine, own, vocabulary, branches, &doubtful, words);
    }

    /// Fill a packed mask as [`MaskCache::fill`] does, without the cache.
    fn compute(
        &self,
        engine: &mut Engine,
        own: &mut OwnMasks,
        vocabulary: &Vocabulary,
        branches: &[Branch],
        words: &mut [u32],
    ) {
        words.fill(0);
        let mark = engine.mark();
        let full = engine.sets_since_opened() > limits::MASK_SETS;
        let mut rest = Rest::default();
        let language = engine.language.clone();
        if let Some(shape) = language.free.shape() {
            // A token is viable where it leads to, so each place of the shape has a walk of its own.
            let Some(at) = branches.first().map(|branch| branch.at) else { return };
            let index = own.shape_index(vocabulary, shape, at);
            let mut found = vec![0; words.len()];
            for (to, tokens) in index.iter() {
                found.fill(0);
                for branch in branches {
                    let branch = Branch { at: to, ..*branch };
                    walk::add_tokens(engine, &self.spanner, &branch, (Some(tokens), &mut found), None, &mut rest);
                }
                for ((word, found), tokens) in words.iter_mut().zip(&found).zip(tokens) {
                    *word |= found & tokens;
                }
            }
        } else {
            for branch in branches {
                walk::add_tokens(engine, &self.spanner, branch, (None, words), Some(&self.parts), &mut rest);
            }
        }
        rest.add_to(engine, vocabulary, branches, words);
        if full {
            engine.truncate(mark);
        }
    }

    /// Forget all masks, including those that belong to sessions.
    pub fn clear(&self) {
        for shard in &self.shards {
            *lock(shard) = Shard::default();
        }
        *lock(&self.contents) = Contents::default();
        self.parts.clear();
        self.cleared.fetch_add(1, Ordering::Relaxed);
        self.hits.store(0, Ordering::Relaxed);
        self.misses.store(0, Ordering::Relaxed);
    }

    /// Statistics of the caches.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        let mut found = Statistics {
            hits: self.hits.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
            table: self.spanner.bytes(),
            ..Statistics::default()
        };
        let mut distinct = rustc_hash::FxHashSet::default();
        let mut opened = rustc_hash::FxHashSet::default();
        for shard in &self.shards {
            let shard = lock(shard);
            found.masks += shard.young.len() + shard.old.len();
            for (key, kept) in shard.young.iter().chain(&shard.old) {
                found.bytes += 4 * key.len();
                if let Some(open) = &kept.doubtful {
                    found.bytes += open.bytes();
                    if opened.insert(open.tokens.ids().as_ptr()) {
                        found.bytes += open.tokens.bytes();
                    }
                }
                if distinct.insert(kept.mask.as_ptr()) {
                    found.bytes += 4 * kept.mask.len();
                }
            }
        }
        found.distinct = distinct.len();
        found.bytes += self.parts.bytes();
        found
    }

    /// Parts of walks that were used again.
    #[cfg(test)]
    pub(crate) fn parts_found(&self) -> u64 {
        self.parts.found()
    }

    /// Bytes of the parts of walks.
    #[cfg(test)]
    pub(crate) fn part_bytes(&self) -> usize {
        self.parts.bytes()
    }

    fn shard(&self, key: &[u32]) -> &Mutex<Shard> {
        // The low bits choose the place in the shard's own map.
        &self.shards[(FxBuildHasher.hash_one(key) >> 40) as usize % SHARDS]
    }

    /// Copy the mask of a key, if known, and return the tokens that it leaves open.
    fn find(&self, key: &[u32], words: &mut [u32]) -> Option<Doubtful> {
        let mut shard = lock(self.shard(key));
        if let Some(kept) = shard.young.get(key) {
            words.copy_from_slice(&kept.mask);
            return Some(kept.doubtful.clone());
        }
        let (key, kept) = shard.old.remove_entry(key)?;
        words.copy_from_slice(&kept.mask);
        let doubtful = kept.doubtful.clone();
        shard.young.insert(key, kept);
        Some(doubtful)
    }

    fn keep(&self, key: Key, words: &[u32], doubtful: Doubtful) {
        let mask = Kept { mask: self.share(words), doubtful };
        let mut shard = lock(self.shard(&key));
        if shard.young.len() >= limits::MASK_KEYS / SHARDS / 2 {
            shard.age();
        }
        shard.young.insert(key, mask);
    }

    /// A mask of some words, shared with a cached one. There are several times as many states as masks.
    fn share(&self, words: &[u32]) -> Mask {
        let hash = xxh3_64(bytemuck::cast_slice(words));
        let most = limits::MASK_BYTES / (4 * self.words.max(1));
        let mut contents = lock(&self.contents);
        if let Some(known) = contents.masks.get(&hash).and_then(Weak::upgrade)
            && *known == *words
        {
            return known;
        }
        contents.made += 1;
        if contents.made > most / 3 {
            contents.made = 0;
            for shard in &self.shards {
                lock(shard).age();
            }
            contents.masks.retain(|_, mask| mask.strong_count() > 0);
        }
        if contents.masks.len() >= most {
            contents.masks.retain(|_, mask| mask.strong_count() > 0);
            // So many masks are in use that no generation forgets enough.
            if contents.masks.len() >= most {
                for shard in &self.shards {
                    *lock(shard) = Shard::default();
                }
                contents.masks.clear();
            }
        }
        let mask: Mask = words.into();
        contents.masks.insert(hash, Arc::downgrade(&mask));
        mask
    }

    /// Let open tokens be those of a cached mask that has equal ones.
    fn share_open(&self, mut open: Open) -> Open {
        let hash = FxBuildHasher.hash_one(open.tokens.ids());
        let mut known = lock(&self.open);
        known.retain(|_, tokens| tokens.strong_count() > 0);
        match known.get(&hash).and_then(Weak::upgrade).filter(|tokens| tokens.ids() == open.tokens.ids()) {
            Some(tokens) => open.tokens = tokens,
            None => drop(known.insert(hash, Arc::downgrade(&open.tokens))),
        }
        open
    }

    /// Write the key of an unconstrained state to `own.key`.
    fn find_key(&self, engine: &mut Engine, own: &mut OwnMasks, branches: &[Branch]) {
        let OwnMasks { forms, key, .. } = own;
        forms.truncate(engine.take_kept());
        if !branches.iter().all(|branch| forms.knows(self.id, branch.set)) {
            forms.learn(engine, self.id, &mut lock(&self.forms), branches.iter().map(|branch| branch.set));
        }
        write_unconstrained_key(key, engine, forms, branches);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_languages::{compile, sums};

    fn cache(tokens: usize) -> MaskCache {
        let tokens: Vec<Option<Vec<u8>>> = (0..tokens).map(|_| Some(b"a".to_vec())).collect();
        let vocabulary = Vocabulary::new(&tokens, &[]).expect("a vocabulary");
        MaskCache::new(Spanner::build(&compile(&sums()), &vocabulary, 1), &vocabulary, false, 0.0)
    }

    fn key(number: usize) -> Key {
        Box::new([0, u32::try_from(number).expect("few keys")])
    }

    #[test]
    fn the_cache_keeps_recently_used_masks() {
        let cache = cache(40);
        let mask = |number: usize| [u32::try_from(number % 100).expect("few masks"), 1];
        let mut words = [0; 2];
        let keys = 3 * limits::MASK_KEYS;
        for number in 0..keys {
            cache.keep(key(number), &mask(number), None);
            if number % 500 == 0 {
                assert!(cache.find(&key(0), &mut words).is_some(), "it was asked for {number} keys ago at most");
                assert_eq!(words, mask(0));
            }
        }
        let statistics = cache.statistics();
        assert!(statistics.masks <= limits::MASK_KEYS, "{statistics:?}");
        assert!(statistics.masks >= limits::MASK_KEYS / 4, "{statistics:?}");
        assert_eq!(statistics.distinct, 100, "equal masks are kept once");
        for number in keys - 1_000..keys {
            assert!(cache.find(&key(number), &mut words).is_some(), "the last ones are kept");
            assert_eq!(words, mask(number));
        }
        assert!(cache.find(&key(1), &mut words).is_none(), "what was not asked for again is forgotten");
        cache.clear();
        assert_eq!(cache.statistics().masks, 0);
        assert!(cache.find(&key(keys - 1), &mut words).is_none());
    }

    #[test]
    fn the_cache_keeps_within_its_bytes() {
        let tokens = 1 << 16;
        let cache = cache(tokens);
        let count = 2 * limits::MASK_BYTES / (tokens / 8);
        for number in 0..count {
            let mut words = vec![0; tokens / 32];
            words[0] = u32::try_from(number).expect("few masks");
            cache.keep(key(number), &words, None);
            assert!(cache.statistics().bytes <= limits::MASK_BYTES + 64 * count, "after {number}");
        }
        let mut words = vec![0; tokens / 32];
        assert!(cache.find(&key(count - 1), &mut words).is_some() && cache.find(&key(0), &mut words).is_none());
    }
}
