//! Memo of sets, for nodes with equal incoming symbols.
//!
//! A set follows from the symbols that lead to its node, the sets that they come from, and the sets of the nodes at
//! which the completed nonterminals began. If all of them equal those of an earlier node, as many nodes back or at the
//! same far node, the set is that node's and is not computed again. So a repetitive R is parsed like by a finite
//! automaton, and by Earley's algorithm only where it brings anything new.

use crate::chunked::Chunked;
use crate::ids::{KindId, NodeId, RightSetId, SymbolId};
use crate::language::free::Cost;
use crate::right::lattice::{Incoming, Lattice};
use crate::right::parts::APART;
use crate::right::places::{Begun, ItemFilter};
use crate::right::sets::{GAP, far_node, is_near, near_node};
use rustc_hash::FxHashMap;

/// Outcomes to keep. A text without repetitions needs none, and repetitions soon find their own again.
const OUTCOMES: usize = 1 << 12;

/// Outcomes to keep for one key.
const ALTERNATIVES: usize = 4;

/// Completions on which an outcome may depend. A longer chain is unlikely to recur.
const COMPLETIONS: usize = 200;

/// Symbols read into a set, and the sets that they come from.
type Key = Box<[u32]>;

/// A Leo item: a nonterminal and its node, and the completion to which these lead.
type LeoItem<Node> = ((SymbolId, Node), (SymbolId, Node));

/// A node whose set was looked at.
#[derive(Clone, Copy, Debug)]
struct Seen {
    /// The node, as [`near_node`] names it.
    node: u32,
    set: RightSetId,
    kind: KindId,
    is_crossed: bool,
}

/// A computed set, and the facts that it depends on.
#[derive(Debug)]
struct Outcome {
    seen: Box<[Seen]>,
    leo_items: Box<[LeoItem<u32>]>,
    made: Box<[LeoItem<u32>]>,
    offsets: Offsets,
    set: RightSetId,
    /// For each group of its parts: the offset that it follows from, and the cost added to that.
    groups: Box<[(u32, Cost)]>,
}

/// Offsets of the groups of parts at some nodes.
///
/// A result depends on how the costs of parts differ, as long as they are near each other. If one is more than another
/// by [`FAR`], no result of the one meets a result of the other, so a larger difference changes nothing.
#[derive(Debug, Default)]
struct Offsets {
    of: Box<[Cost]>,
    /// Their indices, the least first.
    order: Box<[u32]>,
}

/// Distance of offsets from which a larger distance changes nothing. If results of each cost less than [`ADDED`] beyond
/// its offset, they are in different groups ([`GAP`]), and their sources were closed apart from each other ([`APART`]).
const FAR: Cost = GAP + ADDED;

/// Bound on the cost that parts may add to their offsets where some of these are far apart.
const ADDED: Cost = GAP / 2;

const _: () = assert!(GAP > APART);

impl Offsets {
    fn new(of: &[Cost]) -> Self {
        let mut order: Vec<u32> = (0..).take(of.len()).collect();
        order.sort_by_key(|&index| of[index as usize]);
        Self { of: of.into(), order: order.into() }
    }

    /// Return whether other offsets differ from each other as these do.
    fn are_like(&self, others: &[Cost]) -> bool {
        let Some((&first, &other)) = self.of.first().zip(others.first()) else { return true };
        let by = other.wrapping_sub(first);
        if self.of.iter().zip(others).all(|(&one, &other)| other.wrapping_sub(one) == by) {
            return true;
        }
        self.order.windows(2).all(|pair| {
            let [low, high] = [pair[0] as usize, pair[1] as usize];
            let (gap, other) = (self.of[high] - self.of[low], others[high].checked_sub(others[low]));
            other.is_some_and(|other| other == gap || gap >= FAR && other >= FAR)
        })
    }

    /// Return whether all offsets are near each other.
    fn are_near(&self) -> bool {
        self.order.windows(2).all(|pair| self.of[pair[1] as usize] - self.of[pair[0] as usize] < FAR)
    }

    /// The offset that a result follows from, and the cost added. Of offsets near each other, any will do.
    fn source(&self, made: Cost) -> Option<(u32, Cost)> {
        let below = self.order.partition_point(|&index| self.of[index as usize] <= made);
        let index = self.order[below.checked_sub(1)?];
        Some((index, made - self.of[index as usize]))
    }
}

/// Facts that a set in the making depends on.
#[derive(Debug, Default)]
pub(super) struct Record {
    node: NodeId,
    key: Vec<u32>,
    /// True if the set depends on the recorded facts alone.
    is_whole: bool,
    seen: Vec<Seen>,
    /// Offsets of the visited nodes.
    offsets: Vec<Cost>,
    leo_items: Vec<LeoItem<u32>>,
    made: Vec<LeoItem<u32>>,
}

impl Record {
    /// Begin the record of a node from the symbols read into its set. `more` describes other additions to the set, if
    /// they are known.
    pub(super) fn begin(&mut self, lattice: &Lattice, node: NodeId, read: &[Incoming], more: Option<u32>) {
        self.seen.clear();
        self.offsets.clear();
        self.leo_items.clear();
        self.made.clear();
        self.key.clear();
        self.node = node;
        self.is_whole = false;
        let Some(more) = more.filter(|_| !read.is_empty()) else { return };
        self.is_whole = true;
        self.key.push(more);
        for &Incoming { symbol, from, filter } in read {
            let seen = self.see(lattice, from);
            self.look(lattice, from);
            let (how, modes) = match filter {
                ItemFilter::All => (0, 0),
                ItemFilter::Modes(modes) => (1, modes),
                _ => {
                    self.is_whole = false; // the origins of all waiting rules matter as well
                    return;
                }
            };
            let symbol = u32::from(symbol.0) << 1 | how;
            #[allow(clippy::cast_possible_truncation)] // both halves
            let modes = [modes as u32, (modes >> 32) as u32];
            self.key.extend([seen.node, seen.set.0, seen.kind.0, symbol, modes[0], modes[1]]);
        }
    }

    fn see(&self, lattice: &Lattice, node: NodeId) -> Seen {
        Seen {
            node: near_node(self.node, node),
            set: lattice.set_id(node),
            kind: lattice.kind_of(node),
            is_crossed: lattice.is_crossed(node),
        }
    }

    /// Take note of a node.
    fn look(&mut self, lattice: &Lattice, node: NodeId) {
        let seen = self.see(lattice, node);
        if self.seen.iter().all(|other| other.node != seen.node) {
            self.seen.push(seen);
            self.offsets.extend(lattice.offsets(node));
        }
    }

    /// Record that the set depends on a node where a Leo item led from another.
    pub(super) fn complete(&mut self, lattice: &Lattice, from: (SymbolId, NodeId), to: (SymbolId, NodeId)) {
        if !self.is_whole {
            return;
        }
        if self.leo_items.len() == COMPLETIONS {
            self.is_whole = false;
            return;
        }
        self.leo_items.push((self.name(from), self.name(to)));
        self.look(lattice, to.1);
    }

    /// Record that completing one nonterminal only completes another.
    pub(super) fn leo_item(&mut self, from: (SymbolId, NodeId), to: (SymbolId, NodeId)) {
        self.made.push((self.name(from), self.name(to)));
    }

    /// Record an item copied from the set of `at` that began at `begun`. Both sets must give its origin the same name:
    /// a distance, or a node.
    #[inline]
    pub(super) fn take(&mut self, at: NodeId, begun: Option<NodeId>) {
        let Some(begun) = begun else { return };
        if is_near(self.node, begun) != (is_near(self.node, at) && is_near(at, begun)) {
            self.is_whole = false;
        }
    }

    /// The set follows from something else, too.
    pub(super) fn spoil(&mut self) {
        self.is_whole = false;
    }

    fn name(&self, (symbol, node): (SymbolId, NodeId)) -> (SymbolId, u32) {
        (symbol, near_node(self.node, node))
    }
}

/// Leo items (Leo 1991): the last completion to which a nonterminal leads that only completes others.
#[derive(Debug, Default)]
pub(super) struct LeoItems {
    /// By node, the last of its entries, plus one.
    of: Chunked<u32>,
    entries: Chunked<LeoEntry>,
    passed: Vec<usize>,
}

/// Leo item of one nonterminal, and the previous entry of the same node (plus one). Where a construct nests without end
/// each node has several, so they are stored by symbol.
#[derive(Debug)]
struct LeoEntry {
    symbol: SymbolId,
    to_symbol: SymbolId,
    to_node: NodeId,
    before: u32,
}

impl LeoEntry {
    fn to(&self) -> (SymbolId, NodeId) {
        (self.to_symbol, self.to_node)
    }

    fn lead(&mut self, to: (SymbolId, NodeId)) {
        (self.to_symbol, self.to_node) = to;
    }
}

impl LeoItems {
    /// The last completion of a chain.
    pub(super) fn last(&mut self, from: (SymbolId, NodeId)) -> (SymbolId, NodeId) {
        let mut last = from;
        self.passed.clear();
        while let Some(at) = self.find(last) {
            self.passed.push(at);
            last = self.entries.get(at).to();
        }
        for &at in &self.passed {
            self.entries.get_mut(at).lead(last);
        }
        last
    }

    fn find(&self, (symbol, node): (SymbolId, NodeId)) -> Option<usize> {
        let mut at = if node.index() < self.of.len() { *self.of.get(node.index()) } else { 0 };
        while let Some(index) = at.checked_sub(1) {
            let entry = self.entries.get(index as usize);
            if entry.symbol == symbol {
                return Some(index as usize);
            }
            at = entry.before;
        }
        None
    }

    pub(super) fn insert(&mut self, from: (SymbolId, NodeId), to: (SymbolId, NodeId)) {
        if let Some(at) = self.find(from) {
            self.entries.get_mut(at).lead(to);
            return;
        }
        let (symbol, node) = from;
        while self.of.len() <= node.index() {
            self.of.push(0);
        }
        let before = *self.of.get(node.index());
        let (to_symbol, to_node) = to;
        self.entries.push(LeoEntry { symbol, to_symbol, to_node, before });
        *self.of.get_mut(node.index()) = u32::try_from(self.entries.len()).expect("Leo items fit u32");
    }
}

/// Outcomes by key.
#[derive(Debug, Default)]
pub(super) struct SetMemo {
    outcomes: FxHashMap<Key, Vec<Outcome>>,
    count: usize,
    offsets: Vec<Cost>,
    /// True if reading a symbol from a set, in a line of a kind, leads anywhere.
    leads: FxHashMap<(RightSetId, SymbolId, ItemFilter, Begun), bool>,
    /// True if none are kept.
    is_off: bool,
    /// Number of sets found.
    pub(super) found: usize,
}

impl SetMemo {
    /// Keep nothing: every set is computed, for comparison.
    #[cfg(test)]
    pub(super) fn off() -> Self {
        Self { is_off: true, ..Self::default() }
    }

    /// Find the set of a node, and store the offsets of its groups in `offsets`. Its Leo items are made.
    pub(super) fn find(
        &mut self,
        lattice: &Lattice,
        leo_items: &mut LeoItems,
        record: &Record,
        offsets: &mut Vec<Cost>,
    ) -> Option<RightSetId> {
        if !record.is_whole || self.is_off {
            return None;
        }
        let node = |name: u32| far_node(record.node, name);
        // A recorded distance may lead out of R here, before its beginning or past the last node.
        let exists = |name: u32| node(name).index() < lattice.node_count();
        let is_seen = |seen: &Seen| {
            let at = node(seen.node);
            exists(seen.node)
                && lattice.set_id(at) == seen.set
                && lattice.kind_of(at) == seen.kind
                && lattice.is_crossed(at) == seen.is_crossed
        };
        let scratch = &mut self.offsets;
        // A known set is valid here if everything that it depends on is equal at the same distance: sets, kinds and
        // crossings of the visited nodes, and their Leo items. Offsets need only differ in the same way: the result's
        // costs are shifted with them.
        let outcome = self.outcomes.get(record.key.as_slice())?.iter().find(|outcome| {
            if !outcome.seen.iter().all(is_seen) {
                return false;
            }
            scratch.clear();
            for seen in &outcome.seen {
                scratch.extend(lattice.offsets(node(seen.node)));
            }
            let is_made = |&((from, at), (to, end)): &LeoItem<u32>| leo_items.last((from, node(at))) == (to, node(end));
            outcome.offsets.are_like(scratch) && outcome.leo_items.iter().all(is_made)
        })?;
        for &((from, at), (to, end)) in &outcome.made {
            leo_items.insert((from, node(at)), (to, node(end)));
        }
        offsets.clear();
        offsets.extend(outcome.groups.iter().map(|&(index, more)| scratch[index as usize] + more));
        self.found += 1;
        Some(outcome.set)
    }

    /// Keep a computed set, the offsets of its groups, and the most that its parts cost beyond their sources.
    pub(super) fn keep(
        &mut self,
        lattice: &Lattice,
        record: &Record,
        set: RightSetId,
        groups: &[Cost],
        most_added: Cost,
    ) {
        if !record.is_whole || self.is_off {
            return;
        }
        let offsets = Offsets::new(&record.offsets);
        if !offsets.are_near() {
            let parts = record.seen.iter().flat_map(|seen| lattice.sets.parts(seen.set));
            let widest = parts.map(|&(_, _, own)| own).max().unwrap_or(0);
            if widest.saturating_add(most_added) >= ADDED {
                return;
            }
        }
        let Some(groups) = groups.iter().map(|&group| offsets.source(group)).collect() else { return };
        if self.count >= OUTCOMES {
            self.outcomes.clear();
            self.count = 0;
        }
        let outcome = Outcome {
            seen: record.seen.as_slice().into(),
            leo_items: record.leo_items.as_slice().into(),
            made: record.made.as_slice().into(),
            offsets,
            set,
            groups,
        };
        let own = match self.outcomes.get_mut(record.key.as_slice()) {
            Some(own) => own,
            None => self.outcomes.entry(record.key.as_slice().into()).or_insert_with(|| Vec::with_capacity(1)),
        };
        if own.len() == ALTERNATIVES {
            own.remove(0);
        } else {
            self.count += 1;
        }
        own.push(outcome);
    }

    /// The known answer whether reading a symbol leads anywhere.
    pub(super) fn leads(&self, key: (RightSetId, SymbolId, ItemFilter, Begun)) -> Option<bool> {
        self.leads.get(&key).copied()
    }

    pub(super) fn keep_lead(&mut self, key: (RightSetId, SymbolId, ItemFilter, Begun), leads: bool) {
        if self.leads.len() >= OUTCOMES {
            self.leads.clear();
        }
        self.leads.insert(key, leads);
    }
}
