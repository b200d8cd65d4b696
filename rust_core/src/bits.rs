//! Sets of small numbers as bits of words: owned sets, and operations on borrowed words.
//!
//! Words have 64 bits, except in packed masks over a vocabulary. The interface fixes the layout of those: words of 32
//! bits, bit `id % 32` of word `id / 32`.

/// A word of a set.
pub(crate) trait Word: Copy {
    /// Bits of a word.
    const BITS: usize;

    /// The word with one bit alone.
    fn bit(place: usize) -> Self;

    /// Return whether no bit is set.
    fn is_empty(self) -> bool;

    /// The bits of both.
    fn and(self, other: Self) -> Self;

    /// The bits of either.
    fn or(self, other: Self) -> Self;

    /// The bits of this word that the other lacks.
    fn without(self, other: Self) -> Self;

    /// The lowest set bit. The word must not be empty.
    fn lowest(self) -> usize;
}

macro_rules! word {
    ($repr:ty) => {
        impl Word for $repr {
            const BITS: usize = <$repr>::BITS as usize;

            #[inline(always)]
            fn bit(place: usize) -> Self {
                1 << place
            }

            #[inline(always)]
            fn is_empty(self) -> bool {
                self == 0
            }

            #[inline(always)]
            fn and(self, other: Self) -> Self {
                self & other
            }

            #[inline(always)]
            fn or(self, other: Self) -> Self {
                self | other
            }

            #[inline(always)]
            fn without(self, other: Self) -> Self {
                self & !other
            }

            #[inline(always)]
            fn lowest(self) -> usize {
                self.trailing_zeros() as usize
            }
        }
    };
}

word!(u32);
word!(u64);

/// Number of words that hold `bits` bits.
#[inline(always)]
#[must_use]
pub(crate) const fn words_for<W: Word>(bits: usize) -> usize {
    bits.div_ceil(W::BITS)
}

/// Return whether a number is in a set.
#[inline(always)]
#[must_use]
pub(crate) fn contains<W: Word>(words: &[W], number: usize) -> bool {
    !words[number / W::BITS].and(W::bit(number % W::BITS)).is_empty()
}

/// Add a number to a set.
#[inline(always)]
pub(crate) fn insert<W: Word>(words: &mut [W], number: usize) {
    let word = &mut words[number / W::BITS];
    *word = word.or(W::bit(number % W::BITS));
}

/// Remove a number from a set.
#[inline(always)]
pub(crate) fn remove<W: Word>(words: &mut [W], number: usize) {
    let word = &mut words[number / W::BITS];
    *word = word.without(W::bit(number % W::BITS));
}

/// Add another set. Words past the end of the shorter one are ignored.
#[inline(always)]
pub(crate) fn unite<W: Word>(words: &mut [W], more: &[W]) {
    for (word, &more) in words.iter_mut().zip(more) {
        *word = word.or(more);
    }
}

/// Add another set, and return whether it added anything.
#[inline(always)]
pub(crate) fn grow<W: Word>(words: &mut [W], more: &[W]) -> bool {
    let mut grown = false;
    for (word, &more) in words.iter_mut().zip(more) {
        grown |= !more.without(*word).is_empty();
        *word = word.or(more);
    }
    grown
}

/// Remove another set.
#[inline(always)]
pub(crate) fn subtract<W: Word>(words: &mut [W], less: &[W]) {
    for (word, &less) in words.iter_mut().zip(less) {
        *word = word.without(less);
    }
}

/// Return whether two sets have a number in common.
#[inline(always)]
#[must_use]
pub(crate) fn meet<W: Word>(one: &[W], other: &[W]) -> bool {
    one.iter().zip(other).any(|(one, &other)| !one.and(other).is_empty())
}

/// The numbers in a set of one word, ascending.
#[inline]
pub(crate) fn ones<W: Word>(word: W) -> impl Iterator<Item = usize> {
    let mut rest = word;
    std::iter::from_fn(move || {
        (!rest.is_empty()).then(|| {
            let lowest = rest.lowest();
            rest = rest.without(W::bit(lowest));
            lowest
        })
    })
}

/// Return whether a number is in a set of one word.
#[inline(always)]
#[must_use]
pub(crate) fn has<W: Word>(word: W, number: usize) -> bool {
    !word.and(W::bit(number)).is_empty()
}

/// The numbers in a set, ascending.
#[inline]
pub(crate) fn numbers<W: Word>(words: &[W]) -> impl Iterator<Item = usize> + '_ {
    words.iter().enumerate().flat_map(|(index, &word)| ones(word).map(move |place| index * W::BITS + place))
}

/// The numbers in both of two sets, ascending.
pub(crate) fn common<'a, W: Word>(one: &'a [W], other: &'a [W]) -> impl Iterator<Item = usize> + 'a {
    let words = one.iter().zip(other).map(|(one, &other)| one.and(other)).enumerate();
    words.flat_map(|(index, word)| ones(word).map(move |place| index * W::BITS + place))
}

/// A set of numbers below some bound.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub(crate) struct BitSet(Box<[u64]>);

impl BitSet {
    /// An empty set of numbers below `bound`.
    #[must_use]
    pub(crate) fn new(bound: usize) -> Self {
        Self(vec![0; words_for::<u64>(bound)].into())
    }

    /// The set of the given numbers, which are below `bound`.
    #[must_use]
    pub(crate) fn of(bound: usize, numbers: impl IntoIterator<Item = usize>) -> Self {
        let mut set = Self::new(bound);
        numbers.into_iter().for_each(|number| set.insert(number));
        set
    }

    /// Return whether a number is in it.
    #[inline(always)]
    #[must_use]
    pub(crate) fn contains(&self, number: usize) -> bool {
        contains(&self.0, number)
    }

    /// Add a number.
    #[inline(always)]
    pub(crate) fn insert(&mut self, number: usize) {
        insert(&mut self.0, number);
    }

    /// Its words, for operations on borrowed ones. There is no `Deref`: the number of words is not the set's size.
    #[inline(always)]
    #[must_use]
    pub(crate) fn words(&self) -> &[u64] {
        &self.0
    }

    /// Its words, mutable.
    #[inline(always)]
    pub(crate) fn words_mut(&mut self) -> &mut [u64] {
        &mut self.0
    }

    /// Return whether no number is in it.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(|&word| word == 0)
    }
}

impl AsRef<[u64]> for BitSet {
    #[inline(always)]
    fn as_ref(&self) -> &[u64] {
        &self.0
    }
}

/// Sets of numbers below one bound, side by side.
#[derive(Debug, Clone, Default)]
pub(crate) struct BitRows {
    words: Vec<u64>,
    width: usize,
}

impl BitRows {
    /// Empty sets.
    #[must_use]
    pub(crate) fn new(rows: usize, bound: usize) -> Self {
        let width = words_for::<u64>(bound);
        Self { words: vec![0; rows * width], width }
    }

    /// One of the sets.
    #[inline(always)]
    #[must_use]
    pub(crate) fn row(&self, row: usize) -> &[u64] {
        &self.words[row * self.width..(row + 1) * self.width]
    }

    /// One of the sets.
    #[inline(always)]
    pub(crate) fn row_mut(&mut self, row: usize) -> &mut [u64] {
        &mut self.words[row * self.width..(row + 1) * self.width]
    }

    /// Add one set to another, and return whether it added anything.
    #[inline]
    pub(crate) fn grow(&mut self, row: usize, by: usize) -> bool {
        let mut grown = false;
        for word in 0..self.width {
            let more = self.words[by * self.width + word] & !self.words[row * self.width + word];
            grown |= more != 0;
            self.words[row * self.width + word] |= more;
        }
        grown
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_languages::Random;

    #[test]
    fn a_set_holds_its_inserted_numbers() {
        let numbers_in = [0, 1, 63, 64, 65, 127, 128];
        let set = BitSet::of(129, numbers_in);
        assert_eq!(numbers(set.words()).collect::<Vec<usize>>(), numbers_in);
        assert_eq!((0..129).filter(|&number| set.contains(number)).collect::<Vec<usize>>(), numbers_in);
        assert_eq!(numbers(BitSet::new(129).words()).next(), None);
        assert!(BitSet::new(129).is_empty() && !set.is_empty());
    }

    #[test]
    fn words_of_both_widths_agree() {
        let mut narrow = [0u32; 4];
        let mut wide = [0u64; 2];
        for number in [3, 31, 32, 63, 64, 100] {
            insert(&mut narrow, number);
            insert(&mut wide, number);
        }
        remove(&mut narrow, 32);
        remove(&mut wide, 32);
        assert_eq!(numbers(&narrow).collect::<Vec<usize>>(), numbers(&wide).collect::<Vec<usize>>());
        assert_eq!((0..128).find(|&number| contains(&narrow, number) != contains(&wide, number)), None);
    }

    #[test]
    fn sets_grow_shrink_and_meet() {
        let mut one = BitSet::of(70, [1, 69]);
        let other = BitSet::of(70, [2, 69]);
        assert!(meet(one.words(), other.words()) && !meet(one.words(), BitSet::of(70, [2, 68]).words()));
        assert!(grow(one.words_mut(), other.words()) && !grow(one.words_mut(), other.words()));
        subtract(one.words_mut(), BitSet::of(70, [69]).words());
        assert_eq!(numbers(one.words()).collect::<Vec<usize>>(), [1, 2]);
        let mut rows = BitRows::new(3, 70);
        insert(rows.row_mut(2), 69);
        assert!(rows.grow(0, 2) && !rows.grow(0, 2));
        assert_eq!(rows.row(0), rows.row(2));
        assert!(numbers(rows.row(1)).next().is_none());
    }

    /// A set and its twin, which holds a flag for each number.
    fn random_set(random: &mut Random, bound: usize) -> (BitSet, Vec<bool>) {
        let twin: Vec<bool> = (0..bound).map(|_| random.below(3) == 0).collect();
        (BitSet::of(bound, (0..bound).filter(|&number| twin[number])), twin)
    }

    #[test]
    fn sets_agree_with_their_twins() {
        let mut random = Random::new(4);
        for bound in [1, 2, 63, 64, 65, 128, 200] {
            for _ in 0..50 {
                let (one, one_twin) = random_set(&mut random, bound);
                let (other, other_twin) = random_set(&mut random, bound);
                let of =
                    |twin: &dyn Fn(usize) -> bool| (0..bound).filter(|&number| twin(number)).collect::<Vec<usize>>();
                assert_eq!(numbers(one.words()).collect::<Vec<usize>>(), of(&|number| one_twin[number]));
                assert_eq!(one.is_empty(), !one_twin.contains(&true));
                assert_eq!(
                    meet(one.words(), other.words()),
                    (0..bound).any(|number| one_twin[number] && other_twin[number])
                );
                let both = of(&|number| one_twin[number] || other_twin[number]);
                let mut united = one.clone();
                unite(united.words_mut(), other.words());
                assert_eq!(numbers(united.words()).collect::<Vec<usize>>(), both);
                let mut grown = one.clone();
                let new = (0..bound).any(|number| other_twin[number] && !one_twin[number]);
                assert_eq!((grow(grown.words_mut(), other.words()), &grown), (new, &united));
                let mut left = one.clone();
                subtract(left.words_mut(), other.words());
                let without = of(&|number| one_twin[number] && !other_twin[number]);
                assert_eq!(numbers(left.words()).collect::<Vec<usize>>(), without);
                let number = random.below(bound);
                let mut changed = one.clone();
                insert(changed.words_mut(), number);
                assert!(contains(changed.words(), number));
                remove(changed.words_mut(), number);
                assert_eq!(
                    numbers(changed.words()).collect::<Vec<usize>>(),
                    of(&|other| other != number && one_twin[other])
                );
                let word = one.words()[0];
                assert_eq!(ones(word).collect::<Vec<usize>>(), of(&|number| number < 64 && one_twin[number]));
                assert_eq!(has(word, number % 64), one_twin.get(number % 64) == Some(&true));
            }
        }
        assert_eq!([0, 1, 32, 33].map(words_for::<u32>), [0, 1, 1, 2]);
        assert_eq!([0, 64, 65].map(words_for::<u64>), [0, 1, 2]);
    }
}
