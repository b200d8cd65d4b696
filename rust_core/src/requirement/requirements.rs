//! Requirements: R's condition on the parse stack, which is regular.
//!
//! `requirement(k, A)` says where the parse may be once the A begun at set k of the left chart is finished, so that R
//! can follow. It holds a set of lattice nodes, and the least bytes of further middle from each free state (the
//! design's ⊤, over (min, +)). `step` carries a requirement backwards over the rest of a rule. Both are memoised and
//! requirements are interned, so in the steady state R costs one table lookup per item.
//!
//! [`crate::requirement::frames`] finds the demands of left-chart sets.

use crate::bits::{self, BitSet};
use crate::chart::left::{Indents, LeftChart, NO_INDENTS};
use crate::chart::predict::Predictions;
use crate::chunked::Chunked;
use crate::grammar::compiled::Grammar;
use crate::grammar::rules::END_OF_RULE;
use crate::ids::{ColumnId, DotId, FreeId, NodeId, RequirementId, SymbolId, TextId};
use crate::interned::{Hashes, hash};
use crate::language::compiled::Language;
use crate::language::free::{Cost, INFINITE};
use crate::language::nesting::Nesting;
use crate::lexing::layout::{Column, Columns, NO_COLUMN};
use crate::right::begun::Visited;
use crate::right::places::{Place, Top};
use crate::right::queries::Right;
use rustc_hash::FxHashMap;

/// One requirement.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct Requirement {
    /// Least bytes of further middle, per priced state ([`Free::price`]).
    ///
    /// [`Free::price`]: crate::language::free::Free::price
    pub free: Vec<Cost>,
    /// Nodes from which the rest of R follows; ascending.
    pub nodes: Vec<NodeId>,
}

/// All requirements of one session.
#[derive(Debug)]
pub(crate) struct Requirements {
    table: Chunked<Requirement>,
    hashes: Hashes,
    /// Bitsets over `targets`, one row of `words` per requirement.
    projections: Vec<u64>,
    words: usize,
    target_of: FxHashMap<NodeId, usize>,
    targets: Vec<NodeId>,
    /// R's crossings without a symbol: from, target, cost.
    crossed: Vec<(FreeId, usize, Cost)>,
    /// R's crossings by a symbol that it ends: from, target, cost.
    symbol_crossings: FxHashMap<SymbolId, Vec<(FreeId, usize, Cost)>>,
    row: Vec<u64>,
    /// Per target: bitset of the lexemes that leave it in R.
    leaving: Vec<BitSet>,
    steps: StepMemo,
    /// Memoised steps over a text that must equal the one that the rule has bound.
    pub(super) named: FxHashMap<Named, RequirementId>,
    /// Unions of requirements with many nodes, keyed by the lesser id first. Each set of a long L needs the same ones.
    unions: FxHashMap<(RequirementId, RequirementId), RequirementId>,
    bottom: RequirementId,
    free_count: usize,
    /// Number of unions computed.
    #[cfg(test)]
    pub(super) united: usize,
}

/// Nodes from which the union of two requirements is remembered. A union of fewer is computed as fast as it is looked
/// up.
const MANY_NODES: usize = if cfg!(test) { 3 } else { 16 };

/// Dots over which a requirement is carried, with the column of the rule's block and the cost of indentations.
type Over = (DotId, ColumnId, Indents);

/// Constructs that must stay open relative to a rule's beginning, under a floor. The middle does not go on below.
pub(crate) type Depth = i32;

/// No floor is in a rule's way.
pub(crate) const NO_FLOOR: Depth = -1;

/// A requirement, the dot before the symbols over which it is carried, the floor, and the text that the rule has bound.
pub(super) type Named = (RequirementId, DotId, Depth, TextId);

/// Requirements whose steps are kept together.
const TOGETHER: usize = 1 << 10;

/// Memoised steps of requirements. Most rules open no block and end in the line where they begin; those have a key of
/// half the length. Tables of a thousand requirements each grow without a copy of all of them.
#[derive(Debug, Default)]
struct StepMemo {
    in_line: Vec<FxHashMap<(RequirementId, DotId), RequirementId>>,
    others: FxHashMap<(RequirementId, Over), RequirementId>,
    floored: FxHashMap<(RequirementId, Over, Depth), RequirementId>,
}

impl StepMemo {
    fn get(&self, requirement: RequirementId, over: Over, floor: Depth) -> Option<RequirementId> {
        match over {
            over if floor != NO_FLOOR => self.floored.get(&(requirement, over, floor)),
            (dot, NO_COLUMN, NO_INDENTS) => self.in_line.get(requirement.index() / TOGETHER)?.get(&(requirement, dot)),
            over => self.others.get(&(requirement, over)),
        }
        .copied()
    }

    fn insert(&mut self, requirement: RequirementId, over: Over, floor: Depth, stepped: RequirementId) {
        if floor != NO_FLOOR {
            self.floored.insert((requirement, over, floor), stepped);
            return;
        }
        let (dot, NO_COLUMN, NO_INDENTS) = over else {
            self.others.insert((requirement, over), stepped);
            return;
        };
        let at = requirement.index() / TOGETHER;
        if self.in_line.len() <= at {
            self.in_line.resize_with(at + 1, FxHashMap::default);
        }
        self.in_line[at].insert((requirement, dot), stepped);
    }
}

/// Block that a DEDENT pops.
#[derive(Clone, Copy)]
enum Popped {
    /// One whose column is known.
    Column(Column),
    /// A block that the middle opens, at any column that R needs.
    Any,
    /// A block that the middle also closes.
    InMiddle,
}

/// The empty requirement: nothing leads to the end.
pub(crate) const UNSATISFIABLE: RequirementId = RequirementId(0);

/// Inputs from which requirements are computed.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    /// The language.
    pub language: &'a Language,
    /// The right context.
    pub right: &'a Right,
    /// The left chart.
    pub left: &'a LeftChart,
    /// Predictions of both charts.
    pub predictions: &'a Predictions,
    /// Columns of the left side's blocks.
    pub columns: &'a Columns,
    /// The constructs that must stay open, and their depths, if there is a floor.
    pub floor: Option<(&'a Nesting, Depth)>,
}

impl Context<'_> {
    /// The floor within a rule, if the rest of it reaches below.
    #[inline]
    pub(super) fn floor_from(&self, dot: DotId, floor: Depth) -> Depth {
        match self.floor {
            Some((nesting, _)) if nesting.lowest_after(dot) < floor => floor,
            _ => NO_FLOOR,
        }
    }

    /// Return whether a dot is below the floor of its rule.
    #[inline]
    pub(super) fn is_below(&self, dot: DotId, floor: Depth) -> bool {
        self.floor.is_some_and(|(nesting, _)| nesting.at(dot) < floor)
    }
}

impl Requirements {
    /// No requirements but the bottom: at the end of R the file is finished.
    #[must_use]
    pub(crate) fn new(language: &Language, right: &Right) -> Self {
        let mut targets: Vec<NodeId> = right.crossings().iter().map(|&(_, node, _)| node).collect();
        targets.extend(right.symbol_crossings().iter().map(|&(_, _, node, _)| node));
        targets.sort_unstable();
        targets.dedup();
        let free_count = language.free.priced_count();
        let mut requirements = Self {
            table: Chunked::default(),
            hashes: Hashes::default(),
            projections: Vec::new(),
            words: targets.len().div_ceil(64),
            target_of: targets.iter().enumerate().map(|(index, &node)| (node, index)).collect(),
            crossed: Vec::new(),
            symbol_crossings: FxHashMap::default(),
            row: Vec::new(),
            leaving: Vec::new(),
            targets,
            steps: StepMemo::default(),
            named: FxHashMap::default(),
            unions: FxHashMap::default(),
            bottom: UNSATISFIABLE,
            free_count,
            #[cfg(test)]
            united: 0,
        };
        requirements.leaving = requirements.find_leaving(language, right);
        let free = &language.free;
        for &(from, node, cost) in right.crossings() {
            let target = requirements.target_of[&node];
            // Mostly the cost is of blanks.
            let cost_from = |from: FreeId| if free.is_written(from) { 0 } else { cost };
            requirements.crossed.extend(free.priced_as(from).map(|from| (from, target, cost_from(from))));
        }
        for &(from, symbol, node, cost) in right.symbol_crossings() {
            let target = requirements.target_of[&node];
            let crossings = requirements.symbol_crossings.entry(symbol).or_default();
            crossings.extend(free.priced_as(from).map(|from| (from, target, cost)));
        }
        requirements.intern(requirements.blank());
        let mut bottom = requirements.blank();
        bottom.nodes.extend(right.end());
        requirements.bottom = requirements.intern(bottom);
        requirements
    }

    fn find_leaving(&self, language: &Language, right: &Right) -> Vec<BitSet> {
        let mut leaving = vec![BitSet::new(language.grammar.lexeme_count()); self.targets.len()];
        for node in (0..right.node_count()).map(NodeId::from_index) {
            for (symbol, from) in right.incoming(node) {
                if let Some(&target) = self.target_of.get(&from) {
                    leaving[target].insert(symbol.index());
                }
            }
        }
        leaving
    }

    fn blank(&self) -> Requirement {
        Requirement { free: vec![INFINITE; self.free_count], nodes: Vec::new() }
    }

    /// A requirement.
    #[must_use]
    pub(crate) fn get(&self, id: RequirementId) -> &Requirement {
        self.table.get(id.index())
    }

    /// The condition at the bottom of the stack.
    #[must_use]
    pub(crate) fn bottom(&self) -> RequirementId {
        self.bottom
    }

    /// The nodes at which the cursor can fall.
    #[must_use]
    pub(crate) fn targets(&self) -> &[NodeId] {
        &self.targets
    }

    /// The targets that a requirement holds, as a bitset.
    pub(super) fn projection(&self, requirement: RequirementId) -> &[u64] {
        &self.projections[requirement.index() * self.words..(requirement.index() + 1) * self.words]
    }

    /// Bitset of the lexemes that leave a target in R.
    pub(super) fn leaving(&self, target: usize) -> &[u64] {
        self.leaving[target].words()
    }

    /// The number of interned requirements.
    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    /// The bit of a node in a reachability's bitset.
    #[must_use]
    pub(crate) fn target(&self, node: NodeId) -> Option<usize> {
        self.target_of.get(&node).copied()
    }

    /// Lower the cost of free states at which the cursor may cut to a node of the requirement. Set `row` to the targets
    /// that the requirement holds.
    fn settle(&mut self, requirement: &mut Requirement) {
        requirement.nodes.sort_unstable();
        requirement.nodes.dedup();
        self.row.clear();
        self.row.resize(self.words, 0);
        // Both lists ascend. A requirement that grows by a node at a time has few of them.
        let mut rest = &self.targets[..];
        for node in &requirement.nodes {
            let before = rest.partition_point(|target| target < node);
            rest = &rest[before..];
            match rest.first() {
                Some(target) if target == node => bits::insert(&mut self.row, self.targets.len() - rest.len()),
                Some(_) => {}
                None => break,
            }
        }
        if self.row.iter().all(|&word| word == 0) {
            return;
        }
        for &(from, target, cost) in &self.crossed {
            if requirement.free[from.index()] > cost && bits::contains(&self.row, target) {
                requirement.free[from.index()] = cost;
            }
        }
    }

    /// Intern a requirement after [`Self::settle`].
    pub(super) fn intern(&mut self, mut requirement: Requirement) -> RequirementId {
        self.settle(&mut requirement);
        let hash = hash(&requirement);
        if let Some(known) = self.hashes.find(hash, |index| *self.table.get(index) == requirement) {
            return RequirementId::from_index(known);
        }
        let id = RequirementId::from_index(self.table.len());
        self.projections.extend_from_slice(&self.row);
        self.hashes.push(hash);
        requirement.nodes.shrink_to_fit();
        self.table.push(requirement);
        id
    }

    /// The union of two requirements.
    pub(super) fn union(&mut self, one: RequirementId, other: RequirementId) -> RequirementId {
        if one == other || other == UNSATISFIABLE {
            return one;
        }
        if one == UNSATISFIABLE {
            return other;
        }
        let nodes = self.get(one).nodes.len() + self.get(other).nodes.len();
        if nodes < MANY_NODES {
            return self.find_union(one, other);
        }
        let key = (one.min(other), one.max(other));
        if let Some(&known) = self.unions.get(&key) {
            return known;
        }
        let found = self.find_union(one, other);
        self.unions.insert(key, found);
        found
    }

    fn find_union(&mut self, one: RequirementId, other: RequirementId) -> RequirementId {
        if self.holds(other, one) {
            return other;
        }
        if self.holds(one, other) {
            return one;
        }
        let mut requirement = self.table.get(one.index()).clone();
        merge(&mut requirement, self.table.get(other.index()));
        #[cfg(test)]
        {
            self.united += 1;
        }
        self.intern(requirement)
    }

    /// Carry a requirement backwards over the symbols from the dot to the end of its rule. `column` is the block's, if
    /// the rule has read its INDENT. `indents` is the cost of indentations where the rule began: each of its further
    /// lines has one. Below `floor` only R goes on, not the middle.
    pub(crate) fn step(
        &mut self,
        context: Context<'_>,
        requirement: RequirementId,
        (dot, floor): (DotId, Depth),
        column: ColumnId,
        indents: Indents,
    ) -> RequirementId {
        let grammar = &context.language.grammar;
        let next = grammar.next(dot);
        if next == END_OF_RULE || requirement == UNSATISFIABLE {
            return requirement;
        }
        let indents = if context.language.free.crosses_line(dot) { indents } else { NO_INDENTS };
        let floor = context.floor_from(dot, floor);
        let below = floor != NO_FLOOR && context.is_below(Grammar::advance(dot), floor);
        if let Some(known) = self.steps.get(requirement, (dot, column, indents), floor) {
            return known;
        }
        let position = grammar.position(dot);
        let stepped = match grammar.rule(dot).block {
            Some((open, close)) if position <= open => {
                self.step_unopened(context, requirement, dot, (open, close), indents)
            }
            Some((_, close)) if position == close => {
                let after = self.step(context, requirement, (Grammar::advance(dot), floor), NO_COLUMN, indents);
                let popped =
                    if column == NO_COLUMN { Popped::Any } else { Popped::Column(context.columns.get(column)) };
                self.before_dedent(context, after, popped, below)
            }
            block => {
                let after = self.step(context, requirement, (Grammar::advance(dot), floor), column, indents);
                let inside = block.is_some_and(|(_, close)| position < close);
                let indent = if inside { 0 } else { indents.own };
                let before = match below {
                    false => self.before(context, next, after, indent),
                    true => self.before_in_right(context, next, after, indent),
                };
                self.intern(before)
            }
        };
        self.steps.insert(requirement, (dot, column, indents), floor, stepped);
        stepped
    }

    /// Carry a requirement as [`Requirements::step`] does, without remembering the result, for a rule that opens no
    /// block. It serves requirements that grow by a few nodes at a time, of which a list makes as many as it has
    /// elements. Nodes that `walks` passed for an earlier part of the same requirement are left out, since their
    /// results are known.
    pub(super) fn carry(
        &mut self,
        context: Context<'_>,
        requirement: &Requirement,
        dot: DotId,
        indents: Indents,
        walks: &mut FxHashMap<(DotId, DotId), Visited>,
    ) -> Requirement {
        let grammar = &context.language.grammar;
        let mut requirement = requirement.clone();
        self.settle(&mut requirement);
        let rule = grammar.rule(dot);
        for place in (grammar.position(dot)..rule.rhs.len()).rev() {
            let at = DotId::from_index(dot.index() + place - grammar.position(dot));
            let own = if context.language.free.crosses_line(at) { indents } else { NO_INDENTS };
            let mut nodes = Vec::new();
            if !grammar.is_lexeme(rule.rhs[place]) {
                context.right.begun_besides(
                    rule.rhs[place],
                    &requirement.nodes,
                    walks.entry((dot, at)).or_default(),
                    &mut nodes,
                );
            }
            let row = std::mem::take(&mut self.row);
            requirement = self.before_of(context, rule.rhs[place], (&requirement, &row), nodes, (own.own, 0));
            self.row = row;
            self.settle(&mut requirement);
        }
        requirement
    }

    /// The requirement of one node alone.
    pub(crate) fn singleton(&mut self, node: NodeId) -> RequirementId {
        let requirement = Requirement { nodes: vec![node], ..self.blank() };
        self.intern(requirement)
    }

    /// The requirement before a symbol.
    #[must_use]
    pub(crate) fn before_symbol(&self, context: Context<'_>, symbol: SymbolId, after: RequirementId) -> Requirement {
        self.before(context, symbol, after, 0)
    }

    /// The requirement before a symbol. A symbol at a line's start in the middle costs that line's indentation besides.
    pub(super) fn before(
        &self,
        context: Context<'_>,
        symbol: SymbolId,
        after: RequirementId,
        indent: Cost,
    ) -> Requirement {
        let source = self.table.get(after.index());
        let mut begun = Vec::new();
        if !context.language.grammar.is_lexeme(symbol) {
            context.right.begun(symbol, &source.nodes, &mut begun);
        }
        self.before_of(context, symbol, (source, self.projection(after)), begun, (indent, 0))
    }

    /// The requirement before a symbol after which the middle must not go on.
    pub(super) fn before_in_right(
        &self,
        context: Context<'_>,
        symbol: SymbolId,
        after: RequirementId,
        indent: Cost,
    ) -> Requirement {
        let source = Requirement { nodes: self.table.get(after.index()).nodes.clone(), ..self.blank() };
        let mut begun = Vec::new();
        if !context.language.grammar.is_lexeme(symbol) {
            context.right.begun(symbol, &source.nodes, &mut begun);
        }
        self.before_of(context, symbol, (&source, self.projection(after)), begun, (indent, 0))
    }

    /// The requirement before a symbol, from its targets, and from the nodes where the symbol began if it is a
    /// nonterminal. Written in the middle, the symbol has at least `least` bytes.
    pub(super) fn before_of(
        &self,
        context: Context<'_>,
        symbol: SymbolId,
        (source, row): (&Requirement, &[u64]),
        begun: Vec<NodeId>,
        (indent, least): (Cost, Cost),
    ) -> Requirement {
        let indented = |from: FreeId, cost: Cost| match cost {
            0 => 0,
            _ if context.language.free.pays_indentation(from) => cost.saturating_add(indent),
            _ => cost,
        };
        let grammar = &context.language.grammar;
        let free = &context.language.free;
        let mut requirement = if grammar.nullable(symbol) { source.clone() } else { self.blank() };
        for to in free.priced_states().filter(|to| source.free[to.index()] != INFINITE) {
            for from in free.priced_states() {
                let own = free.price(symbol, from, to).max(least);
                let cost = indented(from, own).saturating_add(source.free[to.index()]);
                lower(&mut requirement.free[from.index()], cost);
            }
        }
        if grammar.is_lexeme(symbol) {
            for &(from, target, cost) in self.symbol_crossings.get(&symbol).into_iter().flatten() {
                if bits::contains(row, target) {
                    lower(&mut requirement.free[from.index()], indented(from, cost));
                }
            }
            for &node in &source.nodes {
                let incoming = context.right.incoming(node);
                requirement.nodes.extend(incoming.filter(|edge| edge.0 == symbol).map(|edge| edge.1));
            }
            return requirement;
        }
        requirement.nodes.extend(begun);
        for &node in &source.nodes {
            for (from, cost) in context.right.begun_free(symbol, node) {
                for from in free.priced_as(from) {
                    lower(&mut requirement.free[from.index()], indented(from, cost));
                }
            }
        }
        requirement
    }

    /// The requirement before a DEDENT. The DEDENT belongs to R if the dot after it is `below` a floor.
    fn before_dedent(
        &mut self,
        context: Context<'_>,
        after: RequirementId,
        popped: Popped,
        below: bool,
    ) -> RequirementId {
        let free = &context.language.free;
        let (_, dedent) = context.language.grammar.indent_dedent.expect("a language with layout");
        let source = self.table.get(after.index());
        let mut requirement = self.blank();
        for from in free.priced_states().filter(|_| !below) {
            for to in free.priced_states() {
                let cost = free.price(dedent, from, to).saturating_add(source.free[to.index()]);
                lower(&mut requirement.free[from.index()], cost);
            }
        }
        for (_, from) in dedents_into(context.right, &source.nodes, dedent) {
            let fits = match popped {
                Popped::Column(column) => context.right.pops(from, column),
                Popped::Any => true,
                Popped::InMiddle => false,
            };
            if fits {
                requirement.nodes.push(from);
            }
        }
        self.intern(requirement)
    }

    /// Carry a requirement over a block whose INDENT is still to come. It comes in the middle, where its column is
    /// free, or in R, where its column must be the one that the DEDENT pops.
    fn step_unopened(
        &mut self,
        context: Context<'_>,
        requirement: RequirementId,
        dot: DotId,
        block: (usize, usize),
        indents: Indents,
    ) -> RequirementId {
        let grammar = &context.language.grammar;
        let (indent, dedent) = grammar.indent_dedent.expect("a language with layout");
        let position = grammar.position(dot);
        let at = |target: usize| DotId::from_index(dot.index() + target - position);
        let (open, close) = block;
        let after = self.step(context, requirement, (at(close + 1), NO_FLOOR), NO_COLUMN, indents);

        let mut classes: Vec<(Option<Top>, RequirementId)> =
            vec![(None, self.before_dedent(context, after, Popped::InMiddle, false))];
        let nodes = self.table.get(after.index()).nodes.clone();
        let mut by_top: FxHashMap<Top, Vec<NodeId>> = FxHashMap::default();
        for (top, from) in dedents_into(context.right, &nodes, dedent) {
            by_top.entry(top).or_default().push(from);
        }
        for (top, nodes) in by_top {
            let class = Requirement { nodes, ..self.blank() };
            classes.push((Some(top), self.intern(class)));
        }

        let mut result = self.blank();
        for (top, mut inner) in classes {
            let deeper = indents.deeper.max(top.map_or(0, |top| context.right.least_bytes(top)));
            for middle in (open + 1..close).rev() {
                // An INDENT's cost is of the first line, and may be in R where the cursor cuts it.
                let first = if middle == open + 1 { deeper } else { 0 };
                let before = self.before(context, grammar.next(at(middle)), inner, first);
                inner = self.intern(before);
            }
            let before = self.before_indent(context, indent, inner, top);
            merge(&mut result, &before);
        }
        let mut stepped = self.intern(result);
        for middle in (position..open).rev() {
            let before = self.before(context, grammar.next(at(middle)), stepped, 0);
            stepped = self.intern(before);
        }
        stepped
    }

    fn before_indent(
        &self,
        context: Context<'_>,
        indent: SymbolId,
        inner: RequirementId,
        top: Option<Top>,
    ) -> Requirement {
        let free = &context.language.free;
        let source = self.table.get(inner.index());
        let mut requirement = self.blank();
        for from in free.priced_states() {
            for to in free.priced_states() {
                if free.price(indent, from, to) != INFINITE {
                    lower(&mut requirement.free[from.index()], source.free[to.index()]);
                }
            }
        }
        for &node in &source.nodes {
            for (symbol, from) in context.right.incoming(node) {
                if symbol != indent {
                    continue;
                }
                if let Place::Line { column, .. } = context.right.place(from) {
                    if top == Some(Top::Exact(column)) {
                        requirement.nodes.push(from);
                    }
                }
            }
        }
        requirement
    }

    /// Return whether a requirement holds all of another.
    pub(super) fn holds(&self, one: RequirementId, other: RequirementId) -> bool {
        if one == other || other == UNSATISFIABLE {
            return true;
        }
        let (one, other) = (self.table.get(one.index()), self.table.get(other.index()));
        let mut rest = one.nodes.iter();
        other.nodes.len() <= one.nodes.len()
            && one.free.iter().zip(&other.free).all(|(one, other)| one <= other)
            && other.nodes.iter().all(|node| rest.any(|own| own == node))
    }

    /// Return whether a requirement holds a target.
    pub(super) fn projects(&self, requirement: RequirementId, target: usize) -> bool {
        bits::contains(&self.projections[requirement.index() * self.words..], target)
    }

    /// The free states from which the middle can go on, as a mask.
    pub(super) fn open_mask(&self, requirement: RequirementId) -> u64 {
        let free = self.table.get(requirement.index()).free.iter().enumerate();
        free.filter(|&(_, &cost)| cost != INFINITE).fold(0, |mask, (index, _)| mask | 1 << index)
    }
}

/// DEDENT edges into a set of nodes, as (top popped, node it starts at).
fn dedents_into<'a>(
    right: &'a Right,
    nodes: &'a [NodeId],
    dedent: SymbolId,
) -> impl Iterator<Item = (Top, NodeId)> + 'a {
    nodes.iter().flat_map(move |&node| {
        right.incoming(node).filter(move |edge| edge.0 == dedent).filter_map(|(_, from)| match right.place(from) {
            Place::Line { top, .. } => Some((top, from)),
            _ => None,
        })
    })
}

fn lower(cell: &mut Cost, cost: Cost) {
    *cell = (*cell).min(cost);
}

fn merge(into: &mut Requirement, other: &Requirement) {
    into.nodes.extend(&other.nodes);
    for (cell, &cost) in into.free.iter_mut().zip(&other.free) {
        lower(cell, cost);
    }
}
