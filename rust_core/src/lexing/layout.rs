//! Columns and indentation stacks.
//!
//! A column holds the two widths that CPython's tokenizer keeps: with tab stops every eight columns, and with tabs
//! counted as one. Two indentations compare only if both widths agree on the order. Otherwise tabs and spaces are mixed
//! inconsistently and the line is refused.

use crate::ids::{ColumnId, IndentationId, LexemeId};
use rustc_hash::FxHashMap;
use std::cmp::Ordering;

/// The layout lexemes of a language with indentation.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    /// The newline lexeme.
    pub newline: LexemeId,
    /// The lexeme that opens a block.
    pub indent: LexemeId,
    /// The lexeme that closes a block.
    pub dedent: LexemeId,
    /// True if unknown columns are taken in classes.
    pub column_classes: bool,
}

/// The indentation of a line, in columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub(crate) struct Column {
    /// Width with tab stops every 8 columns.
    pub wide: u32,
    /// Width with a tab counted as 1.
    pub narrow: u32,
}

impl Column {
    /// Column 0.
    pub(crate) const ZERO: Self = Self { wide: 0, narrow: 0 };

    /// The column after one blank byte; a form feed goes back to 0.
    #[must_use]
    pub(crate) fn after(self, byte: u8) -> Self {
        match byte {
            b'\t' => Self { wide: (self.wide / 8 + 1) * 8, narrow: self.narrow + 1 },
            b'\x0c' => Self::ZERO,
            _ => Self { wide: self.wide + 1, narrow: self.narrow + 1 },
        }
    }

    /// The column after a run of blanks.
    #[must_use]
    pub(crate) fn after_all(self, blanks: &[u8]) -> Self {
        blanks.iter().fold(self, |column, &byte| column.after(byte))
    }

    /// The column that a backslash-newline at this column of the indentation fixes, with its tab stops for both widths
    /// (as CPython's tokenizer does); `None` at column 0.
    #[must_use]
    pub(crate) fn kept(self) -> Option<Self> {
        (self.wide != 0).then_some(Self { wide: self.wide, narrow: self.wide })
    }

    /// Least bytes of an indentation at this column: a byte for each blank. A column that only a backslash-newline can
    /// make needs tabs, blanks and those two bytes.
    #[must_use]
    pub(crate) fn least_bytes(self) -> u32 {
        if self.wide == self.narrow { self.narrow.min(self.wide / 8 + self.wide % 8 + 2) } else { self.narrow }
    }

    /// Return whether spaces alone make this column.
    #[must_use]
    pub(crate) fn is_spaces(self) -> bool {
        self.wide == self.narrow
    }

    /// Return whether tabs alone make this column.
    #[must_use]
    pub(crate) fn is_tabs(self) -> bool {
        self.wide == 8 * self.narrow
    }

    /// Return whether blanks can make this column: each tab is worth 1 to 8 blanks.
    #[must_use]
    pub(crate) fn is_possible(self) -> bool {
        (self.wide / 8 + self.wide % 8..=self.wide).contains(&self.narrow)
    }

    /// A lower bound on the bytes of indentations right of this column. `joins`: whether the language has
    /// backslash-newlines.
    #[must_use]
    pub(crate) fn least_bytes_right_of(self, joins: bool) -> u32 {
        let blanks = self.narrow + 1;
        if joins { blanks.min((self.wide + 1).div_ceil(8) + 2) } else { blanks }
    }

    /// A lower bound on the bytes from this column to another, over a backslash-newline where that helps; `None` if a
    /// new line is needed.
    #[must_use]
    pub(crate) fn least_bytes_to(self, to: Self) -> Option<u32> {
        let wide = to.wide.checked_sub(self.wide)?;
        let stops = to.wide / 8 - self.wide / 8;
        let least = if stops == 0 { wide } else { stops + to.wide % 8 };
        let blanks = to.narrow.checked_sub(self.narrow).filter(|blanks| (least..=wide).contains(blanks));
        let joined = (to.kept() == Some(to)).then_some(least + 2);
        blanks.into_iter().chain(joined).min()
    }

    /// A lower bound on the bytes from this column to one right of another in the same line. `joins`: whether the
    /// language has backslash-newlines.
    #[must_use]
    pub(crate) fn least_bytes_to_right_of(self, other: Self, joins: bool) -> u32 {
        let wide = if self.wide > other.wide { 0 } else { (other.wide + 1).div_ceil(8) - self.wide / 8 };
        let blanks = wide.max((other.narrow + 1).saturating_sub(self.narrow));
        if joins { blanks.min(wide + 2) } else { blanks }
    }

    /// Compare two columns; `None` if tabs and spaces disagree.
    #[must_use]
    pub(crate) fn compare(self, other: Self) -> Option<Ordering> {
        let wide = self.wide.cmp(&other.wide);
        (wide == self.narrow.cmp(&other.narrow)).then_some(wide)
    }

    /// Return whether this column is strictly left of another by both widths.
    #[must_use]
    pub(crate) fn is_left_of(self, other: Self) -> bool {
        self.compare(other) == Some(Ordering::Less)
    }

    /// Every column strictly between two that blanks can make, widest first.
    #[must_use]
    pub(crate) fn between(low: Self, high: Self) -> Vec<Self> {
        let mut found: Vec<Self> = Self::below(high).into_iter().filter(|column| low.is_left_of(*column)).collect();
        found.sort_unstable_by(|left, right| right.cmp(left));
        found
    }

    /// Every column strictly left of one that blanks can make, column 0 included.
    #[must_use]
    pub(crate) fn below(high: Self) -> Vec<Self> {
        let mut found = Vec::new();
        let mut layer = vec![Self::ZERO];
        while !layer.is_empty() {
            layer.retain(|column| column.is_left_of(high));
            layer.sort_unstable();
            layer.dedup();
            found.extend(&layer);
            layer = layer.iter().flat_map(|column| [column.after(b' '), column.after(b'\t')]).collect();
        }
        found
    }
}

/// Return whether a byte is a blank inside an indentation.
#[must_use]
pub(crate) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\x0c')
}

/// Interned columns; `ColumnId(0)` is "no column".
#[derive(Debug, Clone)]
pub(crate) struct Columns {
    columns: Vec<Column>,
    ids: FxHashMap<Column, ColumnId>,
}

/// No column: the item is in no block, or before its INDENT.
pub(crate) const NO_COLUMN: ColumnId = ColumnId(0);

impl Default for Columns {
    fn default() -> Self {
        Self { columns: vec![Column { wide: u32::MAX, narrow: u32::MAX }], ids: FxHashMap::default() }
    }
}

impl Columns {
    /// Intern a column.
    pub(crate) fn intern(&mut self, column: Column) -> ColumnId {
        if let Some(&id) = self.ids.get(&column) {
            return id;
        }
        let id = ColumnId::from_index(self.columns.len());
        self.columns.push(column);
        self.ids.insert(column, id);
        id
    }

    /// The column of an id that is not [`NO_COLUMN`].
    #[must_use]
    pub(crate) fn get(&self, id: ColumnId) -> Column {
        self.columns[id.index()]
    }
}

/// The tree of indentation stacks, which all branches share; node 0 is the module level, column 0.
#[derive(Debug, Clone)]
pub(crate) struct Indentations {
    /// The stack below, the column on top, the number of columns but the module level's.
    nodes: Vec<(IndentationId, Column, u32)>,
    ids: FxHashMap<(IndentationId, Column), IndentationId>,
}

impl Default for Indentations {
    fn default() -> Self {
        Self { nodes: vec![(IndentationId(0), Column::ZERO, 0)], ids: FxHashMap::default() }
    }
}

impl Indentations {
    /// The column on top of a stack.
    #[must_use]
    pub(crate) fn top(&self, stack: IndentationId) -> Column {
        self.nodes[stack.index()].1
    }

    /// The number of open blocks.
    #[must_use]
    pub(crate) fn depth(&self, stack: IndentationId) -> u32 {
        self.nodes[stack.index()].2
    }

    /// The stack below the top; `None` at the module level.
    #[must_use]
    pub(crate) fn parent(&self, stack: IndentationId) -> Option<IndentationId> {
        (stack.0 != 0).then(|| self.nodes[stack.index()].0)
    }

    /// The stack with one column more.
    pub(crate) fn push(&mut self, stack: IndentationId, column: Column) -> IndentationId {
        let fresh = IndentationId::from_index(self.nodes.len());
        let depth = self.depth(stack) + 1;
        *self.ids.entry((stack, column)).or_insert_with(|| {
            self.nodes.push((stack, column, depth));
            fresh
        })
    }

    /// The columns of a stack, the top first, the module level left out.
    #[must_use]
    pub(crate) fn columns(&self, mut stack: IndentationId) -> Vec<Column> {
        let mut found = Vec::new();
        while let Some(parent) = self.parent(stack) {
            found.push(self.top(stack));
            stack = parent;
        }
        found
    }
}
