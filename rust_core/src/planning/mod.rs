//! Searches for a text that completes a middle.

pub(crate) mod landing;
pub(crate) mod lines;
pub(crate) mod plan;
mod right_text;
pub(crate) mod search;
pub(crate) mod shared;
pub(crate) mod short;
pub(crate) mod shortest;

#[cfg(test)]
mod tests;
