//! Texts of symbols that bind or match, as far as they were read: interned byte by byte.

use crate::bits;
use crate::ids::TextId;
use crate::language::marks::{CUTTABLE, OTHER, Slots};
use crate::lexing::lexer::Lexer;
use rustc_hash::FxHashMap;

/// A text that is none of those that were bound, or one that nothing asks for.
pub(crate) const PLAIN: TextId = TextId(0);

/// A text that is whatever it has to be: what is taken so may be refused when the text is known.
pub(crate) const WILD: TextId = TextId(1);

/// As [`PLAIN`], and one that the cursor cuts.
pub(crate) const CUT: TextId = TextId(2);

/// As [`WILD`], and of what is read so only what the text is asked for.
pub(crate) const MARKED: TextId = TextId(4);

/// A symbol begins with the byte that is being read.
pub(crate) const BEGUN: TextId = TextId(3);

/// Nothing is bound.
pub(crate) const NOTHING: TextId = TextId(u32::MAX);

const EMPTY: TextId = TextId(5);

/// All texts that a session has met.
#[derive(Debug)]
pub(crate) struct Texts {
    /// The slots of the session's R.
    pub(crate) slots: Slots,
    /// Per text: the one that is shorter by a byte, and that byte.
    table: Vec<(TextId, u8)>,
    longer: FxHashMap<(TextId, u8), TextId>,
    slot_of: FxHashMap<TextId, u8>,
    /// Which bytes there are in any of them.
    met: [u64; 4],
    /// A text that may be anything was compared with another such, some time.
    pub(crate) met_wild: bool,
}

impl Texts {
    pub(crate) fn new(slots: Slots) -> Self {
        Self {
            slots,
            table: vec![(EMPTY, 0); EMPTY.index() + 1],
            longer: FxHashMap::default(),
            slot_of: FxHashMap::default(),
            met: [0; 4],
            met_wild: false,
        }
    }

    /// The bytes that there are in any of them, or in one that R asks for.
    pub(crate) fn bytes_met(&self) -> impl Iterator<Item = u8> + '_ {
        let asked = |byte: u8| self.slots.texts().chain(self.slots.rests()).any(|text| text.contains(&byte));
        (0..=255).filter(move |&byte| bits::contains(&self.met, usize::from(byte)) || asked(byte))
    }

    /// The number of texts.
    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    /// How many there are before any was read.
    pub(crate) fn new_len() -> usize {
        EMPTY.index() + 1
    }

    /// Whether a text is known byte by byte.
    #[inline]
    pub(crate) fn is_known(text: TextId) -> bool {
        text >= EMPTY && text != NOTHING
    }

    /// A text and a byte more.
    pub(crate) fn push(&mut self, text: TextId, byte: u8) -> TextId {
        let text = if text == BEGUN { EMPTY } else { text };
        bits::insert(&mut self.met, byte.into());
        let table = &mut self.table;
        *self.longer.entry((text, byte)).or_insert_with(|| {
            table.push((text, byte));
            TextId::from_index(table.len() - 1)
        })
    }

    /// A text and some bytes more.
    pub(crate) fn extended(&mut self, text: TextId, bytes: &[u8]) -> TextId {
        bytes.iter().fold(text, |text, &byte| self.push(text, byte))
    }

    /// A whole text.
    pub(crate) fn intern(&mut self, bytes: &[u8]) -> TextId {
        self.extended(EMPTY, bytes)
    }

    /// The bytes of a text that is known.
    pub(crate) fn bytes(&self, text: TextId) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut at = text;
        while at > EMPTY {
            let (shorter, byte) = self.table[at.index()];
            bytes.push(byte);
            at = shorter;
        }
        bytes.reverse();
        bytes
    }

    /// The slot of a text; of one that is not known, where it certainly is.
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
