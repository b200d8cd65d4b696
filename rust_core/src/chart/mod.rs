//! The Earley chart over the left context and the middle.

pub mod left;
pub mod next;
pub mod predict;
