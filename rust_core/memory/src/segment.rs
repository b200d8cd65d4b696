//! Positions of texts, sorted by the text before them, read backwards.

use crate::languages::Language;
use crate::lexemes::{CUT, Lexeme, Newline, START};
use crate::limits::DEPTH;
use std::cmp::Ordering;
use std::ops::Range;

/// A document, by its number.
pub(crate) type Document = u32;

/// The lexemes of a document in a segment, and which of them are its own: those before are a context alone.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    pub(crate) document: Document,
    pub(crate) own: Range<u32>,
}

/// Lexemes between two line counts.
const COUNTED: usize = 128;

/// Concatenated texts, each begun by a mark, and their positions in the order of the text before them.
pub(crate) struct Segment {
    pub(crate) lexemes: Vec<Lexeme>,
    pub(crate) spans: Vec<Span>,
    /// Language of all of its texts.
    pub(crate) language: Language,
    order: Vec<u32>,
    /// Line breaks before each `COUNTED`th lexeme.
    lines: Vec<u32>,
}

fn is_mark(lexeme: Lexeme) -> bool {
    lexeme == START || lexeme == CUT
}

/// The two lexemes before those at this depth, to compare by; the second is nothing where a text begins.
fn key(lexemes: &[Lexeme], position: u32, depth: usize) -> u64 {
    let at = position as usize - depth - 1;
    let one = u64::from(lexemes[at]) << 32;
    if is_mark(lexemes[at]) { one } else { one | u64::from(lexemes[at - 1]) }
}

/// Return whether the context of a key continues before it.
fn goes_on(key: u64) -> bool {
    key >> 32 > u64::from(CUT) && key as u32 > CUT
}

/// Sort by the contexts, two lexemes at a time, up to `DEPTH`; equal ones by position.
fn sort(lexemes: &[Lexeme], items: &mut [(u64, u32)]) {
    items.iter_mut().for_each(|item| item.0 = key(lexemes, item.1, 0));
    let mut open = vec![(0, items.len(), 0)];
    while let Some((from, to, depth)) = open.pop() {
        let part = &mut items[from..to];
        part.sort_unstable();
        let mut start = 0;
        while start < part.len() {
            let first = part[start].0;
            let equal = part[start..].iter().take_while(|item| item.0 == first).count();
            if equal > 1 && goes_on(first) && depth + 2 < DEPTH {
                let next = depth + 2;
                part[start..start + equal].iter_mut().for_each(|item| item.0 = key(lexemes, item.1, next));
                open.push((from + start, from + start + equal, next));
            }
            start += equal;
        }
    }
}

impl Segment {
    /// Each span's text begins with a mark, which is not its own.
    pub(crate) fn new(language: Language, mut lexemes: Vec<Lexeme>, spans: Vec<Span>) -> Self {
        lexemes.shrink_to_fit();
        let count = spans.iter().map(|span| span.own.len()).sum();
        let mut items = Vec::with_capacity(count);
        items.extend(spans.iter().flat_map(|span| span.own.clone()).map(|position| (0, position)));
        sort(&lexemes, &mut items);
        let order = items.into_iter().map(|item| item.1).collect();
        let mut lines = Vec::with_capacity(lexemes.len() / COUNTED + 1);
        let mut seen = 0;
        for part in lexemes.chunks(COUNTED) {
            lines.push(seen);
            seen += breaks(part);
        }
        Self { lexemes, spans, language, order, lines }
    }

    /// Positions there are.
    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }

    /// Bytes held.
    pub(crate) fn held(&self) -> usize {
        4 * (self.lexemes.capacity() + self.order.capacity() + self.lines.capacity())
            + size_of::<Span>() * self.spans.capacity()
    }

    /// The position at a place of the order.
    pub(crate) fn position(&self, place: usize) -> usize {
        self.order[place] as usize
    }

    pub(crate) fn span(&self, position: usize) -> &Span {
        &self.spans[self.spans.partition_point(|span| span.own.end as usize <= position)]
    }

    /// Lexemes that follow in the same text, from a position on.
    pub(crate) fn following(&self, position: usize) -> &[Lexeme] {
        &self.lexemes[position..self.span(position).own.end as usize]
    }

    /// Line breaks between the beginning of a span's own part and a position in it.
    pub(crate) fn line(&self, span: &Span, position: usize) -> u32 {
        self.breaks_before(position) - self.breaks_before(span.own.start as usize)
    }

    fn breaks_before(&self, position: usize) -> u32 {
        let part = position / COUNTED;
        let Some(&seen) = self.lines.get(part) else {
            return self
                .lines
                .last()
                .map_or(0, |seen| seen + breaks(&self.lexemes[(self.lines.len() - 1) * COUNTED..]));
        };
        seen + breaks(&self.lexemes[part * COUNTED..position])
    }

    /// Return the index in the order at which a context, read backwards, belongs.
    pub(crate) fn place(&self, context: &[Lexeme]) -> usize {
        self.order.partition_point(|&position| self.compare(position as usize, context) == Ordering::Less)
    }

    fn compare(&self, position: usize, context: &[Lexeme]) -> Ordering {
        for (depth, &lexeme) in context.iter().take(DEPTH).enumerate() {
            let own = self.lexemes[position - depth - 1];
            match own.cmp(&lexeme) {
                Ordering::Equal if is_mark(own) => return Ordering::Equal,
                Ordering::Equal => {}
                unequal => return unequal,
            }
        }
        Ordering::Equal
    }

    /// Number of lexemes before a position that match the context, at most `most`.
    pub(crate) fn matching(&self, position: usize, context: &[Lexeme], most: usize) -> usize {
        for (depth, &lexeme) in context.iter().take(most).enumerate() {
            let own = self.lexemes[position - depth - 1];
            if own != lexeme || own == CUT {
                return depth;
            }
            if own == START {
                return depth + 1;
            }
        }
        context.len().min(most)
    }
}

fn breaks(lexemes: &[Lexeme]) -> u32 {
    lexemes.iter().filter_map(|&lexeme| Newline::of(lexeme)).map(|newline| newline.breaks as u32).sum()
}

#[cfg(test)]
mod tests {
    use super::{Segment, Span, key};
    use crate::lexemes::{CUT, Lexeme, START, WORDS};
    use crate::limits::DEPTH;

    /// The least of generators (Marsaglia's xorshift), from a seed.
    struct Random(u64);

    impl Random {
        fn below(&mut self, most: usize) -> usize {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 % most as u64) as usize
        }
    }

    fn segment(texts: &[Vec<Lexeme>]) -> Segment {
        let mut lexemes = Vec::new();
        let mut spans = Vec::new();
        for (document, text) in texts.iter().enumerate() {
            lexemes.push(if document % 3 == 2 { CUT } else { START });
            let start = lexemes.len() as u32;
            lexemes.extend(text);
            spans.push(Span { document: document as u32, own: start..lexemes.len() as u32 });
        }
        Segment::new(0, lexemes, spans)
    }

    /// The longest match by comparing with each position.
    fn plain(texts: &[Vec<Lexeme>], context: &[Lexeme]) -> usize {
        let mut best = 0;
        for (document, text) in texts.iter().enumerate() {
            let start = if document % 3 == 2 { CUT } else { START };
            for end in 0..text.len() {
                let before = text[..end].iter().rev().chain(std::iter::once(&start));
                let same = before.zip(context).take_while(|(own, asked)| own == asked && **own != CUT).count();
                best = best.max(same.min(DEPTH));
            }
        }
        best
    }

    fn longest(segment: &Segment, context: &[Lexeme]) -> usize {
        let place = segment.place(context);
        let around = place.saturating_sub(1)..(place + 1).min(segment.len());
        around.map(|place| segment.matching(segment.position(place), context, DEPTH)).max().unwrap_or(0)
    }

    #[test]
    fn the_longest_match_agrees_with_the_plain_twin() {
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        for round in 0..300 {
            let letters = 1 + round % 4;
            let mut text = |most: usize| -> Vec<Lexeme> {
                let length = random.below(most);
                (0..length).map(|_| WORDS + random.below(letters) as Lexeme).collect()
            };
            let texts: Vec<Vec<Lexeme>> = (0..1 + round % 5).map(|_| text(200)).collect();
            let segment = segment(&texts);
            assert_eq!(segment.len(), texts.iter().map(Vec::len).sum::<usize>());
            for _ in 0..20 {
                let mut context = text(90);
                if context.len() % 2 == 0 {
                    context.push(START);
                }
                assert_eq!(longest(&segment, &context), plain(&texts, &context), "{texts:?} {context:?}");
            }
            // Contexts from the texts match to their full length.
            for (document, text) in texts.iter().enumerate() {
                let Some(end) = text.len().checked_sub(1) else { continue };
                let context: Vec<Lexeme> = text[..end].iter().rev().copied().collect();
                assert!(longest(&segment, &context) == context.len().min(DEPTH), "{document}");
            }
        }
    }

    #[test]
    fn positions_are_ordered_by_their_contexts() {
        let mut random = Random(7);
        let text: Vec<Lexeme> = (0..3000).map(|_| WORDS + random.below(2) as Lexeme).collect();
        let segment = segment(&[text.clone(), vec![WORDS; 1000], text]);
        let keys = |position: u32| {
            let mut keys = Vec::new();
            for depth in (0..DEPTH).step_by(2) {
                let key = key(&segment.lexemes, position, depth);
                keys.push(key);
                if !super::goes_on(key) {
                    break;
                }
            }
            (keys, position)
        };
        assert!(segment.order.windows(2).all(|pair| keys(pair[0]) < keys(pair[1])));
    }

    #[test]
    fn lines_are_counted() {
        let newline = crate::lexemes::NEWLINE | 2 << 24;
        let text: Vec<Lexeme> = (0..1000).map(|at| if at % 10 == 9 { newline } else { WORDS }).collect();
        let segment = segment(&[vec![newline; 5], text]);
        let span = segment.spans[1].clone();
        for at in [0, 9, 10, 500, 999] {
            assert_eq!(segment.line(&span, span.own.start as usize + at), 2 * (at as u32 / 10));
        }
    }
}
