//! Least costs of the items of one closure of R's free part ([`crate::right::parts`]), and the order to find them in.

use crate::grammar::compiled::Grammar;
use crate::grammar::rules::END_OF_RULE;
use crate::ids::{DotId, SourceId};
use crate::language::free::{Cost, INFINITE};
use rustc_hash::FxHashMap;

/// A free item: the dot, the rule's origin, and the cost of its part before the cursor.
pub(super) type FreeItem = (DotId, SourceId, Cost);

/// Items of a closure whose rules have still to be followed, the cheapest first. Following an item adds no lower costs,
/// so nearly all are followed once (Dijkstra 1959, with buckets in place of a heap).
#[derive(Debug, Default)]
pub(super) struct Pending {
    /// Items by cost. The last bucket holds all that cost more, in no order.
    buckets: Vec<Vec<FreeItem>>,
    /// No bucket before this one has items.
    at: usize,
}

/// Costs with a bucket of their own. Unit: bytes.
const BUCKETS: usize = 256;

impl Pending {
    pub(super) fn begin(&mut self) {
        self.buckets.resize_with(BUCKETS + 1, Vec::new);
        self.at = 0;
    }

    pub(super) fn push(&mut self, item: FreeItem) {
        let bucket = (item.2 as usize).min(BUCKETS);
        self.at = self.at.min(bucket);
        self.buckets[bucket].push(item);
    }

    pub(super) fn pop(&mut self) -> Option<FreeItem> {
        while self.at < BUCKETS && self.buckets[self.at].is_empty() {
            self.at += 1;
        }
        self.buckets[self.at].pop()
    }
}

/// Most free states whose dots have rows of their own in [`Least`]. A language with blanks between symbols has one.
const MOST_ROWS: usize = 4;

/// If more than one in so many dots has an item, all dots are looked at in place of sorting the items.
const MANY: usize = 16;

/// Least costs of the items of one closure. Thousands of them may have begun in the middle: these have a table by dot.
#[derive(Debug, Default)]
pub(super) struct Least {
    /// Per free state and dot; [`INFINITE`] for items that the closure lacks.
    free: Vec<Cost>,
    /// The other items: those of lists, and of languages with many free states.
    others: FxHashMap<(DotId, SourceId), Cost>,
    /// Items of the table, in the order of their first visit.
    found: Vec<(DotId, SourceId)>,
    dots: usize,
    rows: usize,
}

impl Least {
    pub(super) fn begin(&mut self, dots: usize, free_states: usize) {
        if self.free.is_empty() && free_states <= MOST_ROWS {
            (self.dots, self.rows) = (dots, free_states);
            self.free = vec![INFINITE; dots * free_states];
        }
        for &(dot, from) in &self.found {
            self.free[from.index() * self.dots + dot.index()] = INFINITE;
        }
        self.found.clear();
        self.others.clear();
    }

    pub(super) fn get(&self, dot: DotId, from: SourceId) -> Cost {
        if from.index() < self.rows {
            self.free[from.index() * self.dots + dot.index()]
        } else {
            self.others.get(&(dot, from)).copied().unwrap_or(INFINITE)
        }
    }

    /// Lower the cost of an item, and return whether it was higher.
    pub(super) fn lower(&mut self, dot: DotId, from: SourceId, cost: Cost) -> bool {
        let known = self.get(dot, from);
        if cost >= known {
            return false;
        }
        if from.index() >= self.rows {
            self.others.insert((dot, from), cost);
            return true;
        }
        self.free[from.index() * self.dots + dot.index()] = cost;
        if known == INFINITE {
            self.found.push((dot, from));
        }
        true
    }

    /// The items that some rule goes on with, at their least costs, by the symbol after the dot.
    pub(super) fn items(&self, grammar: &Grammar) -> Vec<FreeItem> {
        let mut items = Vec::with_capacity(self.found.len() + self.others.len());
        if self.found.len() > self.dots / MANY {
            for dot in grammar.dots_by_next() {
                let rows = (0..self.rows).map(SourceId::from_index).map(|from| (dot, from, self.get(dot, from)));
                items.extend(rows.filter(|item| item.2 != INFINITE));
            }
        } else {
            items.extend(self.found.iter().map(|&(dot, from)| (dot, from, self.get(dot, from))));
        }
        items.extend(self.others.iter().map(|(&(dot, from), &cost)| (dot, from, cost)));
        items.retain(|item| grammar.next(item.0) != END_OF_RULE);
        // The stable sort takes the sorted run at the beginning as it is.
        items.sort_by_key(|&(dot, from, _)| (grammar.next(dot), dot, from));
        items
    }
}
