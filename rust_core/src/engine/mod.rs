//! Lexer, layout and parser stepped together.

pub(crate) mod stepping;
