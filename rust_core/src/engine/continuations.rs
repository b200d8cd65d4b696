//! Continuations of a symbol in progress: it ends in the middle, or the cursor cuts it and it ends in R. They are found
//! once for each state of the lexer, and shared by all states of a lexeme.

use crate::bits;
use crate::engine::branch::{BracketSide, Branch};
use crate::ids::{AcceptId, ContinuationsId, FreeId, GuardId, ShapeId, StateId, SymbolId};
use crate::language::compiled::Language;
use crate::language::free::{INFINITE, LINE, MIDDLE};
use crate::language::shaped::{Reach, ShapedLexer};
use crate::lexing::guards::{Guards, NO_GUARDS};
use crate::lexing::product::{Beside, walk_beside};
use crate::lexing::roles::Role;
use crate::requirement::requirements::Requirements;
use crate::right::queries::Right;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// One continuation of a symbol in progress, with the places where the cursor may fall.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Continuation {
    /// The accept set that the parser reads; `None` for an ignored lexeme.
    pub(crate) accept: Option<AcceptId>,
    /// The free state after a symbol that ends in the middle.
    pub(crate) free: Option<FreeId>,
    /// Targets of the requirements at which R goes on after a symbol that ends in R, as a bitset.
    pub(crate) targets: Vec<u64>,
    /// Position in R at which that symbol ends.
    pub(crate) end: u32,
}

impl Continuation {
    fn ended((accept, free): (Option<AcceptId>, FreeId)) -> Self {
        Self { accept, free: Some(free), targets: Vec::new(), end: 0 }
    }
}

const UNKNOWN: u32 = u32::MAX;

/// Inputs from which continuations are computed.
pub(super) struct Sources<'a> {
    pub(super) language: &'a Language,
    pub(super) right: &'a Right,
    pub(super) requirements: &'a Requirements,
    pub(super) guards: &'a mut Guards,
}

impl Sources<'_> {
    /// Return whether no guard matches again in R.
    fn guards_hold(&self, guards: GuardId) -> bool {
        self.guards.states(guards).iter().all(|&state| self.right.lookahead.end(state).is_none())
    }

    /// The continuation by which a symbol that the cursor cuts ends in R.
    fn cut(&self, end: u32, accept: AcceptId, side: BracketSide) -> Option<Continuation> {
        let language = self.language;
        let mut targets = vec![0u64; bits::words_for::<u64>(self.requirements.targets().len())];
        let mut add = |node| {
            if let Some(bit) = self.requirements.target(node) {
                bits::insert(&mut targets, bit);
            }
        };
        let role = language.accept_role(accept);
        let read = matches!(role, Role::Symbol | Role::Open | Role::Close)
            || role == Role::Newline && side == BracketSide::Outside;
        if role == Role::Newline && side == BracketSide::Outside {
            for &(_, symbol, node, _) in self.right.symbol_crossings() {
                if language.lexer.lexemes(accept).iter().any(|&lexeme| SymbolId::from(lexeme) == symbol)
                    && self.right.begins_line(node, self.right.line_start(end, true)?.position)
                {
                    add(node);
                }
            }
        } else {
            if role == Role::Join && end as usize == self.right.text().len() {
                return None;
            }
            let mut found = false;
            for node in self.right.nodes_after(end, read.then_some(accept)) {
                add(node);
                found = true;
            }
            if !found {
                return None;
            }
        }
        Some(Continuation { accept: read.then_some(accept), free: None, targets, end })
    }
}

/// Interned continuations, found on demand.
#[derive(Debug)]
pub(super) struct Continuations {
    table: Vec<Arc<[Continuation]>>,
    ids: FxHashMap<Arc<[Continuation]>, ContinuationsId>,
    /// Continuations of a state without guards: `[outside, inside]`.
    plain: [Vec<u32>; 2],
    guarded: FxHashMap<(StateId, GuardId, BracketSide), ContinuationsId>,
    shaped: FxHashMap<(StateId, GuardId, ShapeId, BracketSide), ContinuationsId>,
    /// Ends in R of symbols that the cursor cuts, where the middle must have a shape.
    cuts: Option<Cuts>,
    newline_accepts: Vec<AcceptId>,
}

impl Continuations {
    pub(super) fn new(language: &Language, right: &Right) -> Self {
        let states = language.lexer.state_count();
        let newline = |accept: &AcceptId| language.accept_role(*accept) == Role::Newline;
        Self {
            table: Vec::new(),
            ids: FxHashMap::default(),
            plain: [vec![UNKNOWN; states], vec![UNKNOWN; states]],
            guarded: FxHashMap::default(),
            shaped: FxHashMap::default(),
            cuts: language.shaped.as_ref().map(|shaped| Cuts::new(language, shaped, right)),
            newline_accepts: language.lexer.accept_sets().filter(newline).collect(),
        }
    }

    /// The continuations of a list.
    pub(super) fn get(&self, id: ContinuationsId) -> Arc<[Continuation]> {
        self.table[id.index()].clone()
    }

    /// The continuations of the symbol in progress of a branch.
    pub(super) fn of(&mut self, sources: &mut Sources<'_>, branch: &Branch, side: BracketSide) -> ContinuationsId {
        if self.cuts.is_some() {
            let key = (branch.state, branch.guards, branch.at, side);
            if let Some(&known) = self.shaped.get(&key) {
                return known;
            }
            let continuations = self.shaped(sources, branch, side);
            let id = self.intern(continuations);
            self.shaped.insert(key, id);
            return id;
        }
        if branch.guards == NO_GUARDS && sources.language.free.is_separated() {
            let known = self.plain[side as usize][branch.state.index()];
            if known != UNKNOWN {
                return ContinuationsId(known);
            }
            let continuations = self.plain(sources, branch.state, side);
            let id = self.intern(continuations);
            self.plain[side as usize][branch.state.index()] = id.0;
            return id;
        }
        let key = (branch.state, branch.guards, side);
        if let Some(&known) = self.guarded.get(&key) {
            return known;
        }
        let continuations = self.guarded(sources, branch, side);
        let id = self.intern(continuations);
        self.guarded.insert(key, id);
        id
    }

    /// Intern a list of continuations, in any order.
    pub(super) fn intern(&mut self, mut continuations: Vec<Continuation>) -> ContinuationsId {
        continuations.sort_unstable();
        continuations.dedup();
        let continuations: Arc<[Continuation]> = continuations.into();
        if let Some(&id) = self.ids.get(&continuations) {
            return id;
        }
        let id = ContinuationsId::from_index(self.table.len());
        self.table.push(continuations.clone());
        self.ids.insert(continuations, id);
        id
    }

    /// Continuations of a state where the middle must have a shape.
    fn shaped(&self, sources: &mut Sources<'_>, branch: &Branch, side: BracketSide) -> Vec<Continuation> {
        let language = sources.language;
        let (Some(shaped), Some(shape)) = (&language.shaped, language.free.shape()) else { return Vec::new() };
        let mut ends: Vec<(AcceptId, usize)> = Vec::new();
        let mut ended: Vec<(u32, AcceptId)> = Vec::new();
        if branch.guards == NO_GUARDS {
            ends.extend(shaped.ends(branch.state, branch.at));
            ended.extend(self.ends_in_right(language, branch.state, branch.at));
        } else {
            for (state, guards, inside) in shaped.beside(sources.guards, (branch.state, branch.guards, branch.at)) {
                if guards == NO_GUARDS {
                    ends.extend(shaped.ends(state, inside));
                    ended.extend(self.ends_in_right(language, state, inside));
                    continue;
                }
                if let (true, Some(place)) = (language.lexer.accepts(state), shape.place(inside)) {
                    ends.push((language.lexer.accept(state), place));
                }
                if shape.accepts(inside) && sources.guards_hold(guards) {
                    let end = sources.right.lookahead.end(state);
                    ended.extend(end.or_else(|| ended_comment(language, state)));
                }
            }
            ends.sort_unstable();
            ends.dedup();
            ended.sort_unstable();
            ended.dedup();
        }
        let mut continuations = Vec::new();
        for (accept, place) in ends {
            continuations.extend(self.ended_at(language, accept, side, place).into_iter().map(Continuation::ended));
        }
        continuations.extend(ended.into_iter().filter_map(|(end, accept)| sources.cut(end, accept, side)));
        continuations
    }

    /// Ends in R of a symbol in progress at a place of the shape, if the middle ends in it.
    pub(super) fn ends_in_right(&self, language: &Language, state: StateId, at: ShapeId) -> Vec<(u32, AcceptId)> {
        match (&self.cuts, &language.shaped) {
            (Some(cuts), Some(shaped)) => cuts.reached_from(language, shaped, (state, at)),
            _ => Vec::new(),
        }
    }

    /// Continuations of a state without guards, in a language with separators.
    fn plain(&self, sources: &Sources<'_>, state: StateId, side: BracketSide) -> Vec<Continuation> {
        let language = sources.language;
        let mut continuations = Vec::new();
        for accept in language.lexer.live(state) {
            continuations.extend(self.ended(language, accept, side).into_iter().map(Continuation::ended));
        }
        let reachable = language.lexer.reachable(state).into_iter();
        let mut cuts: Vec<(u32, AcceptId)> = reachable.filter_map(|state| sources.right.lookahead.end(state)).collect();
        cuts.sort_unstable();
        cuts.dedup();
        continuations.extend(cuts.into_iter().filter_map(|(end, accept)| sources.cut(end, accept, side)));
        continuations
    }

    /// Continuations of a state with guards, or in a language without separators, by a walk over the product with the
    /// guards.
    fn guarded(&self, sources: &mut Sources<'_>, branch: &Branch, side: BracketSide) -> Vec<Continuation> {
        let language = sources.language;
        let lexer = &language.lexer;
        let mut continuations = Vec::new();
        let separated = language.free.is_separated();
        let goes_on = |guards| guards != NO_GUARDS || !separated;
        let bytes = lexer.representatives();
        let step = |(), _| Some(());
        for Beside { state, guards, .. } in
            walk_beside(lexer, sources.guards, &bytes, (branch.state, branch.guards, ()), step, goes_on)
        {
            if !goes_on(guards) {
                continuations.extend(self.plain(sources, state, side));
                continue;
            }
            if lexer.accepts(state) {
                let after = sources.guards.with(lexer, guards, state);
                if let Some(boundary) = language.free.at_boundary(sources.guards.states(after)) {
                    for (accept, free) in self.ended(language, lexer.accept(state), side) {
                        let free = if separated { free } else { boundary };
                        continuations.push(Continuation::ended((accept, free)));
                    }
                }
            }
            if let Some((end, accept)) = sources.right.lookahead.end(state)
                && sources.guards_hold(guards)
            {
                continuations.extend(sources.cut(end, accept, side));
            }
        }
        continuations
    }

    /// Accept sets that the parser reads when a symbol ends at a place of the shape, and the free states after them.
    pub(super) fn ended_at(
        &self,
        language: &Language,
        accept: AcceptId,
        side: BracketSide,
        place: usize,
    ) -> Vec<(Option<AcceptId>, FreeId)> {
        let free = &language.free;
        if language.layout.is_none() || language.accept_role(accept) != Role::Comment {
            let ended = self.ended(language, accept, side).into_iter();
            return ended.map(|(accept, kind)| (accept, free.at_place(kind, place))).collect();
        }
        // A comment ends with its line.
        let mut found = Vec::new();
        for &newline in &self.newline_accepts {
            for &lexeme in language.lexer.lexemes(newline) {
                for after in (0..free.count()).map(FreeId::from_index).filter(|&after| free.is_line(after)) {
                    if free.relation(SymbolId::from(lexeme), free.at_place(MIDDLE, place), after) != INFINITE {
                        let inside = FreeId::from_index(after.index() - LINE.index() + MIDDLE.index());
                        found.push(match side {
                            BracketSide::Outside => (Some(newline), after),
                            BracketSide::Inside => (None, inside),
                        });
                    }
                }
            }
        }
        found
    }

    /// Accept sets that the parser reads when a symbol ends inside the middle, and the free state after each.
    fn ended(&self, language: &Language, accept: AcceptId, side: BracketSide) -> Vec<(Option<AcceptId>, FreeId)> {
        let layout = language.layout.is_some();
        match language.accept_role(accept) {
            Role::Symbol | Role::Open | Role::Close => vec![(Some(accept), MIDDLE)],
            Role::Newline if side == BracketSide::Outside => vec![(Some(accept), LINE)],
            // A comment ends with its line.
            Role::Comment if layout && side == BracketSide::Outside => {
                self.newline_accepts.iter().map(|&newline| (Some(newline), LINE)).collect()
            }
            _ => vec![(None, MIDDLE)],
        }
    }
}

/// The end in R of a comment. It may end with the middle, whatever the shape says of line breaks: its line ends in R.
fn ended_comment(language: &Language, state: StateId) -> Option<(u32, AcceptId)> {
    let accept = language.lexer.accept(state);
    let comment = language.layout.is_some() && accept.0 != 0 && language.accept_role(accept) == Role::Comment;
    comment.then_some((0, accept))
}

/// Ends in R of symbols that the cursor cuts, where the middle has its shape.
#[derive(Debug)]
struct Cuts {
    ends: Vec<(u32, AcceptId)>,
    /// Per state of the lexer: its place in the list of cuts.
    of_state: Vec<Option<usize>>,
    /// Cuts that each pair of lexer state and shape state can reach.
    reach: Reach,
}

impl Cuts {
    fn new(language: &Language, shaped: &ShapedLexer, right: &Right) -> Self {
        let end = |state: StateId| right.lookahead.end(state).or_else(|| ended_comment(language, state));
        let end = |state: usize| if state == 0 { None } else { end(StateId::from_index(state)) };
        let own: Vec<Option<(u32, AcceptId)>> = (0..language.lexer.state_count()).map(end).collect();
        let mut ends: Vec<(u32, AcceptId)> = own.iter().flatten().copied().collect();
        ends.sort_unstable();
        ends.dedup();
        let place = |end| ends.binary_search(&end).expect("listed above");
        let of_state = own.into_iter().map(|end| end.map(place)).collect();
        let mut cuts = Self { ends, of_state, reach: Reach::default() };
        cuts.reach = shaped.reach(cuts.ends.len(), |state, inside| cuts.own(language, state, inside));
        cuts
    }

    fn own(&self, language: &Language, state: StateId, inside: ShapeId) -> Option<usize> {
        let shape = language.free.shape().expect("a shaped language has a shape");
        self.of_state[state.index()].filter(|_| shape.accepts(inside))
    }

    fn reached_from(
        &self,
        language: &Language,
        shaped: &ShapedLexer,
        from: (StateId, ShapeId),
    ) -> Vec<(u32, AcceptId)> {
        let own = |state, inside| self.own(language, state, inside);
        shaped.reached(&self.reach, own, from).into_iter().map(|index| self.ends[index]).collect()
    }
}
