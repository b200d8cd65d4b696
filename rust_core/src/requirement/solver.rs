//! Requirements of R on the sets of the left chart: where the cursor may fall after a set, and whether they constrain
//! it.

use crate::bits::{BitSet, contains, meet};
use crate::chart::left::{FIRST_SET, Item};
use crate::grammar::compiled::Grammar;
use crate::ids::{FreeId, RequirementId, SetId, SymbolId};
use crate::language::compiled::Language;
use crate::language::follow::FileEnd;
use crate::language::free::{Cost, INFINITE};
use crate::requirement::frames::Frames;
use crate::requirement::requirements::{Context, Requirements};
use crate::right::queries::Right;
use crate::stop::poll;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// Places where the cursor may fall right after a set of the left chart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Reachability {
    /// Least bytes of further middle, per priced state, the free states first.
    pub free: Vec<Cost>,
    /// Bitset over [`Requirements::targets`].
    pub targets: Vec<u64>,
}

impl Reachability {
    /// Return whether the cursor may fall on a target.
    #[inline]
    #[must_use]
    pub(crate) fn reaches(&self, target: usize) -> bool {
        contains(&self.targets, target)
    }

    /// Return whether the cursor may fall on one of some targets.
    #[inline]
    #[must_use]
    pub(crate) fn meets(&self, targets: &[u64]) -> bool {
        meet(targets, &self.targets)
    }

    /// Least bytes of further middle from a priced state.
    #[inline]
    #[must_use]
    pub(crate) fn cost(&self, free: FreeId) -> Cost {
        self.free[free.index()]
    }
}

/// Requirements of one session, and the answers derived from them for sets.
#[derive(Debug)]
pub(crate) struct Solver {
    /// The requirements.
    pub requirements: Requirements,
    frames: Frames,
    reachabilities: FxHashMap<SetId, Arc<Reachability>>,
}

impl Solver {
    /// Nothing is known of any set.
    #[must_use]
    pub(crate) fn new(language: &Language, right: &Right) -> Self {
        Self {
            requirements: Requirements::new(language, right),
            frames: Frames::default(),
            reachabilities: FxHashMap::default(),
        }
    }

    /// Forget the answers for sets at or past a size of the left chart.
    pub(crate) fn truncate(&mut self, sets: usize) {
        self.frames.truncate(sets);
        self.reachabilities.retain(|set, _| set.index() < sets);
    }

    /// The numbers of interned requirements and frames.
    #[must_use]
    pub(crate) fn sizes(&self) -> (usize, usize) {
        (self.requirements.len(), self.frames.len())
    }

    /// Return the places where the parse may be once the nonterminal begun at a set is finished.
    pub(crate) fn requirement(&mut self, context: Context<'_>, set: SetId, nonterminal: SymbolId) -> RequirementId {
        self.frames.requirement(&mut self.requirements, context, set, nonterminal)
    }

    /// Return the places where the cursor may fall right after a set.
    pub(crate) fn reachability(&mut self, context: Context<'_>, set: SetId) -> Arc<Reachability> {
        if let Some(known) = self.reachabilities.get(&set) {
            return known.clone();
        }
        let grammar = &context.language.grammar;
        let mut free = vec![INFINITE; context.language.free.priced_count()];
        let mut targets = vec![0u64; self.requirements.targets().len().div_ceil(64)];
        let mut reached: FxHashSet<RequirementId> = FxHashSet::default();
        if set == FIRST_SET {
            let before = self.requirements.before_symbol(context, grammar.start, self.requirements.bottom());
            reached.insert(self.requirements.intern(before));
        }
        if context.left.set(set).accepts {
            reached.insert(self.requirements.bottom());
        }
        let items = &context.left.set(set).items;
        for item in items {
            poll();
            let behind = self.requirement(context, item.origin, grammar.lhs(item.dot));
            let indents = context.left.indents(item.origin);
            let over = (item.dot, self.frames.floor(item.origin));
            reached.insert(self.requirements.step_item(context, behind, item, over, indents));
        }
        for requirement in reached {
            for (word, &more) in targets.iter_mut().zip(self.requirements.projection(requirement)) {
                *word |= more;
            }
            for (cell, &cost) in free.iter_mut().zip(&self.requirements.get(requirement).free) {
                *cell = cost.min(*cell);
            }
        }
        let reachability = Arc::new(Reachability { free, targets });
        self.reachabilities.insert(set, reachability.clone());
        reachability
    }

    /// Return whether the cursor may fall on one of some targets right after a set. This agrees with
    /// [`Solver::reachability`], but visits only items whose rule can go on with a symbol that leaves a target.
    pub(crate) fn reaches(&mut self, context: Context<'_>, set: SetId, targets: &[usize]) -> bool {
        if set == FIRST_SET || self.reachabilities.contains_key(&set) {
            let reachability = self.reachability(context, set);
            return targets.iter().any(|&target| reachability.reaches(target));
        }
        let source = context.left.set(set);
        if source.accepts
            && targets.iter().any(|&target| self.requirements.projects(self.requirements.bottom(), target))
        {
            return true;
        }
        let grammar = &context.language.grammar;
        for item in &source.items {
            let first = grammar.first(item.dot);
            let can = |target: usize| meet(first, self.requirements.leaving(target));
            if !targets.iter().any(|&target| can(target)) {
                continue;
            }
            let behind = self.requirement(context, item.origin, grammar.lhs(item.dot));
            let indents = context.left.indents(item.origin);
            let over = (item.dot, self.frames.floor(item.origin));
            let requirement = self.requirements.step_item(context, behind, item, over, indents);
            if targets.iter().any(|&target| self.requirements.projects(requirement, target)) {
                return true;
            }
        }
        false
    }

    /// Return whether the stack of a set is unconstrained. It is if, wherever one of its rules ends, the middle can go
    /// on from every free state that can follow the rule at all (see `follow`). Then R puts no constraint on the next
    /// symbols, however far the stack is popped.
    pub(crate) fn is_unconstrained(&mut self, context: Context<'_>, set: SetId) -> bool {
        let follow = &context.language.follow;
        let grammar = &context.language.grammar;
        if !follow.is_even() || !self.is_unconstrained_below(context, set) {
            return false;
        }
        let mut seen = BitSet::new(context.left.len());
        let mut stack = vec![set];
        while let Some(at) = stack.pop() {
            poll();
            for item in &context.left.set(at).items {
                let lhs = grammar.lhs(item.dot);
                if !is_file(context, item.origin, lhs) {
                    let requirement = self.requirement(context, item.origin, lhs);
                    if follow.after(lhs) & !self.requirements.open_mask(requirement) != 0 {
                        return false;
                    }
                }
                if !seen.contains(item.origin.index()) {
                    seen.insert(item.origin.index());
                    stack.push(item.origin);
                }
            }
        }
        true
    }

    /// Return whether the end of the file constrains the middle as little as possible. Either R is empty of demands, or
    /// more of the file can always follow each symbol that may finish the stack of a set.
    fn is_unconstrained_below(&mut self, context: Context<'_>, set: SetId) -> bool {
        let follow = &context.language.follow;
        let grammar = &context.language.grammar;
        if follow.after(grammar.start) & !self.requirements.open_mask(self.requirements.bottom()) == 0 {
            return true;
        }
        let files = files(context, set);
        !files.is_empty() && files.into_iter().all(|file| self.lets_follow(context, set, file))
    }

    /// Return whether more of a file that begins at a set can always follow each symbol that may finish a stack on it.
    fn lets_follow(&mut self, context: Context<'_>, set: SetId, (begin, file): (SetId, SymbolId)) -> bool {
        let follow = &context.language.follow;
        let grammar = &context.language.grammar;
        let own = || grammar.rules().iter().filter(|rule| rule.lhs == file);
        if own().all(|rule| rule.rhs.is_empty()) {
            return false; // the file is empty: R is what follows another first lexeme
        }
        let mut finished = None;
        own().zip(follow.file_ends(file)).all(|(rule, end)| match (end, &rule.rhs[..]) {
            (FileEnd::Last, _) | (FileEnd::Open, []) => true,
            (end, &[only]) => {
                let is_open = *end == FileEnd::Open && {
                    let requirement = self.requirement(context, begin, only);
                    follow.after(only) & !self.requirements.open_mask(requirement) == 0
                };
                is_open
                    || set != begin
                        && !finished.get_or_insert_with(|| finished_at(context, set, begin)).contains(only.index())
            }
            _ => false,
        })
    }
}

/// Return whether a nonterminal begun at a set is the whole file, behind a first lexeme if the language has any.
fn is_file(context: Context<'_>, set: SetId, nonterminal: SymbolId) -> bool {
    let grammar = &context.language.grammar;
    if set == FIRST_SET {
        return nonterminal == grammar.start;
    }
    grammar.files.contains(&nonterminal) && begins_file(context, set, nonterminal)
}

fn begins_file(context: Context<'_>, set: SetId, file: SymbolId) -> bool {
    let grammar = &context.language.grammar;
    let begins = |item: &Item| {
        let outer = item.origin == FIRST_SET && grammar.lhs(item.dot) == grammar.start;
        outer && grammar.next(item.dot) == file
    };
    context.left.set(set).items.iter().any(begins)
}

/// The sets where whole files begin on the stacks of a set, each with its nonterminal.
fn files(context: Context<'_>, set: SetId) -> Vec<(SetId, SymbolId)> {
    let grammar = &context.language.grammar;
    if grammar.files == [grammar.start] {
        return vec![(FIRST_SET, grammar.start)];
    }
    let mut found = Vec::new();
    let mut seen: FxHashSet<SetId> = std::iter::once(set).collect();
    let mut stack = vec![set];
    while let Some(at) = stack.pop() {
        poll();
        found.extend(grammar.files.iter().filter(|&&file| begins_file(context, at, file)).map(|&file| (at, file)));
        let origins = context.left.set(at).items.iter().map(|item| item.origin);
        stack.extend(origins.filter(|&origin| seen.insert(origin)));
    }
    found
}

/// Superset of the symbols that begin where the file does and that the stack of a later set may still finish. It does
/// not check whether a rule was predicted where its first symbol began.
fn finished_at(context: Context<'_>, set: SetId, begin: SetId) -> BitSet {
    let grammar = &context.language.grammar;
    let mut finished: FxHashMap<SetId, BitSet> = FxHashMap::default();
    let items = &context.left.set(set).items;
    let mut open: Vec<(SetId, SymbolId)> = items.iter().map(|item| (item.origin, grammar.lhs(item.dot))).collect();
    while let Some((at, symbol)) = open.pop() {
        poll();
        let known = finished.entry(at).or_insert_with(|| BitSet::new(grammar.symbol_count()));
        if known.contains(symbol.index()) {
            continue;
        }
        known.insert(symbol.index());
        open.extend(grammar.initial(symbol).iter().map(|&dot| (at, grammar.lhs(dot))));
        for item in &context.left.set(at).items {
            if can_begin(grammar, &grammar.rule(item.dot).rhs[grammar.position(item.dot)..], symbol) {
                open.push((item.origin, grammar.lhs(item.dot)));
            }
        }
    }
    finished.remove(&begin).unwrap_or_else(|| BitSet::new(grammar.symbol_count()))
}

/// Return whether a symbol is the first of `symbols`, or comes after nullable ones.
fn can_begin(grammar: &Grammar, symbols: &[SymbolId], symbol: SymbolId) -> bool {
    for &first in symbols {
        if first == symbol {
            return true;
        }
        if !grammar.nullable(first) {
            return false;
        }
    }
    false
}
