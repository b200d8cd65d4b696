//! The lattice over R: a node for each place that R can go on at, with the Earley set of the parses that come there.

use crate::ids::{DotId, FreeId, ModeId, NodeId, OriginId, PredictionId, SymbolId};
use crate::language::free::Cost;
use crate::lexing::layout::Column;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// What is on top of the indentation stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Top {
    /// This column.
    Exact(Column),
    /// Some column right of the next line's.
    Above,
    /// Some column right of the next line's that the indentation cut by the cursor can have (an index of entries).
    AboveEntry(u16),
    /// Nothing is known (in the first, partial line).
    Unknown,
}

/// What a node stands before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    /// A symbol at a byte of R, in a line whose column is `line`.
    Middle {
        /// Byte offset in R.
        position: u32,
        /// The line's own column, as far as it is known.
        line: Top,
    },
    /// The first symbol of a line at column `column`, with another column on top of the stack.
    Line {
        /// Byte offset in R.
        position: u32,
        /// The line's own column.
        column: Column,
        /// What is on top of the stack.
        top: Top,
    },
    /// A symbol of code inside a field of a formatted string, or whatever else stands between lexemes of another mode. Line
    /// breaks do not count there, and nothing is assumed of what comes after: the parser sees to it.
    Nested {
        /// Byte offset in R.
        position: u32,
    },
    /// A symbol of a mode that reads no code.
    Text {
        /// Byte offset in R.
        position: u32,
        /// The mode.
        mode: ModeId,
    },
    /// The end of the file, all blocks closed.
    End,
}

impl Place {
    /// The byte offset in R; none for the end of the file.
    #[must_use]
    pub(crate) fn position(self) -> Option<u32> {
        match self {
            Self::Middle { position, .. }
            | Self::Line { position, .. }
            | Self::Nested { position }
            | Self::Text { position, .. } => Some(position),
            Self::End => None,
        }
    }

    /// Whether it is inside of a literal that holds code.
    #[must_use]
    pub(super) fn is_in_literal(self) -> bool {
        matches!(self, Self::Nested { .. } | Self::Text { .. })
    }
}

/// What came before an item's dot began at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Base {
    Node(NodeId),
    Free(FreeId),
}

/// Where an item's rule began, with the columns of its block where it has read an INDENT: (below, block's own).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Origin {
    pub(super) base: Base,
    pub(super) block: Option<(Column, Column)>,
}

/// A node of the lattice with its Earley set.
#[derive(Debug)]
pub(crate) struct Node {
    /// Where it stands.
    pub place: Place,
    /// Symbols that lead here, with the nodes they come from.
    pub incoming: Vec<(SymbolId, NodeId)>,
    /// Completed nonterminals that end here, by the node they began at; sorted by nonterminal.
    pub completed: Vec<(SymbolId, NodeId)>,
    /// Completed nonterminals that end here and began in the middle; sorted by nonterminal.
    pub completed_free: Vec<(SymbolId, FreeId, Cost)>,
    pub(super) items: Vec<(DotId, OriginId)>,
    pub(super) free_items: Vec<(DotId, FreeId, Cost)>,
    pub(super) prediction: PredictionId,
    pub(super) pending: Vec<(DotId, OriginId)>,
    pub(super) pending_free: Vec<(DotId, FreeId, Cost)>,
    pub(super) processed: bool,
    /// The file may begin here: nothing but blank lines stands before the cursor.
    pub(super) first: bool,
}

/// Interned origins, each with the least bytes of middle that what precedes its items costs.
#[derive(Debug, Default)]
pub(super) struct Origins {
    table: Vec<(Origin, Cost)>,
    ids: FxHashMap<Origin, OriginId>,
}

impl Origins {
    /// Interns an origin; of several costs the least counts.
    pub(super) fn intern(&mut self, origin: Origin, cost: Cost) -> OriginId {
        if let Some(&id) = self.ids.get(&origin) {
            let known = &mut self.table[id.index()].1;
            *known = cost.min(*known);
            return id;
        }
        let id = OriginId::from_index(self.table.len());
        self.table.push((origin, cost));
        self.ids.insert(origin, id);
        id
    }

    /// The origin of what begins at a node itself.
    pub(super) fn at_node(&mut self, node: NodeId) -> OriginId {
        self.intern(Origin { base: Base::Node(node), block: None }, 0)
    }

    /// An interned origin.
    pub(super) fn known(&self, origin: Origin) -> OriginId {
        self.ids[&origin]
    }

    pub(super) fn get(&self, id: OriginId) -> Origin {
        self.table[id.index()].0
    }

    pub(super) fn cost(&self, id: OriginId) -> Cost {
        self.table[id.index()].1
    }
}

/// The nodes, by their places.
#[derive(Debug)]
pub(super) struct Lattice {
    nodes: Vec<Node>,
    ids: FxHashMap<Place, NodeId>,
    /// Nodes whose sets are to be completed, in the order in which that is done.
    queue: BTreeMap<(u32, u64), NodeId>,
    /// The length of R.
    end: u32,
}

impl Lattice {
    pub(super) fn new(end: usize) -> Self {
        Self {
            nodes: Vec::new(),
            ids: FxHashMap::default(),
            queue: BTreeMap::new(),
            end: u32::try_from(end).expect("R fits u32"),
        }
    }

    #[inline]
    pub(super) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    pub(super) fn node_mut(&mut self, id: NodeId) -> &mut Node {
        &mut self.nodes[id.index()]
    }

    pub(super) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The node of a place, if some parse comes there.
    pub(super) fn get(&self, place: Place) -> Option<NodeId> {
        self.ids.get(&place).copied()
    }

    /// The next node whose set is to be completed: every edge to it has been read.
    pub(super) fn pop(&mut self) -> Option<NodeId> {
        self.queue.pop_first().map(|(_, id)| id)
    }

    /// The node of a place.
    pub(super) fn intern(&mut self, place: Place) -> NodeId {
        if let Some(&id) = self.ids.get(&place) {
            return id;
        }
        let id = NodeId::from_index(self.nodes.len());
        self.nodes.push(Node {
            place,
            incoming: Vec::new(),
            completed: Vec::new(),
            completed_free: Vec::new(),
            items: Vec::new(),
            free_items: Vec::new(),
            prediction: PredictionId(0),
            pending: Vec::new(),
            pending_free: Vec::new(),
            processed: false,
            first: false,
        });
        self.ids.insert(place, id);
        self.queue.insert((self.order(place), u64::from(id.0) | rank(place) << 32), id);
        id
    }

    /// Nodes are processed from left to right; every edge leads to a later key.
    fn order(&self, place: Place) -> u32 {
        match place {
            Place::Middle { position, .. } | Place::Nested { position } | Place::Text { position, .. } => {
                position * 2 + 1
            }
            Place::Line { position, .. } if position == self.end => self.end * 2 + 2,
            Place::Line { position, .. } => position * 2,
            Place::End => self.end * 2 + 3,
        }
    }
}

/// Among the nodes before one line: what closes more blocks comes first.
fn rank(place: Place) -> u64 {
    match place {
        Place::Line { top: Top::AboveEntry(_), .. } => 0,
        Place::Line { top: Top::Above, .. } => 1,
        Place::Line { top: Top::Exact(column), .. } => u64::from(u32::MAX - 1 - column.wide.min(u32::MAX - 3)),
        _ => u64::from(u32::MAX),
    }
}
