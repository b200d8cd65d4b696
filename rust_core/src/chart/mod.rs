//! The Earley chart over the left context and the middle.

mod answers;
mod bound;
pub(crate) mod left;
pub(crate) mod next;
pub(crate) mod predict;
pub(crate) mod questions;
pub(crate) mod texts;

#[cfg(test)]
mod tests;
