//! Inputs of a token table: a definition, a vocabulary, and tables of both that are consulted at every byte.

use crate::bits::{self, BitSet};
use crate::ids::{AcceptId, ModeId, StateId, SymbolId};
use crate::language::definition::Definition;
use crate::lexing::roles::{LineByte, Role, line_bytes};
use crate::masking::table::configuration::{Configuration, Line, NOTHING};
use crate::masking::vocabulary::Vocabulary;
use rustc_hash::FxHashMap;

/// Inputs of a token table.
#[derive(Debug)]
pub(crate) struct TableInputs<'a> {
    /// The definition.
    pub language: &'a Definition,
    /// The vocabulary.
    pub vocabulary: &'a Vocabulary,
    line_bytes: Vec<LineByte>,
    /// Per accept set: the modes that can be in force after it, as a mask.
    modes_after: Vec<u64>,
    /// Per accept set: the accept sets that can come next, including ignored ones, as a mask; empty if no rule reads
    /// it.
    follow: Vec<BitSet>,
    /// Per accept set: the first one that the same accept sets can follow.
    alike: Vec<AcceptId>,
    /// The states in which a symbol can still become one of those.
    passes: Vec<bool>,
}

impl<'a> TableInputs<'a> {
    pub(crate) fn new(language: &'a Definition, vocabulary: &'a Vocabulary) -> Self {
        let lexer = &language.lexer;
        let bound = lexer.accept_set_count();
        let symbols = |accept: AcceptId| lexer.lexemes(accept).iter().map(|&lexeme| SymbolId::from(lexeme));
        let mut passing = BitSet::new(bound);
        for accept in lexer.accept_sets() {
            let role = language.accept_role(accept);
            if role.is_ignored() || role == Role::Newline {
                passing.insert(accept.index());
            }
        }
        let mut modes_after = vec![1u64];
        let mut follow = vec![BitSet::of(bound, 0..bound)];
        for accept in lexer.accept_sets() {
            let modes = symbols(accept).fold(0, |mask, lexeme| mask | language.grammar.modes_after_lexeme(lexeme));
            modes_after.push(modes.max(1));
            let used = symbols(accept).any(|lexeme| !language.grammar.occurrences(lexeme).is_empty());
            let mut next = if used { passing.clone() } else { BitSet::new(bound) };
            for other in lexer.accept_sets().filter(|_| used) {
                let adjacent =
                    symbols(accept).any(|one| symbols(other).any(|other| language.grammar.is_adjacent(one, other)));
                if adjacent {
                    next.insert(other.index());
                }
            }
            follow.push(next);
        }
        let mut firsts: FxHashMap<&[u64], AcceptId> = FxHashMap::default();
        let alike = follow
            .iter()
            .enumerate()
            .map(|(index, next)| *firsts.entry(next.words()).or_insert(AcceptId::from_index(index)))
            .collect();
        let passes = (0..lexer.state_count()).map(|state| passes(language, StateId::from_index(state))).collect();
        Self {
            language,
            vocabulary,
            line_bytes: line_bytes(lexer, |accept| language.accept_role(accept)),
            modes_after,
            follow,
            alike,
            passes,
        }
    }

    /// The role of a byte at the start of a line.
    #[inline(always)]
    pub(crate) fn line_byte(&self, byte: u8) -> LineByte {
        self.line_bytes[byte as usize]
    }

    /// Drop the parts of a configuration that do not matter: the mode where the symbol in progress is certain to be
    /// read, and the previous symbol where any may precede.
    pub(crate) fn canonical(&self, at: Configuration) -> Configuration {
        let lexer = &self.language.lexer;
        if at.line != Line::Middle || self.passes[at.state.index()] {
            return at;
        }
        Configuration { start: lexer.start(), after: NOTHING, ..at }
    }

    /// A symbol after which the same ones can come as after an accept set.
    #[inline(always)]
    pub(crate) fn like(&self, accept: AcceptId) -> AcceptId {
        self.alike[accept.index()]
    }

    /// The modes that can be in force after an accept set.
    pub(crate) fn modes(&self, accept: AcceptId) -> impl Iterator<Item = ModeId> + use<> {
        bits::ones(self.modes_after[accept.index()]).map(ModeId::from_index)
    }

    /// Return whether a symbol in progress can still become one that may come after another.
    pub(crate) fn can_follow(&self, after: AcceptId, state: StateId) -> bool {
        let live = self.language.lexer.live_mask(state);
        bits::meet(self.follow[after.index()].words(), live)
    }

    /// Return whether an accept set may come after another.
    pub(crate) fn can_follow_as(&self, after: AcceptId, accept: AcceptId) -> bool {
        self.follow[after.index()].contains(accept.index())
    }

    /// Return whether a symbol in progress is a comment or a line join: the line has no symbol yet.
    pub(crate) fn is_trivia(&self, state: StateId) -> bool {
        let trivia = |accept| matches!(self.language.accept_role(accept), Role::Comment | Role::Join);
        self.language.lexer.live(state).all(trivia)
    }
}

/// Return whether a symbol in progress keeps the mode in force: it begins one, or may be ignored, or a newline.
pub(crate) fn passes(language: &Definition, state: StateId) -> bool {
    let passing = |accept| {
        let role = language.accept_role(accept);
        role.is_ignored() || role == Role::Newline
    };
    language.lexer.is_start(state) || language.lexer.live(state).any(passing)
}
