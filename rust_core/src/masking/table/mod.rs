//! The token table: its builder, its sets and its file.

pub(crate) mod build;
pub(crate) mod configuration;
pub(crate) mod context;
pub(crate) mod explore;
pub(crate) mod file;
pub(crate) mod sets;
