//! Detection of secrets in a text: values of names of secrets, keys, tokens, and strings that look random.
//!
//! The memory leaves them out, so it neither suggests them elsewhere nor shows them to a model. A text is read line by
//! line, by signs that many languages share: quotes, brackets, commas, `=` and `:`. The detection prefers false finds
//! to misses: a false find only costs the recall of its line.

mod names;
mod reader;
mod texts;

use crate::secrets::reader::{Mode, Reader};
use std::ops::Range;

/// Most lines of a secret value, of a key's block, and of a record after a secret's name.
const VALUE_LINES: u8 = 16;
const KEY_LINES: u8 = 120;
const BESIDE_LINES: u8 = 4;

/// State of the reading between two lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Scanner {
    mode: Mode,
    lines: u8,
}

impl Scanner {
    /// Return the secrets of a text that continues the last one, as ranges of bytes in their order.
    pub(crate) fn ranges(&mut self, text: &str) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            let before = found.len();
            self.line(line.trim_end_matches('\n'), &mut found);
            for range in &mut found[before..] {
                *range = start + range.start..start + range.end;
            }
            tidy(&mut found, before);
            start += line.len();
        }
        found
    }

    /// Skip a line that is not known: the next one may hold the value of its name.
    pub(crate) fn skip_line(&mut self) {
        if matches!(self.mode, Mode::Plain | Mode::Chained) {
            *self = Self { mode: Mode::Beside, lines: 0 };
        }
    }

    fn enter(&mut self, mode: Mode) {
        self.lines = if mode == Mode::Plain || self.mode != mode { 0 } else { self.lines + 1 };
        let most = match mode {
            Mode::Key => KEY_LINES,
            Mode::Beside => BESIDE_LINES,
            _ => VALUE_LINES,
        };
        self.mode = if self.lines >= most { Mode::Plain } else { mode };
    }

    fn line(&mut self, line: &str, found: &mut Vec<Range<usize>>) {
        let bare = line.trim();
        if bare.is_empty() {
            return;
        }
        let indented = line.len() - line.trim_start().len();
        let end = indented + bare.len();
        if self.mode == Mode::Key {
            let ends = line.find(KEY_END).map(|at| {
                line[at + KEY_END.len()..]
                    .find(KEY_DASHES)
                    .map_or(end, |more| at + KEY_END.len() + more + KEY_DASHES.len())
            });
            if let Some(ends) = ends {
                found.push(indented..ends);
                self.enter(Mode::Plain);
                return;
            }
            if is_key_line(bare) {
                found.push(indented..end);
                self.enter(Mode::Key);
                return;
            }
            self.enter(Mode::Plain);
        }
        if let Some(begins) = line.find(KEY_BEGIN).filter(|&at| line[at..].contains(KEY_NAME)) {
            let ends = line[begins..].find(KEY_END).map(|at| begins + at + KEY_END.len());
            found.push(begins..ends.map_or(end, |at| line[at..].find(KEY_DASHES).map_or(end, |to| at + to + 5)));
            self.enter(if ends.is_some() { Mode::Plain } else { Mode::Key });
            return;
        }
        let mut start = 0;
        if let Mode::Text(quote) = self.mode {
            let Some(at) = line.find(quote) else {
                found.push(indented..end);
                self.enter(self.mode);
                return;
            };
            if at > indented {
                found.push(indented..at);
            }
            start = at + quote.len();
            self.enter(Mode::Plain);
        }
        let inherited = match self.mode {
            Mode::Value(depth) => Some(depth),
            _ => None,
        };
        let chained = self.mode == Mode::Chained && bare.starts_with(['.', '|', '?']);
        let beside = (self.mode == Mode::Beside).then_some(self.lines).or(chained.then_some(0));
        let mut reader = Reader::new(line, start, inherited);
        reader.read(beside, found);
        match reader.next() {
            mode @ (Mode::Beside | Mode::Chained) => *self = Self { mode, lines: 0 },
            Mode::Plain if chained => {}
            Mode::Plain if beside.is_some() && !reader.ends_beside() => self.enter(Mode::Beside),
            mode => self.enter(mode),
        }
    }
}

const KEY_DASHES: &str = "-----";
const KEY_BEGIN: &str = "-----BEGIN ";
const KEY_END: &str = "-----END ";
const KEY_NAME: &str = "PRIVATE KEY";

/// Return whether a line looks like one of a key's block, in a string or not.
fn is_key_line(line: &str) -> bool {
    let line = line.trim_matches(|char: char| "\"'`+,;\\ \t".contains(char));
    let line = line.strip_suffix("\\n").unwrap_or(line);
    line.starts_with("Proc-Type:")
        || line.starts_with("DEK-Info:")
        || line.chars().all(|char| char.is_ascii_alphanumeric() || "+/=".contains(char))
}

/// Sort the ranges from the given one on, and join those that overlap.
fn tidy(found: &mut Vec<Range<usize>>, from: usize) {
    if found.len() < from + 2 {
        return;
    }
    found[from..].sort_unstable_by_key(|range| range.start);
    let mut joined: Vec<Range<usize>> = Vec::new();
    for range in found.drain(from..) {
        match joined.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    found.extend(joined);
}

#[cfg(test)]
mod tests;
