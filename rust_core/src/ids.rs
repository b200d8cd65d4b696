//! Newtypes for every index of the engine, so that a set is never mistaken for a node.

use serde::{Deserialize, Serialize};

macro_rules! index_type {
    ($(#[$meta:meta])* $vis:vis $name:ident, $repr:ty) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
        $vis struct $name(pub $repr);

        impl $name {
            /// The index as a `usize`, for use with a slice.
            #[inline(always)]
            #[must_use]
            $vis fn index(self) -> usize {
                self.0 as usize
            }

            /// Wrap a slice index.
            #[inline(always)]
            #[must_use]
            $vis fn from_index(index: usize) -> Self {
                Self(<$repr>::try_from(index).expect("index fits its newtype"))
            }
        }
    };
}

index_type!(
    /// A terminal of the grammar, or a lexeme that no rule uses (ignored and error lexemes).
    pub LexemeId, u16);
index_type!(
    /// A grammar symbol: lexemes come first (`0..lexeme_count`), nonterminals after them.
    pub SymbolId, u16);
index_type!(
    /// A rule with a dot in it: `rule_base[rule] + position of the dot`.
    pub DotId, u32);
index_type!(
    /// A state of the joined lexeme DFA; 0 is the dead state.
    pub StateId, u32);
index_type!(
    /// The lexemes that one DFA state accepts (more than one only for soft keywords); 0 is the empty set.
    pub AcceptId, u16);
index_type!(
    /// A mode of the lexer; 0 reads the lexemes that are in no mode.
    pub ModeId, u8);
index_type!(
    /// An interned set of guards: DFA states of ended symbols that must not match again.
    pub GuardId, u32);
index_type!(
    /// A state of the free middle: the lexical context of a text still to be chosen, between two symbols.
    pub(crate) FreeId, u8);
index_type!(
    /// A set of the left chart.
    pub(crate) SetId, u32);
index_type!(
    /// A node of the right context's lattice, in topological order of creation within one session.
    pub(crate) NodeId, u32);
index_type!(
    /// An interned requirement.
    pub(crate) RequirementId, u32);
index_type!(
    /// An interned column of a block; 0 is "no column".
    pub(crate) ColumnId, u16);
index_type!(
    /// A token of the language model's vocabulary.
    pub TokenId, u32);
index_type!(
    /// A stack of open blocks on the left side; 0 is the module level, without any.
    pub(crate) IndentationId, u32);
index_type!(
    /// A state of the automaton of a middle's shape; 0 is the state before any text.
    pub ShapeId, u32);
index_type!(
    /// A node of the token table: a sequence of lexemes that tokens begin with.
    pub SpanId, u32);
index_type!(
    /// An interned text of a symbol in progress, or of a bound one.
    pub(crate) TextId, u32);
index_type!(
    /// An interned prediction of a set's items.
    pub(crate) PredictionId, u32);
index_type!(
    /// An interned answer: the symbols that a set of an unconstrained stack allows next.
    pub(crate) NextId, u32);
index_type!(
    /// An interned frame: solutions shared by sets with equal demands.
    pub(crate) FrameId, u32);
index_type!(
    /// An interned list of continuations of a symbol in progress.
    pub(crate) ContinuationsId, u32);
index_type!(
    /// An Earley set of the right chart, interned.
    pub(crate) RightSetId, u32);
index_type!(
    /// A run of entries of such sets, interned.
    pub(crate) RunId, u32);
index_type!(
    /// An interned kind of lattice node: its place without the position.
    pub(crate) KindId, u32);
index_type!(
    /// Origin of an item of the right chart that is not free: a node, or the middle if it has read an INDENT in R.
    pub(crate) OriginId, u32);
index_type!(
    /// A free part of sets of the right chart, interned.
    pub(crate) PartId, u32);
index_type!(
    /// An interned chunk of free items.
    pub(crate) ChunkId, u32);
index_type!(
    /// Start of a free item: a free state or, numbered after all of those, a list.
    pub(crate) SourceId, u32);
index_type!(
    /// Interned dots with which lists begin.
    pub(crate) LoneId, u32);
index_type!(
    /// An interned link: the effect of completing a symbol on a prediction of the right chart.
    pub(crate) LinkId, u32);

impl From<FreeId> for SourceId {
    #[inline(always)]
    fn from(state: FreeId) -> Self {
        Self(state.0.into())
    }
}

/// Lexemes are symbols of the grammar, and come first among them.
impl From<LexemeId> for SymbolId {
    #[inline(always)]
    fn from(lexeme: LexemeId) -> Self {
        Self(lexeme.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_comes_back_as_it_went_in() {
        assert_eq!(ModeId::from_index(255).index(), 255);
        assert_eq!(LexemeId::from_index(65_535).index(), 65_535);
        assert_eq!(SetId::from_index(65_536).index(), 65_536);
        assert_eq!(SymbolId::from(LexemeId(7)), SymbolId(7));
    }

    #[test]
    #[should_panic(expected = "index fits its newtype")]
    fn an_index_of_sixteen_bits_has_an_end() {
        let _ = LexemeId::from_index(65_536);
    }

    #[test]
    #[should_panic(expected = "index fits its newtype")]
    fn an_index_of_eight_bits_has_an_end() {
        let _ = FreeId::from_index(256);
    }
}
