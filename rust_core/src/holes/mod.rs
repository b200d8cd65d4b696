//! Several holes in one file: whether texts exist for all of those that are open.
//!
//! The file is a sequence of texts, with any text between each and the next. The lexer reads the texts byte by byte in
//! all ways that the holes leave open. The ways form a directed graph, in which the symbols of each hole loop. One
//! Earley chart over this graph holds an item iff some texts of the holes lead to it. It intersects a context-free
//! language with a regular one (Bar-Hillel, Perles and Shamir 1961).
//!
//! # Layout
//!
//! A node knows the column on top of the indentation stack and whether brackets are open, nothing else of either stack.
//! A rule holds an INDENT together with its DEDENT, and opening brackets together with closing ones. So after the
//! closing one the column and the brackets are those of the node where the rule began.
//!
//! In a hole, a line may begin at any column. Columns right of all indentations of the texts are one class, `above`.

mod chart;
mod hole;
mod reading;
mod rules;

use crate::error::Error;
use crate::holes::reading::Reading;
use crate::language::compiled::Language;
use std::sync::Arc;

/// Return whether texts for the holes between some texts exist that make the whole a program.
///
/// # Errors
/// A language or texts for which this is not decided exactly, or a limit that the texts pass.
pub fn is_possible(language: &Arc<Language>, texts: &[&str]) -> Result<bool, Error> {
    let texts: Vec<&[u8]> = texts.iter().map(|text| text.as_bytes()).collect();
    Reading::begin(language, &texts)?.read(&texts)
}
