//! The least fixpoint of a grammar's rules over (min, +).
//!
//! What symbols do to the free states are matrices, and far fewer than there are symbols and dots: all keywords of one length are
//! alike to a shape, and so are a name and the seventeen rules that each are a name among other things. So matrices are
//! interned, and each product of two, and each least of two, is worked out once.

use crate::components::components;
use crate::grammar::compiled::Grammar;
use crate::ids::{DotId, SymbolId};
use crate::language::terminals::{Cost, INFINITE};
use crate::stop::poll;
use rustc_hash::FxHashMap;
use std::hash::Hash;
use std::sync::Arc;

/// Costs of symbols, and of what stands before dots, from one state to another; equal matrices are held once.
#[derive(Debug)]
pub(super) struct Relations {
    count: usize,
    cells: Vec<Cost>,
    /// Per symbol, and per dot: where its matrix begins among the cells.
    symbols: Vec<u32>,
    dots: Vec<u32>,
    /// Products of two matrices that closing them took.
    #[cfg(test)]
    pub(super) products: usize,
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

    /// What stands before a dot, as a number that dots with equal costs have in common.
    pub(super) fn prefix_class(&self, dot: DotId) -> u32 {
        self.dots[dot.index()] / u32::try_from(self.count.pow(2)).expect("free states are few")
    }

    /// The number of different matrices.
    pub(super) fn matrix_count(&self) -> usize {
        self.cells.len() / self.count.pow(2)
    }

    /// The same over other states, `count` of them: each matrix becomes another.
    pub(super) fn over(&self, count: usize, matrix: impl Fn(&[Cost]) -> Vec<Cost>) -> Self {
        let (square, other) = (self.count.pow(2), count.pow(2));
        let moved =
            |offsets: &[u32]| offsets.iter().map(|&offset| offset_of(offset as usize / square, other)).collect();
        let cells: Vec<Cost> = self.cells.chunks_exact(square).flat_map(matrix).collect();
        debug_assert_eq!(cells.len(), self.matrix_count() * other);
        Self {
            count,
            cells,
            symbols: moved(&self.symbols),
            dots: moved(&self.dots),
            #[cfg(test)]
            products: self.products,
        }
    }
}

fn offset_of(matrix: usize, square: usize) -> u32 {
    u32::try_from(matrix * square).expect("cell count fits u32")
}

/// Closes costs of lexemes, `lexemes[symbol * count² + from * count + to]`, over the rules.
pub(super) fn close(lexemes: &[Cost], grammar: &Grammar, count: usize) -> Relations {
    // Half as long costs are twice as fast; they are long enough but for grammars whose shortest texts are of many kilobytes.
    closed::<u16>(lexemes, grammar, count)
        .or_else(|| closed::<Cost>(lexemes, grammar, count))
        .expect("no cost is too large for its own type")
}

/// The rules of each component of nonterminals, those first that others are made of.
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
    // A rule is looked at again where a symbol of its has changed since.
    let mut steps = 1usize;
    let mut changed_at = vec![1usize; grammar.symbol_count()];
    let mut looked_at = vec![0usize; grammar.rules().len()];
    for rules in rules_by_component(grammar) {
        let mut changed = true;
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
            if !pool.exact {
                return None;
            }
        }
    }
    Some(pool.settled(relation, prefix))
}

/// A cost as it is worked with: sums of two costs that are no larger than [`Cell::MOST`] are exact.
pub(super) trait Cell: Copy + Ord + Hash {
    /// No text does it.
    const NEVER: Self;
    /// The largest cost.
    const MOST: Self;

    /// A cost; one that is too large is larger than [`Cell::MOST`].
    fn of(cost: Cost) -> Self;

    /// The cost.
    fn cost(self) -> Cost;

    /// The cost of both.
    fn plus(self, other: Self) -> Self;
}

impl Cell for Cost {
    const NEVER: Self = INFINITE;
    const MOST: Self = INFINITE - 1;

    fn of(cost: Cost) -> Self {
        cost
    }

    fn cost(self) -> Cost {
        self
    }

    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        self.saturating_add(other)
    }
}

impl Cell for u16 {
    const NEVER: Self = u16::MAX;
    const MOST: Self = u16::MAX / 2 - 1;

    fn of(cost: Cost) -> Self {
        if cost == INFINITE {
            Self::NEVER
        } else {
            Self::try_from(cost).unwrap_or(Self::NEVER - 1).min(Self::NEVER - 1)
        }
    }

    fn cost(self) -> Cost {
        if self == Self::NEVER { INFINITE } else { self.into() }
    }

    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        self.saturating_add(other)
    }
}

/// The matrix of no symbols, and the one of none that can be.
const IDENTITY: u32 = 0;
const NEVER: u32 = 1;

/// Matrices over (min, +), each once, and what has been worked out of them.
pub(super) struct Pool<C> {
    count: usize,
    matrices: Vec<Arc<[C]>>,
    /// Per matrix and row: the first cell that is finite, and the one after the last.
    spans: Vec<Box<[(usize, usize)]>>,
    ids: FxHashMap<Arc<[C]>, u32>,
    products: FxHashMap<(u32, u32), u32>,
    leasts: FxHashMap<(u32, u32), u32>,
    /// Whether no cost has been too large.
    exact: bool,
}

impl<C: Cell> Pool<C> {
    /// Matrices over so many states: that of no symbols, and that of none.
    pub(super) fn new(count: usize) -> Self {
        let mut pool = Self {
            count,
            matrices: Vec::new(),
            spans: Vec::new(),
            ids: FxHashMap::default(),
            products: FxHashMap::default(),
            leasts: FxHashMap::default(),
            exact: true,
        };
        let identity: Vec<Cost> =
            (0..count * count).map(|index| if index / count == index % count { 0 } else { INFINITE }).collect();
        pool.of_costs(&identity);
        pool.of_costs(&vec![INFINITE; count * count]);
        pool
    }

    /// A matrix of costs.
    pub(super) fn of_costs(&mut self, costs: &[Cost]) -> u32 {
        let cells: Vec<C> = costs.iter().map(|&cost| C::of(cost)).collect();
        self.intern(cells)
    }

    /// The costs of a matrix.
    pub(super) fn costs(&self, matrix: u32) -> impl Iterator<Item = Cost> + '_ {
        self.matrices[matrix as usize].iter().map(|cell| cell.cost())
    }

    fn intern(&mut self, cells: Vec<C>) -> u32 {
        if let Some(&id) = self.ids.get(&cells[..]) {
            return id;
        }
        let id = u32::try_from(self.matrices.len()).expect("matrix count fits u32");
        let finite = |cell: &C| *cell != C::NEVER;
        self.exact &= cells.iter().all(|cell| *cell <= C::MOST || !finite(cell));
        let span = |row: &[C]| {
            let end = row.iter().rposition(finite).map_or(0, |last| last + 1);
            (row.iter().position(finite).unwrap_or(0), end)
        };
        self.spans.push(cells.chunks_exact(self.count).map(span).collect());
        let cells: Arc<[C]> = cells.into();
        self.matrices.push(cells.clone());
        self.ids.insert(cells, id);
        id
    }

    /// One after the other.
    pub(super) fn product(&mut self, left: u32, right: u32) -> u32 {
        match (left, right) {
            (IDENTITY, other) | (other, IDENTITY) => return other,
            (NEVER, _) | (_, NEVER) => return NEVER,
            _ => {}
        }
        if let Some(&known) = self.products.get(&(left, right)) {
            return known;
        }
        poll();
        let cells = self.multiplied(left as usize, right as usize);
        let product = self.intern(cells);
        self.products.insert((left, right), product);
        product
    }

    fn multiplied(&self, left: usize, right: usize) -> Vec<C> {
        let count = self.count;
        let (firsts, seconds) = (&self.matrices[left], &self.matrices[right]);
        let mut product = vec![C::NEVER; count * count];
        for from in 0..count {
            let own = &firsts[from * count..(from + 1) * count];
            // A line's start is often as its middle, the row before.
            if from > 0 && own == &firsts[(from - 1) * count..from * count] {
                product.copy_within((from - 1) * count..from * count, from * count);
                continue;
            }
            let row = &mut product[from * count..(from + 1) * count];
            let (begin, end) = self.spans[left][from];
            for (via, &first) in own.iter().enumerate().take(end).skip(begin).filter(|cell| *cell.1 != C::NEVER) {
                let (begin, end) = self.spans[right][via];
                let second = &seconds[via * count + begin..via * count + end];
                for (cell, &cost) in row[begin..end].iter_mut().zip(second) {
                    *cell = (*cell).min(first.plus(cost));
                }
            }
        }
        product
    }

    /// One or the other.
    fn least(&mut self, one: u32, other: u32) -> u32 {
        match (one, other) {
            (NEVER, other) | (other, NEVER) => return other,
            _ if one == other => return one,
            _ => {}
        }
        if let Some(&known) = self.leasts.get(&(one, other)) {
            return known;
        }
        let pairs = self.matrices[one as usize].iter().zip(self.matrices[other as usize].iter());
        let cells = pairs.map(|(&one, &other)| one.min(other)).collect();
        let least = self.intern(cells);
        self.leasts.insert((one, other), least);
        least
    }

    /// The matrices of symbols and of dots, and no others.
    fn settled(&self, symbols: Vec<u32>, dots: Vec<u32>) -> Relations {
        let square = self.count.pow(2);
        let mut cells = Vec::new();
        let mut moved: FxHashMap<u32, u32> = FxHashMap::default();
        let mut offset = |matrix: u32| {
            let fresh = offset_of(moved.len(), square);
            *moved.entry(matrix).or_insert_with(|| {
                cells.extend(self.costs(matrix));
                fresh
            })
        };
        let symbols = symbols.into_iter().map(&mut offset).collect();
        let dots = dots.into_iter().map(&mut offset).collect();
        Relations {
            count: self.count,
            cells,
            symbols,
            dots,
            #[cfg(test)]
            products: self.products.len(),
        }
    }
}
