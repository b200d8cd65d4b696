//! What a session can tell people: where a cursor is, what may come, what stands against it.

pub(crate) mod constructs;
pub(crate) mod expected;
pub(crate) mod inside;
pub(crate) mod quotient;
pub(crate) mod reach;

#[cfg(test)]
mod tests;
