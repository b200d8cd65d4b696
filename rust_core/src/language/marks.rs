//! Matched text: lexemes for texts that bind, and for texts that must equal a bound one.
//!
//! A rule that binds a text (`class: "class" NAME body`) is written out once for each *slot*. So are the rules below
//! it, down to where the text comes again (`constructor: NAME parameters`). The two are *marks*: lexemes without a
//! pattern, which are read along with the lexemes of their texts, where the text is in their slot. Most texts are in
//! [`OTHER`], and the items that bound them distinguish them. Texts that R matches and has not bound itself get slots
//! of their own, so that R's requirements on the stack concern symbols only. Where a rule matches the text that it has
//! bound itself, its item's text decides as well, and a slot may hold any number of texts.

use crate::bits::{self, BitSet};
use crate::error::Error;
use crate::grammar::compiled::Grammar;
use crate::ids::{AcceptId, DotId, LexemeId, ModeId, StateId, SymbolId};
use crate::lexing::lexer::Lexer;
use crate::lexing::roles::find;
use crate::spec::LanguageSpec;
use rustc_hash::FxHashMap;
use std::sync::OnceLock;

/// All texts but those of the other slots.
pub(crate) const OTHER: u8 = 0;

/// Texts that the cursor may cut: they end as R begins.
pub(crate) const CUTTABLE: u8 = 1;

/// Texts that R matches and has not bound; where there are more of them than slots, the last one holds several.
pub(crate) const NAMED: std::ops::RangeInclusive<u8> = 2..=3;

/// Texts of [`NAMED`] that the cursor may cut.
pub(crate) const NAMED_CUTTABLE: u8 = 4;

/// The number of slots.
const SLOTS: usize = 5;

/// Meaning of a lexeme that is a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    /// True if the mark binds a text; otherwise its text must equal the bound one.
    pub(crate) binds: bool,
    /// The slot of its texts.
    pub(crate) slot: u8,
}

/// The marks of a language that has some.
#[derive(Debug)]
pub(crate) struct Marks {
    of_lexeme: Vec<Option<Mark>>,
    /// By slot: the lexeme that matches.
    matching: [Option<SymbolId>; SLOTS],
    /// Lexemes that bind and begin a rule.
    binding: Vec<SymbolId>,
    /// Per accept set: whether there are marks in it.
    accepts: Vec<bool>,
    mask: BitSet,
    /// Per accept set: its text, if it has but one.
    only: Vec<Option<Box<[u8]>>>,
    /// Per dot: its copy in the first slot.
    first: Vec<DotId>,
    /// By byte, on demand: the bytes after which a symbol that begins with it may begin.
    begins_after: Vec<OnceLock<[u64; 4]>>,
    /// Per state of the lexer: whether a symbol in progress may still reach an accept set with marks.
    live: Vec<bool>,
    /// The states before any byte from which texts of marks are read.
    starts: Box<[StateId]>,
    /// Per dot behind a text that its rule binds: the dot before the one that must equal it, if the rule goes on to it.
    matches_own: Vec<Option<DotId>>,
}

impl Marks {
    /// Read the marks of a definition; `None` if it has none.
    ///
    /// # Errors
    /// A name that no lexeme has, a slot that does not exist, or a mark of another mode than its texts.
    pub(crate) fn read(spec: &LanguageSpec, lexer: &Lexer, grammar: &Grammar) -> Result<Option<Self>, Error> {
        if spec.marks.is_empty() {
            return Ok(None);
        }
        let mut of_lexeme = vec![None; spec.lexemes.len()];
        let mut matching = [None; SLOTS];
        for mark in &spec.marks {
            let lexeme = find(spec, &mark.name)?;
            let slot = mark.slot as usize;
            if slot >= SLOTS {
                return Err(Error::language(format!("language {}: marks: there is no slot {slot}", spec.name)));
            }
            for name in &mark.of {
                let read = SymbolId::from(find(spec, name)?);
                if grammar.mode_of(read) != grammar.mode_of(SymbolId::from(lexeme)) {
                    let what = format!("marks: {} and {name} are of different modes", mark.name);
                    return Err(Error::language(format!("language {}: {what}", spec.name)));
                }
            }
            of_lexeme[lexeme.index()] = Some(Mark { binds: mark.binds, slot: mark.slot });
            if !mark.binds {
                matching[slot] = Some(SymbolId::from(lexeme));
            }
        }
        let marked = |accept: AcceptId| lexer.lexemes(accept).iter().any(|id| of_lexeme[id.index()].is_some());
        let only = |accept: AcceptId| {
            let own = lexer.lexemes(accept).iter().filter(|id| of_lexeme[id.index()].is_none());
            let texts: Vec<_> = own.map(|id| spec.lexemes[id.index()].literal.as_deref()).collect();
            texts.iter().find_map(|text| text.map(|text| text.as_bytes().into()))
        };
        let sets = || (0..lexer.accept_set_count()).map(AcceptId::from_index);
        let accepts: Vec<bool> = sets().map(|accept| accept.0 != 0 && marked(accept)).collect();
        let live = |state: StateId| bits::numbers(lexer.live_mask(state)).any(|accept| accepts[accept]);
        let modes = (0..=spec.modes.len()).map(ModeId::from_index);
        let starts = modes.map(|mode| lexer.start_of(mode)).filter(|&start| live(start)).collect();
        let first = first_dots(spec, grammar, |symbol| of_lexeme.get(symbol.index()).copied().flatten());
        let begins = |&bound: &SymbolId| {
            of_lexeme[bound.index()].is_some_and(|mark| mark.binds) && !grammar.initial(bound).is_empty()
        };
        let binding = (0..spec.lexemes.len()).map(SymbolId::from_index).filter(begins).collect();
        Ok(Some(Self {
            first,
            starts,
            matches_own: matches_own(grammar, |symbol| of_lexeme.get(symbol.index()).copied().flatten()),
            live: (0..lexer.state_count()).map(|state| live(StateId::from_index(state))).collect(),
            only: sets().map(|accept| if accept.0 == 0 { None } else { only(accept) }).collect(),
            mask: BitSet::of(accepts.len(), (0..accepts.len()).filter(|&accept| accepts[accept])),
            begins_after: vec![OnceLock::new(); 256],
            binding,
            matching,
            of_lexeme,
            accepts,
        }))
    }

    /// The mark of a lexeme.
    #[inline]
    pub(crate) fn of(&self, lexeme: LexemeId) -> Option<Mark> {
        self.of_lexeme[lexeme.index()]
    }

    /// The mark of a symbol.
    #[inline]
    pub(crate) fn of_symbol(&self, symbol: SymbolId) -> Option<Mark> {
        self.of_lexeme.get(symbol.index()).copied().flatten()
    }

    /// The copy of a dot in the first slot. Where R puts no constraint, a dot allows the same in all slots.
    #[inline]
    pub(crate) fn first(&self, dot: DotId) -> DotId {
        self.first[dot.index()]
    }

    /// The lexemes that match, by slot.
    pub(crate) fn matching(&self) -> impl Iterator<Item = SymbolId> + '_ {
        self.matching.iter().copied().flatten()
    }

    /// The lexemes that bind and begin a rule.
    pub(crate) fn binding(&self) -> impl Iterator<Item = SymbolId> + '_ {
        self.binding.iter().copied()
    }

    /// Return whether a symbol that begins with `byte` may begin right after `before`. Elsewhere the symbol before it
    /// would go on.
    pub(crate) fn begins_after(&self, lexer: &Lexer, byte: u8, before: u8) -> bool {
        let known = self.begins_after[usize::from(byte)].get_or_init(|| {
            let mut found = [0; 4];
            for state in (1..lexer.state_count()).map(StateId::from_index) {
                for before in 0..=255u8 {
                    let ended = lexer.step(state, before);
                    if lexer.accepts(ended) && !lexer.accepts(lexer.step(ended, byte)) {
                        bits::insert(&mut found, usize::from(before));
                    }
                }
            }
            found
        });
        bits::contains(known, usize::from(before))
    }

    /// The accept sets that have marks, as a mask.
    pub(crate) fn all(&self) -> &[u64] {
        self.mask.words()
    }

    /// Return whether an accept set has marks.
    #[inline]
    pub(crate) fn are_in(&self, accept: AcceptId) -> bool {
        self.accepts[accept.index()]
    }

    /// The text of an accept set, if it has but one.
    pub(crate) fn only_text(&self, accept: AcceptId) -> Option<&[u8]> {
        self.only[accept.index()].as_deref()
    }

    /// The dot before the text that must equal the one that the rule itself has bound, if that text is still to come.
    #[inline]
    pub(crate) fn matches_own(&self, dot: DotId) -> Option<DotId> {
        self.matches_own[dot.index()]
    }

    /// The dot before the text that a rule has bound before a dot.
    pub(crate) fn binder(&self, grammar: &Grammar, dot: DotId) -> Option<DotId> {
        let before = grammar.position(dot);
        let binds = |&symbol: &SymbolId| self.of_symbol(symbol).is_some_and(|mark| mark.binds);
        let place = grammar.rule(dot).rhs[..before].iter().position(binds)?;
        Some(DotId::from_index(dot.index() - (before - place)))
    }

    /// The states before any byte from which texts of marks are read.
    pub(crate) fn starts(&self) -> &[StateId] {
        &self.starts
    }

    /// Return whether a symbol in progress may still reach an accept set with marks.
    #[inline]
    pub(crate) fn are_live(&self, state: StateId) -> bool {
        self.live[state.index()]
    }
}

/// By dot: its copy in the rule for the first slot.
fn first_dots(spec: &LanguageSpec, grammar: &Grammar, mark: impl Fn(SymbolId) -> Option<Mark>) -> Vec<DotId> {
    let symbols = || (0..grammar.symbol_count()).map(SymbolId::from_index);
    let ids: FxHashMap<&str, SymbolId> = symbols().map(|symbol| (grammar.name(symbol), symbol)).collect();
    let alike = spec.slotted.iter().filter_map(|names| Some((names.first()?, names)));
    let first_of: FxHashMap<&str, &str> =
        alike.flat_map(|(first, names)| names.iter().map(|name| (&**name, &**first))).collect();
    let marks: Vec<(Mark, SymbolId)> = symbols().filter_map(|symbol| Some((mark(symbol)?, symbol))).collect();
    let first = |symbol: SymbolId| match mark(symbol) {
        Some(own) => marks.iter().find(|(mark, _)| mark.binds == own.binds).map_or(symbol, |found| found.1),
        None => first_of.get(grammar.name(symbol)).and_then(|name| ids.get(name)).copied().unwrap_or(symbol),
    };
    let mut known: FxHashMap<(SymbolId, Vec<SymbolId>), usize> = FxHashMap::default();
    let mut dots = Vec::with_capacity(grammar.dot_count());
    for (index, rule) in grammar.rules().iter().enumerate() {
        let written = (first(rule.lhs), rule.rhs.iter().map(|&symbol| first(symbol)).collect());
        let own = *known.entry(written).or_insert(index);
        dots.extend((0..=rule.rhs.len()).map(|position| grammar.dot(own, position)));
    }
    dots
}

/// Per dot behind a text that its rule binds: the dot before the one that must equal it, if the rule goes on to it.
fn matches_own(grammar: &Grammar, mark: impl Fn(SymbolId) -> Option<Mark>) -> Vec<Option<DotId>> {
    let mut found = vec![None; grammar.dot_count()];
    for (index, rule) in grammar.rules().iter().enumerate() {
        let place =
            |binds: bool| rule.rhs.iter().position(|&symbol| mark(symbol).is_some_and(|mark| mark.binds == binds));
        let (Some(bound), Some(matching)) = (place(true), place(false)) else { continue };
        for position in bound + 1..=matching {
            found[grammar.dot(index, position).index()] = Some(grammar.dot(index, matching));
        }
    }
    found
}

/// Slots of the texts that one R matches.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    named: FxHashMap<Box<[u8]>, u8>,
    /// Ends in R of cut symbols that may be marks, with the lexer's states there; ascending.
    cuts: Vec<(u32, StateId)>,
    /// R up to the last of these ends.
    cut: Box<[u8]>,
    /// The states before any byte from which texts of marks are read.
    starts: Box<[StateId]>,
}

impl Slots {
    /// No slots but those of cut texts.
    pub(crate) fn new(mut cuts: Vec<(u32, StateId)>, right: &[u8], starts: &[StateId]) -> Self {
        cuts.retain(|cut| cut.0 > 0);
        cuts.sort_unstable();
        let most = cuts.last().map_or(0, |cut| cut.0);
        Self { named: FxHashMap::default(), cuts, cut: right[..most as usize].into(), starts: starts.into() }
    }

    /// The slot of a text.
    pub(crate) fn of(&self, lexer: &Lexer, text: &[u8]) -> u8 {
        match self.named(text) {
            Some(slot) => slot,
            None if self.is_cuttable(lexer, text) => CUTTABLE,
            None => OTHER,
        }
    }

    /// The slot of a text.
    pub(crate) fn named(&self, text: &[u8]) -> Option<u8> {
        self.named.get(text).copied()
    }

    /// Texts that have slots.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &[u8]> {
        self.named.keys().map(|named| &**named)
    }

    /// Rests of R that complete a cut text.
    pub(crate) fn rests(&self) -> impl Iterator<Item = &[u8]> {
        self.cuts.chunk_by(|one, other| one.0 == other.0).map(|cuts| &self.cut[..cuts[0].0 as usize])
    }

    /// Return whether R distinguishes any texts.
    pub(crate) fn any(&self) -> bool {
        !self.named.is_empty() || self.any_cuts()
    }

    /// Return whether the cursor may cut any text.
    pub(crate) fn any_cuts(&self) -> bool {
        !self.cuts.is_empty()
    }

    /// Return whether the cursor may cut a text.
    pub(crate) fn is_cuttable(&self, lexer: &Lexer, text: &[u8]) -> bool {
        self.rests().any(|rest| {
            let Some(begin) = text.strip_suffix(rest).filter(|begin| !begin.is_empty()) else { return false };
            let mut states = self.starts.iter().map(|&start| run(lexer, start, begin));
            states.any(|state| self.cuts.binary_search(&(rest.len() as u32, state)).is_ok())
        })
    }

    /// Give a text a slot: a free one, or the last of its kind.
    pub(crate) fn give(&mut self, lexer: &Lexer, text: &[u8]) -> u8 {
        let is_taken = |slot: u8| self.named.values().any(|&named| named == slot);
        let slot = if self.is_cuttable(lexer, text) {
            NAMED_CUTTABLE
        } else {
            NAMED.into_iter().find(|&slot| !is_taken(slot)).unwrap_or(*NAMED.end())
        };
        self.named.insert(text.into(), slot);
        slot
    }
}

/// The state after some bytes.
pub(crate) fn run(lexer: &Lexer, state: StateId, bytes: &[u8]) -> StateId {
    bytes.iter().fold(state, |state, &byte| lexer.step(state, byte))
}
