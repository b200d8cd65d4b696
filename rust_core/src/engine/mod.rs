//! Lexer, layout and parser stepped together.

pub mod stepping;
