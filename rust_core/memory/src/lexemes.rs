//! Text as lexemes: words, single other characters, runs of blanks, and line breaks with the change of indentation.
//!
//! A line break includes the blanks after it, as a change in steps of the text's own indentation. So one construct has
//! the same lexemes at every depth, and in texts with other indentation.

use crate::limits::WORD;

/// Number of a lexeme: an index of `Strings`, a mark, or a line break.
pub(crate) type Lexeme = u32;

/// Mark of a document's beginning.
pub(crate) const START: Lexeme = 0;
/// Mark of an omission: equal to nothing.
pub(crate) const CUT: Lexeme = 1;
/// Lexeme of a text that was never seen: equal to no other.
pub(crate) const UNKNOWN: Lexeme = 2;
/// The first of the 128 texts of one ASCII character.
pub(crate) const ASCII: Lexeme = 3;
/// The first of the other texts.
pub(crate) const WORDS: Lexeme = ASCII + 128;
/// The bit that line breaks have.
pub(crate) const NEWLINE: Lexeme = 1 << 31;

/// The most line breaks, closed levels and opened steps that one lexeme can hold.
const BREAKS: usize = 15;
const LEVELS: usize = 0xfff;
const STEPS: usize = 15;
const COLUMNS: usize = 0xfff - STEPS;

/// A lexeme of a text, before its words are numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Piece<'t> {
    /// A word, a character or blanks.
    Text(&'t str),
    /// A line break as a lexeme, and its length in characters.
    Break(Lexeme, usize),
}

pub(crate) fn is_word(char: char) -> bool {
    char.is_alphanumeric() || char == '_'
}

pub(crate) fn is_blank(char: char) -> bool {
    char == ' ' || char == '\t'
}

/// Contents of a line break: the number of breaks, the levels of indentation that end, and the steps that the next line
/// adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Newline {
    pub(crate) breaks: usize,
    pub(crate) ended: usize,
    more: usize,
}

impl Newline {
    pub(crate) fn of(lexeme: Lexeme) -> Option<Self> {
        let field = |shift: u32, mask: Lexeme| ((lexeme >> shift) & mask) as usize;
        (lexeme & NEWLINE != 0).then(|| Self {
            breaks: field(24, 0x7f),
            ended: field(12, 0xfff),
            more: field(0, 0xfff),
        })
    }

    fn lexeme(self) -> Lexeme {
        let breaks = self.breaks.min(BREAKS) as Lexeme;
        NEWLINE | breaks << 24 | (self.ended.min(LEVELS) as Lexeme) << 12 | self.more as Lexeme
    }
}

/// The indentation at some line of a text: the open levels, and how this text writes a step.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Indents {
    /// Bytes of each level's indentation, each more than the one before.
    levels: Vec<u32>,
    /// The blanks of the last line; each level is a beginning of it.
    current: String,
    unit: String,
}

impl Indents {
    pub(crate) fn new(unit: &str) -> Self {
        Self { levels: Vec::new(), current: String::new(), unit: unit.to_string() }
    }

    /// Number of open levels.
    pub(crate) fn depth(&self) -> usize {
        self.levels.len()
    }

    /// The indentation at the last `\n` of a text that ends with one, from the lines before it, nearest first.
    pub(crate) fn before(text: &str, unit: &str, most: usize) -> Self {
        let mut found = Self::new(unit);
        let floor = text.len().saturating_sub(most);
        let mut end = text.len();
        let mut least = usize::MAX;
        while least > 0 && end > floor {
            let start = text[..end - 1].rfind('\n').map_or(0, |at| at + 1);
            let line = &text[start..end];
            end = start;
            let bare = line.trim_start_matches(is_blank);
            // The blanks of a text's first line are no level of indentation, but a run of blanks.
            if bare == "\n" || bare.is_empty() || start == 0 {
                continue;
            }
            let blanks = &line[..line.len() - bare.len()];
            if least == usize::MAX {
                found.current = blanks.to_string();
            } else if blanks.len() >= least || !found.current.starts_with(blanks) {
                continue;
            }
            least = blanks.len();
            if least > 0 {
                found.levels.push(least as u32);
            }
        }
        found.levels.reverse();
        found
    }

    /// Go to a line with these blanks, and return the line break that leads there.
    fn go(&mut self, breaks: usize, blanks: &str) -> Newline {
        let common = self.current.bytes().zip(blanks.bytes()).take_while(|(one, other)| one == other).count();
        let kept = self.levels.partition_point(|&level| level as usize <= common);
        let ended = self.levels.len() - kept;
        self.levels.truncate(kept);
        let top = self.levels.last().map_or(0, |&level| level as usize);
        self.current.truncate(common);
        self.current.push_str(&blanks[common..]);
        let rest = &blanks[top..];
        if !rest.is_empty() {
            self.levels.push(blanks.len() as u32);
        }
        let unit = self.unit.len();
        let even = rest.len() % unit == 0 && rest.len() / unit <= STEPS;
        let is_steps = even && (0..rest.len() / unit).all(|step| rest[step * unit..].starts_with(&self.unit));
        let more = if is_steps { rest.len() / unit } else { STEPS + rest.len().min(COLUMNS) };
        Newline { breaks, ended, more }
    }

    /// Follow a line break, and write it. Levels that do not exist cannot end.
    pub(crate) fn write(&mut self, newline: Newline, into: &mut String) {
        let kept = self.levels.len().saturating_sub(newline.ended);
        self.levels.truncate(kept);
        let top = self.levels.last().map_or(0, |&level| level as usize);
        self.current.truncate(top);
        if newline.more <= STEPS {
            (0..newline.more).for_each(|_| self.current.push_str(&self.unit));
        } else {
            (STEPS..newline.more).for_each(|_| self.current.push(' '));
        }
        if newline.more > 0 {
            self.levels.push(self.current.len() as u32);
        }
        (0..newline.breaks).for_each(|_| into.push('\n'));
        into.push_str(&self.current);
    }
}

/// The most frequent step of a text's indentation; four blanks if there is none.
pub(crate) fn unit_of(text: &str) -> &'static str {
    const SEEN: usize = 1 << 16;
    const UNITS: [&str; 8] = ["\t", "    ", "  ", "        ", "   ", "      ", "     ", "       "];
    let mut counts = [0usize; UNITS.len()];
    let mut last = "";
    let mut end = text.len().min(SEEN);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    for line in text[..end].split('\n') {
        let bare = line.trim_start_matches(is_blank);
        if bare.is_empty() {
            continue;
        }
        let blanks = &line[..line.len() - bare.len()];
        if let Some(more) = blanks.strip_prefix(last) {
            if let Some(unit) = UNITS.iter().position(|&unit| unit == more) {
                counts[unit] += 1;
            }
        }
        last = blanks;
    }
    // The first of equals is taken, so the usual ones come first.
    let best = (0..UNITS.len()).rev().max_by_key(|&unit| counts[unit]).filter(|&unit| counts[unit] > 0);
    UNITS[best.unwrap_or(1)]
}

/// The lexemes of a text, one after the other.
pub(crate) struct Splitter<'t> {
    text: &'t str,
    at: usize,
    pub(crate) indents: Indents,
}

impl<'t> Splitter<'t> {
    /// Split a text that goes on at this indentation.
    pub(crate) fn new(text: &'t str, indents: Indents) -> Self {
        Self { text, at: 0, indents }
    }

    fn line_break(&mut self) -> Piece<'t> {
        let bytes = self.text.as_bytes();
        let start = self.at;
        let mut breaks = 0;
        let mut blanks = start;
        let mut at = start;
        while let Some(&byte) = bytes.get(at) {
            match byte {
                b'\n' => {
                    breaks += 1;
                    blanks = at + 1;
                }
                b' ' | b'\t' => {}
                _ => break,
            }
            at += 1;
        }
        self.at = at;
        Piece::Break(self.indents.go(breaks, &self.text[blanks..at]).lexeme(), at - start)
    }

    /// The end of a run of characters of one kind, as far as one lexeme goes.
    fn run(&self, of_kind: impl Fn(char) -> bool) -> usize {
        let rest = &self.text[self.at..];
        let mut length = 0;
        for char in rest.chars() {
            if length + char.len_utf8() > WORD || !of_kind(char) {
                break;
            }
            length += char.len_utf8();
        }
        self.at + length
    }
}

impl<'t> Iterator for Splitter<'t> {
    type Item = Piece<'t>;

    fn next(&mut self) -> Option<Piece<'t>> {
        let char = self.text[self.at..].chars().next()?;
        if char == '\n' {
            return Some(self.line_break());
        }
        let end = if is_word(char) {
            self.run(is_word)
        } else if is_blank(char) {
            self.run(is_blank)
        } else {
            self.at + char.len_utf8()
        };
        let piece = &self.text[self.at..end];
        self.at = end;
        Some(Piece::Text(piece))
    }
}

#[cfg(test)]
mod tests {
    use super::{Indents, Newline, Piece, Splitter, unit_of};

    fn again(text: &str, unit: &str) -> String {
        let mut written = String::new();
        let mut indents = Indents::new(unit);
        for piece in Splitter::new(text, Indents::new(unit_of(text))) {
            match piece {
                Piece::Text(text) => written.push_str(text),
                Piece::Break(lexeme, _) => indents.write(Newline::of(lexeme).expect("a line break"), &mut written),
            }
        }
        written
    }

    const TEXTS: [&str; 7] = [
        "",
        "a\n",
        "\n\n  a = 1\n\n\nb",
        "def f(x):\n    if x:\n        return [\n            1,\n        ]\n    g(a,\n      b)\n\n\nclass A:\n    pass\n",
        "if a:\n\tif b:\n\t\tc\n\td\n",
        "a:\n  b:\n    c\n   d\n  e\n f\n",
        "    x\n    y\n  z\nw\u{fffd}ä日本 \u{0}\u{a0}\r\n",
    ];

    #[test]
    fn lexemes_are_written_back_as_they_were_read() {
        for text in TEXTS {
            assert_eq!(again(text, unit_of(text)), text);
        }
        let long = format!("{}\n{}", "a".repeat(1000), " ".repeat(300)) + "x\n" + &" ".repeat(130) + "y";
        assert_eq!(again(&long, unit_of(&long)), long);
    }

    #[test]
    fn a_construct_is_the_same_at_every_depth_and_in_other_steps() {
        let pieces = |text| Splitter::new(text, Indents::new(unit_of(text))).skip(1).collect::<Vec<_>>();
        let deep = pieces("\n    for x in y:\n        f(x)\n    g()");
        let breaks = |pieces: &[Piece<'_>]| pieces.iter().filter(|piece| matches!(piece, Piece::Break(..))).count();
        assert_eq!(breaks(&deep), 2);
        let kinds = |pieces: Vec<Piece<'_>>| {
            pieces
                .into_iter()
                .map(|piece| match piece {
                    Piece::Text(text) => text.to_string(),
                    Piece::Break(lexeme, _) => lexeme.to_string(),
                })
                .collect::<Vec<_>>()
        };
        let deep = kinds(deep);
        assert_eq!(deep, kinds(pieces("\nfor x in y:\n  f(x)\ng()")));
        assert_eq!(deep, kinds(pieces("\n\tfor x in y:\n\t\tf(x)\n\tg()")));
        assert_eq!(again("a:\n\tb:\n\t\tc\nd", "   "), "a:\n   b:\n      c\nd");
    }

    #[test]
    fn indentation_read_backwards_agrees_with_forwards() {
        for text in TEXTS {
            for (at, _) in text.match_indices('\n') {
                // Only the last of several line breaks shows the indentation.
                if text[at + 1..].trim_start_matches([' ', '\t']).starts_with('\n') {
                    continue;
                }
                let lines = text[..at].trim_end_matches(['\n', ' ', '\t']);
                let mut forwards = Splitter::new(lines, Indents::new("    "));
                forwards.by_ref().for_each(drop);
                assert_eq!(Indents::before(&text[..=at], "    ", 1 << 20), forwards.indents, "{text:?} at {at}");
            }
        }
    }

    #[test]
    fn steps_of_indentation_are_found() {
        assert_eq!(unit_of("a"), "    ");
        assert_eq!(unit_of("a:\n  b:\n    c\n"), "  ");
        assert_eq!(unit_of("a:\n\tb:\n\t\tc\n  d"), "\t");
    }
}
