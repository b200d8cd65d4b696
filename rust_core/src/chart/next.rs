//! What a set of the left chart allows next where its stack is loose (see `follow`): the accept sets that can be read, and
//! the free states from which the middle can go on. Interned, since most sets of one kind of place allow the same.

use crate::bits::numbers as bits;
use crate::chart::left::{FIRST_SET, LeftChart};
use crate::chart::predict::{PredictionId, Predictions};
use crate::grammar::rules::{END_OF_RULE, Grammar};
use crate::ids::{AcceptId, DotId, SetId, SymbolId};
use crate::language::definition::Language;
use crate::language::follow::bit;
use crate::language::free::{LINE, MIDDLE};
use crate::lexing::roles::Role;
use rustc_hash::FxHashMap;

/// An interned [`Next`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NextId(pub u32);

const UNKNOWN: NextId = NextId(u32::MAX);

/// What may come next.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Next {
    /// The free states from which the middle can go on.
    pub free: u64,
    /// The accept sets that can be read or ignored outside of brackets, as a mask.
    pub outside: Box<[u64]>,
    /// The same inside.
    pub inside: Box<[u64]>,
}

impl Next {
    /// Whether one of some accept sets can come.
    #[inline(always)]
    #[must_use]
    pub(crate) fn takes(&self, outside: bool, accepts: &[u64]) -> bool {
        let own = if outside { &self.outside } else { &self.inside };
        own.iter().zip(accepts).any(|(one, other)| one & other != 0)
    }
}

/// Words of a mask over accept sets that fit an [`Ahead`]; languages with more accept sets do without.
pub(crate) const AHEAD_WORDS: usize = 4;

/// What a set allows next, before anything else is made of it: a union over its items.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ahead {
    /// The accept sets that can be read, as a mask.
    pub readable: [u64; AHEAD_WORDS],
    /// The free states from which the middle can go on.
    pub free: u64,
    /// The modes of the lexemes that can come, as a mask.
    pub modes: u64,
}

impl Ahead {
    /// Adds what another allows.
    #[inline(always)]
    pub fn add(&mut self, other: &Self) {
        for (word, more) in self.readable.iter_mut().zip(other.readable) {
            *word |= more;
        }
        self.free |= other.free;
        self.modes |= other.modes;
    }
}

/// What each dot of a grammar allows next.
#[derive(Debug, Default)]
pub struct Aheads {
    of_dot: Vec<Ahead>,
    /// Accept sets that are ignored, and newlines (see [`Nexts`]).
    ignored: [[u64; AHEAD_WORDS]; 2],
    comments: [u64; AHEAD_WORDS],
    newlines: [u64; AHEAD_WORDS],
}

impl Aheads {
    /// Derives them; none if there are too many accept sets.
    #[must_use]
    pub fn derive(language: &Language) -> Self {
        let nexts = Nexts::new(language);
        if nexts.words > AHEAD_WORDS {
            return Self::default();
        }
        let wide = |mask: &[u64]| {
            let mut words = [0; AHEAD_WORDS];
            words[..mask.len()].copy_from_slice(mask);
            words
        };
        let grammar = &language.grammar;
        let of_lexeme_dot = |dot: DotId| {
            let mut readable = vec![0u64; nexts.words];
            nexts.add(language, dot, &mut readable);
            let modes = 1 << grammar.mode_of(grammar.next(dot)).index();
            Ahead { readable: wide(&readable), free: 0, modes }
        };
        // What a nonterminal predicts: the lexemes that its own rules and those of its closure begin with.
        let mut of_nonterminal = vec![Ahead::default(); grammar.symbol_count()];
        for lexeme in (0..grammar.lexeme_count()).map(SymbolId::from_index) {
            for &dot in grammar.initial(lexeme) {
                of_nonterminal[grammar.lhs(dot).index()].add(&of_lexeme_dot(dot));
            }
        }
        let own = of_nonterminal.clone();
        for nonterminal in (grammar.lexeme_count()..grammar.symbol_count()).map(SymbolId::from_index) {
            for index in bits(grammar.closure(nonterminal)) {
                of_nonterminal[nonterminal.index()].add(&own[index + grammar.lexeme_count()]);
            }
        }
        let of_dot = (0..grammar.dot_count()).map(DotId::from_index).map(|dot| {
            let next = grammar.next(dot);
            let mut ahead = if next == END_OF_RULE {
                Ahead::default()
            } else if grammar.is_lexeme(next) {
                of_lexeme_dot(dot)
            } else {
                of_nonterminal[next.index()]
            };
            ahead.free = language.follow.before(dot);
            ahead
        });
        Self {
            of_dot: of_dot.collect(),
            ignored: [wide(&nexts.ignored[0]), wide(&nexts.ignored[1])],
            comments: wide(&nexts.comments),
            newlines: wide(&nexts.newlines),
        }
    }

    /// Whether there are any.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.of_dot.is_empty()
    }

    /// What a dot that is not at its rule's end allows next.
    #[inline(always)]
    #[must_use]
    pub fn of(&self, dot: DotId) -> &Ahead {
        &self.of_dot[dot.index()]
    }

    /// The accept sets that can be read or ignored, as a mask (see [`Next`]).
    #[inline]
    #[must_use]
    pub fn taken(&self, ahead: &Ahead, outside: bool) -> [u64; AHEAD_WORDS] {
        let line_end = ahead.readable.iter().zip(&self.newlines).any(|(one, other)| one & other != 0);
        let middle = ahead.free & bit(MIDDLE) != 0;
        let mut taken = ahead.readable;
        for (word, own) in taken.iter_mut().enumerate() {
            if !outside {
                *own &= !self.newlines[word];
            }
            if middle {
                *own |= self.ignored[usize::from(!outside)][word];
            }
            if outside && line_end {
                *own |= self.comments[word];
            }
        }
        taken
    }
}

/// All that has been met, and the masks they are made of.
#[derive(Debug)]
pub(crate) struct Nexts {
    table: Vec<Next>,
    ids: FxHashMap<Next, NextId>,
    of_set: Vec<NextId>,
    /// Per prediction: the accept sets that its lexemes stand in.
    of_prediction: Vec<Option<Box<[u64]>>>,
    /// Per lexeme: the accept sets that it stands in, as a mask.
    of_lexeme: Vec<Box<[u64]>>,
    /// Accept sets that are ignored wherever the middle of a line can go on: `[outside, inside]`.
    ignored: [Box<[u64]>; 2],
    comments: Box<[u64]>,
    newlines: Box<[u64]>,
    words: usize,
}

impl Nexts {
    /// None yet.
    #[must_use]
    pub(crate) fn new(language: &Language) -> Self {
        let words = language.lexer.accept_set_count().div_ceil(64);
        let mask = |wanted: &dyn Fn(AcceptId) -> bool| {
            let mut mask = vec![0u64; words].into_boxed_slice();
            for accept in language.lexer.accept_sets().filter(|&accept| wanted(accept)) {
                mask[accept.index() / 64] |= 1 << (accept.index() % 64);
            }
            mask
        };
        let role = |accept: AcceptId| language.accept_role(accept);
        let layout = language.layout.is_some();
        let of_lexeme = (0..language.lexer.lexeme_count())
            .map(|lexeme| mask(&|accept| language.lexer.lexemes(accept).iter().any(|id| id.index() == lexeme)))
            .collect();
        Self {
            table: Vec::new(),
            ids: FxHashMap::default(),
            of_set: Vec::new(),
            of_prediction: Vec::new(),
            of_lexeme,
            ignored: [
                mask(&|accept| {
                    matches!(role(accept), Role::Blank | Role::Join) || !layout && role(accept).is_ignored()
                }),
                mask(&|accept| role(accept).is_ignored() || role(accept) == Role::Newline),
            ],
            comments: mask(&|accept| layout && role(accept) == Role::Comment),
            newlines: mask(&|accept| role(accept) == Role::Newline),
            words,
        }
    }

    /// An interned one.
    #[inline(always)]
    #[must_use]
    pub(crate) fn get(&self, id: NextId) -> &Next {
        &self.table[id.0 as usize]
    }

    /// What is known of a set.
    #[inline(always)]
    #[must_use]
    pub(crate) fn known(&self, set: SetId) -> Option<NextId> {
        self.of_set.get(set.index()).copied().filter(|&id| id != UNKNOWN)
    }

    /// Forgets the sets past a size of the chart.
    pub(crate) fn truncate(&mut self, sets: usize) {
        self.of_set.truncate(sets);
    }

    /// What a set allows next.
    pub(crate) fn of(
        &mut self,
        language: &Language,
        left: &LeftChart,
        predictions: &Predictions,
        set: SetId,
    ) -> NextId {
        if let Some(known) = self.known(set) {
            return known;
        }
        let grammar = &language.grammar;
        let source = left.set(set);
        let mut free = if source.accepts { language.follow.after(grammar.start) } else { 0 };
        let mut readable = self.predicted(language, predictions, source.prediction);
        if set == FIRST_SET {
            for symbol in (0..grammar.symbol_count()).map(SymbolId::from_index) {
                let own = grammar.initial(symbol).iter().filter(|&&dot| grammar.lhs(dot) == grammar.start);
                free |= own.fold(0, |mask, &dot| mask | language.follow.before(dot));
            }
        }
        for item in &source.items {
            free |= language.follow.before(item.dot);
            self.add(language, item.dot, &mut readable);
        }
        let line_end = readable.iter().zip(&self.newlines).any(|(one, other)| one & other != 0);
        let middle = free & bit(MIDDLE) != 0;
        let mut outside = readable.clone();
        let mut inside = readable;
        for word in 0..self.words {
            inside[word] &= !self.newlines[word];
            if middle {
                outside[word] |= self.ignored[0][word];
                inside[word] |= self.ignored[1][word];
            }
            if line_end {
                outside[word] |= self.comments[word];
            }
        }
        let next = Next { free, outside, inside };
        let id = match self.ids.get(&next) {
            Some(&id) => id,
            None => {
                let id = NextId(u32::try_from(self.table.len()).expect("count fits u32"));
                self.table.push(next.clone());
                self.ids.insert(next, id);
                id
            }
        };
        if self.of_set.len() <= set.index() {
            self.of_set.resize(set.index() + 1, UNKNOWN);
        }
        self.of_set[set.index()] = id;
        id
    }

    fn predicted(&mut self, language: &Language, predictions: &Predictions, id: PredictionId) -> Box<[u64]> {
        let index = id.0 as usize;
        if self.of_prediction.len() <= index {
            self.of_prediction.resize(index + 1, None);
        }
        if let Some(known) = &self.of_prediction[index] {
            return known.clone();
        }
        let mut readable = vec![0u64; self.words].into_boxed_slice();
        for lexeme in (0..language.grammar.lexeme_count()).map(SymbolId::from_index) {
            for &dot in predictions.dots(id, lexeme) {
                self.add(language, dot, &mut readable);
            }
        }
        self.of_prediction[index] = Some(readable.clone());
        readable
    }

    /// Adds the accept sets of the lexeme after a dot, if the middle can go on after it.
    fn add(&self, language: &Language, dot: DotId, readable: &mut [u64]) {
        let next = language.grammar.next(dot);
        if !language.grammar.is_lexeme(next) {
            return;
        }
        let mask = &self.of_lexeme[next.index()];
        let newline = mask.iter().zip(&self.newlines).any(|(one, other)| one & other != 0);
        let free = if newline { LINE } else { MIDDLE };
        if language.follow.before(Grammar::advance(dot)) & bit(free) != 0 {
            for (word, more) in readable.iter_mut().zip(mask) {
                *word |= more;
            }
        }
    }
}
