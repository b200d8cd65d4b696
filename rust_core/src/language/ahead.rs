//! Accept sets and free states that each dot allows next on an unconstrained stack (see `follow`).

use crate::bits::{self, BitSet};
use crate::grammar::compiled::Grammar;
use crate::grammar::rules::END_OF_RULE;
use crate::ids::{AcceptId, DotId, LexemeId, SymbolId};
use crate::language::definition::Definition;
use crate::language::follow::{Follow, bit};
use crate::language::free::{LINE, MIDDLE};
use crate::lexing::roles::Role;

/// Accept sets by role, as masks.
#[derive(Debug, Default)]
struct ByRole<Mask> {
    /// Ignored wherever the middle of a line can go on: `[outside, inside]` of brackets.
    ignored: [Mask; 2],
    /// Comments of a language with layout: they end with their line.
    comments: Mask,
    newlines: Mask,
}

impl<Mask: AsRef<[u64]>> ByRole<Mask> {
    /// Keep the readable accept sets of `readable` that `free` allows, and add the ignored ones. `free` holds the free
    /// states from which the middle can go on; `outside` means outside of brackets.
    #[inline(always)]
    fn take(&self, readable: &mut [u64], free: u64, outside: bool) {
        let (newlines, comments) = (self.newlines.as_ref(), self.comments.as_ref());
        let ignored = self.ignored[usize::from(!outside)].as_ref();
        let line_end = bits::meet(readable, newlines);
        if !outside {
            bits::subtract(readable, newlines);
        }
        if free & bit(MIDDLE) != 0 {
            bits::unite(readable, ignored);
        }
        if outside && line_end {
            bits::unite(readable, comments);
        }
    }
}

/// Accept sets by lexeme and by role, as masks.
#[derive(Debug)]
pub(crate) struct AcceptMasks {
    of_lexeme: Vec<BitSet>,
    by_role: ByRole<BitSet>,
    words: usize,
}

impl AcceptMasks {
    pub(crate) fn derive(definition: &Definition) -> Self {
        let lexer = &definition.lexer;
        let bound = lexer.accept_set_count();
        let mask = |wanted: &dyn Fn(AcceptId) -> bool| {
            BitSet::of(bound, lexer.accept_sets().filter(|&accept| wanted(accept)).map(AcceptId::index))
        };
        let role = |accept: AcceptId| definition.accept_role(accept);
        let layout = definition.layout.is_some();
        let of_lexeme = (0..lexer.lexeme_count())
            .map(|lexeme| {
                // Matches are checked separately, by their texts.
                let matches = definition.mark(LexemeId::from_index(lexeme)).is_some_and(|mark| !mark.binds);
                mask(&|accept| !matches && lexer.lexemes(accept).iter().any(|id| id.index() == lexeme))
            })
            .collect();
        let outside =
            mask(&|accept| matches!(role(accept), Role::Blank | Role::Join) || !layout && role(accept).is_ignored());
        let by_role = ByRole {
            ignored: [outside, mask(&|accept| role(accept).is_ignored() || role(accept) == Role::Newline)],
            comments: mask(&|accept| layout && role(accept) == Role::Comment),
            newlines: mask(&|accept| role(accept) == Role::Newline),
        };
        Self { of_lexeme, by_role, words: bits::words_for::<u64>(bound) }
    }

    /// Words of a mask.
    #[must_use]
    pub(crate) fn words(&self) -> usize {
        self.words
    }

    /// Keep the readable accept sets of `readable` that `free` allows, and add the ignored ones. `free` holds the free
    /// states from which the middle can go on; `outside` means outside of brackets.
    pub(crate) fn take(&self, readable: &mut [u64], free: u64, outside: bool) {
        self.by_role.take(readable, free, outside);
    }

    /// Add the accept sets of the lexeme after a dot, if the middle can go on after it.
    pub(crate) fn add(&self, grammar: &Grammar, follow: &Follow, dot: DotId, readable: &mut [u64]) {
        let next = grammar.next(dot);
        if !grammar.is_lexeme(next) {
            return;
        }
        let mask = self.of_lexeme[next.index()].words();
        let newline = bits::meet(mask, self.by_role.newlines.words());
        let free = if newline { LINE } else { MIDDLE };
        if follow.before(Grammar::advance(dot)) & bit(free) != 0 {
            bits::unite(readable, mask);
        }
    }
}

/// Words of an [`Ahead`]'s mask over accept sets. Languages with more accept sets do without.
pub(crate) const AHEAD_WORDS: usize = 4;

/// Accept sets and free states that a set allows next: a union over its items.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Ahead {
    /// The accept sets that can be read, as a mask.
    pub readable: [u64; AHEAD_WORDS],
    /// The free states from which the middle can go on.
    pub free: u64,
    /// The modes and kinds of the lexemes that can come, as a mask. Where the file may end, mode 0 is among them.
    pub modes: u64,
    /// True if a text can come that must equal the bound one. Then the other fields are incomplete.
    pub marks: bool,
}

impl Ahead {
    /// Add what another allows.
    #[inline(always)]
    pub(crate) fn add(&mut self, other: &Self) {
        bits::unite(&mut self.readable, &other.readable);
        self.free |= other.free;
        self.modes |= other.modes;
        self.marks |= other.marks;
    }
}

/// One [`Ahead`] for each dot of a grammar.
#[derive(Debug, Default)]
pub(crate) struct Aheads {
    of_dot: Vec<Ahead>,
    by_role: ByRole<[u64; AHEAD_WORDS]>,
}

impl Aheads {
    /// Derive them for an even language; empty if there are too many accept sets.
    #[must_use]
    pub(crate) fn derive(definition: &Definition, follow: &Follow, masks: &AcceptMasks) -> Self {
        if masks.words > AHEAD_WORDS {
            return Self::default();
        }
        let wide = |mask: &[u64]| {
            let mut words = [0; AHEAD_WORDS];
            words[..mask.len()].copy_from_slice(mask);
            words
        };
        let grammar = &definition.grammar;
        let of_lexeme_dot = |dot: DotId| {
            let mut readable = [0; AHEAD_WORDS];
            masks.add(grammar, follow, dot, &mut readable);
            let modes = grammar.mode_kinds(grammar.next(dot));
            let mark = definition.mark(LexemeId::from_index(grammar.next(dot).index()));
            let marks = mark.is_some_and(|mark| !mark.binds);
            Ahead { readable, free: 0, modes, marks }
        };
        // Lexemes with which a nonterminal's own rules, and those of its closure, begin.
        let mut of_nonterminal = vec![Ahead::default(); grammar.symbol_count()];
        for lexeme in (0..grammar.lexeme_count()).map(SymbolId::from_index) {
            for &dot in grammar.initial(lexeme) {
                of_nonterminal[grammar.lhs(dot).index()].add(&of_lexeme_dot(dot));
            }
        }
        let own = of_nonterminal.clone();
        for nonterminal in (grammar.lexeme_count()..grammar.symbol_count()).map(SymbolId::from_index) {
            for index in bits::numbers(grammar.closure(nonterminal)) {
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
            ahead.free = follow.before(dot);
            ahead
        });
        let ByRole { ignored: [outside, inside], comments, newlines } = &masks.by_role;
        Self {
            of_dot: of_dot.collect(),
            by_role: ByRole {
                ignored: [wide(outside.words()), wide(inside.words())],
                comments: wide(comments.words()),
                newlines: wide(newlines.words()),
            },
        }
    }

    /// Return whether the language has none.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.of_dot.is_empty()
    }

    /// The [`Ahead`] of a dot that is not at its rule's end.
    #[inline(always)]
    #[must_use]
    pub(crate) fn of(&self, dot: DotId) -> &Ahead {
        &self.of_dot[dot.index()]
    }

    /// The accept sets that can be read or ignored, as a mask; `outside` means outside of brackets.
    #[inline]
    #[must_use]
    pub(crate) fn allowed(&self, ahead: &Ahead, outside: bool) -> [u64; AHEAD_WORDS] {
        let mut allowed = ahead.readable;
        self.by_role.take(&mut allowed, ahead.free, outside);
        allowed
    }
}
