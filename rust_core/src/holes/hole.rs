//! Reading of a hole: any bytes at all.
//!
//! The symbols of a hole lead from one free state to another, as those of a middle do (`language::free`). A symbol in
//! progress before the hole ends in it, or goes on after it.

use crate::bits;
use crate::grammar::compiled::Grammar;
use crate::grammar::rules::END_OF_RULE;
use crate::holes::chart::{Item, Key, Place};
use crate::holes::reading::{Cut, Cuts, InLine, Reading, add};
use crate::holes::rules::role_of;
use crate::ids::{AcceptId, FreeId, GuardId, ModeId, NodeId, StateId, SymbolId};
use crate::language::free::{INFINITE, LINE, MIDDLE};
use crate::lexing::guards::NO_GUARDS;
use crate::lexing::lexer::DEAD;
use crate::lexing::product::{Beside, walk_beside};
use crate::lexing::roles::{LineByte, Role};
use crate::stop::poll;
use rustc_hash::{FxHashMap, FxHashSet};

/// Ways on for a symbol in progress where a hole begins.
#[derive(Clone, Default)]
struct Ways {
    /// Ends in the hole: an accept set, and the free state after it.
    ends: Vec<(AcceptId, FreeId)>,
    /// States in which it may be when the hole ends.
    on: Vec<(StateId, GuardId)>,
}

/// Items that rules before the hole have in it.
#[derive(Default)]
struct Entered {
    hole: u32,
    seen: FxHashSet<(NodeId, Item)>,
    work: Vec<(NodeId, Item)>,
    kept: FxHashMap<NodeId, Vec<Item>>,
    completed: FxHashSet<(NodeId, SymbolId, NodeId)>,
}

impl Entered {
    fn push(&mut self, node: NodeId, item: Item) {
        if self.seen.insert((node, item)) {
            self.work.push((node, item));
        }
    }
}

impl Reading {
    /// Read a hole.
    pub(super) fn cross(&mut self, hole: u32) {
        self.chart.begin_hole();
        let mut entered = Entered { hole, ..Entered::default() };
        let mut known: FxHashMap<(StateId, GuardId), Ways> = FxHashMap::default();
        let mut next = Cuts::default();
        for (cut, nodes) in std::mem::take(&mut self.cuts) {
            poll();
            if self.language.lexer.is_start(cut.state) {
                if let Some(free) = self.free_between(cut) {
                    nodes.iter().for_each(|&node| self.enter(&mut entered, node, free));
                }
                continue;
            }
            let ways = known.entry((cut.state, cut.guards)).or_insert_with(|| self.ways(cut)).clone();
            for (accept, free) in ways.ends {
                self.end_in_hole(&mut entered, cut, &nodes, (accept, free));
            }
            for (state, guards) in ways.on {
                add(&mut next, Cut { state, guards, joined: false, ..cut }, nodes.clone());
            }
        }
        self.fill(&mut entered);
        for (node, items) in entered.kept {
            self.chart.settle(node, items);
            self.chart.get_mut(node).modes = u64::MAX;
        }
        self.leave(hole, &mut next);
        self.cuts = next;
    }

    /// The free state of a reading between two symbols.
    fn free_between(&self, cut: Cut) -> Option<FreeId> {
        match cut.line {
            InLine::Start { .. } => Some(LINE),
            InLine::Middle => self.language.free.at_boundary(self.guards.states(cut.guards)),
        }
    }

    /// The ways on for a symbol in progress.
    fn ways(&mut self, cut: Cut) -> Ways {
        let language = self.language.clone();
        let lexer = &language.lexer;
        let separated = language.free.is_separated();
        if cut.guards == NO_GUARDS && separated {
            let on = lexer.reachable(cut.state).into_iter().map(|state| (state, NO_GUARDS)).collect();
            return Ways { ends: lexer.live(cut.state).map(|accept| (accept, MIDDLE)).collect(), on };
        }
        let from = (cut.state, cut.guards, ());
        let found = walk_beside(lexer, &mut self.guards, &lexer.representatives(), from, |(), _| Some(()), |_| true);
        let mut ways = Ways::default();
        for Beside { state, guards, .. } in found {
            ways.on.push((state, guards));
            if lexer.accepts(state) {
                let after = self.guards.with(lexer, guards, state);
                let free = language.free.at_boundary(self.guards.states(after));
                ways.ends.extend(free.map(|free| (lexer.accept(state), free)));
            }
        }
        ways.ends.sort_unstable();
        ways.ends.dedup();
        ways
    }

    /// End a symbol in a hole.
    fn end_in_hole(&mut self, entered: &mut Entered, cut: Cut, nodes: &[NodeId], (accept, free): (AcceptId, FreeId)) {
        if !self.is_own(cut.mode, accept) {
            return;
        }
        let language = self.language.clone();
        let role = language.accept_role(accept);
        let before_line = cut.line != InLine::Middle;
        let newline = language.layout.map(|layout| SymbolId::from(layout.newline));
        let symbols: Vec<SymbolId> = match (role, newline) {
            // A comment ends with its line.
            (Role::Comment, Some(newline)) if !before_line && !cut.inside => vec![newline],
            (Role::Newline, _) if cut.inside => Vec::new(),
            (Role::Blank | Role::Comment | Role::Join, _) => Vec::new(),
            _ => self.own_lexemes(cut.mode, accept).collect(),
        };
        if symbols.is_empty() {
            let free = if before_line { LINE } else { free };
            nodes.iter().for_each(|&node| self.enter(entered, node, free));
        }
        for &node in nodes {
            for &symbol in &symbols {
                let mut moved = Vec::new();
                self.chart.moved(node, symbol, &mut moved);
                let (key, free) = (self.chart.key(node), if Some(symbol) == newline { LINE } else { free });
                for item in moved {
                    self.push_after(entered, free, (key, symbol), item);
                }
            }
        }
    }

    /// Enter a hole between two symbols, after a node.
    fn enter(&mut self, entered: &mut Entered, node: NodeId, free: FreeId) {
        let own = self.chart.get(node);
        let (key, is_root, accepts, items) = (own.key, own.is_root, own.accepts, own.items.clone());
        let target = self.chart.hole_node(entered.hole, free, key.top, key.depth > 0);
        let reached = self.chart.get_mut(target);
        reached.is_root |= is_root;
        reached.accepts |= accepts;
        items.into_iter().for_each(|item| entered.push(target, item));
        let language = self.language.clone();
        for to in language.free.states() {
            if is_root && language.free.relation(language.grammar.start, free, to) != INFINITE {
                let end = self.chart.hole_node(entered.hole, to, key.top, key.depth > 0);
                self.chart.get_mut(end).accepts = true;
            }
            if to != free && language.free.ignored(free, to) != INFINITE {
                let after = self.chart.hole_node(entered.hole, to, key.top, key.depth > 0);
                self.chart.get_mut(after).accepts |= accepts;
            }
        }
    }

    /// Move the items that have entered a hole over all texts that it may have.
    fn fill(&mut self, entered: &mut Entered) {
        let language = self.language.clone();
        let (grammar, free) = (&language.grammar, &language.free);
        while let Some((node, item)) = entered.work.pop() {
            poll();
            let (dot, origin) = item;
            let next = grammar.next(dot);
            if next == END_OF_RULE {
                self.complete(entered, node, (grammar.lhs(dot), origin));
                continue;
            }
            entered.kept.entry(node).or_default().push(item);
            let moved = (Grammar::advance(dot), origin);
            if grammar.nullable(next) {
                entered.push(node, moved);
            }
            let key = self.chart.key(node);
            let Some(from) = self.free_of(node) else { continue };
            let inside = key.depth > 0;
            for to in free.states() {
                if to != from && free.ignored(from, to) != INFINITE {
                    let after = self.chart.hole_node(entered.hole, to, key.top, inside);
                    entered.push(after, item);
                }
                if free.relation(next, from, to) == INFINITE {
                    continue;
                }
                let (opens, closes) = match grammar.indent_dedent {
                    Some((indent, dedent)) => (next == indent, next == dedent),
                    None => (false, false),
                };
                if opens {
                    let first = if key.top == self.chart.above { key.top } else { key.top + 1 };
                    for top in first..=self.chart.above {
                        let target = self.chart.hole_node(entered.hole, to, top, false);
                        entered.push(target, moved);
                    }
                    continue;
                }
                if inside && (free.is_line(to) || role_of(&language, next) == Some(Role::Newline)) {
                    continue;
                }
                if closes {
                    let top = self.chart.key(origin).top;
                    let target = self.chart.hole_node(entered.hole, to, top, false);
                    entered.push(target, moved);
                } else {
                    self.push_after(entered, to, (key, next), moved);
                }
            }
        }
    }

    /// Complete a nonterminal that began before the hole.
    fn complete(&mut self, entered: &mut Entered, node: NodeId, (lhs, origin): (SymbolId, NodeId)) {
        if !entered.completed.insert((node, lhs, origin)) {
            return;
        }
        if lhs == self.language.grammar.start && self.chart.get(origin).is_root {
            let language = self.language.clone();
            let key = self.chart.key(node);
            self.chart.get_mut(node).accepts = true;
            let Some(from) = self.free_of(node) else { return };
            for to in language.free.states().filter(|&to| language.free.ignored(from, to) != INFINITE) {
                let after = self.chart.hole_node(entered.hole, to, key.top, key.depth > 0);
                self.chart.get_mut(after).accepts = true;
            }
        }
        let mut moved = Vec::new();
        self.chart.moved(origin, lhs, &mut moved);
        for item in moved {
            if self.chart.fits(node, lhs, item) {
                entered.push(node, item);
            }
        }
    }

    /// Push an item that was moved over a symbol at a node, to the nodes of a free state.
    fn push_after(&mut self, entered: &mut Entered, free: FreeId, (key, symbol): (Key, SymbolId), item: Item) {
        let mut after = Vec::new();
        self.chart.after(key, symbol, item, &mut after);
        for (top, depth) in after {
            let target = self.chart.hole_node(entered.hole, free, top, depth > 0);
            entered.push(target, item);
        }
    }

    fn free_of(&self, node: NodeId) -> Option<FreeId> {
        match self.chart.key(node).place {
            Place::Hole { free, .. } => Some(free),
            _ => None,
        }
    }

    /// Add the readings with which a hole may end.
    fn leave(&mut self, hole: u32, next: &mut Cuts) {
        let language = self.language.clone();
        let (lexer, free) = (&language.lexer, &language.free);
        let modes = self.modes_of_states();
        let tops: Vec<u32> = self.chart.tops().collect();
        for from in free.states() {
            let outside: Vec<NodeId> = tops.iter().map(|&top| self.chart.hole_node(hole, from, top, false)).collect();
            let is_line = free.is_line(from);
            let sides = match language.layout {
                Some(_) if !is_line => vec![(false, outside), (true, vec![self.chart.hole_node(hole, from, 0, true)])],
                _ => vec![(false, outside)],
            };
            let own = self.intern_guards(free.guards().states(free.boundary(from)));
            for (inside, nodes) in sides {
                let at = |state, guards, mode| Cut { state, guards, line: InLine::Middle, inside, joined: false, mode };
                for mode in (0..language.mode_count()).map(ModeId::from_index).filter(|_| !is_line) {
                    add(next, at(lexer.start_of(mode), own, mode), nodes.clone());
                }
                for symbol in free.in_progress(from) {
                    let guards = self.intern_guards(free.guards().states(symbol.guards));
                    for mode in bits::ones(modes[symbol.state.index()]).map(ModeId::from_index) {
                        add(next, at(symbol.state, guards, mode), nodes.clone());
                    }
                }
                if is_line {
                    self.leave_before_line(&nodes, next);
                }
            }
        }
    }

    /// Add the readings in which a hole ends before the first symbol of a line.
    fn leave_before_line(&self, nodes: &[NodeId], next: &mut Cuts) {
        let lexer = &self.language.lexer;
        let start = Cut {
            state: lexer.start(),
            guards: NO_GUARDS,
            line: InLine::Middle,
            inside: false,
            joined: false,
            mode: ModeId(0),
        };
        let trivia = (0..=255u8).filter(|&byte| self.line_bytes[byte as usize] == LineByte::Trivia);
        let mut begun: Vec<StateId> = trivia.map(|byte| lexer.step(lexer.start(), byte)).collect();
        begun.sort_unstable();
        begun.dedup();
        let mut trivia: Vec<StateId> = begun.into_iter().flat_map(|state| lexer.reachable(state)).collect();
        trivia.sort_unstable();
        trivia.dedup();
        let role = |accept| self.language.accept_role(accept);
        let joins = lexer.accept_sets().any(|accept| role(accept) == Role::Join);
        for column in self.chart.tops() {
            let line = InLine::Start { column, kept: None };
            add(next, Cut { line, ..start }, nodes.to_vec());
            for &state in &trivia {
                if state != DEAD && (column == 0 || lexer.live(state).any(|accept| role(accept) == Role::Join)) {
                    add(next, Cut { line, state, ..start }, nodes.to_vec());
                }
            }
            if joins && column > 0 {
                // After a backslash-newline, blanks no longer change the column.
                let line = InLine::Start { column, kept: Some(column) };
                add(next, Cut { line, joined: true, ..start }, nodes.to_vec());
            }
        }
    }

    fn intern_guards(&mut self, states: &[StateId]) -> GuardId {
        self.guards.intern(&self.language.lexer, states.to_vec())
    }

    /// Per state of the lexer: the modes in which it can be in progress, as a mask.
    fn modes_of_states(&self) -> Vec<u64> {
        let lexer = &self.language.lexer;
        let mut modes = vec![0u64; lexer.state_count()];
        for mode in 0..self.language.mode_count() {
            let start = lexer.start_of(ModeId::from_index(mode));
            for state in lexer.reachable(start).into_iter().filter(|&state| state != start && state != DEAD) {
                modes[state.index()] |= 1 << mode;
            }
        }
        for state in lexer.file_start().into_iter().flat_map(|start| lexer.reachable(start)) {
            modes[state.index()] |= 1;
        }
        modes
    }
}
