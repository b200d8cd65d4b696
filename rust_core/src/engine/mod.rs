//! Lexer, layout and parser stepped together, and what R says of where that leads.

mod at_line;
pub(crate) mod branch;
mod indentation;
mod naming;
pub(crate) mod parser;
pub(crate) mod verdicts;
mod ways;

#[cfg(test)]
mod tests;
