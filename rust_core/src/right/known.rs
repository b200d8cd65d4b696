//! What has been computed of a set, kept for nodes that are read to alike.
//!
//! A set follows from the symbols that lead to its node, the sets that they come from and the sets of the nodes at which the
//! completed nonterminals began. Where all of them are those of an earlier node, as many nodes back or at the same far node,
//! the set is that node's: it is not computed again. So R is parsed as a finite automaton reads it, as long as it repeats what
//! it said before, and by Earley's algorithm where it says something new.

use crate::ids::{KindId, NodeId, RightSetId, SymbolId};
use crate::language::free::Cost;
use crate::right::lattice::{Incoming, Lattice};
use crate::right::places::{Begun, Taken};
use crate::right::sets::{far_node, is_near, near_node};
use rustc_hash::FxHashMap;

/// Outcomes that are kept: a text that does not repeat itself needs none, and what repeats soon finds its own again.
const OUTCOMES: usize = 1 << 12;

/// Outcomes that are kept of what is read alike.
const ALTERNATIVES: usize = 4;

/// What is read into a set.
type Key = Box<[u32]>;

/// A completion that comes to another one: the nonterminal and the node, and what these come to.
type Leap<Node> = ((SymbolId, Node), (SymbolId, Node));

/// A node whose set was looked at.
#[derive(Clone, Copy, Debug)]
struct Seen {
    /// The node, as [`near_node`] names it.
    node: u32,
    set: RightSetId,
    kind: KindId,
    is_crossed: bool,
    /// What is added to its costs beyond what is added to those of the node that is read from, if it has any.
    offset: Option<Cost>,
}

/// What was computed, and from what.
#[derive(Debug)]
struct Outcome {
    seen: Box<[Seen]>,
    leaps: Box<[Leap<u32>]>,
    made: Box<[Leap<u32>]>,
    set: RightSetId,
    offset: Option<Cost>,
}

/// What a set in the making is computed from.
#[derive(Debug, Default)]
pub(super) struct Record {
    node: NodeId,
    /// What is added to the costs of the node that is read from.
    base: Cost,
    key: Vec<u32>,
    /// It follows from what is recorded alone.
    is_whole: bool,
    seen: Vec<Seen>,
    leaps: Vec<Leap<u32>>,
    made: Vec<Leap<u32>>,
}

impl Record {
    /// Begins one for a node, and what is read into its set. `more` is what else is done to the set, if that is known.
    pub(super) fn begin(&mut self, lattice: &Lattice, node: NodeId, read: &[Incoming], more: Option<u32>) {
        self.seen.clear();
        self.leaps.clear();
        self.made.clear();
        self.key.clear();
        self.node = node;
        self.is_whole = false;
        let (Some(first), Some(more)) = (read.first(), more) else { return };
        self.is_whole = true;
        self.base = lattice.offset(first.from);
        self.key.push(more);
        for &Incoming { symbol, from, taken } in read {
            let seen = self.see(lattice, from);
            let (how, modes) = match taken {
                Taken::All => (0, 0),
                Taken::Modes(modes) => (1, modes),
                _ => {
                    self.is_whole = false; // where every rule began that waits there counts as well
                    return;
                }
            };
            let symbol = u32::from(symbol.0) << 1 | how;
            let offset = seen.offset.unwrap_or(u32::MAX);
            #[allow(clippy::cast_possible_truncation)] // both halves
            let modes = [modes as u32, (modes >> 32) as u32];
            self.key.extend([seen.node, seen.set.0, seen.kind.0, symbol, modes[0], modes[1], offset]);
        }
    }

    fn see(&self, lattice: &Lattice, node: NodeId) -> Seen {
        let set = lattice.set_id(node);
        Seen {
            node: near_node(self.node, node),
            set,
            kind: lattice.kind_of(node),
            is_crossed: lattice.is_crossed(node),
            offset: lattice.has_parts(node).then(|| lattice.offset(node).wrapping_sub(self.base)),
        }
    }

    /// The set was computed from what stands at a node, where `leap` has come to from another.
    pub(super) fn complete(&mut self, lattice: &Lattice, from: (SymbolId, NodeId), to: (SymbolId, NodeId)) {
        if !self.is_whole {
            return;
        }
        self.leaps.push((self.name(from), self.name(to)));
        let node = near_node(self.node, to.1);
        if self.seen.iter().all(|seen| seen.node != node) {
            self.seen.push(self.see(lattice, to.1));
        }
    }

    /// Completing one comes to completing another.
    pub(super) fn leap(&mut self, from: (SymbolId, NodeId), to: (SymbolId, NodeId)) {
        self.made.push((self.name(from), self.name(to)));
    }

    /// An item was taken from the set of `at` that began at `begun`. The names of both must say the same of where it began: how
    /// far back it is, or at which node.
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

/// What completing a nonterminal begun at a node comes to where it only completes others: the last of them (Leo 1991).
#[derive(Debug, Default)]
pub(super) struct Leaps {
    known: FxHashMap<(SymbolId, NodeId), (SymbolId, NodeId)>,
    passed: Vec<(SymbolId, NodeId)>,
}

impl Leaps {
    /// What is completed in the end.
    pub(super) fn last(&mut self, from: (SymbolId, NodeId)) -> (SymbolId, NodeId) {
        let Some(&(mut last)) = self.known.get(&from) else { return from };
        self.passed.clear();
        self.passed.push(from);
        while let Some(&next) = self.known.get(&last) {
            self.passed.push(last);
            last = next;
        }
        if self.passed.len() > 1 {
            for &at in &self.passed {
                self.known.insert(at, last);
            }
        }
        last
    }

    pub(super) fn insert(&mut self, from: (SymbolId, NodeId), to: (SymbolId, NodeId)) {
        self.known.insert(from, to);
    }
}

/// Outcomes by what was read.
#[derive(Debug, Default)]
pub(super) struct Known {
    outcomes: FxHashMap<Key, Vec<Outcome>>,
    count: usize,
    /// Whether reading a symbol from a set, in a line of a kind, leads anywhere.
    leads: FxHashMap<(RightSetId, SymbolId, Taken, Begun), bool>,
    /// None are kept.
    is_off: bool,
    /// How many sets were found.
    pub(super) found: usize,
}

impl Known {
    /// Keeps nothing: every set is computed, for comparison.
    #[cfg(test)]
    pub(super) fn off() -> Self {
        Self { is_off: true, ..Self::default() }
    }

    /// The set of a node and what is added to its costs, if that is known; its leaps are made.
    pub(super) fn find(&mut self, lattice: &Lattice, leaps: &mut Leaps, record: &Record) -> Option<(RightSetId, Cost)> {
        if !record.is_whole || self.is_off {
            return None;
        }
        let node = |name: u32| far_node(record.node, name);
        let is_seen = |seen: &Seen| {
            let at = node(seen.node);
            lattice.set_id(at) == seen.set
                && lattice.kind_of(at) == seen.kind
                && lattice.is_crossed(at) == seen.is_crossed
                && seen.offset.is_none_or(|offset| lattice.offset(at) == record.base.wrapping_add(offset))
        };
        let outcome = self.outcomes.get(record.key.as_slice())?.iter().find(|outcome| {
            let is_made = |&((from, at), (to, end)): &Leap<u32>| leaps.last((from, node(at))) == (to, node(end));
            outcome.seen.iter().all(is_seen) && outcome.leaps.iter().all(is_made)
        })?;
        for &((from, at), (to, end)) in &outcome.made {
            leaps.insert((from, node(at)), (to, node(end)));
        }
        self.found += 1;
        Some((outcome.set, outcome.offset.map_or(0, |offset| record.base.wrapping_add(offset))))
    }

    /// Keeps what was computed.
    pub(super) fn keep(&mut self, lattice: &Lattice, record: &Record, set: RightSetId, offset: Cost) {
        if !record.is_whole || self.is_off {
            return;
        }
        if self.count >= OUTCOMES {
            self.outcomes.clear();
            self.count = 0;
        }
        let outcome = Outcome {
            seen: record.seen.as_slice().into(),
            leaps: record.leaps.as_slice().into(),
            made: record.made.as_slice().into(),
            set,
            offset: (!lattice.sets.parts(set).is_empty()).then(|| offset.wrapping_sub(record.base)),
        };
        let own = match self.outcomes.get_mut(record.key.as_slice()) {
            Some(own) => own,
            None => self.outcomes.entry(record.key.as_slice().into()).or_default(),
        };
        if own.len() == ALTERNATIVES {
            own.remove(0);
        } else {
            self.count += 1;
        }
        own.push(outcome);
    }

    /// Whether reading a symbol leads anywhere, if that is known.
    pub(super) fn leads(&self, key: (RightSetId, SymbolId, Taken, Begun)) -> Option<bool> {
        self.leads.get(&key).copied()
    }

    pub(super) fn keep_lead(&mut self, key: (RightSetId, SymbolId, Taken, Begun), leads: bool) {
        if self.leads.len() >= OUTCOMES {
            self.leads.clear();
        }
        self.leads.insert(key, leads);
    }
}
