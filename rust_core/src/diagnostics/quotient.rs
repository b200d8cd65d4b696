//! Explicit quotient grammar (paper, Fig. 2): a context-free grammar of the lexeme sequences that the middle may be.
//!
//! The left quotient is read off the left chart. The A begun at set k is followed by the rest of its parents in k. The
//! right quotient is read off R's chart: a symbol that the cursor cuts is completed from a free state to a node. Both
//! are Bar-Hillel triples over the free states and the nodes, of which only the useful ones are written.
//!
//! A lexeme that the cursor cuts is written with `…` on the cut side.

use crate::chart::left::{FIRST_SET, NO_INDENTS, NO_SET, Read};
use crate::chart::texts::WILD;
use crate::engine::branch::{Branch, InLine};
use crate::engine::verdicts::Engine;
use crate::grammar::compiled::Grammar;
use crate::grammar::rules::END_OF_RULE;
use crate::ids::{ColumnId, DotId, FreeId, LexemeId, NodeId, RequirementId, SetId, SymbolId};
use crate::language::free::{INFINITE, LINE, MIDDLE};
use crate::lexing::layout::NO_COLUMN;
use crate::requirement::requirements::{Context, NO_FLOOR, Requirement};
use crate::requirement::solver::Solver;
use crate::stop::poll;
use rustc_hash::{FxHashMap, FxHashSet};
use std::fmt::Write as _;

/// A possible beginning of the middle.
#[derive(Clone, Debug)]
struct Opening {
    /// The rest of the symbol in progress, unless the lexer ignores it.
    lexeme: Option<String>,
    /// The set after it.
    set: SetId,
    /// The free state after it.
    free: FreeId,
    /// True if the symbol ends in R: the middle holds nothing else.
    crosses: bool,
}

/// A nonterminal of the quotient grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Nonterminal {
    /// The whole middle.
    Start,
    /// The rest of the middle after the nonterminal that began at a set.
    Rest(SetId, SymbolId, FreeId),
    /// A nonterminal wholly in the middle.
    Whole(SymbolId, FreeId, FreeId),
    /// The middle's part of a nonterminal that ends at a node of R.
    Cut(SymbolId, FreeId, NodeId),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Piece {
    Nonterminal(Nonterminal),
    Lexeme(String),
}

/// Continuation after a rule of the quotient.
#[derive(Clone, Copy)]
enum Behind {
    Rest(SetId, SymbolId, RequirementId),
    Node(RequirementId),
}

impl Behind {
    fn requirement(self) -> RequirementId {
        match self {
            Self::Rest(_, _, requirement) | Self::Node(requirement) => requirement,
        }
    }
}

/// A rule from a dot on, and what follows it.
#[derive(Clone, Copy)]
struct Tail {
    dot: DotId,
    column: ColumnId,
    follow: Behind,
}

/// Write the quotient grammar of the opening branches as BNF, reduced: every nonterminal is reachable and productive.
pub(crate) fn extract(engine: &mut Engine, opening: &[Branch]) -> String {
    let mut rules: FxHashMap<Nonterminal, Vec<Vec<Piece>>> = FxHashMap::default();
    let mut start = Vec::new();
    for branch in opening {
        let prepared = openings(engine, branch);
        let (solver, context) = engine.parts();
        let mut extractor = Extractor { solver, context };
        for read in prepared {
            extractor.opening(&read, &mut start);
        }
    }
    let (solver, context) = engine.parts();
    let mut extractor = Extractor { solver, context };
    let mut queue: Vec<Nonterminal> = keys(&start);
    rules.insert(Nonterminal::Start, start);
    while let Some(key) = queue.pop() {
        poll();
        if rules.contains_key(&key) {
            continue;
        }
        let alternatives = extractor.expand(key);
        queue.extend(keys(&alternatives));
        rules.insert(key, alternatives);
    }
    reduce(&mut rules);
    print(&engine.language.grammar, &rules)
}

/// Possible beginnings of the middle at a branch.
fn openings(engine: &mut Engine, branch: &Branch) -> Vec<Opening> {
    let language = engine.language.clone();
    let between = |set, free| Opening { lexeme: None, set, free, crosses: false };
    if let InLine::Start { .. } = branch.line {
        return vec![between(branch.set, LINE)];
    }
    if language.lexer.is_start(branch.state) {
        let boundary = language.free.at_boundary(engine.parser.guard_states(branch.guards));
        return boundary.map(|free| between(branch.set, free)).into_iter().collect();
    }
    let continuations = engine.continuations_of(branch);
    let mut found = Vec::new();
    for continuation in continuations.iter() {
        let names: Vec<String> = match continuation.accept {
            Some(accept) => {
                let display = |&lexeme: &LexemeId| language.display(lexeme);
                vec![language.lexer.lexemes(accept).iter().map(display).collect::<Vec<_>>().join("/")]
            }
            None => Vec::new(),
        };
        let set = continuation
            .accept
            .map_or(branch.set, |accept| engine.parser.scan(branch.set, Read::Accepted(accept, WILD)));
        if set == NO_SET {
            continue;
        }
        let reachability = engine.reachability(set);
        if reachability.meets(&continuation.targets) {
            let lexeme = names.first().map(|name| format!("…{name}…"));
            found.push(Opening { lexeme, set, free: MIDDLE, crosses: true });
        }
        if let Some(free) = continuation.free {
            let lexeme = names.first().map(|name| format!("…{name}"));
            found.push(Opening { lexeme, set, free, crosses: false });
        }
    }
    found
}

fn keys(alternatives: &[Vec<Piece>]) -> Vec<Nonterminal> {
    alternatives.iter().flat_map(|alternative| nonterminals(alternative)).collect()
}

struct Extractor<'a> {
    solver: &'a mut Solver,
    context: Context<'a>,
}

impl Extractor<'_> {
    fn lexeme(&self, symbol: SymbolId) -> String {
        self.context.language.display(LexemeId(symbol.0))
    }

    /// Add the alternatives of the start symbol that a branch gives.
    fn opening(&mut self, read: &Opening, out: &mut Vec<Vec<Piece>>) {
        let prefix: Vec<Piece> = read.lexeme.iter().map(|name| Piece::Lexeme(name.clone())).collect();
        let set = read.set;
        if read.crosses {
            out.push(prefix);
            return;
        }
        let grammar = &self.context.language.grammar;
        if set == FIRST_SET {
            let bottom = self.solver.requirements.bottom();
            self.cut_or_whole(grammar.start, read.free, &prefix, out, Behind::Rest(set, grammar.start, bottom));
        }
        let items: Vec<_> = self.context.left.set(set).items.to_vec();
        for item in items {
            let lhs = grammar.lhs(item.dot);
            let requirement = self.solver.requirement(self.context, item.origin, lhs);
            let follow = Behind::Rest(item.origin, lhs, requirement);
            self.tails(Tail { dot: item.dot, column: item.column, follow }, read.free, prefix.clone(), out);
        }
        if self.context.left.set(set).accepts {
            let bottom = self.solver.requirements.bottom();
            if self.falls(read.free, bottom) {
                out.push(prefix);
            }
        }
    }

    fn expand(&mut self, key: Nonterminal) -> Vec<Vec<Piece>> {
        let mut out = Vec::new();
        let grammar = &self.context.language.grammar;
        match key {
            Nonterminal::Start => {}
            Nonterminal::Rest(set, symbol, from) => self.rest(set, symbol, from, &mut out),
            Nonterminal::Whole(symbol, from, to) => {
                for rule in grammar.rules().iter().filter(|rule| rule.lhs == symbol) {
                    self.whole(&rule.rhs, from, to, Vec::new(), &mut out);
                }
            }
            Nonterminal::Cut(symbol, from, node) => {
                let requirement = self.solver.requirements.singleton(node);
                for (index, _) in grammar.rules().iter().enumerate().filter(|(_, rule)| rule.lhs == symbol) {
                    let tail =
                        Tail { dot: grammar.dot(index, 0), column: NO_COLUMN, follow: Behind::Node(requirement) };
                    self.tails(tail, from, Vec::new(), &mut out);
                }
            }
        }
        out.sort();
        out.dedup();
        out
    }

    fn rest(&mut self, set: SetId, symbol: SymbolId, from: FreeId, out: &mut Vec<Vec<Piece>>) {
        let grammar = &self.context.language.grammar;
        if set == FIRST_SET && symbol == grammar.start && self.falls(from, self.solver.requirements.bottom()) {
            out.push(Vec::new());
        }
        let waiting: Vec<_> = self.context.left.waiting(grammar, set, symbol).to_vec();
        for item in waiting {
            let lhs = grammar.lhs(item.dot);
            let requirement = self.solver.requirement(self.context, item.origin, lhs);
            let follow = Behind::Rest(item.origin, lhs, requirement);
            let dot = Grammar::advance(item.dot);
            self.tails(Tail { dot, column: item.column, follow }, from, Vec::new(), out);
        }
        let prediction = self.context.left.set(set).prediction;
        for dot in self.context.predictions.dots(grammar, prediction, symbol).to_vec() {
            let lhs = grammar.lhs(dot);
            let requirement = self.solver.requirement(self.context, set, lhs);
            let follow = Behind::Rest(set, lhs, requirement);
            self.tails(Tail { dot: Grammar::advance(dot), column: NO_COLUMN, follow }, from, Vec::new(), out);
        }
    }

    /// Return whether the cursor, in a free state, may fall on a node of a requirement.
    fn falls(&self, from: FreeId, requirement: RequirementId) -> bool {
        let nodes = &self.solver.requirements.get(requirement).nodes;
        self.context.right.crossings().iter().any(|&(at, node, _)| at == from && nodes.binary_search(&node).is_ok())
    }

    /// Add every split of the rest of a rule between the middle and R.
    fn tails(&mut self, tail: Tail, from: FreeId, prefix: Vec<Piece>, out: &mut Vec<Vec<Piece>>) {
        let grammar = &self.context.language.grammar;
        let here = self.solver.requirements.step(
            self.context,
            tail.follow.requirement(),
            (tail.dot, NO_FLOOR),
            tail.column,
            NO_INDENTS,
        );
        if self.falls(from, here) {
            out.push(prefix.clone());
        }
        let symbol = grammar.next(tail.dot);
        if symbol == END_OF_RULE {
            if let Behind::Rest(set, lhs, requirement) = tail.follow
                && self.solver.requirements.get(requirement).free[from.index()] != INFINITE
            {
                let mut whole = prefix;
                whole.push(Piece::Nonterminal(Nonterminal::Rest(set, lhs, from)));
                out.push(whole);
            }
            return;
        }
        let next = Tail { dot: Grammar::advance(tail.dot), ..tail };
        let after = self.solver.requirements.step(
            self.context,
            tail.follow.requirement(),
            (next.dot, NO_FLOOR),
            next.column,
            NO_INDENTS,
        );
        self.cuts(symbol, from, after, &prefix, out);
        for to in self.context.language.free.states() {
            if self.context.language.free.relation(symbol, from, to) == INFINITE {
                continue;
            }
            let mut longer = prefix.clone();
            longer.push(self.whole_piece(symbol, from, to));
            self.tails(next, to, longer, out);
        }
    }

    /// Add the alternatives in which the cursor cuts a symbol.
    fn cuts(
        &mut self,
        symbol: SymbolId,
        from: FreeId,
        after: RequirementId,
        prefix: &[Piece],
        out: &mut Vec<Vec<Piece>>,
    ) {
        let grammar = &self.context.language.grammar;
        let nodes = self.solver.requirements.get(after).nodes.clone();
        if grammar.is_lexeme(symbol) {
            let crosses = self
                .context
                .right
                .symbol_crossings()
                .iter()
                .any(|&(at, lexeme, node, _)| at == from && lexeme == symbol && nodes.binary_search(&node).is_ok());
            if crosses {
                let mut cut = prefix.to_vec();
                cut.push(Piece::Lexeme(format!("{}…", self.lexeme(symbol))));
                out.push(cut);
            }
            return;
        }
        for node in nodes {
            if self.context.right.begun_free(symbol, node).any(|(at, _)| at == from) {
                let mut cut = prefix.to_vec();
                cut.push(Piece::Nonterminal(Nonterminal::Cut(symbol, from, node)));
                out.push(cut);
            }
        }
    }

    fn cut_or_whole(
        &mut self,
        symbol: SymbolId,
        from: FreeId,
        prefix: &[Piece],
        out: &mut Vec<Vec<Piece>>,
        follow: Behind,
    ) {
        let after = follow.requirement();
        self.cuts(symbol, from, after, prefix, out);
        for to in self.context.language.free.states() {
            if self.context.language.free.relation(symbol, from, to) == INFINITE {
                continue;
            }
            if let Behind::Rest(set, lhs, _) = follow {
                let mut whole = prefix.to_vec();
                whole.push(self.whole_piece(symbol, from, to));
                whole.push(Piece::Nonterminal(Nonterminal::Rest(set, lhs, to)));
                out.push(whole);
            }
        }
        let before: Requirement = self.solver.requirements.before_symbol(self.context, symbol, after);
        let falls =
            self.context.right.crossings().iter().any(|&(at, node, _)| at == from && before.nodes.contains(&node));
        if falls {
            out.push(prefix.to_vec());
        }
    }

    fn whole_piece(&self, symbol: SymbolId, from: FreeId, to: FreeId) -> Piece {
        if self.context.language.grammar.is_lexeme(symbol) {
            Piece::Lexeme(self.lexeme(symbol))
        } else {
            Piece::Nonterminal(Nonterminal::Whole(symbol, from, to))
        }
    }

    /// Add every path of free states over symbols that are wholly in the middle.
    fn whole(&self, symbols: &[SymbolId], from: FreeId, to: FreeId, prefix: Vec<Piece>, out: &mut Vec<Vec<Piece>>) {
        let Some((&symbol, rest)) = symbols.split_first() else {
            if from == to {
                out.push(prefix);
            }
            return;
        };
        for via in self.context.language.free.states() {
            if self.context.language.free.relation(symbol, from, via) != INFINITE {
                let mut longer = prefix.clone();
                longer.push(self.whole_piece(symbol, from, via));
                self.whole(rest, via, to, longer, out);
            }
        }
    }
}

/// Drop nonterminals that derive nothing, then those unreachable from the start.
fn reduce(rules: &mut FxHashMap<Nonterminal, Vec<Vec<Piece>>>) {
    let productive = productive(rules);
    for alternatives in rules.values_mut() {
        poll();
        alternatives.retain(|alternative| nonterminals(alternative).all(|key| productive.contains(&key)));
    }
    let mut reached: FxHashSet<Nonterminal> = FxHashSet::default();
    let mut stack = vec![Nonterminal::Start];
    while let Some(key) = stack.pop() {
        poll();
        if reached.insert(key) {
            stack.extend(keys(rules.get(&key).map_or(&[], Vec::as_slice)));
        }
    }
    rules.retain(|key, _| reached.contains(key));
}

/// Nonterminals that derive something. Each place in an alternative is visited once, when its symbol turns out
/// productive.
fn productive(rules: &FxHashMap<Nonterminal, Vec<Vec<Piece>>>) -> FxHashSet<Nonterminal> {
    let mut found: FxHashSet<Nonterminal> = FxHashSet::default();
    let mut new: Vec<Nonterminal> = Vec::new();
    // By alternative: its nonterminal, and the number of its places not known to be productive.
    let mut owed: Vec<(Nonterminal, usize)> = Vec::new();
    let mut holds: FxHashMap<Nonterminal, Vec<usize>> = FxHashMap::default();
    for (&key, alternatives) in rules {
        poll();
        for alternative in alternatives {
            let places = nonterminals(alternative).inspect(|&held| holds.entry(held).or_default().push(owed.len()));
            let places = places.count();
            owed.push((key, places));
            if places == 0 && found.insert(key) {
                new.push(key);
            }
        }
    }
    while let Some(key) = new.pop() {
        poll();
        for &alternative in holds.get(&key).map_or(&[][..], Vec::as_slice) {
            let (owner, places) = &mut owed[alternative];
            *places -= 1;
            if *places == 0 && found.insert(*owner) {
                new.push(*owner);
            }
        }
    }
    found
}

fn nonterminals(alternative: &[Piece]) -> impl Iterator<Item = Nonterminal> {
    alternative.iter().filter_map(|piece| match piece {
        Piece::Nonterminal(key) => Some(*key),
        Piece::Lexeme(_) => None,
    })
}

/// The set that a rest begins at.
fn set_of(key: Nonterminal) -> Option<SetId> {
    if let Nonterminal::Rest(set, ..) = key { Some(set) } else { None }
}

fn print(grammar: &Grammar, rules: &FxHashMap<Nonterminal, Vec<Vec<Piece>>>) -> String {
    let mut order: Vec<Nonterminal> = rules.keys().copied().collect();
    order.sort_unstable();
    // Sets are named by their order, not by their numbers: in a shared chart other sets may come before them.
    let mut sets: Vec<SetId> = order.iter().filter_map(|key| set_of(*key)).collect();
    sets.dedup();
    let number = |set| sets.partition_point(|&before| before <= set);
    let mut names: FxHashMap<Nonterminal, String> = FxHashMap::default();
    let mut taken: FxHashMap<String, usize> = FxHashMap::default();
    for &key in &order {
        poll();
        let base = match key {
            Nonterminal::Start => "middle".to_string(),
            Nonterminal::Rest(set, symbol, _) => format!("after {}@{}", grammar.title(symbol), number(set)),
            Nonterminal::Whole(symbol, ..) => grammar.title(symbol).to_string(),
            Nonterminal::Cut(symbol, ..) => format!("{} up to the cursor", grammar.title(symbol)),
        };
        let count = taken.entry(base.clone()).or_insert(0);
        *count += 1;
        let suffix = match key {
            Nonterminal::Rest(_, _, from) if *count > 1 && from == LINE => " at a line start".to_string(),
            _ if *count > 1 => format!(" {count}"),
            _ => String::new(),
        };
        names.insert(key, format!("<{base}{suffix}>"));
    }
    let mut text = String::new();
    for key in order {
        poll();
        let mut alternatives: Vec<String> = rules[&key]
            .iter()
            .map(|alternative| {
                let pieces: Vec<&str> = alternative
                    .iter()
                    .map(|piece| match piece {
                        Piece::Nonterminal(key) => names[key].as_str(),
                        Piece::Lexeme(name) => name.as_str(),
                    })
                    .collect();
                if pieces.is_empty() { "ε".to_string() } else { pieces.join(" ") }
            })
            .collect();
        alternatives.sort();
        alternatives.dedup();
        let _ = writeln!(text, "{} ::= {}", names[&key], alternatives.join("\n    | "));
    }
    text
}
