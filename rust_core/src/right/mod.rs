//! Right context: a lattice of symbols over R and one Earley chart over it, with an unknown left side.
//!
//! Lexing from a byte position is deterministic. So a node is a position (plus, around line starts, the column on top
//! of the indentation stack), and lexings from different first boundaries merge. The chart is ordinary Earley. Its
//! first sets hold *free items*: rules begun in the unwritten middle, with the least bytes of their part before the
//! cursor. It finds completed nonterminals between nodes and from free states to nodes. The requirements ask nothing
//! else about R.
//!
//! # Layout
//!
//! The indentation stack at the cursor is unknown, and need not be known. Every INDENT and DEDENT in R is an edge that
//! names the column it pushes or pops and the column below it. A block must open and close with the same two. A line
//! whose column is c is followed by a line at column n with
//!
//! - c < n: INDENT from top c to top n,
//! - c = n: nothing,
//! - c > n: DEDENTs from top c over any columns in between to top n.
//!
//! Each direct line of a block is a header, the last line, or followed by a sibling. A header is checked by the pair of
//! the block it opens, the last line by the DEDENT, and siblings have equal columns. So all have the block's column.
//! Only the first transition after the cursor knows no c. Columns left of n are kept apart there; those right of n are
//! one class, `Above`, because R never looks at them again. Section 5 of the design has counts in place of these
//! columns.
//!
//! # Modes
//!
//! In a language without layout, code has one kind of place, `Code`. There R reads the longest match in each mode with
//! code, if it is a lexeme of the mode's own; mode 0 reads the shared ones. The left side reads the same in the modes
//! that its parser can use, and no other match leads anywhere. Text of a mode without code has places of its own.
//!
//! With layout, R is read in mode 0 outside of literals (`Middle`), since bracket depth and lines need one lexing. Inside
//! of literals (`Nested`) it is read in all modes with code.

pub(crate) mod begun;
mod bound;
mod chart;
mod closers;
mod columns;
mod crossings;
mod lattice;
mod least;
mod lex;
mod links;
mod matches;
mod origins;
mod parts;
pub(crate) mod places;
pub(crate) mod queries;
mod reading;
mod set_memo;
mod sets;

#[cfg(test)]
mod tests;
