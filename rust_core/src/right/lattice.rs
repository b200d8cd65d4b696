//! Lattice over R: a node for each place at which R can go on, with the Earley set of the parses that reach it.

use crate::chunked::Chunked;
use crate::grammar::compiled::Grammar;
use crate::ids::{ChunkId, DotId, KindId, LinkId, NodeId, OriginId, PartId, RightSetId, SymbolId};
use crate::language::free::Cost;
use crate::right::origins::{At, Completed, NODES};
use crate::right::places::{ItemFilter, Place, Top};
use crate::right::sets::{Set, Sets};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A node of the lattice with its Earley set.
#[derive(Clone, Copy, Debug)]
struct Node {
    /// Byte offset in R; behind its end for the end of the file.
    position: u32,
    /// The kind of its place: the place without the position.
    kind: KindId,
    /// The last of the edges that lead here, plus one.
    edges: u32,
    /// The node made before this one at the same position, plus one.
    beside: u32,
    /// Its set, if completed, and its flags.
    state: u32,
    /// The offset of the set's parts, or the place of several offsets.
    offset: u32,
}

/// The file may begin at a node: nothing but blank lines stands before the cursor.
const FIRST: u32 = 1 << 31;

/// The cursor may fall on a node.
const CROSSED: u32 = 1 << 30;

/// The set of a node is not completed yet.
const OPEN: u32 = CROSSED - 1;

impl Node {
    #[inline]
    fn set(&self) -> RightSetId {
        let set = self.state & OPEN;
        RightSetId(if set == OPEN { 0 } else { set })
    }
}

/// A symbol read for the items that wait for it at a node and pass a filter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Incoming {
    pub(super) symbol: SymbolId,
    pub(super) from: NodeId,
    pub(super) filter: ItemFilter,
}

/// Symbols and items to be read into an incomplete set.
#[derive(Debug, Default)]
pub(super) struct Pending {
    pub(super) read: Vec<Incoming>,
    /// Other items: of blocks, and of the crossings.
    pub(super) items: Vec<(DotId, OriginId)>,
    pub(super) chunks: Vec<At<ChunkId>>,
}

/// An edge, and the previous edge to the same node (plus one).
#[derive(Debug)]
struct Edge {
    symbol: SymbolId,
    from: NodeId,
    before: u32,
}

/// Nodes at one position that are searched linearly. Where the end of a field leads into the texts of all kinds of
/// strings there are some twenty, made one after another.
const FEW: usize = if cfg!(test) { 3 } else { 32 };

/// The nodes, by their places.
#[derive(Debug)]
pub(super) struct Lattice {
    nodes: Chunked<Node>,
    edges: Chunked<Edge>,
    /// Offsets of the groups of a node's parts, where there are several.
    offsets: Chunked<Cost>,
    pending: FxHashMap<NodeId, Pending>,
    spare: Vec<Pending>,
    pub(super) sets: Sets,
    /// Kinds of places, as if at position 0.
    kinds: Vec<Place>,
    kind_ids: FxHashMap<Place, KindId>,
    /// Per position, and after them for the end of the file: the last of the few nodes made there, plus one.
    last_at: Vec<u32>,
    /// Further nodes, where one position has many.
    more: FxHashMap<(u32, KindId), NodeId>,
    /// Nodes with incomplete sets, in the order of completion.
    queue: BinaryHeap<Reverse<(u32, u64)>>,
    /// The length of R.
    end: u32,
    /// Size of all sets while the chart was made: items, links, parts and completions.
    pub(super) entries: usize,
}

impl Lattice {
    pub(super) fn new(end: usize) -> Self {
        Self {
            nodes: Chunked::default(),
            edges: Chunked::default(),
            offsets: Chunked::default(),
            pending: FxHashMap::default(),
            spare: Vec::new(),
            sets: Sets::new(),
            kinds: Vec::new(),
            kind_ids: FxHashMap::default(),
            last_at: vec![0; end + 2],
            more: FxHashMap::default(),
            queue: BinaryHeap::new(),
            end: u32::try_from(end).expect("R fits u32"),
            entries: 0,
        }
    }

    #[inline]
    fn node(&self, id: NodeId) -> &Node {
        self.nodes.get(id.index())
    }

    pub(super) fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// Return the place before which a node stands.
    #[inline]
    pub(super) fn place(&self, id: NodeId) -> Place {
        let node = self.node(id);
        self.kinds[node.kind.index()].at(node.position)
    }

    /// Return whether the file may begin at a node: only blank lines stand before the cursor.
    pub(super) fn is_first(&self, id: NodeId) -> bool {
        self.node(id).state & FIRST != 0
    }

    /// Return whether the cursor may fall on a node.
    pub(super) fn is_crossed(&self, id: NodeId) -> bool {
        self.node(id).state & CROSSED != 0
    }

    /// Let the cursor fall on a node, which may be the beginning of the file.
    pub(super) fn cross(&mut self, id: NodeId, is_first: bool) {
        self.nodes.get_mut(id.index()).state |= if is_first { CROSSED | FIRST } else { CROSSED };
    }

    /// Return whether the set of a node is completed.
    pub(super) fn is_processed(&self, id: NodeId) -> bool {
        self.node(id).state & OPEN != OPEN
    }

    /// The number of a node's set.
    #[inline]
    pub(super) fn set_id(&self, id: NodeId) -> RightSetId {
        self.node(id).set()
    }

    /// The kind of a node's place.
    #[inline]
    pub(super) fn kind_of(&self, id: NodeId) -> KindId {
        self.node(id).kind
    }

    /// The offsets of a node's parts, by group.
    #[inline]
    pub(super) fn offsets(&self, id: NodeId) -> &[Cost] {
        let node = self.node(id);
        match self.sets.get(node.set()).groups {
            0 => &[],
            1 => std::slice::from_ref(&node.offset),
            groups => self.offsets.slice(node.offset as usize, groups as usize),
        }
    }

    /// The set of a node.
    #[inline]
    pub(super) fn set(&self, id: NodeId) -> &Set {
        self.sets.get(self.node(id).set())
    }

    /// Put the completed set into a node, with the offset of each group of its parts.
    pub(super) fn put(&mut self, id: NodeId, set: RightSetId, offsets: &[Cost]) {
        assert!(set.0 < OPEN, "sets fit 30 bits");
        debug_assert_eq!(self.sets.get(set).groups as usize, offsets.len());
        let offset = match offsets {
            [] => 0,
            &[offset] => offset,
            offsets => u32::try_from(self.offsets.append(offsets)).expect("groups fit u32"),
        };
        let node = self.nodes.get_mut(id.index());
        node.state = node.state & (FIRST | CROSSED) | set.0;
        node.offset = offset;
    }

    /// Count the contents of a node.
    pub(super) fn count(&mut self, id: NodeId) {
        self.entries += self.sets.size(self.set_id(id));
    }

    /// Items at a node that began in R.
    pub(super) fn items(&self, id: NodeId) -> impl Iterator<Item = (DotId, OriginId)> + '_ {
        self.sets.items(self.node(id).set(), id)
    }

    /// Items at a node that began in R and have a symbol next.
    pub(super) fn items_before<'a>(
        &'a self,
        grammar: &Grammar,
        id: NodeId,
        symbol: SymbolId,
    ) -> impl Iterator<Item = (DotId, OriginId)> + use<'a> {
        self.sets.items_before(grammar, self.node(id).set(), id, symbol)
    }

    /// Links at a node: dots that began in R and moved together, with the node where they began.
    pub(super) fn links(&self, id: NodeId) -> impl Iterator<Item = (LinkId, NodeId)> + '_ {
        self.sets.links(self.node(id).set(), id)
    }

    /// Completions that end at a node and that a rule can ask for.
    pub(super) fn completed(&self, id: NodeId) -> impl Iterator<Item = Completed> + '_ {
        self.sets.completed(self.node(id).set(), id)
    }

    /// The node of a place, if some parse comes there.
    pub(super) fn get(&self, place: Place) -> Option<NodeId> {
        let kind = *self.kind_ids.get(&place.at(0))?;
        let at = self.position(place);
        self.find(at, kind).ok()
    }

    /// The node at a position with a kind, or the number of other nodes there, if few.
    fn find(&self, position: u32, kind: KindId) -> Result<NodeId, usize> {
        let mut others = 0;
        let mut at = self.last_at[position as usize];
        while let Some(index) = at.checked_sub(1) {
            let node = self.nodes.get(index as usize);
            if node.kind == kind {
                return Ok(NodeId(index));
            }
            others += 1;
            at = node.beside;
        }
        let more = if others < FEW { None } else { self.more.get(&(position, kind)) };
        more.copied().ok_or(others)
    }

    /// The free parts of a node, with their offsets.
    #[inline]
    pub(super) fn parts(&self, id: NodeId) -> impl ExactSizeIterator<Item = At<PartId>> + '_ {
        let offsets = self.offsets(id);
        let parts = self.sets.parts(self.set_id(id)).iter();
        parts.map(move |&(part, group, own)| (part, own.saturating_add(offsets[group as usize])))
    }

    /// Symbols and items to be read into the set of a node.
    pub(super) fn pending(&mut self, id: NodeId) -> &mut Pending {
        let spare = &mut self.spare;
        self.pending.entry(id).or_insert_with(|| spare.pop().unwrap_or_default())
    }

    /// Take the symbols and items of a node, to complete its set.
    pub(super) fn take_pending(&mut self, id: NodeId) -> Pending {
        self.pending.remove(&id).unwrap_or_default()
    }

    /// Recycle the buffers of a completed node.
    pub(super) fn spare(&mut self, mut pending: Pending) {
        pending.items.clear();
        pending.chunks.clear();
        pending.read.clear();
        self.spare.push(pending);
    }

    /// Add an edge.
    pub(super) fn connect(&mut self, symbol: SymbolId, from: NodeId, to: NodeId) {
        let last = &mut self.nodes.get_mut(to.index()).edges;
        self.edges.push(Edge { symbol, from, before: *last });
        *last = u32::try_from(self.edges.len()).expect("edges fit u32");
    }

    /// Symbols that lead to a node, with the nodes they come from.
    pub(super) fn incoming(&self, id: NodeId) -> impl Iterator<Item = (SymbolId, NodeId)> + '_ {
        let mut at = self.node(id).edges;
        std::iter::from_fn(move || {
            let edge = self.edges.get(at.checked_sub(1)? as usize);
            at = edge.before;
            Some((edge.symbol, edge.from))
        })
    }

    /// Drop the tables needed only while the chart is made.
    pub(super) fn settle(&mut self) {
        self.sets.settle();
        self.pending = FxHashMap::default();
        self.spare = Vec::new();
        self.queue = BinaryHeap::new();
    }

    /// The next node whose set is to be completed: every edge to it has been read.
    pub(super) fn pop(&mut self) -> Option<NodeId> {
        #[allow(clippy::cast_possible_truncation)] // the lower half
        self.queue.pop().map(|Reverse((_, id))| NodeId(id as u32))
    }

    /// The node of a place.
    pub(super) fn intern(&mut self, place: Place) -> NodeId {
        let kind = self.kind(place);
        let position = self.position(place);
        let others = match self.find(position, kind) {
            Ok(id) => return id,
            Err(others) => others,
        };
        let id = NodeId::from_index(self.nodes.len());
        assert!(id.0 < NODES / 2, "nodes fit 30 bits");
        let beside = if others < FEW {
            std::mem::replace(&mut self.last_at[position as usize], id.0 + 1)
        } else {
            self.more.insert((position, kind), id);
            0
        };
        self.nodes.push(Node { position, kind, edges: 0, beside, state: OPEN, offset: 0 });
        self.queue.push(Reverse((self.order(place), u64::from(id.0) | rank(place) << 32)));
        id
    }

    /// Intern a place without its position.
    fn kind(&mut self, place: Place) -> KindId {
        let kinds = &mut self.kinds;
        *self.kind_ids.entry(place.at(0)).or_insert_with_key(|&place| {
            kinds.push(place);
            KindId::from_index(kinds.len() - 1)
        })
    }

    fn position(&self, place: Place) -> u32 {
        place.position().unwrap_or(self.end + 1)
    }

    /// Nodes are processed from left to right; every edge leads to a later key.
    pub(super) fn order(&self, place: Place) -> u32 {
        match place {
            Place::Middle { position, .. }
            | Place::Nested { position }
            | Place::Code { position }
            | Place::Text { position, .. } => position * 2 + 1,
            Place::Line { position, .. } if position == self.end => self.end * 2 + 2,
            Place::Line { position, .. } => position * 2,
            Place::End => self.end * 2 + 3,
        }
    }
}

/// Rank among the nodes before one line: more closed blocks come first.
fn rank(place: Place) -> u64 {
    match place {
        Place::Line { top: Top::AboveEntry(_), .. } => 0,
        Place::Line { top: Top::Above, .. } => 1,
        Place::Line { top: Top::Exact(column), .. } => u64::from(u32::MAX - 1 - column.wide.min(u32::MAX - 3)),
        _ => u64::from(u32::MAX),
    }
}
