//! Which tokens of a vocabulary may come: the plain walk, the token table, and what is kept.

pub(crate) mod cache;
pub(crate) mod plain;
pub(crate) mod table;
pub(crate) mod vocabulary;
pub(crate) mod walk;
