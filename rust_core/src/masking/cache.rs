//! Masks of one language and vocabulary, shared by all sessions: the token spanner table, and what was computed before.
//!
//! Where a parse stack is loose (see `follow`), a mask depends on its *shape* alone: the items of its sets, origins taken as
//! shapes themselves, with the lexer's configuration, the bracket depth and the open blocks. Shapes are interned across
//! sessions and keys compared whole, so equal keys are equal states. Other stacks have masks of their own session.

use crate::chart::left::FIRST_SET;
use crate::engine::stepping::{Branch, Engine, Mode};
use crate::ids::SetId;
use crate::language::compiled::Language;
use crate::language::shape::ShapeId;
use crate::limits;
use crate::masking::plain::mask_words;
use crate::masking::table::file::Spanner;
use crate::masking::vocabulary::Vocabulary;
use crate::masking::walk::{self, Rest};
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::hash::BuildHasher;
use std::num::NonZero;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Instant;
use xxhash_rust::xxh3::xxh3_64;

/// A packed mask, the end tokens left out.
pub(crate) type Mask = Arc<[u32]>;

/// What tells states apart whose masks may differ.
pub(crate) type Key = Box<[u32]>;

const SHARDS: usize = 16;

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// Everything that is shared.
#[derive(Debug)]
pub struct Masks {
    /// The table.
    pub spanner: Spanner,
    /// Whether the table came from a file.
    pub cached: bool,
    /// Seconds that it took to have it.
    pub seconds: f64,
    /// Tells these from other masks; never 0.
    id: u64,
    words: usize,
    shapes: Mutex<Shapes>,
    shards: Vec<Mutex<Shard>>,
    contents: Mutex<Contents>,
    /// How often the masks were cleared.
    cleared: AtomicU64,
    hits: AtomicU64,
    misses: AtomicU64,
}

/// Interned shapes of sets. Their numbers hold for one generation.
#[derive(Debug, Default)]
struct Shapes {
    ids: FxHashMap<Box<[u32]>, u32>,
    generation: u32,
}

/// The shapes of a session's sets, as far as they were asked for.
#[derive(Debug, Default)]
pub(crate) struct ShapeMemo {
    of: u64,
    generation: u32,
    shapes: Vec<u32>,
}

const UNKNOWN: u32 = u32::MAX;

/// Masks in two generations: those of the older that are asked for again move to the younger, the rest is forgotten when
/// the younger is full.
#[derive(Debug, Default)]
struct Shard {
    young: FxHashMap<Key, Mask>,
    old: FxHashMap<Key, Mask>,
}

impl Shard {
    /// Makes room: what was not asked for since the last time is forgotten.
    fn age(&mut self) {
        self.old = std::mem::take(&mut self.young);
    }
}

/// The masks that are kept, by the hash of their words, and how many were made since the shards last aged.
#[derive(Debug, Default)]
struct Contents {
    masks: FxHashMap<u64, Weak<[u32]>>,
    made: usize,
}

/// What the caches did and hold.
#[derive(Debug, Clone, Copy, Default)]
pub struct Statistics {
    /// Masks that are kept for all sessions.
    pub masks: usize,
    /// Masks that are kept, equal ones counted once.
    pub distinct: usize,
    /// Masks that were found.
    pub hits: u64,
    /// Masks that were computed.
    pub misses: u64,
    /// Bytes of the masks that are kept.
    pub bytes: usize,
    /// Bytes of the table.
    pub table: usize,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Masks {
    /// Nothing but a table.
    #[must_use]
    pub fn new(spanner: Spanner, vocabulary: &Vocabulary, cached: bool, seconds: f64) -> Self {
        Self {
            spanner,
            cached,
            seconds,
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            words: mask_words(vocabulary.len()),
            shapes: Mutex::default(),
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            contents: Mutex::default(),
            cleared: AtomicU64::new(0),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
        }
    }

    /// Fills a packed mask with the tokens that may follow some branches of one session; the end tokens are left out.
    pub fn fill(
        &self,
        engine: &mut Engine,
        vocabulary: &Vocabulary,
        branches: &[Branch],
        at: ShapeId,
        words: &mut [u32],
    ) {
        let mut key = engine.take_key();
        let loose = engine.is_loose();
        if loose {
            self.key(engine, branches, &mut key);
            if self.find(&key, words) {
                self.hits.fetch_add(1, Ordering::Relaxed);
                engine.put_key(key);
                return;
            }
        }
        let own = own_key(vocabulary, branches, at);
        let own_masks = engine.own_masks((self.id, self.cleared.load(Ordering::Relaxed)));
        if let Some(mask) = own_masks.get(&own) {
            self.hits.fetch_add(1, Ordering::Relaxed);
            words.copy_from_slice(mask);
            engine.put_key(key);
            return;
        }
        self.misses.fetch_add(1, Ordering::Relaxed);
        engine.asked_right = false;
        self.compute(engine, vocabulary, branches, at, words);
        if loose && !engine.asked_right {
            self.keep(key.as_slice().into(), words);
        } else {
            let kept = engine.own_masks((self.id, self.cleared.load(Ordering::Relaxed)));
            if kept.len() * 4 * self.words >= limits::OWN_MASK_BYTES {
                kept.clear();
            }
            kept.insert(own, (&*words).into());
        }
        engine.put_key(key);
    }

    /// The same without looking at what is known.
    fn compute(
        &self,
        engine: &mut Engine,
        vocabulary: &Vocabulary,
        branches: &[Branch],
        at: ShapeId,
        words: &mut [u32],
    ) {
        words.fill(0);
        let mark = engine.mark();
        let full = engine.is_full();
        let mut rest = Rest::default();
        if let Some(index) = engine.shape_index(vocabulary, at) {
            // A token is viable where it leads to, so each place of the shape has a walk of its own.
            let mut own = vec![0; words.len()];
            for (to, tokens) in index.iter() {
                own.fill(0);
                engine.set_shape(*to);
                for branch in branches {
                    walk::add_tokens(engine, &self.spanner, branch, &mut own, &mut rest);
                }
                for ((word, own), tokens) in words.iter_mut().zip(&own).zip(tokens) {
                    *word |= own & tokens;
                }
            }
            engine.set_shape(at);
        } else {
            for branch in branches {
                walk::add_tokens(engine, &self.spanner, branch, words, &mut rest);
            }
        }
        rest.branches.sort_unstable();
        rest.branches.dedup();
        for branch in std::mem::take(&mut rest.branches) {
            walk::add_by_trie(engine, vocabulary, &branch, at, words);
        }
        if !rest.tokens.is_empty() {
            rest.tokens.sort_unstable();
            rest.tokens.dedup();
            walk::add_one_by_one(engine, vocabulary, branches, at, &rest, words);
        }
        engine.set_shape(at);
        if full {
            engine.truncate(mark);
        }
    }

    /// Forgets all masks, those that sessions keep for themselves included.
    pub fn clear(&self) {
        for shard in &self.shards {
            *lock(shard) = Shard::default();
        }
        *lock(&self.contents) = Contents::default();
        self.cleared.fetch_add(1, Ordering::Relaxed);
        self.hits.store(0, Ordering::Relaxed);
        self.misses.store(0, Ordering::Relaxed);
    }

    /// What the caches did and hold.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        let mut found = Statistics {
            hits: self.hits.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
            table: self.spanner.bytes(),
            ..Statistics::default()
        };
        let mut distinct = rustc_hash::FxHashSet::default();
        for shard in &self.shards {
            let shard = lock(shard);
            found.masks += shard.young.len() + shard.old.len();
            for (key, mask) in shard.young.iter().chain(&shard.old) {
                found.bytes += 4 * key.len();
                if distinct.insert(mask.as_ptr()) {
                    found.bytes += 4 * mask.len();
                }
            }
        }
        found.distinct = distinct.len();
        found
    }

    fn shard(&self, key: &[u32]) -> &Mutex<Shard> {
        // The low bits choose the place in the shard's own map.
        &self.shards[(FxBuildHasher.hash_one(key) >> 40) as usize % SHARDS]
    }

    /// Copies the mask of a key, if it is known.
    fn find(&self, key: &[u32], words: &mut [u32]) -> bool {
        let mut shard = lock(self.shard(key));
        if let Some(mask) = shard.young.get(key) {
            words.copy_from_slice(mask);
            return true;
        }
        let Some((key, mask)) = shard.old.remove_entry(key) else { return false };
        words.copy_from_slice(&mask);
        shard.young.insert(key, mask);
        true
    }

    fn keep(&self, key: Key, words: &[u32]) {
        let mask = self.share(words);
        let mut shard = lock(self.shard(&key));
        if shard.young.len() >= limits::MASK_KEYS / SHARDS / 2 {
            shard.age();
        }
        shard.young.insert(key, mask);
    }

    /// A mask of some words: one that is kept already, if there is one. States with equal masks are several times as many as
    /// masks.
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
            // So many are asked for again and again that no generation forgets enough.
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

    /// The key of a loose state.
    fn key(&self, engine: &mut Engine, branches: &[Branch], key: &mut Vec<u32>) {
        key.clear();
        let mut memo = engine.take_shapes();
        if !branches.iter().all(|branch| memo.knows(self, branch.set)) {
            let mut shapes = lock(&self.shapes);
            if shapes.ids.len() > limits::SHAPES {
                shapes.ids = FxHashMap::default();
                shapes.generation += 1;
            }
            memo.renew(self, shapes.generation);
            for branch in branches {
                memo.shape(engine, &mut shapes, branch.set);
            }
        }
        key.push(memo.generation);
        for branch in branches {
            key.extend([memo.shapes[branch.set.index()], branch.state.0, branch.depth]);
            let guards = engine.guard_states(branch.guards);
            key.push(u32::try_from(guards.len()).expect("few guards"));
            key.extend(guards.iter().map(|state| state.0));
            match branch.mode {
                Mode::Middle => key.push(0),
                Mode::Line { column, kept } => {
                    key.extend([if kept.is_some() { 2 } else { 1 }, column.wide, column.narrow]);
                    key.extend(kept.into_iter().flat_map(|kept| [kept.wide, kept.narrow]));
                }
            }
            // The count comes first, so that no two lists of branches have the same words.
            key.push(engine.blocks(branch.indentation));
            engine.for_each_block(branch.indentation, |column| key.extend([column.wide, column.narrow]));
        }
        engine.put_shapes(memo);
    }
}

/// The key of a state that is not loose, in its own session.
fn own_key(vocabulary: &Vocabulary, branches: &[Branch], at: ShapeId) -> Key {
    let print = vocabulary.fingerprint();
    let mut key = Vec::with_capacity(16);
    key.extend([
        at.0,
        (print & 0xffff_ffff) as u32,
        (print >> 32 & 0xffff_ffff) as u32,
        (print >> 64 & 0xffff_ffff) as u32,
    ]);
    for branch in branches {
        key.extend([branch.set.0, branch.state.0, branch.guards.0, branch.depth, branch.indentation.0]);
        match branch.mode {
            Mode::Middle => key.push(0),
            Mode::Line { column, kept } => {
                key.extend([if kept.is_some() { 2 } else { 1 }, column.wide, column.narrow]);
                key.extend(kept.into_iter().flat_map(|kept| [kept.wide, kept.narrow]));
            }
        }
    }
    key.into()
}

impl ShapeMemo {
    fn knows(&self, masks: &Masks, set: SetId) -> bool {
        self.of == masks.id && self.shapes.get(set.index()).is_some_and(|&shape| shape != UNKNOWN)
    }

    /// Forgets shapes of other masks or of an earlier generation.
    fn renew(&mut self, masks: &Masks, generation: u32) {
        if self.of != masks.id || self.generation != generation {
            *self = Self { of: masks.id, generation, shapes: vec![0] };
        }
    }

    /// Forgets sets past a size of the chart.
    pub(crate) fn truncate(&mut self, sets: usize) {
        self.shapes.truncate(sets);
    }

    /// The shape of a set; origins are older than what refers to them, so the ones that are missing are found first.
    fn shape(&mut self, engine: &Engine, shapes: &mut Shapes, set: SetId) -> u32 {
        debug_assert_eq!(self.shapes[FIRST_SET.index()], 0, "the first set is a shape of its own");
        if self.shapes.len() <= set.index() {
            self.shapes.resize(set.index() + 1, UNKNOWN);
        }
        let mut stack = vec![set];
        while let Some(&at) = stack.last() {
            if self.shapes[at.index()] != UNKNOWN {
                stack.pop();
                continue;
            }
            let before = stack.len();
            let source = engine.left_set(at);
            stack.extend(source.items.iter().map(|item| item.origin).filter(|at| self.shapes[at.index()] == UNKNOWN));
            if stack.len() > before {
                continue;
            }
            let mut key = Vec::with_capacity(2 * source.items.len() + 1);
            key.push(u32::from(source.accepts));
            key.extend(source.items.iter().flat_map(|item| [item.dot.0, self.shapes[item.origin.index()]]));
            // Set ids order the items of a session; shapes shall not depend on them.
            sort_pairs(&mut key[1..]);
            let fresh = u32::try_from(shapes.ids.len() + 1).expect("shape count fits u32");
            self.shapes[at.index()] = *shapes.ids.entry(key.into()).or_insert(fresh);
        }
        self.shapes[set.index()]
    }
}

fn sort_pairs(words: &mut [u32]) {
    let mut pairs: Vec<[u32; 2]> = words.chunks_exact(2).map(|pair| [pair[0], pair[1]]).collect();
    pairs.sort_unstable();
    for (place, pair) in words.chunks_exact_mut(2).zip(pairs) {
        place.copy_from_slice(&pair);
    }
}

/// A vocabulary with the masks of each language that it is used for.
#[derive(Debug)]
pub struct Tables {
    /// The vocabulary.
    pub vocabulary: Vocabulary,
    folder: Option<PathBuf>,
    masks: Mutex<FxHashMap<u128, Slot>>,
}

/// Masks that are there once they have been asked for.
type Slot = Arc<OnceLock<Arc<Masks>>>;

impl Tables {
    /// No tables yet. A folder keeps what is built for the next run.
    #[must_use]
    pub fn new(vocabulary: Vocabulary, folder: Option<PathBuf>) -> Self {
        Self { vocabulary, folder, masks: Mutex::default() }
    }

    /// The masks of a language. Its table is loaded, or built, when it is first asked for.
    #[must_use]
    pub fn masks(&self, language: &Language) -> Arc<Masks> {
        let slot = lock(&self.masks).entry(language.fingerprint).or_default().clone();
        slot.get_or_init(|| Arc::new(self.prepare(language))).clone()
    }

    fn prepare(&self, language: &Language) -> Masks {
        let clock = Instant::now();
        let name = format!("{:032x}-{:032x}.spanner", language.fingerprint, self.vocabulary.fingerprint());
        let path = self.folder.as_ref().map(|folder| folder.join(name));
        if let Some(path) = &path
            && let Ok(spanner) = Spanner::load(path, language, &self.vocabulary)
        {
            return Masks::new(spanner, &self.vocabulary, true, clock.elapsed().as_secs_f64());
        }
        let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
        let spanner = Spanner::build(language, &self.vocabulary, threads);
        if let Some(path) = &path {
            // Without the file the table is only built again next time.
            let _ = path.parent().map(std::fs::create_dir_all);
            let _ = spanner.save(path);
        }
        Masks::new(spanner, &self.vocabulary, false, clock.elapsed().as_secs_f64())
    }
}
