//! Parts of walks over the token table, shared by all sessions.
//!
//! A mask depends on the whole parse stack, but most of a walk reads a small part of it: the expression in progress,
//! not the statements and blocks around it. A part of a walk begins after the first lexemes of tokens and ends at
//! exits: the ends of lines, and what the walk asks the engine itself. On an unconstrained stack, what a part adds to
//! the mask depends only on the answers of the sets that it asks. So it is kept under these answers, and serves every
//! stack whose sets answer alike. The walk goes on at the exits as ever.
//!
//! Questions and answers form a decision tree: a node says what to ask next. Answers name sets by the order in which
//! they are met, and are compared whole.

use crate::chart::left::NO_SET;
use crate::chart::questions::Question;
use crate::engine::parser::Parser;
use crate::ids::{AcceptId, SetId, SpanId, SymbolId, TokenId};
use crate::limits;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Edges of a node up to which no part begins at it: walking them costs as much as finding the part.
pub(super) const FEW_EDGES: usize = if cfg!(test) { 0 } else { 2 };

/// Edges of a node from which on parts begin after it. Stacks are alike in what follows one of many lexemes.
pub(super) const MANY_EDGES: usize = if cfg!(test) { 2 } else { 8 };

/// Tokens that a part of a walk adds to a mask, and its exits.
#[derive(Debug, Default)]
pub(crate) struct Part {
    /// Words of the mask that gain tokens: index and bits.
    pub(crate) words: Box<[(u32, u32)]>,
    /// Tokens to be tried byte by byte.
    pub(crate) rest: Box<[TokenId]>,
    /// Edges at which the part ends, in the order of the walk.
    pub(crate) exits: Box<[Exit]>,
}

/// An edge at which a part ends.
#[derive(Debug)]
pub(crate) struct Exit {
    /// Accept sets read before it.
    pub(crate) path: Box<[AcceptId]>,
    /// Index of the edge in the table.
    pub(crate) edge: usize,
}

/// A part of a walk in progress, that is to be kept.
pub(super) struct Record {
    /// Tokens that the part adds, as a packed mask.
    pub(super) words: Vec<u32>,
    pub(super) rest: Vec<TokenId>,
    pub(super) exits: Vec<Exit>,
    /// Accept sets read since the part began.
    pub(super) path: Vec<AcceptId>,
    /// False if the part depends on more than the sets that it asks.
    pub(super) is_pure: bool,
}

impl Part {
    fn bytes(&self) -> usize {
        let exits = self.exits.iter().map(|exit| 32 + 2 * exit.path.len()).sum::<usize>();
        64 + 8 * self.words.len() + 4 * self.rest.len() + exits
    }
}

/// Place where a part begins, its stack left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Start {
    /// The node of the token table.
    pub(crate) node: SpanId,
    /// Open brackets.
    pub(crate) depth: u32,
    /// Brackets that must stay open.
    pub(crate) least: u32,
}

/// Question to a set that has been met, by its number. Without a symbol, all its items are asked for.
type Ask = (usize, Option<SymbolId>);

/// The first question.
const WHOLE: Ask = (0, None);

/// Bytes of an answer besides its words, roughly.
const NODE_BYTES: usize = 96;

/// Node of a decision tree.
#[derive(Debug)]
enum Place {
    Open,
    Known(Arc<Part>),
    Ask(Ask, Answers),
}

/// Knowledge of a part.
#[derive(Debug)]
pub(crate) enum Found {
    /// The part.
    Part(Arc<Part>),
    /// The first set was met before, but another one answers otherwise: the part is worth being kept.
    Beginning,
    /// Nothing. Most stacks that are met once are not met again.
    Nothing,
}

/// Answers to one question, and what to ask after each. Most questions have few.
#[derive(Debug)]
enum Answers {
    Few(Vec<(Box<[u32]>, Place)>),
    Many(FxHashMap<Box<[u32]>, Place>),
}

/// Answers that are looked through one by one.
const FEW: usize = 6;

impl Answers {
    fn get_mut(&mut self, words: &[u32]) -> Option<&mut Place> {
        match self {
            Self::Few(all) => all.iter_mut().find(|(own, _)| **own == *words).map(|(_, place)| place),
            Self::Many(all) => all.get_mut(words),
        }
    }

    /// Return the place after an answer, and whether it is new.
    fn get_or_insert(&mut self, words: &[u32]) -> (&mut Place, bool) {
        if let Self::Few(all) = self
            && all.len() == FEW
        {
            *self = Self::Many(std::mem::take(all).into_iter().collect());
        }
        match self {
            Self::Few(all) => match all.iter().position(|(own, _)| **own == *words) {
                Some(at) => (&mut all[at].1, false),
                None => {
                    all.push((words.into(), Place::Open));
                    (&mut all.last_mut().expect("it was pushed").1, true)
                }
            },
            Self::Many(all) => {
                let fresh = !all.contains_key(words);
                if fresh {
                    all.insert(words.into(), Place::Open);
                }
                (all.get_mut(words).expect("it is there"), fresh)
            }
        }
    }
}

#[derive(Debug, Default)]
struct Shard {
    starts: FxHashMap<Start, Place>,
    bytes: usize,
}

const SHARDS: usize = 16;

/// The number of no set, in an answer.
const NO_NUMBER: u32 = u32::MAX;

/// Parts of walks of one language and vocabulary.
#[derive(Debug)]
pub(crate) struct Parts {
    shards: Vec<Mutex<Shard>>,
    /// Parts that were looked for, and those that were found.
    looked_for: AtomicU64,
    found: AtomicU64,
}

impl Default for Parts {
    fn default() -> Self {
        let shards = (0..SHARDS).map(|_| Mutex::default()).collect();
        Self { shards, looked_for: AtomicU64::new(0), found: AtomicU64::new(0) }
    }
}

/// Parts looked for before it is known whether that pays, and how many in a hundred have to be found. In languages with
/// many kinds of statements and expressions, as JavaScript, looking costs more than it saves.
const TRIAL: u64 = 8_000;
const PAYING: u64 = 65;

/// Sets in the order in which they are met, and the words of the last answer.
#[derive(Debug, Default)]
pub(crate) struct Met {
    sets: Vec<SetId>,
    found: Vec<(u32, SetId)>,
    words: Vec<u32>,
}

impl Met {
    fn begin(&mut self, set: SetId) {
        self.sets.clear();
        self.sets.push(set);
    }

    fn number(&self, set: SetId) -> Option<usize> {
        self.sets.iter().position(|&met| met == set)
    }

    /// Write the answer to a question to `words`.
    fn ask(&mut self, parser: &mut Parser, (number, symbol): Ask) {
        let set = self.sets[number];
        let mut found = std::mem::take(&mut self.found);
        found.clear();
        match symbol {
            Some(symbol) => parser.answer((set, symbol), &mut found),
            None => parser.contents(set, &mut found),
        }
        self.words.clear();
        let mut last = (NO_SET, NO_NUMBER);
        for &(word, set) in &found {
            if set != last.0 {
                last = (set, if set == NO_SET { NO_NUMBER } else { self.number_of(set) });
            }
            self.words.extend([word, last.1]);
        }
        self.found = found;
    }

    /// The number of a set, a new one if it is met for the first time.
    fn number_of(&mut self, set: SetId) -> u32 {
        let number = self.number(set).unwrap_or_else(|| {
            self.sets.push(set);
            self.sets.len() - 1
        });
        u32::try_from(number).expect("few sets are met")
    }
}

fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Parts {
    /// The shard of a start, with room for more. A full one forgets all.
    fn shard(&self, start: Start) -> MutexGuard<'_, Shard> {
        let mut shard = lock(&self.shards[start.node.index() % SHARDS]);
        if shard.bytes > limits::PART_BYTES / SHARDS {
            *shard = Shard::default();
        }
        shard
    }

    /// Return whether looking for parts saves more than it costs, as far as is known.
    pub(crate) fn pay(&self) -> bool {
        let looked_for = self.looked_for.load(Ordering::Relaxed);
        looked_for < TRIAL || 100 * self.found.load(Ordering::Relaxed) >= PAYING * looked_for
    }

    /// The number of parts that were found.
    #[cfg(test)]
    pub(crate) fn found(&self) -> u64 {
        self.found.load(Ordering::Relaxed)
    }

    /// Look for the part that begins at a set, to which all sets answer alike. `met` is room for answers.
    pub(crate) fn find(&self, parser: &mut Parser, met: &mut Met, start: Start, set: SetId) -> Found {
        self.looked_for.fetch_add(1, Ordering::Relaxed);
        let mut shard = self.shard(start);
        let Shard { starts, bytes } = &mut *shard;
        let first = starts.entry(start).or_insert_with(|| Place::Ask(WHOLE, Answers::Few(Vec::new())));
        met.begin(set);
        met.ask(parser, WHOLE);
        let Place::Ask(_, answers) = first else { return Found::Nothing };
        let (mut at, is_new) = answers.get_or_insert(&met.words);
        if is_new {
            *bytes += 4 * met.words.len() + NODE_BYTES;
            return Found::Nothing;
        }
        loop {
            match at {
                Place::Open => return Found::Beginning,
                Place::Known(part) => {
                    self.found.fetch_add(1, Ordering::Relaxed);
                    return Found::Part(part.clone());
                }
                Place::Ask(ask, answers) => {
                    met.ask(parser, *ask);
                    match answers.get_mut(&met.words) {
                        Some(after) => at = after,
                        None => return Found::Beginning,
                    }
                }
            }
        }
    }

    /// Keep the part that begins at a set and asked some questions.
    pub(crate) fn keep(
        &self,
        parser: &mut Parser,
        met: &mut Met,
        (start, set): (Start, SetId),
        asked: &[Question],
        part: Part,
    ) {
        let Some(questions) = distinct(parser, asked) else { return };
        let mut questions = questions.into_iter();
        let mut shard = self.shard(start);
        let Shard { starts, bytes } = &mut *shard;
        let mut at = starts.entry(start).or_insert_with(|| Place::Ask(WHOLE, Answers::Few(Vec::new())));
        met.begin(set);
        let mut done: Vec<Ask> = Vec::new();
        loop {
            if matches!(at, Place::Open) {
                // The first set is asked for all. One that no answer names was made by the part itself: its items follow
                // from the answers.
                let named = questions.by_ref().filter_map(|(of, symbol)| Some((met.number(of)?, Some(symbol))));
                match named.filter(|ask| ask.0 != 0).find(|ask| !done.contains(ask)) {
                    Some(_) if done.len() >= limits::PART_QUESTIONS => return,
                    Some(ask) => *at = Place::Ask(ask, Answers::Few(Vec::new())),
                    None => {
                        *bytes += part.bytes();
                        *at = Place::Known(Arc::new(part));
                        return;
                    }
                }
            }
            let Place::Ask(ask, answers) = at else { return };
            done.push(*ask);
            met.ask(parser, *ask);
            let (after, is_new) = answers.get_or_insert(&met.words);
            if is_new {
                *bytes += 4 * met.words.len() + NODE_BYTES;
            }
            at = after;
        }
    }

    /// Forget all parts.
    pub(crate) fn clear(&self) {
        self.looked_for.store(0, Ordering::Relaxed);
        self.found.store(0, Ordering::Relaxed);
        for shard in &self.shards {
            *lock(shard) = Shard::default();
        }
    }

    /// Bytes of the parts.
    pub(crate) fn bytes(&self) -> usize {
        self.shards.iter().map(|shard| lock(shard).bytes).sum()
    }
}

/// The questions, each once, with those that Leo items answered; `None` if there are too many.
fn distinct(parser: &mut Parser, asked: &[Question]) -> Option<Vec<Question>> {
    let mut seen: FxHashSet<Question> = FxHashSet::default();
    let mut found = Vec::new();
    for &question in asked {
        let mut next = Some(question);
        while let Some(question) = next.filter(|&question| seen.insert(question)) {
            if found.len() >= limits::PART_READS {
                return None;
            }
            found.push(question);
            next = parser.follows(question);
        }
    }
    Some(found)
}

/// Return the words of a packed mask that are not 0, with their indexes, and set them to 0.
pub(super) fn take_words(mask: &mut [u32]) -> Box<[(u32, u32)]> {
    let mut found = Vec::new();
    let mut index = 0u32;
    for chunk in mask.chunks_mut(8) {
        if chunk.iter().fold(0, |all, word| all | word) != 0 {
            found.extend((index..).zip(chunk.iter().copied()).filter(|&(_, bits)| bits != 0));
            chunk.fill(0);
        }
        index += 8;
    }
    found.into()
}
