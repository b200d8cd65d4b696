//! List that grows without moving its entries, so that growth needs no second copy.

/// Entries of a chunk.
const LENGTH: usize = 1 << 12;

/// List in chunks of one length. A run that is longer gets a chunk of its own.
#[derive(Debug)]
pub(crate) struct Chunked<T> {
    chunks: Vec<Vec<T>>,
    /// Number of entries, including unused ones at the ends of chunks.
    length: usize,
}

impl<T> Default for Chunked<T> {
    fn default() -> Self {
        Self { chunks: Vec::new(), length: 0 }
    }
}

impl<T> Chunked<T> {
    /// Number of entries of a list that was pushed entry by entry.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    #[inline]
    pub(crate) fn get(&self, index: usize) -> &T {
        &self.chunks[index / LENGTH][index % LENGTH]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, index: usize) -> &mut T {
        &mut self.chunks[index / LENGTH][index % LENGTH]
    }

    pub(crate) fn push(&mut self, entry: T) {
        if self.length % LENGTH == 0 {
            self.begin_chunk(LENGTH);
        }
        self.chunks[self.length / LENGTH].push(entry);
        self.length += 1;
    }

    /// Begin a chunk. The first one grows: most lists are short.
    fn begin_chunk(&mut self, length: usize) {
        let capacity = if self.chunks.is_empty() && length <= LENGTH { 0 } else { length };
        self.chunks.push(Vec::with_capacity(capacity));
    }
}

impl<T: Copy> Chunked<T> {
    /// A run appended by [`Chunked::append`].
    #[inline]
    pub(crate) fn slice(&self, begin: usize, length: usize) -> &[T] {
        if length == 0 {
            return &[];
        }
        let at = begin % LENGTH;
        &self.chunks[begin / LENGTH][at..at + length]
    }

    /// Append a run in one piece, and return where it begins.
    pub(crate) fn append(&mut self, run: &[T]) -> usize {
        if run.is_empty() {
            return self.length; // which may be where no chunk begins yet
        }
        let used = self.length % LENGTH;
        if used != 0 && used + run.len() > LENGTH {
            self.length += LENGTH - used;
        }
        let begin = self.length;
        if begin % LENGTH == 0 {
            self.begin_chunk(run.len().max(LENGTH));
        }
        self.chunks[begin / LENGTH].extend_from_slice(run);
        self.length += run.len();
        // A run longer than a chunk has a chunk of its own; later indices still count whole chunks.
        if run.len() > LENGTH {
            self.length = begin + run.len().next_multiple_of(LENGTH);
            for _ in 1..run.len().div_ceil(LENGTH) {
                self.chunks.push(Vec::new());
            }
        }
        begin
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_and_runs_stay_where_they_were_put() {
        let mut list = Chunked::default();
        for entry in 0..3 * LENGTH + 5 {
            assert_eq!(list.len(), entry);
            list.push(entry);
        }
        *list.get_mut(LENGTH) += 1;
        assert_eq!(
            (*list.get(LENGTH - 1), *list.get(LENGTH), *list.get(LENGTH + 1)),
            (LENGTH - 1, LENGTH + 1, LENGTH + 1)
        );
        assert_eq!(*list.get(3 * LENGTH + 4), 3 * LENGTH + 4);
        let mut runs = Chunked::default();
        let lengths = [1, 0, LENGTH - 3, 5, LENGTH, 0, LENGTH + 1, 0, 7, 3 * LENGTH, 2 * LENGTH + 9, 1];
        let all: Vec<Vec<usize>> = lengths.iter().enumerate().map(|(key, &length)| vec![key; length]).collect();
        for _ in 0..3 {
            let begun: Vec<usize> = all.iter().map(|run| runs.append(run)).collect();
            for (begin, run) in begun.into_iter().zip(&all) {
                assert_eq!(runs.slice(begin, run.len()), run);
            }
        }
    }
}
