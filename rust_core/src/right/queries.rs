//! Opened right context, and the queries of requirements and branches about it.

use crate::chart::predict::Predictions;
use crate::ids::{AcceptId, FreeId, NodeId, StateId, SymbolId};
use crate::language::compiled::Language;
use crate::language::free::Cost;
use crate::language::marks::Slots;
use crate::lexing::layout::Column;
use crate::lexing::lookahead::Lookahead;
use crate::right::begun::Visited;
use crate::right::chart::{self, Charted};
use crate::right::closers::Closers;
use crate::right::columns::{Classes, Measure};
use crate::right::crossings::{Crossings, UNREFUNDED};
use crate::right::lex::{Lexed, LineStart, texts_after};
use crate::right::places::{Place, Top};
use crate::right::set_memo::SetMemo;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Ordering;
use std::sync::{Arc, OnceLock};

/// Kinds of context that the cursor may be in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CursorContext {
    /// Code that no literal holds.
    pub code: bool,
    /// The text of a literal that holds code, or that code.
    pub text: bool,
}

/// The lattice and the chart over one R.
#[derive(Debug)]
pub(crate) struct Right {
    /// Ends of symbols in progress in R.
    pub lookahead: Lookahead,
    lexed: Lexed,
    charted: Charted,
    /// The columns of R's lines, and some more.
    classes: Classes,
    crossings: Crossings,
    closers: OnceLock<Closers>,
}

impl Right {
    /// Lex and parse R from every boundary on which the cursor can fall.
    #[must_use]
    pub(crate) fn open(language: &Arc<Language>, predictions: &mut Predictions, text: &[u8]) -> Self {
        let in_classes = language.layout.is_none_or(|layout| layout.column_classes);
        let measures = Measure::of(text);
        let (last, tried) = measures.split_last().expect("some");
        for &measure in tried.iter().filter(|_| in_classes) {
            let right = Self::open_with(language, predictions, text, measure, SetMemo::default());
            if !right.classes.surprised {
                return right;
            }
        }
        Self::open_with(language, predictions, text, *last, SetMemo::default())
    }

    /// Open R with every set computed by itself.
    #[cfg(test)]
    pub(super) fn open_plainly(language: &Arc<Language>, predictions: &mut Predictions, text: &[u8]) -> Self {
        let measures = Measure::of(text);
        let mut rights = measures.map(|measure| Self::open_with(language, predictions, text, measure, SetMemo::off()));
        let used = rights.iter().position(|right| !right.classes.surprised).expect("the last foresees every line");
        rights.swap(0, used);
        let [right, ..] = rights;
        right
    }

    /// Open R with columns in classes by a measure.
    fn open_with(
        language: &Arc<Language>,
        predictions: &mut Predictions,
        text: &[u8],
        measure: Measure,
        known: SetMemo,
    ) -> Self {
        let lookahead = Lookahead::run(&language.lexer, text);
        let states = (1..language.lexer.state_count()).map(StateId::from_index);
        let mut starts: Vec<u32> = states.filter_map(|state| lookahead.end(state)).map(|(end, _)| end).collect();
        starts.push(0);
        starts.sort_unstable();
        starts.dedup();
        let mut lexed = Lexed::new(language, text);
        for start in starts.into_iter().filter(|_| !language.grammar.unites_modes()) {
            lexed.lex(predictions, start);
        }
        if let Some(marks) = &language.marks {
            let in_progress = (1..language.lexer.state_count()).map(StateId::from_index);
            let cuts = in_progress.filter(|&state| marks.are_live(state)).filter_map(|state| {
                let (end, _) = lookahead.end(state).filter(|&(_, accept)| marks.are_in(accept))?;
                Some((end, state))
            });
            lexed.slots = Slots::new(cuts.collect(), text, marks.starts());
        }
        let mut classes = Classes::of(text, measure);
        let mut charted = Charted::new(language, text.len());
        let crossings = Crossings::find(&lexed, &lookahead, &mut charted.lattice, &mut classes);
        crossings.seed(&lexed, &mut charted, &classes);
        chart::parse(language, predictions, &mut lexed, &mut charted, &mut classes, known);
        Self { lookahead, lexed, charted, classes, crossings, closers: OnceLock::new() }
    }

    /// Take the slots of the texts that R matches and has not bound.
    pub(crate) fn take_slots(&mut self) -> Slots {
        std::mem::take(&mut self.lexed.slots)
    }

    fn language(&self) -> &Language {
        self.lexed.language()
    }

    /// Free states that reach a node without a symbol, at a cost in bytes (of an indentation or a comment that the cursor cuts).
    #[must_use]
    pub(crate) fn crossings(&self) -> &[(FreeId, NodeId, Cost)] {
        &self.crossings.between
    }

    /// Free states that reach a node by a symbol cut by the cursor, at a cost in bytes.
    #[must_use]
    pub(crate) fn symbol_crossings(&self) -> &[(FreeId, SymbolId, NodeId, Cost)] {
        &self.crossings.by_symbol
    }

    /// Return the place before which a node stands.
    #[inline]
    #[must_use]
    pub(crate) fn place(&self, id: NodeId) -> Place {
        self.charted.lattice.place(id)
    }

    /// Size of all sets while the chart was made.
    #[cfg(test)]
    pub(super) fn entries(&self) -> usize {
        self.charted.lattice.entries
    }

    /// Number of sets found instead of computed.
    #[cfg(test)]
    pub(super) fn found(&self) -> usize {
        self.charted.found
    }

    /// Contents of a node: completions, free parts, and whether a parse reaches it.
    #[cfg(test)]
    pub(super) fn stands(&self, id: NodeId) -> String {
        let lattice = &self.charted.lattice;
        let (completed, mut parts): (Vec<_>, Vec<_>) = (lattice.completed(id).collect(), lattice.parts(id).collect());
        parts.sort_unstable();
        let set = lattice.set(id);
        format!("{completed:?} {parts:?} {} {:?}", set.is_alive, set.prediction)
    }

    /// Number of free parts and lists.
    #[cfg(test)]
    pub(super) fn part_count(&self) -> usize {
        self.charted.parts.count()
    }

    /// Symbols that lead to a node, with the nodes they come from.
    pub(crate) fn incoming(&self, id: NodeId) -> impl Iterator<Item = (SymbolId, NodeId)> + '_ {
        self.charted.lattice.incoming(id)
    }

    /// The text of a lexeme that leaves a node.
    pub(crate) fn text_at(&self, id: NodeId, lexeme: SymbolId) -> Option<&[u8]> {
        Some(self.lexed.text_of(lexeme, self.place(id).position()?)?.1)
    }

    /// Add the nodes at which a nonterminal began that ends at one of some nodes, as far as a rule that began before R
    /// can ask for it. A node may be added more than once.
    pub(crate) fn begun(&self, symbol: SymbolId, nodes: &[NodeId], found: &mut Vec<NodeId>) {
        self.begun_besides(symbol, nodes, &mut Visited::default(), found);
    }

    /// Add the nodes as [`Self::begun`] does, without those that earlier walks have passed.
    pub(crate) fn begun_besides(
        &self,
        symbol: SymbolId,
        nodes: &[NodeId],
        passed: &mut Visited,
        found: &mut Vec<NodeId>,
    ) {
        self.charted.begun(&self.language().grammar, symbol, nodes, passed, found);
    }

    /// The free states in which a nonterminal began that ends at a node, with the bytes of its part before R. Of
    /// several costs of one state the least counts.
    pub(crate) fn begun_free(&self, symbol: SymbolId, id: NodeId) -> impl Iterator<Item = (FreeId, Cost)> + '_ {
        let Charted { lattice, parts, .. } = &self.charted;
        lattice.parts(id).flat_map(move |(part, offset)| {
            let completed = &parts.get(part).completed;
            let begin = completed.partition_point(|entry| entry.0 < symbol);
            let own = completed[begin..].iter().take_while(move |entry| entry.0 == symbol);
            own.filter_map(move |&(_, from, cost)| {
                let cost = cost.saturating_add(offset).saturating_sub(UNREFUNDED);
                Some((parts.free_state(from)?, cost))
            })
        })
    }

    /// The number of nodes.
    #[must_use]
    pub(crate) fn node_count(&self) -> usize {
        self.charted.lattice.node_count()
    }

    /// R.
    #[must_use]
    pub(crate) fn text(&self) -> &[u8] {
        self.lexed.text()
    }

    /// The node at the end of the file, if any parse of R reaches it.
    #[must_use]
    pub(crate) fn end(&self) -> Option<NodeId> {
        self.charted.lattice.get(Place::End)
    }

    /// Position of the furthest symbol that a parse reaches from a position of R. It is the end of R if all of it can
    /// be read, and still no file ends so.
    #[must_use]
    pub(crate) fn reach(&self, start: u32, around: CursorContext) -> u32 {
        let chart = self.reach_of_chart(start, around);
        let lexed = around.code && !self.language().grammar.unites_modes();
        if lexed { chart.max(self.lexed.reach_of_symbols(start)) } else { chart }
    }

    /// Position of the furthest node with items, over edges from a position. Literals that R opens itself and that hold
    /// code are passed over whole: their nodes are shared with parses in which another literal is open all along.
    /// (Different lexings of R share other nodes too; this does not separate their parses.)
    fn reach_of_chart(&self, start: u32, around: CursorContext) -> u32 {
        let line = self.line_start(start, false).map(|line| line.position);
        let nested = self.lexed.nested_place(start).and_then(Place::position);
        let starts = [Some(start), self.lexed.middle_position(start), nested, line];
        let united = self.language().grammar.unites_modes();
        let crossings = self.crossings.between.iter().map(|&(_, node, _)| node);
        let crossings = crossings.chain(self.crossings.by_symbol.iter().map(|&(_, _, node, _)| node));
        let mut stack: Vec<NodeId> = crossings
            .filter(|node| {
                let place = self.place(*node);
                let position = place.position();
                let wanted = if place.is_in_literal() { around.text } else { around.code || united };
                wanted && position.is_some() && starts.contains(&position)
            })
            .collect();
        let mut edges: FxHashMap<NodeId, Vec<NodeId>> = FxHashMap::default();
        for node in (0..self.node_count()).map(NodeId::from_index) {
            for (_, from) in self.incoming(node) {
                edges.entry(from).or_default().push(node);
            }
        }
        let mut seen: FxHashSet<NodeId> = FxHashSet::default();
        let mut furthest = start;
        while let Some(id) = stack.pop() {
            let place = self.place(id);
            if self.charted.lattice.set(id).is_alive && seen.insert(id) {
                furthest = furthest.max(place.position().unwrap_or(0));
                let next = edges.get(&id).into_iter().flatten();
                stack.extend(next.filter(|next| united || around.text || !self.place(**next).is_in_literal()));
                if let (Place::Middle { position, line }, false) = (place, around.text)
                    && let Some(end) = self.lexed.passed(position)
                {
                    let after = self.lexed.middle_position(end).map(|position| self.lexed.middle_at(position, line));
                    stack.extend(after.and_then(|place| self.charted.lattice.get(place)));
                }
            }
        }
        furthest
    }

    /// The nodes at a position, in some modes, for a line that has a symbol before the cursor.
    pub(crate) fn nodes_at(&self, position: u32, modes: u64) -> Vec<NodeId> {
        let code = self.language().grammar.code_modes();
        let mut places = if modes & code == 0 { Vec::new() } else { self.lexed.code_places(position) };
        places.extend(texts_after(modes & !code, position).map(|(place, _)| place));
        places.into_iter().filter_map(|place| self.charted.lattice.get(place)).collect()
    }

    /// The nodes at a position after a symbol, or after an ignored lexeme.
    pub(crate) fn nodes_after(&self, position: u32, accept: Option<AcceptId>) -> Vec<NodeId> {
        let grammar = &self.language().grammar;
        let modes = accept.map_or(grammar.code_modes(), |accept| {
            let lexemes = self.language().lexer.lexemes(accept).iter();
            lexemes.fold(0, |mask, &lexeme| mask | grammar.modes_after_lexeme(SymbolId::from(lexeme)))
        });
        self.nodes_at(position, modes)
    }

    /// The node for a line start in R (its position and column known) with a column on top of the stack.
    #[must_use]
    pub(crate) fn line_node(&self, position: u32, column: Column, top: Column) -> Option<NodeId> {
        let place = match top.compare(column)? {
            Ordering::Equal => self.lexed.line_begin(position, column),
            Ordering::Less => Place::Line { position, column, top: Top::Exact(self.classes.class(top)) },
            Ordering::Greater => Place::Line { position, column, top: Top::Above },
        };
        self.charted.lattice.get(place)
    }

    /// The node for a line whose indentation the cursor cuts, once its column is known.
    #[must_use]
    pub(crate) fn entry_node(&self, position: u32, column: Column) -> Option<NodeId> {
        let exact = Place::Middle { position, line: Top::Exact(self.classes.class(column)) };
        self.charted.lattice.get(exact).or_else(|| {
            let entries = self.crossings.entries.iter().enumerate();
            entries.filter(|(_, entry)| entry.to == position).find_map(|(index, entry)| {
                entry.fits(&self.lexed, column)?;
                let line = Top::AboveEntry(u16::try_from(index).expect("entries are few"));
                self.charted.lattice.get(Place::Middle { position, line })
            })
        })
    }

    /// The closing brackets of R that nothing in R opens, with their line in R (1-based), in order.
    #[must_use]
    pub(crate) fn unmatched_closers(&self) -> Vec<String> {
        let found = self.closers().unwrap_or_default();
        let name = |(at, bracket): (usize, &[u8])| {
            let line = 1 + self.text()[..at].iter().filter(|&&byte| byte == b'\n').count();
            format!("{} (line {line} after the cursor)", String::from_utf8_lossy(bracket))
        };
        found.into_iter().map(name).collect()
    }

    /// The closing brackets of R that nothing in R opens, with their positions, in order; `None` if R does not begin
    /// with a symbol.
    #[must_use]
    pub(crate) fn closers(&self) -> Option<Vec<(usize, &[u8])>> {
        if self.language().grammar.unites_modes() {
            return self.united_closers().closers(&self.lexed, &self.charted.lattice, self.code_node(0)?);
        }
        self.lexed.closers()
    }

    /// The brackets that R closes from each node on, where several modes can be in force at once.
    fn united_closers(&self) -> &Closers {
        self.closers.get_or_init(|| Closers::of(self.language(), &self.charted.lattice))
    }

    /// The node of code at a position, or after the ignored lexemes there.
    fn code_node(&self, position: u32) -> Option<NodeId> {
        self.charted.lattice.get(self.lexed.code_place(position))
    }

    /// Number of brackets that R closes and that were opened before it; `None` if R does not begin with a symbol.
    #[must_use]
    pub(crate) fn first_depth(&self) -> Option<u32> {
        if self.language().grammar.unites_modes() { self.unopened(0) } else { self.lexed.depth(0) }
    }

    /// Number of brackets that R closes from a position on and that were opened before it; `None` if R is not code from
    /// there to its end.
    #[must_use]
    pub(crate) fn unopened(&self, position: u32) -> Option<u32> {
        if self.language().grammar.unites_modes() {
            return self.united_closers().unopened(self.code_node(position)?);
        }
        self.lexed.unopened(position)
    }

    /// Number of open brackets at a node, if known: R closes exactly these.
    #[must_use]
    pub(crate) fn depth(&self, node: NodeId) -> Option<u32> {
        match self.place(node) {
            Place::Middle { position, .. } if self.language().layout.is_some() => self.lexed.depth(position),
            _ => None,
        }
    }

    /// Return whether a node stands before the line whose first symbol is at a position.
    #[must_use]
    pub(crate) fn begins_line(&self, node: NodeId, position: u32) -> bool {
        match self.place(node) {
            Place::Line { position: at, .. } => at == position,
            Place::Middle { position: at, line } => at == position && matches!(line, Top::Exact(_)),
            Place::Nested { .. } | Place::Code { .. } | Place::Text { .. } => false,
            Place::End => self.lexed.is_end(position),
        }
    }

    /// Return whether the block popped by a DEDENT edge that starts at a node can have this column.
    #[must_use]
    pub(crate) fn pops(&self, from: NodeId, column: Column) -> bool {
        let Place::Line { column: line, top, .. } = self.place(from) else { return false };
        match top {
            Top::Exact(exact) => exact == self.classes.class(column),
            Top::Above => line.is_left_of(column),
            Top::AboveEntry(entry) => {
                line.is_left_of(column)
                    && self.crossings.entries[usize::from(entry)].fits(&self.lexed, column).is_some()
            }
            Top::Unknown => false,
        }
    }

    /// Least bytes of the indentation of a block whose column is on top of the stack; 0 where the column is not known.
    #[must_use]
    pub(crate) fn least_bytes(&self, top: Top) -> Cost {
        match top {
            Top::Exact(column) => self.classes.least_bytes(column),
            Top::Above | Top::AboveEntry(_) | Top::Unknown => 0,
        }
    }

    /// Scan blank lines, comments and blanks. If `begun`, a line begins at `position` itself. Otherwise the cursor cuts
    /// its indentation there, and the column is unknown up to the first newline. `None` if R cannot be lexed there.
    #[must_use]
    pub(crate) fn line_start(&self, position: u32, begun: bool) -> Option<LineStart> {
        self.lexed.line_start(position, begun)
    }

    /// The column and the position of R's first symbol when the middle ends in an indentation of `before`. A
    /// backslash-newline among the blanks keeps its column, as in CPython's tokenizer; `joined` is a column already
    /// kept.
    #[must_use]
    pub(crate) fn column_through(&self, from: u32, before: Column, joined: Option<Column>) -> Option<(u32, Column)> {
        self.lexed.column_through(from, before, joined)
    }
}
