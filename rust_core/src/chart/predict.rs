//! Predictions that one session has met, numbered. A set of a chart names its prediction by number.

use crate::bits::{unite, words_for};
use crate::grammar::compiled::Grammar;
use crate::grammar::rules::END_OF_RULE;
use crate::ids::{DotId, PredictionId, SymbolId};
use crate::language::compiled::Language;
use crate::language::prediction::{Chain, Prediction};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// All predictions met so far.
#[derive(Debug, Default)]
pub(crate) struct Predictions {
    table: Vec<Arc<Prediction>>,
    ids: FxHashMap<Box<[u64]>, PredictionId>,
    chains: FxHashMap<(PredictionId, SymbolId), Arc<Chain>>,
    scratch: Vec<u64>,
}

impl Predictions {
    /// The prediction of a set whose items have these symbols next.
    pub(crate) fn of(&mut self, language: &Language, next: impl Iterator<Item = SymbolId>) -> PredictionId {
        self.united(language, next, std::iter::empty())
    }

    /// The union of the predictions of given symbols and of given predictions.
    pub(crate) fn united<'a>(
        &mut self,
        language: &Language,
        next: impl Iterator<Item = SymbolId>,
        predicted: impl Iterator<Item = &'a [u64]>,
    ) -> PredictionId {
        let grammar = &language.grammar;
        self.clear(grammar);
        self.add(grammar, next);
        for more in predicted {
            unite(&mut self.scratch, more);
        }
        self.intern(language)
    }

    fn clear(&mut self, grammar: &Grammar) {
        self.scratch.clear();
        self.scratch.resize(words_for::<u64>(grammar.nonterminal_count()), 0);
    }

    fn add(&mut self, grammar: &Grammar, next: impl Iterator<Item = SymbolId>) {
        let mut previous = END_OF_RULE;
        for symbol in next {
            if symbol == END_OF_RULE || symbol == previous || grammar.is_lexeme(symbol) {
                continue;
            }
            previous = symbol;
            unite(&mut self.scratch, grammar.closure(symbol));
        }
    }

    fn intern(&mut self, language: &Language) -> PredictionId {
        if let Some(&id) = self.ids.get(self.scratch.as_slice()) {
            return id;
        }
        let id = PredictionId::from_index(self.table.len());
        let nonterminals: Box<[u64]> = self.scratch.clone().into_boxed_slice();
        self.table.push(language.predictions.of(&language.grammar, &nonterminals));
        self.ids.insert(nonterminals, id);
        id
    }

    /// Return whether a predicted item has the symbol next.
    #[inline]
    #[must_use]
    pub(crate) fn has(&self, id: PredictionId, symbol: SymbolId) -> bool {
        self.table[id.index()].has(symbol)
    }

    /// Predicted dots with the symbol next.
    #[inline]
    #[must_use]
    pub(crate) fn dots(&self, grammar: &Grammar, id: PredictionId, symbol: SymbolId) -> &[DotId] {
        self.table[id.index()].dots(grammar, symbol)
    }

    /// The lexemes that predicted items have next.
    pub(crate) fn lexemes(&self, grammar: &Grammar, id: PredictionId) -> impl Iterator<Item = SymbolId> {
        self.table[id.index()].lexemes(grammar)
    }

    /// Effect of a symbol on the predicted items.
    pub(crate) fn chain(&mut self, language: &Language, id: PredictionId, symbol: SymbolId) -> &Arc<Chain> {
        let table = &self.table;
        let find = || table[id.index()].chain(&language.grammar, &language.aheads, symbol);
        self.chains.entry((id, symbol)).or_insert_with(find)
    }

    /// The modes and kinds of the predicted lexemes, as a mask.
    #[inline]
    #[must_use]
    pub(crate) fn modes(&self, id: PredictionId) -> u64 {
        self.table[id.index()].modes()
    }
}
