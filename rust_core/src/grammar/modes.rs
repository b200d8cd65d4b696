//! Modes of the lexer in the grammar: which modes can come next where. Masks have a bit for each mode.
//!
//! Where a language has no layout, a place may be in several modes at once: the modes of the lexemes that can come there.
//! A mode's longest match counts if it is a lexeme of its own; mode 0 owns the shared lexemes. All modes with code match
//! shared lexemes alike (`language::alike`), so one of them also stands for mode 0. Mode 0 is in force beside them only
//! for a shared lexeme that all of them are without.
//!
//! With layout, one mode is in force at a place: the first one with a lexeme that can come there.

use crate::bits;
use crate::error::Error;
use crate::grammar::rules::Rules;
use crate::ids::{DotId, ModeId, SymbolId};
use crate::limits;
use crate::spec::LanguageSpec;

/// The modes of lexemes and dots.
#[derive(Debug)]
pub(crate) struct Modes {
    /// The mode of each lexeme.
    of: Vec<ModeId>,
    any: bool,
    /// True if several modes can be in force at once.
    united: bool,
    /// True if mode 0 is left out where another mode reads all of its lexemes that can come.
    covered: bool,
    /// Per lexeme: its mode, or the kind of a shared lexeme that some modes are without, as a mask.
    kinds: Vec<u64>,
    /// Modes without the shared lexemes of each kind; the kinds follow the modes in a mask.
    without: Vec<u64>,
    /// The number of modes.
    count: usize,
    /// The modes in which lexemes of no mode are read.
    code: u64,
    /// Per dot: the modes of the lexemes that can come next.
    after: Vec<u64>,
    /// Per lexeme: the modes of the lexemes that can come right after it.
    after_lexeme: Vec<u64>,
    /// Per dot: whether its rule can stand inside a rule with another mode's lexemes.
    nested: Vec<bool>,
}

impl Modes {
    /// Derive them; `of` has the mode of each lexeme.
    ///
    /// # Errors
    /// In a language with layout, a rule that ends a mode and does not begin with the lexeme that leads into it.
    /// Without, too many modes and kinds of lexemes that they are without.
    pub(crate) fn derive(rules: &Rules, spec: &LanguageSpec, of: Vec<ModeId>) -> Result<Self, Error> {
        let united = spec.layout.is_none() && !spec.modes.is_empty();
        let count = spec.modes.len() + 1;
        let (kinds, without) = if united { kinds(rules, spec, &of) } else { (own_bits(&of), Vec::new()) };
        if count + without.len() > limits::MODES {
            let what = "modes, and sets of modes without a lexeme";
            return Err(Error::limit(what, count + without.len(), limits::MODES));
        }
        let code = 1 | spec.modes.iter().enumerate().filter(|(_, mode)| mode.code).map(|(at, _)| 2 << at).sum::<u64>();
        let after = after_dots(rules, |lexeme| bit(&of, lexeme), 1);
        let after_lexeme = (0..rules.lexeme_count()).map(|lexeme| {
            let dots = rules.occurrences(SymbolId::from_index(lexeme)).iter();
            dots.fold(0, |mask, dot| mask | after[dot.index() + 1])
        });
        let modes = Self {
            any: !spec.modes.is_empty(),
            united,
            covered: spec.modes.iter().all(|mode| mode.covers),
            kinds,
            without,
            count,
            code,
            after_lexeme: after_lexeme.collect(),
            nested: Vec::new(),
            of,
            after,
        };
        if united {
            return Ok(modes);
        }
        modes.check_ends(rules, spec)?;
        Ok(Self { nested: modes.find_nested(rules), ..modes })
    }

    /// Return whether several modes can be in force at once.
    #[inline(always)]
    #[must_use]
    pub(crate) fn united(&self) -> bool {
        self.united
    }

    /// A lexeme's bits in the mask from which [`Self::in_force`] finds modes.
    #[inline(always)]
    #[must_use]
    pub(crate) fn kinds(&self, lexeme: SymbolId) -> u64 {
        self.kinds[lexeme.index()]
    }

    /// The modes in force where lexemes of some kinds can come.
    #[inline]
    #[must_use]
    pub(crate) fn in_force(&self, kinds: u64) -> u64 {
        if !self.united {
            let own = kinds & !1;
            return if own == 0 { 1 } else { own & own.wrapping_neg() };
        }
        let own = kinds & !1 & (u64::MAX >> (64 - self.count));
        let code = own & self.code;
        let lacks = |kind: usize| bits::has(kinds, self.count + kind) && code & !self.without[kind] == 0;
        let plain = own == 0 || kinds & 1 != 0 && (code == 0 || !self.covered);
        let shared = kinds >> 1 >> (self.count - 1) != 0;
        if plain || shared && (!self.covered || (0..self.without.len()).any(lacks)) { own | 1 } else { own }
    }

    /// Return whether a symbol is a lexeme of a mode that reads no code.
    fn is_text(&self, rules: &Rules, symbol: SymbolId) -> bool {
        rules.is_lexeme(symbol) && bit(&self.of, symbol) & self.code == 0
    }

    /// Per dot: whether its rule is reached from one that holds lexemes of modes that read no code.
    fn find_nested(&self, rules: &Rules) -> Vec<bool> {
        let mut within = vec![false; rules.symbol_count()];
        let mut of: Vec<Vec<usize>> = vec![Vec::new(); rules.symbol_count()];
        for (index, rule) in rules.rules().iter().enumerate() {
            of[rule.lhs.index()].push(index);
        }
        let holds_text = |symbols: &[SymbolId]| symbols.iter().any(|&symbol| self.is_text(rules, symbol));
        let mut stack: Vec<SymbolId> =
            rules.rules().iter().filter(|rule| holds_text(&rule.rhs)).map(|rule| rule.lhs).collect();
        while let Some(symbol) = stack.pop() {
            if !std::mem::replace(&mut within[symbol.index()], true) {
                for rule in of[symbol.index()].iter().map(|&index| &rules.rules()[index]) {
                    stack.extend(rule.rhs.iter().filter(|symbol| !rules.is_lexeme(**symbol)));
                }
            }
        }
        (0..rules.dot_count()).map(|dot| within[rules.lhs(DotId::from_index(dot)).index()]).collect()
    }

    /// Check rules that lead back to code. After a lexeme of a mode that reads no code the line goes on in which the
    /// rule began (see `right`), so the rule has to begin with code.
    fn check_ends(&self, rules: &Rules, spec: &LanguageSpec) -> Result<(), Error> {
        let opens =
            |symbol: SymbolId| spec.modes.iter().any(|mode| mode.open.iter().any(|name| name == rules.name(symbol)));
        for (index, rule) in rules.rules().iter().enumerate() {
            for (position, &symbol) in rule.rhs.iter().enumerate() {
                let back = self.after[rules.dot(index, position + 1).index()] & self.code != 0;
                let begun = rules.is_lexeme(rule.rhs[0]) && !self.is_text(rules, rule.rhs[0]);
                if self.is_text(rules, symbol) && back && !opens(symbol) && !begun {
                    return Err(Error::language(format!(
                        "language {}: the rule of {} that ends a mode with {} must begin with the lexeme that leads into it",
                        spec.name,
                        rules.name(rule.lhs),
                        rules.name(symbol)
                    )));
                }
            }
        }
        Ok(())
    }

    /// The mode of a lexeme.
    #[inline(always)]
    #[must_use]
    pub(crate) fn of(&self, lexeme: SymbolId) -> ModeId {
        self.of[lexeme.index()]
    }

    /// Return whether the lexer has modes at all.
    #[inline(always)]
    #[must_use]
    pub(crate) fn any(&self) -> bool {
        self.any
    }

    /// The modes in which lexemes of no mode are read, as a mask.
    #[inline(always)]
    #[must_use]
    pub(crate) fn code(&self) -> u64 {
        self.code
    }

    /// The modes of the lexemes that can come next after a dot, as a mask.
    #[inline(always)]
    #[must_use]
    pub(crate) fn after(&self, dot: DotId) -> u64 {
        self.after[dot.index()]
    }

    /// The modes of the lexemes that can come right after a lexeme, as a mask.
    #[inline(always)]
    #[must_use]
    pub(crate) fn after_lexeme(&self, lexeme: SymbolId) -> u64 {
        self.after_lexeme[lexeme.index()]
    }

    /// Return whether a dot's rule can stand between lexemes of another mode (in a field of a formatted string).
    /// Always false where several modes can be in force at once.
    #[inline(always)]
    #[must_use]
    pub(crate) fn is_nested(&self, dot: DotId) -> bool {
        self.nested.get(dot.index()).copied().unwrap_or(false)
    }
}

/// Per lexeme: its mode as a mask.
fn own_bits(of: &[ModeId]) -> Vec<u64> {
    of.iter().map(|mode| 1 << mode.index()).collect()
}

/// Per lexeme: its mode, or its kind if it is a shared one that some modes with code are without. Then those modes, by
/// kind.
fn kinds(rules: &Rules, spec: &LanguageSpec, of: &[ModeId]) -> (Vec<u64>, Vec<u64>) {
    let mut kinds = own_bits(of);
    let mut without: Vec<u64> = Vec::new();
    for (index, kind) in kinds.iter_mut().enumerate().filter(|kind| *kind.1 == 1) {
        let name = rules.name(SymbolId::from_index(index));
        let lacking =
            spec.modes.iter().enumerate().filter(|(_, mode)| mode.code && mode.without.iter().any(|one| one == name));
        let lacking = lacking.fold(0u64, |mask, (at, _)| mask | 2 << at);
        if lacking != 0 {
            let at = without.iter().position(|&known| known == lacking).unwrap_or(without.len());
            if at == without.len() {
                without.push(lacking);
            }
            // A mask has room for as many kinds as `derive` takes.
            *kind = 1u64.checked_shl(u32::try_from(spec.modes.len() + 1 + at).expect("few modes")).unwrap_or(0);
        }
    }
    (kinds, without)
}

/// The mask of a lexeme's mode.
fn bit(of: &[ModeId], lexeme: SymbolId) -> u64 {
    1 << of[lexeme.index()].index()
}

/// Per dot: the union of the masks of the lexemes that can come next, as a least fixpoint over the rules. `end` is the
/// mask of the file's end.
pub(super) fn after_dots(rules: &Rules, mask_of: impl Fn(SymbolId) -> u64, end: u64) -> Vec<u64> {
    let mut first = vec![0u64; rules.symbol_count()];
    for (index, mask) in first.iter_mut().enumerate().take(rules.lexeme_count()) {
        *mask = mask_of(SymbolId::from_index(index));
    }
    let mut follow = vec![0u64; rules.symbol_count()];
    follow[rules.start.index()] = end;
    let mut after = vec![0u64; rules.dot_count()];
    let mut changed = true;
    while changed {
        changed = false;
        let mut add = |cell: &mut u64, more: u64| {
            changed |= *cell | more != *cell;
            *cell |= more;
        };
        for (index, rule) in rules.rules().iter().enumerate() {
            let mut behind = follow[rule.lhs.index()];
            for position in (0..=rule.rhs.len()).rev() {
                if let Some(&symbol) = rule.rhs.get(position) {
                    add(&mut follow[symbol.index()], behind);
                    let own = first[symbol.index()];
                    behind = if rules.nullable(symbol) { behind | own } else { own };
                }
                after[rules.dot(index, position).index()] = behind;
            }
            let mut begins = 0;
            for &symbol in &rule.rhs {
                begins |= first[symbol.index()];
                if !rules.nullable(symbol) {
                    break;
                }
            }
            add(&mut first[rule.lhs.index()], begins);
        }
    }
    after
}
