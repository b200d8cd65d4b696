//! Columns of R's lines: classes of indistinguishable columns, and columns of an indentation that the cursor cuts.

use crate::language::free::{Cost, INFINITE};
use crate::lexing::layout::{Column, is_blank};
use crate::right::lex::Lexed;
use crate::right::places::{Place, Top};
use rustc_hash::FxHashSet;
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// Measure by which columns are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Measure {
    /// By their width, where R's lines are indented by spaces alone.
    Spaces,
    /// By their width with tabs as one, where R's lines are indented by tabs alone.
    Tabs,
    /// Each by itself.
    Each,
}

/// Columns that R's lines may have, and the classes of all other columns.
///
/// R compares the columns of blocks only with those of its own lines. If all of those are made of spaces, only the
/// width of another column matters. A stack is strictly increasing by both widths. So a line left of a block by one
/// width is left of it by the other too, or the file is refused where the block opens. Each width has one class, and a
/// second one where a line of R has that width (a column with tabs is not that line's).
///
/// If all are made of tabs, the same holds of the width with tabs as one. An indentation with fewer blanks than a line
/// of tabs is left of it by both widths. Otherwise each column is its own class: many, where tabs and spaces are mixed
/// far to the right.
#[derive(Debug)]
pub(super) struct Classes {
    lines: FxHashSet<Column>,
    measure: Measure,
    /// True if a line has a column that was not foreseen.
    pub(super) surprised: bool,
}

/// Width that stands for any width with tabs counted as one, in a class of columns.
const WITH_TABS: u32 = u32::MAX;

impl Measure {
    /// Measures to try for a text, in this order. The last one foresees every line.
    pub(super) fn of(text: &[u8]) -> [Self; 3] {
        let indented = |blank: u8| text.windows(2).filter(|pair| pair[0] == b'\n' && pair[1] == blank).count();
        if indented(b'\t') > indented(b' ') {
            [Self::Tabs, Self::Spaces, Self::Each]
        } else {
            [Self::Spaces, Self::Tabs, Self::Each]
        }
    }

    /// Return whether a line with such a column is foreseen.
    fn foresees(self, column: Column) -> bool {
        match self {
            Self::Spaces => column.is_spaces(),
            Self::Tabs => column.is_tabs(),
            Self::Each => true,
        }
    }

    fn width(self, column: Column) -> u32 {
        if self == Self::Tabs { column.narrow } else { column.wide }
    }

    /// The column of a line with this width.
    fn line(self, width: u32) -> Column {
        let wide = if self == Self::Tabs { 8 * width } else { width };
        Column { wide, narrow: width }
    }

    /// A column that represents all others of a width that a line has. No blanks make it.
    fn other(self, width: u32) -> Column {
        match self {
            Self::Tabs => Column { wide: 8 * width + 1, narrow: width },
            _ => Column { wide: width, narrow: WITH_TABS },
        }
    }

    /// Return whether a column of this width may differ from that of a line with it.
    fn has_other(self, width: u32) -> bool {
        width >= if self == Self::Tabs { 2 } else { 8 }
    }

    /// Return whether a column is its own class: one of spaces beside lines of tabs, since only a backslash-newline
    /// fixes such columns.
    fn is_alone(self, column: Column) -> bool {
        self == Self::Tabs && column.wide != 0 && column.is_spaces()
    }

    /// Least bytes of an indentation with this width that differs from a line's.
    fn least_bytes(self, width: u32) -> u32 {
        if self == Self::Tabs { width } else { width / 8 + width % 8 }
    }
}

impl Classes {
    /// Classes for the columns of spaces, or of tabs, of every line of the text, whether it is a line of R or of a
    /// string.
    pub(super) fn of(text: &[u8], measure: Measure) -> Self {
        let mut lines: FxHashSet<Column> = std::iter::once(Column::ZERO).collect();
        for start in (0..text.len()).filter(|&at| matches!(text[at], b'\n' | b'\r')).map(|at| at + 1) {
            let blanks = text[start..].iter().take_while(|&&byte| is_blank(byte)).count();
            let column = Column::ZERO.after_all(&text[start..start + blanks]);
            lines.extend(std::iter::once(column).chain(column.kept()).filter(|&column| measure.foresees(column)));
        }
        Self { lines, measure, surprised: false }
    }

    /// Take note of a line's column.
    pub(super) fn see(&mut self, line: Column) {
        self.surprised |= self.measure != Measure::Each && !self.lines.contains(&line);
    }

    /// The column that represents a column's class.
    pub(super) fn class(&self, column: Column) -> Column {
        if self.measure == Measure::Each || self.lines.contains(&column) || self.measure.is_alone(column) {
            return column;
        }
        let width = self.measure.width(column);
        let line = self.measure.line(width);
        if self.lines.contains(&line) { self.measure.other(width) } else { line }
    }

    /// Compare a class on the stack with a line of R; `None` if tabs and spaces disagree.
    pub(super) fn compare(&self, class: Column, line: Column) -> Option<Ordering> {
        if self.measure == Measure::Each || class == line {
            return class.compare(line);
        }
        let order = self.measure.width(class).cmp(&self.measure.width(line));
        Some(order).filter(|&order| order != Ordering::Equal)
    }

    /// The classes strictly between two, the widest first.
    pub(super) fn between(&self, low: Column, high: Column) -> Vec<Column> {
        let width = |column| self.measure.width(column);
        if self.measure == Measure::Each {
            Column::between(low, high)
        } else {
            self.of_widths(width(low) + 1, width(high))
        }
    }

    /// The classes strictly left of a line.
    pub(super) fn below(&self, line: Column) -> Vec<Column> {
        if self.measure == Measure::Each { Column::below(line) } else { self.of_widths(0, self.measure.width(line)) }
    }

    fn of_widths(&self, from: u32, to: u32) -> Vec<Column> {
        let mut found = Vec::new();
        for width in (from..to).rev() {
            let line = self.measure.line(width);
            found.push(line);
            if self.measure.has_other(width) && self.lines.contains(&line) {
                found.push(self.measure.other(width));
            }
            let spaces = Column { wide: width, narrow: width };
            if self.measure.is_alone(spaces) {
                found.push(spaces);
            }
        }
        found
    }

    /// Least bytes of an indentation at a column of the class.
    pub(super) fn least_bytes(&self, class: Column) -> u32 {
        if self.measure == Measure::Each || self.lines.contains(&class) || self.measure.is_alone(class) {
            class.least_bytes()
        } else {
            self.measure.least_bytes(self.measure.width(class))
        }
    }

    /// Cost of a block in the middle beyond the one byte that every INDENT counts, if its first line is there too.
    pub(super) fn further(&self, class: Column) -> Cost {
        self.least_bytes(class).saturating_sub(1)
    }

    /// The places before a line that begins in R at a column, for every top of the stack. `begin` is the place for an
    /// equal column.
    pub(super) fn line_places(&mut self, begin: Place, position: u32, column: Column) -> Vec<Place> {
        self.see(column);
        let mut places = vec![begin, Place::Line { position, column, top: Top::Above }];
        let below = self.below(column).into_iter();
        places.extend(below.map(|top| Place::Line { position, column, top: Top::Exact(top) }));
        places
    }
}

/// A line start cut by the cursor: R's blanks from `from` on are the rest of an indentation, `to` is its first symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) from: u32,
    pub(super) to: u32,
    /// True if the middle ended in a backslash-newline, or in a backslash whose newline is R's first. The column before
    /// it stands.
    pub(super) joined: bool,
}

impl Entry {
    /// Return whether the middle can give the indentation cut by the cursor this column, and by how few bytes.
    pub(super) fn fits(self, lexed: &Lexed, column: Column) -> Option<Cost> {
        if let Some(spaces) = self.spaces(lexed) {
            let before = Column { wide: column.wide.checked_sub(spaces)?, narrow: column.narrow.checked_sub(spaces)? };
            return before.is_possible().then(|| before.least_bytes());
        }
        let befores = self.befores(column).into_iter();
        let fitting = befores.filter(|&before| self.through(lexed, before) == Some(column));
        fitting.map(|before| self.cost(before)).min()
    }

    /// The columns that the middle can bring without putting the line right of `column`. A line join keeps the width
    /// alone.
    fn befores(self, column: Column) -> Vec<Column> {
        if self.joined {
            return (0..=column.wide).map(|wide| Column { wide, narrow: wide }).collect();
        }
        let mut befores = Column::below(column);
        befores.push(column);
        befores
    }

    /// Number of spaces in R's part of an indentation, if it holds nothing else.
    fn spaces(self, lexed: &Lexed) -> Option<u32> {
        let blanks = &lexed.text()[self.from as usize..self.to as usize];
        (!self.joined && blanks.iter().all(|&byte| byte == b' ')).then_some(self.to - self.from)
    }

    /// The column of the line when the middle brings one.
    fn through(self, lexed: &Lexed, before: Column) -> Option<Column> {
        let kept = before.kept().filter(|_| self.joined);
        let start = if self.joined { Column::ZERO } else { before };
        lexed.column_through(self.from, start, kept).map(|(_, found)| found)
    }

    /// Least bytes of an indentation that makes a column.
    fn cost(self, before: Column) -> Cost {
        match before.kept() {
            Some(kept) if self.joined => kept.least_bytes(),
            _ if self.joined => 0,
            _ => before.least_bytes(),
        }
    }

    /// The classes of the entry's column up to a line's, each with the least bytes that the middle must bring.
    pub(super) fn classes(self, lexed: &Lexed, known: &Classes, following: Column) -> Vec<(Column, Cost)> {
        if let Some(spaces) = self.spaces(lexed).filter(|_| known.measure == Measure::Spaces) {
            let mut classes = known.below(following);
            classes.push(following);
            let cost = |class: Column| {
                let before = class.wide.checked_sub(spaces)?;
                let tabs = before / 8 + before % 8;
                match class.narrow {
                    WITH_TABS => (before >= 8).then_some(tabs),
                    _ if known.lines.contains(&class) => Some(Column { wide: before, narrow: before }.least_bytes()),
                    _ => Some(tabs),
                }
            };
            return classes.into_iter().filter_map(|class| Some((class, cost(class)?))).collect();
        }
        let mut found: BTreeMap<Column, Cost> = BTreeMap::new();
        for before in self.befores(following) {
            let Some(column) = self.through(lexed, before) else { continue };
            if column == following || column.is_left_of(following) {
                let cell = found.entry(known.class(column)).or_insert(INFINITE);
                *cell = (*cell).min(self.cost(before));
            }
        }
        found.into_iter().collect()
    }
}
