//! Rules over lexemes, with everything precomputed that depends on them alone.

mod adjacency;
pub(crate) mod compiled;
mod modes;
pub(crate) mod rules;

#[cfg(test)]
mod tests;
