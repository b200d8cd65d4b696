//! The predictions that one session has met, by number: a set of a chart names what it predicts by one of them.

use crate::grammar::compiled::Grammar;
use crate::grammar::rules::END_OF_RULE;
use crate::ids::{DotId, SymbolId};
use crate::language::compiled::Language;
use crate::language::prediction::{Chain, Prediction};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// An interned prediction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PredictionId(pub u32);

/// All predictions met so far.
#[derive(Debug, Default)]
pub struct Predictions {
    table: Vec<Arc<Prediction>>,
    ids: FxHashMap<Box<[u64]>, PredictionId>,
    chains: FxHashMap<(PredictionId, SymbolId), Arc<Chain>>,
    scratch: Vec<u64>,
}

impl Predictions {
    /// The prediction of a set whose items have these symbols next.
    pub fn of(&mut self, language: &Language, next: impl Iterator<Item = SymbolId>) -> PredictionId {
        let grammar = &language.grammar;
        self.scratch.clear();
        self.scratch.resize(grammar.closure_words(), 0);
        let mut previous = END_OF_RULE;
        for symbol in next {
            if symbol == END_OF_RULE || symbol == previous || grammar.is_lexeme(symbol) {
                continue;
            }
            previous = symbol;
            for (word, &more) in self.scratch.iter_mut().zip(grammar.closure(symbol)) {
                *word |= more;
            }
        }
        if let Some(&id) = self.ids.get(self.scratch.as_slice()) {
            return id;
        }
        let id = PredictionId(u32::try_from(self.table.len()).expect("prediction count fits u32"));
        let nonterminals: Box<[u64]> = self.scratch.clone().into_boxed_slice();
        self.table.push(language.predictions.of(grammar, &nonterminals));
        self.ids.insert(nonterminals, id);
        id
    }

    /// Predicted dots with the symbol next.
    #[inline]
    #[must_use]
    pub fn dots(&self, id: PredictionId, symbol: SymbolId) -> &[DotId] {
        self.table[id.0 as usize].dots(symbol)
    }

    /// What a symbol does to the predicted items.
    pub fn chain(&mut self, language: &Language, id: PredictionId, symbol: SymbolId) -> &Arc<Chain> {
        let table = &self.table;
        let find = || table[id.0 as usize].chain(&language.grammar, &language.aheads, symbol);
        self.chains.entry((id, symbol)).or_insert_with(find)
    }

    /// The modes of the predicted lexemes, as a mask.
    #[inline]
    #[must_use]
    pub fn modes(&self, id: PredictionId) -> u64 {
        self.table[id.0 as usize].modes()
    }

    /// Whether a nonterminal is predicted.
    #[must_use]
    pub fn predicts(&self, id: PredictionId, grammar: &Grammar, nonterminal: SymbolId) -> bool {
        self.table[id.0 as usize].predicts(grammar, nonterminal)
    }
}
