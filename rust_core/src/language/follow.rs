//! What may come next where R asks for nothing that a free middle could not bring about.
//!
//! After a nonterminal the middle can go on from some free states. Where every context of every nonterminal allows the same
//! ones (a language is *even* then), what a parse stack allows next can be read off the dots of its top set alone, as long
//! as no colour behind them is narrower than that: such a stack is *loose* (see `Demands::is_loose`). A loose stack stays
//! loose whatever is read, and what it allows depends on nothing in R.

use crate::grammar::compiled::Grammar;
use crate::ids::{DotId, FreeId, SymbolId};
use crate::language::free::{Free, INFINITE, LINE, MIDDLE};

/// The free states from which the middle can go on, as masks with a bit for each free state.
#[derive(Debug)]
pub(crate) struct Follow {
    /// Per symbol: after it.
    after: Vec<u64>,
    /// Per dot: before the symbol after it.
    before: Vec<u64>,
    even: bool,
    open_ended: bool,
}

impl Follow {
    /// Derives the masks of a language.
    #[must_use]
    pub(crate) fn derive(grammar: &Grammar, free: &Free, layout: bool) -> Self {
        let mut follow = Self {
            after: vec![0; grammar.symbol_count()],
            before: vec![0; grammar.dot_count()],
            even: free.count() <= 2 && free.is_separated() && free.shape().is_none(),
            open_ended: false,
        };
        if !follow.even {
            return follow;
        }
        let ends: Vec<u64> = (0..grammar.symbol_count())
            .map(|symbol| {
                let reaches = |to: &FreeId| {
                    free.states().any(|from| free.relation(SymbolId::from_index(symbol), from, *to) != INFINITE)
                };
                free.states().filter(reaches).fold(0, |mask, to| mask | bit(to))
            })
            .collect();
        follow.after[grammar.start.index()] = bit(if layout { LINE } else { MIDDLE });
        while follow.sweep(grammar, free, &ends) {}
        follow.even = (0..grammar.rules().len()).all(|rule| follow.is_even_in(grammar, rule, &ends));
        follow.open_ended = follow.has_open_end(grammar);
        follow
    }

    /// Carries what may come after rules backwards through them, once; whether anything changed.
    fn sweep(&mut self, grammar: &Grammar, free: &Free, ends: &[u64]) -> bool {
        let mut changed = false;
        for (index, rule) in grammar.rules().iter().enumerate() {
            let mut mask = self.after[rule.lhs.index()];
            for position in (0..=rule.rhs.len()).rev() {
                if let Some(&symbol) = rule.rhs.get(position) {
                    let after = self.after[symbol.index()] | mask & ends[symbol.index()];
                    changed |= after != self.after[symbol.index()];
                    self.after[symbol.index()] = after;
                    let mut before = if grammar.nullable(symbol) { mask } else { 0 };
                    for from in free.states() {
                        let leads = |to: &FreeId| mask & bit(*to) != 0 && free.relation(symbol, from, *to) != INFINITE;
                        if free.states().any(|to| leads(&to)) {
                            before |= bit(from);
                        }
                    }
                    mask = before;
                }
                self.before[grammar.dot(index, position).index()] = mask;
            }
        }
        changed
    }

    /// Whether each nonterminal of a rule can be followed there by all that can follow it anywhere.
    fn is_even_in(&self, grammar: &Grammar, rule: usize, ends: &[u64]) -> bool {
        let right = &grammar.rules()[rule].rhs;
        right.iter().enumerate().filter(|(_, symbol)| !grammar.is_lexeme(**symbol)).all(|(position, symbol)| {
            let after = self.before[grammar.dot(rule, position + 1).index()];
            after & ends[symbol.index()] == self.after[symbol.index()] & ends[symbol.index()]
        })
    }

    /// Whether whatever ends the file can be followed by more of it: the start is nothing but a list, and what can follow a
    /// finished list can be its next entry.
    fn has_open_end(&self, grammar: &Grammar) -> bool {
        let own = |symbol: SymbolId| grammar.rules().iter().enumerate().filter(move |(_, rule)| rule.lhs == symbol);
        own(grammar.start).all(|(_, rule)| match rule.rhs[..] {
            [] => true,
            [list] => own(list).any(|(index, rule)| {
                rule.rhs.len() > 1
                    && rule.rhs[0] == list
                    && self.after[grammar.start.index()] & !self.before[grammar.dot(index, 1).index()] == 0
            }),
            _ => false,
        })
    }

    /// The free states from which the rest of a rule, and what may come after it, can go on.
    #[inline(always)]
    #[must_use]
    pub(crate) fn before(&self, dot: DotId) -> u64 {
        self.before[dot.index()]
    }

    /// The free states from which the middle can go on after a nonterminal.
    #[inline(always)]
    #[must_use]
    pub(crate) fn after(&self, symbol: SymbolId) -> u64 {
        self.after[symbol.index()]
    }

    /// Whether all contexts of a nonterminal allow the same: only then do the masks say what a stack allows.
    #[must_use]
    pub(crate) fn is_even(&self) -> bool {
        self.even
    }

    /// Whether a file's end can always be followed by more of it.
    #[must_use]
    pub(crate) fn is_open_ended(&self) -> bool {
        self.open_ended
    }
}

/// The mask of one free state.
#[inline(always)]
#[must_use]
pub(crate) fn bit(state: FreeId) -> u64 {
    1 << state.0
}
