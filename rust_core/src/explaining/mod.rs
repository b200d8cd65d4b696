//! What is open at a cursor, and the grammar of all middles.

pub(crate) mod constructs;
pub(crate) mod quotient;
