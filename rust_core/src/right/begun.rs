//! Origins of the nonterminals that end at a node of R's chart, as the requirements ask for them.

use crate::grammar::compiled::Grammar;
use crate::ids::{DotId, NodeId, SourceId, SymbolId};
use crate::right::chart::Charted;
use crate::right::origins::Completed;
use crate::stop::poll;
use rustc_hash::FxHashSet;

/// Nodes already passed by walks back from the ends of a nonterminal's lists.
pub(crate) type Visited = FxHashSet<(DotId, SourceId, NodeId)>;

impl Charted {
    /// Add the nodes at which a nonterminal began that ends at one of some nodes, as far as a rule can ask for them.
    /// Walks stop where earlier ones have passed.
    pub(super) fn begun(
        &self,
        grammar: &Grammar,
        symbol: SymbolId,
        nodes: &[NodeId],
        passed: &mut Visited,
        found: &mut Vec<NodeId>,
    ) {
        let mut walk = Walk { charted: self, grammar, passed, stack: Vec::new() };
        for &node in nodes {
            found.extend(self.begun_at_nodes(grammar, symbol, node));
            if grammar.is_lone(symbol) {
                walk.start(symbol, None, node);
            }
        }
        walk.run(found);
    }

    /// The nodes at which a nonterminal began that ends at a node, unless it begins a list.
    fn begun_at_nodes<'a>(
        &'a self,
        grammar: &'a Grammar,
        symbol: SymbolId,
        node: NodeId,
    ) -> impl Iterator<Item = NodeId> + 'a {
        self.lattice.completed(node).filter_map(move |completed| match completed {
            Completed::One(ended, begun) => (ended == symbol).then_some(begun),
            Completed::Link(link, begun) => self.links.get(link).chain.finishes(grammar, symbol).then_some(begun),
        })
    }
}

/// Walk back through the elements of lists, to where they began. An element is awaited at a node, so it began at a
/// node.
struct Walk<'a> {
    charted: &'a Charted,
    grammar: &'a Grammar,
    passed: &'a mut Visited,
    stack: Vec<(DotId, SourceId, NodeId)>,
}

impl Walk<'_> {
    /// Start at the ends of a nonterminal's lists, or of one list.
    fn start(&mut self, symbol: SymbolId, only: Option<SourceId>, node: NodeId) {
        let charted = self.charted;
        for (part, _) in charted.lattice.parts(node) {
            let completed = &charted.parts.get(part).completed;
            let begin = completed.partition_point(|entry| entry.0 < symbol);
            for &(_, source, _) in completed[begin..].iter().take_while(|entry| entry.0 == symbol) {
                if !charted.parts.is_list(source) || only.is_some_and(|only| only != source) {
                    continue;
                }
                for (index, rule) in self.grammar.rules().iter().enumerate().filter(|(_, rule)| rule.lhs == symbol) {
                    self.push(self.grammar.dot(index, rule.rhs.len()), source, node);
                }
            }
        }
    }

    fn push(&mut self, dot: DotId, source: SourceId, node: NodeId) {
        if self.passed.insert((dot, source, node)) {
            self.stack.push((dot, source, node));
        }
    }

    fn run(&mut self, found: &mut Vec<NodeId>) {
        let (charted, grammar) = (self.charted, self.grammar);
        // Earley's completer backwards: the dot moves left over a symbol, to each node where that symbol began. A
        // list's items do not name their node, since all equal lists share them. `arrive` accepts a node only if the
        // item waits there.
        while let Some((dot, source, node)) = self.stack.pop() {
            poll();
            if grammar.position(dot) == 0 {
                continue;
            }
            let before = DotId(dot.0 - 1);
            let symbol = grammar.next(before);
            if grammar.nullable(symbol) {
                self.arrive(before, source, node, found);
            }
            if grammar.is_lexeme(symbol) {
                for (_, from) in charted.lattice.incoming(node).filter(|edge| edge.0 == symbol) {
                    self.arrive(before, source, from, found);
                }
                continue;
            }
            for from in charted.begun_at_nodes(grammar, symbol, node) {
                self.arrive(before, source, from, found);
            }
            // A rule that begins with its own nonterminal goes on from the end of the same list.
            if symbol == grammar.lhs(dot) && self.is_initial(before) {
                self.start(symbol, Some(source), node);
            }
        }
    }

    fn is_initial(&self, dot: DotId) -> bool {
        self.grammar.initial(self.grammar.next(dot)).contains(&dot)
    }

    /// Visit a dot at a node, if an item of the list, or one that begins the list, has it there.
    fn arrive(&mut self, dot: DotId, source: SourceId, node: NodeId, found: &mut Vec<NodeId>) {
        let (charted, grammar) = (self.charted, self.grammar);
        let place = charted.lattice.place(node).begun();
        let parts = || charted.lattice.parts(node);
        if self.is_initial(dot) && parts().any(|(part, _)| charted.parts.begins(grammar, source, part, place)) {
            found.push(node);
        }
        let waits = |item: &(DotId, SourceId, u32)| (item.0, item.1) == (dot, source);
        let waiting = |part| charted.parts.get(part).waiting(grammar, grammar.next(dot)).iter().any(waits);
        if parts().any(|(part, _)| waiting(part)) {
            self.push(dot, source, node);
        }
    }
}
