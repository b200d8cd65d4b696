//! Bytes to lexemes: one automaton, longest match without lookahead, columns. It knows nothing of grammar rules.

pub mod guards;
pub mod layout;
pub mod lexer;
pub mod lookahead;
