//! Least fixpoint of a grammar's rules over (min, +).
//!
//! Symbols act on the free states as matrices. There are far fewer matrices than symbols and dots. To a shape, all
//! keywords of one length are alike, and so are a name and the seventeen unit rules above it. So matrices are interned,
//! and each product and each minimum of two is computed once.

use crate::components::components;
use crate::grammar::compiled::Grammar;
use crate::ids::{DotId, SymbolId};
use crate::language::matrices::{Cell, Cost, IDENTITY, NEVER, Pool};
use rustc_hash::FxHashMap;

/// Costs of symbols, and of the prefixes of dots, from one state to another. Equal matrices are stored once.
#[derive(Debug)]
pub(super) struct Relations {
    count: usize,
    cells: Vec<Cost>,
    /// Per symbol, and per dot: where its matrix begins among the cells.
    symbols: Vec<u32>,
    dots: Vec<u32>,
}

impl Relations {
    /// The cost of a symbol from one state to another.
    #[inline]
    pub(super) fn symbol(&self, symbol: SymbolId, from: usize, to: usize) -> Cost {
        self.cells[self.symbols[symbol.index()] as usize + from * self.count + to]
    }

    /// The cost of the symbols before a dot from one state to another.
    #[inline]
    pub(super) fn prefix(&self, dot: DotId, from: usize, to: usize) -> Cost {
        self.cells[self.dots[dot.index()] as usize + from * self.count + to]
    }

    /// A number shared by the dots whose prefixes have equal costs.
    pub(super) fn prefix_class(&self, dot: DotId) -> u32 {
        self.dots[dot.index()] / u32::try_from(self.count.pow(2)).expect("free states are few")
    }

    /// The number of different matrices.
    pub(super) fn matrix_count(&self) -> usize {
        self.cells.len() / self.count.pow(2)
    }

    /// Map the relations to `count` other states: each matrix becomes another.
    pub(super) fn over(&self, count: usize, matrix: impl Fn(&[Cost]) -> Vec<Cost>) -> Self {
        let (square, other) = (self.count.pow(2), count.pow(2));
        let moved =
            |offsets: &[u32]| offsets.iter().map(|&offset| offset_of(offset as usize / square, other)).collect();
        let cells: Vec<Cost> = self.cells.chunks_exact(square).flat_map(matrix).collect();
        debug_assert_eq!(cells.len(), self.matrix_count() * other);
        Self { count, cells, symbols: moved(&self.symbols), dots: moved(&self.dots) }
    }
}

fn offset_of(matrix: usize, square: usize) -> u32 {
    u32::try_from(matrix * square).expect("cell count fits u32")
}

/// Close costs of lexemes, `lexemes[symbol * count² + from * count + to]`, over the rules.
pub(super) fn close(lexemes: &[Cost], grammar: &Grammar, count: usize) -> Relations {
    // Costs of half the width are twice as fast, and wide enough unless shortest texts have many kilobytes.
    closed::<u16>(lexemes, grammar, count)
        .or_else(|| closed::<Cost>(lexemes, grammar, count))
        .expect("no cost is too large for its own type")
}

/// The rules of each component of nonterminals, dependencies first.
fn rules_by_component(grammar: &Grammar) -> Vec<Vec<usize>> {
    let first = grammar.lexeme_count();
    let mut made_of: Vec<Vec<usize>> = vec![Vec::new(); grammar.symbol_count() - first];
    for rule in grammar.rules() {
        let nonterminals = rule.rhs.iter().filter(|&&symbol| !grammar.is_lexeme(symbol));
        made_of[rule.lhs.index() - first].extend(nonterminals.map(|symbol| symbol.index() - first));
    }
    let (found, of) = components(made_of.len(), |symbol, nth| made_of[symbol].get(nth).copied());
    let mut rules = vec![Vec::new(); found.len()];
    for (index, rule) in grammar.rules().iter().enumerate() {
        rules[of[rule.lhs.index() - first]].push(index);
    }
    rules.reverse();
    rules
}

fn closed<C: Cell>(lexemes: &[Cost], grammar: &Grammar, count: usize) -> Option<Relations> {
    let mut pool = Pool::<C>::new(count);
    let mut relation = vec![NEVER; grammar.symbol_count()];
    for (own, costs) in relation.iter_mut().zip(lexemes.chunks_exact(count * count)) {
        *own = pool.of_costs(costs);
    }
    let mut prefix = vec![NEVER; grammar.dot_count()];
    // A rule is revisited if one of its symbols has changed.
    let mut steps = 1usize;
    let mut changed_at = vec![1usize; grammar.symbol_count()];
    let mut looked_at = vec![0usize; grammar.rules().len()];
    for rules in rules_by_component(grammar) {
        let mut changed = true;
        // Kleene iteration over one component at a time. Costs only fall, so it ends. Interned matrices make the test
        // for a change one comparison of ids, and a rule costs nothing while its symbols stay the same.
        while std::mem::replace(&mut changed, false) {
            for &index in &rules {
                let rule = &grammar.rules()[index];
                let looked = std::mem::replace(&mut looked_at[index], steps);
                if looked != 0 && rule.rhs.iter().all(|symbol| changed_at[symbol.index()] <= looked) {
                    continue;
                }
                let first = grammar.dot(index, 0).index();
                let mut product = IDENTITY;
                prefix[first] = product;
                for (position, symbol) in rule.rhs.iter().enumerate() {
                    product = pool.product(product, relation[symbol.index()]);
                    prefix[first + position + 1] = product;
                }
                let least = pool.least(relation[rule.lhs.index()], product);
                if std::mem::replace(&mut relation[rule.lhs.index()], least) != least {
                    changed = true;
                    changed_at[rule.lhs.index()] = steps + 1;
                }
                steps += 1;
            }
            if !pool.is_exact() {
                return None;
            }
        }
    }
    Some(settled(&pool, relation, prefix))
}

/// The matrices of symbols and of dots, and no others.
fn settled<C: Cell>(pool: &Pool<C>, symbols: Vec<u32>, dots: Vec<u32>) -> Relations {
    let square = pool.count().pow(2);
    let mut cells = Vec::new();
    let mut moved: FxHashMap<u32, u32> = FxHashMap::default();
    let mut offset = |matrix: u32| {
        let fresh = offset_of(moved.len(), square);
        *moved.entry(matrix).or_insert_with(|| {
            cells.extend(pool.costs(matrix));
            fresh
        })
    };
    let symbols = symbols.into_iter().map(&mut offset).collect();
    let dots = dots.into_iter().map(&mut offset).collect();
    Relations { count: pool.count(), cells, symbols, dots }
}
