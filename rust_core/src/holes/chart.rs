//! Earley chart over the graph of all readings of the texts.

use crate::chart::predict::Predictions;
use crate::error::Error;
use crate::grammar::compiled::Grammar;
use crate::grammar::rules::END_OF_RULE;
use crate::holes::rules::{Nesting, is_in_block};
use crate::ids::{DotId, FreeId, GuardId, NodeId, PredictionId, SymbolId};
use crate::language::compiled::Language;
use crate::language::free::MIDDLE;
use crate::limits;
use crate::stop::poll;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// Place of a node in the sequence of texts and holes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Place {
    /// Before the file.
    Begin,
    /// After a symbol that ends before a byte; `line`: it ended the line.
    After { position: u32, line: bool },
    /// Before the first symbol of a line, after the layout symbols read so far; `opened`: an INDENT is among them.
    Line { position: u32, column: u32, opened: bool },
    /// In a hole, between two symbols.
    Hole { hole: u32, free: FreeId },
}

/// A node: a place, and all that decides how reading goes on there but the parse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) place: Place,
    pub(super) guards: GuardId,
    /// Column on top of the indentation stack; [`ANY`] inside of brackets that a hole has opened.
    pub(super) top: u32,
    /// Open brackets, at least: those opened in holes count as one.
    pub(super) depth: u32,
}

/// Any column.
const ANY: u32 = u32::MAX;

/// Beginning of a line's first symbol.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    pub(super) position: u32,
    pub(super) column: u32,
    pub(super) guards: GuardId,
}

/// A rule with a dot, and the node where it began.
pub(super) type Item = (DotId, NodeId);

/// A node's Earley set. In a hole it leaves out the rules that began in the hole: there are those of every dot that
/// [`Chart::begun_in_hole`] finds.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) key: Key,
    /// Items with something left to read, by the symbol after the dot once the set is closed.
    pub(super) items: Vec<Item>,
    prediction: PredictionId,
    /// Modes of the lexemes that can come next, as a mask.
    pub(super) modes: u64,
    /// True if the file begins here.
    pub(super) is_root: bool,
    /// True if the file may end here.
    pub(super) accepts: bool,
}

impl Node {
    /// Return whether some reading leads here.
    pub(super) fn is_alive(&self) -> bool {
        self.accepts || self.is_root || !self.items.is_empty() || matches!(self.key.place, Place::Hole { .. })
    }
}

/// The nodes.
#[derive(Debug)]
pub(super) struct Chart {
    pub(super) language: Arc<Language>,
    predictions: Predictions,
    nodes: Vec<Node>,
    ids: FxHashMap<Key, NodeId>,
    /// The nodes of each hole, see [`Self::hole_node`].
    holes: Vec<Box<[NodeId]>>,
    pub(super) nesting: Nesting,
    /// The column of the class right of all indentations of the texts.
    pub(super) above: u32,
    /// Items of all sets.
    held: usize,
    stack: Vec<Item>,
    seen: FxHashSet<Item>,
    completed: FxHashSet<(SymbolId, NodeId)>,
}

impl Chart {
    /// A chart whose first node is before the file.
    pub(super) fn new(language: &Arc<Language>, above: u32) -> Result<Self, Error> {
        let mut chart = Self {
            language: language.clone(),
            predictions: Predictions::default(),
            nodes: Vec::new(),
            ids: FxHashMap::default(),
            holes: Vec::new(),
            nesting: Nesting::of(language)?,
            above,
            held: 0,
            stack: Vec::new(),
            seen: FxHashSet::default(),
            completed: FxHashSet::default(),
        };
        let first = chart.node(Key { place: Place::Begin, guards: GuardId(0), top: 0, depth: 0 });
        chart.nodes[first.index()].is_root = true;
        chart.nodes[first.index()].accepts = language.grammar.nullable(language.grammar.start);
        chart.close(first);
        Ok(chart)
    }

    pub(super) fn get(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    pub(super) fn get_mut(&mut self, id: NodeId) -> &mut Node {
        &mut self.nodes[id.index()]
    }

    pub(super) fn key(&self, id: NodeId) -> Key {
        self.nodes[id.index()].key
    }

    pub(super) fn is_inside(&self, id: NodeId) -> bool {
        self.key(id).depth > 0
    }

    /// The node of a key.
    pub(super) fn node(&mut self, key: Key) -> NodeId {
        let nodes = &mut self.nodes;
        *self.ids.entry(key).or_insert_with(|| {
            nodes.push(Node {
                key,
                items: Vec::new(),
                prediction: PredictionId(0),
                modes: u64::MAX,
                is_root: false,
                accepts: false,
            });
            NodeId::from_index(nodes.len() - 1)
        })
    }

    /// Make the nodes of the next hole.
    pub(super) fn begin_hole(&mut self) {
        let hole = u32::try_from(self.holes.len()).expect("few holes");
        let mut nodes = Vec::new();
        for free in self.language.clone().free.states() {
            let place = Place::Hole { hole, free };
            for top in self.tops() {
                nodes.push(self.node(Key { place, guards: GuardId(0), top, depth: 0 }));
            }
            nodes.push(self.node(Key { place, guards: GuardId(0), top: ANY, depth: 1 }));
        }
        self.holes.push(nodes.into());
    }

    /// The node of a hole, a free state, a column on top and whether brackets are open.
    pub(super) fn hole_node(&self, hole: u32, free: FreeId, top: u32, inside: bool) -> NodeId {
        let tops = *self.tops().end() as usize + 1;
        self.holes[hole as usize][free.index() * (tops + 1) + if inside { tops } else { top as usize }]
    }

    /// All columns that a line of a hole may have.
    pub(super) fn tops(&self) -> std::ops::RangeInclusive<u32> {
        if self.language.layout.is_some() { 0..=self.above } else { 0..=0 }
    }

    /// Fail where the chart has grown too large.
    pub(super) fn check_size(&self) -> Result<(), Error> {
        if self.held > limits::HOLE_ITEMS {
            return Err(Error::limit("items of a chart over open holes", self.held, limits::HOLE_ITEMS));
        }
        Ok(())
    }

    /// Add to `out` the items of a node that wait for a symbol, moved over it.
    pub(super) fn moved(&self, id: NodeId, symbol: SymbolId, out: &mut Vec<Item>) {
        let language = self.language.clone();
        let grammar = &language.grammar;
        let node = &self.nodes[id.index()];
        let begin = node.items.partition_point(|item| grammar.next(item.0) < symbol);
        let waiting = node.items[begin..].iter().take_while(|item| grammar.next(item.0) == symbol);
        out.extend(waiting.map(|&(dot, origin)| (Grammar::advance(dot), origin)));
        if let Place::Hole { hole, free } = node.key.place {
            self.begun_in_hole((hole, free), node.key, symbol, out);
        } else {
            let dots = self.predictions.dots(grammar, node.prediction, symbol);
            out.extend(dots.iter().map(|&dot| (Grammar::advance(dot), id)));
        }
    }

    /// Items that wait for a symbol at a node of a hole and began in the hole, moved over it. An item for whose rule
    /// nothing waits leads nowhere, and is not left out.
    fn begun_in_hole(&self, (hole, free): (u32, FreeId), key: Key, symbol: SymbolId, out: &mut Vec<Item>) {
        let language = self.language.clone();
        let layout = language.layout.is_some();
        for &(dot, begun, _) in language.free.advances(&language.grammar, symbol, free) {
            let before = DotId(dot.0 - 1);
            if !layout {
                out.push((dot, self.hole_node(hole, begun, 0, false)));
                continue;
            }
            let (in_bracket, in_block) = (self.nesting.open(before) > 0, is_in_block(&language.grammar, before));
            let tops = match (key.depth > 0, in_bracket, in_block) {
                (true, false, false) => {
                    if begun == MIDDLE {
                        out.push((dot, self.hole_node(hole, begun, ANY, true)));
                    }
                    continue;
                }
                (true, true, false) => {
                    if begun == MIDDLE {
                        out.push((dot, self.hole_node(hole, begun, ANY, true)));
                    }
                    self.tops()
                }
                (false, false, false) => key.top..=key.top,
                (false, false, true) if key.top == self.above => self.tops(),
                (false, false, true) if key.top > 0 => 0..=key.top - 1,
                _ => continue,
            };
            for top in tops {
                out.push((dot, self.hole_node(hole, begun, top, false)));
            }
        }
    }

    /// The columns on top and the open brackets that a moved item may have, which was read over a symbol at a node.
    pub(super) fn after(&self, key: Key, symbol: SymbolId, (dot, origin): Item, out: &mut Vec<(u32, u32)>) {
        out.clear();
        let effect = self.nesting.effect(symbol);
        if effect >= 0 {
            return out.push((key.top, key.depth + u32::from(effect > 0)));
        }
        let begun = self.key(origin);
        match self.nesting.open(dot) {
            0 => out.push((begun.top, begun.depth)),
            1.. => out.push((key.top, key.depth.saturating_sub(1).max(1))),
            _ if begun.depth == 0 => {}
            _ if begun.top == ANY && begun.depth == 1 => {
                // A bracket that a hole has opened. What it stood in is seen once its rule is completed.
                out.push((ANY, 1));
                out.extend(self.tops().map(|top| (top, 0)));
            }
            _ => out.push((begun.top, begun.depth - 1)),
        }
    }

    /// Return whether a completed nonterminal that closes a bracket of another rule may have led to a node: the item
    /// moved over it says what the bracket stood in.
    pub(super) fn fits(&self, node: NodeId, symbol: SymbolId, (dot, origin): Item) -> bool {
        if self.nesting.effect(symbol) == 0 {
            return true;
        }
        let (own, begun) = (self.key(node), self.key(origin));
        let same = |depth: u32| (own.depth > 0) == (depth > 0) && (depth > 0 || own.top == begun.top);
        match self.nesting.open(dot) {
            0 => same(begun.depth),
            1.. => own.depth > 0,
            _ if begun.depth == 0 => false,
            _ if begun.top == ANY && begun.depth == 1 => true,
            _ => same(begun.depth - 1),
        }
    }

    /// Read a symbol at a node, to the nodes of a place; `touched` gets them. Their sets are closed later.
    pub(super) fn read(
        &mut self,
        id: NodeId,
        symbol: SymbolId,
        (place, guards): (Place, GuardId),
        touched: &mut Vec<NodeId>,
    ) {
        let mut moved = Vec::new();
        self.moved(id, symbol, &mut moved);
        let key = self.key(id);
        let mut after = Vec::new();
        for item in moved {
            self.after(key, symbol, item, &mut after);
            for &(top, depth) in &after {
                let target = self.node(Key { place, guards, top, depth });
                self.nodes[target.index()].items.push(item);
                touched.push(target);
            }
        }
    }

    /// Read an INDENT at a node, before a line at a column.
    pub(super) fn indent(&mut self, id: NodeId, line: Line, touched: &mut Vec<NodeId>) {
        let Some((indent, _)) = self.language.grammar.indent_dedent else { return };
        let mut moved = Vec::new();
        self.moved(id, indent, &mut moved);
        let Line { position, column, guards } = line;
        let place = Place::Line { position, column, opened: true };
        for item in moved {
            let target = self.node(Key { place, guards, top: column, depth: 0 });
            self.nodes[target.index()].items.push(item);
            touched.push(target);
        }
    }

    /// Read a DEDENT at a node, before a line at a column. The rule's first node has the column on top after it. A
    /// closed node holds what DEDENTs lead from it to itself.
    pub(super) fn dedent(&mut self, id: NodeId, line: Line, touched: &mut Vec<NodeId>) {
        let Some((_, dedent)) = self.language.grammar.indent_dedent else { return };
        let mut moved = Vec::new();
        self.moved(id, dedent, &mut moved);
        let Line { position, column, guards } = line;
        let place = Place::Line { position, column, opened: false };
        for item in moved {
            let top = self.key(item.1).top;
            let target = Key { place, guards, top, depth: 0 };
            if top >= column && target != self.key(id) {
                let target = self.node(target);
                self.nodes[target.index()].items.push(item);
                touched.push(target);
            }
        }
    }

    /// Run Earley's completer on a node of a text, and predict.
    pub(super) fn close(&mut self, id: NodeId) {
        poll();
        let language = self.language.clone();
        let grammar = &language.grammar;
        let mut stack = std::mem::take(&mut self.stack);
        let mut kept = Vec::new();
        let mut moved = Vec::new();
        self.seen.clear();
        self.completed.clear();
        let key = self.key(id);
        // Any number of blocks right of all indentations of the texts may close at once.
        let closes = matches!(key.place, Place::Line { opened: false, .. }) && key.top == self.above;
        let dedent = grammar.indent_dedent.filter(|_| closes).map(|(_, dedent)| dedent);
        for item in std::mem::take(&mut self.nodes[id.index()].items) {
            if self.seen.insert(item) {
                stack.push(item);
            }
        }
        while let Some((dot, origin)) = stack.pop() {
            let next = grammar.next(dot);
            moved.clear();
            if next == END_OF_RULE {
                let lhs = grammar.lhs(dot);
                if !self.completed.insert((lhs, origin)) {
                    continue;
                }
                self.nodes[id.index()].accepts |= lhs == grammar.start && self.nodes[origin.index()].is_root;
                self.moved(origin, lhs, &mut moved);
                moved.retain(|&item| self.fits(id, lhs, item));
            } else {
                kept.push((dot, origin));
                if grammar.nullable(next) || dedent == Some(next) && self.key(origin).top == self.above {
                    moved.push((Grammar::advance(dot), origin));
                }
            }
            for &item in &moved {
                if self.seen.insert(item) {
                    stack.push(item);
                }
            }
        }
        self.stack = stack;
        self.settle(id, kept);
    }

    /// Put the items of a closed set into a node.
    pub(super) fn settle(&mut self, id: NodeId, mut items: Vec<Item>) {
        let language = self.language.clone();
        let grammar = &language.grammar;
        items.sort_unstable_by_key(|&(dot, origin)| (grammar.next(dot), dot, origin));
        self.held += items.len();
        let node = &mut self.nodes[id.index()];
        let nexts = items.iter().map(|item| grammar.next(item.0)).chain(node.is_root.then_some(grammar.start));
        node.prediction = self.predictions.of(&language, nexts);
        let lexemes = items.iter().map(|item| grammar.next(item.0)).take_while(|&symbol| grammar.is_lexeme(symbol));
        let kinds = self.predictions.modes(node.prediction) | u64::from(node.accepts);
        let kinds = lexemes.fold(kinds, |mask, lexeme| mask | grammar.mode_kinds(lexeme));
        node.modes = modes_of(&language, kinds);
        node.items = items;
    }
}

/// The modes to read in where lexemes of some kinds can come. Mode 0 reads the lexemes that all modes with code share.
fn modes_of(language: &Language, kinds: u64) -> u64 {
    if !language.grammar.has_modes() {
        return 1;
    }
    let count = language.mode_count();
    let own = if count < 64 { kinds & ((1 << count) - 1) } else { kinds };
    let shared = count < 64 && kinds >> count != 0;
    let code = language.grammar.code_modes();
    if own & code != 0 || shared { own | 1 } else { own }
}
