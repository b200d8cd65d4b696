//! Matched text: lexemes for texts that bind, and for texts that must equal a bound one.
//!
//! A rule that binds a text (`class: "class" NAME body`) is written out once for each *slot*. So are the rules below
//! it, down to where the text comes again (`constructor: NAME parameters`). The two are *marks*: lexemes without a
//! pattern, which are read along with the lexemes of their texts, where the text is in their slot. Most texts are in
//! [`OTHER`], and the items that bound them distinguish them. Texts that R matches and has not bound itself get slots
//! of their own, so that R's requirements on the stack concern symbols only.

use crate::bits::{self, BitSet};
use crate::error::Error;
use crate::grammar::compiled::Grammar;
use crate::ids::{AcceptId, DotId, LexemeId, StateId, SymbolId};
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
}

impl Marks {
    /// Read the marks of a definition; `None` if it has none.
    ///
    /// # Errors
    /// A name that no lexeme has, or a slot that does not exist.
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
        let first = first_dots(spec, grammar, |symbol| of_lexeme.get(symbol.index()).copied().flatten());
        Ok(Some(Self {
            first,
            live: (0..lexer.state_count()).map(|state| live(StateId::from_index(state))).collect(),
            only: sets().map(|accept| if accept.0 == 0 { None } else { only(accept) }).collect(),
            mask: BitSet::of(accepts.len(), (0..accepts.len()).filter(|&accept| accepts[accept])),
            begins_after: vec![OnceLock::new(); 256],
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

/// Slots of the texts that one R matches.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    named: Vec<(Box<[u8]>, u8)>,
    /// Ends in R of cut symbols that may be marks, with the lexer's states there; ascending.
    cuts: Vec<(u32, StateId)>,
    /// R up to the last of these ends.
    cut: Box<[u8]>,
}

impl Slots {
    /// No slots but those of cut texts.
    pub(crate) fn new(mut cuts: Vec<(u32, StateId)>, right: &[u8]) -> Self {
        cuts.retain(|cut| cut.0 > 0);
        cuts.sort_unstable();
        let most = cuts.last().map_or(0, |cut| cut.0);
        Self { named: Vec::new(), cuts, cut: right[..most as usize].into() }
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
        self.named.iter().find(|named| *named.0 == *text).map(|named| named.1)
    }

    /// Texts that have slots.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &[u8]> {
        self.named.iter().map(|named| &*named.0)
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
            let begin = text.strip_suffix(rest).filter(|begin| !begin.is_empty());
            let state = begin.map(|begin| (rest.len() as u32, run(lexer, lexer.start(), begin)));
            state.is_some_and(|cut| self.cuts.binary_search(&cut).is_ok())
        })
    }

    /// Give a text a slot: a free one, or the last of its kind.
    pub(crate) fn give(&mut self, lexer: &Lexer, text: &[u8]) -> u8 {
        let is_taken = |slot: u8| self.named.iter().any(|named| named.1 == slot);
        let slot = if self.is_cuttable(lexer, text) {
            NAMED_CUTTABLE
        } else {
            NAMED.into_iter().find(|&slot| !is_taken(slot)).unwrap_or(*NAMED.end())
        };
        self.named.push((text.into(), slot));
        slot
    }
}

/// The state after some bytes.
pub(crate) fn run(lexer: &Lexer, state: StateId, bytes: &[u8]) -> StateId {
    bytes.iter().fold(state, |state, &byte| lexer.step(state, byte))
}
