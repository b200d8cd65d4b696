//! Earley chart over the lattice, from left to right. Its first sets hold *free items*: rules begun in the unwritten
//! middle, with the least bytes of their part before the cursor ([`crate::right::parts`]).
//!
//! Work is shared:
//!
//! - A set is computed once for all nodes with the same incoming symbols and sets ([`crate::right::set_memo`]).
//! - The predicted dots that a symbol moves, with all nonterminals that it completes at the same node, are one *link*
//!   to that node.
//! - Items of rules that began in the middle, and of lists for which only these wait, do not depend on their place in
//!   R. Their results are computed once for all equal ones. A walk backwards finds where a list began
//!   ([`crate::right::begun`]).
//! - Where completing a nonterminal only completes another, the last of the chain is completed at once (Leo 1991). The
//!   end of `a ** b ** …` ends a power at each of its operands.
//! - Where many nonterminals end, those are left out that R's next symbol cannot follow.
//! - Completions are kept only where a rule that began before R can ask for them: free items stand wherever such a rule
//!   does.

use crate::bits::{self, BitSet};
use crate::chart::predict::Predictions;
use crate::grammar::compiled::Grammar;
use crate::grammar::rules::END_OF_RULE;
use crate::ids::{AcceptId, ChunkId, DotId, LoneId, ModeId, NodeId, OriginId, PartId, RightSetId, SymbolId};
use crate::language::compiled::Language;
use crate::language::free::Cost;
use crate::right::columns::Classes;
use crate::right::lattice::{Incoming, Lattice, Pending};
use crate::right::lex::Lexed;
use crate::right::links::{Link, Links};
use crate::right::origins::{At, Base, Completed, Origins};
use crate::right::parts::{Kind, Part, Parts};
use crate::right::places::{Begun, Place, Top};
use crate::right::set_memo::{LeoItems, Record, SetMemo};
use crate::right::sets::{Content, slice_by};
use crate::stop::poll;
use rustc_hash::{FxHashMap, FxHashSet};

/// Completions in one set from which on the next symbol of R is looked at.
const MANY_COMPLETIONS: usize = 16;

/// Complete the sets of a lattice, and make the nodes read from them. Stop where a line has a column that the classes
/// do not foresee. `known` is empty.
pub(super) fn parse(
    language: &Language,
    predictions: &mut Predictions,
    lexed: &mut Lexed,
    charted: &mut Charted,
    classes: &mut Classes,
    known: SetMemo,
) {
    let mut chart = Chart {
        language,
        predictions,
        lexed,
        charted,
        classes,
        dedents: FxHashSet::default(),
        leo_items: LeoItems::default(),
        known,
    };
    let mut worker = Worker::default();
    while let Some(id) = chart.charted.lattice.pop() {
        poll();
        if chart.classes.surprised {
            break;
        }
        chart.process(&mut worker, id);
    }
    charted.found = chart.known.found;
    charted.settle(language);
}

/// The lattice with the tables of its sets.
#[derive(Debug)]
pub(super) struct Charted {
    pub(super) lattice: Lattice,
    pub(super) parts: Parts,
    pub(super) links: Links,
    pub(super) origins: Origins,
    /// Texts that rules have bound which began in R, as parts of R: by the dot before the text, and the rule's origin.
    pub(super) bound: FxHashMap<(DotId, NodeId), Vec<(u32, u32)>>,
    /// Number of sets found instead of computed.
    pub(super) found: usize,
}

impl Charted {
    pub(super) fn new(language: &Language, end: usize) -> Self {
        Self {
            lattice: Lattice::new(end),
            parts: Parts::new(language),
            links: Links::new(),
            origins: Origins::default(),
            bound: FxHashMap::default(),
            found: 0,
        }
    }

    /// Drop the tables needed only while the chart is made.
    fn settle(&mut self, language: &Language) {
        self.lattice.settle();
        self.bound = FxHashMap::default();
        self.links.settle();
        self.parts.settle(language);
    }

    /// The place where an item's rule began; `None` if that is in the middle.
    pub(super) fn begun_at(&self, origin: OriginId) -> Option<Begun> {
        match self.origins.get(origin).base {
            Base::Node(node) => Some(self.lattice.place(node).begun()),
            Base::Free(_) => None,
        }
    }

    /// Items at a node that began in R and have a symbol next.
    pub(super) fn waiting<'a>(
        &'a self,
        grammar: &'a Grammar,
        id: NodeId,
        symbol: SymbolId,
    ) -> impl Iterator<Item = (DotId, OriginId)> + 'a {
        let own = self.lattice.items_before(grammar, id, symbol);
        let linked = self.lattice.links(id).flat_map(move |(link, begun)| {
            let dots = slice_by(&self.links.get(link).dots, |&dot| grammar.next(dot), symbol);
            dots.iter().map(move |&dot| (dot, Origins::at_node(begun)))
        });
        own.chain(linked)
    }

    /// Add moved dots with which lists may begin at a node. Dots of lists are added where only free items wait. The
    /// node's own are added where an item that began in R, or a list, waits for their nonterminal.
    pub(super) fn begin_lone(
        &mut self,
        grammar: &Grammar,
        node: NodeId,
        id: LoneId,
        items: &mut Vec<(DotId, OriginId)>,
        chunks: &mut Vec<At<ChunkId>>,
    ) {
        let lone = self.links.lone_dots(id).clone();
        let begun = self.lattice.place(node).begun();
        let own = self.waits_in_right(grammar, node, &lone.nonterminals);
        if let Some(own) = &own {
            let at_node = |dot: DotId| bits::contains(own, grammar.nonterminal_index(grammar.lhs(dot)));
            let dots = lone.dots.iter().filter(|&&dot| at_node(dot));
            items.extend(dots.map(|&dot| (dot, Origins::at_node(node))));
        }
        for part in self.lattice.parts(node) {
            chunks.extend(self.parts.begun(grammar, part, (id, &lone), begun, own.as_deref()));
        }
    }

    /// The nonterminals among some for which an item waits at a node that began in R; `None` if there are none.
    fn waits_in_right(&self, grammar: &Grammar, id: NodeId, nonterminals: &[u64]) -> Option<Vec<u64>> {
        let meets =
            |next: SymbolId| !grammar.is_lexeme(next) && bits::contains(nonterminals, grammar.nonterminal_index(next));
        let any = self.lattice.items(id).any(|(dot, _)| meets(grammar.next(dot)))
            || self.lattice.links(id).any(|(link, _)| bits::meet(&self.links.get(link).waits, nonterminals))
            || self.lattice.parts(id).any(|(part, _)| self.parts.get(part).waits_in_list(nonterminals));
        if !any {
            return None;
        }
        let mut found = vec![0; nonterminals.len()];
        let nexts = self.lattice.items(id).map(|(dot, _)| grammar.next(dot));
        for next in nexts.filter(|&next| !grammar.is_lexeme(next)) {
            bits::insert(&mut found, grammar.nonterminal_index(next));
        }
        for (link, _) in self.lattice.links(id) {
            bits::unite(&mut found, &self.links.get(link).waits);
        }
        for (part, _) in self.lattice.parts(id) {
            self.parts.get(part).add_waits_in_list(&mut found);
        }
        Some(found)
    }

    /// Return whether a rule that began before R, or a list, can ask whether one of some nonterminals began at a node.
    fn is_wanted(&self, id: NodeId, wanted: impl Fn(&Part) -> bool) -> bool {
        let asks = |(part, _): At<PartId>| wanted(self.parts.get(part));
        self.lattice.is_crossed(id) || self.lattice.parts(id).any(asks)
    }
}

/// A chart in the making.
pub(super) struct Chart<'a> {
    pub(super) language: &'a Language,
    pub(super) predictions: &'a mut Predictions,
    pub(super) lexed: &'a mut Lexed,
    pub(super) charted: &'a mut Charted,
    pub(super) classes: &'a mut Classes,
    /// DEDENT edges, by both ends.
    pub(super) dedents: FxHashSet<(NodeId, NodeId)>,
    leo_items: LeoItems,
    /// Results of computing sets.
    pub(super) known: SetMemo,
}

impl Chart<'_> {
    /// Complete a node's set and read on from it.
    fn process(&mut self, worker: &mut Worker, id: NodeId) {
        let pending = self.charted.lattice.take_pending(id);
        let is_read = pending.items.is_empty() && pending.chunks.is_empty();
        let is_first = self.charted.lattice.is_first(id);
        if is_read && pending.read.is_empty() && !is_first {
            self.charted.lattice.put(id, RightSetId(0), &[]);
            return;
        }
        let place = self.charted.lattice.place(id);
        let kind = Kind {
            nested: place.is_in_literal() && !self.language.grammar.unites_modes(),
            loops: matches!(place, Place::Line { top: Top::Above, .. }),
        };
        let more = (is_read && !is_first).then_some(u32::from(kind.nested) | u32::from(kind.loops) << 1);
        worker.record.begin(&self.charted.lattice, id, &pending.read, more);
        let found =
            self.known.find(&self.charted.lattice, &mut self.leo_items, &worker.record, &mut worker.set.offsets);
        if let Some(set) = found {
            self.charted.lattice.put(id, set, &worker.set.offsets);
        } else {
            self.make(worker, id, kind, &pending);
        }
        self.charted.lattice.count(id);
        self.charted.lattice.spare(pending);
        self.read_on(id);
    }

    /// Complete a node's set.
    fn make(&mut self, worker: &mut Worker, id: NodeId, kind: Kind, pending: &Pending) {
        worker.begin(id);
        self.charted.parts.begin_set();
        worker.chunks.extend(&pending.chunks);
        for &(dot, origin) in &pending.items {
            worker.push(dot, origin);
        }
        for &incoming in &pending.read {
            self.take(worker, incoming);
        }
        for &Incoming { symbol, from, .. } in pending.read.iter() {
            if worker.whole.contains(&(symbol, from)) {
                self.complete(worker, from, symbol);
            }
        }
        self.close(worker);
        self.finish(worker, id, kind);
    }

    /// Move the items at a node that wait for a symbol and pass the filter. If all of them are predicted there,
    /// completing the symbol moves them instead.
    fn take(&mut self, worker: &mut Worker, Incoming { symbol, from, filter }: Incoming) {
        let grammar = &self.language.grammar;
        let matched = self.matched_text(symbol, from);
        let bound = matched.filter(|_| self.is_bound_whole(symbol)).map(|text| text.len() as Cost);
        if matched.is_some() {
            worker.record.spoil(); // the texts that rules have bound decide as well
        }
        let fits = |dot: DotId, origin: OriginId| matched.is_none_or(|text| self.may_match(dot, origin, text));
        let charted = &*self.charted;
        for (dot, origin) in charted.waiting(grammar, from, symbol) {
            let moved = Grammar::advance(dot);
            if filter.admits(grammar, moved, charted.begun_at(origin)) && fits(dot, origin) {
                worker.record.take(from, Origins::node_of(origin));
                worker.push(moved, origin);
            }
        }
        let charted = &mut *self.charted;
        let Charted { lattice, parts, .. } = &mut *charted;
        worker
            .chunks
            .extend(lattice.parts(from).filter_map(|part| parts.moved(self.language, part, symbol, (filter, bound))));
        let (prediction, begun) = (lattice.set(from).prediction, lattice.place(from).begun());
        let reading = charted.links.reading(grammar, self.predictions, (prediction, symbol), filter, begun);
        if reading.is_whole {
            worker.whole.push((symbol, from));
            return;
        }
        let mut items: Vec<(DotId, OriginId)> = reading.dots.iter().map(|&dot| (dot, Origins::at_node(from))).collect();
        if let Some(lone) = reading.lone {
            charted.begin_lone(grammar, from, lone, &mut items, &mut worker.chunks);
        }
        for (dot, origin) in items {
            worker.push(dot, origin);
        }
    }

    /// Run Earley's completer for items that began in R.
    fn close(&mut self, worker: &mut Worker) {
        let language = self.language;
        let grammar = &language.grammar;
        while let Some((dot, origin)) = worker.pending.pop() {
            let next = grammar.next(dot);
            if next != END_OF_RULE {
                worker.set.items.push((dot, origin));
                if grammar.nullable(next) {
                    worker.push(Grammar::advance(dot), origin);
                }
                continue;
            }
            let lhs = grammar.lhs(dot);
            if Origins::node_of(origin).is_none() {
                worker.record.spoil(); // its cost may fall, and its node has only one name
            }
            match self.charted.origins.get(origin).base {
                Base::Node(begun) => self.complete(worker, begun, lhs),
                Base::Free(begun) => {
                    let cost = self.charted.origins.cost(origin);
                    worker.chunks.extend(self.charted.parts.end(lhs, begun, cost));
                }
            }
        }
    }

    /// Complete a nonterminal that began at a node, or a symbol read there, as far as it moves predicted items. Follow
    /// chains of completions by Leo items.
    fn complete(&mut self, worker: &mut Worker, begun: NodeId, lhs: SymbolId) {
        let mut completed = (lhs, begun);
        loop {
            // A chain, such as the end of `a ** b ** …`, has a completion for each operand. `last` skips the known part
            // of it, and `complete_one` adds one Leo item, so each link of a chain is made once.
            let last = self.leo_items.last(completed);
            worker.record.complete(&self.charted.lattice, completed, last);
            completed = last;
            // Chains need not be recorded: completing them again follows the Leo item.
            if worker.ended.contains(&completed) || self.is_futile(worker, completed.0) {
                return;
            }
            match self.complete_one(worker, completed) {
                Some(next) => completed = next,
                None => break,
            }
        }
        worker.ended.insert(completed);
    }

    /// Return whether R's next symbol at the node can come after no text of a nonterminal. It is asked where many are
    /// completed: in `a: b: c: …`, each label would end a statement that began at each label before. Nodes with few
    /// share their sets, whatever comes next.
    fn is_futile(&self, worker: &mut Worker, lhs: SymbolId) -> bool {
        if worker.ended.len() < MANY_COMPLETIONS {
            return false;
        }
        worker.record.spoil();
        let next = worker.next.get_or_insert_with(|| self.next_lexemes(self.charted.lattice.place(worker.node)));
        next.as_ref().is_some_and(|next| !bits::meet(next.words(), self.language.grammar.followers(lhs)))
    }

    /// The lexemes that R may have next at a place; `None` if a layout symbol or the end of the file may come, and inside
    /// of literals.
    fn next_lexemes(&self, place: Place) -> Option<BitSet> {
        let language = self.language;
        let code = language.grammar.code_modes();
        let accepts: Vec<AcceptId> = match place {
            Place::Code { position } => {
                let modes = bits::ones(code).map(ModeId::from_index);
                modes.filter_map(|mode| Some(self.lexed.symbol_in(mode, position)?.0)).collect()
            }
            Place::Text { position, mode } => {
                self.lexed.symbol_in(mode, position).map(|found| found.0).into_iter().collect()
            }
            Place::Middle { position, .. } => vec![self.lexed.symbol(position)?.0],
            Place::Nested { .. } | Place::Line { .. } | Place::End => return None,
        };
        let lexemes = accepts.into_iter().flat_map(|accept| language.lexer.lexemes(accept).iter().map(|id| id.index()));
        Some(BitSet::of(language.grammar.lexeme_count(), lexemes))
    }

    /// Complete one nonterminal. If this only completes another, return that one.
    fn complete_one(&mut self, worker: &mut Worker, (lhs, begun): (SymbolId, NodeId)) -> Option<(SymbolId, NodeId)> {
        let language = self.language;
        let grammar = &language.grammar;
        debug_assert!(self.charted.lattice.is_processed(begun), "a symbol with text ends after the node it began at");
        let id = self.charted.links.of(language, self.predictions, self.charted.lattice.set(begun).prediction, lhs);
        let link = self.charted.links.get(id).clone();
        let chunks = worker.chunks.len();
        let Charted { lattice, parts, .. } = &mut *self.charted;
        let linked = lattice.parts(begun).filter_map(|part| parts.linked(grammar, part, id, lhs, &link.chain));
        worker.chunks.extend(linked);
        let free = worker.chunks.len() > chunks;
        let moved = self.move_own(worker, begun, lhs, &link);
        // A Leo item stands for a completion whose only effect is another one (Leo 1991): it moves no free item and no
        // predicted dot, the cursor cannot fall on its node, and the one moved item ends its rule.
        let alone = !self.charted.lattice.is_crossed(begun) && !free && link.dots.is_empty() && link.lone.is_none();
        let is_read = grammar.is_lexeme(lhs);
        if let Some((dot, origin)) = moved {
            let ends = grammar.next(dot) == END_OF_RULE;
            if let (true, Base::Node(at)) = (alone && !is_read && ends, self.charted.origins.get(origin).base) {
                let next = (grammar.lhs(dot), at);
                self.leo_items.insert((lhs, begun), next);
                worker.record.leo_item((lhs, begun), next);
                if Origins::node_of(origin).is_some() {
                    return Some(next);
                }
            }
            worker.push(dot, origin);
        }
        if !link.dots.is_empty() {
            worker.set.links.push((id, begun));
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
            worker.set.completed.push(Completed::One(lhs, begun));
        }
        let finished = link.chain.finished.words();
        if link.finishes && (begins_list || self.charted.is_wanted(begun, |part| part.waits_for_one(finished))) {
            worker.set.completed.push(Completed::Link(id, begun));
        }
        None
    }

    /// Move the waiting items at a node that began in R over a nonterminal, and over all nonterminals that it completes
    /// there. If there is just one such item, return it, moved, instead of adding it.
    fn move_own(&self, worker: &mut Worker, begun: NodeId, lhs: SymbolId, link: &Link) -> Option<(DotId, OriginId)> {
        let grammar = &self.language.grammar;
        let mut first = None;
        let mut several = false;
        let mut push = |dot: DotId, origin: OriginId| {
            worker.record.take(begun, Origins::node_of(origin));
            let moved = (Grammar::advance(dot), origin);
            match first {
                None if !several => first = Some(moved),
                _ => {
                    several = true;
                    if let Some((dot, origin)) = first.take() {
                        worker.push(dot, origin);
                    }
                    worker.push(moved.0, moved.1);
                }
            }
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
            for (dot, origin) in lattice.items(begun).filter(|item| finished(item.0)) {
                push(dot, origin);
            }
            for (other, at) in lattice.links(begun) {
                for &dot in links.get(other).dots.iter().filter(|&&dot| finished(dot)) {
                    push(dot, Origins::at_node(at));
                }
            }
        }
        first
    }

    /// Put a closed set into its node.
    fn finish(&mut self, worker: &mut Worker, id: NodeId, kind: Kind) {
        let language = self.language;
        let grammar = &language.grammar;
        let Worker { set, chunks, .. } = worker;
        self.charted.parts.closed(language, chunks, kind, &mut set.parts);
        set.group();
        set.items.sort_unstable_by_key(|&(dot, origin)| (grammar.next(dot), dot, origin));
        let Charted { lattice, parts, links, .. } = &mut *self.charted;
        let is_first = lattice.is_first(id);
        let nexts = set.items.iter().map(|&(dot, _)| grammar.next(dot)).chain(is_first.then_some(grammar.start));
        let closures = set.links.iter().map(|&(link, _)| &*links.get(link).predicts);
        let closures = closures.chain(set.parts.iter().map(|&(part, _)| &*parts.get(part).predicts));
        let prediction = self.predictions.united(language, nexts, closures);
        let free_items = set.parts.iter().any(|&(part, _)| parts.get(part).has_items());
        let is_alive = is_first || !set.items.is_empty() || !set.links.is_empty() || free_items;
        let known = lattice.sets.intern(id, set, prediction, is_alive);
        lattice.put(id, known, &set.offsets);
        self.known.keep(lattice, &worker.record, known, &set.offsets, parts.most_added());
    }
}

/// Scratch space of one set's closure.
#[derive(Default)]
struct Worker {
    record: Record,
    node: NodeId,
    /// The lexemes that R may have next at the node, once they are asked for; `None` if any may come.
    next: Option<Option<BitSet>>,
    /// Symbols that move every predicted dot of a node before them.
    whole: Vec<(SymbolId, NodeId)>,
    pending: Vec<(DotId, OriginId)>,
    seen: FxHashSet<(DotId, OriginId)>,
    set: Content,
    chunks: Vec<At<ChunkId>>,
    ended: FxHashSet<(SymbolId, NodeId)>,
}

impl Worker {
    fn begin(&mut self, node: NodeId) {
        (self.node, self.next) = (node, None);
        self.whole.clear();
        self.pending.clear();
        self.seen.clear();
        self.set.clear();
        self.chunks.clear();
        self.ended.clear();
    }

    fn push(&mut self, dot: DotId, origin: OriginId) {
        if self.seen.insert((dot, origin)) {
            self.pending.push((dot, origin));
        }
    }

    /// Take up an item whose nullable symbols have been passed already.
    fn keep(&mut self, dot: DotId, origin: OriginId) {
        if self.seen.insert((dot, origin)) {
            self.set.items.push((dot, origin));
        }
    }
}
