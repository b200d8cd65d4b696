//! Texts of R that bind, or that have to be the one which was bound.
//!
//! A rule that begins in R binds a text of R, which is read again where one has to match it. A rule that began before R has bound
//! a text that R does not know: each text that R matches so gets a slot, which is what R then demands of the stack.

use crate::bits;
use crate::ids::{DotId, NodeId, OriginId, SymbolId};
use crate::language::marks::{CUTTABLE, Mark, NAMED, NAMED_CUTTABLE, OTHER};
use crate::right::chart::Chart;
use crate::right::origins::{Base, Origins};
use rustc_hash::FxHashSet;

impl Chart<'_> {
    /// Whether the text from a node to a position may be read as a mark there.
    pub(super) fn takes_mark(&mut self, id: NodeId, symbol: SymbolId, mark: Mark, end: u32) -> bool {
        let Some(position) = self.charted.lattice.place(id).position() else { return false };
        if !self.goes_on(symbol, end) {
            return false;
        }
        let lexer = &self.language.lexer;
        let text = &self.lexed.text()[position as usize..end as usize];
        let named = self.lexed.slots.named(text);
        if !mark.binds && mark.slot <= CUTTABLE {
            let text = text.to_vec();
            return self.is_bound(id, symbol, &text);
        }
        let slot = named.unwrap_or_else(|| match self.lexed.slots.is_cuttable(lexer, text) {
            true => CUTTABLE,
            false => OTHER,
        });
        if slot > CUTTABLE || mark.slot <= CUTTABLE {
            return slot == mark.slot;
        }
        // The first of R's own texts that needs a slot takes the first one that is free.
        let own = if slot == CUTTABLE { NAMED_CUTTABLE..=NAMED_CUTTABLE } else { NAMED };
        if !own.contains(&mark.slot) || !self.is_free(id, symbol) {
            return false;
        }
        let text = text.to_vec();
        self.lexed.slots.give(lexer, &text) == mark.slot
    }

    /// Whether what R has next can come after a symbol: most names are none of those that are matched.
    fn goes_on(&self, symbol: SymbolId, end: u32) -> bool {
        let Some(position) = self.lexed.middle_position(end) else { return true };
        let Some((accept, _)) = self.lexed.symbol(position) else { return true };
        let next = self.language.lexer.lexemes(accept).iter().map(|&lexeme| SymbolId::from(lexeme));
        next.into_iter().any(|next| self.language.grammar.is_adjacent(symbol, next))
    }

    /// Whether a rule that began in the middle waits for a symbol at a node, or predicts it there.
    fn is_free(&self, id: NodeId, symbol: SymbolId) -> bool {
        let grammar = &self.language.grammar;
        let charted = &self.charted;
        let begun: Vec<SymbolId> = grammar.initial(symbol).iter().map(|&dot| grammar.lhs(dot)).collect();
        charted.lattice.parts(id).any(|(part, _)| {
            let part = charted.parts.get(part);
            !part.waiting(grammar, symbol).is_empty()
                || begun.iter().any(|&lhs| bits::contains(&part.predicts, grammar.nonterminal_index(lhs)))
        })
    }

    /// Whether a rule that began in R has bound a text where one has to be read at a node.
    fn is_bound(&self, id: NodeId, symbol: SymbolId, text: &[u8]) -> bool {
        let grammar = &self.language.grammar;
        let charted = &self.charted;
        let mut begun: Vec<(NodeId, SymbolId)> = Vec::new();
        let mut seen: FxHashSet<(NodeId, SymbolId)> = FxHashSet::default();
        for (dot, origin) in charted.waiting(grammar, id, symbol) {
            if self.has_bound(dot, origin, text, &mut begun) {
                return true;
            }
        }
        let predicted = self.predictions.dots(charted.lattice.set(id).prediction, symbol).iter();
        begun.extend(predicted.map(|&dot| (id, grammar.lhs(dot))));
        while let Some((at, nonterminal)) = begun.pop() {
            if !seen.insert((at, nonterminal)) {
                continue;
            }
            let place = grammar.nonterminal_index(nonterminal);
            let leads = |dot: DotId| {
                let next = grammar.next(dot);
                !grammar.is_lexeme(next) && bits::contains(grammar.closure(next), place)
            };
            let items = charted.lattice.items(at).filter(|item| leads(item.0));
            let linked = charted.lattice.links(at).flat_map(|(link, node)| {
                charted.links.get(link).dots.iter().map(move |&dot| (dot, Origins::at_node(node)))
            });
            for (dot, origin) in items.chain(linked.filter(|item| leads(item.0))) {
                if self.has_bound(dot, origin, text, &mut begun) {
                    return true;
                }
            }
        }
        false
    }

    /// Whether an item's rule has bound a text; if it has bound none, what it began as is added to `begun`.
    fn has_bound(&self, dot: DotId, origin: OriginId, text: &[u8], begun: &mut Vec<(NodeId, SymbolId)>) -> bool {
        let grammar = &self.language.grammar;
        let Base::Node(node) = self.charted.origins.get(origin).base else { return false };
        let rule = grammar.rule(dot);
        let binds = |&symbol: &SymbolId| {
            let marks = self.language.marks.as_ref().and_then(|marks| marks.of_symbol(symbol));
            marks.is_some_and(|mark| mark.binds)
        };
        match rule.rhs[..grammar.position(dot)].iter().position(binds) {
            None => begun.push((node, grammar.lhs(dot))),
            Some(place) => return self.text_after(node, place) == Some(text),
        }
        false
    }

    /// The text of the lexeme after some others from a node on.
    fn text_after(&self, node: NodeId, lexemes: usize) -> Option<&[u8]> {
        let mut at = self.charted.lattice.place(node).position()?;
        for _ in 0..lexemes {
            let (_, end) = self.lexed.symbol(at)?;
            at = self.lexed.middle_position(end)?;
        }
        let (_, end) = self.lexed.symbol(at)?;
        Some(&self.lexed.text()[at as usize..end as usize])
    }
}
