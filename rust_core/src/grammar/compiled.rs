//! Grammar in the form that the parser needs: its rules, with all tables that depend on them alone.

use crate::bits::{self, BitRows};
use crate::error::Error;
use crate::grammar::adjacency::Adjacency;
use crate::grammar::followers;
use crate::grammar::modes::{Modes, after_dots};
use crate::grammar::rules::Rules;
use crate::ids::{DotId, ModeId, SymbolId};
use crate::spec::LanguageSpec;
use std::ops::Deref;
use std::sync::OnceLock;

/// A reduced grammar: its [`Rules`], and tables derived from them.
#[derive(Debug)]
pub struct Grammar {
    rules: Rules,
    /// Per nonterminal: bitset of the nonterminals predicted with it.
    closure: BitRows,
    /// Per symbol: whether it is a nonterminal that stands first in no rule but its own and opens no block.
    lone: Box<[bool]>,
    adjacency: Adjacency,
    modes: Modes,
    /// Per symbol, on demand: bitset of the lexemes that can come after it.
    followers: OnceLock<BitRows>,
    /// Per 64 lexemes, on demand: the mask of those that can come next after each dot.
    coming: Box<[OnceLock<Vec<u64>>]>,
}

impl Deref for Grammar {
    type Target = Rules;

    #[inline(always)]
    fn deref(&self) -> &Rules {
        &self.rules
    }
}

impl Grammar {
    /// Compile and reduce a definition's rules. `producible` marks the lexemes that some text can be lexed as.
    ///
    /// # Errors
    /// Unknown symbols, an empty language, a block whose INDENT and DEDENT are not paired in one rule, or a rule that
    /// ends a mode which it did not begin.
    pub fn compile(spec: &LanguageSpec, producible: &[bool], mode_of: Vec<ModeId>) -> Result<Self, Error> {
        let rules = Rules::compile(spec, producible)?;
        let nonterminals = rules.symbol_count() - rules.lexeme_count();
        let closure = closure(&rules, nonterminals);
        Ok(Self {
            modes: Modes::derive(&rules, spec, mode_of)?,
            adjacency: Adjacency::derive(&rules),
            lone: lone(&rules, &closure, spec),
            closure,
            followers: OnceLock::new(),
            coming: vec![OnceLock::new(); rules.lexeme_count().div_ceil(64)].into(),
            rules,
        })
    }

    /// The dot one symbol further.
    #[inline(always)]
    #[must_use]
    pub fn advance(dot: DotId) -> DotId {
        DotId(dot.0 + 1)
    }

    /// Bitset of the nonterminals predicted together with one.
    #[must_use]
    pub fn closure(&self, nonterminal: SymbolId) -> &[u64] {
        self.closure.row(self.nonterminal_index(nonterminal))
    }

    /// Return whether a symbol is a nonterminal that stands first in no rule but its own: the rest of a list, mostly. It
    /// opens no block, and does not begin with a text that it binds.
    #[inline(always)]
    #[must_use]
    pub fn is_lone(&self, symbol: SymbolId) -> bool {
        self.lone[symbol.index()]
    }

    /// The number of nonterminals.
    #[must_use]
    pub fn nonterminal_count(&self) -> usize {
        self.symbol_count() - self.lexeme_count()
    }

    /// Bitset of the lexemes that the rest of a dot's rule can begin with.
    #[inline]
    #[must_use]
    pub fn first(&self, dot: DotId) -> &[u64] {
        self.adjacency.first(dot)
    }

    /// Return whether a lexeme can come right after another, layout lexemes passed over.
    #[must_use]
    pub fn is_adjacent(&self, one: SymbolId, other: SymbolId) -> bool {
        self.adjacency.is_adjacent(one, other)
    }

    /// Bitset of the lexemes, layout lexemes among them, that can come right after a symbol.
    #[must_use]
    pub(crate) fn followers(&self, symbol: SymbolId) -> &[u64] {
        self.followers.get_or_init(|| followers::derive(&self.rules, &self.adjacency)).row(symbol.index())
    }

    /// The mode of a lexeme.
    #[inline(always)]
    #[must_use]
    pub fn mode_of(&self, lexeme: SymbolId) -> ModeId {
        self.modes.of(lexeme)
    }

    /// A lexeme's bits in the mask from which [`Self::modes_in_force`] finds modes.
    #[inline(always)]
    #[must_use]
    pub fn mode_kinds(&self, lexeme: SymbolId) -> u64 {
        self.modes.kinds(lexeme)
    }

    /// The modes in force where lexemes of some kinds can come, as a mask.
    #[inline]
    #[must_use]
    pub fn modes_in_force(&self, kinds: u64) -> u64 {
        self.modes.in_force(kinds)
    }

    /// Return whether several modes can be in force at once: the language has modes and no layout.
    #[inline(always)]
    #[must_use]
    pub fn unites_modes(&self) -> bool {
        self.modes.united()
    }

    /// Return whether the lexer has modes at all.
    #[inline(always)]
    #[must_use]
    pub fn has_modes(&self) -> bool {
        self.modes.any()
    }

    /// The modes in which lexemes of no mode are read, as a mask.
    #[inline(always)]
    #[must_use]
    pub fn code_modes(&self) -> u64 {
        self.modes.code()
    }

    /// Return whether ordinary code is read in a mode.
    #[inline(always)]
    #[must_use]
    pub fn reads_code(&self, mode: ModeId) -> bool {
        bits::has(self.modes.code(), mode.index())
    }

    /// The modes of the lexemes that can come next after a dot, as a mask.
    #[inline(always)]
    #[must_use]
    pub fn modes_after(&self, dot: DotId) -> u64 {
        self.modes.after(dot)
    }

    /// The modes of the lexemes that can come right after a lexeme, as a mask.
    #[inline(always)]
    #[must_use]
    pub fn modes_after_lexeme(&self, lexeme: SymbolId) -> u64 {
        self.modes.after_lexeme(lexeme)
    }

    /// Return whether a lexeme can come next after a dot, whatever surrounds its rule.
    #[must_use]
    pub fn can_come(&self, dot: DotId, lexeme: SymbolId) -> bool {
        let (group, place) = (lexeme.index() / 64, lexeme.index() % 64);
        let mask_of = |other: SymbolId| if other.index() / 64 == group { 1 << (other.index() % 64) } else { 0 };
        let masks = self.coming[group].get_or_init(|| after_dots(&self.rules, mask_of, 0));
        bits::has(masks[dot.index()], place)
    }

    /// Return whether code never follows a lexeme.
    #[must_use]
    pub fn leads_away(&self, lexeme: SymbolId) -> bool {
        let after = self.modes_after_lexeme(lexeme);
        after != 0 && after & self.code_modes() == 0
    }

    /// Return whether a dot's rule can stand between lexemes of another mode (in a field of a formatted string).
    #[inline(always)]
    #[must_use]
    pub fn is_nested(&self, dot: DotId) -> bool {
        self.modes.is_nested(dot)
    }
}

/// Per nonterminal: the nonterminals predicted with it, itself among them.
fn closure(rules: &Rules, nonterminals: usize) -> BitRows {
    let mut direct: Vec<Vec<usize>> = vec![Vec::new(); nonterminals];
    for symbol in (rules.lexeme_count()..rules.symbol_count()).map(SymbolId::from_index) {
        for &dot in rules.initial(symbol) {
            direct[rules.nonterminal_index(rules.lhs(dot))].push(rules.nonterminal_index(symbol));
        }
    }
    let mut closure = BitRows::new(nonterminals, nonterminals);
    for nonterminal in 0..nonterminals {
        let mut stack = vec![nonterminal];
        while let Some(at) = stack.pop() {
            if !bits::contains(closure.row(nonterminal), at) {
                bits::insert(closure.row_mut(nonterminal), at);
                stack.extend(&direct[at]);
            }
        }
    }
    closure
}

/// Per symbol: whether it is a nonterminal that stands first in no rule but its own, opens no block and does not begin
/// with a text that it binds.
fn lone(rules: &Rules, closure: &BitRows, spec: &LanguageSpec) -> Box<[bool]> {
    let mut lone: Box<[bool]> = (0..rules.symbol_count()).map(|symbol| symbol >= rules.lexeme_count()).collect();
    lone[rules.start.index()] = false;
    let binds = |symbol: SymbolId| spec.marks.iter().any(|mark| mark.binds && mark.name == rules.name(symbol));
    let binders: Vec<bool> = (0..rules.lexeme_count()).map(|lexeme| binds(SymbolId::from_index(lexeme))).collect();
    let begins_bound = |first: Option<&SymbolId>| first.is_some_and(|first| binders.get(first.index()) == Some(&true));
    for rule in rules.rules().iter().filter(|rule| rule.block.is_some() || begins_bound(rule.rhs.first())) {
        lone[rule.lhs.index()] = false;
    }
    for nonterminal in 0..rules.symbol_count() - rules.lexeme_count() {
        for other in bits::numbers(closure.row(nonterminal)).filter(|&other| other != nonterminal) {
            lone[rules.lexeme_count() + other] = false;
        }
    }
    lone
}
