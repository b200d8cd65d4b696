//! Predicted items: a bitset of predicted nonterminals, and for each symbol the predicted dots before it, found when
//! they are first asked for. These are the precomputed item sets of Aycock & Horspool 2002, built once for all sessions
//! of a language. Most sets are read on by few of the symbols that they predict.

use crate::bits::{self, BitSet, numbers, words_for};
use crate::grammar::compiled::Grammar;
use crate::grammar::rules::END_OF_RULE;
use crate::ids::{DotId, SymbolId};
use crate::language::ahead::{Ahead, Aheads};
use crate::limits;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Index over the nonterminals that a set predicts.
#[derive(Debug)]
pub(crate) struct Prediction {
    nonterminals: Box<[u64]>,
    /// Bitset of the symbols that predicted items have next.
    symbols: Box<[u64]>,
    /// The number of those symbols before each word of the bitset.
    before: Box<[u32]>,
    /// Per such symbol, in ascending order: the predicted dots that have it next.
    dots: Box<[OnceLock<Box<[DotId]>>]>,
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
    /// Return whether a predicted item has the symbol next.
    #[inline]
    #[must_use]
    pub(crate) fn has(&self, symbol: SymbolId) -> bool {
        bits::contains(&self.symbols, symbol.index())
    }

    /// Predicted dots with the symbol next.
    #[inline]
    #[must_use]
    pub(crate) fn dots(&self, grammar: &Grammar, symbol: SymbolId) -> &[DotId] {
        if !self.has(symbol) {
            return &[];
        }
        let (word, bit) = (symbol.index() / 64, symbol.index() % 64);
        let rank = self.before[word] + (self.symbols[word] & ((1 << bit) - 1)).count_ones();
        self.dots[rank as usize].get_or_init(|| {
            let wanted =
                |dot: &&DotId| bits::contains(&self.nonterminals, grammar.nonterminal_index(grammar.lhs(**dot)));
            grammar.initial(symbol).iter().filter(wanted).copied().collect()
        })
    }

    /// The lexemes that predicted items have next.
    pub(crate) fn lexemes(&self, grammar: &Grammar) -> impl Iterator<Item = SymbolId> {
        numbers(&self.symbols).map(SymbolId::from_index).take_while(|&symbol| grammar.is_lexeme(symbol))
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
        let mut pending: Vec<DotId> = self.dots(grammar, symbol).iter().map(|&dot| Grammar::advance(dot)).collect();
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
                pending.extend(self.dots(grammar, lhs).iter().map(|&dot| Grammar::advance(dot)));
            }
        }
        dots.sort_unstable_by_key(|&dot| (grammar.next(dot), dot));
        let moves = !dots.is_empty() || !finished.is_empty();
        Chain { dots, finished, moves, ahead }
    }
}

fn build(grammar: &Grammar, nonterminals: &[u64]) -> Prediction {
    let mut symbols = vec![0u64; words_for::<u64>(grammar.symbol_count())];
    for nonterminal in numbers(nonterminals) {
        for symbol in grammar.first_symbols(nonterminal) {
            bits::insert(&mut symbols, symbol.index());
        }
    }
    let mut count = 0;
    let mut before = Vec::with_capacity(symbols.len());
    for word in &symbols {
        before.push(count);
        count += word.count_ones();
    }
    let lexemes = numbers(&symbols).map(SymbolId::from_index).take_while(|&symbol| grammar.is_lexeme(symbol));
    Prediction {
        modes: lexemes.fold(0, |modes, lexeme| modes | grammar.mode_kinds(lexeme)),
        nonterminals: nonterminals.into(),
        symbols: symbols.into(),
        before: before.into(),
        dots: std::iter::repeat_with(OnceLock::new).take(count as usize).collect(),
        chains: Mutex::default(),
    }
}
