//! Predicted items, never materialised: a set names a bitset of predicted nonterminals, interned with an index from symbol
//! to the predicted dots that have it next (design: precomputed item sets, Aycock & Horspool 2002).

use crate::grammar::{END_OF_RULE, Grammar};
use crate::ids::{DotId, SymbolId};
use crate::lexer::bits;
use crate::limits;
use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// An interned prediction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PredictionId(pub u32);

/// What one bitset of nonterminals predicts.
#[derive(Debug)]
pub struct Prediction {
    nonterminals: Box<[u64]>,
    /// `dots[begin[symbol]..begin[symbol + 1]]` have the symbol next.
    begin: Box<[u32]>,
    dots: Box<[DotId]>,
    /// The modes of the lexemes among the symbols, as a mask.
    modes: u64,
}

/// What the sessions of one grammar have met, so that each of them builds it once only.
#[derive(Debug, Default)]
pub struct SharedPredictions(Mutex<FxHashMap<Box<[u64]>, Arc<Prediction>>>);

impl SharedPredictions {
    fn of(&self, grammar: &Grammar, nonterminals: &[u64]) -> Arc<Prediction> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(nonterminals).cloned();
        if let Some(known) = known {
            return known;
        }
        let built = Arc::new(build(grammar, nonterminals.into()));
        let mut shared = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if shared.len() >= limits::SHARED_PREDICTIONS {
            shared.clear();
        }
        shared.entry(nonterminals.into()).or_insert(built).clone()
    }
}

/// All predictions met so far.
#[derive(Debug, Default)]
pub struct Predictions {
    table: Vec<Arc<Prediction>>,
    ids: FxHashMap<Box<[u64]>, PredictionId>,
    scratch: Vec<u64>,
}

impl Predictions {
    /// The prediction of a set whose items have these symbols next.
    pub fn of(&mut self, grammar: &Grammar, next: impl Iterator<Item = SymbolId>) -> PredictionId {
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
        self.table.push(grammar.shared_predictions().of(grammar, &nonterminals));
        self.ids.insert(nonterminals, id);
        id
    }

    /// Predicted dots with the symbol next.
    #[inline]
    #[must_use]
    pub fn dots(&self, id: PredictionId, symbol: SymbolId) -> &[DotId] {
        let prediction = &self.table[id.0 as usize];
        let index = symbol.index();
        &prediction.dots[prediction.begin[index] as usize..prediction.begin[index + 1] as usize]
    }

    /// The modes of the predicted lexemes, as a mask.
    #[inline]
    #[must_use]
    pub fn modes(&self, id: PredictionId) -> u64 {
        self.table[id.0 as usize].modes
    }

    /// Whether a nonterminal is predicted.
    #[must_use]
    pub fn predicts(&self, id: PredictionId, grammar: &Grammar, nonterminal: SymbolId) -> bool {
        let index = grammar.nonterminal_index(nonterminal);
        self.table[id.0 as usize].nonterminals[index / 64] >> (index % 64) & 1 == 1
    }
}

fn build(grammar: &Grammar, nonterminals: Box<[u64]>) -> Prediction {
    let mut wanted = vec![false; grammar.symbol_count()];
    for index in bits(&nonterminals) {
        wanted[index + grammar.lexeme_count()] = true;
    }
    let mut begin = Vec::with_capacity(grammar.symbol_count() + 1);
    let mut dots = Vec::new();
    let mut modes = 0;
    for symbol in 0..grammar.symbol_count() {
        let first = dots.len();
        begin.push(u32::try_from(first).expect("dot count fits u32"));
        let symbol = SymbolId::from_index(symbol);
        dots.extend(grammar.initial(symbol).iter().filter(|&&dot| wanted[grammar.lhs(dot).index()]));
        if grammar.is_lexeme(symbol) && dots.len() > first {
            modes |= 1 << grammar.mode_of(symbol).index();
        }
    }
    begin.push(u32::try_from(dots.len()).expect("dot count fits u32"));
    Prediction { nonterminals, begin: begin.into(), dots: dots.into(), modes }
}
