//! Predicted items, never materialised: a bitset of predicted nonterminals has an index from each symbol to the
//! predicted dots before it. These are the precomputed item sets of Aycock & Horspool 2002, built once for all sessions
//! of a language.

use crate::bits::{BitSet, numbers};
use crate::grammar::compiled::Grammar;
use crate::grammar::rules::END_OF_RULE;
use crate::ids::{DotId, SymbolId};
use crate::language::ahead::{Ahead, Aheads};
use crate::limits;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::{Arc, Mutex, PoisonError};

/// Index over the nonterminals that a set predicts.
#[derive(Debug)]
pub(crate) struct Prediction {
    /// `dots[begin[symbol]..begin[symbol + 1]]` have the symbol next.
    begin: Box<[u32]>,
    dots: Box<[DotId]>,
    /// The modes and kinds of the lexemes among the symbols, as a mask.
    modes: u64,
    chains: Mutex<FxHashMap<SymbolId, Arc<Chain>>>,
}

/// Effect of a symbol on the predicted items of a set, whatever the set's own items are: the moved dots, and the
/// predicted nonterminals that it completes through unit chains. All of them begin at the set.
#[derive(Debug)]
pub(crate) struct Chain {
    /// Moved dots with something left to read.
    pub dots: Vec<DotId>,
    /// Completed nonterminals, as a bitset.
    pub finished: BitSet,
    /// True if it does anything to them.
    pub moves: bool,
    /// Union of what the moved dots allow next.
    pub ahead: Ahead,
}

impl Chain {
    /// Return whether a nonterminal is completed.
    #[inline(always)]
    #[must_use]
    pub(crate) fn finishes(&self, grammar: &Grammar, nonterminal: SymbolId) -> bool {
        self.finished.contains(grammar.nonterminal_index(nonterminal))
    }
}

/// Predictions that the sessions of one language have met, so that each is built once.
#[derive(Debug, Default)]
pub(crate) struct SharedPredictions(Mutex<FxHashMap<Box<[u64]>, Arc<Prediction>>>);

impl SharedPredictions {
    pub(crate) fn of(&self, grammar: &Grammar, nonterminals: &[u64]) -> Arc<Prediction> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(nonterminals).cloned();
        if let Some(known) = known {
            return known;
        }
        let built = Arc::new(build(grammar, nonterminals));
        let mut shared = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if shared.len() >= limits::SHARED_PREDICTIONS {
            shared.clear();
        }
        shared.entry(nonterminals.into()).or_insert(built).clone()
    }
}

impl Prediction {
    /// Predicted dots with the symbol next.
    #[inline]
    #[must_use]
    pub(crate) fn dots(&self, symbol: SymbolId) -> &[DotId] {
        &self.dots[self.begin[symbol.index()] as usize..self.begin[symbol.index() + 1] as usize]
    }

    /// The modes and kinds of the predicted lexemes, as a mask.
    #[inline]
    #[must_use]
    pub(crate) fn modes(&self) -> u64 {
        self.modes
    }

    /// The effect of a symbol on the predicted items, computed on demand.
    pub(crate) fn chain(&self, grammar: &Grammar, aheads: &Aheads, symbol: SymbolId) -> Arc<Chain> {
        let mut known = self.chains.lock().unwrap_or_else(PoisonError::into_inner);
        known.entry(symbol).or_insert_with(|| Arc::new(self.find_chain(grammar, aheads, symbol))).clone()
    }

    fn find_chain(&self, grammar: &Grammar, aheads: &Aheads, symbol: SymbolId) -> Chain {
        let mut finished = BitSet::new(grammar.nonterminal_count());
        let mut dots = Vec::new();
        let mut ahead = Ahead::default();
        let mut seen: FxHashSet<DotId> = FxHashSet::default();
        let mut pending: Vec<DotId> = self.dots(symbol).iter().map(|&dot| Grammar::advance(dot)).collect();
        while let Some(dot) = pending.pop() {
            if !seen.insert(dot) {
                continue;
            }
            let next = grammar.next(dot);
            if next != END_OF_RULE {
                dots.push(dot);
                if !aheads.is_empty() {
                    ahead.add(aheads.of(dot));
                }
                if grammar.nullable(next) {
                    pending.push(Grammar::advance(dot));
                }
                continue;
            }
            let lhs = grammar.lhs(dot);
            let index = grammar.nonterminal_index(lhs);
            if !finished.contains(index) {
                finished.insert(index);
                pending.extend(self.dots(lhs).iter().map(|&dot| Grammar::advance(dot)));
            }
        }
        dots.sort_unstable_by_key(|&dot| (grammar.next(dot), dot));
        let moves = !dots.is_empty() || !finished.is_empty();
        Chain { dots, finished, moves, ahead }
    }
}

fn build(grammar: &Grammar, nonterminals: &[u64]) -> Prediction {
    let mut wanted = vec![false; grammar.symbol_count()];
    for index in numbers(nonterminals) {
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
            modes |= grammar.mode_kinds(symbol);
        }
    }
    begin.push(u32::try_from(dots.len()).expect("dot count fits u32"));
    Prediction { begin: begin.into(), dots: dots.into(), modes, chains: Mutex::default() }
}
