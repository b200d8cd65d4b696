//! The right context: a lattice of symbols over R and one Earley chart over it, with an unknown left side.
//!
//! Lexing from a byte position is deterministic, so a node is a position (plus, around line starts, the column on top of
//! the indentation stack), and lexings from different first boundaries merge. The chart is ordinary Earley whose first
//! sets hold *free items*: rules begun in the middle that is still to be written, with the least bytes that their part
//! before the cursor costs. What it finds, completed nonterminals between nodes and from free states to nodes, is all
//! that the colours ask about R.
//!
//! # Layout
//!
//! The indentation stack at the cursor is unknown, and nothing needs to be: every INDENT and DEDENT in R is an edge that
//! names the column it pushes or pops and the column below it, and a block must open and close with the same two. A line
//! whose column is c is followed by a line at column n with
//!
//! - c < n: INDENT from top c to top n,
//! - c = n: nothing,
//! - c > n: DEDENTs from top c over any columns in between to top n.
//!
//! Each direct line of a block is a header (checked by the pair of the block it opens), the last (checked by the DEDENT), or
//! followed by its sibling (equal columns), so all have the block's column. Only the first transition after the cursor
//! knows no c: columns left of n are kept apart, those right of n are one class, `Above`, because R never looks at them
//! again. This is section 5 of the design with the counts made into columns.

use crate::chart::left::{FIRST_SET, LeftChart, NO_SET, Read};
use crate::chart::predict::{PredictionId, Predictions};
use crate::grammar::rules::{END_OF_RULE, Grammar};
use crate::ids::{AcceptId, DotId, FreeId, LexemeId, ModeId, NodeId, SymbolId};
use crate::language::definition::Language;
use crate::language::free::{Cost, INFINITE};
use crate::lexing::layout::{Column, is_blank};
use crate::lexing::lookahead::Lookahead;
use crate::lexing::roles::Role;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// What is on top of the indentation stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Top {
    /// This column.
    Exact(Column),
    /// Some column right of the next line's.
    Above,
    /// Some column right of the next line's that the indentation cut by the cursor can have (an index of entries).
    AboveEntry(u16),
    /// Nothing is known (in the first, partial line).
    Unknown,
}

/// What a node stands before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// A symbol at a byte of R, in a line whose column is `line`.
    Middle {
        /// Byte offset in R.
        position: u32,
        /// The line's own column, as far as it is known.
        line: Top,
    },
    /// The first symbol of a line at column `column`, with another column on top of the stack.
    Line {
        /// Byte offset in R.
        position: u32,
        /// The line's own column.
        column: Column,
        /// What is on top of the stack.
        top: Top,
    },
    /// A symbol of code inside a field of a formatted string, or whatever else stands between lexemes of another mode. Line
    /// breaks do not count there, and nothing is assumed of what comes after: the parser sees to it.
    Nested {
        /// Byte offset in R.
        position: u32,
    },
    /// A symbol of a mode that reads no code.
    Text {
        /// Byte offset in R.
        position: u32,
        /// The mode.
        mode: ModeId,
    },
    /// The end of the file, all blocks closed.
    End,
}

/// A line start cut by the cursor: R's blanks from `from` on are the rest of an indentation, `to` is its first symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    from: u32,
    to: u32,
    /// The middle ended in a backslash-newline, or in a backslash whose newline is R's first: any column that was there
    /// stands.
    joined: bool,
}

/// The columns that R's lines may have, and by them the classes of all others.
///
/// R compares the columns of blocks with those of its own lines alone. Where all of those are made of spaces (`plain`), what
/// counts of another column is its width: a stack is strictly increasing by both widths, so a line left of a block by the
/// one is left of it by the other too, or the file is refused where the block opens. So each width has one class, and a
/// second one where a line of R has that width (a column with tabs is not that line's). Otherwise each column is by itself:
/// few where lines are indented by tabs, many where tabs and spaces are mixed far to the right.
#[derive(Debug)]
struct Classes {
    lines: FxHashSet<Column>,
    plain: bool,
    /// A line has a column that was not foreseen.
    surprised: bool,
}

/// Stands for any width with tabs counted as one, in a class of columns.
const WITH_TABS: u32 = u32::MAX;

impl Classes {
    /// Knows the columns of spaces of every line of the text, whether it is a line of R or a string's.
    fn of(text: &[u8], plain: bool) -> Self {
        let mut lines: FxHashSet<Column> = std::iter::once(Column::ZERO).collect();
        for start in (0..text.len()).filter(|&at| matches!(text[at], b'\n' | b'\r')).map(|at| at + 1) {
            let blanks = text[start..].iter().take_while(|&&byte| is_blank(byte)).count();
            let column = Column::ZERO.after_all(&text[start..start + blanks]);
            lines.extend(std::iter::once(column).chain(column.kept()).filter(|column| column.is_spaces()));
        }
        Self { lines, plain, surprised: false }
    }

    fn see(&mut self, line: Column) {
        self.surprised |= self.plain && !self.lines.contains(&line);
    }

    /// The column that stands for all of a column's class.
    fn class(&self, column: Column) -> Column {
        if !self.plain || self.lines.contains(&column) {
            return column;
        }
        let spaces = Column { wide: column.wide, narrow: column.wide };
        if self.lines.contains(&spaces) { Column { narrow: WITH_TABS, ..spaces } } else { spaces }
    }

    /// How a class on the stack compares with a line of R; `None` if tabs and spaces disagree.
    fn compare(&self, class: Column, line: Column) -> Option<Ordering> {
        if !self.plain || class == line {
            return class.compare(line);
        }
        Some(class.wide.cmp(&line.wide)).filter(|&order| order != Ordering::Equal)
    }

    /// The classes strictly between two, the widest first.
    fn between(&self, low: Column, high: Column) -> Vec<Column> {
        if self.plain { self.of_widths(low.wide + 1, high.wide) } else { Column::between(low, high) }
    }

    /// The classes strictly left of a line.
    fn below(&self, line: Column) -> Vec<Column> {
        if self.plain { self.of_widths(0, line.wide) } else { Column::below(line) }
    }

    fn of_widths(&self, from: u32, to: u32) -> Vec<Column> {
        let mut found = Vec::new();
        for wide in (from..to).rev() {
            let spaces = Column { wide, narrow: wide };
            found.push(spaces);
            if wide >= 8 && self.lines.contains(&spaces) {
                found.push(Column { narrow: WITH_TABS, ..spaces });
            }
        }
        found
    }

    /// Least bytes of an indentation at a column of the class.
    fn least_bytes(&self, class: Column) -> u32 {
        if !self.plain || self.lines.contains(&class) { class.least_bytes() } else { class.wide / 8 + class.wide % 8 }
    }
}

/// What came before an item's dot began at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Base {
    Node(NodeId),
    Free(FreeId),
}

/// An item's origin, with the columns of its block where it has read an INDENT: (below, block's own).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Origin {
    base: Base,
    block: Option<(Column, Column)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct OriginId(u32);

/// A node of the lattice with its Earley set.
#[derive(Debug)]
pub struct Node {
    /// Where it stands.
    pub place: Place,
    /// Symbols that lead here, with the nodes they come from.
    pub incoming: Vec<(SymbolId, NodeId)>,
    /// Completed nonterminals that end here, by the node they began at; sorted by nonterminal.
    pub completed: Vec<(SymbolId, NodeId)>,
    /// Completed nonterminals that end here and began in the middle; sorted by nonterminal.
    pub completed_free: Vec<(SymbolId, FreeId, Cost)>,
    items: Vec<(DotId, OriginId)>,
    free_items: Vec<(DotId, FreeId, Cost)>,
    prediction: PredictionId,
    pending: Vec<(DotId, OriginId)>,
    pending_free: Vec<(DotId, FreeId, Cost)>,
    processed: bool,
    /// The file may begin here: nothing but blank lines stands before the cursor.
    first: bool,
}

/// R lexed as code that no other mode encloses. Formatted strings that R itself opens are passed as a whole.
#[derive(Debug)]
struct Raw {
    /// Per visited position: what is matched there and where it ends.
    symbols: Vec<Option<(AcceptId, u32)>>,
    /// Unmatched closing brackets from a position on; `None` where lexing or bracketing fails before the end.
    depth: Vec<Option<u32>>,
    visited: Vec<bool>,
    /// Where what a lexeme leads into has ended, if it does, for lexemes that lead into another mode, and how many brackets
    /// are open there at once.
    passed: FxHashMap<u32, Option<(u32, u32)>>,
    /// Charts of what such a lexeme leads into.
    charts: FxHashMap<LexemeId, LeftChart>,
}

/// Where a scan of blank lines from a line's start ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineStart {
    /// The first symbol, or the end of R.
    pub position: u32,
    /// Its column, if the line began in R; at the end of the file column 0.
    pub column: Option<Column>,
}

/// What the cursor is taken to be in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Around {
    /// Code that no literal holds.
    pub code: bool,
    /// The text of a literal that holds code, or that code.
    pub text: bool,
}

/// The lattice and the chart over one R.
#[derive(Debug)]
pub struct Right {
    text: Vec<u8>,
    raw: Raw,
    /// Where symbols in progress end in R.
    pub lookahead: Lookahead,
    nodes: Vec<Node>,
    ids: FxHashMap<Place, NodeId>,
    origins: Vec<Origin>,
    origin_ids: FxHashMap<Origin, (OriginId, Cost)>,
    origin_costs: Vec<Cost>,
    entries: Vec<Entry>,
    /// The columns of R's lines, and some more.
    classes: Classes,
    /// Free states that reach a node without a symbol, at a cost in bytes (of an indentation that the cursor cuts).
    pub crossings: Vec<(FreeId, NodeId, Cost)>,
    /// Free states that reach a node by a symbol cut by the cursor, at a cost in bytes.
    pub symbol_crossings: Vec<(FreeId, SymbolId, NodeId, Cost)>,
    layout: bool,
    /// DEDENT edges, by both ends.
    dedents: FxHashSet<(NodeId, NodeId)>,
    queue: BTreeMap<(u32, u64), NodeId>,
}

impl Right {
    /// Lexes and parses R from every boundary that the cursor can fall on.
    pub fn open(language: &Language, predictions: &mut Predictions, text: &[u8]) -> Self {
        let classes = language.layout.is_none_or(|layout| layout.column_classes);
        let right = Self::open_with(language, predictions, text, classes);
        if right.classes.surprised { Self::open_with(language, predictions, text, false) } else { right }
    }

    /// The same, with columns in classes or each by itself.
    fn open_with(language: &Language, predictions: &mut Predictions, text: &[u8], plain: bool) -> Self {
        let lookahead = Lookahead::run(&language.lexer, text);
        let mut starts = vec![0];
        for state in 1..language.lexer.state_count() {
            if let Some((end, _)) = lookahead.end(crate::ids::StateId::from_index(state)) {
                starts.push(end);
            }
        }
        starts.sort_unstable();
        starts.dedup();
        let mut raw = Raw::new(text);
        for start in starts {
            raw.lex(language, predictions, text, start);
        }
        let mut right = Self {
            raw,
            text: text.to_vec(),
            lookahead,
            nodes: Vec::new(),
            ids: FxHashMap::default(),
            origins: Vec::new(),
            origin_ids: FxHashMap::default(),
            origin_costs: Vec::new(),
            entries: Vec::new(),
            classes: Classes::of(text, plain),
            crossings: Vec::new(),
            symbol_crossings: Vec::new(),
            layout: language.layout.is_some(),
            dedents: FxHashSet::default(),
            queue: BTreeMap::new(),
        };
        right.cross(language);
        right.seed(language);
        let mut worker = Worker::default();
        while let Some((_, id)) = right.queue.pop_first() {
            if right.classes.surprised {
                break;
            }
            right.process(language, predictions, &mut worker, id);
        }
        right
    }

    /// A node.
    #[inline]
    #[must_use]
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    /// The number of nodes.
    #[must_use]
    pub fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// R.
    #[must_use]
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// The node at the end of the file, if any parse of R reaches it.
    #[must_use]
    pub fn end(&self) -> Option<NodeId> {
        self.ids.get(&Place::End).copied()
    }

    /// The furthest symbol of R that any parse gets to which begins at a position of R: the position where it begins. The
    /// end of R if all of it can be read, and still no file ends so.
    #[must_use]
    pub fn reach(&self, language: &Language, start: u32, around: Around) -> u32 {
        let chart = self.reach_of_chart(language, start, around);
        if around.code { chart.max(self.reach_of_symbols(start)) } else { chart }
    }

    /// Where lexing from a position as code comes to what is no lexeme, or to a bracket that R never closes; without both, the
    /// position itself. Nothing before such a place has nodes, because brackets are counted from the end of R.
    fn reach_of_symbols(&self, start: u32) -> u32 {
        let mut path = Vec::new();
        let mut at = start as usize;
        while let Some((_, end)) = self.raw.symbols[at] {
            path.push(at);
            match self.raw.end(at, end) {
                Some(next) => at = next as usize,
                None => break,
            }
        }
        let failed = if self.raw.depth[at].is_none() {
            Some(at)
        } else {
            path.into_iter().rev().find(|&at| self.raw.depth[at].is_none())
        };
        failed.map_or(start, |at| u32::try_from(at).expect("R fits u32"))
    }

    /// The furthest node that has items, of those that edges lead to from a position. Literals that R opens itself and that
    /// hold code are passed as a whole: their nodes are shared with parses in which another literal is open all along. (So are
    /// others where different lexings of R have met, whose parses this does not tell apart.)
    fn reach_of_chart(&self, language: &Language, start: u32, around: Around) -> u32 {
        let line = self.line_start(language, start, false).map(|line| line.position);
        let nested = self.nested_place(language, start).and_then(|place| self.position(place));
        let starts = [Some(start), self.middle_position(language, start), nested, line];
        let crossings = self.crossings.iter().map(|&(_, node, _)| node);
        let crossings = crossings.chain(self.symbol_crossings.iter().map(|&(_, _, node, _)| node));
        let mut stack: Vec<NodeId> = crossings
            .filter(|node| {
                let position = self.position(self.nodes[node.index()].place);
                let wanted = if self.is_text(*node) { around.text } else { around.code };
                wanted && position.is_some() && starts.contains(&position)
            })
            .collect();
        let mut edges: FxHashMap<NodeId, Vec<NodeId>> = FxHashMap::default();
        for (index, node) in self.nodes.iter().enumerate() {
            for &(_, from) in &node.incoming {
                edges.entry(from).or_default().push(NodeId::from_index(index));
            }
        }
        let mut seen: FxHashSet<NodeId> = FxHashSet::default();
        let mut furthest = start;
        while let Some(id) = stack.pop() {
            let node = &self.nodes[id.index()];
            let alive = node.first || !node.items.is_empty() || !node.free_items.is_empty();
            if alive && seen.insert(id) {
                furthest = furthest.max(self.position(node.place).unwrap_or(0));
                let next = edges.get(&id).into_iter().flatten();
                stack.extend(next.filter(|next| around.text || !self.is_text(**next)));
                if let (Place::Middle { position, line }, false) = (node.place, around.text)
                    && let Some(&Some((end, _))) = self.raw.passed.get(&position)
                {
                    let after = self.middle_position(language, end).map(|position| self.middle_at(position, line));
                    stack.extend(after.and_then(|place| self.ids.get(&place)));
                }
            }
        }
        furthest
    }

    fn is_text(&self, node: NodeId) -> bool {
        matches!(self.nodes[node.index()].place, Place::Nested { .. } | Place::Text { .. })
    }

    /// The byte offset in R of a place; none for the end of the file.
    fn position(&self, place: Place) -> Option<u32> {
        match place {
            Place::Middle { position, .. }
            | Place::Line { position, .. }
            | Place::Nested { position }
            | Place::Text { position, .. } => Some(position),
            Place::End => None,
        }
    }

    /// The nodes at which a line that has a symbol before the cursor can go on at a position, in a mode.
    pub fn nodes_at(&self, language: &Language, position: u32, mode: ModeId) -> impl Iterator<Item = NodeId> + use<'_> {
        let places = if language.grammar.code_modes() >> mode.index() & 1 == 1 {
            let nested = language.grammar.has_modes().then(|| self.nested_place(language, position)).flatten();
            [self.middle_place(language, position), nested]
        } else {
            [Some(Place::Text { position, mode }), None]
        };
        places.into_iter().flatten().filter_map(|place| self.ids.get(&place).copied())
    }

    /// The nodes at which R can go on at a position after a symbol, or after something that is not passed on.
    pub fn nodes_after(&self, language: &Language, position: u32, accept: Option<AcceptId>) -> Vec<NodeId> {
        let grammar = &language.grammar;
        let code = grammar.code_modes();
        let mut modes = accept.map_or(code, |accept| {
            let lexemes = language.lexer.lexemes(accept).iter();
            lexemes.fold(0, |mask, &lexeme| mask | grammar.modes_after_lexeme(Language::symbol(lexeme)))
        });
        if modes & code != 0 {
            modes = modes & !code | 1;
        }
        let each = (0..64).filter(|bit| modes >> bit & 1 == 1);
        each.flat_map(|bit| self.nodes_at(language, position, ModeId::from_index(bit))).collect()
    }

    /// The node for a line start in R (its position and column known) with a column on top of the stack.
    #[must_use]
    pub fn line_node(&self, position: u32, column: Column, top: Column) -> Option<NodeId> {
        let place = match top.compare(column)? {
            Ordering::Equal => self.line_begin(position, column),
            Ordering::Less => Place::Line { position, column, top: Top::Exact(self.classes.class(top)) },
            Ordering::Greater => Place::Line { position, column, top: Top::Above },
        };
        self.ids.get(&place).copied()
    }

    /// The node for a line whose indentation the cursor cuts, once its column is known.
    #[must_use]
    pub fn entry_node(&self, language: &Language, position: u32, column: Column) -> Option<NodeId> {
        if let Some(&id) = self.ids.get(&Place::Middle { position, line: Top::Exact(self.classes.class(column)) }) {
            return Some(id);
        }
        (0..self.entries.len()).filter(|&index| self.entries[index].to == position).find_map(|index| {
            let entry = u16::try_from(index).expect("entries are few");
            self.fits(language, entry, column)
                .and_then(|_| self.ids.get(&Place::Middle { position, line: Top::AboveEntry(entry) }).copied())
        })
    }

    /// The closing brackets of R that nothing in R opens, with their line in R (1-based), the first first.
    #[must_use]
    pub fn unmatched_closers(&self, language: &Language) -> Vec<String> {
        let found = self.closers(language).unwrap_or_default();
        let name = |(at, bracket): (usize, &[u8])| {
            let line = 1 + self.text[..at].iter().filter(|&&byte| byte == b'\n').count();
            format!("{} (line {line} after the cursor)", String::from_utf8_lossy(bracket))
        };
        found.into_iter().map(name).collect()
    }

    /// The same brackets and where in R they are; `None` if R does not begin with a symbol.
    #[must_use]
    pub fn closers(&self, language: &Language) -> Option<Vec<(usize, &[u8])>> {
        let mut found = Vec::new();
        let mut lowest = self.raw.depth[0]?;
        let mut at = 0usize;
        while let Some((accept, end)) = self.raw.symbols[at] {
            let end = self.raw.end(at, end).unwrap_or(end);
            if language.accept_role(accept) == Role::Close
                && let Some(after) = self.raw.depth[end as usize]
                && after < lowest
            {
                lowest = after;
                found.push((at, &self.text[at..end as usize]));
            }
            at = end as usize;
        }
        Some(found)
    }

    /// How many brackets R closes that were opened before it; `None` if R does not begin with a symbol.
    #[must_use]
    pub fn first_depth(&self) -> Option<u32> {
        self.raw.depth[0]
    }

    /// How many brackets are open at a node, where that is known: R closes them, and no others.
    #[must_use]
    pub fn depth(&self, node: NodeId) -> Option<u32> {
        match self.nodes[node.index()].place {
            Place::Middle { position, .. } if self.layout => self.raw.depth[position as usize],
            _ => None,
        }
    }

    /// Whether a node stands before the line whose first symbol is at a position.
    #[must_use]
    pub fn begins_line(&self, node: NodeId, position: u32) -> bool {
        match self.nodes[node.index()].place {
            Place::Line { position: at, .. } => at == position,
            Place::Middle { position: at, line } => at == position && matches!(line, Top::Exact(_)),
            Place::Nested { .. } | Place::Text { .. } => false,
            Place::End => position as usize == self.text.len(),
        }
    }

    /// Whether the block popped by a DEDENT edge that starts at a node can have this column.
    #[must_use]
    pub fn pops(&self, language: &Language, from: NodeId, column: Column) -> bool {
        let Place::Line { column: line, top, .. } = self.nodes[from.index()].place else { return false };
        match top {
            Top::Exact(exact) => exact == self.classes.class(column),
            Top::Above => line.is_left_of(column),
            Top::AboveEntry(entry) => line.is_left_of(column) && self.fits(language, entry, column).is_some(),
            Top::Unknown => false,
        }
    }

    /// Scans blank lines, comments and blanks. `begun` says that a line begins at `position` itself; otherwise the cursor
    /// cuts its indentation there and the column is unknown up to the first newline. `None` if R cannot be lexed there.
    #[must_use]
    pub fn line_start(&self, language: &Language, position: u32, begun: bool) -> Option<LineStart> {
        let mut column = begun.then_some(Column::ZERO);
        let mut kept: Option<Column> = None;
        self.scan_indentation(language, position, &mut |event| match event {
            Blank::Bytes(from, to) => {
                if let Some(column) = &mut column {
                    *column = column.after_all(&self.text[from..to]);
                }
            }
            Blank::Newline => {
                column = Some(Column::ZERO);
                kept = None;
            }
            Blank::Join => kept = kept.or(column.and_then(Column::kept)),
        })
        .map(|position| self.line_start_at(position, column.map(|column| kept.unwrap_or(column))))
        .filter(|start| start.column.is_none_or(|column| column.wide <= crate::limits::RIGHT_COLUMN))
    }

    fn line_start_at(&self, position: u32, column: Option<Column>) -> LineStart {
        let at_end = position as usize == self.text.len();
        LineStart { position, column: if at_end { Some(Column::ZERO) } else { column } }
    }

    /// The column of R's first symbol when the middle ends in an indentation of `before`; a backslash-newline among the
    /// blanks keeps the column it was met at, as CPython's tokenizer does. `joined` is a column already kept that way.
    #[must_use]
    pub fn column_through(
        &self,
        language: &Language,
        from: u32,
        before: Column,
        joined: Option<Column>,
    ) -> Option<(u32, Column)> {
        let mut column = before;
        let mut kept = joined;
        let position = self.scan_indentation(language, from, &mut |event| match event {
            Blank::Bytes(from, to) => column = column.after_all(&self.text[from..to]),
            Blank::Newline => {
                column = Column::ZERO;
                kept = None;
            }
            Blank::Join => kept = kept.or(column.kept()),
        })?;
        let at_end = position as usize == self.text.len();
        let column = if at_end { Column::ZERO } else { kept.unwrap_or(column) };
        (column.wide <= crate::limits::RIGHT_COLUMN).then_some((position, column))
    }

    /// Walks over everything that can stand before a line's first symbol. Returns the symbol's position.
    fn scan_indentation(&self, language: &Language, position: u32, see: &mut dyn FnMut(Blank)) -> Option<u32> {
        let mut at = position;
        let mut newline_last = true;
        loop {
            if self.raw.depth[at as usize]? > 0 {
                return None;
            }
            let Some((accept, end)) = self.raw.symbols[at as usize] else {
                return (at as usize == self.text.len() && newline_last).then_some(at);
            };
            newline_last = true;
            match language.accept_role(accept) {
                Role::Blank => see(Blank::Bytes(at as usize, end as usize)),
                Role::Newline => see(Blank::Newline),
                Role::Comment => {}
                Role::Join => {
                    see(Blank::Join);
                    newline_last = false;
                }
                _ => return Some(at),
            }
            at = end;
        }
    }

    /// The first symbol at or after a position, in a line that already has one. `None` if R cannot go on there.
    fn middle_place(&self, language: &Language, position: u32) -> Option<Place> {
        self.middle_position(language, position).map(|position| self.middle_at(position, Top::Unknown))
    }

    fn middle_at(&self, position: u32, line: Top) -> Place {
        if position as usize == self.text.len() && !self.layout {
            return Place::End;
        }
        Place::Middle { position, line: if self.layout { line } else { Top::Unknown } }
    }

    fn middle_position(&self, language: &Language, position: u32) -> Option<u32> {
        let mut at = position;
        loop {
            let depth = self.raw.depth[at as usize]?;
            let Some((accept, end)) = self.raw.symbols[at as usize] else {
                return Some(at);
            };
            match language.accept_role(accept) {
                Role::Blank | Role::Comment => {}
                Role::Join if end as usize == self.text.len() => return None,
                Role::Join => {}
                Role::Newline if depth > 0 => {}
                _ => return Some(at),
            }
            at = end;
        }
    }

    /// Code inside another mode: blanks, comments and line breaks are passed. `None` at the end of R.
    fn nested_place(&self, language: &Language, position: u32) -> Option<Place> {
        let mut at = position as usize;
        while at < self.text.len() {
            match language.lexer.longest_match(ModeId(0), &self.text[at..]) {
                Some((length, accept))
                    if language.accept_role(accept).is_ignored() || language.accept_role(accept) == Role::Newline =>
                {
                    at += length;
                }
                _ => return Some(Place::Nested { position: u32::try_from(at).expect("R fits u32") }),
            }
        }
        None
    }

    fn line_begin(&self, position: u32, column: Column) -> Place {
        if position as usize == self.text.len() {
            Place::End
        } else {
            Place::Middle { position, line: Top::Exact(column) }
        }
    }

    /// Whether the middle can give the indentation cut by the cursor this column, and by how few bytes.
    fn fits(&self, language: &Language, entry: u16, column: Column) -> Option<Cost> {
        let entry = self.entries[entry as usize];
        if let Some(spaces) = self.spaces(entry) {
            let before = Column { wide: column.wide.checked_sub(spaces)?, narrow: column.narrow.checked_sub(spaces)? };
            return before.is_possible().then(|| before.least_bytes());
        }
        let befores = Self::befores(entry, column).into_iter();
        let fitting = befores.filter(|&before| self.through(language, entry, before) == Some(column));
        fitting.map(|before| Self::entry_cost(entry, before)).min()
    }

    /// The columns that the middle can bring so that an entry's line is not right of one. A line join keeps the width alone.
    fn befores(entry: Entry, column: Column) -> Vec<Column> {
        if entry.joined {
            return (0..=column.wide).map(|wide| Column { wide, narrow: wide }).collect();
        }
        let mut befores = Column::below(column);
        befores.push(column);
        befores
    }

    /// How many spaces R holds of an indentation, if nothing else.
    fn spaces(&self, entry: Entry) -> Option<u32> {
        let blanks = &self.text[entry.from as usize..entry.to as usize];
        (!entry.joined && blanks.iter().all(|&byte| byte == b' ')).then_some(entry.to - entry.from)
    }

    /// The column of an entry's line when the middle brings one.
    fn through(&self, language: &Language, entry: Entry, before: Column) -> Option<Column> {
        let kept = before.kept().filter(|_| entry.joined);
        let start = if entry.joined { Column::ZERO } else { before };
        self.column_through(language, entry.from, start, kept).map(|(_, found)| found)
    }

    fn entry_cost(entry: Entry, before: Column) -> Cost {
        match before.kept() {
            Some(kept) if entry.joined => kept.least_bytes(),
            _ if entry.joined => 0,
            _ => before.least_bytes(),
        }
    }

    /// The classes of an entry's column up to a line's, and the least bytes that the middle must bring for each.
    fn entry_classes(&self, language: &Language, entry: Entry, following: Column) -> Vec<(Column, Cost)> {
        let known = &self.classes;
        if let Some(spaces) = self.spaces(entry).filter(|_| known.plain) {
            let mut classes = known.below(following);
            classes.push(following);
            let cost = |class: Column| {
                let before = class.wide.checked_sub(spaces)?;
                let tabs = before / 8 + before % 8;
                match class.narrow {
                    WITH_TABS => (before >= 8).then_some(tabs),
                    _ if known.lines.contains(&class) => Some(Column { wide: before, narrow: before }.least_bytes()),
                    _ => Some(tabs),
                }
            };
            return classes.into_iter().filter_map(|class| Some((class, cost(class)?))).collect();
        }
        let mut found: BTreeMap<Column, Cost> = BTreeMap::new();
        for before in Self::befores(entry, following) {
            let Some(column) = self.through(language, entry, before) else { continue };
            if column == following || column.is_left_of(following) {
                let cell = found.entry(known.class(column)).or_insert(INFINITE);
                *cell = (*cell).min(Self::entry_cost(entry, before));
            }
        }
        found.into_iter().collect()
    }

    /// Finds where the cursor can fall: boundaries and symbols cut in two, for every free state.
    fn cross(&mut self, language: &Language) {
        let free = &language.free;
        for from in free.states() {
            for to in free.states() {
                if free.ignored(from, to) == INFINITE || !free.may_end(to) || !self.guards_hold(language, to) {
                    continue;
                }
                if free.is_line(to) {
                    self.cross_line_start(language, from, 0, false);
                    // The middle may also have ended in a whole backslash-newline, which keeps any column.
                    self.cross_line_start(language, from, 0, true);
                } else {
                    self.cross_middle(language, from, 0);
                }
            }
            let texts = language.grammar.has_modes()
                && free.states().any(|to| free.ignored(from, to) != INFINITE && !free.is_line(to) && free.may_end(to));
            for mode in (0..language.mode_count()).map(ModeId::from_index).filter(|_| texts) {
                if language.grammar.code_modes() >> mode.index() & 1 == 0 {
                    let node = self.intern(Place::Text { position: 0, mode });
                    self.crossings.push((from, node, 0));
                }
            }
            let mut ends: BTreeMap<(u32, AcceptId), Cost> = BTreeMap::new();
            for symbol in free.in_progress(from) {
                let Some(end) = self.lookahead.end(symbol.state) else { continue };
                let guards = free.guards().states(symbol.guards);
                if guards.iter().all(|&state| self.lookahead.end(state).is_none()) {
                    let cell = ends.entry(end).or_insert(INFINITE);
                    *cell = (*cell).min(symbol.cost);
                }
            }
            for ((end, accept), cost) in ends {
                self.cross_symbol(language, from, end, accept, cost);
            }
        }
        self.crossings.sort_unstable();
        self.crossings.dedup_by_key(|crossing| (crossing.0, crossing.1));
        self.symbol_crossings.sort_unstable();
        self.symbol_crossings.dedup_by_key(|crossing| (crossing.0, crossing.1, crossing.2));
    }

    fn guards_hold(&self, language: &Language, state: FreeId) -> bool {
        let free = &language.free;
        free.guards().states(free.boundary(state)).iter().all(|&guard| self.lookahead.end(guard).is_none())
    }

    fn cross_symbol(&mut self, language: &Language, from: FreeId, end: u32, accept: AcceptId, cost: Cost) {
        let at_line = language.free.is_line(from);
        match language.accept_role(accept) {
            Role::Blank => {
                if !at_line {
                    self.cross_middle(language, from, end);
                }
            }
            Role::Comment if at_line => self.cross_line_start(language, from, end, false),
            Role::Join if at_line => self.cross_line_start(language, from, end, true),
            Role::Join if end as usize == self.text.len() => {}
            Role::Comment | Role::Join => self.cross_middle(language, from, end),
            Role::Newline if at_line => self.cross_line_start(language, from, end, false),
            Role::Newline => {
                let Some(start) = self.line_start(language, end, true) else { return };
                for node in self.line_start_nodes(start) {
                    for &lexeme in language.lexer.lexemes(accept) {
                        self.symbol_crossings.push((from, Language::symbol(lexeme), node, cost));
                    }
                }
            }
            role @ (Role::Symbol | Role::Open | Role::Close) => {
                for &lexeme in language.lexer.lexemes(accept) {
                    let symbol = Language::symbol(lexeme);
                    for (place, _) in self.places_after(language, symbol, role, end) {
                        let node = self.intern(place);
                        self.symbol_crossings.push((from, symbol, node, cost));
                    }
                }
            }
        }
    }

    fn cross_middle(&mut self, language: &Language, from: FreeId, position: u32) {
        let nested = language.grammar.has_modes().then(|| self.nested_place(language, position)).flatten();
        for place in [self.middle_place(language, position), nested].into_iter().flatten() {
            let node = self.intern(place);
            self.crossings.push((from, node, 0));
        }
    }

    /// The places at which R can go on after a lexeme that the cursor cuts or that follows it in a mode of its own, with the
    /// modes that each stands for, as a mask.
    fn places_after(&self, language: &Language, lexeme: SymbolId, role: Role, end: u32) -> Vec<(Place, u64)> {
        let grammar = &language.grammar;
        let code = grammar.code_modes();
        let after = grammar.modes_after_lexeme(lexeme);
        let from_text = code >> grammar.mode_of(lexeme).index() & 1 == 0;
        let mut places = Vec::new();
        if after & code != 0 {
            if !(from_text && role == Role::Open) {
                places.extend(self.middle_place(language, end));
            }
            if grammar.has_modes() {
                places.extend(self.nested_place(language, end));
            }
        }
        let mut found: Vec<(Place, u64)> = places.into_iter().map(|place| (place, code)).collect();
        found.extend(texts_after(after & !code, end));
        found
    }

    /// The cursor stands where a line may begin.
    fn cross_line_start(&mut self, language: &Language, from: FreeId, position: u32, joined: bool) {
        let Some(start) = self.line_start(language, position, false) else { return };
        let nodes: Vec<(NodeId, Cost)> = if start.column.is_some() {
            self.line_start_nodes(start).into_iter().map(|node| (node, 0)).collect()
        } else {
            self.entry_nodes(language, Entry { from: position, to: start.position, joined })
        };
        self.crossings.extend(nodes.into_iter().map(|(node, cost)| (from, node, cost)));
    }

    /// Nodes before a line that begins in R, one for each class of the unknown column on top of the stack.
    fn line_start_nodes(&mut self, start: LineStart) -> Vec<NodeId> {
        let LineStart { position, column: Some(column) } = start else { return Vec::new() };
        let mut places = vec![self.line_begin(position, column), Place::Line { position, column, top: Top::Above }];
        self.classes.see(column);
        places.extend(self.classes.below(column).into_iter().map(|top| Place::Line {
            position,
            column,
            top: Top::Exact(top),
        }));
        places.into_iter().map(|place| self.intern(place)).collect()
    }

    /// Nodes before the first symbol of a line cut in its indentation, one for each class of its column, each with the
    /// least bytes that the middle must bring of it.
    fn entry_nodes(&mut self, language: &Language, entry: Entry) -> Vec<(NodeId, Cost)> {
        let following = self.following_column(language, entry.to);
        // Free states that cut the same indentation share its nodes.
        let known = self.entries.iter().position(|other| *other == entry);
        let place = known.unwrap_or(self.entries.len());
        if known.is_none() {
            self.entries.push(entry);
        }
        let index = u16::try_from(place).expect("entries are few");
        let Some(following) = following else { return Vec::new() };
        self.classes.see(following);
        let classes = self.entry_classes(language, entry, following).into_iter();
        let mut places: Vec<(Place, Cost)> = classes
            .map(|(column, cost)| (Place::Middle { position: entry.to, line: Top::Exact(column) }, cost))
            .collect();
        let held = if entry.joined { following.least_bytes_right_of() } else { entry.to - entry.from };
        let least = following.least_bytes_right_of().saturating_sub(held);
        places.push((Place::Middle { position: entry.to, line: Top::AboveEntry(index) }, least));
        places.into_iter().map(|(place, cost)| (self.intern(place), cost)).collect()
    }

    /// The column of the line after the logical line that a position is in.
    fn following_column(&self, language: &Language, position: u32) -> Option<Column> {
        let mut at = self.middle_position(language, position)?;
        loop {
            let Some((accept, end)) = self.raw.symbols[at as usize] else {
                return Some(Column::ZERO);
            };
            if language.accept_role(accept) == Role::Newline {
                return self.line_start(language, end, true)?.column;
            }
            at = self.middle_position(language, self.raw.end(at as usize, end)?)?;
        }
    }

    /// Gives the first nodes the free items that the middle may have left in progress.
    fn seed(&mut self, language: &Language) {
        let free = &language.free;
        let mut by_node: FxHashMap<NodeId, Vec<(FreeId, Cost)>> = FxHashMap::default();
        for &(from, node, cost) in &self.crossings {
            by_node.entry(node).or_default().push((from, cost));
        }
        for (id, reached_from) in by_node {
            let mut items: FxHashMap<(DotId, FreeId), Cost> = FxHashMap::default();
            let place = self.nodes[id.index()].place;
            for (at, crossing) in reached_from {
                for &(dot, from, cost) in free.open_dots(at) {
                    if stands_at(&language.grammar, place, dot) {
                        let cell = items.entry((dot, from)).or_insert(INFINITE);
                        // Where the rule or its block begins in R after all, the indentation is counted where it begins.
                        let begun = cost != 0 && !language.grammar.is_after_indent(dot);
                        *cell = (*cell).min(if begun { cost.saturating_add(crossing) } else { cost });
                    }
                }
            }
            let node = &mut self.nodes[id.index()];
            node.first = !matches!(place, Place::Nested { .. } | Place::Text { .. });
            node.pending_free.extend(items.into_iter().map(|((dot, from), cost)| (dot, from, cost)));
        }
        for index in 0..self.symbol_crossings.len() {
            let (at, symbol, node, cost) = self.symbol_crossings[index];
            let place = self.nodes[node.index()].place;
            for &(dot, from, before) in free.advances(symbol, at) {
                if stands_at(&language.grammar, place, dot) {
                    self.nodes[node.index()].pending_free.push((dot, from, before.saturating_add(cost)));
                }
            }
        }
    }

    fn intern(&mut self, place: Place) -> NodeId {
        if let Some(&id) = self.ids.get(&place) {
            return id;
        }
        let id = NodeId::from_index(self.nodes.len());
        self.nodes.push(Node {
            place,
            incoming: Vec::new(),
            completed: Vec::new(),
            completed_free: Vec::new(),
            items: Vec::new(),
            free_items: Vec::new(),
            prediction: PredictionId(0),
            pending: Vec::new(),
            pending_free: Vec::new(),
            processed: false,
            first: false,
        });
        self.ids.insert(place, id);
        self.queue.insert((self.order(place), u64::from(id.0) | rank(place) << 32), id);
        id
    }

    /// Nodes are processed from left to right; every edge leads to a later key.
    fn order(&self, place: Place) -> u32 {
        let end = u32::try_from(self.text.len()).expect("R fits u32");
        match place {
            Place::Middle { position, .. } | Place::Nested { position } | Place::Text { position, .. } => {
                position * 2 + 1
            }
            Place::Line { position, .. } if position == end => end * 2 + 2,
            Place::Line { position, .. } => position * 2,
            Place::End => end * 2 + 3,
        }
    }

    fn origin(&mut self, base: Base, block: Option<(Column, Column)>, cost: Cost) -> OriginId {
        let key = Origin { base, block };
        if let Some((id, known)) = self.origin_ids.get_mut(&key) {
            if cost < *known {
                *known = cost;
                self.origin_costs[id.0 as usize] = cost;
            }
            return *id;
        }
        let id = OriginId(u32::try_from(self.origins.len()).expect("origin count fits u32"));
        self.origins.push(key);
        self.origin_costs.push(cost);
        self.origin_ids.insert(key, (id, cost));
        id
    }

    /// Completes a node's set and reads on from it.
    fn process(&mut self, language: &Language, predictions: &mut Predictions, worker: &mut Worker, id: NodeId) {
        let pending = std::mem::take(&mut self.nodes[id.index()].pending);
        let pending_free = std::mem::take(&mut self.nodes[id.index()].pending_free);
        if pending.is_empty() && pending_free.is_empty() && !self.nodes[id.index()].first {
            self.nodes[id.index()].processed = true;
            return;
        }
        worker.begin();
        worker.nested = matches!(self.nodes[id.index()].place, Place::Nested { .. } | Place::Text { .. });
        for (dot, origin) in pending {
            worker.push(dot, origin);
        }
        for (dot, from, cost) in pending_free {
            worker.push_free(&language.grammar, dot, from, cost);
        }
        let loops = matches!(self.nodes[id.index()].place, Place::Line { top: Top::Above, .. });
        self.close(language, predictions, worker, loops);
        let grammar = &language.grammar;
        worker.finish(grammar, &mut self.nodes[id.index()], predictions);
        self.read_on(language, predictions, id);
    }

    /// Earley's completer, for items that began at a node and for those that began in the middle.
    fn close(&self, language: &Language, predictions: &Predictions, worker: &mut Worker, loops: bool) {
        let grammar = &language.grammar;
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
                match self.origins[origin.0 as usize].base {
                    Base::Node(begun) => {
                        if worker.completed.insert((lhs, begun)) {
                            self.complete(grammar, predictions, worker, begun, lhs);
                        }
                    }
                    Base::Free(begun) => {
                        let cost = self.origin_costs[origin.0 as usize];
                        self.complete_free(language, worker, begun, lhs, cost);
                    }
                }
            } else if let Some((dot, from, cost)) = worker.pending_free.pop() {
                if worker.free[&(dot, from)] < cost {
                    continue;
                }
                let next = grammar.next(dot);
                if next == END_OF_RULE {
                    self.complete_free(language, worker, from, grammar.lhs(dot), cost);
                } else if grammar.nullable(next) || loops && Some(next) == dedent {
                    worker.push_free(grammar, Grammar::advance(dot), from, cost);
                }
            } else {
                return;
            }
        }
    }

    fn complete(
        &self,
        grammar: &Grammar,
        predictions: &Predictions,
        worker: &mut Worker,
        begun: NodeId,
        lhs: SymbolId,
    ) {
        let source = &self.nodes[begun.index()];
        debug_assert!(source.processed, "a symbol with text ends after the node it began at");
        for &(dot, origin) in slice_by(&source.items, |item| grammar.next(item.0), lhs) {
            worker.push(Grammar::advance(dot), origin);
        }
        for &(dot, from, cost) in slice_by(&source.free_items, |item| grammar.next(item.0), lhs) {
            worker.push_free(grammar, Grammar::advance(dot), from, cost);
        }
        let dots = predictions.dots(source.prediction, lhs);
        if !dots.is_empty() {
            let origin = self.origin_ids[&Origin { base: Base::Node(begun), block: None }].0;
            for &dot in dots {
                worker.push(Grammar::advance(dot), origin);
            }
        }
    }

    fn complete_free(&self, language: &Language, worker: &mut Worker, begun: FreeId, lhs: SymbolId, cost: Cost) {
        let cell = worker.completed_free.entry((lhs, begun)).or_insert(INFINITE);
        if *cell <= cost {
            return;
        }
        *cell = cost;
        for &(dot, from, before) in language.free.advances(lhs, begun) {
            worker.push_free(&language.grammar, dot, from, before.saturating_add(cost));
        }
    }

    /// Follows the symbols that can be read from a node.
    fn read_on(&mut self, language: &Language, predictions: &mut Predictions, id: NodeId) {
        match self.nodes[id.index()].place {
            Place::End => {}
            Place::Middle { position, line } => match self.raw.symbols[position as usize] {
                Some((accept, end)) if language.accept_role(accept) == Role::Newline => {
                    self.read_newline(language, predictions, id, line, end);
                }
                None => {
                    if self.layout {
                        self.read_newline(language, predictions, id, line, position);
                    }
                }
                Some((accept, end)) => self.read_symbol(language, predictions, id, accept, end),
            },
            Place::Nested { position } => {
                for mode in (0..language.mode_count()).map(ModeId::from_index) {
                    if language.grammar.code_modes() >> mode.index() & 1 == 0 {
                        continue;
                    }
                    let matched = language.lexer.longest_match(mode, &self.text[position as usize..]);
                    let Some((length, accept)) = matched else { continue };
                    let own = language.grammar.mode_of(Language::symbol(language.lexer.lexemes(accept)[0]));
                    if own == mode {
                        let end = position + u32::try_from(length).expect("R fits u32");
                        self.read_symbol(language, predictions, id, accept, end);
                    }
                }
            }
            Place::Text { position, mode } => {
                let matched = language.lexer.longest_match(mode, &self.text[position as usize..]);
                let Some((length, accept)) = matched else { return };
                let end = position + u32::try_from(length).expect("R fits u32");
                self.raw.lex(language, predictions, &self.text, end);
                self.read_symbol(language, predictions, id, accept, end);
            }
            Place::Line { position, column, top } => {
                self.read_layout(language, predictions, id, (position, column), top)
            }
        }
    }

    /// Reads a symbol in a line, to wherever R can go on after it.
    fn read_symbol(&mut self, language: &Language, predictions: &Predictions, id: NodeId, accept: AcceptId, end: u32) {
        let grammar = &language.grammar;
        let code = grammar.code_modes();
        let place = self.nodes[id.index()].place;
        let role = language.accept_role(accept);
        for &lexeme in language.lexer.lexemes(accept) {
            let symbol = Language::symbol(lexeme);
            let after = grammar.modes_after_lexeme(symbol);
            if after & code != 0 {
                let goes_on = |dot: DotId| grammar.modes_after(dot) & code != 0;
                let middle = self.middle_position(language, end);
                let nested = if grammar.has_modes() { self.nested_place(language, end) } else { None };
                match place {
                    Place::Middle { line, .. } => {
                        if let Some(position) = middle {
                            let target = self.middle_at(position, line);
                            self.read_to(language, predictions, id, symbol, target, |_, dot, _| goes_on(dot));
                        }
                    }
                    Place::Text { .. } if role != Role::Open => {
                        // The line goes on that the string stands in; where it began in the middle, any may be it.
                        let mut lines: Vec<Top> = vec![Top::Unknown];
                        for &(_, origin) in slice_by(&self.nodes[id.index()].items, |item| grammar.next(item.0), symbol)
                        {
                            if let Some(Place::Middle { line, .. }) = self.begun_at(origin) {
                                lines.push(line);
                            }
                        }
                        lines.sort_unstable();
                        lines.dedup();
                        for line in lines {
                            let Some(position) = middle else { break };
                            let target = self.middle_at(position, line);
                            self.read_to(language, predictions, id, symbol, target, |right, dot, origin| {
                                let same = match origin.and_then(|origin| right.begun_at(origin)) {
                                    None => line == Top::Unknown,
                                    Some(Place::Middle { line: begun, .. }) => begun == line,
                                    Some(_) => false,
                                };
                                same && goes_on(dot)
                            });
                        }
                        if let Some(target) = nested {
                            self.read_to(language, predictions, id, symbol, target, |right, dot, origin| {
                                let begun = origin.and_then(|origin| right.begun_at(origin));
                                goes_on(dot) && !matches!(begun, Some(Place::Middle { .. }))
                            });
                        }
                    }
                    _ => {
                        if let Some(target) = nested {
                            self.read_to(language, predictions, id, symbol, target, |_, dot, _| goes_on(dot));
                        }
                    }
                }
            }
            // In a line that nothing encloses, a closing bracket is a bracket.
            if after & !code != 0 && !(role == Role::Close && matches!(place, Place::Middle { .. })) {
                for (target, mask) in texts_after(after & !code, end) {
                    let goes_on = |_: &Self, dot: DotId, _: Option<OriginId>| grammar.modes_after(dot) & mask != 0;
                    self.read_to(language, predictions, id, symbol, target, goes_on);
                }
            }
        }
    }

    /// The place where an item's rule began; `None` if that is in the middle.
    fn begun_at(&self, origin: OriginId) -> Option<Place> {
        match self.origins[origin.0 as usize].base {
            Base::Node(node) => Some(self.nodes[node.index()].place),
            Base::Free(_) => None,
        }
    }

    fn read_newline(&mut self, language: &Language, predictions: &Predictions, id: NodeId, line: Top, end: u32) {
        let newline = Language::symbol(language.layout.expect("a language with layout").newline);
        let Some(LineStart { position, column: Some(column) }) = self.line_start(language, end, true) else { return };
        self.classes.see(column);
        let mut targets = Vec::new();
        match line {
            Top::Exact(current) => match self.classes.compare(current, column) {
                Some(Ordering::Equal) => targets.push(self.line_begin(position, column)),
                Some(_) => targets.push(Place::Line { position, column, top: line }),
                None => {}
            },
            Top::Above => targets.push(Place::Line { position, column, top: Top::Above }),
            Top::AboveEntry(_) => targets.push(Place::Line { position, column, top: line }),
            Top::Unknown => {
                targets.push(self.line_begin(position, column));
                targets.push(Place::Line { position, column, top: Top::Above });
                targets.extend(self.classes.below(column).into_iter().map(|top| Place::Line {
                    position,
                    column,
                    top: Top::Exact(top),
                }));
            }
        }
        for target in targets {
            self.read(language, predictions, id, newline, target);
        }
    }

    /// INDENT and DEDENT edges from before a line.
    fn read_layout(
        &mut self,
        language: &Language,
        predictions: &Predictions,
        id: NodeId,
        line: (u32, Column),
        top: Top,
    ) {
        let (position, column) = line;
        let (indent, dedent) = language.grammar.indent_dedent.expect("a language with layout");
        let begin = self.line_begin(position, column);
        match top {
            Top::Exact(exact) if self.classes.compare(exact, column) == Some(Ordering::Less) => {
                self.read_indent(language, predictions, id, indent, begin, (exact, column));
            }
            Top::Exact(exact) if self.classes.compare(exact, column) == Some(Ordering::Greater) => {
                self.read_dedent_in_right(language, id, dedent, line, exact);
                let cost = self.indentation_cost(self.classes.least_bytes(exact));
                self.read_dedent_free(language, id, dedent, begin, cost);
                for below in self.classes.between(column, exact) {
                    let target = Place::Line { position, column, top: Top::Exact(below) };
                    self.read_dedent_free(language, id, dedent, target, cost);
                }
            }
            Top::Above => {
                self.dedents.insert((id, id));
                self.nodes[id.index()].incoming.push((dedent, id));
                self.read_dedent_free(language, id, dedent, begin, 0);
            }
            Top::AboveEntry(_) => {
                self.read_dedent_free(language, id, dedent, begin, 0);
                let target = Place::Line { position, column, top: Top::Above };
                self.read_dedent_free(language, id, dedent, target, 0);
            }
            Top::Exact(_) | Top::Unknown => {}
        }
    }

    /// Reads an ordinary symbol.
    fn read(&mut self, language: &Language, predictions: &Predictions, id: NodeId, symbol: SymbolId, target: Place) {
        self.read_to(language, predictions, id, symbol, target, |_, _, _| true);
    }

    /// Reads a symbol for those of the dots after it, with their origins (none for what begins in the middle), that are
    /// to be kept.
    fn read_to(
        &mut self,
        language: &Language,
        predictions: &Predictions,
        id: NodeId,
        symbol: SymbolId,
        target: Place,
        keep: impl Fn(&Self, DotId, Option<OriginId>) -> bool,
    ) {
        let grammar = &language.grammar;
        let own = self.origin(Base::Node(id), None, 0);
        let node = &self.nodes[id.index()];
        let mut known: Vec<(DotId, OriginId)> = slice_by(&node.items, |item| grammar.next(item.0), symbol)
            .iter()
            .map(|&(dot, origin)| (Grammar::advance(dot), origin))
            .collect();
        known.extend(predictions.dots(node.prediction, symbol).iter().map(|&dot| (Grammar::advance(dot), own)));
        known.retain(|&(dot, origin)| keep(self, dot, Some(origin)));
        let free: Vec<(DotId, FreeId, Cost)> = slice_by(&node.free_items, |item| grammar.next(item.0), symbol)
            .iter()
            .map(|&(dot, from, cost)| (Grammar::advance(dot), from, cost))
            .filter(|&(dot, _, _)| keep(self, dot, None))
            .collect();
        if known.is_empty() && free.is_empty() {
            return;
        }
        let target = self.intern(target);
        let node = &mut self.nodes[target.index()];
        node.incoming.push((symbol, id));
        node.pending.extend(known);
        node.pending_free.extend(free);
    }

    /// Reads an INDENT in R: the block's columns go into the origins of its items.
    fn read_indent(
        &mut self,
        language: &Language,
        predictions: &Predictions,
        id: NodeId,
        indent: SymbolId,
        target: Place,
        block: (Column, Column),
    ) {
        let grammar = &language.grammar;
        let node = &self.nodes[id.index()];
        let mut begun: Vec<(DotId, Base, Cost)> = slice_by(&node.items, |item| grammar.next(item.0), indent)
            .iter()
            .map(|&(dot, origin)| (dot, self.origins[origin.0 as usize].base, self.origin_costs[origin.0 as usize]))
            .collect();
        begun.extend(
            slice_by(&node.free_items, |item| grammar.next(item.0), indent)
                .iter()
                .map(|&(dot, from, cost)| (dot, Base::Free(from), cost)),
        );
        begun.extend(predictions.dots(node.prediction, indent).iter().map(|&dot| (dot, Base::Node(id), 0)));
        if begun.is_empty() {
            return;
        }
        let target = self.intern(target);
        self.nodes[target.index()].incoming.push((indent, id));
        for (dot, base, cost) in begun {
            let origin = self.origin(base, Some(block), cost);
            self.nodes[target.index()].pending.push((Grammar::advance(dot), origin));
        }
    }

    /// Closes a block that was opened in R: its two columns say where to.
    fn read_dedent_in_right(
        &mut self,
        language: &Language,
        id: NodeId,
        dedent: SymbolId,
        line: (u32, Column),
        top: Column,
    ) {
        let grammar = &language.grammar;
        let (position, column) = line;
        let closing: Vec<(DotId, OriginId)> =
            slice_by(&self.nodes[id.index()].items, |item| grammar.next(item.0), dedent).to_vec();
        for (dot, origin) in closing {
            let Some((below, own)) = self.origins[origin.0 as usize].block else { continue };
            if own != top {
                continue;
            }
            let target = match self.classes.compare(below, column) {
                Some(Ordering::Equal) => self.line_begin(position, column),
                Some(Ordering::Greater) => Place::Line { position, column, top: Top::Exact(below) },
                _ => continue,
            };
            let target = self.intern(target);
            let node = &mut self.nodes[target.index()];
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
    fn read_dedent_free(&mut self, language: &Language, id: NodeId, dedent: SymbolId, target: Place, further: Cost) {
        let grammar = &language.grammar;
        let free: Vec<(DotId, FreeId, Cost)> =
            slice_by(&self.nodes[id.index()].free_items, |item| grammar.next(item.0), dedent)
                .iter()
                .map(|&(dot, from, cost)| (Grammar::advance(dot), from, cost.saturating_add(further)))
                .collect();
        if free.is_empty() {
            return;
        }
        let target = self.intern(target);
        let node = &mut self.nodes[target.index()];
        if self.dedents.insert((id, target)) {
            node.incoming.push((dedent, id));
        }
        node.pending_free.extend(free);
    }
}

/// What [`Right::scan_indentation`] passes.
enum Blank {
    Bytes(usize, usize),
    Newline,
    Join,
}

fn rank(place: Place) -> u64 {
    match place {
        Place::Line { top: Top::AboveEntry(_), .. } => 0,
        Place::Line { top: Top::Above, .. } => 1,
        Place::Line { top: Top::Exact(column), .. } => u64::from(u32::MAX - 1 - column.wide.min(u32::MAX - 3)),
        _ => u64::from(u32::MAX),
    }
}

/// The part of a slice, sorted by a symbol, that has it.
fn slice_by<T>(items: &[T], key: impl Fn(&T) -> SymbolId, symbol: SymbolId) -> &[T] {
    let begin = items.partition_point(|item| key(item) < symbol);
    let length = items[begin..].partition_point(|item| key(item) == symbol);
    &items[begin..begin + length]
}

impl Raw {
    fn new(text: &[u8]) -> Self {
        let mut raw = Self {
            symbols: vec![None; text.len() + 1],
            depth: vec![None; text.len() + 1],
            visited: vec![false; text.len() + 1],
            passed: FxHashMap::default(),
            charts: FxHashMap::default(),
        };
        raw.visited[text.len()] = true;
        raw.depth[text.len()] = Some(0);
        raw
    }

    /// Lexes from a position to the end, or to where an earlier call has been.
    fn lex(&mut self, language: &Language, predictions: &mut Predictions, text: &[u8], start: u32) {
        let mut path = Vec::new();
        let mut at = start as usize;
        while !std::mem::replace(&mut self.visited[at], true) {
            let Some((length, accept)) = language.lexer.longest_match(ModeId(0), &text[at..]) else { break };
            let end = u32::try_from(at + length).expect("R fits u32");
            self.symbols[at] = Some((accept, end));
            if language.grammar.leads_away(Language::symbol(language.lexer.lexemes(accept)[0])) {
                let passed = self.pass(language, predictions, text, accept, end);
                self.passed.insert(u32::try_from(at).expect("R fits u32"), passed);
            }
            let Some(next) = self.end(at, end) else { break };
            path.push((at, accept, next as usize));
            at = next as usize;
        }
        for (at, accept, next) in path.into_iter().rev() {
            let Some(after) = self.depth[next] else { continue };
            self.depth[at] = match (language.layout.is_some(), language.accept_role(accept)) {
                (true, Role::Open) => after.checked_sub(1),
                (true, Role::Close) => (after < language.limits.brackets).then_some(after + 1),
                _ => {
                    let inside = self.passed.get(&u32::try_from(at).expect("R fits u32")).copied().flatten();
                    let most = after.saturating_add(inside.map_or(0, |(_, open)| open));
                    (most <= language.limits.brackets).then_some(after)
                }
            };
        }
    }

    /// Where lexing as code goes on after the symbol at a position.
    fn end(&self, at: usize, end: u32) -> Option<u32> {
        let at = u32::try_from(at).expect("R fits u32");
        self.passed.get(&at).map_or(Some(end), |passed| passed.map(|(end, _)| end))
    }

    /// Where the rule that a lexeme begins has ended, and the most brackets that are open in between: parsed, since the modes
    /// inside are as the parser says.
    fn pass(
        &mut self,
        language: &Language,
        predictions: &mut Predictions,
        text: &[u8],
        accept: AcceptId,
        end: u32,
    ) -> Option<(u32, u32)> {
        let grammar = &language.grammar;
        let begin = language.lexer.lexemes(accept)[0];
        let symbol = Language::symbol(begin);
        let chart = self.charts.entry(begin).or_insert_with(|| {
            let begun = grammar.initial(symbol).iter().map(|&dot| grammar.lhs(dot));
            LeftChart::rooted(grammar, predictions, begun)
        });
        let mut set = chart.scan(language, predictions, FIRST_SET, Read::Accepted(accept));
        let mut at = end as usize;
        let (mut open, mut most) = (0u32, 0);
        while set != NO_SET && !chart.set(set).items.is_empty() {
            let mode = chart.set(set).mode;
            let (length, accept) = language.lexer.longest_match(mode, &text[at..])?;
            at += length;
            let role = language.accept_role(accept);
            match role {
                Role::Open => open += 1,
                Role::Close => open = open.saturating_sub(1),
                _ => {}
            }
            most = most.max(open);
            if !role.is_ignored() && role != Role::Newline {
                set = chart.scan(language, predictions, set, Read::Accepted(accept));
            }
        }
        (set != NO_SET).then(|| (u32::try_from(at).expect("R fits u32"), most))
    }
}

/// Whether what can come after a dot can come at a place.
fn stands_at(grammar: &Grammar, place: Place, dot: DotId) -> bool {
    if !grammar.has_modes() {
        return true;
    }
    match place {
        Place::Nested { .. } => grammar.modes_after(dot) & grammar.code_modes() != 0 && grammar.is_nested(dot),
        Place::Text { mode, .. } => grammar.modes_after(dot) >> mode.index() & 1 == 1,
        _ => grammar.modes_after(dot) & grammar.code_modes() != 0,
    }
}

/// The places of the modes in a mask that read no code.
fn texts_after(modes: u64, end: u32) -> impl Iterator<Item = (Place, u64)> {
    let each = (0..64).filter(move |bit| modes >> bit & 1 == 1);
    each.map(move |bit| (Place::Text { position: end, mode: ModeId::from_index(bit) }, 1 << bit))
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

    fn finish(&mut self, grammar: &Grammar, node: &mut Node, predictions: &mut Predictions) {
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
            grammar,
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
