//! Texts that are bound at a set, where a bound text must come again.
//!
//! An item carries the text that its rule has bound. A lexeme must match the text of the innermost such rule around it.
//! The search for this rule follows the origins of the rules in between. Where two readings of L bind different texts
//! around one place, both texts are allowed: no language needs them distinguished.

use crate::bits;
use crate::chart::left::{LeftChart, waiting};
use crate::chart::predict::Predictions;
use crate::chart::texts::{NOTHING, Texts, WILD};
use crate::grammar::compiled::Grammar;
use crate::ids::{LexemeId, SetId, SymbolId, TextId};
use crate::language::compiled::Language;
use crate::language::marks::Mark;
use rustc_hash::FxHashSet;

impl LeftChart {
    /// Return whether a text can be read as a mark at a set.
    pub(super) fn takes_mark(
        &mut self,
        language: &Language,
        predictions: &Predictions,
        (set, lexeme): (SetId, LexemeId),
        mark: Mark,
        text: TextId,
    ) -> bool {
        if text == WILD {
            let met = !mark.binds && self.bound(language, predictions, set, SymbolId::from(lexeme)).contains(&WILD);
            self.texts.met_wild |= met;
            return true;
        }
        if mark.binds {
            return self.texts.slot(&language.lexer, text) == mark.slot;
        }
        let bound = self.bound(language, predictions, set, SymbolId::from(lexeme));
        bound.contains(&WILD) || Texts::is_known(text) && bound.contains(&text)
    }

    /// The texts that are bound where a lexeme must be one of them.
    pub(crate) fn bound(
        &mut self,
        language: &Language,
        predictions: &Predictions,
        set: SetId,
        lexeme: SymbolId,
    ) -> &[TextId] {
        let known = |chart: &Self| chart.set(set).bound.iter().position(|known| known.0 == lexeme);
        let at = known(self).unwrap_or_else(|| {
            let found = self.find_bound(&language.grammar, predictions, set, lexeme);
            let own = self.bound_mut(set);
            own.push((lexeme, found.into()));
            own.len() - 1
        });
        &self.set(set).bound[at].1
    }

    /// Texts that may have to come again next.
    pub(crate) fn all_bound(&mut self, language: &Language, predictions: &Predictions, set: SetId) -> Vec<TextId> {
        let lexemes: Vec<SymbolId> = language.marks.iter().flat_map(|marks| marks.matching()).collect();
        let mut found = Vec::new();
        for lexeme in lexemes {
            found.extend_from_slice(self.bound(language, predictions, set, lexeme));
        }
        found.retain(|&text| Texts::is_known(text));
        found.sort_unstable();
        found.dedup();
        found
    }

    /// All texts that are bound anywhere in the stack of a set.
    pub(crate) fn bound_around(&self, set: SetId) -> Vec<TextId> {
        let mut seen: FxHashSet<SetId> = FxHashSet::default();
        let (mut found, mut stack) = (Vec::new(), vec![set]);
        while let Some(at) = stack.pop() {
            for item in &self.set(at).items {
                if Texts::is_known(item.name) {
                    found.push(item.name);
                }
                if seen.insert(item.origin) {
                    stack.push(item.origin);
                }
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    fn find_bound(&self, grammar: &Grammar, predictions: &Predictions, set: SetId, lexeme: SymbolId) -> Vec<TextId> {
        let mut found = Vec::new();
        let mut seen: FxHashSet<(SetId, SymbolId)> = FxHashSet::default();
        let mut begun: Vec<(SetId, SymbolId)> = Vec::new();
        for item in waiting(grammar, &self.set(set).items, lexeme) {
            match item.name {
                NOTHING => begun.push((item.origin, grammar.lhs(item.dot))),
                name => found.push(name),
            }
        }
        let predicted = predictions.dots(grammar, self.set(set).prediction, lexeme).iter();
        begun.extend(predicted.map(|&dot| (set, grammar.lhs(dot))));
        while let Some((at, nonterminal)) = begun.pop() {
            if !seen.insert((at, nonterminal)) {
                continue;
            }
            for item in &self.set(at).items {
                let next = grammar.next(item.dot);
                let leads = !grammar.is_lexeme(next)
                    && bits::contains(grammar.closure(next), grammar.nonterminal_index(nonterminal));
                if leads {
                    match item.name {
                        NOTHING => begun.push((item.origin, grammar.lhs(item.dot))),
                        name => found.push(name),
                    }
                }
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }
}
