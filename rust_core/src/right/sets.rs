//! Interned sets of R's chart.
//!
//! A set names the nodes at which its items began. A near node is named by its distance, a far one by its number. So
//! the sets of a text that repeats a construct are equal, however long it is, and most nodes have a known set.

use crate::chunked::Chunked;
use crate::grammar::compiled::Grammar;
use crate::ids::{DotId, LinkId, NodeId, OriginId, PartId, PredictionId, RightSetId, RunId, SymbolId};
use crate::interned::hash;
use crate::language::free::Cost;
use crate::right::origins::{At, Completed, Origins};
use rustc_hash::FxHashMap;
use std::hash::Hash;

/// Distance from which nodes are named by number. It is small in tests, so that short texts have far nodes as well.
const NEAR: u32 = if cfg!(test) { 9 } else { 96 };

/// Distances reserved for later nodes: a node may be made before one from which it is read.
const AHEAD: u32 = if cfg!(test) { 4 } else { 32 };

/// Sets and runs to look among for equal ones. Repetitions come soon.
const LOOKED_AMONG: usize = 1 << 15;

/// Marks a distance among the numbers of nodes.
const DISTANCE: u32 = 1 << 30;

/// Mark of a link among completions.
const LINK: u32 = 1 << 31;

/// An item: a dot or a link, and where it began.
type Entry = (u32, u32);

/// A free part, its group, and its cost beyond the group's offset.
type Grouped = (PartId, u32, Cost);

/// Difference of costs from which parts are in different groups. Readings whose costs drift apart are equal however far
/// apart they are.
pub(super) const GAP: Cost = if cfg!(test) { 160 } else { 512 };

/// An Earley set, relative to its node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Set {
    /// Items of rules that began in R by the symbol after the dot; then links.
    own: RunId,
    /// Number of these that are items.
    items: u32,
    /// Completed nonterminals that end here and that a rule can ask for.
    completed: RunId,
    /// The free parts.
    parts: RunId,
    /// Number of groups. Each node has an offset for each of them.
    pub(super) groups: u16,
    /// Prediction of all items.
    pub(super) prediction: PredictionId,
    /// Some parse comes here.
    pub(super) is_alive: bool,
}

/// Contents of a set in the making.
#[derive(Debug, Default)]
pub(super) struct Content {
    pub(super) items: Vec<(DotId, OriginId)>,
    pub(super) links: Vec<(LinkId, NodeId)>,
    pub(super) completed: Vec<Completed>,
    /// The free parts, with their offsets.
    pub(super) parts: Vec<At<PartId>>,
    /// The free parts in groups, and the offset of each group.
    grouped: Vec<Grouped>,
    pub(super) offsets: Vec<Cost>,
}

impl Content {
    /// Put the parts into groups.
    pub(super) fn group(&mut self) {
        self.parts.sort_unstable_by_key(|&(part, offset)| (offset, part));
        self.grouped.clear();
        self.offsets.clear();
        let mut last = None;
        for &(part, offset) in &self.parts {
            if last.is_none_or(|last| offset - last >= GAP) {
                self.offsets.push(offset);
            }
            last = Some(offset);
            let least = self.offsets.last().expect("a group");
            let group = u32::try_from(self.offsets.len() - 1).expect("groups are few");
            self.grouped.push((part, group, offset - least));
        }
    }

    pub(super) fn clear(&mut self) {
        self.items.clear();
        self.links.clear();
        self.completed.clear();
        self.parts.clear();
    }
}

/// All sets of one R.
#[derive(Debug)]
pub(super) struct Sets {
    table: Chunked<Set>,
    ids: FxHashMap<u32, RightSetId>,
    own: Runs<Entry>,
    completed: Runs<Entry>,
    parts: Runs<Grouped>,
    scratch: Vec<Entry>,
}

impl Sets {
    /// Only the empty set.
    pub(super) fn new() -> Self {
        let mut sets = Self {
            table: Chunked::default(),
            ids: FxHashMap::default(),
            own: Runs::new(),
            completed: Runs::new(),
            parts: Runs::new(),
            scratch: Vec::new(),
        };
        sets.table.push(Set::default());
        sets.ids.insert(hash(&Set::default()), RightSetId(0));
        sets
    }

    #[inline]
    pub(super) fn get(&self, id: RightSetId) -> &Set {
        self.table.get(id.index())
    }

    /// Intern the set of a node, whose parts are in groups.
    pub(super) fn intern(
        &mut self,
        node: NodeId,
        content: &Content,
        prediction: PredictionId,
        is_alive: bool,
    ) -> RightSetId {
        self.scratch.clear();
        self.scratch.extend(content.items.iter().map(|&(dot, origin)| (dot.0, near(node, origin))));
        let links = content.links.iter();
        self.scratch.extend(links.map(|&(link, begun)| (link.0, near(node, Origins::at_node(begun)))));
        let own = self.own.intern(&self.scratch);
        self.scratch.clear();
        self.scratch.extend(content.completed.iter().map(|&completed| match completed {
            Completed::One(symbol, begun) => (u32::from(symbol.0), near(node, Origins::at_node(begun))),
            Completed::Link(link, begun) => (link.0 | LINK, near(node, Origins::at_node(begun))),
        }));
        let completed = self.completed.intern(&self.scratch);
        let parts = self.parts.intern(&content.grouped);
        let groups = u16::try_from(content.offsets.len()).expect("groups are few");
        let items = u32::try_from(content.items.len()).expect("a set fits u32");
        let set = Set { own, items, completed, parts, groups, prediction, is_alive };
        let hash = hash(&set);
        let known = self.ids.get(&hash).copied();
        if let Some(known) = known.filter(|&known| *self.get(known) == set) {
            return known;
        }
        let id = RightSetId::from_index(self.table.len());
        self.table.push(set);
        if known.is_none() {
            keep(&mut self.ids, hash, id);
        }
        id
    }

    /// Size of a set.
    pub(super) fn size(&self, set: RightSetId) -> usize {
        let set = self.get(set);
        self.own.get(set.own).len() + self.completed.get(set.completed).len() + self.parts.get(set.parts).len()
    }

    /// Items of a set that began in R.
    pub(super) fn items(&self, set: RightSetId, node: NodeId) -> impl Iterator<Item = (DotId, OriginId)> + '_ {
        let set = self.get(set);
        let own = &self.own.get(set.own)[..set.items as usize];
        own.iter().map(move |&(dot, origin)| (DotId(dot), far(node, origin)))
    }

    /// Items of a set that began in R and have a symbol next.
    pub(super) fn items_before(
        &self,
        grammar: &Grammar,
        set: RightSetId,
        node: NodeId,
        symbol: SymbolId,
    ) -> impl Iterator<Item = (DotId, OriginId)> + use<'_> {
        let set = self.get(set);
        let items = &self.own.get(set.own)[..set.items as usize];
        let own = slice_by(items, |item| grammar.next(DotId(item.0)), symbol);
        own.iter().map(move |&(dot, origin)| (DotId(dot), far(node, origin)))
    }

    /// Links of a set: dots that began in R and moved together, with the node where they began.
    pub(super) fn links(&self, set: RightSetId, node: NodeId) -> impl Iterator<Item = (LinkId, NodeId)> + '_ {
        let set = self.get(set);
        let own = &self.own.get(set.own)[set.items as usize..];
        own.iter().map(move |&(link, begun)| (LinkId(link), far_node(node, begun)))
    }

    /// Completions of a set.
    pub(super) fn completed(&self, set: RightSetId, node: NodeId) -> impl Iterator<Item = Completed> + '_ {
        self.completed.get(self.get(set).completed).iter().map(move |&(what, begun)| {
            let begun = far_node(node, begun);
            if what & LINK != 0 {
                Completed::Link(LinkId(what ^ LINK), begun)
            } else {
                Completed::One(SymbolId::from_index(what as usize), begun)
            }
        })
    }

    /// The free parts.
    #[inline]
    pub(super) fn parts(&self, set: RightSetId) -> &[Grouped] {
        self.parts.get(self.get(set).parts)
    }

    /// Drop the tables needed only while the chart is made.
    pub(super) fn settle(&mut self) {
        self.own = Runs::new();
        self.ids = FxHashMap::default();
        self.completed.settle();
        self.parts.settle();
    }
}

/// Return whether a set names a node by its distance.
#[inline]
pub(super) fn is_near(node: NodeId, other: NodeId) -> bool {
    node.0.wrapping_add(AHEAD).wrapping_sub(other.0) < AHEAD + NEAR
}

/// Name a node as its set does.
#[inline]
fn near(node: NodeId, origin: OriginId) -> u32 {
    match Origins::node_of(origin) {
        Some(begun) if is_near(node, begun) => Origins::at_node(NodeId(DISTANCE | (node.0 + AHEAD - begun.0))).0,
        _ => origin.0,
    }
}

/// The origin that a set's name stands for.
#[inline]
fn far(node: NodeId, origin: u32) -> OriginId {
    match Origins::node_of(OriginId(origin)) {
        Some(named) if named.0 & DISTANCE != 0 => {
            Origins::at_node(NodeId((node.0 + AHEAD).wrapping_sub(named.0 ^ DISTANCE) & (DISTANCE - 1)))
        }
        _ => OriginId(origin),
    }
}

/// Name one node for another.
#[inline]
pub(super) fn near_node(node: NodeId, other: NodeId) -> u32 {
    near(node, Origins::at_node(other))
}

/// The node that a set's name stands for.
#[inline]
pub(super) fn far_node(node: NodeId, name: u32) -> NodeId {
    Origins::node_of(far(node, name)).expect("it began at a node")
}

/// The run of a sorted slice with a symbol.
pub(super) fn slice_by<T>(items: &[T], key: impl Fn(&T) -> SymbolId, symbol: SymbolId) -> &[T] {
    let begin = items.partition_point(|item| key(item) < symbol);
    let length = items[begin..].partition_point(|item| key(item) == symbol);
    &items[begin..begin + length]
}

/// Remember where an entry is; this may forget all others. Of two entries with one hash, only the first is found again.
fn keep<T>(ids: &mut FxHashMap<u32, T>, hash: u32, id: T) {
    if ids.len() >= LOOKED_AMONG {
        ids.clear();
    }
    ids.insert(hash, id);
}

/// Lists of entries, alike ones stored once.
#[derive(Debug)]
struct Runs<T> {
    entries: Chunked<T>,
    /// Beginning and length of each run.
    table: Chunked<(u32, u32)>,
    ids: FxHashMap<u32, RunId>,
}

impl<T: Copy + Eq + Hash> Runs<T> {
    /// Only the empty run.
    fn new() -> Self {
        let mut table = Chunked::default();
        table.push((0, 0));
        Self { entries: Chunked::default(), table, ids: FxHashMap::default() }
    }

    #[inline]
    fn get(&self, id: RunId) -> &[T] {
        let &(begin, length) = self.table.get(id.index());
        self.entries.slice(begin as usize, length as usize)
    }

    fn intern(&mut self, run: &[T]) -> RunId {
        if run.is_empty() {
            return RunId(0);
        }
        let hash = hash(run);
        let known = self.ids.get(&hash).copied();
        if let Some(known) = known.filter(|&known| self.get(known) == run) {
            return known;
        }
        let id = RunId::from_index(self.table.len());
        let begin = u32::try_from(self.entries.append(run)).expect("a chart fits u32");
        self.table.push((begin, u32::try_from(run.len()).expect("a set fits u32")));
        if known.is_none() {
            keep(&mut self.ids, hash, id);
        }
        id
    }

    fn settle(&mut self) {
        self.ids = FxHashMap::default();
    }
}
