//! Interned matrices of costs over (min, +). Each product of two is computed once.

use crate::stop::poll;
use rustc_hash::FxHashMap;
use std::hash::Hash;
use std::sync::Arc;

/// A cost in bytes of middle text, [`INFINITE`] for "impossible".
pub(crate) type Cost = u32;

/// No text does it.
pub(crate) const INFINITE: Cost = u32::MAX;

/// Internal form of a cost: sums of two costs up to [`Cell::MOST`] are exact.
pub(super) trait Cell: Copy + Ord + Hash {
    /// No text does it.
    const NEVER: Self;
    /// The largest cost.
    const MOST: Self;

    /// The cell of a cost. A cost that is too large becomes larger than [`Cell::MOST`].
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

/// The matrix of no symbols.
pub(super) const IDENTITY: u32 = 0;

/// The matrix without a finite cost.
pub(super) const NEVER: u32 = 1;

/// Interned matrices over (min, +), and known results of operations on them.
pub(super) struct Pool<C> {
    count: usize,
    matrices: Vec<Arc<[C]>>,
    /// Per matrix and row: the first cell that is finite, and the one after the last.
    spans: Vec<Box<[(usize, usize)]>>,
    ids: FxHashMap<Arc<[C]>, u32>,
    products: FxHashMap<(u32, u32), u32>,
    leasts: FxHashMap<(u32, u32), u32>,
    /// True if no cost has been too large.
    exact: bool,
}

impl<C: Cell> Pool<C> {
    /// Matrices over `count` states: the identity, and the one without a finite cost.
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

    /// The number of states.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Return whether all costs have been exact.
    pub(super) fn is_exact(&self) -> bool {
        self.exact
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
            // The row of a line's start often equals the row before it, of its middle.
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
    pub(super) fn least(&mut self, one: u32, other: u32) -> u32 {
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
}

#[cfg(test)]
mod tests {
    use super::{Cell, Cost, IDENTITY, INFINITE, NEVER, Pool};
    use crate::test_languages::Random;

    fn random(random: &mut Random, count: usize) -> Vec<Cost> {
        // Rows of nothing, rows that are alike, and costs of every length.
        let mut rows: Vec<Vec<Cost>> = Vec::new();
        for _ in 0..count {
            let kind = random.below(4);
            let mut cell = || if random.below(3) == 0 { INFINITE } else { 7 * random.below(9) as Cost };
            rows.push(match (kind, rows.last()) {
                (0, Some(row)) => row.clone(),
                (1, _) => vec![INFINITE; count],
                _ => (0..count).map(|_| cell()).collect(),
            });
        }
        rows.concat()
    }

    fn multiplied(one: &[Cost], other: &[Cost], count: usize) -> Vec<Cost> {
        let sum = |from: usize, to: usize, via: usize| one[from * count + via].saturating_add(other[via * count + to]);
        let cell = |from, to| (0..count).map(|via| sum(from, to, via)).min().expect("a state");
        (0..count * count).map(|index| cell(index / count, index % count)).collect()
    }

    fn agrees<C: Cell>(seed: u64) {
        let mut random_numbers = Random::new(seed);
        for count in [1, 2, 3, 5, 8] {
            let mut pool = Pool::<C>::new(count);
            for _ in 0..50 {
                let (one, other) = (random(&mut random_numbers, count), random(&mut random_numbers, count));
                let (first, second) = (pool.of_costs(&one), pool.of_costs(&other));
                let (product, least) = (pool.product(first, second), pool.least(first, second));
                let costs = |matrix| pool.costs(matrix).collect::<Vec<Cost>>();
                assert_eq!(costs(product), multiplied(&one, &other, count));
                assert_eq!(costs(least), one.iter().zip(&other).map(|(&a, &b)| a.min(b)).collect::<Vec<Cost>>());
                assert_eq!([pool.product(IDENTITY, first), pool.product(first, IDENTITY)], [first, first]);
                assert_eq!([pool.product(NEVER, first), pool.least(first, NEVER)], [NEVER, first]);
            }
            assert!(pool.is_exact());
        }
    }

    #[test]
    fn products_agree_with_the_definition() {
        agrees::<u16>(3);
        agrees::<Cost>(4);
    }

    #[test]
    fn each_product_is_computed_once() {
        let mut pool = Pool::<u16>::new(2);
        let one = pool.of_costs(&[1, 2, INFINITE, 3]);
        let other = pool.of_costs(&[INFINITE, 4, 5, 6]);
        let product = pool.product(one, other);
        for _ in 0..9 {
            let same = pool.of_costs(&[1, 2, INFINITE, 3]);
            assert_eq!(pool.product(same, other), product);
        }
        assert_eq!((pool.products.len(), pool.matrices.len()), (1, 5));
    }

    #[test]
    fn an_overflowing_cost_is_reported() {
        for (cost, exact) in [(20_000, true), (32_766, true), (32_767, false), (70_000, false)] {
            let mut pool = Pool::<u16>::new(1);
            pool.of_costs(&[cost]);
            assert_eq!(pool.is_exact(), exact, "{cost}");
        }
        let mut pool = Pool::<u16>::new(1);
        let half = pool.of_costs(&[20_000]);
        pool.product(half, half);
        assert!(!pool.is_exact());
    }
}
