//! Links: the effect of completing or reading a symbol on the predicted dots of a node, computed once for each
//! prediction.

use crate::bits::{insert, unite, words_for};
use crate::chart::predict::Predictions;
use crate::grammar::compiled::Grammar;
use crate::ids::{DotId, LinkId, LoneId, PredictionId, SymbolId};
use crate::language::compiled::Language;
use crate::language::prediction::Chain;
use crate::right::places::{Begun, ItemFilter};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A [`Chain`] in the chart over R: all of it begins at one node, except dots with which lists may begin.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) chain: Arc<Chain>,
    /// The moved dots, by the symbol after them, but those that lists may begin with.
    pub(super) dots: Box<[DotId]>,
    /// The moved dots that lists may begin with, if there are any.
    pub(super) lone: Option<LoneId>,
    /// Bitset of the nonterminals that `dots` predict.
    pub(super) predicts: Box<[u64]>,
    /// Bitset of the nonterminals that `dots` wait for.
    pub(super) waits: Box<[u64]>,
    /// True if any nonterminal is finished.
    pub(super) finishes: bool,
}

/// Moved dots after reading a symbol at a node.
#[derive(Debug)]
pub(super) struct Reading {
    /// Those with which no list may begin.
    pub(super) dots: Box<[DotId]>,
    /// Those with which lists may begin, if there are any.
    pub(super) lone: Option<LoneId>,
    /// True if it is not empty and holds all dots that the symbol moves.
    pub(super) is_whole: bool,
}

/// Moved dots of nonterminals that stand first in no rule but their own.
#[derive(Debug)]
pub(super) struct LoneDots {
    pub(super) dots: Box<[DotId]>,
    /// Bitset of their nonterminals.
    pub(super) nonterminals: Box<[u64]>,
}

/// All links of one R.
#[derive(Debug)]
pub(super) struct Links {
    table: Vec<Arc<Link>>,
    ids: FxHashMap<(PredictionId, SymbolId), LinkId>,
    readings: FxHashMap<(PredictionId, SymbolId, ItemFilter, Begun), Arc<Reading>>,
    lone_dots: Vec<Arc<LoneDots>>,
}

impl Links {
    pub(super) fn new() -> Self {
        Self { table: Vec::new(), ids: FxHashMap::default(), readings: FxHashMap::default(), lone_dots: Vec::new() }
    }

    #[inline]
    pub(super) fn get(&self, id: LinkId) -> &Arc<Link> {
        &self.table[id.index()]
    }

    #[inline]
    pub(super) fn lone_dots(&self, id: LoneId) -> &Arc<LoneDots> {
        &self.lone_dots[id.index()]
    }

    /// The effect of completing a symbol on a prediction.
    pub(super) fn of(
        &mut self,
        language: &Language,
        predictions: &mut Predictions,
        prediction: PredictionId,
        symbol: SymbolId,
    ) -> LinkId {
        if let Some(&known) = self.ids.get(&(prediction, symbol)) {
            return known;
        }
        let grammar = &language.grammar;
        let chain = predictions.chain(language, prediction, symbol).clone();
        let (dots, lone) = self.split(grammar, chain.dots.iter().copied());
        let words = words_for::<u64>(grammar.nonterminal_count());
        let (mut predicts, mut waits) = (vec![0; words], vec![0; words]);
        for next in dots.iter().map(|&dot| grammar.next(dot)).filter(|&next| !grammar.is_lexeme(next)) {
            unite(&mut predicts, grammar.closure(next));
            insert(&mut waits, grammar.nonterminal_index(next));
        }
        let id = LinkId::from_index(self.table.len());
        let finishes = !chain.finished.is_empty();
        self.table.push(Arc::new(Link { chain, dots, lone, predicts: predicts.into(), waits: waits.into(), finishes }));
        self.ids.insert((prediction, symbol), id);
        id
    }

    /// The effect of reading a symbol on a prediction at a place, restricted by a filter.
    pub(super) fn reading(
        &mut self,
        grammar: &Grammar,
        predictions: &Predictions,
        (prediction, symbol): (PredictionId, SymbolId),
        filter: ItemFilter,
        begun: Begun,
    ) -> Arc<Reading> {
        let key = (prediction, symbol, filter, begun);
        if let Some(known) = self.readings.get(&key) {
            return known.clone();
        }
        let moved = || predictions.dots(grammar, prediction, symbol).iter().map(|&dot| Grammar::advance(dot));
        let takes = |dot: &DotId| filter.admits(grammar, *dot, Some(begun));
        let is_whole = moved().next().is_some() && moved().all(|dot| takes(&dot));
        let (dots, lone) = self.split(grammar, moved().filter(takes));
        let reading = Arc::new(Reading { dots, lone, is_whole });
        self.readings.insert(key, reading.clone());
        reading
    }

    /// Split moved dots into those with which no list may begin, and those with which lists may.
    fn split(&mut self, grammar: &Grammar, dots: impl Iterator<Item = DotId>) -> (Box<[DotId]>, Option<LoneId>) {
        let (lone, dots): (Vec<DotId>, Vec<DotId>) = dots.partition(|&dot| grammar.is_lone(grammar.lhs(dot)));
        if lone.is_empty() {
            return (dots.into(), None);
        }
        let mut nonterminals = vec![0; words_for::<u64>(grammar.nonterminal_count())];
        for &dot in &lone {
            insert(&mut nonterminals, grammar.nonterminal_index(grammar.lhs(dot)));
        }
        let id = LoneId::from_index(self.lone_dots.len());
        self.lone_dots.push(Arc::new(LoneDots { dots: lone.into(), nonterminals: nonterminals.into() }));
        (dots.into(), Some(id))
    }

    /// Drop the tables needed only while the chart is made.
    pub(super) fn settle(&mut self) {
        self.ids = FxHashMap::default();
        self.readings = FxHashMap::default();
        self.lone_dots = Vec::new();
    }
}
