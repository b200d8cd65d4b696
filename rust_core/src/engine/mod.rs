//! Lexer, layout and parser stepped together, and R's verdict on the result.

mod asking;
mod at_line;
pub(crate) mod branch;
mod continuations;
mod indentation;
mod naming;
pub(crate) mod parser;
pub(crate) mod verdicts;

#[cfg(test)]
mod tests;
