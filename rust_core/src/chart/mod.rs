//! The Earley chart over the left context and the middle.

pub(crate) mod left;
pub(crate) mod next;
pub(crate) mod predict;

#[cfg(test)]
mod tests;
