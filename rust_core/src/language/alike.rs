//! Check that modes with code read the shared lexemes alike, where several modes can be in force at once.
//!
//! At a place, the longest match of each mode in force counts if it is a lexeme of the mode's own; mode 0 owns the
//! shared lexemes. A branch of the lexer in a mode with code also stands for mode 0 (`grammar::modes`). So the mode has
//! to match a shared lexeme wherever mode 0 does, with the same end, and nowhere else. A definition whose mode does not
//! is refused, unless the mode is without the lexeme.

use crate::error::Error;
use crate::grammar::compiled::Grammar;
use crate::ids::{AcceptId, LexemeId, ModeId, SymbolId};
use crate::lexing::lexer::Lexer;
use crate::lexing::roles::Role;
use crate::lexing::two_modes::TwoModes;
use crate::spec::{LanguageSpec, ModeSpec};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;

/// Check that each mode with code reads the shared lexemes as mode 0 does.
///
/// # Errors
/// A shared lexeme that a mode matches differently, or an ignored lexeme that some mode lacks or owns.
pub(super) fn check(spec: &LanguageSpec, lexer: &Lexer, grammar: &Grammar, roles: &[Role]) -> Result<(), Error> {
    for (mode, id) in spec.modes.iter().zip((1..=spec.modes.len()).map(ModeId::from_index)) {
        let wrong = |lexeme: LexemeId, what: &str| {
            let named = grammar.name(SymbolId::from(lexeme));
            Err(Error::language(format!("language {}: mode {}: {named} {what}", spec.name, mode.name)))
        };
        let own = |lexeme: &LexemeId| grammar.mode_of(SymbolId::from(*lexeme)) == id;
        let ignored = (0..spec.lexemes.len()).map(LexemeId::from_index).filter(|id| roles[id.index()].is_ignored());
        for lexeme in ignored {
            if own(&lexeme) {
                return wrong(lexeme, "is ignored, so it cannot be a lexeme of one mode");
            }
            if mode.without.contains(&spec.lexemes[lexeme.index()].name) {
                return wrong(lexeme, "is ignored, so no mode can be without it");
            }
        }
        if mode.code
            && let Some(lexeme) = (Shared { lexer, grammar, roles, spec, mode }).differing(id)
        {
            return wrong(
                lexeme,
                "is not matched as outside of the mode; make it a lexeme of the mode, or list it in without",
            );
        }
    }
    Ok(())
}

/// Shared lexemes of a definition, but for those that a mode is without.
struct Shared<'a> {
    lexer: &'a Lexer,
    grammar: &'a Grammar,
    roles: &'a [Role],
    spec: &'a LanguageSpec,
    mode: &'a ModeSpec,
}

impl Shared<'_> {
    /// Those of an accept set that can be read or ignored.
    fn of(&self, accept: AcceptId) -> Vec<LexemeId> {
        let is_read = |id: &LexemeId| {
            let symbol = SymbolId::from(*id);
            self.grammar.mode_of(symbol) == ModeId(0)
                && (self.roles[id.index()].is_ignored() || !self.grammar.occurrences(symbol).is_empty())
                && !self.mode.without.contains(&self.spec.lexemes[id.index()].name)
        };
        if accept == AcceptId(0) {
            Vec::new()
        } else {
            self.lexer.lexemes(accept).iter().copied().filter(is_read).collect()
        }
    }

    /// A shared lexeme of which mode 0 and another mode do not find the same longest matches, in a shortest text.
    fn differing(&self, mode: ModeId) -> Option<LexemeId> {
        let lexer = self.lexer;
        let bytes = lexer.representatives();
        let start = TwoModes::start(lexer, mode);
        let mut seen: FxHashSet<TwoModes> = std::iter::once(start).collect();
        let mut waiting = VecDeque::from([start]);
        let mut known: FxHashMap<(AcceptId, AcceptId, bool), Option<LexemeId>> = FxHashMap::default();
        while let Some(at) = waiting.pop_front() {
            let TwoModes { last_plain, last_in_mode, level, .. } = at;
            let differs = *known.entry((last_plain, last_in_mode, level)).or_insert_with(|| {
                let (one, other) = (self.of(last_plain), self.of(last_in_mode));
                if one == other && level {
                    return None;
                }
                let only = |some: &[LexemeId], others: &[LexemeId]| {
                    some.iter().copied().find(|lexeme| !level || !others.contains(lexeme))
                };
                only(&one, &other).or_else(|| only(&other, &one))
            });
            if differs.is_some() {
                return differs;
            }
            if at.goes_on_alike() {
                continue;
            }
            let next = bytes.iter().filter_map(|&byte| at.after(lexer, byte));
            waiting.extend(next.filter(|&next| seen.insert(next)));
        }
        None
    }
}
