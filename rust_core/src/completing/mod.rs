//! Searches for a text that completes a middle.

pub mod lines;
pub mod plan;
pub mod short;
pub mod shortest;
