//! Lexemes that stand at the first byte of a file alone, such as a line for the shell.
//!
//! To lexer and parser, an imaginary byte stands before the file. It begins these lexemes, and is one by itself, the
//! *start*, where none of them matches: the longest match decides. So a file is the start and a text without these
//! lexemes, or one of them and what may follow it, which is a derivative of the grammar (Brzozowski 1964). After L's
//! first symbol no rule takes one any more, so that nothing else in the engine need know of them.

use crate::grammar::rule::{Rule, nullable};
use crate::ids::SymbolId;
use rustc_hash::{FxHashMap, FxHashSet};

/// Lexemes at the first byte of a file.
pub(super) struct First {
    /// The start, which has no text of its own.
    pub(super) start: SymbolId,
    /// Lexemes that rules read.
    pub(super) read: Vec<SymbolId>,
    /// Lexemes that are ignored.
    pub(super) ignored: Vec<SymbolId>,
}

impl First {
    /// Put the lexemes before all that rules derive from `start`. Return the nonterminal of a whole file. Its name, and
    /// those of derivatives, are added to `names`.
    pub(super) fn put_before(&self, rules: &mut Vec<Rule>, names: &mut Vec<String>, start: SymbolId) -> SymbolId {
        let file = named(names, "{file}".into());
        let nullable = nullable(rules, names.len());
        let is_first = |symbol: &SymbolId| self.read.contains(symbol);
        let mut added: Vec<Rule> = Vec::new();
        let mut add = |lhs: SymbolId, rhs: Vec<SymbolId>| {
            if rhs != [lhs] {
                added.push(Rule { lhs, rhs, block: None });
            }
        };
        for &begin in std::iter::once(&self.start).chain(&self.ignored) {
            add(file, vec![begin, start]);
        }
        for &lexeme in &self.read {
            let begins = beginning_with(rules, &nullable, lexeme);
            let derivatives: FxHashMap<SymbolId, SymbolId> = begins
                .iter()
                .filter(|&&symbol| symbol != lexeme)
                .map(|&symbol| {
                    let name = format!("{}{{after {}}}", names[symbol.index()], names[lexeme.index()]);
                    (symbol, named(names, name))
                })
                .collect();
            if let Some(&rest) = derivatives.get(&start) {
                add(file, vec![lexeme, rest]);
            }
            for rule in rules.iter() {
                let Some(&lhs) = derivatives.get(&rule.lhs) else { continue };
                for (position, symbol) in rule.rhs.iter().enumerate() {
                    let rest = &rule.rhs[position + 1..];
                    if begins.contains(symbol) && !rest.iter().any(is_first) {
                        let derived = derivatives.get(symbol).into_iter();
                        add(lhs, derived.chain(rest).copied().collect());
                    }
                    if !nullable[symbol.index()] {
                        break;
                    }
                }
            }
        }
        rules.retain(|rule| !rule.rhs.iter().any(is_first));
        rules.append(&mut added);
        file
    }
}

fn named(names: &mut Vec<String>, name: String) -> SymbolId {
    names.push(name);
    SymbolId::from_index(names.len() - 1)
}

/// The nonterminals of which some text begins with a lexeme.
fn beginning_with(rules: &[Rule], nullable: &[bool], lexeme: SymbolId) -> FxHashSet<SymbolId> {
    let mut found: FxHashSet<SymbolId> = std::iter::once(lexeme).collect();
    loop {
        let known = found.len();
        for rule in rules {
            let last = rule.rhs.iter().position(|symbol| !nullable[symbol.index()]).unwrap_or(rule.rhs.len());
            if rule.rhs.iter().take(last + 1).any(|symbol| found.contains(symbol)) {
                found.insert(rule.lhs);
            }
        }
        if found.len() == known {
            return found;
        }
    }
}
