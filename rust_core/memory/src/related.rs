//! Text of the project that is related to a place: definitions of the names there, and the lines most like it.
//!
//! Lines are compared as sets of words (Jaccard), as in retrieval for completion across files (Zhang et al.,
//! *RepoCoder*, arXiv 2303.12570). It needs no index: all lexemes are scanned once, without a lock.

use crate::lexemes::{ASCII, CUT, Indents, Lexeme, Newline, START, WORDS};
use crate::limits::{ALIKE, EXCERPT, HEADER, LEAST_ALIKE, MOST_DEFINITIONS, STRIDE};
use crate::query::Asker;
use crate::segment::Segment;
use crate::store::{Store, folder_of};
use crate::strings::Strings;
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;
use std::sync::Arc;

/// Place whose related text is sought.
#[derive(Clone, Debug)]
pub struct Sought<'q> {
    /// The document of the place, with its language.
    pub asker: Asker<'q>,
    /// Lines of this document that the caller already has, from 0.
    pub seen: Range<u32>,
    /// Words around the place.
    pub words: &'q [String],
    /// Words that say nothing about a text's subject.
    pub common: &'q [String],
    /// Names whose definitions are sought.
    pub names: &'q [String],
    /// Words with which a line begins that defines the name after them.
    pub defining: &'q [String],
}

/// A few lines of a document.
#[derive(Clone, Debug, PartialEq)]
pub struct Excerpt {
    /// The document.
    pub key: String,
    /// Its first line there, from 0.
    pub line: u32,
    /// Whole lines in their own indentation, in the steps of the place's document; no line break at the end.
    pub text: String,
    /// The name that it defines; empty for similar lines.
    pub name: Option<String>,
    /// Similarity: words in common of all words of both; 1 for definitions.
    pub score: f64,
}

/// A text to scan: a file, or a block of an open document.
struct Part {
    segment: Arc<Segment>,
    own: Range<usize>,
    key: Arc<str>,
    /// Line number of its first lexeme.
    line: u32,
    indents: Indents,
    /// In the document, in its folder, elsewhere.
    distance: u8,
}

/// A line that is not blank: its beginning in its segment, and its number.
#[derive(Clone, Copy)]
struct Line {
    start: usize,
    number: u32,
}

/// An excerpt before it is written out.
struct Found {
    part: usize,
    first: usize,
    count: usize,
    name: Option<Lexeme>,
    score: f64,
}

/// Lexemes of the sought words.
struct Numbers {
    words: FxHashSet<Lexeme>,
    common: FxHashSet<Lexeme>,
    names: FxHashSet<Lexeme>,
    defining: FxHashSet<Lexeme>,
}

impl Numbers {
    fn of(sought: &Sought<'_>, strings: &Strings) -> Self {
        let numbers =
            |texts: &[String]| texts.iter().map(|text| strings.find(text)).filter(|&one| one >= ASCII).collect();
        Self {
            words: numbers(sought.words),
            common: numbers(sought.common),
            names: numbers(sought.names),
            defining: numbers(sought.defining),
        }
    }
}

fn is_break(lexeme: Lexeme) -> bool {
    Newline::of(lexeme).is_some()
}

fn is_one_of(lexeme: Lexeme, bytes: &[u8]) -> bool {
    bytes.iter().any(|&byte| lexeme == ASCII + Lexeme::from(byte))
}

impl Part {
    fn lexemes(&self) -> &[Lexeme] {
        &self.segment.lexemes[self.own.clone()]
    }

    /// Its lines.
    fn lines(&self) -> Vec<Line> {
        let mut number = self.line;
        let mut lines = Vec::new();
        let mut begins = true;
        for (at, &lexeme) in self.lexemes().iter().enumerate() {
            if let Some(newline) = Newline::of(lexeme) {
                number += newline.breaks as u32;
                begins = true;
            } else if begins && lexeme != START && lexeme != CUT {
                lines.push(Line { start: at, number });
                begins = false;
            }
        }
        lines
    }

    /// The lexemes of some lines.
    fn of_lines(&self, lines: &[Line], range: Range<usize>) -> &[Lexeme] {
        let end = lines.get(range.end).map_or(self.own.len(), |line| line.start);
        &self.lexemes()[lines[range.start].start..end]
    }

    /// End of a header: lines from `first` on up to where no bracket is open, at most `HEADER`.
    fn header(&self, lines: &[Line], first: usize) -> Option<usize> {
        let mut open = 0i32;
        for count in 1..=HEADER.min(lines.len() - first) {
            for &lexeme in self.of_lines(lines, first + count - 1..first + count) {
                open += i32::from(is_one_of(lexeme, b"([{")) - i32::from(is_one_of(lexeme, b")]}"));
            }
            if open <= 0 {
                return Some(count);
            }
        }
        None
    }

    /// The text of some lines.
    fn text(&self, lines: &[Line], range: Range<usize>, strings: &Strings) -> String {
        let mut indents = self.indents.clone();
        let mut text = String::new();
        for &lexeme in &self.lexemes()[..lines[range.start].start] {
            if let Some(newline) = Newline::of(lexeme) {
                text.clear();
                indents.write(newline, &mut text);
            }
        }
        let blanks = text.rfind('\n').map_or(0, |at| at + 1);
        text.drain(..blanks);
        for &lexeme in self.of_lines(lines, range) {
            match Newline::of(lexeme) {
                Some(newline) => indents.write(newline, &mut text),
                None => text.push_str(strings.text(lexeme)),
            }
        }
        text.truncate(text.trim_end().len());
        text
    }
}

impl Store {
    /// Return the texts in a document's language, with open documents in place of their files.
    fn parts(&self, Asker { key, language }: Asker<'_>) -> Vec<Part> {
        let state = self.state();
        let language = state.languages.find(key, language);
        let folder = folder_of(key);
        let unit = state.open.get(key).map_or("    ", |open| open.unit);
        let mut parts = Vec::new();
        for (other, open) in &state.open {
            let mut indents = Indents::new(open.unit);
            if open.private && &**other != key {
                continue;
            }
            for block in open.blocks.iter().filter(|block| Some(block.segment.language) == language) {
                for span in &block.segment.spans {
                    parts.push(Part {
                        segment: block.segment.clone(),
                        own: span.own.start as usize..span.own.end as usize,
                        key: other.clone(),
                        line: block.line,
                        indents: indents.clone(),
                        distance: 0,
                    });
                }
                indents = block.indents.clone();
            }
        }
        for segment in state.segments.iter().filter(|segment| Some(segment.language) == language) {
            for span in &segment.spans {
                let info = state.info(span.document);
                if info.live && !info.hidden {
                    parts.push(Part {
                        segment: segment.clone(),
                        own: span.own.start as usize..span.own.end as usize,
                        key: info.key.clone(),
                        line: 0,
                        indents: Indents::new(unit),
                        distance: 0,
                    });
                }
            }
        }
        for part in &mut parts {
            part.distance = if &*part.key == key { 0 } else { 2 - u8::from(folder_of(&part.key) == folder) };
        }
        parts
    }

    /// Definitions of the sought names, then the lines most like those around a place, `limit` of each.
    pub(crate) fn related(&self, sought: &Sought<'_>, limit: usize) -> Vec<Excerpt> {
        let numbers = Numbers::of(sought, &self.strings());
        let parts = self.parts(sought.asker);
        let mut defined = Vec::new();
        let mut alike = Vec::new();
        let mut lines = FxHashMap::default();
        for (index, part) in parts.iter().enumerate() {
            let known = if part.distance == 0 { sought.seen.clone() } else { 0..0 };
            let interests = |&lexeme: &Lexeme| numbers.words.contains(&lexeme) || numbers.names.contains(&lexeme);
            if !part.lexemes().iter().any(interests) {
                continue;
            }
            let of_part = part.lines();
            definitions(index, part, &of_part, &numbers, &known, &mut defined);
            likenesses(index, part, &of_part, &numbers, &known, &mut alike);
            lines.insert(index, of_part);
        }
        // A name that several documents define may belong to any of them.
        let mut counts: FxHashMap<Option<Lexeme>, usize> = FxHashMap::default();
        defined.iter().for_each(|one: &Found| *counts.entry(one.name).or_default() += 1);
        defined.retain(|one| counts[&one.name] <= MOST_DEFINITIONS || parts[one.part].distance == 0);
        let place = |one: &Found| (parts[one.part].distance, parts[one.part].key.clone(), one.first);
        defined.sort_by_cached_key(place);
        let mut named = FxHashSet::default();
        defined.retain(|one| named.insert(one.name));
        alike.sort_by_cached_key(|one| (ordered(one.score), place(one)));
        let mut chosen: Vec<Found> = Vec::new();
        for one in alike {
            let overlaps = |other: &Found| other.part == one.part && other.first.abs_diff(one.first) < EXCERPT;
            if chosen.len() < limit && !chosen.iter().any(overlaps) {
                chosen.push(one);
            }
        }
        defined.truncate(limit);
        let strings = self.strings();
        let written = |one: Found| {
            let (part, lines) = (&parts[one.part], &lines[&one.part]);
            Excerpt {
                key: part.key.to_string(),
                line: lines[one.first].number,
                text: part.text(lines, one.first..one.first + one.count, &strings),
                name: one.name.map(|name| strings.text(name).to_string()),
                score: one.score,
            }
        };
        defined.into_iter().chain(chosen).map(written).collect()
    }
}

/// A score as a number that sorts the greatest first.
fn ordered(score: f64) -> u64 {
    u64::MAX - (score * 1e6) as u64
}

/// The headers of definitions of the names.
fn definitions(
    index: usize,
    part: &Part,
    lines: &[Line],
    numbers: &Numbers,
    known: &Range<u32>,
    into: &mut Vec<Found>,
) {
    for first in 0..lines.len() {
        let line = part.of_lines(lines, first..first + 1);
        // A word may stand before the one that defines.
        let Some(name) = [0, 2].iter().find_map(|&at| {
            let word = numbers.defining.contains(line.get(at)?);
            let name = *line.get(at + 2)?;
            (word && !is_break(line[at + 1]) && numbers.names.contains(&name)).then_some(name)
        }) else {
            continue;
        };
        if known.contains(&lines[first].number) {
            continue;
        }
        if let Some(count) = part.header(lines, first) {
            into.push(Found { part: index, first, count, name: Some(name), score: 1.0 });
        }
    }
}

/// Similar lines of a part, with the lines after them.
fn likenesses(index: usize, part: &Part, lines: &[Line], numbers: &Numbers, known: &Range<u32>, into: &mut Vec<Found>) {
    if numbers.words.is_empty() {
        return;
    }
    let least = (LEAST_ALIKE * numbers.words.len() as f64).ceil() as usize;
    let mut seen: Vec<Lexeme> = Vec::new();
    for start in (0..lines.len()).step_by(STRIDE) {
        let compared = part.of_lines(lines, start..lines.len().min(start + ALIKE));
        let hits = compared.iter().filter(|lexeme| numbers.words.contains(lexeme)).count();
        if hits < least {
            continue;
        }
        seen.clear();
        seen.extend(compared.iter().filter(|&&lexeme| lexeme >= WORDS && !is_break(lexeme)));
        seen.sort_unstable();
        seen.dedup();
        seen.retain(|lexeme| !numbers.common.contains(lexeme));
        let common = seen.iter().filter(|lexeme| numbers.words.contains(lexeme)).count();
        let score = common as f64 / (seen.len() + numbers.words.len() - common) as f64;
        let first = (start + STRIDE / 2).min(lines.len() - 1);
        let count = EXCERPT.min(lines.len() - first);
        let (from, to) = (lines[start].number, lines[first + count - 1].number);
        if score >= LEAST_ALIKE && (to < known.start || from >= known.end) {
            into.push(Found { part: index, first, count, name: None, score });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Excerpt, Sought};
    use crate::store::Store;

    const OTHER: &str = "class Ledger:\n\n    async def balance_of(\n        self,\n        account,\n    ):\n        total = self.start(account)\n        for entry in self.entries(account):\n            total += entry.amount\n        return total\n";

    fn related(store: &Store, seen: std::ops::Range<u32>) -> Vec<Excerpt> {
        let strings = |texts: &[&str]| texts.iter().map(ToString::to_string).collect::<Vec<_>>();
        let sought = Sought {
            asker: "/p/here.py".into(),
            seen,
            words: &strings(&["total", "entry", "amount", "entries", "account"]),
            common: &strings(&["for", "in", "return", "self"]),
            names: &strings(&["balance_of", "Ledger", "nowhere", "entries"]),
            defining: &strings(&["def", "class"]),
        };
        store.related(&sought, 4)
    }

    #[test]
    fn whole_definitions_come_before_similar_lines() {
        let store = Store::new();
        store.update("/p/here.py".into(), ("\nimport ledger\n", ""), false);
        let (before, after) = OTHER.split_at(OTHER.find("        total").unwrap());
        store.update("/p/other.py".into(), (before, after), false);
        let found = related(&store, 0..100);
        let texts: Vec<&str> = found.iter().map(|one| one.text.as_str()).collect();
        assert_eq!(texts[0], "class Ledger:");
        assert_eq!(texts[1], "    async def balance_of(\n        self,\n        account,\n    ):");
        assert_eq!((found[1].name.as_deref(), found[1].line), (Some("balance_of"), 2));
        assert!(found[2].name.is_none() && found[2].score > 0.5, "{found:?}");
        assert!(texts[2].ends_with("        return total"), "{}", texts[2]);
    }

    #[test]
    fn seen_lines_are_left_out() {
        let store = Store::new();
        store.update("/p/here.py".into(), (OTHER, ""), false);
        assert_eq!(related(&store, 0..100), []);
        let below = related(&store, 4..100);
        assert_eq!(below.len(), 2);
        assert!(below.iter().all(|one| one.name.is_some() && one.key == "/p/here.py"));
        assert!(related(&store, 90..100).len() > 2);
    }

    #[test]
    fn names_defined_in_many_documents_have_no_definition() {
        let store = Store::new();
        for number in 0..9 {
            let key = format!("/q/{number}.py");
            store.update(key.as_str().into(), ("def entries(x):\n    pass\n", ""), false);
        }
        assert!(related(&store, 0..0).iter().all(|one| one.name.is_none()));
    }
}
