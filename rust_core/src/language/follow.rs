//! FOLLOW over free states: what the middle can do after a nonterminal where R puts no constraint.
//!
//! After a nonterminal the middle can go on from some free states. A language is *even* if every context of every
//! nonterminal allows the same ones. Then the dots of a stack's top set decide what may come next, unless a requirement
//! behind them is narrower. A stack without narrower requirements is *unconstrained* (see `Solver::is_unconstrained`).
//! It stays unconstrained whatever is read, and what it allows depends on nothing in R.

use crate::bits;
use crate::grammar::compiled::Grammar;
use crate::ids::{AcceptId, DotId, FreeId, LexemeId, StateId, SymbolId};
use crate::language::free::{Free, INFINITE, LINE, MIDDLE};
use crate::lexing::lexer::Lexer;
use rustc_hash::FxHashMap;

/// The free states from which the middle can go on, as masks with a bit for each free state.
#[derive(Debug)]
pub(crate) struct Follow {
    /// Per symbol: after it.
    after: Vec<u64>,
    /// Per dot: before the symbol after it.
    before: Vec<u64>,
    even: bool,
    /// Per rule of each nonterminal of a whole file, in order: whether more can follow.
    ends: FxHashMap<SymbolId, Vec<FileEnd>>,
}

/// Text that may come after a file that is whole by one rule of the start symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileEnd {
    /// Unknown.
    Closed,
    /// More of the file. Either the file is empty, or its rule is one nonterminal with which another possible beginning
    /// of the file begins and goes on (`lines: head | ended line`, `ended: lines semicolon`).
    Open,
    /// Nothing: the file has ended with a lexeme that only its end can end.
    Last,
}

impl Follow {
    /// Derive the masks of a language.
    #[must_use]
    pub(crate) fn derive(lexer: &Lexer, grammar: &Grammar, free: &Free, layout: bool) -> Self {
        let mut follow = Self {
            after: vec![0; grammar.symbol_count()],
            before: vec![0; grammar.dot_count()],
            even: free.count() <= 2 && free.is_separated() && free.shape().is_none(),
            ends: FxHashMap::default(),
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
        // A rule that ends with such a lexeme allows nothing after its beginning; the rule with the twin does.
        let is_last = |rule: usize| {
            grammar.rules()[rule]
                .rhs
                .iter()
                .any(|&symbol| grammar.is_lexeme(symbol) && free.lasts().has(LexemeId::from_index(symbol.index())))
        };
        let mut rules = 0..grammar.rules().len();
        follow.even = rules.all(|rule| is_last(rule) || follow.is_even_in(grammar, rule, &ends))
            && free.lasts().lexemes().iter().all(|&lexeme| has_twin(lexer, grammar, lexeme));
        let ends = |&file: &SymbolId| {
            let own = grammar.rules().iter().filter(|rule| rule.lhs == file);
            (file, own.map(|rule| follow.file_end(grammar, free, file, &rule.rhs)).collect())
        };
        follow.ends = grammar.files.iter().map(ends).collect();
        follow
    }

    /// Carry follow masks backwards through the rules once, and return whether one changed.
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

    /// Return whether each nonterminal of a rule can be followed there by all that follows it anywhere.
    fn is_even_in(&self, grammar: &Grammar, rule: usize, ends: &[u64]) -> bool {
        let right = &grammar.rules()[rule].rhs;
        right.iter().enumerate().filter(|(_, symbol)| !grammar.is_lexeme(**symbol)).all(|(position, symbol)| {
            let after = self.before[grammar.dot(rule, position + 1).index()];
            after & ends[symbol.index()] == self.after[symbol.index()] & ends[symbol.index()]
        })
    }

    /// Classify the end of a file that is whole by a rule of `file`; `right` is the rule's right side.
    fn file_end(&self, grammar: &Grammar, free: &Free, file: SymbolId, right: &[SymbolId]) -> FileEnd {
        let is_last = |symbol: Option<&SymbolId>| {
            symbol.is_some_and(|&symbol| {
                grammar.is_lexeme(symbol) && free.lasts().has(LexemeId::from_index(symbol.index()))
            })
        };
        if is_last(right.last()) {
            return FileEnd::Last;
        }
        let [only] = *right else { return if right.is_empty() { FileEnd::Open } else { FileEnd::Closed } };
        let mut own = grammar.rules().iter().filter(|rule| rule.lhs == only).peekable();
        if own.peek().is_some() && own.all(|rule| is_last(rule.rhs.last())) {
            return FileEnd::Last;
        }
        let goes_on = grammar.rules().iter().enumerate().any(|(index, rule)| {
            rule.rhs.len() > 1
                && rule.rhs[0] == only
                && begins(grammar, file, rule.lhs)
                && self.after[grammar.start.index()] & !self.before[grammar.dot(index, 1).index()] == 0
        });
        if goes_on { FileEnd::Open } else { FileEnd::Closed }
    }

    /// The free states from which the rest of a rule, and its followers, can go on.
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

    /// Return whether all contexts of a nonterminal allow the same. Only then do the masks decide what a stack allows.
    #[must_use]
    pub(crate) fn is_even(&self) -> bool {
        self.even
    }

    /// The class of the file's end, per rule of a nonterminal of whole files.
    #[must_use]
    pub(crate) fn file_ends(&self, file: SymbolId) -> &[FileEnd] {
        self.ends.get(&file).map_or(&[], Vec::as_slice)
    }
}

/// Return whether a file can begin with a nonterminal.
fn begins(grammar: &Grammar, file: SymbolId, nonterminal: SymbolId) -> bool {
    bits::contains(grammar.closure(file), nonterminal.index() - grammar.lexeme_count())
}

/// Return whether a lexeme that only the file's end can end always has a twin. Wherever the lexeme may come, so may its
/// twin, which begins alike and after which the middle goes on. An example is the comment of a last line, and one with
/// its line break. With a twin, a text that begins so can go on, whatever R is.
fn has_twin(lexer: &Lexer, grammar: &Grammar, last: LexemeId) -> bool {
    let has = |accept: AcceptId, lexeme: LexemeId| lexer.lexemes(accept).contains(&lexeme);
    let states = || (1..lexer.state_count()).map(StateId::from_index).filter(|&state| lexer.accepts(state));
    let is_like = |twin: LexemeId| {
        let mut own = states().filter(|&state| has(lexer.accept(state), last));
        own.all(|state| lexer.live(state).any(|accept| has(accept, twin)))
    };
    let twins: Vec<usize> = (0..grammar.lexeme_count())
        .filter(|&index| index != last.index() && is_like(LexemeId::from_index(index)))
        .collect();
    let beside = |list: SymbolId, file: SymbolId| {
        grammar.rules().iter().enumerate().any(|(index, rule)| {
            let first = || grammar.first(grammar.dot(index, 1));
            let is_other = rule.rhs.len() > 1 && rule.rhs[0] == list && begins(grammar, file, rule.lhs);
            is_other && twins.iter().any(|&twin| bits::contains(first(), twin))
        })
    };
    let begins_with_twin = |file: SymbolId| {
        let own = grammar.rules().iter().enumerate().filter(|(_, rule)| rule.lhs == file);
        own.map(|(index, _)| grammar.first(grammar.dot(index, 0)))
            .any(|first| twins.iter().any(|&twin| bits::contains(first, twin)))
    };
    let has_twin_in = |file: SymbolId, right: &[SymbolId]| match *right {
        [_] => begins_with_twin(file),
        [list, _] => beside(list, file),
        _ => false,
    };
    let last = SymbolId::from(last);
    grammar.rules().iter().filter(|rule| rule.rhs.contains(&last)).all(|rule| {
        let is_file = |symbol: SymbolId| grammar.files.contains(&symbol);
        let mut users = grammar.rules().iter().filter(|user| user.rhs.contains(&rule.lhs));
        rule.rhs.last() == Some(&last)
            && if is_file(rule.lhs) {
                has_twin_in(rule.lhs, &rule.rhs) && users.all(|user| !is_file(user.lhs) && user.lhs == grammar.start)
            } else {
                users.all(|user| user.rhs.len() == 1 && is_file(user.lhs) && has_twin_in(user.lhs, &rule.rhs))
            }
    })
}

/// The mask of one free state.
#[inline(always)]
#[must_use]
pub(crate) fn bit(state: FreeId) -> u64 {
    1 << state.0
}
