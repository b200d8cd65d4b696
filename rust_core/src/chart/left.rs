//! The left chart: ordinary Earley over L and the middle, as a tree of sets that branches share.

use crate::chart::predict::Predictions;
use crate::chart::questions::{Asked, Questions};
use crate::chart::texts::{NOTHING, PLAIN, Texts, WILD};
use crate::grammar::compiled::Grammar;
use crate::grammar::rules::END_OF_RULE;
use crate::ids::{AcceptId, ColumnId, DotId, LexemeId, PredictionId, SetId, SymbolId, TextId};
use crate::language::ahead::Ahead;
use crate::language::compiled::Language;
use crate::language::free::Cost;
use crate::language::marks::Slots;
use crate::lexing::layout::NO_COLUMN;
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};
use std::hash::BuildHasher;

/// The set before the first symbol.
pub(crate) const FIRST_SET: SetId = SetId(0);

/// No set: the symbol cannot come here.
pub(crate) const NO_SET: SetId = SetId(u32::MAX);

/// An Earley item whose dot has moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Item {
    /// The dotted rule; never at its end.
    pub dot: DotId,
    /// The set where the rule began.
    pub origin: SetId,
    /// The column of the rule's block, once its INDENT has been read.
    pub column: ColumnId,
    /// The text that the rule has bound, once it has been read.
    pub name: TextId,
}

/// One Earley set.
#[derive(Debug)]
pub(crate) struct Set {
    /// Items with something left to read, sorted by the symbol after the dot.
    pub items: Box<[Item]>,
    /// Nonterminals that the items predict.
    pub prediction: PredictionId,
    /// True if the start symbol has been read whole.
    pub accepts: bool,
    /// The lexer's modes in force here, as a mask.
    pub modes: u64,
    /// Kinds of marks that can be read here.
    pub expects: Expects,
    /// Bound texts that a lexeme must equal, by lexeme, computed on demand.
    pub(super) bound: Vec<(SymbolId, Box<[TextId]>)>,
    /// Leo items (Leo 1991) of nonterminals that began here and only complete another one when they end.
    leo_items: Vec<LeoItem>,
    /// The innermost open block, as a node of `blocks`.
    block: u32,
    /// Hash of the fields that distinguish sets, for interning.
    hash: u64,
    /// The previous set with the same hash.
    collides: SetId,
}

/// Kinds of marks that can be read at a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Expects {
    /// A text that a rule binds.
    pub binds: bool,
    /// A text that must equal the bound one.
    pub matches: bool,
}

impl Expects {
    /// Return whether any mark can be read.
    #[inline(always)]
    pub(crate) fn any(self) -> bool {
        self.binds || self.matches
    }
}

/// Leo item: the last nonterminal that completing `ended` leads to, and the set where it began.
#[derive(Clone, Copy, Debug)]
struct LeoItem {
    ended: SymbolId,
    last: (SetId, SymbolId),
}

impl Set {
    /// The Leo item of a nonterminal that began here.
    #[inline]
    pub(super) fn leo_item(&self, ended: SymbolId) -> Option<(SetId, SymbolId)> {
        self.leo_items.iter().find(|leo| leo.ended == ended).map(|leo| leo.last)
    }

    /// The items that wait for a nonterminal.
    #[inline]
    pub(super) fn own(&self, grammar: &Grammar) -> &[Item] {
        let begin = self.items.partition_point(|item| grammar.is_lexeme(grammar.next(item.dot)));
        &self.items[begin..]
    }
}

/// A symbol to read: one from the lexer, or one from the layout stage with its block's column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Read {
    /// The lexer's accept set, and the symbol's text where it may contain marks.
    Accepted(AcceptId, TextId),
    /// A block opens at a column.
    Indent(ColumnId),
    /// A block closes.
    Dedent,
}

/// A set and the symbol read after it.
type Step = (SetId, Read);

/// Sets whose children share a table. Sets made one after another are asked for one after another.
const TOGETHER: usize = 1 << 10;

/// The set after a symbol, and what was asked to make it.
#[derive(Clone, Copy, Debug)]
struct Child {
    to: SetId,
    asked: Option<Asked>,
}

/// The children of sets, in tables of a thousand sets each. They grow without a copy of all of them.
#[derive(Debug, Default)]
struct Children(Vec<FxHashMap<Step, Child>>);

impl Children {
    #[inline]
    fn get(&self, step: Step) -> Option<Child> {
        self.0.get(step.0.index() / TOGETHER)?.get(&step).copied()
    }

    fn insert(&mut self, step: Step, to: Child) {
        let at = step.0.index() / TOGETHER;
        if self.0.len() <= at {
            self.0.resize_with(at + 1, FxHashMap::default);
        }
        self.0[at].insert(step, to);
    }

    fn remove(&mut self, step: Step) {
        if let Some(own) = self.0.get_mut(step.0.index() / TOGETHER) {
            own.remove(&step);
        }
    }
}

/// Least bytes of the indentations in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Indents {
    /// Bytes of a line of the block itself.
    pub own: Cost,
    /// Bytes of a line in a nested block.
    pub deeper: Cost,
}

/// Indents of the module level, or of an unknown block.
pub(crate) const NO_INDENTS: Indents = Indents { own: 0, deeper: 1 };

/// Interned Earley sets. A set is made once for its items, whose origins are sets themselves, so a set stands for a
/// whole parse stack. `children` is a pushdown automaton that grows as it is used.
#[derive(Debug)]
pub(crate) struct LeftChart {
    sets: Vec<Set>,
    interned: FxHashMap<u64, SetId>,
    children: Children,
    /// Keys of `children` in order of insertion, for [`LeftChart::truncate`].
    inserted: Vec<(SetId, Read)>,
    /// Open blocks: the parent, and the cost of indentations. Node 0 is the module.
    blocks: Vec<(u32, Indents)>,
    block_ids: FxHashMap<(u32, Indents), u32>,
    /// Cost of indentations at each interned column.
    indents: Vec<Indents>,
    /// Texts that bind and match.
    pub(crate) texts: Texts,
    pending: Vec<Item>,
    items: Vec<Item>,
    /// True if the start symbol ends at the set in progress.
    finished: bool,
    /// True if some dot has moved.
    moved: bool,
    reads: Vec<(SetId, SymbolId)>,
    completed: FxHashSet<(SymbolId, SetId)>,
    /// Questions to sets, while they are recorded.
    pub(crate) questions: Questions,
}

/// A size of the chart to return to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Checkpoint {
    sets: usize,
    inserted: usize,
    blocks: usize,
    asked: usize,
}

impl LeftChart {
    /// A chart with the first set alone.
    pub(crate) fn new(language: &Language, predictions: &mut Predictions, slots: Slots) -> Self {
        let chart = Self::rooted(language, predictions, std::iter::once(language.grammar.start));
        Self { texts: Texts::new(slots), ..chart }
    }

    /// A chart whose first set predicts the given nonterminals.
    pub(crate) fn rooted(
        language: &Language,
        predictions: &mut Predictions,
        nonterminals: impl Iterator<Item = SymbolId>,
    ) -> Self {
        let grammar = &language.grammar;
        let prediction = predictions.of(language, nonterminals);
        let accepts = grammar.nullable(grammar.start);
        let modes = modes(grammar, predictions, &[], prediction, accepts);
        let first = Set {
            items: Box::default(),
            prediction,
            accepts,
            modes,
            expects: expects(language, predictions, &[], prediction),
            bound: Vec::new(),
            leo_items: Vec::new(),
            block: 0,
            hash: 0,
            collides: NO_SET,
        };
        Self {
            sets: vec![first],
            interned: FxHashMap::default(),
            children: Children::default(),
            inserted: Vec::new(),
            blocks: vec![(0, NO_INDENTS)],
            block_ids: FxHashMap::default(),
            indents: Vec::new(),
            texts: Texts::new(Slots::default()),
            pending: Vec::new(),
            items: Vec::new(),
            finished: false,
            moved: false,
            reads: Vec::new(),
            completed: FxHashSet::default(),
            questions: Questions::default(),
        }
    }

    /// A set.
    #[inline]
    #[must_use]
    pub(crate) fn set(&self, id: SetId) -> &Set {
        &self.sets[id.index()]
    }

    pub(super) fn bound_mut(&mut self, id: SetId) -> &mut Vec<(SymbolId, Box<[TextId]>)> {
        &mut self.sets[id.index()].bound
    }

    /// Record the cost of indentations in a block at an interned column.
    pub(crate) fn price(&mut self, column: ColumnId, indents: Indents) {
        if self.indents.len() <= column.index() {
            self.indents.resize(column.index() + 1, NO_INDENTS);
        }
        self.indents[column.index()] = indents;
    }

    /// Cost of indentations in the block around a set.
    #[inline]
    #[must_use]
    pub(crate) fn indents(&self, id: SetId) -> Indents {
        self.blocks[self.sets[id.index()].block as usize].1
    }

    /// The number of sets.
    #[must_use]
    pub(crate) fn len(&self) -> usize {
        self.sets.len()
    }

    /// The current size.
    #[must_use]
    pub(crate) fn mark(&self) -> Checkpoint {
        Checkpoint {
            sets: self.sets.len(),
            inserted: self.inserted.len(),
            blocks: self.blocks.len(),
            asked: self.questions.kept(),
        }
    }

    /// Forget every set made since the mark. No branch may still hold one of them.
    pub(crate) fn truncate(&mut self, mark: Checkpoint) {
        for key in self.inserted.drain(mark.inserted..) {
            self.children.remove(key);
        }
        for set in self.sets.drain(mark.sets..).rev() {
            if set.collides == NO_SET {
                self.interned.remove(&set.hash);
            } else {
                self.interned.insert(set.hash, set.collides);
            }
        }
        for block in self.blocks.drain(mark.blocks..) {
            self.block_ids.remove(&block);
        }
        self.questions.truncate(mark.asked);
    }

    /// Items of a set that have a symbol next.
    #[must_use]
    pub(crate) fn waiting(&self, grammar: &Grammar, id: SetId, symbol: SymbolId) -> &[Item] {
        waiting(grammar, &self.sets[id.index()].items, symbol)
    }

    /// Return whether a symbol can come after a set.
    #[must_use]
    pub(crate) fn can_scan(
        &self,
        language: &Language,
        predictions: &Predictions,
        from: SetId,
        accept: AcceptId,
    ) -> bool {
        let set = &self.sets[from.index()];
        language.lexer.lexemes(accept).iter().any(|&lexeme| {
            let symbol = SymbolId::from(lexeme);
            !waiting(&language.grammar, &set.items, symbol).is_empty() || predictions.has(set.prediction, symbol)
        })
    }

    /// The set after one more symbol, or [`NO_SET`] if the symbol cannot come here.
    pub(crate) fn scan(
        &mut self,
        language: &Language,
        predictions: &mut Predictions,
        from: SetId,
        read: Read,
    ) -> SetId {
        let read = match read {
            // A set that compares no text reads all texts alike.
            Read::Accepted(accept, text) if text != PLAIN => {
                let asked = self.sets[from.index()].expects.any() && language.has_marks(accept);
                Read::Accepted(accept, if asked { text } else { PLAIN })
            }
            read => read,
        };
        let known = self.children.get((from, read));
        if let Some(Child { to, asked }) = known
            && self.questions.repeat(asked)
        {
            return to;
        }
        let before = self.questions.count();
        let to = self.scan_uncached(language, predictions, from, read);
        let asked = self.questions.keep(before);
        self.children.insert((from, read), Child { to, asked });
        self.inserted.push((from, read));
        to
    }

    fn scan_uncached(&mut self, language: &Language, predictions: &mut Predictions, from: SetId, read: Read) -> SetId {
        let grammar = &language.grammar;
        self.pending.clear();
        self.completed.clear();
        self.finished = false;
        self.moved = false;
        let mut items = std::mem::take(&mut self.items);
        items.clear();
        match read {
            Read::Accepted(accept, text) => {
                for &lexeme in language.lexer.lexemes(accept) {
                    let (before, begun) = (self.pending.len(), items.len());
                    let mark = language.mark(lexeme);
                    if mark.is_none_or(|mark| self.takes_mark(language, predictions, (from, lexeme), mark, text)) {
                        self.advance(language, predictions, from, SymbolId::from(lexeme), &mut items);
                    }
                    if mark.is_some_and(|mark| !mark.binds) {
                        let fits = |name: TextId| [NOTHING, WILD, text].contains(&name) || text == WILD;
                        // A rule that has bound a text itself must match that one.
                        let kept = self.pending.split_off(before).into_iter().filter(|item| fits(item.name));
                        self.pending.extend(kept);
                    }
                    if mark.is_some_and(|mark| mark.binds) {
                        let moved = self.pending[before..].iter_mut().chain(&mut items[begun..]);
                        moved.for_each(|item| item.name = text);
                        if self.pending.len() > before || items.len() > begun {
                            self.texts.bind(text);
                        }
                    }
                }
            }
            Read::Indent(column) => {
                let indent = SymbolId::from(layout_lexeme(language, |layout| layout.indent));
                self.advance_block(grammar, predictions, from, indent, column);
            }
            Read::Dedent => {
                let dedent = SymbolId::from(layout_lexeme(language, |layout| layout.dedent));
                self.advance(language, predictions, from, dedent, &mut items);
            }
        }
        if self.pending.is_empty() && !self.moved {
            self.items = items;
            return NO_SET;
        }
        while let Some(item) = self.pending.pop() {
            let next = grammar.next(item.dot);
            if next != END_OF_RULE {
                items.push(item);
                if grammar.nullable(next) {
                    self.pending.push(Item { dot: Grammar::advance(item.dot), ..item });
                }
            } else {
                let (origin, symbol) = self.leo_item(item.origin, grammar.lhs(item.dot));
                if self.completed.insert((symbol, origin)) {
                    self.advance(language, predictions, origin, symbol, &mut items);
                }
            }
        }
        let accepts = self.finished;
        items.sort_unstable_by_key(|item| (grammar.next(item.dot), item.dot, item.origin, item.column, item.name));
        items.dedup();
        let around = self.sets[from.index()].block;
        let block = match read {
            Read::Accepted(..) => around,
            Read::Dedent => self.blocks[around as usize].0,
            Read::Indent(column) => self.open_block(around, column),
        };
        let set = self.intern(language, predictions, &items, accepts, block);
        self.items = items;
        set
    }

    fn open_block(&mut self, around: u32, column: ColumnId) -> u32 {
        let block = (around, self.indents.get(column.index()).copied().unwrap_or(NO_INDENTS));
        let fresh = u32::try_from(self.blocks.len()).expect("block count fits u32");
        *self.block_ids.entry(block).or_insert_with(|| {
            self.blocks.push(block);
            fresh
        })
    }

    fn intern(
        &mut self,
        language: &Language,
        predictions: &mut Predictions,
        items: &[Item],
        accepts: bool,
        block: u32,
    ) -> SetId {
        let grammar = &language.grammar;
        let hash = FxBuildHasher.hash_one((items, accepts, block));
        let first = self.interned.get(&hash).copied().unwrap_or(NO_SET);
        let mut at = first;
        while at != NO_SET {
            let known = &self.sets[at.index()];
            if *known.items == *items && known.accepts == accepts && known.block == block {
                return at;
            }
            at = known.collides;
        }
        let prediction = predictions.of(language, items.iter().map(|item| grammar.next(item.dot)));
        let modes = modes(grammar, predictions, items, prediction, accepts);
        let id = SetId::from_index(self.sets.len());
        self.sets.push(Set {
            expects: expects(language, predictions, items, prediction),
            items: items.into(),
            prediction,
            accepts,
            modes,
            bound: Vec::new(),
            leo_items: Vec::new(),
            block,
            hash,
            collides: first,
        });
        self.interned.insert(hash, id);
        id
    }

    /// Move every dot of a set over a symbol, and over all nonterminals that this completes at the set itself.
    fn advance(
        &mut self,
        language: &Language,
        predictions: &mut Predictions,
        set: SetId,
        symbol: SymbolId,
        items: &mut Vec<Item>,
    ) {
        let grammar = &language.grammar;
        self.questions.ask(set, symbol);
        let source = &self.sets[set.index()];
        let before = self.pending.len();
        for item in waiting(grammar, &source.items, symbol) {
            self.pending.push(Item { dot: Grammar::advance(item.dot), ..*item });
        }
        let chain = predictions.chain(language, source.prediction, symbol);
        items.extend(chain.dots.iter().map(|&dot| Item { dot, origin: set, column: NO_COLUMN, name: NOTHING }));
        for item in source.own(grammar) {
            if chain.finishes(grammar, grammar.next(item.dot)) {
                self.pending.push(Item { dot: Grammar::advance(item.dot), ..*item });
            }
        }
        if set == FIRST_SET && (symbol == grammar.start || chain.finishes(grammar, grammar.start)) {
            self.finished = true;
        }
        self.moved |= chain.moves;
        let alone = set != FIRST_SET && chain.dots.is_empty() && !grammar.is_lexeme(symbol);
        if let (true, &[moved]) = (alone, &self.pending[before..])
            && grammar.next(moved.dot) == END_OF_RULE
        {
            let last = (moved.origin, grammar.lhs(moved.dot));
            let leo_items = &mut self.sets[set.index()].leo_items;
            leo_items.reserve_exact(1); // mostly there is one
            leo_items.push(LeoItem { ended: symbol, last });
        }
    }

    /// Follow Leo items from a nonterminal that began at a set to the last one completed, and where it began. A chain
    /// of completions, as at the end of `a ** b ** …`, takes one step.
    fn leo_item(&mut self, set: SetId, symbol: SymbolId) -> (SetId, SymbolId) {
        let Some(first) = self.sets[set.index()].leo_item(symbol) else { return (set, symbol) };
        self.questions.ask(set, symbol);
        let mut last = first;
        while let Some(next) = self.sets[last.0.index()].leo_item(last.1) {
            last = next;
        }
        // Path compression, as in union-find: every item passed leads to the last one. Without it a chain that grows
        // with each symbol would be walked whole at each symbol, in quadratic time.
        let mut at = (set, symbol);
        while at != last {
            let leo = self.sets[at.0.index()].leo_items.iter_mut().find(|leo| leo.ended == at.1).expect("it leads on");
            at = std::mem::replace(&mut leo.last, last);
        }
        last
    }

    /// Symbols that a set would allow after an accept set has been read without its marks, without making that set.
    /// `None` if the accept set cannot be read.
    pub(crate) fn ahead(
        &mut self,
        language: &Language,
        predictions: &mut Predictions,
        from: SetId,
        accept: AcceptId,
    ) -> Option<Ahead> {
        let grammar = &language.grammar;
        let mut ahead = Ahead::default();
        let mut moved = false;
        self.pending.clear();
        self.completed.clear();
        // Symbols to move dots over: those read, then completed nonterminals, each with the set where it began.
        let mut reads: Vec<(SetId, SymbolId)> = std::mem::take(&mut self.reads);
        reads.clear();
        let lexemes = language.lexer.lexemes(accept).iter();
        let lexemes = lexemes.filter(|&&lexeme| language.mark(lexeme).is_none());
        reads.extend(lexemes.map(|&lexeme| (from, SymbolId::from(lexeme))));
        while let Some((set, symbol)) = reads.pop() {
            let (set, symbol) = self.leo_item(set, symbol);
            if !grammar.is_lexeme(symbol) && !self.completed.insert((symbol, set)) {
                continue;
            }
            self.questions.ask(set, symbol);
            let source = &self.sets[set.index()];
            let chain = predictions.chain(language, source.prediction, symbol);
            moved |= chain.moves;
            ahead.add(&chain.ahead);
            if set == FIRST_SET && (symbol == grammar.start || chain.finishes(grammar, grammar.start)) {
                ahead.free |= language.follow.after(grammar.start);
                ahead.modes |= 1;
            }
            let direct = waiting(grammar, &source.items, symbol).iter();
            let finished = source.own(grammar).iter().filter(|item| chain.finishes(grammar, grammar.next(item.dot)));
            for item in direct.chain(finished) {
                moved = true;
                let mut dot = Grammar::advance(item.dot);
                loop {
                    let next = grammar.next(dot);
                    if next == END_OF_RULE {
                        reads.push((item.origin, grammar.lhs(dot)));
                        break;
                    }
                    ahead.add(language.aheads.of(dot));
                    if !grammar.nullable(next) {
                        break;
                    }
                    dot = Grammar::advance(dot);
                }
            }
        }
        self.reads = reads;
        moved.then_some(ahead)
    }

    /// Move every dot of a set over an INDENT, and give the block its column.
    fn advance_block(
        &mut self,
        grammar: &Grammar,
        predictions: &Predictions,
        set: SetId,
        indent: SymbolId,
        column: ColumnId,
    ) {
        let source = &self.sets[set.index()];
        let own = waiting(grammar, &source.items, indent).iter();
        let moved = own.map(|item| Item { dot: Grammar::advance(item.dot), column, ..*item });
        let predicted = predictions.dots(grammar, source.prediction, indent).iter();
        let begun = predicted.map(|&dot| Item { dot: Grammar::advance(dot), origin: set, column, name: NOTHING });
        self.pending.extend(moved.chain(begun));
    }
}

/// Return the kinds of marks that can be read.
fn expects(language: &Language, predictions: &Predictions, items: &[Item], prediction: PredictionId) -> Expects {
    let Some(marks) = &language.marks else { return Expects::default() };
    let grammar = &language.grammar;
    let next = items.iter().map(|item| grammar.next(item.dot)).take_while(|&symbol| grammar.is_lexeme(symbol));
    let mut expects = Expects::default();
    for mark in next.filter_map(|symbol| marks.of_symbol(symbol)) {
        expects.binds |= mark.binds;
        expects.matches |= !mark.binds;
    }
    let predicts = |symbol: SymbolId| predictions.has(prediction, symbol);
    expects.binds |= marks.binding().any(predicts);
    expects.matches |= marks.matching().any(predicts);
    expects
}

/// The modes in force at a set. Where the file may end, mode 0 reads the blanks before its end.
fn modes(grammar: &Grammar, predictions: &Predictions, items: &[Item], prediction: PredictionId, accepts: bool) -> u64 {
    if !grammar.has_modes() {
        return 1;
    }
    let lexemes = items.iter().map(|item| grammar.next(item.dot)).take_while(|&symbol| grammar.is_lexeme(symbol));
    let kinds = lexemes.fold(predictions.modes(prediction), |mask, lexeme| mask | grammar.mode_kinds(lexeme));
    grammar.modes_in_force(kinds | u64::from(accepts))
}

fn layout_lexeme(language: &Language, pick: impl Fn(&crate::lexing::layout::Layout) -> LexemeId) -> LexemeId {
    language.layout.as_ref().map(pick).expect("only the layout stage reads INDENT and DEDENT")
}

pub(super) fn waiting<'a>(grammar: &Grammar, items: &'a [Item], symbol: SymbolId) -> &'a [Item] {
    let begin = items.partition_point(|item| grammar.next(item.dot) < symbol);
    let length = items[begin..].partition_point(|item| grammar.next(item.dot) == symbol);
    &items[begin..begin + length]
}
