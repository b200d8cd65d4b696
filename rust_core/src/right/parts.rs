//! Free part of the sets of R's chart: items of rules that began in the middle, with the least bytes of their part
//! before the cursor, and items of *lists*.
//!
//! The results of such items do not depend on their place in R: completing one goes on in the middle, which is the same
//! from everywhere. So the free part of a set follows from its incoming chunks alone. Chunks and parts are interned,
//! and operations on them are memoised, so a text of many equal symbols computes each part once. There are hundreds of
//! free items wherever the cursor may be in an expression that R continues.
//!
//! A list begins at a node with a nonterminal that stands first in no rule but its own, and only free items wait for
//! it. All lists for which the same items wait go on alike. Right of a cursor in `{`, a list of parameters may begin at
//! every comma of `a: b, a: b, …`; they are one.
//!
//! Costs are stored apart: a chunk or part counts from the least of its own costs, and is held with an offset. Some
//! readings cost more with every symbol (each colon above may end one more `lambda`). They are split from the others
//! where they are far apart, since all operations distribute over (min, +).

use crate::bits::{self, unite, words_for};
use crate::grammar::compiled::Grammar;
use crate::grammar::rules::END_OF_RULE;
use crate::ids::{ChunkId, DotId, FreeId, LinkId, LoneId, PartId, SourceId, SymbolId};
use crate::language::compiled::Language;
use crate::language::free::{Cost, INFINITE};
use crate::language::prediction::Chain;
use crate::limits;
use crate::right::least::{FreeItem, Least, Pending};
use crate::right::links::LoneDots;
use crate::right::origins::At;
use crate::right::places::Stands;
use crate::right::places::{Begun, ItemFilter};
use rustc_hash::FxHashMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Incoming chunks of one set.
type Chunks = Box<[At<ChunkId>]>;

/// A part, a symbol, a filter of its items, and the bytes of a text that rules in the middle have bound.
type MoveKey = (PartId, SymbolId, ItemFilter, Option<Cost>);

/// Distance of costs from which they are split. Unit: bytes of middle.
pub(super) const APART: Cost = 64;

/// Costs above the least that are told apart without sorting them. Unit: bytes of middle.
const LOW: usize = 1024;

/// Chunk of a free part, normalised to a least cost of 0: moved dots, and nonterminals that end there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Chunk {
    items: Vec<FreeItem>,
    ended: Vec<(SymbolId, SourceId, Cost)>,
}

/// A free part, the least cost being 0. Its items and completed nonterminals say all; the bitsets follow from the items.
#[derive(Debug)]
pub(super) struct Part {
    /// Items with something left to read, by the symbol after the dot.
    items: Box<[FreeItem]>,
    /// Completed nonterminals that began in a list or in the middle, sorted by nonterminal.
    pub(super) completed: Box<[(SymbolId, SourceId, Cost)]>,
    /// Bitset of the nonterminals that the items predict.
    pub(super) predicts: Box<[u64]>,
    /// Bitset of the nonterminals that the items wait for.
    waits: Box<[u64]>,
    /// Bitset of the nonterminals that items of lists wait for.
    waits_in_list: Box<[u64]>,
}

impl PartialEq for Part {
    fn eq(&self, other: &Self) -> bool {
        self.items == other.items && self.completed == other.completed
    }
}

impl Eq for Part {}

impl Hash for Part {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.items, &self.completed).hash(state);
    }
}

impl Part {
    /// The items that have a symbol next.
    pub(super) fn waiting(&self, grammar: &Grammar, symbol: SymbolId) -> &[FreeItem] {
        let begin = self.items.partition_point(|item| grammar.next(item.0) < symbol);
        let length = self.items[begin..].partition_point(|item| grammar.next(item.0) == symbol);
        &self.items[begin..begin + length]
    }

    /// Return whether an item waits for a nonterminal.
    pub(super) fn waits_for(&self, grammar: &Grammar, nonterminal: SymbolId) -> bool {
        bits::contains(&self.waits, grammar.nonterminal_index(nonterminal))
    }

    /// Return whether an item waits for one of some nonterminals.
    pub(super) fn waits_for_one(&self, nonterminals: &[u64]) -> bool {
        bits::meet(nonterminals, &self.waits)
    }

    /// Return whether an item of a list waits for one of some nonterminals.
    pub(super) fn waits_in_list(&self, nonterminals: &[u64]) -> bool {
        bits::meet(nonterminals, &self.waits_in_list)
    }

    /// Add the nonterminals that items of lists wait for.
    pub(super) fn add_waits_in_list(&self, found: &mut [u64]) {
        unite(found, &self.waits_in_list);
    }

    /// Return whether the part has items.
    pub(super) fn has_items(&self) -> bool {
        !self.items.is_empty()
    }
}

/// Items that wait for a list where it begins, normalised to a least cost of 0.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct List {
    nonterminal: SymbolId,
    items: Box<[FreeItem]>,
    begun: Begun,
}

/// Restriction of a set's items by its place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Kind {
    /// True inside a string of another mode: only items that can be there are kept of those that began in the middle.
    pub(super) nested: bool,
    /// Any number of blocks of the middle may close here.
    pub(super) loops: bool,
}

/// Items that began in the middle, as far as they depend on the place at which R begins: equal keys give equal items.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct SeedKey {
    /// The restriction of the items.
    pub(super) stands: Stands,
    /// The free states from which the place is reached, with costs.
    pub(super) reached_from: Box<[(FreeId, Cost)]>,
    /// The price of the end of a block whose first line the cursor cuts.
    pub(super) refunded: Cost,
}

/// Free parts and chunks, and the results of operations on them. They follow from the language alone.
#[derive(Debug, Default)]
struct Store {
    parts: Vec<Arc<Part>>,
    part_ids: FxHashMap<Arc<Part>, PartId>,
    chunks: Vec<Arc<Chunk>>,
    chunk_ids: FxHashMap<Arc<Chunk>, ChunkId>,
    lists: Vec<Arc<List>>,
    list_ids: FxHashMap<Arc<List>, SourceId>,
    closed: FxHashMap<(Chunks, Kind), Box<[At<PartId>]>>,
    moved: FxHashMap<MoveKey, Option<At<ChunkId>>>,
    seeds: FxHashMap<SeedKey, Option<At<ChunkId>>>,
    /// Items of all parts and chunks, and of the keys of all results.
    items: usize,
}

impl Store {
    /// Return what the queries need of it: parts and lists by number.
    fn numbered(&self) -> Self {
        Self { parts: self.parts.clone(), lists: self.lists.clone(), ..Self::default() }
    }

    fn is_small(&self) -> bool {
        self.items <= limits::SHARED_ITEMS && self.parts.len() + self.lists.len() <= limits::SHARED_PARTS
    }
}

/// All free parts of one R.
#[derive(Debug)]
pub(super) struct Parts {
    store: Box<Store>,
    /// Sources from here on are lists.
    free_count: usize,
    linked: FxHashMap<(PartId, LinkId), Option<At<ChunkId>>>,
    begun: FxHashMap<(PartId, LoneId, Begun), Option<At<ChunkId>>>,
    closing: Closing,
    /// The most by which reading, and completing after it, has raised costs in one set.
    most_moved: Cost,
    most_closed: Cost,
}

/// Scratch space of one closure.
#[derive(Debug, Default)]
struct Closing {
    pending: Pending,
    least: Least,
    ended: FxHashMap<(SymbolId, SourceId), Cost>,
}

impl Parts {
    pub(super) fn new(language: &Language) -> Self {
        Self {
            store: language.parts.take(),
            free_count: language.free.count(),
            linked: FxHashMap::default(),
            begun: FxHashMap::default(),
            closing: Closing::default(),
            most_moved: 0,
            most_closed: 0,
        }
    }

    /// Begin a set: the offset counts from here.
    pub(super) fn begin_set(&mut self) {
        (self.most_moved, self.most_closed) = (0, 0);
    }

    /// The most by which the parts of a set cost more than their sources.
    pub(super) fn most_added(&self) -> Cost {
        self.most_moved.saturating_add(self.most_closed)
    }

    /// Add a cost to the offset of a chunk.
    fn add(&mut self, known: Option<At<ChunkId>>, offset: Cost) -> Option<At<ChunkId>> {
        let (chunk, least) = known?;
        self.most_moved = self.most_moved.max(least);
        Some((chunk, least.saturating_add(offset)))
    }

    #[inline]
    pub(super) fn get(&self, id: PartId) -> &Part {
        &self.store.parts[id.index()]
    }

    /// The number of parts and lists.
    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.store.parts.len() + self.store.lists.len()
    }

    /// The free state that a rule began in, if it began in the middle.
    pub(super) fn free_state(&self, source: SourceId) -> Option<FreeId> {
        (source.index() < self.free_count).then(|| FreeId::from_index(source.index()))
    }

    fn list(&self, source: SourceId) -> Option<&Arc<List>> {
        source.index().checked_sub(self.free_count).map(|index| &self.store.lists[index])
    }

    /// The place where a rule began; `None` if that is in the middle.
    pub(super) fn begun_at(&self, source: SourceId) -> Option<Begun> {
        self.list(source).map(|list| list.begun)
    }

    /// Return whether a rule began with a list.
    pub(super) fn is_list(&self, source: SourceId) -> bool {
        self.list(source).is_some()
    }

    /// Intern items that began in the middle, which follow from a key.
    pub(super) fn seed_by(
        &mut self,
        key: SeedKey,
        items: impl FnOnce(&SeedKey) -> Vec<(DotId, FreeId, Cost)>,
    ) -> Option<At<ChunkId>> {
        if let Some(&known) = self.store.seeds.get(&key) {
            return known;
        }
        let chunk = self.seed(items(&key).into_iter());
        self.store.items += key.reached_from.len();
        self.store.seeds.insert(key, chunk);
        chunk
    }

    /// Intern items that began in the middle.
    pub(super) fn seed(&mut self, items: impl Iterator<Item = (DotId, FreeId, Cost)>) -> Option<At<ChunkId>> {
        let items = items.map(|(dot, from, cost)| (dot, SourceId::from(from), cost)).collect();
        self.chunk(Chunk { items, ended: Vec::new() })
    }

    /// Intern the end of a nonterminal that began in the middle.
    pub(super) fn end(&mut self, symbol: SymbolId, from: FreeId, cost: Cost) -> Option<At<ChunkId>> {
        self.chunk(Chunk { items: Vec::new(), ended: vec![(symbol, SourceId::from(from), cost)] })
    }

    fn chunk(&mut self, mut chunk: Chunk) -> Option<At<ChunkId>> {
        let costs = chunk.items.iter().map(|item| item.2).chain(chunk.ended.iter().map(|end| end.2));
        let least = costs.min()?;
        for item in &mut chunk.items {
            item.2 -= least;
        }
        for end in &mut chunk.ended {
            end.2 -= least;
        }
        chunk.items.sort_unstable();
        chunk.items.dedup();
        chunk.ended.sort_unstable();
        if let Some(&id) = self.store.chunk_ids.get(&chunk) {
            return Some((id, least));
        }
        let id = ChunkId::from_index(self.store.chunks.len());
        self.store.items += chunk.items.len() + chunk.ended.len();
        let chunk = Arc::new(chunk);
        self.store.chunks.push(chunk.clone());
        self.store.chunk_ids.insert(chunk, id);
        Some((id, least))
    }

    /// The items of a part that have a symbol next and pass a filter, moved over it. Rules that began in the middle have
    /// bound a text of so many bytes there.
    pub(super) fn moved(
        &mut self,
        language: &Language,
        (part, offset): At<PartId>,
        symbol: SymbolId,
        (filter, bound): (ItemFilter, Option<Cost>),
    ) -> Option<At<ChunkId>> {
        let grammar = &language.grammar;
        let known = match self.store.moved.get(&(part, symbol, filter, bound)) {
            Some(&known) => known,
            None => {
                let own = self.store.parts[part.index()].waiting(grammar, symbol).iter();
                let marks = language.marks.as_ref().filter(|_| bound.is_some());
                let binder = |dot: DotId| marks.and_then(|marks| marks.binder(grammar, dot));
                let missing = |dot: DotId, from: SourceId| match (bound, binder(dot)) {
                    (Some(bytes), Some(binder)) if from.index() < self.free_count => {
                        language.free.missing(grammar, binder, bytes)
                    }
                    _ => 0,
                };
                let cost = |&(dot, from, cost): &FreeItem| cost.saturating_add(missing(dot, from));
                let moved = own.map(|item| (Grammar::advance(item.0), item.1, cost(item)));
                let items = moved.filter(|item| filter.admits(grammar, item.0, self.begun_at(item.1))).collect();
                let chunk = self.chunk(Chunk { items, ended: Vec::new() });
                self.store.items += 1;
                self.store.moved.insert((part, symbol, filter, bound), chunk);
                chunk
            }
        };
        self.add(known, offset)
    }

    /// The items of a part that wait for a nonterminal, or for one that it completes, moved over it.
    pub(super) fn linked(
        &mut self,
        grammar: &Grammar,
        (part, offset): At<PartId>,
        link: LinkId,
        symbol: SymbolId,
        chain: &Chain,
    ) -> Option<At<ChunkId>> {
        let known = match self.linked.get(&(part, link)) {
            Some(&known) => known,
            None => {
                let own = &self.store.parts[part.index()];
                let mut items: Vec<FreeItem> = Vec::new();
                let mut wait_for = |next: SymbolId| {
                    let waiting = own.waiting(grammar, next).iter();
                    items.extend(waiting.map(|&(dot, from, cost)| (Grammar::advance(dot), from, cost)));
                };
                if !grammar.is_lexeme(symbol) {
                    wait_for(symbol);
                }
                let finished = bits::common(&own.waits, chain.finished.words());
                finished.map(|at| grammar.nonterminal(at)).filter(|&next| next != symbol).for_each(&mut wait_for);
                let chunk = self.chunk(Chunk { items, ended: Vec::new() });
                self.linked.insert((part, link), chunk);
                chunk
            }
        };
        self.add(known, offset)
    }

    /// The moved dots with which lists begin at a node, for the items that wait in one part, without those of some
    /// nonterminals.
    pub(super) fn begun(
        &mut self,
        grammar: &Grammar,
        (part, offset): At<PartId>,
        (id, lone): (LoneId, &LoneDots),
        begun: Begun,
        left_out: Option<&[u64]>,
    ) -> Option<At<ChunkId>> {
        let known = match (left_out, self.begun.get(&(part, id, begun))) {
            (None, Some(&known)) => known,
            (left_out, _) => {
                let kept = |dot: DotId| {
                    let index = grammar.nonterminal_index(grammar.lhs(dot));
                    !left_out.is_some_and(|left_out| bits::contains(left_out, index))
                };
                let mut items = Vec::new();
                for &dot in lone.dots.iter().filter(|&&dot| kept(dot)) {
                    if let Some((list, least)) = self.list_at(grammar, part, grammar.lhs(dot), begun) {
                        items.push((dot, list, least));
                    }
                }
                let chunk = self.chunk(Chunk { items, ended: Vec::new() });
                if left_out.is_none() {
                    self.begun.insert((part, id, begun), chunk);
                }
                chunk
            }
        };
        self.add(known, offset)
    }

    /// The list that begins at a node with a nonterminal, for the items that wait in one part.
    fn list_at(
        &mut self,
        grammar: &Grammar,
        part: PartId,
        nonterminal: SymbolId,
        begun: Begun,
    ) -> Option<At<SourceId>> {
        if !self.store.parts[part.index()].waits_for(grammar, nonterminal) {
            return None;
        }
        let (items, least) = waiting_from_0(&self.store.parts[part.index()], grammar, nonterminal);
        let list = List { nonterminal, items, begun };
        if let Some(&id) = self.store.list_ids.get(&list) {
            return Some((id, least));
        }
        let id = SourceId::from_index(self.free_count + self.store.lists.len());
        let list = Arc::new(list);
        self.store.lists.push(list.clone());
        self.store.list_ids.insert(list, id);
        Some((id, least))
    }

    /// Return whether a list begins at a place, for the items of one part.
    pub(super) fn begins(&self, grammar: &Grammar, source: SourceId, part: PartId, begun: Begun) -> bool {
        let Some(list) = self.list(source) else { return false };
        let part = &self.store.parts[part.index()];
        begun == list.begun
            && part.waits_for(grammar, list.nonterminal)
            && waiting_from_0(part, grammar, list.nonterminal).0 == list.items
    }

    /// The parts that follow from some chunks, once all nonterminals that end there are completed.
    pub(super) fn closed(
        &mut self,
        language: &Language,
        chunks: &mut Vec<At<ChunkId>>,
        kind: Kind,
        into: &mut Vec<At<PartId>>,
    ) {
        // A chunk counts with its least offset. Chunks near each other are closed together.
        chunks.sort_unstable();
        chunks.dedup_by_key(|at| at.0);
        chunks.sort_unstable_by_key(|&(chunk, offset)| (offset, chunk));
        let mut rest = chunks.as_mut_slice();
        while let Some(&(_, least)) = rest.first() {
            let near = rest.windows(2).position(|pair| pair[1].1 - pair[0].1 > APART);
            let (group, more) = rest.split_at_mut(near.map_or(rest.len(), |at| at + 1));
            for at in group.iter_mut() {
                at.1 -= least;
            }
            let key = (Chunks::from(&*group), kind);
            if !self.store.closed.contains_key(&key) {
                let parts = self.close(language, group, kind);
                self.store.items += key.0.len() + parts.len();
                self.store.closed.insert(key.clone(), parts);
            }
            for &(part, own) in &self.store.closed[&key] {
                // Near chunks were closed together: up to their width more than the least.
                self.most_closed = self.most_closed.max(own);
                into.push((part, own.saturating_add(least)));
            }
            rest = more;
        }
        into.sort_unstable();
        into.dedup_by_key(|at| at.0);
    }

    fn close(&mut self, language: &Language, chunks: &[At<ChunkId>], kind: Kind) -> Box<[At<PartId>]> {
        let grammar = &language.grammar;
        let mut closing = std::mem::take(&mut self.closing);
        closing.pending.begin();
        closing.least.begin(grammar.dot_count(), self.free_count);
        closing.ended.clear();
        for &(chunk, offset) in chunks {
            let chunk = &self.store.chunks[chunk.index()];
            for &(dot, from, cost) in &chunk.items {
                closing.push(self, grammar, kind, (dot, from, cost + offset));
            }
            for &(symbol, from, cost) in &chunk.ended {
                closing.complete(self, language, kind, (symbol, from, cost + offset));
            }
        }
        // An item may come again at a lower cost: its dearer copies in `pending` are skipped.
        while let Some((dot, from, cost)) = closing.pending.pop() {
            if closing.least.get(dot, from) < cost {
                continue;
            }
            if grammar.next(dot) == END_OF_RULE {
                closing.complete(self, language, kind, (grammar.lhs(dot), from, cost));
            } else {
                closing.push(self, grammar, kind, (Grammar::advance(dot), from, cost));
            }
        }
        let items = closing.least.items(grammar);
        let completed: Vec<_> = closing.ended.iter().map(|(&(symbol, from), &cost)| (symbol, from, cost)).collect();
        self.closing = closing;
        self.part(grammar, items, completed)
    }

    /// Intern the items of a set, sorted by the symbol after the dot, split where their costs are far apart.
    fn part(
        &mut self,
        grammar: &Grammar,
        items: Vec<FreeItem>,
        completed: Vec<(SymbolId, SourceId, Cost)>,
    ) -> Box<[At<PartId>]> {
        let begins = begins(|| items.iter().map(|item| item.2).chain(completed.iter().map(|end| end.2)));
        let mut parts = Vec::with_capacity(begins.len());
        for (index, &least) in begins.iter().enumerate() {
            let end = begins.get(index + 1).copied().unwrap_or(INFINITE);
            let own = |cost: Cost| cost >= least && (cost < end || end == INFINITE);
            let mut items: Vec<FreeItem> = items.iter().copied().filter(|item| own(item.2)).collect();
            let mut completed: Vec<_> = completed.iter().copied().filter(|end| own(end.2)).collect();
            for item in &mut items {
                item.2 -= least;
            }
            for end in &mut completed {
                end.2 -= least;
            }
            completed.sort_unstable();
            parts.push((self.intern(grammar, items.into(), completed.into()), least));
        }
        parts.into()
    }

    fn intern(
        &mut self,
        grammar: &Grammar,
        items: Box<[FreeItem]>,
        completed: Box<[(SymbolId, SourceId, Cost)]>,
    ) -> PartId {
        let words = words_for::<u64>(grammar.nonterminal_count());
        let (mut predicts, mut waits, mut waits_in_list) = (vec![0; words], vec![0; words], vec![0; words]);
        let mut previous = END_OF_RULE;
        for &(dot, from, _) in &items {
            let next = grammar.next(dot);
            if grammar.is_lexeme(next) {
                continue;
            }
            if next != previous {
                unite(&mut predicts, grammar.closure(next));
                bits::insert(&mut waits, grammar.nonterminal_index(next));
            }
            if from.index() >= self.free_count {
                bits::insert(&mut waits_in_list, grammar.nonterminal_index(next));
            }
            previous = next;
        }
        let (predicts, waits, waits_in_list) = (predicts.into(), waits.into(), waits_in_list.into());
        let part = Part { items, completed, predicts, waits, waits_in_list };
        if let Some(&id) = self.store.part_ids.get(&part) {
            return id;
        }
        let id = PartId::from_index(self.store.parts.len());
        self.store.items += part.items.len() + part.completed.len();
        let part = Arc::new(part);
        self.store.parts.push(part.clone());
        self.store.part_ids.insert(part, id);
        id
    }

    /// Drop the tables needed only while the chart is made, or keep them for the language's later sessions.
    pub(super) fn settle(&mut self, language: &Language) {
        let numbered = Box::new(self.store.numbered());
        let store = std::mem::replace(&mut self.store, numbered);
        if store.is_small() {
            language.parts.give_back(store, |store| store.items);
        }
        self.linked = FxHashMap::default();
        self.begun = FxHashMap::default();
        self.closing = Closing::default();
    }
}

impl Closing {
    fn push(&mut self, parts: &Parts, grammar: &Grammar, kind: Kind, (dot, from, cost): FreeItem) {
        if kind.nested && !grammar.is_nested(dot) && parts.list(from).is_none() {
            return; // it contains the cursor's string, and goes on after it
        }
        let next = grammar.next(dot);
        let is_dedent = || grammar.indent_dedent.is_some_and(|(_, dedent)| next == dedent);
        let goes_on = next == END_OF_RULE || grammar.nullable(next) || kind.loops && is_dedent();
        if self.least.lower(dot, from, cost) && goes_on {
            self.pending.push((dot, from, cost));
        }
    }

    fn complete(
        &mut self,
        parts: &Parts,
        language: &Language,
        kind: Kind,
        (symbol, from, cost): (SymbolId, SourceId, Cost),
    ) {
        let grammar = &language.grammar;
        let cell = self.ended.entry((symbol, from)).or_insert(INFINITE);
        if *cell <= cost {
            return;
        }
        *cell = cost;
        let Some(list) = parts.list(from) else {
            let from = FreeId::from_index(from.index());
            for &(dot, begun, before) in language.free.advances(grammar, symbol, from) {
                self.push(parts, grammar, kind, (dot, SourceId::from(begun), before.saturating_add(cost)));
            }
            return;
        };
        debug_assert_eq!(list.nonterminal, symbol, "a list holds items of its own nonterminal");
        for &(dot, begun, before) in &list.items {
            self.push(parts, grammar, kind, (Grammar::advance(dot), begun, before.saturating_add(cost)));
        }
        for &dot in grammar.initial(symbol).iter().filter(|&&dot| grammar.lhs(dot) == symbol) {
            self.push(parts, grammar, kind, (Grammar::advance(dot), from, cost));
        }
    }
}

/// The items of a part that wait for a nonterminal, with costs from 0, and the subtracted offset.
fn waiting_from_0(part: &Part, grammar: &Grammar, nonterminal: SymbolId) -> (Box<[FreeItem]>, Cost) {
    let own = part.waiting(grammar, nonterminal);
    let least = own.iter().map(|item| item.2).min().unwrap_or(0);
    (own.iter().map(|&(dot, from, cost)| (dot, from, cost - least)).collect(), least)
}

/// The least cost of each group. Between two groups is a gap of more than [`APART`].
fn begins<C: Iterator<Item = Cost>>(costs: impl Fn() -> C) -> Vec<Cost> {
    let Some(least) = costs().min() else { return Vec::new() };
    let mut low = [false; LOW];
    let mut high = Vec::new();
    for cost in costs() {
        match low.get_mut((cost - least) as usize) {
            Some(known) => *known = true,
            None => high.push(cost),
        }
    }
    high.sort_unstable();
    let low = (least..).zip(low).filter_map(|(cost, known)| known.then_some(cost));
    let mut begins = Vec::new();
    let mut last = None;
    for cost in low.chain(high) {
        if last.is_none_or(|last| cost - last > APART) {
            begins.push(cost);
        }
        last = Some(cost);
    }
    begins
}
