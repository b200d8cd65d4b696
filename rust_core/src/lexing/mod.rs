//! Bytes to lexemes: one automaton, longest match without lookahead, columns. It knows nothing of grammar rules.

pub(crate) mod automaton;
pub(crate) mod branch;
pub(crate) mod guards;
pub(crate) mod layout;
pub(crate) mod lexer;
pub(crate) mod lookahead;
pub(crate) mod product;
pub(crate) mod roles;
pub(crate) mod two_modes;

#[cfg(test)]
mod tests;
