//! The Earley chart over the lattice, from left to right. Its first sets hold *free items*: rules begun in the middle that is
//! still to be written, with the least bytes that their part before the cursor costs.

use crate::chart::predict::Predictions;
use crate::grammar::compiled::Grammar;
use crate::grammar::rules::END_OF_RULE;
use crate::ids::{AcceptId, DotId, FreeId, ModeId, NodeId, OriginId, SymbolId};
use crate::language::compiled::Language;
use crate::language::free::{Cost, INFINITE};
use crate::lexing::layout::Column;
use crate::lexing::roles::Role;
use crate::right::columns::{Classes, Entry};
use crate::right::lattice::{Base, Lattice, Node, Origin, Origins, Place, Top};
use crate::right::lex::{Lexed, LineStart, texts_after};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Ordering;

/// Completes the sets of a lattice, and makes the nodes that are read to from them. Stops where a line has a column that the
/// classes do not foresee.
pub(super) fn parse(
    language: &Language,
    predictions: &mut Predictions,
    lexed: &mut Lexed,
    lattice: &mut Lattice,
    classes: &mut Classes,
    entries: &[Entry],
) {
    let (origins, dedents) = (Origins::default(), FxHashSet::default());
    let mut chart = Chart { language, predictions, lexed, lattice, classes, entries, origins, dedents };
    let mut worker = Worker::default();
    while let Some(id) = chart.lattice.pop() {
        if chart.classes.surprised {
            break;
        }
        chart.process(&mut worker, id);
    }
}

/// A chart in the making.
struct Chart<'a> {
    language: &'a Language,
    predictions: &'a mut Predictions,
    lexed: &'a mut Lexed,
    lattice: &'a mut Lattice,
    classes: &'a mut Classes,
    entries: &'a [Entry],
    origins: Origins,
    /// DEDENT edges, by both ends.
    dedents: FxHashSet<(NodeId, NodeId)>,
}

impl Chart<'_> {
    /// Completes a node's set and reads on from it.
    fn process(&mut self, worker: &mut Worker, id: NodeId) {
        let pending = std::mem::take(&mut self.lattice.node_mut(id).pending);
        let pending_free = std::mem::take(&mut self.lattice.node_mut(id).pending_free);
        if pending.is_empty() && pending_free.is_empty() && !self.lattice.node(id).first {
            self.lattice.node_mut(id).processed = true;
            return;
        }
        worker.begin();
        worker.nested = self.lattice.node(id).place.is_in_literal();
        for (dot, origin) in pending {
            worker.push(dot, origin);
        }
        for (dot, from, cost) in pending_free {
            worker.push_free(&self.language.grammar, dot, from, cost);
        }
        let loops = matches!(self.lattice.node(id).place, Place::Line { top: Top::Above, .. });
        self.close(worker, loops);
        worker.finish(self.language, self.lattice.node_mut(id), self.predictions);
        self.read_on(id);
    }

    /// Earley's completer, for items that began at a node and for those that began in the middle.
    fn close(&self, worker: &mut Worker, loops: bool) {
        let grammar = &self.language.grammar;
        let dedent = grammar.indent_dedent.map(|(_, dedent)| dedent);
        loop {
            if let Some((dot, origin)) = worker.pending.pop() {
                let next = grammar.next(dot);
                if next != END_OF_RULE {
                    worker.items.push((dot, origin));
                    if grammar.nullable(next) {
                        worker.push(Grammar::advance(dot), origin);
                    }
                    continue;
                }
                let lhs = grammar.lhs(dot);
                match self.origins.get(origin).base {
                    Base::Node(begun) => {
                        if worker.completed.insert((lhs, begun)) {
                            self.complete(worker, begun, lhs);
                        }
                    }
                    Base::Free(begun) => {
                        let cost = self.origins.cost(origin);
                        self.complete_free(worker, begun, lhs, cost);
                    }
                }
            } else if let Some((dot, from, cost)) = worker.pending_free.pop() {
                if worker.free[&(dot, from)] < cost {
                    continue;
                }
                let next = grammar.next(dot);
                if next == END_OF_RULE {
                    self.complete_free(worker, from, grammar.lhs(dot), cost);
                } else if grammar.nullable(next) || loops && Some(next) == dedent {
                    worker.push_free(grammar, Grammar::advance(dot), from, cost);
                }
            } else {
                return;
            }
        }
    }

    fn complete(&self, worker: &mut Worker, begun: NodeId, lhs: SymbolId) {
        let grammar = &self.language.grammar;
        let source = self.lattice.node(begun);
        debug_assert!(source.processed, "a symbol with text ends after the node it began at");
        for &(dot, origin) in slice_by(&source.items, |item| grammar.next(item.0), lhs) {
            worker.push(Grammar::advance(dot), origin);
        }
        for &(dot, from, cost) in slice_by(&source.free_items, |item| grammar.next(item.0), lhs) {
            worker.push_free(grammar, Grammar::advance(dot), from, cost);
        }
        let dots = self.predictions.dots(source.prediction, lhs);
        if !dots.is_empty() {
            let origin = self.origins.known(Origin { base: Base::Node(begun), block: None });
            for &dot in dots {
                worker.push(Grammar::advance(dot), origin);
            }
        }
    }

    fn complete_free(&self, worker: &mut Worker, begun: FreeId, lhs: SymbolId, cost: Cost) {
        let cell = worker.completed_free.entry((lhs, begun)).or_insert(INFINITE);
        if *cell <= cost {
            return;
        }
        *cell = cost;
        for &(dot, from, before) in self.language.free.advances(lhs, begun) {
            worker.push_free(&self.language.grammar, dot, from, before.saturating_add(cost));
        }
    }

    /// Follows the symbols that can be read from a node.
    fn read_on(&mut self, id: NodeId) {
        let language = self.language;
        match self.lattice.node(id).place {
            Place::End => {}
            Place::Middle { position, line } => match self.lexed.symbol(position) {
                Some((accept, end)) if language.accept_role(accept) == Role::Newline => {
                    self.read_newline(id, line, end);
                }
                None => {
                    if language.layout.is_some() {
                        self.read_newline(id, line, position);
                    }
                }
                Some((accept, end)) => self.read_symbol(id, accept, end),
            },
            Place::Nested { position } => {
                let modes = (0..language.mode_count()).map(ModeId::from_index);
                for mode in modes.filter(|mode| language.grammar.reads_code(*mode)) {
                    let Some((accept, end)) = self.lexed.symbol_in(mode, position) else { continue };
                    let own = language.grammar.mode_of(SymbolId::from(language.lexer.lexemes(accept)[0]));
                    if own == mode {
                        self.read_symbol(id, accept, end);
                    }
                }
            }
            Place::Text { position, mode } => {
                let Some((accept, end)) = self.lexed.symbol_in(mode, position) else { return };
                self.lexed.lex(self.predictions, end);
                self.read_symbol(id, accept, end);
            }
            Place::Line { position, column, top } => self.read_layout(id, (position, column), top),
        }
    }

    /// Reads a symbol in a line, to wherever R can go on after it.
    fn read_symbol(&mut self, id: NodeId, accept: AcceptId, end: u32) {
        let language = self.language;
        let grammar = &language.grammar;
        let code = grammar.code_modes();
        let in_line = matches!(self.lattice.node(id).place, Place::Middle { .. });
        let role = language.accept_role(accept);
        for &lexeme in language.lexer.lexemes(accept) {
            let symbol = SymbolId::from(lexeme);
            let after = grammar.modes_after_lexeme(symbol);
            if after & code != 0 {
                self.read_to_code(id, symbol, role, end);
            }
            // In a line that nothing encloses, a closing bracket is a bracket.
            if after & !code != 0 && !(role == Role::Close && in_line) {
                for (target, mask) in texts_after(after & !code, end) {
                    self.read_to(id, symbol, target, |_, dot, _| grammar.modes_after(dot) & mask != 0);
                }
            }
        }
    }

    /// Reads a symbol after which code goes on.
    fn read_to_code(&mut self, id: NodeId, symbol: SymbolId, role: Role, end: u32) {
        let grammar = &self.language.grammar;
        let goes_on = |dot: DotId| grammar.modes_after(dot) & grammar.code_modes() != 0;
        let middle = self.lexed.middle_position(end);
        let nested = if grammar.has_modes() { self.lexed.nested_place(end) } else { None };
        match self.lattice.node(id).place {
            Place::Middle { line, .. } => {
                if let Some(position) = middle {
                    let target = self.lexed.middle_at(position, line);
                    self.read_to(id, symbol, target, |_, dot, _| goes_on(dot));
                }
            }
            Place::Text { .. } if role != Role::Open => {
                for line in self.lines_begun(id, symbol) {
                    let Some(position) = middle else { break };
                    let target = self.lexed.middle_at(position, line);
                    self.read_to(id, symbol, target, |chart, dot, origin| {
                        let same = match origin.and_then(|origin| chart.begun_at(origin)) {
                            None => line == Top::Unknown,
                            Some(Place::Middle { line: begun, .. }) => begun == line,
                            Some(_) => false,
                        };
                        same && goes_on(dot)
                    });
                }
                if let Some(target) = nested {
                    self.read_to(id, symbol, target, |chart, dot, origin| {
                        let begun = origin.and_then(|origin| chart.begun_at(origin));
                        goes_on(dot) && !matches!(begun, Some(Place::Middle { .. }))
                    });
                }
            }
            _ => {
                if let Some(target) = nested {
                    self.read_to(id, symbol, target, |_, dot, _| goes_on(dot));
                }
            }
        }
    }

    /// The lines that go on after the end of a literal that holds code: those that it stands in; where it began in the middle,
    /// any may be it.
    fn lines_begun(&self, id: NodeId, symbol: SymbolId) -> Vec<Top> {
        let grammar = &self.language.grammar;
        let ended = slice_by(&self.lattice.node(id).items, |item| grammar.next(item.0), symbol).iter();
        let mut lines: Vec<Top> = ended
            .filter_map(|&(_, origin)| match self.begun_at(origin) {
                Some(Place::Middle { line, .. }) => Some(line),
                _ => None,
            })
            .collect();
        lines.push(Top::Unknown);
        lines.sort_unstable();
        lines.dedup();
        lines
    }

    /// The place where an item's rule began; `None` if that is in the middle.
    fn begun_at(&self, origin: OriginId) -> Option<Place> {
        match self.origins.get(origin).base {
            Base::Node(node) => Some(self.lattice.node(node).place),
            Base::Free(_) => None,
        }
    }

    fn read_newline(&mut self, id: NodeId, line: Top, end: u32) {
        let newline = SymbolId::from(self.language.layout.expect("a language with layout").newline);
        let Some(LineStart { position, column: Some(column) }) = self.lexed.line_start(end, true) else { return };
        self.classes.see(column);
        let begin = self.lexed.line_begin(position, column);
        let targets = match line {
            Top::Exact(current) => match self.classes.compare(current, column) {
                Some(Ordering::Equal) => vec![begin],
                Some(_) => vec![Place::Line { position, column, top: line }],
                None => Vec::new(),
            },
            Top::Above | Top::AboveEntry(_) => vec![Place::Line { position, column, top: line }],
            Top::Unknown => self.classes.line_places(begin, position, column),
        };
        for target in targets {
            self.read_to(id, newline, target, |_, _, _| true);
        }
    }

    /// INDENT and DEDENT edges from before a line.
    fn read_layout(&mut self, id: NodeId, line: (u32, Column), top: Top) {
        let (position, column) = line;
        let (indent, dedent) = self.language.grammar.indent_dedent.expect("a language with layout");
        let begin = self.lexed.line_begin(position, column);
        match top {
            Top::Exact(exact) if self.classes.compare(exact, column) == Some(Ordering::Less) => {
                self.read_indent(id, indent, begin, (exact, column));
            }
            Top::Exact(exact) if self.classes.compare(exact, column) == Some(Ordering::Greater) => {
                self.read_dedent_in_right(id, dedent, line, exact);
                let cost = self.indentation_cost(self.classes.least_bytes(exact));
                self.read_dedent_free(id, dedent, begin, cost);
                for below in self.classes.between(column, exact) {
                    let target = Place::Line { position, column, top: Top::Exact(below) };
                    self.read_dedent_free(id, dedent, target, cost);
                }
            }
            Top::Above => {
                self.dedents.insert((id, id));
                self.lattice.node_mut(id).incoming.push((dedent, id));
                self.read_dedent_free(id, dedent, begin, 0);
            }
            Top::AboveEntry(_) => {
                self.read_dedent_free(id, dedent, begin, 0);
                let target = Place::Line { position, column, top: Top::Above };
                self.read_dedent_free(id, dedent, target, 0);
            }
            Top::Exact(_) | Top::Unknown => {}
        }
    }

    /// Reads a symbol for those of the dots after it, with their origins (none for what begins in the middle), that are
    /// to be kept.
    fn read_to(
        &mut self,
        id: NodeId,
        symbol: SymbolId,
        target: Place,
        keep: impl Fn(&Self, DotId, Option<OriginId>) -> bool,
    ) {
        let grammar = &self.language.grammar;
        let own = self.origins.at_node(id);
        let node = self.lattice.node(id);
        let mut known: Vec<(DotId, OriginId)> = slice_by(&node.items, |item| grammar.next(item.0), symbol)
            .iter()
            .map(|&(dot, origin)| (Grammar::advance(dot), origin))
            .collect();
        known.extend(self.predictions.dots(node.prediction, symbol).iter().map(|&dot| (Grammar::advance(dot), own)));
        known.retain(|&(dot, origin)| keep(self, dot, Some(origin)));
        let free: Vec<(DotId, FreeId, Cost)> = slice_by(&node.free_items, |item| grammar.next(item.0), symbol)
            .iter()
            .map(|&(dot, from, cost)| (Grammar::advance(dot), from, cost))
            .filter(|&(dot, _, _)| keep(self, dot, None))
            .collect();
        if known.is_empty() && free.is_empty() {
            return;
        }
        let target = self.lattice.intern(target);
        let node = self.lattice.node_mut(target);
        node.incoming.push((symbol, id));
        node.pending.extend(known);
        node.pending_free.extend(free);
    }

    /// Reads an INDENT in R: the block's columns go into the origins of its items.
    fn read_indent(&mut self, id: NodeId, indent: SymbolId, target: Place, block: (Column, Column)) {
        let grammar = &self.language.grammar;
        let node = self.lattice.node(id);
        let mut begun: Vec<(DotId, Base, Cost)> = slice_by(&node.items, |item| grammar.next(item.0), indent)
            .iter()
            .map(|&(dot, origin)| (dot, self.origins.get(origin).base, self.origins.cost(origin)))
            .collect();
        begun.extend(
            slice_by(&node.free_items, |item| grammar.next(item.0), indent)
                .iter()
                .map(|&(dot, from, cost)| (dot, Base::Free(from), cost)),
        );
        begun.extend(self.predictions.dots(node.prediction, indent).iter().map(|&dot| (dot, Base::Node(id), 0)));
        if begun.is_empty() {
            return;
        }
        let target = self.lattice.intern(target);
        self.lattice.node_mut(target).incoming.push((indent, id));
        for (dot, base, cost) in begun {
            let origin = self.origins.intern(Origin { base, block: Some(block) }, cost);
            self.lattice.node_mut(target).pending.push((Grammar::advance(dot), origin));
        }
    }

    /// Closes a block that was opened in R: its two columns say where to.
    fn read_dedent_in_right(&mut self, id: NodeId, dedent: SymbolId, line: (u32, Column), top: Column) {
        let grammar = &self.language.grammar;
        let (position, column) = line;
        let closing: Vec<(DotId, OriginId)> =
            slice_by(&self.lattice.node(id).items, |item| grammar.next(item.0), dedent).to_vec();
        for (dot, origin) in closing {
            let Some((below, own)) = self.origins.get(origin).block else { continue };
            if own != top {
                continue;
            }
            let target = match self.classes.compare(below, column) {
                Some(Ordering::Equal) => self.lexed.line_begin(position, column),
                Some(Ordering::Greater) => Place::Line { position, column, top: Top::Exact(below) },
                _ => continue,
            };
            let target = self.lattice.intern(target);
            let node = self.lattice.node_mut(target);
            if self.dedents.insert((id, target)) {
                node.incoming.push((dedent, id));
            }
            node.pending.push((Grammar::advance(dot), origin));
        }
    }

    /// What a block opened in the middle costs beyond the one byte that every INDENT is counted with, once R says at which
    /// column it is: its first line's indentation, less what R may hold of it where the cursor cuts an indentation. (After a
    /// backslash that ends the middle R's blanks only count at column 0, where leaving the backslash out is shorter.)
    fn indentation_cost(&self, least_bytes: u32) -> Cost {
        let cut = self.entries.iter().filter(|entry| !entry.joined);
        let held = cut.map(|entry| entry.to - entry.from).max().unwrap_or(0);
        least_bytes.saturating_sub(held + 1)
    }

    /// Closes a block that was opened in the middle, whose columns are free, for a further cost in bytes of middle. The
    /// edge is kept for blocks of L as well.
    fn read_dedent_free(&mut self, id: NodeId, dedent: SymbolId, target: Place, further: Cost) {
        let grammar = &self.language.grammar;
        let free: Vec<(DotId, FreeId, Cost)> =
            slice_by(&self.lattice.node(id).free_items, |item| grammar.next(item.0), dedent)
                .iter()
                .map(|&(dot, from, cost)| (Grammar::advance(dot), from, cost.saturating_add(further)))
                .collect();
        if free.is_empty() {
            return;
        }
        let target = self.lattice.intern(target);
        let node = self.lattice.node_mut(target);
        if self.dedents.insert((id, target)) {
            node.incoming.push((dedent, id));
        }
        node.pending_free.extend(free);
    }
}

/// The part of a slice, sorted by a symbol, that has it.
fn slice_by<T>(items: &[T], key: impl Fn(&T) -> SymbolId, symbol: SymbolId) -> &[T] {
    let begin = items.partition_point(|item| key(item) < symbol);
    let length = items[begin..].partition_point(|item| key(item) == symbol);
    &items[begin..begin + length]
}

/// Scratch space of one set's closure.
#[derive(Default)]
struct Worker {
    /// The set is inside a string of another mode: only what can be there is kept.
    nested: bool,
    pending: Vec<(DotId, OriginId)>,
    pending_free: Vec<(DotId, FreeId, Cost)>,
    seen: FxHashSet<(DotId, OriginId)>,
    items: Vec<(DotId, OriginId)>,
    free: FxHashMap<(DotId, FreeId), Cost>,
    completed: FxHashSet<(SymbolId, NodeId)>,
    completed_free: FxHashMap<(SymbolId, FreeId), Cost>,
}

impl Worker {
    fn begin(&mut self) {
        self.pending.clear();
        self.pending_free.clear();
        self.seen.clear();
        self.items.clear();
        self.free.clear();
        self.completed.clear();
        self.completed_free.clear();
    }

    fn push(&mut self, dot: DotId, origin: OriginId) {
        if self.seen.insert((dot, origin)) {
            self.pending.push((dot, origin));
        }
    }

    fn push_free(&mut self, grammar: &Grammar, dot: DotId, from: FreeId, cost: Cost) {
        if self.nested && !grammar.is_nested(dot) {
            return; // it holds the string that the cursor is in, and goes on after that
        }
        let cell = self.free.entry((dot, from)).or_insert(INFINITE);
        if cost < *cell {
            *cell = cost;
            self.pending_free.push((dot, from, cost));
        }
    }

    fn finish(&mut self, language: &Language, node: &mut Node, predictions: &mut Predictions) {
        let grammar = &language.grammar;
        node.items = std::mem::take(&mut self.items);
        node.items.sort_unstable_by_key(|&(dot, origin)| (grammar.next(dot), dot, origin));
        node.free_items = self
            .free
            .iter()
            .filter(|&(&(dot, _), _)| grammar.next(dot) != END_OF_RULE)
            .map(|(&(dot, from), &cost)| (dot, from, cost))
            .collect();
        node.free_items.sort_unstable_by_key(|&(dot, from, _)| (grammar.next(dot), dot, from));
        node.prediction = predictions.of(
            language,
            node.items
                .iter()
                .map(|&(dot, _)| grammar.next(dot))
                .chain(node.free_items.iter().map(|&(dot, _, _)| grammar.next(dot)))
                .chain(node.first.then_some(grammar.start)),
        );
        node.completed = self.completed.iter().copied().collect();
        node.completed.sort_unstable();
        node.completed_free = self.completed_free.iter().map(|(&(symbol, from), &cost)| (symbol, from, cost)).collect();
        node.completed_free.sort_unstable();
        node.processed = true;
    }
}
