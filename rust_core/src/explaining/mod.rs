//! What is open at a cursor, and the grammar of all middles.

pub mod constructs;
pub mod quotient;
