//! Rules over lexemes, with everything precomputed that depends on them alone.

pub(crate) mod rules;
