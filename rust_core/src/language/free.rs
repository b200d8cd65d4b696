//! Free middle: the effect of a text that is still to be chosen, between two symbols.
//!
//! Viability asks for *some* x. To the parser, x is a word of lexemes, and the words that some text can be lexed as
//! form a regular language. Its states are the *free states*. Where a separator that is not passed on can keep any two
//! symbols apart, every word is possible and one state is enough. A language with indentation has two (`MIDDLE` of a
//! line, `LINE` start), because layout lexemes come only at a line's start. Without separators the states are the sets
//! of guards that can stand at a boundary between two symbols.
//!
//! Every relation is kept over the (min, +) semiring, in bytes, so that it answers both whether a text exists and how
//! short it is.

use crate::error::{Error, ErrorKind};
use crate::grammar::compiled::Grammar;
use crate::grammar::rules::END_OF_RULE;
use crate::ids::{AcceptId, DotId, FreeId, GuardId, StateId, SymbolId};
use crate::language::closing::{Relations, close};
use crate::language::prices::Prices;
use crate::language::shape::Shape;
use crate::language::shaped::ShapedLexer;
use crate::language::terminals::{KINDS, Lasts, Terminals, separators};
use crate::lexing::guards::Guards;
use crate::lexing::layout::Layout;
use crate::lexing::lexer::Lexer;
use crate::lexing::roles::Role;
use crate::limits;
use std::sync::{Arc, OnceLock};

pub(crate) use crate::language::terminals::{Cost, INFINITE, InProgress, LINE, MIDDLE};

/// Dots, each with its rule's origin and the cost of the symbols before it.
type Dots = Box<[(DotId, FreeId, Cost)]>;

/// Relations over the free states.
#[derive(Debug)]
pub(crate) struct Free {
    count: usize,
    /// Costs of symbols, and of the prefixes of dots, between free states.
    relations: Relations,
    /// States with finer costs; absent for middles of a shape, and without separators.
    prices: Option<Prices>,
    /// Per symbol and free state, on demand: the items that completing it advances, as (dot after, from, cost of the
    /// prefix).
    advances: Vec<OnceLock<Dots>>,
    /// Per dot: whether a line of its rule can begin after it.
    lines: Vec<bool>,
    /// Per free state: the symbols that may be in progress where the middle ends.
    in_progress: Vec<Vec<InProgress>>,
    /// Per free state: the guards of its boundary (none where separators exist).
    boundary: Vec<GuardId>,
    /// The cost from one free state to another by ignored lexemes alone.
    ignored: Vec<Cost>,
    separated: bool,
    lasts: Lasts,
    guards: Guards,
    shape: Option<Arc<Shape>>,
    /// Free states of each place in the shape.
    kinds: usize,
}

impl Free {
    /// Derive the free states of a language.
    ///
    /// # Errors
    /// A language with layout whose symbols cannot be kept apart by a blank, or too many guard sets.
    pub(crate) fn derive(
        lexer: &Lexer,
        grammar: &Grammar,
        roles: &[Role],
        layout: Option<Layout>,
    ) -> Result<Self, Error> {
        let separators = separators(lexer, grammar, roles, layout.is_some());
        let mut terminals = match (&separators, layout) {
            (Err(lexeme), Some(_)) => {
                let name = grammar.name(SymbolId::from(*lexeme));
                return Err(Error::language(format!(
                    "layout needs a blank that ends every lexeme; it does not end {name}"
                )));
            }
            (Err(lexeme), None) if grammar.has_modes() => {
                let name = grammar.name(SymbolId::from(*lexeme));
                return Err(Error::language(format!(
                    "modes need a blank that ends every lexeme; it does not end {name}"
                )));
            }
            (Err(lexeme), None) => Terminals::by_guards(lexer, grammar, roles, *lexeme)?,
            (Ok(lasts), layout) => Terminals::separated(lexer, grammar, roles, layout, lasts),
        };
        terminals.close_over_ignored(grammar.lexeme_count());
        let prices = separators.as_ref().ok().map(|lasts| Prices::derive(lexer, grammar, roles, layout, lasts));
        Ok(Self::closed(terminals, grammar, separators.ok(), layout, None, prices))
    }

    /// Derive the free states of a language for middles of a shape: each pairs one of [`Free::derive`] with a place in
    /// the shape between two characters. The lexer beside the shape is derived as well. Separators are assumed to fit
    /// the shape wherever they are needed; where the shape has none, this overestimates what is possible.
    ///
    /// # Errors
    /// A language without separators, or a shape of too many states.
    pub(crate) fn shaped(
        lexer: &Arc<Lexer>,
        grammar: &Grammar,
        roles: &[Role],
        layout: Option<Layout>,
        shape: Arc<Shape>,
    ) -> Result<(Self, ShapedLexer), Error> {
        let Ok(lasts) = separators(lexer, grammar, roles, layout.is_some()) else {
            let message = "a shape needs a language in which a blank can stand between any two lexemes";
            return Err(Error::new(ErrorKind::Shape, message));
        };
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
        let shaped = ShapedLexer::new(lexer, &shape);
        let mut terminals = Terminals::shaped(lexer, grammar, roles, layout, &lasts, (&shape, &shaped));
        terminals.close_over_ignored(grammar.lexeme_count());
        Ok((Self::closed(terminals, grammar, Some(lasts), layout, Some(shape), None), shaped))
    }

    fn closed(
        terminals: Terminals,
        grammar: &Grammar,
        separated: Option<Lasts>,
        layout: Option<Layout>,
        shape: Option<Arc<Shape>>,
        prices: Option<Prices>,
    ) -> Self {
        let count = terminals.count;
        let relations = match &prices {
            Some(prices) => prices.over_free(count),
            None => close(&terminals.relation, grammar, count),
        };
        let mut free = Self {
            count,
            relations,
            prices,
            advances: vec![OnceLock::new(); grammar.symbol_count() * count],
            lines: vec![false; grammar.dot_count()],
            in_progress: terminals.in_progress,
            boundary: terminals.boundary,
            ignored: terminals.ignored,
            separated: separated.is_some(),
            lasts: separated.unwrap_or_default(),
            guards: terminals.guards,
            shape,
            kinds: if layout.is_some() { KINDS } else { 1 },
        };
        if layout.is_some() {
            free.derive_lines(grammar);
        }
        free
    }

    /// The lexemes after which no middle goes on.
    #[must_use]
    pub(crate) fn lasts(&self) -> &Lasts {
        &self.lasts
    }

    /// The shape of the middle, if it has to have one.
    #[must_use]
    pub(crate) fn shape(&self) -> Option<&Arc<Shape>> {
        self.shape.as_ref()
    }

    /// A free state (one of a language without shapes) at a place of the shape.
    #[inline]
    #[must_use]
    pub(crate) fn at_place(&self, kind: FreeId, place: usize) -> FreeId {
        FreeId::from_index(place * self.kinds + kind.index())
    }

    /// Return whether a free state is at the start of a logical line, in a language with layout.
    #[inline]
    #[must_use]
    pub(crate) fn is_line(&self, state: FreeId) -> bool {
        self.kinds == KINDS && state.index() % KINDS == LINE.index()
    }

    /// Return whether the middle has its shape in a free state.
    #[inline]
    #[must_use]
    pub(crate) fn may_end(&self, state: FreeId) -> bool {
        self.shape.as_ref().is_none_or(|shape| {
            let place = shape.boundaries().get(state.index() / self.kinds);
            place.is_none_or(|&place| shape.accepts(place))
        })
    }

    fn derive_lines(&mut self, grammar: &Grammar) {
        // Keyed by the prefix class, which most dots share with others.
        let mut known: Vec<Option<bool>> = vec![None; self.relations.matrix_count()];
        for (index, rule) in grammar.rules().iter().enumerate() {
            let mut found = false;
            for position in (1..rule.rhs.len()).rev() {
                let dot = grammar.dot(index, position);
                let known = &mut known[self.prefix_class(dot) as usize];
                found |= *known.get_or_insert_with(|| {
                    let reached = |to: FreeId| self.states().any(|from| self.prefix(dot, from, to) != INFINITE);
                    self.states().any(|to| self.is_line(to) && reached(to))
                });
                self.lines[dot.index()] = found;
            }
        }
    }

    fn free_dots(&self, grammar: &Grammar, symbol: SymbolId, at: FreeId) -> Dots {
        let mut found = Vec::new();
        for &dot in grammar.occurrences(symbol) {
            for from in self.states() {
                let cost = self.prefix(dot, from, at);
                if cost != INFINITE {
                    found.push((Grammar::advance(dot), from, cost));
                }
            }
        }
        found.into()
    }

    /// Return whether a line of a dot's rule can begin after it (in the middle).
    #[inline]
    #[must_use]
    pub(crate) fn crosses_line(&self, dot: DotId) -> bool {
        self.lines[dot.index()]
    }

    /// All free states.
    pub(crate) fn states(&self) -> impl Iterator<Item = FreeId> + use<> {
        (0..self.count).map(FreeId::from_index)
    }

    /// The number of free states.
    #[must_use]
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Least bytes of a text that is derived from the symbol and leads from one free state to another.
    #[inline]
    #[must_use]
    pub(crate) fn relation(&self, symbol: SymbolId, from: FreeId, to: FreeId) -> Cost {
        self.relations.symbol(symbol, from.index(), to.index())
    }

    /// Number of priced states: the free states, and some more.
    #[must_use]
    pub(crate) fn priced_count(&self) -> usize {
        self.prices.as_ref().map_or(self.count, |prices| prices.count)
    }

    /// The priced states, the free states first.
    pub(crate) fn priced_states(&self) -> impl Iterator<Item = FreeId> + use<> {
        (0..self.priced_count()).map(FreeId::from_index)
    }

    /// The priced states of a free state.
    pub(crate) fn priced_as(&self, free: FreeId) -> impl Iterator<Item = FreeId> + '_ {
        let finer = self.prices.iter().flat_map(move |prices| prices.states_of(free));
        finer.chain(self.prices.is_none().then_some(free))
    }

    /// [`Free::relation`] between priced states.
    #[inline]
    #[must_use]
    pub(crate) fn price(&self, symbol: SymbolId, from: FreeId, to: FreeId) -> Cost {
        match &self.prices {
            Some(prices) => prices.relations.symbol(symbol, from.index(), to.index()),
            None => self.relation(symbol, from, to),
        }
    }

    /// The bytes that the price of the symbol after a dot leaves out if the symbol has a text of so many bytes: at least
    /// so many more are written.
    #[must_use]
    pub(crate) fn missing(&self, grammar: &Grammar, dot: DotId, bytes: Cost) -> Cost {
        let Some(prices) = &self.prices else { return 0 };
        let states = || 0..prices.count;
        let reached = |at: usize| states().any(|from| prices.relations.prefix(dot, from, at) != INFINITE);
        let symbol = grammar.next(dot);
        let costs = states().filter(|&at| reached(at)).flat_map(|from| {
            states().map(move |to| prices.relations.symbol(symbol, from, to)).filter(|&cost| cost != INFINITE)
        });
        costs.max().map_or(0, |cost| bytes.saturating_sub(cost))
    }

    /// Return whether a line that begins in a state still needs its indentation.
    #[inline]
    #[must_use]
    pub(crate) fn pays_indentation(&self, from: FreeId) -> bool {
        from.index() < self.count && self.is_line(from)
    }

    /// Return whether the blanks of a line that begins in a state are written.
    #[inline]
    #[must_use]
    pub(crate) fn is_written(&self, from: FreeId) -> bool {
        self.prices.as_ref().is_some_and(|prices| prices.is_written(from))
    }

    /// The start of a line whose blanks are written; `None` where prices do not distinguish it.
    #[must_use]
    pub(crate) fn written(&self) -> Option<FreeId> {
        self.prices.as_ref().and_then(Prices::written)
    }

    /// The priced state of a free state that the middle reaches `finish` bytes after a state of the lexer, by a symbol
    /// that has been read then.
    #[must_use]
    pub(crate) fn priced_after(&self, free: FreeId, state: StateId, accept: Option<AcceptId>, finish: Cost) -> FreeId {
        match (&self.prices, accept) {
            (Some(prices), Some(accept)) if free == MIDDLE => prices.after(state, accept, finish),
            _ => free,
        }
    }

    /// Least bytes of a text that is derived from the symbols before a dot and leads from one free state to another.
    #[inline]
    #[must_use]
    pub(crate) fn prefix(&self, dot: DotId, from: FreeId, to: FreeId) -> Cost {
        self.relations.prefix(dot, from.index(), to.index())
    }

    /// Items that a symbol entered from a free state advances: each dot after it, its rule's origin, and the cost.
    #[must_use]
    pub(crate) fn advances(&self, grammar: &Grammar, symbol: SymbolId, from: FreeId) -> &[(DotId, FreeId, Cost)] {
        let known = &self.advances[symbol.index() * self.count + from.index()];
        known.get_or_init(|| self.free_dots(grammar, symbol, from))
    }

    /// The dots that may stand where the middle ends, each with the dot whose prefix it costs. A rule with nothing
    /// before its dot begins in R and is predicted there.
    pub(crate) fn open_dots(grammar: &Grammar) -> impl Iterator<Item = (DotId, DotId)> + use<'_> {
        let dots = (0..grammar.dot_count()).map(DotId::from_index);
        let open = dots.filter(|&dot| grammar.next(dot) != END_OF_RULE && grammar.position(dot) > 0);
        // The byte that an INDENT costs may be in R, where the cursor cuts the indentation.
        open.map(|dot| (dot, if grammar.is_after_indent(dot) { DotId(dot.0 - 1) } else { dot }))
    }

    /// A number shared by dots whose prefixes cost the same.
    pub(crate) fn prefix_class(&self, dot: DotId) -> u32 {
        self.relations.prefix_class(dot)
    }

    /// The symbols that may be in progress where the middle ends.
    #[must_use]
    pub(crate) fn in_progress(&self, from: FreeId) -> &[InProgress] {
        &self.in_progress[from.index()]
    }

    /// The guards of a free state's boundary.
    #[must_use]
    pub(crate) fn boundary(&self, state: FreeId) -> GuardId {
        self.boundary[state.index()]
    }

    /// The free state of a boundary with these guards. Where separators exist, one of them ends every guard.
    #[must_use]
    pub(crate) fn at_boundary(&self, states: &[StateId]) -> Option<FreeId> {
        if self.separated {
            return Some(MIDDLE);
        }
        (0..self.boundary.len())
            .find(|&index| self.guards.states(self.boundary[index]) == states)
            .map(FreeId::from_index)
    }

    /// Cost of ignored lexemes from one free state to another.
    #[must_use]
    pub(crate) fn ignored(&self, from: FreeId, to: FreeId) -> Cost {
        self.ignored[from.index() * self.count + to.index()]
    }

    /// Return whether a separator can keep any two lexemes apart.
    #[must_use]
    pub(crate) fn is_separated(&self) -> bool {
        self.separated
    }

    /// The guard sets that the boundaries and the symbols in progress refer to.
    #[must_use]
    pub(crate) fn guards(&self) -> &Guards {
        &self.guards
    }
}
