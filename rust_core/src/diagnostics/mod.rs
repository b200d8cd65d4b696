//! Diagnostics of a session: place of the cursor, expected lexemes, where the right context breaks, quotient grammar.

pub(crate) mod constructs;
pub(crate) mod expected;
pub(crate) mod inside;
pub(crate) mod quotient;
pub(crate) mod reach;

#[cfg(test)]
mod tests;
