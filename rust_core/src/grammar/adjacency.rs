//! Lexemes that can stand next to each other, and lexemes with which the rest of a rule can begin.

use crate::bits::{self, BitRows, BitSet};
use crate::grammar::rules::{END_OF_RULE, Rules};
use crate::ids::{DotId, SymbolId};

/// Lexemes that can come next, by lexeme and by dot.
#[derive(Debug)]
pub(crate) struct Adjacency {
    /// Per lexeme: the lexemes that can come next, layout lexemes passed over.
    adjacent: BitRows,
    /// Per dot: the lexemes that the rest of its rule can begin with.
    first: BitRows,
}

impl Adjacency {
    pub(crate) fn derive(rules: &Rules) -> Self {
        let (first, last) = ends(rules);
        let mut adjacent = BitRows::new(rules.lexeme_count(), rules.lexeme_count());
        for rule in rules.rules() {
            for (place, one) in rule.rhs.iter().enumerate() {
                for other in &rule.rhs[place + 1..] {
                    for lexeme in bits::numbers(last.row(one.index())) {
                        bits::unite(adjacent.row_mut(lexeme), first.row(other.index()));
                    }
                    if !rules.nullable(*other) {
                        break;
                    }
                }
            }
        }
        pass_over_layout(rules, &mut adjacent);
        Self { adjacent, first: first_of_dots(rules, &first) }
    }

    /// Bitset of the lexemes that the rest of a dot's rule can begin with.
    #[inline]
    #[must_use]
    pub(crate) fn first(&self, dot: DotId) -> &[u64] {
        self.first.row(dot.index())
    }

    /// Return whether a lexeme can come right after another, layout lexemes passed over.
    #[must_use]
    pub(crate) fn is_adjacent(&self, one: SymbolId, other: SymbolId) -> bool {
        bits::contains(self.adjacent.row(one.index()), other.index())
    }
}

/// Per symbol: the lexemes that its texts can begin with, and those that they can end with.
fn ends(rules: &Rules) -> (BitRows, BitRows) {
    let mut first = BitRows::new(rules.symbol_count(), rules.lexeme_count());
    let mut last = BitRows::new(rules.symbol_count(), rules.lexeme_count());
    for lexeme in 0..rules.lexeme_count() {
        bits::insert(first.row_mut(lexeme), lexeme);
        bits::insert(last.row_mut(lexeme), lexeme);
    }
    let mut changed = true;
    while changed {
        changed = false;
        for rule in rules.rules() {
            for (table, backwards) in [(&mut first, false), (&mut last, true)] {
                let mut own = BitSet::new(rules.lexeme_count());
                for place in 0..rule.rhs.len() {
                    let symbol = rule.rhs[if backwards { rule.rhs.len() - 1 - place } else { place }];
                    bits::unite(own.words_mut(), table.row(symbol.index()));
                    if !rules.nullable(symbol) {
                        break;
                    }
                }
                changed |= bits::grow(table.row_mut(rule.lhs.index()), own.words());
            }
        }
    }
    (first, last)
}

fn first_of_dots(rules: &Rules, first: &BitRows) -> BitRows {
    let mut found = BitRows::new(rules.dot_count(), rules.lexeme_count());
    for dot in (0..rules.dot_count()).rev() {
        let symbol = rules.next(DotId::from_index(dot));
        if symbol == END_OF_RULE {
            continue;
        }
        let mut own = first.row(symbol.index()).to_vec();
        if rules.nullable(symbol) {
            bits::unite(&mut own, found.row(dot + 1));
        }
        found.row_mut(dot).copy_from_slice(&own);
    }
    found
}

/// Pass over layout lexemes, which have no text: their followers can come right after their predecessors.
fn pass_over_layout(rules: &Rules, adjacent: &mut BitRows) {
    let Some((indent, dedent)) = rules.indent_dedent else { return };
    for _ in 0..rules.lexeme_count() {
        for lexeme in 0..rules.lexeme_count() {
            for layout in [indent.index(), dedent.index()] {
                if bits::contains(adjacent.row(lexeme), layout) {
                    adjacent.grow(lexeme, layout);
                }
            }
        }
    }
}
