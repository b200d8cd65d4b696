//! Facts about a grammar's rules that the chart relies on: brackets and blocks that a dot stands in.

use crate::error::Error;
use crate::grammar::compiled::Grammar;
use crate::ids::{DotId, LexemeId, SymbolId};
use crate::language::compiled::Language;
use crate::lexing::roles::Role;

/// Brackets that rules open and close. None do in a language without layout.
#[derive(Debug)]
pub(super) struct Nesting {
    /// Per symbol: the brackets that its texts open and leave open, less those that they close. At most 0 for a
    /// nonterminal: a field of a formatted string closes the bracket that the text before it has opened.
    effects: Vec<i8>,
    /// Per dot: the sum over its rule's symbols before it.
    open: Vec<i8>,
}

impl Nesting {
    /// Find them.
    ///
    /// # Errors
    /// A language whose texts have to recur, whose brackets do not match in rules, or with line breaks inside of them.
    pub(super) fn of(language: &Language) -> Result<Self, Error> {
        let refused = |what: &str| Err(Error::language(format!("language {}: two open holes: {what}", language.name)));
        if language.marks.is_some() {
            return refused("not decided where a text has to recur");
        }
        let grammar = &language.grammar;
        let mut nesting = Self { effects: vec![0; grammar.symbol_count()], open: vec![0; grammar.dot_count()] };
        if language.layout.is_none() {
            let unlimited = language.limits.brackets == u32::MAX;
            return if unlimited { Ok(nesting) } else { refused("not decided where brackets have a limit") };
        }
        let unmatched = "not decided where the brackets of a rule do not match";
        let Some(effects) = effects(language) else { return refused(unmatched) };
        nesting.effects = effects;
        let mut inside = Vec::new();
        for (index, rule) in grammar.rules().iter().enumerate() {
            for (position, &symbol) in rule.rhs.iter().enumerate() {
                let before = nesting.open[grammar.dot(index, position).index()];
                if before > 0 && role_of(language, symbol) != Some(Role::Close) {
                    inside.push(symbol);
                }
                let after = before.saturating_add(nesting.effect(symbol));
                if after < 0 && position + 1 < rule.rhs.len() {
                    return refused(unmatched);
                }
                nesting.open[grammar.dot(index, position + 1).index()] = after;
            }
        }
        if breaks_lines(language, inside) {
            return refused("not decided where lines may end inside of brackets");
        }
        Ok(nesting)
    }

    /// Brackets of a dot's own rule that are open at the dot; below 0 where it has closed one of another rule.
    #[inline]
    pub(super) fn open(&self, dot: DotId) -> i8 {
        self.open[dot.index()]
    }

    /// Brackets that a symbol's texts open, less those that they close.
    #[inline]
    pub(super) fn effect(&self, symbol: SymbolId) -> i8 {
        self.effects[symbol.index()]
    }
}

/// Per symbol: the brackets that all of its texts open, less those that they close. `None` where they differ, or where
/// a rule leaves some open or closes several of other rules.
fn effects(language: &Language) -> Option<Vec<i8>> {
    let grammar = &language.grammar;
    let of_lexeme = |symbol: usize| match role_of(language, SymbolId::from_index(symbol)) {
        Some(Role::Open) => Some(1),
        Some(Role::Close) => Some(-1),
        Some(_) => Some(0),
        None => None,
    };
    let mut effects: Vec<Option<i8>> = (0..grammar.symbol_count()).map(of_lexeme).collect();
    let mut changed = true;
    while changed {
        changed = false;
        for rule in grammar.rules() {
            let sum = rule.rhs.iter().try_fold(0i8, |sum, symbol| sum.checked_add(effects[symbol.index()]?));
            let known = effects[rule.lhs.index()];
            match (sum, known) {
                (Some(sum), None) if sum == 0 || sum == -1 => {
                    effects[rule.lhs.index()] = Some(sum);
                    changed = true;
                }
                (Some(sum), known) if known != Some(sum) => return None,
                _ => {}
            }
        }
    }
    Some(effects.into_iter().map(|effect| effect.unwrap_or(0)).collect())
}

/// The role of a symbol that is a lexeme.
pub(super) fn role_of(language: &Language, symbol: SymbolId) -> Option<Role> {
    let grammar = &language.grammar;
    grammar.is_lexeme(symbol).then(|| language.role(LexemeId::from_index(symbol.index())))
}

/// Return whether a dot stands between its rule's INDENT and DEDENT.
pub(super) fn is_in_block(grammar: &Grammar, dot: DotId) -> bool {
    let position = grammar.position(dot);
    grammar.rule(dot).block.is_some_and(|(indent, dedent)| (indent + 1..=dedent).contains(&position))
}

/// Return whether some of the symbols can hold a line break that is passed on.
fn breaks_lines(language: &Language, symbols: Vec<SymbolId>) -> bool {
    let grammar = &language.grammar;
    let mut seen = vec![false; grammar.symbol_count()];
    let mut stack = symbols;
    while let Some(symbol) = stack.pop() {
        if std::mem::replace(&mut seen[symbol.index()], true) {
            continue;
        }
        if role_of(language, symbol) == Some(Role::Newline) {
            return true;
        }
        stack.extend(grammar.rules().iter().filter(|rule| rule.lhs == symbol).flat_map(|rule| &rule.rhs));
    }
    false
}
