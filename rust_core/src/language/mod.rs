//! A language as the engine works with it, and what a text that is still to be written can do in it.

pub mod definition;
pub mod follow;
pub mod free;
pub mod shape;
pub mod shaped;
