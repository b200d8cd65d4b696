//! Which tokens of a vocabulary may come: the plain walk, the token table, and what is kept.

pub mod cache;
pub mod plain;
pub mod table;
pub mod vocabulary;
pub mod walk;
