//! Origins of the items of R's chart.

use crate::ids::{FreeId, LinkId, NodeId, OriginId, SymbolId};
use crate::language::free::Cost;
use crate::lexing::layout::Column;
use rustc_hash::FxHashMap;

/// Beginning of an item's rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Base {
    /// At a node.
    Node(NodeId),
    /// In the middle.
    Free(FreeId),
}

/// Beginning of an item's rule, with the columns of its block where it has read an INDENT: (below, block's own).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Origin {
    pub(super) base: Base,
    pub(super) block: Option<(Column, Column)>,
}

/// A value with an offset to its costs.
pub(super) type At<T> = (T, Cost);

/// A completed nonterminal, or all nonterminals of a link, with their origins.
#[derive(Clone, Copy, Debug)]
pub(super) enum Completed {
    One(SymbolId, NodeId),
    Link(LinkId, NodeId),
}

/// Interned origins. One that is more than a node has the least bytes of middle before its items.
#[derive(Debug, Default)]
pub(super) struct Origins {
    table: Vec<(Origin, Cost)>,
    ids: FxHashMap<Origin, OriginId>,
}

/// Numbers from here on are nodes.
pub(super) const NODES: u32 = 1 << 31;

impl Origins {
    /// Intern an origin; of several costs the least counts.
    pub(super) fn intern(&mut self, origin: Origin, cost: Cost) -> OriginId {
        if let Origin { base: Base::Node(node), block: None } = origin {
            return Self::at_node(node);
        }
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

    /// The origin of items that begin at a node itself.
    #[inline]
    pub(super) fn at_node(node: NodeId) -> OriginId {
        OriginId(NODES | node.0)
    }

    /// The node of such an origin.
    #[inline]
    pub(super) fn node_of(id: OriginId) -> Option<NodeId> {
        (id.0 >= NODES).then_some(NodeId(id.0 ^ NODES))
    }

    #[inline]
    pub(super) fn get(&self, id: OriginId) -> Origin {
        match Self::node_of(id) {
            Some(node) => Origin { base: Base::Node(node), block: None },
            None => self.table[id.index()].0,
        }
    }

    pub(super) fn cost(&self, id: OriginId) -> Cost {
        if id.0 >= NODES { 0 } else { self.table[id.index()].1 }
    }
}
