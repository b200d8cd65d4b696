//! Texts of R that bind, or that must equal a bound one.
//!
//! A rule that begins in R binds a text of R, which is read again where a text must match it. A rule that began before
//! R has bound a text that R does not know. Each text that R matches in such a rule gets a slot, and R then demands the
//! slot of the stack.
//!
//! Where two readings of R bind different texts around one place, both texts are allowed there, as in L.

use crate::bits;
use crate::ids::{DotId, ModeId, NodeId, OriginId, SymbolId};
use crate::language::marks::{CUTTABLE, Mark, NAMED, NAMED_CUTTABLE, OTHER};
use crate::right::chart::{Chart, Charted};
use crate::right::lex::texts_after;
use crate::right::origins::{Base, Origins};
use crate::right::places::Place;
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
        let Some(begin) = self.charted.lattice.place(id).position() else { return false };
        let takes = self.goes_on(symbol, end) && self.is_in_slot(id, symbol, mark, (begin, end));
        if takes && mark.binds {
            self.bind(id, symbol, (begin, end));
        }
        takes
    }

    /// Return whether a part of R, read as a mark, is a text of the mark's slot. A text that R needs distinguished may
    /// be given the slot.
    fn is_in_slot(&mut self, id: NodeId, symbol: SymbolId, mark: Mark, (begin, end): (u32, u32)) -> bool {
        let lexer = &self.language.lexer;
        let text = &self.lexed.text()[begin as usize..end as usize];
        let named = self.lexed.slots.named(text);
        if !mark.binds && mark.slot <= CUTTABLE {
            return self.around(id, symbol, text).bound;
        }
        let slot = named.unwrap_or_else(|| match self.lexed.slots.is_cuttable(lexer, text) {
            true => CUTTABLE,
            false => OTHER,
        });
        if slot > CUTTABLE && slot == mark.slot && !mark.binds {
            // Several texts may share the slot.
            let around = self.around(id, symbol, text);
            return around.bound || around.free;
        }
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

    /// Record a part of R that binds, for the rules that began in R and wait for it at a node.
    fn bind(&mut self, id: NodeId, symbol: SymbolId, part: (u32, u32)) {
        let Charted { bound, .. } = &*self.charted;
        let predicted = self.predictions.dots(&self.language.grammar, self.charted.lattice.set(id).prediction, symbol);
        let predicted = predicted.iter().map(|&dot| (dot, Origins::at_node(id)));
        let waiting = self.charted.waiting(&self.language.grammar, id, symbol).chain(predicted);
        let begun = waiting.filter_map(|(dot, origin)| match self.charted.origins.get(origin).base {
            Base::Node(node) => Some((dot, node)),
            Base::Free(_) => None,
        });
        let is_new = |binder: &(DotId, NodeId)| bound.get(binder).is_none_or(|parts| !parts.contains(&part));
        let begun: Vec<(DotId, NodeId)> = begun.filter(is_new).collect();
        for binder in begun {
            self.charted.bound.entry(binder).or_default().push(part);
        }
    }

    /// The text of a match that leads on from a node; `None` for another symbol.
    pub(super) fn matched_text(&self, symbol: SymbolId, from: NodeId) -> Option<&[u8]> {
        self.language.marks.as_ref()?.of_symbol(symbol).filter(|mark| !mark.binds)?;
        let position = self.charted.lattice.place(from).position()?;
        Some(self.lexed.text_of(symbol, position)?.1)
    }

    /// Return whether R cannot begin with the end of the text that a symbol matches. Then a rule that began in the middle
    /// has bound the whole text there.
    pub(super) fn is_bound_whole(&self, symbol: SymbolId) -> bool {
        let mark = self.language.marks.as_ref().and_then(|marks| marks.of_symbol(symbol));
        mark.is_some_and(|mark| !mark.binds && NAMED.contains(&mark.slot))
    }

    /// Return whether an item may go on over a match: its rule has bound no text itself, or has bound this one.
    pub(super) fn may_match(&self, dot: DotId, origin: OriginId, text: &[u8]) -> bool {
        let Base::Node(node) = self.charted.origins.get(origin).base else { return true };
        self.binder(dot).is_none_or(|binder| self.has_bound(binder, node, text))
    }

    /// The dot before the text that a rule has bound before a dot.
    fn binder(&self, dot: DotId) -> Option<DotId> {
        self.language.marks.as_ref()?.binder(&self.language.grammar, dot)
    }

    /// Return whether a rule that began at a node has bound a text.
    fn has_bound(&self, binder: DotId, node: NodeId, text: &[u8]) -> bool {
        let mut parts = self.charted.bound.get(&(binder, node)).into_iter().flatten();
        parts.any(|&(begin, end)| &self.lexed.text()[begin as usize..end as usize] == text)
    }

    /// Return whether R's next lexeme can come after a symbol. Most names are not matched, and fail here.
    fn goes_on(&self, symbol: SymbolId, end: u32) -> bool {
        let grammar = &self.language.grammar;
        let lexemes = |accept| self.language.lexer.lexemes(accept).iter().map(|&lexeme| SymbolId::from(lexeme));
        if grammar.unites_modes() {
            let after = grammar.modes_after_lexeme(symbol);
            let code = self.lexed.code_place(end);
            let is_code = after & grammar.code_modes() != 0;
            let places = texts_after(after & !grammar.code_modes(), end).map(|(place, _)| place);
            return places.chain(is_code.then_some(code)).any(|place| {
                let Some(position) = place.position() else { return true };
                let modes = match place {
                    Place::Text { mode, .. } => 1 << mode.index(),
                    _ => grammar.code_modes(),
                };
                bits::ones(modes).map(ModeId::from_index).any(|mode| {
                    let Some((accept, _)) = self.lexed.symbol_in(mode, position) else { return false };
                    lexemes(accept).any(|next| grammar.mode_of(next) == mode && grammar.is_adjacent(symbol, next))
                })
            });
        }
        let Some(position) = self.lexed.middle_position(end) else { return true };
        let Some((accept, _)) = self.lexed.symbol(position) else { return true };
        lexemes(accept).any(|next| grammar.is_adjacent(symbol, next))
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
        let predicted = self.predictions.dots(grammar, charted.lattice.set(id).prediction, symbol).iter();
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
        match self.binder(dot) {
            None => begun.push((node, grammar.lhs(dot))),
            Some(binder) => around.bound |= self.has_bound(binder, node, text),
        }
    }
}
