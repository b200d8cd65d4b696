//! The free middle: what a text that is still to be chosen can do between two symbols.
//!
//! Viability asks for *some* x. What x can contribute to the parser is a word of lexemes, and which words some text can be
//! lexed as is a regular language; its states are the *free states*. Where symbols can always be kept apart by a
//! separator that is not passed on, every word is possible and one state is enough; a language with indentation has two
//! (`MIDDLE` of a line, `LINE` start), because only at a line's start may layout lexemes come. Without separators the
//! states are the sets of guards that can stand at a boundary between two symbols.
//!
//! Every relation is kept over the (min, +) semiring, in bytes, so that it answers "can it" and "for how little" at once.

use crate::error::{Error, ErrorKind};
use crate::grammar::rules::{END_OF_RULE, Grammar};
use crate::ids::{AcceptId, DotId, FreeId, GuardId, LexemeId, ShapeId, StateId, SymbolId};
use crate::language::shape::Shape;
use crate::lexing::guards::{Guards, NO_GUARDS};
use crate::lexing::layout::Layout;
use crate::lexing::lexer::{DEAD, Lexer, NEVER};
use crate::lexing::roles::Role;
use crate::limits;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// A cost in bytes of middle text, [`INFINITE`] for "impossible".
pub(crate) type Cost = u32;

/// No text does it.
pub(crate) const INFINITE: Cost = u32::MAX;

/// In a line that already has a symbol (and the only state of a language without layout that has separators).
pub(crate) const MIDDLE: FreeId = FreeId(0);

/// At the start of a logical line.
pub(crate) const LINE: FreeId = FreeId(1);

/// Free states of each place in a shape: with layout two, as above.
const KINDS: usize = 2;

/// A symbol in progress at the cursor, reached from a free state: DFA state, guards, least bytes.
#[derive(Debug, Clone, Copy)]
pub struct InProgress {
    /// The DFA state of the symbol in progress.
    pub state: StateId,
    /// The guards that run beside it.
    pub guards: GuardId,
    /// Least bytes from the free state.
    pub cost: Cost,
}

/// Relations over the free states.
#[derive(Debug)]
pub struct Free {
    count: usize,
    /// `relation[symbol * count² + from * count + to]`.
    relation: Vec<Cost>,
    /// The same per dot, for the symbols before it.
    prefix: Vec<Cost>,
    /// Per nonterminal and free state: what completing it there advances, as (dot after, from, cost of what precedes).
    advances: Vec<Vec<(DotId, FreeId, Cost)>>,
    /// Per free state: the dots that may stand where the middle ends there, as (dot, from, cost of what precedes).
    open_dots: Vec<Vec<(DotId, FreeId, Cost)>>,
    /// Per dot: whether a line of its rule can begin after it.
    lines: Vec<bool>,
    lexeme_count: usize,
    /// Per free state: the symbols that may be in progress where the middle ends.
    in_progress: Vec<Vec<InProgress>>,
    /// Per free state: the guards of its boundary (none where separators exist).
    boundary: Vec<GuardId>,
    /// The cost from one free state to another by ignored lexemes alone.
    ignored: Vec<Cost>,
    separated: bool,
    guards: Guards,
    shape: Option<Arc<Shape>>,
    /// Free states of each place in the shape.
    kinds: usize,
}

impl Free {
    /// Derives the free states of a language.
    ///
    /// # Errors
    /// A language with layout whose symbols cannot be kept apart by a blank, or too many guard sets.
    pub fn derive(lexer: &Lexer, grammar: &Grammar, roles: &[Role], layout: Option<Layout>) -> Result<Self, Error> {
        let separators = separators(lexer, grammar, roles, layout.is_some());
        let mut terminals = match (&separators, layout) {
            (Err(lexeme), Some(_)) => {
                let name = grammar.name(SymbolId(lexeme.0));
                return Err(Error::language(format!(
                    "layout needs a blank that ends every lexeme; it does not end {name}"
                )));
            }
            (Err(lexeme), None) if grammar.has_modes() => {
                let name = grammar.name(SymbolId(lexeme.0));
                return Err(Error::language(format!(
                    "modes need a blank that ends every lexeme; it does not end {name}"
                )));
            }
            (Err(_), None) => Terminals::by_guards(lexer, grammar, roles)?,
            (Ok(_), layout) => Terminals::separated(lexer, grammar, roles, layout),
        };
        terminals.close_over_ignored(grammar.lexeme_count());
        Ok(Self::closed(terminals, grammar, separators.is_ok(), layout, None))
    }

    /// Derives the free states of a language for middles of a shape: each is one of those of [`Free::derive`], and a place in
    /// the shape between two characters. Separators are taken to be of the shape wherever they are needed; where the shape
    /// has none, more is held possible than is.
    ///
    /// # Errors
    /// A language without separators, or a shape of too many states.
    pub fn shaped(
        lexer: &Lexer,
        grammar: &Grammar,
        roles: &[Role],
        layout: Option<Layout>,
        shape: Arc<Shape>,
    ) -> Result<Self, Error> {
        if separators(lexer, grammar, roles, layout.is_some()).is_err() {
            let message = "a shape needs a language in which a blank can stand between any two lexemes";
            return Err(Error::new(ErrorKind::Shape, message));
        }
        let places = shape.boundaries().len();
        if places > limits::SHAPE_BOUNDARIES {
            let most = limits::SHAPE_BOUNDARIES;
            let message = format!("the shape has {places} states between characters, more than {most}");
            return Err(Error::new(ErrorKind::Shape, message));
        }
        let words = (lexer.accept_set_count() * places).div_ceil(64);
        let bytes = shape.states().len().saturating_mul(lexer.state_count()).saturating_mul(8 * words);
        if bytes > limits::SHAPE_PRODUCT_BYTES {
            let message = format!(
                "the shape has {} states, which with the language's lexemes take {} MB, more than {}",
                shape.states().len(),
                bytes >> 20,
                limits::SHAPE_PRODUCT_BYTES >> 20
            );
            return Err(Error::new(ErrorKind::Shape, message));
        }
        let mut terminals = Terminals::shaped(lexer, grammar, roles, layout, &shape);
        terminals.close_over_ignored(grammar.lexeme_count());
        Ok(Self::closed(terminals, grammar, true, layout, Some(shape)))
    }

    fn closed(
        terminals: Terminals,
        grammar: &Grammar,
        separated: bool,
        layout: Option<Layout>,
        shape: Option<Arc<Shape>>,
    ) -> Self {
        let count = terminals.count;
        let mut free = Self {
            count,
            relation: vec![INFINITE; grammar.symbol_count() * count * count],
            prefix: vec![INFINITE; grammar.dot_count() * count * count],
            advances: Vec::new(),
            open_dots: Vec::new(),
            lines: vec![false; grammar.dot_count()],
            lexeme_count: grammar.lexeme_count(),
            in_progress: terminals.in_progress,
            boundary: terminals.boundary,
            ignored: terminals.ignored,
            separated,
            guards: terminals.guards,
            shape,
            kinds: if layout.is_some() { KINDS } else { 1 },
        };
        free.relation[..terminals.relation.len()].copy_from_slice(&terminals.relation);
        free.close(grammar);
        if layout.is_some() {
            free.derive_lines(grammar);
        }
        free.derive_advances(grammar);
        free.open_dots = free.states().map(|at| free.derive_open_dots(grammar, at)).collect();
        free
    }

    /// The shape of the middle, if it has to have one.
    #[must_use]
    pub fn shape(&self) -> Option<&Arc<Shape>> {
        self.shape.as_ref()
    }

    /// A free state (one of a language without shapes) at a place of the shape.
    #[inline]
    #[must_use]
    pub fn at_place(&self, kind: FreeId, place: usize) -> FreeId {
        FreeId::from_index(place * self.kinds + kind.index())
    }

    /// Whether a free state is at the start of a logical line, in a language with layout.
    #[inline]
    #[must_use]
    pub fn is_line(&self, state: FreeId) -> bool {
        self.kinds == KINDS && state.index() % KINDS == LINE.index()
    }

    /// Whether the middle has its shape in a free state.
    #[inline]
    #[must_use]
    pub fn may_end(&self, state: FreeId) -> bool {
        self.shape.as_ref().is_none_or(|shape| {
            let place = shape.boundaries().get(state.index() / self.kinds);
            place.is_none_or(|&place| shape.accepts(place))
        })
    }

    /// Least fixpoint of the rules over (min, +).
    fn close(&mut self, grammar: &Grammar) {
        let square = self.count * self.count;
        let identity: Vec<Cost> =
            (0..square).map(|index| if index / self.count == index % self.count { 0 } else { INFINITE }).collect();
        loop {
            let mut changed = false;
            for (index, rule) in grammar.rules().iter().enumerate() {
                let mut product = identity.clone();
                let first = grammar.dot(index, 0).index();
                self.prefix[first * square..(first + 1) * square].copy_from_slice(&product);
                for (position, symbol) in rule.rhs.iter().enumerate() {
                    product = self.multiply(&product, symbol.index());
                    let at = first + position + 1;
                    self.prefix[at * square..(at + 1) * square].copy_from_slice(&product);
                }
                let target = &mut self.relation[rule.lhs.index() * square..(rule.lhs.index() + 1) * square];
                for (old, &new) in target.iter_mut().zip(&product) {
                    if new < *old {
                        *old = new;
                        changed = true;
                    }
                }
            }
            if !changed {
                return;
            }
        }
    }

    fn multiply(&self, left: &[Cost], symbol: usize) -> Vec<Cost> {
        let count = self.count;
        let right = &self.relation[symbol * count * count..(symbol + 1) * count * count];
        let mut product = vec![INFINITE; count * count];
        for from in 0..count {
            for via in 0..count {
                let first = left[from * count + via];
                if first == INFINITE {
                    continue;
                }
                for to in 0..count {
                    let cell = &mut product[from * count + to];
                    *cell = (*cell).min(first.saturating_add(right[via * count + to]));
                }
            }
        }
        product
    }

    fn derive_lines(&mut self, grammar: &Grammar) {
        for (index, rule) in grammar.rules().iter().enumerate() {
            let mut found = false;
            for position in (1..rule.rhs.len()).rev() {
                let dot = grammar.dot(index, position);
                let reached = |to: FreeId| self.states().any(|from| self.prefix(dot, from, to) != INFINITE);
                found |= self.states().any(|to| self.is_line(to) && reached(to));
                self.lines[dot.index()] = found;
            }
        }
    }

    fn derive_advances(&mut self, grammar: &Grammar) {
        self.advances = vec![Vec::new(); grammar.symbol_count() * self.count];
        for symbol in 0..grammar.symbol_count() {
            for at in 0..self.count {
                let at = FreeId::from_index(at);
                self.advances[symbol * self.count + at.index()] =
                    self.free_dots(grammar, SymbolId::from_index(symbol), at);
            }
        }
    }

    /// A rule with nothing before its dot begins at the node itself and is predicted there.
    fn derive_open_dots(&self, grammar: &Grammar, at: FreeId) -> Vec<(DotId, FreeId, Cost)> {
        let mut found = Vec::new();
        for dot in (0..grammar.dot_count()).map(DotId::from_index) {
            if grammar.next(dot) == END_OF_RULE || grammar.position(dot) == 0 {
                continue;
            }
            // The byte that an INDENT costs may be in R, where the cursor cuts the indentation.
            let priced = if grammar.is_after_indent(dot) { DotId(dot.0 - 1) } else { dot };
            for from in self.states() {
                if self.prefix(dot, from, at) != INFINITE {
                    found.push((dot, from, self.prefix(priced, from, at)));
                }
            }
        }
        found
    }

    fn free_dots(&self, grammar: &Grammar, symbol: SymbolId, at: FreeId) -> Vec<(DotId, FreeId, Cost)> {
        let mut found = Vec::new();
        for &dot in grammar.occurrences(symbol) {
            for from in self.states() {
                let cost = self.prefix(dot, from, at);
                if cost != INFINITE {
                    found.push((Grammar::advance(dot), from, cost));
                }
            }
        }
        found
    }

    /// Whether a line of a dot's rule can begin after it (in the middle).
    #[inline]
    #[must_use]
    pub fn crosses_line(&self, dot: DotId) -> bool {
        self.lines[dot.index()]
    }

    /// All free states.
    pub fn states(&self) -> impl Iterator<Item = FreeId> + use<> {
        (0..self.count).map(FreeId::from_index)
    }

    /// The number of free states.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// Least bytes of a text that is derived from the symbol and leads from one free state to another.
    #[inline]
    #[must_use]
    pub fn relation(&self, symbol: SymbolId, from: FreeId, to: FreeId) -> Cost {
        self.relation[(symbol.index() * self.count + from.index()) * self.count + to.index()]
    }

    /// The same for the symbols before a dot.
    #[inline]
    #[must_use]
    pub fn prefix(&self, dot: DotId, from: FreeId, to: FreeId) -> Cost {
        self.prefix[(dot.index() * self.count + from.index()) * self.count + to.index()]
    }

    /// What a symbol advances that was entered from a free state: each dot after it, where its rule began, at what cost.
    #[must_use]
    pub fn advances(&self, symbol: SymbolId, from: FreeId) -> &[(DotId, FreeId, Cost)] {
        &self.advances[symbol.index() * self.count + from.index()]
    }

    /// The dots that may stand where the middle ends in a free state: each dot, where its rule began, at what cost.
    #[must_use]
    pub fn open_dots(&self, at: FreeId) -> &[(DotId, FreeId, Cost)] {
        &self.open_dots[at.index()]
    }

    /// The symbols that may be in progress where the middle ends.
    #[must_use]
    pub fn in_progress(&self, from: FreeId) -> &[InProgress] {
        &self.in_progress[from.index()]
    }

    /// The guards of a free state's boundary.
    #[must_use]
    pub fn boundary(&self, state: FreeId) -> GuardId {
        self.boundary[state.index()]
    }

    /// The free state of a boundary with these guards. Where separators exist, one of them ends every guard.
    #[must_use]
    pub fn at_boundary(&self, states: &[StateId]) -> Option<FreeId> {
        if self.separated {
            return Some(MIDDLE);
        }
        (0..self.boundary.len())
            .find(|&index| self.guards.states(self.boundary[index]) == states)
            .map(FreeId::from_index)
    }

    /// Cost of ignored lexemes from one free state to another.
    #[must_use]
    pub fn ignored(&self, from: FreeId, to: FreeId) -> Cost {
        self.ignored[from.index() * self.count + to.index()]
    }

    /// Whether any two lexemes can be kept apart by a separator.
    #[must_use]
    pub fn is_separated(&self) -> bool {
        self.separated
    }

    /// The guard sets that the boundaries and the symbols in progress refer to.
    #[must_use]
    pub fn guards(&self) -> &Guards {
        &self.guards
    }

    /// The number of lexemes, for callers that iterate over terminals.
    #[must_use]
    pub fn lexeme_count(&self) -> usize {
        self.lexeme_count
    }
}

/// Separator bytes, if they keep any two lexemes apart (with layout: if the space alone does); else a lexeme that none
/// of them ends.
///
/// A byte separates if it alone is an ignored lexeme and no lexeme that may follow it could be swallowed by it. Every
/// accepting state of a lexeme that the parser takes, and of every ignored one, must die on some separator; a comment
/// of a language with layout is ended by the newline, which is a symbol, and is handled where it occurs.
fn separators(lexer: &Lexer, grammar: &Grammar, roles: &[Role], layout: bool) -> Result<Vec<u8>, LexemeId> {
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
    let used = |lexeme: LexemeId| !grammar.occurrences(SymbolId(lexeme.0)).is_empty();
    for state in (1..lexer.state_count()).map(StateId::from_index).filter(|&state| lexer.accepts(state)) {
        let lexemes = lexer.lexemes(lexer.accept(state));
        let role = |lexeme: &LexemeId| roles[lexeme.index()];
        if !lexemes.iter().any(|&lexeme| used(lexeme) || role(&lexeme).is_ignored()) {
            continue;
        }
        // What follows such a lexeme is another mode's text, which is free to begin so that the lexeme was the longest match.
        if lexemes.iter().all(|lexeme| grammar.leads_away(SymbolId(lexeme.0))) {
            continue;
        }
        if lexemes.iter().all(|lexeme| role(lexeme) == Role::Comment || layout && role(lexeme) == Role::Blank) {
            continue;
        }
        let ends = |&byte: &u8| lexer.step(state, byte) == DEAD || blank_like(lexer, state, byte);
        if !candidates.iter().any(ends) {
            return Err(lexemes[0]);
        }
    }
    if candidates.is_empty() { Err(LexemeId(0)) } else { Ok(candidates) }
}

/// Whether a state is one of a separator's own lexeme: another separator goes on with it and changes nothing.
fn blank_like(lexer: &Lexer, state: StateId, byte: u8) -> bool {
    let after = lexer.step(state, byte);
    after != DEAD
        && lexer.accept(after) == lexer.accept(state)
        && lexer.accept(lexer.step(lexer.start(), byte)) == lexer.accept(state)
}

/// The relations of the lexemes, before the rules are closed over them.
struct Terminals {
    count: usize,
    relation: Vec<Cost>,
    ignored: Vec<Cost>,
    in_progress: Vec<Vec<InProgress>>,
    boundary: Vec<GuardId>,
    guards: Guards,
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
    fn separated(lexer: &Lexer, grammar: &Grammar, roles: &[Role], layout: Option<Layout>) -> Self {
        let mut terminals = Self::empty(if layout.is_some() { 2 } else { 1 }, grammar.lexeme_count());
        for accept in lexer.accept_sets() {
            let bytes = lexer.shortest(accept);
            if bytes == NEVER {
                continue;
            }
            for &lexeme in lexer.lexemes(accept) {
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
    fn shaped(lexer: &Lexer, grammar: &Grammar, roles: &[Role], layout: Option<Layout>, shape: &Shape) -> Self {
        let kinds = if layout.is_some() { KINDS } else { 1 };
        let places = shape.boundaries().len();
        let at = |kind: FreeId, place: usize| FreeId::from_index(place * kinds + kind.index());
        // One place more stands for what L holds: R may close what the middle of this shape could not have opened.
        let mut terminals = Self::empty(kinds * (places + 1), grammar.lexeme_count());
        let any = Self::separated(lexer, grammar, roles, layout);
        for lexeme in (0..grammar.lexeme_count()).map(LexemeId::from_index) {
            for from in 0..kinds {
                for to in 0..kinds {
                    let cost = any.relation[(lexeme.index() * kinds + from) * kinds + to];
                    let place = |kind| at(FreeId::from_index(kind), places);
                    terminals.set(lexeme, place(from), place(to), cost);
                }
            }
        }
        for kind in 0..kinds {
            terminals.in_progress[at(FreeId::from_index(kind), places).index()].clone_from(&any.in_progress[kind]);
        }
        for (place, &from) in shape.boundaries().iter().enumerate() {
            let mut in_progress: FxHashMap<StateId, Cost> = FxHashMap::default();
            // One symbol from here, in every mode: where it can end, and what can be in progress where the middle ends.
            let mut seen: FxHashSet<(StateId, ShapeId)> = FxHashSet::default();
            let mut layer: Vec<(StateId, ShapeId)> = lexer.starts().map(|start| (start, from)).collect();
            let mut cost = 0;
            while !layer.is_empty() {
                cost += 1;
                let mut following = Vec::new();
                for (state, inside) in layer {
                    for byte in 0..=255u8 {
                        let target = lexer.step(state, byte);
                        let Some(to) = shape.step(inside, byte).filter(|_| target != DEAD) else { continue };
                        if !seen.insert((target, to)) {
                            continue;
                        }
                        following.push((target, to));
                        if shape.accepts(to) {
                            in_progress.entry(target).or_insert(cost);
                        }
                        let (true, Some(end)) = (lexer.accepts(target), shape.place(to)) else { continue };
                        for &lexeme in lexer.lexemes(lexer.accept(target)) {
                            let ignored = roles[lexeme.index()].is_ignored();
                            if ignored || roles[lexeme.index()] == Role::Newline {
                                // In brackets a line break is ignored, and between lines it ends a blank one.
                                for kind in (0..kinds).map(FreeId::from_index) {
                                    terminals.ignore(at(kind, place), at(kind, end), cost);
                                }
                            }
                            match roles[lexeme.index()] {
                                Role::Newline => terminals.set(lexeme, at(MIDDLE, place), at(LINE, end), cost),
                                _ if ignored => {}
                                _ => {
                                    terminals.set(lexeme, at(MIDDLE, place), at(MIDDLE, end), cost);
                                    if layout.is_some() {
                                        terminals.set(lexeme, at(LINE, place), at(MIDDLE, end), cost);
                                    }
                                }
                            }
                        }
                    }
                }
                layer = following;
            }
            let mut symbols: Vec<InProgress> =
                in_progress.into_iter().map(|(state, cost)| InProgress { state, guards: NO_GUARDS, cost }).collect();
            symbols.sort_by_key(|symbol| symbol.state);
            terminals.in_progress[at(MIDDLE, place).index()].clone_from(&symbols);
            if let Some(layout) = layout {
                terminals.in_progress[at(LINE, place).index()] = symbols;
                terminals.set(layout.indent, at(LINE, place), at(LINE, place), 1);
                terminals.set(layout.dedent, at(LINE, place), at(LINE, place), 0);
            }
        }
        terminals
    }

    /// Without separators: one free state per guard set that can stand at a boundary.
    fn by_guards(lexer: &Lexer, grammar: &Grammar, roles: &[Role]) -> Result<Self, Error> {
        let mut guards = Guards::default();
        let mut boundary = vec![NO_GUARDS];
        let mut walks = Vec::new();
        while walks.len() < boundary.len() {
            let walk = walk(lexer, &mut guards, boundary[walks.len()]);
            for &(_, to, _) in &walk.ends {
                if !boundary.contains(&to) {
                    boundary.push(to);
                }
            }
            walks.push(walk);
            if boundary.len() > limits::FREE_STATES {
                return Err(Error::limit(
                    "guard sets of a language without separators",
                    boundary.len(),
                    limits::FREE_STATES,
                ));
            }
        }
        let mut terminals = Self::empty(boundary.len(), grammar.lexeme_count());
        for (from, walk) in walks.into_iter().enumerate() {
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
            terminals.in_progress[from.index()] = walk.in_progress;
        }
        terminals.boundary = boundary;
        terminals.guards = guards;
        Ok(terminals)
    }

    /// Lets ignored lexemes stand before and after every other.
    fn close_over_ignored(&mut self, lexemes: usize) {
        let count = self.count;
        for via in 0..count {
            for from in 0..count {
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
        for lexeme in 0..lexemes {
            let block = &mut self.relation[lexeme * count * count..(lexeme + 1) * count * count];
            let before = product(&ignored, block, count);
            block.copy_from_slice(&product(&before, &ignored, count));
        }
        let own = self.in_progress.clone();
        for from in 0..count {
            let mut best: FxHashMap<(StateId, GuardId), Cost> = FxHashMap::default();
            for (via, symbols) in own.iter().enumerate() {
                let reach = ignored[from * count + via];
                if reach == INFINITE {
                    continue;
                }
                for symbol in symbols {
                    let cell = best.entry((symbol.state, symbol.guards)).or_insert(INFINITE);
                    *cell = (*cell).min(reach.saturating_add(symbol.cost));
                }
            }
            self.in_progress[from] =
                best.into_iter().map(|((state, guards), cost)| InProgress { state, guards, cost }).collect();
            self.in_progress[from].sort_by_key(|symbol| (symbol.state, symbol.guards));
        }
    }
}

fn product(left: &[Cost], right: &[Cost], count: usize) -> Vec<Cost> {
    let mut result = vec![INFINITE; count * count];
    for from in 0..count {
        for via in 0..count {
            for to in 0..count {
                let sum = left[from * count + via].saturating_add(right[via * count + to]);
                let cell = &mut result[from * count + to];
                *cell = (*cell).min(sum);
            }
        }
    }
    result
}

/// One symbol's walk from a boundary: where it can end, and what can be in progress.
struct Walk {
    ends: Vec<(AcceptId, GuardId, Cost)>,
    in_progress: Vec<InProgress>,
}

fn walk(lexer: &Lexer, guards: &mut Guards, boundary: GuardId) -> Walk {
    let mut seen: FxHashMap<(StateId, GuardId), Cost> = FxHashMap::default();
    let mut layer = vec![(lexer.start(), boundary)];
    let mut ends = Vec::new();
    let mut in_progress = Vec::new();
    let mut cost = 0;
    while !layer.is_empty() {
        cost += 1;
        let mut following = Vec::new();
        for (state, running) in layer {
            for byte in lexer.representatives() {
                let target = lexer.step(state, byte);
                if target == DEAD {
                    continue;
                }
                let Some(stepped) = guards.step(lexer, running, byte) else { continue };
                if seen.contains_key(&(target, stepped)) {
                    continue;
                }
                seen.insert((target, stepped), cost);
                in_progress.push(InProgress { state: target, guards: stepped, cost });
                if lexer.accepts(target) {
                    ends.push((lexer.accept(target), guards.with(lexer, stepped, target), cost));
                }
                following.push((target, stepped));
            }
        }
        layer = following;
    }
    Walk { ends, in_progress }
}
