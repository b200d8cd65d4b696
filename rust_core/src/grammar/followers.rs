//! Lexemes that can come right after a symbol, over all texts of the language.

use crate::bits::{self, BitRows};
use crate::grammar::adjacency::Adjacency;
use crate::grammar::rules::Rules;
use crate::ids::SymbolId;

/// Per symbol: bitset of the lexemes, layout lexemes among them, that can come after it.
pub(super) fn derive(rules: &Rules, adjacency: &Adjacency) -> BitRows {
    let mut found = BitRows::new(rules.symbol_count(), rules.lexeme_count());
    // By nonterminal: the symbols with which its rules can end, which all that follows it follows.
    let mut last: Vec<Vec<SymbolId>> = vec![Vec::new(); rules.symbol_count()];
    for (index, rule) in rules.rules().iter().enumerate() {
        let mut ends = true;
        for (place, &symbol) in rule.rhs.iter().enumerate().rev() {
            bits::unite(found.row_mut(symbol.index()), adjacency.first(rules.dot(index, place + 1)));
            if ends {
                last[rule.lhs.index()].push(symbol);
            }
            ends &= rules.nullable(symbol);
        }
    }
    for symbols in &mut last {
        symbols.sort_unstable();
        symbols.dedup();
    }
    let mut changed: Vec<SymbolId> = (0..rules.symbol_count()).map(SymbolId::from_index).collect();
    let mut is_waiting = vec![true; changed.len()];
    while let Some(symbol) = changed.pop() {
        is_waiting[symbol.index()] = false;
        for &end in &last[symbol.index()] {
            if found.grow(end.index(), symbol.index()) && !std::mem::replace(&mut is_waiting[end.index()], true) {
                changed.push(end);
            }
        }
    }
    found
}
