//! Lexer, layout and parser stepped together, and what R says of where that leads.

pub(crate) mod branch;
mod indentation;
pub(crate) mod parser;
pub(crate) mod verdicts;
mod ways;

#[cfg(test)]
mod tests;
