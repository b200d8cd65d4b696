//! Texts of symbols that bind or match, as far as they have been read. They are interned byte by byte.

use crate::bits;
use crate::ids::{StateId, TextId};
use crate::language::compiled::Language;
use crate::language::marks::{CUTTABLE, OTHER, Slots, run};
use crate::lexing::lexer::Lexer;
use crate::limits;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// A text that equals no bound text, or one that no rule compares.
pub(crate) const PLAIN: TextId = TextId(0);

/// A text that equals any text. A symbol with this text may be refused once its text is known.
pub(crate) const WILD: TextId = TextId(1);

/// A text like [`PLAIN`] whose symbol the cursor cuts.
pub(crate) const CUT: TextId = TextId(2);

/// A text of a symbol that begins with the current byte.
pub(crate) const BEGUN: TextId = TextId(3);

/// Nothing is bound.
pub(crate) const NOTHING: TextId = TextId(u32::MAX);

const EMPTY: TextId = TextId(4);

/// A text: its prefix without the last byte, that byte, and its length.
#[derive(Clone, Copy, Debug)]
struct Text {
    shorter: TextId,
    last: u8,
    length: u32,
}

/// The prefixes of a text, each with the lexer's state after it; entry `n` has `n + 1` bytes.
type Beginnings = Box<[(TextId, StateId)]>;

/// Texts of one session.
#[derive(Debug)]
pub(crate) struct Texts {
    /// The slots of the session's R.
    pub(crate) slots: Slots,
    table: Vec<Text>,
    longer: FxHashMap<(TextId, u8), TextId>,
    slot_of: FxHashMap<TextId, u8>,
    beginnings: FxHashMap<TextId, Beginnings>,
    /// The texts of the slots.
    named: Option<Box<[TextId]>>,
    /// Set of bytes in any of the texts.
    met: [u64; 4],
    /// Bound texts, the most recent last, as many as searches try.
    bound: VecDeque<TextId>,
    /// True once two texts that may be anything were compared.
    pub(crate) met_wild: bool,
}

impl Texts {
    pub(crate) fn new(slots: Slots) -> Self {
        Self {
            slots,
            table: vec![Text { shorter: EMPTY, last: 0, length: 0 }; EMPTY.index() + 1],
            longer: FxHashMap::default(),
            slot_of: FxHashMap::default(),
            beginnings: FxHashMap::default(),
            named: None,
            met: [0; 4],
            bound: VecDeque::new(),
            met_wild: false,
        }
    }

    /// Bytes of the texts, or of a text that R asks for.
    pub(crate) fn bytes_met(&self) -> impl Iterator<Item = u8> + '_ {
        let asked = |byte: u8| self.slots.texts().chain(self.slots.rests()).any(|text| text.contains(&byte));
        (0..=255).filter(move |&byte| bits::contains(&self.met, usize::from(byte)) || asked(byte))
    }

    /// Record a text that a rule has bound.
    pub(crate) fn bind(&mut self, text: TextId) {
        if Self::is_known(text) && !self.bound.contains(&text) {
            self.bound.push_back(text);
            if self.bound.len() > limits::TRIED_NAMES {
                self.bound.pop_front();
            }
        }
    }

    /// The texts bound last, and those that R asks for.
    pub(crate) fn names(&self) -> Vec<Vec<u8>> {
        let mut found: Vec<Vec<u8>> = self.bound.iter().map(|&text| self.bytes(text)).collect();
        found.extend(self.slots.texts().map(<[u8]>::to_vec));
        found.sort_unstable();
        found.dedup();
        found
    }

    /// The number of texts.
    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    /// Return whether a text is known byte by byte.
    #[inline]
    pub(crate) fn is_known(text: TextId) -> bool {
        text >= EMPTY && text != NOTHING
    }

    /// A text with one more byte.
    pub(crate) fn push(&mut self, text: TextId, byte: u8) -> TextId {
        let text = if text == BEGUN { EMPTY } else { text };
        bits::insert(&mut self.met, byte.into());
        let table = &mut self.table;
        *self.longer.entry((text, byte)).or_insert_with(|| {
            table.push(Text { shorter: text, last: byte, length: table[text.index()].length + 1 });
            TextId::from_index(table.len() - 1)
        })
    }

    /// A text with more bytes.
    pub(crate) fn extended(&mut self, text: TextId, bytes: &[u8]) -> TextId {
        bytes.iter().fold(text, |text, &byte| self.push(text, byte))
    }

    /// A whole text.
    pub(crate) fn intern(&mut self, bytes: &[u8]) -> TextId {
        self.extended(EMPTY, bytes)
    }

    /// Length of a known text in bytes.
    #[inline]
    pub(crate) fn length(&self, text: TextId) -> usize {
        self.table[text.index()].length as usize
    }

    /// Texts that have slots.
    pub(crate) fn named(&mut self) -> &[TextId] {
        if self.named.is_none() {
            let texts: Vec<Vec<u8>> = self.slots.texts().map(<[u8]>::to_vec).collect();
            self.named = Some(texts.iter().map(|text| self.intern(text)).collect());
        }
        self.named.as_deref().expect("they are known")
    }

    /// The lexer's state after the first `bytes` bytes of a text, at least one. `from` is its state after fewer bytes,
    /// and their number: with modes, the text alone does not tell where the lexer began.
    pub(crate) fn state_after(
        &mut self,
        language: &Language,
        text: TextId,
        bytes: usize,
        from: (StateId, usize),
    ) -> StateId {
        if language.grammar.has_modes() {
            return run(&language.lexer, from.0, &self.bytes(text)[from.1..bytes]);
        }
        self.beginnings(&language.lexer, text)[bytes - 1].1
    }

    /// Return whether a known text begins with another known, nonempty text.
    pub(crate) fn begins(&mut self, lexer: &Lexer, text: TextId, begin: TextId) -> bool {
        let (length, of_begin) = (self.length(text), self.length(begin));
        of_begin <= length && self.beginnings(lexer, text)[of_begin - 1].0 == begin
    }

    /// The prefixes of a text, computed once for each text.
    fn beginnings(&mut self, lexer: &Lexer, text: TextId) -> &[(TextId, StateId)] {
        let table = &self.table;
        self.beginnings.entry(text).or_insert_with(|| {
            let mut found = vec![(text, lexer.start()); table[text.index()].length as usize];
            let mut at = text;
            for place in found.iter_mut().rev() {
                place.0 = at;
                at = table[at.index()].shorter;
            }
            let mut state = lexer.start();
            for place in &mut found {
                state = lexer.step(state, table[place.0.index()].last);
                place.1 = state;
            }
            found.into()
        })
    }

    /// Bytes of a known text.
    pub(crate) fn bytes(&self, text: TextId) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut at = text;
        while at > EMPTY {
            let Text { shorter, last, .. } = self.table[at.index()];
            bytes.push(last);
            at = shorter;
        }
        bytes.reverse();
        bytes
    }

    /// The slot of a text. A text that is not known has the slot that it certainly has.
    pub(crate) fn slot(&mut self, lexer: &Lexer, text: TextId) -> u8 {
        match text {
            CUT => CUTTABLE,
            text if !Self::is_known(text) => OTHER,
            text => {
                if let Some(&known) = self.slot_of.get(&text) {
                    return known;
                }
                let slot = self.slots.of(lexer, &self.bytes(text));
                self.slot_of.insert(text, slot);
                slot
            }
        }
    }
}
