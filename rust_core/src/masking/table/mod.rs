//! The token table: its builder, its sets and its file.

pub mod build;
pub mod file;
pub mod sets;
