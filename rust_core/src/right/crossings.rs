//! Crossings: for every free state, the boundaries and the cut symbols from which R can go on, and the items that the
//! middle may have in progress there.

use crate::ids::{AcceptId, DotId, FreeId, ModeId, NodeId, SymbolId};
use crate::language::compiled::Language;
use crate::language::free::{Cost, Free, INFINITE};
use crate::language::marks::{CUTTABLE, Mark, NAMED_CUTTABLE};
use crate::lexing::lookahead::Lookahead;
use crate::lexing::roles::Role;
use crate::limits;
use crate::right::chart::Charted;
use crate::right::columns::{Classes, Entry};
use crate::right::lattice::Lattice;
use crate::right::lex::{Lexed, LineStart};
use crate::right::parts::SeedKey;
use crate::right::places::{Place, Stands, Top};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Base from which the costs of R's chart are counted. The indentation of a block's first line is counted where the
/// block ends, since only there its column is known. It is subtracted before where that line is R's first. Unit: bytes;
/// more than any indentation of R takes.
pub(super) const UNREFUNDED: Cost = 2 * limits::RIGHT_COLUMN;

/// Crossings from free states to nodes.
#[derive(Debug, Default)]
pub(super) struct Crossings {
    /// Crossings without a symbol, with a cost in bytes (of an indentation or a comment that the cursor cuts).
    pub(super) between: Vec<(FreeId, NodeId, Cost)>,
    /// By a symbol cut by the cursor, at a cost in bytes.
    pub(super) by_symbol: Vec<(FreeId, SymbolId, NodeId, Cost)>,
    /// Line starts that the cursor cuts, by the numbers in [`Top::AboveEntry`].
    pub(super) entries: Vec<Entry>,
}

impl Crossings {
    /// Find the crossings, and make the nodes that they lead to.
    pub(super) fn find(lexed: &Lexed, lookahead: &Lookahead, lattice: &mut Lattice, classes: &mut Classes) -> Self {
        let language = lexed.language();
        let mut finder = Finder { language, lexed, lookahead, lattice, classes, found: Self::default() };
        finder.cross();
        finder.found
    }

    /// Give the first nodes the free items that the middle may have in progress.
    pub(super) fn seed(&self, lexed: &Lexed, charted: &mut Charted, classes: &Classes) {
        let language = lexed.language();
        let free = &language.free;
        let mut by_node: FxHashMap<NodeId, Vec<(FreeId, Cost)>> = FxHashMap::default();
        for &(from, node, cost) in &self.between {
            by_node.entry(node).or_default().push((from, cost));
        }
        for (id, reached_from) in by_node {
            let place = charted.lattice.place(id);
            let next = lexed.text_at(place);
            // The price of the end of a block whose first line the cursor cuts.
            let refunded = match place {
                Place::Middle { line: Top::Exact(column), .. } => classes.further(column),
                _ => 0,
            };
            let stands = Stands::at(&language.grammar, place, next);
            let key = SeedKey { stands, reached_from: reached_from.into(), refunded };
            let chunk = charted.parts.seed_by(key, |key| in_progress(language, key));
            charted.lattice.pending(id).chunks.extend(chunk);
            charted.lattice.cross(id, !place.is_in_literal() || language.grammar.unites_modes());
        }
        for &(at, symbol, node, cost) in &self.by_symbol {
            let place = charted.lattice.place(node);
            let stands = Stands::at(&language.grammar, place, lexed.text_at(place));
            let moved = free
                .advances(&language.grammar, symbol, at)
                .iter()
                .filter(|item| stands.admits(&language.grammar, item.0));
            let chunk = charted.parts.seed(moved.map(|&(dot, from, before)| (dot, from, before + cost + UNREFUNDED)));
            charted.lattice.pending(node).chunks.extend(chunk);
            charted.lattice.cross(node, false);
        }
    }
}

struct Finder<'a> {
    language: &'a Language,
    lexed: &'a Lexed,
    lookahead: &'a Lookahead,
    lattice: &'a mut Lattice,
    classes: &'a mut Classes,
    found: Crossings,
}

impl Finder<'_> {
    /// Find where the cursor can fall: boundaries and symbols cut in two, for every free state.
    fn cross(&mut self) {
        let (free, grammar) = (&self.language.free, &self.language.grammar);
        let lexer = &self.language.lexer;
        let joins = lexer.accept_sets().any(|accept| self.language.accept_role(accept) == Role::Join);
        for from in free.states() {
            for to in free.states() {
                if free.ignored(from, to) == INFINITE || !free.may_end(to) || !self.guards_hold(to) {
                    continue;
                }
                if free.is_line(to) {
                    self.cross_line_start(from, 0, false, 0);
                    // The middle may also have ended in a whole backslash-newline, which keeps any column.
                    if joins {
                        self.cross_line_start(from, 0, true, 0);
                    }
                } else {
                    self.cross_middle(from, 0, 0);
                }
            }
            let texts = grammar.has_modes()
                && free.states().any(|to| free.ignored(from, to) != INFINITE && !free.is_line(to) && free.may_end(to));
            for mode in (0..self.language.mode_count()).map(ModeId::from_index).filter(|_| texts) {
                let place = Place::Text { position: 0, mode };
                if !grammar.reads_code(mode) && self.lexed.text_at(place).is_some() {
                    let node = self.lattice.intern(place);
                    self.found.between.push((from, node, 0));
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
                self.cross_symbol(from, end, accept, cost);
            }
        }
        self.found.between.sort_unstable();
        self.found.between.dedup_by_key(|crossing| (crossing.0, crossing.1));
        self.found.by_symbol.sort_unstable();
        self.found.by_symbol.dedup_by_key(|crossing| (crossing.0, crossing.1, crossing.2));
    }

    fn guards_hold(&self, state: FreeId) -> bool {
        let free = &self.language.free;
        free.guards().states(free.boundary(state)).iter().all(|&guard| self.lookahead.end(guard).is_none())
    }

    fn cross_symbol(&mut self, from: FreeId, end: u32, accept: AcceptId, cost: Cost) {
        let at_line = self.language.free.is_line(from);
        match self.language.accept_role(accept) {
            Role::Blank => {
                if !at_line {
                    self.cross_middle(from, end, 0);
                }
            }
            Role::Comment if at_line => self.cross_line_start(from, end, false, cost),
            Role::Join if at_line => self.cross_line_start(from, end, true, 0),
            Role::Join if self.lexed.is_end(end) => {}
            Role::Comment => self.cross_middle(from, end, cost),
            Role::Join => self.cross_middle(from, end, 0),
            Role::Newline if at_line => {
                // A line break that the cursor cuts, as in `\r` and `\n`: R's line begins after it.
                let Some(start) = self.lexed.line_start(end, true) else { return };
                let nodes = self.line_start_nodes(start).into_iter();
                self.found.between.extend(nodes.map(|node| (from, node, 0)));
            }
            Role::Newline => {
                let Some(start) = self.lexed.line_start(end, true) else { return };
                for node in self.line_start_nodes(start) {
                    for &lexeme in self.language.lexer.lexemes(accept) {
                        self.found.by_symbol.push((from, SymbolId::from(lexeme), node, cost));
                    }
                }
            }
            role @ (Role::Symbol | Role::Open | Role::Close) => {
                for &lexeme in self.language.lexer.lexemes(accept) {
                    let is_cut = |mark: Mark| matches!(mark.slot, CUTTABLE | NAMED_CUTTABLE);
                    if !self.language.mark(lexeme).is_none_or(is_cut) {
                        continue; // none of its texts ends so
                    }
                    let symbol = SymbolId::from(lexeme);
                    for (place, _) in self.lexed.places_after(symbol, role, end) {
                        if matches!(place, Place::Text { .. }) && self.lexed.text_at(place).is_none() {
                            continue; // nothing is read from there
                        }
                        let node = self.lattice.intern(place);
                        self.found.by_symbol.push((from, symbol, node, cost));
                    }
                }
            }
        }
    }

    fn cross_middle(&mut self, from: FreeId, position: u32, cost: Cost) {
        for place in self.lexed.code_places(position) {
            let node = self.lattice.intern(place);
            self.found.between.push((from, node, cost));
        }
    }

    /// Add the crossings of a cursor where a line may begin, `before` bytes after the free state.
    fn cross_line_start(&mut self, from: FreeId, position: u32, joined: bool, before: Cost) {
        let Some(start) = self.lexed.line_start(position, false) else { return };
        let nodes: Vec<(NodeId, Cost)> = if start.column.is_some() {
            self.line_start_nodes(start).into_iter().map(|node| (node, 0)).collect()
        } else {
            self.entry_nodes(Entry { from: position, to: start.position, joined })
        };
        self.found.between.extend(nodes.into_iter().map(|(node, cost)| (from, node, cost + before)));
    }

    /// The nodes before a line that begins in R, one for each class of the unknown column on top of the stack.
    fn line_start_nodes(&mut self, start: LineStart) -> Vec<NodeId> {
        let LineStart { position, column: Some(column) } = start else { return Vec::new() };
        let begin = self.lexed.line_begin(position, column);
        let places = self.classes.line_places(begin, position, column).into_iter();
        places.map(|place| self.lattice.intern(place)).collect()
    }

    /// The nodes before the first symbol of a line cut in its indentation, one for each class of its column, with the
    /// least bytes that the middle must bring.
    fn entry_nodes(&mut self, entry: Entry) -> Vec<(NodeId, Cost)> {
        let following = self.lexed.following_column(entry.to);
        // Free states that cut the same indentation share its nodes.
        let known = self.found.entries.iter().position(|other| *other == entry);
        let place = known.unwrap_or(self.found.entries.len());
        if known.is_none() {
            self.found.entries.push(entry);
        }
        let index = u16::try_from(place).expect("entries are few");
        let Some(following) = following else { return Vec::new() };
        self.classes.see(following);
        let classes = entry.classes(self.lexed, self.classes, following).into_iter();
        let mut places: Vec<(Place, Cost)> = classes
            .map(|(column, cost)| (Place::Middle { position: entry.to, line: Top::Exact(column) }, cost))
            .collect();
        let held = if entry.joined { following.least_bytes_right_of(true) } else { entry.to - entry.from };
        let least = following.least_bytes_right_of(true).saturating_sub(held);
        places.push((Place::Middle { position: entry.to, line: Top::AboveEntry(index) }, least));
        places.into_iter().map(|(place, cost)| (self.lattice.intern(place), cost)).collect()
    }
}

/// The items that the middle may have in progress where R begins.
fn in_progress(language: &Language, key: &SeedKey) -> Vec<(DotId, FreeId, Cost)> {
    let (grammar, free) = (&language.grammar, &language.free);
    // Keyed by the prefix class, which most dots share with others.
    let mut known: FxHashMap<(u32, u32, Cost), Vec<(FreeId, Cost)>> = FxHashMap::default();
    let mut items = Vec::new();
    for (dot, priced) in Free::open_dots(grammar).filter(|&(dot, _)| key.stands.admits(grammar, dot)) {
        let refunded = if grammar.is_after_indent(dot) { key.refunded } else { 0 };
        let before = (free.prefix_class(dot), free.prefix_class(priced), refunded);
        let costs = known.entry(before).or_insert_with(|| begun_for(free, (dot, priced), &key.reached_from, refunded));
        items.extend(costs.iter().map(|&(from, cost)| (dot, from, cost)));
    }
    items
}

/// The free states in which a rule can have begun that has a dot at a node, with the least costs. `priced` is the dot
/// whose prefix is counted.
fn begun_for(
    free: &Free,
    (dot, priced): (DotId, DotId),
    reached_from: &[(FreeId, Cost)],
    refunded: Cost,
) -> Vec<(FreeId, Cost)> {
    let from_all = free.states().filter_map(|from| {
        let reached = reached_from.iter().filter(|&&(at, _)| free.prefix(dot, from, at) != INFINITE);
        let costs = reached.map(|&(at, crossing)| {
            let cost = free.prefix(priced, from, at);
            // Where the rule begins in R after all, the indentation is counted where it begins.
            let crossing = if cost == 0 { 0 } else { crossing };
            (cost + UNREFUNDED + crossing).saturating_sub(refunded)
        });
        Some((from, costs.min()?))
    });
    from_all.collect()
}
