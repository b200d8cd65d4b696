//! Verdicts on branches: whether R can still be reached, at what cost, and whether the text so far is a whole middle.
//!
//! A branch that cannot be completed is dropped at once, so a list of branches is viable iff it is not empty.

use crate::chart::left::{Checkpoint, FIRST_SET, NO_SET, Read};
use crate::chart::predict::Predictions;
use crate::chart::texts::PLAIN;
use crate::engine::at_line::AtLine;
use crate::engine::branch::{BracketSide, Branch, InLine};
use crate::engine::continuations::{Continuation, Continuations, Sources};
use crate::engine::parser::{Least, Parser};
use crate::ids::{AcceptId, ContinuationsId, FreeId, GuardId, NodeId, SetId, ShapeId, TextId};
use crate::language::compiled::Language;
use crate::language::definition::Floor;
use crate::language::follow::bit;
use crate::language::free::{Cost, INFINITE, LINE, MIDDLE};
use crate::lexing::guards::NO_GUARDS;
use crate::lexing::lexer::NEVER;
use crate::lexing::roles::Role;
use crate::limits;
use crate::requirement::requirements::{Context, Depth};
use crate::requirement::solver::{Reachability, Solver};
use crate::right::queries::Right;
use crate::stop::poll;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Known answers: whether a set can go on by some continuations.
#[derive(Debug, Default)]
struct Answers {
    known: FxHashMap<Asked, bool>,
    /// The last answer. A mask repeats a question for every byte of an identifier or a string.
    last: Option<(Asked, bool)>,
}

/// A set, the continuations from it, and the text read of a symbol that may bind or match.
type Asked = (SetId, ContinuationsId, TextId);

impl Answers {
    fn get(&mut self, asked: Asked) -> Option<bool> {
        if let Some((_, answer)) = self.last.filter(|last| last.0 == asked) {
            return Some(answer);
        }
        let answer = *self.known.get(&asked)?;
        self.last = Some((asked, answer));
        Some(answer)
    }

    fn put(&mut self, asked: Asked, answer: bool) -> bool {
        self.known.insert(asked, answer);
        self.last = Some((asked, answer));
        answer
    }

    /// Forget the sets past a size of the chart.
    fn truncate(&mut self, sets: usize) {
        self.known.retain(|key, _| key.0.index() < sets);
        self.last = None;
    }
}

/// Result of checking whether R constrains the next symbols.
#[derive(Debug, Default)]
struct Freedom {
    /// True if it does not: the stacks of all branches are unconstrained.
    unconstrained: bool,
    /// True once some branch was checked. The result holds for all sessions that share this engine.
    settled: bool,
}

/// Sizes of the engine's tables.
#[derive(Debug)]
struct Sizes {
    /// Sets and requirements when the first session was opened.
    first: Option<(usize, usize)>,
    /// Sets when the last session was opened.
    last: usize,
    /// Sets not forgotten since [`Engine::take_kept`] was last called.
    kept: usize,
}

/// One R, and all that has been computed for it. Sessions with the same R share it.
#[derive(Debug)]
pub(crate) struct Engine {
    /// The language.
    pub language: Arc<Language>,
    /// The right context.
    pub right: Right,
    /// Parser of L and the middle.
    pub(crate) parser: Parser,
    solver: Solver,
    continuations: Continuations,
    answers: Answers,
    freedom: Freedom,
    floor: Option<(Floor, u32)>,
    /// Continuations without those that close a bracket in the middle.
    not_closing: FxHashMap<ContinuationsId, ContinuationsId>,
    sizes: Sizes,
    right_asked: u64,
    pub(super) at_line: AtLine,
}

impl Engine {
    /// Lex and parse R, and prepare an empty left chart.
    #[must_use]
    pub(crate) fn open(language: &Arc<Language>, right_text: &[u8]) -> Self {
        let mut predictions = Predictions::default();
        let mut right = Right::open(language, &mut predictions, right_text);
        let slots = right.take_slots();
        Self {
            language: language.clone(),
            parser: Parser::new(language, predictions, slots),
            solver: Solver::new(language, &right),
            continuations: Continuations::new(language, &right),
            answers: Answers::default(),
            freedom: Freedom::default(),
            floor: None,
            not_closing: FxHashMap::default(),
            sizes: Sizes { first: None, last: 0, kept: usize::MAX },
            right_asked: 0,
            at_line: AtLine::new(language, &right),
            right,
        }
    }

    /// The left chart's size, to go back to.
    #[must_use]
    pub(crate) fn mark(&self) -> Checkpoint {
        self.parser.mark()
    }

    /// Forget the sets made since a mark. No branch made since may be used again.
    pub(crate) fn truncate(&mut self, mark: Checkpoint) {
        let sets = self.parser.truncate(mark);
        self.solver.truncate(sets);
        self.answers.truncate(sets);
        self.sizes.kept = self.sizes.kept.min(sets);
    }

    /// Sets made since the last session was opened.
    pub(crate) fn sets_since_opened(&self) -> usize {
        self.parser.set_count().saturating_sub(self.sizes.last)
    }

    /// Number of sets not forgotten since the last call. The id of a later set may name another one.
    pub(crate) fn take_kept(&mut self) -> usize {
        std::mem::replace(&mut self.sizes.kept, usize::MAX)
    }

    /// The floor of some branches at the end of L: the number of brackets, or blocks, that the middle must leave open.
    /// 0 if the language's rules do not define it.
    pub(crate) fn floor_of(&self, kind: Floor, branches: &[Branch]) -> u32 {
        if self.language.nesting(kind).is_none() {
            return 0;
        }
        let of = |branch: &Branch| match kind {
            Floor::Brackets => self.brackets_kept(branch),
            Floor::Block => self.parser.blocks_left_of(branch),
        };
        branches.iter().map(of).min().unwrap_or(0)
    }

    /// Number of L's open brackets that R closes when it is read right after L.
    fn brackets_kept(&self, branch: &Branch) -> u32 {
        let lexer = &self.language.lexer;
        let in_progress = !lexer.is_start(branch.state);
        let cut = if in_progress { self.right.lookahead.end(branch.state) } else { None };
        let depth = match cut {
            None if in_progress && lexer.accepts(branch.state) => {
                match self.language.accept_role(lexer.accept(branch.state)) {
                    Role::Open => branch.depth + 1,
                    Role::Close => branch.depth.saturating_sub(1),
                    _ => branch.depth,
                }
            }
            _ => branch.depth,
        };
        self.right.unopened(cut.map_or(0, |(end, _)| end)).map_or(0, |closed| closed.min(depth))
    }

    /// Put a floor in force. Earlier answers of this engine must be of an equal floor, or there must be none.
    pub(crate) fn set_floor(&mut self, floor: Option<(Floor, u32)>) {
        self.floor = floor;
        self.parser.least = match floor {
            None => Least::default(),
            Some((Floor::Brackets, brackets)) => Least { brackets, blocks: 0 },
            Some((Floor::Block, blocks)) => Least { brackets: 0, blocks },
        };
    }

    /// Find out whether R constrains the symbols after the branches that a session opens with. Branches derived from
    /// them need no further check. Return false if an earlier session's answer differs: the two cannot share an engine.
    pub(crate) fn find_unconstrained(&mut self, branches: &[Branch]) -> bool {
        let sets = self.parser.set_count();
        self.sizes.last = sets;
        self.sizes.first.get_or_insert((sets, self.solver.sizes().0));
        // Only requirements know the floor.
        let unconstrained = self.floor.is_none()
            && branches.iter().all(|branch| {
                self.sets_behind_start(branch).into_iter().all(|set| {
                    let (solver, context) = self.parts();
                    solver.is_unconstrained(context, set)
                })
            });
        // A session without branches has no questions.
        if self.freedom.settled {
            return branches.is_empty() || unconstrained == self.freedom.unconstrained;
        }
        self.freedom = Freedom { unconstrained, settled: !branches.is_empty() };
        true
    }

    /// The set of a branch. Where the file's first lexeme is in progress, the sets after it, in which the file begins.
    fn sets_behind_start(&mut self, branch: &Branch) -> Vec<SetId> {
        if branch.set != FIRST_SET || self.language.lexer.file_start().is_none() {
            return vec![branch.set];
        }
        let accepts: Vec<AcceptId> = self.language.lexer.live(branch.state).collect();
        let read = accepts.into_iter().map(|accept| self.parser.scan(branch.set, Read::Accepted(accept, PLAIN)));
        read.filter(|&set| set != NO_SET).collect()
    }

    /// Return whether sessions have left so much behind in this engine that the next one needs its own.
    #[must_use]
    pub(crate) fn is_worn(&self) -> bool {
        self.sizes.first.is_some_and(|(sets, requirements)| {
            self.parser.set_count() > sets + limits::REUSED_SETS
                || self.solver.sizes().0 > requirements + limits::REUSED_REQUIREMENTS
                || self.parser.text_count() > limits::REUSED_TEXTS
        })
    }

    /// Return whether R puts no constraint on the next symbols.
    #[must_use]
    pub(crate) fn is_unconstrained(&self) -> bool {
        self.freedom.unconstrained
    }

    /// Ask R at every step, even where it puts no constraint: the plain twin.
    pub(crate) fn tighten(&mut self) {
        self.freedom.unconstrained = false;
    }

    /// Number of times that R was asked whether a branch is viable. At a limit it is asked even where the stack is
    /// unconstrained, since R may close a bracket that the middle could not open.
    #[must_use]
    pub(crate) fn right_asked(&self) -> u64 {
        self.right_asked
    }

    /// Numbers of sets, lattice nodes, requirements and frames.
    #[must_use]
    pub(crate) fn sizes(&self) -> (usize, usize, usize, usize) {
        let (requirements, frames) = self.solver.sizes();
        (self.parser.set_count(), self.right.node_count(), requirements, frames)
    }

    /// The solver of requirements, and the context that it computes from.
    pub(crate) fn parts(&mut self) -> (&mut Solver, Context<'_>) {
        let (left, predictions, columns) = self.parser.charts();
        let floor = self.floor.and_then(|(kind, level)| Some((self.language.nesting(kind)?, level as Depth)));
        let context = Context { language: &self.language, right: &self.right, left, predictions, columns, floor };
        (&mut self.solver, context)
    }

    /// Reachability of R's nodes right after a set.
    pub(crate) fn reachability(&mut self, set: SetId) -> Arc<Reachability> {
        let (solver, context) = self.parts();
        solver.reachability(context, set)
    }

    /// Step every branch by one byte, and drop those that cannot be completed.
    pub(crate) fn advance(&mut self, branches: &[Branch], byte: u8, out: &mut Vec<Branch>) {
        poll();
        if self.language.free.shape().is_none() {
            self.parser.step_all(branches, byte, out);
        } else {
            out.clear();
            // All branches are at one place of the shape.
            let Some(at) = branches.first().and_then(|branch| self.next_at(branch.at, byte)) else { return };
            self.parser.step_all(branches, byte, out);
            out.iter_mut().for_each(|branch| branch.at = at);
        }
        out.retain(|branch| self.viable(branch));
    }

    /// The branches after the longest prefix of `bytes` that leaves the whole viable.
    pub(crate) fn advance_all(&mut self, branches: &[Branch], bytes: &[u8], out: &mut Vec<Branch>) {
        let mut before = branches.to_vec();
        for &byte in bytes {
            self.advance(&before, byte, out);
            std::mem::swap(&mut before, out);
        }
        std::mem::swap(&mut before, out);
    }

    /// State of the middle's shape after one byte more; `None` if the shape does not allow it.
    fn next_at(&self, at: ShapeId, byte: u8) -> Option<ShapeId> {
        self.language.free.shape().map_or(Some(at), |shape| shape.step(at, byte))
    }

    /// Return whether a byte leads to another place of the middle's shape.
    pub(crate) fn moves_in_shape(&self, branch: &Branch, byte: u8) -> bool {
        self.next_at(branch.at, byte) != Some(branch.at)
    }

    /// The branch after a byte that only continues its symbol: nothing ends, nothing forks. `None` where the general
    /// step is needed.
    #[inline]
    #[must_use]
    pub(crate) fn continued(&self, branch: &Branch, byte: u8) -> Option<Branch> {
        let continued = self.parser.continued(branch, byte)?;
        Some(Branch { at: self.next_at(branch.at, byte)?, ..continued })
    }

    /// Return whether some further middle completes a branch.
    pub(crate) fn viable(&mut self, branch: &Branch) -> bool {
        if self.freedom.unconstrained && !self.parser.is_at_limit(branch) {
            return self.viable_unconstrained(branch);
        }
        self.right_asked += 1;
        self.viable_by_requirements(branch)
    }

    /// Return whether some further middle completes a branch whose stack is unconstrained.
    fn viable_unconstrained(&mut self, branch: &Branch) -> bool {
        let lexer = &self.language.lexer;
        let parser = &mut self.parser;
        if let InLine::Start { .. } = branch.line {
            return parser.next(branch.set).free & bit(LINE) != 0;
        }
        if lexer.is_start(branch.state) {
            return parser.next(branch.set).free & bit(MIDDLE) != 0;
        }
        let outside = parser.nesting(branch) == BracketSide::Outside;
        if branch.guards == NO_GUARDS {
            if parser.next(branch.set).takes(outside, lexer.live_mask(branch.state)) {
                return true;
            }
        } else if parser.takes_beside(branch, outside) {
            return true;
        }
        self.can_match(branch)
    }

    pub(crate) fn viable_by_requirements(&mut self, branch: &Branch) -> bool {
        if let InLine::Start { .. } = branch.line {
            if self.language.shaped.is_some() && !self.language.lexer.is_start(branch.state) {
                return self.viable_in_trivia(branch);
            }
            let Some(line) = self.free_at(LINE, branch.at) else { return false };
            return self.reachability(branch.set).cost(line) != INFINITE && !self.parser.needs_one_block_more(branch);
        }
        if self.language.lexer.is_start(branch.state) {
            let free = self.language.free.at_boundary(self.parser.guard_states(branch.guards));
            return match free.and_then(|free| self.free_at(free, branch.at)) {
                Some(free) => self.reachability(branch.set).cost(free) != INFINITE,
                None => false,
            };
        }
        let mut continuations = self.continuations_id(branch);
        if self.parser.is_at_limit(branch) {
            continuations = self.continuations_at_limit(branch, continuations);
        }
        if self.parser.is_on_floor(branch.depth) {
            continuations = self.continuations_on_floor(continuations);
        }
        let asked = (branch.set, continuations, branch.text);
        if let Some(known) = self.answers.get(asked) {
            return known;
        }
        let found = self.any_continuation(branch, continuations);
        self.answers.put(asked, found)
    }

    /// Continuations of a branch that open neither a bracket nor a block too many.
    fn continuations_at_limit(&mut self, branch: &Branch, continuations: ContinuationsId) -> ContinuationsId {
        let language = self.language.clone();
        let mut few = self.continuations.get(continuations).to_vec();
        few.retain(|continuation| {
            let Some(accept) = continuation.accept else { return true };
            match language.accept_role(accept) {
                Role::Open => branch.depth < language.limits.brackets,
                Role::Newline => {
                    let set = self.parser.scan(branch.set, Read::Accepted(accept, branch.text));
                    set == NO_SET || !self.parser.needs_one_block_more(&Branch { set, ..*branch })
                }
                _ => true,
            }
        });
        self.continuations.intern(few)
    }

    /// Continuations that close no bracket in the middle. A bracket that R ends belongs to R.
    fn continuations_on_floor(&mut self, continuations: ContinuationsId) -> ContinuationsId {
        if let Some(&known) = self.not_closing.get(&continuations) {
            return known;
        }
        let language = self.language.clone();
        let mut few = self.continuations.get(continuations).to_vec();
        let closes = |continuation: &Continuation| {
            continuation.accept.is_some_and(|accept| language.accept_role(accept) == Role::Close)
        };
        few.retain(|continuation| continuation.free.is_none() || !closes(continuation));
        let few = self.continuations.intern(few);
        self.not_closing.insert(continuations, few);
        few
    }

    fn any_continuation(&mut self, branch: &Branch, continuations: ContinuationsId) -> bool {
        self.continuations.get(continuations).iter().any(|continuation| {
            self.after_continuation(branch, continuation).into_iter().any(|(after, _)| {
                let reachability = self.reachability(after);
                continuation.free.is_some_and(|free| reachability.cost(free) != INFINITE)
                    || reachability.meets(&continuation.targets)
            })
        })
    }

    /// The continuations in which the symbol in progress of a branch can go on.
    pub(crate) fn continuations_of(&mut self, branch: &Branch) -> Arc<[Continuation]> {
        let id = self.continuations_id(branch);
        self.continuations.get(id)
    }

    fn continuations_id(&mut self, branch: &Branch) -> ContinuationsId {
        let nesting = self.parser.nesting(branch);
        let mut sources = Sources {
            language: &self.language,
            right: &self.right,
            requirements: &self.solver.requirements,
            guards: self.parser.guards_mut(),
        };
        self.continuations.of(&mut sources, branch, nesting)
    }

    /// The free state of a kind at a place of the shape; `None` between the bytes of a character.
    pub(super) fn free_at(&self, kind: FreeId, at: ShapeId) -> Option<FreeId> {
        let free = &self.language.free;
        free.shape().map_or(Some(kind), |shape| shape.place(at).map(|place| free.at_place(kind, place)))
    }

    /// Return whether the middle has its shape.
    fn has_shape(&self, at: ShapeId) -> bool {
        self.language.free.shape().is_none_or(|shape| shape.accepts(at))
    }

    /// Return whether some further middle of the shape completes a branch in a comment or a line join, in a line that
    /// has no symbol yet. The shape may allow it to end only in R.
    fn viable_in_trivia(&mut self, branch: &Branch) -> bool {
        let language = self.language.clone();
        let Some(shaped) = &language.shaped else { return false };
        let mut after: Vec<FreeId> = Vec::new();
        for (accept, place) in shaped.ends(branch.state, branch.at) {
            match language.accept_role(accept) {
                Role::Comment => {
                    let ended = self.continuations.ended_at(&language, accept, BracketSide::Outside, place).into_iter();
                    after.extend(ended.map(|(_, free)| free));
                }
                _ => after.push(language.free.at_place(LINE, place)),
            }
        }
        let reachability = self.reachability(branch.set);
        if after.into_iter().any(|free| reachability.cost(free) != INFINITE)
            && !self.parser.needs_one_block_more(branch)
        {
            return true;
        }
        self.guards_hold(branch.guards)
            && self.continuations.ends_in_right(&language, branch.state, branch.at).into_iter().any(|(end, accept)| {
                let ended = self.parser.end_symbol(branch, accept);
                ended.is_some_and(|ended| {
                    let modes = self.parser.modes_after_ignored(ended.set);
                    self.complete_between((&ended, modes), end, false)
                })
            })
    }

    /// Return whether no guard matches again in R.
    fn guards_hold(&self, guards: GuardId) -> bool {
        self.parser.guard_states(guards).iter().all(|&state| self.right.lookahead.end(state).is_none())
    }

    /// Return whether the text so far is a whole middle: L, it and R form a program.
    pub(crate) fn complete(&mut self, branch: &Branch) -> bool {
        if !self.has_shape(branch.at) || !self.guards_hold(branch.guards) {
            return false;
        }
        if self.language.lexer.is_start(branch.state) {
            let modes = self.parser.modes_between(branch);
            return self.complete_between((branch, modes), 0, false);
        }
        let ended = match self.right.lookahead.end(branch.state) {
            Some(end) => Some(end),
            None => self.language.lexer.accepts(branch.state).then(|| (0, self.language.lexer.accept(branch.state))),
        };
        let Some((end, accept)) = ended else { return false };
        let closes = self.language.accept_role(accept) == Role::Close;
        if end == 0 && closes && self.parser.is_on_floor(branch.depth) {
            return false;
        }
        let ended = &self.ended_in_right(branch, end);
        match self.parser.without_floor(|parser| parser.end_symbol(ended, accept)) {
            Some(ended) => {
                let role = self.language.accept_role(accept);
                let modes = match role.is_ignored() {
                    true => self.parser.modes_after_ignored(ended.set),
                    false => self.parser.modes_of(ended.set),
                };
                self.complete_between((&ended, modes), end, role == Role::Newline && end > 0)
            }
            None => false,
        }
    }

    /// Return whether the text so far is a whole middle, for a branch between two symbols, with the modes in force
    /// there. R has been read up to `position`; `begun` if a newline ended in R.
    fn complete_between(&mut self, (branch, modes): (&Branch, u64), position: u32, begun: bool) -> bool {
        if branch.joined && position as usize == self.right.text().len() {
            return false;
        }
        let (set, nodes) = match branch.line {
            InLine::Middle => (branch.set, self.right.nodes_at(position, modes)),
            InLine::Start { column, kept } => {
                let Some(start) = self.right.line_start(position, begun) else { return false };
                if let Some(line) = start.column {
                    let top = self.parser.top(branch.indentation);
                    (branch.set, Vec::from_iter(self.right.line_node(start.position, line, top)))
                } else {
                    let Some((at, column)) = self.right.column_through(position, column, kept) else {
                        return false;
                    };
                    let begun = self.parser.without_floor(|parser| parser.begin_line(branch, column));
                    let Some(begun) = begun else { return false };
                    (begun.set, Vec::from_iter(self.right.entry_node(at, column)))
                }
            }
        };
        let fits = |node: &NodeId| self.right.depth(*node).is_none_or(|depth| depth == branch.depth);
        let nodes = nodes.into_iter().filter(fits);
        let targets: Vec<usize> = nodes.filter_map(|node| self.solver.requirements.target(node)).collect();
        if targets.is_empty() {
            return false;
        }
        let (solver, context) = self.parts();
        solver.reaches(context, set, &targets)
    }

    /// A lower bound on the further bytes that complete the branch; [`INFINITE`] if it is not viable.
    pub(crate) fn bound(&mut self, branch: &Branch) -> Cost {
        let expected = self.expected(branch);
        if expected == INFINITE || !matches!(branch.line, InLine::Start { .. }) || self.is_in_comment(branch) {
            return expected;
        }
        let written = self.language.free.written().map_or(0, |written| self.reachability(branch.set).cost(written));
        expected.max(written).max(self.bound_of_line(branch))
    }

    /// Return whether a comment is in progress.
    fn is_in_comment(&self, branch: &Branch) -> bool {
        let lexer = &self.language.lexer;
        !lexer.is_start(branch.state)
            && lexer.accepts(branch.state)
            && self.language.accept_role(lexer.accept(branch.state)) == Role::Comment
    }

    /// A bound that is lower where a line begins: each of its blanks counts, whether needed or not.
    pub(crate) fn expected(&mut self, branch: &Branch) -> Cost {
        if let InLine::Start { column, kept } = branch.line {
            // Part of the indentation that the cost counts may have been written; a backslash-newline in progress is part of
            // the cost of the column that it will fix.
            let lexer = &self.language.lexer;
            let is_start = lexer.is_start(branch.state);
            if self.language.shaped.is_some() && !is_start {
                return 0; // the place of its shape where the line will begin is unknown
            }
            let Some(line) = self.free_at(LINE, branch.at) else { return INFINITE };
            let written = if self.is_in_comment(branch) {
                // The next line has blanks of its own; but the cost may be that of a comment that R ends.
                lexer.depth(branch.state).into()
            } else {
                // A backslash-newline fixes a column. A column of blanks alone may still grow, so each blank counts.
                match kept {
                    Some(kept) => kept.least_bytes() + if is_start { 0 } else { 2 },
                    None if is_start => column.narrow,
                    None => column.least_bytes() + 2,
                }
            };
            return match self.reachability(branch.set).cost(line) {
                INFINITE => INFINITE,
                cost => cost.saturating_sub(written),
            };
        }
        if self.language.lexer.is_start(branch.state) {
            let free = self.language.free.at_boundary(self.parser.guard_states(branch.guards));
            return match free.and_then(|free| self.free_at(free, branch.at)) {
                Some(free) => self.reachability(branch.set).cost(free),
                None => INFINITE,
            };
        }
        let continuations = self.continuations_of(branch);
        let mut best = INFINITE;
        for continuation in continuations.iter() {
            for (after, least) in self.after_continuation(branch, continuation) {
                let reachability = self.reachability(after);
                if reachability.meets(&continuation.targets) {
                    best = best.min(least);
                }
                if let Some(free) = continuation.free {
                    let finish: Cost =
                        match continuation.accept.map(|accept| self.language.lexer.to_accept(branch.state, accept)) {
                            Some(NEVER) | None => 0,
                            Some(bytes) => least.max(bytes.into()),
                        };
                    let after = self.language.free.priced_after(free, branch.state, continuation.accept, finish);
                    best = best.min(reachability.cost(after).saturating_add(finish));
                }
            }
            if best == 0 {
                return 0;
            }
        }
        best
    }
}
