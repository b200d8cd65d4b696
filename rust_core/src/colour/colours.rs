//! Colours: what R demands of the parse stack, as a regular condition on it.
//!
//! `colour(k, A)` says where the parse may be once the A begun at set k of the left chart is finished, so that the rest of
//! some parse takes it to the end of the file: a set of lattice nodes, and the least bytes of further middle from each free
//! state (the design's ⊤, over (min, +)). `step` carries a colour backwards over the rest of a rule. Both are memoised and
//! colours are interned, so in the steady state R costs one table lookup per item.
//!
//! What a set of the left chart demands of its predictions depends on the colours behind its items alone, so sets with equal
//! demands share one *frame*, and everything derived from it.

use crate::chart::left::{FIRST_SET, Indents, LeftChart, NO_INDENTS};
use crate::chart::predict::{PredictionId, Predictions};
use crate::grammar::rules::{END_OF_RULE, Grammar};
use crate::ids::{ColourId, ColumnId, DotId, FreeId, NodeId, SetId, SymbolId};
use crate::language::definition::Language;
use crate::language::free::{Cost, INFINITE};
use crate::lexing::layout::{Column, Columns, NO_COLUMN};
use crate::right::chart::{Place, Right, Top};
use rustc_hash::{FxHashMap, FxHashSet};

/// One colour.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Colour {
    /// Least bytes of further middle, per free state.
    pub free: Vec<Cost>,
    /// Nodes from which the rest of R follows; ascending.
    pub nodes: Vec<NodeId>,
}

/// An interned frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct FrameId(u32);

/// A frame's prediction, indentation and seeds: all that its solutions depend on.
type FrameKey = (PredictionId, Indents, Vec<(SymbolId, ColourId)>);

#[derive(Debug)]
struct Frame {
    prediction: PredictionId,
    /// What indentations cost in the block around.
    indents: Indents,
    /// Colours that the set's items ask of the symbols after their dots.
    seeds: Vec<(SymbolId, ColourId)>,
    solved: FxHashMap<SymbolId, ColourId>,
}

/// A nonterminal while its frame is solved.
#[derive(Debug)]
struct Unsolved {
    symbol: SymbolId,
    /// What it is known to hold.
    colour: ColourId,
    /// What it leads to: the dot before it and the place of the nonterminal after the step.
    children: Vec<(DotId, usize)>,
    /// The nonterminals that lead to each other have the same.
    group: usize,
}

/// A colour that grows, in a group of nonterminals that lead to each other.
#[derive(Debug)]
struct Growing {
    nodes: FxHashSet<NodeId>,
    free: Vec<Cost>,
    /// What has been found since it was last carried on.
    fresh: Vec<NodeId>,
    cheaper: bool,
}

impl Growing {
    fn new(free_count: usize) -> Self {
        Self { nodes: FxHashSet::default(), free: vec![INFINITE; free_count], fresh: Vec::new(), cheaper: false }
    }

    /// Adds a colour; whether there is anything new to carry on.
    fn add(&mut self, colour: &Colour) -> bool {
        for &node in &colour.nodes {
            if self.nodes.insert(node) {
                self.fresh.push(node);
            }
        }
        for (cell, &cost) in self.free.iter_mut().zip(&colour.free) {
            if cost < *cell {
                *cell = cost;
                self.cheaper = true;
            }
        }
        self.cheaper || !self.fresh.is_empty()
    }

    /// What is new, once.
    fn take(&mut self, free_count: usize) -> Option<Colour> {
        if !self.cheaper && self.fresh.is_empty() {
            return None;
        }
        let free = if std::mem::take(&mut self.cheaper) { self.free.clone() } else { vec![INFINITE; free_count] };
        Some(Colour { free, nodes: std::mem::take(&mut self.fresh) })
    }
}

/// The strongly connected groups, each before those that it leads to (Tarjan 1972, without recursion); numbers them.
fn groups(unsolved: &mut [Unsolved]) -> Vec<Vec<usize>> {
    const UNSEEN: usize = usize::MAX;
    let count = unsolved.len();
    let (mut order, mut low, mut on_stack) = (vec![UNSEEN; count], vec![0; count], vec![false; count]);
    let (mut stack, mut found, mut clock) = (Vec::new(), Vec::new(), 0);
    for root in 0..count {
        if order[root] != UNSEEN {
            continue;
        }
        let mut walk = vec![(root, 0)];
        while let Some((at, next)) = walk.pop() {
            if next == 0 {
                order[at] = clock;
                low[at] = clock;
                clock += 1;
                stack.push(at);
                on_stack[at] = true;
            }
            if let Some(&(_, child)) = unsolved[at].children.get(next) {
                walk.push((at, next + 1));
                if order[child] == UNSEEN {
                    walk.push((child, 0));
                } else if on_stack[child] {
                    low[at] = low[at].min(order[child]);
                }
                continue;
            }
            if let Some(&(parent, _)) = walk.last() {
                low[parent] = low[parent].min(low[at]);
            }
            if low[at] == order[at] {
                let mut group = Vec::new();
                loop {
                    let member = stack.pop().expect("the group's root is on it");
                    on_stack[member] = false;
                    unsolved[member].group = found.len();
                    group.push(member);
                    if member == at {
                        break;
                    }
                }
                found.push(group);
            }
        }
    }
    found.reverse();
    found
}

/// What a set of the left chart can become: where the cursor may fall right after it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outlook {
    /// Least bytes of further middle, per free state.
    pub free: Vec<Cost>,
    /// Bitset over [`Colours::targets`].
    pub targets: Vec<u64>,
}

/// All colours of one session.
#[derive(Debug)]
pub struct Colours {
    table: Vec<Colour>,
    ids: FxHashMap<Colour, ColourId>,
    /// Bitsets over `targets`, one row of `words` per colour.
    projections: Vec<u64>,
    words: usize,
    target_of: FxHashMap<NodeId, usize>,
    targets: Vec<NodeId>,
    /// The targets of R's crossings.
    crossed: Vec<usize>,
    /// R's crossings by a symbol that it ends: free state, target, cost.
    symbol_crossings: FxHashMap<SymbolId, Vec<(FreeId, usize, Cost)>>,
    row: Vec<u64>,
    /// Per target: bitset of the lexemes that R goes on with there.
    leaving: Vec<Box<[u64]>>,
    steps: FxHashMap<(ColourId, DotId, ColumnId, Indents), ColourId>,
    frames: Vec<Frame>,
    frame_ids: FxHashMap<FrameKey, FrameId>,
    frame_of: FxHashMap<SetId, FrameId>,
    outlooks: FxHashMap<SetId, std::sync::Arc<Outlook>>,
    bottom: ColourId,
    free_count: usize,
}

/// Which block a DEDENT pops.
#[derive(Clone, Copy)]
enum Popped {
    /// One whose column is known.
    Column(Column),
    /// One that the middle opens, at whatever column R asks for.
    Any,
    /// One that the middle also closes.
    InMiddle,
}

/// The empty colour: nothing leads to the end.
pub(crate) const NO_COLOUR: ColourId = ColourId(0);

/// What the colours are computed from.
#[derive(Clone, Copy)]
pub struct Context<'a> {
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
}

impl Colours {
    /// No colours but the bottom: at the end of R the file is finished.
    #[must_use]
    pub fn new(language: &Language, right: &Right) -> Self {
        let mut targets: Vec<NodeId> = right.crossings.iter().map(|&(_, node, _)| node).collect();
        targets.extend(right.symbol_crossings.iter().map(|&(_, _, node, _)| node));
        targets.sort_unstable();
        targets.dedup();
        let free_count = language.free.count();
        let mut colours = Self {
            table: Vec::new(),
            ids: FxHashMap::default(),
            projections: Vec::new(),
            words: targets.len().div_ceil(64),
            target_of: targets.iter().enumerate().map(|(index, &node)| (node, index)).collect(),
            crossed: Vec::new(),
            symbol_crossings: FxHashMap::default(),
            row: Vec::new(),
            leaving: Vec::new(),
            targets,
            steps: FxHashMap::default(),
            frames: Vec::new(),
            frame_ids: FxHashMap::default(),
            frame_of: FxHashMap::default(),
            outlooks: FxHashMap::default(),
            bottom: NO_COLOUR,
            free_count,
        };
        colours.leaving = colours.find_leaving(language, right);
        colours.crossed = right.crossings.iter().map(|&(_, node, _)| colours.target_of[&node]).collect();
        for &(from, symbol, node, cost) in &right.symbol_crossings {
            let target = colours.target_of[&node];
            colours.symbol_crossings.entry(symbol).or_default().push((from, target, cost));
        }
        colours.intern(right, colours.blank());
        let mut bottom = colours.blank();
        bottom.nodes.extend(right.end());
        colours.bottom = colours.intern(right, bottom);
        colours
    }

    fn find_leaving(&self, language: &Language, right: &Right) -> Vec<Box<[u64]>> {
        let words = language.grammar.lexeme_count().div_ceil(64);
        let mut leaving = vec![vec![0u64; words].into_boxed_slice(); self.targets.len()];
        for node in (0..right.node_count()).map(NodeId::from_index) {
            for &(symbol, from) in &right.node(node).incoming {
                if let Some(&target) = self.target_of.get(&from) {
                    leaving[target][symbol.index() / 64] |= 1 << (symbol.index() % 64);
                }
            }
        }
        leaving
    }

    fn blank(&self) -> Colour {
        Colour { free: vec![INFINITE; self.free_count], nodes: Vec::new() }
    }

    /// A colour.
    #[must_use]
    pub fn get(&self, id: ColourId) -> &Colour {
        &self.table[id.index()]
    }

    /// The condition at the bottom of the stack.
    #[must_use]
    pub fn bottom(&self) -> ColourId {
        self.bottom
    }

    /// The nodes at which the cursor can fall.
    #[must_use]
    pub fn targets(&self) -> &[NodeId] {
        &self.targets
    }

    /// The bit of a node in an outlook's bitset.
    #[must_use]
    pub fn target(&self, node: NodeId) -> Option<usize> {
        self.target_of.get(&node).copied()
    }

    /// Forgets what was computed for sets at or past a size of the left chart.
    pub fn truncate(&mut self, sets: usize) {
        self.frame_of.retain(|set, _| set.index() < sets);
        self.outlooks.retain(|set, _| set.index() < sets);
    }

    /// Interns a colour, after letting every free state fall on the nodes that the cursor may cut.
    fn intern(&mut self, right: &Right, mut colour: Colour) -> ColourId {
        colour.nodes.sort_unstable();
        colour.nodes.dedup();
        self.row.clear();
        self.row.resize(self.words, 0);
        // Both lists ascend.
        let mut targets = self.targets.iter().enumerate().peekable();
        for node in &colour.nodes {
            while targets.next_if(|(_, target)| *target < node).is_some() {}
            if let Some((index, _)) = targets.next_if(|(_, target)| *target == node) {
                self.row[index / 64] |= 1 << (index % 64);
            }
        }
        for (&(from, _, cost), &target) in right.crossings.iter().zip(&self.crossed) {
            if colour.free[from.index()] > cost && self.row[target / 64] >> (target % 64) & 1 == 1 {
                colour.free[from.index()] = cost;
            }
        }
        if let Some(&id) = self.ids.get(&colour) {
            return id;
        }
        let id = ColourId::from_index(self.table.len());
        self.projections.extend_from_slice(&self.row);
        self.ids.insert(colour.clone(), id);
        self.table.push(colour);
        id
    }

    fn union(&mut self, right: &Right, one: ColourId, other: ColourId) -> ColourId {
        if one == other || other == NO_COLOUR {
            return one;
        }
        if one == NO_COLOUR || self.holds(other, one) {
            return other;
        }
        if self.holds(one, other) {
            return one;
        }
        let mut colour = self.table[one.index()].clone();
        merge(&mut colour, &self.table[other.index()]);
        self.intern(right, colour)
    }

    /// Carries a colour backwards over the symbols from the dot to the end of its rule. `column` is the block's, where the
    /// rule has read its INDENT; `indents` what indentations cost where the rule began: each of its further lines has one.
    pub fn step(
        &mut self,
        context: Context<'_>,
        colour: ColourId,
        dot: DotId,
        column: ColumnId,
        indents: Indents,
    ) -> ColourId {
        let grammar = &context.language.grammar;
        let next = grammar.next(dot);
        if next == END_OF_RULE || colour == NO_COLOUR {
            return colour;
        }
        let indents = if context.language.free.crosses_line(dot) { indents } else { NO_INDENTS };
        if let Some(&known) = self.steps.get(&(colour, dot, column, indents)) {
            return known;
        }
        let position = grammar.position(dot);
        let stepped = match grammar.rule(dot).block {
            Some((open, close)) if position <= open => self.step_unopened(context, colour, dot, (open, close), indents),
            Some((_, close)) if position == close => {
                let after = self.step(context, colour, Grammar::advance(dot), NO_COLUMN, indents);
                let popped =
                    if column == NO_COLUMN { Popped::Any } else { Popped::Column(context.columns.get(column)) };
                self.before_dedent(context, after, popped)
            }
            block => {
                let after = self.step(context, colour, Grammar::advance(dot), column, indents);
                let inside = block.is_some_and(|(_, close)| position < close);
                let before = self.before(context, next, after, if inside { 0 } else { indents.own });
                self.intern(context.right, before)
            }
        };
        self.steps.insert((colour, dot, column, indents), stepped);
        stepped
    }

    /// The colour of one node alone.
    pub fn singleton(&mut self, right: &Right, node: NodeId) -> ColourId {
        let colour = Colour { nodes: vec![node], ..self.blank() };
        self.intern(right, colour)
    }

    /// The colour before a symbol.
    #[must_use]
    pub fn before_symbol(&self, context: Context<'_>, symbol: SymbolId, after: ColourId) -> Colour {
        self.before(context, symbol, after, 0)
    }

    /// What begins at a line's start in the middle costs that line's indentation besides.
    fn before(&self, context: Context<'_>, symbol: SymbolId, after: ColourId, indent: Cost) -> Colour {
        let indented = |from: FreeId, cost: Cost| match cost {
            0 => 0,
            _ if context.language.free.is_line(from) => cost.saturating_add(indent),
            _ => cost,
        };
        let grammar = &context.language.grammar;
        let free = &context.language.free;
        let source = &self.table[after.index()];
        let mut colour = if grammar.nullable(symbol) { source.clone() } else { self.blank() };
        for from in free.states() {
            for to in free.states() {
                let cost = indented(from, free.relation(symbol, from, to)).saturating_add(source.free[to.index()]);
                lower(&mut colour.free[from.index()], cost);
            }
        }
        if grammar.is_lexeme(symbol) {
            for &(from, target, cost) in self.symbol_crossings.get(&symbol).into_iter().flatten() {
                if self.projects(after, target) {
                    lower(&mut colour.free[from.index()], indented(from, cost));
                }
            }
            for &node in &source.nodes {
                let incoming = &context.right.node(node).incoming;
                colour.nodes.extend(incoming.iter().filter(|edge| edge.0 == symbol).map(|edge| edge.1));
            }
            return colour;
        }
        for &node in &source.nodes {
            let node = context.right.node(node);
            let begin = node.completed.partition_point(|entry| entry.0 < symbol);
            colour
                .nodes
                .extend(node.completed[begin..].iter().take_while(|entry| entry.0 == symbol).map(|entry| entry.1));
            let begin = node.completed_free.partition_point(|entry| entry.0 < symbol);
            for &(_, from, cost) in node.completed_free[begin..].iter().take_while(|entry| entry.0 == symbol) {
                lower(&mut colour.free[from.index()], indented(from, cost));
            }
        }
        colour
    }

    /// The colour before a DEDENT.
    fn before_dedent(&mut self, context: Context<'_>, after: ColourId, popped: Popped) -> ColourId {
        let free = &context.language.free;
        let (_, dedent) = context.language.grammar.indent_dedent.expect("a language with layout");
        let source = &self.table[after.index()];
        let mut colour = self.blank();
        for from in free.states() {
            for to in free.states() {
                let cost = free.relation(dedent, from, to).saturating_add(source.free[to.index()]);
                lower(&mut colour.free[from.index()], cost);
            }
        }
        for (_, from) in dedents_into(context.right, &source.nodes, dedent) {
            let fits = match popped {
                Popped::Column(column) => context.right.pops(context.language, from, column),
                Popped::Any => true,
                Popped::InMiddle => false,
            };
            if fits {
                colour.nodes.push(from);
            }
        }
        self.intern(context.right, colour)
    }

    /// A block whose INDENT is still to come: in the middle, where its column is free, or in R, where it must be the one
    /// that the DEDENT pops.
    fn step_unopened(
        &mut self,
        context: Context<'_>,
        colour: ColourId,
        dot: DotId,
        block: (usize, usize),
        indents: Indents,
    ) -> ColourId {
        let grammar = &context.language.grammar;
        let (indent, dedent) = grammar.indent_dedent.expect("a language with layout");
        let position = grammar.position(dot);
        let at = |target: usize| DotId(dot.0 + u32::try_from(target - position).expect("inside the rule"));
        let (open, close) = block;
        let after = self.step(context, colour, at(close + 1), NO_COLUMN, indents);

        let mut classes: Vec<(Option<Top>, ColourId)> =
            vec![(None, self.before_dedent(context, after, Popped::InMiddle))];
        let nodes = self.table[after.index()].nodes.clone();
        let mut by_top: FxHashMap<Top, Vec<NodeId>> = FxHashMap::default();
        for (top, from) in dedents_into(context.right, &nodes, dedent) {
            by_top.entry(top).or_default().push(from);
        }
        for (top, nodes) in by_top {
            let class = Colour { nodes, ..self.blank() };
            classes.push((Some(top), self.intern(context.right, class)));
        }

        let mut result = self.blank();
        for (top, mut inner) in classes {
            for middle in (open + 1..close).rev() {
                // What an INDENT costs is the first line's, and may be in R where the cursor cuts it.
                let first = if middle == open + 1 { indents.deeper } else { 0 };
                let before = self.before(context, grammar.next(at(middle)), inner, first);
                inner = self.intern(context.right, before);
            }
            let before = self.before_indent(context, indent, inner, top);
            merge(&mut result, &before);
        }
        let mut stepped = self.intern(context.right, result);
        for middle in (position..open).rev() {
            let before = self.before(context, grammar.next(at(middle)), stepped, 0);
            stepped = self.intern(context.right, before);
        }
        stepped
    }

    fn before_indent(&self, context: Context<'_>, indent: SymbolId, inner: ColourId, top: Option<Top>) -> Colour {
        let free = &context.language.free;
        let source = &self.table[inner.index()];
        let mut colour = self.blank();
        for from in free.states() {
            for to in free.states() {
                if free.relation(indent, from, to) != INFINITE {
                    lower(&mut colour.free[from.index()], source.free[to.index()]);
                }
            }
        }
        for &node in &source.nodes {
            for &(symbol, from) in &context.right.node(node).incoming {
                if symbol != indent {
                    continue;
                }
                if let Place::Line { column, .. } = context.right.node(from).place {
                    if top == Some(Top::Exact(column)) {
                        colour.nodes.push(from);
                    }
                }
            }
        }
        colour
    }

    /// `colour(set, nonterminal)`.
    pub fn colour(&mut self, context: Context<'_>, set: SetId, nonterminal: SymbolId) -> ColourId {
        let frame = self.frame(context, set);
        if let Some(&known) = self.frames[frame.0 as usize].solved.get(&nonterminal) {
            return known;
        }
        self.solve(context, frame, nonterminal);
        self.frames[frame.0 as usize].solved.get(&nonterminal).copied().unwrap_or(NO_COLOUR)
    }

    /// The frame of a set. Origins lie behind, so the frames that it needs are made in ascending order, without recursion.
    fn frame(&mut self, context: Context<'_>, set: SetId) -> FrameId {
        if let Some(&known) = self.frame_of.get(&set) {
            return known;
        }
        let mut needed = vec![set];
        let mut seen: FxHashSet<SetId> = FxHashSet::default();
        let mut stack = vec![set];
        while let Some(at) = stack.pop() {
            for item in &context.left.set(at).items {
                if !self.frame_of.contains_key(&item.origin) && seen.insert(item.origin) {
                    needed.push(item.origin);
                    stack.push(item.origin);
                }
            }
        }
        needed.sort_unstable();
        for &at in &needed {
            let frame = self.make_frame(context, at);
            self.frame_of.insert(at, frame);
        }
        self.frame_of[&set]
    }

    fn make_frame(&mut self, context: Context<'_>, set: SetId) -> FrameId {
        let grammar = &context.language.grammar;
        let mut seeds: Vec<(SymbolId, ColourId)> = Vec::new();
        if set == FIRST_SET {
            seeds.push((grammar.start, self.bottom));
        }
        let items = &context.left.set(set).items;
        for item in items.iter().filter(|item| !grammar.is_lexeme(grammar.next(item.dot))) {
            let behind = self.colour(context, item.origin, grammar.lhs(item.dot));
            let indents = context.left.indents(item.origin);
            let demanded = self.step(context, behind, Grammar::advance(item.dot), item.column, indents);
            let symbol = grammar.next(item.dot);
            match seeds.last_mut() {
                Some((last, colour)) if *last == symbol => *colour = self.union(context.right, *colour, demanded),
                _ => seeds.push((symbol, demanded)),
            }
        }
        let prediction = context.left.set(set).prediction;
        let indents = context.left.indents(set);
        if let Some(&id) = self.frame_ids.get(&(prediction, indents, seeds.clone())) {
            return id;
        }
        let id = FrameId(u32::try_from(self.frames.len()).expect("frame count fits u32"));
        self.frame_ids.insert((prediction, indents, seeds.clone()), id);
        self.frames.push(Frame { prediction, indents, seeds, solved: FxHashMap::default() });
        id
    }

    /// Least fixpoint over the nonterminals of a frame that lead to the wanted one. Those that lead to each other are finished
    /// before what they lead to.
    fn solve(&mut self, context: Context<'_>, frame: FrameId, wanted: SymbolId) {
        let grammar = &context.language.grammar;
        let (prediction, indents, seeds) = {
            let frame = &self.frames[frame.0 as usize];
            (frame.prediction, frame.indents, frame.seeds.clone())
        };
        let unsolved = |symbol| Unsolved { symbol, colour: NO_COLOUR, children: Vec::new(), group: 0 };
        let mut place: FxHashMap<SymbolId, usize> = FxHashMap::default();
        let mut found: Vec<Unsolved> = vec![unsolved(wanted)];
        let mut stack = vec![wanted];
        place.insert(wanted, 0);
        while let Some(symbol) = stack.pop() {
            let own = place[&symbol];
            if let Some(&known) = self.frames[frame.0 as usize].solved.get(&symbol) {
                found[own].colour = known;
                continue;
            }
            if let Some(&(_, colour)) = seeds.iter().find(|seed| seed.0 == symbol) {
                found[own].colour = colour;
            }
            for &dot in context.predictions.dots(prediction, symbol) {
                let parent = grammar.lhs(dot);
                let at = *place.entry(parent).or_insert_with(|| {
                    found.push(unsolved(parent));
                    stack.push(parent);
                    found.len() - 1
                });
                found[at].children.push((dot, own));
            }
        }
        for group in groups(&mut found) {
            if !self.is_settled(context, &mut found, &group, indents) {
                self.grow(context, &mut found, &group, indents);
            }
            for &at in &group {
                self.frames[frame.0 as usize].solved.insert(found[at].symbol, found[at].colour);
                for index in 0..found[at].children.len() {
                    let (dot, child) = found[at].children[index];
                    if found[child].group != found[at].group {
                        let demanded = self.step(context, found[at].colour, Grammar::advance(dot), NO_COLUMN, indents);
                        found[child].colour = self.union(context.right, found[child].colour, demanded);
                    }
                }
            }
        }
    }

    /// Whether what the nonterminals of a group lead to in each other is known of them already: mostly, an operator that
    /// could be repeated does not come next in R.
    fn is_settled(&mut self, context: Context<'_>, found: &mut [Unsolved], group: &[usize], indents: Indents) -> bool {
        for &at in group {
            for index in 0..found[at].children.len() {
                let (dot, child) = found[at].children[index];
                if found[child].group == found[at].group {
                    let demanded = self.step(context, found[at].colour, Grammar::advance(dot), NO_COLUMN, indents);
                    if !self.holds(found[child].colour, demanded) {
                        return false;
                    }
                }
            }
        }
        true
    }

    /// Finishes the nonterminals of a group. What is new is carried on alone, since steps distribute over unions: a long list
    /// in R (each of its ends leads to the one before) costs as much as it is long.
    fn grow(&mut self, context: Context<'_>, found: &mut [Unsolved], group: &[usize], indents: Indents) {
        let mut growing: FxHashMap<usize, Growing> = FxHashMap::default();
        for &at in group {
            let mut own = Growing::new(self.free_count);
            own.add(&self.table[found[at].colour.index()]);
            growing.insert(at, own);
        }
        let mut queue = group.to_vec();
        while let Some(at) = queue.pop() {
            let Some(fresh) = growing.get_mut(&at).and_then(|own| own.take(self.free_count)) else { continue };
            let fresh = self.intern(context.right, fresh);
            for index in 0..found[at].children.len() {
                let (dot, child) = found[at].children[index];
                if found[child].group != found[at].group {
                    continue;
                }
                let demanded = self.step(context, fresh, Grammar::advance(dot), NO_COLUMN, indents);
                let child_colour = growing.get_mut(&child).expect("of this group");
                if child_colour.add(&self.table[demanded.index()]) {
                    queue.push(child);
                }
            }
        }
        for (at, own) in growing {
            let colour = Colour { free: own.free, nodes: own.nodes.into_iter().collect() };
            found[at].colour = self.intern(context.right, colour);
        }
    }

    /// Whether a colour holds all of another.
    fn holds(&self, one: ColourId, other: ColourId) -> bool {
        if one == other || other == NO_COLOUR {
            return true;
        }
        let (one, other) = (&self.table[one.index()], &self.table[other.index()]);
        let mut rest = one.nodes.iter();
        other.nodes.len() <= one.nodes.len()
            && one.free.iter().zip(&other.free).all(|(one, other)| one <= other)
            && other.nodes.iter().all(|node| rest.any(|own| own == node))
    }

    /// Whether the cursor may fall on one of some targets right after a set. As `outlook` says it, but only those items are
    /// asked whose rule can go on with what R goes on with.
    pub fn reaches(&mut self, context: Context<'_>, set: SetId, targets: &[usize]) -> bool {
        if set == FIRST_SET || self.outlooks.contains_key(&set) {
            let outlook = self.outlook(context, set);
            return targets.iter().any(|&target| outlook.reaches(target));
        }
        let source = context.left.set(set);
        if source.accepts && targets.iter().any(|&target| self.projects(self.bottom, target)) {
            return true;
        }
        let grammar = &context.language.grammar;
        for item in &source.items {
            let first = grammar.first(item.dot);
            let can = |target: usize| first.iter().zip(&self.leaving[target]).any(|(one, other)| one & other != 0);
            if !targets.iter().any(|&target| can(target)) {
                continue;
            }
            let behind = self.colour(context, item.origin, grammar.lhs(item.dot));
            let indents = context.left.indents(item.origin);
            let colour = self.step(context, behind, item.dot, item.column, indents);
            if targets.iter().any(|&target| self.projects(colour, target)) {
                return true;
            }
        }
        false
    }

    fn projects(&self, colour: ColourId, target: usize) -> bool {
        self.projections[colour.index() * self.words + target / 64] >> (target % 64) & 1 == 1
    }

    /// Where the cursor may fall right after a set.
    pub fn outlook(&mut self, context: Context<'_>, set: SetId) -> std::sync::Arc<Outlook> {
        if let Some(known) = self.outlooks.get(&set) {
            return known.clone();
        }
        let grammar = &context.language.grammar;
        let mut free = vec![INFINITE; self.free_count];
        let mut targets = vec![0u64; self.words];
        let mut reached: FxHashSet<ColourId> = FxHashSet::default();
        if set == FIRST_SET {
            let bottom = self.bottom;
            let before = self.before(context, grammar.start, bottom, 0);
            reached.insert(self.intern(context.right, before));
        }
        if context.left.set(set).accepts {
            reached.insert(self.bottom);
        }
        let items = &context.left.set(set).items;
        for item in items {
            let behind = self.colour(context, item.origin, grammar.lhs(item.dot));
            let indents = context.left.indents(item.origin);
            reached.insert(self.step(context, behind, item.dot, item.column, indents));
        }
        for colour in reached {
            let row = &self.projections[colour.index() * self.words..(colour.index() + 1) * self.words];
            for (word, &more) in targets.iter_mut().zip(row) {
                *word |= more;
            }
            for (cell, &cost) in free.iter_mut().zip(&self.table[colour.index()].free) {
                lower(cell, cost);
            }
        }
        let outlook = std::sync::Arc::new(Outlook { free, targets });
        self.outlooks.insert(set, outlook.clone());
        outlook
    }

    /// Whether the stack of a set is loose: wherever one of its rules ends, the middle can go on from every free state that
    /// can follow the rule at all (see `follow`). Then R has no say in what may come next, however far the stack is popped.
    pub fn is_loose(&mut self, context: Context<'_>, set: SetId) -> bool {
        let follow = &context.language.follow;
        let grammar = &context.language.grammar;
        if !follow.is_even() || !self.is_loose_below(context) {
            return false;
        }
        let mut seen: FxHashSet<SetId> = FxHashSet::default();
        let mut stack = vec![set];
        while let Some(at) = stack.pop() {
            for item in &context.left.set(at).items {
                let lhs = grammar.lhs(item.dot);
                if lhs != grammar.start || item.origin != FIRST_SET {
                    let colour = self.colour(context, item.origin, lhs);
                    if follow.after(lhs) & !self.open_mask(colour) != 0 {
                        return false;
                    }
                }
                if seen.insert(item.origin) {
                    stack.push(item.origin);
                }
            }
        }
        true
    }

    /// Whether the end of the file leaves the middle as free as it can be: because R asks for nothing, or because what ends
    /// the file can always be followed by more of it.
    fn is_loose_below(&mut self, context: Context<'_>) -> bool {
        let follow = &context.language.follow;
        let grammar = &context.language.grammar;
        if follow.after(grammar.start) & !self.open_mask(self.bottom) == 0 {
            return true;
        }
        follow.is_open_ended()
            && grammar.rules().iter().filter(|rule| rule.lhs == grammar.start).all(|rule| {
                rule.rhs.iter().all(|&list| {
                    let colour = self.colour(context, FIRST_SET, list);
                    follow.after(list) & !self.open_mask(colour) == 0
                })
            })
    }

    /// The free states from which the middle can go on, as a mask.
    fn open_mask(&self, colour: ColourId) -> u64 {
        let free = self.table[colour.index()].free.iter().enumerate();
        free.filter(|&(_, &cost)| cost != INFINITE).fold(0, |mask, (index, _)| mask | 1 << index)
    }

    /// The number of interned colours and frames, for statistics.
    #[must_use]
    pub fn sizes(&self) -> (usize, usize) {
        (self.table.len(), self.frames.len())
    }
}

impl Outlook {
    /// Whether the cursor may fall on a target.
    #[inline]
    #[must_use]
    pub fn reaches(&self, target: usize) -> bool {
        self.targets[target / 64] >> (target % 64) & 1 == 1
    }

    /// Least bytes of further middle from a free state.
    #[inline]
    #[must_use]
    pub fn cost(&self, free: FreeId) -> Cost {
        self.free[free.index()]
    }
}

/// DEDENT edges into a set of nodes, as (top popped, node it starts at).
fn dedents_into<'a>(
    right: &'a Right,
    nodes: &'a [NodeId],
    dedent: SymbolId,
) -> impl Iterator<Item = (Top, NodeId)> + 'a {
    nodes.iter().flat_map(move |&node| {
        right.node(node).incoming.iter().filter(move |edge| edge.0 == dedent).filter_map(|&(_, from)| {
            match right.node(from).place {
                Place::Line { top, .. } => Some((top, from)),
                _ => None,
            }
        })
    })
}

fn lower(cell: &mut Cost, cost: Cost) {
    *cell = (*cell).min(cost);
}

fn merge(into: &mut Colour, other: &Colour) {
    into.nodes.extend(&other.nodes);
    for (cell, &cost) in into.free.iter_mut().zip(&other.free) {
        lower(cell, cost);
    }
}
