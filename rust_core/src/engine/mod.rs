//! Lexer, layout and parser stepped together, and what R says of where that leads.

mod at_line;
pub(crate) mod branch;
mod continuations;
mod indentation;
mod naming;
pub(crate) mod parser;
pub(crate) mod verdicts;

#[cfg(test)]
mod tests;
