//! Which lexemes can stand next to each other in some text of a language, and what the rest of a rule can begin with.

use crate::grammar::rules::{END_OF_RULE, Rules};
use crate::ids::{DotId, SymbolId};
use crate::lexing::lexer::bits;

/// Bitsets over lexemes, one row of words for each symbol, dot or lexeme.
#[derive(Debug)]
struct Rows {
    words: usize,
    bits: Vec<u64>,
}

impl Rows {
    fn new(rows: usize, words: usize) -> Self {
        Self { words, bits: vec![0; rows * words] }
    }

    fn row(&self, index: usize) -> &[u64] {
        &self.bits[index * self.words..(index + 1) * self.words]
    }

    fn row_mut(&mut self, index: usize) -> &mut [u64] {
        &mut self.bits[index * self.words..(index + 1) * self.words]
    }

    fn has(&self, row: usize, bit: usize) -> bool {
        self.bits[row * self.words + bit / 64] >> (bit % 64) & 1 == 1
    }
}

/// Adds one bitset to another; whether anything changed.
fn join(into: &mut [u64], from: &[u64]) -> bool {
    into.iter_mut().zip(from).fold(false, |changed, (word, &more)| {
        let old = std::mem::replace(word, *word | more);
        changed | (old != *word)
    })
}

/// What can come next, by lexemes and by dots.
#[derive(Debug)]
pub(crate) struct Adjacency {
    /// Per lexeme: the lexemes that can come next, those of the layout stage passed over.
    adjacent: Rows,
    /// Per dot: the lexemes that the rest of its rule can begin with.
    first: Rows,
}

impl Adjacency {
    pub(crate) fn derive(rules: &Rules) -> Self {
        let words = rules.lexeme_count().div_ceil(64);
        let (first, last) = ends(rules, words);
        let mut adjacent = Rows::new(rules.lexeme_count(), words);
        for rule in rules.rules() {
            for (place, one) in rule.rhs.iter().enumerate() {
                for other in &rule.rhs[place + 1..] {
                    for lexeme in bits(last.row(one.index())) {
                        join(adjacent.row_mut(lexeme), first.row(other.index()));
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

    /// Whether a lexeme can come right after another, the layout stage's passed over.
    #[must_use]
    pub(crate) fn is_adjacent(&self, one: SymbolId, other: SymbolId) -> bool {
        self.adjacent.has(one.index(), other.index())
    }
}

/// Per symbol: the lexemes that its texts can begin with, and those that they can end with.
fn ends(rules: &Rules, words: usize) -> (Rows, Rows) {
    let mut first = Rows::new(rules.symbol_count(), words);
    let mut last = Rows::new(rules.symbol_count(), words);
    for lexeme in 0..rules.lexeme_count() {
        first.row_mut(lexeme)[lexeme / 64] |= 1 << (lexeme % 64);
        last.row_mut(lexeme)[lexeme / 64] |= 1 << (lexeme % 64);
    }
    let mut changed = true;
    while changed {
        changed = false;
        for rule in rules.rules() {
            for (table, backwards) in [(&mut first, false), (&mut last, true)] {
                let mut own = vec![0u64; words];
                for place in 0..rule.rhs.len() {
                    let symbol = rule.rhs[if backwards { rule.rhs.len() - 1 - place } else { place }];
                    join(&mut own, table.row(symbol.index()));
                    if !rules.nullable(symbol) {
                        break;
                    }
                }
                changed |= join(table.row_mut(rule.lhs.index()), &own);
            }
        }
    }
    (first, last)
}

fn first_of_dots(rules: &Rules, first: &Rows) -> Rows {
    let mut found = Rows::new(rules.dot_count(), first.words);
    for dot in (0..rules.dot_count()).rev() {
        let symbol = rules.next(DotId::from_index(dot));
        if symbol == END_OF_RULE {
            continue;
        }
        let mut own = first.row(symbol.index()).to_vec();
        if rules.nullable(symbol) {
            join(&mut own, found.row(dot + 1));
        }
        found.row_mut(dot).copy_from_slice(&own);
    }
    found
}

/// The layout stage's lexemes have no text: what can come after them can come right after what they follow.
fn pass_over_layout(rules: &Rules, adjacent: &mut Rows) {
    let Some((indent, dedent)) = rules.indent_dedent else { return };
    for _ in 0..rules.lexeme_count() {
        for lexeme in 0..rules.lexeme_count() {
            for layout in [indent.index(), dedent.index()] {
                if adjacent.has(lexeme, layout) {
                    let next = adjacent.row(layout).to_vec();
                    join(adjacent.row_mut(lexeme), &next);
                }
            }
        }
    }
}
