//! Costs of single lexemes from one free state to another, before the rules are closed over them.

use crate::error::Error;
use crate::grammar::compiled::Grammar;
use crate::ids::{AcceptId, FreeId, GuardId, LexemeId, ShapeId, StateId, SymbolId};
use crate::language::matrices::Pool;
use crate::language::shape::Shape;
use crate::language::shaped::{ShapedLexer, Walked};
use crate::lexing::guards::{Guards, NO_GUARDS};
use crate::lexing::layout::Layout;
use crate::lexing::lexer::{DEAD, Lexer, NEVER};
use crate::lexing::product::{Beside, walk_beside};
use crate::lexing::roles::Role;
use crate::limits;
use rustc_hash::FxHashSet;

pub(crate) use crate::language::matrices::{Cost, INFINITE};

/// In a line that already has a symbol (and the only state of a language without layout that has separators).
pub(crate) const MIDDLE: FreeId = FreeId(0);

/// At the start of a logical line.
pub(crate) const LINE: FreeId = FreeId(1);

/// Free states of each place in a shape: with layout two, [`MIDDLE`] and [`LINE`].
pub(crate) const KINDS: usize = 2;

/// A symbol in progress at the cursor, reached from a free state: DFA state, guards, least bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InProgress {
    /// The DFA state of the symbol in progress.
    pub state: StateId,
    /// The guards that run beside it.
    pub guards: GuardId,
    /// Least bytes from the free state.
    pub cost: Cost,
}

/// Lexemes that only the end of the file can end, in a language with separators. An example is the comment of a last
/// line, where other comments belong to the line breaks after them. No middle goes on after them.
#[derive(Debug, Default)]
pub(crate) struct Lasts(Vec<LexemeId>);

impl Lasts {
    /// Return whether a lexeme is one of them.
    #[must_use]
    pub(crate) fn has(&self, lexeme: LexemeId) -> bool {
        self.0.contains(&lexeme)
    }

    /// All of them.
    #[must_use]
    pub(crate) fn lexemes(&self) -> &[LexemeId] {
        &self.0
    }
}

/// Find out whether separators keep any two lexemes apart (with layout: whether the space alone does). Return the
/// lexemes that separators need not end, because nothing comes after them; otherwise a lexeme that no separator ends.
///
/// A byte separates if it alone is an ignored lexeme and no lexeme that may follow it could swallow it. Every accepting
/// state of a parsed or ignored lexeme must die on some separator. The newline ends a comment of a language with
/// layout; it is a symbol, and is handled where it occurs.
pub(crate) fn separators(lexer: &Lexer, grammar: &Grammar, roles: &[Role], layout: bool) -> Result<Lasts, LexemeId> {
    let ignored = |accept: AcceptId| lexer.lexemes(accept).iter().all(|lexeme| roles[lexeme.index()].is_ignored());
    let only_ignored = |state: StateId| lexer.live(state).all(ignored);
    let candidates: Vec<u8> = (0..=255u8)
        .filter(|&byte| !layout || byte == b' ')
        .filter(|&byte| {
            let state = lexer.step(lexer.start(), byte);
            lexer.accepts(state)
                && ignored(lexer.accept(state))
                && (0..=255u8)
                    .all(|after| lexer.step(state, after) == DEAD || only_ignored(lexer.step(lexer.start(), after)))
        })
        .collect();
    let used = |lexeme: LexemeId| !grammar.occurrences(SymbolId::from(lexeme)).is_empty();
    let begins_ignored = |byte: &u8| lexer.live(lexer.step(lexer.start(), *byte)).any(ignored);
    let ignored_begin: Vec<u8> = (0..=255u8).filter(begins_ignored).collect();
    let is_last = |lexeme: LexemeId| {
        let next = |other| grammar.is_adjacent(SymbolId::from(lexeme), SymbolId::from_index(other));
        used(lexeme) && !layout && !(0..grammar.lexeme_count()).any(next)
    };
    let mut lasts = Lasts::default();
    for state in (1..lexer.state_count()).map(StateId::from_index).filter(|&state| lexer.accepts(state)) {
        let lexemes = lexer.lexemes(lexer.accept(state));
        let role = |lexeme: &LexemeId| roles[lexeme.index()];
        if !lexemes.iter().any(|&lexeme| used(lexeme) || role(&lexeme).is_ignored()) {
            continue;
        }
        // Text of another mode follows such a lexeme. It can begin such that the lexeme is the longest match.
        if lexemes.iter().all(|&lexeme| grammar.leads_away(SymbolId::from(lexeme))) {
            continue;
        }
        if lexemes.iter().all(|lexeme| role(lexeme) == Role::Comment || layout && role(lexeme) == Role::Blank) {
            continue;
        }
        let ends = |&byte: &u8| lexer.step(state, byte) == DEAD || blank_like(lexer, state, byte);
        if !candidates.iter().any(ends) {
            if !lexemes.iter().all(|&lexeme| is_last(lexeme)) || ignored_begin.iter().any(ends) {
                return Err(lexemes[0]);
            }
            lasts.0.extend(lexemes.iter().filter(|lexeme| !lasts.has(**lexeme)).copied().collect::<Vec<_>>());
        }
    }
    let ended = |state: StateId| {
        let of_lasts = lexer.accepts(state) && lexer.lexemes(lexer.accept(state)).iter().any(|&id| lasts.has(id));
        of_lasts && ignored_begin.iter().any(|&byte| lexer.step(state, byte) == DEAD)
    };
    let culprit = (1..lexer.state_count()).map(StateId::from_index).find(|&state| ended(state));
    match culprit {
        Some(state) => Err(lexer.lexemes(lexer.accept(state))[0]),
        None if candidates.is_empty() => Err(LexemeId(0)),
        None => Ok(lasts),
    }
}

/// Return whether a state is one of a separator's own lexeme: another separator extends it and changes nothing.
fn blank_like(lexer: &Lexer, state: StateId, byte: u8) -> bool {
    let after = lexer.step(state, byte);
    after != DEAD
        && lexer.accept(after) == lexer.accept(state)
        && lexer.accept(lexer.step(lexer.start(), byte)) == lexer.accept(state)
}

/// The relations of the lexemes, before the rules are closed over them.
pub(crate) struct Terminals {
    pub(crate) count: usize,
    pub(crate) relation: Vec<Cost>,
    pub(crate) ignored: Vec<Cost>,
    pub(crate) in_progress: Vec<Vec<InProgress>>,
    pub(crate) boundary: Vec<GuardId>,
    pub(crate) guards: Guards,
}

impl Terminals {
    fn empty(count: usize, lexemes: usize) -> Self {
        let mut ignored = vec![INFINITE; count * count];
        for state in 0..count {
            ignored[state * count + state] = 0;
        }
        Self {
            count,
            relation: vec![INFINITE; lexemes * count * count],
            ignored,
            in_progress: vec![Vec::new(); count],
            boundary: vec![NO_GUARDS; count],
            guards: Guards::default(),
        }
    }

    fn set(&mut self, lexeme: LexemeId, from: FreeId, to: FreeId, cost: Cost) {
        let cell = &mut self.relation[(lexeme.index() * self.count + from.index()) * self.count + to.index()];
        *cell = (*cell).min(cost);
    }

    fn ignore(&mut self, from: FreeId, to: FreeId, cost: Cost) {
        let cell = &mut self.ignored[from.index() * self.count + to.index()];
        *cell = (*cell).min(cost);
    }

    /// With separators: any lexeme may follow any other.
    pub(crate) fn separated(
        lexer: &Lexer,
        grammar: &Grammar,
        roles: &[Role],
        layout: Option<Layout>,
        lasts: &Lasts,
    ) -> Self {
        let mut terminals = Self::empty(if layout.is_some() { 2 } else { 1 }, grammar.lexeme_count());
        for accept in lexer.accept_sets() {
            let bytes = lexer.shortest(accept);
            if bytes == NEVER {
                continue;
            }
            for &lexeme in lexer.lexemes(accept).iter().filter(|&&lexeme| !lasts.has(lexeme)) {
                match roles[lexeme.index()] {
                    Role::Newline => terminals.set(lexeme, MIDDLE, LINE, bytes.into()),
                    role if role.is_ignored() => {}
                    _ => {
                        terminals.set(lexeme, MIDDLE, MIDDLE, bytes.into());
                        if layout.is_some() {
                            terminals.set(lexeme, LINE, MIDDLE, bytes.into());
                        }
                    }
                }
            }
        }
        if let Some(layout) = layout {
            terminals.set(layout.indent, LINE, LINE, 1);
            terminals.set(layout.dedent, LINE, LINE, 0);
        }
        let symbols: Vec<InProgress> = (1..lexer.state_count())
            .map(StateId::from_index)
            .filter(|&state| !lexer.is_start(state) && lexer.depth(state) != NEVER)
            .map(|state| InProgress { state, guards: NO_GUARDS, cost: lexer.depth(state).into() })
            .collect();
        terminals.in_progress = vec![symbols; terminals.count];
        terminals
    }

    /// With separators, for middles of a shape.
    pub(crate) fn shaped(
        lexer: &Lexer,
        grammar: &Grammar,
        roles: &[Role],
        layout: Option<Layout>,
        lasts: &Lasts,
        (shape, shaped): (&Shape, &ShapedLexer),
    ) -> Self {
        let kinds = if layout.is_some() { KINDS } else { 1 };
        let places = shape.boundaries().len();
        // One place more stands for what L holds: R may close what the middle of this shape could not have opened.
        let mut terminals = Self::empty(kinds * (places + 1), grammar.lexeme_count());
        terminals.put_at(places, kinds, &Self::separated(lexer, grammar, roles, layout, lasts));
        let mut seen = Walked::default();
        for (place, &from) in shape.boundaries().iter().enumerate() {
            let at = |kind: FreeId, place: usize| FreeId::from_index(place * kinds + kind.index());
            // One symbol from here: where it can end.
            let symbols = walk_in_shape(lexer, (shape, shaped), from, &mut seen, |accept, end, cost| {
                for &lexeme in lexer.lexemes(accept).iter().filter(|&&lexeme| !lasts.has(lexeme)) {
                    let role = roles[lexeme.index()];
                    if role.is_ignored() || role == Role::Newline {
                        // In brackets a line break is ignored, and between lines it ends a blank one.
                        for kind in (0..kinds).map(FreeId::from_index) {
                            terminals.ignore(at(kind, place), at(kind, end), cost);
                        }
                    }
                    match role {
                        Role::Newline => terminals.set(lexeme, at(MIDDLE, place), at(LINE, end), cost),
                        _ if role.is_ignored() => {}
                        _ => {
                            terminals.set(lexeme, at(MIDDLE, place), at(MIDDLE, end), cost);
                            if layout.is_some() {
                                terminals.set(lexeme, at(LINE, place), at(MIDDLE, end), cost);
                            }
                        }
                    }
                }
            });
            terminals.in_progress[at(MIDDLE, place).index()].clone_from(&symbols);
            if let Some(layout) = layout {
                terminals.in_progress[at(LINE, place).index()] = symbols;
                terminals.set(layout.indent, at(LINE, place), at(LINE, place), 1);
                terminals.set(layout.dedent, at(LINE, place), at(LINE, place), 0);
            }
        }
        terminals
    }

    /// Put the relations of middles without a shape at a place of one.
    fn put_at(&mut self, place: usize, kinds: usize, any: &Self) {
        let at = |kind: usize| FreeId::from_index(place * kinds + kind);
        for (index, &cost) in any.relation.iter().enumerate() {
            let (lexeme, from, to) = (index / (kinds * kinds), index / kinds % kinds, index % kinds);
            self.set(LexemeId::from_index(lexeme), at(from), at(to), cost);
        }
        for (kind, symbols) in any.in_progress.iter().enumerate() {
            self.in_progress[at(kind).index()].clone_from(symbols);
        }
    }

    /// Without separators: one free state per guard set that can stand at a boundary. `culprit` is the lexeme that no
    /// separator ends, for the message that there are too many.
    pub(crate) fn by_guards(
        lexer: &Lexer,
        grammar: &Grammar,
        roles: &[Role],
        culprit: LexemeId,
    ) -> Result<Self, Error> {
        let culprit = grammar.name(SymbolId::from(culprit));
        let mut guards = Guards::default();
        let mut boundary = vec![NO_GUARDS];
        let mut walks = Vec::new();
        // The symbols at the first byte of a file. Only the rules of whole files hold them.
        let begun = lexer.file_start().map(|state| {
            let mut begun = walk(lexer, &mut guards, (state, NO_GUARDS));
            begun.in_progress.push(InProgress { state, guards: NO_GUARDS, cost: 0 });
            begun.ends.push((lexer.accept(state), guards.with(lexer, NO_GUARDS, state), 0));
            boundary.extend(begun.ends.iter().map(|end| end.1));
            begun
        });
        boundary.sort_unstable();
        boundary.dedup();
        while walks.len() < boundary.len() {
            let walk = walk(lexer, &mut guards, (lexer.start(), boundary[walks.len()]));
            for &(_, to, _) in &walk.ends {
                if !boundary.contains(&to) {
                    boundary.push(to);
                }
            }
            walks.push(walk);
            if boundary.len() > limits::FREE_STATES {
                let what = format!("guard sets of a language in which no blank ends {culprit}");
                return Err(Error::limit(&what, boundary.len(), limits::FREE_STATES));
            }
        }
        let work = grammar.dot_count() * boundary.len().pow(3);
        if work > limits::FREE_WORK {
            let what =
                format!("rules, times the cube of the guard sets, of a language in which no blank ends {culprit}");
            return Err(Error::limit(&what, work, limits::FREE_WORK));
        }
        let mut terminals = Self::empty(boundary.len(), grammar.lexeme_count());
        for (from, walk) in walks.into_iter().enumerate().chain(begun.map(|begun| (0, begun))) {
            let from = FreeId::from_index(from);
            for (accept, to, cost) in walk.ends {
                let to = FreeId::from_index(boundary.iter().position(|&guards| guards == to).expect("listed above"));
                for &lexeme in lexer.lexemes(accept) {
                    if roles[lexeme.index()].is_ignored() {
                        let cell = &mut terminals.ignored[from.index() * terminals.count + to.index()];
                        *cell = (*cell).min(cost);
                    } else {
                        terminals.set(lexeme, from, to, cost);
                    }
                }
            }
            terminals.in_progress[from.index()].extend(walk.in_progress);
        }
        terminals.boundary = boundary;
        terminals.guards = guards;
        Ok(terminals)
    }

    /// Let ignored lexemes stand before and after every other.
    pub(crate) fn close_over_ignored(&mut self, lexemes: usize) {
        let count = self.count;
        for via in 0..count {
            for from in 0..count {
                if self.ignored[from * count + via] == INFINITE {
                    continue;
                }
                for to in 0..count {
                    let through = self.ignored[from * count + via].saturating_add(self.ignored[via * count + to]);
                    let cell = &mut self.ignored[from * count + to];
                    *cell = (*cell).min(through);
                }
            }
        }
        if count == 1
            || self.ignored.iter().enumerate().all(|(index, &cost)| cost == INFINITE || index / count == index % count)
        {
            return;
        }
        let ignored = self.ignored.clone();
        let mut pool = Pool::<Cost>::new(count);
        let around = pool.of_costs(&ignored);
        for lexeme in 0..lexemes {
            let block = &mut self.relation[lexeme * count * count..(lexeme + 1) * count * count];
            let own = pool.of_costs(block);
            let before = pool.product(around, own);
            let after = pool.product(before, around);
            block.iter_mut().zip(pool.costs(after)).for_each(|(cell, cost)| *cell = cost);
        }
        self.progress_over(&ignored);
    }

    /// Let ignored lexemes stand before the symbols in progress.
    fn progress_over(&mut self, ignored: &[Cost]) {
        let mut symbols: Vec<(StateId, GuardId)> =
            self.in_progress.iter().flatten().map(|symbol| (symbol.state, symbol.guards)).collect();
        symbols.sort_unstable();
        symbols.dedup();
        let place = |symbol: &InProgress| {
            let place = symbols.binary_search(&(symbol.state, symbol.guards)).expect("listed above");
            (place, symbol.cost)
        };
        let own: Vec<Vec<(usize, Cost)>> =
            self.in_progress.iter().map(|symbols| symbols.iter().map(place).collect()).collect();
        for (from, in_progress) in self.in_progress.iter_mut().enumerate() {
            let mut best = vec![INFINITE; symbols.len()];
            for (symbols, &reach) in own.iter().zip(&ignored[from * self.count..]) {
                for &(symbol, cost) in symbols.iter().filter(|_| reach != INFINITE) {
                    best[symbol] = best[symbol].min(reach.saturating_add(cost));
                }
            }
            let found = symbols.iter().zip(best).filter(|&(_, cost)| cost != INFINITE);
            *in_progress = found.map(|(&(state, guards), cost)| InProgress { state, guards, cost }).collect();
        }
    }
}

/// Ends of one symbol that begins at a boundary, and symbols that can be in progress.
struct Walk {
    ends: Vec<(AcceptId, GuardId, Cost)>,
    in_progress: Vec<InProgress>,
}

fn walk(lexer: &Lexer, guards: &mut Guards, (state, boundary): (StateId, GuardId)) -> Walk {
    let from = (state, boundary, ());
    let found = walk_beside(lexer, guards, &lexer.representatives(), from, |(), _| Some(()), |_| true);
    let mut ends = Vec::new();
    let mut in_progress = Vec::new();
    for Beside { state, guards: running, bytes: cost, .. } in found.into_iter().skip(1) {
        in_progress.push(InProgress { state, guards: running, cost });
        if lexer.accepts(state) {
            ends.push((lexer.accept(state), guards.with(lexer, running, state), cost));
        }
    }
    Walk { ends, in_progress }
}

/// Walk one symbol through a shape from a state of it, in every mode. `end` gets each end: accept set, place of the
/// shape and least bytes. Return the symbols that can be in progress where a middle has its shape.
fn walk_in_shape(
    lexer: &Lexer,
    (shape, shaped): (&Shape, &ShapedLexer),
    from: ShapeId,
    seen: &mut Walked,
    mut end: impl FnMut(AcceptId, usize, Cost),
) -> Vec<InProgress> {
    let mut in_progress = vec![INFINITE; lexer.state_count()];
    let mut ended: FxHashSet<(AcceptId, usize)> = FxHashSet::default();
    shaped.walk(from, seen, |state, inside, cost| {
        if shape.accepts(inside) {
            let cell = &mut in_progress[state.index()];
            *cell = (*cell).min(cost);
        }
        if let (true, Some(place)) = (lexer.accepts(state), shape.place(inside)) {
            // The walk visits the nearest pairs first.
            if ended.insert((lexer.accept(state), place)) {
                end(lexer.accept(state), place, cost);
            }
        }
    });
    let found = in_progress.into_iter().enumerate().filter(|&(_, cost)| cost != INFINITE);
    found.map(|(state, cost)| InProgress { state: StateId::from_index(state), guards: NO_GUARDS, cost }).collect()
}
