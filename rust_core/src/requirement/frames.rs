//! Frames: the demand of a left-chart set on its predictions, and the solutions found for it.
//!
//! A set's demand depends only on the requirements behind its items, so sets with equal demands share one frame. Frames
//! outlive the sets.

use crate::chart::left::{FIRST_SET, Indents};
use crate::chunked::Chunked;
use crate::components::components;
use crate::grammar::compiled::Grammar;
use crate::ids::{DotId, FrameId, NodeId, PredictionId, RequirementId, SetId, SymbolId};
use crate::interned::{Hashes, hash};
use crate::language::free::{Cost, INFINITE};
use crate::lexing::layout::NO_COLUMN;
use crate::requirement::requirements::{Context, Depth, NO_FLOOR, Requirement, Requirements, UNSATISFIABLE};
use crate::stop::poll;
use rustc_hash::{FxHashMap, FxHashSet};

/// Demand of a set: everything on which the solutions of its frame depend.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Demand {
    prediction: PredictionId,
    /// Cost of indentations in the surrounding block.
    indents: Indents,
    /// Constructs that must stay open relative to the set, under a floor.
    floor: Depth,
    /// Requirements of the set's items on the symbols after their dots.
    seeds: Box<[(SymbolId, RequirementId)]>,
}

#[derive(Debug)]
struct Frame {
    demand: Demand,
    /// Solutions by nonterminal. Few are needed in most frames; all that lead to them are solved along.
    solved: Vec<(SymbolId, RequirementId)>,
}

impl Frame {
    /// The solution for a nonterminal.
    fn solution(&self, nonterminal: SymbolId) -> Option<RequirementId> {
        let at = self.solved.binary_search_by_key(&nonterminal, |solved| solved.0);
        at.ok().map(|at| self.solved[at].1)
    }
}

/// A nonterminal while its frame is solved.
#[derive(Debug)]
struct Unsolved {
    symbol: SymbolId,
    /// The part of its requirement found so far.
    requirement: RequirementId,
    /// Nonterminals that it leads to: the dot before each, and its index.
    children: Vec<(DotId, usize)>,
}

impl Unsolved {
    fn new(symbol: SymbolId) -> Self {
        Self { symbol, requirement: UNSATISFIABLE, children: Vec::new() }
    }

    /// The unsolved nonterminals of a frame that lead to the wanted one, with the known part of each.
    fn leading_to(wanted: SymbolId, frame: &Frame, context: Context<'_>) -> Vec<Self> {
        let mut place: FxHashMap<SymbolId, usize> = FxHashMap::default();
        let mut found = vec![Self::new(wanted)];
        let mut stack = vec![wanted];
        place.insert(wanted, 0);
        while let Some(symbol) = stack.pop() {
            let own = place[&symbol];
            if let Some(known) = frame.solution(symbol) {
                found[own].requirement = known;
                continue;
            }
            if let Some(&(_, requirement)) = frame.demand.seeds.iter().find(|seed| seed.0 == symbol) {
                found[own].requirement = requirement;
            }
            for &dot in context.predictions.dots(&context.language.grammar, frame.demand.prediction, symbol) {
                let parent = context.language.grammar.lhs(dot);
                let at = *place.entry(parent).or_insert_with(|| {
                    found.push(Self::new(parent));
                    stack.push(parent);
                    found.len() - 1
                });
                found[at].children.push((dot, own));
            }
        }
        found
    }
}

/// A growing requirement in a group of mutually dependent nonterminals.
#[derive(Debug)]
struct Growing {
    nodes: FxHashSet<NodeId>,
    free: Vec<Cost>,
    /// Nodes found since it was last carried on.
    fresh: Vec<NodeId>,
    cheaper: bool,
}

impl Growing {
    fn new(free_count: usize) -> Self {
        Self { nodes: FxHashSet::default(), free: vec![INFINITE; free_count], fresh: Vec::new(), cheaper: false }
    }

    /// Add a requirement, and return whether there is anything to carry on.
    fn add(&mut self, requirement: &Requirement) -> bool {
        for &node in &requirement.nodes {
            if self.nodes.insert(node) {
                self.fresh.push(node);
            }
        }
        for (cell, &cost) in self.free.iter_mut().zip(&requirement.free) {
            if cost < *cell {
                *cell = cost;
                self.cheaper = true;
            }
        }
        self.cheaper || !self.fresh.is_empty()
    }

    /// Take the part found since the last call.
    fn take(&mut self, free_count: usize) -> Option<Requirement> {
        if !self.cheaper && self.fresh.is_empty() {
            return None;
        }
        let free = if std::mem::take(&mut self.cheaper) { self.free.clone() } else { vec![INFINITE; free_count] };
        Some(Requirement { free, nodes: std::mem::take(&mut self.fresh) })
    }
}

/// Mutually dependent nonterminals of a frame.
struct Group<'a> {
    /// Their places among the unsolved.
    members: &'a [usize],
    /// The group's own number, and the group of each of the unsolved.
    index: usize,
    of: &'a [usize],
    indents: Indents,
    floor: Depth,
}

impl Group<'_> {
    /// Members of the group that a member leads to: the dot before each, and its index.
    fn inner<'b>(&'b self, unsolved: &'b [Unsolved], at: usize) -> impl Iterator<Item = (DotId, usize)> + 'b {
        unsolved[at].children.iter().copied().filter(|&(_, child)| self.of[child] == self.index)
    }

    /// Return whether the group's nonterminals already hold all that they lead to in each other. Mostly they do: R
    /// rarely goes on with an operator that could be repeated.
    fn is_settled(&self, requirements: &mut Requirements, context: Context<'_>, unsolved: &[Unsolved]) -> bool {
        self.members.iter().all(|&at| {
            self.inner(unsolved, at).all(|(dot, child)| {
                let over = (Grammar::advance(dot), self.floor);
                let demanded = requirements.step(context, unsolved[at].requirement, over, NO_COLUMN, self.indents);
                requirements.holds(unsolved[child].requirement, demanded)
            })
        })
    }

    /// Finish the nonterminals of the group. Only new parts are carried on, since steps distribute over unions. So a
    /// long list in R, in which each end leads to the one before, costs time linear in its length.
    fn grow(&self, requirements: &mut Requirements, context: Context<'_>, unsolved: &mut [Unsolved]) {
        let free_count = context.language.free.priced_count();
        let mut growing: FxHashMap<usize, Growing> = FxHashMap::default();
        for &at in self.members {
            let mut own = Growing::new(free_count);
            own.add(requirements.get(unsolved[at].requirement));
            growing.insert(at, own);
        }
        let grammar = &context.language.grammar;
        let mut walks = FxHashMap::default();
        let mut queue = self.members.to_vec();
        // Semi-naive evaluation: `take` hands out only the part found since a member was last visited. Steps distribute
        // over unions, so the other parts need no second step.
        while let Some(at) = queue.pop() {
            poll();
            let Some(fresh) = growing.get_mut(&at).and_then(|own| own.take(free_count)) else { continue };
            for (dot, child) in self.inner(unsolved, at) {
                let after = Grammar::advance(dot);
                let child_requirement = growing.get_mut(&child).expect("of this group");
                let grown = if grammar.rule(after).block.is_none() && self.floor == NO_FLOOR {
                    child_requirement.add(&requirements.carry(context, &fresh, after, self.indents, &mut walks))
                } else {
                    let fresh = requirements.intern(fresh.clone());
                    let demanded = requirements.step(context, fresh, (after, self.floor), NO_COLUMN, self.indents);
                    child_requirement.add(requirements.get(demanded))
                };
                if grown {
                    queue.push(child);
                }
            }
        }
        for (at, own) in growing {
            let requirement = Requirement { free: own.free, nodes: own.nodes.into_iter().collect() };
            unsolved[at].requirement = requirements.intern(requirement);
        }
    }
}

/// All frames of one session.
#[derive(Debug, Default)]
pub(super) struct Frames {
    frames: Chunked<Frame>,
    hashes: Hashes,
    /// By set, on demand.
    of_set: Vec<FrameId>,
}

/// The frame of a set that has none yet.
const UNKNOWN: FrameId = FrameId(u32::MAX);

impl Frames {
    /// The number of frames.
    pub(super) fn len(&self) -> usize {
        self.frames.len()
    }

    /// Forget which frames sets at or past a size of the left chart have.
    pub(super) fn truncate(&mut self, sets: usize) {
        self.of_set.truncate(sets);
    }

    /// `requirement(set, nonterminal)`.
    pub(super) fn requirement(
        &mut self,
        requirements: &mut Requirements,
        context: Context<'_>,
        set: SetId,
        nonterminal: SymbolId,
    ) -> RequirementId {
        let frame = self.frame(requirements, context, set);
        if let Some(known) = self.frames.get(frame.index()).solution(nonterminal) {
            return known;
        }
        self.solve(requirements, context, frame, nonterminal);
        self.frames.get(frame.index()).solution(nonterminal).unwrap_or(UNSATISFIABLE)
    }

    /// The floor relative to a set whose frame is known.
    pub(super) fn floor(&self, set: SetId) -> Depth {
        self.known(set).map_or(NO_FLOOR, |frame| self.frames.get(frame.index()).demand.floor)
    }

    /// The frame of a set. Origins are older, so the frames that it needs are made in ascending order, without
    /// recursion.
    fn frame(&mut self, requirements: &mut Requirements, context: Context<'_>, set: SetId) -> FrameId {
        if let Some(known) = self.known(set) {
            return known;
        }
        let mut needed = vec![set];
        let mut seen: FxHashSet<SetId> = FxHashSet::default();
        let mut stack = vec![set];
        while let Some(at) = stack.pop() {
            for item in &context.left.set(at).items {
                if self.known(item.origin).is_none() && seen.insert(item.origin) {
                    needed.push(item.origin);
                    stack.push(item.origin);
                }
            }
        }
        needed.sort_unstable();
        for &at in &needed {
            poll();
            let frame = self.make_frame(requirements, context, at);
            if self.of_set.len() <= at.index() {
                self.of_set.resize(at.index() + 1, UNKNOWN);
            }
            self.of_set[at.index()] = frame;
        }
        self.of_set[set.index()]
    }

    fn known(&self, set: SetId) -> Option<FrameId> {
        self.of_set.get(set.index()).copied().filter(|&frame| frame != UNKNOWN)
    }

    fn make_frame(&mut self, requirements: &mut Requirements, context: Context<'_>, set: SetId) -> FrameId {
        let grammar = &context.language.grammar;
        let mut seeds: Vec<(SymbolId, RequirementId)> = Vec::new();
        if set == FIRST_SET {
            seeds.push((grammar.start, requirements.bottom()));
        }
        let items = &context.left.set(set).items;
        for item in items.iter().filter(|item| !grammar.is_lexeme(grammar.next(item.dot))) {
            let behind = self.requirement(requirements, context, item.origin, grammar.lhs(item.dot));
            let indents = context.left.indents(item.origin);
            let over = (Grammar::advance(item.dot), self.floor(item.origin));
            let demanded = requirements.step_item(context, behind, item, over, indents);
            let symbol = grammar.next(item.dot);
            match seeds.last_mut() {
                Some((last, requirement)) if *last == symbol => {
                    *requirement = requirements.union(*requirement, demanded)
                }
                _ => seeds.push((symbol, demanded)),
            }
        }
        let prediction = context.left.set(set).prediction;
        let indents = context.left.indents(set);
        let floor = match (context.floor, items.first()) {
            (None, _) => NO_FLOOR,
            (Some((_, floor)), None) => floor,
            (Some((nesting, _)), Some(item)) => (self.floor(item.origin) - nesting.at(item.dot)).max(NO_FLOOR),
        };
        let demand = Demand { prediction, indents, floor, seeds: seeds.into() };
        let hash = hash(&demand);
        if let Some(known) = self.hashes.find(hash, |index| self.frames.get(index).demand == demand) {
            return FrameId::from_index(known);
        }
        let id = FrameId::from_index(self.frames.len());
        self.hashes.push(hash);
        self.frames.push(Frame { demand, solved: Vec::new() });
        id
    }

    /// Solve the least fixpoint over the nonterminals of a frame that lead to the wanted one. Mutually dependent ones
    /// are finished before those that they lead to.
    fn solve(&mut self, requirements: &mut Requirements, context: Context<'_>, frame: FrameId, wanted: SymbolId) {
        let frame = self.frames.get_mut(frame.index());
        let (indents, floor) = (frame.demand.indents, frame.demand.floor);
        let mut unsolved = Unsolved::leading_to(wanted, frame, context);
        let child = |at: usize, index: usize| unsolved[at].children.get(index).map(|&(_, child)| child);
        let (groups, group_of) = components(unsolved.len(), child);
        let mut solved = Vec::with_capacity(unsolved.len());
        for (index, members) in groups.iter().enumerate() {
            let group = Group { members, index, of: &group_of, indents, floor };
            if !group.is_settled(requirements, context, &unsolved) {
                group.grow(requirements, context, &mut unsolved);
            }
            for &at in members {
                solved.push((unsolved[at].symbol, unsolved[at].requirement));
                for place in 0..unsolved[at].children.len() {
                    let (dot, child) = unsolved[at].children[place];
                    if group_of[child] != index {
                        let over = (Grammar::advance(dot), floor);
                        let demanded = requirements.step(context, unsolved[at].requirement, over, NO_COLUMN, indents);
                        unsolved[child].requirement = requirements.union(unsolved[child].requirement, demanded);
                    }
                }
            }
        }
        // Earlier solutions that lead to the wanted nonterminal are in `solved` already.
        solved.extend(&frame.solved);
        solved.sort_unstable_by_key(|&(symbol, _)| symbol);
        solved.dedup_by_key(|&mut (symbol, _)| symbol);
        solved.shrink_to_fit();
        frame.solved = solved;
    }
}
