//! Symbols that a set of the left chart allows next where its stack is unconstrained (see `follow`). They are the
//! accept sets that can be read, and the free states from which the middle can go on. They are found on demand and
//! interned: most sets of one kind of place allow the same.

use crate::bits::meet;
use crate::chart::left::{FIRST_SET, LeftChart};
use crate::chart::predict::Predictions;
use crate::ids::{NextId, PredictionId, SetId, SymbolId};
use crate::language::compiled::Language;
use rustc_hash::FxHashMap;

const UNKNOWN: NextId = NextId(u32::MAX);

/// Accept sets and free states that can come next.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Next {
    /// The free states from which the middle can go on.
    pub free: u64,
    /// The accept sets that can be read or ignored outside of brackets, as a mask.
    pub outside: Box<[u64]>,
    /// The accept sets that can be read or ignored inside of brackets, as a mask.
    pub inside: Box<[u64]>,
}

impl Next {
    /// Return whether one of some accept sets can come.
    #[inline(always)]
    #[must_use]
    pub(crate) fn takes(&self, outside: bool, accepts: &[u64]) -> bool {
        let own = if outside { &self.outside } else { &self.inside };
        meet(own, accepts)
    }
}

/// Answers of one session.
#[derive(Debug, Default)]
pub(crate) struct Nexts {
    table: Vec<Next>,
    ids: FxHashMap<Next, NextId>,
    of_set: Vec<NextId>,
    /// Per prediction: the accept sets that its lexemes stand in.
    of_prediction: Vec<Option<Box<[u64]>>>,
}

impl Nexts {
    /// An interned answer.
    #[inline(always)]
    #[must_use]
    pub(crate) fn get(&self, id: NextId) -> &Next {
        &self.table[id.index()]
    }

    /// The known answer of a set.
    #[inline(always)]
    #[must_use]
    pub(crate) fn known(&self, set: SetId) -> Option<NextId> {
        self.of_set.get(set.index()).copied().filter(|&id| id != UNKNOWN)
    }

    /// Forget the sets past a size of the chart.
    pub(crate) fn truncate(&mut self, sets: usize) {
        self.of_set.truncate(sets);
    }

    /// Compute what a set allows next.
    pub(crate) fn of(
        &mut self,
        language: &Language,
        left: &LeftChart,
        predictions: &Predictions,
        set: SetId,
    ) -> NextId {
        if let Some(known) = self.known(set) {
            return known;
        }
        let (grammar, masks) = (&language.grammar, &language.accept_masks);
        let source = left.set(set);
        let mut free = if source.accepts { language.follow.after(grammar.start) } else { 0 };
        let mut readable = self.predicted(language, predictions, source.prediction);
        if set == FIRST_SET {
            for symbol in (0..grammar.symbol_count()).map(SymbolId::from_index) {
                let own = grammar.initial(symbol).iter().filter(|&&dot| grammar.lhs(dot) == grammar.start);
                free |= own.fold(0, |mask, &dot| mask | language.follow.before(dot));
            }
        }
        for item in &source.items {
            free |= language.follow.before(item.dot);
            masks.add(grammar, &language.follow, item.dot, &mut readable);
        }
        let mut outside = readable.clone();
        masks.take(&mut outside, free, true);
        let mut inside = readable;
        masks.take(&mut inside, free, false);
        let next = Next { free, outside, inside };
        let id = match self.ids.get(&next) {
            Some(&id) => id,
            None => {
                let id = NextId::from_index(self.table.len());
                self.table.push(next.clone());
                self.ids.insert(next, id);
                id
            }
        };
        if self.of_set.len() <= set.index() {
            self.of_set.resize(set.index() + 1, UNKNOWN);
        }
        self.of_set[set.index()] = id;
        id
    }

    fn predicted(&mut self, language: &Language, predictions: &Predictions, id: PredictionId) -> Box<[u64]> {
        let index = id.index();
        if self.of_prediction.len() <= index {
            self.of_prediction.resize(index + 1, None);
        }
        if let Some(known) = &self.of_prediction[index] {
            return known.clone();
        }
        let (grammar, masks) = (&language.grammar, &language.accept_masks);
        let mut readable = vec![0u64; masks.words()].into_boxed_slice();
        for lexeme in predictions.lexemes(grammar, id) {
            for &dot in predictions.dots(grammar, id, lexeme) {
                masks.add(grammar, &language.follow, dot, &mut readable);
            }
        }
        self.of_prediction[index] = Some(readable.clone());
        readable
    }
}
