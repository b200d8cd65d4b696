//! BNF rules, one by one.

use crate::ids::SymbolId;

/// One BNF rule after pruning.
#[derive(Debug, Clone)]
pub struct Rule {
    /// The nonterminal.
    pub lhs: SymbolId,
    /// Its expansion.
    pub rhs: Vec<SymbolId>,
    /// Positions of the block's INDENT and DEDENT in `rhs`.
    pub block: Option<(usize, usize)>,
}

/// Per symbol: whether it derives the empty sequence.
pub(super) fn nullable(rules: &[Rule], symbol_count: usize) -> Vec<bool> {
    let mut nullable = vec![false; symbol_count];
    loop {
        let mut changed = false;
        for rule in rules {
            if !nullable[rule.lhs.index()] && rule.rhs.iter().all(|symbol| nullable[symbol.index()]) {
                nullable[rule.lhs.index()] = true;
                changed = true;
            }
        }
        if !changed {
            return nullable;
        }
    }
}
