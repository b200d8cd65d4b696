//! Texts of R that bind, or that must equal a bound one.
//!
//! A rule that begins in R binds a text of R, which is read again where a text must match it. A rule that began before
//! R has bound a text that R does not know. Each text that R matches in such a rule gets a slot, and R then demands the
//! slot of the stack.

use crate::bits;
use crate::ids::{DotId, NodeId, OriginId, SymbolId};
use crate::language::marks::{CUTTABLE, Mark, NAMED, NAMED_CUTTABLE, OTHER};
use crate::right::chart::{Chart, Charted};
use crate::right::origins::{Base, Origins};
use rustc_hash::FxHashSet;

/// Rules around a symbol that bind a text.
#[derive(Clone, Copy, Debug, Default)]
struct Binders {
    /// True if a rule that began in R has bound the text.
    bound: bool,
    /// True if the binding rule may have begun in the middle.
    free: bool,
}

impl Chart<'_> {
    /// Return whether the text from a node to a position may be read as a mark there.
    pub(super) fn takes_mark(&mut self, id: NodeId, symbol: SymbolId, mark: Mark, end: u32) -> bool {
        let Some(position) = self.charted.lattice.place(id).position() else { return false };
        if !self.goes_on(symbol, end) {
            return false;
        }
        let lexer = &self.language.lexer;
        let text = &self.lexed.text()[position as usize..end as usize];
        let named = self.lexed.slots.named(text);
        if !mark.binds && mark.slot <= CUTTABLE {
            return self.around(id, symbol, text).bound;
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
        let is_free = if mark.binds { self.begins_before(id, symbol) } else { self.around(id, symbol, text).free };
        if !own.contains(&mark.slot) || !is_free {
            return false;
        }
        let text = text.to_vec();
        self.lexed.slots.give(lexer, &text) == mark.slot
    }

    /// Return whether R's next lexeme can come after a symbol. Most names are not matched, and fail here.
    fn goes_on(&self, symbol: SymbolId, end: u32) -> bool {
        let Some(position) = self.lexed.middle_position(end) else { return true };
        let Some((accept, _)) = self.lexed.symbol(position) else { return true };
        let next = self.language.lexer.lexemes(accept).iter().map(|&lexeme| SymbolId::from(lexeme));
        next.into_iter().any(|next| self.language.grammar.is_adjacent(symbol, next))
    }

    /// Return whether a rule that began in the middle waits for a symbol at a node.
    fn begins_before(&self, id: NodeId, symbol: SymbolId) -> bool {
        let Charted { lattice, parts, .. } = &*self.charted;
        lattice.parts(id).any(|(part, _)| !parts.get(part).waiting(&self.language.grammar, symbol).is_empty())
    }

    /// Find the binding rules around a symbol at a node: whether one that began in R has bound the text, and whether
    /// one may have begun in the middle.
    fn around(&self, id: NodeId, symbol: SymbolId, text: &[u8]) -> Binders {
        let grammar = &self.language.grammar;
        let charted = &self.charted;
        let mut around = Binders::default();
        let mut begun: Vec<(NodeId, SymbolId)> = Vec::new();
        let mut seen: FxHashSet<(NodeId, SymbolId)> = FxHashSet::default();
        for (dot, origin) in charted.waiting(grammar, id, symbol) {
            self.look(dot, origin, text, &mut begun, &mut around);
        }
        around.free |= self.begins_before(id, symbol);
        let predicted = self.predictions.dots(charted.lattice.set(id).prediction, symbol).iter();
        begun.extend(predicted.map(|&dot| (id, grammar.lhs(dot))));
        while let Some((at, nonterminal)) = begun.pop() {
            if around.bound && around.free || !seen.insert((at, nonterminal)) {
                continue;
            }
            let place = grammar.nonterminal_index(nonterminal);
            around.free |=
                charted.lattice.parts(at).any(|(part, _)| bits::contains(&charted.parts.get(part).predicts, place));
            let leads = |dot: DotId| {
                let next = grammar.next(dot);
                !grammar.is_lexeme(next) && bits::contains(grammar.closure(next), place)
            };
            let items = charted.lattice.items(at).filter(|item| leads(item.0));
            let linked = charted.lattice.links(at).flat_map(|(link, node)| {
                charted.links.get(link).dots.iter().map(move |&dot| (dot, Origins::at_node(node)))
            });
            for (dot, origin) in items.chain(linked.filter(|item| leads(item.0))) {
                self.look(dot, origin, text, &mut begun, &mut around);
            }
        }
        around
    }

    /// Return whether an item's rule has bound the text. If it has bound none, add its nonterminal and origin to
    /// `begun`.
    fn look(
        &self,
        dot: DotId,
        origin: OriginId,
        text: &[u8],
        begun: &mut Vec<(NodeId, SymbolId)>,
        around: &mut Binders,
    ) {
        let grammar = &self.language.grammar;
        let Base::Node(node) = self.charted.origins.get(origin).base else {
            around.free = true;
            return;
        };
        let rule = grammar.rule(dot);
        let binds = |&symbol: &SymbolId| {
            let mark = self.language.marks.as_ref().and_then(|marks| marks.of_symbol(symbol));
            mark.is_some_and(|mark| mark.binds)
        };
        match rule.rhs[..grammar.position(dot)].iter().position(binds) {
            None => begun.push((node, grammar.lhs(dot))),
            Some(place) => around.bound |= self.text_after(node, place) == Some(text),
        }
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
