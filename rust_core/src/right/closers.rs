//! Brackets that R closes and that were opened before it, where several modes can be in force at once.
//!
//! No lexing of R stands by itself there. So they are read off the lattice: off the way from a node to the end of the
//! file that closes the fewest. Different lexings share nodes, so a way counts only if each of its symbols can come
//! after the one before.

use crate::ids::{LexemeId, NodeId, SymbolId};
use crate::language::compiled::Language;
use crate::lexing::roles::Role;
use crate::right::lattice::Lattice;
use crate::right::lex::Lexed;
use crate::right::places::Place;
use std::cmp::Reverse;

/// A symbol of R, with its nodes.
#[derive(Clone, Copy, Debug)]
struct Edge {
    symbol: SymbolId,
    from: NodeId,
    to: NodeId,
}

/// The rest of R from an edge on: brackets closed in it and opened before, and the next edge.
#[derive(Clone, Copy, Debug)]
struct Rest {
    unopened: u32,
    next: Option<usize>,
}

/// The rest of R from each symbol from which a way leads to the end of the file.
#[derive(Debug)]
pub(super) struct Closers {
    /// All edges, by the node where they begin.
    edges: Vec<Edge>,
    rests: Vec<Option<Rest>>,
    end: Option<NodeId>,
}

impl Closers {
    pub(super) fn of(language: &Language, lattice: &Lattice) -> Self {
        let nodes = (0..lattice.node_count()).map(NodeId::from_index);
        let incoming = |to| lattice.incoming(to).map(move |(symbol, from)| Edge { symbol, from, to });
        let mut edges: Vec<Edge> = nodes.flat_map(incoming).collect();
        edges.sort_unstable_by_key(|edge| edge.from);
        let mut closers = Self { rests: vec![None; edges.len()], edges, end: lattice.get(Place::End) };
        // Edges lead from left to right, so that the last ones come first.
        let mut order: Vec<usize> = (0..closers.edges.len()).collect();
        order.sort_unstable_by_key(|&index| Reverse(lattice.order(lattice.place(closers.edges[index].from))));
        for index in order {
            let Edge { symbol, to, .. } = closers.edges[index];
            let follows = |next: usize| language.grammar.is_adjacent(symbol, closers.edges[next].symbol);
            let Some((after, next)) = closers.least(to, follows) else { continue };
            let unopened = match language.role(LexemeId(symbol.0)) {
                Role::Open => after.saturating_sub(1),
                Role::Close => after + 1,
                _ => after,
            };
            closers.rests[index] = Some(Rest { unopened, next });
        }
        closers
    }

    /// The fewest brackets closed from a node on, with the first edge of that way, among edges that `fits` admits.
    fn least(&self, node: NodeId, fits: impl Fn(usize) -> bool) -> Option<(u32, Option<usize>)> {
        if Some(node) == self.end {
            return Some((0, None));
        }
        let begin = self.edges.partition_point(|edge| edge.from < node);
        let own = (begin..self.edges.len()).take_while(|&index| self.edges[index].from == node);
        let rests =
            own.filter(|&index| fits(index)).filter_map(|index| Some((self.rests[index]?.unopened, Some(index))));
        rests.min()
    }

    /// Number of brackets closed from a node on that were opened before it; `None` if no way leads to the end.
    pub(super) fn unopened(&self, node: NodeId) -> Option<u32> {
        self.least(node, |_| true).map(|least| least.0)
    }

    /// The closing brackets from a node on that nothing from there on opens, with their positions, in order; `None` if
    /// no way leads to the end.
    pub(super) fn closers<'a>(
        &self,
        lexed: &'a Lexed,
        lattice: &Lattice,
        from: NodeId,
    ) -> Option<Vec<(usize, &'a [u8])>> {
        let language = lexed.language();
        let mut found = Vec::new();
        let mut open = 0u32;
        let (_, mut at) = self.least(from, |_| true)?;
        while let Some(index) = at {
            let Edge { symbol, from, .. } = self.edges[index];
            match language.role(LexemeId(symbol.0)) {
                Role::Open => open += 1,
                Role::Close if open > 0 => open -= 1,
                Role::Close => found.extend(lexed.text_of(symbol, lattice.place(from).position()?)),
                _ => {}
            }
            at = self.rests[index]?.next;
        }
        Some(found)
    }
}
