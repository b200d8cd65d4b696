//! The Earley chart over the lattice, from left to right. Its first sets hold *free items*: rules begun in the middle that is
//! still to be written, with the least bytes that their part before the cursor costs ([`crate::right::parts`]).
//!
//! What is done once for many:
//!
//! - The predicted dots that a symbol moves, with all that it finishes at the same node, are one *link* to that node.
//! - Items of rules that began in the middle, and of lists for which these alone wait, do not depend on where in R they stand:
//!   what becomes of them is computed once for all that are alike. Where a list began is found again backwards
//!   ([`crate::right::begun`]).
//! - Where completing a nonterminal does nothing but complete another, the last of such a row is completed at once (Leo 1991): the
//!   end of `a ** b ** …` ends a power at each of its operands.
//! - Of what is completed is kept what a rule that began before R can ask for: free items stand wherever such a rule does.

use crate::bits;
use crate::chart::predict::Predictions;
use crate::grammar::compiled::Grammar;
use crate::grammar::rules::END_OF_RULE;
use crate::ids::{AcceptId, ChunkId, DotId, LinkId, LoneId, ModeId, NodeId, OriginId, PartId, SymbolId};
use crate::language::compiled::Language;
use crate::language::free::Cost;
use crate::lexing::layout::Column;
use crate::lexing::roles::Role;
use crate::right::columns::{Classes, Entry};
use crate::right::lattice::{At, Base, Begun, Completed, Lattice, Origin, Origins, Place, Run, Taken, Top};
use crate::right::lex::{Lexed, LineStart, texts_after};
use crate::right::links::{Link, Links};
use crate::right::parts::{Kind, Part, Parts};
use crate::stop::poll;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Ordering;

/// Completes the sets of a lattice, and makes the nodes that are read to from them. Stops where a line has a column that the
/// classes do not foresee.
pub(super) fn parse(
    language: &Language,
    predictions: &mut Predictions,
    lexed: &mut Lexed,
    charted: &mut Charted,
    classes: &mut Classes,
    entries: &[Entry],
) {
    let (dedents, leaps) = (FxHashSet::default(), FxHashMap::default());
    let mut chart = Chart { language, predictions, lexed, charted, classes, entries, dedents, leaps };
    let mut worker = Worker::default();
    while let Some(id) = chart.charted.lattice.pop() {
        poll();
        if chart.classes.surprised {
            break;
        }
        chart.process(&mut worker, id);
    }
    charted.settle();
}

/// The lattice with all that its sets are made of.
#[derive(Debug)]
pub(super) struct Charted {
    pub(super) lattice: Lattice,
    pub(super) parts: Parts,
    pub(super) links: Links,
    pub(super) origins: Origins,
}

impl Charted {
    pub(super) fn new(language: &Language, end: usize) -> Self {
        Self {
            lattice: Lattice::new(end),
            parts: Parts::new(language),
            links: Links::new(&language.grammar),
            origins: Origins::default(),
        }
    }

    /// Forgets what only the making of the chart needs.
    fn settle(&mut self) {
        self.lattice.settle();
        self.links.settle();
        self.parts.settle();
    }

    /// The place where an item's rule began; `None` if that is in the middle.
    fn begun_at(&self, origin: OriginId) -> Option<Begun> {
        match self.origins.get(origin).base {
            Base::Node(node) => Some(self.lattice.node(node).place.begun()),
            Base::Free(_) => None,
        }
    }

    /// What stands at a node, began in R and has a symbol next.
    fn waiting<'a>(
        &'a self,
        grammar: &'a Grammar,
        id: NodeId,
        symbol: SymbolId,
    ) -> impl Iterator<Item = (DotId, OriginId)> + 'a {
        let node = self.lattice.node(id);
        let own = slice_by(node.items.of(&self.lattice.items), |item| grammar.next(item.0), symbol).iter().copied();
        let linked = node.links.of(&self.lattice.links).iter().flat_map(move |&(link, begun)| {
            let dots = slice_by(&self.links.get(link).dots, |&dot| grammar.next(dot), symbol);
            dots.iter().map(move |&dot| (dot, Origins::at_node(begun)))
        });
        own.chain(linked)
    }

    /// Adds moved dots that lists may begin with at a node: those of lists, or where something waits for their nonterminal that
    /// began in R, be it a list itself, those of the node.
    fn begin_lone(
        &mut self,
        grammar: &Grammar,
        node: NodeId,
        id: LoneId,
        items: &mut Vec<(DotId, OriginId)>,
        chunks: &mut Vec<At<ChunkId>>,
    ) {
        let lone = self.links.lone_dots(id).clone();
        let begun = self.lattice.node(node).place.begun();
        let own = self.waits_in_right(grammar, node, &lone.nonterminals);
        if let Some(own) = &own {
            let at_node = |dot: DotId| bits::contains(own, grammar.nonterminal_index(grammar.lhs(dot)));
            let dots = lone.dots.iter().filter(|&&dot| at_node(dot));
            items.extend(dots.map(|&dot| (dot, Origins::at_node(node))));
        }
        for &part in self.lattice.parts(node) {
            chunks.extend(self.parts.begun(grammar, part, (id, &lone), begun, own.as_deref()));
        }
    }

    /// The nonterminals among some that something waits for at a node which began in R; `None` if there are none.
    fn waits_in_right(&self, grammar: &Grammar, id: NodeId, nonterminals: &[u64]) -> Option<Vec<u64>> {
        let node = self.lattice.node(id);
        let meets =
            |next: SymbolId| !grammar.is_lexeme(next) && bits::contains(nonterminals, grammar.nonterminal_index(next));
        let items = node.items.of(&self.lattice.items);
        let links = node.links.of(&self.lattice.links);
        let any = items.iter().any(|&(dot, _)| meets(grammar.next(dot)))
            || links.iter().any(|&(link, _)| bits::meet(&self.links.get(link).waits, nonterminals))
            || self.lattice.parts(id).iter().any(|&(part, _)| self.parts.get(part).waits_in_list(nonterminals));
        if !any {
            return None;
        }
        let mut found = vec![0; nonterminals.len()];
        for next in items.iter().map(|&(dot, _)| grammar.next(dot)).filter(|&next| !grammar.is_lexeme(next)) {
            bits::insert(&mut found, grammar.nonterminal_index(next));
        }
        for &(link, _) in links {
            bits::unite(&mut found, &self.links.get(link).waits);
        }
        for &(part, _) in self.lattice.parts(id) {
            self.parts.get(part).add_waits_in_list(&mut found);
        }
        Some(found)
    }

    /// Whether anything can ask where one of some nonterminals began, if that is at a node: a rule that began before R, or a
    /// list.
    fn is_wanted(&self, id: NodeId, wanted: impl Fn(&Part) -> bool) -> bool {
        let asks = |&(part, _): &At<PartId>| wanted(self.parts.get(part));
        self.lattice.node(id).crossed || self.lattice.parts(id).iter().any(asks)
    }
}

/// A chart in the making.
struct Chart<'a> {
    language: &'a Language,
    predictions: &'a mut Predictions,
    lexed: &'a mut Lexed,
    charted: &'a mut Charted,
    classes: &'a mut Classes,
    entries: &'a [Entry],
    /// DEDENT edges, by both ends.
    dedents: FxHashSet<(NodeId, NodeId)>,
    /// What completing a nonterminal begun at a node comes to where it only completes others: the last of them (Leo 1991).
    leaps: FxHashMap<(SymbolId, NodeId), (SymbolId, NodeId)>,
}

impl Chart<'_> {
    /// Completes a node's set and reads on from it.
    fn process(&mut self, worker: &mut Worker, id: NodeId) {
        let pending = self.charted.lattice.take_pending(id);
        let reads = !pending.items.is_empty() || !pending.chunks.is_empty() || !pending.symbols.is_empty();
        if !reads && !self.charted.lattice.node(id).first {
            self.charted.lattice.node_mut(id).processed = true;
            return;
        }
        worker.begin();
        let place = self.charted.lattice.node(id).place;
        let kind = Kind { nested: place.is_in_literal(), loops: matches!(place, Place::Line { top: Top::Above, .. }) };
        worker.chunks.extend(pending.chunks);
        for (dot, origin) in pending.items {
            worker.push(dot, origin);
        }
        for (symbol, begun) in pending.symbols {
            self.complete(worker, begun, symbol);
        }
        self.close(worker);
        self.finish(worker, id, kind);
        self.read_on(id);
    }

    /// Earley's completer, for items that began in R.
    fn close(&mut self, worker: &mut Worker) {
        let language = self.language;
        let grammar = &language.grammar;
        while let Some((dot, origin)) = worker.pending.pop() {
            let next = grammar.next(dot);
            if next != END_OF_RULE {
                worker.items.push((dot, origin));
                if grammar.nullable(next) {
                    worker.push(Grammar::advance(dot), origin);
                }
                continue;
            }
            let lhs = grammar.lhs(dot);
            match self.charted.origins.get(origin).base {
                Base::Node(begun) => self.complete(worker, begun, lhs),
                Base::Free(begun) => {
                    let cost = self.charted.origins.cost(origin);
                    worker.chunks.extend(self.charted.parts.end(lhs, begun, cost));
                }
            }
        }
    }

    /// Completes a nonterminal that began at a node, or a symbol read there, as far as it moves what is predicted.
    fn complete(&mut self, worker: &mut Worker, begun: NodeId, lhs: SymbolId) {
        let (lhs, begun) = self.leap(lhs, begun);
        if !worker.ended.insert((lhs, begun)) {
            return;
        }
        let language = self.language;
        let grammar = &language.grammar;
        let source = self.charted.lattice.node(begun);
        debug_assert!(source.processed, "a symbol with text ends after the node it began at");
        let id = self.charted.links.of(language, self.predictions, source.prediction, lhs);
        let link = self.charted.links.get(id).clone();
        let chunks = worker.chunks.len();
        for &part in self.charted.lattice.parts(begun) {
            worker.chunks.extend(self.charted.parts.linked(grammar, part, id, lhs, &link.chain));
        }
        let free = worker.chunks.len() > chunks;
        let moved = self.move_own(worker, begun, lhs, &link);
        // Whether completing this is but completing another.
        let alone = !source.crossed && !free && link.dots.is_empty() && link.lone.is_none();
        let is_read = grammar.is_lexeme(lhs);
        if let (true, Some((dot, origin))) = (alone && !is_read, moved) {
            let ends = grammar.next(Grammar::advance(dot)) == END_OF_RULE;
            if let (true, Base::Node(at)) = (ends, self.charted.origins.get(origin).base) {
                self.leaps.insert((lhs, begun), (grammar.lhs(dot), at));
            }
        }
        if !link.dots.is_empty() {
            worker.links.push((id, begun));
        }
        let mut items = Vec::new();
        let before = worker.chunks.len();
        if let Some(lone) = link.lone {
            self.charted.begin_lone(grammar, begun, lone, &mut items, &mut worker.chunks);
        }
        for (dot, origin) in items {
            worker.keep(dot, origin);
        }
        // A list is found again by its first symbol.
        let begins_list = worker.chunks.len() > before;
        if is_read {
            // Edges say where symbols began.
        } else if begins_list || self.charted.is_wanted(begun, |part| part.waits_for(grammar, lhs)) {
            worker.completed.push(Completed::One(lhs, begun));
        }
        let finished = link.chain.finished.words();
        if link.finishes && (begins_list || self.charted.is_wanted(begun, |part| part.waits_for_one(finished))) {
            worker.completed.push(Completed::Link(id, begun));
        }
    }

    /// Moves what waits at a node and began in R over a nonterminal, and over all that this finishes there. If that is one
    /// item, it is returned as it was.
    fn move_own(&self, worker: &mut Worker, begun: NodeId, lhs: SymbolId, link: &Link) -> Option<(DotId, OriginId)> {
        let grammar = &self.language.grammar;
        let mut moved = 0usize;
        let mut last = None;
        let mut push = |dot: DotId, origin: OriginId| {
            moved += 1;
            last = Some((dot, origin));
            worker.push(Grammar::advance(dot), origin);
        };
        if !grammar.is_lexeme(lhs) {
            for (dot, origin) in self.charted.waiting(grammar, begun, lhs) {
                push(dot, origin);
            }
        }
        if link.finishes {
            let Charted { lattice, links, .. } = &*self.charted;
            let finished = |dot: DotId| {
                let next = grammar.next(dot);
                next != lhs && !grammar.is_lexeme(next) && link.chain.finishes(grammar, next)
            };
            let node = lattice.node(begun);
            for &(dot, origin) in node.items.of(&lattice.items).iter().filter(|item| finished(item.0)) {
                push(dot, origin);
            }
            for &(other, at) in node.links.of(&lattice.links) {
                for &dot in links.get(other).dots.iter().filter(|&&dot| finished(dot)) {
                    push(dot, Origins::at_node(at));
                }
            }
        }
        last.filter(|_| moved == 1)
    }

    /// What is completed in the end where completing this only completes another.
    fn leap(&mut self, lhs: SymbolId, begun: NodeId) -> (SymbolId, NodeId) {
        let Some(&(mut last)) = self.leaps.get(&(lhs, begun)) else { return (lhs, begun) };
        let mut passed = vec![(lhs, begun)];
        while let Some(&next) = self.leaps.get(&last) {
            passed.push(last);
            last = next;
        }
        for at in passed {
            self.leaps.insert(at, last);
        }
        last
    }

    /// Puts a closed set into its node.
    fn finish(&mut self, worker: &mut Worker, id: NodeId, kind: Kind) {
        let language = self.language;
        let grammar = &language.grammar;
        worker.parts.clear();
        self.charted.parts.closed(language, &mut worker.chunks, kind, &mut worker.parts);
        worker.items.sort_unstable_by_key(|&(dot, origin)| (grammar.next(dot), dot, origin));
        let Charted { lattice, parts, links, .. } = &mut *self.charted;
        lattice.entries += worker.items.len() + worker.links.len() + worker.completed.len() + worker.parts.len();
        let items = Run::append(&mut lattice.items, worker.items.iter().copied());
        let linked = Run::append(&mut lattice.links, worker.links.iter().copied());
        let completed = Run::append(&mut lattice.completed, worker.completed.iter().copied());
        let free = Run::append(&mut lattice.parts, worker.parts.iter().copied());
        let nexts = worker.items.iter().map(|&(dot, _)| grammar.next(dot));
        let node = lattice.node_mut(id);
        let nexts = nexts.chain(node.first.then_some(grammar.start));
        let closures = worker.links.iter().map(|&(link, _)| &*links.get(link).predicts);
        let closures = closures.chain(worker.parts.iter().map(|&(part, _)| &*parts.get(part).predicts));
        node.prediction = self.predictions.united(language, nexts, closures);
        let free_items = worker.parts.iter().any(|&(part, _)| parts.get(part).has_items());
        node.alive = node.first || !worker.items.is_empty() || !worker.links.is_empty() || free_items;
        (node.items, node.links, node.completed, node.parts) = (items, linked, completed, free);
        node.processed = true;
    }

    /// Follows the symbols that can be read from a node.
    fn read_on(&mut self, id: NodeId) {
        let language = self.language;
        match self.charted.lattice.node(id).place {
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
        let in_line = matches!(self.charted.lattice.node(id).place, Place::Middle { .. });
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
                    self.read_to(id, symbol, target, Taken::Modes(mask));
                }
            }
        }
    }

    /// Reads a symbol after which code goes on.
    fn read_to_code(&mut self, id: NodeId, symbol: SymbolId, role: Role, end: u32) {
        let grammar = &self.language.grammar;
        let goes_on = Taken::Modes(grammar.code_modes());
        let middle = self.lexed.middle_position(end);
        let nested = if grammar.has_modes() { self.lexed.nested_place(end) } else { None };
        match self.charted.lattice.node(id).place {
            Place::Middle { line, .. } => {
                if let Some(position) = middle {
                    let target = self.lexed.middle_at(position, line);
                    self.read_to(id, symbol, target, goes_on);
                }
            }
            Place::Text { .. } if role != Role::Open => {
                for line in self.lines_begun(id, symbol) {
                    let Some(position) = middle else { break };
                    let target = self.lexed.middle_at(position, line);
                    self.read_to(id, symbol, target, Taken::EndsIn(line));
                }
                if let Some(target) = nested {
                    self.read_to(id, symbol, target, Taken::EndsNested);
                }
            }
            _ => {
                if let Some(target) = nested {
                    self.read_to(id, symbol, target, goes_on);
                }
            }
        }
    }

    /// The lines that go on after the end of a literal that holds code: those that it stands in; where it began in the middle,
    /// any may be it.
    fn lines_begun(&self, id: NodeId, symbol: SymbolId) -> Vec<Top> {
        let grammar = &self.language.grammar;
        let ended = self.charted.waiting(grammar, id, symbol);
        let ended = ended.map(|(_, origin)| self.charted.begun_at(origin));
        let Charted { lattice, parts, .. } = &*self.charted;
        let free = lattice.parts(id).iter().flat_map(|&(part, _)| parts.get(part).waiting(grammar, symbol));
        let mut lines: Vec<Top> = ended
            .chain(free.map(|item| parts.begun_at(item.1)))
            .filter_map(|begun| match begun {
                Some(Begun::Line(line)) => Some(line),
                _ => None,
            })
            .collect();
        lines.push(Top::Unknown);
        lines.sort_unstable();
        lines.dedup();
        lines
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
            self.read_to(id, newline, target, Taken::All);
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
                self.charted.lattice.connect(dedent, id, id);
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

    /// Reads a symbol for those of the items after it that are taken.
    fn read_to(&mut self, id: NodeId, symbol: SymbolId, target: Place, taken: Taken) {
        let language = self.language;
        let grammar = &language.grammar;
        let charted = &mut *self.charted;
        let waiting = charted.waiting(grammar, id, symbol);
        let mut items: Vec<(DotId, OriginId)> = waiting.map(|(dot, origin)| (Grammar::advance(dot), origin)).collect();
        let mut chunks: Vec<At<ChunkId>> = Vec::new();
        for &part in charted.lattice.parts(id) {
            chunks.extend(charted.parts.moved(grammar, part, symbol, taken));
        }
        items.retain(|&(dot, origin)| taken.takes(grammar, dot, charted.begun_at(origin)));
        let node = charted.lattice.node(id);
        let (predicted, begun) = ((node.prediction, symbol), node.place.begun());
        let reading = charted.links.reading(grammar, self.predictions, predicted, taken, begun);
        if !reading.is_whole {
            items.extend(reading.dots.iter().map(|&dot| (dot, Origins::at_node(id))));
            if let Some(lone) = reading.lone {
                charted.begin_lone(grammar, id, lone, &mut items, &mut chunks);
            }
            if items.is_empty() && chunks.is_empty() {
                return;
            }
        }
        let target = charted.lattice.intern(target);
        charted.lattice.connect(symbol, id, target);
        let pending = charted.lattice.pending(target);
        pending.items.extend(items);
        pending.chunks.extend(chunks);
        if reading.is_whole {
            pending.symbols.push((symbol, id));
        }
    }

    /// Reads an INDENT in R: the block's columns go into the origins of its items.
    fn read_indent(&mut self, id: NodeId, indent: SymbolId, target: Place, block: (Column, Column)) {
        let grammar = &self.language.grammar;
        let charted = &mut *self.charted;
        let node = charted.lattice.node(id);
        let mut begun: Vec<(DotId, Base, Cost)> = charted
            .waiting(grammar, id, indent)
            .map(|(dot, origin)| (dot, charted.origins.get(origin).base, charted.origins.cost(origin)))
            .collect();
        for &(part, offset) in charted.lattice.parts(id) {
            for &(dot, from, cost) in charted.parts.get(part).waiting(grammar, indent) {
                let from = charted.parts.free_state(from).expect("no list opens a block");
                begun.push((dot, Base::Free(from), cost.saturating_add(offset)));
            }
        }
        begun.extend(self.predictions.dots(node.prediction, indent).iter().map(|&dot| (dot, Base::Node(id), 0)));
        if begun.is_empty() {
            return;
        }
        let target = charted.lattice.intern(target);
        charted.lattice.connect(indent, id, target);
        for (dot, base, cost) in begun {
            let origin = charted.origins.intern(Origin { base, block: Some(block) }, cost);
            charted.lattice.pending(target).items.push((Grammar::advance(dot), origin));
        }
    }

    /// Closes a block that was opened in R: its two columns say where to.
    fn read_dedent_in_right(&mut self, id: NodeId, dedent: SymbolId, line: (u32, Column), top: Column) {
        let grammar = &self.language.grammar;
        let (position, column) = line;
        let closing: Vec<(DotId, OriginId)> = self.charted.waiting(grammar, id, dedent).collect();
        for (dot, origin) in closing {
            let Some((below, own)) = self.charted.origins.get(origin).block else { continue };
            if own != top {
                continue;
            }
            let target = match self.classes.compare(below, column) {
                Some(Ordering::Equal) => self.lexed.line_begin(position, column),
                Some(Ordering::Greater) => Place::Line { position, column, top: Top::Exact(below) },
                _ => continue,
            };
            let target = self.charted.lattice.intern(target);
            if self.dedents.insert((id, target)) {
                self.charted.lattice.connect(dedent, id, target);
            }
            self.charted.lattice.pending(target).items.push((Grammar::advance(dot), origin));
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
        let Charted { lattice, parts, .. } = &mut *self.charted;
        let moved = |&part: &At<PartId>| parts.moved(&self.language.grammar, part, dedent, Taken::All);
        let chunks = lattice.parts(id).iter().filter_map(moved);
        let chunks: Vec<At<ChunkId>> = chunks.map(|(chunk, cost)| (chunk, cost.saturating_add(further))).collect();
        if chunks.is_empty() {
            return;
        }
        let target = self.charted.lattice.intern(target);
        if self.dedents.insert((id, target)) {
            self.charted.lattice.connect(dedent, id, target);
        }
        self.charted.lattice.pending(target).chunks.extend(chunks);
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
    pending: Vec<(DotId, OriginId)>,
    seen: FxHashSet<(DotId, OriginId)>,
    items: Vec<(DotId, OriginId)>,
    links: Vec<(LinkId, NodeId)>,
    chunks: Vec<At<ChunkId>>,
    parts: Vec<At<PartId>>,
    ended: FxHashSet<(SymbolId, NodeId)>,
    completed: Vec<Completed>,
}

impl Worker {
    fn begin(&mut self) {
        self.pending.clear();
        self.seen.clear();
        self.items.clear();
        self.links.clear();
        self.chunks.clear();
        self.ended.clear();
        self.completed.clear();
    }

    fn push(&mut self, dot: DotId, origin: OriginId) {
        if self.seen.insert((dot, origin)) {
            self.pending.push((dot, origin));
        }
    }

    /// Takes up an item whose nullable symbols have been passed already.
    fn keep(&mut self, dot: DotId, origin: OriginId) {
        if self.seen.insert((dot, origin)) {
            self.items.push((dot, origin));
        }
    }
}
